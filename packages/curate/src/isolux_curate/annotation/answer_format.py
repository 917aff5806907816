"""The stored form of one answer, for every source, and painted masks as COCO run lengths.

{"choices": {question: [answer, …]},
     "boxes": [{"label", "secondary", "x", "y", "w", "h"}], "polygons": [{"label", "points"}],
     "masks": [{"label", "counts", "height", "width"}]}

Boxes, points and masks (COCO's compressed run lengths) are in pixels of the photo turned upright.

Label Studio packs a brush's mask, four bytes a pixel, in the format ``rle-pack`` of thi.ng/umbrella
(run-length encoding of bits; https://thi.ng/rle-pack). The fourth byte, opacity, is the mask.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from isolux.geometry.masks import masks_from_counts, masks_to_coco
from isolux_curate.annotation.stages import SECONDARY, UNKNOWN, AnnotationStage
from isolux_curate.project.folder import Project
from isolux_curate.project.queries import find_photos_of_revoked_consent, read_database_table

_N_CHANNELS = 4
_MAX_BRUSH_VALUES = 1 << 28  # four values a pixel: a larger canvas is no photo


def decode_brush_mask_or_fault(
    rle: Sequence[int], canvas_size: tuple[int, int], photo_size: tuple[int, int]
) -> dict[str, Any]:
    """Decode a brush mask and resize it to the photo (width, height).

    Examples
    --------
    A picture of 2 × 1 pixels whose right one is painted: 8 values of 8 bits in two runs of 4.

    >>> bits = f"{8:032b}" + f"{7:05b}" + f"{1:04b}" * 4
    >>> bits += "100" + "11" + f"{0:08b}" + "100" + "11" + f"{255:08b}"
    >>> bits += "0" * (-len(bits) % 8)
    >>> rle = [int(bits[k : k + 8], 2) for k in range(0, len(bits), 8)]
    >>> decode_brush_mask_or_fault(rle, (2, 1), (2, 1))["counts"]
    '11'
    """
    from isolux_curate.annotation.brush_kernels import COUNT_BITS, try_unpack_rle_into

    canvas_width, canvas_height = canvas_size
    n_values = canvas_width * canvas_height * _N_CHANNELS
    try:
        packed_bytes = np.array(rle, dtype=np.uint8)
    except (OverflowError, TypeError, ValueError):
        packed_bytes = np.empty(0, dtype=np.uint8)
    n_header_bytes = COUNT_BITS // 8
    declared_length = int.from_bytes(packed_bytes[:n_header_bytes].tobytes(), "big")
    if (
        packed_bytes.ndim != 1
        or len(packed_bytes) <= n_header_bytes
        or declared_length != n_values
        or not 0 < n_values < _MAX_BRUSH_VALUES
    ):
        return {"trouble": "what was painted is not a mask of this picture: please paint it again."}
    values = np.zeros(n_values, dtype=np.uint8)
    if not try_unpack_rle_into(packed_bytes, values):
        return {"trouble": "what was painted is cut off: please paint it again."}
    is_painted = values.reshape(canvas_height, canvas_width, _N_CHANNELS)[..., _N_CHANNELS - 1] > 0
    return _encode_coco_mask(_resize_mask_by_nearest_pixel(is_painted, photo_size))


def _resize_mask_by_nearest_pixel(
    is_painted: np.ndarray, photo_size: tuple[int, int]
) -> np.ndarray:
    """Resize a mask (height, width) to the photo's size by nearest neighbour at pixel centres."""
    canvas_height, canvas_width = is_painted.shape
    rows, columns = (
        ((np.arange(target_length) + 0.5) * source_length / target_length).astype(np.int64)
        for target_length, source_length in (
            (photo_size[1], canvas_height),
            (photo_size[0], canvas_width),
        )
    )
    return np.asarray(is_painted[rows[:, None], columns[None, :]])


def _encode_coco_mask(is_painted: np.ndarray) -> dict[str, Any]:
    height, width = is_painted.shape
    flat_mask = is_painted.ravel(order="F").astype(np.int8)
    change_indices = np.flatnonzero(np.diff(flat_mask, prepend=np.int8(0)))
    counts = np.diff(np.concatenate([[0], change_indices, [flat_mask.size]]))
    masks = masks_from_counts([counts.tolist()], np.array([height]), np.array([width]))
    return {"counts": masks_to_coco(masks)[0]["counts"].decode(), "height": height, "width": width}


Answer = dict[str, Any]
# Share of a photo's side by which a shape may exceed it: drawing tools round coordinates.
_EDGE_TOLERANCE = 0.005


def parse_label_studio_answer(
    result_rows: Sequence[Mapping[str, Any]], photo_width_px: int, photo_height_px: int
) -> Answer:
    """Parse the ``result`` of a Label Studio annotation; coordinates are per cent of the image.

    Examples
    --------
    >>> box = {"x": 10, "y": 20, "width": 50, "height": 40, "rectanglelabels": ["nurse"]}
    >>> drawn = {"id": "r1", "type": "rectanglelabels", "from_name": "primary", "value": box}
    >>> parse_label_studio_answer([drawn], 400, 300)["boxes"][0]["x"]
    40.0
    """
    choices: dict[str, list[str]] = {}
    regions: dict[str, dict[str, Any]] = {}
    for row in result_rows:
        region_value = row.get("value") or {}
        result_type = str(row.get("type"))
        if result_type == "choices" and row.get("from_name") == SECONDARY:
            region = regions.setdefault(str(row.get("id")), {})
            region[SECONDARY] = (region_value.get("choices") or [None])[0]
        elif result_type == "choices":
            choices[str(row.get("from_name"))] = [
                str(choice) for choice in region_value.get("choices", [])
            ]
        elif result_type in ("rectanglelabels", "polygonlabels", "brushlabels"):
            region = regions.setdefault(str(row.get("id")), {})
            region |= {
                "label": (region_value.get(result_type) or [None])[0]
            } | _parse_region_in_pixels(row, region_value, photo_width_px, photo_height_px)
    answer: Answer = {"choices": choices} if choices else {}
    for shape_kind, field in _SHAPE_FIELDS:
        shapes = [
            region_fields
            for region_fields in regions.values()
            if field in region_fields or (shape_kind == "masks" and "trouble" in region_fields)
        ]
        if shapes:
            answer[shape_kind] = shapes
    return answer


_SHAPE_FIELDS = (("boxes", "w"), ("polygons", "points"), ("masks", "counts"))


def _parse_region_in_pixels(
    result_row: Mapping[str, Any],
    region_value: Mapping[str, Any],
    photo_width_px: int,
    photo_height_px: int,
) -> dict[str, Any]:
    x_factor, y_factor = photo_width_px / 100, photo_height_px / 100
    if result_row["type"] == "brushlabels":
        canvas_size = (
            int(result_row.get("original_width") or 0),
            int(result_row.get("original_height") or 0),
        )
        return decode_brush_mask_or_fault(
            region_value.get("rle") or (), canvas_size, (photo_width_px, photo_height_px)
        )
    if "points" in region_value:
        return {
            "points": [
                [round(x * x_factor, 2), round(y * y_factor, 2)] for x, y in region_value["points"]
            ]
        }
    return {
        "x": round(float(region_value["x"]) * x_factor, 2),
        "y": round(float(region_value["y"]) * y_factor, 2),
        "w": round(float(region_value["width"]) * x_factor, 2),
        "h": round(float(region_value["height"]) * y_factor, 2),
    }


def describe_answer_fault(
    stage: AnnotationStage, answer: Answer, photo_size: tuple[int, int], classes: Sequence[str]
) -> str | None:
    """Find why an answer does not count, in words for its annotator; None if it counts.

    Examples
    --------
    >>> from isolux_curate.annotation.stages import STAGES
    >>> yes = {"is the box tight?": ["yes"], "is the class right?": ["yes"]}
    >>> one = {"choices": {"perceived skin tone": ["3"], **yes}}
    >>> describe_answer_fault(STAGES["skin_tone"], one, (40, 30), ())
    'perceived skin tone: mark at least 2 values next to one another, not 3.'
    >>> two = {"choices": {"perceived skin tone": ["3", "4"], **yes}}
    >>> describe_answer_fault(STAGES["skin_tone"], two, (40, 30), ()) is None
    True
    """
    choices = answer.get("choices", {})
    for question, answers in stage.choices.items():
        selected_answers = choices.get(question, [])
        unexpected_answers = [
            selected_answer
            for selected_answer in selected_answers
            if selected_answer not in answers
        ]
        if unexpected_answers:
            return f"{question}: {unexpected_answers[0]!r} is not one of the answers."
        if not selected_answers:
            return f"{question}: no answer."
        if question in stage.consecutive and (
            reason := _describe_nonconsecutive_choices(selected_answers, answers, stage)
        ):
            return f"{question}: {reason}"
    valid_labels = stage.labels or classes
    shapes = [shape for shape_kind, _ in _SHAPE_FIELDS for shape in answer.get(shape_kind, ())]
    if stage.shape_type and (
        unknown_shapes := [
            drawn_shape for drawn_shape in shapes if drawn_shape.get("label") not in valid_labels
        ]
    ):
        return f"{unknown_shapes[0].get('label')!r} is not one of the classes."
    return next(
        (
            reason
            for drawn_shape in shapes
            if (reason := _describe_shape_fault(drawn_shape, photo_size))
        ),
        None,
    )


def _describe_nonconsecutive_choices(
    selected_answers: Sequence[str], answers: Sequence[str], stage: AnnotationStage
) -> str | None:
    positions = sorted(answers.index(answer) for answer in selected_answers if answer != UNKNOWN)
    if not positions and UNKNOWN in selected_answers:
        return None
    is_consecutive = positions and positions[-1] - positions[0] == len(positions) - 1
    if is_consecutive and (len(positions) >= stage.min_consecutive or UNKNOWN in selected_answers):
        return None
    answer_list = ", ".join(answers[position] for position in positions)
    return f"mark at least {stage.min_consecutive} values next to one another, not {answer_list}."


def _describe_shape_fault(shape: Mapping[str, Any], photo_size: tuple[int, int]) -> str | None:
    if "trouble" in shape:
        return str(shape["trouble"])
    if "counts" in shape:  # resized to the photo, so that no pixel lies outside
        pixels = shape["width"] * shape["height"]
        return "a mask has no area." if shape["counts"] == _encode_empty_mask(pixels) else None
    points = shape.get("points") or [
        (shape["x"], shape["y"]),
        (shape["x"] + shape["w"], shape["y"] + shape["h"]),
    ]
    if "w" in shape and min(shape["w"], shape["h"]) <= 0:
        return "a box has no area."
    for axis, length_px in enumerate(photo_size):
        tolerance_px = _EDGE_TOLERANCE * length_px
        if any(not -tolerance_px <= point[axis] <= length_px + tolerance_px for point in points):
            return "what was drawn leaves the photo."
    return None


def _encode_empty_mask(n_pixels: int) -> str:
    """Encode a mask without pixels as COCO run lengths: one run of zeros."""
    masks = masks_from_counts([[n_pixels]], np.array([n_pixels]), np.array([1]))
    counts: bytes = masks_to_coco(masks)[0]["counts"]
    return counts.decode()


def read_answer_rows(
    project: Project, stage: str, *, include_uncounted: bool = False
) -> pl.DataFrame:
    """Read the answers that count, one row for each answer to a question or drawn shape."""
    annotations = read_database_table(project, "annotations")
    task_rows = read_database_table(project, "tasks").filter(stage=stage)
    answer_rows = annotations.join(
        task_rows.select("task_id", "unit_id", "image_id", "round", "golden"), on="task_id"
    ).filter(~pl.col("image_id").is_in(list(find_photos_of_revoked_consent(project))))
    if not include_uncounted:
        answer_rows = answer_rows.filter(~pl.col("golden"), pl.col("status") == "stands")
        last_round = pl.col("round").max().over("unit_id", "annotator_id")
        answer_rows = answer_rows.filter(
            pl.col("round") == last_round
        )  # an annotator counts once a unit
    rows: list[dict[str, Any]] = []
    for row in answer_rows.iter_rows(named=True):
        shared_columns = {
            "instance_id": row["unit_id"],
            "image_id": row["image_id"],
            "annotator": row["annotator_id"],
            "round": row["round"],
            "annotation_id": row["annotation_id"],
            "status": row["status"],
        }
        answer = json.loads(row["answer"])
        rows += [
            shared_columns | {"question": question, "label": label}
            for question, answers in answer.get("choices", {}).items()
            for label in answers
        ]
        rows += [
            shared_columns | _convert_shape_to_answer_row(shape)
            for shape_kind, _ in _SHAPE_FIELDS
            for shape in answer.get(shape_kind, ())
        ]
    return pl.DataFrame(rows, schema=_ANSWER_SCHEMA)


def _convert_shape_to_answer_row(shape: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a drawn shape to a row of the table of answers."""
    row: dict[str, Any] = {"question": "box" if "w" in shape else "mask", "label": shape["label"]}
    if "points" in shape:
        row["points"] = json.dumps(shape["points"])
    elif "counts" in shape:
        size = [shape["height"], shape["width"]]
        row["mask"] = json.dumps({"size": size, "counts": shape["counts"]})
    return row | {column: shape.get(column) for column in "xywh"}


_ANSWER_SCHEMA = {
    "instance_id": pl.String,
    "image_id": pl.String,
    "annotator": pl.String,
    "question": pl.String,
    "label": pl.String,
    "x": pl.Float64,
    "y": pl.Float64,
    "w": pl.Float64,
    "h": pl.Float64,
    "points": pl.String,
    "mask": pl.String,
    "round": pl.Int64,
    "annotation_id": pl.String,
    "status": pl.String,
}
