"""Expected calibration error: the difference between a model's confidence and its accuracy.

Guo, Pleiss, Sun & Weinberger (2017), "On Calibration of Modern Neural Networks", ICML, section 2,
equation 3: confidences are put in M bins of equal width, and the gap between mean confidence and
accuracy of each bin is averaged over the bins by their number of rows. Bins of equal mass hold
equally many rows instead: Nguyen & O'Connor (2015), "Posterior calibration and exploratory analysis
for natural language processing models", EMNLP, section 4.

A mean of absolute gaps is never negative, so noise alone gives a perfectly calibrated model an
error of up to ``0.4 sqrt(15 / n)`` (0.05 for 1,000 rows, 0.15 for 100): a small group looks worse
than a large one. Every estimate of a mean of absolute gaps is biased, so an interval is extended
downwards by an estimate of the noise bias (``SumStatistic.estimate_noise_bias``).
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import polars as pl

from isolux.core.errors import SpecError
from isolux.stats.constants import MAX_NARROWING_SE
from isolux.stats.statistic import FloatArray, IntArray, NoiseBias, SumStatistic

N_BINS = 15
"""Guo et al.'s own number of bins."""


Binning = Literal["equal-width", "equal-mass"]


def assign_confidence_bins(
    confidences: FloatArray, bins: int, binning: Binning, multiplicity: IntArray | None = None
) -> IntArray:
    """Return the bin of each confidence, from 0; a row stands for ``multiplicity`` people.

    Examples
    --------
    >>> sure = np.array([0.7, 0.8, 0.9, 1.0])
    >>> assign_confidence_bins(sure, 2, "equal-width").tolist()
    [1, 1, 1, 1]
    >>> assign_confidence_bins(sure, 2, "equal-mass").tolist()
    [0, 0, 1, 1]
    """
    inner = np.arange(1, bins)
    if binning == "equal-width" or not len(confidences):
        edges = inner / bins  # values outside 0 to 1 are in the end bins
    else:
        order = np.argsort(confidences)
        counts = np.ones(len(order), np.int64) if multiplicity is None else multiplicity[order]
        cumulative = np.cumsum(counts)
        # The m-th edge is the smallest confidence that m / M of the people do not exceed, in whole
        # numbers: equal confidences are in one bin, whatever the order of rows.
        ranks = -(-int(cumulative[-1]) * inner // bins)
        edges = confidences[order][np.searchsorted(cumulative, ranks)]
    # Guo et al.: bins ((m - 1) / M, m / M] are open on the left: an edge is in the lower one.
    return np.searchsorted(edges, confidences, side="left")


def refuse_invalid_bins(bins: int) -> None:
    """Refuse a number of bins below 1."""
    if bins < 1:
        raise SpecError(
            "calibration needs bins", expected="a whole number of at least 1", found=repr(bins)
        )


def expected_calibration_error_statistic(
    *,
    confidence: str = "confidence",
    correct: str = "correct",
    bin_column: str = "confidence_bin",
) -> SumStatistic:
    """Make the expected calibration error a statistic of columns of an evidence table."""

    def gap_columns_by_bin(evidence: pl.DataFrame) -> FloatArray:
        selected = evidence.select(
            pl.col(confidence, correct).cast(pl.Float64), bin_column, "n_bins"
        )
        confidences, is_correct = selected[confidence].to_numpy(), selected[correct].to_numpy()
        rows = np.flatnonzero(~(np.isnan(confidences) | np.isnan(is_correct)))
        # The bins are in the evidence, so that a run that is read again has those of its audit.
        bins = int(selected["n_bins"].to_numpy().max(initial=0))
        sums = np.zeros((len(confidences), bins + 2))
        sums[rows, selected[bin_column].gather(rows).to_numpy()] = (
            is_correct[rows] - confidences[rows]
        )
        clipped = np.clip(confidences[rows], 0.0, 1.0)
        sums[rows, bins] = clipped * (1.0 - clipped)
        sums[rows, bins + 1] = 1.0
        return sums

    return SumStatistic(
        gap_columns_by_bin,
        _calibration_error_from_sums,
        estimate_noise_bias=_calibration_error_noise_bias,
    )


def _calibration_error_from_sums(sums: FloatArray) -> FloatArray:
    gaps, count = np.abs(sums[..., :-2]).sum(axis=-1), sums[..., -1]
    error: FloatArray = np.full_like(gaps, np.nan)
    np.divide(gaps, count, out=error, where=count > 0)
    return error


def _calibration_error_noise_bias(sums: FloatArray, squared_sums: FloatArray) -> NoiseBias:
    """Estimate the noise bias of the error, and the factor of its standard error."""
    bin_squares, count = squared_sums[..., :-2], sums[..., -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        # The variance of a calibrated model, sum c (1 - c), over the observed one, at least 1.
        variance_factor = np.fmax(sums[..., -2:-1] / bin_squares.sum(axis=-1, keepdims=True), 1.0)
        noise_variance = bin_squares * variance_factor / count**2
        gaps = np.abs(sums[..., :-2]) / count
    return absolute_gap_noise_bias(gaps, noise_variance, np.sqrt(variance_factor[..., 0]))


def absolute_gap_noise_bias(
    gaps: FloatArray,
    noise_variance: FloatArray,
    se_factor: FloatArray,
    extra_variance: FloatArray | float = 0.0,
) -> NoiseBias:
    """Estimate the noise bias of sums of absolute gaps.

    Shapes: ``gaps`` [..., k], ``noise_variance`` [..., k], ``se_factor`` [...], ``extra_variance``
    [..., k].

    Examples
    --------
    One gap of 0.1 with a standard error of 0.1: all of it may be noise, 0.1 sqrt(2 / pi).

    >>> found = absolute_gap_noise_bias(np.array([[0.1]]), np.array([[0.01]]), np.ones(1))
    >>> found.bias.round(4).item(), found.expected_value(np.array([[0.01]])).round(4).item()
    (0.0798, 0.1167)
    """
    deviation = np.sqrt(noise_variance + extra_variance)
    narrowed_gaps = np.maximum(gaps - MAX_NARROWING_SE * deviation, 0.0)
    # Noise adds E|X| - |mean|: most where the gap may be smallest.
    bias = folded_normal_mean(narrowed_gaps, deviation) - narrowed_gaps

    def mean_absolute_gap_with_noise(total_variance: FloatArray) -> FloatArray:
        return np.asarray(folded_normal_mean(gaps, np.sqrt(total_variance)).sum(axis=-1))

    return NoiseBias(bias.sum(axis=-1), se_factor, noise_variance, mean_absolute_gap_with_noise)


def folded_normal_mean(mean: FloatArray, sd: FloatArray) -> FloatArray:
    """Return the mean of a folded normal distribution: E|X|.

    Examples
    --------
    With mean 0 it is the standard deviation times sqrt(2 / pi); without variance it is |mean|.

    >>> folded_normal_mean(np.array([0.0, -3.0]), np.array([1.0, 0.0])).round(4).tolist()
    [0.7979, 3.0]
    """
    from scipy.special import erf

    # Without noise z is infinite, and the formula gives |mean|.
    z = np.divide(mean, sd, out=np.full_like(mean, np.inf), where=sd > 0)
    around = sd * np.sqrt(2.0 / np.pi) * np.exp(-0.5 * z**2)
    return np.asarray(around + np.abs(mean) * erf(np.abs(z) / np.sqrt(2.0)))
