"""COCO's people of 2014 with perceived skin colour and gender: the captioning-bias annotations.

Zhao, Wang & Russakovsky (2021) had 28,315 people in 15,762 images of COCO's validation set of 2014
judged by three annotators each. Two tables on request: ``images_val2014.csv`` (a row an image) and
``instances_2014all.csv`` (a row a person). What is read of the first was seen in the authors' code;
the columns of the second are not public, so whatever stands in it becomes an attribute of its name.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.errors import JoinError
from isolux.core.info import DatasetInfo, Reference
from isolux.core.tables import ATTRIBUTES, check
from isolux.datasets._coco.json import parse_coco_json, select_coco_instance_columns
from isolux.datasets._files import (
    Inputs,
    build_recursive_patterns,
    find_first_file_or_none,
    find_single_file,
)
from isolux.datasets._refusals import check_literal_settings
from isolux.datasets._tables import build_clustered_dataset
from isolux.io.cell_parsing import as_text
from isolux.io.refusals import refuse_cells, require_columns

_PEOPLE_FILES = ("instances_2014all.csv", "instances_val2014.csv")
_COCO_FILES = (
    "instances_val2014.json",
    "annotations/instances_val2014.json",
    "**/instances_val2014.json",
)
_ID_NAMES = ("id", "ann_id", "annotation_id", "instance_id", "anno_id")
_INDEX_COLUMNS = ("", "image_id", "img_id", "imgId", "Unnamed: 0", "index")

INFO = DatasetInfo(
    title="COCO with perceived skin colour and gender",
    summary="28,315 people in 15,762 images of COCO's validation set of 2014, as annotators"
    " perceived them.",
    references=(
        Reference(
            key="coco-caption-bias",
            citation="Zhao, D., Wang, A., & Russakovsky, O. (2021). Understanding and evaluating"
            " racial biases in image captioning. In Proceedings of the IEEE/CVF International"
            " Conference on Computer Vision (ICCV) (pp. 14830–14840).",
            location="section 3",
            url="https://github.com/princetonvisualai/imagecaptioning-bias",
        ),
        citations.COCO,
    ),
    licence="annotations on request, by the terms of the authors' form; COCO's annotations CC BY"
    " 4.0, images under their own licences on Flickr",
    training_allowed=None,
    withdrawal="no way for the people shown to withdraw is published",
    label_source="perceived",
    terms=(
        ("bb_skin", "perceived skin colour of the largest person in the image"),
        ("bb_gender", "perceived gender expression of the largest person in the image"),
        ("skin", "perceived skin colour"),
        ("gender", "perceived gender expression"),
        ("image_skin", "perceived skin colours of the people in the image"),
    ),
    assumptions=(
        "images are independent of one another, people in one image are not",
        "the groups come from annotators' judgements, not from what people say about themselves",
        "people whose boxes were too small to judge have no label",
    ),
)
_UNKNOWN = ("unsure", "nan", "none", "null", "unknown")
_LIST_ITEM = r"[^\[\](){},'\"]+"


def load(
    path: str | Path,
    *,
    coco: str | Path | None = None,
    people: Literal["labelled", "all"] = "labelled",
) -> Dataset:
    r"""Load the annotations, with COCO's boxes where they are at hand.

    ``cluster`` of ``isolux.load`` may be ``image`` (where not given), ``row``, or an attribute.

    Parameters
    ----------
    path : str or Path
        The folder with ``images_val2014.csv`` and perhaps ``instances_2014all.csv``; or the first.
    coco : str or Path, optional
        COCO's ``instances_val2014.json``; not given: looked for below the folder. Without it each
        image is one person, its largest.
    people : {"labelled", "all"}
        Leave out those of labelled images who have no row in the people's table; without that
        table, all but the largest.

    Returns
    -------
    Dataset
        ``instances``: COCO's annotations of people, box in pixels; crowds are left out.
        ``attributes``: of an image's largest person ``bb_skin``, ``bb_gender`` (a
        number); of people every column of their table, with ``votes`` where a cell lists several
        answers; of images ``image_skin`` (``votes``: how many of its people) and ``split``.
        ``Unsure`` is null.

    Raises
    ------
    FileError
        No such table, or none of COCO's where one was named.
    TableError, UnknownNameError
        A table without ids, an id that is not a whole number or occurs twice, with its row.
    JoinError
        Not one id of a table is COCO's.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "images_val2014.csv"
    ...     head = "id,skin,ratio,bb_skin,bb_gender,split"
    ...     row = "42,\"['Light', 'Dark']\",\"[0.2, 0.1]\",Light,Male,val"
    ...     _ = file.write_text(f"{head}\n{row}\n")
    ...     dataset = load(folder)
    >>> dataset.values_of("bb_skin").select("unit_kind", "unit_id", "value").row(0)
    ('instance', '42', 'Light')
    """
    check_literal_settings(load, people=people)
    file = find_single_file(
        path,
        build_recursive_patterns("images_val2014.csv"),
        "captioning-bias annotations of images",
    )
    inputs = Inputs()
    labelled = add_normalised_coco_id(inputs.read_table(file, format="csv"), "id", str(file))
    notes: list[str] = []
    coco_file = _find_coco_file_or_none(file.parent, coco)
    if coco_file is None:
        notes.append("COCO's own annotations are not at hand: an image is one person, its largest.")
        person_rows = labelled.select(instance_id="key", image_id="key", classes=pl.lit(["person"]))
        images = labelled.select(image_id="key", uri=_build_image_uri_expression())
    else:
        person_rows, images = _read_coco_people_of_labelled_images(
            coco_file, labelled, inputs, notes
        )
    largest = _select_largest_person_of_image(person_rows)
    people_table = (
        _read_people_table_or_none(file.parent, inputs, notes) if coco_file is not None else None
    )
    if people_table is not None:
        people_table = _select_people_in_coco(people_table, person_rows, notes)
    labelled_ids = largest["instance_id"] if people_table is None else people_table["key"]
    if people == "labelled":
        person_rows = person_rows.filter(pl.col("instance_id").is_in(labelled_ids.implode()))
    attributes = pl.concat(
        [
            *_label_largest_person(labelled, largest, person_rows),
            *([] if people_table is None else _build_person_label_rows(people_table)),
            *_build_image_label_rows(labelled, images),
        ]
    )
    return build_clustered_dataset(
        "coco_caption_bias",
        INFO,
        instances=person_rows,
        attributes=check(attributes, ATTRIBUTES, source=str(file)),
        images=images,
        inputs=inputs,
        source=str(coco_file or file),
        notes=notes,
        cluster="image",
        clusters={"image": "image_id", "row": None, "person": None},
    )


def _build_image_uri_expression() -> pl.Expr:
    return pl.format("COCO_val2014_{}.jpg", pl.col("key").str.zfill(12))


def _find_coco_file_or_none(folder: Path, requested_path: str | Path | None) -> Path | None:
    if requested_path is not None:
        return find_single_file(requested_path, _COCO_FILES, "COCO annotations of 2014")
    return find_first_file_or_none(folder, _COCO_FILES)


def _read_coco_people_of_labelled_images(
    file: Path, labelled: pl.DataFrame, inputs: Inputs, notes: list[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Read the people of the images that are labelled, and these images."""
    source = str(file)
    tables = parse_coco_json(inputs.read(file), source, with_masks=False)
    keys = labelled["key"].implode()
    images = tables.images.filter(pl.col("image_id").is_in(keys))
    n_missing = labelled.height - images.height
    if labelled.height and not images.height:
        raise JoinError(
            "not one labelled image is COCO's",
            expected="ids such as " + ", ".join(tables.images["image_id"].head(3)),
            found=", ".join(labelled["key"].head(3)),
            where=source,
        )
    if n_missing:
        notes.append(f"{n_missing:,} labelled image(s) are not in {file.name}; they are left out.")
    people = tables.annotations.filter(
        pl.col("image_id").is_in(keys), ~pl.col("is_crowd"), category="person"
    )
    return select_coco_instance_columns(people, tables, source), images


def _select_largest_person_of_image(people: pl.DataFrame) -> pl.DataFrame:
    """Choose the largest person of each image, by area as the authors do, the first of equals."""
    if "area" not in people.columns:
        return people
    ranked = people.sort("area", descending=True, nulls_last=True, maintain_order=True)
    return ranked.unique("image_id", keep="first", maintain_order=True)


def _read_people_table_or_none(
    folder: Path, inputs: Inputs, notes: list[str]
) -> pl.DataFrame | None:
    file = find_first_file_or_none(folder, build_recursive_patterns(*_PEOPLE_FILES))
    if file is None:
        notes.append(
            f"{_PEOPLE_FILES[0]} is not at hand: only each image's largest person has labels."
        )
        return None
    table = inputs.read_table(file, format="csv")
    id_column = next((name for name in _ID_NAMES if name in table.columns), _ID_NAMES[0])
    return add_normalised_coco_id(table, id_column, str(file)).drop(id_column)


def _select_people_in_coco(
    people_table: pl.DataFrame, people: pl.DataFrame, notes: list[str]
) -> pl.DataFrame:
    """Keep rows of people whom COCO has; count the others."""
    is_in_coco = people_table["key"].is_in(people["instance_id"].implode())
    if people_table.height and not is_in_coco.any():
        raise JoinError(
            "not one labelled person is COCO's",
            expected="ids such as " + ", ".join(people["instance_id"].head(3)),
            found=", ".join(people_table["key"].head(3)),
            where=_PEOPLE_FILES[0],
            hint=f"call the column of COCO's annotation ids {_ID_NAMES[0]!r}; there are "
            + ", ".join(c for c in people_table.columns if c != "key"),
        )
    n_missing = int((~is_in_coco).sum())
    if n_missing:
        notes.append(f"{n_missing:,} labelled people are not among COCO's people of these images.")
    return people_table.filter(is_in_coco)


def _label_largest_person(
    labelled: pl.DataFrame, largest: pl.DataFrame, person_rows: pl.DataFrame
) -> list[pl.DataFrame]:
    """Assign the image's label to its largest person, if that person is kept."""
    labelled_people = largest.filter(
        pl.col("instance_id").is_in(person_rows["instance_id"].implode())
    )
    rows = labelled.join(
        labelled_people.select("instance_id", key="image_id"),
        on="key",
        how="inner",
        maintain_order="left",
    )
    return [
        build_distinct_label_rows(rows["instance_id"], rows[name], name, "instance")
        for name in ("bb_skin", "bb_gender")
        if name in rows.columns
    ]


def _build_image_label_rows(labelled: pl.DataFrame, images: pl.DataFrame) -> list[pl.DataFrame]:
    rows = labelled.filter(pl.col("key").is_in(images["image_id"].implode()))
    attribute_names = (("skin", "image_skin"), ("split", "split"))
    return [
        build_distinct_label_rows(rows["key"], rows[n], attribute, "image")
        for n, attribute in attribute_names
        if n in rows.columns
    ]


def _build_person_label_rows(people_table: pl.DataFrame) -> list[pl.DataFrame]:
    names = [name for name in people_table.columns if name != "key" and name not in _INDEX_COLUMNS]
    return [
        build_distinct_label_rows(people_table["key"], people_table[name], name, "instance")
        for name in names
    ]


def add_normalised_coco_id(table: pl.DataFrame, column: str, source: str) -> pl.DataFrame:
    """Add ``key``, the id as COCO writes it: a whole number without leading zeros."""
    require_columns(table, (column,), source)
    digits = as_text(table[column]).str.extract(r"^(?:.*_)?([0-9]{1,18})(?:\.0|\.jpg)?$", 1)
    keys = digits.cast(pl.Int64).cast(pl.String).alias("key")
    for bad, problem in (
        (keys.is_null(), "an id is not a whole number"),
        (~keys.is_first_distinct(), "an id occurs twice"),
    ):
        refuse_cells(bad, table[column], problem, "COCO's number, such as 42, once", source)
    return table.drop("key", strict=False).hstack([keys])


def split_list_cells(cells: pl.Series) -> pl.Series:
    """List the items of cells such as ``['Light', 'Dark']``; a plain cell is one item."""
    raw_items = as_text(cells).str.extract_all(_LIST_ITEM)
    return raw_items.list.eval(pl.element().str.strip_chars()).list.eval(
        pl.element().filter(pl.element() != "")
    )


def build_distinct_label_rows(
    ids: pl.Series, cells: pl.Series, attribute: str, unit_kind: str
) -> pl.DataFrame:
    """Make a row of each different value; several in a cell count as votes."""
    items = split_list_cells(cells)
    table = pl.DataFrame([ids.alias("unit_id"), items.alias("value")])
    has_lists = (items.list.len() > 1).fill_null(value=False).any()
    known_values = pl.col("value").list.eval(
        pl.when(~pl.element().str.to_lowercase().is_in(_UNKNOWN)).then(pl.element())
    )
    null_list = pl.lit([None], dtype=pl.List(pl.String))
    nonempty = (
        pl.when(pl.col("value").list.len().fill_null(0) > 0).then(known_values).otherwise(null_list)
    )
    long = table.with_columns(value=nonempty).explode("value")
    vote_rows = long.group_by(long.columns, maintain_order=True).agg(
        votes=pl.len().cast(pl.Float64)
    )
    if not has_lists:
        vote_rows = vote_rows.with_columns(votes=pl.lit(None, dtype=pl.Float64))
    return ATTRIBUTES.conform(
        vote_rows.with_columns(unit_kind=pl.lit(unit_kind), attribute=pl.lit(attribute))
    )
