"""Small intersections: each cell's value, with strength borrowed from its main effects.

Ten people who are Black, women and over 70 say little of themselves; what all Black people, all
women and all people over 70 got says more. A cell's value is modelled as a sum of effects: of each
attribute, of each two attributes together, and so on, to what is the cell's own. How large the
effects of each attribute and each combination are is learned from the cells themselves.

- **Model.** On the log-odds of a share (on the value itself for other means) effects of one set of
  attributes are normal with one variance. Variances are not taken as known but averaged over: the
  marginal likelihood (Laplace's approximation, exact for other means) weighs the likeliest and
  points around them.
- **Noise.** A cell's own sampling variance is that of its clusters; cells that share clusters have
  the covariance that follows.
- **Odd cells.** A cell may be unlike its kin. Each cell's own answers are therefore taken up again
  exactly, against the other cells' prediction mixed with a much wider law: a little for the
  estimate, half of the time for the interval, so that the interval of one odd cell holds it.

The estimate is the posterior mean, the interval lies between equal tails.

References
----------
.. [1] Rue, H., Martino, S. and Chopin, N. (2009). Approximate Bayesian inference for latent
   Gaussian models. Journal of the Royal Statistical Society B 71(2), 319-392.
.. [2] Gelman, A. (2005). Analysis of variance: why it is more important than ever. Annals of
   Statistics 33(1), 1-53.
.. [3] Khodak, M., Mackey, L., Chouldechova, A. and Dudik, M. (2024). SureMap: simultaneous mean
   estimation for single-task and multi-task disaggregated evaluation. NeurIPS. arXiv 2411.09730.
.. [4] Herlihy, C., Truong, K., Chouldechova, A. and Dudik, M. (2024). A structured regression
   approach for evaluating model performance across intersectional subgroups. FAccT. arXiv
   2401.14893.

Each cell's own law: what the other cells predict, mixed with a wide one, against its answers.

The joint fit is normal. A single cell's answers are taken out of it, what is left predicts the
cell, and the answers are put in again as they are: 2 of 2 people, not a normal law around infinite
log-odds. Only here may a cell be odd.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isolux.stats.constants import MAYBE_ODD_SD, MAYBE_ODD_SHARE, ODD_SD, ODD_SD_OF_MEANS, ODD_SHARE
from isolux.stats.small_groups.laplace import (
    Averaged,
    Cells,
    average_over_variances,
    effect_covariances,
)
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.errors import InputError


@dataclass(frozen=True, slots=True)
class CellEstimates:
    """Estimates that borrow strength, and the ends of their intervals: arrays ``[d]``."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


def cell_estimates(
    value: FloatArray,
    noise: FloatArray,
    levels: IntArray,
    *,
    shares: bool = True,
    unit_variance: float = 1.0,
    level: float = 0.95,
) -> CellEstimates:
    """Estimate the value of every cell of an intersection from all cells together.

    Shapes: ``value`` [d], ``noise`` [d, d], ``levels`` [d, k].
    """
    d = len(value)
    if noise.shape != (d, d) or levels.ndim != 2 or len(levels) != d:
        raise InputError(
            "cells do not fit one another",
            expected=f"noise [{d}, {d}] and levels [{d}, k]",
            found=f"noise {noise.shape} and levels {levels.shape}",
        )
    held = np.isfinite(value)
    nothing = np.full(d, np.nan)
    if held.sum() < 2:
        return CellEstimates(nothing, nothing, nothing)
    scale = 1.0 if shares else float(np.sqrt(unit_variance))
    cells = Cells.of(value / scale, noise, held, shares=shares)
    found = average_over_variances(cells, *effect_covariances(levels))
    low, middle, high = cell_marginals(cells, found, level)
    return CellEstimates(middle * scale, low * scale, high * scale)


_POINTS = 241
_REACH = 5.0


def cell_marginals(
    cells: Cells, found: Averaged, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return lower end, estimate and upper end of every cell, ``[d]`` each."""
    from scipy.special import expit

    predicted = _predicted(cells, found)
    unit = 1.0 if cells.shares else ODD_SD_OF_MEANS
    grid = _grids(found, predicted, 3.0 * unit * MAYBE_ODD_SD)
    step = np.gradient(grid, axis=1)
    likelihood = _likelihood(cells, grid)
    laws = [
        _mixed(found.weight, predicted, grid, likelihood * step, odd, (unit * width) ** 2)
        for odd, width in ((ODD_SHARE, ODD_SD), (MAYBE_ODD_SHARE, MAYBE_ODD_SD))
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
