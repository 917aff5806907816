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

_ROUNDS = 50  # each round only gains, and a handful is enough: a guard, not a setting


@dataclass(frozen=True, slots=True)
class Bounds:
    """Least and largest gap, first side less second, in the score's unit."""

    low: float
    high: float


def corrected(people: FloatArray, total: FloatArray, matrix: FloatArray) -> FloatArray:
    """Undo a confusion matrix: means of the true groups.

    Shapes: ``people, total`` [..., l], ``matrix`` [..., g, l]; returns [..., g].
    """
    turned = np.swapaxes(matrix, -1, -2)
    both = np.linalg.solve(turned, np.stack(np.broadcast_arrays(people, total), axis=-1))
    n, sums = both[..., 0], both[..., 1]
    return np.asarray(np.divide(sums, n, out=np.full(n.shape, np.nan), where=n > 0))


def exchange(first: FloatArray, second: FloatArray, wrong: float) -> Bounds:
    """Bound the gap of two sides if up to a share of either side's labels is wrong.

    Shapes: ``first, second`` [a].
    """
    if not len(first) or not len(second):
        return Bounds(float("nan"), float("nan"))
    high = _widest(first, second, wrong)
    low = -_widest(second, first, wrong)
    return Bounds(low + 0.0, high + 0.0)  # no negative zero


def _widest(first: FloatArray, second: FloatArray, wrong: float) -> float:
    """Exchange the lowest of the first for the highest of the second, as far as it helps."""
    a, b = np.sort(first), np.sort(second)[::-1]
    # .29 of 100 people are 29, though .29 * 100 is 28.999999999999996.
    give, take = (int(wrong * len(side) + 1e-9) for side in (a, b))
    lost = np.concatenate([[0.0], np.cumsum(a[:give])])
    won = np.concatenate([[0.0], np.cumsum(b[:take])])
    i, j = np.arange(give + 1), np.arange(take + 1)

    def gap(i: IntArray, j: IntArray) -> FloatArray:
        n_a, n_b = len(a) - i + j, len(b) - j + i
        sum_a, sum_b = a.sum() - lost[i] + won[j], b.sum() - won[j] + lost[i]
        empty = (n_a <= 0) | (n_b <= 0)
        one, other = sum_a / np.maximum(n_a, 1), sum_b / np.maximum(n_b, 1)
        return np.asarray(np.where(empty, -np.inf, one - other))

    best = -np.inf
    for at, to in ((give, take), (0, 0), (give, 0), (0, take)):
        x, y = at, to
        for _ in range(_ROUNDS):  # each way in turn, until neither gains
            x = int(gap(i, np.full(len(i), y)).argmax())
            new = int(gap(np.full(len(j), x), j).argmax())
            if new == y:
                break
            y = new
        best = max(best, float(gap(np.array([x]), np.array([y]))[0]))
    return best


def unknown_bounds(first: FloatArray, second: FloatArray, unknown: FloatArray) -> Bounds:
    """Bound the gap of two sides if people of unknown group may be of either."""

    def widest(a: FloatArray, b: FloatArray) -> float:
        falling = np.sort(unknown)[::-1]
        k = np.arange(len(falling) + 1)
        taken = np.concatenate([[0.0], np.cumsum(falling)])
        n_a, n_b = len(a) + k, len(b) + len(falling) - k
        one = np.divide(a.sum() + taken, n_a, out=np.full(len(k), -np.inf), where=n_a > 0)
        rest = b.sum() + falling.sum() - taken
        other = np.divide(rest, n_b, out=np.full(len(k), np.inf), where=n_b > 0)
        return float((one - other).max())

    if not len(first) or not len(second):
        return Bounds(float("nan"), float("nan"))
    return Bounds(-widest(second, first), widest(first, second))


def posterior_means(
    weights: FloatArray,
    chance: FloatArray,
    score: FloatArray,
    *,
    more: tuple[FloatArray, FloatArray] | None = None,
) -> FloatArray:
    """Regress scores on the chances of the groups: their means.

    Shapes: ``weights`` [r, n], ``chance`` [n, g], ``score`` [n], ``more`` [g]; returns [r, g].
    """
    inner = np.einsum("rn,ng,nh->rgh", weights, chance, chance, optimize=True)
    outer = np.einsum("rn,ng->rg", weights * score, chance)
    if more is not None:
        inner, outer = inner + np.diag(more[0]), outer + more[1]
    # Beyond, chances of two groups are alike to ten digits: what is left of a float is noise.
    held = np.linalg.cond(inner) < 1e10
    found = np.full(outer.shape, np.nan)
    found[held] = np.linalg.solve(inner[held], outer[held][..., None])[..., 0]
    return found


def dawid_skene(
    votes: FloatArray, *, weights: FloatArray | None = None, rounds: int = 100, close: float = 1e-6
) -> FloatArray:
    """Fit annotators' confusion matrices and give each person's chance of every group.

    Shapes: ``votes`` [n, annotators, g], ``weights`` [n]; returns [n, g].
    """
    own = np.ones(len(votes)) if weights is None else weights
    total = votes.sum(axis=1)
    # A person without a vote has no chance of any label, rather than NaN of all.
    chance = total / np.maximum(total.sum(axis=1, keepdims=True), 1e-12)
    for _ in range(rounds):
        share = own @ chance / own.sum()
        # A hundredth of a vote keeps an annotator who was never wrong from being infallible.
        counts = np.einsum("ng,nal->agl", chance * own[:, None], votes) + 0.01
        error = counts / counts.sum(axis=2, keepdims=True)
        logs = np.log(np.maximum(share, 1e-12)) + np.einsum("nal,agl->ng", votes, np.log(error))
        new = np.exp(logs - logs.max(axis=1, keepdims=True))
        new /= new.sum(axis=1, keepdims=True)
        moved = float(np.abs(new - chance).max())
        chance = new
        if moved < close:
            break
    return np.asarray(chance)
