"""A person to be painted: joints, the frame of the face, the size of a head, how they look.

``photo_world`` people (a row) → ``PersonFigure`` → ``person.paint_person``. All lengths of a body
are shares of the head's height ``u`` (an adult is about seven and a half of them tall), so that a
drawing does not hang on the photo's size.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isolux_worlds._random_streams import build_named_rng
from isolux_worlds.drawing._raster import _Floats
from isolux_worlds.drawing.canvas import Point, PointList
from isolux_worlds.drawing.colour import Colour, hex_to_rgb, mix_colours
from isolux_worlds.photo_world.tables import JOINTS
from isolux_worlds.photo_world.vocabulary import BUILT_IN_ATTRIBUTES, MONK_TONES

__all__ = [
    "Appearance",
    "Frame",
    "PersonFigure",
    "SkinColours",
    "build_person_figure",
    "build_symmetric_outline",
    "interpolate_points",
    "read_attribute_values_or_defaults",
]

_IRIS = ("#5b3a1e", "#3e2815", "#6d4c26", "#7a6a35", "#5d7048", "#5d7f95", "#6d8a9c", "#727b80")
_HAIR: Mapping[str, tuple[str, ...]] = {
    "black": ("#1c1817", "#241d1b", "#17171a"),
    "brown": ("#4f3422", "#6a4429", "#3f2a1d"),
    "blonde": ("#d6b06a", "#c79a55", "#e3c684"),
    "red": ("#a2461f", "#b65628", "#8c3a1e"),
    "grey": ("#9c9a97", "#b9b6b2", "#85837f"),
    "colored": ("#7b3fa0", "#2f7fb5", "#d1498b", "#2c9c7c"),
}
_CLOTH = (
    "#c0433c",
    "#2f6690",
    "#3a7d5d",
    "#d9a441",
    "#7a4f8a",
    "#d97d54",
    "#4a5a6a",
    "#e8e2d5",
    "#3b3f46",
    "#8fb0c4",
    "#b8647a",
    "#6d8b4f",
    "#f0c9b0",
    "#24476b",
    "#9a3b4e",
    "#5fa8a0",
)
_TROUSERS = ("#2c3e57", "#3c3f45", "#4b5a70", "#6b5d4d", "#23262b", "#57606a", "#85775f")
_SHOES = ("#26221f", "#5a3e2b", "#e6e3dd", "#3a4350", "#7d2f2f")


@dataclass(frozen=True, slots=True)
class SkinColours:
    """A Monk tone and the colours that go with it."""

    tone: Colour
    shadow: Colour
    sheen: Colour
    blush: Colour
    upper_lip: Colour
    lower_lip: Colour
    line: Colour


@dataclass(frozen=True, slots=True)
class Appearance:
    """Features of a subject; lengths are shares of the usual one, styles 0 to 1."""

    skin: SkinColours
    hair: Colour
    feminine: float
    age: int
    length: float
    jaw: float
    chin: float
    nose: float
    lips: float
    eye: float
    brow: float
    build: float
    iris: Colour
    parting: float
    style: float
    beard: float
    top: Colour
    second: Colour
    bottom: Colour
    shoes: Colour


def skin_colours_of_monk_tone(monk_tone: str) -> SkinColours:
    """Return the colours of one of the ten Monk tones."""
    base = hex_to_rgb(MONK_TONES[monk_tone])
    depth = 1.0 - (0.3 * base[0] + 0.59 * base[1] + 0.11 * base[2]) / 255.0  # 0 light, 1 dark
    return SkinColours(
        tone=base,
        shadow=mix_colours(base, mix_colours((120.0, 62.0, 40.0), (6.0, 3.0, 2.0), depth), 0.42),
        sheen=mix_colours(base, (255.0, 240.0, 222.0), 0.08 + 0.32 * depth),
        blush=mix_colours(base, (205.0, 78.0, 70.0), 0.30),
        upper_lip=mix_colours(
            base, mix_colours((168.0, 62.0, 66.0), (120.0, 52.0, 56.0), depth), 0.62
        ),
        lower_lip=mix_colours(
            base, mix_colours((196.0, 88.0, 90.0), (158.0, 78.0, 80.0), depth), 0.62
        ),
        line=mix_colours(base, mix_colours((92.0, 48.0, 32.0), (0.0, 0.0, 0.0), depth), 0.62),
    )


def derive_appearance(
    value_by_attribute: Mapping[str, str], age: int, seed: int, subject: str
) -> Appearance:
    """Return how a subject looks: the same in every photo."""
    rng = build_named_rng(seed, "look", subject)
    u = rng.random(24)
    feminine = {"feminine": 1.0, "masculine": 0.0}.get(
        value_by_attribute["perceived_gender_presentation"], 0.5
    )
    hair = _choose_colour_at(_HAIR[value_by_attribute["hair_color"]], u[0])
    greying = (
        min(0.45, max(0.0, (age - 48) / 70))
        if value_by_attribute["hair_color"] != "colored"
        else 0.0
    )
    return Appearance(
        skin=skin_colours_of_monk_tone(value_by_attribute["skin_tone"]),
        hair=mix_colours(hair, (196.0, 194.0, 190.0), greying),
        feminine=feminine,
        age=age,
        length=float(np.clip(0.14 + 0.72 * feminine + 0.28 * (u[1] - 0.5), 0.02, 1.0)),
        jaw=0.84 + 0.16 * u[2] - 0.06 * feminine,
        chin=0.97 + 0.07 * u[3],
        nose=0.82 + 0.45 * u[4],
        lips=0.75 + 0.5 * u[5] + 0.1 * feminine,
        eye=0.92 + 0.18 * u[6],
        brow=0.75 + 0.5 * u[7] + 0.25 * (1 - feminine),
        build=0.9 + 0.28 * u[8],
        iris=_choose_colour_at(_IRIS, u[9]),
        parting=1.0 if u[10] < 0.5 else -1.0,
        style=float(u[11]),
        beard=float(u[12]),
        top=_choose_colour_at(_CLOTH, u[13]),
        second=_choose_colour_at(_CLOTH, u[14]),
        bottom=_choose_colour_at(_TROUSERS, u[15]),
        shoes=_choose_colour_at(_SHOES, u[16]),
    )


def _choose_colour_at(colours: tuple[str, ...], position: float) -> Colour:
    return hex_to_rgb(colours[int(position * len(colours))])


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

    def to_pixel(self, x: float, y: float) -> Point:
        """Return the pixel of a place."""
        (ox, oy), (rx, ry), (dx, dy) = self.origin, self.right, self.down
        return ox + x * rx + y * dx, oy + x * ry + y * dy

    def to_pixels(self, points: PointList) -> _Floats:
        """Return the pixels of several places: [n, 2]."""
        array = np.asarray(points, dtype=np.float64)
        pixels: _Floats = array @ np.array([self.right, self.down]) + np.array(self.origin)
        return pixels

    def to_local(self, point: Point) -> Point:
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
class PersonFigure:
    """A person in a photo, ready to be painted."""

    owner: int
    joints: Mapping[str, Point]
    face: Frame
    u: float
    look: Appearance
    words: Mapping[str, str]
    rng: np.random.Generator

    def joint_midpoint(self, name: str) -> Point:
        """Return the middle between the right and the left joint of a name (``shoulder``)."""
        return interpolate_points(self.joints[f"right_{name}"], self.joints[f"left_{name}"], 0.5)

    @property
    def mouth_midpoint(self) -> Point:
        """The middle between the corners of the mouth."""
        return interpolate_points(self.joints["mouth_right"], self.joints["mouth_left"], 0.5)


def interpolate_points(a: Point, b: Point, share: float) -> Point:
    """Return the place that far from ``a`` to ``b``."""
    return a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share


def build_symmetric_outline(first: Point, half: Sequence[Point], last: Point) -> list[Point]:
    """Return an outline: down one half, and up the same on the other side of the axis."""
    return [first, *half, last, *((-x, y) for x, y in reversed(half))]


def read_attribute_values_or_defaults(person_row: Mapping[str, Any]) -> dict[str, str]:
    """Return every drawn attribute of a row; what a world does not say is the commonest value."""
    return {
        name: str(person_row.get(name) or max(attribute.shares, key=lambda v: attribute.shares[v]))
        for name, attribute in BUILT_IN_ATTRIBUTES.items()
    }


def build_person_figure(person_row: Mapping[str, Any], owner: int, seed: int) -> PersonFigure:
    """Return the figure of one row of ``people``."""
    joint_positions = zip(JOINTS, person_row["joints_x"], person_row["joints_y"], strict=True)
    joints = {name: (float(x), float(y)) for name, x, y in joint_positions}
    face = _build_face_frame(joints)
    words = read_attribute_values_or_defaults(person_row)
    return PersonFigure(
        owner=owner,
        joints=joints,
        face=face,
        u=2.0 * face.half_height * _HEAD_PER_FACE,
        look=derive_appearance(words, int(person_row["age"]), seed, str(person_row["subject_id"])),
        words=words,
        rng=build_named_rng(seed, "person", str(person_row["person_id"])),
    )


def _build_face_frame(joints: Mapping[str, Point]) -> Frame:
    """Return the face's frame: as wide as the ears are apart, as high as eyes and mouth say."""
    ears = interpolate_points(joints["right_ear"], joints["left_ear"], 0.5)
    right = (joints["left_ear"][0] - ears[0], joints["left_ear"][1] - ears[1])
    eyes = interpolate_points(joints["right_eye"], joints["left_eye"], 0.5)
    mouth = interpolate_points(joints["mouth_right"], joints["mouth_left"], 0.5)
    tall = _MOUTH_AT - _EYES_AT
    down = ((mouth[0] - eyes[0]) / tall, (mouth[1] - eyes[1]) / tall)
    origin = (ears[0] - _EARS_AT * down[0], ears[1] - _EARS_AT * down[1])
    return Frame(origin, right, down)
