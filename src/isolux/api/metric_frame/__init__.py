"""The vocabulary of fairlearn's ``MetricFrame``, with intervals and clusters.

``overall``, ``by_group``, ``difference``, ``ratio``, ``group_min`` and ``group_max`` mean what they
mean there (Weerts et al. 2023); every number has an interval beside it, and photos of one subject
are resampled together. Metrics given by name run on isolux's sums; a function of one's own is
called on resampled rows, as fairlearn does, and is as slow as that.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from isolux.api.metric_frame.cautions import warn_of_function_inputs
from isolux.api.metric_frame.display import (
    build_pandas_table,
    build_text_table,
    draw_frame,
    format_frame_html,
    format_frame_text,
)
from isolux.api.metric_frame.extremes import Method, compute_extreme, name_exclusions
from isolux.api.metric_frame.inputs import (
    FrameInputs,
    raise_as_value_errors,
    read_inputs,
    read_params,
)
from isolux.api.metric_frame.measures import (
    MetricByGroup,
    measure_functions,
    measure_names,
    score_function_inputs,
)
from isolux.api.metric_frame.pair_tests import build_pair_frame, list_smallest_p
from isolux.core.errors import SpecError
from isolux.core.spec import IntervalMethod
from isolux.stats.cluster_sums import IntArray
from isolux.stats.constants import MIN_CLUSTERS_FOR_INTERVAL
from isolux.stats.intervals import Interval
from isolux.stats.statistic import FloatArray

if TYPE_CHECKING:
    import altair as alt

Errors = Literal["raise", "coerce"]
MetricLike = str | Callable[..., float]


def metric_frame(
    *,
    metrics: MetricLike | Mapping[str, MetricLike],
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    control_features: Any = None,
    cluster: Any = None,
    y_score: Any = None,
    positive: Any = None,
    sample_params: Mapping[str, Any] | None = None,
    replicates: int = 2000,
    seed: int = 0,
    level: float = 0.95,
    interval: IntervalMethod = "score",
    min_clusters: int = MIN_CLUSTERS_FOR_INTERVAL,
) -> MetricFrame:
    """Evaluate metrics for everyone and for every group, with intervals.

    Parameters
    ----------
    metrics : str, callable or mapping of str to either
        Names of ``isolux list tasks`` (``"accuracy"``, ``"selection_rate"``,
        ``"true_positive_rate"``, ``"false_positive_rate"``, ``"precision"``,
        ``"balanced_accuracy"``, ``"roc_auc"``, …), or functions of ``(y_true, y_pred)``.
    y_true, y_pred : array_like [n]
        Truth and answer, of any type, also as ``[n, 1]`` and as frames of one column; 1, 1.0 and
        True are one class. For metrics by name a missing truth (None, NaN) leaves its row out and a
        missing answer is a mistake, of which a warning tells; functions get what was given, and may
        take answers of several numbers a row (``[n, k]``).
    sensitive_features, control_features : array, list, mapping or frame of n rows
        As in fairlearn: groups are every combination of the sensitive features, within every
        combination of the control features; those that hold no one are not listed. People whose
        feature is missing are a group of their own (null), where fairlearn refuses them.
    cluster : array_like [n], optional
        What was sampled independently (the subject); none: every row.
    y_score : array_like [n], optional
        Score of the positive class, 0 to 1, for ``roc_auc`` and ``calibration_error``.
    positive : optional
        The positive class; none: 1 where the classes are 0 and 1.
    sample_params : mapping, optional
        As in fairlearn: further arguments of functions, one value a row: ``{"sample_weight": w}``
        of one function, ``{"name": {"sample_weight": w}}`` of several by name.
    replicates : int
        Bootstrap replicates; of functions at most 200, for they are called once a group each.
    seed : int
    level : float
        Of the intervals.
    interval : str
        Method of the groups' intervals, as in an audit; functions always take percentiles.
    min_clusters : int
        Smallest group that has a part in differences, ratios and ends, in clusters (without
        ``cluster``, in rows) of those that the metric is about. With fewer than 10 no interval is
        honest, and one person would set the difference. 1: every group, as in fairlearn.

    Returns
    -------
    MetricFrame

    Raises
    ------
    TableError
        When the inputs differ in length.
    SpecError
        When a metric needs what was not given, or gives no number.

    Each is a ``ValueError`` too, as fairlearn's are.

    Notes
    -----
    Fairlearn's named measures are differences and ratios of one rate, or the worse of two:

    - ``demographic_parity_difference``, ``_ratio``: those of ``"selection_rate"``;
    - ``equal_opportunity_difference``, ``_ratio``: those of ``"true_positive_rate"``;
    - ``equalized_odds_difference``: the largest ``value`` of the differences of
      ``"true_positive_rate"`` and ``"false_positive_rate"``;
    - ``equalized_odds_ratio``: the smallest of their ratios.

    An audit of a task with two classes reports them under these names.

    Examples
    --------
    >>> frame = metric_frame(metrics="accuracy", y_true=[0, 1] * 100, y_pred=[0, 1, 0, 0] * 50,
    ...                      sensitive_features={"light": ["day", "day", "night", "night"] * 50})
    >>> frame.by_group.select("light", "value").rows()
    [('day', 1.0), ('night', 0.5)]
    >>> frame.difference().select("metric", "value").rows()
    [('accuracy', 0.5)]
    >>> frame
    Metrics by light, with 95 % intervals
    light    n  accuracy
    all    200  0.750 (0.686–0.805)
    day    100  1.000 (0.963–1.000)
    night  100  0.500 (0.404–0.596)
    """
    with raise_as_value_errors():
        return _measure_metrics(
            metrics,
            (y_true, y_pred, y_score),
            (sensitive_features, control_features),
            cluster,
            positive,
            sample_params,
            {
                "replicates": replicates,
                "seed": seed,
                "level": level,
                "interval": interval,
                "min_units": min_clusters if cluster is None else 1,
                "min_clusters": min_clusters,
            },
        )


def _measure_metrics(
    metrics: MetricLike | Mapping[str, MetricLike],
    values: tuple[Any, Any, Any],
    features: tuple[Any, Any],
    cluster: Any,
    positive: Any,
    sample_params: Mapping[str, Any] | None,
    settings: dict[str, Any],
) -> MetricFrame:
    metric_by_label: Mapping[str, MetricLike]
    if isinstance(metrics, Mapping):
        metric_by_label = metrics
    else:
        metric_by_label = {
            metrics if isinstance(metrics, str) else _function_name(metrics): metrics
        }
    if not metric_by_label:
        raise SpecError("there is no metric to measure", expected="a name or a function")
    by_name = {label: m for label, m in metric_by_label.items() if isinstance(m, str)}
    functions = {label: m for label, m in metric_by_label.items() if not isinstance(m, str)}
    inputs = read_inputs(values, features, cluster, positive, by_name=bool(by_name))
    params = read_params(
        sample_params,
        metric_by_label,
        len(inputs.y_true),
        is_single_metric=metric_by_label is not metrics,
    )
    measured_by_label: dict[str, MetricByGroup] = {}
    if by_name:
        measured_by_label |= measure_names(inputs, by_name, settings)
    else:
        warn_of_function_inputs(inputs, score_function_inputs(inputs))
    if functions:
        measured_by_label |= measure_functions(
            inputs,
            functions,
            params,
            replicates=min(settings["replicates"], 200),
            seed=settings["seed"],
            level=settings["level"],
            min_clusters=settings["min_clusters"],
        )
    ordered_metrics = {label: measured_by_label[label] for label in metric_by_label}
    return MetricFrame(inputs, ordered_metrics, settings["level"])


def _function_name(function: Callable[..., float]) -> str:
    return getattr(function, "__name__", "metric")


@dataclass(frozen=True, slots=True, repr=False)
class MetricFrame:
    """Metrics by group. Every frame has ``metric``, the control features if any, ``value``, ends.

    Differences and ratios are those between the groups of one level of the control features. Their
    intervals are simultaneous: all groups' intervals at the level at which they hold together
    (Bonferroni), so the interval of a difference holds 0 where nothing differs. A group without a
    value, or of fewer than ``min_clusters`` clusters, has no part in them: ``reason`` names it, and
    so does a warning. Where fewer than two groups are left, they are null.
    """

    inputs: FrameInputs
    metrics_by_label: Mapping[str, MetricByGroup]
    level: float

    def __repr__(self) -> str:
        """Show a row for everyone and each group, and a column for each metric."""
        return format_frame_text(*build_text_table(self.overall, self.by_group, self.level))

    def _repr_html_(self) -> str:
        return format_frame_html(*build_text_table(self.overall, self.by_group, self.level))

    def to_pandas(self) -> Any:
        """Return the groups' values as fairlearn's ``by_group``: groups × metrics, a pandas frame.

        Intervals are in ``by_group``.
        """
        return build_pandas_table(self.by_group)

    def plot(self) -> alt.FacetChart:
        """Draw every metric of each group with its interval, one panel a metric.

        Needs altair (``pip install 'isolux[notebook]'``); the chart has its ``save``.
        """
        return draw_frame(self.by_group)

    @property
    def overall(self) -> pl.DataFrame:
        """Everyone, or everyone of each level of the control features."""
        return self._stack(
            lambda m: (m.overall, m.overall_interval), self.inputs.controls, n=self.inputs.n_overall
        )

    @property
    def by_group(self) -> pl.DataFrame:
        """Every group: its features, ``value``, ``low``, ``high`` and ``n``."""
        return self._stack(
            lambda m: (m.estimates, m.interval), self.inputs.groups, n=self.inputs.n_of_group
        )

    def difference(
        self, method: Method = "between_groups", errors: Errors = "coerce"
    ) -> pl.DataFrame:
        """Return the largest difference: between groups, or of a group to everyone (absolute).

        Its interval is wider than that of the same gap in ``audit``. It is made from intervals of
        all groups that hold at once, and holds for the largest gap whichever groups have it; an
        audit's interval of a difference is of that pair of groups alone (``between``). ``p`` is
        the audit's: the smallest over these differences, adjusted for all of them; null for a
        function. With many groups it finds gaps whose interval here still includes 0.

        ``errors`` is fairlearn's; every metric here is a number, so that it changes nothing.
        """
        with raise_as_value_errors():
            _refuse_errors(errors)
            frame = self._build_extreme_frame("difference", method)
            return frame.with_columns(p=list_smallest_p(self.inputs, self.metrics_by_label, method))

    def between(self, group_a: object, group_b: object) -> pl.DataFrame:
        """Return the first group's value less the second's, for a pair chosen beforehand.

        Parameters
        ----------
        group_a, group_b
            Values of the sensitive feature; of several features, the values joined by ``" × "``.

        Returns
        -------
        polars.DataFrame
            ``metric``, control features, ``value``, ``low``, ``high`` (the interval of this pair
            alone), ``p`` (not adjusted: for a pair that the data did not choose) and ``reason`` why
            a comparison has none. Metrics by name alone: a function's differences are not tested.
        """
        with raise_as_value_errors():
            return build_pair_frame(self.inputs, self.metrics_by_label, str(group_a), str(group_b))

    def ratio(self, method: Method = "between_groups", errors: Errors = "coerce") -> pl.DataFrame:
        """Return the smallest ratio: of two groups, or of a group and everyone; at most 1."""
        with raise_as_value_errors():
            _refuse_errors(errors)
            return self._build_extreme_frame("ratio", method)

    def group_min(self, errors: Errors = "raise") -> pl.DataFrame:
        """Return the smallest value over the groups, and which group has it."""
        with raise_as_value_errors():
            _refuse_errors(errors)
        return self._build_end_frame(np.nanargmin, np.fmin)

    def group_max(self, errors: Errors = "raise") -> pl.DataFrame:
        """Return the largest value over the groups, and which group has it."""
        with raise_as_value_errors():
            _refuse_errors(errors)
        return self._build_end_frame(np.nanargmax, np.fmax)

    def _stack(
        self,
        select: Callable[[MetricByGroup], tuple[FloatArray, Interval]],
        keys: pl.DataFrame,
        n: FloatArray | None = None,
    ) -> pl.DataFrame:
        frames = []
        for label, metric in self.metrics_by_label.items():
            estimates, interval = select(metric)
            numbers: dict[str, Any] = {
                "value": estimates,
                "low": interval.low,
                "high": interval.high,
            }
            if n is not None:
                numbers["n"] = n.astype(np.int64)
            frame = pl.DataFrame(numbers).with_columns(
                pl.col("value", "low", "high").fill_nan(None)
            )
            head = pl.DataFrame({"metric": [label] * frame.height})
            frame_parts = [head, keys, frame] if keys.width else [head, frame]
            frames.append(pl.concat(frame_parts, how="horizontal"))
        return pl.concat(frames)

    def _group_levels(self) -> list[IntArray]:
        level_of_group = self.inputs.level_of_group
        return [np.flatnonzero(level_of_group == k) for k in range(self.inputs.n_levels)]

    def _build_extreme_frame(self, comparison: str, method: Method) -> pl.DataFrame:
        if method not in ("between_groups", "to_overall"):
            raise SpecError(
                "differences cannot be taken so",
                expected="between_groups or to_overall",
                found=repr(method),
            )

        def select(metric: MetricByGroup) -> tuple[FloatArray, Interval]:
            rows = [
                compute_extreme(metric, groups[metric.is_comparable[groups]], k, comparison, method)
                for k, groups in enumerate(self._group_levels())
            ]
            table = np.array(rows)
            return table[:, 0], Interval(table[:, 1], table[:, 2])

        return self._add_reasons(self._stack(select, self.inputs.controls), min_groups=2)

    def _build_end_frame(
        self, position: Callable[[FloatArray], Any], fold: np.ufunc
    ) -> pl.DataFrame:
        end_groups: list[str | None] = []

        def select(metric: MetricByGroup) -> tuple[FloatArray, Interval]:
            rows = []
            for level_groups in self._group_levels():
                groups = level_groups[metric.is_comparable[level_groups]]
                group_values = metric.estimates[groups]
                if not len(groups):
                    rows.append((np.nan, np.nan, np.nan))
                    end_groups.append(None)
                    continue
                index = int(position(group_values))
                end_groups.append(self.inputs.group_names[int(groups[index])])
                wide_interval = metric.simultaneous_interval
                low, high = (
                    fold.reduce(wide_interval.low[groups]),
                    fold.reduce(wide_interval.high[groups]),
                )
                rows.append((group_values[index], low, high))
            table = np.array(rows)
            return table[:, 0], Interval(table[:, 1], table[:, 2])

        frame = self._stack(select, self.inputs.controls)
        frame = frame.with_columns(pl.Series("group", end_groups, dtype=pl.String))
        return self._add_reasons(frame, min_groups=1)

    def _add_reasons(self, frame: pl.DataFrame, *, min_groups: int) -> pl.DataFrame:
        """Add ``reason``, which names the groups that have no part in a row, and warn of them."""
        reasons = [
            name_exclusions(metric, groups, self.inputs.group_names, min_groups)
            for metric in self.metrics_by_label.values()
            for groups in self._group_levels()
        ]
        for metric, reason in zip(frame["metric"], reasons, strict=True):
            if reason is not None:
                warnings.warn(f"{metric}: {reason}", UserWarning, stacklevel=4)
        return frame.with_columns(pl.Series("reason", reasons, dtype=pl.String))


def _refuse_errors(errors: str) -> None:
    if errors not in ("raise", "coerce"):
        raise SpecError("errors cannot be that", expected="raise or coerce", found=repr(errors))
