"""Title and meaning of each kind of row in ``disparities``: one entry each, read by every report.

Most are measures: plugins of ``isolux.disparity.measures`` or of another package, one file each.
The others are more than a formula of the groups' values (pairs, tests, two rates at once, two
models): they are computed by the module of their method, and described here.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from isolux.core import registry
from isolux.core.errors import IsoluxError
from isolux.core.info import MeasureInfo
from isolux.stats.statistic import FloatArray


def _build_measure_info(title: str, summary: str, **fields: Any) -> MeasureInfo:
    return MeasureInfo(title=title, summary=summary, references=(), **fields)


_BUILT_IN_KINDS: dict[str, MeasureInfo] = {
    "difference": _build_measure_info(
        "difference", "The value of one group minus that of the other.", direction="none", low=None
    ),
    "ratio": _build_measure_info(
        "ratio",
        "The value of one group divided by that of the other.",
        direction="none",
        parity_value=1.0,
        unit="",
    ),
    "log_ratio": _build_measure_info(
        "log ratio",
        "The logarithm of the ratio of two groups, to the base that the audit names.",
        direction="none",
        low=None,
        unit="",
    ),
    "difference_to_overall": _build_measure_info(
        "difference to overall",
        "The value of a group minus the overall value.",
        direction="none",
        low=None,
    ),
    "omnibus_test": _build_measure_info(
        "largest |t|",
        "The test of any difference: the largest |t| over pairs, and groups against the rest.",
        unit="",
    ),
    "noise_corrected_sd": _build_measure_info(
        "noise-corrected SD", "The standard deviation of the groups' true values (Paule–Mandel)."
    ),
    "max_difference_bound": _build_measure_info(
        "at most apart",
        "The widest gap between two groups that is compatible with the data: all pairs (with "
        "--reference: those with it), one-sided; with --margin, its p is of the claim that none of "
        "them differ by more.",
    ),
    "equalized_odds_difference": _build_measure_info(
        "equalized odds difference",
        "The larger of the ranges of the true positive rate and of the false positive rate.",
        high=1.0,
    ),
    "fairness_discrepancy_rate": _build_measure_info(
        "fairness discrepancy rate",
        "One minus the weighted ranges of a verifier's false match and false non-match rates.",
        direction="higher",
        parity_value=1.0,
        high=1.0,
        unit="",
    ),
    "inequity_rate": _build_measure_info(
        "inequity rate",
        "The weighted product of the largest over the smallest false match and non-match rates.",
        parity_value=1.0,
        low=1.0,
        unit="",
    ),
    "garbe": _build_measure_info(
        "GARBE",
        "The weighted Gini coefficients of a verifier's false match and false non-match rates.",
        high=1.0,
        unit="",
    ),
    "skewed_error_ratio": _build_measure_info(
        "skewed error ratio",
        "The largest over the smallest of the groups' error rates, each the mean of a verifier's "
        "false match and false non-match rates.",
        parity_value=1.0,
        low=1.0,
        unit="",
    ),
    "model_difference": _build_measure_info(
        "change", "The second model's value minus the first model's.", direction="none", low=None
    ),
    "relative_change": _build_measure_info(
        "relative change",
        "The second model's value over the first model's, less 1.",
        direction="none",
        low=-1.0,
        unit="",
    ),
    "gap_change": _build_measure_info(
        "change of a gap",
        "The second model's gap between two groups, of which group_a is served worse, minus the "
        "first model's; above 0: wider.",
        direction="lower",
        low=None,
    ),
}

_READ_FIRST = (
    "range",
    "demographic_parity_difference",
    "equal_opportunity_difference",
    "ratio_min_max",
    "demographic_parity_ratio",
    "equal_opportunity_ratio",
    "epsilon",
    "standard_deviation",
    "mean_absolute_gap",
)
"""The order in which measures stand in the table; others follow by name."""


@dataclass(frozen=True, slots=True)
class PluginMeasure:
    """A measure that a plugin adds: its name (the column ``kind``), its info and its module."""

    name: str
    info: MeasureInfo
    plugin: ModuleType

    def evaluate(self, values: FloatArray, settings: dict[str, Any]) -> FloatArray:
        """Measure ``values [..., g]``; the result has their leading shape."""
        results = np.asarray(
            _call_with_settings(self.plugin.measure, (values,), settings), dtype=np.float64
        )
        # A plugin that measures along the wrong axis would mix groups with replicates.
        if results.shape != values.shape[:-1]:
            raise IsoluxError(
                f"the measure {self.name!r} does not give one number for each row of groups",
                expected=f"shape {values.shape[:-1]} of values of shape {values.shape}",
                found=f"shape {results.shape}",
                where=self.plugin.__name__,
                hint="measure along the last axis",
            )
        return results

    def convert_bounds(
        self, bounds: tuple[float, float], settings: dict[str, Any]
    ) -> tuple[float, float]:
        """Convert bounds of the largest difference or log ratio to bounds of this measure."""
        # Without ``bounds`` the measure is the largest difference or log ratio itself.
        convert = getattr(self.plugin, "bounds", None)
        if convert is None:
            return bounds
        low, high = _call_with_settings(convert, bounds, settings)
        return float(low), float(high)

    @property
    def needs_centre(self) -> bool:
        """Whether it measures distances from one value: overall's or the reference group's."""
        return "overall" in inspect.signature(self.plugin.measure).parameters

    def is_applicable(self, metric: str, low: float | None) -> bool:
        """Tell whether it applies to this metric, whose lowest possible value is ``low``."""
        # A ratio needs a metric whose values cannot be negative.
        is_measure_of_metric = not self.info.metrics or metric in self.info.metrics
        can_be_negative = low is None or low < 0
        return is_measure_of_metric and not (self.info.nonnegative and can_be_negative)


def _call_with_settings(function: Any, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
    """Call a plugin's function with those of the settings that are among its parameters."""
    # A measure's signature lists the settings that it needs.
    parameters = inspect.signature(function).parameters
    return function(*arguments, **{k: v for k, v in settings.items() if k in parameters})


def load_measures() -> tuple[PluginMeasure, ...]:
    """Load every measure that the registry finds, in the order in which they are read."""
    rank = {name: position for position, name in enumerate(_READ_FIRST)}
    names = sorted(registry.names("measures"), key=lambda name: rank.get(name, len(rank)))
    return tuple(_load_measure(name) for name in names)


def _load_measure(name: str) -> PluginMeasure:
    # Both would be the same value of the column ``kind``.
    if name in _BUILT_IN_KINDS:
        raise IsoluxError(
            f"a measure of another package has the same name as one of isolux, {name!r}",
            expected="a name of its own",
            hint="rename its entry point",
        )
    return PluginMeasure(name, registry.load_measure_info(name), registry.load("measures", name))


def disparity_measure_info(disparity_kind: str) -> MeasureInfo:
    """Return title, unit and meaning of a kind of disparity."""
    if disparity_kind in _BUILT_IN_KINDS:
        return _BUILT_IN_KINDS[disparity_kind]
    if disparity_kind in registry.names("measures"):
        return registry.load_measure_info(disparity_kind)
    # A run read back without the plugin's package: the unit is guessed from the name.
    unit = "" if disparity_kind.endswith("ratio") else "metric"
    summary = "A measure of a package that is not installed here."
    return _build_measure_info(
        disparity_kind.replace("_", " "), summary, direction="none", low=None, unit=unit
    )
