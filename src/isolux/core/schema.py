"""What a table is: columns with a type and a meaning; and the check that a frame is one.

``isolux.core.tables`` names the tables themselves, in these words. A null is always "not
known" or "not scored", never zero; a reason stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

import polars as pl

from isolux.core.errors import TableError, UnknownNameError, format_location
from isolux.core.inputs import to_polars
from isolux.core.unit_index import has_no_duplicates

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

__all__ = [
    "CAUTION_STATUSES",
    "COMPARABLE_STATUSES",
    "Column",
    "Status",
    "Table",
    "check",
    "to_polars",
]


class Status(StrEnum):
    """Whether a number may be read as it stands, by cause (docs/methods/statuses.md)."""

    OK = "ok"
    # Read with caution: there is a value; its interval or test may be wrong, or is missing.
    FEW_CLUSTERS = "few clusters"
    DOMINANT_CLUSTERS = "dominant clusters"
    RARE_OUTCOME = "rare outcome"
    NO_VARIATION = "no variation"
    SKEWED_VALUES = "skewed values"
    TIED_VALUES = "tied values"
    FEW_IMPOSTORS = "few impostors"
    NOISE_BIAS = "noise bias"
    NO_RATIO = "no ratio"
    LOW_OVERLAP = "low overlap"
    MEDIATOR = "mediator"
    DOUBTFUL_CORRECTION = "doubtful correction"
    # Compared with nothing (decision 10).
    INSUFFICIENT_UNITS = "insufficient units"
    INSUFFICIENT_CLUSTERS = "insufficient clusters"
    UNDEFINED = "undefined"
    NOT_SCORED = "not scored"


_INCOMPARABLE_STATUSES = (
    Status.INSUFFICIENT_UNITS,
    Status.INSUFFICIENT_CLUSTERS,
    Status.UNDEFINED,
    Status.NOT_SCORED,
)
COMPARABLE_STATUSES = tuple(s.value for s in Status if s not in _INCOMPARABLE_STATUSES)
CAUTION_STATUSES = COMPARABLE_STATUSES[1:]
"""Statuses of a value that is compared, but read with caution: all but ok."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its type, what it means, and whether it may be absent or null."""

    name: str
    dtype: PolarsDataType
    meaning: str
    optional: bool = False
    nullable: bool = False
    finite: bool = True
    allowed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table: what one row is, its columns, and the columns that together must be unique.

    ``open`` tables (images, instances, evidence) may carry more columns than are named.
    """

    name: str
    one_row: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    open: bool = False

    @property
    def schema(self) -> dict[str, PolarsDataType]:
        """Column name to polars type, in order."""
        return {c.name: c.dtype for c in self.columns}

    def empty(self) -> pl.DataFrame:
        """Return a frame with these columns and no rows."""
        return pl.DataFrame(schema=self.schema)

    def conform(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Add absent columns as nulls, cast, and put the columns in order (extra ones last)."""
        column_expressions = [
            pl.col(c.name).cast(c.dtype)
            if c.name in frame.columns
            else pl.lit(None, dtype=c.dtype).alias(c.name)
            for c in self.columns
        ]
        extra = [n for n in frame.columns if n not in self.schema] if self.open else []
        return frame.select(*column_expressions, *extra)

    def stack(self, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """Put frames of the same columns under one another, as this table."""
        nonempty_frames = [frame for frame in frames if frame.height] or frames[:1]
        first = nonempty_frames[0].select(pl.all().first())
        constant_tests = [
            pl.col(n).eq_missing(pl.lit(first[n]).first()).all() for n in first.columns
        ]
        constant_flags = (
            pl.concat([frame.select(constant_tests) for frame in nonempty_frames])
            .select(pl.all().all())
            .row(0)
        )
        varying_columns = [
            n
            for n, is_constant in zip(first.columns, constant_flags, strict=True)
            if not is_constant
        ]
        if not varying_columns:
            return self.conform(pl.concat(nonempty_frames))
        rows = pl.concat([frame.select(varying_columns) for frame in nonempty_frames], rechunk=True)
        return self.conform(
            rows.with_columns(
                pl.lit(first[n]).first() for n in first.columns if n not in varying_columns
            )
        )


def check(frame: pl.DataFrame, table: Table, *, source: object = None) -> pl.DataFrame:
    """Return ``frame`` as that table, or say what is wrong with it and where.

    Examples
    --------
    >>> from isolux.core.tables import IMAGES
    >>> check(pl.DataFrame({"image_id": ["a", "a"]}), IMAGES, source="x.csv")
    Traceback (most recent call last):
        ...
    isolux.core.errors.TableError: two rows have the same image_id
      expected: every image_id once in images
      found: 'a' in rows 1 and 2
      where: x.csv, row 2, column 'image_id'
    """
    for column in table.columns:
        if column.name not in frame.columns and not column.optional:
            raise UnknownNameError(
                "column", column.name, frame.columns, where=format_location(source)
            )
    frame = _cast_columns(frame, table, source)
    if not _is_valid_in_one_query(frame, table):
        for column in table.columns:
            _check_column(frame, table, column, source)
    _check_unique_key(frame, table, source)
    return frame


def _cast_columns(frame: pl.DataFrame, table: Table, source: object) -> pl.DataFrame:
    try:
        return table.conform(frame)
    except pl.exceptions.PolarsError as error:
        for column in table.columns:
            if column.name not in frame.columns:
                continue
            try:
                cast_values = frame[column.name].cast(column.dtype, strict=False)
            except pl.exceptions.PolarsError:  # lists or structures, of which no cell is a value
                raise TableError(
                    f"a column of {table.name} has the wrong type",
                    expected=f"{column.dtype} ({column.meaning})",
                    found=str(frame.schema[column.name]),
                    where=format_location(source, column=column.name),
                ) from error
            bad = (cast_values.is_null() & frame[column.name].is_not_null()).arg_true()
            if len(bad):
                row = int(bad[0])
                raise TableError(
                    f"a cell of {table.name} has the wrong type",
                    expected=f"{column.dtype} ({column.meaning})",
                    found=repr(frame[column.name][row]),
                    where=format_location(source, row + 1, column.name),
                ) from error
        raise TableError(
            f"{table.name} cannot be read", found=str(error), where=format_location(source)
        ) from error


def _is_valid_in_one_query(frame: pl.DataFrame, table: Table) -> bool:
    """Check all cells in one query; False: check column by column to find the faulty cell."""
    tests = []
    for column in table.columns:
        values = pl.col(column.name)
        if not (column.nullable or column.optional):
            tests.append(values.null_count() == 0)
        if column.dtype == pl.Float64() and column.finite:
            tests.append(values.sum().is_finite())
        if column.allowed:
            tests.append(values.is_in(list(column.allowed)).all())
    named_tests = (test.alias(str(k)) for k, test in enumerate(tests))
    return all(frame.select(*named_tests).row(0)) if tests else True


def _check_column(frame: pl.DataFrame, table: Table, column: Column, source: object) -> None:
    values = frame[column.name]
    absent_ok = column.nullable or column.optional
    tests: list[tuple[pl.Series, str]] = []
    if not absent_ok:
        tests.append((values.is_null(), "a value in every row"))
    if column.dtype == pl.Float64() and column.finite:
        tests.append((values.is_finite().not_().fill_null(value=False), "a finite number, or none"))
    if column.allowed:
        outside = values.is_in(list(column.allowed)).not_().fill_null(value=False)
        tests.append((outside, "one of " + ", ".join(column.allowed)))
    for bad, expected in tests:
        rows = bad.arg_true()
        if len(rows):
            row = int(rows[0])
            raise TableError(
                f"{len(rows)} cell(s) of {table.name} cannot be used",
                expected=expected,
                found=repr(values[row]),
                where=format_location(source, row + 1, column.name),
            )


def _check_unique_key(frame: pl.DataFrame, table: Table, source: object) -> None:
    if not table.key or frame.height < 2:
        return
    keys = frame.select(table.key)
    constant_flags = keys.select(pl.all().eq_missing(pl.all().first()).all()).row(0)
    varying_keys = [
        n for n, is_constant in zip(table.key, constant_flags, strict=True) if not is_constant
    ]
    if varying_keys and has_no_duplicates(
        keys[varying_keys[0]] if len(varying_keys) == 1 else keys.select(varying_keys)
    ):
        return
    name = " + ".join(table.key)
    first, second = _find_first_duplicate_rows(keys)
    key_values = keys.row(second)
    raise TableError(
        f"two rows have the same {name}",
        expected=f"every {name} once in {table.name}",
        found=f"{key_values[0] if len(key_values) == 1 else key_values!r} in rows "
        f"{first + 1} and {second + 1}"
        if len(key_values) > 1
        else f"{key_values[0]!r} in rows {first + 1} and {second + 1}",
        where=format_location(source, second + 1, table.key[0] if len(table.key) == 1 else None),
    )


def _find_first_duplicate_rows(keys: pl.DataFrame) -> Sequence[int]:
    indexed_keys = keys.with_row_index("_row")
    firsts = indexed_keys.group_by(keys.columns, maintain_order=True).agg(pl.col("_row"))
    repeated = firsts.filter(pl.col("_row").list.len() > 1)
    rows = repeated["_row"][0]
    return [int(rows[0]), int(rows[1])]
