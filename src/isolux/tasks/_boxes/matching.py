"""From overlapping pairs to one score per person and metric, by the requested matching rule.

Every metric asks of the same pairs who is detected: at these IoU thresholds, by detections of at
least this score, by the top detections of an image. Detections below a score or beyond a number
choose last under COCO's rule, so that excluding them beforehand changes no other match.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError
from isolux.core.info import TaskInfo
from isolux.core.plugin_options import fill_missing_settings
from isolux.geometry.matching import (
    IOU_THRESHOLDS,
    OverlapPairs,
    limit_detections,
    match,
    match_best_overlap,
)
from isolux.stats.statistic import FloatArray
from isolux.tasks._boxes.areas import SIZES, restrict_to_size
from isolux.tasks._boxes.instance_tables import AnnotatedInstances, ModelDetections
from isolux.tasks._boxes.settings import BoxSettings, Matching
from isolux.tasks._scores import read_metrics, restrict_task_info
from isolux.tasks._scores import score_rows as write_rows

_REQUIRED_SETTINGS = {
    "recall_at_score": ("score_threshold", "score_threshold, a score of the model's own scale"),
    "average_recall_at_k": ("top_k", "top_k, such as top_k=(1, 10, 100)"),
}
# Precision needs false positives, which are defined only where each person has one detection.
_ONE_TO_ONE_METRICS = (
    "average_precision",
    "normalised_average_precision",
    "average_recall_over_classes",
)
"""Prefixes: the metrics of single IoU thresholds and sizes begin with them."""


_IOU_RULE, _COUNT_RULE = "overlaps above 0, at most 1", "whole numbers of at least 1"


def _is_valid_iou(value: float) -> bool:
    # At 0 every detection would match every person of its image.
    return 0 < value <= 1


def _is_valid_count(value: int) -> bool:
    return value >= 1


@dataclass(frozen=True, slots=True)
class MatchingSettings:
    """Validated ``BoxSettings``: each number once, in rising order."""

    iou_thresholds: tuple[float, ...]
    score_threshold: tuple[float, ...]
    score_iou: float
    max_detections: int | None
    top_k: tuple[int, ...]
    matching: Matching
    common_count: float | None
    person_label: str | Sequence[str] | None
    model: str | None

    def __post_init__(self) -> None:
        count, limit = self.common_count, self.max_detections
        rules: tuple[tuple[str, Sequence[Any], Callable[[Any], bool], str], ...] = (
            ("iou_thresholds", self.iou_thresholds, _is_valid_iou, _IOU_RULE),
            ("score_iou", (self.score_iou,), _is_valid_iou, _IOU_RULE),
            ("score_threshold", self.score_threshold, np.isfinite, "finite numbers"),
            ("top_k", self.top_k, _is_valid_count, _COUNT_RULE),
            ("max_detections", () if limit is None else (limit,), _is_valid_count, _COUNT_RULE),
            (
                "common_count",
                () if count is None else (count,),
                lambda n: np.isfinite(n) and n > 0,
                "a number of people above 0, or none",
            ),
        )
        for name, values, is_possible, expected in rules:
            invalid_values = [value for value in values if not is_possible(value)]
            if invalid_values:
                raise SpecError(
                    f"{name} cannot be that", expected=expected, found=repr(invalid_values[0])
                )

    @property
    def min_iou(self) -> float:
        """The lowest IoU threshold of any metric."""
        # Pairs below it match under no metric and need not be computed.
        return min((*self.iou_thresholds, self.score_iou, IOU_THRESHOLDS[0]))


def parse_box_settings(**options: Unpack[BoxSettings]) -> MatchingSettings:
    """Parse a task's settings; those that were not set have their defaults."""
    settings = fill_missing_settings(BoxSettings, options)
    score_threshold = settings["score_threshold"]
    scores = (
        (score_threshold,) if isinstance(score_threshold, int | float) else score_threshold or ()
    )
    sorted_settings = {
        # A threshold that was named twice would be two equal rows, and count twice in the family of
        # tests.
        "iou_thresholds": tuple(sorted(set(settings["iou_thresholds"]))),
        "score_threshold": tuple(sorted({float(score) for score in scores})),
        "top_k": tuple(sorted(set(settings["top_k"]))),
    }
    return MatchingSettings(**{**settings, **sorted_settings})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class ModelMatches:
    """One model's overlapping pairs, and who is detected under any limits."""

    people: AnnotatedInstances
    predictions: ModelDetections
    pairs: OverlapPairs
    settings: MatchingSettings

    def is_detected(
        self,
        thresholds: Sequence[float],
        *,
        min_score: float | None = None,
        max_detections: int | None = None,
    ) -> npt.NDArray[np.bool_]:
        """Return whether each person is detected at each IoU threshold: ``[m, T]``."""
        pairs, detections = self.pairs, self.predictions.detections
        limits = [n for n in (max_detections, self.settings.max_detections) if n is not None]
        if limits:
            # The limit counts all detections of an image, also those that overlap no one.
            pairs = limit_detections(pairs, detections, min(limits))
        if min_score is not None:
            # At or above, as detectors apply a score threshold themselves.
            pairs = pairs.select(detections.score[pairs.detection] >= min_score)
        iou_thresholds = np.asarray(thresholds, dtype=np.float64)
        # FHIBE's released tool: each person takes the best overlap, and boxes may be used
        # repeatedly.
        if self.settings.matching == "best-overlap":
            return match_best_overlap(pairs).is_truth_detected(iou_thresholds)
        return match(
            pairs, detections, self.people.truths, max_detections=None, thresholds=iou_thresholds
        ).is_truth_detected


def select_metrics(
    task_info: TaskInfo, requested: Sequence[str], settings: MatchingSettings
) -> tuple[str, ...]:
    """List the metrics to measure: those requested, or the defaults and those of set settings."""
    declared_names = [m.name for m in task_info.metrics]
    requested_names = read_metrics(task_info, requested)
    names = set(requested_names or task_info.defaults)
    by_setting = []
    for name, (setting, requirement) in _REQUIRED_SETTINGS.items():
        is_set = bool(getattr(settings, setting))
        if name in names and not is_set:
            raise SpecError(f"the metric {name!r} cannot be measured", expected=requirement)
        if (
            is_set
            and name in declared_names
            # miss_rate also reads score_threshold, so setting it with named metrics adds no other
            # metric.
            and not (setting == "score_threshold" and requested_names)
        ):
            names.add(name)
            by_setting += [] if requested_names else [name]
    _check_matching_rule(sorted(names), settings.matching)
    return (*by_setting, *(name for name in declared_names if name in names - set(by_setting)))


def _check_matching_rule(names: Sequence[str], matching: Matching) -> None:
    """Refuse metrics that this matching cannot give."""
    for name in names:
        if matching == "best-overlap" and name.startswith(_ONE_TO_ONE_METRICS):
            raise SpecError(
                f"the metric {name!r} cannot be measured",
                expected="matching='one-to-one': a false alarm is a detection without a person",
                found=f"matching={matching!r}",
            )


def measured_task_info(task_info: TaskInfo, names: Sequence[str]) -> TaskInfo:
    """Restrict the task's declaration to the measured metrics and their references."""
    metrics = tuple(task_info.metric(name) for name in names)
    return restrict_task_info(replace(task_info, metrics=metrics), names, cites=True)


ScoreColumns = list[tuple[float | None, FloatArray]]
"""Threshold and values ``[m]`` of each column of a metric."""


def _score_columns(model_matches: ModelMatches, metric: str) -> ScoreColumns:
    """Compute a metric's scores of people, a column for each of its thresholds."""
    settings, iou = model_matches.settings, (model_matches.settings.score_iou,)
    scores = settings.score_threshold or (None,)
    if metric in ("recall_at_iou", "recall_at_oks"):
        iou_thresholds = settings.iou_thresholds
        return (
            list(
                zip(
                    iou_thresholds,
                    model_matches.is_detected(iou_thresholds).T.astype(np.float64),
                    strict=True,
                )
            )
            if iou_thresholds
            else []
        )
    if metric == "average_recall_at_k":
        return [
            (float(k), model_matches.is_detected(IOU_THRESHOLDS, max_detections=k).mean(axis=1))
            for k in settings.top_k
        ]
        # Without a score threshold, all detections count.
    if metric in ("recall_at_score", "miss_rate"):
        columns = [(s, model_matches.is_detected(iou, min_score=s)[:, 0]) for s in scores]
        is_miss_rate = metric == "miss_rate"
        return [(s, (is_detected != is_miss_rate).astype(np.float64)) for s, is_detected in columns]
    # The mean over the ten thresholds for one person; a group's mean of it is FACET's mAR.
    return [(None, model_matches.is_detected(IOU_THRESHOLDS).mean(axis=1))]


_PERSON_METRICS = (
    "average_recall",
    *(f"average_recall_{size}" for size in SIZES),
    "recall_at_iou",
    "recall_at_oks",
    "recall_at_score",
    "average_recall_at_k",
    "miss_rate",
)


def score_rows(task: str, model_matches: ModelMatches, names: Sequence[str]) -> list[pl.DataFrame]:
    """Build the table ``scores`` of one model, a frame for each metric and threshold."""
    return [
        person_score_rows(
            task, sized_matches.people, model_matches.predictions.model, name, threshold, values
        )
        for name in names
        if name in _PERSON_METRICS
        for sized_matches in (_restrict_to_metric_size(model_matches, name),)
        for threshold, values in _score_columns(sized_matches, name)
    ]


def _restrict_to_metric_size(model_matches: ModelMatches, metric: str) -> ModelMatches:
    """Restrict people to the size that a metric's name ends with, if it does."""
    # The suffix is the size only in names such as average_recall_small.
    size = metric.rpartition("_")[2]
    return (
        replace(model_matches, people=restrict_to_size(model_matches.people, size))
        if size in SIZES
        else model_matches
    )


def person_score_rows(
    task: str,
    people: AnnotatedInstances,
    model: str,
    metric: str,
    threshold: float | None,
    values: FloatArray,
) -> pl.DataFrame:
    """Build the rows of one metric: null, with the reason, for people who are not scored."""
    return write_rows(
        people.rows, task, metric, values, model=model, label=people.label, threshold=threshold
    )
