"""Values of groups, of explanatory values and of both at once, on the data and on replicates.

Cells of one sensitive attribute: each of its groups; each value of each explanatory attribute,
among the people who are in a group at all; and each group at each value. A person is in several
cells, so that all are read off one pass over people or detections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses._sampled import Sampled
from isolux.analyses.confounders.chance import Chance, chance_of
from isolux.analyses.confounders.groups import Sensitive, Strata
from isolux.stats.design import IntArray
from isolux.stats.sampling import rao_wu
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import blocks, multinomial, poisson

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = ["Cells", "Layout", "laid_out", "means_of_cells", "on_replicates", "weighed"]

_WEIGHTS = {"multinomial": multinomial, "poisson": poisson}
_N = TypeVar("_N", np.float64, np.int64)
Draw = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


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
    judged = np.unique(sensitive.unit)
    unit, cell = [sensitive.unit], [sensitive.group]
    peers = [np.zeros(g, dtype=np.int64)]
    starts, at, n_sets = [], g, 1
    for one in strata:
        k = len(one.values)
        starts.append(at)
        known = judged[one.code[judged] >= 0]
        unit.append(known)
        cell.append(at + one.code[known])
        both = one.code[sensitive.unit] >= 0
        unit.append(sensitive.unit[both])
        cell.append(at + k + sensitive.group[both] * k + one.code[sensitive.unit[both]])
        peers += [np.full(k, n_sets), np.tile(n_sets + 1 + np.arange(k), g)]
        at, n_sets = at + k + g * k, n_sets + 1 + k
    return Layout(
        sensitive, tuple(strata), np.concatenate(unit), np.concatenate(cell),
        np.concatenate(peers), tuple(starts), at,
    )  # fmt: skip


def on_replicates(
    read: Draw, n_clusters: int, settings: tuple[int, int, str], sampled: Sampled | None = None
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
    n_units = 1 + max(int(layout.unit.max(initial=-1)), int(known["unit"].max() or 0))  # type: ignore[arg-type]
    row_of = np.full(n_units, -1, dtype=np.int64)
    row_of[known["unit"].to_numpy()] = np.arange(known.height)
    row = row_of[layout.unit]
    cell, row = layout.cell[row >= 0], row[row >= 0]
    cluster = known["cluster"].to_numpy()[row]
    shape = (layout.n_cells, n_clusters)
    each = np.ones(len(row))
    if sampled is not None:
        each = sampled.weight[known["unit"].to_numpy()[row]]
    count = csr_array(coo_array((each, (cell, cluster)), shape))
    total = csr_array(coo_array((each * known["value"].to_numpy()[row], (cell, cluster)), shape))

    def read(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        people, sums = (np.asarray(m @ weights).T for m in (count, total))
        mean = np.divide(sums, people, out=np.full(people.shape, np.nan), where=people > 0)
        return mean, people

    value, _ = read(np.ones((n_clusters, 1)))
    replicates, weight = on_replicates(read, n_clusters, settings, sampled)
    place, score = known["cluster"].to_numpy(), known["value"].to_numpy()
    whole = [np.bincount(place, w, n_clusters).astype(np.float64) for w in (score, None)]
    found = Cells(
        value[0],
        np.bincount(cell, minlength=layout.n_cells),
        np.diff(count.indptr).astype(np.int64),
        replicates,
        weight,
        chance=chance_of(total, count, (whole[0], whole[1]), drawn=sampled is not None)
        if np.isin(score, (0.0, 1.0)).all()
        else None,
    )
    if sampled is None:
        return found
    square = np.bincount(cell, each**2, minlength=layout.n_cells).astype(np.float64)
    return weighed(found, count, square, sampled)


def weighed(cells: Cells, count: csr_array, square: FloatArray, sampled: Sampled) -> Cells:
    """Add for how many people cells stand, and what these and their clusters are worth.

    Shapes: ``count`` [n_cells, n_clusters], ``square`` [n_cells].
    """
    mass = np.asarray(count.sum(axis=1), dtype=np.float64).ravel()
    of_clusters = np.asarray(count.power(2).sum(axis=1), dtype=np.float64).ravel()
    strata = 1 if sampled.strata is None else len(sampled.strata.drawn)

    def worth(sums: FloatArray) -> FloatArray:
        return np.divide(mass**2, sums, out=np.zeros_like(mass), where=sums > 0)

    free = np.maximum(worth(of_clusters) - (strata - 1.0), 1.0)
    # Fifty of one weight are worth fifty, whatever the last digit says.
    return replace(cells, mass=mass, worth=worth(square) + 1e-9, free=free)
