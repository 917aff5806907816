"""Dollar Street's two releases, as one frame: a photo a row, under the same names.

The release that Meta's papers use names a photo by its address and has one label in each row
(JSON, several rows a photo) or a list of them (CSV). MLCommons' release names it by an id and gives
topics, ImageNet classes and codes for regions. Tables that others made of it (a photo's score
beside its topics, country and income) have no region: ``regions.yaml`` has one for each country.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from isolux.datasets._files import Inputs
from isolux.datasets._inner_paths import refuse_outside
from isolux.datasets._tables import left_join
from isolux.io.cells import as_numbers, as_text
from isolux.io.ids import ids_of
from isolux.io.json_values import decode
from isolux.io.refusals import refuse_cells, require_columns
from isolux.io.settings_files import read_mapping
from isolux.vocabulary.errors import TableError, UnknownNameError, place
from isolux.vocabulary.notes import Caution

REGIONS = ("Africa", "The Americas", "Asia", "Europe")
_CODES = {"af": "Africa", "am": "The Americas", "as": "Asia", "eu": "Europe"}
CLASSES = {
    "imagenet1k": "imagenet_sysnet_id",
    "imagenet21k": "sin21k_targets",
    "imagenet21k-alibaba": "sin21k_targets_alibaba",
}
"""What may be judged instead of the release's own labels, and the column that has it."""

_LONGEST = 100_000  # characters of a cell that is parsed as a list
_META = ("url", "country", "region", "income", "label")
_MLCOMMONS = ("id", "country.name", "region.id", "imageRelPath", "topics", "income")
_EXTRACT = ("id", "country.name", "topics", "income")
_TABLE = Path(__file__).parent / "regions.yaml"
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Photos:
    """Photos and where they came from."""

    frame: pl.DataFrame
    inputs: Inputs
    notes: tuple[str, ...]


class _Row(msgspec.Struct, gc=False):
    url: str
    country: str
    region: str
    income: float | str
    label: str | list[str]


def read_photos(file: Path, classes: str) -> Photos:
    """Read either release."""
    where, inputs = str(file), Inputs()
    if file.suffix.lower() == ".json":
        table = _json_table(inputs.read(file), where)
    else:
        table = inputs.read_table(file)
    read = _reader(table)(table, where)
    own = read["label"] if classes == "own" else _classes(table, classes, where)
    rows = read.with_columns(own.alias("classes"))
    photos = _one_row_each(rows, where)
    merged = rows.height - photos.height
    notes = _on_regions(photos) if "region.id" not in table.columns else []
    if merged:
        notes.append(
            f"{merged:,} row(s) are of photos that have another label too; each is one photo."
        )
    return Photos(photos, inputs, tuple(notes))


def _reader(table: pl.DataFrame) -> Callable[[pl.DataFrame, str], pl.DataFrame]:
    if "topics" not in table.columns:
        return _of_meta
    return _of_mlcommons if {"region.id", "imageRelPath"} & set(table.columns) else _of_extract


def region_of_country() -> dict[str, str]:
    """Read the region of each country: 54 as the release with addresses says, 12 by the UN."""
    lists = read_mapping(_TABLE)
    return {country: region for region in REGIONS for country in lists[region]}


def _on_regions(photos: pl.DataFrame) -> list[str]:
    """Caution where a country is in no region."""
    lost = photos.filter(pl.col("region").is_null())
    if not lost.height:
        return []
    names = lost["country"].unique().sort().to_list()
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return [
        Caution(
            f"{lost.height:,} of {photos.height:,} photos are of countries of which no region is"
            f" known: {', '.join(map(repr, names[:_SHOWN]))}{more}."
        )
    ]


def _json_table(data: bytes, where: str) -> pl.DataFrame:
    rows = decode(data, list[_Row], where)
    if not rows:
        raise TableError("the list of photos is empty", expected="a photo or more", where=where)
    return pl.DataFrame(
        {name: pl.Series([str(getattr(row, name)) for row in rows]) for name in _META}
    )


def _of_meta(table: pl.DataFrame, where: str) -> pl.DataFrame:
    require_columns(table, _META, where)
    region = as_text(table["region"])
    _refuse(region.is_in(REGIONS), region, "no region of Dollar Street", REGIONS, where)
    url = ids_of(table, "url", where)
    refuse_outside(url.set(url.str.contains("://"), None), where, "url")
    labels = table["label"]
    listed = labels.str.starts_with("[").any()
    return pl.DataFrame(
        [
            url.alias("photo"),
            url.alias("uri"),
            as_text(table["country"]).alias("country"),
            region,
            url.str.extract(r"/media/([^/]+)/").alias("place"),
            *_incomes(table, where),
            (lists_of(labels, where) if listed else labels.reshape((-1, 1)).arr.to_list()).alias(
                "label"
            ),
        ]
    )


def _of_mlcommons(table: pl.DataFrame, where: str) -> pl.DataFrame:
    require_columns(table, _MLCOMMONS, where)
    code = as_text(table["region.id"])
    _refuse(code.is_in(list(_CODES)), code, "no code of a region", _CODES, where)
    uri = ids_of(table, "imageRelPath", where)
    refuse_outside(uri, where, "imageRelPath")
    absent = pl.Series([None] * table.height, dtype=pl.String)
    return pl.DataFrame(
        [
            ids_of(table, "id", where).alias("photo"),
            uri.alias("uri"),
            as_text(table["country.name"]).alias("country"),
            code.replace_strict(_CODES, return_dtype=pl.String).alias("region"),
            (as_text(table["place"]) if "place" in table.columns else absent).alias("place"),
            *_incomes(table, where),
            lists_of(table["topics"], where).alias("label"),
        ]
    )


def _of_extract(table: pl.DataFrame, where: str) -> pl.DataFrame:
    """Read a table that someone made of MLCommons' release: no paths, no regions."""
    require_columns(table, _EXTRACT, where)
    country = as_text(table["country.name"])
    topics = as_text(table["topics"])
    listed = topics.str.starts_with("[").any()
    absent = pl.Series([None] * table.height, dtype=pl.String)
    return pl.DataFrame(
        [
            ids_of(table, "id", where).alias("photo"),
            absent.alias("uri"),
            country.alias("country"),
            country.replace_strict(region_of_country(), default=None, return_dtype=pl.String).alias(
                "region"
            ),
            absent.alias("place"),
            *_incomes(table, where),
            (lists_of(topics, where) if listed else _split(topics)).alias("label"),
        ]
    )


def _split(topics: pl.Series) -> pl.Series:
    """Part topics at commas; one with a blank behind it is a topic's own ("Couch, sofa")."""
    parted = topics.str.replace_all(", ", "\0", literal=True).str.split(",")
    return parted.list.eval(pl.element().str.replace_all("\0", ", ", literal=True))


def _refuse(
    good: pl.Series, cells: pl.Series, problem: str, known: Iterable[str], where: str
) -> None:
    told = f"a cell holds {problem} ({{n}} in all)"
    refuse_cells(~good.fill_null(value=False), cells, told, ", ".join(known), where)


def _incomes(table: pl.DataFrame, where: str) -> tuple[pl.Series, pl.Series]:
    text = as_text(table["income"])
    number = as_numbers(text, where=where, column="income")
    good = (number > 0) & number.is_finite()
    _refuse(good, text, "no income", ("US dollars a month, more than 0",), where)
    return number.alias("income"), text.alias("income_text")


def _classes(table: pl.DataFrame, classes: str, where: str) -> pl.Series:
    column = CLASSES[classes]
    if column not in table.columns:
        have = [name for name, column in CLASSES.items() if column in table.columns]
        raise UnknownNameError("set of classes", classes, ["own", *have], where=where)
    return lists_of(table[column], where)


def lists_of(cells: pl.Series, where: str) -> pl.Series:
    """Read cells that hold lists as Python or JSON writes them; each different one once."""
    read: dict[str, list[str]] = {}
    for cell in cells.unique().drop_nulls().to_list():
        found = _list(cell)
        if found is None:
            refuse_cells(
                cells == cell,
                cells,
                "a cell is not a list of labels",
                "['roofs', 'beds'], [\"roofs\"] or [65, 66]",
                where,
                longest=80,
            )
        read[cell] = list(dict.fromkeys(map(str, found or ())))
    table = pl.DataFrame(
        {"cell": list(read), "list": list(read.values())},
        schema={"cell": pl.String, "list": pl.List(pl.String)},
    )
    return left_join(cells.to_frame("cell"), table, "cell")["list"]


def _list(cell: str) -> list[Any] | None:
    if len(cell) > _LONGEST:
        return None
    try:
        found = json.loads(cell)
    except (ValueError, RecursionError):
        try:
            found = ast.literal_eval(cell.strip())
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            return None
    if not isinstance(found, list):
        return None
    plain = all(isinstance(one, str | int) and not isinstance(one, bool) for one in found)
    return found if plain else None


def _one_row_each(rows: pl.DataFrame, where: str) -> pl.DataFrame:
    """Bring the rows of one photo together: their labels are all true of it."""
    fixed = [name for name in rows.columns if name not in ("photo", "label", "classes")]
    first = rows.group_by("photo", maintain_order=True).agg(
        pl.col(fixed).first(),
        *(
            pl.col(name).explode().drop_nulls().unique(maintain_order=True).alias(name)
            for name in ("label", "classes")
        ),
        several=pl.any_horizontal(pl.struct(name).n_unique() > 1 for name in fixed),
    )
    twice = first.filter("several")
    if twice.height:
        photo = twice["photo"][0]
        row = int((rows["photo"] == photo).arg_true()[1])
        raise TableError(
            f"{twice.height:,} photo(s) are said to be of two homes",
            expected="one path, country, region and income for each photo",
            found=repr(photo),
            where=place(where, row + 1),
        )
    full = pl.when(pl.col("classes").list.len() > 0).then("classes")
    return first.drop("several").with_columns(full.alias("classes"))
