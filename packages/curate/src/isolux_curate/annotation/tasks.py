"""Plan tasks from units, render their images, and store answers.

A unit has at most one task in each stage and round, and each version of an answer is stored once.
Annotators see the photo upright, downscaled, with one box; the image is encoded anew, so that only
pixels of the file leave the project, under the task's keyed id.
"""

from __future__ import annotations

import hashlib
import hmac
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl
import sqlalchemy as sa
from sqlalchemy.engine import Connection

from isolux.core.errors import SpecError, UnknownNameError
from isolux.io.consent.chain import compute_commitment, new_salt
from isolux.io.images import read_image
from isolux_curate.annotation.answer_format import Answer, describe_answer_fault
from isolux_curate.annotation.stages import STAGES, AnnotationStage
from isolux_curate.project.database import insert_rows, open_write_transaction
from isolux_curate.project.folder import Project, append_signed_journal_row
from isolux_curate.project.queries import (
    find_photos_of_revoked_consent,
    read_exclusions_with_reasons,
    read_images,
    read_people_in_photos,
    read_verified_consent_or_none,
)
from isolux_curate.project.tables import (
    annotations_table,
    annotators,
    images,
    instances,
    passes,
    tasks,
)

Box = tuple[float, float, float, float]
"""x, y, w, h in pixels of the photo turned upright."""
_MAX_SIDE_PX = 1600  # pixels: a tight box at 85 % overlap needs no more
_JPEG_QUALITY = 88
_TRANSPOSED_ORIENTATIONS = (5, 6, 7, 8)  # Exif's orientations that change width and height


def compute_upright_size(width: int, height: int, exif_orientation: int | None) -> tuple[int, int]:
    """Compute a photo's upright width and height from its Exif orientation.

    Examples
    --------
    >>> compute_upright_size(400, 300, 6), compute_upright_size(400, 300, None)
    ((300, 400), (400, 300))
    """
    return (height, width) if exif_orientation in _TRANSPOSED_ORIENTATIONS else (width, height)


def render_task_jpeg(project: Project, file: str, box: Box | None = None) -> bytes:
    """Render the image of a task as JPEG."""
    from PIL import Image, ImageDraw

    picture = Image.fromarray(read_image(project.folder / file))
    factor = min(1.0, _MAX_SIDE_PX / max(picture.size))
    if factor < 1:
        size = (round(picture.width * factor), round(picture.height * factor))
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    if box is not None:
        x, y, w, h = (coordinate * factor for coordinate in box)
        pen = ImageDraw.Draw(picture)
        pen.rectangle((x - 2, y - 2, x + w + 2, y + h + 2), outline="black", width=1)
        pen.rectangle((x - 1, y - 1, x + w + 1, y + h + 1), outline="yellow", width=1)
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=_JPEG_QUALITY)
    return buffer.getvalue()


def find_stage(name: str) -> AnnotationStage:
    """Find a stage by its name.

    Examples
    --------
    >>> find_stage("skin_tone").n_annotators
    3
    """
    if name not in STAGES:
        raise UnknownNameError("stage of annotation", name, STAGES)
    return STAGES[name]


def plan_new_and_redo_tasks(project: Project, stage: str) -> int:
    """Plan tasks for each current unit that has none or whose last one is to be redone."""
    stage_spec = find_stage(stage)
    units = _read_annotation_units(project, stage_spec)
    with open_write_transaction(project.engine) as connection:
        query = sa.select(tasks.c.unit_id, tasks.c.round, tasks.c.status).where(
            tasks.c.stage == stage, tasks.c.golden.is_(False)
        )
        last_task_by_unit: dict[str, tuple[int, str]] = {}
        for unit, round_number, status in connection.execute(query.order_by(tasks.c.round)):
            last_task_by_unit[unit] = (round_number, status)
        rows = []
        for unit, image in units.iter_rows():
            round_number, status = last_task_by_unit.get(unit, (0, "redo"))
            if status == "redo":
                rows.append(build_task_row(project, stage_spec, round_number + 1, unit, image))
        insert_rows(connection, tasks, rows)
        if rows:
            details = {"tasks": len(rows), "wanted": stage_spec.n_annotators}
            append_signed_journal_row(
                connection, project, step="plan", rule=stage, details=details, seals=()
            )
    return len(rows)


def _read_annotation_units(project: Project, stage: AnnotationStage) -> pl.DataFrame:
    if stage.unit_kind == "image":
        return read_images(project).select("image_id", image="image_id")
    if read_people_in_photos(project, include_excluded=True).drop_nulls("x").is_empty():
        raise SpecError(
            f"the stage {stage.name} is about people in boxes, and no box was drawn yet",
            expected="answers of the stage boxes",
            where=str(project.folder),
            hint=f"isolux curate push {project.folder} --stage boxes --server URL, then pull",
        )
    return read_people_in_photos(project).drop_nulls("x").select("instance_id", "image_id")


def build_open_tasks_query(stage: str, *, training: bool) -> sa.Select[Any]:
    """Build the query of a stage's open tasks, with their photos and boxes."""
    return (
        sa.select(tasks, images.c.file, *(instances.c[column] for column in "xywh"))
        .join(images, images.c.image_id == tasks.c.image_id)
        .join(instances, instances.c.instance_id == tasks.c.unit_id, isouter=True)
        .where(tasks.c.stage == stage, tasks.c.golden.is_(training), tasks.c.status == "open")
        .order_by(tasks.c.task_id)
    )


def read_excluded_unit_ids(project: Project) -> frozenset[str]:
    """Read the ids of photos and people that are excluded now."""
    exclusions = read_exclusions_with_reasons(project)
    instance_ids = exclusions.filter(unit_kind="instance")["unit_id"]
    return frozenset([*exclusions["image_id"].drop_nulls(), *instance_ids])


def build_task_row(
    project: Project,
    stage: AnnotationStage,
    round_number: int,
    unit: str,
    image: str,
    *,
    is_golden: bool = False,
) -> dict[str, object]:
    """Build a task's row; its id is a keyed hash, so that the server learns no unit's id."""
    text = f"{stage.name}\n{round_number}\n{stage.unit_kind}\n{unit}\n{is_golden}"
    task_id = hmac.new(project.key, text.encode(), hashlib.sha256).hexdigest()[:24]
    return {
        "task_id": task_id,
        "stage": stage.name,
        "round": round_number,
        "unit_kind": stage.unit_kind,
        "unit_id": unit,
        "image_id": image,
        "wanted": stage.n_annotators,
        "golden": is_golden,
        "status": "open",
        "data": {},
    }


BELOW_THRESHOLD, NEEDS_SPOT_CHECK, GRADUATED = "below", "spot check", "graduated"


def read_last_training_attempts(
    connection: Connection, stage: str
) -> dict[str, tuple[int, float, str]]:
    """Read each annotator's last attempt at a stage: its number, score and status."""
    query = sa.select(passes.c.annotator_id, passes.c.attempt, passes.c.score, passes.c.status)
    query = query.where(passes.c.stage == stage).order_by(passes.c.attempt)
    return {str(w): (int(a), float(s), str(t)) for w, a, s, t in connection.execute(query)}


def read_allowed_annotators_or_anyone(connection: Connection, stage: str) -> frozenset[str] | None:
    """Read who may annotate a stage; None: anyone, as it has no golden tasks."""
    query = sa.select(sa.func.count()).select_from(tasks)
    query = query.where(tasks.c.stage == stage, tasks.c.golden.is_(True))
    if not connection.execute(query).scalar():
        return None
    last_attempts = read_last_training_attempts(connection, stage)
    return frozenset(
        annotator_id
        for annotator_id, (_, _, status) in last_attempts.items()
        if status == GRADUATED
    )


class ConsentingAnnotators:
    """The annotators of a project who have not revoked the use of their answers.

    Annotators who are not in the consent ledger count as consenting: a lab may employ them.

    Parameters
    ----------
    project : Project
    """

    def __init__(self, project: Project) -> None:
        self._ledger = read_verified_consent_or_none(project)

    def flag_allowed(self, annotator_ids: pl.Series) -> pl.Series:
        """Flag annotators whose answers may be used."""
        if self._ledger is None:
            return pl.Series([True] * len(annotator_ids), dtype=pl.Boolean)
        allowed = self._ledger.allows("annotator", annotator_ids.cast(pl.String), "evaluation")
        return allowed.fill_null(value=True)


STANDS, SUPERSEDED, REFUSED, SKIPPED = "stands", "superseded", "refused", "skipped"
_BARRED = "You have not graduated from the training of this stage yet."


@dataclass(frozen=True, slots=True)
class SubmittedAnswer:
    """An answer as submitted; its fields are columns of the table ``annotations``."""

    task_id: str
    annotator_id: str
    source: str
    source_id: str
    answer: Answer
    made_at: str | None = None
    updated_at: str | None = None
    seconds: float | None = None
    skipped: bool = False


def record_new_and_changed_answers(
    project: Project, stage: AnnotationStage, answers: Sequence[SubmittedAnswer]
) -> tuple[int, int]:
    """Store new answers and newer versions; the numbers of new and of refused ones."""
    answers = _drop_answers_about_revoked_photos(project, answers)
    with open_write_transaction(project.engine) as connection:
        photo_sizes = read_upright_sizes_by_task(connection, [answer.task_id for answer in answers])
        versions = _read_last_answer_versions(connection, {answer.source for answer in answers})
        graduate_ids = read_allowed_annotators_or_anyone(connection, stage.name)
        golden_ids = _read_golden_task_ids(connection, stage.name)
        new_rows: list[dict[str, Any]] = []
        superseded_ids: list[str] = []
        for answer in answers:
            version, last_id, previous_answer = versions.get(
                (answer.source, answer.source_id), (0, None, None)
            )
            if previous_answer == (answer.answer, answer.updated_at, answer.skipped):
                continue
            if last_id is not None:
                superseded_ids.append(last_id)
            is_barred = (
                graduate_ids is not None
                and answer.task_id not in golden_ids
                and answer.annotator_id not in graduate_ids
            )
            row = _build_annotation_row(
                project,
                stage,
                answer,
                version + 1,
                photo_sizes[answer.task_id],
                is_barred=is_barred,
            )
            versions[answer.source, answer.source_id] = (
                version + 1,
                row["annotation_id"],
                (answer.answer, answer.updated_at, answer.skipped),
            )
            new_rows.append(row)
        if not new_rows:
            return 0, 0
        _insert_missing_annotators(connection, {row["annotator_id"] for row in new_rows})
        refused = sum(row["status"] == REFUSED for row in new_rows)
        details = {
            "answers": len(new_rows),
            "newer versions": len(superseded_ids),
            "refused": refused,
        }
        seals = [row["seal"] for row in new_rows]
        n = append_signed_journal_row(
            connection, project, step="pull", rule=stage.name, details=details, seals=seals
        )
        connection.execute(sa.insert(annotations_table), [row | {"n": n} for row in new_rows])
        if superseded_ids:
            is_superseded = annotations_table.c.annotation_id.in_(superseded_ids)
            connection.execute(
                sa.update(annotations_table).where(is_superseded).values(status=SUPERSEDED)
            )
    return len(new_rows), refused


def _drop_answers_about_revoked_photos(
    project: Project, answers: Sequence[SubmittedAnswer]
) -> list[SubmittedAnswer]:
    """Exclude answers about photos of people who revoked their consent."""
    revoked = find_photos_of_revoked_consent(project)
    query = sa.select(tasks.c.task_id, tasks.c.image_id)
    query = query.where(tasks.c.task_id.in_({answer.task_id for answer in answers}))
    image_by_task = {str(task): image for task, image in project.fetch_rows(query)}
    return [answer for answer in answers if image_by_task[answer.task_id] not in revoked]


def read_upright_sizes_by_task(
    connection: Connection, task_ids: Sequence[str]
) -> dict[str, tuple[int, int]]:
    """Read the upright size (width, height) of each task's photo."""
    query = (
        sa.select(tasks.c.task_id, images.c.width, images.c.height, images.c.facts)
        .join(images, images.c.image_id == tasks.c.image_id)
        .where(tasks.c.task_id.in_(list(task_ids)))
    )
    return {
        task: compute_upright_size(width or 0, height or 0, facts.get("orientation"))
        for task, width, height, facts in connection.execute(query)
    }


_PreviousAnswer = tuple[Answer, str | None, bool]


def _read_last_answer_versions(
    connection: Connection, sources: set[str]
) -> dict[tuple[str, str], tuple[int, str | None, _PreviousAnswer | None]]:
    table = annotations_table.c
    query = (
        sa.select(
            table.source,
            table.source_id,
            table.version,
            table.annotation_id,
            table.answer,
            table.updated_at,
        )
        .where(table.source.in_(list(sources)))
        .order_by(table.version)
    )
    versions: dict[tuple[str, str], tuple[int, str | None, _PreviousAnswer | None]] = {}
    for source, source_id, version, annotation_id, answer, updated in connection.execute(query):
        answer_fields = {k: v for k, v in answer.items() if k not in ("fault", SKIPPED)}
        previous_answer = (answer_fields, updated, bool(answer.get(SKIPPED)))
        versions[source, source_id] = (version, annotation_id, previous_answer)
    return versions


def _build_annotation_row(
    project: Project,
    stage: AnnotationStage,
    submitted_answer: SubmittedAnswer,
    version: int,
    photo_size: tuple[int, int],
    *,
    is_barred: bool,
) -> dict[str, Any]:
    answer, status = dict(submitted_answer.answer), STANDS
    if submitted_answer.skipped:
        answer, status = answer | {SKIPPED: True}, SKIPPED
    elif is_barred:
        answer, status = answer | {"fault": _BARRED}, REFUSED
    elif reason := describe_answer_fault(
        stage, submitted_answer.answer, photo_size, project.classes
    ):
        answer, status = answer | {"fault": reason}, REFUSED
    fields = asdict(submitted_answer) | {"answer": answer, "version": version}
    del fields["skipped"]
    # Our own id: two servers may use the same number.
    fields["annotation_id"] = compute_commitment(
        project.key.hex(),
        {
            "source": submitted_answer.source,
            "source_id": submitted_answer.source_id,
            "version": version,
        },
    )[:24]
    salt = new_salt()
    return fields | {"status": status, "salt": salt, "seal": compute_commitment(salt, fields)}


def _read_golden_task_ids(connection: Connection, stage: str) -> set[str]:
    query = sa.select(tasks.c.task_id).where(tasks.c.stage == stage, tasks.c.golden.is_(True))
    return {str(task_id) for task_id in connection.execute(query).scalars()}


def _insert_missing_annotators(connection: Connection, annotator_ids: set[str]) -> None:
    existing_ids = set(connection.execute(sa.select(annotators.c.annotator_id)).scalars())
    new_rows: list[dict[str, Any]] = [
        {"annotator_id": k, "region": None, "facts": {}}
        for k in sorted(annotator_ids - existing_ids)
    ]
    insert_rows(connection, annotators, new_rows)
