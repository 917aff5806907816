"""How sure the gap of two shares can be at the most, whatever the replicates say.

A group that is flawless by chance is flawless in every resample, and so is each of its cells: its
replicates know no error at all. So a gap's standard error is never taken smaller than that of rows
whose two groups are alike but for chance, as the audit's own test has it (``stats/share_gaps``):
variances at the pooled share of each value, or at the group's own where it has many of the rarer
answer; rows of one cluster are at least as alike as few of the rarer answer leave open, and as
everyone's are with the weight that the audit gives these: own variance^.6 times that^.4.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from isolux.stats.constants import HALF_OWN_ANSWERS
from isolux.stats.design import IntArray
from isolux.stats.shares import are_shares, pooled_correlation
from isolux.stats.statistic import FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Chance", "chance_of"]


@dataclass(frozen=True, slots=True)
class Chance:
    """What cells add in each cluster, of scores that are 0 or 1.

    Parameters
    ----------
    right, count : csr_array, [n_cells, n_clusters]
        Sums of scores and of people, or of their weights.
    sums, mass : [n_cells] float
        The same over all clusters.
    alike : float
        The correlation of two rows of one cluster, from everyone.
    drawn : bool
        Whether people have weights or strata. Their replicates know of both, so that only groups
        of one answer ask for more.
    """

    right: csr_array
    count: csr_array
    sums: FloatArray
    mass: FloatArray
    alike: float
    drawn: bool

    def least(
        self,
        cells: tuple[IntArray, IntArray],
        mix: tuple[FloatArray, FloatArray],
        worth: FloatArray,
    ) -> tuple[float, float]:
        """Return the smallest standard errors that a gap of two groups can have.

        Shapes: ``cells`` [e], ``mix`` [e], ``worth`` [n_cells].
        """
        n = np.stack([worth[own] for own in cells])
        mass, sums = (np.stack([of[own] for own in cells]) for of in (self.mass, self.sums))
        share, pooled = sums / mass, sums.sum(axis=0) / mass.sum(axis=0)
        of_group = sums.sum(axis=1) / mass.sum(axis=1)
        rarer = np.minimum(of_group, 1.0 - of_group)
        if self.drawn and (rarer > 0).all():
            return 0.0, 0.0
        held = [self.count[own] for own in cells]
        by_cluster = [np.asarray(part.sum(axis=0)).ravel() for part in held]
        size = np.array([(row**2).sum() / row.sum() for row in by_cluster])
        known = rarer * n.sum(axis=1) / (1.0 + np.maximum(size - 1.0, 0.0) * self.alike)
        own = (known / (known + HALF_OWN_ANSWERS))[:, None]
        spread = own * share * (1.0 - share) + (1.0 - own) * pooled * (1.0 - pooled)
        weight = np.stack(mix)
        rows = (weight**2 * spread / n).sum()
        apart = [
            np.sqrt((w * s).sum()) * np.asarray((w / m) @ part).ravel()
            for w, s, m, part in zip(weight, spread, mass, held, strict=True)
        ]
        clusters = float(((apart[0] - apart[1]) ** 2).sum())
        each = [
            1.0 / (1.0 + self._rare(c, part, p) ** 2)
            for c, part, p in zip(cells, held, of_group, strict=True)
        ]
        rare = max((1 - r) * rows + r * clusters for r in each)
        pooled = max((1 - self.alike) * rows + self.alike * clusters, rare)
        return float(np.sqrt(rare)), float(np.sqrt(pooled))

    def _rare(self, cells: IntArray, held: csr_array, share: float) -> int:
        """Count the clusters of a group, ``held`` its people, in which the rarer answer occurs."""
        right = self.right[cells]
        rare = right if share <= 0.5 else held - right
        return int((np.asarray(rare.sum(axis=0)).ravel() > 1e-9).sum())


def chance_of(
    right: csr_array, count: csr_array, everyone: tuple[FloatArray, FloatArray], *, drawn: bool
) -> Chance | None:
    """Lay out what cells add in each cluster; None where scores are not 0 or 1.

    Shapes: ``right, count`` [n_cells, n_clusters], ``everyone`` [n_clusters].
    """
    from scipy.sparse import csr_array

    sums, people = (csr_array(row[None, :]) for row in everyone)
    if not are_shares(sums, people):
        return None
    alike = pooled_correlation(sums, people, np.ones(len(everyone[0]), dtype=np.int64)).item()
    of_right, of_count = (
        np.asarray(m.sum(axis=1), dtype=np.float64).ravel() for m in (right, count)
    )
    return Chance(right, count, of_right, of_count, float(alike), drawn)
