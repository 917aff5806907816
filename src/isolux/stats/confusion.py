"""A confusion matrix, read from a file and checked: counts of true groups by label.

A row of the file is a true group and a label: columns ``true``, ``labelled`` and ``count``, or
``share`` where only P(labelled | true) is known; and ``attribute`` where there are several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.io.frames import read_table
from isolux.stats.constants import MAX_CONDITION
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.errors import SpecError, TableError, UnknownNameError
from isolux.vocabulary.notes import Caution

_UNKNOWN = "unknown"
_SHOWN = 3
_HEADS = "are the columns true and labelled swapped in the file?"
_CLOSE = 1e-3
"""How far a row of shares may be from 1: they are often printed with three digits."""


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
        """Draw matrices that could have been counted as well: ``[r, g, g]``."""
        if self.counts is None:
            return np.broadcast_to(self.share, (replicates, *self.share.shape))
        own = self.counts + 1.0 / len(self.groups)
        return np.stack([rng.dirichlet(row, replicates) for row in own], axis=1)


def read_matrix(
    path: str, attribute: str | None, groups: Sequence[str] | None, *, without: str
) -> Matrix:
    """Read the matrix of one attribute."""
    table = _rows(path, attribute)
    kind = "count" if "count" in table.columns else "share"
    values = _values(table, kind, path)
    true, labelled = (values[name].unique().to_list() for name in ("true", "labelled"))
    if groups is None:
        _check_own(true, labelled, path)
    named = sorted(str(name) for name in true) if groups is None else groups
    _check_groups(true, labelled, named, path)
    names = tuple(named)
    place = {name: i for i, name in enumerate(names)}
    full = np.zeros((len(names), len(names) + 1))
    for t, said, x in values.select("true", "labelled", kind).iter_rows():
        full[place[t], place.get(said, len(names))] += x
    _check_sums(full, names, kind, path)
    known = full[:, :-1]
    if (known.sum(axis=1) <= 0).any():
        row = names[int(known.sum(axis=1).argmin())]
        raise TableError(
            f"nobody who is truly {row} has a known label", expected="some", where=path
        )
    share = known / known.sum(axis=1, keepdims=True)
    if np.linalg.cond(share) > MAX_CONDITION:
        raise SpecError(
            "the confusion matrix cannot be undone: its labels hardly tell the groups apart",
            expected=f"a condition number of at most {MAX_CONDITION:g}",
            found=f"{np.linalg.cond(share):.3g}",
            where=path,
            hint=f"count it on more or clearer cases, or merge groups it confuses; {without}",
        )
    counts = known if kind == "count" else None
    return Matrix(names, share, counts, bool(full[:, -1].any()))


def doubts_of(matrix: Matrix) -> list[Caution]:
    """Caution where a matrix reads as if its headings, or two of its values, were swapped."""
    return [*_swapped_heads(matrix), *_swapped_values(matrix)]


def _swapped_heads(matrix: Matrix) -> list[Caution]:
    if matrix.counts is None or matrix.dropped_unknown:
        return []
    labels, groups = matrix.counts.sum(axis=0), matrix.counts.sum(axis=1)
    if np.ptp(labels) > 0 or np.ptp(groups) == 0:
        return []
    own = [f"{n:,.0f} ({name})" for name, n in zip(matrix.groups, groups, strict=True)]
    more = f" and {len(own) - _SHOWN:,} more" if len(own) > _SHOWN else ""
    told = " and ".join(own) if len(own) <= _SHOWN else ", ".join(own[:_SHOWN]) + more
    return [
        Caution(
            f"In the confusion matrix each label has {labels[0]:,.0f} cases, and true groups have "
            f"{told}: mostly as many cases of each true group are counted, so {_HEADS}"
        )
    ]


def _swapped_values(matrix: Matrix) -> list[Caution]:
    """Caution where a value is labelled as another more often than as itself."""
    own, most = np.diagonal(matrix.share), matrix.share.argmax(axis=1)
    wrong = [
        f"{matrix.groups[k]!r} is labelled {matrix.groups[most[k]]!r} "
        f"({100 * matrix.share[k, most[k]]:.0f} %) more often than {matrix.groups[k]!r} "
        f"({100 * own[k]:.0f} %)"
        for k in np.flatnonzero(own < matrix.share.max(axis=1))
    ]
    if not wrong:
        return []
    if len(wrong) > _SHOWN:
        wrong = [*wrong[:_SHOWN], f"so are {len(wrong) - _SHOWN:,} more values"]
    return [
        Caution(
            f"By the confusion matrix {', and '.join(wrong)}. Undoing that turns judgements round: "
            "are the columns true and labelled, or two values, swapped in the file?"
        )
    ]


def _rows(path: str, attribute: str | None) -> pl.DataFrame:
    table = read_table(path)
    for name in ("true", "labelled"):
        if name not in table.columns:
            raise UnknownNameError("column", name, table.columns, where=path)
    if not {"count", "share"} & set(table.columns):
        raise UnknownNameError("column", "count", table.columns, where=path)
    if "attribute" in table.columns and attribute is not None:
        table = table.filter(pl.col("attribute").cast(pl.String) == attribute)
        if table.is_empty():
            raise SpecError(
                f"the confusion matrix has no rows of {attribute!r}",
                expected=f"{attribute} in the column attribute",
                where=path,
            )
    text = pl.col("true", "labelled").cast(pl.String)
    table = table.with_columns(text.str.strip_chars().fill_null(_UNKNOWN))
    twice = table.filter(pl.struct("true", "labelled").is_duplicated())
    if twice.height:
        row = twice.row(0, named=True)
        raise TableError(
            "a pair of true group and label occurs twice",
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
            "a count in the confusion matrix is not a whole number of people",
            expected="people in the column count; shares of a true group in a column share",
            found=f"{row[kind]:g} for {row['true']} labelled {row['labelled']}",
            where=path,
        )
    return table


def _check_own(true: Sequence[str], labelled: Sequence[str], path: str) -> None:
    """Refuse a matrix without cases of a value that it has as a label."""
    lacks = sorted(set(labelled) - set(true) - {_UNKNOWN})
    if lacks:
        raise SpecError(
            f"the confusion matrix lacks cases that are truly {', '.join(lacks)}",
            expected="rows of every value that is a label: " + ", ".join(sorted({*true, *lacks})),
            found="true values " + ", ".join(sorted(true)),
            where=path,
        )


def _check_groups(
    true: Sequence[str], labelled: Sequence[str], groups: Sequence[str], path: str
) -> None:
    for said, what in ((true, "true groups"), ([x for x in labelled if x != _UNKNOWN], "labels")):
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
    sums, turned = full.sum(axis=1), full.sum(axis=0)
    of_labels = kind == "share" and bool((np.abs(turned[turned > 0] - 1.0) <= _CLOSE).all())
    for name, total in zip(names, sums.tolist(), strict=True):
        if kind == "share" and abs(total - 1.0) > _CLOSE:
            raise TableError(
                f"the confusion matrix's row of {name} does not sum to 1",
                expected="shares of those truly of a group, by label",
                found=f"{total:.4g}",
                where=path,
                hint=f"the shares of each label do sum to 1: {_HEADS}"
                if of_labels
                else "people are given in a column count",
            )
        if total <= 0:
            raise TableError(
                f"the confusion matrix has nobody who is truly {name}",
                expected="counts of every group",
                where=path,
            )
