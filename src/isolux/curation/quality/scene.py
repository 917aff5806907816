"""What a photo's pixels say of where it was taken: a sky over a scene that is said to be indoors.

FHIBE (Methods, "Quality control and data filtering") compared scenes that were said to be outdoors
with what the pixels show, and does not print how. Ours is one rule without a model: sky is bright,
blue and smooth. It names photos for people to look at; a blue wall is named too, and
a photo outdoors without sky is not.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from isolux.io.images import Pixels, read_shrunk

__all__ = ["INDOORS", "SKY", "sky_share", "sky_share_of_file"]

INDOORS = ("indoor", "indoors", "inside")
SKY = 0.5
"""Of the upper third of a photo: from this share of sky on, "indoors" is doubted."""
_SIDE = 256  # pixels of the longer side that are looked at
_BRIGHT, _BLUER, _SMOOTH = 120.0, 12.0, 6.0  # grey levels


def sky_share(pixels: Pixels) -> float:
    """Give the share of the upper third that looks like blue sky, 0 to 1.

    Examples
    --------
    >>> blue = np.full((30, 30, 3), (110, 160, 230), np.uint8)
    >>> sky_share(blue), sky_share(blue[..., ::-1])
    (1.0, 0.0)
    """
    top = np.asarray(pixels, dtype=np.float64)[: max(pixels.shape[0] // 3, 1)]
    grey = top.mean(axis=2)
    # A gradient of one pixel to the next, along both sides.
    steps = np.zeros_like(grey)
    steps[:, 1:] = np.abs(np.diff(grey, axis=1))
    steps[1:] = np.maximum(steps[1:], np.abs(np.diff(grey, axis=0)))
    blue = (top[..., 2] - top[..., 0] >= _BLUER) & (top[..., 2] >= top[..., 1])
    return float((blue & (grey >= _BRIGHT) & (steps <= _SMOOTH)).mean())


def sky_share_of_file(path: str | Path) -> float:
    """Read a photo, made small, and give its ``sky_share``."""
    return sky_share(read_shrunk(path, _SIDE).pixels)
