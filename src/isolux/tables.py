"""The tables that rooms hand to one another: their columns, types, units and meanings.

An audit is a chain of tables, ``images, instances, attributes, predictions -> scores ->
group_metrics -> disparities -> findings``. This file names their columns once; ``check`` refuses
a frame that is not such a table, and says which file, row and column is at fault.

A null is always "not known" or "not scored", never zero; a reason stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import polars as pl

from isolux.errors import TableError, UnknownNameError, place

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

__all__ = [
    "ATTRIBUTES",
    "COMPARISONS",
    "DISPARITIES",
    "FINDINGS",
    "GROUP_METRICS",
    "IMAGES",
    "INSTANCES",
    "LABEL_PREDICTIONS",
    "MEMBERSHIP",
    "SCORES",
    "TABLES",
    "Column",
    "Status",
    "Table",
    "check",
    "to_polars",
]


class Status(StrEnum):
    """Whether a number may be read as it stands. A closed list.

    ``boundary``: the value stands, but its interval's promise could not be kept (few subjects, or
    a rate near 0 or 1). ``undefined``: the formula divides by nothing.
    """

    OK = "ok"
    INSUFFICIENT_UNITS = "insufficient units"
    INSUFFICIENT_CLUSTERS = "insufficient clusters"
    BOUNDARY = "boundary"
    UNDEFINED = "undefined"
    NOT_SCORED = "not scored"


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
        named = [
            pl.col(c.name).cast(c.dtype)
            if c.name in frame.columns
            else pl.lit(None, dtype=c.dtype).alias(c.name)
            for c in self.columns
        ]
        extra = [n for n in frame.columns if n not in self.schema] if self.open else []
        return frame.select(*named, *extra)


S, F, I, L = pl.String(), pl.Float64(), pl.Int64(), pl.List(pl.String())  # noqa: E741
_STATUS = tuple(s.value for s in Status)
_UNIT_KINDS = ("instance", "image", "subject", "household", "query")


def _col(name: str, dtype: PolarsDataType, meaning: str, **kwargs: Any) -> Column:
    return Column(name, dtype, meaning, **kwargs)


IMAGES = Table(
    "images",
    "an image",
    (
        _col("image_id", S, "identifier, unique"),
        _col("uri", S, "path inside the dataset's root, or address", optional=True, nullable=True),
        _col("width", I, "pixels", optional=True, nullable=True),
        _col("height", I, "pixels", optional=True, nullable=True),
    ),
    key=("image_id",),
    open=True,
)

INSTANCES = Table(
    "instances",
    "a person or object to be judged",
    (
        _col("instance_id", S, "identifier, unique"),
        _col("image_id", S, "its image"),
        _col("subject_id", S, "the person, where known", optional=True, nullable=True),
        _col(
            "cluster_id",
            S,
            "what was sampled independently; null: the row itself",
            optional=True,
            nullable=True,
        ),
        _col("classes", L, "the classes it validly carries", optional=True, nullable=True),
    ),
    key=("instance_id",),
    open=True,
)

ATTRIBUTES = Table(
    "attributes",
    "one value of one attribute of one unit; several values are normal",
    (
        _col("unit_kind", S, "what unit_id identifies", allowed=_UNIT_KINDS),
        _col("unit_id", S, "the unit"),
        _col("attribute", S, "the attribute's name"),
        _col("value", S, "the value as text; null: unknown", nullable=True),
        _col("number", F, "the value of a numeric attribute", optional=True, nullable=True),
        _col("votes", F, "how many annotators gave this value", optional=True, nullable=True),
        _col("annotator", S, "who gave it", optional=True, nullable=True),
    ),
)

LABEL_PREDICTIONS = Table(
    "predictions (labels)",
    "one label that a model gave one unit",
    (
        _col("model", S, "name of the model"),
        _col("instance_id", S, "the unit judged"),
        _col("label", S, "the predicted class; null: the model gave no answer", nullable=True),
        _col("score", F, "confidence, 0 to 1, higher is surer; null: none", nullable=True),
        _col("rank", I, "1 for the first answer, 2 for the second, …"),
        _col(
            "detected",
            pl.Boolean(),
            "whether the model found the person at all",
            optional=True,
            nullable=True,
        ),
    ),
    key=("model", "instance_id", "rank"),
    open=True,
)

_METRIC = (
    _col("task", S, "the task's name"),
    _col("metric", S, "the metric's name"),
    _col("label", S, "class, part or keypoint; null: none", nullable=True),
    _col("threshold", F, "IoU, FAR or k; null: none", nullable=True),
)

SCORES = Table(
    "scores",
    "one metric of one unit",
    (
        _col("model", S, "name of the model"),
        *_METRIC,
        _col("unit_kind", S, "what unit_id identifies", allowed=_UNIT_KINDS),
        _col("unit_id", S, "the unit"),
        _col("cluster_id", S, "what was sampled independently; null: the row", nullable=True),
        _col("value", F, "the score; null: not scored, see reason", nullable=True),
        _col("reason", S, "why the value is null", nullable=True),
    ),
    key=("model", "task", "metric", "label", "threshold", "unit_id"),
)

MEMBERSHIP = Table(
    "membership",
    "one unit in one group of one attribute or intersection",
    (
        _col("attribute", S, "attribute, or attributes joined by * in the order given"),
        _col("group", S, "the group, for display; never parsed"),
        _col("values", L, "the value of each attribute of the intersection"),
        _col("unit_id", S, "the unit"),
    ),
    key=("attribute", "values", "unit_id"),
)

GROUP_METRICS = Table(
    "group_metrics",
    "one metric of one group",
    (
        _col("model", S, "name of the model"),
        *_METRIC,
        _col("attribute", S, "attribute or intersection; null: everyone", nullable=True),
        _col("group", S, "the group, for display"),
        _col("values", L, "the value of each attribute of the intersection"),
        _col("n_units", I, "units with a score"),
        _col("n_clusters", I, "independent clusters among them"),
        _col("value", F, "the group's value; null: see status", nullable=True),
        _col("low", F, "lower end of the interval", nullable=True),
        _col("high", F, "upper end of the interval", nullable=True),
        _col("standard_error", F, "bootstrap standard error", nullable=True),
        _col("method", S, "how the interval was made", nullable=True),
        _col("status", S, "may the value be read as it stands?", allowed=_STATUS),
        _col("reason", S, "what the status rests on", nullable=True),
    ),
    key=("model", "task", "metric", "label", "threshold", "attribute", "values"),
)

_DISPARITY = (
    *_METRIC,
    _col("attribute", S, "attribute or intersection; null: everyone", nullable=True),
    _col("kind", S, "difference, ratio, range, …: see disparity/measures.py"),
    _col("group_a", S, "the first group; of a whole attribute: the worst", nullable=True),
    _col("group_b", S, "the second group; of a whole attribute: the best", nullable=True),
    _col("value", F, "the disparity; null: see status", nullable=True),
    _col("low", F, "lower end of the interval", nullable=True),
    _col("high", F, "upper end of the interval", nullable=True),
    _col("method", S, "how the interval was made", nullable=True),
    _col("p_value", F, "against 'these do not differ'", nullable=True),
    _col("p_adjusted", F, "the same, for the whole family", nullable=True),
    _col("test", S, "which null test", nullable=True),
    _col("family", S, "the hypotheses corrected together", nullable=True),
    _col("detectable", F, "smallest value seen with power .8", nullable=True),
    _col("n_units_a", I, "units of group_a", nullable=True),
    _col("n_clusters_a", I, "clusters of group_a", nullable=True),
    _col("n_units_b", I, "units of group_b", nullable=True),
    _col("n_clusters_b", I, "clusters of group_b", nullable=True),
    _col("status", S, "may the value be read as it stands?", allowed=_STATUS),
    _col("reason", S, "what the status rests on", nullable=True),
)

DISPARITIES = Table(
    "disparities", "one comparison", (_col("model", S, "name of the model"), *_DISPARITY)
)

COMPARISONS = Table(
    "disparities",
    "one comparison of two models",
    (
        _col("model_a", S, "the first model"),
        _col("model_b", S, "the second model"),
        *_DISPARITY,
    ),
)

FINDINGS = Table(
    "findings",
    "one claim a person can act on",
    (
        _col("rank", I, "1 is what to read first"),
        _col("analysis", S, "which analysis made it"),
        _col("claim", S, "a plain sentence"),
        _col("effect", F, "the size of it, in the metric's unit", nullable=True),
        _col("low", F, "lower end of the interval", nullable=True),
        _col("high", F, "upper end of the interval", nullable=True),
        _col("n", I, "units it rests on", nullable=True),
        _col("reference", S, "the method's source", nullable=True),
        _col("status", S, "may it be read as it stands?", allowed=_STATUS),
        _col("metric", S, "the metric it is about", nullable=True),
        _col("label", S, "the class it is about", nullable=True),
        _col("attribute", S, "the attribute it is about", nullable=True),
        _col("group_a", S, "the worse group", nullable=True),
        _col("group_b", S, "the group it is held against", nullable=True),
        _col("p_adjusted", F, "family-adjusted p", nullable=True),
    ),
)

TABLES = (
    IMAGES,
    INSTANCES,
    ATTRIBUTES,
    LABEL_PREDICTIONS,
    SCORES,
    MEMBERSHIP,
    GROUP_METRICS,
    DISPARITIES,
    FINDINGS,
)


def to_polars(frame: object) -> pl.DataFrame:
    """Take any narwhals-compatible frame (pandas, pyarrow, polars, …) and return a polars one.

    A polars frame is returned as it is; nothing is ever changed in place.

    Examples
    --------
    >>> to_polars(pl.DataFrame({"a": [1]})).shape
    (1, 1)
    """
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    import narwhals as nw

    native: Any = frame
    wrapped = nw.from_native(native, pass_through=True)
    if isinstance(wrapped, nw.LazyFrame):
        wrapped = wrapped.collect()
    if isinstance(wrapped, nw.DataFrame):
        return wrapped.to_polars()
    raise TableError(
        "this is not a table",
        expected="a polars, pandas or pyarrow frame",
        found=type(frame).__name__,
    )


def check(frame: pl.DataFrame, table: Table, *, where: object = None) -> pl.DataFrame:
    """Return ``frame`` as that table, or say what is wrong with it and where.

    Absent optional columns are added as nulls and safe casts are made (int to float). Everything
    else is refused: a missing column, a type that does not fit, a null where none may be, NaN and
    infinity, a word outside a closed list, a key that occurs twice.

    Raises
    ------
    TableError
        With file (``where``), row counted from 1, column, what was expected and what was found.

    Examples
    --------
    >>> check(pl.DataFrame({"image_id": ["a", "a"]}), IMAGES, where="x.csv")
    Traceback (most recent call last):
        ...
    isolux.errors.TableError: two rows have the same image_id
      expected: every image_id once in images
      found: 'a' in rows 1 and 2
      where: x.csv, row 2, column 'image_id'
    """
    for column in table.columns:
        if column.name not in frame.columns and not column.optional:
            raise UnknownNameError("column", column.name, frame.columns, where=place(where))
    frame = _cast(frame, table, where)
    for column in table.columns:
        _check_column(frame, table, column, where)
    _check_key(frame, table, where)
    return frame


def _cast(frame: pl.DataFrame, table: Table, where: object) -> pl.DataFrame:
    try:
        return table.conform(frame)
    except pl.exceptions.PolarsError as error:
        for column in table.columns:
            if column.name not in frame.columns:
                continue
            wrong = frame[column.name].cast(column.dtype, strict=False)
            bad = (wrong.is_null() & frame[column.name].is_not_null()).arg_true()
            if len(bad):
                row = int(bad[0])
                raise TableError(
                    f"a cell of {table.name} has the wrong type",
                    expected=f"{column.dtype} ({column.meaning})",
                    found=repr(frame[column.name][row]),
                    where=place(where, row + 1, column.name),
                ) from error
        raise TableError(
            f"{table.name} cannot be read", found=str(error), where=place(where)
        ) from error


def _check_column(frame: pl.DataFrame, table: Table, column: Column, where: object) -> None:
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
                where=place(where, row + 1, column.name),
            )


def _check_key(frame: pl.DataFrame, table: Table, where: object) -> None:
    if not table.key or frame.height < 2:
        return
    keys = frame.select(table.key)
    if keys.n_unique() == frame.height:
        return
    name = " + ".join(table.key)
    first, second = _first_repeat(keys)
    shown = keys.row(second)
    raise TableError(
        f"two rows have the same {name}",
        expected=f"every {name} once in {table.name}",
        found=f"{shown[0] if len(shown) == 1 else shown!r} in rows {first + 1} and {second + 1}"
        if len(shown) > 1
        else f"{shown[0]!r} in rows {first + 1} and {second + 1}",
        where=place(where, second + 1, table.key[0] if len(table.key) == 1 else None),
    )


def _first_repeat(keys: pl.DataFrame) -> Sequence[int]:
    numbered = keys.with_row_index("_row")
    firsts = numbered.group_by(keys.columns, maintain_order=True).agg(pl.col("_row"))
    repeated = firsts.filter(pl.col("_row").list.len() > 1)
    rows = repeated["_row"][0]
    return [int(rows[0]), int(rows[1])]
