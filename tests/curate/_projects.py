"""Small projects for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from isolux_curate.intake.ingest import write_photos_people_and_facts
from isolux_curate.project.folder import Project, create_or_open_project


def project_of(
    folder: Path,
    photos: Sequence[str],
    subjects: Sequence[str] | None = None,
    database: str = "sqlite",
) -> Project:
    """Make a project of photos without files, each of a subject (default: of one of its own)."""
    project = create_or_open_project(folder, database=database, curator="ada")
    who = list(subjects or [f"s-{photo}" for photo in photos])
    write_photos_people_and_facts(
        project,
        pl.DataFrame({"image_id": list(photos)}),
        pl.DataFrame({"instance_id": list(photos), "image_id": list(photos), "subject_id": who}),
    )
    return project


def refused(reasons: dict[str, str]) -> pl.DataFrame:
    """Say which units are refused, and why."""
    schema = {"unit_id": pl.String, "reason": pl.String}
    return pl.DataFrame({"unit_id": list(reasons), "reason": list(reasons.values())}, schema=schema)
