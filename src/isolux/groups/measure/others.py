"""Everyone else, for metrics that are no means: what a group is held to when it is part of all.

The share of everyone that is in a group is taken as it is: whether 70 or 80 of 100 people happen to
be in it says nothing about whom the model serves worse. So everyone is replicated with the group
and all others each brought back to as many people as they were. Of sums that is exact; of
statistics of single rows, everyone's value counts as a mixture of the two sides.

What such a mixture leaves of everyone says little of others who are few and hardly err. They are
measured by themselves: where they are fewer than the group, that is little work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isolux.groups.estimates import Others
from isolux.stats.constants import MAX_SHARE_SUBTRACTED
from isolux.stats.resampling.rows import ReplicatedRanks
from isolux.stats.resampling.sums import Columns
from isolux.stats.statistic import FloatArray, IntArray

_ROUNDING = 1e-9
"""Of a sum: what is left of equal numbers is nothing."""


@dataclass(frozen=True, slots=True)
class EveryoneByHalves(Columns):
    """Columns of everyone, for each group: its people and all others as many as they were.

    Parameters
    ----------
    counts : int
        The column that counts the units that the statistic rests on.
    share : [g] float
        The share of everyone that is in each group.
    """

    counts: int
    share: FloatArray

    @classmethod
    def of(cls, columns: Columns, counts: int, totals: FloatArray) -> EveryoneByHalves:
        """Lay out everyone for the groups whose sums are ``totals [g, n_columns]``."""
        group_counts = totals[:, counts]
        share = np.divide(
            group_counts,
            group_counts[0],
            out=np.zeros_like(group_counts),
            where=group_counts[0] > 0,
        )
        return cls(columns.statistic, columns.start, columns.stop, counts, share)

    def own(self, sums: FloatArray) -> FloatArray:
        """Pick everyone's columns, both sides as large as they were: ``[g, r, k]``."""
        group_columns = Columns.own(self, sums)  # a dataclass with slots has no zero-argument super
        inside, total = sums[:, self.counts], sums[:1, self.counts]
        share = self.share[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            inside_factor = share * total / inside
            outside_factor = (1.0 - share) * total / (total - inside)
            return np.asarray(
                group_columns * inside_factor[..., None]
                + (group_columns[:1] - group_columns) * outside_factor[..., None]
            )

    def others(
        self, totals: FloatArray, overall_replicates: FloatArray, replicates: FloatArray
    ) -> Others:
        """Evaluate everyone less each group, beside the replicates ``[g, r]`` of everyone."""
        complement_value = np.round(EveryoneElse.like(self).value(totals[:, :, None])[:, 0], 9)
        share = self.share[: len(totals)]
        is_small_complement = share > MAX_SHARE_SUBTRACTED
        measured_value = np.where(is_small_complement, complement_value, np.nan)
        return Others(
            share,
            complement_value,
            overall_replicates,
            measured_value,
            np.where(is_small_complement[:, None], replicates, np.nan),
        )


@dataclass(frozen=True, slots=True)
class EveryoneElse(Columns):
    """Columns of everyone who is not in each group."""

    @classmethod
    def like(cls, columns: Columns) -> EveryoneElse:
        """Read the columns that others read."""
        return cls(columns.statistic, columns.start, columns.stop)

    def own(self, sums: FloatArray) -> FloatArray:
        """Pick everyone's columns less each group's: ``[g, r, k]``."""
        group_columns = Columns.own(self, sums)
        remaining = group_columns[:1] - group_columns
        return np.where(np.abs(remaining) > _ROUNDING * np.abs(group_columns[:1]), remaining, 0.0)


def rows_of_few_others(rows_of_group: list[IntArray], n_rows: int) -> dict[int, IntArray]:
    """List the rows of everyone else, of the groups that hold most rows.

    Examples
    --------
    >>> everyone, most, few = np.arange(4), np.array([0, 1, 3]), np.array([2])
    >>> {g: rows.tolist() for g, rows in rows_of_few_others([everyone, most, few], 4).items()}
    {1: [2]}
    """
    rows_by_group = {}
    for g, group_rows in enumerate(rows_of_group):
        if n_rows * MAX_SHARE_SUBTRACTED < len(group_rows) < n_rows:
            rows_by_group[g] = np.setdiff1d(np.arange(n_rows), group_rows, assume_unique=True)
    return rows_by_group


@dataclass(frozen=True, slots=True)
class OthersOfRows:
    """A statistic of single rows, asked of groups and then of the few others of some of them.

    Parameters
    ----------
    found : ReplicatedRanks
        Of n groups, and then of everyone else of the groups ``of``.
    of : [k] int
    """

    found: ReplicatedRanks
    of: IntArray

    def groups(self) -> tuple[FloatArray, FloatArray]:
        """Return values ``[n]`` and replicates ``[n, r]`` of the groups."""
        n = len(self.found.value) - len(self.of)
        return self.found.value[:n], self.found.drawn[:n]

    def others(self) -> Others:
        """Take everyone's value for a mixture; the few are measured."""
        group_values, group_replicates = self.groups()
        n = len(group_values)
        with np.errstate(divide="ignore", invalid="ignore"):
            inside_share = self.found.units[:n] / self.found.units[:1]
            share, replicate_share = inside_share[:, 0], inside_share[:, 1:]
            complement_value = (group_values[0] - share * group_values) / (1.0 - share)
            complement_replicates = (group_replicates[:1] - replicate_share * group_replicates) / (
                1.0 - replicate_share
            )
            overall_replicates = (
                share[:, None] * group_replicates + (1.0 - share[:, None]) * complement_replicates
            )
        measured_value, replicates = np.full(n, np.nan), np.full(group_replicates.shape, np.nan)
        measured_value[self.of], replicates[self.of] = self.found.value[n:], self.found.drawn[n:]
        return Others(share, complement_value, overall_replicates, measured_value, replicates)
