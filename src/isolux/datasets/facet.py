"""FACET: 49,551 people in 31,702 pictures, their occupations, and what annotators perceived.

Gustafson et al. (2023). Reads ``annotations.csv`` (one row a person) and, where they lie next to
it, ``coco_masks.json`` (masks of people, clothing and hair) and ``coco_boxes.json`` (image sizes).
Skin tone is ten columns of votes by three annotators; which of them stand is a group's rule
(``--votes``), not the loader's.
"""

from __future__ import annotations

from pathlib import Path

import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.errors import TableError, format_location
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, check
from isolux.datasets._boxes import check_box_columns
from isolux.datasets._coco.json import parse_coco_json
from isolux.datasets._columns import BOX_COLUMNS, PART_MASK_DTYPE
from isolux.datasets._files import Inputs, find_first_file_or_none, find_single_file
from isolux.datasets._relative_paths import check_paths_stay_inside
from isolux.datasets._tables import (
    build_clustered_dataset,
    build_rows_of_one_attribute,
    left_join_in_order,
)
from isolux.io.cell_parsing import as_numbers, first_true_row
from isolux.io.ids import read_ids
from isolux.io.refusals import refuse_cells, require_columns

INFO = DatasetInfo(
    title="FACET",
    summary="49,551 people of 52 occupations and activities; boxes, masks, perceived attributes.",
    references=(
        citations.FACET.with_location("section 4, appendix A", url="https://facet.metademolab.com"),
    ),
    licence="FACET's own licence: evaluation only",
    training_allowed=False,
    training_terms="Using any of the annotations for training is strictly prohibited.",
    withdrawal="as the publisher's terms say; no list of withdrawals comes with the data",
    label_source="perceived",
    terms=(
        ("gender_presentation", "perceived gender presentation"),
        ("skin_tone", "perceived skin tone (Monk scale)"),
        ("age_presentation", "perceived age presentation"),
        ("hairtype", "perceived hair type"),
        ("hair_color", "perceived hair colour"),
        ("has_eyeware", "perceived eyewear"),
        ("class", "annotated occupation or activity"),
    ),
    assumptions=(
        "images are independent of one another, people in one image are not",
        "the groups come from annotators' judgements, not from what people say about themselves",
        "not everyone in an image is annotated",
    ),
)
COLUMN_PREFIXES = {
    "gender_presentation": ("gender_presentation_",),
    "skin_tone": ("skin_tone_",),
    "age_presentation": ("age_presentation_",),
    "hair_color": ("hair_color_",),
    "hairtype": ("hairtype_", "hair_type_"),  # the data's spelling, the paper's card
    "visible": ("visible_",),
    "lighting": ("lighting_",),
}
"""Attribute to the beginnings of its columns; what follows is the value, ``na`` is unknown."""
FLAG_COLUMNS = {
    "has_facial_hair": ("has_facial_hair",),
    "has_tattoo": ("has_tattoo",),
    "has_cap": ("has_cap",),
    "has_mask": ("has_mask",),
    "has_headscarf": ("has_headscarf",),
    "has_eyeware": ("has_eyeware", "has_eyewear"),
}
"""Attribute that is there or not to the spellings of its column."""
_N_ANNOTATORS = 3  # FACET asked three annotators about each person


def load(path: str | Path, *, masks: bool = True) -> Dataset:
    r"""Load FACET.

    ``cluster`` of ``isolux.load`` may be ``image`` (where not given), ``person``, or a column.

    Parameters
    ----------
    path : str or Path
        The folder with ``annotations.csv`` (itself or in ``annotations/``), or that file.
    masks : bool
        Read ``coco_masks.json`` if it is there.

    Returns
    -------
    Dataset
        ``instances``: a person, their box in pixels, ``classes`` (``class1``, and ``class2`` if
        there is one), the person's mask, ``part_masks`` (clothing, hair). ``attributes``:
        ``skin_tone`` (1 to 10, with ``votes``), ``gender_presentation``, ``age_presentation``,
        ``hair_color``, ``hairtype``, ``visible``, ``lighting``, ``has_…``, ``class``; a value
        that annotators could not tell (``…_na``) is null. Both spellings of ``hairtype`` and
        ``has_eyeware`` are read, and named so. ``images.coco_image_id`` is the number that the
        COCO files give an image, by which results may name it; ``images.uri`` is found in
        ``imgs_1``, ``imgs_2``, … where they lie next to the annotations.

    Raises
    ------
    FileError, TableError, UnknownNameError
        A file that is missing or cut off; a cell that is not a box or not a count of votes, with
        its row and column.

    Examples
    --------
    >>> import tempfile
    >>> row = '1,sa_1.jpg,nurse,,"{""x"": 4, ""y"": 5, ""width"": 20, ""height"": 40}",0,2,3'
    >>> columns = "person_id,filename,class1,class2,bounding_box,skin_tone_1,skin_tone_2"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "annotations.csv").write_text(f"{columns},skin_tone_3\n{row}\n")
    ...     load(folder).values_of("skin_tone").select("value", "votes").rows()
    [('2', 2.0), ('3', 3.0)]
    """
    names = ("annotations.csv", "annotations/annotations.csv")
    file = find_single_file(path, names, "FACET annotations")
    inputs, source = Inputs(), str(file)
    table = inputs.read_table(file, format="csv")
    require_columns(table, ("person_id", "filename", "class1", "bounding_box"), source)
    people = _build_facet_people(table, source)
    attributes, notes = build_person_attributes(table, people, source)
    images = people.select("image_id", uri="image_id").unique(maintain_order=True)
    sizes = None
    masks_file = find_first_file_or_none(file.parent, ("coco_masks.json",)) if masks else None
    if masks_file is not None:
        coco_tables = parse_coco_json(inputs.read(masks_file), str(masks_file))
        people, mask_notes = _join_person_and_part_masks(
            people, coco_tables.annotations, str(masks_file)
        )
        sizes, notes = coco_tables.images, [*notes, *mask_notes]
    boxes = find_first_file_or_none(file.parent, ("coco_boxes.json",))
    if sizes is None and boxes is not None:
        sizes = parse_coco_json(inputs.read(boxes), str(boxes), with_masks=False).images
    if sizes is not None:
        image_sizes = sizes.select(
            "width", "height", image_id="uri", coco_image_id=pl.col("image_id").cast(pl.String)
        )
        images = left_join_in_order(images, image_sizes.unique("image_id"), "image_id")
    return build_clustered_dataset(
        "facet",
        INFO,
        instances=people,
        attributes=attributes,
        images=_add_existing_image_paths(images, file.parent),
        inputs=inputs,
        source=source,
        notes=notes,
        cluster="image",
        clusters={"image": "image_id", "person": None},
    )


def _build_facet_people(table: pl.DataFrame, source: str) -> pl.DataFrame:
    images = read_ids(table, "filename", source).alias("image_id")
    check_paths_stay_inside(images, source, "filename")
    first = read_ids(table, "class1", source).alias("class1")
    second = table["class2"] if "class2" in table.columns else pl.Series([None] * table.height)
    lists = pl.DataFrame({"class1": first, "class2": second.cast(pl.String)}).select(
        classes=pl.concat_list(
            "class1",
            pl.when(~pl.col("class2").str.to_lowercase().is_in(["none", "nan", ""])).then(
                pl.col("class2")
            ),
        )
        .list.drop_nulls()
        .list.unique(maintain_order=True)
    )
    people = pl.DataFrame([read_ids(table, "person_id", source), images, lists["classes"]])
    return people.hstack(_parse_json_boxes(table["bounding_box"], source))


def _parse_json_boxes(cells: pl.Series, source: str) -> pl.DataFrame:
    """Read the cells ``{"x": …, "y": …, "width": …, "height": …}``."""
    dtype = pl.Struct(dict.fromkeys(("x", "y", "width", "height"), pl.Float64))
    try:
        boxes = cells.str.json_decode(dtype)
    except pl.exceptions.PolarsError as error:
        # Each cell alone may be well and their nesting too deep together.
        row = next((i for i, cell in enumerate(cells) if not _is_json_box(cell, dtype)), 0)
        raise _build_invalid_box_error(cells, row, source) from error
    frame = boxes.struct.unnest()
    frame.columns = list(BOX_COLUMNS)
    absent = frame.select(absent=pl.any_horizontal(pl.all().is_null()))["absent"]
    if absent.any():
        raise _build_invalid_box_error(cells, first_true_row(absent), source)
    return check_box_columns(frame, source, field="bounding_box")


def _is_json_box(cell: str | None, dtype: pl.Struct) -> bool:
    try:
        pl.Series([cell], dtype=pl.String).str.json_decode(dtype)
    except pl.exceptions.PolarsError:
        return False
    return True


def _build_invalid_box_error(cells: pl.Series, row: int, source: str) -> TableError:
    return TableError(
        "a cell is not a box",
        expected='{"x": 10.0, "y": 20.0, "width": 30.0, "height": 80.0}, in pixels',
        found=repr(cells[row])[:80],
        where=format_location(source, row + 1, "bounding_box"),
    )


def _join_person_and_part_masks(
    people: pl.DataFrame, annotations: pl.DataFrame, source: str
) -> tuple[pl.DataFrame, list[str]]:
    """Add the mask of each person and of their parts, and say which masks are left out."""
    rows = annotations.rename({"person": "instance_id"})
    problem, owner = "{n} mask(s) do not say whose they are", rows["instance_id"]
    expected = "person_id or facet_person_id in every annotation"
    refuse_cells(owner.is_null(), owner, problem, expected, source, column="annotations.person_id")
    notes = []
    if n_unmatched := rows.join(people, on="instance_id", how="anti").height:
        notes.append(f"{n_unmatched:,} mask(s) are of people whom the table does not have.")
    person_masks = rows.filter(category="person")
    first = person_masks.unique("instance_id", keep="first", maintain_order=True)
    if n := person_masks.height - first.height:
        notes.append(f"{n:,} further mask(s) of people who have one already are left out.")
    masks = first.select("instance_id", pl.col("^mask_.*$"))
    people = left_join_in_order(people, masks, "instance_id")
    return left_join_in_order(people, _collect_part_masks(rows), "instance_id"), notes


def _collect_part_masks(rows: pl.DataFrame) -> pl.DataFrame:
    """List the masks of each person's clothing and hair."""
    part_rows = rows.filter(pl.col("category") != "person", pl.col("mask_counts").is_not_null())
    mask = pl.struct(
        part="category", counts="mask_counts", height="mask_height", width="mask_width"
    ).cast(PART_MASK_DTYPE)
    return part_rows.group_by("instance_id", maintain_order=True).agg(part_masks=mask)


def _add_existing_image_paths(images: pl.DataFrame, annotations: Path) -> pl.DataFrame:
    """Give images the path below FACET's folder as ``uri``, where their picture is found."""
    for root in (annotations, annotations.parent):
        folders = sorted(folder for folder in root.glob("imgs_*") if folder.is_dir())
        if folders:
            break
    else:
        return images
    file_paths = [
        (file.name, f"{folder.name}/{file.name}") for folder in folders for file in folder.iterdir()
    ]
    path_table = pl.DataFrame(
        file_paths, schema={"uri": pl.String, "_path": pl.String}, orient="row"
    )
    path_table = path_table.unique("uri", keep="first", maintain_order=True)
    with_paths = left_join_in_order(images, path_table, "uri")
    return with_paths.with_columns(uri=pl.coalesce("_path", "uri")).drop("_path")


def build_person_attributes(
    table: pl.DataFrame, people: pl.DataFrame, source: str
) -> tuple[pl.DataFrame, list[str]]:
    """Read the marks and votes of people, with what is said of empty cells."""
    ids = people["instance_id"]
    empty: list[str] = []
    attribute_tables = [
        _build_marked_value_rows(column, attribute, value_name, table, ids, empty, source)
        for attribute, value_name, column in _list_mark_columns(table.columns)
    ]
    for attribute, spellings in FLAG_COLUMNS.items():
        for column in spellings:
            if column in table.columns:
                is_present = _read_vote_counts(column, 1, table, empty, source) > 0
                words = is_present.replace_strict(
                    {True: "yes", False: "no"}, return_dtype=pl.String
                )
                attribute_tables.append(build_rows_of_one_attribute(ids, attribute, words))
    classes = people.select("instance_id", "classes").explode("classes")
    attribute_tables.append(
        build_rows_of_one_attribute(classes["instance_id"], "class", classes["classes"])
    )
    notes = [f"Empty cells of {', '.join(empty)} are read as 0."] if empty else []
    return check(pl.concat(attribute_tables), ATTRIBUTES, source=source), notes


def _list_mark_columns(column_names: list[str]) -> list[tuple[str, str, str]]:
    """List attribute, value and column of each column of marks."""
    return [
        (attribute, name.removeprefix(beginning), name)
        for attribute, beginnings in COLUMN_PREFIXES.items()
        for beginning in beginnings
        for name in column_names
        if name.startswith(beginning)
    ]


def _read_vote_counts(
    column: str, max_count: int, table: pl.DataFrame, empty: list[str], source: str
) -> pl.Series:
    counts = table[column].cast(pl.Float64, strict=False)
    if counts.null_count():  # an odd cell: say what is wrong with it, or read it with its blanks
        counts = as_numbers(table[column], source=source, column=column)
    if counts.null_count():
        empty.append(repr(column))
        counts = counts.fill_null(0.0)
    is_invalid = ~((counts >= 0) & (counts <= max_count) & (counts == counts.round())).fill_null(
        value=False
    )
    problem = "{n} cell(s) are not a count of votes"
    expected = f"a whole number from 0 to {max_count}"
    refuse_cells(is_invalid, table[column], problem, expected, source)
    return counts


def _build_marked_value_rows(
    column: str,
    attribute: str,
    value_name: str,
    table: pl.DataFrame,
    ids: pl.Series,
    empty: list[str],
    source: str,
) -> pl.DataFrame:
    """List the people for whom this value is marked."""
    has_votes = attribute == "skin_tone"
    counts = _read_vote_counts(column, _N_ANNOTATORS if has_votes else 1, table, empty, source)
    known_value = None if value_name == "na" else value_name
    number = float(value_name) if has_votes and value_name.isdecimal() else None
    rows = pl.DataFrame({"unit_id": ids, "votes": counts}).filter(pl.col("votes") > 0)
    return ATTRIBUTES.conform(
        rows.with_columns(
            unit_kind=pl.lit("instance"),
            attribute=pl.lit(attribute),
            value=pl.lit(known_value, dtype=pl.String),
            number=pl.lit(number, dtype=pl.Float64),
            votes=pl.col("votes") if has_votes else pl.lit(None, dtype=pl.Float64),
        )
    )
