"""One value a model of one or several runs: mean of its seeds, with what differs between them.

Of S runs of a model on the same people the mean is unsure for two reasons. Other people: of them
the runs share what they find hard, and each has mistakes of its own. Other seeds: s² / S on S - 1
degrees of freedom, in which each run's own mistakes are already. What is shared and what differs
between seeds are added as Cochran (1964) does, each with the deviate of its own degrees of freedom:

    reach = (v z + b t(S - 1)) / sqrt(v + b),    v: shared by the runs,    b = s² / S

and never less than other people alone leave unsure of this mean. Welch and Satterthwaite's degrees
of freedom hold the truth in 87 to 93 of 100 worlds of two runs: where s² comes out small by chance,
they take it as well known. Both variances of people are one run's interval, which leans as a share
near 0 or 1 must, times how much surer the mean is (standard errors of replicates that resample the
same people in every run). Of one run the interval is the audit's own.

Cochran, W. G. (1964). Approximate significance levels of the Behrens-Fisher test. Biometrics 20.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.groups.estimates import Estimates, Measure
from isolux.groups.interval_methods import standard_error
from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.tables import Status

Key = tuple[str, str | None, float | None]
Between = Sequence[tuple[FloatArray, int]]
"""Of each model its variance between seeds, over its number of runs, and that number."""
_HALVINGS = 60


@dataclass(frozen=True, slots=True)
class Models:
    """Each model's labels among the stacked scores, one a run."""

    runs: Mapping[str, tuple[str, ...]]

    @property
    def labels(self) -> list[str]:
        """All labels, in order."""
        return [label for own in self.runs.values() for label in own]


@dataclass(frozen=True, slots=True)
class Spread:
    """A mean over runs of every group, ``[g]``, and its variances and degrees of freedom."""

    value: FloatArray
    replicates: FloatArray
    between: FloatArray
    runs: int


def columns_of(estimates: Estimates, models: Models) -> dict[Key, dict[str, IntArray]]:
    """Find the measures of each metric, class and threshold, by model."""
    at = {(m.model, m.metric, m.label, m.threshold): j for j, m in enumerate(estimates.measures)}
    found: dict[Key, dict[str, IntArray]] = {}
    for m in estimates.measures:
        key = (m.metric, m.label, m.threshold)
        if key in found:
            continue
        own = {
            name: np.array([at[label, *key] for label in labels if (label, *key) in at])
            for name, labels in models.runs.items()
        }
        if all(len(own[name]) == len(labels) for name, labels in models.runs.items()):
            found[key] = own
    return found


def spread_of(estimates: Estimates, columns: IntArray) -> Spread:
    """Take the mean over a model's runs, and the variance of that mean between seeds."""
    values = estimates.value[:, columns]
    n = len(columns)
    between = values.var(axis=1, ddof=1) / n if n > 1 else np.zeros(len(values))
    replicates = estimates.replicates[:, columns].mean(axis=1)
    return Spread(values.mean(axis=1), replicates, between, n)


def quantile_t(level: float | FloatArray, freedom: float | FloatArray) -> FloatArray:
    """Student's t for a two-sided interval; of no degree of freedom the normal deviate."""
    from scipy.special import ndtri, stdtrit

    at = 0.5 + np.asarray(level) / 2.0
    of_t = stdtrit(np.maximum(freedom, 1.0), at)
    return np.asarray(np.where(np.asarray(freedom) > 0, of_t, ndtri(at)))


@dataclass(frozen=True, slots=True)
class People:
    """How far other people may move a mean over runs, at a level: of all, and what runs share."""

    mean: FloatArray
    shared: FloatArray


def surer(
    estimates: Estimates,
    mean: FloatArray,
    each: Sequence[FloatArray],
    models: Sequence[Sequence[FloatArray]],
    at: int,
) -> People:
    """Say how far a mean over runs reaches, over one run's reach: both at most 1, ``[g]``.

    Shapes: ``mean`` [g, r], ``each`` [g, r], ``models`` [g, r].
    """

    def variance(drawn: FloatArray) -> FloatArray:
        error = standard_error(drawn, estimates.n_clusters[:, at], estimates.design)
        return np.asarray(error**2)

    of_one = np.mean([variance(one) for one in each], axis=0)
    whole = variance(mean)
    shared = whole
    for runs in models:
        if len(runs) > 1:  # a run's own mistakes: one run's variance less what all runs share
            alone = np.mean([variance(one) for one in runs], axis=0)
            shared = shared - (alone - variance(np.mean(runs, axis=0))) / (len(runs) - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = [
            np.where(of_one > 0, np.sqrt(np.clip(v / of_one, 0.0, 1.0)), 1.0)
            for v in (whole, shared)
        ]
    return People(np.asarray(found[0]), np.minimum(found[1], found[0]))


def joined_reach(people: People, between: Between, level: float) -> FloatArray:
    """Join the reach of other people with what differs between seeds, ``[g]``."""
    z = quantile_t(level, 0.0)
    return _joined((people.mean / z) ** 2, (people.shared / z) ** 2, between, level)


def _joined(
    mean: FloatArray, shared: FloatArray, between: Between, level: float | FloatArray
) -> FloatArray:
    z = quantile_t(level, 0.0)
    total = shared + np.sum([v for v, _ in between], axis=0)
    weighed = shared * z
    for variance, runs in between:
        if runs > 1:
            weighed = weighed + variance * quantile_t(level, float(runs - 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        cochran = np.where(total == 0, 0.0, weighed / np.sqrt(total))
    return np.asarray(np.maximum(cochran, np.sqrt(mean) * z))


def p_values(value: FloatArray, people: People, between: Between, level: float) -> FloatArray:
    """Ask at which level the interval of a difference touches 0, ``[g]``."""
    mean, shared = ((one / quantile_t(level, 0.0)) ** 2 for one in (people.mean, people.shared))
    low, high = np.full(len(value), np.log(1e-12)), np.zeros(len(value))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        reached = _joined(mean, shared, between, 1.0 - np.exp(middle)) >= np.abs(value)
        low, high = np.where(reached, middle, low), np.where(reached, high, middle)
    found = np.where(value == 0, 1.0, np.exp(low))
    return np.asarray(np.where(np.isnan(mean), np.nan, found))


def values_of_models(estimates: Estimates, models: Models, level: float) -> pl.DataFrame:
    """Give each model's value of every group: the table ``values`` of ``SideBySide``."""
    frames = []
    for own in columns_of(estimates, models).values():
        for name, columns in own.items():
            frames.append(_of_model(estimates, name, columns, level))
    return pl.concat(frames)


def _of_model(estimates: Estimates, name: str, columns: IntArray, level: float) -> pl.DataFrame:
    j = int(columns[0])
    measure, mean = estimates.measures[j], spread_of(estimates, columns)
    low, high = estimates.interval.low[:, j], estimates.interval.high[:, j]
    method = estimates.method[:, j].astype(object)
    seed_sd = np.full(len(mean.value), np.nan)
    if mean.runs > 1:
        low, high = _interval(estimates, mean, columns, measure, level)
        seed_sd = np.sqrt(mean.between * mean.runs)
        method[:] = "mean of runs, Cochran"
    judged, few = _usable(estimates, columns)
    cells = {
        "model": [name] * len(judged),
        "task": measure.task,
        "metric": measure.metric,
        "label": pl.Series([measure.label] * len(judged), dtype=pl.String),
        "threshold": pl.Series([measure.threshold] * len(judged), dtype=pl.Float64),
        "attribute": pl.Series([g.attribute for g in estimates.groups], dtype=pl.String),
        "group": [g.name for g in estimates.groups],
        "values": pl.Series([list(g.values) for g in estimates.groups], dtype=pl.List(pl.String)),
        "n_units": estimates.n_units[:, j],
        "n_clusters": estimates.n_clusters[:, j],
        "value": np.where(judged | few, mean.value, np.nan),
        "low": np.where(judged, low, np.nan),
        "high": np.where(judged, high, np.nan),
        "method": pl.Series(method.tolist(), dtype=pl.String),
        "runs": mean.runs,
        "seed_sd": np.where(judged, seed_sd, np.nan),
        "status": _status(estimates, columns),
        "reason": pl.Series(_reason(estimates, columns), dtype=pl.String),
    }
    floats = pl.col("value", "low", "high", "seed_sd").fill_nan(None)
    return pl.DataFrame(cells).with_columns(floats)


def _interval(
    estimates: Estimates, mean: Spread, columns: IntArray, measure: Measure, level: float
) -> tuple[FloatArray, FloatArray]:
    own = [estimates.replicates[:, j] for j in columns]
    times = surer(estimates, mean.replicates, own, [own], int(columns[0]))
    ends = []
    for end in (estimates.interval.low, estimates.interval.high):
        of_one = mean.value + (end[:, columns] - estimates.value[:, columns]).mean(axis=1)
        whole = _nearer(mean.value, of_one, times.mean, fraction=measure.fraction)
        people = People(whole, whole * shared_part(times))
        ends.append(joined_reach(people, [(mean.between, mean.runs)], level))
    floor = -np.inf if measure.info.low is None else measure.info.low
    ceiling = np.inf if measure.info.high is None else measure.info.high
    return np.maximum(mean.value - ends[0], floor), np.minimum(mean.value + ends[1], ceiling)


def shared_part(times: People) -> FloatArray:
    """Say which part of a mean's reach is of what its runs share."""
    return np.divide(times.shared, times.mean, out=np.zeros_like(times.mean), where=times.mean > 0)


def _nearer(value: FloatArray, end: FloatArray, times: FloatArray, *, fraction: bool) -> FloatArray:
    """Bring an end nearer to a value, of shares on the scale of log odds: how far it is then."""
    from scipy.special import expit, logit

    if not fraction:
        return times * np.abs(end - value)
    inside = (value > 0) & (value < 1) & (times < 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        at = logit(np.clip(value, 0.0, 1.0))
        moved = expit(at + times * (logit(np.clip(end, 0.0, 1.0)) - at))
    return np.asarray(np.abs(np.where(inside, moved, end) - value))


def _usable(
    estimates: Estimates, columns: IntArray
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    judged = np.asarray(estimates.judged()[:, columns].all(axis=1))
    words = estimates.status[:, columns].astype(str)
    few = np.asarray((words == Status.INSUFFICIENT_CLUSTERS.value).any(axis=1))
    return judged, few & ~judged


def _status(estimates: Estimates, columns: IntArray) -> list[str]:
    """Take the first status of a group's runs that is not ok."""
    words = estimates.status[:, columns].astype(str)
    ok = Status.OK.value
    return [next((w for w in row if w != ok), ok) for row in words.tolist()]


def _reason(estimates: Estimates, columns: IntArray) -> list[str | None]:
    rows = estimates.reason[:, columns].tolist()
    return [next((why for why in row if why), None) for row in rows]
