"""Who was given the positive class, and nothing else: a selection rate needs no truth."""

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
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import TaskInfo

__all__ = ["is_of_selection", "selected_alone"]

_METRIC = "selection_rate"


def is_of_selection(target: str | None, metrics: Sequence[str], predictions: pl.DataFrame) -> bool:
    """Tell whether answers are asked for their selection rate alone, and no truth is named."""
    return target is None and set(metrics) == {_METRIC} and "label" in predictions.columns


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
        info, (_METRIC,), missing_inputs(answers, positive, ()), undetected=undetected, top_k=()
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
        info=replace(info, metrics=(info.metric(_METRIC),), defaults=names),
        notes=tuple(notes),
    )
