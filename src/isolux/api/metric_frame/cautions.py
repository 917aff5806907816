"""What ``metric_frame`` warns of: missing values, and whatever the stage of plausibility finds."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import polars as pl

from isolux.api.metric_frame.inputs import FrameInputs
from isolux.core.containers import Dataset, Scores
from isolux.core.notes import Caution, split_cautions_from_notes
from isolux.groups.intersections import IntersectionMembership
from isolux.groups.membership import Membership
from isolux.groups.missing_predictions import (
    NO_SCORE,
    caution_on_missing_scores,
    count_missing_predictions,
)
from isolux.groups.unknown_values import UNKNOWN
from isolux.plausibility import AuditInputs, check_plausibility

_STACKLEVEL = 6  # the caller of metric_frame


def warn_of_cautions(dataset: Dataset, scores: Scores, inputs: FrameInputs) -> None:
    """Raise cautions as Python warnings: there is no report to show them."""
    missing = inputs.y_pred.null_count()
    task_cautions, _ = split_cautions_from_notes(scores.notes)
    if missing:  # worded for arrays: the task's own caution is about files and flags
        task_cautions = [text for text in task_cautions if "people have no answer of" not in text]
        task_cautions.append(
            f"{missing:,} of {len(inputs.y_pred):,} answers are missing, and count as mistakes"
        )
    cautions = [*_check_plausibility(dataset, scores, inputs), *task_cautions]
    openings = {text.partition("):")[0] for text in cautions}
    cautions += [
        text
        for text in _list_missing(inputs, by_name=True)
        if text.partition("):")[0] not in openings
    ]
    for text in cautions:
        warnings.warn(text, UserWarning, stacklevel=_STACKLEVEL)


def warn_of_function_inputs(
    inputs: FrameInputs, scored: tuple[Dataset, Scores] | None = None
) -> None:
    """Warn of what functions get; ``scored``: their inputs as classes or numbers, where they are.

    Missing values are counted, but not called mistakes: a function may treat them as it likes.
    """
    checked = () if scored is None else _check_plausibility(*scored, inputs)
    for text in (*checked, *_list_missing(inputs, by_name=False)):
        warnings.warn(text, UserWarning, stacklevel=_STACKLEVEL - 1)


@contextmanager
def count_warnings(metric: str) -> Iterator[None]:
    """Count what a metric's function warns of, and warn of each text once, with its count."""
    with warnings.catch_warnings(record=True) as records:
        warnings.simplefilter("always")
        yield
    counts = Counter((str(record.message), record.category) for record in records)
    for (text, category), n_calls in counts.items():
        message = text if n_calls == 1 else f"{text} ({n_calls:,} times)"
        warnings.warn(f"{metric}: {message}", category, stacklevel=_STACKLEVEL + 1)


def _check_plausibility(
    dataset: Dataset, scores: Scores, inputs: FrameInputs
) -> tuple[Caution, ...]:
    features = tuple(_cross_features(inputs, [name]) for name in inputs.groups.columns)
    membership = Membership(dataset.instances["instance_id"], features)
    return check_plausibility(AuditInputs(scores.task, dataset, None, scores, membership))


def _list_missing(inputs: FrameInputs, *, by_name: bool) -> list[str]:
    """List where truths, predictions or scores are missing more often in some groups."""
    truth, answer = inputs.y_true.is_null(), inputs.y_pred.is_null()
    score = truth & False if inputs.y_score is None else inputs.y_score.fill_nan(None).is_null()
    reason = pl.when(truth).then(pl.lit("unknown truth"))
    as_given = "Functions get these rows as they are"
    warning_reasons: list[tuple[pl.Expr, str]] = [
        (reason.when(score).then(pl.lit(NO_SCORE)), "They count in no metric that needs them"),
        (pl.when(answer & ~truth).then(pl.lit("no answer")), "They count as mistakes"),
    ]
    if not by_name:
        warning_reasons = [(reason.when(answer).then(pl.lit("no answer")), as_given)]
    ids = pl.int_range(len(truth), eager=True).cast(pl.String)
    members = Membership(ids, (_cross_features(inputs, inputs.groups.columns),))
    cautions: list[str] = []
    for reasons, consequence in warning_reasons:
        rows = pl.select(
            model=pl.lit("model"),
            unit_id=ids,
            metric=pl.lit("metric"),
            label=None,
            threshold=None,
            cluster_id=pl.lit(None, pl.String) if inputs.cluster is None else inputs.cluster,
            reason=reasons,
        ).with_columns(value=pl.when(pl.col("reason").is_null()).then(1.0))
        counts = count_missing_predictions(rows, members)
        cautions += caution_on_missing_scores(counts, bounds=False, fate=consequence)
    return cautions


def _cross_features(inputs: FrameInputs, names: Sequence[str]) -> IntersectionMembership:
    """Put rows into the groups of some features."""
    texts = inputs.groups.select(pl.col(names).cast(pl.String).fill_null(UNKNOWN))
    cells = texts.unique(maintain_order=True)
    codes = texts.join(cells.with_row_index("code"), on=names, maintain_order="left")["code"]
    code_of_row = codes.to_numpy().astype(np.int64)[inputs.group_of_row]
    unit = np.argsort(code_of_row, kind="stable")
    return IntersectionMembership("*".join(names), tuple(cells.rows()), code_of_row[unit], unit)
