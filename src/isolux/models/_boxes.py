"""Boxes of a network's input, brought to the picture's pixels as the table of boxes has them."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.models._preprocessing import ModelInput

BoxFormat = Literal["xyxy", "xywh", "cxcywh"]
BoxUnits = Literal["pixels", "shares"]
"""Pixels of the network's input, or shares of its width and height."""

BOX_SCHEMA = {
    "picture": pl.Int64,
    "label": pl.String,
    "box_x": pl.Float64,
    "box_y": pl.Float64,
    "box_w": pl.Float64,
    "box_h": pl.Float64,
    "score": pl.Float64,
}
MASK_SCHEMA: dict[str, Any] = {
    **BOX_SCHEMA,
    "mask_counts": pl.String,
    "mask_height": pl.Int64,
    "mask_width": pl.Int64,
}
POSE_SCHEMA: dict[str, Any] = {
    **BOX_SCHEMA,
    **{f"keypoints_{axis}": pl.List(pl.Float64) for axis in "xyv"},
}


def encode_mask(mask: npt.NDArray[np.bool_]) -> tuple[str, int, int]:
    """Encode a mask as COCO's compressed run lengths; with its height and width."""
    coco = import_module("pycocotools.mask")
    counts = coco.encode(np.asfortranarray(mask, dtype=np.uint8))["counts"].decode()
    return counts, mask.shape[0], mask.shape[1]


def convert_boxes_to_rows(
    boxes: npt.NDArray[Any],
    scores: npt.NDArray[Any],
    labels: Sequence[str | None],
    model_input: ModelInput,
    *,
    image_index: int,
    box_format: BoxFormat,
    box_units: BoxUnits,
    input_size: tuple[int, int],
) -> list[tuple[Any, ...]]:
    """Convert one image's boxes to rows of ``BOX_SCHEMA``, clipped to the image.

    Shapes: ``boxes`` [m, 4], ``scores`` [m].
    """
    a, b, c, d = np.asarray(boxes, dtype=np.float64).reshape(-1, 4).T
    if box_units == "shares":
        width, height = input_size
        a, b, c, d = a * width, b * height, c * width, d * height
    if box_format == "cxcywh":
        a, b = a - c / 2, b - d / 2
    if box_format != "xyxy":
        c, d = a + c, b + d
    x_min, top = model_input.to_image_xy(a, b)
    x_max, bottom = model_input.to_image_xy(c, d)
    boxes_xywh = zip(
        x_min, top, np.maximum(x_max - x_min, 0), np.maximum(bottom - top, 0), strict=True
    )
    return [
        (image_index, label, float(x), float(y), float(w), float(h), float(score))
        for label, (x, y, w, h), score in zip(labels, boxes_xywh, scores, strict=True)
    ]


def keep_best_duplicate_boxes(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Keep, of identical boxes with one label, the row with the highest score, in order."""
    best: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for row in rows:
        best_row = best.get(row[:-1])
        if best_row is None or row[-1] > best_row[-1]:
            best[row[:-1]] = row
    return list(best.values())


def build_box_table(rows: Sequence[tuple[Any, ...]]) -> pl.DataFrame:
    """Make the table of boxes of a batch."""
    return pl.DataFrame(list(rows), schema=BOX_SCHEMA, orient="row")
