"""A model's answers for each unit, the scores that stand beside them, and whose those are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import polars as pl

from isolux.stats.roc import auc
from isolux.tasks._ids import refuse_no_match
from isolux.tasks.classification.vocabulary import Words
from isolux.vocabulary.counts import TIMES, people_at
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.places import places
from isolux.vocabulary.tables import LABEL_PREDICTIONS, check, to_polars

# Looking for a repeated key in the raw table takes longer than the rest of the task; in sorted
# units it is a glance, and only where it finds one is the raw table asked for the place.
_UNKEYED = replace(LABEL_PREDICTIONS, key=())


@dataclass(frozen=True, slots=True)
class Answers:
    """What one or several models answered.

    Parameters
    ----------
    models : tuple of str
        Their names, sorted.
    asked : polars.DataFrame
        ``unit``, ``detected``, ``silent`` (no answer, and no word on whether it was detected): one
        row for every unit that the predictions speak of.
    ranked : polars.DataFrame
        ``unit``, ``label``, ``score``: the distinct answers of each unit, best first.
    tells_detection : bool
        Whether the predictions say who was not detected: by a flag or by an empty answer.
    notes : tuple of str
    """

    models: tuple[str, ...]
    asked: pl.DataFrame
    ranked: pl.DataFrame
    tells_detection: bool
    notes: tuple[str, ...]

    @property
    def several(self) -> bool:
        """Whether any unit has more than one answer."""
        return first_of_unit(self.ranked).height < self.ranked.height


def read_answers(
    predictions: object,
    units: pl.DataFrame,
    *,
    prediction_map: Mapping[str, str] | None,
    words: Words,
    model: str | None,
) -> Answers:
    """Reduce raw labels to classes, and number the units that they were given to."""
    table = check(to_polars(predictions), _UNKEYED, where="predictions")
    models = tuple(sorted(table["model"].unique())) or (model or "model",)
    rows, notes = _numbered(table, units["unit_id"], models)
    times = units[TIMES] if TIMES in units.columns else None
    rows, said = _without_unknown(rows, words, times)
    notes += said
    asked = first_of_unit(rows).select(
        "unit",
        detected=pl.coalesce("detected", pl.col("label").is_not_null()),
        silent=pl.col("detected").is_null() & pl.col("label").is_null(),
    )
    tells = bool(table["detected"].is_not_null().any() or rows["label"].is_null().any())
    ranked = rows.select("unit", "label", "score")
    if prediction_map is not None:
        ranked, said = _to_classes(ranked, prediction_map, times)
        notes += said
    if words.merge or words.same:
        read = pl.col("label").replace(words.merge).replace(words.same)
        ranked = ranked.with_columns(read)
    return Answers(models, asked, _distinct(ranked.drop_nulls("label")), tells, tuple(notes))


def _row_of(rows: pl.DataFrame, times: pl.Series | None) -> pl.Series:
    """Return the place in the dataset of each row's unit, whatever the model."""
    return rows["unit"] if times is None else rows["unit"] % len(times)


def _without_unknown(
    rows: pl.DataFrame, words: Words, times: pl.Series | None
) -> tuple[pl.DataFrame, list[str]]:
    """Empty the answers that mean "not known"; null and NaN are empty already."""
    unknown = rows["label"].is_in(list(words.unknown)).fill_null(value=False)
    if not unknown.any():
        return rows, []
    spelled = ", ".join(repr(w) for w in rows["label"].filter(unknown).unique().sort())
    n = people_at(_row_of(rows.filter(unknown), times), times)
    note = f"{n:,} answers mean unknown ({spelled}) and are read as empty ones."
    empty = pl.when(~unknown).then(pl.col("label"))
    return rows.with_columns(label=empty), [note]


def first_of_unit(ranked: pl.DataFrame) -> pl.DataFrame:
    """Keep the first row of each unit of a frame that is sorted by ``unit``."""
    return ranked.filter(pl.col("unit").ne_missing(pl.col("unit").shift()))


def _distinct(ranked: pl.DataFrame) -> pl.DataFrame:
    """Keep the first of a unit's answers that are alike."""
    if first_of_unit(ranked).height == ranked.height:
        return ranked
    # One whole number for unit and label: several times quicker than a key of two columns.
    code = pl.col("label").cast(pl.Categorical).to_physical().cast(pl.Int64)
    key = pl.col("unit") * (code.max() + 1) + code
    return ranked.filter(key.is_first_distinct())


def _numbered(
    table: pl.DataFrame, instance_ids: pl.Series, models: tuple[str, ...]
) -> tuple[pl.DataFrame, list[str]]:
    row = places(table["instance_id"], instance_ids.cast(pl.String))
    placed = table.with_columns(row=row).filter(pl.col("row") >= 0)
    refuse_no_match(
        "no prediction is for a unit of the dataset",
        table["instance_id"],
        instance_ids,
        n_matched=placed.height,
        where=None,
    )
    number = pl.col("row").cast(pl.Int64)
    if len(models) > 1:
        order = {name: i * len(instance_ids) for i, name in enumerate(models)}
        number += pl.col("model").replace_strict(order, return_dtype=pl.Int64)
    rows = placed.with_columns(unit=number).sort("unit", "rank")
    repeated = pl.struct("unit", "rank") == pl.struct("unit", "rank").shift()
    if rows.select(repeated.any()).item():
        check(table, LABEL_PREDICTIONS, where="predictions")
    strangers = table.height - placed.height
    note = f"{strangers:,} predictions are for units that the dataset has not; they were left out."
    return rows, [note] if strangers else []


def _to_classes(
    ranked: pl.DataFrame, prediction_map: Mapping[str, str], times: pl.Series | None
) -> tuple[pl.DataFrame, list[str]]:
    classes = pl.col("label").replace_strict(
        dict(prediction_map), default=None, return_dtype=pl.String
    )
    mapped = ranked.with_columns(raw="label", label=classes, place=pl.int_range(pl.len()))
    dropped = mapped.filter(pl.col("label").is_null() & pl.col("raw").is_not_null())
    kept = mapped.drop_nulls("label").sort(
        "unit", "score", "place", descending=[False, True, False], nulls_last=True
    )
    only = dropped.select("unit").unique().join(kept, on="unit", how="anti")
    n, left = (people_at(_row_of(rows, times), times) for rows in (dropped, only))
    note = (
        f"{n:,} answers with {dropped['raw'].n_unique():,} labels that the prediction map does not"
        f" name were dropped; {left:,} units had no other answer, which counts as a mistake."
    )
    return kept.select("unit", "label", "score"), [note] if dropped.height else []


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
        lacks = dict.fromkeys(
            ("average_precision", "class_calibration_error"), found.missing["roc_auc"]
        )
        return replace(found, missing=lacks | found.missing)
    return found


def _read(
    units: pl.DataFrame, answers: Answers, positive: str | None, score_of: ScoreOf | None
) -> Confidence:
    _refuse(score_of, positive, several=answers.several)
    lacking = ("roc_auc", "calibration_error")
    none = pl.lit(None, dtype=pl.Float64)
    if not units["score"].is_not_null().any():
        lacks = "a score for each answer; the predictions have none"
        empty = units.with_columns(confidence=none, positive_score=none)
        columns = empty.select("confidence", "positive_score")
        return Confidence(columns, dict.fromkeys(lacking, lacks))
    if positive is None or answers.several or score_of == "answer":
        return _of_answer(units, answers, positive)
    area = _area(units, positive)
    if score_of is None and area < _AGREES:  # where there is no area (NaN), scores are believed
        lacks = (
            f"a known meaning of the score: it does not rise with the answer {positive!r}, so it "
            "seems to be the confidence in whatever was answered; say score_of='answer' or "
            "score_of='positive'"
        )
        columns = _of_answer(units, answers, None).columns.with_columns(confidence=none)
        return Confidence(columns, dict.fromkeys(lacking, lacks))
    return _of_positive(units, positive, area)


def _refuse(score_of: str | None, positive: str | None, *, several: bool) -> None:
    if score_of == "positive" and positive is None:
        raise SpecError("score_of='positive' needs positive, the class that the scores are of")
    if score_of == "positive" and several:
        raise SpecError(
            "score_of='positive' needs one answer for each unit",
            found="several answers, each with its own score",
            hint="leave score_of out",
        )


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


def _of_positive(units: pl.DataFrame, positive: str, area: float) -> Confidence:
    outside = outside_of_shares(units["score"])
    two = _only_two(units, units["prediction"], positive)
    other = (1 - pl.col("score")) if two else pl.lit(None, dtype=pl.Float64)
    sure = pl.when(pl.col("prediction") == positive).then("score").otherwise(other)
    columns = units.select(confidence=sure, positive_score="score")
    alone = f"the confidence in every answer; the scores are of {positive!r} alone"
    missing = {} if two and not outside else {"calibration_error": outside or alone}
    turned = Caution(
        f"The scores fall where the answer is {positive!r} (area under the curve {area:.2f}): are"
        " they the other class's, or distances?"
    )
    notes = (*([turned] if area < _TURNED else []), _reading(repr(positive)))
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
