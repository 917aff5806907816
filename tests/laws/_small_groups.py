"""Worlds of small intersections, and the published methods for them, written anew.

SureMap is written anew from what Khodak et al. (2024) define, their single task: effects of every
set of attributes, whose variances Stein's estimate of risk chooses. The structured regression is
that of Herlihy et al. (2024): a lasso on indicators of every value and combination, cells weighed
by their people, its penalty by cross-validation over people.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, logit

KINDS = {
    "nothing differs": {},
    "main effects alone": {"main": 0.6},
    "effects of every order": {"main": 0.5, "pairs": 0.3, "own": 0.2},
    "no structure": {"own": 0.6},
    "strong effects": {"main": 1.0, "pairs": 0.5},
    "one odd cell": {"main": 0.3, "odd": -2.0},
    "rate .98": {"rate": 0.98, "main": 0.4, "pairs": 0.2},
    "rate .02": {"rate": 0.02, "main": 0.4, "pairs": 0.2},
}
"""Standard deviations of effects, in log-odds, and the rate around which they lie (.8)."""
SHAPES = {"4 × 2 × 3": (4, 2, 3), "6 × 2 × 5": (6, 2, 5)}


@dataclass(frozen=True)
class World:
    """Cells, what they truly get, and how many of how many people got it; ``odd``: or None."""

    levels: np.ndarray
    truth: np.ndarray
    people: np.ndarray
    hits: np.ndarray
    odd: int | None

    @property
    def share(self):
        """The raw share, NaN where nobody is."""
        return np.divide(self.hits, self.people, out=np.full(len(self.hits), np.nan),
                         where=self.people > 0)  # fmt: skip


def log_odds(rng, shape, *, rate=0.8, main=0.0, pairs=0.0, own=0.0, odd=0.0):
    """Draw what each cell truly gets, ``[d]``, and which cell is odd."""
    levels = np.array(list(itertools.product(*map(range, shape))))
    eta = np.full(len(levels), logit(rate))
    for order, sd in ((1, main), (2, pairs), (len(shape), own)):
        for chosen in itertools.combinations(range(len(shape)), order):
            drawn = rng.normal(0, sd, [shape[c] for c in chosen])
            eta += drawn[tuple(levels[:, c] for c in chosen)]
    at = int(rng.integers(len(levels))) if odd else None
    if at is not None:
        eta[at] += odd
    return levels, eta, at


def a_world(rng, kind, shape):
    """Draw a world: 1 to 50 people in a cell, small cells as often as large, 8 % of cells empty."""
    levels, eta, odd = log_odds(rng, shape, **KINDS[kind])
    people = np.rint(np.exp(rng.uniform(0, np.log(50.5), len(eta)))).astype(int)
    people[rng.random(len(eta)) < 0.08] = 0
    if odd is not None:
        people[odd] = max(people[odd], 1)
    truth = expit(eta)
    return World(levels, truth, people, rng.binomial(people, truth), odd)


def raw(world):
    """Each cell's own share; of an empty one everyone's."""
    everyone = world.hits.sum() / world.people.sum()
    return np.where(world.people > 0, world.share, everyone)


def plain_empirical_bayes(world):
    """Shrink every cell towards one mean: a normal prior, its variance by Paule and Mandel."""
    held = world.people > 0
    y, v = world.share[held], within_variance(world) / world.people[held]

    def excess(tau):
        w = 1 / (v + tau)
        mean = (w * y).sum() / w.sum()
        return (w * (y - mean) ** 2).sum() - (held.sum() - 1), mean

    low, high = 0.0, 1.0
    if excess(0.0)[0] <= 0:
        high = 0.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle)[0] > 0 else (low, middle)
    mean = excess(high)[1]
    out = np.full(len(held), mean)
    out[held] = mean + high / (high + v) * (y - mean)
    return out


def within_variance(world):
    """One variance of a person's score within cells, as SureMap's code pools it."""
    n, y = world.people, np.nan_to_num(world.share)
    several, own = n > 1, y * (1 - y)
    if own[several].any():
        return (own * (n - 1))[several].sum() / (n - 1)[several].sum()
    p = world.hits.sum() / n.sum()
    return max(p * (1 - p), 1e-6)


def suremap(world):
    """Khodak et al. 2024, one task: the posterior mean whose variances minimise the risk estimate.

    Errors have prior mean 0 and covariance ``sum x_S U_S U_S'`` over sets of attributes S and every
    cell by itself, in units of the variance within cells; the estimate of risk is minimised from
    (1, 0, ..., 0) by L-BFGS-B; estimates are clipped to 0 and 1.
    """
    n, d = world.people.astype(float), len(world.people)
    wrong = world.hits.sum() > world.people.sum() / 2  # its metrics are errors
    y = np.nan_to_num(1 - world.share if wrong else world.share)
    k = world.levels.shape[1]
    sets = [s for size in range(k) for s in itertools.combinations(range(k), size)]
    alike = world.levels[:, None, :] == world.levels[None, :, :]
    shared = np.stack([np.eye(d), *(alike[:, :, s].all(axis=2).astype(float) for s in sets)])
    variance = within_variance(world)

    def left(x):
        inverse = np.linalg.inv(np.tensordot(x, shared, 1) * n[None, :] + np.eye(d))
        return inverse, inverse @ y

    def risk(x):
        inverse, rest = left(x)
        back = inverse.T @ (n * rest)
        square = (n[:, None] * (inverse @ inverse)).T
        slope = [-2 * back @ (u @ (n * rest)) / variance + 2 * (u * square).sum() for u in shared]
        return d + (n * rest**2).sum() / variance - 2 * np.trace(inverse), np.array(slope)

    start = np.zeros(len(shared))
    start[0] = 1.0
    best = minimize(risk, start, jac=True, method="L-BFGS-B", bounds=[(0, None)] * len(shared)).x
    found = np.clip(y - left(best)[1], 0, 1)
    return 1 - found if wrong else found


def structured_regression(world, rng, *, folds=5):
    """Herlihy et al. 2024: a lasso on indicators of every order, cells weighed by their people."""
    from sklearn.linear_model import Lasso

    levels, k = world.levels, world.levels.shape[1]
    columns = [
        (levels[:, list(s)] == np.array(v)).all(axis=1).astype(float)
        for size in range(1, k + 1)
        for s in itertools.combinations(range(k), size)
        for v in sorted({tuple(row) for row in levels[:, list(s)].tolist()})
    ]
    x = np.stack(columns, axis=1)
    n, hits = world.people, world.hits
    held = n > 0
    unit = np.sqrt((x[held] ** 2 * (n[held, None] * within_variance(world))).sum(axis=0)).max()
    penalties = unit / n.sum() * np.array([10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05])

    def fitted(own_n, own_hits, penalty):
        at = own_n > 0
        model = Lasso(alpha=penalty, max_iter=2000)
        return model.fit(x[at], own_hits[at] / own_n[at], sample_weight=own_n[at]).predict(x)

    lost = np.zeros(len(penalties))
    for _ in range(folds):
        out_n = rng.binomial(n, 1 / folds)
        out_hits = rng.hypergeometric(hits, n - hits, out_n)
        at = out_n > 0
        for i, penalty in enumerate(penalties):
            guess = fitted(n - out_n, hits - out_hits, penalty)[at]
            lost[i] += (out_n[at] * (out_hits[at] / out_n[at] - guess) ** 2).sum()
    return np.clip(fitted(n, hits, penalties[int(lost.argmin())]), 0, 1)


def wilson_width(world):
    """Width of Wilson's 95 % interval of each cell that holds anyone."""
    n = world.people[world.people > 0]
    p, z2 = world.share[world.people > 0], 1.959964**2
    return 2 * np.sqrt(z2 * p * (1 - p) / n + z2**2 / (4 * n**2)) / (1 + z2 / n)
