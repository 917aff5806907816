"""What ``tradeoffs`` reads: whose score it is, and whether it was right, from a run's evidence.

Classification keeps for each unit the score of the positive class and the confidence in the answer;
tasks of boxes, masks and poses keep each detection that found a person, with its score.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from isolux.analyses._regrouping import OWN_CLUSTER
from isolux.statements.words import Words
from isolux.vocabulary.containers import Run
from isolux.vocabulary.spec import Statistics

CLASSIFICATION, DETECTIONS = "classification", "detections"
_MOST_GROUPS = 6  # of an attribute


@dataclass(frozen=True, slots=True)
class People:
    """One model's people: ``rows`` with ``unit_id, cluster_id, score, mark``.

    ``mark`` is whether a person is positive (thresholds) or wrong (coverage). ``rate`` and
    ``false`` are what the shares of positives and of others at or above a threshold are called;
    ``false`` is empty where there are no others.
    """

    model: str
    rows: pl.DataFrame
    rate: str = ""
    false: str = ""


@dataclass(slots=True)
class Seen:
    """What a view adds: findings, tables by caption, notes, and why it shows nothing."""

    findings: list[dict[str, Any]] = field(default_factory=list)
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    lacking: list[str] = field(default_factory=list)


def graded_people(run: Run, seen: Seen) -> list[People]:
    """Take classified units by the score of the positive class."""
    table = run.evidence.get(CLASSIFICATION)
    if table is None or table.is_empty():
        return []
    known = table.drop_nulls(["positive_score", "is_positive"])
    if known.is_empty():
        seen.lacking.append(
            "rates by threshold need --positive, the class that scores are of, "
            "and a score of it for each unit (--score-column)"
        )
        return []
    positive = str(known["positive"][0])
    rows = known.select(
        "model", "unit_id", "cluster_id", score="positive_score", mark="is_positive"
    )
    names = f"true positive rate of {positive}", f"false positive rate of {positive}"
    return _by_model(rows, seen, "rates by threshold", names)


def sure_people(run: Run, seen: Seen) -> list[People]:
    """Take classified units by the confidence in their answer; ``mark``: the answer is wrong."""
    table = run.evidence.get(CLASSIFICATION)
    if table is None or table.is_empty():
        return []
    known = table.drop_nulls(["confidence", "correct"])
    if known.is_empty():
        seen.lacking.append(
            "coverage against error needs the confidence in every answer "
            "(--score-column, --score-of answer)"
        )
        return []
    wrong = pl.col("correct").cast(pl.Boolean).not_()
    rows = known.select("model", "unit_id", "cluster_id", score="confidence", mark=wrong)
    return _by_model(rows, seen, "coverage against error", ("", ""))


def found_people(run: Run, seen: Seen) -> list[People]:
    """Take people to be found by the score of what found them at an overlap of .50."""
    table = run.evidence.get(DETECTIONS)
    if table is None or table.is_empty():
        return []
    keys = ["model", "unit_id"]
    right = table.filter((pl.col("kind") == "right") & (pl.col("at").cast(pl.Int64) % 2 == 1))
    best = right.group_by(keys).agg(pl.col("score").max())
    rows = (
        table.filter(pl.col("kind") == "person")
        .select(*keys, "cluster_id")
        .unique(keys, keep="first", maintain_order=True)
        .join(best, on=keys, how="left", maintain_order="left")
        .with_columns(pl.col("score").fill_null(float("-inf")), mark=pl.lit(value=True))
    )
    return _by_model(rows, seen, "the share found by threshold", ("share found", ""))


def _by_model(rows: pl.DataFrame, seen: Seen, view: str, names: tuple[str, str]) -> list[People]:
    found = []
    for (model,), own in (
        rows.sort("model", maintain_order=True)
        .partition_by("model", as_dict=True, maintain_order=True, include_key=False)
        .items()
    ):
        if own.filter(pl.col("score").is_finite())["score"].n_unique() < 2:
            seen.lacking.append(
                f"{view}: {model} gives everyone the same score, so no threshold "
                "parts anybody from anybody"
            )
            continue
        found.append(People(str(model), own, *names))
    return found


def large_groups(
    people: People, members: pl.DataFrame, spec: Statistics, seen: Seen
) -> pl.DataFrame:
    """Keep of each attribute the largest groups with enough of these people, and count the rest."""
    own = people.rows.select("unit_id", cluster=OWN_CLUSTER)
    sizes = (
        members.join(own, on="unit_id")
        .group_by("attribute", "group", maintain_order=True)
        .agg(n=pl.len(), clusters=pl.col("cluster").n_unique())
    )
    judged = sizes.filter(
        (pl.col("n") >= spec.min_units) & (pl.col("clusters") >= spec.min_clusters)
    )
    kept = judged.filter(
        pl.col("n").rank("ordinal", descending=True).over("attribute") <= _MOST_GROUPS
    )
    few, more = sizes.height - judged.height, judged.height - kept.height
    if few:
        seen.notes.append(
            f"Trade-offs: {few} group(s) with fewer than {spec.min_units} units or "
            f"{spec.min_clusters} clusters are not shown."
        )
    if more:
        seen.notes.append(
            f"Trade-offs: of {more} group(s) none is shown; of each attribute the "
            f"{_MOST_GROUPS} largest are."
        )
    return members.join(kept, on=["attribute", "group"], how="semi", maintain_order="left")


def finding(
    words: Words, model: str, claim: str, numbers: Mapping[str, Any], group: Sequence[str | None]
) -> dict[str, Any]:
    """Lay out one row of the table ``findings``; ``group``: attribute and group."""
    named = {"attribute": group[0], "group_a": group[1], **numbers}
    return {"analysis": "tradeoffs", "claim": words.start(model, claim)} | named
