"""CIELAB a second time, one colour at a time in plain Python, from the standards' own numbers.

The product uses a printed matrix; here the matrix is solved from the primaries' and the white's
chromaticities (IEC 61966-2-1, ITU-R BT.709), and L* is written with CIE's κ and ε.
"""

from __future__ import annotations

import math

import numpy as np

PRIMARIES = ((0.64, 0.33), (0.30, 0.60), (0.15, 0.06))
WHITE = (0.3127, 0.3290)  # D65
EPSILON, KAPPA = 216 / 24389, 24389 / 27

MONK = {
    "#f6ede4": 1, "#f3e7db": 2, "#f7ead0": 3, "#eadaba": 4, "#d7bd96": 5,
    "#a07e56": 6, "#825c43": 7, "#604134": 8, "#3a312a": 9, "#292420": 10,
}  # fmt: skip
"""The published colours of the ten tones of the Monk Skin Tone scale."""


def rgb_of(colour: str) -> tuple[int, int, int]:
    """``#a07e56`` to (160, 126, 86)."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def _xyz(x: float, y: float) -> list[float]:
    return [x / y, 1.0, (1.0 - x - y) / y]


def lab(rgb: tuple[int, int, int]) -> tuple[float, float, float]:
    """One colour's L*, a*, b*."""
    primaries = np.array([_xyz(*p) for p in PRIMARIES]).T
    white = _xyz(*WHITE)
    amounts = np.linalg.solve(primaries, white)
    linear = []
    for stored in rgb:
        v = stored / 255
        linear.append(v / 12.92 if v <= 0.04045 else math.pow((v + 0.055) / 1.055, 2.4))
    xyz = [
        sum(primaries[i][j] * amounts[j] * linear[j] for j in range(3)) / white[i] for i in range(3)
    ]
    f = [math.pow(t, 1 / 3) if t > EPSILON else (KAPPA * t + 16) / 116 for t in xyz]
    return 116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])


def ita(rgb: tuple[int, int, int]) -> float:
    """The published formula: arctan((L* − 50) / b*), degrees."""
    lightness, _, b = lab(rgb)
    return math.degrees(math.atan((lightness - 50) / b))
