"""Scalabel's JSON, in which BDD100K's detections are handed in: frames with labels and boxes.

A list of frames, or a document with ``frames``; each label has a category, a score and ``box2d``,
the corners of its box. https://doc.scalabel.ai/format.html
"""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import polars as pl

from isolux.core import citations
from isolux.core.errors import SpecError, TableError
from isolux.core.info import FormatInfo
from isolux.io.cell_parsing import first_true_row
from isolux.io.frames import open_bytes
from isolux.io.json_values import decode_json
from isolux.io.refusals import refuse_repeats
from isolux.predictions._detections import build_detections, model_name_from_path
from isolux.predictions._file_probe import FileProbe

INFO = FormatInfo(
    title="Scalabel",
    summary="JSON with a list of frames, each with its labels: category, score and the corners"
    " of the box; BDD100K's format.",
    references=(
        citations.BDD100K.with_location("the format: https://doc.scalabel.ai/format.html"),
    ),
    assumptions=(
        "x1, y1, x2, y2 are pixels, left, upper, right and lower",
        "a box is x2 − x1 pixels wide; --pixel-inclusive counts the last pixel too",
    ),
    suffixes=(".json", ".json.gz"),
)

Categories = Literal["as-named", "bdd100k"]
"""How classes are called: as the file does, or by BDD100K's names of today."""
# What a file of 2018 or a detector of COCO's calls them.
BDD100K_NAMES = {"bike": "bicycle", "motor": "motorcycle", "person": "pedestrian"}


class _ScalabelBox(msgspec.Struct, gc=False):
    x1: float
    y1: float
    x2: float
    y2: float


class _ScalabelLabel(msgspec.Struct, gc=False):
    category: str | None = None
    score: float | str | None = None
    box2d: _ScalabelBox | None = None


class _ScalabelFrame(msgspec.Struct, gc=False, rename={"video": "videoName"}):
    name: str
    video: str | None = None
    labels: list[_ScalabelLabel] | None = None


class _ScalabelDocument(msgspec.Struct):
    frames: list[_ScalabelFrame]


def read(
    path: str | Path,
    *,
    model: str | None = None,
    categories: Categories = "as-named",
) -> pl.DataFrame:
    """Read detections.

    Parameters
    ----------
    path : str or Path
        The JSON file, also gzipped.
    model : str, optional
        The model's name; not given: the file's.
    categories : {"as-named", "bdd100k"}
        ``bdd100k``: names of BDD100K's 2018 release become those of today (bike → bicycle, motor →
        motorcycle, person → pedestrian), which its loader gives.

    Returns
    -------
    polars.DataFrame
        Table ``BOX_PREDICTIONS``: ``image_id`` is the frame's name (``video/name`` where names
        repeat), ``label`` the category as the file names it (or see
        ``categories``), box in pixels, score as in the file.

    Raises
    ------
    FileError
        No such file; no JSON, or cut off, with the byte.
    TableError
        With the frame and the label in it (from 1): no box, swapped corners, no score, a value of
        another type, a frame that occurs twice.

    Examples
    --------
    >>> import tempfile
    >>> box = '{"x1": 4, "y1": 5, "x2": 24, "y2": 35}'
    >>> label = '{"category": "pedestrian", "score": 0.9, "box2d": ' + box + "}"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.json"
    ...     _ = file.write_text('[{"name": "a.jpg", "labels": [' + label + "]}]")
    ...     read(file).row(0)
    ('net', 'a.jpg', 'pedestrian', 4.0, 5.0, 20.0, 30.0, 0.9)
    """
    source = str(path)
    if categories not in ("as-named", "bdd100k"):
        expected = "as-named or bdd100k"
        raise SpecError(
            "categories cannot be set to that", expected=expected, found=repr(categories)
        )
    with open_bytes(path) as stream:
        content = stream.read()
    is_document = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{"
    frames = (
        decode_json(content, _ScalabelDocument, source).frames
        if is_document
        else decode_json(content, list[_ScalabelFrame], source)
    )
    table = _build_label_table(frames)
    if categories == "bdd100k":
        table = table.with_columns(pl.col("label").replace(BDD100K_NAMES))
    table = table.with_columns(image_id=_name_frames(frames, source).gather(table["frame"]))
    _refuse_invalid_labels(table, source)
    boxes = table.with_columns(
        box_w=pl.col("x2") - pl.col("box_x"), box_h=pl.col("y2") - pl.col("box_y")
    )
    return build_detections(
        boxes, source, detection_kind="boxes", model=model or model_name_from_path(path)
    )


def _build_label_table(frames: list[_ScalabelFrame]) -> pl.DataFrame:
    """Give the labels of some frames, a row each, and the number of the frame in the file."""
    labels = [frame.labels or [] for frame in frames]
    flat = list(chain.from_iterable(labels))
    counts = np.array([len(of_frame) for of_frame in labels], dtype=np.int64)
    return pl.DataFrame(
        {
            "frame": np.repeat(np.arange(len(frames)), counts),
            "number": np.arange(len(flat)) - np.repeat(np.cumsum(counts) - counts, counts),
            "label": pl.Series([label.category for label in flat], dtype=pl.String),
            "score": _read_scores([label.score for label in flat]),
            **_read_corners([label.box2d for label in flat]),
        }
    )


def _read_scores(values: list[float | str | None]) -> pl.Series:
    """Read scores; null where there is none or the text is not a number."""
    if not any(isinstance(raw_score, str) for raw_score in values):
        return pl.Series(values, dtype=pl.Float64)
    text = pl.Series([None if v is None else str(v) for v in values], dtype=pl.String)
    return text.str.strip_chars().cast(pl.Float64, strict=False)


def _read_corners(boxes: list[_ScalabelBox | None]) -> dict[str, pl.Series]:
    """Give the corners as columns; null where there is no box."""
    names = {"x1": "box_x", "y1": "box_y", "x2": "x2", "y2": "y2"}
    return {
        column: pl.Series([None if b is None else getattr(b, name) for b in boxes], dtype=_FLOAT)
        for name, column in names.items()
    }


_FLOAT = pl.Float64()


def _name_frames(frames: list[_ScalabelFrame], source: str) -> pl.Series:
    """Name the frames, with their video where names alone repeat."""
    names = pl.Series([frame.name for frame in frames], dtype=pl.String)
    if names.is_unique().all():
        return names
    videos = [frame.video or frame.name.rsplit(".", 1)[0] for frame in frames]
    ids = pl.Series([f"{v}/{n}" for v, n in zip(videos, names.to_list(), strict=True)])
    expected = "each frame once, with all its labels"
    refuse_repeats(ids, "a frame occurs twice", expected, source, "name")
    return ids


def _refuse_invalid_labels(table: pl.DataFrame, source: str) -> None:
    swapped = (table["x2"] < table["box_x"]) | (table["y2"] < table["box_y"])
    tests = (
        (table["box_x"].is_null(), "a label has no box2d", "a box, with its four corners"),
        (swapped, "a box's corners are swapped", "x1 ≤ x2 and y1 ≤ y2"),
        (table["score"].is_null(), "a label has no score", "a number; higher is surer"),
        (~table["score"].is_finite(), "a label's score is not finite", "a number; higher is surer"),
    )
    for bad, problem, expected in tests:
        is_wrong = bad.fill_null(value=False)
        if is_wrong.any():
            row = first_true_row(is_wrong)
            raise TableError(
                f"{problem} ({is_wrong.sum():,} in all)",
                expected=expected,
                found=str(table.select("label", "box_x", "box_y", "x2", "y2", "score").row(row)),
                where=f"{source}, frame {table['image_id'][row]!r},"
                f" label {int(table['number'][row]) + 1}",
            )


def mismatch(probe: FileProbe) -> str | None:
    """Say why this is not Scalabel's JSON; None: it is.

    Examples
    --------
    >>> mismatch(FileProbe(Path("net.json"), "file", b'[{"name": "a.jpg", "labels": []}]'))
    >>> mismatch(FileProbe(Path("net.json"), "file", b'{"answers": []}'))
    'it names no frames, labels or box2d'
    """
    if re.match(rb'\s*\{\s*"[^"]*\.(png|jpe?g)"\s*:', probe.head, re.IGNORECASE):
        return "it is an object of pictures, as FHIBE's API writes"
    field_match = re.search(rb'"(labels|frames|box2d)"\s*:', probe.head)
    return None if field_match else "it names no frames, labels or box2d"
