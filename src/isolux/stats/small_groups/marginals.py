"""Each cell's own law: what the other cells predict, mixed with a wide one, against its answers.

The joint fit is normal. A single cell's answers are taken out of it, what is left predicts the
cell, and the answers are put in again as they are: 2 of 2 people, not a normal law around infinite
log-odds. Only here may a cell be odd.
"""

from __future__ import annotations

import numpy as np

from isolux.stats.small_groups.effects import Cells
from isolux.stats.small_groups.variances import Averaged
from isolux.stats.statistic import FloatArray

_ODD = 0.04
"""Share of cells that are unlike their kin, for the estimate: few, or every cell is left raw."""
_ODD_WIDTH = 1.5
_MAYBE_ODD = 0.65
"""The same for the interval. One cell of many that lies 2 below its kin is then held in nine worlds
of ten even if a handful of people are in it; at .5 with a law 2.5 wide in 88 (300 worlds of 24 and
100 of 60 cells), at .04 in a third. Intervals are a twentieth wider for it than at .5."""
_MAYBE_ODD_WIDTH = 2.0
"""Standard deviation of how unlike, in log-odds: at 2.5 more of those with 3 to 20 people are lost,
because the wider law gives what lies 2 away less."""
_OF_MEANS = 0.4
"""The same in standard deviations of one score: 2.5 in log-odds of .8 are one."""
_POINTS = 241
_REACH = 5.0


def cell_marginals(
    cells: Cells, found: Averaged, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return lower end, estimate and upper end of every cell, ``[d]`` each."""
    from scipy.special import expit

    predicted = _predicted(cells, found)
    unit = 1.0 if cells.shares else _OF_MEANS
    grid = _grids(found, predicted, 3.0 * unit * _MAYBE_ODD_WIDTH)
    step = np.gradient(grid, axis=1)
    likelihood = _likelihood(cells, grid)
    laws = [
        _mixed(found.weight, predicted, grid, likelihood * step, odd, (unit * width) ** 2)
        for odd, width in ((_ODD, _ODD_WIDTH), (_MAYBE_ODD, _MAYBE_ODD_WIDTH))
    ]
    shown = expit(grid) if cells.shares else grid
    middle = (laws[0] * shown).sum(axis=1)
    below = np.cumsum(laws[1], axis=1) - 0.5 * laws[1]
    tails = (1.0 - level) / 2.0, (1.0 + level) / 2.0
    pairs = zip(below, shown, strict=True)
    low, high = np.array([np.interp(tails, own, at) for own, at in pairs]).T
    return np.minimum(low, middle), middle, np.maximum(high, middle)


def _predicted(cells: Cells, found: Averaged) -> tuple[FloatArray, FloatArray]:
    """Take each cell's own answers out of its law: mean and variance ``[h, d]``."""
    from scipy.special import expit

    laws, held = found.laws, cells.held
    own, pull = np.zeros_like(laws.mean), np.zeros_like(laws.mean)
    own[:, held] = laws.weight
    at = laws.mean[:, held]
    # The slope of the cell's own log-likelihood where the joint fit has it.
    pull[:, held] = cells.size * (cells.value - (expit(at) if cells.shares else at))
    # Other cells only add to what a cell's own answers tell: more than nothing, rounding aside.
    precision = np.maximum(1.0 / laws.variance - own, 1e-3 / laws.variance)
    return laws.mean - pull / precision, 1.0 / precision


def _grids(found: Averaged, predicted: tuple[FloatArray, FloatArray], odd: float) -> FloatArray:
    """Return points of log-odds (or values) of each cell ``[d, x]``: dense where it likely lies."""
    weight, laws = found.weight, found.laws
    middle = weight @ laws.mean
    spread = np.sqrt(np.maximum(weight @ (laws.variance + laws.mean**2) - middle**2, 1e-12))
    mean, variance = predicted
    away = np.abs(mean - middle).max(axis=0) + _REACH * np.sqrt(variance.max(axis=0)) + odd
    widest = np.arcsinh(away / spread)
    return np.asarray(
        middle[:, None] + spread[:, None] * np.sinh(widest[:, None] * np.linspace(-1, 1, _POINTS))
    )


def _likelihood(cells: Cells, grid: FloatArray) -> FloatArray:
    """Return how likely each cell's own answers are at each point, at most 1: ``[d, x]``."""
    x, y, n = grid[cells.held], cells.value[:, None], cells.size[:, None]
    if cells.shares:
        own = -n * (y * np.logaddexp(0.0, -x) + (1.0 - y) * np.logaddexp(0.0, x))
    else:
        own = -0.5 * n * (y - x) ** 2
    out = np.ones_like(grid)
    out[cells.held] = np.exp(own - own.max(axis=1, keepdims=True))
    return out


def _mixed(
    weight: FloatArray,
    predicted: tuple[FloatArray, FloatArray],
    grid: FloatArray,
    likelihood: FloatArray,
    odd: float,
    odd_variance: float,
) -> FloatArray:
    """Return the law of each cell over its points, adding up to 1: ``[d, x]``."""
    out = np.zeros_like(grid)
    for w, mean, variance in zip(weight, *predicted, strict=True):
        square = (grid - mean[:, None]) ** 2
        law = likelihood * (
            (1.0 - odd) * _normal(square, variance) + odd * _normal(square, variance + odd_variance)
        )
        out += w * law / law.sum(axis=1, keepdims=True)
    return out


def _normal(square: FloatArray, variance: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-0.5 * square / variance[:, None]) / np.sqrt(variance)[:, None])
