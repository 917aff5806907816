"""MIAP's files as columns: the published CSV, and the list that Fairness Indicators' code reads.

In the CSV sides are parts of the image, in the order XMin, XMax, YMin, YMax, and are taken by their
names. In the JSON they are pixels, x1, y1, x2, y2, written as text.
"""

from __future__ import annotations

import msgspec
import polars as pl

from isolux.datasets._json import decode
from isolux.datasets._refusals import refuse_cells, require_columns
from isolux.io.cells import as_numbers, as_text, row_of
from isolux.io.ids import ids_of, reduced
from isolux.vocabulary.errors import TableError, place

GENDERS = ("Predominantly Feminine", "Predominantly Masculine", "Unknown")
AGES = ("Young", "Middle", "Older", "Unknown")
SIDES = ("XMin", "XMax", "YMin", "YMax")
FLAGS = {
    "is_occluded": ("IsOccluded",),
    "is_truncated": ("IsTruncated",),
    "is_group_of": ("IsGroupOf",),
    "is_depiction_of": ("IsDepictionOf",),
    "is_inside_of": ("IsInsideOf", "IsInside"),
}
_FLAG_WORDS = {"1": True, "0": False, "-1": None}  # Open Images writes -1 for "not known"
_N = " ({n} in all)"
_PERSON = "/m/01g317"
_SLACK = 1e-6  # of the image: sides are written with six decimals


class _Row(msgspec.Struct, gc=False):
    path: str
    bbox: tuple[float | str, float | str, float | str, float | str]
    GenderPresentation: str | None = None
    AgePresentation: str | None = None
    LabelName: str | None = _PERSON
    IsOccluded: int | str | None = None
    IsTruncated: int | str | None = None
    IsGroupOf: int | str | None = None
    IsDepictionOf: int | str | None = None
    IsInsideOf: int | str | None = None


def read_rows(table: pl.DataFrame, where: str) -> pl.DataFrame:
    """Read the rows of the CSV."""
    require_columns(table, ("ImageID", *SIDES, "GenderPresentation", "AgePresentation"), where)
    sides = [as_numbers(table[name], where=where, column=name) for name in SIDES]
    for side in sides:
        bad = ~side.is_between(-_SLACK, 1 + _SLACK).fill_null(value=False)
        refuse_cells(bad, table[side.name], "a side is outside the image" + _N, "0 to 1", where)
    box = _boxes(sides, where)
    return pl.DataFrame([ids_of(table, "ImageID", where).alias("image_id"), *box]).hstack(
        _described(table, where)
    )


def read_json(data: bytes, where: str) -> pl.DataFrame:
    """Read Fairness Indicators' list: as ``read_rows``, but sides are pixels."""
    rows = decode(data, list[_Row], where)
    names = [name for name in _Row.__struct_fields__ if name not in ("path", "bbox")]
    table = pl.DataFrame(
        {
            "path": pl.Series([row.path for row in rows], dtype=pl.String),
            **{
                f"bbox[{i}]": pl.Series([str(row.bbox[i]) for row in rows], dtype=pl.String)
                for i in range(4)
            },
            **{
                name: pl.Series(
                    [None if (v := getattr(row, name)) is None else str(v) for row in rows],
                    dtype=pl.String,
                )
                for name in names
            },
        }
    )
    order = ("bbox[0]", "bbox[2]", "bbox[1]", "bbox[3]")
    sides = [as_numbers(table[name], where=where, column=name) for name in order]
    for side in sides:
        finite = side.is_finite().fill_null(value=False)
        problem = "a side is not a number of pixels" + _N
        refuse_cells(~finite, table[side.name], problem, "such as 31.5", where)
    ids = reduced(ids_of(table, "path", where), "stem").alias("image_id")
    return pl.DataFrame([ids, *_boxes(sides, where)]).hstack(_described(table, where))


def _boxes(sides: list[pl.Series], where: str) -> list[pl.Series]:
    left, right, top, bottom = sides
    for low, high in ((left, right), (top, bottom)):
        swapped = high < low
        if swapped.any():
            row = row_of(swapped)
            raise TableError(
                f"a box's sides are swapped ({swapped.sum():,} in all)",
                expected=f"{low.name} up to {high.name}; the columns of the CSV are in the order"
                f" {', '.join(SIDES)}",
                found=f"{low[row]:g}, {high[row]:g}",
                where=place(where, row + 1, high.name),
            )
    names = ("left", "right", "top", "bottom")
    return [side.alias(name) for side, name in zip(sides, names, strict=True)]


def _described(table: pl.DataFrame, where: str) -> pl.DataFrame:
    if "LabelName" in table.columns:
        label = as_text(table["LabelName"])
        refuse_cells(label != _PERSON, label, "a box is of no person" + _N, _PERSON, where)
    found = []
    for name, columns in FLAGS.items():
        column = next((c for c in columns if c in table.columns), None)
        cells = (
            pl.Series([None] * table.height, dtype=pl.String)
            if column is None
            else as_text(table[column])
        )
        strange = ~cells.is_in(list(_FLAG_WORDS)).fill_null(value=True)
        problem = "a flag is neither set nor unset" + _N
        refuse_cells(strange, cells, problem, "1, 0 or -1", where)
        found.append(cells.replace_strict(_FLAG_WORDS, return_dtype=pl.Boolean).alias(name))
    for name, column, words in (
        ("gender_presentation", "GenderPresentation", GENDERS),
        ("age_presentation", "AgePresentation", AGES),
    ):
        cells = as_text(table[column])
        strange = ~cells.is_in(words).fill_null(value=True)
        problem = "a word that MIAP does not have" + _N
        refuse_cells(strange, cells, problem, ", ".join(words), where)
        found.append(cells.alias(name))
    return pl.DataFrame(found)
