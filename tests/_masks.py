"""Masks drawn as bitmaps, encoded by pycocotools."""

from __future__ import annotations

import numpy as np
import polars as pl
from pycocotools import mask as coco_mask

from isolux.geometry.masks import masks_from_counts


def masks_from_bitmaps(bitmaps):
    """Encode bitmaps ``[height, width]``, foreground where not 0."""
    counts = [
        coco_mask.encode(np.asfortranarray(b != 0, dtype=np.uint8))["counts"] for b in bitmaps
    ]
    sizes = np.array([b.shape for b in bitmaps], dtype=np.int64).reshape(-1, 2)
    return masks_from_counts(pl.Series(counts, dtype=pl.Binary), sizes[:, 0], sizes[:, 1])
