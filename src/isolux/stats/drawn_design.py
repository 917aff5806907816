"""Cluster sums of a survey sample: weights, strata, calibration and two-way clustering."""

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
"""Unsampled fraction of a stratum up to which it is a census; above 0, as it is divided by."""


@dataclass(frozen=True, slots=True)
class DrawnDesign(Design):
    """The cluster sums of a survey sample: every unit's columns times its weight.

    Parameters
    ----------
    matrix, copies, distinct_of, n_groups, n_columns
        As in ``Design``; clusters are not merged, so every multiplicity is 1.
    squares : csr_array, [n_groups * n_columns, c]
        The same sums of squared weighted values: the variance of independent rows.
    unit_weight : [n_units] float
        Weights with mean 1.
    strata : Strata or None
        None: all clusters are one sample without strata.
    unweighted : Design
        The same units, each counted once.
    calibration : Calibration, optional
        Of weights calibrated to population margins.
    cells : ([c] int, [c] int, [n_units] int), optional
        Where clusters are the cells of a two-way clustering: each cell's cluster of the first and
        of the second kind, and every unit's cell.
    ways : (DrawnDesign, DrawnDesign), optional
        With two-way clustering: the same sums by the second kind of clusters, and by cells.
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
        row_index = np.concatenate([groups * self.n_columns + column for column in columns])
        products = products_of(self._row_residuals(row_index), self.strata)
        if self.ways is None:
            return products
        return together(
            products, *(clustering.products(groups, columns) for clustering in self.ways)
        )

    def inner(self, groups: IntArray, first_column: int, second_column: int) -> FloatArray:
        """Sum the products of two columns of the same group over clusters: ``[g]``."""
        products = inner(
            self._group_residuals(groups, first_column),
            self._group_residuals(groups, second_column),
            self.strata,
        )
        if self.ways is None:
            return products
        return together(
            products,
            *(clustering.inner(groups, first_column, second_column) for clustering in self.ways),
        )

    def varying(self, group: int | IntArray, column: int) -> csr_array:
        """Return clusters' contributions to a column of groups, less what calibration explains."""
        from scipy.sparse import csr_array, hstack

        rows = self._group_residuals(group, column)
        if self.ways is None:
            return rows
        return csr_array(hstack([rows, self.ways[0].varying(group, column)]))

    def _group_residuals(self, group: int | IntArray, column: int) -> csr_array:
        return self._row_residuals(np.atleast_1d(group) * self.n_columns + column)

    def _row_residuals(self, row_index: IntArray) -> csr_array:
        rows = some_rows(self.matrix, row_index)
        return rows if self.calibration is None else self.calibration.left(rows, row_index)

    @property
    def each_way(self) -> tuple[DrawnDesign, ...]:
        """The sums by the first kind of clusters, by the second, and by their cells."""
        return (replace(self, ways=None), *(self.ways or ()))

    @property
    def cell_of_unit(self) -> IntArray:
        """Every unit's cell of a two-way clustering."""
        assert self.ways is not None and self.ways[1].cells is not None  # noqa: S101, PT018
        return self.ways[1].cells[2]

    @property
    def is_plain(self) -> bool:
        """Whether the variance is that of the sums themselves: no calibration, one-way clusters."""
        return self.calibration is None and self.ways is None

    def times(self, rng: np.random.Generator, replicates: int) -> Iterator[FloatArray]:
        """Draw replicate weights of clusters, or of cells of two kinds: ``[c, batch]``."""
        if self.ways is None:
            yield from rao_wu_in_parts(rng, self.n_clusters, self.strata, replicates)
            return
        # Owen (2007): both kinds of clusters are resampled, the first within its strata.
        first_weights = rao_wu(rng, self.n_clusters, self.strata, replicates)
        first, second, _ = self.ways[1].cells or (np.zeros(0, dtype=np.int64),) * 3
        start = 0
        for second_weights in rao_wu_in_parts(rng, self.ways[0].n_clusters, None, replicates):
            batch = first_weights[:, start : start + second_weights.shape[1]]
            start += second_weights.shape[1]
            yield np.asarray(
                1.0 + HALF * (batch[first] - 1.0) + HALF * (second_weights[second] - 1.0)
            )

    def replicates_of_units(
        self, rng: np.random.Generator, replicates: int
    ) -> Iterator[FloatArray]:
        """Draw replicate weights of units, calibrated to the population: ``[n_units, batch]``."""
        assert self.calibration is not None  # noqa: S101 - else clusters' weights are enough
        calibration = self.calibration
        totals = [
            np.bincount(code, weights=self.unit_weight, minlength=size).astype(np.float64)
            for code, size in zip(calibration.margins.codes, calibration.margins.sizes, strict=True)
        ]
        cluster_index = calibration.cluster_of if self.ways is None else self.cell_of_unit
        for cluster_weights in self.times(rng, replicates):
            replicate_weights = self.unit_weight[:, None] * cluster_weights[cluster_index]
            yield rake_replicates(replicate_weights, calibration.margins, totals)

    def rows_of_squares(self, group: int | IntArray, column: int) -> csr_array:
        """Return clusters' sums of squared values of one column of groups, ``[g, c]``."""
        return some_rows(self.squares, group * self.n_columns + column)


def is_census(cluster_sums: Design) -> bool:
    """Check whether a finite population was sampled completely: no sampling error."""
    if not isinstance(cluster_sums, DrawnDesign) or cluster_sums.strata is None:
        return False
    unsampled = cluster_sums.strata.left
    return unsampled is not None and bool((unsampled <= CENSUS).all())


def strata_of(cluster_sums: Design) -> Strata | None:
    """Return the strata of a survey sample; None: it has none."""
    return cluster_sums.strata if isinstance(cluster_sums, DrawnDesign) else None


def strata_of_varying(cluster_sums: Design) -> Strata | None:
    """Return the strata of residual rows: with two-way clustering, of both kinds, concatenated."""
    if not isinstance(cluster_sums, DrawnDesign) or cluster_sums.ways is None:
        return strata_of(cluster_sums)
    clusterings = (cluster_sums, cluster_sums.ways[0])
    if all(clustering.strata is None for clustering in clusterings):
        return None
    strata_by_clustering = [
        clustering.strata or _one_stratum(clustering.n_clusters) for clustering in clusterings
    ]
    stratum_index = np.concatenate(
        [
            strata_by_clustering[0].of,
            strata_by_clustering[1].of + len(strata_by_clustering[0].drawn),
        ]
    )
    return Strata(stratum_index, np.concatenate([strata.drawn for strata in strata_by_clustering]))


def _one_stratum(n_clusters: int) -> Strata:
    return Strata(np.zeros(n_clusters, dtype=np.int64), np.array([n_clusters]))


def unweighted(cluster_sums: Design) -> Design:
    """Return the sums that count each unit once, for numbers of people and clusters."""
    return cluster_sums.unweighted if isinstance(cluster_sums, DrawnDesign) else cluster_sums


def build_drawn(
    columns: csr_array,
    cluster_index: IntArray,
    entries: tuple[IntArray, IntArray],
    unweighted: Design,
    weight: FloatArray,
    strata: Strata | None,
    margins: Margins | None = None,
) -> DrawnDesign:
    """Sum the weighted columns of each group's units by cluster.

    Shapes: ``columns`` [n_units, n_columns], ``cluster_index`` [n_units], ``entries`` [m],
    ``weight``
    [n_units].
    """
    group_index, unit_index = entries
    n_clusters = int(cluster_index.max(initial=-1)) + 1
    shape = unweighted.n_groups * unweighted.n_columns, n_clusters
    sizes = unweighted.n_columns, unweighted.n_groups, n_clusters
    if margins is None and is_small(len(weight), *sizes):
        matrix, squared_sums = _laid_out(
            columns, cluster_index, entries, weight, unweighted.n_groups
        )
        return _build_sums(matrix, squared_sums, unweighted, weight, strata)
    membership_values = columns[unit_index].tocoo()
    unit_of_value = unit_index[membership_values.row]
    # 32-bit indices halve the memory, most of which a large sample needs here.
    index_type = np.int32 if max(shape) <= np.iinfo(np.int32).max else np.int64
    first_row = (group_index * unweighted.n_columns).astype(index_type)
    coordinates = (
        first_row[membership_values.row] + membership_values.col.astype(index_type),
        cluster_index.astype(index_type)[unit_of_value],
    )
    weighted_values = membership_values.data * weight[unit_of_value]
    del membership_values
    calibration = None
    if margins is not None:
        calibration = calibration_of(
            margins,
            weight,
            cluster_index,
            (weighted_values, coordinates[0], unit_of_value, shape[0]),
        )
        strata = strata or _one_stratum(n_clusters)
    matrix = _sum_entries(weighted_values, coordinates, shape)
    squared_sums = _squares(matrix, weighted_values, coordinates)
    return _build_sums(matrix, squared_sums, unweighted, weight, strata, calibration)


def _build_sums(
    matrix: csr_array,
    squared_sums: csr_array,
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
        squared_sums,
        weight,
        strata,
        unweighted,
        calibration,
    )


def _laid_out(
    columns: csr_array,
    cluster_index: IntArray,
    entries: tuple[IntArray, IntArray],
    weight: FloatArray,
    n_groups: int,
) -> tuple[csr_array, csr_array]:
    """Sum weighted columns and their squares by cluster into dense matrices."""
    weighted = columns.toarray() * weight[:, None]
    sums, squared_sums = (
        laid_out(values, cluster_index, entries, n_groups) for values in (weighted, weighted**2)
    )
    return from_dense(sums), from_dense(squared_sums)


def with_other_way(
    survey_sums: DrawnDesign,
    columns: csr_array,
    clusters: tuple[IntArray, IntArray],
    entries: tuple[IntArray, IntArray],
    unweighted: Design,
    margins: Margins | None = None,
) -> DrawnDesign:
    """Add a second kind of clusters to the sums, and the cells of both.

    Shapes: ``columns`` [n_units, n_columns], ``clusters`` [n_units], ``entries`` [m].
    """
    first_clusters, second_clusters = clusters
    pairs, inverse = np.unique(
        np.stack([first_clusters, second_clusters], axis=1), axis=0, return_inverse=True
    )
    cell_index = np.asarray(inverse).ravel()
    weight = survey_sums.unit_weight
    second_sums = build_drawn(columns, second_clusters, entries, unweighted, weight, None, margins)
    cell_sums = build_drawn(columns, cell_index, entries, unweighted, weight, None, margins)
    cell_sums = replace(cell_sums, cells=(pairs[:, 0], pairs[:, 1], cell_index))
    return replace(survey_sums, ways=(second_sums, cell_sums))


def _squares(
    matrix: csr_array, values: FloatArray, coordinates: tuple[IntArray, IntArray]
) -> csr_array:
    """Sum squared values by cluster; where every cluster is one unit, square the matrix."""
    from scipy.sparse import csr_array

    if matrix.nnz < len(values):
        return _sum_entries(values**2, coordinates, matrix.shape)
    return csr_array((matrix.data**2, matrix.indices, matrix.indptr), shape=matrix.shape)


def _sum_entries(
    values: FloatArray, coordinates: tuple[IntArray, IntArray], shape: tuple[int, int]
) -> csr_array:
    from scipy.sparse import coo_array, csr_array

    matrix = csr_array(coo_array((values, coordinates), shape=shape))
    matrix.sum_duplicates()
    matrix.sort_indices()
    return matrix
