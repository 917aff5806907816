"""A model's predicted labels for each unit, their scores, and what the scores measure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import polars as pl

from isolux.core.counts import TIMES, count_people_at_rows
from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux.core.tables import LABEL_PREDICTIONS, check, to_polars
from isolux.core.unit_index import lookup_positions
from isolux.stats.roc import weighted_roc_auc
from isolux.tasks._ids import refuse_no_match
from isolux.tasks.classification.label_matching import LabelMatching

# Looking for a duplicate key in the raw table takes longer than the rest of the task; in sorted
# units it is quick, and only where there is one is the raw table checked, to name the row.
_UNKEYED = replace(LABEL_PREDICTIONS, key=())


@dataclass(frozen=True, slots=True)
class ClassPredictions:
    """The predictions of one or several models.

    Parameters
    ----------
    models : tuple of str
        Their names, sorted.
    detection_flags : polars.DataFrame
        ``unit``, ``detected``, ``silent`` (no label, and not stated whether it was detected): one
        row for every unit with a prediction.
    ranked : polars.DataFrame
        ``unit``, ``label``, ``score``: the distinct labels of each unit, best first.
    has_detection : bool
        Whether the predictions show who was not detected: by a flag or by an empty label.
    notes : tuple of str
    """

    models: tuple[str, ...]
    detection_flags: pl.DataFrame
    ranked: pl.DataFrame
    has_detection: bool
    notes: tuple[str, ...]

    @property
    def has_several(self) -> bool:
        """Whether any unit has more than one label."""
        return keep_first_of_unit(self.ranked).height < self.ranked.height


def read_predictions(
    predictions: object,
    units: pl.DataFrame,
    *,
    prediction_map: Mapping[str, str] | None,
    label_matching: LabelMatching,
    model: str | None,
) -> ClassPredictions:
    """Read predictions: labels become classes, and units get numbers."""
    table = check(to_polars(predictions), _UNKEYED, source="predictions")
    # Sorted, so that tables and reports do not depend on the order of the file.
    models = tuple(sorted(table["model"].unique())) or (model or "model",)
    rows, notes = _number_units(table, units["unit_id"], models)
    multiplicity = units[TIMES] if TIMES in units.columns else None
    rows, extra_notes = _empty_unknown_answers(rows, label_matching, multiplicity)
    notes += extra_notes
    detection_flags = keep_first_of_unit(rows).select(
        "unit",
        # Without a statement about detection, a person with a label was detected.
        detected=pl.coalesce("detected", pl.col("label").is_not_null()),
        silent=pl.col("detected").is_null() & pl.col("label").is_null(),
    )
    has_detection = bool(table["detected"].is_not_null().any() or rows["label"].is_null().any())
    ranked = rows.select("unit", "label", "score")
    if prediction_map is not None:
        ranked, extra_notes = _map_labels(ranked, prediction_map, multiplicity)
        notes += extra_notes
    if label_matching.merge or label_matching.canonical_spellings:
        merged_labels = (
            pl.col("label")
            # Merged first: the canonical spelling of a merged class is that of its new name.
            .replace(label_matching.merge)
            .replace(label_matching.canonical_spellings)
        )
        ranked = ranked.with_columns(merged_labels)
    ranked = _keep_distinct_labels(ranked.drop_nulls("label"))
    notes += _caution_on_tied_answers(ranked, multiplicity)
    return ClassPredictions(models, detection_flags, ranked, has_detection, tuple(notes))


def _caution_on_tied_answers(ranked: pl.DataFrame, multiplicity: pl.Series | None) -> list[Caution]:
    """Caution on units of which two labels have the highest score."""
    unit, score = pl.col("unit"), pl.col("score")
    is_second = (unit == unit.shift(1)) & unit.ne_missing(unit.shift(2))
    tied = ranked.filter(is_second & (score == score.shift(1)))
    if tied.is_empty():
        return []
    n_tied, n_answered = (
        count_people_at_rows(_dataset_row(rows, multiplicity), multiplicity)
        for rows in (tied, keep_first_of_unit(ranked))
    )
    return [
        Caution(
            f"{n_tied:,} of {n_answered:,} units have several labels of one highest score. The"
            " first by rank is their answer; without ranks the first by its name, so that groups"
            " may differ by the names of classes alone. Write scores with more digits."
        )
    ]


def _dataset_row(rows: pl.DataFrame, multiplicity: pl.Series | None) -> pl.Series:
    """Return the dataset's row of each prediction's unit, for any model."""
    # Units are numbered through all models, len(multiplicity) each.
    return rows["unit"] if multiplicity is None else rows["unit"] % len(multiplicity)


def _empty_unknown_answers(
    rows: pl.DataFrame, label_matching: LabelMatching, multiplicity: pl.Series | None
) -> tuple[pl.DataFrame, list[str]]:
    """Set labels that mean "not known" to null; null and NaN are empty already."""
    # "unknown" as a class would be a wrong answer of a detected person; it means no answer.
    is_unknown = rows["label"].is_in(list(label_matching.unknown_spellings)).fill_null(value=False)
    if not is_unknown.any():
        return rows, []
    spelled = ", ".join(repr(w) for w in rows["label"].filter(is_unknown).unique().sort())
    n_people = count_people_at_rows(
        _dataset_row(rows.filter(is_unknown), multiplicity), multiplicity
    )
    note = f"{n_people:,} answers mean unknown ({spelled}) and are read as empty ones."
    label_expr = pl.when(~is_unknown).then(pl.col("label"))
    return rows.with_columns(label=label_expr), [note]


def keep_first_of_unit(ranked: pl.DataFrame) -> pl.DataFrame:
    """Keep the first row of each unit of a frame that is sorted by ``unit``."""
    return ranked.filter(pl.col("unit").ne_missing(pl.col("unit").shift()))


def _keep_distinct_labels(ranked: pl.DataFrame) -> pl.DataFrame:
    """Keep the first of each unit's equal labels."""
    if keep_first_of_unit(ranked).height == ranked.height:
        return ranked
    # One integer for unit and label: several times quicker than a key of two columns.
    code = pl.col("label").cast(pl.Categorical).to_physical().cast(pl.Int64)
    key = pl.col("unit") * (code.max() + 1) + code
    return ranked.filter(key.is_first_distinct())


def _number_units(
    table: pl.DataFrame, instance_ids: pl.Series, models: tuple[str, ...]
) -> tuple[pl.DataFrame, list[str]]:
    """Assign numbers to the units of predictions, by model, and sort by unit and rank."""
    row = lookup_positions(table["instance_id"], instance_ids.cast(pl.String))
    matched = table.with_columns(row=row).filter(pl.col("row") >= 0)
    refuse_no_match(
        "no prediction is for a unit of the dataset",
        table["instance_id"],
        instance_ids,
        n_matched=matched.height,
        source=None,
    )
    unit_number = pl.col("row").cast(pl.Int64)
    if len(models) > 1:
        offset_by_model = {name: i * len(instance_ids) for i, name in enumerate(models)}
        unit_number += pl.col("model").replace_strict(offset_by_model, return_dtype=pl.Int64)
    rows = matched.with_columns(unit=unit_number).sort("unit", "rank")
    # Two labels of one rank: which is the prediction would depend on the order of rows.
    is_repeated = pl.struct("unit", "rank") == pl.struct("unit", "rank").shift()
    if rows.select(is_repeated.any()).item():
        check(table, LABEL_PREDICTIONS, source="predictions")
    n_unmatched = table.height - matched.height
    note = (
        f"{n_unmatched:,} predictions are for units that the dataset has not; they were left out."
    )
    return rows, [note] if n_unmatched else []


def _map_labels(
    ranked: pl.DataFrame, prediction_map: Mapping[str, str], multiplicity: pl.Series | None
) -> tuple[pl.DataFrame, list[str]]:
    """Map the model's labels to classes; a class has the highest score of its labels."""
    classes = pl.col("label").replace_strict(
        dict(prediction_map), default=None, return_dtype=pl.String
    )
    mapped_rows = ranked.with_columns(raw="label", label=classes, place=pl.int_range(pl.len()))
    dropped_rows = mapped_rows.filter(pl.col("label").is_null(), pl.col("raw").is_not_null())
    # FACET, appendix A.5.3: a class has the highest score over its labels; ties keep the file's
    # order.
    kept_rows = mapped_rows.drop_nulls("label").sort(
        "unit", "score", "place", descending=[False, True, False], nulls_last=True
    )
    unmapped_units = dropped_rows.select("unit").unique().join(kept_rows, on="unit", how="anti")
    n_dropped, n_without_answer = (
        count_people_at_rows(_dataset_row(rows, multiplicity), multiplicity)
        for rows in (dropped_rows, unmapped_units)
    )
    note = (
        f"{n_dropped:,} answers with {dropped_rows['raw'].n_unique():,} labels that the prediction"
        f" map does not name were dropped; {n_without_answer:,} units had no other answer, which"
        " counts as a mistake."
    )
    return kept_rows.select("unit", "label", "score"), [note] if dropped_rows.height else []


ScoreOf = Literal["answer", "positive"]
_MIN_POSITIVE_AUC = 0.9
"""Lowest area under the curve at which a score is taken as that of the positive class.

Scores that decide the label by one threshold separate the labels perfectly (area 1); thresholds
that differ by group stay above .9. Confidences in the label gave .59 (DeepFace) and .69
(FaceLLM).
"""
# An area below this is not a weak score but a reversed one.
_MAX_REVERSED_AUC = 0.4
# A softmax in single precision may exceed 1 by this much.
_PROBABILITY_TOLERANCE = 1e-6


@dataclass(frozen=True, slots=True)
class Confidence:
    """Confidence and positive scores, as the metrics need them.

    Parameters
    ----------
    columns : polars.DataFrame
        In the order of the units: ``confidence`` in the predicted label, ``positive_score``.
    missing : dict of str to str
        Metric that cannot be computed, to what it needs.
    notes : tuple of str
    """

    columns: pl.DataFrame
    missing: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_confidence(
    units: pl.DataFrame, answers: ClassPredictions, positive: str | None, score_of: ScoreOf | None
) -> Confidence:
    """Derive confidence and the positive class's score, or the reason why there are none."""
    confidence = _derive_confidence(units, answers, positive, score_of)
    if "roc_auc" in confidence.missing:
        missing_scores = dict.fromkeys(
            ("average_precision", "class_calibration_error"), confidence.missing["roc_auc"]
        )
        return replace(confidence, missing=missing_scores | confidence.missing)
    return confidence


def _derive_confidence(
    units: pl.DataFrame, answers: ClassPredictions, positive: str | None, score_of: ScoreOf | None
) -> Confidence:
    """Derive confidence and positive scores by what the scores measure."""
    _check_score_of(score_of, positive, has_several=answers.has_several)
    metric_names = ("roc_auc", "calibration_error")
    null_score = pl.lit(None, dtype=pl.Float64)
    if not units["score"].is_not_null().any():
        requirement = "a score for each answer; the predictions have none"
        null_rows = units.with_columns(confidence=null_score, positive_score=null_score)
        columns = null_rows.select("confidence", "positive_score")
        return Confidence(columns, dict.fromkeys(metric_names, requirement))
    # Ranked lists have a score for each label, so a score is that of its label.
    if positive is None or answers.has_several or score_of == "answer":
        return _confidence_in_answer(units, answers, positive)
    area = _score_auc(units, positive)
    if (
        score_of is None and area < _MIN_POSITIVE_AUC
    ):  # where there is no area (NaN), scores are believed
        requirement = (
            f"a known meaning of the score: it does not rise with the answer {positive!r}, so it "
            "seems to be the confidence in whatever was answered; say score_of='answer' or "
            "score_of='positive'"
        )
        columns = _confidence_in_answer(units, answers, None).columns.with_columns(
            confidence=null_score
        )
        return Confidence(columns, dict.fromkeys(metric_names, requirement))
    return _confidence_in_positive(units, positive, area)


def _check_score_of(score_of: str | None, positive: str | None, *, has_several: bool) -> None:
    """Refuse ``score_of="positive"`` without a positive class, or with several labels."""
    if score_of == "positive" and positive is None:
        raise SpecError("score_of='positive' needs positive, the class that the scores are of")
    if score_of == "positive" and has_several:
        raise SpecError(
            "score_of='positive' needs one answer for each unit",
            found="several answers, each with its own score",
            hint="leave score_of out",
        )


def _score_auc(units: pl.DataFrame, positive: str) -> float:
    """Compute how well scores separate positive labels from others: the area under the curve."""
    valid_rows = units.drop_nulls(["score", "prediction"])
    is_positive = (valid_rows["prediction"] == positive).to_numpy()
    return float(
        weighted_roc_auc(valid_rows["score"].to_numpy(), is_positive, np.ones(valid_rows.height))
    )


def _confidence_in_answer(
    units: pl.DataFrame, answers: ClassPredictions, positive: str | None
) -> Confidence:
    """Take scores as confidence in the label; derive those of the positive class."""
    columns = units.select(confidence="score", positive_score=pl.lit(None, dtype=pl.Float64))
    range_problem = describe_out_of_range(answers.ranked["score"])
    missing = {"calibration_error": range_problem} if range_problem else {}
    if positive is None:
        return Confidence(columns, missing)
    positive_rows = answers.ranked.filter(label=positive)
    answer_rows = units.select("unit", "prediction", "score").join(
        positive_rows.select("unit", listed="score"), on="unit", how="left", maintain_order="left"
    )
    has_score = pl.col("score").is_not_null()
    score_expr: pl.Expr = pl.when(has_score).then(pl.col("listed"))
    # Of two classes, the score of one is one minus that of the other; of more, it is unknown.
    if _has_two_classes(units, answers.ranked["label"], positive):
        complement = pl.when(pl.col("prediction") != positive).then(1 - pl.col("score"))
        uses_complement = answer_rows.select((has_score & pl.col("listed").is_null()).any()).item()
        score_expr = pl.coalesce(score_expr, complement)
        # One minus a logit is no score of the other class.
        if uses_complement and range_problem:
            missing["roc_auc"] = range_problem
    score_columns = answer_rows.select("score", positive_score=score_expr)
    n_missing = score_columns.filter(has_score & pl.col("positive_score").is_null()).height
    # A ranking of only those with a listed score would be of a selected part of the people.
    if n_missing:
        missing["roc_auc"] = (
            f"the score of {positive!r} for every unit; {n_missing:,} of "
            f"{score_columns['score'].count():,} have only those of other classes"
        )
    columns = columns.with_columns(score_columns["positive_score"])
    return Confidence(
        columns, missing, () if answers.has_several else (_describe_reading("the answer"),)
    )


def _confidence_in_positive(units: pl.DataFrame, positive: str, area: float) -> Confidence:
    """Take scores as those of the positive class; derive the confidence in the label."""
    range_problem = describe_out_of_range(units["score"])
    is_binary = _has_two_classes(units, units["prediction"], positive)
    complement = (1 - pl.col("score")) if is_binary else pl.lit(None, dtype=pl.Float64)
    confidence = pl.when(pl.col("prediction") == positive).then("score").otherwise(complement)
    columns = units.select(confidence=confidence, positive_score="score")
    requirement = f"the confidence in every answer; the scores are of {positive!r} alone"
    missing = (
        {}
        if is_binary and not range_problem
        else {"calibration_error": range_problem or requirement}
    )
    caution = Caution(
        f"The scores fall where the answer is {positive!r} (area under the curve {area:.2f}): are"
        " they the other class's, or distances?"
    )
    notes = (*([caution] if area < _MAX_REVERSED_AUC else []), _describe_reading(repr(positive)))
    return Confidence(columns, missing, notes)


def _describe_reading(subject: str) -> str:
    return f"Scores are read as the model's confidence in {subject}."


def _has_two_classes(units: pl.DataFrame, labels: pl.Series, positive: str) -> bool:
    """Return whether truth and labels have only two classes, the positive one included."""
    # Truth and predictions together: a third class on either side has a share of the probability.
    classes = {positive, *units["truth"].explode().unique(), *labels.unique()}
    return len(classes - {None}) == 2


def describe_out_of_range(scores: pl.Series) -> str | None:
    """Describe scores outside 0 to 1; None where all are inside."""
    values = scores.drop_nulls().to_numpy()
    low, high = values.min(), values.max()
    if low >= -_PROBABILITY_TOLERANCE and high <= 1 + _PROBABILITY_TOLERANCE:
        return None
    return f"confidences from 0 to 1; the scores run from {low:g} to {high:g}"
