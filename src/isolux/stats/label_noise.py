"""Label noise: group means corrected by a confusion matrix, or bounds of a gap.

Corrected
    A share T[g, l] of those truly of group g is labelled l, independent of the score. Counts and
    summed scores by label are then mixtures of those by group: n_l = Σ_g T[g, l] N_g, and likewise
    the sums. Solving both systems gives the groups' means (the matrix method).
Bounded
    An unknown share of each group's labels may be wrong. The gap is then between the values after
    the worst and the best exchange of people: the lowest scores of one group for the highest of the
    other (Horowitz & Manski's contaminated samples, with both samples observed). The bounds are
    sharp: some exchange attains them.
By posterior
    Where several annotators label a person, Dawid & Skene's model gives the posterior w of each
    group. A person's expected score is Σ_g w_g μ_g, so the means are a regression of scores on w.
    (The mean of scores weighted by w is biased: it shrinks differences.)

References
----------
.. [1] Greenland, S. (1988). Variance estimation for epidemiologic effect estimates under
   misclassification. Statistics in Medicine 7(7), 745-757.
.. [2] Horowitz, J. L. & Manski, C. F. (1995). Identification and robustness with contaminated and
   corrupted data. Econometrica 63(2), 281-302.
.. [3] Dawid, A. P. & Skene, A. M. (1979). Maximum likelihood estimation of observer error-rates
   using the EM algorithm. Applied Statistics 28(1), 20-28.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isolux.stats.statistic import FloatArray, IntArray

_MAX_ROUNDS = 50  # coordinate ascent converges within a few rounds


@dataclass(frozen=True, slots=True)
class GapBounds:
    """Smallest and largest gap, first minus second group, in the score's unit."""

    low: float
    high: float


def correct_means_by_matrix(
    n_labelled: FloatArray, score_sum: FloatArray, confusion_matrix: FloatArray
) -> FloatArray:
    """Invert a confusion matrix: means of the true groups (the matrix method).

    Shapes: ``n_labelled, score_sum`` [..., l], ``confusion_matrix`` [..., g, l]; returns [..., g].
    """
    transposed = np.swapaxes(confusion_matrix, -1, -2)
    solution = np.linalg.solve(
        transposed, np.stack(np.broadcast_arrays(n_labelled, score_sum), axis=-1)
    )
    n, sums = solution[..., 0], solution[..., 1]
    return np.asarray(np.divide(sums, n, out=np.full(n.shape, np.nan), where=n > 0))


def gap_bounds_with_wrong_labels(
    scores_a: FloatArray, scores_b: FloatArray, max_wrong_share: float
) -> GapBounds:
    """Bound the gap of two groups if up to a share of either group's labels is wrong.

    Shapes: ``first, second`` [a].
    """
    if not len(scores_a) or not len(scores_b):
        return GapBounds(float("nan"), float("nan"))
    high = _max_gap_with_wrong_labels(scores_a, scores_b, max_wrong_share)
    low = -_max_gap_with_wrong_labels(scores_b, scores_a, max_wrong_share)
    return GapBounds(low + 0.0, high + 0.0)  # no negative zero


def _max_gap_with_wrong_labels(
    scores_a: FloatArray, scores_b: FloatArray, max_wrong_share: float
) -> float:
    """Maximise the gap by exchanging the lowest of the first for the highest of the second."""
    a, b = np.sort(scores_a), np.sort(scores_b)[::-1]
    # 0.29 of 100 people are 29, though 0.29 * 100 is 28.999999999999996.
    max_given, max_taken = (int(max_wrong_share * len(values) + 1e-9) for values in (a, b))
    removed_sums = np.concatenate([[0.0], np.cumsum(a[:max_given])])
    added_sums = np.concatenate([[0.0], np.cumsum(b[:max_taken])])
    i, j = np.arange(max_given + 1), np.arange(max_taken + 1)

    def gap_after_exchanges(i: IntArray, j: IntArray) -> FloatArray:
        n_a, n_b = len(a) - i + j, len(b) - j + i
        sum_a, sum_b = (
            a.sum() - removed_sums[i] + added_sums[j],
            b.sum() - added_sums[j] + removed_sums[i],
        )
        is_empty = (n_a <= 0) | (n_b <= 0)
        mean_a, mean_b = sum_a / np.maximum(n_a, 1), sum_b / np.maximum(n_b, 1)
        return np.asarray(np.where(is_empty, -np.inf, mean_a - mean_b))

    best = -np.inf
    # Coordinate ascent from four corners, as it may end in a local maximum.
    for start_i, start_j in ((max_given, max_taken), (0, 0), (max_given, 0), (0, max_taken)):
        x, y = start_i, start_j
        for _ in range(_MAX_ROUNDS):  # one coordinate in turn, until neither changes
            x = int(gap_after_exchanges(i, np.full(len(i), y)).argmax())
            best_j = int(gap_after_exchanges(np.full(len(j), x), j).argmax())
            if best_j == y:
                break
            y = best_j
        best = max(best, float(gap_after_exchanges(np.array([x]), np.array([y]))[0]))
    return best


def gap_bounds_with_unknown_group(
    scores_a: FloatArray, scores_b: FloatArray, scores_unknown: FloatArray
) -> GapBounds:
    """Bound the gap of two groups if people of unknown group may be in either."""

    def max_gap_with_unknowns(a: FloatArray, b: FloatArray) -> float:
        descending = np.sort(scores_unknown)[::-1]
        k = np.arange(len(descending) + 1)
        taken_sums = np.concatenate([[0.0], np.cumsum(descending)])
        n_a, n_b = len(a) + k, len(b) + len(descending) - k
        mean_a = np.divide(a.sum() + taken_sums, n_a, out=np.full(len(k), -np.inf), where=n_a > 0)
        remaining_sum = b.sum() + descending.sum() - taken_sums
        mean_b = np.divide(remaining_sum, n_b, out=np.full(len(k), np.inf), where=n_b > 0)
        return float((mean_a - mean_b).max())

    if not len(scores_a) or not len(scores_b):
        return GapBounds(float("nan"), float("nan"))
    return GapBounds(
        -max_gap_with_unknowns(scores_b, scores_a), max_gap_with_unknowns(scores_a, scores_b)
    )


def regress_scores_on_posteriors(
    weights: FloatArray,
    group_posterior: FloatArray,
    score: FloatArray,
    *,
    prior: tuple[FloatArray, FloatArray] | None = None,
) -> FloatArray:
    """Regress scores on the posteriors of the groups: their means.

    Shapes: ``weights`` [r, n], ``group_posterior`` [n, g], ``score`` [n], ``prior`` [g]; returns
    [r, g].
    """
    normal_matrix = np.einsum(
        "rn,ng,nh->rgh", weights, group_posterior, group_posterior, optimize=True
    )
    right_hand_side = np.einsum("rn,ng->rg", weights * score, group_posterior)
    if prior is not None:
        normal_matrix, right_hand_side = (
            normal_matrix + np.diag(prior[0]),
            right_hand_side + prior[1],
        )
    # Above, posteriors of two groups agree to ten digits, and the solution is rounding noise.
    is_solvable = np.linalg.cond(normal_matrix) < 1e10
    means = np.full(right_hand_side.shape, np.nan)
    means[is_solvable] = np.linalg.solve(
        normal_matrix[is_solvable], right_hand_side[is_solvable][..., None]
    )[..., 0]
    return means


def dawid_skene_group_posterior(
    label_counts: FloatArray,
    *,
    weights: FloatArray | None = None,
    max_rounds: int = 100,
    tolerance: float = 1e-6,
) -> FloatArray:
    """Fit annotators' confusion matrices by EM, with each person's posterior of every group.

    Shapes: ``label_counts`` [n, annotators, g], ``weights`` [n]; returns [n, g].
    """
    person_weights = np.ones(len(label_counts)) if weights is None else weights
    total = label_counts.sum(axis=1)
    # A person without a vote gets 0 for every label, not NaN.
    posterior = total / np.maximum(total.sum(axis=1, keepdims=True), 1e-12)
    for _ in range(max_rounds):
        share = person_weights @ posterior / person_weights.sum()
        # Smoothing by 0.01 votes: no annotator has an error rate of 0.
        counts = np.einsum("ng,nal->agl", posterior * person_weights[:, None], label_counts) + 0.01
        error = counts / counts.sum(axis=2, keepdims=True)
        logs = np.log(np.maximum(share, 1e-12)) + np.einsum(
            "nal,agl->ng", label_counts, np.log(error)
        )
        new_posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        new_posterior /= new_posterior.sum(axis=1, keepdims=True)
        max_change = float(np.abs(new_posterior - posterior).max())
        posterior = new_posterior
        if max_change < tolerance:
            break
    return np.asarray(posterior)
