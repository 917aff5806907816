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

from isolux.core.errors import TableError, UnknownNameError, format_location
from isolux.core.formatting import AND_MORE, join_first
from isolux.core.notes import Caution
from isolux.datasets._files import Inputs
from isolux.datasets._relative_paths import check_paths_stay_inside
from isolux.datasets._tables import left_join_in_order
from isolux.io.cell_parsing import as_numbers, as_text
from isolux.io.ids import read_ids
from isolux.io.json_values import decode_json
from isolux.io.refusals import refuse_cells, require_columns
from isolux.io.settings_files import read_mapping

REGIONS = ("Africa", "The Americas", "Asia", "Europe")
_REGION_BY_CODE = {"af": "Africa", "am": "The Americas", "as": "Asia", "eu": "Europe"}
CLASS_COLUMN_BY_SET = {
    "imagenet1k": "imagenet_sysnet_id",
    "imagenet21k": "sin21k_targets",
    "imagenet21k-alibaba": "sin21k_targets_alibaba",
}
"""What may be judged instead of the release's own labels, and the column that has it."""

_MAX_LIST_LENGTH = 100_000  # characters of a cell that is parsed as a list
_META_COLUMNS = ("url", "country", "region", "income", "label")
_MLCOMMONS_COLUMNS = ("id", "country.name", "region.id", "imageRelPath", "topics", "income")
_EXTRACT_COLUMNS = ("id", "country.name", "topics", "income")
_REGIONS_FILE = Path(__file__).parent / "regions.yaml"
_MAX_LISTED = 5


@dataclass(frozen=True, slots=True)
class DollarStreetPhotos:
    """Photos and where they came from."""

    table: pl.DataFrame
    inputs: Inputs
    notes: tuple[str, ...]


class _DollarStreetRow(msgspec.Struct, gc=False):
    url: str
    country: str
    region: str
    income: float | str
    label: str | list[str]


def read_dollarstreet_photos(file: Path, classes: str) -> DollarStreetPhotos:
    """Read either release."""
    source, inputs = str(file), Inputs()
    if file.suffix.lower() == ".json":
        table = _read_json_table(inputs.read(file), source)
    else:
        table = inputs.read_table(file)
    release_rows = _choose_release_reader(table)(table, source)
    class_lists = (
        release_rows["label"] if classes == "own" else _parse_photo_classes(table, classes, source)
    )
    rows = release_rows.with_columns(classes=class_lists)
    photos = _merge_rows_of_one_photo(rows, source)
    merged = rows.height - photos.height
    notes = _caution_on_missing_regions(photos) if "region.id" not in table.columns else []
    if merged:
        notes.append(
            f"{merged:,} row(s) are of photos that have another label too; each is one photo."
        )
    return DollarStreetPhotos(photos, inputs, tuple(notes))


def _choose_release_reader(table: pl.DataFrame) -> Callable[[pl.DataFrame, str], pl.DataFrame]:
    if "topics" not in table.columns:
        return _read_meta_release
    return (
        _read_mlcommons_release
        if {"region.id", "imageRelPath"} & set(table.columns)
        else _read_mlcommons_extract
    )


def read_region_by_country() -> dict[str, str]:
    """Read the region of each country: 54 as the release with addresses says, 12 by the UN."""
    lists = read_mapping(_REGIONS_FILE)
    return {country: region for region in REGIONS for country in lists[region]}


def _caution_on_missing_regions(photos: pl.DataFrame) -> list[str]:
    """Caution where a country is in no region."""
    without_region = photos.filter(pl.col("region").is_null())
    if not without_region.height:
        return []
    names = without_region["country"].unique().sort().to_list()
    return [
        Caution(
            f"{without_region.height:,} of {photos.height:,} photos are of countries of which no"
            f" region is known: {join_first(map(repr, names), _MAX_LISTED, AND_MORE)}."
        )
    ]


def _read_json_table(content: bytes, source: str) -> pl.DataFrame:
    rows = decode_json(content, list[_DollarStreetRow], source)
    if not rows:
        raise TableError("the list of photos is empty", expected="a photo or more", where=source)
    return pl.DataFrame(
        {name: pl.Series([str(getattr(row, name)) for row in rows]) for name in _META_COLUMNS}
    )


def _read_meta_release(table: pl.DataFrame, source: str) -> pl.DataFrame:
    require_columns(table, _META_COLUMNS, source)
    region = as_text(table["region"])
    _raise_for_unknown_cells(
        region.is_in(REGIONS), region, "no region of Dollar Street", REGIONS, source
    )
    url = read_ids(table, "url", source)
    check_paths_stay_inside(url.set(url.str.contains("://"), None), source, "url")
    labels = table["label"]
    has_lists = labels.str.starts_with("[").any()
    return pl.DataFrame(
        [
            url.alias("photo"),
            url.alias("uri"),
            as_text(table["country"]).alias("country"),
            region,
            url.str.extract(r"/media/([^/]+)/").alias("place"),
            *_parse_incomes(table, source),
            (
                parse_unique_lists(labels, source)
                if has_lists
                else labels.reshape((-1, 1)).arr.to_list()
            ).alias("label"),
        ]
    )


def _read_mlcommons_release(table: pl.DataFrame, source: str) -> pl.DataFrame:
    require_columns(table, _MLCOMMONS_COLUMNS, source)
    code = as_text(table["region.id"])
    _raise_for_unknown_cells(
        code.is_in(list(_REGION_BY_CODE)), code, "no code of a region", _REGION_BY_CODE, source
    )
    uri = read_ids(table, "imageRelPath", source)
    check_paths_stay_inside(uri, source, "imageRelPath")
    absent = pl.Series([None] * table.height, dtype=pl.String)
    return pl.DataFrame(
        [
            read_ids(table, "id", source).alias("photo"),
            uri.alias("uri"),
            as_text(table["country.name"]).alias("country"),
            code.replace_strict(_REGION_BY_CODE, return_dtype=pl.String).alias("region"),
            (as_text(table["place"]) if "place" in table.columns else absent).alias("place"),
            *_parse_incomes(table, source),
            parse_unique_lists(table["topics"], source).alias("label"),
        ]
    )


def _read_mlcommons_extract(table: pl.DataFrame, source: str) -> pl.DataFrame:
    """Read a table that someone made of MLCommons' release: no paths, no regions."""
    require_columns(table, _EXTRACT_COLUMNS, source)
    country = as_text(table["country.name"])
    topics = as_text(table["topics"])
    has_lists = topics.str.starts_with("[").any()
    absent = pl.Series([None] * table.height, dtype=pl.String)
    return pl.DataFrame(
        [
            read_ids(table, "id", source).alias("photo"),
            absent.alias("uri"),
            country.alias("country"),
            country.replace_strict(
                read_region_by_country(), default=None, return_dtype=pl.String
            ).alias("region"),
            absent.alias("place"),
            *_parse_incomes(table, source),
            (
                parse_unique_lists(topics, source) if has_lists else _split_topics_at_commas(topics)
            ).alias("label"),
        ]
    )


def _split_topics_at_commas(topics: pl.Series) -> pl.Series:
    """Part topics at commas; one with a blank behind it is a topic's own ("Couch, sofa")."""
    split_texts = topics.str.replace_all(", ", "\0", literal=True).str.split(",")
    return split_texts.list.eval(pl.element().str.replace_all("\0", ", ", literal=True))


def _raise_for_unknown_cells(
    is_valid: pl.Series, cells: pl.Series, problem: str, valid_words: Iterable[str], source: str
) -> None:
    full_problem = f"a cell holds {problem} ({{n}} in all)"
    refuse_cells(
        ~is_valid.fill_null(value=False), cells, full_problem, ", ".join(valid_words), source
    )


def _parse_incomes(table: pl.DataFrame, source: str) -> tuple[pl.Series, pl.Series]:
    text = as_text(table["income"])
    number = as_numbers(text, source=source, column="income")
    is_valid = (number > 0) & number.is_finite()
    _raise_for_unknown_cells(
        is_valid, text, "no income", ("US dollars a month, more than 0",), source
    )
    return number.alias("income"), text.alias("income_text")


def _parse_photo_classes(table: pl.DataFrame, classes: str, source: str) -> pl.Series:
    column = CLASS_COLUMN_BY_SET[classes]
    if column not in table.columns:
        available = [
            name for name, column in CLASS_COLUMN_BY_SET.items() if column in table.columns
        ]
        raise UnknownNameError("set of classes", classes, ["own", *available], where=source)
    return parse_unique_lists(table[column], source)


def parse_unique_lists(cells: pl.Series, source: str) -> pl.Series:
    """Read cells that hold lists as Python or JSON writes them; each different one once."""
    items_by_cell: dict[str, list[str]] = {}
    for cell in cells.unique().drop_nulls().to_list():
        parsed = _parse_list_literal_or_none(cell)
        if parsed is None:
            refuse_cells(
                cells == cell,
                cells,
                "a cell is not a list of labels",
                "['roofs', 'beds'], [\"roofs\"] or [65, 66]",
                source,
                max_length=80,
            )
        items_by_cell[cell] = list(dict.fromkeys(map(str, parsed or ())))
    table = pl.DataFrame(
        {"cell": list(items_by_cell), "list": list(items_by_cell.values())},
        schema={"cell": pl.String, "list": pl.List(pl.String)},
    )
    return left_join_in_order(cells.to_frame("cell"), table, "cell")["list"]


def _parse_list_literal_or_none(cell: str) -> list[Any] | None:
    if len(cell) > _MAX_LIST_LENGTH:
        return None
    try:
        parsed = json.loads(cell)
    except (ValueError, RecursionError):
        try:
            parsed = ast.literal_eval(cell.strip())
        except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
            return None
    if not isinstance(parsed, list):
        return None
    is_plain_list = all(
        isinstance(entry, str | int) and not isinstance(entry, bool) for entry in parsed
    )
    return parsed if is_plain_list else None


def _merge_rows_of_one_photo(rows: pl.DataFrame, source: str) -> pl.DataFrame:
    """Bring the rows of one photo together: their labels are all true of it."""
    home_columns = [name for name in rows.columns if name not in ("photo", "label", "classes")]
    first = rows.group_by("photo", maintain_order=True).agg(
        pl.col(home_columns).first(),
        *(
            pl.col(name).explode().drop_nulls().unique(maintain_order=True).alias(name)
            for name in ("label", "classes")
        ),
        several=pl.any_horizontal(pl.struct(name).n_unique() > 1 for name in home_columns),
    )
    ambiguous = first.filter("several")
    if ambiguous.height:
        photo = ambiguous["photo"][0]
        row = int((rows["photo"] == photo).arg_true()[1])
        raise TableError(
            f"{ambiguous.height:,} photo(s) are said to be of two homes",
            expected="one path, country, region and income for each photo",
            found=repr(photo),
            where=format_location(source, row + 1),
        )
    when_classes = pl.when(pl.col("classes").list.len() > 0).then("classes")
    return first.drop("several").with_columns(classes=when_classes)
