"""sRGB to light, and to CIELAB: the standards' formulas on arrays, for what is seen in pixels.

IEC 61966-2-1 (sRGB, its transfer curve and primaries), CIE 15:2004 (L*, a*, b*; white is D65, the
2 degree observer, as sRGB's is).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


def _build_srgb_linearisation_table() -> FloatArray:
    stored = np.arange(256) / 255.0
    # IEC 61966-2-1: straight near black, a power of 2.4 above.
    return np.where(stored <= 0.04045, stored / 12.92, ((stored + 0.055) / 1.055) ** 2.4)


LINEAR_LIGHT = _build_srgb_linearisation_table()
"""Light of each of the 256 stored values, 0 to 1."""

TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
"""Linear red, green and blue to X, Y, Z; its second row makes luminance."""

WHITE_XYZ = TO_XYZ.sum(axis=1)
"""What (255, 255, 255) makes: D65, so that greys have a* = b* = 0 exactly."""

# CIE 15: below the edge the cube root, whose slope would be infinite at 0, is a straight line.
_CIE_THRESHOLD, _CIE_SLOPE = (6.0 / 29.0) ** 3, (29.0 / 6.0) ** 2 / 3.0


def linear_rgb_to_lab(linear_rgb: FloatArray) -> FloatArray:
    """Turn linear red, green and blue (0 to 1) into CIELAB: ``[..., 3]`` both."""
    xyz = linear_rgb @ TO_XYZ.T / WHITE_XYZ
    f = np.where(xyz > _CIE_THRESHOLD, np.cbrt(xyz), xyz * _CIE_SLOPE + 4.0 / 29.0)
    x, y, z = np.moveaxis(f, -1, 0)
    return np.stack([116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)], axis=-1)


def luminance_to_lightness(luminance: FloatArray) -> FloatArray:
    """Turn luminance (0 to 1, white is 1) into L*, 0 to 100: equal steps look equally large."""
    cube_root = np.where(
        luminance > _CIE_THRESHOLD, np.cbrt(luminance), luminance * _CIE_SLOPE + 4.0 / 29.0
    )
    lightness: FloatArray = 116.0 * cube_root - 16.0
    return lightness
