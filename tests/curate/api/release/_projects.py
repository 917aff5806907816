"""A small project that may be published: photos, boxes, tones by three annotators, consent."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from isolux_curate.annotation.sheets import (
    import_and_apply_sheet_answers,
    plan_and_write_open_tasks,
)
from isolux_curate.api.consent import append_grants_or_revocations
from isolux_curate.api.release import ReleaseResult, write_and_journal_release
from isolux_curate.api.release.release_files import PublicationSettings
from isolux_curate.intake.ingest import ingest_sheet_photos
from isolux_curate.project.folder import Project
from isolux_curate.project.queries import read_people_in_photos
from tests.curate.annotation._projects import annotated_project

ALL = ("evaluation", "publication")


def project_to_publish(folder: Path, photos: int = 40) -> Project:
    """Make a project; of subjects s0 to s3 consent is lacking, revoked, for evaluation, or none."""
    project = annotated_project(folder, photos)
    rows = "".join(
        f"s{k},{20 + k % 50},{'young' if k % 4 else 'old'},{('Chile', 'Peru')[k % 2]},{150 + k}\n"
        for k in range(photos)
    )
    (folder / "subjects.csv").write_text("subject_id,age,age_group,country,height_cm\n" + rows)
    ingest_sheet_photos(
        project,
        folder / "photos.csv",
        photo_folder=folder / "in",
        subject_sheet=folder / "subjects.csv",
    )
    draw(folder, project, photos)
    agreed = [f"s{k}" for k in range(photos) if k not in (0, 2)]
    append_grants_or_revocations(project.consent_path, "grant", who=agreed, scope=ALL)
    append_grants_or_revocations(project.consent_path, "grant", who=["s2"], scope=("evaluation",))
    append_grants_or_revocations(project.consent_path, "revoke", who=["s1"], scope=("publication",))
    return project


def draw(folder: Path, project: Project, photos: int) -> None:
    """Draw a box in each photo, and let three annotators say tones."""
    plan_and_write_open_tasks(project, "boxes", folder / "boxes")
    rows = "".join(f"{k},nurse,{10 + k},20,100,200\n" for k in range(photos))
    (folder / "boxes.csv").write_text("image_id,label,x,y,w,h\n" + rows)
    import_and_apply_sheet_answers(project, "boxes", folder / "boxes.csv", default_annotator="ada")
    plan_and_write_open_tasks(project, "skin_tone", folder / "tones")
    tasks = pl.read_csv(folder / "tones/tasks.csv", infer_schema=False)["instance_id"]
    drawn = read_people_in_photos(project).filter(pl.col("instance_id").is_in(tasks.implode()))
    units = drawn.sort(pl.col("image_id").cast(pl.Int64))["instance_id"]  # names are random
    said = []
    for k, unit in enumerate(units):
        for who, tones in (("x", (k % 8 + 1, k % 8 + 2)), ("y", (k % 8 + 1, k % 8 + 2)),
                           ("z", (k % 8 + 2, k % 8 + 3))):  # fmt: skip
            said += [f"{unit},{who},perceived skin tone,{tone}" for tone in tones]
            said += [f"{unit},{who},{q},yes" for q in ("is the box tight?", "is the class right?")]
    (folder / "tones.csv").write_text("instance_id,annotator,question,answer\n" + "\n".join(said))
    import_and_apply_sheet_answers(project, "skin_tone", folder / "tones.csv")


def published(folder: Path, project: Project, **settings: Any) -> ReleaseResult:
    said = {
        name: settings.pop(name)
        for name in PublicationSettings.__struct_fields__
        if name in settings
    }
    settings = {"attribute": ["age_group", "country"]} | settings
    project = replace(project, publish={"publish_min": 3} | said)
    return write_and_journal_release(project, out=folder / "out", key=folder / "key", **settings)
