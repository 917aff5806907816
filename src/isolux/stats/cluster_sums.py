"""Cluster sums: the contributions of clusters to groups × columns as one sparse matrix.

Every statistic that is a function of sums needs, for each group and each of its columns, the
contribution of each independent cluster. With that matrix X ``[groups * columns, clusters]``,
estimates are row sums, bootstrap replicates are ``X @ W`` with random integer weights, and
sign-flip tests are ``X @ F`` with random signs. Nothing loops over people.

Clusters with the same column of X are exchangeable, so they are stored once with a multiplicity: a
bootstrap weight of k identical clusters is multinomial or Poisson with k times the rate, k random
signs sum to a shifted binomial. 10,954 faces scored by three 0/1 metrics in 15 groupings are about
500 distinct columns.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isolux.stats.sparse_rows import dense_to_csr, take_matrix_rows
from isolux.stats.statistic import IntArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

__all__ = [
    "ClusterSums",
    "IntArray",
    "build_cluster_sums",
    "has_whole_clusters",
    "is_dense_faster",
    "sort_by_column",
    "sum_dense",
]


_MAX_ROW_MAJOR_WEIGHTS = 8
"""Columns of weights up to which conversion to CSC format costs more than it saves."""
_MAX_DENSE_CELLS, _MAX_DENSE_NUMBERS = 20_000, 2_000_000
"""Cells (rows times clusters) up to which dense sums are faster than sparse ones; and numbers that
units may add to them, so that many units in few cells take no more memory than their entries."""
_MIN_MEAN_REPEATS = 8
"""Mean repeats of a hash from which a lookup is faster than sorting all."""


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """The sums of every group and column by distinct cluster.

    Parameters
    ----------
    matrix : csr_array, [n_groups * n_columns, n_distinct]
        Row ``g * n_columns + q`` has each distinct cluster's contribution to column q of group g.
    multiplicity : [n_distinct] int
        How many identical clusters each distinct one represents; they sum to the number of
        clusters.
    distinct_index : [n_clusters] int
        The distinct cluster of each cluster.
    n_groups, n_columns : int
    """

    matrix: csr_array
    multiplicity: IntArray
    distinct_index: IntArray
    n_groups: int
    n_columns: int

    @property
    def n_clusters(self) -> int:
        """Number of independent clusters."""
        return int(self.multiplicity.sum())

    def weighted_sums(self, weights: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Weighted sums ``[n_groups, n_columns, r]`` for weights ``[n_distinct, r]``."""
        # In CSC format weights are read in order; in CSR format each multiply-add waits for memory
        # once they exceed the cache.
        matrix = self.matrix.tocsc() if weights.shape[1] > _MAX_ROW_MAJOR_WEIGHTS else self.matrix
        product = matrix @ np.ascontiguousarray(weights, dtype=np.float64)
        return np.asarray(product).reshape(self.n_groups, self.n_columns, -1)

    def totals(self) -> npt.NDArray[np.float64]:
        """Return the observed sums, ``[n_groups, n_columns]``."""
        return self.weighted_sums(self.multiplicity[:, None])[:, :, 0]

    def group_rows(self, group: int | IntArray, column: int) -> csr_array:
        """Return clusters' contributions to one column of groups, ``[g, n_distinct]``."""
        return take_matrix_rows(self.matrix, group * self.n_columns + column)


def sort_by_column(cluster_sums: ClusterSums) -> ClusterSums:
    """Convert the matrix to CSC format, for many products with many weights."""
    return replace(cluster_sums, matrix=cluster_sums.matrix.tocsc())


def build_cluster_sums(
    columns: csr_array,
    cluster_index: IntArray,
    group_index: IntArray,
    unit_index: IntArray,
    n_groups: int,
    row_index: IntArray | None = None,
) -> ClusterSums:
    """Sum the columns of each group's units by cluster, and merge identical clusters.

    Shapes: ``columns`` [n_rows, n_columns], ``cluster_index`` [n_units], ``group_index,
    unit_index``
    [n_memberships], ``row_index`` [n_units].
    """
    n_clusters = int(cluster_index.max(initial=-1)) + 1
    row_index = np.arange(columns.shape[0]) if row_index is None else row_index
    # Dense and sparse sums add in different orders: only sums of integers are equal to the bit.
    if is_dense_faster(len(row_index), columns.shape[1], n_groups, n_clusters) and _are_integers(
        columns
    ):
        unit_values = columns.toarray()[row_index]
        sums = sum_dense(unit_values, cluster_index, (group_index, unit_index), n_groups)
        return _merge_dense(sums, n_groups, columns.shape[1])
    type_index, type_examples = _unit_types(columns, row_index, group_index, unit_index)
    # A cluster is identified by the types of its units; one cluster of each kind is summed.
    cluster_hash = np.zeros(n_clusters, dtype=np.uint64)
    np.add.at(
        cluster_hash,
        cluster_index,
        _hash_bits(np.arange(1, len(type_examples) + 1, dtype=np.uint64))[type_index],
    )
    first_clusters, cluster_type = _find_distinct(cluster_hash)
    matrix = _sum_unit_types(
        (columns, row_index),
        (group_index, unit_index),
        n_groups,
        (type_index, type_examples),
        cluster_index,
        first_clusters,
    )
    distinct_columns, distinct_index, _ = _distinct_columns(matrix, len(first_clusters))
    distinct_index = distinct_index[cluster_type]
    multiplicity = np.bincount(distinct_index, minlength=len(distinct_columns)).astype(np.int64)
    matrix = matrix[:, distinct_columns]
    matrix.sort_indices()
    return ClusterSums(matrix, multiplicity, distinct_index, n_groups, columns.shape[1])


def is_dense_faster(n_units: int, n_columns: int, n_groups: int, n_clusters: int) -> bool:
    """Check whether dense sums are faster than sparse ones."""
    return (
        n_groups * n_columns * n_clusters <= _MAX_DENSE_CELLS
        and n_units * n_columns <= _MAX_DENSE_NUMBERS
    )


def _are_integers(columns: csr_array) -> bool:
    """Check whether all numbers are integers: their sums then do not depend on the order."""
    return bool((columns.data == np.rint(columns.data)).all())


def sum_dense(
    unit_values: npt.NDArray[np.float64],
    cluster_index: IntArray,
    entries: tuple[IntArray, IntArray],
    n_groups: int,
) -> npt.NDArray[np.float64]:
    """Sum units' values by group, column and cluster into a dense matrix.

    Shapes: ``unit_values`` [n_units, n_columns], ``cluster_index`` [n_units], ``entries`` [m];
    returns [n_groups * n_columns, n_clusters].
    """
    group_index, unit_index = entries
    n_clusters = int(cluster_index.max(initial=-1)) + 1
    cell_index = group_index * n_clusters + cluster_index[unit_index]
    n_cells = n_groups * n_clusters
    sums = [
        np.bincount(cell_index, weights=values[unit_index], minlength=n_cells)
        for values in unit_values.T
    ]
    by_group = np.stack(sums).reshape(len(sums), n_groups, n_clusters).swapaxes(0, 1)
    return np.asarray(by_group.reshape(n_groups * len(sums), n_clusters), dtype=np.float64)


def _merge_dense(sums: npt.NDArray[np.float64], n_groups: int, n_columns: int) -> ClusterSums:
    """Merge identical clusters; the result does not depend on how sums were computed."""
    # The hash of _distinct_columns: it orders the clusters, and their order decides which random
    # weights they get.
    hashes = _hash_bits(np.arange(1, len(sums) + 1, dtype=np.uint64))[:, None] ^ sums.view(
        np.uint64
    )
    # Sparse matrices do not store zeros, so a zero must not change the hash.
    signature = np.where(sums != 0.0, _hash_bits(hashes), np.uint64(0)).sum(axis=0, dtype=np.uint64)
    _, first_clusters, distinct_index, multiplicity = np.unique(
        signature, return_index=True, return_inverse=True, return_counts=True
    )
    return ClusterSums(
        dense_to_csr(sums[:, first_clusters]),
        multiplicity.astype(np.int64),
        distinct_index.astype(np.int64),
        n_groups,
        n_columns,
    )


def _unit_types(
    columns: csr_array, row_index: IntArray, group_index: IntArray, unit_index: IntArray
) -> tuple[IntArray, IntArray]:
    """Assign units of equal values and groups to types, and find an example of each type."""
    entries = columns.tocoo()
    hashes = _hash_bits(entries.col.astype(np.uint64) + np.uint64(1))
    hashes ^= entries.data.astype(np.float64).view(np.uint64)
    row_hash = np.zeros(columns.shape[0], dtype=np.uint64)
    # Hashes are added, because the order of entries must not matter.
    np.add.at(row_hash, entries.row, _hash_bits(hashes))
    unit_hash = np.zeros(len(row_index), dtype=np.uint64)
    n_groups = int(group_index.max(initial=-1)) + 1
    np.add.at(
        unit_hash, unit_index, _hash_bits(np.arange(1, n_groups + 1, dtype=np.uint64))[group_index]
    )
    with np.errstate(over="ignore"):
        unit_hash += _hash_bits(row_hash)[row_index]
    type_examples, type_index = _find_distinct(unit_hash)
    return type_index, type_examples


def _find_distinct(hashes: npt.NDArray[np.uint64]) -> tuple[IntArray, IntArray]:
    """Return the first index of each distinct hash, by rising hash, and the inverse."""
    distinct = np.unique(hashes)
    if len(distinct) * _MIN_MEAN_REPEATS > len(hashes):
        _, first, inverse = np.unique(hashes, return_index=True, return_inverse=True)
        return first.astype(np.int64), inverse.astype(np.int64)
    inverse = np.searchsorted(distinct, hashes)
    first = np.empty(len(distinct), dtype=np.int64)
    first[inverse[::-1]] = np.arange(len(hashes))[::-1]  # the first occurrence is written last
    return first, inverse.astype(np.int64)


def _sum_unit_types(
    columns: tuple[csr_array, IntArray],
    entries: tuple[IntArray, IntArray],
    n_groups: int,
    unit_types: tuple[IntArray, IntArray],
    cluster_index: IntArray,
    first_clusters: IntArray,
) -> csr_array:
    """Sum the columns of each group by cluster: values of unit types times their counts."""
    from scipy.sparse import coo_array, csr_array

    (group_index, unit_index), (type_index, type_examples), (values, row_index) = (
        entries,
        unit_types,
        columns,
    )
    n_columns = values.shape[1]
    example_type = np.full(len(row_index), -1, dtype=np.int64)
    example_type[type_examples] = np.arange(len(type_examples))
    is_example = example_type[unit_index] >= 0
    example_values = coo_array(values[row_index[unit_index[is_example]]])
    rows = (
        group_index[is_example][example_values.row].astype(np.int64) * n_columns
        + example_values.col
    )
    shape = (n_groups * n_columns, len(type_examples))
    type_sums = csr_array(
        coo_array(
            (example_values.data, (rows, example_type[unit_index[is_example]][example_values.row])),
            shape,
        )
    )
    column_index = np.full(int(cluster_index.max(initial=-1)) + 1, -1, dtype=np.int64)
    column_index[first_clusters] = np.arange(len(first_clusters))
    is_first = column_index[cluster_index] >= 0
    coordinates = type_index[is_first], column_index[cluster_index[is_first]]
    counts = csr_array(
        coo_array(
            (np.ones(len(coordinates[0])), coordinates), (len(type_examples), len(first_clusters))
        )
    )
    matrix = csr_array(type_sums @ counts)
    # Values that cancel leave stored zeros, which would be hashed like entries.
    matrix.eliminate_zeros()
    matrix.sort_indices()
    return matrix


def has_whole_clusters(cluster_sums: ClusterSums, groups: IntArray, domain: int) -> bool:
    """Check that each cluster is entirely in one of these groups, or entirely outside them."""
    group_counts = cluster_sums.group_rows(groups, 0)
    per_cluster = np.asarray((group_counts > 0).sum(axis=0)).ravel()
    if per_cluster.max(initial=0) > 1:
        return False
    domain_counts = np.asarray(cluster_sums.group_rows(domain, 0).todense()).ravel()
    overall_counts = np.asarray(cluster_sums.group_rows(0, 0).todense()).ravel()
    counted_once = np.asarray(group_counts.sum(axis=0)).ravel()
    return bool(
        np.all(
            (domain_counts == 0)
            | ((domain_counts == overall_counts) & (counted_once == domain_counts))
        )
    )


def _distinct_columns(matrix: csr_array, n_clusters: int) -> tuple[IntArray, IntArray, IntArray]:
    """Find equal columns by a 64-bit sum of hashed entries."""
    entries = matrix.tocoo()
    hashes = _hash_bits(entries.row.astype(np.uint64) + np.uint64(1)) ^ entries.data.astype(
        np.float64
    ).view(np.uint64)
    signature = np.zeros(n_clusters, dtype=np.uint64)
    np.add.at(signature, entries.col, _hash_bits(hashes))
    # No comparison of entries follows: among n = 10⁶ distinct columns two collide with probability
    # n² / 2⁶⁵, about 3e-8.
    _, first, inverse, counts = np.unique(
        signature, return_index=True, return_inverse=True, return_counts=True
    )
    return first, inverse.astype(np.int64), counts.astype(np.int64)


def _hash_bits(x: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Hash 64 bits: SplitMix64, two rounds (overflow wraps on purpose)."""
    with np.errstate(over="ignore"):
        x = x * np.uint64(0x9E3779B97F4A7C15) + np.uint64(0xD1B54A32D192ED03)
        for _ in range(2):
            x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            x = x ^ (x >> np.uint64(31))
        return x
