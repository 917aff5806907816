"""Estimates of groups, explanatory values and their combinations, with replicates.

Cells (strata) of one sensitive attribute: each of its groups; each value of each explanatory
attribute, among the people who are in any group; and each group at each value. A person is in
several cells, so that one pass over people or detections estimates all.

A cell without any error has the same value on every replicate, so replicates alone would claim that
a small group without errors is certainly better. ``BinaryGapVariance`` gives the smallest standard
errors that a difference of proportions can have: with variances at the pooled proportion of each
value, or at a group's own where it has many units of the rarer outcome; with the largest
intracluster correlation that few errors leave possible; and, combined as own variance^.6 times
that^.4 as in the audit, with the overall intracluster correlation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses._survey_sample import SurveySample
from isolux.analyses.confounders.groups import ExplanatoryStrata, SensitiveAttribute
from isolux.stats.cluster_sums import IntArray
from isolux.stats.clustered_proportions import are_rows_zero_or_one, pooled_intracluster_correlation
from isolux.stats.constants import HALF_WEIGHT_EVENTS
from isolux.stats.sampling import draw_rao_wu_weights
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import (
    draw_multinomial_weights,
    draw_poisson_weights,
    iterate_seeded_replicate_blocks,
)

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_WEIGHT_FUNCTIONS = {"multinomial": draw_multinomial_weights, "poisson": draw_poisson_weights}
_N = TypeVar("_N", np.float64, np.int64)


@dataclass(frozen=True, slots=True)
class StratumLayout:
    """The cells, and the units in each.

    Parameters
    ----------
    sensitive : SensitiveAttribute
    strata : tuple of ExplanatoryStrata
    unit, cell : [n] int
        Memberships: a unit and a cell it is in.
    peer_sets : [n_cells] int
        Cells of one number are compared with one another, and share the N of normalised precision:
        the groups; the values of an attribute; the groups within a value.
    starts : tuple of int
        For each explanatory attribute, where its values' cells begin; its groups' follow.
    n_cells : int
    """

    sensitive: SensitiveAttribute
    strata: tuple[ExplanatoryStrata, ...]
    unit: IntArray
    cell: IntArray
    peer_sets: IntArray
    starts: tuple[int, ...]
    n_cells: int

    def take_groups(self, cells: npt.NDArray[_N]) -> npt.NDArray[_N]:
        """Take the groups' cells: ``[..., a]``."""
        return cells[..., : len(self.sensitive.groups)]

    def take_values(self, cells: npt.NDArray[_N], s: int) -> npt.NDArray[_N]:
        """Take the cells of the values of one explanatory attribute: ``[..., e]``."""
        start = self.starts[s]
        return cells[..., start : start + len(self.strata[s].values)]

    def take_groups_by_value(self, cells: npt.NDArray[_N], s: int) -> npt.NDArray[_N]:
        """Take the cells of groups at values: ``[..., a, e]``."""
        k, g = len(self.strata[s].values), len(self.sensitive.groups)
        start = self.starts[s] + k
        return cells[..., start : start + g * k].reshape(*cells.shape[:-1], g, k)


@dataclass(frozen=True, slots=True)
class BinaryGapVariance:
    """Sums of cells by cluster, of scores that are 0 or 1, for minimum standard errors.

    Parameters
    ----------
    positives, count : csr_array, [n_cells, n_clusters]
        Sums of scores and of people, or of their weights.
    sums, weighted_counts : [n_cells] float
        The same over all clusters.
    intracluster_correlation : float
        The intracluster correlation over all people.
    is_survey_sample : bool
        Whether people have survey weights or strata. Their replicates account for both, so that
        only groups with a single outcome need a minimum.
    """

    positives: csr_array
    count: csr_array
    sums: FloatArray
    weighted_counts: FloatArray
    intracluster_correlation: float
    is_survey_sample: bool

    def compute_min_errors(
        self,
        cells: tuple[IntArray, IntArray],
        composition: tuple[FloatArray, FloatArray],
        n_effective: FloatArray,
    ) -> tuple[float, float]:
        """Compute the minimum standard errors of a gap of two groups: by rare outcomes, and pooled.

        Shapes: ``cells`` [e], ``composition`` [e], ``n_effective`` [n_cells].
        """
        index = np.stack(cells)
        n, weighted_counts, sums = n_effective[index], self.weighted_counts[index], self.sums[index]
        share, pooled_share = sums / weighted_counts, sums.sum(axis=0) / weighted_counts.sum(axis=0)
        group_shares = sums.sum(axis=1) / weighted_counts.sum(axis=1)
        rarer_share = np.minimum(group_shares, 1.0 - group_shares)
        if self.is_survey_sample and (rarer_share > 0).all():
            return 0.0, 0.0
        counts = [self.count[group_cells] for group_cells in cells]
        by_cluster = [np.asarray(cluster_counts.sum(axis=0)).ravel() for cluster_counts in counts]
        kish_size = np.array([(row**2).sum() / row.sum() for row in by_cluster])
        n_rarer_effective = (
            rarer_share
            * n.sum(axis=1)
            / (1.0 + np.maximum(kish_size - 1.0, 0.0) * self.intracluster_correlation)
        )
        own_weight = (n_rarer_effective / (n_rarer_effective + HALF_WEIGHT_EVENTS))[:, None]
        variances = own_weight * share * (1.0 - share) + (1.0 - own_weight) * pooled_share * (
            1.0 - pooled_share
        )
        weight = np.stack(composition)
        row_variance = (weight**2 * variances / n).sum()
        contributions = [
            np.sqrt((w * s).sum()) * np.asarray((w / m) @ cluster_counts).ravel()
            for w, s, m, cluster_counts in zip(
                weight, variances, weighted_counts, counts, strict=True
            )
        ]
        cluster_variance = float(((contributions[0] - contributions[1]) ** 2).sum())
        rare_variance = max(
            (1 - r) * row_variance + r * cluster_variance
            for r in (
                1.0 / (1.0 + self._count_rarer_clusters(group_cells, cluster_counts, p) ** 2)
                for group_cells, cluster_counts, p in zip(cells, counts, group_shares, strict=True)
            )
        )
        pooled_variance = max(
            (1 - self.intracluster_correlation) * row_variance
            + self.intracluster_correlation * cluster_variance,
            rare_variance,
        )
        return float(np.sqrt(rare_variance)), float(np.sqrt(pooled_variance))

    def _count_rarer_clusters(self, cells: IntArray, count: csr_array, share: float) -> int:
        """Count the clusters of a group, of ``count`` people, in which the rarer outcome occurs."""
        positives = self.positives[cells]
        rarer = positives if share <= 0.5 else count - positives
        return int((np.asarray(rarer.sum(axis=0)).ravel() > 1e-9).sum())


@dataclass(frozen=True, slots=True)
class StratumEstimates:
    """Estimates of cells ``[n_cells]``, and replicates ``[r, n_cells]``; NaN where undefined.

    ``units`` and ``clusters`` are counts; ``replicate_counts`` counts people on replicates. Of a
    survey sample ``weighted_counts`` is the weighted count, ``n_effective`` Kish's effective sample
    size, and ``effective_clusters`` the effective number of clusters less strata.
    ``binary_variance`` gives minimum standard errors for scores that are 0 or 1.
    """

    value: FloatArray
    units: IntArray
    clusters: IntArray
    replicates: FloatArray
    replicate_counts: FloatArray
    weighted_counts: FloatArray | None = None
    n_effective: FloatArray | None = None
    effective_clusters: FloatArray | None = None
    binary_variance: BinaryGapVariance | None = None

    @property
    def composition_counts(self) -> FloatArray:
        """Counts that a composition is made of: people, or their weighted counts."""
        return (
            self.units.astype(np.float64) if self.weighted_counts is None else self.weighted_counts
        )

    @property
    def effective_sizes(self) -> FloatArray:
        """Sizes that are compared with the minimum size of a group or cell."""
        return self.units.astype(np.float64) if self.n_effective is None else self.n_effective

    @property
    def independent_clusters(self) -> FloatArray:
        """Effective clusters, for degrees of freedom of an interval."""
        return (
            self.clusters.astype(np.float64)
            if self.effective_clusters is None
            else self.effective_clusters
        )


def build_stratum_layout(
    sensitive: SensitiveAttribute, strata: Sequence[ExplanatoryStrata]
) -> StratumLayout:
    """Build the cells of a sensitive attribute and explanatory ones.

    Examples
    --------
    >>> tone = SensitiveAttribute("tone", ("a", "b"), np.array([0, 1]), np.array([0, 1]))
    >>> size = ExplanatoryStrata(("size",), ("small", "large"), np.array([1, 1, 0]), False)
    >>> layout = build_stratum_layout(tone, [size])
    >>> layout.n_cells, layout.starts, layout.peer_sets.tolist()
    (8, (2,), [0, 0, 1, 1, 2, 3, 2, 3])
    >>> layout.take_groups_by_value(np.bincount(layout.cell, minlength=8), 0).tolist()
    [[0, 1], [0, 1]]
    """
    g = len(sensitive.groups)
    group_units = np.unique(sensitive.unit)
    unit, cell = [sensitive.unit], [sensitive.group]
    peers = [np.zeros(g, dtype=np.int64)]
    starts, start, n_sets = [], g, 1
    for strata_item in strata:
        k = len(strata_item.values)
        starts.append(start)
        value_units = group_units[strata_item.code[group_units] >= 0]
        is_known = strata_item.code[sensitive.unit] >= 0
        both_units, group = sensitive.unit[is_known], sensitive.group[is_known]
        unit += [value_units, both_units]
        cell += [
            start + strata_item.code[value_units],
            start + k + group * k + strata_item.code[both_units],
        ]
        peers += [np.full(k, n_sets), np.tile(n_sets + 1 + np.arange(k), g)]
        start, n_sets = start + k + g * k, n_sets + 1 + k
    units, cells, peer_sets = (np.concatenate(arrays) for arrays in (unit, cell, peers))
    return StratumLayout(sensitive, tuple(strata), units, cells, peer_sets, tuple(starts), start)


def evaluate_cells_on_replicates(
    evaluate: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    n_clusters: int,
    settings: tuple[int, int, str],
    survey_sample: SurveySample | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Evaluate cells on resampled clusters, a block of replicates at a time."""
    replicates, seed, weight_method = settings
    initial_counts = np.ones(n_clusters, dtype=np.int64)
    blocks_read = []
    for rng, size in iterate_seeded_replicate_blocks(replicates, seed, "rank bootstrap"):
        if survey_sample is None:
            weights = _WEIGHT_FUNCTIONS[weight_method](rng, initial_counts, size)
        else:
            weights = draw_rao_wu_weights(rng, n_clusters, survey_sample.strata, size)
        # Each replicate is contiguous in memory.
        blocks_read.append(evaluate(np.ascontiguousarray(weights.T).T))
    values, people = zip(*blocks_read, strict=True)
    return np.concatenate(values), np.concatenate(people)


def estimate_cell_means(
    layout: StratumLayout,
    scored: pl.DataFrame,
    n_clusters: int,
    settings: tuple[int, int, str],
    survey_sample: SurveySample | None = None,
) -> StratumEstimates:
    """Estimate the mean score of every cell."""
    from scipy.sparse import coo_array, csr_array

    defined_scores = scored.drop_nulls("value")
    units, clusters, score = (
        defined_scores[name].to_numpy() for name in ("unit", "cluster", "value")
    )
    row_by_unit = np.full(
        1 + max(layout.unit.max(initial=-1), units.max(initial=0)), -1, dtype=np.int64
    )
    row_by_unit[units] = np.arange(defined_scores.height)
    row = row_by_unit[layout.unit]
    cell, row = layout.cell[row >= 0], row[row >= 0]
    cluster, shape = clusters[row], (layout.n_cells, n_clusters)
    row_weights = np.ones(len(row)) if survey_sample is None else survey_sample.weight[units[row]]
    count = csr_array(coo_array((row_weights, (cell, cluster)), shape))
    total = csr_array(coo_array((row_weights * score[row], (cell, cluster)), shape))

    def evaluate(weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        people, sums = (np.asarray(m @ weights).T for m in (count, total))
        mean = np.divide(sums, people, out=np.full(people.shape, np.nan), where=people > 0)
        return mean, people

    cells = StratumEstimates(
        evaluate(np.ones((n_clusters, 1)))[0][0],
        np.bincount(cell, minlength=layout.n_cells),
        np.diff(count.indptr).astype(np.int64),
        *evaluate_cells_on_replicates(evaluate, n_clusters, settings, survey_sample),
    )
    if np.isin(score, (0.0, 1.0)).all():
        positives, n = (
            np.bincount(clusters, w, n_clusters).astype(np.float64) for w in (score, None)
        )
        cells = replace(
            cells,
            binary_variance=_build_binary_gap_variance_or_none(
                total, count, positives, n, survey_sample is not None
            ),
        )
    return (
        cells
        if survey_sample is None
        else add_survey_weights_to_cells(cells, count, cell, row_weights, survey_sample)
    )


def add_survey_weights_to_cells(
    cells: StratumEstimates,
    count: csr_array,
    cell: IntArray,
    weight: FloatArray,
    survey_sample: SurveySample,
) -> StratumEstimates:
    """Add weighted counts, and effective numbers of units and of clusters, to estimates.

    Shapes: ``count`` [n_cells, n_clusters], ``cell, weight`` [n].
    """
    weighted_counts = np.asarray(count.sum(axis=1), dtype=np.float64).ravel()
    cluster_squares = np.asarray(count.power(2).sum(axis=1), dtype=np.float64).ravel()
    unit_squares = np.bincount(cell, weight**2, minlength=len(weighted_counts)).astype(np.float64)
    n_strata = 1 if survey_sample.strata is None else len(survey_sample.strata.n_sampled)
    n_effective, n_clusters = (
        np.divide(
            weighted_counts**2, squares, out=np.zeros_like(weighted_counts), where=squares > 0
        )
        for squares in (unit_squares, cluster_squares)
    )
    effective_clusters = np.maximum(n_clusters - (n_strata - 1.0), 1.0)
    # The small constant keeps rounding from putting n equal weights below a minimum of n.
    return replace(
        cells,
        weighted_counts=weighted_counts,
        n_effective=n_effective + 1e-9,
        effective_clusters=effective_clusters,
    )


def _build_binary_gap_variance_or_none(
    positives: csr_array,
    count: csr_array,
    score: FloatArray,
    people: FloatArray,
    is_survey_sample: bool,
) -> BinaryGapVariance | None:
    """Build the sums of cells by cluster; None where scores are not 0 or 1.

    Shapes: ``right, count`` [n_cells, n_clusters], ``score, people`` [n_clusters], of everyone.
    """
    from scipy.sparse import csr_array

    overall = csr_array(score[None, :]), csr_array(people[None, :])
    if not are_rows_zero_or_one(*overall):
        return None
    intracluster_correlation = pooled_intracluster_correlation(
        *overall, np.ones(len(score), dtype=np.int64)
    ).item()
    sums, weighted_counts = (
        np.asarray(m.sum(axis=1), dtype=np.float64).ravel() for m in (positives, count)
    )
    return BinaryGapVariance(
        positives, count, sums, weighted_counts, float(intracluster_correlation), is_survey_sample
    )
