"""The table that every check fills: one row, one problem of one unit, and what to do about it."""

from __future__ import annotations

from functools import partial
from typing import Literal

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.schema import Column, Table
from isolux.core.tables import INSTANCES

Severity = Literal["error", "warning"]

PROBLEMS = Table(
    "problems",
    "something wrong with one unit of a dataset",
    (
        Column("check", pl.String(), "the check that found it"),
        Column("severity", pl.String(), "error, or warning", allowed=("error", "warning")),
        Column("problem", pl.String(), "what is wrong; the same words for the same problem"),
        Column("unit_kind", pl.String(), "instance, image, subject, attribute, file or dataset"),
        Column("unit_id", pl.String(), "which of them"),
        Column("file", pl.String(), "the file it is in, if it is a file", nullable=True),
        Column("expected", pl.String(), "what should have been there", nullable=True),
        Column("found", pl.String(), "what was there", nullable=True),
        Column("hint", pl.String(), "what can be done", nullable=True),
    ),
)


def make_problems(
    check: str,
    rows: pl.DataFrame,
    problem: str,
    severity: Severity | pl.Expr,
    expected: str | pl.Expr | None = None,
    found: str | pl.Expr | None = None,
    hint: str | None = None,
    *,
    unit_kind: str,
    unit_id: str,
    file: str | pl.Expr | None = None,
) -> pl.DataFrame:
    """Make one problem of each row.

    Examples
    --------
    >>> rows = pl.DataFrame({"image_id": ["a"]})
    >>> made = make_problems("image_sizes", rows, "no size", severity="error", unit_kind="image",
    ...                    unit_id="image_id")
    >>> made.select("check", "problem", "unit_id").rows()
    [('image_sizes', 'no size', 'a')]
    """
    return PROBLEMS.conform(
        rows.select(
            check=pl.lit(check),
            severity=_as_text(severity),
            problem=pl.lit(problem),
            unit_kind=pl.lit(unit_kind),
            unit_id=pl.col(unit_id),
            file=pl.col(file) if isinstance(file, str) else _as_text(file),
            expected=_as_text(expected),
            found=_as_text(found),
            hint=_as_text(hint),
        )
    )


make_person_problems = partial(make_problems, unit_kind="instance", unit_id="instance_id")
"""Make a problem of each row, which is a person."""
make_image_problems = partial(make_problems, unit_kind="image", unit_id="image_id", file="uri")
"""Make a problem of each row, which is a picture."""


def _as_text(text: str | pl.Expr | None) -> pl.Expr:
    return text if isinstance(text, pl.Expr) else pl.lit(text, dtype=pl.String)


def concatenate_problems(*tables: pl.DataFrame) -> pl.DataFrame:
    """Concatenate tables of problems; none at all gives an empty table."""
    return pl.concat([PROBLEMS.empty(), *tables])


def read_splits(dataset: Dataset, split: str) -> pl.DataFrame:
    """Return each person's split, from a column or an attribute of that name."""
    people = INSTANCES.conform(dataset.instances)
    if split in people.columns:
        return people.select("instance_id", part=pl.col(split).cast(pl.String))
    rows = dataset.instance_attributes().filter(attribute=split)
    return rows.select(instance_id="unit_id", part="value")
