"""Pictures of the people whom runs judged, for the local viewer: blurred unless faces are allowed.

Only where the dataset's licence or the user says that pictures may be shown. The people are loaded
anew from the dataset as it is now: who has left it, or withdrew, has no picture.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.rle import masks_from_counts
from isolux.io.images import read_image
from isolux.io.picture_folder import PictureFolder
from isolux.people.loading import judged_people
from isolux.report.gallery import refuse_unless_permitted
from isolux.verbs.audit.inputs import read_answers
from isolux.verbs.predict import is_answers, read_predicted
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Dataset, Run
from isolux.vocabulary.errors import FileError, IsoluxError
from isolux.vocabulary.spec import AuditSpec, recorded_spec
from isolux.vocabulary.tables import INSTANCES

# The boxes that a model drew itself, for a photo in the local viewer: read when first asked for.

_MOST = 20
"""Boxes of one model in one picture, the surest first: detectors draw hundreds."""


@dataclass
class Drawn:
    """What models drew in the pictures of a run.

    Parameters
    ----------
    read : callable
        Gives the table ``predictions (boxes)``, or one that may lack boxes.
    """

    read: Callable[[], pl.DataFrame]
    _held: pl.DataFrame | None = None
    _why: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, image: str | None, scale: float) -> dict[str, Any]:
        """List the boxes of a picture."""
        with self._lock:  # the server answers from several threads
            if self._held is None:
                self._held, self._why = self._taken()
        rows = self._held.filter(pl.col("image_id") == image).sort("score", descending=True)
        kept = rows.group_by("model", maintain_order=True).head(_MOST)
        boxes = [
            {
                "model": row["model"],
                "label": row["label"],
                "score": row["score"],
                "box": [row[side] * scale for side in _SIDES],
            }
            for row in kept.iter_rows(named=True)
        ]
        return {"boxes": boxes, "more": rows.height - kept.height, "why": self._why}

    def _taken(self) -> tuple[pl.DataFrame, str]:
        try:
            found = self.read()
        except IsoluxError as error:
            told = [part for part in (error.found, error.where) if part]
            return _boxes(pl.DataFrame()), ": ".join([error.problem, *told])
        return _boxes(found), ""


def drawn_by(spec: AuditSpec, dataset: Dataset) -> Drawn | None:
    """Find what a run's model drew; None: it answers no boxes, or was not kept."""
    if registry.task_info(spec.task.name).predictions != "outputs":
        return None
    folder = spec.model.answers if spec.model.spec is not None else spec.predictions.file
    if spec.model.spec is not None and folder is None:
        return None
    if folder is not None and is_answers(folder):
        return Drawn(lambda: read_predicted(folder).predictions)
    return Drawn(lambda: read_answers(spec, dataset)[0])


def _boxes(found: pl.DataFrame) -> pl.DataFrame:
    """Keep whole boxes alone, with every column that is shown."""
    types = {
        "model": pl.String,
        "image_id": pl.String,
        "label": pl.String,
        "score": pl.Float64,
        **dict.fromkeys(_SIDES, pl.Float64),
    }
    if not {"model", "image_id", *_SIDES} <= set(found.columns):
        return pl.DataFrame(schema=types)
    lacking = [pl.lit(None, types[name]).alias(name) for name in types if name not in found.columns]
    rows = found.with_columns(lacking).select(pl.col(name).cast(types[name]) for name in types)
    near = [pl.col(side).abs() < _FAR for side in _SIDES]
    return rows.drop_nulls(_SIDES).filter(near)


LONGEST_PX = 1600
"""The longer side of a picture as it is sent."""
BLUR_PERSON_PX, BLUR_PICTURE_PX = 12, 48
"""Blurred, the longer side of the person's box, and of the picture, have so many points left."""
_TINT = (255, 200, 0, 110)
_SIDES = ("box_x", "box_y", "box_w", "box_h")
_MASK = ("mask_counts", "mask_height", "mask_width")
_POINTS = ("keypoints_x", "keypoints_y", "keypoints_v")
_FAR = 1e9


@dataclass(frozen=True)
class RunPictures:
    """People's pictures by run.

    Parameters
    ----------
    root : Path
        The folder of the pictures; nothing outside it is opened.
    people : sequence of polars.DataFrame
        For each run ``unit_id, uri`` and where the person stands in the picture.
    blurred : bool
        Whether pictures are blurred until nobody can be recognised.
    drawn : sequence of Drawn or None
        For each run the boxes that its models drew; None: they drew none.
    """

    root: Path
    people: Sequence[pl.DataFrame]
    blurred: bool = True
    drawn: Sequence[Drawn | None] = ()

    def around(self, run: int, unit: str) -> dict[str, Any]:
        """Say how large the picture is as it is sent, and where the person stands in it."""
        try:
            row, pixels, scale = self._seen(run, unit)
        except FileError as error:
            return _nothing(str(error).splitlines()[0])
        box = _box(row)
        return {
            "width": pixels.shape[1],
            "height": pixels.shape[0],
            "box": None if box is None else [side * scale for side in box],
            "points": [[x * scale, y * scale] for x, y in _points(row)],
            "mask": all(row[name] is not None for name in _MASK),
            "blurred": self.blurred,
            "drawn": self._drawn(run, row.get("image_id"), scale),
            "why": "",
        }

    def _drawn(self, run: int, image: str | None, scale: float) -> dict[str, Any] | None:
        drawn = self.drawn[run] if run < len(self.drawn) else None
        return None if drawn is None else drawn.of(image, scale)

    def picture(self, run: int, unit: str) -> bytes:
        """Give the picture as JPEG, written anew: EXIF and its places stay behind."""
        from PIL import Image

        row, pixels, scale = self._seen(run, unit)
        image = Image.fromarray(pixels)
        if self.blurred:
            box = _box(row)
            person = None if box is None else scale * max(box[2], box[3])
            image = _blurred(image, person)
        held = io.BytesIO()
        image.save(held, format="JPEG", quality=85)
        return held.getvalue()

    def mask(self, run: int, unit: str) -> bytes:
        """Give the person's mask as PNG: a tint inside it, clear outside."""
        from PIL import Image

        row, pixels, _ = self._seen(run, unit)
        counts, height, width = (row[name] for name in _MASK)
        if counts is None or height is None or width is None:
            raise FileError("this person has no mask")
        tint = np.zeros((height, width, 4), np.uint8)
        tint[_within(counts, height, width)] = _TINT
        image = Image.fromarray(tint)
        image = image.resize((pixels.shape[1], pixels.shape[0]), Image.Resampling.NEAREST)
        held = io.BytesIO()
        image.save(held, format="PNG")
        return held.getvalue()

    def _seen(self, run: int, unit: str) -> tuple[dict[str, Any], Any, float]:
        rows = (
            self.people[run].filter(pl.col("unit_id") == unit) if run < len(self.people) else None
        )
        if rows is None or rows.is_empty():
            raise FileError("this person is not in the dataset as it is now")
        row = rows.row(0, named=True)
        if row["uri"] is None:
            raise FileError("the dataset names no picture of this person")
        pixels, scale = _opened(PictureFolder(self.root).file(row["uri"]))
        return row, pixels, scale


def pictures_of(
    runs: Sequence[Run],
    images: str | Path,
    *,
    withdrawn: str | Path | None = None,
    allow_unmatched: bool = False,
    may_show: bool = False,
    show_faces: bool = False,
) -> RunPictures:
    """Find the pictures of the people whom runs judged."""
    root = Path(images).expanduser()
    if not root.is_dir():
        raise FileError("there is no such folder of images", where=str(root))
    people, drawn = [], []
    for run in runs:
        spec = recorded_spec(run.record)
        if withdrawn is not None:
            left = {"withdrawn": str(withdrawn), "allow_unmatched": allow_unmatched}
            spec = spec.model_copy(update={"people": spec.people.model_copy(update=left)})
        dataset = judged_people(spec)
        refuse_unless_permitted(dataset.info, may_show=may_show)
        people.append(_rows(dataset, run))
        drawn.append(drawn_by(spec, dataset))
    return RunPictures(root, people, blurred=not show_faces, drawn=drawn)


def _rows(dataset: Dataset, run: Run) -> pl.DataFrame:
    people = INSTANCES.conform(dataset.instances)
    shown = (*_SIDES, *_MASK, *_POINTS)
    lacking = [pl.lit(None).alias(name) for name in shown if name not in people.columns]
    people = people.with_columns(lacking)
    if "uri" in dataset.images.columns:
        paths = dataset.images.select("image_id", "uri")
        people = people.join(paths, on="image_id", how="left", maintain_order="left")
    else:
        people = people.with_columns(uri=pl.lit(None, pl.String))
    judged = run.scores["unit_id"].unique()
    return people.select(
        *shown, "image_id", unit_id="instance_id", uri=pl.coalesce("uri", "image_id")
    ).filter(pl.col("unit_id").is_in(judged.implode()))


@lru_cache(maxsize=4)
def _opened(path: Path) -> tuple[Any, float]:
    """Read a picture, and make a large one smaller: its pixels, and by what they were scaled."""
    from PIL import Image

    pixels = read_image(path)
    longest = max(pixels.shape[:2])
    if longest <= LONGEST_PX:
        return pixels, 1.0
    scale = LONGEST_PX / longest
    size = (max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale)))
    return np.asarray(Image.fromarray(pixels).resize(size)), scale


def _blurred(image: Any, person_px: float | None) -> Any:
    """Leave so few points that no face is known again: not this person's, and no other's."""
    from PIL import Image

    shrink = BLUR_PICTURE_PX / max(image.size)
    if person_px:
        shrink = min(shrink, BLUR_PERSON_PX / person_px)
    few = (max(1, round(image.width * shrink)), max(1, round(image.height * shrink)))
    small = image.resize(few, Image.Resampling.BOX)
    return small.resize(image.size, Image.Resampling.BICUBIC)


def _within(counts: str, height: int, width: int) -> npt.NDArray[np.bool_]:
    runs = masks_from_counts([counts], np.array([height]), np.array([width]))
    turns = np.zeros(height * width + 1, np.int8)
    turns[runs.edges[::2]] += 1
    turns[runs.edges[1::2]] -= 1
    # Positions are counted down the columns.
    return np.cumsum(turns[:-1]).astype(bool).reshape(width, height).T


def _box(row: dict[str, Any]) -> list[float] | None:
    sides = [row[name] for name in _SIDES]
    known = [float(side) for side in sides if side is not None and abs(side) < _FAR]
    return known if len(known) == len(sides) else None


def _points(row: dict[str, Any]) -> list[tuple[float, float]]:
    xs, ys, seen = (row[name] or [] for name in _POINTS)
    marks = seen or [1.0] * len(xs)
    return [
        (float(x), float(y))
        for x, y, v in zip(xs, ys, marks, strict=True)
        if x is not None and y is not None and v != 0 and abs(x) < _FAR and abs(y) < _FAR
    ]


def _nothing(why: str) -> dict[str, Any]:
    return {
        "width": 0,
        "height": 0,
        "box": None,
        "points": [],
        "mask": False,
        "blurred": False,
        "drawn": None,
        "why": why,
    }
