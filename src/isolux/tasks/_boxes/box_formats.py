"""Formats of boxes, and whether predictions fit their images in the declared format.

Corners read as width and height still overlap people, only less: the audit runs, and every number
is wrong. The annotations decide: the format under which predictions overlap people most is taken
to be the right one. The same comparison finds predictions that belong to other images.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import IsoluxError, JoinError, SpecError, TableError
from isolux.core.notes import Caution
from isolux.geometry.boxes import XYWH_CONVERSIONS, BoxColumns
from isolux.geometry.matching import OverlapPairs
from isolux.tasks._boxes.image_coverage import caution_on_empty_images
from isolux.tasks._boxes.instance_tables import (
    BOX,
    AnnotatedInstances,
    ModelDetections,
    box_columns,
)
from isolux.tasks._boxes.preview import (
    PreviewImages,
    build_mean_iou,
    check_duplicates,
    image_sizes_px,
    preview_mean_iou,
    select_preview,
)
from isolux.tasks._boxes.scales import (
    caution_on_box_margins,
    check_image_scale,
    check_keypoint_scale,
)

BoxFormat = Literal["xywh", "xyxy", "cxcywh", "yxhw", "yxyx", "xywhn", "xyxyn", "cxcywhn"]
"""Left, top, width, height; two corners; the centre and the sides; ``y`` before ``x``; with ``n``,
as shares of the image's sides."""

FloatArray = npt.NDArray[np.float64]
# Rows whose edges are compared at once.
_BLOCK_ROWS = 1 << 14
# Another format must raise the average IoU by this much to be preferred ...
_MIN_IOU_GAIN = 0.05
# ... and reach this average, so that two formats that both fit badly refuse nothing.
_MIN_CONVINCING_IOU = 0.3
# A caution from this share of boxes outside their images.
_MAX_OUTSIDE_SHARE = 0.2
# The file with this many more boxes outside its images is the one with x and y exchanged.
_MIN_OUTSIDE_DIFFERENCE = 0.02


def to_xywh(frame: pl.DataFrame, box_format: BoxFormat, images: pl.DataFrame) -> pl.DataFrame:
    """Convert the four columns of boxes from ``box_format`` to left, top, width, height.

    Examples
    --------
    >>> corners = pl.DataFrame({"image_id": ["1"], "box_x": [10.0], "box_y": [20.0],
    ...     "box_w": [30.0], "box_h": [60.0]})
    >>> to_xywh(corners, "xyxy", pl.DataFrame()).row(0)
    ('1', 10.0, 20.0, 20.0, 40.0)
    """
    if box_format == "xywh" or not frame.height:
        return frame
    coordinates = [frame[name].cast(pl.Float64).to_numpy() for name in BOX]
    if box_format.endswith("n"):
        sizes = image_sizes_px(frame["image_id"], images)
        if sizes is None:
            raise SpecError(
                f"box_format={box_format} needs the sizes of the pictures",
                expected="a dataset whose images have width and height",
                found="none",
            )
        coordinates = [
            values * side_px for values, side_px in zip(coordinates, (*sizes, *sizes), strict=True)
        ]
    box = XYWH_CONVERSIONS[box_format.removesuffix("n")](*coordinates)
    # Corners read as sides never give this; sides read as corners do, for most boxes.
    is_negative = (box.width < 0) | (box.height < 0)
    if is_negative.any():
        row = int(np.flatnonzero(is_negative)[0])
        raise TableError(
            f"{int(is_negative.sum()):,} box(es) have a negative side when read as {box_format}",
            expected=f"four numbers that are {box_format}",
            found=str([frame[name][row] for name in BOX]),
            where=f"predictions, row {row + 1}",
        )
    xywh_columns = zip(BOX, (box.x, box.y, box.width, box.height), strict=True)
    return frame.with_columns(
        pl.Series(name, values).fill_nan(None) for name, values in xywh_columns
    )


def check_predictions(
    predictions: ModelDetections,
    people: AnnotatedInstances,
    find_pairs: Callable[[ModelDetections, AnnotatedInstances], OverlapPairs],
) -> list[str]:
    """Check that predictions fit their images and their format; return notes."""
    duplicate_notes = check_duplicates(predictions)
    # An image without people may well have no prediction, so only images with scored people count.
    person_images = np.unique(people.truths.image[people.scored.to_numpy()])
    empty_image_notes = caution_on_empty_images(
        person_images, np.asarray(predictions.detections.image), predictions.model
    )
    notes = [
        *duplicate_notes,
        *_caution_on_score_range(predictions),
        *_caution_on_boxes_outside(predictions, people),
        *empty_image_notes,
    ]
    preview = select_preview(predictions, people)
    if preview is None:
        return notes
    has_boxes = (
        set(BOX) <= set(predictions.rows.columns) and not predictions.rows["box_x"].is_null().any()
    )
    if has_boxes and people.rows["box_x"].is_not_null().any():
        _check_box_format(preview, people)
        notes += caution_on_box_margins(preview, people)
    if {"keypoints_x"} <= set(predictions.rows.columns) & set(people.rows.columns):
        check_keypoint_scale(preview, people)
    mean_iou = preview_mean_iou(find_pairs(preview.predictions, people), preview)
    _refuse_shifted_images(preview, people, find_pairs, mean_iou)
    return notes


def _check_box_format(preview: PreviewImages, people: AnnotatedInstances) -> None:
    """Refuse boxes that overlap people far better in another format or at another scale."""
    boxes = box_columns(preview.predictions.rows)
    coordinates = (boxes.x, boxes.y, boxes.width, boxes.height)
    mean_iou = build_mean_iou(preview, people)
    xywh_iou = mean_iou(boxes)
    iou_by_format = {
        name: mean_iou(convert(*coordinates))
        for name, convert in XYWH_CONVERSIONS.items()
        # The declared format has been applied by now, so "xywh" stands for what the user declared.
        if name != "xywh"
    }
    sizes = image_sizes_px(preview.predictions.rows["image_id"], people.images)
    # Coordinates of at most 2 may be shares of the image's sides.
    if sizes is not None and all(np.nanmax(np.abs(c), initial=0) <= 2 for c in coordinates):
        scaled_coordinates = [
            c * side_px for c, side_px in zip(coordinates, (*sizes, *sizes), strict=True)
        ]
        iou_by_format |= {
            f"{n}n": mean_iou(XYWH_CONVERSIONS[n](*scaled_coordinates))
            for n in ("xywh", "xyxy", "cxcywh")
        }
    best = max(iou_by_format, key=lambda name: iou_by_format[name])
    if (
        # Both conditions: a weak model overlaps few people in any format, and by chance slightly
        # more in a wrong one; only a clear gain that ends in a real match is evidence.
        iou_by_format[best] >= _MIN_CONVINCING_IOU
        and iou_by_format[best] > xywh_iou + _MIN_IOU_GAIN
    ):
        raise _build_format_error(preview, people, best, (iou_by_format[best], xywh_iou))
    check_image_scale(preview, people, xywh_iou)


def _build_format_error(
    preview: PreviewImages, people: AnnotatedInstances, best: str, ious: tuple[float, float]
) -> TableError:
    """Build the error of boxes in another format, with what to do."""
    boxes, model = box_columns(preview.predictions.rows), preview.predictions.model
    row = [round(float(c[0]), 2) for c in (boxes.x, boxes.y, boxes.width, boxes.height)]
    expected = "left, top, width, height in pixels"
    observed = (
        f"{row}; read as {best} they overlap people by {ious[0]:.2f} on average, read as xywh"
        f" by {ious[1]:.2f}"
    )
    hint = f"--option box_format={best} (box_format={best!r})"
    problem = f"the boxes of {model!r} are {best}, and were read as xywh"
    if best == "yxhw":  # then the dataset's boxes, read so, overlap the predictions as well
        predicted_outside = _share_beyond_image_edge(
            boxes, preview.predictions.rows["image_id"], people
        )
        annotated_outside = _share_beyond_image_edge(
            box_columns(people.rows), people.rows["image_id"], people
        )
        turn = "and width and height) in the annotations"
        if annotated_outside > predicted_outside + _MIN_OUTSIDE_DIFFERENCE:
            problem = "the boxes of the dataset have x and y exchanged"
            expected = f"boxes inside their pictures, as those of {model!r} are"
            observed = (
                f"{100 * annotated_outside:.0f} % of the dataset's boxes leave their pictures, of"
                f" the predictions {100 * predicted_outside:.0f} %"
            )
            hint = f"exchange x and y ({turn}"
        elif abs(annotated_outside - predicted_outside) <= _MIN_OUTSIDE_DIFFERENCE:
            problem = f"the boxes of {model!r} have x and y exchanged, or those of the dataset have"
            hint = (
                f"if it is the predictions: {hint}; if it is the dataset, exchange x and y in the"
                " annotations"
            )
    return TableError(problem, expected=expected, found=observed, hint=hint)


def _share_beyond_image_edge(
    box: BoxColumns, image_ids: pl.Series, people: AnnotatedInstances
) -> float:
    """Return the share of boxes that leave their images by more than rounding."""
    sizes = image_sizes_px(image_ids, people.images)
    if sizes is None:
        return 0.0
    # One pixel and 1 % are the rounding of coordinates and of image sizes.
    is_outside = (box.x + box.width > 1.01 * sizes[0] + 1) | (
        box.y + box.height > 1.01 * sizes[1] + 1
    )
    return float(is_outside.mean())


def _refuse_shifted_images(
    preview: PreviewImages,
    people: AnnotatedInstances,
    find_pairs: Callable[[ModelDetections, AnnotatedInstances], OverlapPairs],
    own_iou: float,
) -> None:
    """Refuse predictions shifted by one image."""
    if len(preview.image_numbers) < 10:
        return

    def mean_iou_shifted(offset: int) -> float:
        try:
            return preview_mean_iou(find_pairs(preview.shift_images(offset), people), preview)
        except IsoluxError:
            return 0.0  # masks of images of unequal sizes cannot be exchanged

    # One row too many or too few where image ids were written shifts all by one.
    for offset, neighbour in ((1, "next"), (-1, "last")):
        shifted_iou = mean_iou_shifted(offset)
        # Four times the gain that formats need: neighbours in a video overlap each other's people
        # too.
        if shifted_iou >= _MIN_CONVINCING_IOU and shifted_iou > own_iou + 4 * _MIN_IOU_GAIN:
            raise JoinError(
                f"the predictions of {preview.predictions.model!r} belong to other pictures",
                expected="each prediction under the picture that it is about",
                found=f"overlap of {own_iou:.2f} with people in their own picture, and of"
                f" {shifted_iou:.2f} with those of the {neighbour} one",
                hint="a row was lost or put in where picture ids were written",
            )


def _caution_on_score_range(predictions: ModelDetections) -> list[Caution]:
    """Caution where scores are not within 0 to 1."""
    score = predictions.detections.score
    # Softmax in single precision may exceed 1 by rounding.
    if not len(score) or (score.min() >= 0 and score.max() <= 1 + 1e-6):
        return []
    text = (
        f"Scores of {predictions.model!r} run from {score.min():g} to {score.max():g}, not from 0"
        " to 1"
    )
    return [
        Caution(f"{text}: their order is used unchanged, and a score threshold is on that scale.")
    ]


def _caution_on_boxes_outside(
    predictions: ModelDetections, people: AnnotatedInstances
) -> list[Caution]:
    """Caution where many boxes leave their image by more than a tenth of its side."""
    images, n = people.images.sort("image"), predictions.rows.height
    sizes = image_sizes_px(images["image_id"], images)
    if not set(BOX) <= set(predictions.rows.columns) or not n or sizes is None:
        return []
    box, n_outside = box_columns(predictions.rows), 0
    # In blocks that stay in the cache: whole columns would pass through memory a dozen times.
    for start in range(0, n, _BLOCK_ROWS):
        block = slice(start, start + _BLOCK_ROWS)
        width, height = (size[predictions.detections.image[block]] for size in sizes)
        x, y = box.x[block], box.y[block]
        right, lower = x + box.width[block], y + box.height[block]
        # A tenth of the side: detectors extend the boxes of truncated people slightly over the
        # edge.
        is_outside = (x < -0.1 * width) | (y < -0.1 * height)
        n_outside += int((is_outside | (right > 1.1 * width) | (lower > 1.1 * height)).sum())
    if n_outside <= _MAX_OUTSIDE_SHARE * n:
        return []
    return [
        Caution(
            f"{n_outside:,} of {n:,} boxes of {predictions.model!r} leave their pictures by a"
            " tenth of a side or more. Are they left, top, width, height in pixels? --option"
            " box_format names other orders."
        )
    ]
