"""Input of ``tradeoffs``: scores of people and their outcomes, from a run's evidence.

Classification keeps for each unit the score of the positive class and the confidence of the
prediction; tasks of boxes, masks and poses keep each true positive, with its score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from isolux.analyses._regrouping import OWN_CLUSTER
from isolux.core.containers import Run
from isolux.core.spec import Statistics
from isolux.statements.run_terms import RunTerms

CLASSIFICATION, DETECTIONS = "classification", "detections"
_MAX_GROUPS = 6  # of an attribute


@dataclass(frozen=True, slots=True)
class ScoredPeople:
    """One model's people: ``rows`` with ``unit_id, cluster_id, score, mark``.

    ``mark`` is whether a person is positive (thresholds) or misclassified (coverage).
    ``positive_rate_name`` and ``false_rate_name`` are the names of the shares of positives and of
    negatives at or above a threshold; ``false_rate_name`` is empty where there are no negatives.
    """

    model: str
    rows: pl.DataFrame
    positive_rate_name: str = ""
    false_rate_name: str = ""


@dataclass(slots=True)
class TradeoffView:
    """Collects the output of all views: findings, tables by caption, notes, missing views."""

    findings: list[dict[str, Any]] = field(default_factory=list)
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    missing_reasons: list[str] = field(default_factory=list)


def read_positive_scores(run: Run, view: TradeoffView) -> list[ScoredPeople]:
    """Read classified units with the score of the positive class."""
    table = run.evidence.get(CLASSIFICATION)
    if table is None or table.is_empty():
        return []
    scored = table.drop_nulls(["positive_score", "is_positive"])
    if scored.is_empty():
        view.missing_reasons.append(
            "rates by threshold need --positive, the class that scores are of, "
            "and a score of it for each unit (--score-column)"
        )
        return []
    positive = str(scored["positive"][0])
    rows = scored.select(
        "model", "unit_id", "cluster_id", score="positive_score", mark="is_positive"
    )
    names = f"true positive rate of {positive}", f"false positive rate of {positive}"
    return _split_scored_people_by_model(rows, view, "rates by threshold", names)


def read_confidences(run: Run, view: TradeoffView) -> list[ScoredPeople]:
    """Read classified units with the confidence of the prediction; ``mark``: it is wrong."""
    table = run.evidence.get(CLASSIFICATION)
    if table is None or table.is_empty():
        return []
    scored = table.drop_nulls(["confidence", "correct"])
    if scored.is_empty():
        view.missing_reasons.append(
            "coverage against error needs the confidence in every answer "
            "(--score-column, --score-of answer)"
        )
        return []
    is_wrong = pl.col("correct").cast(pl.Boolean).not_()
    rows = scored.select("model", "unit_id", "cluster_id", score="confidence", mark=is_wrong)
    return _split_scored_people_by_model(rows, view, "coverage against error", ("", ""))


def read_detection_scores(run: Run, view: TradeoffView) -> list[ScoredPeople]:
    """Read annotated people with the best score of a true positive at an IoU of .50."""
    table = run.evidence.get(DETECTIONS)
    if table is None or table.is_empty():
        return []
    keys = ["model", "unit_id"]
    true_positives = table.filter(pl.col("at").cast(pl.Int64) % 2 == 1, kind="right")
    best = true_positives.group_by(keys).agg(pl.col("score").max())
    rows = (
        table.filter(kind="person")
        .select(*keys, "cluster_id")
        .unique(keys, keep="first", maintain_order=True)
        .join(best, on=keys, how="left", maintain_order="left")
        .with_columns(pl.col("score").fill_null(float("-inf")), mark=pl.lit(value=True))
    )
    return _split_scored_people_by_model(
        rows, view, "the share found by threshold", ("share found", "")
    )


def _split_scored_people_by_model(
    rows: pl.DataFrame, tradeoff_view: TradeoffView, view_name: str, names: tuple[str, str]
) -> list[ScoredPeople]:
    people = []
    for (model,), model_rows in (
        rows.sort("model", maintain_order=True)
        .partition_by("model", as_dict=True, maintain_order=True, include_key=False)
        .items()
    ):
        if model_rows.filter(pl.col("score").is_finite())["score"].n_unique() < 2:
            tradeoff_view.missing_reasons.append(
                f"{view_name}: {model} gives everyone the same score, so no threshold "
                "parts anybody from anybody"
            )
            continue
        people.append(ScoredPeople(str(model), model_rows, *names))
    return people


def select_large_groups_and_note_others(
    people: ScoredPeople, members: pl.DataFrame, spec: Statistics, view: TradeoffView
) -> pl.DataFrame:
    """Select each attribute's largest groups with enough of these people, and note the rest."""
    unit_clusters = people.rows.select("unit_id", cluster=OWN_CLUSTER)
    sizes = (
        members.join(unit_clusters, on="unit_id")
        .group_by("attribute", "group", maintain_order=True)
        .agg(n=pl.len(), clusters=pl.col("cluster").n_unique())
    )
    comparable = sizes.filter(
        pl.col("n") >= spec.min_units, pl.col("clusters") >= spec.min_clusters
    )
    selected = comparable.filter(
        pl.col("n").rank("ordinal", descending=True).over("attribute") <= _MAX_GROUPS
    )
    n_small, n_omitted = sizes.height - comparable.height, comparable.height - selected.height
    if n_small:
        view.notes.append(
            f"Trade-offs: {n_small} group(s) with fewer than {spec.min_units} units or "
            f"{spec.min_clusters} clusters are not shown."
        )
    if n_omitted:
        view.notes.append(
            f"Trade-offs: of {n_omitted} group(s) none is shown; of each attribute the "
            f"{_MAX_GROUPS} largest are."
        )
    return members.join(selected, on=["attribute", "group"], how="semi", maintain_order="left")


def build_tradeoff_finding(
    terms: RunTerms, model: str, claim: str, numbers: Mapping[str, Any], group: Sequence[str | None]
) -> dict[str, Any]:
    """Build one row of the table ``findings``; ``group``: attribute and group."""
    columns = {"attribute": group[0], "group_a": group[1], **numbers}
    return {"analysis": "tradeoffs", "claim": terms.begin_sentence(model, claim)} | columns
