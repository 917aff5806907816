"""Values of groups, of explanatory values and of both at once, on the data and on replicates.

Cells of one sensitive attribute: each of its groups; each value of each explanatory attribute,
among the people who are in a group at all; and each group at each value. A person is in several
cells, so that all are read off one pass over people or detections.

A cell in which all are right has the same value on every replicate, so replicates alone claim that
a small group without a mistake is certainly better. ``Chance`` gives the smallest standard errors
that a gap of shares can have: with variances at the pooled share of each value, or a group's own
where it has many of the rarer answer, and photos of a cluster as alike as few mistakes leave open,
and as everyone's are with the weight that the audit gives these: own variance^.6 times that^.4.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses._sampled import Sampled
from isolux.analyses.confounders.groups import Sensitive, Strata
from isolux.stats.constants import HALF_OWN_ANSWERS
from isolux.stats.design import IntArray
from isolux.stats.sampling import rao_wu
from isolux.stats.shares import are_shares, pooled_correlation
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import blocks, multinomial, poisson

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_WEIGHTS = {"multinomial": multinomial, "poisson": poisson}
_N = TypeVar("_N", np.float64, np.int64)


@dataclass(frozen=True, slots=True)
class Layout:
    """Which cells there are, and who is in each.

    Parameters
    ----------
    sensitive : Sensitive
    strata : tuple of Strata
    unit, cell : [n] int
        A unit and a cell it is in.
    peers : [n_cells] int
        Cells of one number are compared with one another, and share the N of normalised precision:
        the groups; the values of an attribute; the groups within a value.
    starts : tuple of int
        For each explanatory attribute, where its values' cells begin; its groups' follow.
    n_cells : int
    """

    sensitive: Sensitive
    strata: tuple[Strata, ...]
    unit: IntArray
    cell: IntArray
    peers: IntArray
    starts: tuple[int, ...]
    n_cells: int

    def of_groups(self, cells: npt.NDArray[_N]) -> npt.NDArray[_N]:
        """Take the groups' cells: ``[..., a]``."""
        return cells[..., : len(self.sensitive.groups)]

    def of_values(self, cells: npt.NDArray[_N], s: int) -> npt.NDArray[_N]:
        """Take the cells of the values of one explanatory attribute: ``[..., e]``."""
        start = self.starts[s]
        return cells[..., start : start + len(self.strata[s].values)]

    def of_both(self, cells: npt.NDArray[_N], s: int) -> npt.NDArray[_N]:
        """Take the cells of groups at values: ``[..., a, e]``."""
        k, g = len(self.strata[s].values), len(self.sensitive.groups)
        start = self.starts[s] + k
        return cells[..., start : start + g * k].reshape(*cells.shape[:-1], g, k)


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
        index = np.stack(cells)
        n, mass, sums = worth[index], self.mass[index], self.sums[index]
        share, pooled = sums / mass, sums.sum(axis=0) / mass.sum(axis=0)
        of_group = sums.sum(axis=1) / mass.sum(axis=1)
        rarer = np.minimum(of_group, 1.0 - of_group)
        if self.drawn and (rarer > 0).all():
            return 0.0, 0.0
        counts = [self.count[group_cells] for group_cells in cells]
        by_cluster = [np.asarray(part.sum(axis=0)).ravel() for part in counts]
        size = np.array([(row**2).sum() / row.sum() for row in by_cluster])
        n_rarer = rarer * n.sum(axis=1) / (1.0 + np.maximum(size - 1.0, 0.0) * self.alike)
        own_weight = (n_rarer / (n_rarer + HALF_OWN_ANSWERS))[:, None]
        spread = own_weight * share * (1.0 - share) + (1.0 - own_weight) * pooled * (1.0 - pooled)
        weight = np.stack(mix)
        rows = (weight**2 * spread / n).sum()
        parts = [
            np.sqrt((w * s).sum()) * np.asarray((w / m) @ part).ravel()
            for w, s, m, part in zip(weight, spread, mass, counts, strict=True)
        ]
        clusters = float(((parts[0] - parts[1]) ** 2).sum())
        rare = max(
            (1 - r) * rows + r * clusters
            for r in (
                1.0 / (1.0 + self._count_rare(group_cells, part, p) ** 2)
                for group_cells, part, p in zip(cells, counts, of_group, strict=True)
            )
        )
        pooled = max((1 - self.alike) * rows + self.alike * clusters, rare)
        return float(np.sqrt(rare)), float(np.sqrt(pooled))

    def _count_rare(self, cells: IntArray, count: csr_array, share: float) -> int:
        """Count the clusters of a group, of ``count`` people, in which the rarer answer occurs."""
        right = self.right[cells]
        rare = right if share <= 0.5 else count - right
        return int((np.asarray(rare.sum(axis=0)).ravel() > 1e-9).sum())


@dataclass(frozen=True, slots=True)
class Cells:
    """What cells got: ``[n_cells]``, and ``[r, n_cells]`` on replicates; NaN where undefined.

    ``units`` and ``clusters`` count people; ``weight`` is theirs on replicates. Of a sample with
    weights ``mass`` is for how many people those of a cell stand, ``worth`` how many of one weight
    would tell as much, and ``free`` the same of clusters, less strata. ``chance`` is of scores that
    are 0 or 1: how sure their gaps can be at the most.
    """

    value: FloatArray
    units: IntArray
    clusters: IntArray
    replicates: FloatArray
    weight: FloatArray
    mass: FloatArray | None = None
    worth: FloatArray | None = None
    free: FloatArray | None = None
    chance: Chance | None = None

    @property
    def people(self) -> FloatArray:
        """What a mix is made of: people, or those for whom they stand."""
        return self.units.astype(np.float64) if self.mass is None else self.mass

    @property
    def enough(self) -> FloatArray:
        """What is held against the least size of a group or cell."""
        return self.units.astype(np.float64) if self.worth is None else self.worth

    @property
    def independent(self) -> FloatArray:
        """Clusters that an interval may rest on."""
        return self.clusters.astype(np.float64) if self.free is None else self.free


def laid_out(sensitive: Sensitive, strata: Sequence[Strata]) -> Layout:
    """Lay out the cells of a sensitive attribute and explanatory ones.

    Examples
    --------
    >>> tone = Sensitive("tone", ("a", "b"), np.array([0, 1]), np.array([0, 1]))
    >>> size = Strata(("size",), ("small", "large"), np.array([1, 1, 0]), False)
    >>> layout = laid_out(tone, [size])
    >>> layout.n_cells, layout.starts, layout.peers.tolist()
    (8, (2,), [0, 0, 1, 1, 2, 3, 2, 3])
    >>> layout.of_both(np.bincount(layout.cell, minlength=8), 0).tolist()
    [[0, 1], [0, 1]]
    """
    g = len(sensitive.groups)
    grouped = np.unique(sensitive.unit)
    unit, cell = [sensitive.unit], [sensitive.group]
    peers = [np.zeros(g, dtype=np.int64)]
    starts, start, n_sets = [], g, 1
    for one in strata:
        k = len(one.values)
        starts.append(start)
        of_value = grouped[one.code[grouped] >= 0]
        is_known = one.code[sensitive.unit] >= 0
        of_both, group = sensitive.unit[is_known], sensitive.group[is_known]
        unit += [of_value, of_both]
        cell += [start + one.code[of_value], start + k + group * k + one.code[of_both]]
        peers += [np.full(k, n_sets), np.tile(n_sets + 1 + np.arange(k), g)]
        start, n_sets = start + k + g * k, n_sets + 1 + k
    units, cells, peer_sets = (np.concatenate(parts) for parts in (unit, cell, peers))
    return Layout(sensitive, tuple(strata), units, cells, peer_sets, tuple(starts), start)


def on_replicates(
    read: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    n_clusters: int,
    settings: tuple[int, int, str],
    sampled: Sampled | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Read cells on resampled clusters, a block of replicates at a time."""
    replicates, seed, law = settings
    each = np.ones(n_clusters, dtype=np.int64)
    parts = []
    for rng, size in blocks(replicates, seed, "rank bootstrap"):
        if sampled is None:
            drawn = _WEIGHTS[law](rng, each, size)
        else:
            drawn = rao_wu(rng, n_clusters, sampled.strata, size)
        parts.append(read(np.ascontiguousarray(drawn.T).T))  # a replicate's lie side by side
    values, people = zip(*parts, strict=True)
    return np.concatenate(values), np.concatenate(people)


def means_of_cells(
    layout: Layout,
    scored: pl.DataFrame,
    n_clusters: int,
    settings: tuple[int, int, str],
    sampled: Sampled | None = None,
) -> Cells:
    """Average people's scores in every cell."""
    from scipy.sparse import coo_array, csr_array

    known = scored.drop_nulls("value")
    units, clusters, score = (known[name].to_numpy() for name in ("unit", "cluster", "value"))
    row_of = np.full(1 + max(layout.unit.max(initial=-1), units.max(initial=0)), -1, dtype=np.int64)
    row_of[units] = np.arange(known.height)
    row = row_of[layout.unit]
    cell, row = layout.cell[row >= 0], row[row >= 0]
    cluster, shape = clusters[row], (layout.n_cells, n_clusters)
    each = np.ones(len(row)) if sampled is None else sampled.weight[units[row]]
    count = csr_array(coo_array((each, (cell, cluster)), shape))
    total = csr_array(coo_array((each * score[row], (cell, cluster)), shape))

    def read(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        people, sums = (np.asarray(m @ weights).T for m in (count, total))
        mean = np.divide(sums, people, out=np.full(people.shape, np.nan), where=people > 0)
        return mean, people

    cells = Cells(
        read(np.ones((n_clusters, 1)))[0][0],
        np.bincount(cell, minlength=layout.n_cells),
        np.diff(count.indptr).astype(np.int64),
        *on_replicates(read, n_clusters, settings, sampled),
    )
    if np.isin(score, (0.0, 1.0)).all():
        right, n = (np.bincount(clusters, w, n_clusters).astype(np.float64) for w in (score, None))
        cells = replace(cells, chance=_chance_of(total, count, right, n, sampled is not None))
    return cells if sampled is None else weighed(cells, count, cell, each, sampled)


def weighed(
    cells: Cells, count: csr_array, cell: IntArray, weight: FloatArray, sampled: Sampled
) -> Cells:
    """Add for how many people cells stand, and what these and their clusters are worth.

    Shapes: ``count`` [n_cells, n_clusters], ``cell, weight`` [n].
    """
    mass = np.asarray(count.sum(axis=1), dtype=np.float64).ravel()
    of_clusters = np.asarray(count.power(2).sum(axis=1), dtype=np.float64).ravel()
    of_units = np.bincount(cell, weight**2, minlength=len(mass)).astype(np.float64)
    n_strata = 1 if sampled.strata is None else len(sampled.strata.drawn)
    n_effective, n_clusters = (
        np.divide(mass**2, squares, out=np.zeros_like(mass), where=squares > 0)
        for squares in (of_units, of_clusters)
    )
    free = np.maximum(n_clusters - (n_strata - 1.0), 1.0)
    # Fifty of one weight are worth fifty, whatever the last digit says.
    return replace(cells, mass=mass, worth=n_effective + 1e-9, free=free)


def _chance_of(
    right: csr_array, count: csr_array, score: FloatArray, people: FloatArray, drawn: bool
) -> Chance | None:
    """Lay out what cells add in each cluster; None where scores are not 0 or 1.

    Shapes: ``right, count`` [n_cells, n_clusters], ``score, people`` [n_clusters], of everyone.
    """
    from scipy.sparse import csr_array

    everyone = csr_array(score[None, :]), csr_array(people[None, :])
    if not are_shares(*everyone):
        return None
    alike = pooled_correlation(*everyone, np.ones(len(score), dtype=np.int64)).item()
    sums, mass = (np.asarray(m.sum(axis=1), dtype=np.float64).ravel() for m in (right, count))
    return Chance(right, count, sums, mass, float(alike), drawn)
