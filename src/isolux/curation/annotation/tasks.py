"""What annotators are shown: the photo turned upright, made smaller, without Exif, with one box.

The picture is written anew, so that nothing of the file but its pixels leaves the project. Its name
on the server is the task's keyed id.
"""

from __future__ import annotations

import hashlib
import hmac
import io

import polars as pl
import sqlalchemy as sa

from isolux.curation.annotation.stages import STAGES, Stage
from isolux.curation.project.database import writing
from isolux.curation.project.folder import Project
from isolux.curation.project.journal import add_row
from isolux.curation.project.reading import left_out, read_images, read_instances
from isolux.curation.project.tables import tasks
from isolux.io.images import read_image
from isolux.vocabulary.errors import UnknownNameError

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
        if rows:
            connection.execute(sa.insert(tasks), rows)
            said = {"tasks": len(rows), "wanted": one.wanted}
            add_row(connection, project, step="plan", rule=stage, said=said, seals=())
    return len(rows)


def _units(project: Project, stage: Stage) -> pl.DataFrame:
    if stage.unit_kind == "image":
        return read_images(project).select("image_id", image="image_id")
    people = read_instances(project)
    drawn = people.filter(pl.col("x").is_not_null())
    return drawn.select("instance_id", "image_id")


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
        "task_id": task_id, "stage": stage.name, "round": number, "unit_kind": stage.unit_kind,
        "unit_id": unit, "image_id": image, "wanted": stage.wanted, "golden": golden,
        "status": "open", "data": {},
    }  # fmt: skip
