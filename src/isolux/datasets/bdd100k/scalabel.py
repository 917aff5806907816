"""Scalabel's label JSON, which BDD100K is published in, as columns: frames and their boxes.

Both releases of the labels (2018 and 2020), a list of frames or a document that holds one.
https://doc.scalabel.ai/format.html
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import polars as pl

from isolux.datasets._relative_paths import check_paths_stay_inside
from isolux.io.json_values import decode_json


class _BddScene(msgspec.Struct, gc=False):
    weather: str | None = None
    scene: str | None = None
    timeofday: str | None = None


class _BddLabelMarks(msgspec.Struct, gc=False, rename={"traffic_light_color": "trafficLightColor"}):
    occluded: bool | None = None
    truncated: bool | None = None
    crowd: bool | None = None
    traffic_light_color: str | None = None


class _BddBox(msgspec.Struct, gc=False):
    x1: float
    y1: float
    x2: float
    y2: float


class _BddLabel(msgspec.Struct, gc=False):
    id: int | str | None = None
    category: str | None = None
    attributes: _BddLabelMarks | None = None
    box2d: _BddBox | None = None


class _BddFrameSize(msgspec.Struct, gc=False):
    width: int
    height: int


class _BddFrame(
    msgspec.Struct, gc=False, rename={"video": "videoName", "frame_index": "frameIndex"}
):
    name: str
    video: str | None = None
    frame_index: int | None = None
    attributes: _BddScene | None = None
    size: _BddFrameSize | None = None
    labels: list[_BddLabel] | None = None


class _BddDocument(msgspec.Struct):
    frames: list[_BddFrame]


@dataclass(frozen=True, slots=True)
class ScalabelTables:
    """Frames (``frame``: their number from 0) and boxes (``frame``, ``place`` in its labels)."""

    frames: pl.DataFrame
    boxes: pl.DataFrame
    n_without_box: int


def parse_scalabel_json(content: bytes, source: str) -> ScalabelTables:
    """Parse a label file."""
    frames = _decode_scalabel_frames(content, source)
    labels = [frame.labels or [] for frame in frames]
    counts = np.array([len(of_frame) for of_frame in labels], dtype=np.int64)
    flat = list(chain.from_iterable(labels))
    positions = np.arange(len(flat)) - np.repeat(np.cumsum(counts) - counts, counts)
    marks = [label.attributes or _NO_MARKS for label in flat]
    boxes = [label.box2d or _NO_BOX for label in flat]
    table = pl.DataFrame(
        {
            "frame": pl.Series(np.repeat(np.arange(len(frames)), counts), dtype=pl.Int64),
            "place": pl.Series(positions, dtype=pl.Int64),
            "label_id": pl.Series(
                [None if label.id is None else str(label.id) for label in flat], dtype=pl.String
            ),
            "category": pl.Series([label.category for label in flat], dtype=pl.String),
            "has_box": pl.Series([label.box2d is not None for label in flat], dtype=pl.Boolean),
            **_read_fields_as_columns(boxes, ("x1", "y1", "x2", "y2"), pl.Float64),
            **_read_fields_as_columns(marks, ("occluded", "truncated", "crowd"), pl.Boolean),
            "light": pl.Series([mark.traffic_light_color for mark in marks], dtype=pl.String),
        }
    )
    with_box = table.filter("has_box").drop("has_box")
    frame_table = _build_scalabel_frame_table(frames)
    check_paths_stay_inside(frame_table["name"], source, "name")
    return ScalabelTables(frame_table, with_box, table.height - with_box.height)


def _read_fields_as_columns(
    rows: Sequence[Any], fields: Sequence[str], dtype: Any
) -> dict[str, pl.Series]:
    """Read fields of rows as columns."""
    return {name: pl.Series([getattr(row, name) for row in rows], dtype=dtype) for name in fields}


_NO_MARKS = _BddLabelMarks()
_NO_BOX = _BddBox(0.0, 0.0, 0.0, 0.0)


def _decode_scalabel_frames(content: bytes, source: str) -> list[_BddFrame]:
    if content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{":
        return decode_json(content, _BddDocument, source).frames
    return decode_json(content, list[_BddFrame], source)


def _build_scalabel_frame_table(frames: list[_BddFrame]) -> pl.DataFrame:
    scenes = [frame.attributes or _BddScene() for frame in frames]
    sizes = [frame.size for frame in frames]
    return pl.DataFrame(
        {
            **_read_fields_as_columns(frames, ("name", "video"), pl.String),
            **_read_fields_as_columns(frames, ("frame_index",), pl.Int64),
            "width": pl.Series([size.width if size else None for size in sizes], dtype=pl.Int64),
            "height": pl.Series([size.height if size else None for size in sizes], dtype=pl.Int64),
            **_read_fields_as_columns(scenes, ("weather", "scene", "timeofday"), pl.String),
        }
    )
