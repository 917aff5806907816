"""What becomes of a comparison when people who were not detected count as mistakes.

A face that a model never found has no answer. FairFace (section 4.4) counts it as a mistake, and
so does ``classification`` by default; then a difference of accuracy may be one of detection. Read
from the evidence ``classification``: who was detected, and whose answer is right.
"""

from __future__ import annotations

import polars as pl

from isolux.groups.unanswered import missed
from isolux.report.document import Caution, Line
from isolux.statements.numbers import points, with_unit
from isolux.vocabulary.containers import Run

_HEADLINE = "People who were not detected count as mistakes."
_WORTH_SAYING = 0.01
"""Share of people not detected from which it is said before the numbers."""


def undetected_of_audit(run: Run, line: Line | None) -> Caution | None:
    """Say how many people were not detected, where they count as mistakes in accuracy."""
    answers = missed(run.evidence)
    if answers is None or line is None or line.metric != "accuracy":
        return None
    answers = answers.filter(model=line.model)
    share, right, found = _shares(answers)
    if share < _WORTH_SAYING:
        return None
    return Caution(
        _HEADLINE,
        f"They are {with_unit(share)} of everyone and {with_unit(_part(share, right))} of all "
        f"mistakes; of the people who were detected {with_unit(found)} got a right answer.",
    )


def undetected_of_two(run: Run, models: tuple[str, str], line: Line | None) -> Caution | None:
    """Say what of a difference between two models is detection, on the people both detected."""
    answers = missed(run.evidence)
    if answers is None or line is None or line.metric != "accuracy":
        return None
    sides = [answers.filter(model=model) for model in models]
    if any(side.is_empty() for side in sides):
        return None
    first, second = (_shares(side) for side in sides)
    if max(first[0], second[0]) < _WORTH_SAYING:
        return None
    both = (
        sides[0].select("unit_id", "detected", "correct")
        .join(sides[1].select("unit_id", "detected", "correct"), on="unit_id", suffix="_second")
        .filter("detected", "detected_second")
    )  # fmt: skip
    told = (
        f"{models[0]} did not detect {with_unit(first[0])} of the people, {models[1]} "
        f"{with_unit(second[0])}. Accuracy for everyone differs by "
        f"{points(second[1] - first[1])}"
    )
    if both.is_empty():
        return Caution(_HEADLINE, f"{told}.")
    right = [_mean(both[name]) for name in ("correct", "correct_second")]
    return Caution(
        _HEADLINE,
        f"{told}; on the {both.height:,} people whom both detected it is {with_unit(right[0])} "
        f"with {models[0]} and {with_unit(right[1])} with {models[1]}, a difference of "
        f"{points(right[1] - right[0])}.",
    )


def _shares(answers: pl.DataFrame) -> tuple[float, float, float]:
    """Return the shares: not detected, right of everyone, right of the detected."""
    detected = answers.filter("detected")
    return 1 - _mean(answers["detected"]), _mean(answers["correct"]), _mean(detected["correct"])


def _part(missed: float, right: float) -> float:
    """Return the share of all mistakes that are people who were not detected."""
    return missed / (1 - right) if right < 1 else 0.0


def _mean(values: pl.Series) -> float:
    return float(values.cast(pl.Float64).mean() or 0.0)  # type: ignore[arg-type]
