"""Boxes, masks and poses that a network's outputs hold, in the picture's pixels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError
from isolux.models._boxes import (
    BOX_SCHEMA,
    MASK_SCHEMA,
    POSE_SCHEMA,
    convert_boxes_to_rows,
    encode_mask,
)
from isolux.models._classes import to_probabilities
from isolux.models._preprocessing import ModelInput
from isolux.models.onnx.outputs import Arrays, Outputs

_SCHEMAS: dict[str, dict[str, Any]] = {
    "boxes": BOX_SCHEMA,
    "masks": MASK_SCHEMA,
    "keypoints": POSE_SCHEMA,
}
Floats = npt.NDArray[np.float64]


def build_detection_table(
    arrays: Arrays,
    outputs: Outputs,
    prediction_type: str,
    names: Sequence[str],
    inputs: Sequence[ModelInput],
    input_size: tuple[int, int],
) -> pl.DataFrame:
    """Read boxes ``[n, m, 4]``, or ``[m, 4]`` of one picture, with what belongs to each."""
    rows: list[tuple[Any, ...]] = []
    for k, model_input in enumerate(inputs):
        scores, numbers = _compute_scores_and_classes(arrays, outputs, k, len(inputs))
        kept_indices = np.flatnonzero(scores >= outputs.min_score)
        labels = [_find_class_name_or_number(names, j) for j in numbers[kept_indices]]
        box_rows = _read_box_rows(
            arrays, outputs, kept_indices, labels, scores, model_input, k, len(inputs), input_size
        )
        extra: list[tuple[Any, ...]] = [()] * len(kept_indices)
        if outputs.masks is not None:
            masks = _select_image_output(arrays[outputs.masks], k, len(inputs), 3)
            masks = masks.reshape(len(masks), *masks.shape[-2:])
            extra = [
                encode_mask(
                    _resize_to_image(masks[j], model_input, input_size, outputs.mask_threshold)
                )
                for j in kept_indices
            ]
        elif outputs.keypoints is not None:
            poses = _select_image_output(arrays[outputs.keypoints], k, len(inputs), 3)
            extra = [_read_pose(poses[j], outputs, model_input, input_size) for j in kept_indices]
        rows += [(*row, *cells) for row, cells in zip(box_rows, extra, strict=True)]
    return pl.DataFrame(rows, schema=_SCHEMAS[prediction_type], orient="row")


def _read_box_rows(
    arrays: Arrays,
    outputs: Outputs,
    kept_indices: npt.NDArray[np.intp],
    labels: Sequence[str],
    scores: Floats,
    model_input: ModelInput,
    image_index: int,
    n_images: int,
    input_size: tuple[int, int],
) -> list[tuple[Any, ...]]:
    if outputs.boxes is None:
        return [
            (image_index, label, None, None, None, None, float(score))
            for label, score in zip(labels, scores[kept_indices], strict=True)
        ]
    boxes = _select_image_output(arrays[outputs.boxes], image_index, n_images, 2)
    return convert_boxes_to_rows(
        boxes[kept_indices],
        scores[kept_indices],
        labels,
        model_input,
        image_index=image_index,
        box_format=outputs.box_format,
        box_units=outputs.box_units,
        input_size=input_size,
    )


def _read_pose(
    pose: Floats, outputs: Outputs, model_input: ModelInput, input_size: tuple[int, int]
) -> tuple[list[float], list[float], list[float]]:
    """Bring keypoints ``[k, 3]`` (x, y, confidence), also in one row, to the picture's pixels."""
    points = pose if pose.ndim == 2 else pose.reshape(-1, 3)
    width, height = input_size if outputs.box_units == "shares" else (1, 1)
    x, y = model_input.to_image_xy(points[:, 0] * width, points[:, 1] * height)
    confidences = points[:, 2] if points.shape[1] > 2 else np.ones(len(points))
    return x.tolist(), y.tolist(), confidences.tolist()


def _resize_to_image(
    mask: Floats, model_input: ModelInput, input_size: tuple[int, int], threshold: float
) -> npt.NDArray[np.bool_]:
    """Interpolate a mask of the network's input at the centre of each pixel of the picture.

    Nothing is inside where the input does not show the picture.
    """
    sampled, is_shown = mask, np.ones(model_input.size[::-1], dtype=bool)
    for axis, (n_pixels, input_side) in enumerate(
        zip(model_input.size[::-1], input_size[::-1], strict=True)
    ):
        scale, offset = model_input.scale[1 - axis], model_input.offset[1 - axis]
        in_input = (np.arange(n_pixels) + 0.5) * scale + offset
        position = np.clip(in_input * mask.shape[axis] / input_side - 0.5, 0, mask.shape[axis] - 1)
        low = np.floor(position).astype(int)
        high = np.minimum(low + 1, mask.shape[axis] - 1)
        to_axis = (slice(None),) if axis else (slice(None), None)
        share = (position - low)[to_axis]
        sampled = np.take(sampled, low, axis) * (1 - share) + np.take(sampled, high, axis) * share
        is_shown &= ((in_input >= 0) & (in_input <= input_side))[to_axis]
    return (sampled > threshold) & is_shown


def _compute_scores_and_classes(
    arrays: Arrays, outputs: Outputs, image_index: int, n_images: int
) -> tuple[Floats, npt.NDArray[np.int64]]:
    """Compute the score and class number of each detection of one image."""
    if outputs.labels is not None:
        scores = _select_image_output(arrays[outputs.scores], image_index, n_images, 1)
        numbers = _select_image_output(arrays[outputs.labels], image_index, n_images, 1).astype(
            np.int64
        )
        return to_probabilities(scores[None], outputs.activation)[0], numbers
    class_scores = _select_image_output(arrays[outputs.scores], image_index, n_images, 2)
    if class_scores.ndim == 1:
        class_scores = class_scores[:, None]
    confidences = to_probabilities(class_scores, outputs.activation)
    first = 1 if outputs.background == "first" else 0
    confidences = confidences[:, first : confidences.shape[1] - (outputs.background == "last")]
    return confidences.max(axis=1), confidences.argmax(axis=1) + first


def _select_image_output(
    array: npt.NDArray[Any], image_index: int, n_images: int, n_dimensions: int
) -> Floats:
    """Take one picture's part of an output that has a side for the batch, or has none."""
    full_array = np.asarray(array)
    if full_array.ndim > n_dimensions and len(full_array) == n_images:
        return np.asarray(full_array[image_index], dtype=np.float64)
    if n_images == 1:
        return np.asarray(full_array, dtype=np.float64)
    raise SpecError(
        "the network's boxes cannot be assigned to pictures",
        expected=f"an output [{n_images}, boxes, …]",
        found=str(list(full_array.shape)),
        hint="the setting batch=1",
    )


def _find_class_name_or_number(names: Sequence[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else str(number)
