"""Cluster sums of a survey sample: weights, strata, calibration and two-way clustering."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from isolux.stats.cluster_sums import ClusterSums, is_dense_faster, sum_dense
from isolux.stats.raking import (
    Calibration,
    Margins,
    fit_calibration_regression,
    rake_replicates_to_totals,
)
from isolux.stats.sampling import (
    Strata,
    draw_rao_wu_weight_batches,
    draw_rao_wu_weights,
    stratified_cross_products,
    stratified_row_products,
)
from isolux.stats.sparse_rows import dense_to_csr, take_matrix_rows
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.weighted_means import TWO_WAY_WEIGHT, two_way_inclusion_exclusion

if TYPE_CHECKING:
    from scipy.sparse import csr_array


MAX_CENSUS_FRACTION = 1e-6
"""Unsampled fraction of a stratum up to which it is a census; above 0, as it is divided by."""


@dataclass(frozen=True, slots=True)
class SurveyClusterSums(ClusterSums):
    """The cluster sums of a survey sample: every unit's columns times its weight.

    Parameters
    ----------
    matrix, multiplicity, distinct_index, n_groups, n_columns
        As in ``ClusterSums``; clusters are not merged, so every multiplicity is 1.
    squared_sums : csr_array, [n_groups * n_columns, c]
        The same sums of squared weighted values: the variance of independent rows.
    unit_weight : [n_units] float
        Weights with mean 1.
    strata : Strata or None
        None: all clusters are one sample without strata.
    unweighted : ClusterSums
        The same units, each counted once.
    calibration : Calibration, optional
        Of weights calibrated to population margins.
    two_way_cells : ([c] int, [c] int, [n_units] int), optional
        Where clusters are the cells of a two-way clustering: each cell's cluster of the first and
        of the second kind, and every unit's cell.
    other_clusterings : (SurveyClusterSums, SurveyClusterSums), optional
        With two-way clustering: the same sums by the second kind of clusters, and by cells.
    """

    squared_sums: csr_array
    unit_weight: FloatArray
    strata: Strata | None
    unweighted: ClusterSums
    calibration: Calibration | None = None
    two_way_cells: tuple[IntArray, IntArray, IntArray] | None = None
    other_clusterings: tuple[SurveyClusterSums, SurveyClusterSums] | None = None

    def cross_products(self, groups: IntArray, columns: tuple[int, ...]) -> FloatArray:
        """Sum the products of columns of groups over clusters: ``[k g, k g]`` of k columns."""
        row_index = np.concatenate([groups * self.n_columns + column for column in columns])
        products = stratified_cross_products(self._row_residuals(row_index), self.strata)
        if self.other_clusterings is None:
            return products
        return two_way_inclusion_exclusion(
            products,
            *(clustering.cross_products(groups, columns) for clustering in self.other_clusterings),
        )

    def column_products(
        self, groups: IntArray, first_column: int, second_column: int
    ) -> FloatArray:
        """Sum the products of two columns of the same group over clusters: ``[g]``."""
        products = stratified_row_products(
            self._group_residuals(groups, first_column),
            self._group_residuals(groups, second_column),
            self.strata,
        )
        if self.other_clusterings is None:
            return products
        return two_way_inclusion_exclusion(
            products,
            *(
                clustering.column_products(groups, first_column, second_column)
                for clustering in self.other_clusterings
            ),
        )

    def cluster_contributions(self, group: int | IntArray, column: int) -> csr_array:
        """Return clusters' contributions to a column of groups, minus what calibration explains."""
        from scipy.sparse import csr_array, hstack

        rows = self._group_residuals(group, column)
        if self.other_clusterings is None:
            # Both kinds of clusters side by side: their contributions to the variance add up.
            return rows
        return csr_array(
            hstack([rows, self.other_clusterings[0].cluster_contributions(group, column)])
        )

    def _group_residuals(self, group: int | IntArray, column: int) -> csr_array:
        return self._row_residuals(np.atleast_1d(group) * self.n_columns + column)

    def _row_residuals(self, row_index: IntArray) -> csr_array:
        rows = take_matrix_rows(self.matrix, row_index)
        return rows if self.calibration is None else self.calibration.residuals(rows, row_index)

    @property
    def components(self) -> tuple[SurveyClusterSums, ...]:
        """The sums by the first kind of clusters, by the second, and by their cells."""
        return (replace(self, other_clusterings=None), *(self.other_clusterings or ()))

    @property
    def unit_cell_index(self) -> IntArray:
        """Every unit's cell of a two-way clustering."""
        clusterings = self.other_clusterings
        cells = clusterings[1].two_way_cells if clusterings is not None else None
        assert cells is not None  # noqa: S101
        return cells[2]

    @property
    def is_uncalibrated_one_way(self) -> bool:
        """Whether the variance is that of the sums themselves: no calibration, one-way clusters."""
        return self.calibration is None and self.other_clusterings is None

    def draw_cluster_weights(
        self, rng: np.random.Generator, replicates: int
    ) -> Iterator[FloatArray]:
        """Draw replicate weights of clusters, or of cells of two kinds: ``[c, batch]``."""
        if self.other_clusterings is None:
            yield from draw_rao_wu_weight_batches(rng, self.n_clusters, self.strata, replicates)
            return
        # Owen (2007): both kinds of clusters are resampled, the first within its strata.
        first_weights = draw_rao_wu_weights(rng, self.n_clusters, self.strata, replicates)
        first, second, _ = (
            self.other_clusterings[1].two_way_cells or (np.zeros(0, dtype=np.int64),) * 3
        )
        start = 0
        for second_weights in draw_rao_wu_weight_batches(
            rng, self.other_clusterings[0].n_clusters, None, replicates
        ):
            batch = first_weights[:, start : start + second_weights.shape[1]]
            start += second_weights.shape[1]
            # Half of each deviation keeps weights at 0 or above; results are rescaled.
            yield np.asarray(
                1.0
                + TWO_WAY_WEIGHT * (batch[first] - 1.0)
                + TWO_WAY_WEIGHT * (second_weights[second] - 1.0)
            )

    def draw_unit_weights(self, rng: np.random.Generator, replicates: int) -> Iterator[FloatArray]:
        """Draw replicate weights of units, calibrated to the population: ``[n_units, batch]``."""
        assert self.calibration is not None  # noqa: S101 - else clusters' weights are enough
        calibration = self.calibration
        totals = [
            np.bincount(code, weights=self.unit_weight, minlength=size).astype(np.float64)
            for code, size in zip(calibration.margins.codes, calibration.margins.sizes, strict=True)
        ]
        cluster_index = (
            calibration.cluster_index if self.other_clusterings is None else self.unit_cell_index
        )
        # Calibrated again in each replicate, because calibrated weights depend on the sample.
        for cluster_weights in self.draw_cluster_weights(rng, replicates):
            replicate_weights = self.unit_weight[:, None] * cluster_weights[cluster_index]
            yield rake_replicates_to_totals(replicate_weights, calibration.margins, totals)

    def squared_rows(self, group: int | IntArray, column: int) -> csr_array:
        """Return clusters' sums of squared values of one column of groups, ``[g, c]``."""
        return take_matrix_rows(self.squared_sums, group * self.n_columns + column)


def is_complete_census(cluster_sums: ClusterSums) -> bool:
    """Check whether a finite population was sampled completely: no sampling error."""
    if not isinstance(cluster_sums, SurveyClusterSums) or cluster_sums.strata is None:
        return False
    unsampled = cluster_sums.strata.unsampled_fraction
    return unsampled is not None and bool((unsampled <= MAX_CENSUS_FRACTION).all())


def survey_strata_or_none(cluster_sums: ClusterSums) -> Strata | None:
    """Return the strata of a survey sample; None: it has none."""
    return cluster_sums.strata if isinstance(cluster_sums, SurveyClusterSums) else None


def residual_strata_or_none(cluster_sums: ClusterSums) -> Strata | None:
    """Return the strata of residual rows: with two-way clustering, of both kinds, concatenated."""
    if not isinstance(cluster_sums, SurveyClusterSums) or cluster_sums.other_clusterings is None:
        return survey_strata_or_none(cluster_sums)
    clusterings = (cluster_sums, cluster_sums.other_clusterings[0])
    if all(clustering.strata is None for clustering in clusterings):
        return None
    strata_by_clustering = [
        clustering.strata or _build_single_stratum(clustering.n_clusters)
        for clustering in clusterings
    ]
    stratum_index = np.concatenate(
        [
            strata_by_clustering[0].stratum_index,
            strata_by_clustering[1].stratum_index + len(strata_by_clustering[0].n_sampled),
        ]
    )
    # Without population sizes, which are refused with two-way clustering (docs/methods/samples.md).
    return Strata(
        stratum_index, np.concatenate([strata.n_sampled for strata in strata_by_clustering])
    )


def _build_single_stratum(n_clusters: int) -> Strata:
    return Strata(np.zeros(n_clusters, dtype=np.int64), np.array([n_clusters]))


def unweighted_cluster_sums(cluster_sums: ClusterSums) -> ClusterSums:
    """Return the sums that count each unit once, for numbers of people and clusters."""
    return cluster_sums.unweighted if isinstance(cluster_sums, SurveyClusterSums) else cluster_sums


def build_survey_cluster_sums(
    columns: csr_array,
    cluster_index: IntArray,
    entries: tuple[IntArray, IntArray],
    unweighted: ClusterSums,
    weight: FloatArray,
    strata: Strata | None,
    margins: Margins | None = None,
) -> SurveyClusterSums:
    """Sum the weighted columns of each group's units by cluster.

    Shapes: ``columns`` [n_units, n_columns], ``cluster_index`` [n_units], ``entries`` [m],
    ``weight``
    [n_units].
    """
    group_index, unit_index = entries
    n_clusters = int(cluster_index.max(initial=-1)) + 1
    shape = unweighted.n_groups * unweighted.n_columns, n_clusters
    sizes = unweighted.n_columns, unweighted.n_groups, n_clusters
    if margins is None and is_dense_faster(len(weight), *sizes):
        matrix, squared_sums = _sum_weighted_dense(
            columns, cluster_index, entries, weight, unweighted.n_groups
        )
        return _build_survey_cluster_sums(matrix, squared_sums, unweighted, weight, strata)
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
        calibration = fit_calibration_regression(
            margins,
            weight,
            cluster_index,
            (weighted_values, coordinates[0], unit_of_value, shape[0]),
        )
        strata = strata or _build_single_stratum(n_clusters)
    matrix = _sum_values_by_coordinates(weighted_values, coordinates, shape)
    squared_sums = _sum_squares_by_cluster(matrix, weighted_values, coordinates)
    return _build_survey_cluster_sums(matrix, squared_sums, unweighted, weight, strata, calibration)


def _build_survey_cluster_sums(
    matrix: csr_array,
    squared_sums: csr_array,
    unweighted: ClusterSums,
    weight: FloatArray,
    strata: Strata | None,
    calibration: Calibration | None = None,
) -> SurveyClusterSums:
    n_clusters = matrix.shape[1]
    return SurveyClusterSums(
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


def _sum_weighted_dense(
    columns: csr_array,
    cluster_index: IntArray,
    entries: tuple[IntArray, IntArray],
    weight: FloatArray,
    n_groups: int,
) -> tuple[csr_array, csr_array]:
    """Sum weighted columns and their squares by cluster into dense matrices."""
    weighted = columns.toarray() * weight[:, None]
    sums, squared_sums = (
        sum_dense(values, cluster_index, entries, n_groups) for values in (weighted, weighted**2)
    )
    return dense_to_csr(sums), dense_to_csr(squared_sums)


def add_second_clustering(
    survey_sums: SurveyClusterSums,
    columns: csr_array,
    clusters: tuple[IntArray, IntArray],
    entries: tuple[IntArray, IntArray],
    unweighted: ClusterSums,
    margins: Margins | None = None,
) -> SurveyClusterSums:
    """Add a second kind of clusters to the sums, and the cells of both.

    Shapes: ``columns`` [n_units, n_columns], ``clusters`` [n_units], ``entries`` [m].
    """
    first_clusters, second_clusters = clusters
    pairs, inverse = np.unique(
        np.stack([first_clusters, second_clusters], axis=1), axis=0, return_inverse=True
    )
    cell_index = np.asarray(inverse).ravel()
    weight = survey_sums.unit_weight
    second_sums = build_survey_cluster_sums(
        columns, second_clusters, entries, unweighted, weight, None, margins
    )
    cell_sums = build_survey_cluster_sums(
        columns, cell_index, entries, unweighted, weight, None, margins
    )
    cell_sums = replace(cell_sums, two_way_cells=(pairs[:, 0], pairs[:, 1], cell_index))
    return replace(survey_sums, other_clusterings=(second_sums, cell_sums))


def _sum_squares_by_cluster(
    matrix: csr_array, values: FloatArray, coordinates: tuple[IntArray, IntArray]
) -> csr_array:
    """Sum squared values by cluster; where every cluster is one unit, square the matrix."""
    from scipy.sparse import csr_array

    if matrix.nnz < len(values):
        return _sum_values_by_coordinates(values**2, coordinates, matrix.shape)
    return csr_array((matrix.data**2, matrix.indices, matrix.indptr), shape=matrix.shape)


def _sum_values_by_coordinates(
    values: FloatArray, coordinates: tuple[IntArray, IntArray], shape: tuple[int, int]
) -> csr_array:
    from scipy.sparse import coo_array, csr_array

    matrix = csr_array(coo_array((values, coordinates), shape=shape))
    matrix.sum_duplicates()
    matrix.sort_indices()
    return matrix
