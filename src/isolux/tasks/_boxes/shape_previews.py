"""Previews of people and predictions for the checks that follow scoring (``plausibility``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.schema import to_polars
from isolux.geometry.boxes import box_pairs_xywh
from isolux.geometry.masks import masks_from_counts
from isolux.geometry.matching import Detections, Truths
from isolux.geometry.previews import ShapePreview, ShapeRows
from isolux.tasks._boxes.image_coverage import distinct_values
from isolux.tasks._boxes.instance_tables import BOX, AnnotatedInstances
from isolux.tasks._boxes.preview import thin_crowds

# With fewer people or predictions a similarity is too noisy; more tell nothing new.
_MIN_ROWS, _MAX_IMAGES, _MAX_PEOPLE = 20, 300, 2_000
# Of each image as many predictions as people or this many, those of the highest scores, and this
# many of the lowest, which are the surest where scores are the wrong way round.
_MIN_DETECTIONS = 25
# From this overlap on a prediction is about someone, if not about them alone.
_MIN_UNSCORED_IOU = 0.3


@dataclass(frozen=True, slots=True)
class PreviewRows:
    """Which people (rows of ``people.rows``) and which of one model's rows a preview holds."""

    model: str
    person_rows: npt.NDArray[np.int64]
    predicted: pl.DataFrame

    def build(
        self, people: AnnotatedInstances, person_label: str | Sequence[str] | None
    ) -> ShapePreview:
        """Build the preview of these rows."""
        image_numbers = np.unique(people.truths.image[self.person_rows])
        rows = people.rows[self.person_rows]
        label = _read_labels(rows.select(pl.col("classes").list.first())["classes"])
        predicted_label = _read_labels(self.predicted["label"])
        judged_labels = [person_label] if isinstance(person_label, str) else person_label
        judged_labels = people.classes if people.classes is not None else judged_labels
        is_judged = np.ones(len(predicted_label), np.bool_)
        if judged_labels is not None:
            is_judged = np.isin(predicted_label.astype(str), list(judged_labels))
        sizes = people.images.sort("image")[image_numbers].select("width", "height")
        image = self.predicted["image"].to_numpy()
        predicted_boxes = _stack_predicted_boxes(self.predicted)
        return ShapePreview(
            self.model,
            ShapeRows(
                np.searchsorted(image_numbers, people.truths.image[self.person_rows]),
                _stack_boxes(rows),
                label,
            ),
            ShapeRows(np.searchsorted(image_numbers, image), predicted_boxes, predicted_label),
            self.predicted["score"].cast(pl.Float64).to_numpy(),
            is_judged,
            self._lie_on_unscored(people, image, predicted_boxes),
            sizes.cast(pl.Float64).to_numpy(),
        )

    def _lie_on_unscored(
        self,
        people: AnnotatedInstances,
        image: npt.NDArray[np.int64],
        predicted_boxes: npt.NDArray[np.float64],
    ) -> npt.NDArray[np.bool_]:
        """Return whether each prediction overlaps someone who is not scored: ``[n]``."""
        is_unscored = np.isin(people.truths.image, image)
        is_unscored[self.person_rows] = False
        rows = np.flatnonzero(is_unscored)
        pairs = box_pairs_xywh(
            Detections(image, np.ones(len(image))),
            Truths(people.truths.image[rows], crowd=people.truths.is_crowd[rows]),
            predicted_boxes,
            _stack_boxes(people.rows[rows]),
            lowest_iou=_MIN_UNSCORED_IOU,
        )
        return np.isin(np.arange(len(image)), pairs.detection)


def select_preview_rows(predictions: object, people: AnnotatedInstances) -> list[PreviewRows]:
    """Select people of some images, and the predictions there of each model that has enough."""
    person_rows = _select_people(people)
    if len(person_rows) < _MIN_ROWS:
        return []
    images = people.images.select("image_id", "image")
    n_people = pl.DataFrame({"image": people.truths.image[person_rows]}).group_by("image")
    images = images.join(n_people.agg(n_people=pl.len()), on="image")
    frame = to_polars(predictions).with_columns(pl.col("image_id").cast(pl.String))
    frame = frame.filter(pl.col("image_id").is_in(images["image_id"].implode()))
    frame = frame.join(images, on="image_id", maintain_order="left")
    if "label" not in frame.columns:
        frame = frame.with_columns(label=pl.lit(None, dtype=pl.String))
    models = distinct_values(frame, "model") if "model" in frame.columns else []
    rank = pl.col("score").rank("ordinal", descending=True).over("image")
    n_top = pl.max_horizontal("n_people", pl.lit(_MIN_DETECTIONS))
    is_selected = (rank <= n_top) | (rank > pl.len().over("image") - _MIN_DETECTIONS)
    previews = []
    for model in models or ["model"]:
        rows = frame.filter(model=model) if len(models) > 1 else frame
        rows = rows.filter(is_selected)
        image = rows["image"].to_numpy()
        kept_people = thin_crowds(person_rows, people.truths.image, image)
        previews.append(PreviewRows(model, kept_people, rows))
    return [rows for rows in previews if rows.predicted.height >= _MIN_ROWS]


def _select_people(people: AnnotatedInstances) -> npt.NDArray[np.int64]:
    """Select the rows of scored people in evenly spaced images."""
    is_scored = people.scored.to_numpy() & ~np.asarray(people.truths.ignore)
    images = np.unique(people.truths.image[is_scored])
    n_people_per_image = max(is_scored.sum() / max(len(images), 1), 1.0)
    n_crowded = max(int(_MAX_PEOPLE / n_people_per_image), _MIN_ROWS)
    n_images = min(len(images), _MAX_IMAGES, n_crowded)
    images = images[np.linspace(0, len(images) - 1, n_images).astype(np.int64)]
    return np.flatnonzero(is_scored & np.isin(people.truths.image, images))


def build_previews(
    predictions: object, people: AnnotatedInstances, person_label: str | Sequence[str] | None
) -> tuple[ShapePreview, ...]:
    """Build a preview of boxes, or of the boxes around predicted masks, for each model."""
    if not set(BOX) <= set(people.rows.columns):
        return ()
    return tuple(
        rows.build(people, person_label) for rows in select_preview_rows(predictions, people)
    )


def _read_labels(names: pl.Series) -> npt.NDArray[np.object_]:
    return np.array(names.cast(pl.String).to_list(), dtype=object)


def _stack_boxes(rows: pl.DataFrame) -> npt.NDArray[np.float64]:
    """Stack boxes ``[n, 4]``; zeros where there is none."""
    if not set(BOX) <= set(rows.columns):
        return np.zeros((rows.height, 4))
    boxes = np.column_stack([rows[name].cast(pl.Float64).to_numpy() for name in BOX])
    return np.where(np.isfinite(boxes).all(axis=1, keepdims=True), boxes, 0.0)


def _list_extremes(axis: str) -> tuple[pl.Expr, pl.Expr]:
    """Return the lowest and highest coordinate of predicted joints; one at 0 is missing."""
    coordinates = pl.col(f"keypoints_{axis}").list.eval(pl.element().filter(pl.element() != 0))
    return coordinates.list.min(), coordinates.list.max()


_MIN_X, _MAX_X = _list_extremes("x")
_MIN_Y, _MAX_Y = _list_extremes("y")
_BOX_OF_JOINTS = {
    "box_x": _MIN_X,
    "box_y": _MIN_Y,
    "box_w": _MAX_X - _MIN_X,
    "box_h": _MAX_Y - _MIN_Y,
}


def _stack_predicted_boxes(rows: pl.DataFrame) -> npt.NDArray[np.float64]:
    if "keypoints_x" in rows.columns:
        return _stack_boxes(rows.select(**_BOX_OF_JOINTS))
    if "mask_counts" not in rows.columns:
        return _stack_boxes(rows)
    sizes = (rows[name].cast(pl.Int64).to_numpy() for name in ("mask_height", "mask_width"))
    return masks_from_counts(rows["mask_counts"], *sizes, file="predictions").box_xywh
