"""What all formats of boxes, masks and keypoints share: the checks, the names, tables of one's own.

A box must be four finite numbers with no negative side, a score a finite number. A box without an
area is kept: it overlaps no one, so it is a false alarm. Boxes that reach beyond the image are kept
as they are, for the reader does not know the image.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from isolux.core.errors import (
    SpecError,
    TableError,
    UnknownNameError,
    format_columns,
    format_location,
)
from isolux.core.tables import (
    BOX_PREDICTIONS,
    KEYPOINT_PREDICTIONS,
    MASK_PREDICTIONS,
    Table,
    check,
)
from isolux.geometry.masks import masks_from_counts
from isolux.io.cell_parsing import as_numbers, first_true_row
from isolux.io.frames import FORMATS, read_table
from isolux.io.ids import read_names

BOX = ("box_x", "box_y", "box_w", "box_h")
DetectionKind = Literal["boxes", "masks", "keypoints"]
TABLES_BY_KIND: dict[DetectionKind, Table] = {
    "boxes": BOX_PREDICTIONS,
    "masks": MASK_PREDICTIONS,
    "keypoints": KEYPOINT_PREDICTIONS,
}
_KEY_COLUMN_BY_KIND: dict[DetectionKind, str] = {
    "boxes": "box_x",
    "masks": "mask_counts",
    "keypoints": "keypoints_x",
}
_MASK = ("mask_counts", "mask_height", "mask_width")
_NUMBERS = (*BOX, "score", *_MASK[1:])
_FILE_ENDINGS = (".json", ".npy", ".txt", ".tar", ".tgz", ".tar.gz", ".tar.xz", ".tar.bz2", ".zip")


def model_name_from_path(path: str | Path) -> str:
    """Call a model by its file's or folder's name, less the ending of its format."""
    name = Path(path).expanduser().resolve().name
    file_endings = [*_FILE_ENDINGS, *(suffix for group in FORMATS.values() for suffix in group)]
    endings = sorted((e for e in [*file_endings, ".json.gz"] if name.lower().endswith(e)), key=len)
    return (name[: -len(endings[-1])] if endings else name) or name


def add_model_column(frame: pl.DataFrame, model: str | None, path: Path) -> pl.DataFrame:
    """Name the model of each row: as it is named, as the table says, or by the file's name."""
    if model is None and "model" in frame.columns:
        names = read_names(frame, "model", str(path), noun="model")
        return frame.with_columns(model=names.fill_null(model_name_from_path(path)))
    return frame.with_columns(model=pl.lit(model or model_name_from_path(path)))


def detect_kind(columns: Sequence[str]) -> DetectionKind | None:
    """Tell the most that these columns are enough for: keypoints, masks, boxes, or none of them."""
    if "image_id" not in columns or ("score" not in columns and "instance_id" in columns):
        return None
    ordered_kinds: tuple[DetectionKind, ...] = ("masks", "keypoints", "boxes")
    return next(
        (
            detection_kind
            for detection_kind in ordered_kinds
            if _KEY_COLUMN_BY_KIND[detection_kind] in columns
        ),
        None,
    )


def build_detections(
    frame: pl.DataFrame,
    source: str,
    *,
    detection_kind: DetectionKind | None = None,
    model: str,
    allows_missing_boxes: bool = False,
) -> pl.DataFrame:
    """Give one of the three tables of detections, checked."""
    if detection_kind is not None and detection_kind not in TABLES_BY_KIND:
        raise UnknownNameError("kind of detections", detection_kind, TABLES_BY_KIND)
    table_kind = detection_kind or detect_kind(frame.columns) or "boxes"
    if table_kind != "keypoints" and {*_MASK} <= {*frame.columns}:
        frame = _fill_boxes_of_masks(frame, source)
    if frame.height and _KEY_COLUMN_BY_KIND[table_kind] not in frame.columns:
        raise SpecError(
            f"there are no {table_kind} in these predictions",
            expected=f"a column {_KEY_COLUMN_BY_KIND[table_kind]!r}",
            found=format_columns(frame.columns),
            where=source,
        )
    table = TABLES_BY_KIND[table_kind]
    model_column = pl.col("model").fill_null(model) if "model" in frame.columns else pl.lit(model)
    for name in ("label",) if "label" not in frame.columns else ():
        frame = frame.with_columns(pl.lit(None, dtype=pl.String).alias(name))
    absent = [c.name for c in table.columns[1:] if c.name not in frame.columns]
    if not frame.height:
        frame = frame.with_columns(pl.lit(None, dtype=table.schema[n]).alias(n) for n in absent)
    rows = frame.with_columns(model=model_column)
    _refuse_invalid_boxes(
        rows, source, allows_missing=allows_missing_boxes or table_kind != "boxes"
    )
    columns = [c.name for c in table.columns if c.name in rows.columns]
    return check(rows.select(columns), table, source=source)


def _fill_boxes_of_masks(frame: pl.DataFrame, source: str) -> pl.DataFrame:
    """Give a mask without a box the box of its pixels, as pycocotools' ``loadRes`` does."""
    absent = [pl.lit(None, dtype=pl.Float64).alias(n) for n in BOX if n not in frame.columns]
    frame = frame.with_columns(absent)
    lacks_box = pl.all_horizontal(pl.col(BOX).is_null()) & pl.col("mask_counts").is_not_null()
    rows = frame.select(lacks_box.arg_true()).to_series()
    if rows.is_empty():
        return frame.drop([column.meta.output_name() for column in absent])
    masks = frame[rows].select(_MASK)
    sizes = (masks[name].to_numpy() for name in _MASK[1:])
    boxes_xywh = masks_from_counts(
        masks["mask_counts"], *sizes, file=source, rows=rows.to_numpy().astype(np.int64)
    ).box_xywh
    return frame.with_columns(
        frame[name].cast(pl.Float64).scatter(rows, boxes_xywh[:, k]) for k, name in enumerate(BOX)
    )


def _refuse_invalid_boxes(frame: pl.DataFrame, source: str, *, allows_missing: bool) -> None:
    """Refuse a box that lacks a number, is not finite or has a negative side."""
    edges = [name for name in BOX if name in frame.columns]
    if not frame.height or len(edges) != len(BOX) or _are_boxes_valid(frame):
        return
    box_problems = frame.select(
        absent=pl.all_horizontal(pl.col(s).is_null() for s in edges) & (not allows_missing),
        partial=pl.any_horizontal(pl.col(s).is_null() for s in edges)
        & pl.any_horizontal(pl.col(s).is_not_null() for s in edges),
        infinite=pl.any_horizontal(~pl.col(s).is_finite() for s in edges).fill_null(value=False),
        negative=((pl.col("box_w") < 0) | (pl.col("box_h") < 0)).fill_null(value=False),
    )
    problems = {
        "absent": "has no numbers",
        "partial": "lacks some of its numbers",
        "infinite": "is not made of finite numbers",
        "negative": "has a negative width or height",
    }
    for name, problem in problems.items():
        if box_problems[name].any():
            row = first_true_row(box_problems[name])
            raise TableError(
                f"a box {problem} ({box_problems[name].sum():,} in all)",
                expected="left, upper, width and height in pixels; width and height 0 or more",
                found=str([frame[edge][row] for edge in edges]),
                where=format_location(source, row + 1, "box"),
                hint="leave such rows out, or write corners x1, y1, x2, y2 as x, y, width, height"
                if name == "negative"
                else None,
            )


def _are_boxes_valid(frame: pl.DataFrame) -> bool:
    """Tell at little cost that all is well: a sum is finite only if all that is summed is."""
    sums = frame.select(pl.col(BOX).sum()).row(0)
    nulls = frame.select(pl.col(BOX).null_count()).row(0)
    smallest = frame.select(pl.col("box_w", "box_h").min()).row(0)
    return not any(nulls) and bool(np.isfinite(sums).all()) and min(smallest) >= 0


def read_detections(
    path: str | Path, format_name: str, *, model: str | None, detection_kind: DetectionKind | None
) -> pl.DataFrame:
    """Read a table of one's own (CSV, Parquet, …) whose columns are those of detections."""
    source = str(path)
    frame = read_table(path, format=format_name)
    # Parquet that isolux wrote needs no conversion; text does.
    number_columns = [
        as_numbers(frame[name], source=source, column=name).alias(name)
        for name in _NUMBERS
        if name in frame.columns and frame.schema[name] not in (pl.Float64(), pl.Int64())
    ]
    text_columns = [
        read_names(frame, name, source, noun=name).alias(name)
        for name in ("model", "image_id", "label")
        if name in frame.columns and frame.schema[name] != pl.String()
    ]
    frame = frame.with_columns(*number_columns, *text_columns)
    if model is not None and "model" in frame.columns:
        frame = frame.drop("model")
    return build_detections(
        frame, source, detection_kind=detection_kind, model=model or model_name_from_path(path)
    )
