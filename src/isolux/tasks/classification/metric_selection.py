"""Selection of metrics: those requested, or all that the input allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import polars as pl

from isolux.core.errors import SpecError
from isolux.core.formatting import join_first
from isolux.core.info import TaskInfo
from isolux.tasks.classification.answers import ClassPredictions
from isolux.tasks.classification.metrics import METRIC_ENTRIES, ON_DETECTED, names_that_need

SCORE_METRICS = names_that_need("score", "positive")
"""Metrics of the positive class's score."""
_OPTIONAL_SCORE_METRICS = SCORE_METRICS[1:]
"""Measured on request where there are labels, and always where there are only scores."""
_SCORE_ONLY_EXCLUDED = ("recall", "recall_on_detected")
"""On request only where there are only scores: the rates of a class give the same numbers."""


def check_ranks(top_k: Sequence[int]) -> None:
    """Refuse a k that is not a rank."""
    # True is an integer in Python.
    invalid = [k for k in top_k if isinstance(k, bool) or not isinstance(k, int) or k < 1]
    if invalid:
        raise SpecError(
            "top_k counts answers", expected="whole numbers of at least 1", found=repr(invalid[0])
        )


def refuse_answer_settings(**settings: object) -> None:
    """Refuse settings of predicted labels where there are only scores."""
    for name, setting in settings.items():
        # These values are the defaults: a setting that has no effect is refused only if it was set.
        if setting not in (None, (), [], False, "mistake"):
            raise SpecError(
                f"{name} is about a model's answers, and there are scores alone",
                expected="answers, or none of this setting",
                found=f"{name}={setting!r}",
                hint="name the column of answers with --prediction-column, or set a --threshold",
            )


def refuse_score_settings(**settings: object) -> None:
    """Refuse settings of scores without labels where the model has labels."""
    for name, setting in settings.items():
        if setting not in (None, "other"):
            raise SpecError(
                f"{name} makes answers of scores, and there are answers already",
                expected="a column of scores and none of answers",
                found=f"{name}={setting!r}",
                hint="leave out --prediction-column (a table of predictions: its column `label`)",
            )


def missing_inputs(
    answers: ClassPredictions, positive: str | None, top_k: Sequence[int]
) -> dict[str, str]:
    """List the metrics that the input does not allow, and what each of them needs."""
    missing: dict[str, str] = {}
    if not answers.has_detection:
        requirement = "a column `detected`, or empty answers, in the predictions"
        missing |= dict.fromkeys(names_that_need("detection"), requirement)
    if positive is None:
        missing |= dict.fromkeys(names_that_need("positive"), "positive, the class it is about")
    if not top_k:
        missing |= dict.fromkeys(names_that_need("top_k"), "top_k, such as top_k=(5,)")
    elif answers.ranked.height:
        max_rank = answers.ranked.group_by("unit").len().select(pl.col("len").max()).item()
        # With fewer ranks than k, top-k accuracy would silently be that of a smaller k.
        if max(top_k) > max_rank:
            raise SpecError(
                f"top_k={max(top_k)} needs as many ranked answers",
                expected=f"units with {max(top_k)} distinct answers",
                found=f"at most {max_rank}",
            )
    return missing


def select_metrics(
    task_info: TaskInfo,
    requested: Sequence[str],
    missing: Mapping[str, str],
    *,
    undetected: str,
    top_k: Sequence[int],
    scores_only: bool = False,
) -> tuple[str, ...]:
    """List the metrics to measure, in the order in which the task declares them."""
    detected_names = set(ON_DETECTED.values())
    names = (
        {m.name for m in task_info.metrics}
        - detected_names
        - {entry.metric.name for entry in METRIC_ENTRIES if entry.on_request}
        - set(_SCORE_ONLY_EXCLUDED if scores_only else _OPTIONAL_SCORE_METRICS)
    )
    if requested:
        names = set(requested)
        for name in sorted(names & set(missing)):
            raise SpecError(
                f"the metric {name!r} cannot be measured", expected=missing[name], where="metrics"
            )
        # A setting that only one metric reads asks for that metric.
        names |= set(names_that_need("top_k")) if top_k else set()
        # FairFace reports both policies, all faces and detected ones (Table 6).
        detected_names = {ON_DETECTED[name] for name in names if name in ON_DETECTED}
    if undetected == "both":
        names |= detected_names
    return tuple(m.name for m in task_info.metrics if m.name in names and m.name not in missing)


def check_positive(truth: pl.Series, positive: str | None, *, one_vs_rest: bool) -> None:
    """Refuse a positive class that is never true, or one set together with ``one_vs_rest``."""
    if one_vs_rest and positive is not None:
        raise SpecError(
            "one class cannot be the positive one while every class is",
            expected="positive, or one_vs_rest",
            found=f"positive={positive!r} and one_vs_rest",
        )
    classes = truth.explode().drop_nulls().unique().sort().to_list()
    # A misspelt class has no positives, so that every rate of it would be undefined or 0.
    if positive is not None and classes and positive not in classes:
        raise SpecError(
            f"the positive class {positive!r} is true of nobody",
            expected="one of " + join_first(classes, 30),
            where="positive",
        )
