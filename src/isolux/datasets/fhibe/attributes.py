"""FHIBE's answers to rows of ``attributes``: of people, and of the photos they are in."""

from __future__ import annotations

import ast
import math
import re
from typing import Any

import polars as pl

from isolux.core.tables import ATTRIBUTES, check
from isolux.datasets._keypoints import KEYPOINT_SCHEMA
from isolux.datasets._tables import build_rows_of_one_attribute, left_join_in_order
from isolux.datasets.fhibe.value_lists import (
    AGE_BINS,
    FITZPATRICK,
    FREE_TEXT_ANSWERS,
    IMAGE_COLUMNS,
    KEYPOINTS,
    MULTIPLE_ANSWER_COLUMNS,
    NOT_LISTED,
    PERSON_COLUMNS,
    REGIONS,
    SKIN_COLORS,
    UNNUMBERED_COLUMNS,
)
from isolux.io.cell_parsing import as_numbers, fill_empty_lists
from isolux.io.refusals import refuse_cells

_LEADING_NUMBER = re.compile(r"^[0-9]+\.\s*")
_MAX_CELL_LENGTH = (
    200_000  # characters of a cell that is parsed; polygons have a bound of their own
)


def build_fhibe_attributes(rows: pl.DataFrame, people: pl.DataFrame, source: str) -> pl.DataFrame:
    """Make the table attributes of the wide frame."""
    ids = people["instance_id"]
    tables = [_build_age_rows(rows["age"], ids, source)]
    tables += [
        _build_answer_rows(_read_values_and_numbers(rows[name], source), ids, name, "instance")
        for name in PERSON_COLUMNS
        if name in rows.columns
    ]
    if "ancestry" in rows.columns:
        tables.append(
            _build_ancestry_region_rows(_read_values_and_numbers(rows["ancestry"], source), ids)
        )
    first = people["image_id"].is_first_distinct()
    photos, image_ids = rows.filter(first), people["image_id"].filter(first)
    tables += [
        _build_answer_rows(_read_values_and_numbers(photos[name], source), image_ids, name, "image")
        for name in IMAGE_COLUMNS
        if name in rows.columns
    ]
    return check(pl.concat(tables), ATTRIBUTES, source=source)


def _read_values_and_numbers(cells: pl.Series, source: str) -> pl.DataFrame:
    """Read one column: ``value`` (text or lists of it) and ``number``."""
    if cells.name in SKIN_COLORS:
        return _read_fitzpatrick_types(cells, source)
    if cells.name in MULTIPLE_ANSWER_COLUMNS:
        texts = parse_answer_lists(cells, source)
    elif cells.name == "location_country":
        texts = cells.str.strip_chars().str.to_titlecase()
    elif cells.name in UNNUMBERED_COLUMNS:
        texts = cells.str.strip_chars()
    else:
        texts = strip_answer_numbers(cells)
    return pl.DataFrame({"value": texts}).with_columns(number=pl.lit(None, dtype=pl.Float64))


def _read_fitzpatrick_types(cells: pl.Series, source: str) -> pl.DataFrame:
    """Name the six skin colours by Fitzpatrick type; ``number`` 1 is lightest, 6 darkest."""
    level = cells.str.extract(r"^\s*(\d+)\.").cast(pl.Int64, strict=False)
    is_valid = level.is_between(0, len(FITZPATRICK) - 1).fill_null(value=False)
    refuse_cells(
        cells.is_not_null() & ~is_valid,
        cells,
        "a skin colour is not one of FHIBE's six",
        "0. [102, 78, 65] to 5. [198, 180, 157]",
        source,
        max_length=80,
    )
    return pl.DataFrame({"level": level}).select(
        value=pl.col("level").replace_strict(
            dict(enumerate(FITZPATRICK)), return_dtype=pl.String, default=None
        ),
        number=(len(FITZPATRICK) - pl.col("level")).cast(pl.Float64),
    )


def _build_answer_rows(
    values: pl.DataFrame, ids: pl.Series, name: str, unit_kind: str
) -> pl.DataFrame:
    """Write a row for each answer; a person who gave none has one with a null."""
    table = values.with_columns(unit_id=ids)
    if isinstance(table.schema["value"], pl.List):
        lists = fill_empty_lists(table["value"].fill_null([]))
        table = table.with_columns(value=lists).explode("value")
    return build_rows_of_one_attribute(
        table["unit_id"], name, table["value"], unit_kind=unit_kind, number=table["number"]
    )


def _build_ancestry_region_rows(values: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    """Give the region of each ancestry: the one named, or that of the subregion named."""
    region = {sub: broad for broad, subs in REGIONS.items() for sub in subs}
    lists = values["value"].fill_null([])
    broad = lists.list.eval(pl.element().replace(region)).list.unique(maintain_order=True)
    return _build_answer_rows(values.with_columns(value=broad), ids, "ancestry_region", "instance")


def _build_age_rows(cells: pl.Series, ids: pl.Series, source: str) -> pl.DataFrame:
    """Write ``age`` in years, and ``age_group`` by the authors' bins."""
    years = as_numbers(cells, source=source, column="age")
    # FHIBE photographed adults only; no one has lived for 130 years.
    is_implausible = ~years.is_between(AGE_BINS[0][0], 130).fill_null(value=True)
    refuse_cells(is_implausible, cells, "an age is not that of an adult", "18 to 130 years", source)
    group = pl.lit(None, dtype=pl.String)
    for min_age, name in AGE_BINS:
        group = pl.when(pl.col("number") >= min_age).then(pl.lit(name)).otherwise(group)
    groups = years.to_frame("number").select(group=group)["group"]
    exact = build_rows_of_one_attribute(ids, "age", cells, number=years)
    return pl.concat([exact, build_rows_of_one_attribute(ids, "age_group", groups)])


def parse_python_literal(cell: str) -> Any:
    """Read a Python literal."""
    if len(cell) > _MAX_CELL_LENGTH:
        raise ValueError(f"{len(cell):,} characters, more than {_MAX_CELL_LENGTH:,}")
    try:
        return ast.literal_eval(cell)
    except (SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise ValueError("no Python literal") from error


def parse_answer_lists(cells: pl.Series, source: str) -> pl.Series:
    """Read cells of several answers: lists of text without their numbers; empty: an empty list."""
    distinct_cells = cells.unique().drop_nulls().to_list()
    answers_by_cell = {}
    for cell in distinct_cells:
        try:
            answer_list = _parse_text_list(cell)
        except ValueError as error:
            _refuse_unreadable_cell(cells, cell, "['11. Asia', '15. Southern Asia']", error, source)
            continue
        answers_by_cell[cell] = list(
            dict.fromkeys(_strip_leading_number(answer) for answer in answer_list)
        )
    table = pl.DataFrame(
        {"cell": list(answers_by_cell), "list": list(answers_by_cell.values())},
        schema={"cell": pl.String, "list": pl.List(pl.String)},
    )
    return left_join_in_order(cells.to_frame("cell"), table, "cell")["list"]


def _parse_text_list(cell: str) -> list[str]:
    parsed = parse_python_literal(cell) if cell.lstrip().startswith("[") else [cell]
    if not isinstance(parsed, list) or not all(isinstance(entry, str) for entry in parsed):
        raise ValueError("no list of text")
    return parsed


def strip_answer_numbers(cells: pl.Series) -> pl.Series:
    """Take the number from before each answer; free text counts as not listed."""
    distinct_cells = cells.unique().drop_nulls().to_list()
    words = {cell: _strip_leading_number(cell) for cell in distinct_cells}
    return cells.replace(words) if words else cells


def _strip_leading_number(answer: str) -> str:
    label = _LEADING_NUMBER.sub("", answer.strip())
    return NOT_LISTED if label.lower() in FREE_TEXT_ANSWERS else label


def parse_box_cells(cells: pl.Series, source: str, column_names: tuple[str, ...]) -> pl.DataFrame:
    """Read cells ``[x, y, w, h]`` in pixels; an empty one is null."""
    rows = []
    for cell in cells:
        numbers = _parse_four_numbers_or_none(cell)
        if numbers is None and cell is not None:
            _refuse_unreadable_cell(cells, cell, "[x, y, width, height] in pixels", None, source)
        rows.append(numbers or (None,) * 4)
    return pl.DataFrame(rows, schema=dict.fromkeys(column_names, pl.Float64), orient="row")


def _parse_four_numbers_or_none(cell: str | None) -> tuple[float, ...] | None:
    try:
        parsed = None if cell is None else parse_python_literal(cell)
    except ValueError:
        return None
    if not isinstance(parsed, list | tuple) or len(parsed) != 4:
        return None
    return tuple(map(float, parsed)) if all(map(_is_finite_number, parsed)) else None


def _is_finite_number(number: Any) -> bool:
    if isinstance(number, bool) or not isinstance(number, int | float):
        return False
    try:
        return math.isfinite(number)
    except OverflowError:
        return False


def parse_keypoint_cells(cells: pl.Series, source: str) -> pl.DataFrame:
    """Read cells ``{'0. Nose': [x, y, 1], …}`` into lists of 33; what is absent is not labelled."""
    rows: list[tuple[Any, ...]] = []
    names = list(KEYPOINTS)
    for cell in cells:
        if cell is None:
            rows.append((None, None, None, None))
            continue
        try:
            rows.append((*_parse_named_points(parse_python_literal(cell)), names))
        except ValueError as error:
            expected = "{'0. Nose': [x, y, 1], …}, of FHIBE's 33 keypoints"
            _refuse_unreadable_cell(cells, cell, expected, error, source)
            rows.append((None, None, None, None))
    return pl.DataFrame(rows, schema=KEYPOINT_SCHEMA, orient="row")


def _parse_named_points(
    point_by_name: Any,
) -> tuple[list[float | None], list[float | None], list[int]]:
    if not isinstance(point_by_name, dict):
        raise ValueError("no dictionary")  # noqa: TRY004  (a cell's fault, not a caller's)
    x: list[float | None] = [None] * len(KEYPOINTS)
    y, v = list(x), [0] * len(KEYPOINTS)
    for key, coordinates in point_by_name.items():
        number, _, name = str(key).partition(". ")
        index = int(number) if number.isdecimal() and len(number) < 3 else -1
        if not 0 <= index < len(KEYPOINTS) or KEYPOINTS[index] != name:
            raise ValueError(f"no keypoint {str(key)[:40]!r}")
        if not isinstance(coordinates, list | tuple) or len(coordinates) != 3:
            raise ValueError(f"{name} has no three numbers")
        if not all(map(_is_finite_number, coordinates)) or coordinates[2] not in (0, 1):
            raise ValueError(f"{name} is {str(coordinates)[:60]}")
        if coordinates[2]:
            x[index], y[index], v[index] = float(coordinates[0]), float(coordinates[1]), 2
    return x, y, v


def _refuse_unreadable_cell(
    cells: pl.Series, cell: str, expected: str, error: Exception | None, source: str
) -> None:
    problem = f"a cell of {cells.name!r} cannot be read" + (f": {error}" if error else "")
    is_wrong = cells == cell
    refuse_cells(is_wrong, cells, problem, expected, source, max_length=120)
