"""Estimates of complements ("everyone else") for metrics that are not means.

The share of a group is fixed: whether 70 or 80 of 100 sampled people are in it is no evidence of a
disparity. So replicates of the overall value rescale the group and its complement to their observed
sizes. For sums that is exact; for statistics of single rows, the overall value is treated as a
mixture of both.

The difference of overall and group is imprecise for small complements with few errors. They are
measured directly, which is cheap if they are smaller than the group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isolux.groups.estimates import ComplementEstimates
from isolux.stats.constants import MAX_SUBTRACTED_SHARE
from isolux.stats.resampling.rows import EvaluatedRows
from isolux.stats.resampling.sums import StatisticColumns
from isolux.stats.statistic import FloatArray, IntArray

_RELATIVE_TOLERANCE = 1e-9
"""A difference below this fraction of a sum is rounding, and set to 0."""


@dataclass(frozen=True, slots=True)
class FixedCompositionColumns(StatisticColumns):
    """Overall columns for each group, with the sizes of group and complement fixed.

    Parameters
    ----------
    count_column : int
        The column that counts the statistic's units.
    group_share : [g] float
        The share of all units that is in each group.
    """

    count_column: int
    group_share: FloatArray

    @classmethod
    def from_totals(
        cls, columns: StatisticColumns, counts: int, totals: FloatArray
    ) -> FixedCompositionColumns:
        """Build from the groups' observed sums ``totals [g, n_columns]``."""
        group_counts = totals[:, counts]
        share = np.divide(
            group_counts,
            group_counts[0],
            out=np.zeros_like(group_counts),
            where=group_counts[0] > 0,
        )
        return cls(columns.statistic, columns.start, columns.stop, counts, share)

    def select_columns(self, sums: FloatArray) -> FloatArray:
        """Select overall columns, with both parts at their observed sizes: ``[g, r, k]``."""
        group_columns = StatisticColumns.select_columns(
            self, sums
        )  # a dataclass with slots has no zero-argument super
        inside, total = sums[:, self.count_column], sums[:1, self.count_column]
        share = self.group_share[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            # Each replicate's group and complement are rescaled to the observed shares.
            inside_factor = share * total / inside
            outside_factor = (1.0 - share) * total / (total - inside)
            return np.asarray(
                group_columns * inside_factor[..., None]
                + (group_columns[:1] - group_columns) * outside_factor[..., None]
            )

    def to_complement(
        self, totals: FloatArray, overall_replicates: FloatArray, replicates: FloatArray
    ) -> ComplementEstimates:
        """Evaluate the complements, with overall replicates ``[g, r]`` of fixed composition."""
        complement_value = np.round(
            ComplementColumns.from_columns(self).evaluate(totals[:, :, None])[:, 0], 9
        )
        # Few others who hardly err need their own measurement: from the mixture, p was at most 0.05
        # in 25 of 100 data sets without a difference (decision 31).
        share = self.group_share[: len(totals)]
        is_small_complement = share > MAX_SUBTRACTED_SHARE
        measured_value = np.where(is_small_complement, complement_value, np.nan)
        return ComplementEstimates(
            share,
            complement_value,
            overall_replicates,
            measured_value,
            np.where(is_small_complement[:, None], replicates, np.nan),
        )


@dataclass(frozen=True, slots=True)
class ComplementColumns(StatisticColumns):
    """Columns of each group's complement: overall minus group."""

    @classmethod
    def from_columns(cls, columns: StatisticColumns) -> ComplementColumns:
        """Use the columns of another statistic."""
        return cls(columns.statistic, columns.start, columns.stop)

    def select_columns(self, sums: FloatArray) -> FloatArray:
        """Select overall columns minus each group's: ``[g, r, k]``."""
        group_columns = StatisticColumns.select_columns(self, sums)
        remaining = group_columns[:1] - group_columns
        return np.where(
            np.abs(remaining) > _RELATIVE_TOLERANCE * np.abs(group_columns[:1]), remaining, 0.0
        )


def small_complement_rows_by_group(
    rows_of_group: list[IntArray], n_rows: int
) -> dict[int, IntArray]:
    """List the complement's rows, for the groups with most of all rows.

    Examples
    --------
    >>> everyone, most, few = np.arange(4), np.array([0, 1, 3]), np.array([2])
    >>> {
    ...     g: rows.tolist()
    ...     for g, rows in small_complement_rows_by_group([everyone, most, few], 4).items()
    ... }
    {1: [2]}
    """
    rows_by_group = {}
    for g, group_rows in enumerate(rows_of_group):
        # Decision 31: ranking every complement takes 4 times as long with 30 groups.
        if n_rows * MAX_SUBTRACTED_SHARE < len(group_rows) < n_rows:
            rows_by_group[g] = np.setdiff1d(np.arange(n_rows), group_rows, assume_unique=True)
    return rows_by_group


@dataclass(frozen=True, slots=True)
class ComplementReplicates:
    """A statistic of single rows, evaluated for groups and for the small complements.

    Parameters
    ----------
    evaluated : EvaluatedRows
        Of n groups, then of the complements of the groups ``measured_groups``.
    measured_groups : [k] int
    """

    evaluated: EvaluatedRows
    measured_groups: IntArray

    def take_group_values(self) -> tuple[FloatArray, FloatArray]:
        """Return values ``[n]`` and replicates ``[n, r]`` of the groups."""
        n = len(self.evaluated.value) - len(self.measured_groups)
        return self.evaluated.value[:n], self.evaluated.replicates[:n]

    def to_complement(self) -> ComplementEstimates:
        """Treat the overall value as a mixture; small complements are measured directly."""
        group_values, group_replicates = self.take_group_values()
        n = len(group_values)
        with np.errstate(divide="ignore", invalid="ignore"):
            # By weight: in a survey sample the shares are those of the population.
            inside_share = self.evaluated.total_weights[:n] / self.evaluated.total_weights[:1]
            share, replicate_share = inside_share[:, 0], inside_share[:, 1:]
            # Overall = share x group + (1 - share) x complement, solved for the complement.
            complement_value = (group_values[0] - share * group_values) / (1.0 - share)
            complement_replicates = (group_replicates[:1] - replicate_share * group_replicates) / (
                1.0 - replicate_share
            )
            # With the observed share in every replicate: with 150 subjects, random variation of the
            # share was most of the variance (decision 31).
            overall_replicates = (
                share[:, None] * group_replicates + (1.0 - share[:, None]) * complement_replicates
            )
        measured_value, replicates = np.full(n, np.nan), np.full(group_replicates.shape, np.nan)
        measured_value[self.measured_groups], replicates[self.measured_groups] = (
            self.evaluated.value[n:],
            self.evaluated.replicates[n:],
        )
        return ComplementEstimates(
            share, complement_value, overall_replicates, measured_value, replicates
        )
