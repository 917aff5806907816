"""A confusion matrix of group labels, read from a file and checked: counts of true by labelled.

A row of the file is a true group and a label: columns ``true``, ``labelled`` and ``count``, or
``share`` where only P(labelled | true) is known; and ``attribute`` where there are several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.groups.unknown import UNKNOWN
from isolux.io.frames import read_table
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.errors import SpecError, TableError, UnknownNameError

__all__ = ["Matrix", "read_matrix"]

_CLOSE = 1e-3
"""How far a row of shares may be from 1: they are often printed with three digits."""

_CONDITION = 50.0
"""Condition number above which a matrix tells groups too little apart to be undone."""


@dataclass(frozen=True, slots=True)
class Matrix:
    """P(labelled | true) of one attribute.

    Parameters
    ----------
    groups : tuple of str
        Of rows and columns.
    share : [g, g] float
        Rows sum to 1.
    counts : [g, g] float or None
        What they were counted on; None: shares were given, and are taken as exact.
    dropped_unknown : bool
        Whether people labelled unknown were left out, and the rest brought to 1.
    """

    groups: tuple[str, ...]
    share: FloatArray
    counts: FloatArray | None
    dropped_unknown: bool

    def drawn(self, rng: np.random.Generator, replicates: int) -> FloatArray:
        """Draw matrices that could have been counted as well: ``[r, g, g]``.

        Each row is a Dirichlet of its counts and one person shared out among the labels, so that a
        mistake that was never seen is not taken for impossible.
        """
        if self.counts is None:
            return np.broadcast_to(self.share, (replicates, *self.share.shape))
        own = self.counts + 1.0 / len(self.groups)
        return np.stack([rng.dirichlet(row, replicates) for row in own], axis=1)


def read_matrix(path: str, attribute: str, groups: Sequence[str]) -> Matrix:
    """Read the matrix of one attribute.

    Parameters
    ----------
    path : str
    attribute : str
    groups : sequence of str
        Those that the run's people are labelled with, without unknown.

    Raises
    ------
    TableError, UnknownNameError
        A column is missing; counts or shares are negative or no numbers; a row does not sum to 1,
        or is empty; a pair stands there twice.
    SpecError
        The matrix knows other groups than the run, or cannot tell them apart.
    """
    table = _rows(path, attribute)
    kind = "count" if "count" in table.columns else "share"
    values = _values(table, kind, path)
    true, labelled = (values[name].unique().to_list() for name in ("true", "labelled"))
    _check_groups(true, labelled, groups, path)
    names = tuple(groups)
    place = {name: i for i, name in enumerate(names)}
    full = np.zeros((len(names), len(names) + 1))
    for t, said, x in values.select("true", "labelled", kind).iter_rows():
        full[place[t], place.get(said, len(names))] += x
    _check_sums(full, names, kind, path)
    known = full[:, :-1]
    if (known.sum(axis=1) <= 0).any():
        row = names[int(known.sum(axis=1).argmin())]
        raise TableError(
            f"no one who is truly {row} has a known label", expected="some", where=path
        )
    share = known / known.sum(axis=1, keepdims=True)
    if np.linalg.cond(share) > _CONDITION:
        raise SpecError(
            "the confusion matrix cannot be undone: its labels hardly tell the groups apart",
            expected=f"a condition number of at most {_CONDITION:g}",
            found=f"{np.linalg.cond(share):.3g}",
            where=path,
            hint="without a matrix, bounds are given: leave out label_errors.matrix",
        )
    counts = known if kind == "count" else None
    return Matrix(names, share, counts, bool(full[:, -1].any()))


def _rows(path: str, attribute: str) -> pl.DataFrame:
    table = read_table(path)
    for name in ("true", "labelled"):
        if name not in table.columns:
            raise UnknownNameError("column", name, table.columns, where=path)
    if not {"count", "share"} & set(table.columns):
        raise UnknownNameError("column", "count", table.columns, where=path)
    if "attribute" in table.columns:
        table = table.filter(pl.col("attribute").cast(pl.String) == attribute)
        if table.is_empty():
            raise SpecError(
                f"the confusion matrix has no rows of {attribute!r}",
                expected=f"{attribute} in the column attribute",
                where=path,
            )
    text = pl.col("true", "labelled").cast(pl.String)
    table = table.with_columns(text.str.strip_chars().fill_null(UNKNOWN))
    twice = table.filter(pl.struct("true", "labelled").is_duplicated())
    if twice.height:
        row = twice.row(0, named=True)
        raise TableError(
            "a pair of true group and label stands there twice",
            expected="each once",
            found=f"{row['true']} labelled {row['labelled']}",
            where=path,
        )
    return table


def _values(table: pl.DataFrame, kind: str, path: str) -> pl.DataFrame:
    number = pl.col(kind).cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    table = table.with_columns(number)
    bad = table.filter(pl.col(kind).is_null() | ~pl.col(kind).is_finite() | (pl.col(kind) < 0))
    if bad.height:
        row = bad.row(0, named=True)
        raise TableError(
            f"a {kind} of the confusion matrix cannot be used",
            expected="0 or more",
            found=f"{row[kind]} for {row['true']} labelled {row['labelled']}",
            where=path,
        )
    parts = table.filter(pl.col(kind) != pl.col(kind).round())
    if kind == "count" and parts.height:
        row = parts.row(0, named=True)
        raise TableError(
            "a count of the confusion matrix is no whole number of people",
            expected="people in the column count; shares of a true group in a column share",
            found=f"{row[kind]:g} for {row['true']} labelled {row['labelled']}",
            where=path,
        )
    return table


def _check_groups(
    true: Sequence[str], labelled: Sequence[str], groups: Sequence[str], path: str
) -> None:
    for said, what in ((true, "true groups"), ([x for x in labelled if x != UNKNOWN], "labels")):
        if set(said) != set(groups):
            unknown = sorted(set(said) - set(groups)) or sorted(set(groups) - set(said))
            side = "the run does not have" if set(said) - set(groups) else "the matrix lacks"
            raise SpecError(
                f"the confusion matrix has other {what} than the run",
                expected=", ".join(groups),
                found=f"{', '.join(sorted(said))} ({side} {', '.join(unknown)})",
                where=path,
            )


def _check_sums(full: FloatArray, names: Sequence[str], kind: str, path: str) -> None:
    sums = full.sum(axis=1)
    for name, total in zip(names, sums.tolist(), strict=True):
        if kind == "share" and abs(total - 1.0) > _CLOSE:
            raise TableError(
                f"the confusion matrix's row of {name} does not sum to 1",
                expected="shares of those truly of a group, by label",
                found=f"{total:.4g}",
                where=path,
                hint="people are given in a column count",
            )
        if total <= 0:
            raise TableError(
                f"the confusion matrix has no one who is truly {name}",
                expected="counts of every group",
                where=path,
            )
