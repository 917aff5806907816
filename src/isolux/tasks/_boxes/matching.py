"""From pairs that overlap to one score per person and metric, by the matching asked for.

Every metric is the same question asked of the same pairs: who was found at these overlaps, by
detections of at least this score, of the first so many of their image? Detections below a score
or beyond a number are the last to choose under COCO's rule, so leaving them out beforehand changes
no other match.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Unpack, get_args

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
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import TaskInfo
from isolux.vocabulary.plugin_options import with_defaults
from isolux.vocabulary.tables import SCORES

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
        """Refuse what is not an overlap, no score, no number of detections."""
        for name, values in (
            ("iou_thresholds", self.iou_thresholds),
            ("score_iou", (self.score_iou,)),
        ):
            wrong = [v for v in values if not 0 < v <= 1]
            _refuse(name, wrong, "overlaps above 0, at most 1")
        wrong = [v for v in self.score_threshold if not np.isfinite(v)]
        _refuse("score_threshold", wrong, "finite numbers")
        limit = () if self.max_detections is None else (self.max_detections,)
        for name, counts in (("top_k", self.top_k), ("max_detections", limit)):
            _refuse(name, [k for k in counts if k < 1], "whole numbers of at least 1")
        for name, given, known in (
            ("matching", self.matching, get_args(Matching)),
            ("other_groups", self.other_groups, get_args(OtherGroups)),
        ):
            _refuse(name, [] if given in known else [given], " or ".join(known))
        n = self.common_count
        wrong = [] if n is None or (np.isfinite(n) and n > 0) else [n]
        _refuse("common_count", wrong, "a number of people above 0, or none")

    @property
    def lowest_iou(self) -> float:
        """The lowest overlap that any metric asks for."""
        return min((*self.iou_thresholds, self.score_iou, IOU_THRESHOLDS[0]))


def settings_of(**given: Unpack[BoxSettings]) -> Settings:
    """Bring a task's settings into order; those that were not given have their defaults."""
    asked = with_defaults(BoxSettings, given)
    at = asked["score_threshold"]
    scores = (at,) if isinstance(at, int | float) else at or ()
    return Settings(
        iou_thresholds=tuple(sorted(set(asked["iou_thresholds"]))),
        score_threshold=tuple(sorted({float(score) for score in scores})),
        score_iou=asked["score_iou"],
        max_detections=asked["max_detections"],
        top_k=tuple(sorted(set(asked["top_k"]))),
        matching=asked["matching"],
        common_count=asked["common_count"],
        other_groups=asked["other_groups"],
        person_label=asked["person_label"],
        model=asked["model"],
    )


def _refuse(name: str, wrong: Sequence[object], expected: str) -> None:
    if wrong:
        raise SpecError(f"{name} cannot be that", expected=expected, found=repr(wrong[0]))


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
    usual = _usual(info, declared, settings.matching)
    names = {info.metric(name).name for name in asked} or set(usual)
    by_setting = []
    for name, (setting, what) in _NEEDS.items():
        given = bool(getattr(settings, setting))
        if name in names and not given:
            raise SpecError(f"the metric {name!r} cannot be measured", expected=what)
        if given and name in declared and not (setting == "score_threshold" and asked):
            names.add(name)
            by_setting += [] if asked else [name]
    _refuse_by_matching(sorted(names), settings.matching)
    return (*by_setting, *(name for name in declared if name in names - set(by_setting)))


def _usual(info: TaskInfo, declared: Sequence[str], matching: Matching) -> Sequence[str]:
    """List what is measured where nothing is named."""
    if matching != "per-group":
        return info.defaults
    usual = [name for name in declared if name in _PER_GROUP]
    if not usual:
        raise SpecError(
            "this task has nothing to measure of a match within each group",
            expected="matching='one-to-one' or 'best-overlap'",
            found="matching='per-group'",
        )
    return usual


def _refuse_by_matching(names: Sequence[str], matching: Matching) -> None:
    """Refuse metrics that this matching cannot give."""
    for name in names:
        if matching == "best-overlap" and name.startswith(_NEED_ONE_TO_ONE):
            raise SpecError(
                f"the metric {name!r} cannot be measured",
                expected="matching='one-to-one': a false alarm is a detection without a person",
                found="matching='best-overlap'",
            )
        if matching == "per-group" and name not in _PER_GROUP:
            raise SpecError(
                f"the metric {name!r} cannot be measured",
                expected="matching='one-to-one': matched once for each group, a person has as many "
                "scores as groups; or the metrics " + " and ".join(_PER_GROUP),
                found="matching='per-group'",
            )


def measured(info: TaskInfo, names: Sequence[str]) -> TaskInfo:
    """Declare the metrics that were measured and cite what they rest on, and nothing else."""
    metrics = tuple(info.metric(name) for name in names)
    cited = tuple(dict.fromkeys(m.reference for m in metrics if m.reference))
    return replace(info, metrics=metrics, defaults=tuple(names), references=cited)


Columns = list[tuple[float | None, FloatArray]]
"""Threshold and values ``[m]`` of each column of a metric."""


def _average_recall(asked: Asked) -> Columns:
    return [(None, asked.found_at(IOU_THRESHOLDS).mean(axis=1))]


def _recall_at_iou(asked: Asked) -> Columns:
    at = asked.settings.iou_thresholds
    return list(zip(at, asked.found_at(at).T.astype(np.float64), strict=True)) if at else []


def _found_at_score(asked: Asked) -> Columns:
    iou = (asked.settings.score_iou,)
    return [
        (s, asked.found_at(iou, lowest_score=s)[:, 0].astype(np.float64))
        for s in asked.settings.score_threshold
    ]


def _miss_rate(asked: Asked) -> Columns:
    iou = (asked.settings.score_iou,)
    return [
        (s, (~asked.found_at(iou, lowest_score=s)[:, 0]).astype(np.float64))
        for s in asked.settings.score_threshold or (None,)
    ]


def _average_recall_at_k(asked: Asked) -> Columns:
    return [
        (float(k), asked.found_at(IOU_THRESHOLDS, max_detections=k).mean(axis=1))
        for k in asked.settings.top_k
    ]


_MAKERS: dict[str, Callable[[Asked], Columns]] = {
    "average_recall": _average_recall,
    **{f"average_recall_{size}": _average_recall for size in SIZES},
    "recall_at_iou": _recall_at_iou,
    "recall_at_oks": _recall_at_iou,
    "found_at_score": _found_at_score,
    "average_recall_at_k": _average_recall_at_k,
    "miss_rate": _miss_rate,
}


def score_rows(task: str, asked: Asked, names: Sequence[str]) -> list[pl.DataFrame]:
    """Make the table ``scores`` of one model, a frame for each metric and threshold."""
    return [
        rows_of(task, one.people, asked.found.model, name, threshold, value)
        for name in names
        if name in _MAKERS
        for one in (_of_size(asked, name),)
        for threshold, value in _MAKERS[name](one)
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
    return SCORES.conform(
        people.rows.select(
            pl.lit(model).alias("model"),
            pl.lit(task).alias("task"),
            pl.lit(metric).alias("metric"),
            people.label,
            pl.lit(threshold, dtype=pl.Float64).alias("threshold"),
            pl.lit("instance").alias("unit_kind"),
            "unit_id",
            "cluster_id",
            pl.when(pl.col("reason").is_null()).then(pl.Series("value", value)).alias("value"),
            "reason",
        )
    )
