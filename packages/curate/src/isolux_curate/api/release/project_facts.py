"""Facts of a project for a dataset's documents: its journal, funnel, annotators and consent.

Nothing here names a person: the journal has counts, and small counts are excluded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from isolux_curate.project.folder import Project

_EXCLUDED_STEPS = ("publish", "withdraw")  # steps that are no part of making the dataset


@dataclass(frozen=True, slots=True)
class ProjectFacts:
    """A project's facts for the documents of its dataset.

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


def read_project_facts(project: Project, min_people: int) -> ProjectFacts:
    """Read a project's facts for the documents of its dataset."""
    from isolux_curate.project.queries import read_database_table, tabulate_project_funnel

    annotations = read_database_table(project, "annotations").filter(
        pl.col("status") != "withdrawn"
    )
    task_rows = read_database_table(project, "tasks").filter(~pl.col("golden"))
    answered = annotations.join(task_rows.select("task_id", "stage"), on="task_id")
    stages = (
        task_rows.group_by("stage")
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
    people = read_database_table(project, "annotators")
    active_annotators = people.filter(
        pl.col("annotator_id").is_in(answered["annotator_id"].implode())
    )
    regions = (
        active_annotators.drop_nulls("region")
        .group_by("region")
        .agg(annotators=pl.len())
        .sort("region")
    )
    passes = (
        read_database_table(project, "passes")
        .group_by("stage")
        .agg(
            tried=pl.col("annotator_id").n_unique(),
            graduated=pl.col("annotator_id").filter(pl.col("status") == "graduated").n_unique(),
        )
        .sort("stage")
    )
    return ProjectFacts(
        tabulate_project_funnel(project),
        summarise_journal_by_rule(project),
        stages,
        regions.filter(pl.col("annotators") >= min_people),
        active_annotators.height,
        passes,
        _count_current_consent_by_scope(project),
    )


def summarise_journal_by_rule(project: Project) -> pl.DataFrame:
    """Summarise the journal by step and rule, without publications and withdrawals."""
    from isolux_curate.project.folder import read_journal

    rows = read_journal(project).filter(~pl.col("step").is_in(_EXCLUDED_STEPS))
    summary_by_rule: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows.iter_rows(named=True):
        summary = summary_by_rule.setdefault(
            (row["step"], row["rule"]), {"times": 0, "first": row["at"][:10]}
        )
        summary["times"] += 1
        summary["last"], summary["said"] = row["at"][:10], row["said"]
    summaries = [
        {"step": step, "rule": rule, **summary} for (step, rule), summary in summary_by_rule.items()
    ]
    schema = {
        "step": pl.String,
        "rule": pl.String,
        "times": pl.Int64,
        "first": pl.String,
        "last": pl.String,
        "said": pl.String,
    }
    return pl.DataFrame(summaries, schema=schema)


def parse_journal_details(details_json: str) -> Mapping[str, Any]:
    """Parse the details of a journal row."""
    details: Mapping[str, Any] = json.loads(details_json)
    return details


def _count_current_consent_by_scope(project: Project) -> pl.DataFrame:
    from isolux.io.consent import SCOPES, compute_current_consent, read_ledger

    schema = {"kind": pl.String, "scope": pl.String, "granted": pl.Int64, "revoked": pl.Int64}
    if not project.consent_path.is_file():
        return pl.DataFrame(schema=schema)
    consent_rows = compute_current_consent(read_ledger(project.consent_path).rows)
    rows = [
        (
            person_kind,
            scope,
            int(people_rows[scope].fill_null(value=False).sum()),
            int((~people_rows[scope].fill_null(value=True)).sum()),
        )
        for (person_kind,), people_rows in consent_rows.group_by("kind", maintain_order=True)
        for scope in SCOPES
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")
