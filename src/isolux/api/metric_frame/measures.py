"""What ``metric_frame`` measures: named metrics on sums, functions on resampled rows."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.api.metric_frame.cautions import count_warnings, warn_of_cautions
from isolux.api.metric_frame.inputs import FrameInputs, to_class_names, to_series
from isolux.api.metric_frame.pair_tests import GroupTests
from isolux.core.containers import Dataset, Scores
from isolux.core.errors import IsoluxError, SpecError
from isolux.core.info import DatasetInfo
from isolux.core.inputs import IN_MEMORY
from isolux.core.spec import Statistics, validate_stage_settings
from isolux.core.tables import ATTRIBUTES, INSTANCES, LABEL_PREDICTIONS
from isolux.disparity.family import run_family_tests
from isolux.groups.estimates import Estimates
from isolux.groups.interval_methods import recompute_intervals
from isolux.groups.measure import measure_groups
from isolux.stats.cluster_sums import IntArray
from isolux.stats.intervals import Interval, mover_difference_interval, percentile_interval
from isolux.stats.multiplier_bootstrap import correlate_corresponding_rows
from isolux.stats.statistic import FloatArray
from isolux.stats.weights import build_random_generator
from isolux.tasks import score

_LEVEL, _GROUP = "level", "group"


@dataclass(frozen=True, slots=True)
class MetricByGroup:
    """One metric: of groups ``[g]`` and of levels ``[l]``, with ends, wide ends and replicates.

    ``simultaneous_interval`` are the groups' ends at the level at which all hold together;
    ``to_overall`` those of group less level, likewise; ``tail`` is half of what the level leaves
    out. ``exclusions`` ``[g]`` says why a group has no part in a difference; None: it has.
    ``run_tests`` tests a named metric's differences as an audit does; functions have no tests.
    """

    estimates: FloatArray
    interval: Interval
    overall: FloatArray
    overall_interval: Interval
    simultaneous_interval: Interval
    to_overall: Interval
    replicates: FloatArray
    overall_replicates: FloatArray
    tail: float
    exclusions: tuple[str | None, ...]
    metric: str = ""
    run_tests: Callable[[], GroupTests] | None = None

    @property
    def is_comparable(self) -> npt.NDArray[np.bool_]:
        """Mask the groups that have a part in differences ``[g]``."""
        return np.array([reason is None for reason in self.exclusions])

    def ratio_replicates(self, groups: IntArray, level: int) -> FloatArray:
        """Smallest ratio of a group and everyone, either way round, on each replicate ``[r]``."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.replicates[groups] / self.overall_replicates[level][None, :]
            return np.asarray(np.fmin(ratio, 1.0 / ratio).min(axis=0))


def _validate_statistics(values: Mapping[str, Any]) -> Statistics:
    """Validate the statistics settings; errors are isolux's own."""
    return validate_stage_settings({"data": "table:held", **values}).statistics


def measure_names(
    inputs: FrameInputs, metrics: Mapping[str, str], settings: Mapping[str, Any]
) -> dict[str, MetricByGroup]:
    """Measure metrics of the classification task."""
    names = list(dict.fromkeys(metrics.values()))
    dataset = _build_dataset(inputs)
    scores = score(
        "classification",
        dataset,
        _build_predictions(inputs),
        positive=inputs.positive,
        metrics=names,
        **({"score_of": "positive"} if inputs.y_score is not None and inputs.positive else {}),
    )
    warn_of_cautions(dataset, scores, inputs)
    membership = _build_membership(inputs)
    narrow = measure_groups(scores, membership, _validate_statistics(settings))
    simultaneous_level = 1.0 - (1.0 - settings["level"]) / max(inputs.groups.height, 1)
    wide = recompute_intervals(
        narrow, _validate_statistics({**settings, "level": simultaneous_level})
    )
    run_tests = lru_cache(partial(_test_groups, inputs, scores, settings))
    metric_by_label = {}
    for label, name in metrics.items():
        positions = [j for j, m in enumerate(narrow.measures) if m.metric == name]
        if len(positions) != 1:
            raise SpecError(
                f"the metric {name!r} is not one number per group",
                expected="a metric without classes or thresholds",
                found=f"{len(positions)} of them",
            )
        metric_by_label[label] = replace(
            _metric_from_estimates(inputs, narrow, wide, positions[0], settings["level"]),
            metric=name,
            run_tests=run_tests,
        )
    return metric_by_label


def _test_groups(inputs: FrameInputs, scores: Scores, settings: Mapping[str, Any]) -> GroupTests:
    """Test the groups of each level as an audit does: a level is an attribute."""
    spec = validate_stage_settings({"data": "table:held", **settings})
    membership = _build_membership(inputs).filter(attribute=_GROUP)
    level = pl.Series(inputs.level_of_group.astype(str)).gather(membership["group"].cast(pl.Int64))
    estimates = measure_groups(scores, membership.with_columns(attribute=level), spec.statistics)
    return GroupTests(estimates, run_family_tests(estimates, spec.comparing, {}), spec.comparing)


_MAX_CLASSES = 20  # whole numbers; more different ones are amounts, such as ages


def score_function_inputs(inputs: FrameInputs) -> tuple[Dataset, Scores] | None:
    """Score what functions get as classes or numbers; None: no task takes it."""
    with suppress(IsoluxError):
        return _score_classes_or_numbers(inputs)
    return None


def _score_classes_or_numbers(inputs: FrameInputs) -> tuple[Dataset, Scores] | None:
    if any(np.ndim(values) != 1 for values in (inputs.raw_true, inputs.raw_pred)):
        return None
    true, pred = (to_series(values, "y") for values in (inputs.raw_true, inputs.raw_pred))
    is_numeric = [series.dtype.is_numeric() for series in (true, pred)]
    is_float = [n and (s % 1 != 0).any() for s, n in zip((true, pred), is_numeric, strict=True)]
    classes = replace(inputs, y_true=to_class_names(true), y_pred=to_class_names(pred))
    dataset, predictions = _build_dataset(classes), _build_predictions(classes)
    task, options = "classification", {}
    if all(is_numeric) and (any(is_float) or true.n_unique() > _MAX_CLASSES):
        task, options = "regression", {"target": "truth"}
        numbers = true.cast(pl.Float64).fill_nan(None)
        rows = {"unit_kind": "instance", "unit_id": dataset.instances["instance_id"]}
        attributes = {**rows, "attribute": "truth", "value": classes.y_true, "number": numbers}
        dataset = replace(dataset, attributes=ATTRIBUTES.conform(pl.DataFrame(attributes)))
        predictions = predictions.select("model", "instance_id", value=pred.cast(pl.Float64))
    return dataset, score(task, dataset, predictions, **options)


def _build_dataset(inputs: FrameInputs) -> Dataset:
    ids = pl.int_range(len(inputs.y_true), eager=True).cast(pl.String)
    instances = pl.DataFrame({"instance_id": ids, "image_id": ids}).with_columns(
        classes=inputs.y_true.to_frame().to_series().reshape((-1, 1)).arr.to_list(),
        cluster_id=pl.lit(None, dtype=pl.String) if inputs.cluster is None else inputs.cluster,
    )
    dataset_info = DatasetInfo(
        title="Arrays", summary="Arrays in memory.", references=(), licence="own"
    )
    return Dataset(IN_MEMORY, dataset_info, INSTANCES.conform(instances))


def _build_predictions(inputs: FrameInputs) -> pl.DataFrame:
    n = len(inputs.y_pred)
    frame = pl.DataFrame(
        {
            "model": pl.repeat("model", n, eager=True),
            "instance_id": pl.int_range(n, eager=True).cast(pl.String),
            "label": inputs.y_pred,
            "score": pl.repeat(None, n, dtype=pl.Float64, eager=True)
            if inputs.y_score is None
            else inputs.y_score,
            "rank": pl.repeat(1, n, dtype=pl.Int64, eager=True),
        }
    )
    return LABEL_PREDICTIONS.conform(frame)


def _build_membership(inputs: FrameInputs) -> pl.DataFrame:
    ids = pl.int_range(len(inputs.y_true), eager=True).cast(pl.String)
    membership_tables = []
    for attribute, codes in ((_LEVEL, inputs.level_of_row), (_GROUP, inputs.group_of_row)):
        text = pl.Series("group", codes).cast(pl.String)
        membership_tables.append(
            pl.DataFrame({"group": text, "unit_id": ids}).with_columns(
                attribute=pl.lit(attribute), values=pl.concat_list("group")
            )
        )
    return pl.concat(membership_tables).select("attribute", "group", "values", "unit_id")


def _metric_from_estimates(
    inputs: FrameInputs, narrow: Estimates, wide: Interval, j: int, level: float
) -> MetricByGroup:
    rows = {
        attribute: np.array(
            sorted(
                (int(g.name), i) for i, g in enumerate(narrow.groups) if g.attribute == attribute
            )
        )[:, 1]
        for attribute in (_LEVEL, _GROUP)
    }
    levels, groups = rows[_LEVEL], rows[_GROUP]
    level_rows = levels[inputs.level_of_group]

    def select_interval(interval: Interval, rows_to_take: IntArray) -> Interval:
        return Interval(interval.low[rows_to_take, j], interval.high[rows_to_take, j])

    group_replicates, overall_replicates = (
        narrow.replicates[groups, j],
        narrow.replicates[level_rows, j],
    )
    to_overall = mover_difference_interval(
        narrow.value[groups, j],
        select_interval(wide, groups),
        narrow.value[level_rows, j],
        select_interval(wide, level_rows),
        correlate_corresponding_rows(group_replicates, overall_replicates),
    )
    return MetricByGroup(
        narrow.value[groups, j],
        select_interval(narrow.interval, groups),
        narrow.value[levels, j],
        select_interval(narrow.interval, levels),
        select_interval(wide, groups),
        to_overall,
        group_replicates,
        narrow.replicates[levels, j],
        (1.0 - level) / 2.0,
        tuple(
            None if is_comparable else str(reason)
            for is_comparable, reason in zip(
                narrow.is_comparable()[groups, j], narrow.reason[groups, j], strict=True
            )
        ),
    )


def measure_functions(
    inputs: FrameInputs,
    functions: Mapping[str, Callable[..., float]],
    params: Mapping[str, Mapping[str, Any]],
    *,
    replicates: int,
    seed: int,
    level: float,
    min_clusters: int,
) -> dict[str, MetricByGroup]:
    """Call functions of ``(y_true, y_pred)`` on every group of resampled clusters of rows."""
    true, pred = np.asarray(inputs.raw_true), np.asarray(inputs.raw_pred)
    draws = _resample_rows(inputs, replicates, seed)
    all_rows = np.arange(len(true))
    codes = ((inputs.group_of_row, inputs.groups.height), (inputs.level_of_row, inputs.n_levels))
    metric_by_label = {}
    for label, function in functions.items():
        estimates, replicate_arrays = [], []
        call_by_group = partial(_call_by_group, function, (true, pred), params.get(label, {}))
        with count_warnings(label):
            for code, count in codes:
                estimates.append(call_by_group(all_rows, code, count))
                replicate_arrays.append(
                    np.stack([call_by_group(d, code, count) for d in draws], axis=1)
                )
        simultaneous_level = 1.0 - (1.0 - level) / max(inputs.groups.height, 1)
        gap = replicate_arrays[0] - replicate_arrays[1][inputs.level_of_group]
        metric_by_label[label] = MetricByGroup(
            estimates[0],
            percentile_interval(replicate_arrays[0], level),
            estimates[1],
            percentile_interval(replicate_arrays[1], level),
            percentile_interval(replicate_arrays[0], simultaneous_level),
            percentile_interval(gap, simultaneous_level),
            replicate_arrays[0],
            replicate_arrays[1],
            (1.0 - level) / 2.0,
            _exclude_groups(inputs, estimates[0], min_clusters),
        )
    return metric_by_label


def _exclude_groups(
    inputs: FrameInputs, estimates: FloatArray, min_clusters: int
) -> tuple[str | None, ...]:
    """Return why each group's value, ``[g]``, is left out of a difference, or None."""
    rows = pl.Series(np.arange(len(inputs.group_of_row)))
    clusters = rows if inputs.cluster is None else inputs.cluster
    cluster_rows = pl.DataFrame({"group": inputs.group_of_row, "cluster": clusters}).unique()
    n_clusters = np.bincount(cluster_rows["group"].to_numpy(), minlength=len(estimates))
    unit = "units" if inputs.cluster is None else "clusters"
    return tuple(
        f"fewer than {min_clusters} {unit}"
        if n < min_clusters
        else "the function gives no number"
        if np.isnan(estimate)
        else None
        for n, estimate in zip(n_clusters, estimates, strict=True)
    )


def _call_by_group(
    function: Callable[..., float],
    values: tuple[Any, Any],
    params: Mapping[str, Any],
    rows: IntArray,
    code: IntArray,
    count: int,
) -> FloatArray:
    out = np.full(count, np.nan)
    row_codes = code[rows]
    for k in range(count):
        members = rows[row_codes == k]
        if len(members):
            true, pred = (array[members] for array in values)
            own_params = {name: array[members] for name, array in params.items()}
            out[k] = _call_metric(function, true, pred, own_params)
    return out


def _call_metric(
    function: Callable[..., float], true: Any, pred: Any, params: Mapping[str, Any]
) -> float:
    """Call a metric function, and refuse a result that is not one number."""
    name = getattr(function, "__name__", "metric")
    try:
        # Some functions written in C have no signature: then the call shows whether they fit.
        with suppress(ValueError):
            inspect.signature(function).bind(true, pred, **params)
    except TypeError as error:
        raise SpecError(
            f"the metric {name!r} cannot be called with y_true and y_pred",
            expected="a function of (y_true, y_pred) and what sample_params names",
            found=str(error),
        ) from error
    number = function(true, pred, **params)
    if np.asarray(number).dtype.kind in "US":
        raise SpecError(
            f"the metric {name!r} gives text",
            expected="a number for each group",
            found=repr(number),
            hint="let it return float(…) of that",
        )
    try:
        return float(number)
    except (TypeError, ValueError) as error:
        shape = f" of shape {np.shape(number)}" if np.shape(number) else ""
        raise SpecError(
            f"the metric {name!r} does not give one number",
            expected="a number for each group",
            found=f"{type(number).__name__}{shape}",
            hint="give a function for each number: lambda t, p: confusion_matrix(t, p)[0, 1]",
        ) from error


def _resample_rows(inputs: FrameInputs, replicates: int, seed: int) -> list[IntArray]:
    """Draw clusters with replacement and return the rows of each draw."""
    rng = build_random_generator(seed, "bootstrap")
    n = len(inputs.y_true)
    if inputs.cluster is None:
        return list(rng.integers(0, n, size=(replicates, n)))
    code = inputs.cluster.rank("dense").to_numpy().astype(np.int64) - 1
    order = np.argsort(code, kind="stable")
    members = np.split(order, np.cumsum(np.bincount(code))[:-1])
    cluster_draws = rng.integers(0, len(members), size=(replicates, len(members)))
    return [np.concatenate([members[c] for c in draw]) for draw in cluster_draws]
