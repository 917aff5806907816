"""Posterior modes of cells given the effects' variances, and the posterior of the variances.

Proportions are fitted by iteratively reweighted least squares, whose fixed point is the mode; other
means are normal, and one step is exact. Many sets of variances are fitted at once, as a stack of
matrices.

Every set of attributes has its own standard deviation: gender with age may matter a great deal
where race with age does not. With a few dozen cells these are uncertain, and the most likely one is
often 0, which would mean that no cell differs. So the mode is found (with the average information
of the marginal likelihood), and posteriors are averaged over the mode and design points around it,
weighted by their posterior density.

References
----------
.. [1] Gilmour, A. R., Thompson, R. and Cullis, B. R. (1995). Average information REML: an efficient
   algorithm for variance parameter estimation in linear mixed models. Biometrics 51, 1440-1450.
.. [2] Rue, H., Martino, S. and Chopin, N. (2009). Approximate Bayesian inference for latent
   Gaussian models. Journal of the Royal Statistical Society B 71(2), 319-392.
.. [3] Gelman, A. (2006). Prior distributions for variance parameters in hierarchical models.
   Bayesian Analysis 1(3), 515-534.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from isolux.stats.constants import (
    DESIGN_POINT_RADIUS,
    INTERCEPT_VARIANCE,
    MAX_ATTRIBUTES_WITH_ALL_SETS,
    MAX_EFFECT_SD,
    MAX_LOG_LIKELIHOOD_EXCESS,
    MAX_STEP_LOG_ODDS,
    MIN_EFFECT_SD,
    NOISE_RIDGE,
    TYPICAL_MEAN_SD,
    TYPICAL_PROPORTION_SD,
)
from isolux.stats.statistic import FloatArray, IntArray

_MAX_STEPS = 20
_LOG_ODDS_TOLERANCE = 3e-3  # of a log-odds
_MAX_STACKED_NUMBERS = 8_000_000  # numbers in one stack of matrices


@dataclass(frozen=True, slots=True)
class PosteriorModes:
    """The marginal likelihood of each of h sets of variances, and the modes of the cells.

    ``evidence [h]``: log marginal likelihood. ``eta [h, o]``: log-odds (or means) of the cells
    with data, ``dual [h, o]``: the dual vector that the prior covariance maps to them.
    """

    evidence: FloatArray
    eta: FloatArray
    dual: FloatArray


@dataclass(frozen=True, slots=True)
class NormalPosteriors:
    """Each cell's normal posterior under each of h sets of variances.

    ``mean, variance [h, d]`` of the cell's log-odds (or mean); ``weight [h, o]``: the precision of
    the cell's own data.
    """

    mean: FloatArray
    variance: FloatArray
    weight: FloatArray


def find_posterior_modes(
    cells: IntersectionCells,
    covariances: FloatArray,
    log_sd: FloatArray,
    start_modes: FloatArray | None = None,
) -> PosteriorModes:
    """Find the posterior modes under each set of standard deviations.

    Shapes: ``covariances`` [k, d, d], ``log_sd`` [h, k], ``start_modes`` [o].
    """
    measured_covariances = covariances[:, cells.has_value][:, :, cells.has_value]
    initial = (
        np.full(measured_covariances.shape[1], cells.overall_mean)
        if start_modes is None
        else start_modes
    )
    batches = [
        _find_posterior_modes_of_batch(cells, measured_covariances, batch, initial)
        for batch in _iterate_log_sd_batches(log_sd, measured_covariances)
    ]
    names = ("evidence", "eta", "dual")
    return PosteriorModes(
        *(np.concatenate([getattr(batch, name) for batch in batches]) for name in names)
    )


def laplace_cell_posteriors(
    cells: IntersectionCells,
    covariances: FloatArray,
    log_sd: FloatArray,
    found_modes: PosteriorModes,
) -> NormalPosteriors:
    """Return the normal posterior of every cell, also of empty ones, around the modes."""
    means, variances = [], []
    _, sds = _expected_means_and_score_sds(cells, found_modes.eta)
    n_done = 0
    for batch in _iterate_log_sd_batches(log_sd, covariances):
        batch_rows = slice(n_done, n_done := n_done + len(batch))
        prior = _sum_scaled_covariances(covariances, batch)
        cross_covariance = prior[:, :, cells.has_value]  # [h, d, o]
        means.append(
            cells.overall_mean
            + (cross_covariance @ found_modes.dual[batch_rows][:, :, None])[:, :, 0]
        )
        marginal_covariance = (
            sds[batch_rows][:, :, None]
            * cross_covariance[:, cells.has_value]
            * sds[batch_rows][:, None, :]
            + cells.noise_covariance
        )
        inverse = np.linalg.inv(marginal_covariance)
        cross_covariance *= sds[batch_rows][:, None, :]
        explained_variance = np.einsum("hdo,hdo->hd", cross_covariance @ inverse, cross_covariance)
        variances.append(np.einsum("hdd->hd", prior) - explained_variance)
    variance = np.maximum(np.concatenate(variances), 1e-12)
    return NormalPosteriors(np.concatenate(means), variance, sds**2 * cells.n_effective)


def evidence_gradient_and_information(
    cells: IntersectionCells,
    covariances: FloatArray,
    log_sd: FloatArray,
    found_modes: PosteriorModes,
) -> tuple[FloatArray, FloatArray]:
    """Return the gradient of the evidence in log standard deviations, and the average information.

    Shapes: ``covariances`` [s, d, d], ``log_sd`` [s]; returns [s], [s, s].
    """
    measured_covariances = covariances[:, cells.has_value][:, :, cells.has_value]
    _, sds = _expected_means_and_score_sds(cells, found_modes.eta)
    marginal_covariance = (
        sds[0][:, None] * _sum_scaled_covariances(measured_covariances, log_sd[None])[0] * sds[0]
        + cells.noise_covariance
    )
    weights = sds[0][:, None] * np.linalg.inv(marginal_covariance) * sds[0]
    dual, variances = found_modes.dual[0], np.exp(2.0 * log_sd)
    projected = measured_covariances @ dual  # [s, o]
    # Gradient and average information in log standard deviations (Gilmour et al. 1995).
    slope = variances * (projected @ dual - np.einsum("soq,oq->s", measured_covariances, weights))
    information = 2.0 * variances[:, None] * variances * (projected @ weights @ projected.T)
    return slope, information


def _iterate_log_sd_batches(log_sd: FloatArray, covariances: FloatArray) -> Iterator[FloatArray]:
    """Split sets of variances into stacks that fit in memory."""
    n_per_batch = max(1, _MAX_STACKED_NUMBERS // covariances.shape[1] ** 2)
    for start in range(0, len(log_sd), n_per_batch):
        yield log_sd[start : start + n_per_batch]


def _sum_scaled_covariances(covariances: FloatArray, log_sd: FloatArray) -> FloatArray:
    return np.asarray(np.tensordot(np.exp(2.0 * log_sd), covariances, axes=1) + INTERCEPT_VARIANCE)


def _find_posterior_modes_of_batch(
    cells: IntersectionCells, covariances: FloatArray, log_sd: FloatArray, start: FloatArray
) -> PosteriorModes:
    centre, prior = cells.overall_mean, _sum_scaled_covariances(covariances, log_sd)
    eta = np.tile(start, (len(log_sd), 1))
    for _ in range(_MAX_STEPS if cells.is_proportion else 1):
        means, sds = _expected_means_and_score_sds(cells, eta)
        # In units of the noise: (root K root + R) x = root (z - centre)
        marginal_covariance = sds[:, :, None] * prior * sds[:, None, :] + cells.noise_covariance
        target = sds * (eta - centre) + (cells.value - means) / sds
        dual = sds * np.linalg.solve(marginal_covariance, target[:, :, None])[:, :, 0]
        step = centre + (prior @ dual[:, :, None])[:, :, 0] - eta
        step_size = np.abs(step).max(axis=1, keepdims=True)
        # For normal means one full step is exact.
        damping = (
            np.minimum(1.0, MAX_STEP_LOG_ODDS / np.maximum(step_size, 1e-12))
            if cells.is_proportion
            else 1.0
        )
        eta = eta + step * damping
        if step_size.max() < _LOG_ODDS_TOLERANCE:
            break
    means, sds = _expected_means_and_score_sds(cells, eta)
    marginal_covariance = sds[:, :, None] * prior * sds[:, None, :] + cells.noise_covariance
    cholesky = np.linalg.cholesky(marginal_covariance)
    log_det = 2.0 * np.log(np.einsum("hoo->ho", cholesky)).sum(axis=1)
    residuals = _signed_root_deviance(cells, eta, means)
    fit = ((residuals @ cells.precision) * residuals).sum(axis=1)
    evidence = -0.5 * (fit + (dual * (eta - centre)).sum(axis=1) + log_det)
    return PosteriorModes(evidence, eta, dual)


def _expected_means_and_score_sds(
    cells: IntersectionCells, eta: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the expected means, and the root of one score's variance there."""
    from scipy.special import expit

    if not cells.is_proportion:
        return eta, np.ones_like(eta)
    share = expit(eta)
    # A proportion that rounds to 0 or 1 would have weight 0, and the system no solution.
    return share, np.sqrt(np.maximum(share * (1.0 - share), 1e-8))


def _signed_root_deviance(
    cells: IntersectionCells, eta: FloatArray, share: FloatArray
) -> FloatArray:
    """Return signed roots of one score's deviance."""
    from scipy.special import xlogy

    y = cells.value
    if not cells.is_proportion:
        return y - eta
    at_best = xlogy(y, y) + xlogy(1.0 - y, 1.0 - y)
    log_likelihood = -(y * np.logaddexp(0.0, -eta) + (1.0 - y) * np.logaddexp(0.0, eta))
    return np.asarray(
        np.sign(y - share) * np.sqrt(np.maximum(2.0 * (at_best - log_likelihood), 0.0))
    )


@dataclass(frozen=True, slots=True)
class IntersectionCells:
    """The data of cells with someone in them, and the prior mean of all cells.

    Parameters
    ----------
    has_value : [d] bool
        Cells with anyone in them.
    value : [o] float
        Means of those: proportions, or in units of one score's standard deviation.
    noise_covariance, precision : [o, o] float
        Covariance of the means in units of one score's variance, and its inverse.
    overall_mean : float
        Overall mean (of proportions: log-odds), weighted by precision.
    is_proportion : bool
    """

    has_value: npt.NDArray[np.bool_]
    value: FloatArray
    noise_covariance: FloatArray
    precision: FloatArray
    overall_mean: float
    is_proportion: bool

    @classmethod
    def from_estimates(
        cls,
        means: FloatArray,
        noise_covariance: FloatArray,
        has_value: npt.NDArray[np.bool_],
        *,
        is_proportion: bool,
    ) -> IntersectionCells:
        """Select the cells with data, and estimate the overall mean."""
        noise_of_measured = noise_covariance[np.ix_(has_value, has_value)]
        noise_of_measured = noise_of_measured + np.diag(
            NOISE_RIDGE * np.diag(noise_of_measured)
        ) * bool(np.count_nonzero(noise_of_measured - np.diag(np.diag(noise_of_measured))))
        measured_means = means[has_value]
        precisions = 1.0 / np.diag(noise_of_measured)
        overall_mean = float((precisions * measured_means).sum() / precisions.sum())
        if is_proportion:  # half a person of each outcome: no infinite log-odds
            total_precision = precisions.sum()
            overall_mean = float(
                np.log(
                    (overall_mean * total_precision + 0.5)
                    / ((1.0 - overall_mean) * total_precision + 0.5)
                )
            )
        return cls(
            has_value,
            measured_means,
            noise_of_measured,
            np.asarray(np.linalg.inv(noise_of_measured), dtype=np.float64),
            overall_mean,
            is_proportion,
        )

    @property
    def n_effective(self) -> FloatArray:
        """Effective number of independent people of each mean, ``[o]``."""
        return np.asarray(1.0 / np.diag(self.noise_covariance))


def build_effect_covariances(levels: IntArray) -> tuple[FloatArray, IntArray]:
    """Build, for each set of attributes, the 0/1 covariance of cells with the same values.

    Shapes: ``levels`` [d, k]; returns [s, d, d], [s].
    """
    has_same_value = levels[:, None, :] == levels[None, :, :]
    n_levels = levels.shape[1]
    sizes = range(1, n_levels + 1) if n_levels <= MAX_ATTRIBUTES_WITH_ALL_SETS else (1, 2, n_levels)
    attribute_sets = [
        attributes
        for n_attributes in sizes
        for attributes in combinations(range(n_levels), n_attributes)
    ]
    covariances = np.stack(
        [has_same_value[:, :, attributes].all(axis=2) for attributes in attribute_sets]
    ).astype(np.float64)
    return covariances, np.array([len(attributes) for attributes in attribute_sets], dtype=np.int64)


_MAX_ROUNDS = 12
_MAX_LOG_STEP = 1.0  # of a step, in logs
_LOG_SD_TOLERANCE = 0.03


@dataclass(frozen=True, slots=True)
class PosteriorMixture:
    """Sets of variances with their weights ``[h]``, and the cells' posteriors under each."""

    weight: FloatArray
    posteriors: NormalPosteriors


def average_posteriors_over_variances(
    cells: IntersectionCells, covariances: FloatArray, set_sizes: IntArray
) -> PosteriorMixture:
    """Average cell posteriors over design points of the standard deviations (Rue et al. 2009)."""
    typical_sd = np.array(TYPICAL_PROPORTION_SD if cells.is_proportion else TYPICAL_MEAN_SD)
    typical_sd = typical_sd[np.minimum(set_sizes, len(typical_sd)) - 1]
    mode, precision, start = _maximise_evidence(cells, covariances, typical_sd)
    eigenvalues, eigenvectors = np.linalg.eigh(np.linalg.inv(precision))
    radius = DESIGN_POINT_RADIUS * np.sqrt(len(eigenvalues))
    design_points = radius * (eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0))).T
    low, high = (
        np.log(MIN_EFFECT_SD * typical_sd),
        np.log(MAX_EFFECT_SD * typical_sd),
    )
    log_sd = np.clip(
        mode + np.concatenate([np.zeros((1, len(eigenvalues))), design_points, -design_points]),
        low,
        high,
    )
    found_modes = find_posterior_modes(cells, covariances, log_sd, start)
    log_posterior = found_modes.evidence + _half_cauchy_log_prior(log_sd, typical_sd)
    # Log ratio of the posterior to its normal approximation at each design point.
    log_excess = log_posterior - log_posterior[0] + 0.5 * radius**2
    log_excess[0] = 0.0
    # With these weights the points keep a normal distribution's covariance.
    weights = np.full(len(log_sd), 1.0 / DESIGN_POINT_RADIUS**2 / (2 * len(eigenvalues)))
    weights[0] = 1.0 - 1.0 / DESIGN_POINT_RADIUS**2
    weights *= np.exp(np.minimum(log_excess, MAX_LOG_LIKELIHOOD_EXCESS))
    weights /= weights.sum()
    return PosteriorMixture(
        weights, laplace_cell_posteriors(cells, covariances, log_sd, found_modes)
    )


def _maximise_evidence(
    cells: IntersectionCells, covariances: FloatArray, typical_sd: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Find the mode of the log standard deviations ``[s]``, its precision, and the cell modes."""
    log_sd = np.log(typical_sd)
    low, high = (
        np.log(MIN_EFFECT_SD * typical_sd),
        np.log(MAX_EFFECT_SD * typical_sd),
    )
    start: FloatArray | None = None
    precision = np.eye(len(typical_sd))
    for _ in range(_MAX_ROUNDS):
        found_modes = find_posterior_modes(cells, covariances, log_sd[None], start)
        start = found_modes.eta[0]
        slope, information = evidence_gradient_and_information(
            cells, covariances, log_sd, found_modes
        )
        squared_ratio = np.exp(2.0 * log_sd) / typical_sd**2
        # Plus the gradient of the half-Cauchy prior, on the log scale.
        slope = slope + 1.0 - 2.0 * squared_ratio / (1.0 + squared_ratio)
        # Lower bound of the precision where the data have no information: the prior's is about 1.
        precision = information + np.diag(
            np.maximum(4.0 * squared_ratio / (1.0 + squared_ratio) ** 2, 0.5)
        )
        step = np.linalg.solve(precision, slope)
        step *= min(1.0, _MAX_LOG_STEP / max(float(np.abs(step).max()), 1e-12))
        log_sd = np.clip(log_sd + step, low, high)
        if np.abs(step).max() < _LOG_SD_TOLERANCE:
            break
    assert start is not None  # noqa: S101 - there is at least one step
    return log_sd, precision, start


def _half_cauchy_log_prior(log_sd: FloatArray, typical_sd: FloatArray) -> FloatArray:
    """Log density of half-Cauchy priors of standard deviations, on the log scale (Gelman 2006)."""
    return np.asarray((log_sd - np.log1p(np.exp(2.0 * log_sd) / typical_sd**2)).sum(axis=1))
