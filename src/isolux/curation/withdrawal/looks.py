"""Pictures that look like someone's: perceptual hashes, and thumbnails laid over one another."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable

import numpy as np

from isolux.checks.duplicates.hashes import SIDE
from isolux.io.images import Pixels

__all__ = ["as_text", "from_text", "thumbnail"]


def thumbnail(data: bytes) -> Pixels | None:
    """Make the grey thumbnail by which a picture is known; None: it cannot be opened."""
    from PIL import Image, ImageOps

    try:
        with Image.open(io.BytesIO(data)) as opened:
            opened.draft("L", (4 * SIDE, 4 * SIDE))
            upright = ImageOps.exif_transpose(opened) or opened
            small = upright.convert("L").resize((SIDE, SIDE), Image.Resampling.LANCZOS)
            return np.asarray(small)
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError):
        return None


def from_text(texts: Iterable[str]) -> Pixels:
    """Read thumbnails that were written as text: ``[n, 32, 32]``.

    Examples
    --------
    >>> from_text([as_text(np.zeros((32, 32), np.uint8))]).shape
    (1, 32, 32)
    """
    held = [np.frombuffer(base64.b64decode(one), np.uint8) for one in texts]
    return np.array(held, np.uint8).reshape(-1, SIDE, SIDE)


def as_text(one: Pixels) -> str:
    """Write a thumbnail as text."""
    return base64.b64encode(np.ascontiguousarray(one).tobytes()).decode()
