"""Which units become tasks, what annotators are shown, and answers written down.

The same unit never becomes two tasks of a stage and round, and no version of an answer is written
twice. What is shown is the photo turned upright, made smaller, with one box; it is written anew, so
that nothing of the file but its pixels leaves the project, under the task's keyed id.
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

from isolux.io.consent.chain import new_salt, seal_of
from isolux.io.images import read_image
from isolux.vocabulary.errors import UnknownNameError
from isolux_curate.annotation.answers import Answer, fault
from isolux_curate.annotation.stages import STAGES, Stage
from isolux_curate.project.database import insert_rows, writing
from isolux_curate.project.folder import Project, add_row
from isolux_curate.project.reading import (
    find_revoked_photos,
    left_out,
    read_consent,
    read_images,
    read_instances,
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
_LONGEST = 1600  # pixels: a tight box at 85 % overlap needs no more
_QUALITY = 88
_TURNED = (5, 6, 7, 8)  # Exif's orientations that change width and height


def upright(width: int, height: int, orientation: int | None) -> tuple[int, int]:
    """Give a photo's width and height once it is turned as Exif says.

    Examples
    --------
    >>> upright(400, 300, 6), upright(400, 300, None)
    ((300, 400), (400, 300))
    """
    return (height, width) if orientation in _TURNED else (width, height)


def shown(project: Project, file: str, box: Box | None = None) -> bytes:
    """Make the picture of a task, as JPEG."""
    from PIL import Image, ImageDraw

    picture = Image.fromarray(read_image(project.folder / file))
    factor = min(1.0, _LONGEST / max(picture.size))
    if factor < 1:
        size = (round(picture.width * factor), round(picture.height * factor))
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    if box is not None:
        x, y, w, h = (side * factor for side in box)
        pen = ImageDraw.Draw(picture)
        pen.rectangle((x - 2, y - 2, x + w + 2, y + h + 2), outline="black", width=1)
        pen.rectangle((x - 1, y - 1, x + w + 1, y + h + 1), outline="yellow", width=1)
    file_out = io.BytesIO()
    picture.save(file_out, "JPEG", quality=_QUALITY)
    return file_out.getvalue()


def stage_of(name: str) -> Stage:
    """Find a stage by its name.

    Examples
    --------
    >>> stage_of("skin_tone").wanted
    3
    """
    if name not in STAGES:
        raise UnknownNameError("stage of annotation", name, STAGES)
    return STAGES[name]


def plan(project: Project, stage: str) -> int:
    """Make the tasks that a stage lacks: of every unit that stands and has none that is open."""
    one = stage_of(stage)
    units = _units(project, one)
    with writing(project.engine) as connection:
        query = sa.select(tasks.c.unit_id, tasks.c.round, tasks.c.status).where(
            tasks.c.stage == stage, tasks.c.golden.is_(False)
        )
        last: dict[str, tuple[int, str]] = {}
        for unit, number, status in connection.execute(query.order_by(tasks.c.round)):
            last[unit] = (number, status)
        rows = []
        for unit, image in units.iter_rows():
            number, status = last.get(unit, (0, "redo"))
            if status == "redo":
                rows.append(task_row(project, one, number + 1, unit, image))
        insert_rows(connection, tasks, rows)
        if rows:
            said = {"tasks": len(rows), "wanted": one.wanted}
            add_row(connection, project, step="plan", rule=stage, said=said, seals=())
    return len(rows)


def _units(project: Project, stage: Stage) -> pl.DataFrame:
    if stage.unit_kind == "image":
        return read_images(project).select("image_id", image="image_id")
    people = read_instances(project)
    drawn = people.filter(pl.col("x").is_not_null())
    return drawn.select("instance_id", "image_id")


def open_tasks(stage: str, *, training: bool) -> sa.Select[Any]:
    """Ask for the tasks of a stage that nobody answered, with their photos and boxes."""
    return (
        sa.select(tasks, images.c.file, *(instances.c[side] for side in "xywh"))
        .join(images, images.c.image_id == tasks.c.image_id)
        .join(instances, instances.c.instance_id == tasks.c.unit_id, isouter=True)
        .where(tasks.c.stage == stage, tasks.c.golden.is_(training), tasks.c.status == "open")
        .order_by(tasks.c.task_id)
    )


def left_ids(project: Project) -> frozenset[str]:
    """Name photos and people who are left out now, whatever tasks were planned before."""
    gone = left_out(project)
    own = gone.filter(unit_kind="instance")["unit_id"]
    return frozenset([*gone["image_id"].drop_nulls(), *own])


def task_row(
    project: Project, stage: Stage, number: int, unit: str, image: str, *, golden: bool = False
) -> dict[str, object]:
    """Describe a task; its id is keyed, so that a server that is seen tells no unit's id."""
    text = f"{stage.name}\n{number}\n{stage.unit_kind}\n{unit}\n{golden}"
    task_id = hmac.new(project.key, text.encode(), hashlib.sha256).hexdigest()[:24]
    return {
        "task_id": task_id,
        "stage": stage.name,
        "round": number,
        "unit_kind": stage.unit_kind,
        "unit_id": unit,
        "image_id": image,
        "wanted": stage.wanted,
        "golden": golden,
        "status": "open",
        "data": {},
    }


BELOW, CHECK, GRADUATED = "below", "spot check", "graduated"


def last_passes(connection: Connection, stage: str) -> dict[str, tuple[int, float, str]]:
    """Tell each annotator's last attempt at a stage: its number, the score, the status."""
    query = sa.select(passes.c.annotator_id, passes.c.attempt, passes.c.score, passes.c.status)
    query = query.where(passes.c.stage == stage).order_by(passes.c.attempt)
    return {str(w): (int(a), float(s), str(t)) for w, a, s, t in connection.execute(query)}


def graduates(connection: Connection, stage: str) -> frozenset[str] | None:
    """List who may annotate a stage; None: anyone, as it has no golden tasks."""
    query = sa.select(sa.func.count()).select_from(tasks)
    query = query.where(tasks.c.stage == stage, tasks.c.golden.is_(True))
    if not connection.execute(query).scalar():
        return None
    last = last_passes(connection, stage)
    return frozenset(who for who, (_, _, status) in last.items() if status == GRADUATED)


class Willing:
    """Who, of a project's annotators, has not revoked that their answers are used.

    Annotators whom the ledger of consent does not know are willing: a lab may employ them.

    Parameters
    ----------
    project : Project
    """

    def __init__(self, project: Project) -> None:
        self._ledger = read_consent(project)

    def are(self, annotators: pl.Series) -> pl.Series:
        """Tell of each whether their answers may be used."""
        if self._ledger is None:
            return pl.Series([True] * len(annotators), dtype=pl.Boolean)
        allowed = self._ledger.allows("annotator", annotators.cast(pl.String), "evaluation")
        return allowed.fill_null(value=True)


STANDS, SUPERSEDED, REFUSED, SKIPPED = "stands", "superseded", "refused", "skipped"
_BARRED = "You have not graduated from the training of this stage yet."


@dataclass(frozen=True, slots=True)
class Given:
    """An answer as it came: to which task, by whom, from where, when."""

    task_id: str
    annotator_id: str
    source: str
    source_id: str
    answer: Answer
    made_at: str | None = None
    updated_at: str | None = None
    seconds: float | None = None
    skipped: bool = False


def record(project: Project, stage: Stage, given: Sequence[Given]) -> tuple[int, int]:
    """Write answers that are new, or newer versions of those that are there."""
    given = _drop_revoked(project, given)
    with writing(project.engine) as connection:
        size = sizes(connection, [one.task_id for one in given])
        held = _versions(connection, {one.source for one in given})
        may = graduates(connection, stage.name)
        golden = _golden(connection, stage.name)
        fresh: list[dict[str, Any]] = []
        older: list[str] = []
        for one in given:
            version, last_id, before = held.get((one.source, one.source_id), (0, None, None))
            if before == (one.answer, one.updated_at, one.skipped):
                continue
            if last_id is not None:
                older.append(last_id)
            barred = may is not None and one.task_id not in golden and one.annotator_id not in may
            row = _row(project, stage, one, version + 1, size[one.task_id], barred=barred)
            held[one.source, one.source_id] = (
                version + 1,
                row["annotation_id"],
                (one.answer, one.updated_at, one.skipped),
            )
            fresh.append(row)
        if not fresh:
            return 0, 0
        _know(connection, {row["annotator_id"] for row in fresh})
        refused = sum(row["status"] == REFUSED for row in fresh)
        said = {"answers": len(fresh), "newer versions": len(older), "refused": refused}
        seals = [row["seal"] for row in fresh]
        n = add_row(connection, project, step="pull", rule=stage.name, said=said, seals=seals)
        connection.execute(sa.insert(annotations_table), [row | {"n": n} for row in fresh])
        if older:
            which = annotations_table.c.annotation_id.in_(older)
            connection.execute(sa.update(annotations_table).where(which).values(status=SUPERSEDED))
    return len(fresh), refused


def _drop_revoked(project: Project, given: Sequence[Given]) -> list[Given]:
    """Leave out answers about photos of people who took their consent back."""
    revoked = find_revoked_photos(project)
    query = sa.select(tasks.c.task_id, tasks.c.image_id)
    query = query.where(tasks.c.task_id.in_({answer.task_id for answer in given}))
    image_by_task = {str(task): image for task, image in project.rows(query)}
    return [answer for answer in given if image_by_task[answer.task_id] not in revoked]


def sizes(connection: Connection, task_ids: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Tell the size of each task's photo, turned upright."""
    query = (
        sa.select(tasks.c.task_id, images.c.width, images.c.height, images.c.facts)
        .join(images, images.c.image_id == tasks.c.image_id)
        .where(tasks.c.task_id.in_(list(task_ids)))
    )
    return {
        task: upright(width or 0, height or 0, facts.get("orientation"))
        for task, width, height, facts in connection.execute(query)
    }


_Before = tuple[Answer, str | None, bool]


def _versions(
    connection: Connection, sources: set[str]
) -> dict[tuple[str, str], tuple[int, str | None, _Before | None]]:
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
    found: dict[tuple[str, str], tuple[int, str | None, _Before | None]] = {}
    for source, source_id, version, annotation_id, answer, updated in connection.execute(query):
        plain = {k: v for k, v in answer.items() if k not in ("fault", SKIPPED)}
        before = (plain, updated, bool(answer.get(SKIPPED)))
        found[source, source_id] = (version, annotation_id, before)
    return found


def _row(
    project: Project, stage: Stage, one: Given, version: int, size: tuple[int, int], *, barred: bool
) -> dict[str, Any]:
    answer, status = dict(one.answer), STANDS
    if one.skipped:
        answer, status = answer | {SKIPPED: True}, SKIPPED
    elif barred:
        answer, status = answer | {"fault": _BARRED}, REFUSED
    elif why := fault(stage, one.answer, size, project.classes):
        answer, status = answer | {"fault": why}, REFUSED
    held = asdict(one) | {"answer": answer, "version": version}
    del held["skipped"]
    # Kept apart from the server's number, which another server may have given too.
    held["annotation_id"] = seal_of(
        project.key.hex(), {"source": one.source, "source_id": one.source_id, "version": version}
    )[:24]
    salt = new_salt()
    return held | {"status": status, "salt": salt, "seal": seal_of(salt, held)}


def _golden(connection: Connection, stage: str) -> set[str]:
    query = sa.select(tasks.c.task_id).where(tasks.c.stage == stage, tasks.c.golden.is_(True))
    return {str(one) for one in connection.execute(query).scalars()}


def _know(connection: Connection, people: set[str]) -> None:
    known = set(connection.execute(sa.select(annotators.c.annotator_id)).scalars())
    new: list[dict[str, Any]] = [
        {"annotator_id": k, "region": None, "facts": {}} for k in sorted(people - known)
    ]
    insert_rows(connection, annotators, new)
