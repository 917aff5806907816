"""The status of a curation project: funnel, annotation, revocations; whom each step excluded.

Excluding photos changes who is in a dataset: FHIBE found older people, lighter skin tones and some
ancestries more often among those that it excluded (Sony AI 2025, Methods, "Detection and removal of
suspicious images"). Each step is therefore audited like a model's predictions: the share excluded
by group, with the intervals and tests of ``isolux.audit``, subjects as clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from isolux.api.audit import audit
from isolux.core.errors import UnknownNameError
from isolux.core.formatting import pluralise
from isolux.core.notes import Caution
from isolux.io.consent import Ledger
from isolux_curate.annotation.stages import STAGES
from isolux_curate.annotation.tasks import read_excluded_unit_ids
from isolux_curate.project.folder import Project, verify_journal_and_seals
from isolux_curate.project.queries import (
    CONSENT_KINDS,
    join_subject_facts,
    read_database_table,
    read_first_exclusion_by_photo,
    read_people_in_photos,
    read_verified_consent_or_none,
    tabulate_project_funnel,
)
from isolux_curate.project.verdicts import read_arrived_photos

_MIN_GROUPS = 2  # groups that a comparison needs


@dataclass(frozen=True, slots=True)
class ProjectStatus:
    """The status of a project.

    Parameters
    ----------
    funnel : polars.DataFrame
        One row a step and rule: ``step, rule, left, refused, remain``.
    shifts : polars.DataFrame
        One row a step, attribute and group: ``step, attribute, group, came, left`` (people in
        photos), ``left_share, share_before, share_after`` (of the group among everyone, 0 to 1),
        ``difference, low, high`` (share left out, the group's minus everyone's), ``p_adjusted``
        (over all groups and pairs of the step), ``status``; null where the group is too small to be
        judged.
    annotation : polars.DataFrame
        One row a stage with tasks: ``stage, open, done, redo`` (units by their last round's task),
        ``left`` (units that left the project after their task was planned).
    n_journal_rows : int
        Rows of the journal; they verify, with the verdicts and answers of each.
    n_ledger_rows : int or None
        Rows of the consent ledger, which verify; None: there is no ledger.
    notes : tuple of str
    """

    funnel: pl.DataFrame
    shifts: pl.DataFrame
    annotation: pl.DataFrame
    n_journal_rows: int
    n_ledger_rows: int | None
    notes: tuple[str, ...] = ()


def compute_funnel_and_group_exclusions(
    project: Project, *, by: Sequence[str] = ()
) -> ProjectStatus:
    """Compute the funnel, and compare groups by the share that each step excluded.

    Journal and ledger are verified first; what does not verify is refused.
    """
    n_journal_rows = verify_journal_and_seals(project)
    ledger = read_verified_consent_or_none(project)
    table = tabulate_project_funnel(project)
    people = _read_people_in_arrived_photos(project, by) if by else None
    shift_tables: list[pl.DataFrame] = []
    notes: list[str] = [] if ledger is None else _caution_on_waiting_revocations(project, ledger)
    if people is not None:
        exclusion_reasons = read_first_exclusion_by_photo(project)
        remaining_people = people
        for step in table["step"].unique(maintain_order=True):
            excluded_ids = exclusion_reasons.filter(step=step)["image_id"]
            if not excluded_ids.len():
                continue
            is_excluded = pl.col("image_id").is_in(excluded_ids.implode()).cast(pl.Float64)
            scored_people = remaining_people.with_columns(value=is_excluded)
            shift_tables.append(_compare_exclusion_by_group(scored_people, step, by))
            remaining_people = scored_people.filter(pl.col("value") == 0).drop("value")
        notes += _caution_on_missing_facts(people, by)
    shifts = pl.concat(shift_tables) if shift_tables else pl.DataFrame(schema=_SHIFT_SCHEMA)
    return ProjectStatus(
        table,
        shifts,
        _count_units_by_stage_and_task_status(project),
        n_journal_rows,
        None if ledger is None else len(ledger.rows),
        tuple(notes),
    )


_TASK_STATUSES = ("open", "done", "redo")


def _count_units_by_stage_and_task_status(project: Project) -> pl.DataFrame:
    """Count each stage's units by the status of their last task, those that left by themselves."""
    excluded_ids = list(read_excluded_unit_ids(project))
    has_left = pl.col("unit_id").is_in(excluded_ids) | pl.col("image_id").is_in(excluded_ids)
    last_tasks = (
        read_database_table(project, "tasks")
        .filter(~pl.col("golden"))
        .sort("round")
        .unique(["stage", "unit_id"], keep="last")
        .with_columns(status=pl.when(has_left).then(pl.lit("left")).otherwise("status"))
    )
    return (
        last_tasks.group_by(pl.col("stage").cast(pl.Enum(list(STAGES))))
        .agg((pl.col("status") == name).sum().alias(name) for name in (*_TASK_STATUSES, "left"))
        .sort("stage")
    )


def _caution_on_waiting_revocations(project: Project, ledger: Ledger) -> list[str]:
    """Caution on people who revoked their consent and are still in the project."""
    people = read_people_in_photos(project, include_excluded=True)
    notes: list[str] = []
    for person_kind, _, column in CONSENT_KINDS:
        if column not in people.columns:
            continue
        is_allowed = ledger.allows(person_kind, people[column].cast(pl.String), "evaluation")
        waiting = people.filter(~is_allowed.fill_null(value=True))
        if waiting.is_empty():
            continue
        holder = "subject" if person_kind == "subject" else "copyright holder"
        notes.append(
            Caution(
                f"{pluralise(waiting[column].n_unique(), holder)} who took their consent back:"
                f" still in the project, in {pluralise(waiting['image_id'].n_unique(), 'photo')}"
                f" that no step uses. `isolux withdraw {project.folder} --replay`, with your runs"
                " and published folders, removes them."
            )
        )
    return notes


_SHIFT_SCHEMA = {
    "step": pl.String,
    "attribute": pl.String,
    "group": pl.String,
    "came": pl.Int64,
    "left": pl.Int64,
    "left_share": pl.Float64,
    "share_before": pl.Float64,
    "share_after": pl.Float64,
    "difference": pl.Float64,
    "low": pl.Float64,
    "high": pl.Float64,
    "p_adjusted": pl.Float64,
    "status": pl.String,
}


def _read_people_in_arrived_photos(project: Project, fact_columns: Sequence[str]) -> pl.DataFrame:

    people = read_people_in_photos(project, include_excluded=True).filter(
        pl.col("origin") == "submitted"
    )
    people_facts = join_subject_facts(project, people)
    for name in fact_columns:
        if name not in people_facts.columns:
            raise UnknownNameError("fact", name, people_facts.columns, where="the project")
    arrived_ids = read_arrived_photos(project)["image_id"]
    people_facts = people_facts.filter(pl.col("image_id").is_in(arrived_ids.implode()))
    return people_facts.select(
        "image_id",
        unit_id="instance_id",
        cluster_id="subject_id",
        **{name: pl.col(name).cast(pl.String) for name in fact_columns},
    )


def _caution_on_missing_facts(people: pl.DataFrame, fact_columns: Sequence[str]) -> list[str]:
    notes: list[str] = []
    for name in fact_columns:
        missing = people[name].null_count()
        if missing:
            notes.append(
                Caution(
                    f"{missing:,} of {people.height:,} people in photos have no {name!r}: they are"
                    " in no group."
                )
            )
    return notes


def _compare_exclusion_by_group(
    people: pl.DataFrame, step: str, fact_columns: Sequence[str]
) -> pl.DataFrame:
    """Compare groups by the share of people that one step excluded."""
    scores = people.with_columns(metric=pl.lit("left out"), task=pl.lit(step))
    tested_attributes = [
        name for name in fact_columns if people[name].drop_nulls().n_unique() >= _MIN_GROUPS
    ]
    tests = pl.DataFrame(schema=_TEST_SCHEMA)
    if tested_attributes:
        run = audit(scores, by=tested_attributes).run
        tests = run.disparities.filter(kind="difference_to_overall").select(
            "attribute", "low", "high", "p_adjusted", "status", group="group_a", difference="value"
        )
    rows = []
    for name in fact_columns:
        known_people = people.drop_nulls(name)
        n_people, n_remaining = (
            known_people.height,
            known_people.height - int(known_people["value"].sum()),
        )
        counts = known_people.group_by(group=pl.col(name)).agg(
            came=pl.len(), left=pl.col("value").sum()
        )
        rows.append(
            counts.with_columns(
                step=pl.lit(step),
                attribute=pl.lit(name),
                left_share=pl.col("left") / pl.col("came"),
                share_before=pl.col("came") / n_people,
                share_after=(pl.col("came") - pl.col("left")) / (n_remaining or None),
            )
        )
    table = pl.concat(rows, how="vertical_relaxed").join(
        tests, on=["attribute", "group"], how="left"
    )
    return table.select(pl.col(n).cast(t) for n, t in _SHIFT_SCHEMA.items()).sort(
        "attribute", "group"
    )


_TEST_SCHEMA = {
    name: _SHIFT_SCHEMA[name]
    for name in ("attribute", "low", "high", "p_adjusted", "status", "group", "difference")
}
