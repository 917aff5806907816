"""Rank tests of all pairs of groups: Mann and Whitney's, and one that knows about clusters.

For groups a and b with n_a and n_b units, U counts the pairs (one unit of each) in which a's score
is the higher one, ties half; U / (n_a n_b) is the *probability of superiority*, 1/2 where neither
group tends to score higher. FHIBE's benchmarking analysis [1]_ tests it as if units were
independent.

**The clustered test.** Ten photos of one subject are not ten people. Let r be a unit's mid-rank
among a and b, N = n_a + n_b, and for a cluster (a subject) c

    v_c = Σ (r - (N + 1)/2)    over its units,        U - n_a n_b / 2 = Σ v_c over the clusters in a

so the statistic stays U and only its variance changes. Where no cluster is in both groups (a
subject's ancestry) clusters are exchangeable if nothing differs, whatever their size:

    A = Σ r² / N (centred),   B = max(0, Σ (v_c² - Σ r²) / Σ g_c (g_c - 1))     over both groups
    Var(U) = (n_a n_b / N)² · Σ_sides (A n + B Σ g_c (g_c - 1)) / n²  ·  1 / (1 - Σ g_c² / N²)

with g_c the units of a cluster: the ranks' variance, and their covariance within clusters (Rosner
and Grove 1999 [2]_, who estimate it for U; with clusters of one size it is the exact variance of
U when whole clusters are permuted, as Rosner, Glynn and Lee's 2003 [3]_ stratum of that size). With
one unit in each cluster it is Mann and Whitney's own variance, tie correction and all, and so is p.

Rosner, Glynn and Lee permute within strata of equal cluster size, and lose every stratum that one
group does not have: with one to ten photos a subject and ten subjects a group that is most of them.
Estimating B once loses no one. Permuting whole clusters by simulation would need the ranks of
each pair anew, and as many replicates as the family has tests times 20: thousands of tests
(attributes x pairs x metrics) are out of its reach.

Where clusters are in both groups (two faces in one photo, one subject in two lights) each has the
net contribution u_c = v_ca / n_a - v_cb / n_b, and Var is Σ u_c² with G/(G - 1): ranks as scores in
cluster-robust comparison of means (Lumley and Scott 2013 [4]_; ``stats.null_distribution`` has the
same for scores). Both p are two-sided, with scipy's continuity correction of half a pair.

The naive p is that of a normal distribution. If ten subjects are compared with three hundred and
errors are rare, sums over clusters are skewed, and a normal distribution makes one subject with
many errors significant (measured: a false positive in 12 % of families of 30 tests). So the
clustered p between exchangeable clusters is that of Pearson's type III (a shifted and scaled gamma
distribution) with the third moment of the permutation of whole clusters (Mielke and Berry [5]_),
and at least the normal one. Between equal numbers of clusters the skewness is 0.

No exact distribution is used or needed: FHIBE tests groups of 10 subjects or more.

References
----------
.. [1] Xiang, A. et al. (2025). Fair human-centric image dataset for ethical AI benchmarking.
   Nature. Methods, "Benchmarking analysis".
.. [2] Rosner, B. and Grove, D. (1999). Use of the Mann-Whitney U-test for clustered data.
   Statistics in Medicine 18, 1387-1400.
.. [3] Rosner, B., Glynn, R. J. and Lee, M.-L. T. (2003). Incorporation of clustering effects for
   the Wilcoxon rank sum test: a large-sample approach. Biometrics 59, 1089-1098.
.. [4] Lumley, T. and Scott, A. J. (2013). Two-sample rank tests under complex sampling.
   Biometrika 100, 831-842.
.. [5] Mielke, P. W. and Berry, K. J. (2007). Permutation Methods: A Distance Function Approach.
   Springer, second edition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.core.errors import InputError
from isolux.stats.statistic import FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]
_Indices = npt.NDArray[np.uint32]
_MIN_SKEWNESS = 1e-4
"""Skewness below which the normal distribution is used: the gamma's shape would exceed 10⁸."""


@dataclass(frozen=True, slots=True)
class SortedScores:
    """Score vectors, sorted once for all attributes.

    Parameters
    ----------
    order : [v, n] uint32
        Units by rising score.
    value : [v, n] float
        Their scores; NaN (no score) stands last.
    n_scored : [v] int
        Number of units with a score.
    has_ties : [v] bool
        Whether there are ties.
    """

    order: _Indices
    value: FloatArray
    n_scored: IntArray
    has_ties: BoolArray


@dataclass(frozen=True, slots=True)
class GroupCells:
    """Group membership of one attribute. A cell is the part of one cluster in one group.

    Parameters
    ----------
    first_cell : [n + 1] uint32, cell : [e] uint32
        Unit u is in the cells ``cell[first_cell[u]:first_cell[u + 1]]``.
    cluster_starts : [c + 1] int, cell_group : [q] uint32
        Cluster c's cells are ``cluster_starts[c]`` to ``cluster_starts[c + 1]``, by group;
        ``cell_group`` is a cell's group.
    n_groups : int
    is_unclustered : bool
        Whether every unit is its own cluster and in at most one group: then a cell is a group.
    """

    first_cell: _Indices
    cell: _Indices
    cluster_starts: IntArray
    cell_group: _Indices
    n_groups: int
    is_unclustered: bool


@dataclass(frozen=True, slots=True)
class RankTests:
    """Tests of all pairs of one attribute's groups, for each score vector.

    Parameters
    ----------
    n, clusters : [v, k] int
        Units with a score, and clusters among them.
    median, mean : [v, k] float
        Of the scores; NaN in an empty group.
    superiority : [v, k, k] float
        How often a unit of the row's group scores higher than one of the column's, ties half;
        NaN on the diagonal and for empty groups.
    p_naive, p_clustered : [v, k, k] float
        Two-sided; 1 where all scores are equal. ``p_clustered`` is NaN where both groups are one
        cluster.
    shared : [v, k, k] int
        Clusters in both groups.
    """

    n: IntArray
    clusters: IntArray
    median: FloatArray
    mean: FloatArray
    superiority: FloatArray
    p_naive: FloatArray
    p_clustered: FloatArray
    shared: IntArray


def sort_score_vectors(score_vectors: npt.ArrayLike) -> SortedScores:
    """Sort score vectors ``[v, n]``; NaN is a unit without a score."""
    scores = np.asarray(score_vectors, dtype=np.float64)
    if scores.ndim != 2:
        raise InputError(
            "scores are not a table",
            expected="shape [vectors, units]",
            found=f"shape {scores.shape}",
        )
    if np.isinf(scores).any():
        raise InputError(
            "a score is infinite",
            expected="finite numbers, or NaN for no score",
            where=f"vector {int(np.argwhere(np.isinf(scores))[0, 0])}",
        )
    order = np.argsort(scores, axis=1)  # the order of ties does not matter
    ranked = np.take_along_axis(scores, order, axis=1)
    n_scored = (~np.isnan(ranked)).sum(axis=1)
    has_ties = (ranked[:, 1:] == ranked[:, :-1]).any(axis=1)  # NaN equals nothing
    return SortedScores(order.astype(np.uint32), ranked, n_scored, has_ties)


def index_groups_by_cluster(
    unit: npt.ArrayLike, group: npt.ArrayLike, cluster: npt.ArrayLike, n_groups: int
) -> GroupCells:
    """Index one attribute's groups by cluster.

    Shapes: ``unit, group`` [e], ``cluster`` [n].
    """
    units = np.asarray(unit, dtype=np.int64)
    groups = np.asarray(group, dtype=np.int64)
    clusters = np.asarray(cluster, dtype=np.int64)
    _check_unit_and_group_indices(units, groups, len(clusters), n_groups)
    if np.any(np.diff(units) < 0):
        by_unit = np.argsort(units, kind="stable")
        units, groups = units[by_unit], groups[by_unit]
    n_groups_of_unit = np.bincount(units, minlength=len(clusters))
    first_cell = np.concatenate([[0], np.cumsum(n_groups_of_unit)]).astype(np.uint32)
    has_multiple_groups = bool((n_groups_of_unit > 1).any())
    if has_multiple_groups:
        entries = np.sort(units * n_groups + groups)
        if np.any(np.diff(entries) == 0):
            raise InputError("a unit is in one group twice", expected="each entry once")
    n_clusters = int(clusters.max(initial=-1)) + 1
    is_unclustered = not has_multiple_groups and bool(
        (np.bincount(clusters, minlength=1) <= 1).all()
    )
    # The clustered test is then Mann and Whitney's own: sums by group are enough.
    if is_unclustered:
        cell_group = np.arange(n_groups, dtype=np.uint32)
        cluster_starts = np.arange(n_groups + 1, dtype=np.int64)
        return GroupCells(
            first_cell,
            groups.astype(np.uint32),
            cluster_starts,
            cell_group,
            n_groups,
            is_unclustered,
        )
    key = clusters[units] * n_groups + groups
    is_present = np.zeros((n_clusters, n_groups), dtype=bool)
    is_present.ravel()[key] = True
    cell_numbers = (np.cumsum(is_present) - 1).astype(np.uint32)
    cluster_starts = np.concatenate([[0], np.cumsum(is_present.sum(axis=1))])
    cell_group = np.nonzero(is_present)[1].astype(np.uint32)
    return GroupCells(
        first_cell, cell_numbers[key], cluster_starts, cell_group, n_groups, is_unclustered
    )


def _check_unit_and_group_indices(
    units: IntArray, groups: IntArray, n_units: int, n_groups: int
) -> None:
    for name, indices, limit in (("unit", units, n_units), ("group", groups, n_groups)):
        is_invalid = (indices < 0) | (indices >= limit)
        if is_invalid.any():
            raise InputError(
                f"there is no such {name}",
                expected=f"0 to {limit - 1}",
                found=str(int(indices[is_invalid][0])),
                where=f"entry {int(np.flatnonzero(is_invalid)[0])}",
            )


def rank_test_all_group_pairs(scores: SortedScores, cells: GroupCells) -> RankTests:
    """Test all pairs of one attribute's groups on every score vector."""
    from isolux.stats.ranks.rank_kernels import rank_test_pairs_by_score

    k = cells.n_groups
    n, clusters, median, total, superiority, naive, z, skew, shared = rank_test_pairs_by_score(
        scores.order,
        scores.value,
        scores.n_scored,
        scores.has_ties,
        cells.first_cell,
        cells.cell,
        cells.cluster_starts,
        cells.cell_group,
        k,
    )
    clustered = naive if cells.is_unclustered else _two_sided_p_with_skewness(z, skew)
    n, total = n[:, :k], total[:, :k]
    if cells.is_unclustered:
        clusters = n
    with np.errstate(invalid="ignore"):
        mean = total / n
    shared = shared[:, :k, :k]
    return RankTests(
        n.astype(np.int64),
        clusters[:, :k].astype(np.int64),
        np.where(n > 0, median[:, :k], np.nan),
        mean,
        _fill_lower_triangle_by_reflection(superiority, lambda upper: 1.0 - upper),
        _fill_lower_triangle_by_reflection(naive, np.array),
        _fill_lower_triangle_by_reflection(clustered, np.array),
        (shared + shared.transpose(0, 2, 1)).astype(np.int64),
    )


def _two_sided_p_with_skewness(z: FloatArray, skewness: FloatArray) -> FloatArray:
    """Twice the tail probability of z: the larger of the normal and the Pearson III tail."""
    from scipy.special import gammainc, gammaincc, ndtr

    outward_skewness = np.where(z < 0.0, -skewness, skewness)  # skewness towards the tail of z
    size = np.abs(z)
    is_skewed = np.abs(outward_skewness) > _MIN_SKEWNESS
    # A gamma distribution of shape k has skewness 2 / √k; standardised, it is Pearson's type III.
    shape = 4.0 / np.square(np.where(is_skewed, outward_skewness, 1.0))
    root = np.sqrt(shape)
    upper = gammaincc(shape, shape + size * root)
    # A gamma distribution ends on its short side: beyond, its tail is 0.
    lower = gammainc(shape, np.maximum(shape - size * root, 0.0))
    tail = np.where(outward_skewness > 0.0, upper, lower)
    normal = ndtr(-size)
    # Never below the normal tail, or p would be 0 beyond that end (docs/methods/rank_tests.md).
    tail = np.where(is_skewed, np.maximum(tail, normal), normal)
    return np.asarray(np.minimum(2.0 * tail, 1.0))


def _fill_lower_triangle_by_reflection(
    upper: FloatArray, reflect: Callable[[FloatArray], FloatArray]
) -> FloatArray:
    """Fill the lower triangle."""
    lower = reflect(upper).transpose(0, 2, 1)
    return np.where(np.isnan(upper), lower, upper)


def fhibe_median_disparity(lower_median: npt.ArrayLike, higher_median: npt.ArrayLike) -> FloatArray:
    """FHIBE's D = 1 - lower median / higher median: from 0 (equal) towards 1.

    Examples
    --------
    >>> fhibe_median_disparity([0.6, 0.0, 0.5], [0.8, 0.7, 0.5]).round(12).tolist()
    [0.25, nan, 0.0]
    """
    lower, higher = (
        np.asarray(lower_median, dtype=np.float64),
        np.asarray(higher_median, dtype=np.float64),
    )
    # A ratio of medians says nothing where one is 0 or negative.
    defined = (lower > 0.0) & (higher > 0.0)
    return 1.0 - np.where(defined, lower, np.nan) / np.where(defined, higher, np.nan)


def replicate_medians(
    scores: npt.ArrayLike, cluster: npt.ArrayLike, weights: FloatArray
) -> FloatArray:
    """Median on resampled clusters: ``[r]``, NaN where a replicate has no weight.

    Shapes: ``scores`` [m], ``cluster`` [m], ``weights`` [c, r].

    Examples
    --------
    >>> replicate_medians([3.0, 1.0, 2.0], [0, 1, 2], np.array([[1.0, 2], [1, 0], [1, 2]])).tolist()
    [2.0, 2.5]
    """
    from isolux.stats.ranks.rank_kernels import weighted_median_by_replicate

    scores, cluster_index = (
        np.asarray(scores, dtype=np.float64),
        np.asarray(cluster, dtype=np.int64),
    )
    order = np.argsort(scores, kind="stable")
    return np.asarray(weighted_median_by_replicate(scores[order], cluster_index[order], weights))
