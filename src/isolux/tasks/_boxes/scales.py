"""Boxes in pixels of images of another size, and boxes larger than the dataset's.

A model that got images of 640 pixels gives boxes in pixels of that size. Read unchanged they still
lie in the image and overlap some people a little. The annotations decide: the image size under
which boxes overlap people most is taken to be the size that the model saw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import TableError
from isolux.core.notes import Caution
from isolux.geometry.boxes import BoxColumns, box_pairs_xywh
from isolux.tasks._boxes.instance_tables import BOX, AnnotatedInstances, box_columns
from isolux.tasks._boxes.preview import PreviewImages, build_mean_iou, image_sizes_px

FloatArray = npt.NDArray[np.float64]
# As in the check of box formats.
_MIN_IOU_GAIN, _MIN_CONVINCING_IOU = 0.05, 0.3
# Boxes around keypoints vary more, since a few wrong keypoints stretch them.
_MIN_CONVINCING_IOU_POINTS = 0.5
# A more complex explanation must raise the average IoU by this much over a simpler one.
_MIN_GAIN_OVER_SIMPLER = 0.02
# Grids of factors: 1/1.7 to 1.7 for the search, 2 % either way for the refinement.
# Neighbouring factors differ by 2.4 %, so the refinement of 2 % either way leaves no gap.
_COARSE_FACTORS = 1.7 ** np.linspace(-1, 1, 45)
_FINE_FACTORS = 1.02 ** np.linspace(-1, 1, 9)
# Margins are measured on pairs from this IoU, if there are at least so many pairs.
_MIN_MATCH_IOU = 0.3
_MIN_MATCHES = 30
# A caution from this median ratio of sides to 1, or 1 to it.
_MIN_RELATIVE_MARGIN = 0.1

_BoxScaling = Callable[[float], BoxColumns]


def check_image_scale(
    preview: PreviewImages,
    people: AnnotatedInstances,
    baseline_iou: float,
    *,
    min_iou: float = _MIN_CONVINCING_IOU,
) -> None:
    """Refuse boxes that overlap people far better in pixels of another image size."""
    top_preview = _keep_highest_scores(preview, people)
    mean_iou = build_mean_iou(top_preview, people)
    unscaled_iou = mean_iou(box_columns(top_preview.predictions.rows))
    # A margin around people is no other scale: then smaller boxes at the same centres fit as well.
    # The other scalings must beat this one.
    centred_iou, _ = _fit_scale(mean_iou, 1.0, _scaling_about_centres(top_preview))
    best_iou, best_scale, best_name = baseline_iou, 1.0, ""
    for name, start, scale_boxes in _candidate_scalings(top_preview, people):
        iou, fitted_scale = _fit_scale(mean_iou, start, scale_boxes)
        if (
            # Scalings are tried from simple to complex, so a common factor wins over sides that fit
            # equally.
            iou > max(best_iou, centred_iou) + _MIN_GAIN_OVER_SIMPLER
            and iou > unscaled_iou + _MIN_IOU_GAIN
        ):
            best_iou, best_scale, best_name = iou, fitted_scale, name
    if best_name and best_iou >= min_iou and best_iou > baseline_iou + _MIN_IOU_GAIN:
        raise _build_scale_error(preview, best_name, best_scale, (best_iou, baseline_iou))


def check_keypoint_scale(preview: PreviewImages, people: AnnotatedInstances) -> None:
    """Refuse keypoints in pixels of another image size, by the boxes around them."""
    boxed_people = replace(people, rows=_add_keypoint_boxes(people.rows))
    predictions = replace(preview.predictions, rows=_add_keypoint_boxes(preview.predictions.rows))
    boxed_preview = replace(preview, predictions=predictions)
    baseline_iou = build_mean_iou(boxed_preview, boxed_people)(box_columns(predictions.rows))
    check_image_scale(boxed_preview, boxed_people, baseline_iou, min_iou=_MIN_CONVINCING_IOU_POINTS)


def _add_keypoint_boxes(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the box around each row's keypoints; one at (0, 0) is a missing keypoint."""
    x, y = pl.col("keypoints_x"), pl.col("keypoints_y")
    points = rows.select(x, y).with_row_index("_row").explode("keypoints_x", "keypoints_y")
    # COCO writes an unlabelled keypoint as (0, 0); the box would extend to the corner of the image.
    valid_points = points.filter(x.is_not_null() & y.is_not_null() & ((x != 0) | (y != 0)))
    boxes = valid_points.group_by("_row").agg(
        box_x=x.min(), box_y=y.min(), box_w=x.max() - x.min(), box_h=y.max() - y.min()
    )
    indexed_rows = rows.drop(list(BOX), strict=False).with_row_index("_row")
    return indexed_rows.join(boxes, on="_row", how="left", maintain_order="left").drop("_row")


def _keep_highest_scores(preview: PreviewImages, people: AnnotatedInstances) -> PreviewImages:
    """Keep the highest-scoring detections, twice as many in each image as it has people."""
    detections = preview.predictions.detections
    n_people = np.bincount(
        people.truths.image[preview.person_mask], minlength=int(detections.image.max()) + 1
    )
    rank = pl.DataFrame({"image": detections.image, "score": detections.score}).select(
        pl.col("score").rank("ordinal", descending=True).over("image")
    )
    return preview.take(rank.to_series().to_numpy() <= 2 * n_people[detections.image])


def _candidate_scalings(
    preview: PreviewImages, people: AnnotatedInstances
) -> Iterator[tuple[str, float, _BoxScaling]]:
    """Yield each kind of scaling: its name, a starting value, and the boxes at a value."""
    boxes = box_columns(preview.predictions.rows)
    ratio_x, ratio_y = _median_centre_ratios(preview, people)
    # No image has both people and detections, so there is nothing to compare.
    if not np.isfinite([ratio_x, ratio_y]).all():
        return
    # Without a common factor of x and y, their geometric mean is the best start.
    ratio = float(np.sqrt(ratio_x * ratio_y))

    def build_scaling(x: FloatArray | float, y: FloatArray | float) -> _BoxScaling:
        return lambda scale: BoxColumns(
            boxes.x * (x / scale),
            boxes.y * (y / scale),
            boxes.width * (x / scale),
            boxes.height * (y / scale),
        )

    yield "factor", ratio, build_scaling(1, 1)
    sizes = image_sizes_px(preview.predictions.rows["image_id"], people.images)
    if sizes is None:
        return
    width, height = (np.nan_to_num(size, nan=float(np.nanmedian(size))) for size in sizes)
    longer, shorter = np.maximum(width, height), np.minimum(width, height)
    square = float(np.sqrt(ratio_x * np.median(width) * ratio_y * np.median(height)))
    # A model may have resized each image to a square, which needs a factor for each side ...
    yield "square", square, build_scaling(width, height)
    # ... or so that its longer or shorter side has a fixed length.
    yield "longer", ratio * float(np.median(longer)), build_scaling(longer, longer)
    yield "shorter", ratio * float(np.median(shorter)), build_scaling(shorter, shorter)


def _scaling_about_centres(preview: PreviewImages) -> _BoxScaling:
    """Build the scaling of boxes about their own centres."""
    boxes = box_columns(preview.predictions.rows)
    x, y = boxes.x + boxes.width / 2, boxes.y + boxes.height / 2
    return lambda scale: BoxColumns(
        x - boxes.width / scale / 2,
        y - boxes.height / scale / 2,
        boxes.width / scale,
        boxes.height / scale,
    )


def _median_centre_ratios(
    preview: PreviewImages, people: AnnotatedInstances
) -> tuple[float, float]:
    """Return the median ratio of the centres of boxes to those of people, in x and y.

    Mean centres of each image are compared, so that no detection needs to be matched first.
    """
    centres = []
    for image, rows in (
        (preview.predictions.detections.image, preview.predictions.rows),
        (
            people.truths.image[preview.person_mask],
            people.rows.filter(pl.Series(preview.person_mask)),
        ),
    ):
        box = box_columns(rows)
        centre_columns = {"image": image, "x": box.x + box.width / 2, "y": box.y + box.height / 2}
        centres.append(pl.DataFrame(centre_columns).group_by("image").agg(pl.col("x", "y").mean()))
    centre_pairs = centres[0].join(centres[1], on="image", suffix="_truth")
    medians = centre_pairs.select(
        # The median, because false positives move the mean centre of single images far away.
        (pl.col(c) / pl.col(f"{c}_truth")).filter(pl.col(f"{c}_truth") > 0).median().alias(c)
        for c in ("x", "y")
    ).row(0)
    ratio_x, ratio_y = (float(r) if r is not None and r > 0 else np.nan for r in medians)
    return ratio_x, ratio_y


def _fit_scale(
    mean_iou: Callable[[BoxColumns], float], start: float, scale_boxes: _BoxScaling
) -> tuple[float, float]:
    """Search the scale with the best average IoU: a coarse grid around a start, then a fine one."""
    best_iou, scale = -1.0, start
    for steps in (_COARSE_FACTORS, _FINE_FACTORS):
        best_iou, scale = max((mean_iou(scale_boxes(scale * s)), scale * s) for s in steps)
    return best_iou, scale


def _build_scale_error(
    preview: PreviewImages, name: str, scale: float, ious: tuple[float, float]
) -> TableError:
    """Build the error of boxes or keypoints at another scale, with the factor to multiply by."""
    row = [round(float(v), 1) for v in preview.predictions.rows.select(BOX).row(0)]
    of_points = "keypoints_x" in preview.predictions.rows.columns
    subject, numbers = ("keypoints", "x and y") if of_points else ("boxes", "four numbers")
    side_name = f"{name} side"
    description, factor = {
        "factor": (f"{scale:.2f} times as large as in the dataset", f"about {1 / scale:.3g}"),
        "square": (
            f"of pictures of {scale:,.0f} × {scale:,.0f} pixels",
            f"the picture's width / {scale:.0f}, y and height by its height / {scale:.0f}",
        ),
    }.get(
        name,
        (
            f"of pictures whose {side_name} is {scale:,.0f} pixels",
            f"the picture's {side_name} / {scale:.0f}",
        ),
    )
    columns = "x and width" if name == "square" else f"the {numbers}"
    return TableError(
        f"the {subject} of {preview.predictions.model!r} are {description}",
        expected="pixels of the pictures that the dataset describes",
        found=f"{row}; taken so, boxes overlap people by {ious[0]:.2f} on average, as they are"
        f" by {ious[1]:.2f}",
        hint=f"multiply {columns} by {factor}; if the dataset's boxes or sizes are those of resized"
        " pictures, mend them there",
    )


def caution_on_box_margins(preview: PreviewImages, people: AnnotatedInstances) -> list[Caution]:
    """Caution where nearly all boxes are larger, or smaller, than the people whom they match."""
    predicted_boxes, true_boxes = box_columns(preview.predictions.rows), box_columns(people.rows)
    pairs = box_pairs_xywh(
        preview.predictions.detections,
        people.truths,
        predicted_boxes,
        true_boxes,
        lowest_iou=_MIN_MATCH_IOU,
    )
    in_preview = preview.person_mask[pairs.truth]
    rows = pl.DataFrame(
        {
            "truth": pairs.truth[in_preview],
            "detection": pairs.detection[in_preview],
            "iou": pairs.iou[in_preview],
        }
    )
    # Each person's best detection.
    rows = rows.sort("iou", descending=True).unique("truth", keep="first", maintain_order=True)
    # The 10 % quantile of fewer pairs is that of two or three people.
    if rows.height < _MIN_MATCHES:
        return []
    detection_index, truth_index = rows["detection"].to_numpy(), rows["truth"].to_numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        area = (
            predicted_boxes.width[detection_index] * predicted_boxes.height[detection_index]
        ) / (true_boxes.width[truth_index] * true_boxes.height[truth_index])
    # The root of the ratio of areas is the geometric mean of the ratios of both sides.
    ratio = np.sqrt(area[np.isfinite(area) & (area > 0)])
    low, median, high = np.quantile(ratio, [0.1, 0.5, 0.9]) if len(ratio) else (1.0, 1.0, 1.0)
    # A systematic margin moves nearly all boxes; a noisy detector draws some too large, some too
    # small.
    if not (median > 1 + _MIN_RELATIVE_MARGIN and low > 1) and not (
        median < 1 / (1 + _MIN_RELATIVE_MARGIN) and high < 1
    ):
        return []
    return [
        Caution(
            f"Boxes of {preview.predictions.model!r} have {median:.2f} times the side of the people"
            f" whom they find (middle of {len(ratio):,}; nine in ten are"
            f" {'larger' if median > 1 else 'smaller'}): overlaps tell how boxes are drawn as much"
            " as who is found. Are they in pixels of these pictures?"
        )
    ]
