"""Colours: hexadecimal to numbers, mixing, and between sRGB and linear light.

Shapes are painted in sRGB numbers (0 to 255), as an illustrator's program does; exposure and colour
casts are applied to linear light, as a camera does (``light.py``).
"""

from __future__ import annotations

from functools import cache

import numpy as np

from isolux_worlds.drawing._raster import _Floats

__all__ = [
    "Colour",
    "darken",
    "hex_to_rgb",
    "lighten",
    "linear_to_srgb",
    "mix_colours",
    "srgb_to_linear",
]

Colour = tuple[float, float, float]
"""Red, green and blue, 0 to 255, sRGB."""
WHITE: Colour = (255.0, 255.0, 255.0)
BLACK: Colour = (0.0, 0.0, 0.0)


@cache
def hex_to_rgb(hex_colour: str) -> Colour:
    """Return the numbers of a colour written in hexadecimal."""
    return (
        float(int(hex_colour[1:3], 16)),
        float(int(hex_colour[3:5], 16)),
        float(int(hex_colour[5:7], 16)),
    )


def mix_colours(first: Colour, second: Colour, share: float) -> Colour:
    """Return the colour that lies between two, ``share`` of the way to the second."""
    r, g, b = (a * (1.0 - share) + b * share for a, b in zip(first, second, strict=True))
    return r, g, b


def darken(colour: Colour, share: float) -> Colour:
    """Return a colour mixed with that share of black."""
    return mix_colours(colour, BLACK, share)


def lighten(colour: Colour, share: float) -> Colour:
    """Return a colour mixed with that share of white."""
    return mix_colours(colour, WHITE, share)


def srgb_to_linear(srgb: _Floats) -> _Floats:
    """Return linear light (0 to 1) of sRGB numbers (0 to 255): IEC 61966-2-1."""
    v = np.asarray(srgb, dtype=np.float64) / 255.0
    return np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)


def linear_to_srgb(linear: _Floats) -> _Floats:
    """Return sRGB numbers (0 to 255) of linear light (0 to 1): IEC 61966-2-1."""
    v = np.clip(np.asarray(linear, dtype=np.float64), 0.0, 1.0)
    return 255.0 * np.where(v <= 0.0031308, v * 12.92, 1.055 * v ** (1 / 2.4) - 0.055)
