"""The light of a photo: from where it comes, how strong it is, its colour, and what a sensor adds.

``lighting`` and ``time_of_day`` → ``Light``; ``develop_photo`` turns a painted picture into the
photo: linear light times the exposure and the colour cast, clipped as a sensor clips, back to sRGB,
plus noise that grows in the dark. Under ``well_lit`` at ``daytime`` the exposure is 1 and the cast
is white, so that a Monk tone stays the published colour.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit
from isolux_worlds.drawing._raster import _Floats, _hash_pixel, _Picture
from isolux_worlds.drawing.colour import linear_to_srgb, srgb_to_linear

__all__ = ["Light", "blur_in_place", "develop_photo", "draw_random_light"]

_EXPOSURE: Mapping[str, float] = {
    "well_lit": 1.0,
    "dimly_lit": 0.32,
    "underexposed": 0.11,
    "overexposed": 2.5,
}
_NOISE: Mapping[str, float] = {
    "well_lit": 1.2,
    "dimly_lit": 4.5,
    "underexposed": 5.5,
    "overexposed": 0.8,
}
"""Standard deviation in sRGB numbers, about; of the sensor, before the eye."""
_CAST: Mapping[str, tuple[float, float, float]] = {
    "daytime": (1.0, 1.0, 1.0),
    "dawn_dusk": (1.02, 0.84, 0.66),
    "night": (0.58, 0.60, 0.74),
}


@dataclass(frozen=True, slots=True)
class Light:
    """The light of one photo."""

    direction: tuple[float, float, float]
    exposure: float
    cast: tuple[float, float, float]
    noise: float


def draw_random_light(lighting: str, time_of_day: str, rng: np.random.Generator) -> Light:
    """Return the light of a photo; its direction is drawn, left or right and from above."""
    sideways = float(rng.uniform(0.25, 0.6)) * (1.0 if rng.random() < 0.5 else -1.0)
    length = math.sqrt(sideways * sideways + 0.5 * 0.5 + 0.75 * 0.75)
    direction = (sideways / length, -0.5 / length, 0.75 / length)
    return Light(direction, _EXPOSURE[lighting], _CAST[time_of_day], _NOISE[lighting])


def develop_photo(picture: _Picture, light: Light, salt: int) -> npt.NDArray[np.uint8]:
    """Return the photo: [h, w, 3] uint8; ``salt`` decides the noise."""
    out = np.empty(picture.shape, np.uint8)
    gain = np.array(light.cast) * light.exposure
    table = linear_to_srgb(_build_srgb_to_linear_table()[None, :] * gain[:, None]).astype(
        np.float32
    )
    _expose_kernel(picture, table, light.noise, salt & 0x7FFFFFFF, out)
    return out


def blur_in_place(picture: _Picture, radius: int) -> None:
    """Blur a background in place, as depth of field does: the mean of a square about a pixel."""
    rows = np.empty_like(picture)
    _write_box_mean(picture, rows, radius, 0)
    _write_box_mean(rows, picture, radius, 1)


@cache
def _build_srgb_to_linear_table() -> _Floats:
    """Linear light of 1,024 quarter steps of sRGB numbers."""
    return srgb_to_linear(np.arange(1024) / 4.0)


@njit(nogil=True, error_model="numpy")
def _expose_kernel(
    picture: _Picture, table: _Picture, noise: float, salt: int, out: npt.NDArray[np.uint8]
) -> None:
    # Sums of two bytes of one hash make a triangle: near enough to a normal for a sensor. A byte's
    # standard deviation is 74; grey noise has four fifths of the variance, colour one.
    grey_scale, own_scale = noise * 0.85 / 104.5, noise * 0.5 / 74.0
    for y in range(picture.shape[0]):
        for x in range(picture.shape[1]):
            h = _hash_pixel(x, y, salt)
            grey = grey_scale * ((h & 0xFF) + (h >> 8 & 0xFF) - 255.0) + 0.5
            for c in range(3):
                table_index = int(min(1023.0, max(0.0, picture[y, x, c] * np.float32(4.0))))
                channel_noise = own_scale * ((h >> (12 + 6 * c) & 0xFF) - 127.5)
                out[y, x, c] = int(
                    min(255.0, max(0.0, table[c, table_index] + grey + channel_noise))
                )


@njit(nogil=True, error_model="numpy")
def _write_box_mean(picture: _Picture, out: _Picture, radius: int, axis: int) -> None:
    """Write the mean along rows (axis 0) or along columns (1); at the borders of what is there."""
    height, width, _ = picture.shape
    for y in range(height):
        for x in range(width):
            if axis == 0:
                first, last = max(0, y - radius), min(height, y + radius + 1)
            else:
                first, last = max(0, x - radius), min(width, x + radius + 1)
            share = np.float32(1.0 / (last - first))
            for c in range(3):
                total = np.float32(0.0)
                for k in range(first, last):
                    total += picture[k, x, c] if axis == 0 else picture[y, k, c]
                out[y, x, c] = total * share
