"""A design of weighted sums: a sample's weights, strata, population and clusters both ways."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from isolux.stats.design import Design, is_small, laid_out
from isolux.stats.raking import Calibration, Margins, calibration_of, rake_replicates
from isolux.stats.rows import from_dense, some_rows
from isolux.stats.sampling import Strata, inner, products_of, rao_wu, rao_wu_in_parts
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.weighted_means import HALF, together

if TYPE_CHECKING:
    from scipy.sparse import csr_array


CENSUS = 1e-6
"""The share of a stratum that is left out of a whole population: none, but for divisions."""


@dataclass(frozen=True, slots=True)
class DrawnDesign(Design):
    """The sums of a sample with weights: every unit's columns times its weight.

    Parameters
    ----------
    matrix, copies, distinct_of, n_groups, n_columns
        As in ``Design``; no two clusters are merged, so every ``copies`` is 1.
    squares : csr_array, [n_groups * n_columns, c]
        The same with every unit's weighted columns squared: what independent rows would spread.
    unit_weight : [n_units] float
        The mean of all is 1.
    strata : Strata or None
        None: all clusters were drawn together.
    unweighted : Design
        The same units, each counted once.
    calibration : Calibration, optional
        Of weights that were brought to a population.
    cells : ([c] int, [c] int, [n_units] int), optional
        Where clusters are the cells of two ways: the cluster of each, one way and the other, and
        every unit's cell.
    ways : (DrawnDesign, DrawnDesign), optional
        Where units are in clusters both ways: the same sums by the other way's clusters, and by the
        cells in which both agree.
    """

    squares: csr_array
    unit_weight: FloatArray
    strata: Strata | None
    unweighted: Design
    calibration: Calibration | None = None
    cells: tuple[IntArray, IntArray, IntArray] | None = None
    ways: tuple[DrawnDesign, DrawnDesign] | None = None

    def products(self, groups: IntArray, columns: tuple[int, ...]) -> FloatArray:
        """Sum the products of columns of groups over clusters: ``[k g, k g]`` of k columns."""
        at = np.concatenate([groups * self.n_columns + column for column in columns])
        own = products_of(self._left_of(at), self.strata)
        if self.ways is None:
            return own
        return together(own, *(way.products(groups, columns) for way in self.ways))

    def inner(self, groups: IntArray, one: int, two: int) -> FloatArray:
        """Sum the products of two columns of the same group over clusters: ``[g]``."""
        own = inner(self._left(groups, one), self._left(groups, two), self.strata)
        if self.ways is None:
            return own
        return together(own, *(way.inner(groups, one, two) for way in self.ways))

    def varying(self, group: int | IntArray, column: int) -> csr_array:
        """Return what clusters add to one column of groups, as far as it is left to chance."""
        from scipy.sparse import csr_array, hstack

        rows = self._left(group, column)
        if self.ways is None:
            return rows
        return csr_array(hstack([rows, self.ways[0].varying(group, column)]))

    def _left(self, group: int | IntArray, column: int) -> csr_array:
        return self._left_of(np.atleast_1d(group) * self.n_columns + column)

    def _left_of(self, at: IntArray) -> csr_array:
        rows = some_rows(self.matrix, at)
        return rows if self.calibration is None else self.calibration.left(rows, at)

    @property
    def each_way(self) -> tuple[DrawnDesign, ...]:
        """The designs of one way's clusters, of the other's and of the cells of both."""
        return (replace(self, ways=None), *(self.ways or ()))

    @property
    def cell_of_unit(self) -> IntArray:
        """Every unit's cell, where clusters are both ways."""
        assert self.ways is not None and self.ways[1].cells is not None  # noqa: S101, PT018
        return self.ways[1].cells[2]

    @property
    def is_plain(self) -> bool:
        """Whether the sums themselves are what varies: not calibrated, clusters one way."""
        return self.calibration is None and self.ways is None

    def times(self, rng: np.random.Generator, replicates: int) -> Iterator[FloatArray]:
        """Draw how often each cluster, or cell of two ways, counts in replicates: ``[c, part]``."""
        if self.ways is None:
            yield from rao_wu_in_parts(rng, self.n_clusters, self.strata, replicates)
            return
        # One way is drawn in all replicates, within its strata, then the other.
        one = rao_wu(rng, self.n_clusters, self.strata, replicates)
        first, second, _ = self.ways[1].cells or (np.zeros(0, dtype=np.int64),) * 3
        at = 0
        for two in rao_wu_in_parts(rng, self.ways[0].n_clusters, None, replicates):
            own = one[:, at : at + two.shape[1]]
            at += two.shape[1]
            yield np.asarray(1.0 + HALF * (own[first] - 1.0) + HALF * (two[second] - 1.0))

    def replicates_of_units(
        self, rng: np.random.Generator, replicates: int
    ) -> Iterator[FloatArray]:
        """Draw units' weights in replicates, brought to the population: ``[n_units, part]``."""
        assert self.calibration is not None  # noqa: S101 - else clusters' weights are enough
        of = self.calibration
        totals = [
            np.bincount(code, weights=self.unit_weight, minlength=size).astype(np.float64)
            for code, size in zip(of.margins.codes, of.margins.sizes, strict=True)
        ]
        cluster_of = of.cluster_of if self.ways is None else self.cell_of_unit
        for times in self.times(rng, replicates):
            drawn = self.unit_weight[:, None] * times[cluster_of]
            yield rake_replicates(drawn, of.margins, totals)

    def rows_of_squares(self, group: int | IntArray, column: int) -> csr_array:
        """Return what clusters add to the squares of one column of groups, ``[g, c]``."""
        return some_rows(self.squares, group * self.n_columns + column)


def is_census(design: Design) -> bool:
    """Tell whether all of a finite population was drawn, so that nothing is left to chance."""
    if not isinstance(design, DrawnDesign) or design.strata is None:
        return False
    left = design.strata.left
    return left is not None and bool((left <= CENSUS).all())


def strata_of(design: Design) -> Strata | None:
    """Return the strata of a sample that has some."""
    return design.strata if isinstance(design, DrawnDesign) else None


def strata_of_varying(design: Design) -> Strata | None:
    """Return the strata of what ``varying`` returns: of both ways' clusters, side by side."""
    if not isinstance(design, DrawnDesign) or design.ways is None:
        return strata_of(design)
    ways = (design, design.ways[0])
    if all(way.strata is None for way in ways):
        return None
    together = [way.strata or _one_stratum(way.n_clusters) for way in ways]
    of = np.concatenate([together[0].of, together[1].of + len(together[0].drawn)])
    return Strata(of, np.concatenate([strata.drawn for strata in together]))


def _one_stratum(clusters: int) -> Strata:
    return Strata(np.zeros(clusters, dtype=np.int64), np.array([clusters]))


def unweighted(design: Design) -> Design:
    """Return the design that counts each unit once: for numbers of people and clusters."""
    return design.unweighted if isinstance(design, DrawnDesign) else design


def build_drawn(
    columns: csr_array,
    cluster_of: IntArray,
    entries: tuple[IntArray, IntArray],
    unweighted: Design,
    weight: FloatArray,
    strata: Strata | None,
    margins: Margins | None = None,
) -> DrawnDesign:
    """Sum the weighted columns of each group's units by cluster.

    Shapes: ``columns`` [n_units, n_columns], ``cluster_of`` [n_units], ``entries`` [m], ``weight``
    [n_units].
    """
    group_of, unit_of = entries
    n_clusters = int(cluster_of.max(initial=-1)) + 1
    shape = unweighted.n_groups * unweighted.n_columns, n_clusters
    sizes = unweighted.n_columns, unweighted.n_groups, n_clusters
    if margins is None and is_small(len(weight), *sizes):
        matrix, squares = _laid_out(columns, cluster_of, entries, weight, unweighted.n_groups)
        return _designed(matrix, squares, unweighted, weight, strata)
    spread_out = columns[unit_of].tocoo()
    unit = unit_of[spread_out.row]
    # Half as long as numbers of other sums: these are most of what a large sample takes.
    short = np.int32 if max(shape) <= np.iinfo(np.int32).max else np.int64
    first_row = (group_of * unweighted.n_columns).astype(short)
    at = first_row[spread_out.row] + spread_out.col.astype(short), cluster_of.astype(short)[unit]
    data = spread_out.data * weight[unit]
    del spread_out
    calibration = None
    if margins is not None:
        calibration = calibration_of(margins, weight, cluster_of, (data, at[0], unit, shape[0]))
        strata = strata or _one_stratum(n_clusters)
    matrix = _summed(data, at, shape)
    squares = _squares(matrix, data, at)
    return _designed(matrix, squares, unweighted, weight, strata, calibration)


def _designed(
    matrix: csr_array,
    squares: csr_array,
    unweighted: Design,
    weight: FloatArray,
    strata: Strata | None,
    calibration: Calibration | None = None,
) -> DrawnDesign:
    n_clusters = matrix.shape[1]
    return DrawnDesign(
        matrix,
        np.ones(n_clusters, dtype=np.int64),
        np.arange(n_clusters),
        unweighted.n_groups,
        unweighted.n_columns,
        squares,
        weight,
        strata,
        unweighted,
        calibration,
    )


def _laid_out(
    columns: csr_array,
    cluster_of: IntArray,
    entries: tuple[IntArray, IntArray],
    weight: FloatArray,
    n_groups: int,
) -> tuple[csr_array, csr_array]:
    """Sum weighted columns and their squares by cluster, all cells laid out."""
    weighted = columns.toarray() * weight[:, None]
    sums, squares = (laid_out(of, cluster_of, entries, n_groups) for of in (weighted, weighted**2))
    return from_dense(sums), from_dense(squares)


def with_other_way(
    design: DrawnDesign,
    columns: csr_array,
    clusters: tuple[IntArray, IntArray],
    entries: tuple[IntArray, IntArray],
    plain: Design,
    margins: Margins | None = None,
) -> DrawnDesign:
    """Add the clusters of another way to a design, and the cells in which both agree.

    Shapes: ``columns`` [n_units, n_columns], ``clusters`` [n_units], ``entries`` [m].
    """
    one, two = clusters
    pairs, of = np.unique(np.stack([one, two], axis=1), axis=0, return_inverse=True)
    cell = np.asarray(of).ravel()
    weight = design.unit_weight
    other = build_drawn(columns, two, entries, plain, weight, None, margins)
    both = build_drawn(columns, cell, entries, plain, weight, None, margins)
    both = replace(both, cells=(pairs[:, 0], pairs[:, 1], cell))
    return replace(design, ways=(other, both))


def _squares(matrix: csr_array, data: FloatArray, at: tuple[IntArray, IntArray]) -> csr_array:
    """Sum the squares of what a matrix sums; where every cluster is one unit, square it."""
    from scipy.sparse import csr_array

    if matrix.nnz < len(data):
        return _summed(data**2, at, matrix.shape)
    return csr_array((matrix.data**2, matrix.indices, matrix.indptr), shape=matrix.shape)


def _summed(data: FloatArray, at: tuple[IntArray, IntArray], shape: tuple[int, int]) -> csr_array:
    from scipy.sparse import coo_array, csr_array

    matrix = csr_array(coo_array((data, at), shape=shape))
    matrix.sum_duplicates()
    matrix.sort_indices()
    return matrix
