"""Gaps to everyone else: as labelled, corrected with an interval, and bounded.

The second step of the analysis ``label_errors``. Every gap is a group's mean minus that of all
others of the attribute; of two groups there is one.

Corrected means come from a Bayesian bootstrap of clusters (Rubin 1981): each cluster's weight is an
exponential variate. A group without one error would have the same mean in every replicate, as if
errors were impossible, so each group gets half a success and half a failure, as by Jeffreys' prior
of a proportion, times the design effect where scores are clustered. Replicates are clipped to the
possible scores. A replicate in which a group has no people has the extreme scores as its mean, so
that the interval becomes wide.

Bounds have Imbens and Manski's interval, which extends at least as far beyond them as the audit's
own interval extends from the gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from isolux.analyses.label_errors.labelled_scores import LabelledScores
from isolux.stats.confusion import ConfusionMatrix
from isolux.stats.label_noise import (
    GapBounds,
    correct_means_by_matrix,
    dawid_skene_group_posterior,
    gap_bounds_with_unknown_group,
    gap_bounds_with_wrong_labels,
    regress_scores_on_posteriors,
)
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import draw_multinomial_weights, iterate_seeded_replicate_blocks

ANNOTATORS_METHOD = "model of the annotators"
_N_BOUND_REPLICATES = 200
"""Replicates of the bounds: each sorts all people; two standard errors need no more."""
_N_BISECTIONS = 20
_MAX_EM_ROUNDS = 20
_MIN_DEFINED_SHARE = 0.9
_PRIOR_COUNT = 0.5  # of successes, and of failures: Jeffreys' prior
_DESIGN_EFFECT_Z = 1.96  # critical value at which design effects are evaluated
_UNDEFINED_BOUNDS = GapBounds(float("nan"), float("nan"))


@dataclass(frozen=True, slots=True)
class CorrectedGaps:
    """Corrected means of the true groups, and their distinct gaps with intervals.

    ``value, low, high [g]``; ``gap, gap_low, gap_high [k]``, with simultaneous intervals. A gap is
    of values clipped to the possible scores. NaN: undefined. ``missing_reason``: the reason, where
    the labels give one. ``warning``: why the correction is not reliable, or empty.
    """

    value: FloatArray
    low: FloatArray
    high: FloatArray
    gap: FloatArray
    gap_low: FloatArray
    gap_high: FloatArray
    method: str
    missing_reason: str = ""
    warning: str = ""


@dataclass(frozen=True, slots=True)
class LabelErrorGap:
    """The gap of one group minus everyone else, as labelled, and its bounds.

    ``label_error_bounds``: bounds if labels are wrong; ``sampled_bounds``: the same with sampling
    error (Imbens and Manski's interval). ``breakdown``: share of wrong labels from which the gap
    could be 0; None: none below a half. ``unknown_bounds``: bounds if people of unknown label are
    of any groups, None without such people; ``all_unknown_in``, ``no_unknown_in``: the gap if all
    of them are of the group, or none.
    """

    group: int
    labelled: float
    label_error_bounds: GapBounds
    sampled_bounds: GapBounds
    breakdown: float | None
    unknown_bounds: GapBounds | None = None
    sampled_unknown_bounds: GapBounds = _UNDEFINED_BOUNDS
    all_unknown_in: float = 0.0
    no_unknown_in: float = 0.0


def list_groups_with_distinct_gaps(n_groups: int) -> list[int]:
    """List the groups with distinct gaps: of two groups only the first."""
    return [0] if n_groups == 2 else list(range(n_groups))


def bonferroni_interval_level(level: float, n_gaps: int) -> float:
    """Return the level of each interval for which all are simultaneous (Bonferroni)."""
    return 1.0 - (1.0 - level) / max(n_gaps, 1)


def correct_gaps_by_confusion_matrix(
    people: LabelledScores, matrix: ConfusionMatrix, replicates: int, level: float, seed: int
) -> CorrectedGaps:
    """Correct by the matrix; clusters and the matrix's counts are resampled together."""
    count, sums = people.sum_by_cluster()
    min_score, max_score = _prior_failure_and_success_scores(people)
    drawn_n, drawn_total = [], []
    for weights, n_high, n_low in _draw_cluster_weights_and_prior_counts(people, replicates, seed):
        n = weights @ count
        drawn_n.append(n)
        drawn_total.append(
            n * (weights @ sums + n_high * max_score + n_low * min_score) / (n + n_high + n_low)
        )
    n, totals = np.concatenate(drawn_n), np.concatenate(drawn_total)
    drawn_matrices = matrix.draw_posterior_matrices(np.random.default_rng([seed, 7]), replicates)
    group_means = correct_means_by_matrix(count.sum(axis=0), sums.sum(axis=0), matrix.share)
    size = np.linalg.solve(matrix.share.T, count.sum(axis=0)).astype(np.float64)
    sizes = np.linalg.solve(np.swapaxes(drawn_matrices, 1, 2), n[..., None])[..., 0].astype(
        np.float64
    )
    replicate_means = correct_means_by_matrix(n, totals, drawn_matrices)
    return _build_corrected_gaps_with_intervals(
        people, group_means, replicate_means, size, sizes, level, "confusion matrix"
    )


def correct_gaps_by_annotators(
    people: LabelledScores, votes: FloatArray, replicates: int, level: float, seed: int
) -> CorrectedGaps:
    """Regress scores on Dawid & Skene's posterior, refitted on every resample of clusters."""
    rows = np.flatnonzero(votes.sum(axis=(1, 2)) > 0)
    votes, score, cluster = votes[rows], people.score[rows], people.cluster[rows]
    patterns, pattern_index = np.unique(votes.reshape(len(votes), -1), axis=0, return_inverse=True)
    patterns = patterns.reshape(-1, *votes.shape[1:])
    posterior = dawid_skene_group_posterior(votes)
    group_means = regress_scores_on_posteriors(np.ones((1, len(rows))), posterior, score)[0]
    replicate_means = np.full((replicates, len(people.groups)), np.nan)
    sizes = np.zeros_like(replicate_means)
    min_score, max_score = _prior_failure_and_success_scores(people)
    weights = (
        w
        for block in _draw_cluster_weights_and_prior_counts(people, replicates, seed)
        for w in zip(*block, strict=True)
    )
    for r, (cluster_weights, n_high, n_low) in enumerate(weights):
        row_weights = np.asarray(cluster_weights[cluster], dtype=np.float64)
        count = np.bincount(pattern_index, row_weights, len(patterns)).astype(np.float64)
        fitted = dawid_skene_group_posterior(patterns, weights=count, max_rounds=_MAX_EM_ROUNDS)[
            pattern_index
        ]
        prior = (n_high + n_low, n_high * max_score + n_low * min_score)
        replicate_means[r] = regress_scores_on_posteriors(
            row_weights[None], fitted, score, prior=prior
        )[0]
        sizes[r] = row_weights @ fitted
    size = posterior.sum(axis=0)
    return _build_corrected_gaps_with_intervals(
        people, group_means, replicate_means, size, sizes, level, ANNOTATORS_METHOD
    )


def build_empty_correction(people: LabelledScores, method: str, reason: str = "") -> CorrectedGaps:
    """Build the result without a correction: no numbers, and the reason."""
    groups = np.full(len(people.groups), np.nan)
    gaps = np.full(len(list_groups_with_distinct_gaps(len(people.groups))), np.nan)
    return CorrectedGaps(groups, groups, groups, gaps, gaps, gaps, method, missing_reason=reason)


def _prior_failure_and_success_scores(people: LabelledScores) -> tuple[float, float]:
    """Return the scores of the prior's failure and success; 0 where scores have no limits."""
    min_score, max_score = people.score_limits
    return (min_score, max_score) if np.isfinite(min_score) else (0.0, 0.0)


def _draw_cluster_weights_and_prior_counts(
    people: LabelledScores, replicates: int, seed: int
) -> Iterator[tuple[FloatArray, FloatArray, FloatArray]]:
    """Yield cluster weights and the prior's two counts, a block of replicates at a time."""
    count = people.sum_by_cluster()[0]
    size = np.zeros(count.shape[1])  # of one observation of each label, in people
    if np.isfinite(people.score_limits[0]):
        shares = people.estimate_proportions([[g] for g in range(count.shape[1])])
        if shares is not None:
            size = np.nan_to_num(shares.design_effect(_DESIGN_EFFECT_Z), nan=1.0)
        else:
            n = np.maximum(count.sum(axis=0), 1.0)
            size = np.maximum((count**2).sum(axis=0) / n, 1.0)
    for rng, r in iterate_seeded_replicate_blocks(replicates, seed, "bootstrap"):
        n_high, n_low = rng.gamma(_PRIOR_COUNT, size=(2, r, len(size))) * size
        yield rng.exponential(size=(r, len(count))), n_high, n_low


def _build_corrected_gaps_with_intervals(
    people: LabelledScores,
    group_means: FloatArray,
    replicate_means: FloatArray,
    size: FloatArray,
    sizes: FloatArray,
    level: float,
    method: str,
) -> CorrectedGaps:
    min_score, max_score = people.score_limits
    n_clusters = [
        len(np.unique(people.cluster[people.label_code == g])) for g in range(len(people.groups))
    ]
    low, high = _t_widened_percentile_bounds(
        replicate_means, np.array(n_clusters, np.float64), level, min_score, max_score
    )
    gap_groups = list_groups_with_distinct_gaps(len(people.groups))
    gap = np.array(
        [
            _compute_gap_to_weighted_others(np.clip(group_means, min_score, max_score), size, g)
            for g in gap_groups
        ]
    )
    clipped_means = np.clip(replicate_means, min_score, max_score)
    gaps = np.stack(
        [_compute_gap_to_weighted_others(clipped_means, sizes, g) for g in gap_groups], axis=1
    )
    min_clusters = np.array([people.count_min_clusters(g) for g in gap_groups], dtype=np.float64)
    simultaneous_level = bonferroni_interval_level(level, len(gap_groups))
    gap_low, gap_high = _t_widened_percentile_bounds(
        gaps, min_clusters, simultaneous_level, min_score - max_score, max_score - min_score
    )
    return CorrectedGaps(group_means, low, high, gap, gap_low, gap_high, method)


def _compute_gap_to_weighted_others(
    group_means: FloatArray, size: FloatArray, g: int
) -> FloatArray:
    """Compute one group minus the mean of all others, weighted by their (corrected) counts."""
    other_groups = np.delete(np.arange(group_means.shape[-1]), g)
    n = np.where(size[..., other_groups] > 0, size[..., other_groups], np.nan)
    other_mean = (group_means[..., other_groups] * n).sum(axis=-1) / n.sum(axis=-1)
    return np.asarray(group_means[..., g] - other_mean)


def _t_widened_percentile_bounds(
    replicates: FloatArray, n_clusters: FloatArray, level: float, min_value: float, max_value: float
) -> tuple[FloatArray, FloatArray]:
    """Return percentile bounds, widened as Student's t is wider than a normal distribution.

    Shapes: ``replicates`` [r, k], ``n_clusters`` [k]; returns [k].
    A matrix that hardly distinguishes groups gives skewed replicates, so the interval is not
    symmetric (Hesterberg 2015, expanded percentiles).
    """
    from scipy.special import ndtr, stdtrit

    is_bounded = bool(np.isfinite(min_value))
    defined_share = np.isfinite(replicates).mean(axis=0)
    has_enough = (defined_share >= (0.0 if is_bounded else _MIN_DEFINED_SHARE)) & (n_clusters > 1)
    dof = np.maximum(n_clusters - 1.0, 1.0)
    # The Bayesian bootstrap's variance is that of n - 1 rows over n + 1.
    tail_levels = ndtr(-stdtrit(dof, 0.5 + level / 2) * np.sqrt((n_clusters + 1.0) / dof))
    bounds = np.full((2, len(n_clusters)), np.nan)
    for k in np.flatnonzero(has_enough):
        group_replicates = replicates[:, k]
        group_replicates = (
            np.clip(group_replicates, min_value, max_value)
            if is_bounded
            else group_replicates[np.isfinite(group_replicates)]
        )
        for bound, (tail, extreme) in enumerate(
            ((tail_levels[k], min_value), (1 - tail_levels[k], max_value))
        ):
            bounds[bound, k] = np.quantile(
                np.where(np.isnan(group_replicates), extreme, group_replicates), tail
            )
    return bounds[0], bounds[1]


def bound_gap_with_label_errors(
    people: LabelledScores, g: int, max_error_rate: float, level: float, seed: int
) -> LabelErrorGap:
    """Compute one gap as labelled, and its bounds."""
    rows = people.split_rows(g)
    first, second, unknown = (people.score[group_rows] for group_rows in rows)
    if not len(first) or not len(second):
        return LabelErrorGap(g, float("nan"), _UNDEFINED_BOUNDS, _UNDEFINED_BOUNDS, None)
    labelled = float(first.mean() - second.mean())
    resampled_scores = []
    for rng, size in iterate_seeded_replicate_blocks(_N_BOUND_REPLICATES, seed, "bootstrap"):
        for row in draw_multinomial_weights(
            rng, np.ones(people.n_clusters, dtype=np.int64), size
        ).T:
            multiplicity = row[people.cluster].astype(np.int64)
            resampled_scores.append(
                [
                    np.repeat(people.score[group_rows], multiplicity[group_rows])
                    for group_rows in rows
                ]
            )
    bounds = gap_bounds_with_wrong_labels(first, second, max_error_rate)
    sampled = _widen_bounds_for_sampling_error(
        bounds,
        [gap_bounds_with_wrong_labels(a, b, max_error_rate) for a, b, _ in resampled_scores],
        people,
        g,
        level,
    )
    breakdown = _find_breakdown_error_rate(first, second, labelled)
    if not len(unknown):
        return LabelErrorGap(g, labelled, bounds, sampled, breakdown)
    unknown_range = gap_bounds_with_unknown_group(first, second, unknown)
    resampled = [gap_bounds_with_unknown_group(*groups) for groups in resampled_scores]
    return LabelErrorGap(
        g,
        labelled,
        bounds,
        sampled,
        breakdown,
        unknown_range,
        _widen_bounds_for_sampling_error(unknown_range, resampled, people, g, level),
        float(np.concatenate([first, unknown]).mean() - second.mean()),
        float(first.mean() - np.concatenate([second, unknown]).mean()),
    )


def _find_breakdown_error_rate(
    first: FloatArray, second: FloatArray, labelled: float
) -> float | None:
    """Find by bisection the smallest share of wrong labels at which the gap could be 0."""

    def can_gap_be_zero(error_rate: float) -> bool:
        bounds = gap_bounds_with_wrong_labels(first, second, error_rate)
        return bounds.low <= 0 <= bounds.high

    if labelled == 0 or can_gap_be_zero(0.0):
        return 0.0
    low, high = 0.0, 0.5
    if not can_gap_be_zero(high):
        return None
    for _ in range(_N_BISECTIONS):
        middle = (low + high) / 2
        low, high = (low, middle) if can_gap_be_zero(middle) else (middle, high)
    return round(high, 4)


def _audit_interval_half_widths(people: LabelledScores, g: int, z: float) -> tuple[float, float]:
    """Return the half-widths of the audit's interval below and above the labelled gap, at z."""
    from isolux.stats.differences import independent_mean_difference

    means = people.estimate_proportions([[g], [k for k in range(len(people.groups)) if k != g]])
    if means is None:
        return 0.0, 0.0
    group_mean, other_mean = means.take(np.array([0])), means.take(np.array([1]))
    zero_covariance = np.zeros(1)  # conservative: shared clusters would make the interval narrower
    interval = independent_mean_difference(
        group_mean, other_mean, zero_covariance, zero_covariance
    ).interval(z)
    gap = (group_mean.value - other_mean.value).item()
    return gap - interval.low.item(), interval.high.item() - gap


def _widen_bounds_for_sampling_error(
    bounds: GapBounds, replicates: Sequence[GapBounds], people: LabelledScores, g: int, level: float
) -> GapBounds:
    """Widen bounds for sampling error, so that the interval covers the gap itself with the level.

    Imbens and Manski (2004): the critical value c solves Φ(c + width / se) − Φ(−c) = level.
    """
    from scipy.optimize import brentq
    from scipy.special import ndtr, ndtri, stdtrit

    n_clusters = people.count_min_clusters(g)
    replicate_bounds = np.array([[replicate.low, replicate.high] for replicate in replicates])
    replicate_bounds = replicate_bounds[np.isfinite(replicate_bounds).all(axis=1)]
    if len(replicate_bounds) < _MIN_DEFINED_SHARE * len(replicates) or n_clusters < 2:
        return _UNDEFINED_BOUNDS
    low_error, high_error = replicate_bounds.std(axis=0, ddof=1) * np.sqrt(
        n_clusters / (n_clusters - 1.0)
    )
    largest_error = max(low_error, high_error, *_audit_interval_half_widths(people, g, 1.0), 1e-12)
    width = (bounds.high - bounds.low) / largest_error
    critical = float(
        brentq(lambda critical: ndtr(critical + width) - ndtr(-critical) - level, 0.0, 10.0)
    )
    t_critical = critical * float(stdtrit(n_clusters - 1, 0.5 + level / 2) / ndtri(0.5 + level / 2))
    half_width_below, half_width_above = _audit_interval_half_widths(people, g, critical)
    min_score, max_score = people.score_limits
    low = bounds.low - max(t_critical * float(low_error), half_width_below)
    high = bounds.high + max(t_critical * float(high_error), half_width_above)
    return GapBounds(max(low, min_score - max_score), min(high, max_score - min_score))
