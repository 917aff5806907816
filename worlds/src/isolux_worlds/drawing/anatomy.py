"""A person to be painted: joints, the frame of the face, the size of a head, how they look.

``photo_world`` people (a row) → ``Figure`` → ``person.paint_person``. All lengths of a body are
shares of the head's height ``u`` (an adult is about seven and a half of them tall), so that a
drawing does not hang on the photo's size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isolux_worlds._draw import stream
from isolux_worlds.drawing._raster import _Floats
from isolux_worlds.drawing.canvas import Places, Point
from isolux_worlds.drawing.look import Look, look_of
from isolux_worlds.photo_world.tables import JOINTS
from isolux_worlds.photo_world.vocabulary import DRAWN

__all__ = ["Figure", "Frame", "figure_of", "joined", "mirrored", "words_of"]

_HEAD_PER_FACE = 1.2
"""A head's height by that of a face from forehead to chin, as in ``photo_world/poses.py``."""
_EYES_AT, _MOUTH_AT, _EARS_AT = -0.236, 0.455, -0.055
"""Where eyes, mouth and ears stand in a face from −1 (forehead) to 1 (chin): likewise."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Coordinates of a thing: an origin, and one step right and one step down in pixels."""

    origin: Point
    right: Point
    down: Point

    def at(self, x: float, y: float) -> Point:
        """Return the pixel of a place."""
        (ox, oy), (rx, ry), (dx, dy) = self.origin, self.right, self.down
        return ox + x * rx + y * dx, oy + x * ry + y * dy

    def all(self, places: Places) -> _Floats:
        """Return the pixels of several places: [n, 2]."""
        array = np.asarray(places, dtype=np.float64)
        pixels: _Floats = array @ np.array([self.right, self.down]) + np.array(self.origin)
        return pixels

    def inverse(self, point: Point) -> Point:
        """Return the place of a pixel."""
        x, y = point[0] - self.origin[0], point[1] - self.origin[1]
        (rx, ry), (dx, dy) = self.right, self.down
        return (x * rx + y * ry) / (rx**2 + ry**2), (x * dx + y * dy) / (dx**2 + dy**2)

    @property
    def half_width(self) -> float:
        """Pixels of one step right."""
        return math.hypot(*self.right)

    @property
    def half_height(self) -> float:
        """Pixels of one step down."""
        return math.hypot(*self.down)

    @property
    def turn(self) -> float:
        """Radians, clockwise."""
        return math.atan2(self.right[1], self.right[0])


@dataclass(frozen=True, slots=True)
class Figure:
    """A person in a photo, ready to be painted."""

    owner: int
    joints: Mapping[str, Point]
    face: Frame
    u: float
    look: Look
    words: Mapping[str, str]
    rng: np.random.Generator

    def middle(self, name: str) -> Point:
        """Return the middle between the right and the left joint of a name (``shoulder``)."""
        return joined(self.joints[f"right_{name}"], self.joints[f"left_{name}"], 0.5)

    @property
    def middle_of_mouth(self) -> Point:
        """The middle between the corners of the mouth."""
        return joined(self.joints["mouth_right"], self.joints["mouth_left"], 0.5)


def joined(a: Point, b: Point, share: float) -> Point:
    """Return the place that far from ``a`` to ``b``."""
    return a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share


def mirrored(first: Point, half: Sequence[Point], last: Point) -> list[Point]:
    """Return an outline: down one half, and up the same on the other side of the axis."""
    return [first, *half, last, *((-x, y) for x, y in reversed(half))]


def words_of(row: Mapping[str, Any]) -> dict[str, str]:
    """Return every drawn attribute of a row; what a world does not say is the commonest value."""
    return {
        name: str(row.get(name) or max(drawn.shares, key=lambda v: drawn.shares[v]))
        for name, drawn in DRAWN.items()
    }


def figure_of(row: Mapping[str, Any], owner: int, seed: int) -> Figure:
    """Return the figure of one row of ``people``."""
    places = zip(JOINTS, row["joints_x"], row["joints_y"], strict=True)
    joints = {name: (float(x), float(y)) for name, x, y in places}
    face = _face_of(joints)
    words = words_of(row)
    return Figure(
        owner=owner,
        joints=joints,
        face=face,
        u=2.0 * face.half_height * _HEAD_PER_FACE,
        look=look_of(words, int(row["age"]), seed, str(row["subject_id"])),
        words=words,
        rng=stream(seed, "person", str(row["person_id"])),
    )


def _face_of(joints: Mapping[str, Point]) -> Frame:
    """Return the face's frame: as wide as the ears are apart, as high as eyes and mouth say."""
    ears = joined(joints["right_ear"], joints["left_ear"], 0.5)
    right = (joints["left_ear"][0] - ears[0], joints["left_ear"][1] - ears[1])
    eyes = joined(joints["right_eye"], joints["left_eye"], 0.5)
    mouth = joined(joints["mouth_right"], joints["mouth_left"], 0.5)
    tall = _MOUTH_AT - _EYES_AT
    down = ((mouth[0] - eyes[0]) / tall, (mouth[1] - eyes[1]) / tall)
    origin = (ears[0] - _EARS_AT * down[0], ears[1] - _EARS_AT * down[1])
    return Frame(origin, right, down)
