"""One value per model of one or several runs: the mean over seeds, with the variance between them.

The mean of S runs of a model on the same people has two sources of variance. Sampling of people: a
part is shared by the runs, another is specific to each. Seeds: s² / S on S - 1 degrees of freedom,
which already includes the run-specific part. The shared part and the variance between seeds are
combined as by Cochran (1964), each with the quantile of its own degrees of freedom:

    half-width = (v z + b t(S - 1)) / sqrt(v + b),    v: shared by the runs,    b = s² / S

and never less than the half-width from sampling people alone. With Welch and Satterthwaite's
degrees of freedom, intervals covered the true value in 87 to 93 of 100 simulated data sets of two
runs: where s² is small by chance, they treat it as precise. Both variances of people are taken from
one run's interval, which is skewed near 0 or 1, times the ratio of standard errors of the mean and
of one run (of replicates that resample the same people in every run). Of one run the interval is
the audit's own.

Cochran, W. G. (1964). Approximate significance levels of the Behrens-Fisher test. Biometrics 20.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.tables import Status
from isolux.groups.estimates import Estimates, Measure
from isolux.io.threads import ignore_runtime_warnings
from isolux.stats.cluster_sums import IntArray
from isolux.stats.statistic import FloatArray

MetricKey = tuple[str, str | None, float | None]
SeedVariances = Sequence[tuple[FloatArray, int]]
"""Per model: the variance between seeds over the number of runs, and that number."""
_N_BISECTIONS = 60


@dataclass(frozen=True, slots=True)
class ModelRuns:
    """Each model's labels among the stacked scores, one a run."""

    runs: Mapping[str, tuple[str, ...]]

    @property
    def labels(self) -> list[str]:
        """All labels, in order."""
        return [label for run_labels in self.runs.values() for label in run_labels]


@dataclass(frozen=True, slots=True)
class SeedAverage:
    """A mean over runs of every group, ``[g]``, and its variances and degrees of freedom."""

    estimates: FloatArray
    replicates: FloatArray
    seed_variance: FloatArray
    n_runs: int


def find_model_columns(
    estimates: Estimates, models: ModelRuns
) -> dict[MetricKey, dict[str, IntArray]]:
    """Find the measures of each metric, class and threshold, by model."""
    position_by_key = {
        (m.model, m.metric, m.label, m.threshold): j for j, m in enumerate(estimates.measures)
    }
    columns_by_key: dict[MetricKey, dict[str, IntArray]] = {}
    for m in estimates.measures:
        key = (m.metric, m.label, m.threshold)
        if key in columns_by_key:
            continue
        columns_by_model = {
            name: np.array(
                [
                    position_by_key[label, *key]
                    for label in labels
                    if (label, *key) in position_by_key
                ]
            )
            for name, labels in models.runs.items()
        }
        if all(len(columns_by_model[name]) == len(labels) for name, labels in models.runs.items()):
            columns_by_key[key] = columns_by_model
    return columns_by_key


def average_seeds(estimates: Estimates, columns: IntArray) -> SeedAverage:
    """Average a model's runs, with the variance of that mean between seeds."""
    values = estimates.value[:, columns]
    n = len(columns)
    between = values.var(axis=1, ddof=1) / n if n > 1 else np.zeros(len(values))
    replicates = estimates.replicates[:, columns].mean(axis=1)
    return SeedAverage(values.mean(axis=1), replicates, between, n)


def two_sided_t_quantile(level: float | FloatArray, dof: float | FloatArray) -> FloatArray:
    """Student's t quantile of a two-sided interval; with 0 degrees of freedom the normal one."""
    from scipy.special import ndtri, stdtrit

    probability = 0.5 + np.asarray(level) / 2.0
    t_quantile = stdtrit(np.maximum(dof, 1.0), probability)
    return np.asarray(np.where(np.asarray(dof) > 0, t_quantile, ndtri(probability)))


@dataclass(frozen=True, slots=True)
class SamplingError:
    """Half-widths from sampling people, at a level: of the mean over runs, and the shared part."""

    mean: FloatArray
    shared: FloatArray


def compute_error_ratios(
    mean: FloatArray,
    single_runs: Sequence[FloatArray],
    runs_by_model: Sequence[Sequence[FloatArray]],
) -> SamplingError:
    """Compute the standard error of a mean over runs, and of its shared part, over one run's.

    Shapes: ``mean`` [g, r], ``single_runs`` [g, r], ``runs_by_model`` [g, r].
    """

    def variance(replicates: FloatArray) -> FloatArray:
        # Without the factor of the number of clusters, which the ratios do not have.
        with ignore_runtime_warnings(), np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.nanvar(replicates, axis=-1, ddof=1))

    run_variance = np.mean([variance(run_replicates) for run_replicates in single_runs], axis=0)
    mean_variance = variance(mean)
    shared = mean_variance
    for runs in runs_by_model:
        if len(runs) > 1:  # run-specific part: one run's variance minus that of the mean of runs
            single_variance = np.mean([variance(run_replicates) for run_replicates in runs], axis=0)
            shared = shared - (single_variance - variance(np.mean(runs, axis=0))) / (len(runs) - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = [
            np.where(run_variance > 0, np.sqrt(np.clip(v / run_variance, 0.0, 1.0)), 1.0)
            for v in (mean_variance, shared)
        ]
    return SamplingError(np.asarray(ratios[0]), np.minimum(ratios[1], ratios[0]))


def combine_half_widths(
    sampling_error: SamplingError, between: SeedVariances, level: float
) -> FloatArray:
    """Combine the half-widths of sampling people and of seeds (Cochran), ``[g]``."""
    z = two_sided_t_quantile(level, 0.0)
    return _cochran_half_width(
        (sampling_error.mean / z) ** 2, (sampling_error.shared / z) ** 2, between, level
    )


def _cochran_half_width(
    mean: FloatArray, shared: FloatArray, between: SeedVariances, level: float | FloatArray
) -> FloatArray:
    z = two_sided_t_quantile(level, 0.0)
    total = shared + np.sum([v for v, _ in between], axis=0)
    weighted_sum = shared * z
    for variance, n_runs in between:
        if n_runs > 1:
            weighted_sum = weighted_sum + variance * two_sided_t_quantile(level, float(n_runs - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        cochran = np.where(total == 0, 0.0, weighted_sum / np.sqrt(total))
    return np.asarray(np.maximum(cochran, np.sqrt(mean) * z))


def p_values(
    differences: FloatArray, sampling_error: SamplingError, between: SeedVariances, level: float
) -> FloatArray:
    """Invert the interval: the level at which it would reach 0, by bisection, ``[g]``."""
    mean, shared = (
        (half_width / two_sided_t_quantile(level, 0.0)) ** 2
        for half_width in (sampling_error.mean, sampling_error.shared)
    )
    low, high = np.full(len(differences), np.log(1e-12)), np.zeros(len(differences))
    for _ in range(_N_BISECTIONS):
        middle = (low + high) / 2.0
        covers_zero = _cochran_half_width(mean, shared, between, 1.0 - np.exp(middle)) >= np.abs(
            differences
        )
        low, high = np.where(covers_zero, middle, low), np.where(covers_zero, high, middle)
    p_value = np.where(differences == 0, 1.0, np.exp(low))
    return np.asarray(np.where(np.isnan(mean), np.nan, p_value))


def build_model_values(estimates: Estimates, models: ModelRuns, level: float) -> pl.DataFrame:
    """Build each model's value of every group: the table ``values`` of ``SideBySide``."""
    frames = []
    for columns_by_model in find_model_columns(estimates, models).values():
        for name, columns in columns_by_model.items():
            frames.append(_build_model_values(estimates, name, columns, level))
    return pl.concat(frames)


def _build_model_values(
    estimates: Estimates, name: str, columns: IntArray, level: float
) -> pl.DataFrame:
    j = int(columns[0])
    measure, average = estimates.measures[j], average_seeds(estimates, columns)
    low, high = estimates.interval.low[:, j], estimates.interval.high[:, j]
    method = estimates.method[:, j].astype(object)
    seed_sd = np.full(len(average.estimates), np.nan)
    if average.n_runs > 1:
        low, high = _combine_interval(estimates, average, columns, measure, level)
        seed_sd = np.sqrt(average.seed_variance * average.n_runs)
        method[:] = "mean of runs, Cochran"
    is_comparable, has_few_clusters = _flag_estimates_and_intervals(estimates, columns)
    cells = {
        "model": [name] * len(is_comparable),
        "task": measure.task,
        "metric": measure.metric,
        "label": pl.Series([measure.label] * len(is_comparable), dtype=pl.String),
        "threshold": pl.Series([measure.threshold] * len(is_comparable), dtype=pl.Float64),
        "attribute": pl.Series([g.attribute for g in estimates.groups], dtype=pl.String),
        "group": [g.name for g in estimates.groups],
        "values": pl.Series([list(g.values) for g in estimates.groups], dtype=pl.List(pl.String)),
        "n_units": estimates.n_units[:, j],
        "n_clusters": estimates.n_clusters[:, j],
        "value": np.where(is_comparable | has_few_clusters, average.estimates, np.nan),
        "low": np.where(is_comparable, low, np.nan),
        "high": np.where(is_comparable, high, np.nan),
        "method": pl.Series(method.tolist(), dtype=pl.String),
        "runs": average.n_runs,
        "seed_sd": np.where(is_comparable, seed_sd, np.nan),
        "status": _first_not_ok_status(estimates, columns),
        "reason": pl.Series(_first_not_ok_reason(estimates, columns), dtype=pl.String),
    }
    floats = pl.col("value", "low", "high", "seed_sd").fill_nan(None)
    return pl.DataFrame(cells).with_columns(floats)


def _combine_interval(
    estimates: Estimates, average: SeedAverage, columns: IntArray, measure: Measure, level: float
) -> tuple[FloatArray, FloatArray]:
    run_replicates = [estimates.replicates[:, j] for j in columns]
    error_ratios = compute_error_ratios(average.replicates, run_replicates, [run_replicates])
    half_widths = []
    for bound in (estimates.interval.low, estimates.interval.high):
        run_bound = average.estimates + (bound[:, columns] - estimates.value[:, columns]).mean(
            axis=1
        )
        half_width = _shrink_half_width(
            average.estimates, run_bound, error_ratios.mean, fraction=measure.is_fraction
        )
        sampling_error = SamplingError(
            half_width, half_width * compute_shared_fraction(error_ratios)
        )
        half_widths.append(
            combine_half_widths(sampling_error, [(average.seed_variance, average.n_runs)], level)
        )
    floor = -np.inf if measure.info.low is None else measure.info.low
    ceiling = np.inf if measure.info.high is None else measure.info.high
    return np.maximum(average.estimates - half_widths[0], floor), np.minimum(
        average.estimates + half_widths[1], ceiling
    )


def compute_shared_fraction(error_ratios: SamplingError) -> FloatArray:
    """Return the shared part of the half-width of a mean over runs, as a fraction."""
    return np.divide(
        error_ratios.shared,
        error_ratios.mean,
        out=np.zeros_like(error_ratios.mean),
        where=error_ratios.mean > 0,
    )


def _shrink_half_width(
    estimates: FloatArray, bound: FloatArray, ratio: FloatArray, *, fraction: bool
) -> FloatArray:
    """Shrink a half-width by a ratio; for fractions on the log-odds scale."""
    from scipy.special import expit, logit

    if not fraction:
        return ratio * np.abs(bound - estimates)
    is_inside = (estimates > 0) & (estimates < 1) & (ratio < 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        logit_value = logit(np.clip(estimates, 0.0, 1.0))
        shrunken_bound = expit(
            logit_value + ratio * (logit(np.clip(bound, 0.0, 1.0)) - logit_value)
        )
    return np.asarray(np.abs(np.where(is_inside, shrunken_bound, bound) - estimates))


def _flag_estimates_and_intervals(
    estimates: Estimates, columns: IntArray
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    is_comparable = np.asarray(estimates.is_comparable()[:, columns].all(axis=1))
    status = estimates.status[:, columns].astype(str)
    has_few_clusters = np.asarray((status == Status.INSUFFICIENT_CLUSTERS.value).any(axis=1))
    return is_comparable, has_few_clusters & ~is_comparable


def _first_not_ok_status(estimates: Estimates, columns: IntArray) -> list[str]:
    """Take the first status of a group's runs that is not ok."""
    status = estimates.status[:, columns].astype(str)
    ok = Status.OK.value
    return [next((w for w in row if w != ok), ok) for row in status.tolist()]


def _first_not_ok_reason(estimates: Estimates, columns: IntArray) -> list[str | None]:
    rows = estimates.reason[:, columns].tolist()
    return [next((reason for reason in row if reason), None) for row in rows]
