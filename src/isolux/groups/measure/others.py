"""Everyone else, for metrics that are no means: what a group is held to when it is part of all.

The share of everyone that is in a group is taken as it is: whether 70 or 80 of 100 people happen to
be in it says nothing about whom the model serves worse. So everyone is replicated with the group
and all others each brought back to as many people as they were. Of sums that is exact; of
statistics of single rows, everyone's value counts as a mixture of the two sides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isolux.groups.estimates import Others
from isolux.stats.resampling import Columns, ReplicatedRanks
from isolux.stats.statistic import FloatArray

__all__ = ["EveryoneByHalves", "others_of_ranks"]

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
        held = totals[:, counts]
        share = np.divide(held, held[0], out=np.zeros_like(held), where=held[0] > 0)
        return cls(columns.statistic, columns.start, columns.stop, counts, share)

    def own(self, sums: FloatArray) -> FloatArray:
        """Pick everyone's columns, both sides as large as they were: ``[g, r, k]``."""
        own = Columns.own(self, sums)  # a dataclass with slots has no zero-argument super
        inside, every = sums[:, self.counts], sums[:1, self.counts]
        share = self.share[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            up = share * every / inside
            down = (1.0 - share) * every / (every - inside)
            return np.asarray(own * up[..., None] + (own[:1] - own) * down[..., None])

    def others(self, totals: FloatArray, drawn: FloatArray) -> Others:
        """Evaluate everyone less each group, beside the replicates ``[g, r]`` of everyone."""
        own = totals[:, self.start : self.stop]
        left = own[:1] - own
        left = np.where(np.abs(left) > _ROUNDING * np.abs(own[:1]), left, 0.0)
        value = np.round(self.statistic.finish(left), 9)
        return Others(self.share[: len(totals)], np.asarray(value), drawn)


def others_of_ranks(found: ReplicatedRanks) -> Others:
    """Take everyone's value for a mixture of a group's and all others'."""
    value, drawn = found.value, found.drawn
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = found.units / found.units[:1]
        share, times = inside[:, 0], inside[:, 1:]
        of_others = (value[0] - share * value) / (1.0 - share)
        replicated = (drawn[:1] - times * drawn) / (1.0 - times)
        everyone = share[:, None] * drawn + (1.0 - share[:, None]) * replicated
    return Others(share, of_others, everyone)
