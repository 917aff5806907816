"""Scores without labels: how well a score ranks and, at a threshold, what it decides.

A score and a truth are enough for the area under the curve, average precision and, where scores
are probabilities, calibration. With a threshold each score gives a label, scored as any other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError, TableError, format_location
from isolux.core.info import TaskInfo
from isolux.core.notes import Caution
from isolux.stats.statistic import FloatArray
from isolux.tasks._ids import refuse_no_match, require_columns
from isolux.tasks._threshold import auc_with_null_se, caution_on_repeated_scores
from isolux.tasks.classification.answers import ClassPredictions, Confidence, describe_out_of_range
from isolux.tasks.classification.metric_selection import SCORE_METRICS
from isolux.tasks.classification.metrics import names_that_need
from isolux.tasks.classification.thresholding import (
    Cutoff,
    caution_on_threshold,
    format_threshold,
    threshold_for_model,
)

LowerScoreMeaning = Literal["other", "positive"]
# Only pairs whose positive member is beyond doubt; "male" and "female" have none.
_POSITIVE_WORDS = ({"0", "1"}, {"0.0", "1.0"}, {"false", "true"}, {"no", "yes"})
ANSWER_METRICS = names_that_need("answers")
"""Metrics that need a label, and so a threshold."""
# Ranking is tested from this many people of each class; below this z it counts as chance.
_MIN_PEOPLE_PER_CLASS, _MIN_Z = 30, 3.0
# A caution from this many people, where this share of them has no score.
_MIN_PEOPLE, _MAX_MISSING_SHARE = 20, 0.1
_THRESHOLD_REQUIREMENT = (
    "a decision threshold, because scores alone are not answers: --threshold 0.5, fpr=0.01, "
    "fnr=0.05 or best-accuracy (threshold=…)"
)


@dataclass(frozen=True, slots=True)
class ScoreOnlyInput:
    """Scores without labels, in the form that the task evaluates.

    Parameters
    ----------
    instances : polars.DataFrame
        The evaluated units: ``unit_id, cluster_id, truth``.
    answers : ClassPredictions
        With each unit's score; the label is what the threshold decides (without one, meaningless).
    missing : dict of str to str
        Metric that cannot be computed, to what it needs.
    thresholds : dict of str to float
        Each model's; empty without one.
    fitted_settings : mapping
        For the record: rule, sample, thresholds.
    notes : tuple of str
    """

    instances: pl.DataFrame
    answers: ClassPredictions
    missing: dict[str, str]
    thresholds: dict[str, float]
    fitted_settings: Mapping[str, Any]
    notes: tuple[str, ...]

    def confidence(self, units: pl.DataFrame) -> Confidence:
        """Take scores as those of the positive class, without a confidence in labels."""
        columns = units.select(confidence=pl.lit(None, dtype=pl.Float64), positive_score="score")
        return Confidence(columns, self.missing)

    def drop_answers(self, units: pl.DataFrame) -> pl.DataFrame:
        """Set labels to null where no threshold decided them."""
        null_columns = {"prediction": pl.lit(None, pl.String), "correct": pl.lit(None, pl.Boolean)}
        return units if self.thresholds else units.with_columns(**null_columns)

    def describe_unmeasured(self, units: pl.DataFrame, task_info: TaskInfo) -> list[str]:
        """Count units of unknown truth, and name the metrics that scores do not allow."""
        notes = []
        unknown = units.filter(unjudged="unknown truth")["unit_id"].n_unique()
        if unknown:
            notes.append(
                f"{unknown:,} of {self.instances.height:,} units have no known truth and count in"
                " no metric."
            )
        name = "class_calibration_error"
        if name in self.missing:
            notes.append(
                f"{task_info.metric(name).title} was not measured: it needs {self.missing[name]}."
            )
        if not self.thresholds:
            notes.append(
                f"Accuracy and rates were not measured: they need {_THRESHOLD_REQUIREMENT}."
            )
        return notes


def default_positive(truth: pl.Series, positive: str | None) -> str:
    """Return the positive class of the scores: the one set, or the 1, true or yes of two."""
    if positive is not None:
        return positive
    classes = truth.explode().drop_nulls().unique().sort().to_list()
    if {label.lower() for label in classes} in _POSITIVE_WORDS:
        # In each pair the positive word is the last in the alphabet.
        return str(max(classes, key=str.lower))
    raise SpecError(
        "nothing says which class the scores are of",
        expected="--positive CLASS (positive=…), one of " + ", ".join(map(repr, classes[:20])),
        found="scores without answers, and no positive class",
    )


def binarise_truth(truth: pl.Series, positive: str) -> tuple[pl.Series, str]:
    """Reduce the truth to the positive class and all others; also return the others' name."""
    other_classes = [c for c in truth.explode().drop_nulls().unique() if c != positive]
    other_name = other_classes[0] if len(other_classes) == 1 else f"not {positive}"
    is_positive = truth.list.contains(pl.lit(positive))
    frame = truth.to_frame("truth").with_columns(held=is_positive)
    binary_truth = (
        pl.when("held")
        .then(pl.lit([positive]))
        # A null truth stays unknown, and does not become "not positive".
        .when(pl.col("held").is_not_null())
        .then(pl.lit([other_name]))
    )
    return frame.select(truth=binary_truth)["truth"], other_name


def read_score_only(
    predictions: pl.DataFrame,
    instances: pl.DataFrame,
    classes: tuple[str, str],
    cutoff: Cutoff | None,
    *,
    lower_score_means: LowerScoreMeaning,
    model: str | None,
) -> ScoreOnlyInput:
    """Read ``model, instance_id, score``, and decide labels where a threshold is set."""
    table = check_scores(predictions)
    models = tuple(table["model"].unique().sort()) or (model or "model",)
    positive = instances["truth"].list.first().eq_missing(classes[0]).to_numpy()
    truth_known = instances["truth"].is_not_null().to_numpy()
    in_sample = None if cutoff is None else cutoff.sample_mask
    is_evaluated = np.ones(len(positive), dtype=np.bool_) if in_sample is None else ~in_sample
    evaluated = instances.filter(is_evaluated)
    # Distances are negated, so that a higher score always means the positive class.
    sign = -1.0 if lower_score_means == "positive" else 1.0
    rows, thresholds, texts, notes = [], {}, {}, []
    leakage_cautions = [] if cutoff is None else [*cutoff.leakage_cautions]
    for k, name in enumerate(models):
        scores = sign * _scores_by_unit(table.filter(model=name), instances["unit_id"], name)
        # Infinite scores are excluded when a threshold is set: they would be a threshold
        # themselves.
        is_valid = truth_known & np.isfinite(scores)
        valid_scores, threshold = np.where(is_valid, scores, np.nan), None
        notes += _describe_scores(
            name,
            scores[is_evaluated],
            positive[is_evaluated],
            is_valid[is_evaluated],
            lower_score_means,
        )
        if cutoff is not None:
            threshold = threshold_for_model(cutoff, scores, positive, is_valid)
            # A given threshold is on the user's scale; a fitted one on that of the signed scores.
            threshold = sign * threshold if cutoff.rule.kind == "value" else threshold
            thresholds[name] = sign * threshold
            texts[name] = format_threshold(
                sign * threshold, sign * valid_scores, passes_below=sign < 0
            )
            notes += caution_on_threshold(
                cutoff, name, valid_scores, positive, threshold, classes=classes, sign=sign
            )
            # Shared ids say more than equal scores, so one caution is enough.
            if in_sample is not None and not cutoff.leakage_cautions:
                leakage_cautions += caution_on_repeated_scores(
                    valid_scores, positive, in_sample, name
                )
        # The threshold sample is not evaluated: its rates are fitted, not measured.
        rows.append(_build_rows(scores[is_evaluated], threshold, classes, k * len(evaluated)))
    ranked = pl.concat(rows)
    detection_flags = ranked.select("unit", detected=pl.lit(value=True))
    reading_note = (
        f"Scores are read as those of the class {classes[0]!r}; all others are {classes[1]!r}."
    )
    threshold_notes = describe_thresholds(
        cutoff, texts, classes[0], lower_score_means, has_leakage=bool(leakage_cautions)
    )
    return ScoreOnlyInput(
        evaluated,
        ClassPredictions(models, detection_flags, ranked, has_detection=False, notes=()),
        _find_unmeasurable(ranked["score"], cutoff, lower_score_means),
        thresholds,
        record_threshold(cutoff, thresholds, texts, lower_score_means),
        (*leakage_cautions, *threshold_notes, reading_note, *notes),
    )


def check_scores(frame: pl.DataFrame) -> pl.DataFrame:
    """Check columns and types of scores."""
    require_columns(frame, ("model", "instance_id", "score"))
    if not frame.schema["score"].is_numeric() and frame["score"].is_not_null().any():
        raise TableError(
            "a score is a number",
            expected="numbers on any scale",
            found=str(frame.schema["score"]),
            where=format_location("predictions", column="score"),
        )
    text = pl.col("model", "instance_id").cast(pl.String)
    # NaN is no score; as a number it would sort above all others.
    return frame.select(text, pl.col("score").cast(pl.Float64).fill_nan(None))


def _scores_by_unit(rows: pl.DataFrame, unit_ids: pl.Series, model: str) -> FloatArray:
    """Match one model's scores to the units; NaN where there is none."""
    duplicates = rows.filter(pl.col("instance_id").is_duplicated())
    if duplicates.height:
        raise TableError(
            "a person has several scores",
            expected="one score a person and model",
            found=f"{duplicates['instance_id'][0]!r} of {model!r}",
            where="predictions",
        )
    matched = unit_ids.to_frame("instance_id").join(
        rows.select("instance_id", "score", here=pl.lit(value=True)),
        on="instance_id",
        how="left",
        maintain_order="left",
    )
    refuse_no_match(
        "no score is for a unit of the dataset",
        rows["instance_id"],
        unit_ids,
        n_matched=matched["here"].count(),
        source=None,
    )
    return np.asarray(matched["score"].fill_null(np.nan).to_numpy(), dtype=np.float64)


def _build_rows(
    scores: FloatArray, threshold: float | None, classes: tuple[str, str], first_unit: int
) -> pl.DataFrame:
    """Build one row per unit with a score: its number, label and score."""
    scored_units = np.flatnonzero(~np.isnan(scores))
    # At or above, as in ROC curves: the threshold itself is a score that is accepted.
    is_selected = scores[scored_units] >= (np.inf if threshold is None else threshold)
    labels = np.where(is_selected & (threshold is not None), *classes)
    columns = {
        "unit": scored_units + first_unit,
        "label": labels.astype(object),
        "score": scores[scored_units],
    }
    schema = {"unit": pl.Int64, "label": pl.String, "score": pl.Float64}
    return pl.DataFrame(columns, schema=schema)


def _find_unmeasurable(
    scores: pl.Series, cutoff: Cutoff | None, lower_score_means: LowerScoreMeaning
) -> dict[str, str]:
    """List the metrics that these scores do not allow, and what each needs."""
    requirement = "answers with a confidence; scores alone have class_calibration_error"
    missing = {"calibration_error": requirement}
    if not len(scores):
        return missing | dict.fromkeys(SCORE_METRICS, "scores; there are none")
    direction_requirement = "scores that rise with the class"
    range_problem = (
        direction_requirement if lower_score_means == "positive" else describe_out_of_range(scores)
    )
    if range_problem:
        high = float(str(scores.abs().max()))
        # Above 2, because probabilities exceed 1 only by rounding; at most 100, as percents do.
        is_percent = lower_score_means == "other" and bool((scores >= 0).all()) and 2 < high <= 100
        hint = "; if these are percents, say --option score_scale=100" if is_percent else ""
        missing["class_calibration_error"] = range_problem + hint
    return missing | (
        dict.fromkeys(ANSWER_METRICS, _THRESHOLD_REQUIREMENT) if cutoff is None else {}
    )


def _describe_scores(
    model: str,
    scores: FloatArray,
    positive: npt.NDArray[np.bool_],
    is_valid: npt.NDArray[np.bool_],
    lower_score_means: LowerScoreMeaning,
) -> list[str]:
    """Count people without a score; cautions on codes and on scores that do not rank classes."""
    n, n_missing = len(scores), int(np.isnan(scores).sum())
    notes: list[str] = []
    if n_missing:
        summary = f"{n_missing:,} of {n:,} people have no score of {model!r}"
        text = f"{summary}: every number is about the others alone. Is the file whole?"
        is_many = n >= _MIN_PEOPLE and n_missing >= _MAX_MISSING_SHARE * n
        notes.append(Caution(text) if is_many else f"{summary} and count in no metric.")
    if (
        min(int((positive & is_valid).sum()), int((~positive & is_valid).sum()))
        < _MIN_PEOPLE_PER_CLASS
    ):
        return notes
    area, null_se = auc_with_null_se(scores[is_valid], positive[is_valid])
    subject, curve = f"The scores of {model!r}", f"(area under the curve {area:.2f})"
    direction_question = (
        "Is a smaller score more likely the class? --lower-score-means positive"
        " (lower_score_means='positive')."
    )
    z = (area - 0.5) / null_se
    if z < -_MIN_Z:
        question = (
            direction_question if lower_score_means == "other" else "Leave --lower-score-means out?"
        )
        notes.append(Caution(f"{subject} are lower for the positive class {curve}. {question}"))
    elif z < _MIN_Z:
        question = "Are they about these people, and this question?"
        notes.append(
            Caution(f"{subject} tell the classes apart no better than chance {curve}. {question}")
        )
    return notes


def record_threshold(
    cutoff: Cutoff | None,
    thresholds: Mapping[str, float],
    texts: Mapping[str, str],
    lower_score_means: LowerScoreMeaning,
) -> dict[str, Any]:
    """Build the record of the rule, its sample and the thresholds."""
    if cutoff is None:
        return {}
    is_given = cutoff.rule.kind == "value"
    return {
        "threshold": {
            "rule": cutoff.rule.kind,
            "rate": None if cutoff.rule.kind in ("value", "best-accuracy") else cutoff.rule.number,
            "chosen_on": None
            if is_given
            else cutoff.sample_description or "the people who are judged",
            "n_chosen_on": None if cutoff.sample_mask is None else int(cutoff.sample_mask.sum()),
            "lower_score_means": lower_score_means,
            "metrics": list(ANSWER_METRICS),
            # Models may have different thresholds, and a sentence can name only one.
            "words": "at its threshold"
            if len(set(thresholds.values())) > 1
            else f"at a score of {next(iter(texts.values()))}",
            "value": {
                name: threshold for name, threshold in thresholds.items() if np.isfinite(threshold)
            },
        }
    }


def describe_thresholds(
    cutoff: Cutoff | None,
    texts: Mapping[str, str],
    positive: str,
    lower_score_means: LowerScoreMeaning,
    *,
    has_leakage: bool,
) -> list[str]:
    """Describe each model's threshold; a caution where it was set on the evaluated people."""
    if cutoff is None:
        return []
    relation = "at most" if lower_score_means == "positive" else "at least"
    notes: list[str] = []
    for name, threshold_text in texts.items():
        model_text = f" of {name!r}" if len(texts) > 1 else ""
        statement = f"Scores{model_text} of {relation} {threshold_text} are answers {positive!r}"
        set_by = f"{statement}: that threshold ({cutoff.rule.description}) was"
        if cutoff.rule.kind == "value":
            notes.append(f"{statement} (the threshold as given).")
        elif cutoff.sample_mask is None:
            text = (
                f"{set_by} chosen on the same people that it is judged on, so rates look better"
                " than on others. --threshold-on split=val, or a share such as 0.3, sets it on"
                " people who are then left out."
            )
            notes.append(Caution(text))
        else:
            subject = "rows that are" if has_leakage else "people who are"
            n = int(cutoff.sample_mask.sum())
            notes.append(
                f"{set_by} set on {cutoff.sample_description}, {n:,} {subject} not judged."
            )
    return notes
