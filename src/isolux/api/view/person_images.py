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

from isolux.api.audit.inputs import read_predictions
from isolux.api.predict import is_answers, read_prediction_dir
from isolux.core import registry
from isolux.core.containers import Dataset, Run
from isolux.core.errors import FileError, IsoluxError
from isolux.core.spec import AuditSpec, read_recorded_spec
from isolux.core.tables import INSTANCES
from isolux.geometry.rle import masks_from_counts
from isolux.io.image_folder import ImageFolder
from isolux.io.images import read_image
from isolux.people.loading import load_audit_people
from isolux.people.synthetic import find_synthetic_marker_file
from isolux.report.error_gallery import check_image_permission

# Predicted boxes for an image in the local viewer: read when first requested.

_MAX_BOXES = 20
"""Boxes of one model per image, most confident first: detectors output hundreds."""


@dataclass
class PredictedBoxes:
    """The boxes that a run's models predicted, read when first requested.

    Parameters
    ----------
    read : callable
        Gives the table ``predictions (boxes)``, or one that may lack boxes.
    """

    read: Callable[[], pl.DataFrame]
    _box_rows: pl.DataFrame | None = None
    _reason: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def list_boxes(self, image: str | None, scale: float) -> dict[str, Any]:
        """List the predicted boxes of an image."""
        with self._lock:  # the server answers from several threads
            if self._box_rows is None:
                self._box_rows, self._reason = self._read_boxes()
        rows = self._box_rows.filter(pl.col("image_id") == image).sort("score", descending=True)
        selected_rows = rows.group_by("model", maintain_order=True).head(_MAX_BOXES)
        boxes = [
            {
                "model": row["model"],
                "label": row["label"],
                "score": row["score"],
                "box": [row[column] * scale for column in _BOX_COLUMNS],
            }
            for row in selected_rows.iter_rows(named=True)
        ]
        return {"boxes": boxes, "more": rows.height - selected_rows.height, "why": self._reason}

    def _read_boxes(self) -> tuple[pl.DataFrame, str]:
        try:
            predictions = self.read()
        except IsoluxError as error:
            details = [detail for detail in (error.found, error.where) if detail]
            return _select_boxes(pl.DataFrame()), ": ".join([error.problem, *details])
        return _select_boxes(predictions), ""


def find_predicted_boxes(spec: AuditSpec, dataset: Dataset) -> PredictedBoxes | None:
    """Find a run's predicted boxes; None: its task has none, or they were not stored."""
    if registry.task_info(spec.task.name).predictions != "outputs":
        return None
    folder = spec.model.answers if spec.model.spec is not None else spec.predictions.file
    if spec.model.spec is not None and folder is None:
        return None
    if folder is not None and is_answers(folder):
        return PredictedBoxes(lambda: read_prediction_dir(folder).predictions)
    return PredictedBoxes(lambda: read_predictions(spec, dataset)[0])


def _select_boxes(predictions: pl.DataFrame) -> pl.DataFrame:
    """Select complete, plausible boxes, with every displayed column."""
    types = {
        "model": pl.String,
        "image_id": pl.String,
        "label": pl.String,
        "score": pl.Float64,
        **dict.fromkeys(_BOX_COLUMNS, pl.Float64),
    }
    if not {"model", "image_id", *_BOX_COLUMNS} <= set(predictions.columns):
        return pl.DataFrame(schema=types)
    missing_columns = [
        pl.lit(None, types[name]).alias(name) for name in types if name not in predictions.columns
    ]
    rows = predictions.with_columns(missing_columns).select(
        pl.col(name).cast(types[name]) for name in types
    )
    is_plausible = [pl.col(column).abs() < _MAX_COORDINATE_PX for column in _BOX_COLUMNS]
    return rows.drop_nulls(_BOX_COLUMNS).filter(is_plausible)


MAX_SIDE_PX = 1600
"""The longer side of a picture as it is sent."""
BLUR_PERSON_PX, BLUR_IMAGE_PX = 12, 48
"""Blurring reduces the longer side of the person's box, and of the image, to so many pixels."""
_MASK_COLOUR = (255, 200, 0, 110)
_BOX_COLUMNS = ("box_x", "box_y", "box_w", "box_h")
_MASK_COLUMNS = ("mask_counts", "mask_height", "mask_width")
_KEYPOINT_COLUMNS = ("keypoints_x", "keypoints_y", "keypoints_v")
_MAX_COORDINATE_PX = 1e9
THUMBNAIL_PX = 192
_THUMBNAIL_MARGIN = 0.25  # of the box's longer side, on each side


@dataclass(frozen=True)
class RunImages:
    """People's pictures by run.

    Parameters
    ----------
    root : Path
        The folder of the pictures; nothing outside it is opened.
    people : sequence of polars.DataFrame
        For each run ``unit_id, uri`` and where the person stands in the picture.
    blurred : bool
        Whether pictures are blurred until nobody can be recognised.
    predicted_boxes : sequence of PredictedBoxes or None
        For each run the boxes that its models drew; None: they drew none.
    """

    root: Path
    people: Sequence[pl.DataFrame]
    blurred: bool = True
    predicted_boxes: Sequence[PredictedBoxes | None] = ()

    def around(self, run: int, unit: str) -> dict[str, Any]:
        """Say how large the picture is as it is sent, and where the person stands in it."""
        try:
            row, pixels, scale = self._find_person(run, unit)
        except FileError as error:
            return _build_no_image_answer(str(error).splitlines()[0])
        box = _read_box(row)
        return {
            "width": pixels.shape[1],
            "height": pixels.shape[0],
            "box": None if box is None else [edge_px * scale for edge_px in box],
            "points": [[x * scale, y * scale] for x, y in _read_points(row)],
            "mask": all(row[name] is not None for name in _MASK_COLUMNS),
            "blurred": self.blurred,
            "drawn": self._list_predicted(run, row.get("image_id"), scale),
            "why": "",
        }

    def _list_predicted(self, run: int, image: str | None, scale: float) -> dict[str, Any] | None:
        run_boxes = self.predicted_boxes[run] if run < len(self.predicted_boxes) else None
        return None if run_boxes is None else run_boxes.list_boxes(image, scale)

    def picture(self, run: int, unit: str) -> bytes:
        """Give the picture as JPEG, written anew: EXIF and its places stay behind."""
        image, _ = self._read_picture(run, unit)
        return _to_jpeg(image)

    def thumbnail(self, run: int, unit: str) -> bytes:
        """Give a small JPEG of the person: what is around their box, or the whole picture."""
        image, box = self._read_picture(run, unit)
        if box is not None:
            x, y, width, height = box
            margin = _THUMBNAIL_MARGIN * max(width, height)
            edges = (x - margin, y - margin, x + width + margin, y + height + margin)
            x1, y1, x2, y2 = (
                min(max(round(edge), 0), limit)
                for edge, limit in zip(edges, image.size * 2, strict=True)
            )
            if x1 < x2 and y1 < y2:
                image = image.crop((x1, y1, x2, y2))
        image.thumbnail((THUMBNAIL_PX, THUMBNAIL_PX))
        return _to_jpeg(image)

    def _read_picture(self, run: int, unit: str) -> tuple[Any, list[float] | None]:
        """Read the picture, blurred unless faces may be shown, and the box in its pixels."""
        from PIL import Image

        row, pixels, scale = self._find_person(run, unit)
        box = _read_box(row)
        scaled_box = None if box is None else [scale * edge for edge in box]
        image = Image.fromarray(pixels)
        if self.blurred:
            image = _blur_image(image, None if scaled_box is None else max(scaled_box[2:]))
        return image, scaled_box

    def mask(self, run: int, unit: str) -> bytes:
        """Give the person's mask as PNG: a tint inside it, clear outside."""
        from PIL import Image

        row, pixels, _ = self._find_person(run, unit)
        counts, height, width = (row[name] for name in _MASK_COLUMNS)
        if counts is None or height is None or width is None:
            raise FileError("this person has no mask")
        tint = np.zeros((height, width, 4), np.uint8)
        tint[_decode_mask(counts, height, width)] = _MASK_COLOUR
        image = Image.fromarray(tint)
        image = image.resize((pixels.shape[1], pixels.shape[0]), Image.Resampling.NEAREST)
        buffer = io.BytesIO()
        image.save(buffer, format="PNG")
        return buffer.getvalue()

    def _find_person(self, run: int, unit: str) -> tuple[dict[str, Any], Any, float]:
        rows = (
            self.people[run].filter(pl.col("unit_id") == unit) if run < len(self.people) else None
        )
        if rows is None or rows.is_empty():
            raise FileError("this person is not in the dataset as it is now")
        row = rows.row(0, named=True)
        if row["uri"] is None:
            raise FileError("the dataset names no picture of this person")
        pixels, scale = _read_downscaled_image(ImageFolder(self.root).find_file(row["uri"]))
        return row, pixels, scale


def find_person_images(
    runs: Sequence[Run],
    images: str | Path,
    *,
    withdrawn: str | Path | None = None,
    allow_unmatched: bool = False,
    may_show: bool = False,
    show_faces: bool = False,
) -> RunImages:
    """Find the pictures of the people whom runs judged."""
    root = Path(images).expanduser()
    if not root.is_dir():
        raise FileError("there is no such folder of images", where=str(root))
    # Synthetic pictures show nobody, whichever dataset's layout they are written in.
    may_show = may_show or find_synthetic_marker_file([root]) is not None
    people, predicted_boxes = [], []
    for run in runs:
        spec = read_recorded_spec(run.record)
        if withdrawn is not None:
            consent_settings = {"withdrawn": str(withdrawn), "allow_unmatched": allow_unmatched}
            spec = spec.model_copy(
                update={"people": spec.people.model_copy(update=consent_settings)}
            )
        dataset = load_audit_people(spec)
        check_image_permission(dataset.info, may_show=may_show)
        people.append(_build_person_rows(dataset, run))
        predicted_boxes.append(find_predicted_boxes(spec, dataset))
    return RunImages(root, people, blurred=not show_faces, predicted_boxes=predicted_boxes)


def _build_person_rows(dataset: Dataset, run: Run) -> pl.DataFrame:
    people = INSTANCES.conform(dataset.instances)
    columns = (*_BOX_COLUMNS, *_MASK_COLUMNS, *_KEYPOINT_COLUMNS)
    missing_columns = [pl.lit(None).alias(name) for name in columns if name not in people.columns]
    people = people.with_columns(missing_columns)
    if "uri" in dataset.images.columns:
        paths = dataset.images.select("image_id", "uri")
        people = people.join(paths, on="image_id", how="left", maintain_order="left")
    else:
        people = people.with_columns(uri=pl.lit(None, pl.String))
    scored_ids = run.scores["unit_id"].unique()
    return people.select(
        *columns, "image_id", unit_id="instance_id", uri=pl.coalesce("uri", "image_id")
    ).filter(pl.col("unit_id").is_in(scored_ids.implode()))


@lru_cache(maxsize=4)
def _read_downscaled_image(path: Path) -> tuple[Any, float]:
    """Read an image, downscaled if large: its pixels and the scale."""
    from PIL import Image

    pixels = read_image(path)
    longer_side_px = max(pixels.shape[:2])
    if longer_side_px <= MAX_SIDE_PX:
        return pixels, 1.0
    scale = MAX_SIDE_PX / longer_side_px
    size = (max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale)))
    return np.asarray(Image.fromarray(pixels).resize(size)), scale


def _to_jpeg(image: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG", quality=85)
    return buffer.getvalue()


def _blur_image(image: Any, person_px: float | None) -> Any:
    """Blur an image until no face in it can be recognised."""
    from PIL import Image

    reduction = BLUR_IMAGE_PX / max(image.size)
    if person_px:
        reduction = min(reduction, BLUR_PERSON_PX / person_px)
    reduced_size = (max(1, round(image.width * reduction)), max(1, round(image.height * reduction)))
    reduced_image = image.resize(reduced_size, Image.Resampling.BOX)
    return reduced_image.resize(image.size, Image.Resampling.BICUBIC)


def _decode_mask(counts: str, height: int, width: int) -> npt.NDArray[np.bool_]:
    runs = masks_from_counts([counts], np.array([height]), np.array([width]))
    transitions = np.zeros(height * width + 1, np.int8)
    transitions[runs.edges[::2]] += 1
    transitions[runs.edges[1::2]] -= 1
    # Positions are counted down the columns.
    return np.cumsum(transitions[:-1]).astype(bool).reshape(width, height).T


def _read_box(row: dict[str, Any]) -> list[float] | None:
    edges = [row[name] for name in _BOX_COLUMNS]
    valid_edges = [
        float(edge) for edge in edges if edge is not None and abs(edge) < _MAX_COORDINATE_PX
    ]
    return valid_edges if len(valid_edges) == len(edges) else None


def _read_points(row: dict[str, Any]) -> list[tuple[float, float]]:
    xs, ys, visibility = (row[name] or [] for name in _KEYPOINT_COLUMNS)
    flags = visibility or [1.0] * len(xs)
    return [
        (float(x), float(y))
        for x, y, v in zip(xs, ys, flags, strict=True)
        if x is not None
        and y is not None
        and v != 0
        and abs(x) < _MAX_COORDINATE_PX
        and abs(y) < _MAX_COORDINATE_PX
    ]


def _build_no_image_answer(reason: str) -> dict[str, Any]:
    return {
        "width": 0,
        "height": 0,
        "box": None,
        "points": [],
        "mask": False,
        "blurred": False,
        "drawn": None,
        "why": reason,
    }
