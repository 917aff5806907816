"""Detection rate and selection rate alone, which need no truth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.info import TaskInfo
from isolux.core.tables import INSTANCES
from isolux.tasks._ids import refuse_no_match
from isolux.tasks._scores import restrict_task_info, score_rows, stack_scores
from isolux.tasks._truth import instances_with_empty_truths
from isolux.tasks.classification.answers import read_predictions
from isolux.tasks.classification.label_matching import LabelMatching
from isolux.tasks.classification.metric_selection import missing_inputs, select_metrics
from isolux.tasks.classification.notes import describe_counts, describe_missing_answers
from isolux.tasks.classification.rates import (
    ClassificationOutcomes,
    build_metric_rows,
    join_outcomes,
)
from isolux.tasks.classification.score_only_evaluation import (
    LowerScoreMeaning,
    check_scores,
    describe_thresholds,
    record_threshold,
)
from isolux.tasks.classification.thresholding import Cutoff

_METRIC = "detection_rate"


def score_detection_only(
    dataset: Dataset, predictions: pl.DataFrame, task_info: TaskInfo, metrics: Sequence[str]
) -> Scores:
    """Score each person 1 if a model detected them, and 0 if not."""
    other_metrics = [name for name in metrics if name != _METRIC]
    if other_metrics:
        raise SpecError(
            f"the metric {other_metrics[0]!r} cannot be measured",
            expected=f"{_METRIC}, or answers: --prediction-column, --predictions",
            found="who was found, and no answers",
        )
    people = INSTANCES.conform(dataset.instances).select("cluster_id", unit_id="instance_id")
    reason = pl.when(pl.col("detected").is_null()).then(pl.lit("no prediction"))
    frames = []
    for (model,), rows in predictions.group_by(["model"], maintain_order=True):
        detections = rows.select(pl.col("instance_id").cast(pl.String).alias("unit_id"), "detected")
        matched = people.join(detections, on="unit_id", how="left", maintain_order="left")
        refuse_no_match(
            "nothing says of a person of the dataset whether they were found",
            detections["unit_id"][:1],
            people["unit_id"][:1],
            n_matched=matched["detected"].count(),
            expected="ids such as ",
            source=None,
        )
        # Booleans average to the detection rate (FairFace, Table 8).
        score_expr = pl.col("detected")
        frames.append(
            score_rows(
                matched, "classification", _METRIC, score_expr, model=str(model), reason=reason
            )
        )
    return Scores(
        units=stack_scores(frames),
        info=restrict_task_info(task_info, (_METRIC,)),
        notes=("There are no answers, so only whether people were found was judged.",),
    )


_SELECTION = "selection_rate"


def is_selection_only(metrics: Sequence[str]) -> bool:
    """Return whether only the selection rate is requested, which needs no truth."""
    return set(metrics) == {_SELECTION}


def answer_by_threshold(
    predictions: pl.DataFrame,
    positive: str | None,
    cutoff: Cutoff | None,
    lower_score_means: LowerScoreMeaning,
) -> tuple[pl.DataFrame, list[str], dict[str, Any]]:
    """Return the answers that a given threshold makes of scores, notes on it, and its record."""
    if positive is None or cutoff is None or cutoff.rule.kind != "value":
        raise SpecError(
            f"the metric {_SELECTION!r} cannot be measured",
            expected="answers; or --positive CLASS and --threshold NUMBER for scores: other rules"
            " need a truth (--target NAME)",
            found="scores without answers and without a truth",
        )
    scored_people, number = check_scores(predictions).drop_nulls("score"), cutoff.rule.number
    score = scored_people["score"]
    is_selected = score <= number if lower_score_means == "positive" else score >= number
    if scored_people.height and not is_selected.any():
        raise SpecError(
            "no score reaches the threshold: nobody is selected in any group",
            expected=f"a threshold within the scores, {score.to_numpy().min():g} to"
            f" {score.to_numpy().max():g}",
            found=f"--threshold {number:g}",
        )
    # Who has no score has no answer, and is not counted as not selected.
    answers = scored_people.select(
        "model",
        "instance_id",
        label=pl.when(is_selected).then(pl.lit(positive)).otherwise(pl.lit(f"not {positive}")),
        score=pl.lit(None, dtype=pl.Float64),
        rank=pl.lit(1, dtype=pl.Int64),
    )
    models = answers["model"].unique().sort()
    thresholds, texts = dict.fromkeys(models, number), dict.fromkeys(models, f"{number:.12g}")
    return (
        answers,
        describe_thresholds(cutoff, texts, positive, lower_score_means, has_leakage=False),
        record_threshold(cutoff, thresholds, texts, lower_score_means),
    )


def refuse_unanswered_class(positive: str | None, labels: pl.Series) -> None:
    """Refuse a positive class that is no answer: a misspelt one would be selected in no group."""
    answer_labels = labels.drop_nulls().unique().sort()
    if len(answer_labels) and positive not in answer_labels:
        raise SpecError(
            f"nobody was given the positive class {positive!r}",
            expected="one of the answers: " + ", ".join(answer_labels.head(30)),
            where="positive",
        )


def score_selection_only(
    dataset: Dataset,
    predictions: pl.DataFrame,
    task_info: TaskInfo,
    positive: str | None,
    *,
    label_matching: LabelMatching,
    prediction_map: Mapping[str, str] | None,
    undetected: str,
    model: str | None,
) -> Scores:
    """Score each person 1 if they were given the positive class, and 0 if not."""
    instances = instances_with_empty_truths(dataset)
    answers = read_predictions(
        predictions,
        instances.drop("cluster_id", "truth"),
        prediction_map=prediction_map,
        label_matching=label_matching,
        model=model,
    )
    names = select_metrics(
        task_info,
        (_SELECTION,),
        missing_inputs(answers, positive, ()),
        undetected=undetected,
        top_k=(),
    )
    refuse_unanswered_class(positive, answers.ranked["label"])
    units = join_outcomes(instances, answers)
    outcomes = ClassificationOutcomes(
        units, answers, positive, (), leave_out=undetected == "leave-out"
    )
    notes = describe_missing_answers(units, undetected, counted_as="not selected")
    notes += [*answers.notes, *describe_counts(units, undetected, has_truth=False)]
    return Scores(
        units=build_metric_rows(outcomes, names),
        info=restrict_task_info(task_info, names),
        notes=tuple(notes),
    )
