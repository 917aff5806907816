"""Small intersections: shrinkage estimates of cells, from a hierarchical model of all cells.

Ten people who are Black, women and over 70 give an imprecise estimate; all Black people, all women
and all people over 70 are informative about them. A cell's value is modelled as a sum of effects:
of each attribute, of each pair of attributes, and so on, up to the cell's own effect. The standard
deviations of the effects of each set of attributes are estimated from the cells.

- **Model.** On the log-odds of a proportion (on the value itself for other means) effects of one
  set of attributes are normal with one variance. Variances are integrated out: the posterior is
  averaged over the mode of the marginal likelihood (Laplace approximation, exact for other means)
  and design points around it.
- **Noise.** A cell's sampling variance is that of its clusters; cells that share clusters have
  correlated errors.
- **Outliers.** A cell may deviate from the model. Each cell's exact likelihood is therefore
  combined with the leave-one-out prediction of the other cells, mixed with a much wider normal
  distribution: with a small weight for the estimate, with a large one for the interval, so that it
  covers the value of an outlying cell.

The estimate is the posterior mean, the interval is equal-tailed.

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

Cell posteriors: the joint fit is a normal approximation. A cell's own likelihood is removed from
it, which gives the prediction of the other cells, and is replaced by the exact one: 2 of 2 people
have no normal approximation in log-odds. Only here may a cell be an outlier.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isolux.core.errors import InputError
from isolux.stats.constants import (
    INTERVAL_OUTLIER_SD,
    INTERVAL_OUTLIER_SHARE,
    OUTLIER_SD,
    OUTLIER_SD_OF_MEANS,
    OUTLIER_SHARE,
)
from isolux.stats.small_groups.laplace import (
    IntersectionCells,
    PosteriorMixture,
    average_posteriors_over_variances,
    build_effect_covariances,
)
from isolux.stats.statistic import FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class CellEstimates:
    """Shrinkage estimates, and the bounds of their intervals: arrays ``[d]``."""

    value: FloatArray
    low: FloatArray
    high: FloatArray


def estimate_intersection_cells(
    means: FloatArray,
    noise_covariance: FloatArray,
    levels: IntArray,
    *,
    is_proportion: bool = True,
    unit_variance: float = 1.0,
    level: float = 0.95,
) -> CellEstimates:
    """Estimate the value of every cell of an intersection from all cells together.

    Shapes: ``means`` [d], ``noise_covariance`` [d, d], ``levels`` [d, k].
    """
    n_cells = len(means)
    if noise_covariance.shape != (n_cells, n_cells) or levels.ndim != 2 or len(levels) != n_cells:
        raise InputError(
            "cells do not fit one another",
            expected=f"noise [{n_cells}, {n_cells}] and levels [{n_cells}, k]",
            found=f"noise {noise_covariance.shape} and levels {levels.shape}",
        )
    has_value = np.isfinite(means)
    nan = np.full(n_cells, np.nan)
    if has_value.sum() < 2:
        return CellEstimates(nan, nan, nan)
    scale = 1.0 if is_proportion else float(np.sqrt(unit_variance))
    cells = IntersectionCells.from_estimates(
        means / scale, noise_covariance, has_value, is_proportion=is_proportion
    )
    mixture = average_posteriors_over_variances(cells, *build_effect_covariances(levels))
    low, middle, high = summarise_cell_posteriors(cells, mixture, level)
    return CellEstimates(middle * scale, low * scale, high * scale)


_N_GRID_POINTS = 241
_GRID_STANDARD_DEVIATIONS = 5.0


def summarise_cell_posteriors(
    cells: IntersectionCells, mixture: PosteriorMixture, level: float
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return lower bound, estimate and upper bound of every cell, ``[d]`` each."""
    from scipy.special import expit

    predicted = _predict_cells_leave_one_out(cells, mixture)
    unit = 1.0 if cells.is_proportion else OUTLIER_SD_OF_MEANS
    # Three standard deviations of an outlier leave out 0.3 % of its distribution.
    grid = _build_posterior_grids(mixture, predicted, 3.0 * unit * INTERVAL_OUTLIER_SD)
    step = np.gradient(grid, axis=1)
    likelihood = _likelihood_on_grid(cells, grid)
    posteriors = [
        _posterior_with_outliers_on_grid(
            mixture.weight,
            predicted,
            grid,
            likelihood * step,
            outlier_probability,
            (unit * outlier_sd) ** 2,
        )
        for outlier_probability, outlier_sd in (
            (OUTLIER_SHARE, OUTLIER_SD),
            (INTERVAL_OUTLIER_SHARE, INTERVAL_OUTLIER_SD),
        )
    ]
    values_on_grid = expit(grid) if cells.is_proportion else grid
    estimate = (posteriors[0] * values_on_grid).sum(axis=1)
    # Up to the middle of each grid cell, between which the quantiles are interpolated.
    cumulative = np.cumsum(posteriors[1], axis=1) - 0.5 * posteriors[1]
    tail_probabilities = (1.0 - level) / 2.0, (1.0 + level) / 2.0
    rows = zip(cumulative, values_on_grid, strict=True)
    low, high = np.array(
        [
            np.interp(tail_probabilities, cell_cumulative, cell_values)
            for cell_cumulative, cell_values in rows
        ]
    ).T
    # Estimate and interval assume different shares of outliers, so one may lie outside the other.
    return np.minimum(low, estimate), estimate, np.maximum(high, estimate)


def _predict_cells_leave_one_out(
    cells: IntersectionCells, mixture: PosteriorMixture
) -> tuple[FloatArray, FloatArray]:
    """Predict each cell from the other cells: mean and variance ``[h, d]``."""
    from scipy.special import expit

    posteriors, has_value = mixture.posteriors, cells.has_value
    own_precision, score = np.zeros_like(posteriors.mean), np.zeros_like(posteriors.mean)
    own_precision[:, has_value] = posteriors.weight
    means = posteriors.mean[:, has_value]
    # The slope of the cell's own log-likelihood at the mode of the joint fit.
    score[:, has_value] = cells.n_effective * (
        cells.value - (expit(means) if cells.is_proportion else means)
    )
    # Without a cell's own data the precision stays positive; rounding must not make it 0.
    precision = np.maximum(1.0 / posteriors.variance - own_precision, 1e-3 / posteriors.variance)
    return posteriors.mean - score / precision, 1.0 / precision


def _build_posterior_grids(
    mixture: PosteriorMixture, predicted: tuple[FloatArray, FloatArray], outlier_distance: float
) -> FloatArray:
    """Return a grid of log-odds (or values) of each cell ``[d, x]``, dense near its mode."""
    weight, posteriors = mixture.weight, mixture.posteriors
    middle = weight @ posteriors.mean
    posterior_sd = np.sqrt(
        np.maximum(weight @ (posteriors.variance + posteriors.mean**2) - middle**2, 1e-12)
    )
    mean, variance = predicted
    largest_distance = (
        np.abs(mean - middle).max(axis=0)
        + _GRID_STANDARD_DEVIATIONS * np.sqrt(variance.max(axis=0))
        + outlier_distance
    )
    # Dense near the mode, sparse in the tails: one grid has to reach outliers, too.
    widest_asinh = np.arcsinh(largest_distance / posterior_sd)
    return np.asarray(
        middle[:, None]
        + posterior_sd[:, None]
        * np.sinh(widest_asinh[:, None] * np.linspace(-1, 1, _N_GRID_POINTS))
    )


def _likelihood_on_grid(cells: IntersectionCells, grid: FloatArray) -> FloatArray:
    """Return the likelihood of each cell's data on the grid, scaled to at most 1: ``[d, x]``."""
    grid_points, cell_means, n_effective = (
        grid[cells.has_value],
        cells.value[:, None],
        cells.n_effective[:, None],
    )
    if cells.is_proportion:
        # By logaddexp, because log(1 - p) loses all digits where p rounds to 1.
        log_likelihood = -n_effective * (
            cell_means * np.logaddexp(0.0, -grid_points)
            + (1.0 - cell_means) * np.logaddexp(0.0, grid_points)
        )
    else:
        log_likelihood = -0.5 * n_effective * (cell_means - grid_points) ** 2
    likelihood = np.ones_like(grid)
    likelihood[cells.has_value] = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    return likelihood


def _posterior_with_outliers_on_grid(
    weight: FloatArray,
    predicted: tuple[FloatArray, FloatArray],
    grid: FloatArray,
    likelihood: FloatArray,
    outlier_probability: float,
    outlier_variance: float,
) -> FloatArray:
    """Return the posterior of each cell on its grid, summing to 1: ``[d, x]``."""
    posterior = np.zeros_like(grid)
    for component_weight, mean, variance in zip(weight, *predicted, strict=True):
        squared_distance = (grid - mean[:, None]) ** 2
        density = likelihood * (
            (1.0 - outlier_probability)
            * _normal_density_at_squared_distance(squared_distance, variance)
            + outlier_probability
            * _normal_density_at_squared_distance(squared_distance, variance + outlier_variance)
        )
        posterior += component_weight * density / density.sum(axis=1, keepdims=True)
    return posterior


def _normal_density_at_squared_distance(
    squared_distance: FloatArray, variance: FloatArray
) -> FloatArray:
    return np.asarray(
        np.exp(-0.5 * squared_distance / variance[:, None]) / np.sqrt(variance)[:, None]
    )
