"""Which pixels of a picture are skin of a face: from a mask of its skin, else from its box.

Diversity in Faces and the code that follows it take both cheeks and the chin, as landmarks give
them: forehead, eyes and mouth are hair, glasses and lips. Datasets seldom have landmarks, so here
the three regions are fixed parts of the face's box.

A rule that tells skin from the rest by its colour must not do so worse for darker skin, as rules
with a least value of red do (Kovac et al. 2003: red above 95 leaves out the two darkest tones of
Monk's scale in the fullest light, and more of them in less). What holds for all ten is the order of
the channels: skin sends back more red than green, and no less green than blue. Greys, sky, leaves
and most shadows of blue light fall out; brown hair, wood and sand stay in, which is why the regions
are small.

Light is averaged over small squares first, as Diversity in Faces smooths. In a dark skin the
channels lie a few steps apart, and a rule on single noisy pixels would keep the yellower ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.derive._colour import LINEAR_LIGHT
from isolux.io.images import Pixels

FloatArray = npt.NDArray[np.float64]

SKIN_REGIONS = ((0.15, 0.50, 0.38, 0.72), (0.62, 0.50, 0.85, 0.72), (0.35, 0.84, 0.65, 0.96))
"""Left, upper, right, lower of a face's box: the cheeks and the chin."""

FACE_IN_PICTURE = (1 / 6, 1 / 6, 5 / 6, 5 / 6)
"""The box of the face in a picture that is nothing but a face: FairFace's are padded by a quarter
of the face on each side, and UTKFace, CelebA, LFW and IMDB-WIKI centre it as well."""

_N_SQUARES = 100  # of a region, about; fewer where it has fewer pixels
_MIN_LEVEL = 8  # of 255: below it, steps of the 8 bits are larger than what tells skin tones apart
_CLIPPED_LEVEL = 255  # a highlight: what was brighter is lost


@dataclass(frozen=True, slots=True)
class SkinPixels:
    """Skin by region, as mean light of small squares.

    Parameters
    ----------
    regions : tuple of [m, 3] float
        Linear red, green and blue of each square; regions without skin are left out.
    n : int
        Pixels that these are of.
    share : float
        Their share of the pixels looked at.
    """

    regions: tuple[FloatArray, ...]
    n: int
    share: float


def extract_cheek_and_chin_skin(pixels: Pixels, box: Sequence[float]) -> SkinPixels:
    """Take the skin of both cheeks and the chin: squares with red > green ≥ blue."""
    left, upper, right, lower = box
    box_width, box_height = right - left, lower - upper
    regions = []
    for x0, y0, x1, y1 in SKIN_REGIONS:
        crop = _crop_pixels_in_box(
            pixels,
            (
                left + x0 * box_width,
                upper + y0 * box_height,
                left + x1 * box_width,
                upper + y1 * box_height,
            ),
        )
        light, count, n_examined = _average_light_in_squares(
            crop, np.ones(crop.shape[:2], dtype=np.bool_)
        )
        red, green, blue = light.T
        is_skin = (red > green) & (green >= blue)
        regions.append((light[is_skin], int(count[is_skin].sum()), n_examined))
    return _pool_skin_regions(regions)


def extract_unclipped_skin_in_mask(pixels: Pixels, mask: npt.NDArray[np.bool_]) -> SkinPixels:
    """Take the skin that a mask names, one region, less what is clipped or nearly black."""
    height, width = pixels.shape[:2]
    y = ((np.arange(height) + 0.5) * mask.shape[0] / height).astype(np.int64)
    x = ((np.arange(width) + 0.5) * mask.shape[1] / width).astype(np.int64)
    resized_mask = mask[np.ix_(y, x)]
    rows = np.flatnonzero(resized_mask.any(axis=1))
    columns = np.flatnonzero(resized_mask.any(axis=0))
    if not len(rows):
        return SkinPixels((), 0, 0.0)
    bounds = slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    light, count, n_examined = _average_light_in_squares(pixels[bounds], resized_mask[bounds])
    return _pool_skin_regions([(light, int(count.sum()), n_examined)])


def _pool_skin_regions(regions: Sequence[tuple[FloatArray, int, int]]) -> SkinPixels:
    """Combine regions: light of squares, numbers of skin pixels and of examined pixels."""
    n, n_examined = sum(region[1] for region in regions), sum(region[2] for region in regions)
    return SkinPixels(
        tuple(p[0] for p in regions if len(p[0])), n, n / n_examined if n_examined else 0.0
    )


def _average_light_in_squares(
    crop: Pixels, is_region: npt.NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray, int]:
    """Average light over squares ``[m, 3]``; of how many pixels each is ``[m]``, and of how many.

    Squares begin at the upper left; what is left over at the other sides is not looked at.
    """
    height, width = crop.shape[:2]
    square_px = int(np.sqrt(is_region.sum() / _N_SQUARES))
    square_px = max(1, min(square_px, height, width))
    height, width = height // square_px * square_px, width // square_px * square_px
    crop, is_region = crop[:height, :width], is_region[:height, :width]
    max_channel = crop.max(axis=2, initial=0)
    is_usable = is_region & (max_channel < _CLIPPED_LEVEL) & (max_channel >= _MIN_LEVEL)
    blocks = height // square_px, square_px, width // square_px, square_px
    count = is_usable.reshape(blocks).sum(axis=(1, 3)).astype(np.float64)
    total = (LINEAR_LIGHT[crop] * is_usable[:, :, None]).reshape(*blocks, 3).sum(axis=(1, 3))
    is_filled = count >= np.maximum(square_px * square_px / 2, 1)
    return total[is_filled] / count[is_filled][:, None], count[is_filled], int(is_region.sum())


def _crop_pixels_in_box(pixels: Pixels, box: tuple[float, float, float, float]) -> Pixels:
    """Crop to the pixels whose centre lies in a box: ``[h, w, 3]``."""
    height, width = pixels.shape[:2]
    left, right = (int(np.ceil(min(max(s, -1.0), width + 1.0) - 0.5)) for s in (box[0], box[2]))
    upper, lower = (int(np.ceil(min(max(s, -1.0), height + 1.0) - 0.5)) for s in (box[1], box[3]))
    return pixels[max(upper, 0) : max(lower, 0), max(left, 0) : max(right, 0)]
