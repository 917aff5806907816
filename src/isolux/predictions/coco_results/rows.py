"""COCO results as columns, from objects that msgspec decodes a block at a time.

Ids and scores may be text, and fields be missing; what is wrong is said with its row or byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import msgspec
import numpy as np
import polars as pl

from isolux.core.errors import FileError, TableError, format_location
from isolux.io.json_values import format_json_id
from isolux.predictions._json_text import JsonText

_IdOrScore = int | float | str | None
_BOX = ("box_x", "box_y", "box_w", "box_h")
_FLOAT_LIST = pl.List(pl.Float64())


class _CocoRunLengths(msgspec.Struct, gc=False):
    size: tuple[int, int]
    counts: str | list[int]


class _CocoResultRow(msgspec.Struct, gc=False):
    image_id: _IdOrScore = None
    category_id: _IdOrScore = None
    bbox: list[float | None] | None = None
    score: _IdOrScore = None
    segmentation: _CocoRunLengths | list[Any] | None = None
    keypoints: list[float | None] | None = None


_ROW_DECODER = msgspec.json.Decoder(list[_CocoResultRow])


def read_rows(source: JsonText) -> pl.DataFrame:
    """Read a list of results into one column for each of their fields that is in the file."""
    if not source.text.startswith(b"["):
        raise not_a_list_error(source.format_position(), f"{source.source}, byte {source.offset}")
    frames = [pl.DataFrame(schema={"image_id": pl.String, "score": pl.Float64})]
    n_rows = 0
    try:
        for rows in source.iterate_objects(_ROW_DECODER):
            frames.append(_build_columns(rows, _RowLocation(source.source, n_rows)))
            n_rows += len(rows)
    except msgspec.ValidationError as error:
        raise _result_value_error(error, _RowLocation(source.source, n_rows)) from error
    source.refuse_trailing()
    return pl.concat(frames, how="diagonal", rechunk=True)


def not_a_list_error(description: str, source: str) -> FileError:
    """Build the error for content that is not a list of results."""
    return FileError(
        "this is not a list of results",
        expected='[{"image_id": 1, "category_id": 1, "bbox": [x, y, width, height],'
        ' "score": 0.9}, …], or an object that has it under "annotations"',
        found=description,
        where=source,
        hint="an object may be annotations (isolux reads them with coco:PATH) or BDD100K's"
        " labels (--format scalabel); a single result is a list too: [{…}]",
    )


@dataclass(frozen=True, slots=True)
class _RowLocation:
    """The file, and the rows before these."""

    source: str
    n_rows: int

    def build_error(
        self, problem: str, row: int, field: str, expected: str, content: object
    ) -> TableError:
        return TableError(
            problem,
            expected=expected,
            found=str(content)[:80],
            where=format_location(self.source, self.n_rows + row + 1, field),
        )


def _build_columns(rows: list[_CocoResultRow], location: _RowLocation) -> pl.DataFrame:
    """Put the fields that any of the rows has into columns."""
    boxes = [r.bbox for r in rows]
    masks = [r.segmentation for r in rows]
    keypoints = [r.keypoints for r in rows]
    if None in boxes:
        for row, row_fields in enumerate(zip(boxes, masks, keypoints, strict=True)):
            if row_fields[:2] == (None, None) and not row_fields[2]:
                expected = "bbox, segmentation or keypoints"
                raise location.build_error(
                    "a result says nothing of where", row, "", expected, "none of them"
                )
    ids = [r.image_id for r in rows]
    if None in ids:
        raise location.build_error(
            "a result has no image_id",
            ids.index(None),
            "image_id",
            "the image that it is of",
            "nothing",
        )
    columns = {
        "image_id": _read_ids(ids),
        "label": _read_ids([r.category_id for r in rows]),
        **_read_boxes(boxes, location),
        "score": _read_scores([r.score for r in rows], location),
        **_read_masks(masks, location),
        "keypoints": pl.Series(keypoints, dtype=_FLOAT_LIST),
    }
    n_rows = len(rows)
    return pl.DataFrame({n: c for n, c in columns.items() if c.null_count() < n_rows})


def _result_value_error(error: Exception, location: _RowLocation) -> TableError:
    problem, _, path = str(error).partition(" - at ")
    path_match = re.match(r"`?\$\[(\d+)\]\.?([^`]*)", path)
    row, field = (int(path_match[1]), path_match[2]) if path_match else (0, "")
    return location.build_error(
        "a result does not hold what it should",
        row,
        field,
        'such as {"image_id": 1, "category_id": 1, "bbox": [x, y, width, height], "score": 0.9}',
        problem,
    )


def _read_ids(values: list[_IdOrScore]) -> pl.Series:
    try:
        return pl.Series(values, dtype=pl.Int64).cast(pl.String)
    except (TypeError, OverflowError):
        return pl.Series(
            [None if v is None else format_json_id(v) for v in values], dtype=pl.String
        )


def _read_scores(values: list[_IdOrScore], location: _RowLocation) -> pl.Series:
    if None in values:
        raise location.build_error(
            "a result has no score",
            values.index(None),
            "score",
            "a number; higher is surer",
            "nothing",
        )
    try:
        return pl.Series(values, dtype=pl.Float64)
    except TypeError:
        pass  # some are text, or whole numbers beyond 64 bits
    text = pl.Series([str(raw_score) for raw_score in values], dtype=pl.String)
    numbers = text.str.strip_chars().cast(pl.Float64, strict=False)
    invalid_rows = numbers.is_null().arg_true()
    if len(invalid_rows):
        row = invalid_rows[0]
        raise location.build_error(
            "a score is not a number", row, "score", "a number", repr(text[row])
        )
    return numbers


def _read_boxes(
    boxes: list[list[float | None] | None], location: _RowLocation
) -> dict[str, pl.Series]:
    complete_boxes = [box for box in boxes if box is not None]
    if len(complete_boxes) == len(boxes) and set(map(len, complete_boxes)) == {4}:
        flat: Iterable[Any] = chain.from_iterable(complete_boxes)
        numbers = np.fromiter(flat, np.float64).reshape(-1, 4)
        if not np.isnan(numbers).any():  # of a number that is missing
            return {name: pl.Series(numbers[:, k]) for k, name in enumerate(_BOX)}
    for row, box in enumerate(boxes):
        if box is not None and (len(box) != 4 or None in box):
            raise location.build_error(
                "a box is not four numbers", row, "bbox", "[x, y, width, height]", box
            )
    edges = pl.Series(boxes, dtype=_FLOAT_LIST).list
    return {name: edges.get(k) for k, name in enumerate(_BOX)}


def _read_masks(
    masks: list[_CocoRunLengths | list[Any] | None], location: _RowLocation
) -> dict[str, pl.Series]:
    if masks.count(None) == len(masks):
        return {}
    for row, mask in enumerate(masks):
        if isinstance(mask, list):
            raise location.build_error(
                "a mask is given as polygons",
                row,
                "segmentation",
                'run lengths {"size": [height, width], "counts": …}, as COCO asks of results',
                mask,
            )
        if mask is not None and not _is_valid_mask(mask):
            raise location.build_error(
                "a mask's run lengths cannot be used",
                row,
                "segmentation",
                "a size from 1 × 1, counts as text or as runs that add up to height × width",
                mask,
            )
    runs = [mask for mask in masks if isinstance(mask, _CocoRunLengths)]
    texts = iter(_compress_counts(runs))
    sizes = [mask.size if isinstance(mask, _CocoRunLengths) else (None, None) for mask in masks]
    return {
        "mask_counts": pl.Series([m and next(texts) for m in masks], dtype=pl.String),
        "mask_height": pl.Series([height for height, _ in sizes], dtype=pl.Int64),
        "mask_width": pl.Series([width for _, width in sizes], dtype=pl.Int64),
    }


def _is_valid_mask(mask: _CocoRunLengths) -> bool:
    height, width = mask.size
    # Run lengths are kept in 32 bits with a sign.
    if not (height > 0 and width > 0 and height * width < 2**31):
        return False
    if isinstance(mask.counts, str):
        return mask.counts.isascii() and "\0" not in mask.counts
    return min(mask.counts, default=0) >= 0 and sum(mask.counts) == height * width


def _compress_counts(masks: list[_CocoRunLengths]) -> list[str]:
    """Give the counts of each as text; plain ones are compressed."""
    from isolux.geometry.masks import masks_from_counts, masks_to_coco

    uncompressed = [m.counts for m in masks if not isinstance(m.counts, str)]
    if not uncompressed:
        return [m.counts for m in masks if isinstance(m.counts, str)]
    sizes = np.array([m.size for m in masks if not isinstance(m.counts, str)])
    compressed = iter(masks_to_coco(masks_from_counts(uncompressed, sizes[:, 0], sizes[:, 1])))
    return [
        m.counts if isinstance(m.counts, str) else next(compressed)["counts"].decode()
        for m in masks
    ]
