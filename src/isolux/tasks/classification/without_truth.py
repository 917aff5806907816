"""Who was found, or given the positive class, and nothing else: no truth is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from isolux.tasks._truth import instances_without_truth
from isolux.tasks.classification.answers import read_answers
from isolux.tasks.classification.choice import choose, missing_inputs
from isolux.tasks.classification.counts import silent_people, tallies
from isolux.tasks.classification.rates import Judged, judge, score_rows
from isolux.tasks.classification.vocabulary import Words
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.errors import JoinError, SpecError
from isolux.vocabulary.info import TaskInfo
from isolux.vocabulary.tables import INSTANCES, SCORES

_METRIC = "detection_rate"


def detected_alone(
    dataset: Dataset, predictions: pl.DataFrame, info: TaskInfo, metrics: Sequence[str]
) -> Scores:
    """Score each person 1 where a model found them and 0 where it missed them."""
    others = [name for name in metrics if info.metric(name).name != _METRIC]
    if others:
        raise SpecError(
            f"the metric {others[0]!r} cannot be measured",
            expected=f"{_METRIC}, or answers: --prediction-column, --predictions",
            found="who was found, and no answers",
        )
    people = INSTANCES.conform(dataset.instances).select("instance_id", "cluster_id")
    parts = []
    for (model,), rows in predictions.group_by(["model"], maintain_order=True):
        told = rows.select(pl.col("instance_id").cast(pl.String), pl.col("detected"))
        met = people.join(told, on="instance_id", how="left", maintain_order="left")
        if rows.height and met.height and met["detected"].is_null().all():
            raise JoinError(
                "nothing says of a person of the dataset whether they were found",
                expected=f"ids such as {people['instance_id'][0]!r}",
                found=repr(rows["instance_id"][0]),
            )
        parts.append(_rows(met, str(model)))
    named = info.metric(_METRIC)
    return Scores(
        units=pl.concat(parts) if parts else SCORES.empty(),
        info=replace(info, metrics=(named,), defaults=(_METRIC,)),
        notes=("There are no answers, so only whether people were found was judged.",),
    )


def _rows(met: pl.DataFrame, model: str) -> pl.DataFrame:
    why = pl.when(pl.col("detected").is_null()).then(pl.lit("no prediction"))
    return SCORES.conform(
        met.select(
            pl.lit(model).alias("model"),
            pl.lit("classification").alias("task"),
            pl.lit(_METRIC).alias("metric"),
            pl.lit(None, dtype=pl.String).alias("label"),
            pl.lit(None, dtype=pl.Float64).alias("threshold"),
            pl.lit("instance").alias("unit_kind"),
            unit_id="instance_id",
            cluster_id="cluster_id",
            value=pl.col("detected").cast(pl.Float64),
            reason=why,
        )
    )


_SELECTION = "selection_rate"


def is_of_selection(target: str | None, metrics: Sequence[str], predictions: pl.DataFrame) -> bool:
    """Tell whether answers are asked for their selection rate alone, and no truth is named."""
    return target is None and set(metrics) == {_SELECTION} and "label" in predictions.columns


def selected_alone(
    dataset: Dataset,
    predictions: pl.DataFrame,
    info: TaskInfo,
    positive: str | None,
    *,
    words: Words,
    prediction_map: Mapping[str, str] | None,
    undetected: str,
    model: str | None,
) -> Scores:
    """Score each person 1 who was given the positive class and 0 who was not."""
    instances = instances_without_truth(dataset)
    answers = read_answers(
        predictions, instances.drop("cluster_id", "truth"), prediction_map=prediction_map,
        words=words, model=model,
    )  # fmt: skip
    names = choose(
        info, (_SELECTION,), missing_inputs(answers, positive, ()), undetected=undetected, top_k=()
    )
    labels = answers.ranked["label"].drop_nulls().unique().sort()
    if len(labels) and positive not in labels:
        raise SpecError(
            f"nobody was given the positive class {positive!r}",
            expected="one of the answers: " + ", ".join(labels.head(30)),
            where="positive",
        )
    units = judge(instances, answers)
    judged = Judged(units, answers, positive, (), leave_out=undetected == "leave-out")
    notes = silent_people(units, undetected, counted_as="not selected")
    notes += [*answers.notes, *tallies(units, undetected, has_truth=False)]
    return Scores(
        units=score_rows(judged, names),
        info=replace(info, metrics=(info.metric(_SELECTION),), defaults=names),
        notes=tuple(notes),
    )
