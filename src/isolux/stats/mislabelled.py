"""Means of groups whose labels may be wrong: corrected by a confusion matrix, or bounded.

Corrected
    Of everyone truly of group g the share T[g, l] is labelled l, whatever their score. Then people
    and summed scores by label are both mixtures of those by group: n_l = Σ_g T[g, l] N_g, and
    likewise the sums. Solving both gives the groups' means (the matrix method).
Bounded
    Of each group's labels, and of everybody else's, a share may be wrong, no matter whose. The gap
    is then anything between what the worst and the best exchange of people leaves: the lowest
    scores of one side for the highest of the other (Horowitz & Manski's contaminated samples, with
    both sides of the exchange observed). The bounds are sharp: some exchange reaches them.
By posterior
    Where several annotators label a person, Dawid & Skene's model gives the chance w of each group.
    A person's expected score is Σ_g w_g μ_g, so the means are a regression of scores on w. (The
    mean of scores weighted by w is not: it draws the groups together.)

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

_MAX_ROUNDS = 50  # each round only gains, and a handful is enough: a guard, not a setting


@dataclass(frozen=True, slots=True)
class Bounds:
    """Least and largest gap, first side less second, in the score's unit."""

    low: float
    high: float


def corrected(people: FloatArray, total: FloatArray, matrix: FloatArray) -> FloatArray:
    """Undo a confusion matrix: means of the true groups.

    Shapes: ``people, total`` [..., l], ``matrix`` [..., g, l]; returns [..., g].
    """
    transposed = np.swapaxes(matrix, -1, -2)
    solution = np.linalg.solve(transposed, np.stack(np.broadcast_arrays(people, total), axis=-1))
    n, sums = solution[..., 0], solution[..., 1]
    return np.asarray(np.divide(sums, n, out=np.full(n.shape, np.nan), where=n > 0))


def exchange(first: FloatArray, second: FloatArray, max_wrong_share: float) -> Bounds:
    """Bound the gap of two sides if up to a share of either side's labels is wrong.

    Shapes: ``first, second`` [a].
    """
    if not len(first) or not len(second):
        return Bounds(float("nan"), float("nan"))
    high = _max_gap_by_exchange(first, second, max_wrong_share)
    low = -_max_gap_by_exchange(second, first, max_wrong_share)
    return Bounds(low + 0.0, high + 0.0)  # no negative zero


def _max_gap_by_exchange(first: FloatArray, second: FloatArray, max_wrong_share: float) -> float:
    """Exchange the lowest of the first for the highest of the second, as far as it helps."""
    a, b = np.sort(first), np.sort(second)[::-1]
    # .29 of 100 people are 29, though .29 * 100 is 28.999999999999996.
    max_given, max_taken = (int(max_wrong_share * len(values) + 1e-9) for values in (a, b))
    removed_sums = np.concatenate([[0.0], np.cumsum(a[:max_given])])
    added_sums = np.concatenate([[0.0], np.cumsum(b[:max_taken])])
    i, j = np.arange(max_given + 1), np.arange(max_taken + 1)

    def gap(i: IntArray, j: IntArray) -> FloatArray:
        n_a, n_b = len(a) - i + j, len(b) - j + i
        sum_a, sum_b = (
            a.sum() - removed_sums[i] + added_sums[j],
            b.sum() - added_sums[j] + removed_sums[i],
        )
        is_empty = (n_a <= 0) | (n_b <= 0)
        mean_a, mean_b = sum_a / np.maximum(n_a, 1), sum_b / np.maximum(n_b, 1)
        return np.asarray(np.where(is_empty, -np.inf, mean_a - mean_b))

    best = -np.inf
    for start_i, start_j in ((max_given, max_taken), (0, 0), (max_given, 0), (0, max_taken)):
        x, y = start_i, start_j
        for _ in range(_MAX_ROUNDS):  # each way in turn, until neither gains
            x = int(gap(i, np.full(len(i), y)).argmax())
            best_j = int(gap(np.full(len(j), x), j).argmax())
            if best_j == y:
                break
            y = best_j
        best = max(best, float(gap(np.array([x]), np.array([y]))[0]))
    return best


def unknown_bounds(first: FloatArray, second: FloatArray, unknown: FloatArray) -> Bounds:
    """Bound the gap of two sides if people of unknown group may be of either."""

    def widest(a: FloatArray, b: FloatArray) -> float:
        descending = np.sort(unknown)[::-1]
        k = np.arange(len(descending) + 1)
        taken_sums = np.concatenate([[0.0], np.cumsum(descending)])
        n_a, n_b = len(a) + k, len(b) + len(descending) - k
        mean_a = np.divide(a.sum() + taken_sums, n_a, out=np.full(len(k), -np.inf), where=n_a > 0)
        remaining_sum = b.sum() + descending.sum() - taken_sums
        mean_b = np.divide(remaining_sum, n_b, out=np.full(len(k), np.inf), where=n_b > 0)
        return float((mean_a - mean_b).max())

    if not len(first) or not len(second):
        return Bounds(float("nan"), float("nan"))
    return Bounds(-widest(second, first), widest(first, second))


def posterior_means(
    weights: FloatArray,
    posterior: FloatArray,
    score: FloatArray,
    *,
    prior: tuple[FloatArray, FloatArray] | None = None,
) -> FloatArray:
    """Regress scores on the chances of the groups: their means.

    Shapes: ``weights`` [r, n], ``posterior`` [n, g], ``score`` [n], ``prior`` [g]; returns [r, g].
    """
    normal_matrix = np.einsum("rn,ng,nh->rgh", weights, posterior, posterior, optimize=True)
    right_hand_side = np.einsum("rn,ng->rg", weights * score, posterior)
    if prior is not None:
        normal_matrix, right_hand_side = (
            normal_matrix + np.diag(prior[0]),
            right_hand_side + prior[1],
        )
    # Beyond, chances of two groups are alike to ten digits: what is left of a float is noise.
    is_solvable = np.linalg.cond(normal_matrix) < 1e10
    means = np.full(right_hand_side.shape, np.nan)
    means[is_solvable] = np.linalg.solve(
        normal_matrix[is_solvable], right_hand_side[is_solvable][..., None]
    )[..., 0]
    return means


def dawid_skene(
    votes: FloatArray,
    *,
    weights: FloatArray | None = None,
    rounds: int = 100,
    tolerance: float = 1e-6,
) -> FloatArray:
    """Fit annotators' confusion matrices and give each person's chance of every group.

    Shapes: ``votes`` [n, annotators, g], ``weights`` [n]; returns [n, g].
    """
    person_weights = np.ones(len(votes)) if weights is None else weights
    total = votes.sum(axis=1)
    # A person without a vote has no chance of any label, rather than NaN of all.
    posterior = total / np.maximum(total.sum(axis=1, keepdims=True), 1e-12)
    for _ in range(rounds):
        share = person_weights @ posterior / person_weights.sum()
        # A hundredth of a vote keeps an annotator who was never wrong from being infallible.
        counts = np.einsum("ng,nal->agl", posterior * person_weights[:, None], votes) + 0.01
        error = counts / counts.sum(axis=2, keepdims=True)
        logs = np.log(np.maximum(share, 1e-12)) + np.einsum("nal,agl->ng", votes, np.log(error))
        new_posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        new_posterior /= new_posterior.sum(axis=1, keepdims=True)
        max_change = float(np.abs(new_posterior - posterior).max())
        posterior = new_posterior
        if max_change < tolerance:
            break
    return np.asarray(posterior)
