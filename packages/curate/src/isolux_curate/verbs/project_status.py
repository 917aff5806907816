"""Where a project of curation stands: its funnel, and whom each step left out more than others.

Leaving photos out changes who is in a dataset: FHIBE found older people, lighter skin tones and
some ancestries more often among those that it excluded (Sony AI 2025, Methods, "Detection and
removal of suspicious images"). Each step is therefore audited as a model's answers would be: the
share left out by group, with the intervals and tests of ``isolux.audit``, subjects as clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from isolux.verbs.audit import audit
from isolux.vocabulary.errors import UnknownNameError
from isolux.vocabulary.notes import Caution

if TYPE_CHECKING:
    from isolux_curate.project.folder import Project

_FEW = 2  # groups, below which nothing can differ


@dataclass(frozen=True, slots=True)
class Status:
    """Where a project stands.

    Parameters
    ----------
    funnel : polars.DataFrame
        As of ``isolux_curate.project.funnel``.
    shifts : polars.DataFrame
        One row a step, attribute and group: ``step, attribute, group, came, left`` (people in
        photos), ``left_share, share_before, share_after`` (of the group among everyone, 0 to 1),
        ``difference, low, high`` (share left out, the group's minus everyone's), ``p_adjusted``
        (over all groups and pairs of the step), ``status``; null where the group is too small to be
        judged.
    notes : tuple of str
    """

    funnel: pl.DataFrame
    shifts: pl.DataFrame
    notes: tuple[str, ...] = ()


def project_status(project: Project, *, by: Sequence[str] = ()) -> Status:
    """Reckon the funnel, and whom each step left out."""
    from isolux_curate.project.reading import first_reasons, funnel

    table = funnel(project)
    people = _people(project, by) if by else None
    found: list[pl.DataFrame] = []
    notes: list[str] = []
    if people is not None:
        left = first_reasons(project)
        here = people
        for step in table["step"].unique(maintain_order=True):
            out = left.filter(step=step)["image_id"]
            if not out.len():
                continue
            value = pl.col("image_id").is_in(out.implode()).cast(pl.Float64)
            judged = here.with_columns(value=value)
            found.append(_shift(judged, step, by))
            here = judged.filter(pl.col("value") == 0).drop("value")
        notes += _unknown(people, by)
    shifts = pl.concat(found) if found else pl.DataFrame(schema=_SCHEMA)
    return Status(table, shifts, tuple(notes))


_SCHEMA = {
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


def _people(project: Project, by: Sequence[str]) -> pl.DataFrame:
    from isolux_curate.project.decisions import came_in
    from isolux_curate.project.reading import read_instances, with_facts_of_subjects

    people = read_instances(project, everything=True).filter(pl.col("origin") == "submitted")
    joined = with_facts_of_subjects(project, people)
    for name in by:
        if name not in joined.columns:
            raise UnknownNameError("fact", name, joined.columns, where="the project")
    came = came_in(project)["image_id"]
    joined = joined.filter(pl.col("image_id").is_in(came.implode()))
    return joined.select(
        "image_id",
        unit_id="instance_id",
        cluster_id="subject_id",
        **{name: pl.col(name).cast(pl.String) for name in by},
    )


def _unknown(people: pl.DataFrame, by: Sequence[str]) -> list[str]:
    told: list[str] = []
    for name in by:
        missing = people[name].null_count()
        if missing:
            told.append(
                Caution(
                    f"{missing:,} of {people.height:,} people in photos have no {name!r}: they are"
                    " in no group."
                )
            )
    return told


def _shift(people: pl.DataFrame, step: str, by: Sequence[str]) -> pl.DataFrame:
    """Compare groups by the share that one step left out."""
    scores = people.with_columns(metric=pl.lit("left out"), task=pl.lit(step))
    asked = [name for name in by if people[name].drop_nulls().n_unique() >= _FEW]
    tests = pl.DataFrame(schema=_TESTS)
    if asked:
        run = audit(scores, by=asked).run
        tests = run.disparities.filter(kind="difference_to_overall").select(
            "attribute", "low", "high", "p_adjusted", "status", group="group_a", difference="value"
        )
    rows = []
    for name in by:
        here = people.drop_nulls(name)
        total, kept = here.height, here.height - int(here["value"].sum())
        counted = here.group_by(group=pl.col(name)).agg(came=pl.len(), left=pl.col("value").sum())
        rows.append(
            counted.with_columns(
                step=pl.lit(step),
                attribute=pl.lit(name),
                left_share=pl.col("left") / pl.col("came"),
                share_before=pl.col("came") / total,
                share_after=(pl.col("came") - pl.col("left")) / (kept or None),
            )
        )
    table = pl.concat(rows, how="vertical_relaxed").join(
        tests, on=["attribute", "group"], how="left"
    )
    return table.select(pl.col(n).cast(t) for n, t in _SCHEMA.items()).sort("attribute", "group")


_TESTS = {
    name: _SCHEMA[name]
    for name in ("attribute", "low", "high", "p_adjusted", "status", "group", "difference")
}
