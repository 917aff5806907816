"""Pictures that look like someone's: perceptual hashes, and thumbnails laid over one another."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from isolux.checks.duplicates.hashes import SIDE
from isolux.io.images import Pixels

if TYPE_CHECKING:
    from PIL.Image import Image as Picture

__all__ = ["as_text", "from_text", "thumbnail", "thumbnails", "turned"]


def thumbnail(data: bytes) -> Pixels | None:
    """Make the grey thumbnail by which a picture is known; None: it cannot be opened."""
    return next(thumbnails(data), None)


def thumbnails(data: bytes) -> Iterator[Pixels]:
    """Make one of each picture that a file holds, as pages and films of pictures do."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as opened:
            count = getattr(opened, "n_frames", 1)
            if count == 1:
                opened.draft("L", (4 * SIDE, 4 * SIDE))
            for k in range(count):
                if k:
                    opened.seek(k)
                yield _small(opened)
    except Exception:  # noqa: BLE001  (Pillow raises many; what cannot be opened is named)
        return


def _small(picture: Picture) -> Pixels:
    from PIL import Image, ImageOps

    if picture.mode.startswith(("I", "F")):  # more than eight bits
        wide = np.nan_to_num(np.asarray(picture, dtype=np.float64))
        peak = wide.max()
        top = next((one for one in (1, 255, 65_535) if one >= peak), peak)
        picture = Image.fromarray((wide.clip(0, top) * (255 / top)).astype(np.uint8))
    upright = ImageOps.exif_transpose(picture) or picture
    return np.asarray(upright.convert("L").resize((SIDE, SIDE), Image.Resampling.LANCZOS))


def turned(looks: Pixels) -> Pixels:
    """Give thumbnails as they are, and turned by a quarter, a half and three quarters."""
    return np.concatenate([np.rot90(looks, k, axes=(1, 2)) for k in range(4)])


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
