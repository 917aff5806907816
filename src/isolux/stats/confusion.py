"""A confusion matrix, read from a file and checked: counts of true groups by label.

A row of the file is a true group and a label: columns ``true``, ``labelled`` and ``count``, or
``share`` where only P(labelled | true) is known; and ``attribute`` where there are several.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux.core.notes import Caution
from isolux.io.frames import read_table
from isolux.stats.constants import MAX_CONDITION
from isolux.stats.statistic import FloatArray

_UNKNOWN = "unknown"
_MAX_LISTED = 3
_SWAPPED_COLUMNS_QUESTION = "are the columns true and labelled swapped in the file?"
_SUM_TOLERANCE = 1e-3
"""How far a row of shares may be from 1: they are often printed with three digits."""


@dataclass(frozen=True, slots=True)
class ConfusionMatrix:
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

    def draw_posterior_matrices(self, rng: np.random.Generator, replicates: int) -> FloatArray:
        """Draw matrices that could have been counted as well: ``[r, g, g]``."""
        if self.counts is None:
            return np.broadcast_to(self.share, (replicates, *self.share.shape))
        # One pseudo-person per row, spread over the labels: an error that was never counted is not
        # impossible (docs/methods/label_errors.md).
        dirichlet_counts = self.counts + 1.0 / len(self.groups)
        return np.stack([rng.dirichlet(row, replicates) for row in dirichlet_counts], axis=1)


def read_confusion_matrix(
    path: str, attribute: str | None, groups: Sequence[str] | None, *, alternative: str
) -> ConfusionMatrix:
    """Read the matrix of one attribute."""
    table = _read_confusion_rows(path, attribute)
    value_column = "count" if "count" in table.columns else "share"
    values = _parse_confusion_counts(table, value_column, path)
    true, labelled = (values[name].unique().to_list() for name in ("true", "labelled"))
    if groups is None:
        _check_labels_occur_as_truth(true, labelled, path)
    group_names = sorted(str(name) for name in true) if groups is None else groups
    _check_matrix_matches_groups(true, labelled, group_names, path)
    names = tuple(group_names)
    position_by_name = {name: i for i, name in enumerate(names)}
    full = np.zeros((len(names), len(names) + 1))
    for t, label, x in values.select("true", "labelled", value_column).iter_rows():
        full[position_by_name[t], position_by_name.get(label, len(names))] += x
    _check_matrix_row_sums(full, names, value_column, path)
    known_labels = full[:, :-1]
    if (known_labels.sum(axis=1) <= 0).any():
        row = names[int(known_labels.sum(axis=1).argmin())]
        raise TableError(
            f"nobody who is truly {row} has a known label", expected="some", where=path
        )
    # Given a known label: people with an unknown one are in none of the run's groups.
    share = known_labels / known_labels.sum(axis=1, keepdims=True)
    # Relative errors of the counts are multiplied by up to the condition number.
    if np.linalg.cond(share) > MAX_CONDITION:
        raise SpecError(
            "the confusion matrix cannot be undone: its labels hardly tell the groups apart",
            expected=f"a condition number of at most {MAX_CONDITION:g}",
            found=f"{np.linalg.cond(share):.3g}",
            where=path,
            hint=f"count it on more or clearer cases, or merge groups it confuses; {alternative}",
        )
    counts = known_labels if value_column == "count" else None
    return ConfusionMatrix(names, share, counts, bool(full[:, -1].any()))


def caution_if_labels_look_swapped(matrix: ConfusionMatrix) -> list[Caution]:
    """Caution where a matrix reads as if its headings, or two of its values, were swapped."""
    return [*_caution_if_columns_look_swapped(matrix), *_caution_if_values_look_swapped(matrix)]


def _caution_if_columns_look_swapped(matrix: ConfusionMatrix) -> list[Caution]:
    if matrix.counts is None or matrix.dropped_unknown:
        return []
    labels, groups = matrix.counts.sum(axis=0), matrix.counts.sum(axis=1)
    # Cases are mostly counted in equal numbers per true group: equal columns with unequal rows
    # suggest a transposed file.
    if np.ptp(labels) > 0 or np.ptp(groups) == 0:
        return []
    group_sizes = [f"{n:,.0f} ({name})" for name, n in zip(matrix.groups, groups, strict=True)]
    remainder = (
        f" and {len(group_sizes) - _MAX_LISTED:,} more" if len(group_sizes) > _MAX_LISTED else ""
    )
    group_list = (
        " and ".join(group_sizes)
        if len(group_sizes) <= _MAX_LISTED
        else ", ".join(group_sizes[:_MAX_LISTED]) + remainder
    )
    return [
        Caution(
            f"In the confusion matrix each label has {labels[0]:,.0f} cases, and true groups have "
            f"{group_list}: mostly as many cases of each true group are counted, so "
            f"{_SWAPPED_COLUMNS_QUESTION}"
        )
    ]


def _caution_if_values_look_swapped(matrix: ConfusionMatrix) -> list[Caution]:
    """Caution where a value is labelled as another more often than as itself."""
    own_share, commonest_label = np.diagonal(matrix.share), matrix.share.argmax(axis=1)
    problems = [
        f"{matrix.groups[k]!r} is labelled {matrix.groups[commonest_label[k]]!r} "
        f"({100 * matrix.share[k, commonest_label[k]]:.0f} %) more often than {matrix.groups[k]!r} "
        f"({100 * own_share[k]:.0f} %)"
        for k in np.flatnonzero(own_share < matrix.share.max(axis=1))
    ]
    if not problems:
        return []
    if len(problems) > _MAX_LISTED:
        problems = [*problems[:_MAX_LISTED], f"so are {len(problems) - _MAX_LISTED:,} more values"]
    return [
        Caution(
            f"By the confusion matrix {', and '.join(problems)}. "
            "Undoing that turns judgements round: "
            "are the columns true and labelled, or two values, swapped in the file?"
        )
    ]


def _read_confusion_rows(path: str, attribute: str | None) -> pl.DataFrame:
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
    duplicates = table.filter(pl.struct("true", "labelled").is_duplicated())
    if duplicates.height:
        row = duplicates.row(0, named=True)
        raise TableError(
            "a pair of true group and label occurs twice",
            expected="each once",
            found=f"{row['true']} labelled {row['labelled']}",
            where=path,
        )
    return table


def _parse_confusion_counts(table: pl.DataFrame, value_column: str, path: str) -> pl.DataFrame:
    number = pl.col(value_column).cast(pl.String).str.strip_chars().cast(pl.Float64, strict=False)
    table = table.with_columns(number)
    invalid = table.filter(
        pl.col(value_column).is_null()
        | ~pl.col(value_column).is_finite()
        | (pl.col(value_column) < 0)
    )
    if invalid.height:
        row = invalid.row(0, named=True)
        raise TableError(
            f"a {value_column} of the confusion matrix cannot be used",
            expected="0 or more",
            found=f"{row[value_column]} for {row['true']} labelled {row['labelled']}",
            where=path,
        )
    fractional = table.filter(pl.col(value_column) != pl.col(value_column).round())
    if value_column == "count" and fractional.height:
        row = fractional.row(0, named=True)
        raise TableError(
            "a count in the confusion matrix is not a whole number of people",
            expected="people in the column count; shares of a true group in a column share",
            found=f"{row[value_column]:g} for {row['true']} labelled {row['labelled']}",
            where=path,
        )
    return table


def _check_labels_occur_as_truth(true: Sequence[str], labelled: Sequence[str], path: str) -> None:
    """Refuse a matrix without cases of a value that it has as a label."""
    lacks = sorted(set(labelled) - set(true) - {_UNKNOWN})
    if lacks:
        raise SpecError(
            f"the confusion matrix lacks cases that are truly {', '.join(lacks)}",
            expected="rows of every value that is a label: " + ", ".join(sorted({*true, *lacks})),
            found="true values " + ", ".join(sorted(true)),
            where=path,
        )


def _check_matrix_matches_groups(
    true: Sequence[str], labelled: Sequence[str], groups: Sequence[str], path: str
) -> None:
    for values, description in (
        (true, "true groups"),
        ([x for x in labelled if x != _UNKNOWN], "labels"),
    ):
        if set(values) != set(groups):
            unknown = sorted(set(values) - set(groups)) or sorted(set(groups) - set(values))
            problem = "the run does not have" if set(values) - set(groups) else "the matrix lacks"
            raise SpecError(
                f"the confusion matrix has other {description} than the run",
                expected=", ".join(groups),
                found=f"{', '.join(sorted(values))} ({problem} {', '.join(unknown)})",
                where=path,
            )


def _check_matrix_row_sums(
    full: FloatArray, names: Sequence[str], value_column: str, path: str
) -> None:
    sums, label_sums = full.sum(axis=1), full.sum(axis=0)
    of_labels = value_column == "share" and bool(
        (np.abs(label_sums[label_sums > 0] - 1.0) <= _SUM_TOLERANCE).all()
    )
    for name, total in zip(names, sums.tolist(), strict=True):
        if value_column == "share" and abs(total - 1.0) > _SUM_TOLERANCE:
            raise TableError(
                f"the confusion matrix's row of {name} does not sum to 1",
                expected="shares of those truly of a group, by label",
                found=f"{total:.4g}",
                where=path,
                hint=f"the shares of each label do sum to 1: {_SWAPPED_COLUMNS_QUESTION}"
                if of_labels
                else "people are given in a column count",
            )
        if total <= 0:
            raise TableError(
                f"the confusion matrix has nobody who is truly {name}",
                expected="counts of every group",
                where=path,
            )
