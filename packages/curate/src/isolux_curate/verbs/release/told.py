"""What a project itself can say in a dataset's papers: its journal, funnel, annotators, consent.

Nothing here names a person: the journal has counts, and counts of few people are left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from isolux_curate.project.folder import Project

_OURS = ("publish", "withdraw")  # steps after which nothing of the dataset's making is told


@dataclass(frozen=True, slots=True)
class Told:
    """What a project says of itself.

    Parameters
    ----------
    funnel : polars.DataFrame
        ``step, rule, left, refused, remain``.
    journal : polars.DataFrame
        One row a step and rule, in the order of their first rows: ``step, rule, times, first,
        last`` (days), ``said`` (a mapping: settings and counts of the last row).
    stages : polars.DataFrame
        ``stage, tasks, answers, annotators``.
    regions : polars.DataFrame
        ``region, annotators``: none below the least number that is told.
    annotators : int
    passes : polars.DataFrame
        ``stage, tried, graduated``: who was trained on golden tasks.
    consent : polars.DataFrame
        ``kind, scope, granted, revoked``: counts of people.
    """

    funnel: pl.DataFrame
    journal: pl.DataFrame
    stages: pl.DataFrame
    regions: pl.DataFrame
    annotators: int
    passes: pl.DataFrame
    consent: pl.DataFrame


def told_by(project: Project, least: int) -> Told:
    """Gather what a project says of itself."""
    from isolux_curate.project.reading import funnel, read_table

    given = read_table(project, "annotations").filter(pl.col("status") != "withdrawn")
    asked = read_table(project, "tasks").filter(~pl.col("golden"))
    answered = given.join(asked.select("task_id", "stage"), on="task_id")
    stages = (
        asked.group_by("stage")
        .agg(tasks=pl.len())
        .join(
            answered.group_by("stage").agg(
                answers=pl.len(), annotators=pl.col("annotator_id").n_unique()
            ),
            on="stage",
            how="left",
        )
        .fill_null(0)
        .sort("stage")
    )
    people = read_table(project, "annotators")
    who = people.filter(pl.col("annotator_id").is_in(answered["annotator_id"].implode()))
    regions = who.drop_nulls("region").group_by("region").agg(annotators=pl.len()).sort("region")
    passes = (
        read_table(project, "passes")
        .group_by("stage")
        .agg(
            tried=pl.col("annotator_id").n_unique(),
            graduated=pl.col("annotator_id").filter(pl.col("status") == "graduated").n_unique(),
        )
        .sort("stage")
    )
    return Told(
        funnel(project),
        journal_of(project),
        stages,
        regions.filter(pl.col("annotators") >= least),
        who.height,
        passes,
        _consent(project),
    )


def journal_of(project: Project) -> pl.DataFrame:
    """Bring the journal's rows together by step and rule; publishing itself is left out."""
    from isolux_curate.project.folder import read_journal

    rows = read_journal(project).filter(~pl.col("step").is_in(_OURS))
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows.iter_rows(named=True):
        one = found.setdefault((row["step"], row["rule"]), {"times": 0, "first": row["at"][:10]})
        one["times"] += 1
        one["last"], one["said"] = row["at"][:10], row["said"]
    told = [{"step": step, "rule": rule, **one} for (step, rule), one in found.items()]
    schema = {
        "step": pl.String,
        "rule": pl.String,
        "times": pl.Int64,
        "first": pl.String,
        "last": pl.String,
        "said": pl.String,
    }
    return pl.DataFrame(told, schema=schema)


def settings_of(said: str) -> Mapping[str, Any]:
    """Read what a row of the journal said."""
    found: Mapping[str, Any] = json.loads(said)
    return found


def _consent(project: Project) -> pl.DataFrame:
    from isolux.io.consent import SCOPES, read_ledger, standing

    schema = {"kind": pl.String, "scope": pl.String, "granted": pl.Int64, "revoked": pl.Int64}
    if not project.consent.is_file():
        return pl.DataFrame(schema=schema)
    state = standing(read_ledger(project.consent).rows)
    rows = [
        (
            kind,
            scope,
            int(part[scope].fill_null(value=False).sum()),
            int((~part[scope].fill_null(value=True)).sum()),
        )
        for (kind,), part in state.group_by("kind", maintain_order=True)
        for scope in SCOPES
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")
