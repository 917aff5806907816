"""Photos with the person or the background removed, to probe foundation models.

FHIBE (Xiang et al. 2025, Methods, foundation models) shows CLIP the full photo, the person blacked
out, the person blurred (Gaussian, radius 100) and the background blacked out: the differences show
what a prediction is based on. Arrays in, arrays out. The radius is the standard deviation in
pixels, as in pillow's filter, which approximates it by three box filters.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.core.errors import SpecError
from isolux.geometry.crops import Pixels
from isolux.geometry.rle import masks_from_counts

Mask = npt.NDArray[np.bool_]
"""``[height, width]``: true on the person."""

BLUR_PX = 100.0  # FHIBE's radius


def decode_mask(counts: str, height: int, width: int) -> Mask:
    """Decode COCO's compressed run lengths to a bitmap.

    Examples
    --------
    >>> decode_mask("11", 2, 1).tolist()  # one pixel without, one with
    [[False], [True]]
    """
    masks = masks_from_counts([counts], np.array([height]), np.array([width]))
    # Runs go down the columns: +1 where one begins, -1 after its end, then a running sum.
    run_steps = np.zeros(height * width + 1, dtype=np.int64)
    np.add.at(run_steps, masks.edges[::2], 1)
    np.add.at(run_steps, masks.edges[1::2], -1)
    # COCO's runs go down the columns, so the columns are the rows here.
    coverage = np.cumsum(run_steps[:-1]).reshape(width, height).T
    return np.asarray(coverage > 0)


def black_out_person(pixels: Pixels, mask: Mask) -> Pixels:
    """Black out the person.

    Examples
    --------
    >>> grey = np.full((1, 2, 3), 9, dtype=np.uint8)
    >>> black_out_person(grey, np.array([[True, False]]))[..., 0].tolist()
    [[0, 9]]
    """
    return np.where(_check_mask_size(pixels, mask)[..., None], np.uint8(0), pixels)


def black_out_background(pixels: Pixels, mask: Mask) -> Pixels:
    """Black out all but the person.

    Examples
    --------
    >>> grey = np.full((1, 2, 3), 9, dtype=np.uint8)
    >>> black_out_background(grey, np.array([[True, False]]))[..., 0].tolist()
    [[9, 0]]
    """
    return np.where(_check_mask_size(pixels, mask)[..., None], pixels, np.uint8(0))


def blur_person(pixels: Pixels, mask: Mask, radius_px: float = BLUR_PX) -> Pixels:
    """Replace the person by the blurred photo, whose colours near edges come from outside them.

    Examples
    --------
    >>> plain = np.full((4, 4, 3), 9, dtype=np.uint8)
    >>> blur_person(plain, np.ones((4, 4), dtype=bool)).tolist() == plain.tolist()
    True
    """
    from PIL import Image, ImageFilter

    is_person = _check_mask_size(pixels, mask)[..., None]
    blurred_pixels = Image.fromarray(np.ascontiguousarray(pixels)).filter(
        ImageFilter.GaussianBlur(radius_px)
    )
    return np.where(is_person, np.array(blurred_pixels, dtype=np.uint8), pixels)


def _check_mask_size(pixels: Pixels, mask: Mask) -> Mask:
    if pixels.shape[:2] != mask.shape:
        raise SpecError(
            "the mask is of a picture of another size",
            expected="{} × {}".format(*pixels.shape[1::-1]),
            found="{} × {}".format(*mask.shape[::-1]),
        )
    return mask
