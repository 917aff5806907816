"""COCO results of any kind that JSON allows, by msgspec, a few thousand at a time.

The slower, general reader behind the scanner of ``kernels.py``: ids that are text, scores that
are text, missing and unknown names. What is wrong it tells with its row or byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import polars as pl

from isolux.predictions._scan.damage import raise_damage
from isolux.vocabulary.errors import TableError, place

__all__ = ["decode_rows"]

_Value = int | float | str | None


class _RunLengths(msgspec.Struct, gc=False):
    size: tuple[int, int]
    counts: str | list[int]


class _Row(msgspec.Struct, gc=False):
    image_id: _Value = None
    category_id: _Value = None
    bbox: list[float | None] | None = None
    score: _Value = None
    segmentation: _RunLengths | list[Any] | None = None
    keypoints: list[float | None] | None = None


@dataclass(frozen=True, slots=True)
class _Place:
    """The file, the rows before these, and the bytes before them."""

    where: str
    row: int
    byte: int

    def error(self, problem: str, row: int, field: str, expected: str, found: object) -> TableError:
        return TableError(
            problem,
            expected=expected,
            found=str(found)[:80],
            where=place(self.where, self.row + row + 1, field),
        )


def decode_rows(text: bytes, where: str, *, row: int, byte: int) -> pl.DataFrame:
    """Read whole objects, parted by commas, into the columns that ``coco_results.scanning`` gives.

    Parameters
    ----------
    text : bytes
        ``{…}, {…}``
    row, byte : int
        How many rows and bytes of the file stand before them.

    Raises
    ------
    FileError
        No JSON, with the byte of the file.
    TableError
        A value that cannot be used, with the row and the field.
    """
    at = _Place(where, row, byte)
    try:
        rows = msgspec.json.decode(b"[" + text + b"]", type=list[_Row])
    except msgspec.ValidationError as error:
        raise _wrong_value(error, at) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise_damage(text, where, byte=byte, cause=error)
    frame = pl.DataFrame(
        {
            "image_id": _ids([r.image_id for r in rows], at, "image_id", required=True),
            "label": _ids([r.category_id for r in rows], at, "category_id", required=False),
            **_boxes(rows, at),
            "score": _scores(rows, at),
            **_masks(rows, at),
            "keypoints": pl.Series([r.keypoints for r in rows], dtype=pl.List(pl.Float64)),
        }
    )
    nothing = [r.bbox is None and r.segmentation is None and not r.keypoints for r in rows]
    if any(nothing):
        raise at.error(
            "a result says nothing of where",
            nothing.index(True),
            "",
            "bbox, segmentation or keypoints",
            "none of them",
        )
    return frame


def _wrong_value(error: Exception, at: _Place) -> TableError:
    problem, _, path = str(error).partition(" - at ")
    found = re.match(r"`?\$\[(\d+)\]\.?([^`]*)", path)
    row, field = (int(found[1]), found[2]) if found else (0, "")
    return at.error(
        "a result does not hold what it should",
        row,
        field,
        'such as {"image_id": 1, "category_id": 1, "bbox": [x, y, width, height], "score": 0.9}',
        problem,
    )


def _ids(values: list[_Value], at: _Place, field: str, *, required: bool) -> pl.Series:
    if required and None in values:
        row = values.index(None)
        raise at.error(f"a result has no {field}", row, field, "the image that it is of", "nothing")
    return pl.Series([None if v is None else _id(v) for v in values], dtype=pl.String)


def _id(value: float | str) -> str:
    """Write an id as text; ``42.0``, which pandas makes of 42, as ``42``."""
    # From 2^53 on a float skips whole numbers, so two ids could become one.
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def _scores(rows: list[_Row], at: _Place) -> pl.Series:
    given = [r.score for r in rows]
    if None in given:
        raise at.error(
            "a result has no score",
            given.index(None),
            "score",
            "a number; higher is surer",
            "nothing",
        )
    text = pl.Series([str(v) if isinstance(v, str) else None for v in given], dtype=pl.String)
    numbers = pl.Series([None if isinstance(v, str) else float(v or 0) for v in given], dtype=_F)
    parsed = text.str.strip_chars().cast(pl.Float64, strict=False)
    wrong = (parsed.is_null() & text.is_not_null()).arg_true()
    if len(wrong):
        row = int(wrong[0])
        raise at.error("a score is not a number", row, "score", "a number", repr(text[row]))
    return numbers.fill_null(parsed)


_F = pl.Float64()
_BOX = ("box_x", "box_y", "box_w", "box_h")


def _boxes(rows: list[_Row], at: _Place) -> dict[str, pl.Series]:
    boxes = [r.bbox for r in rows]
    wrong = [b is not None and (len(b) != 4 or None in b) for b in boxes]
    if any(wrong):
        row = wrong.index(True)
        raise at.error(
            "a box is not four numbers", row, "bbox", "[x, y, width, height]", boxes[row]
        )
    return {
        name: pl.Series([None if b is None else b[k] for b in boxes], dtype=_F)
        for k, name in enumerate(_BOX)
    }


def _masks(rows: list[_Row], at: _Place) -> dict[str, pl.Series]:
    masks = [r.segmentation for r in rows]
    for row, mask in enumerate(masks):
        if isinstance(mask, list):
            raise at.error(
                "a mask is given as polygons",
                row,
                "segmentation",
                'run lengths {"size": [height, width], "counts": …}, as COCO asks of results',
                mask,
            )
        if mask is not None and not _usable(mask):
            raise at.error(
                "a mask's run lengths cannot be used",
                row,
                "segmentation",
                "a size from 1 × 1, counts as text or as runs that add up to height × width",
                mask,
            )
    runs = [m for m in masks if isinstance(m, _RunLengths)]
    texts = iter(_compressed(runs))
    height = [m.size[0] if isinstance(m, _RunLengths) else None for m in masks]
    width = [m.size[1] if isinstance(m, _RunLengths) else None for m in masks]
    return {
        "mask_counts": pl.Series([None if m is None else next(texts) for m in masks], dtype=_S),
        "mask_height": pl.Series(height, dtype=pl.Int64),
        "mask_width": pl.Series(width, dtype=pl.Int64),
    }


_S = pl.String()


def _usable(mask: _RunLengths) -> bool:
    height, width = mask.size
    # Run lengths are kept in 32 bits with a sign.
    if not (height > 0 and width > 0 and height * width < 2**31):
        return False
    if isinstance(mask.counts, str):
        return mask.counts.isascii() and "\0" not in mask.counts
    return min(mask.counts, default=0) >= 0 and sum(mask.counts) == height * width


def _compressed(masks: list[_RunLengths]) -> list[str]:
    """Give the counts of each as text; plain ones are compressed."""
    from isolux.geometry.masks import masks_from_counts, masks_to_coco

    plain = [m.counts for m in masks if not isinstance(m.counts, str)]
    if not plain:
        return [m.counts for m in masks if isinstance(m.counts, str)]
    sizes = np.array([m.size for m in masks if not isinstance(m.counts, str)])
    done = iter(masks_to_coco(masks_from_counts(plain, sizes[:, 0], sizes[:, 1])))
    return [m.counts if isinstance(m.counts, str) else next(done)["counts"].decode() for m in masks]
