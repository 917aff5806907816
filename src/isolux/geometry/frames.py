"""Boxes and the frames of their images: which boxes reach beyond, and which way up a frame is.

A camera may store a photo lying on its side, and say in EXIF that it is to be turned by a quarter.
Some tools annotate the photo as stored, others as shown, and some write the size of the one beside
the boxes of the other.
"""

from __future__ import annotations

from typing import Literal

import polars as pl

Frame = Literal["stored", "shown"]
# A frame is the wrong one if boxes leave it this many times as often as the other: careless boxes
# reach a little over the edge of the right frame, too.
_MIN_RATIO = 10


def reaches_beyond(
    width: str = "width", height: str = "height", *, tolerance_px: float = 1.0
) -> pl.Expr:
    """Tell whether each box ends more than ``tolerance_px`` beyond the image of these columns.

    Examples
    --------
    >>> box = {"box_x": [4], "box_y": [0], "box_w": [6], "box_h": [5], "width": [9], "height": [5]}
    >>> pl.DataFrame(box).select(reaches_beyond(tolerance_px=0.5)).item()
    True
    """
    x, y, w, h = (pl.col(f"box_{edge}") for edge in "xywh")
    right, lower = pl.col(width) + tolerance_px, pl.col(height) + tolerance_px
    return (x < -tolerance_px) | (y < -tolerance_px) | (x + w > right) | (y + h > lower)


def choose_frame(boxes: pl.DataFrame) -> Frame | None:
    """Choose the frame that the boxes fit where EXIF turns images by a quarter; None: undecided.

    ``boxes`` [n] has ``box_x`` to ``box_h``, and ``width`` and ``height`` of the stored image.

    Examples
    --------
    >>> sides = {"box_x": [0], "box_y": [70], "box_w": [9], "box_h": [9]}
    >>> choose_frame(pl.DataFrame(sides | {"width": [100], "height": [60]}))
    'shown'
    """
    n_stored, n_shown = boxes.select(
        stored=reaches_beyond().sum(), shown=reaches_beyond("height", "width").sum()
    ).row(0)
    if n_stored > _MIN_RATIO * n_shown:
        return "shown"
    return "stored" if n_shown > _MIN_RATIO * n_stored else None
