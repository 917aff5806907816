"""From pairs that overlap to one score per person and metric, by the matching asked for.

Every metric is the same question asked of the same pairs: who was found at these overlaps, by
detections of at least this score, of the first so many of their image? Detections below a score
or beyond a number are the last to choose under COCO's rule, so leaving them out beforehand changes
no other match.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Unpack

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.matching import (
    IOU_THRESHOLDS,
    Pairs,
    limit_detections,
    match,
    match_best_overlap,
)
from isolux.stats.statistic import FloatArray
from isolux.tasks._boxes.areas import SIZES, people_within
from isolux.tasks._boxes.settings import BoxSettings, Matching, OtherGroups
from isolux.tasks._boxes.table import Found, People
from isolux.tasks._scores import measured_info, read_metrics
from isolux.tasks._scores import score_rows as write_rows
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import TaskInfo
from isolux.vocabulary.plugin_options import with_defaults

_NEEDS = {
    "found_at_score": ("score_threshold", "score_threshold, a score of the model's own scale"),
    "average_recall_at_k": ("top_k", "top_k, such as top_k=(1, 10, 100)"),
}
_PER_GROUP = ("average_recall_in_group", "average_precision_in_group")
_NEED_ONE_TO_ONE = (
    "average_precision",
    "normalised_average_precision",
    "average_recall_over_classes",
    *_PER_GROUP,
)
"""And whatever begins so: of each overlap, of each size."""


_OVERLAPS, _COUNTS = "overlaps above 0, at most 1", "whole numbers of at least 1"


def _is_overlap(value: float) -> bool:
    return 0 < value <= 1


def _is_count(value: int) -> bool:
    return value >= 1


@dataclass(frozen=True, slots=True)
class Settings:
    """``BoxSettings`` in order: each number once, rising, and every one of them possible."""

    iou_thresholds: tuple[float, ...]
    score_threshold: tuple[float, ...]
    score_iou: float
    max_detections: int | None
    top_k: tuple[int, ...]
    matching: Matching
    common_count: float | None
    other_groups: OtherGroups
    person_label: str | Sequence[str] | None
    model: str | None

    def __post_init__(self) -> None:
        count, limit = self.common_count, self.max_detections
        rules: tuple[tuple[str, Sequence[Any], Callable[[Any], bool], str], ...] = (
            ("iou_thresholds", self.iou_thresholds, _is_overlap, _OVERLAPS),
            ("score_iou", (self.score_iou,), _is_overlap, _OVERLAPS),
            ("score_threshold", self.score_threshold, np.isfinite, "finite numbers"),
            ("top_k", self.top_k, _is_count, _COUNTS),
            ("max_detections", () if limit is None else (limit,), _is_count, _COUNTS),
            (
                "common_count",
                () if count is None else (count,),
                lambda n: np.isfinite(n) and n > 0,
                "a number of people above 0, or none",
            ),
        )
        for name, values, is_possible, expected in rules:
            wrong = [value for value in values if not is_possible(value)]
            if wrong:
                raise SpecError(f"{name} cannot be that", expected=expected, found=repr(wrong[0]))

    @property
    def lowest_iou(self) -> float:
        """The least overlap at which anyone is looked for."""
        return min((*self.iou_thresholds, self.score_iou, IOU_THRESHOLDS[0]))


def settings_of(**given: Unpack[BoxSettings]) -> Settings:
    """Bring a task's settings into order; those that were not given have their defaults."""
    asked = with_defaults(BoxSettings, given)
    at = asked["score_threshold"]
    scores = (at,) if isinstance(at, int | float) else at or ()
    ordered = {
        "iou_thresholds": tuple(sorted(set(asked["iou_thresholds"]))),
        "score_threshold": tuple(sorted({float(score) for score in scores})),
        "top_k": tuple(sorted(set(asked["top_k"]))),
    }
    return Settings(**{**asked, **ordered})  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True)
class Asked:
    """One model's pairs, and who was found under any limits."""

    people: People
    found: Found
    pairs: Pairs
    settings: Settings

    def found_at(
        self,
        thresholds: Sequence[float],
        *,
        lowest_score: float | None = None,
        max_detections: int | None = None,
    ) -> npt.NDArray[np.bool_]:
        """Whether each person was found at each overlap: ``[m, T]``."""
        pairs, detections = self.pairs, self.found.detections
        limits = [n for n in (max_detections, self.settings.max_detections) if n is not None]
        if limits:
            pairs = limit_detections(pairs, detections, min(limits))
        if lowest_score is not None:
            pairs = pairs.where(detections.score[pairs.detection] >= lowest_score)
        at = np.asarray(thresholds, dtype=np.float64)
        if self.settings.matching == "best-overlap":
            return match_best_overlap(pairs).truth_found(at)
        return match(
            pairs, detections, self.people.truths, max_detections=None, thresholds=at
        ).truth_found


def chosen(info: TaskInfo, asked: Sequence[str], settings: Settings) -> tuple[str, ...]:
    """List the metrics to measure: those asked for, or what settings ask for and the defaults."""
    declared = [m.name for m in info.metrics]
    usual: Sequence[str] = info.defaults
    if settings.matching == "per-group":
        usual = [name for name in declared if name in _PER_GROUP]
        if not usual:
            raise SpecError(
                "this task has nothing to measure of a match within each group",
                expected="matching='one-to-one' or 'best-overlap'",
                found="matching='per-group'",
            )
    named = read_metrics(info, asked)
    names = set(named or usual)
    by_setting = []
    for name, (setting, what) in _NEEDS.items():
        given = bool(getattr(settings, setting))
        if name in names and not given:
            raise SpecError(f"the metric {name!r} cannot be measured", expected=what)
        if given and name in declared and not (setting == "score_threshold" and named):
            names.add(name)
            by_setting += [] if named else [name]
    _refuse_by_matching(sorted(names), settings.matching)
    return (*by_setting, *(name for name in declared if name in names - set(by_setting)))


def _refuse_by_matching(names: Sequence[str], matching: Matching) -> None:
    """Refuse metrics that this matching cannot give."""
    for name in names:
        expected = None
        if matching == "best-overlap" and name.startswith(_NEED_ONE_TO_ONE):
            expected = "matching='one-to-one': a false alarm is a detection without a person"
        if matching == "per-group" and name not in _PER_GROUP:
            expected = (
                "matching='one-to-one': matched once for each group, a person has as many scores "
                "as groups; or the metrics " + " and ".join(_PER_GROUP)
            )
        if expected is not None:
            raise SpecError(
                f"the metric {name!r} cannot be measured",
                expected=expected,
                found=f"matching={matching!r}",
            )


def measured(info: TaskInfo, names: Sequence[str]) -> TaskInfo:
    """Declare the metrics that were measured and cite what they rest on, and nothing else."""
    metrics = tuple(info.metric(name) for name in names)
    return measured_info(replace(info, metrics=metrics), names, cites=True)


Columns = list[tuple[float | None, FloatArray]]
"""Threshold and values ``[m]`` of each column of a metric."""


def _columns_of(asked: Asked, metric: str) -> Columns:
    """Find who was found, by the limits of a metric: a column for each of its thresholds."""
    settings, iou = asked.settings, (asked.settings.score_iou,)
    scores = settings.score_threshold or (None,)
    if metric.startswith("recall_at_"):
        at = settings.iou_thresholds
        return list(zip(at, asked.found_at(at).T.astype(np.float64), strict=True)) if at else []
    if metric == "average_recall_at_k":
        return [
            (float(k), asked.found_at(IOU_THRESHOLDS, max_detections=k).mean(axis=1))
            for k in settings.top_k
        ]
    if metric in ("found_at_score", "miss_rate"):
        found = [(s, asked.found_at(iou, lowest_score=s)[:, 0]) for s in scores]
        missed = metric == "miss_rate"
        return [(s, (one != missed).astype(np.float64)) for s, one in found]
    return [(None, asked.found_at(IOU_THRESHOLDS).mean(axis=1))]


_OF_PEOPLE = (
    "average_recall",
    *(f"average_recall_{size}" for size in SIZES),
    "recall_at_iou",
    "recall_at_oks",
    "found_at_score",
    "average_recall_at_k",
    "miss_rate",
)


def score_rows(task: str, asked: Asked, names: Sequence[str]) -> list[pl.DataFrame]:
    """Make the table ``scores`` of one model, a frame for each metric and threshold."""
    return [
        rows_of(task, one.people, asked.found.model, name, threshold, value)
        for name in names
        if name in _OF_PEOPLE
        for one in (_of_size(asked, name),)
        for threshold, value in _columns_of(one, name)
    ]


def _of_size(asked: Asked, metric: str) -> Asked:
    """Match within the range of areas that a metric's name ends with, if it does."""
    size = metric.rpartition("_")[2]
    return replace(asked, people=people_within(asked.people, size)) if size in SIZES else asked


def rows_of(
    task: str,
    people: People,
    model: str,
    metric: str,
    threshold: float | None,
    value: FloatArray,
) -> pl.DataFrame:
    """Make the rows of one metric: null, with the reason, for people who are not scored."""
    return write_rows(
        people.rows, task, metric, value, model=model, label=people.label, threshold=threshold
    )
