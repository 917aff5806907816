"""Crops of faces and people as publications make them: by a box, a square, or facial landmarks.

Arrays in, arrays out. Coordinates lie between pixels: (0, 0) is the image's upper left corner, the
centre of its first pixel is (0.5, 0.5). "Right" and "left" of eyes and mouths are the person's own.

What lies outside the image is filled: ``"mean"`` with the mean of each column, then of each row, of
the visible part (numpy's ``mean`` padding); ``"black"``; or the crop ends there (``"cut"``).

References
----------
.. [1] Xiang, A. et al. (2025). Fair human-centric image dataset for ethical AI benchmarking.
   Nature, Methods, "FHIBE derivative datasets": boxes twice as large; oriented rectangles by two
   points of the eyes and two of the mouth, bilinear to 4,096 pixels, Lanczos to 512; padding with
   "the mean value along each axis". It names existing data sets' procedure for the rectangle and
   gives no formula: here it is that of [2].
.. [2] Karras, T., Laine, S. and Aila, T. (2019). A Style-Based Generator Architecture for
   Generative Adversarial Networks. CVPR (FFHQ; the rectangle of its published script).
.. [3] King, D. E. (2009). Dlib-ml. JMLR 10: ``get_face_chip_details``, the mean face of five points
   by which FairFace's faces were aligned (Kärkkäinen & Joo 2021; their script: padding .25).
.. [4] Goyal, P. et al. (2022). Fairness Indicators for Systematic Assessments of Visual Feature
   Extractors. FAccT, appendices B.1 and B.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt

from isolux.core.errors import SpecError

Pixels = npt.NDArray[np.uint8]
"""``[height, width, 3]``, RGB."""
Floats = npt.NDArray[np.float64]
Fill = Literal["mean", "black", "cut"]

MAX_CROP_PX = 89_478_485
"""Most pixels of a crop with its padding: as many as Pillow's limit for an image."""

DLIB_EYES: Mapping[str, tuple[float, float]] = {
    "left eye outer": (0.8595674595992, 0.2134981538014),
    "left eye inner": (0.6460604764104, 0.2289674387677),
    "right eye outer": (0.1205750620789, 0.2137274526848),
    "right eye inner": (0.3340850613712, 0.2290642403242),
}
"""Where the corners of the eyes of dlib's mean face lie, of a square of side 1. Its fifth point,
the base of the nose, is left out: data sets annotate the nose's tip."""

_BORDER_FRACTION = (
    0.1  # of a rectangle's side, kept about it for the padding's means, as [2]'s script does
)
_MIN_BORDER_PX = 3  # pixels


def pixel_box(box_xywh: npt.ArrayLike, factor: float = 1.0) -> tuple[int, int, int, int]:
    """Return the box of pixels that a box covers after scaling it about its centre.

    Shapes: ``box_xywh`` [4].

    Examples
    --------
    >>> pixel_box((10, 20, 4, 6), 2)
    (8, 17, 16, 29)
    """
    x, y, w, h = np.asarray(box_xywh, dtype=np.float64).tolist()
    if not (np.isfinite([x, y, w, h]).all() and w > 0 and h > 0):
        raise SpecError(
            "this is not a box to cut out",
            expected="a width and height above 0",
            found=f"{w:g} × {h:g}",
        )
    centre_x, centre_y = x + w / 2, y + h / 2
    # Outwards, so that no part of the scaled box is lost.
    return (
        int(np.floor(centre_x - factor * w / 2)),
        int(np.floor(centre_y - factor * h / 2)),
        int(np.ceil(centre_x + factor * w / 2)),
        int(np.ceil(centre_y + factor * h / 2)),
    )


def crop_xywh(
    pixels: Pixels,
    box_xywh: npt.ArrayLike,
    *,
    factor: float = 1.0,
    fill: Fill = "mean",
) -> Pixels:
    """Cut a box out of an image.

    Examples
    --------
    >>> grey = np.array([[10, 20], [30, 40]], dtype=np.uint8)[..., None].repeat(3, axis=2)
    >>> crop_xywh(grey, (0, 0, 2, 2), factor=2)[..., 0]
    array([[25, 20, 30, 25],
           [15, 10, 20, 15],
           [35, 30, 40, 35],
           [25, 20, 30, 25]], dtype=uint8)
    """
    return _crop_with_padding(pixels, pixel_box(box_xywh, factor), fill)


def crop_square_top(
    pixels: Pixels,
    box_xywh: npt.ArrayLike,
    *,
    ratio: float = 1.2,
    square_position: Literal["left", "centre"] = "left",
) -> Pixels:
    """Crop a box; of a box that is far from square, its largest square at the top left: [4], B.2.

    Examples
    --------
    >>> grey = np.arange(12, dtype=np.uint8).reshape(2, 6, 1).repeat(3, axis=2)
    >>> crop_square_top(grey, (0, 0, 6, 2))[..., 0].tolist()
    [[0, 1], [6, 7]]
    >>> crop_square_top(grey, (0, 0, 6, 2), square_position="centre")[..., 0].tolist()
    [[2, 3], [8, 9]]
    """
    left_px, top, right, bottom = pixel_box(box_xywh)
    width, height = right - left_px, bottom - top
    side_px = min(width, height)
    if max(width, height) >= ratio * side_px:
        left_px += (width - side_px) // 2 if square_position == "centre" else 0
        right, bottom = left_px + side_px, top + side_px
    return _crop_with_padding(pixels, (left_px, top, right, bottom), "cut")


def ffhq_square(
    right_eye: npt.ArrayLike,
    left_eye: npt.ArrayLike,
    mouth_right: npt.ArrayLike,
    mouth_left: npt.ArrayLike,
) -> Floats:
    """Return FFHQ's oriented square of a face, from its eyes and mouth [2].

    Returns [4, 2].

    Examples
    --------
    >>> ffhq_square((10, 20), (20, 20), (10, 30), (20, 30)).tolist()
    [[-5.0, 1.0], [-5.0, 41.0], [35.0, 41.0], [35.0, 1.0]]
    """
    points = [
        np.asarray(p, dtype=np.float64) for p in (right_eye, left_eye, mouth_right, mouth_left)
    ]
    eye_centre, mouth_centre = (points[0] + points[1]) / 2, (points[2] + points[3]) / 2
    eye_to_eye, eye_to_mouth = points[1] - points[0], mouth_centre - eye_centre
    # [2]: the eyes' direction plus the vector from eyes to mouth turned by 90 degrees.
    direction = eye_to_eye + np.array([eye_to_mouth[1], -eye_to_mouth[0]])
    length = float(np.hypot(*direction))
    if not np.isfinite(length) or length == 0:
        raise SpecError("the eyes and the mouth say no direction", found="points in one place")
    # [2]: half the side is twice the eyes' distance or 1.8 times the way to the mouth; the centre
    # lies a tenth of that way below the eyes.
    half = direction / length * max(np.hypot(*eye_to_eye) * 2.0, np.hypot(*eye_to_mouth) * 1.8)
    half_down = np.array([-half[1], half[0]])
    centre = eye_centre + eye_to_mouth * 0.1
    corners: Floats = np.stack(
        [
            centre - half - half_down,
            centre - half + half_down,
            centre + half + half_down,
            centre + half - half_down,
        ]
    )
    return corners


def fit_dlib_square(points: Mapping[str, npt.ArrayLike], *, padding: float = 0.25) -> Floats:
    """Fit dlib's mean face to the corners of the eyes and return its square [3].

    Returns [4, 2].

    Examples
    --------
    >>> eyes = {name: (100 * x, 100 * y) for name, (x, y) in DLIB_EYES.items()}
    >>> fit_dlib_square(eyes).round(6).tolist()
    [[-25.0, -25.0], [-25.0, 125.0], [125.0, 125.0], [125.0, -25.0]]
    """
    if missing := [name for name in DLIB_EYES if name not in points]:
        raise SpecError("corners of the eyes are not known", found="without " + ", ".join(missing))
    # Least squares of a similarity transform: rotation and scale are one complex factor.
    mean = np.array([complex(*corner) for corner in DLIB_EYES.values()])
    corners = np.array([complex(*np.asarray(points[n], dtype=np.float64)) for n in DLIB_EYES])
    centred_mean = mean - mean.mean()
    rotation_scale = np.vdot(centred_mean, corners - corners.mean()) / np.vdot(
        centred_mean, centred_mean
    )
    if not np.isfinite(rotation_scale) or abs(rotation_scale) == 0:
        raise SpecError("the eyes say no direction", found="points in one place")
    low, high = -padding, 1 + padding
    square = np.array(
        [complex(low, low), complex(low, high), complex(high, high), complex(high, low)]
    )
    square_corners = corners.mean() + rotation_scale * (square - mean.mean())
    return np.stack([square_corners.real, square_corners.imag], axis=1)


def warp_square(
    pixels: Pixels,
    corners: Floats,
    side_px: int,
    *,
    intermediate_px: int | None = None,
    fill: Fill = "mean",
) -> Pixels:
    """Warp an oriented square of an image to an upright one.

    Shapes: ``corners`` [4, 2].

    Examples
    --------
    >>> grey = np.array([[10, 20], [30, 40]], dtype=np.uint8)[..., None].repeat(3, axis=2)
    >>> lying = np.array([[0.0, 2.0], [2.0, 2.0], [2.0, 0.0], [0.0, 0.0]])  # its top is at the left
    >>> warp_square(grey, lying, 2)[..., 0].tolist()
    [[30, 10], [40, 20]]
    """
    from PIL import Image

    source_px = float(np.hypot(*(corners[1] - corners[0])))
    border_px = max(round(source_px * _BORDER_FRACTION), _MIN_BORDER_PX)
    low, high = np.floor(corners.min(axis=0)), np.ceil(corners.max(axis=0))
    if not (np.isfinite(low).all() and np.isfinite(high).all()):
        raise SpecError("this is not a square to cut out", found="coordinates that are not numbers")
    height, width = pixels.shape[:2]
    # A border for the padding's means, only where the image continues beyond the square.
    left_px, top = (int(min(v, max(v - border_px, 0))) for v in low)
    right, bottom = (
        int(max(v, min(v + border_px, end))) for v, end in zip(high, (width, height), strict=True)
    )
    region = _crop_with_padding(pixels, (left_px, top, right, bottom), fill)
    # A whole multiple of the side, so that ``reduce`` averages whole pixels.
    warped_px = intermediate_px or side_px * max(1, int(np.ceil(source_px / side_px)))
    if warped_px * warped_px > MAX_CROP_PX:
        raise _too_large(warped_px, warped_px)
    quad = (corners - [left_px, top]).ravel().tolist()
    warped = Image.fromarray(region).transform(
        (warped_px, warped_px), Image.Transform.QUAD, quad, Image.Resampling.BILINEAR
    )
    if intermediate_px is not None:
        # FHIBE: bilinear to 4,096 pixels, then Lanczos to 512.
        warped = warped.resize((side_px, side_px), Image.Resampling.LANCZOS)
    elif warped_px > side_px:
        warped = warped.reduce(warped_px // side_px)
    return np.array(warped, dtype=np.uint8)


def resize_square(pixels: Pixels, side_px: int) -> Pixels:
    """Resize a crop to a square with a bilinear filter that averages; it may be stretched.

    Examples
    --------
    >>> resize_square(np.full((2, 4, 3), 9, dtype=np.uint8), 3).shape
    (3, 3, 3)
    """
    from PIL import Image

    image = Image.fromarray(np.ascontiguousarray(pixels))
    return np.array(image.resize((side_px, side_px), Image.Resampling.BILINEAR), dtype=np.uint8)


def _crop_with_padding(pixels: Pixels, edges: tuple[int, int, int, int], fill: Fill) -> Pixels:
    """Crop pixels left, top, right, bottom, and fill what lies outside the image."""
    left_px, top, right, bottom = edges
    height, width = pixels.shape[:2]
    rows = slice(min(max(top, 0), height), min(max(bottom, 0), height))
    columns = slice(min(max(left_px, 0), width), min(max(right, 0), width))
    visible_pixels = np.ascontiguousarray(pixels[rows, columns])
    if not visible_pixels.size:
        raise SpecError(
            "the region to cut out is outside its picture",
            expected=f"a part of {width} × {height} pixels",
            found=f"{left_px}, {top} to {right}, {bottom}",
        )
    if fill == "cut" or visible_pixels.shape[:2] == (bottom - top, right - left_px):
        return visible_pixels
    if (bottom - top) * (right - left_px) > MAX_CROP_PX:
        raise _too_large(right - left_px, bottom - top)
    padding_px = (
        (rows.start - top, bottom - rows.stop),
        (columns.start - left_px, right - columns.stop),
        (0, 0),
    )
    if fill == "black":
        return np.pad(visible_pixels, padding_px)
    # FHIBE pads with "the mean value along each axis", which is numpy's mode.
    return np.pad(visible_pixels, padding_px, mode="mean")


def _too_large(width: int, height: int) -> SpecError:
    return SpecError(
        "the crop and its padding would be larger than a picture may be",
        expected=f"at most {MAX_CROP_PX:,} pixels",
        found=f"{width:,} × {height:,}",
    )
