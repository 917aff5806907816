"""Scores of pairs: a distance read as a similarity, a threshold in another unit, missing failures.

A threshold of 0.35 accepts nearly every pair whose cosine is written in percent. A file that lists
successful comparisons alone has a failure rate of 0 for everyone, whoever was not found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.info import PlausibilityInfo
from isolux.core.notes import Caution
from isolux.plausibility._audit_inputs import AuditInputs
from isolux.stats.statistic import FloatArray

_DISTANCE_NAME = re.compile(r"(?i)(?<![a-z])dist(ance)?s?(?![a-z])")
_MIN_PAIRS = 30
# Genuine pairs and impostors, each: with more the task itself compares them, whatever their name.
_MIN_GAIN = 0.2
# Mean of both rates of right decisions. No threshold that anyone chose on data like these is so
# much worse than itself times 100.
_SCALES = (100.0, 0.01)
_MAX_PAIRS = 1_000_000  # that are read; of more, those of every k-th unit

INFO = PlausibilityInfo(
    title="Scores and thresholds of pairs",
    summary="The mean score of one person's pairs and of two people's; decisions at the threshold, "
    "at 100 times and a hundredth of it; the number of failed comparisons.",
    rule="Warns of a column that is named a distance and read as a similarity, where there are "
    "fewer than 30 pairs of either kind and one person's are not higher; of a threshold that is "
    "worse by 0.2 in balanced accuracy than 100 times or a hundredth of it, from 30 pairs of each "
    "kind on; of a failure rate that was asked for where no comparison failed.",
    tasks=("face_verification", "classification"),
)


def check(inputs: AuditInputs) -> list[Caution]:
    """Caution on what pair scores cannot mean."""
    cautions: list[Caution] = []
    is_distance = inputs.options.get("lower_score_means") in ("same", "positive")
    threshold = inputs.options.get("threshold")
    of_people = inputs.task == "classification"
    for model, scores, is_genuine in (_read_people if of_people else _read_pairs)(inputs):
        genuine, impostors = scores[is_genuine], scores[~is_genuine]
        if not is_distance and not of_people:
            cautions += _check_name(model, genuine, impostors)
        if isinstance(threshold, float | int):
            sign = -1.0 if is_distance else 1.0
            subject = (
                f"people by {model!r} (both classes"
                if of_people
                else (f"pairs by {model!r} (one person's and two people's")
            )
            cautions += _check_threshold(subject, genuine, impostors, sign, float(threshold))
    requested = {*inputs.options.get("metric", ()), *inputs.options.get("metrics", ())}
    failures = inputs.scores.units.filter(pl.col("metric") == "failure_rate")["value"]
    if "failure_rate" in requested and len(failures) and failures.max() == 0.0:
        cautions.append(
            Caution(
                "No comparison failed, so the failure rate is 0 for everyone. Does the file list"
                " failed comparisons? They are rows with an empty score."
            )
        )
    return cautions


def _read_pairs(inputs: AuditInputs) -> Iterator[tuple[str, FloatArray, npt.NDArray[np.bool_]]]:
    """Read each model's similarities, and whether they are of one person: arrays [pairs]."""
    evidence = inputs.scores.evidence.get("pairs")
    if evidence is None or "similarity" not in evidence.columns:
        return
    for (model,), units in evidence.group_by(["model"], maintain_order=True):
        n_pairs = int(units["similarity"].list.len().sum())
        pairs = units.gather_every(-(-n_pairs // _MAX_PAIRS) or 1).select("similarity", "genuine")
        known_rows = pairs.explode("similarity", "genuine").drop_nulls()
        yield (
            str(model),
            known_rows["similarity"].cast(pl.Float64).to_numpy(),
            known_rows["genuine"].cast(pl.Boolean).to_numpy(),
        )


def _read_people(inputs: AuditInputs) -> Iterator[tuple[str, FloatArray, npt.NDArray[np.bool_]]]:
    """Read each model's scores of one class, and whether it is true: arrays [people]."""
    evidence = inputs.scores.evidence.get("classification")
    positive = inputs.options.get("positive")
    if evidence is None or positive is None:
        return
    scored_people = evidence.filter(pl.col("truth").list.len() > 0).drop_nulls("positive_score")
    for (model,), people in scored_people.group_by(["model"], maintain_order=True):
        is_positive = people["truth"].list.contains(str(positive))
        yield (
            str(model),
            people["positive_score"].cast(pl.Float64).to_numpy(),
            is_positive.to_numpy(),
        )


def _check_name(model: str, genuine: FloatArray, impostors: FloatArray) -> list[Caution]:
    """Caution where a column named distance is read as similarity, and no pairs contradict it."""
    n = min(len(genuine), len(impostors))
    if n >= _MIN_PAIRS or not _DISTANCE_NAME.search(model):
        return []
    if n and genuine.mean() > impostors.mean():
        return []
    return [
        Caution(
            f"{model!r} is named a distance, and a larger one is read as more alike."
            " --lower-score-means same (lower_score_means='same') reads a smaller one so."
        )
    ]


def _check_threshold(
    subject: str, genuine: FloatArray, impostors: FloatArray, sign: float, threshold: float
) -> list[Caution]:
    """Caution where 100 times the threshold, or a hundredth of it, decides far better."""
    if min(len(genuine), len(impostors)) < _MIN_PAIRS or threshold == 0.0:
        return []
    scores = np.concatenate([genuine, impostors])
    if not scores.min() < sign * threshold <= scores.max():
        return []  # the task says that all or none are accepted

    def measure_accuracy(factor: float) -> float:
        cut = sign * threshold * factor
        return float(((genuine >= cut).mean() + (impostors < cut).mean()) / 2)

    best_factor = max(_SCALES, key=measure_accuracy)
    share, best_share = measure_accuracy(1.0), measure_accuracy(best_factor)
    if best_share < share + _MIN_GAIN:
        return []
    low, high = sorted(sign * np.quantile(scores, (0.01, 0.99)))
    return [
        Caution(
            f"The threshold of {threshold:g} is right about {100 * share:.0f} % of {subject}"
            f" weighing the same), and"
            f" {threshold * best_factor:g} about {100 * best_share:.0f} %: scores run from"
            f" {low:.3g} to {high:.3g}. Is the threshold on their scale?"
        )
    ]
