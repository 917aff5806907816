"""Whose score is it? A prediction's score read as confidence in the answer, or in one class.

A file with one score a unit may mean two things by it: how sure the model is of what it answered
(DeepFace: "Female, .98"), or how likely it holds one named class ("Male: .02"). The two agree
only where the answer is that class, so what was not said is checked before it is believed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import polars as pl

from isolux.stats.roc import auc
from isolux.tasks.classification.answers import Answers
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution

__all__ = ["Confidence", "ScoreOf", "outside_of_shares", "read_confidence"]

ScoreOf = Literal["answer", "positive"]

_AGREES = 0.9
"""Least area at which a score is believed to be that of the positive class.

Scores that decide the answer by one threshold separate the answers perfectly (area 1); thresholds
that differ by group stay above .9. Confidences in the answer gave .59 (DeepFace) and .69
(FaceLLM).
"""
_TURNED = 0.4  # an area below this is no weak score but one that runs the other way
_ROUNDING = 1e-6  # a softmax in single precision may pass 1 by this much


@dataclass(frozen=True, slots=True)
class Confidence:
    """Scores as the metrics need them.

    Parameters
    ----------
    columns : polars.DataFrame
        In the order of the units: ``confidence`` in the answer, ``positive_score``.
    missing : dict of str to str
        Metric that cannot be computed to what it lacks.
    notes : tuple of str
    """

    columns: pl.DataFrame
    missing: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_confidence(
    units: pl.DataFrame, answers: Answers, positive: str | None, score_of: ScoreOf | None
) -> Confidence:
    """Derive confidence and the positive class's score, or say why they cannot be had."""
    found = _read(units, answers, positive, score_of)
    if "roc_auc" in found.missing:
        lacks = dict.fromkeys(("average_precision", "class_calibration_error"),
                              found.missing["roc_auc"])  # fmt: skip
        return replace(found, missing=lacks | found.missing)
    return found


def _read(
    units: pl.DataFrame, answers: Answers, positive: str | None, score_of: ScoreOf | None
) -> Confidence:
    _refuse(score_of, positive, several=answers.several)
    if not units["score"].is_not_null().any():
        lacks = "a score for each answer; the predictions have none"
        empty = pl.repeat(None, units.height, dtype=pl.Float64, eager=True)
        columns = pl.DataFrame({"confidence": empty, "positive_score": empty})
        return Confidence(columns, dict.fromkeys(("roc_auc", "calibration_error"), lacks))
    if positive is None or answers.several:
        return _of_answer(units, answers, positive)
    if score_of is None and not _agrees(units, positive):
        lacks = (
            f"a known meaning of the score: it does not rise with the answer {positive!r}, so it "
            "seems to be the confidence in whatever was answered; say score_of='answer' or "
            "score_of='positive'"
        )
        columns = _of_answer(units, answers, None).columns
        columns = columns.with_columns(confidence=pl.lit(None, dtype=pl.Float64))
        return Confidence(columns, dict.fromkeys(("roc_auc", "calibration_error"), lacks))
    if score_of == "answer":
        return _of_answer(units, answers, positive)
    return _of_positive(units, positive)


def _refuse(score_of: str | None, positive: str | None, *, several: bool) -> None:
    if score_of not in (None, "answer", "positive"):
        raise SpecError(
            "score_of is not known", expected="'answer' or 'positive'", found=repr(score_of)
        )
    if score_of == "positive" and positive is None:
        raise SpecError("score_of='positive' needs positive, the class that the scores are of")
    if score_of == "positive" and several:
        raise SpecError(
            "score_of='positive' needs one answer for each unit",
            found="several answers, each with its own score",
            hint="leave score_of out",
        )


def _agrees(units: pl.DataFrame, positive: str) -> bool:
    area = _area(units, positive)
    return bool(np.isnan(area) or area >= _AGREES)


def _area(units: pl.DataFrame, positive: str) -> float:
    """Tell how well scores separate the positive answers from the others: the area, 0 to 1."""
    known = units.drop_nulls(["score", "prediction"])
    is_positive = (known["prediction"] == positive).to_numpy()
    return float(auc(known["score"].to_numpy(), is_positive, np.ones(known.height)))


def _of_answer(units: pl.DataFrame, answers: Answers, positive: str | None) -> Confidence:
    columns = units.select(confidence="score", positive_score=pl.lit(None, dtype=pl.Float64))
    outside = outside_of_shares(answers.ranked["score"])
    missing = {"calibration_error": outside} if outside else {}
    if positive is None:
        return Confidence(columns, missing)
    listed = answers.ranked.filter(pl.col("label") == positive)
    given = units.select("unit", "prediction", "score").join(
        listed.select("unit", listed="score"), on="unit", how="left", maintain_order="left"
    )
    scored = pl.col("score").is_not_null()
    column: pl.Expr = pl.when(scored).then(pl.col("listed"))
    if _only_two(units, answers.ranked["label"], positive):
        other = pl.when(pl.col("prediction") != positive).then(1 - pl.col("score"))
        complemented = given.select((scored & pl.col("listed").is_null()).any()).item()
        column = pl.coalesce(column, other)
        if complemented and outside:
            missing["roc_auc"] = outside
    told = given.select("score", positive_score=column)
    silent = told.filter(scored & pl.col("positive_score").is_null()).height
    if silent:
        missing["roc_auc"] = (
            f"the score of {positive!r} for every unit; {silent:,} of "
            f"{told['score'].count():,} have only those of other classes"
        )
    columns = columns.with_columns(told["positive_score"])
    return Confidence(columns, missing, () if answers.several else (_reading("the answer"),))


def _of_positive(units: pl.DataFrame, positive: str) -> Confidence:
    outside = outside_of_shares(units["score"])
    two = _only_two(units, units["prediction"], positive)
    other = (1 - pl.col("score")) if two else pl.lit(None, dtype=pl.Float64)
    sure = pl.when(pl.col("prediction") == positive).then("score").otherwise(other)
    columns = units.select(confidence=sure, positive_score="score")
    missing = {}
    if outside or not two:
        missing["calibration_error"] = outside or (
            f"the confidence in every answer; the scores are of {positive!r} alone"
        )
    notes: tuple[str, ...] = (_reading(repr(positive)),)
    area = _area(units, positive)
    if area < _TURNED:
        notes = (
            Caution(
                f"The scores fall where the answer is {positive!r} (area under the curve"
                f" {area:.2f}): are they the other class's, or distances?"
            ),
            *notes,
        )
    return Confidence(columns, missing, notes)


def _reading(whose: str) -> str:
    return f"Scores are read as the model's confidence in {whose}."


def _only_two(units: pl.DataFrame, labels: pl.Series, positive: str) -> bool:
    classes = {positive, *units["truth"].explode().unique(), *labels.unique()}
    return len(classes - {None}) == 2


def outside_of_shares(scores: pl.Series) -> str | None:
    """Say that scores are no shares from 0 to 1, and what they are; None where they are."""
    known = scores.drop_nulls().to_numpy()
    low, high = known.min(), known.max()
    if low >= -_ROUNDING and high <= 1 + _ROUNDING:
        return None
    return f"confidences from 0 to 1; the scores run from {low:g} to {high:g}"
