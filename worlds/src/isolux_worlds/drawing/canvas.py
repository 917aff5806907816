"""A canvas: shapes are collected in order, farthest first, then painted at once.

Painters append shapes with a colour (``Canvas.ellipse``, ``capsule``, ``polygon``, ``blob``,
``line``); ``with canvas.as_part(owner, part)`` says whose they are. A shape without an owner
leaves the label pictures as they are: shading, shadows, lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from isolux_worlds.drawing._raster import (
    CAPSULE,
    COLUMNS,
    CYLINDER,
    ELLIPSE,
    FLAT,
    LINEAR,
    POLYGON,
    _Floats,
    _Labels,
    _Picture,
    paint_shapes_in_order,
)
from isolux_worlds.drawing.colour import Colour
from isolux_worlds.photo_world.tables import PARTS

__all__ = ["NO_OWNER", "OCCLUDER", "Canvas", "Paint", "Point", "PointList"]

Point = tuple[float, float]
PointList = Sequence[Point] | _Floats
"""Places as pairs, or as rows of an array [n, 2]."""
NO_OWNER, OCCLUDER = 0, 255
"""Owners that are not a person."""
_PART_NUMBER = {name: k for k, name in enumerate(PARTS, start=1)}


@dataclass(frozen=True, slots=True)
class Paint:
    """What a shape is painted with."""

    colour: Colour
    end_colour: Colour | None = None
    along: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)
    alpha: float = 1.0
    soft: float = 0.0
    round: float = 0.0
    across: tuple[float, float, float, float] | None = None
    grain: float = 0.0
    grain_px: float = 1.0

    def to_kernel_parameters(self) -> list[float]:
        """Return what the kernels read, from ``soft`` to ``round``."""
        mode, gradient = FLAT, (0.0, 0.0, 0.0, 0.0)
        if self.across is not None:
            mode, gradient = CYLINDER, self.across
        elif self.end_colour is not None:
            mode, gradient = LINEAR, self.along
        end_colour = self.colour if self.end_colour is None else self.end_colour
        return [
            self.soft,
            self.alpha,
            *self.colour,
            *end_colour,
            float(mode),
            *gradient,
            self.round,
        ]


@dataclass(slots=True)
class Canvas:
    """A picture of a size, its label pictures, and the shapes that wait to be painted."""

    width: int
    height: int
    light: tuple[float, float, float] = (0.0, 0.0, 1.0)
    haze_colour: Colour = (255.0, 255.0, 255.0)
    haze: float = 0.0
    picture: _Picture = field(init=False)
    owner: _Labels = field(init=False)
    part_labels: _Labels = field(init=False)
    body_px: npt.NDArray[np.int64] = field(init=False)
    _touched: _Labels = field(init=False)
    _area: _Picture = field(init=False)
    _rows: list[float] = field(default_factory=list)
    _points: list[_Floats] = field(default_factory=list)
    _n_points: int = 0
    _labels: list[float] = field(default_factory=lambda: [-1.0, 0.0])
    _clip: list[float] = field(default_factory=lambda: [-1.0, -1.0])

    def __post_init__(self) -> None:
        size = (self.height, self.width)
        self.picture = np.zeros((*size, 3), np.float32)
        self.owner, self.part_labels = np.zeros(size, np.uint8), np.zeros(size, np.uint8)
        self._touched, self._area = np.zeros(size, np.uint8), np.zeros(size, np.float32)
        self.body_px = np.zeros(256, np.int64)

    @contextmanager
    def as_part(self, owner: int, part_name: str | None = None) -> Iterator[None]:
        """Give the shapes inside an owner (1 the first person) and one of ``PARTS``."""
        previous_labels = self._labels
        self._labels = [float(owner), float(_PART_NUMBER[part_name]) if part_name else 0.0]
        yield
        self._labels = previous_labels

    @contextmanager
    def only_on(self, owner: int, part_name: str | None = None) -> Iterator[None]:
        """Paint the shapes inside only where that owner's (part) is on top; labels stay."""
        previous_state = self._clip, self._labels
        self._clip = [float(owner), float(_PART_NUMBER[part_name]) if part_name else -1.0]
        self._labels = [-1.0, 0.0]
        yield
        self._clip, self._labels = previous_state

    def ellipse(
        self, centre: Point, rx: float, ry: float, paint_with: Paint | Colour, turn: float = 0.0
    ) -> None:
        """Append an ellipse; ``turn`` radians, clockwise as pictures have y downwards."""
        if rx <= 0 or ry <= 0:
            return
        geometry = [centre[0], centre[1], rx, ry, math.cos(turn), math.sin(turn)]
        self._append_shape(ELLIPSE, geometry, paint_with)

    def capsule(self, a: Point, ra: float, b: Point, rb: float, paint_with: Paint | Colour) -> None:
        """Append a limb from ``a`` to ``b`` with a radius at each end, both ends round."""
        self._append_shape(CAPSULE, [*a, max(ra, 0.0), *b, max(rb, 0.0)], paint_with)

    def polygon(self, corners: PointList, paint_with: Paint | Colour) -> None:
        """Append a polygon with straight edges."""
        array = np.asarray(corners, dtype=np.float64)
        first = self._n_points
        self._points.append(array)
        self._n_points += len(array)
        self._append_shape(POLYGON, [first, self._n_points, 0.0, 0.0, 0.0, 0.0], paint_with)

    def blob(self, corners: PointList, paint_with: Paint | Colour, steps: int = 6) -> None:
        """Append a closed curve through its corners (Catmull–Rom)."""
        self.polygon(
            _interpolate_closed_curve(np.asarray(corners, dtype=np.float64), steps), paint_with
        )

    def line(self, points: Sequence[Point], width: float, paint_with: Paint | Colour) -> None:
        """Append a line of that width through places, with round joints."""
        for a, b in pairwise(points):
            self.capsule(a, width / 2, b, width / 2, paint_with)

    def curve(
        self, points: PointList, width: float, paint_with: Paint | Colour, steps: int = 4
    ) -> None:
        """Append a smooth line through places: one polygon, so that alpha is even."""
        path = _interpolate_open_curve(np.asarray(points, dtype=np.float64), steps)
        step = np.concatenate([path[1:2] - path[:1], path[2:] - path[:-2], path[-1:] - path[-2:-1]])
        length = np.maximum(np.hypot(step[:, 0], step[:, 1]), 1e-9)
        normal = np.column_stack([-step[:, 1] / length, step[:, 0] / length]) * (width / 2)
        self.polygon(np.concatenate([path + normal, (path - normal)[::-1]]), paint_with)

    def paint(self) -> None:
        """Paint what was collected, then forget it."""
        shapes = np.array(self._rows, dtype=np.float64).reshape(-1, COLUMNS)
        points = np.concatenate(self._points) if self._points else np.zeros((0, 2))
        labels = (self.owner, self.part_labels, self._touched, self.body_px)
        light, haze = np.array(self.light), np.array(self.haze_colour)
        paint_shapes_in_order(shapes, points, self.picture, *labels, light, haze, self._area)
        self._rows, self._points, self._n_points = [], [], 0

    def _append_shape(
        self, shape_type: int, geometry: list[float], paint_with: Paint | Colour
    ) -> None:
        fill = paint_with if isinstance(paint_with, Paint) else Paint(paint_with)
        self._rows += [
            float(shape_type),
            *geometry,
            *fill.to_kernel_parameters(),
            *self._labels,
            *self._clip,
        ]
        self._rows += [fill.grain, fill.grain_px, self.haze]


@cache
def _compute_catmull_rom_weights(steps: int) -> _Floats:
    """Catmull–Rom weights of four neighbours: [steps, 4]."""
    t = np.arange(steps)[:, None] / steps
    before, current = -(t**3) + 2 * t**2 - t, 3 * t**3 - 5 * t**2 + 2
    after, beyond = -3 * t**3 + 4 * t**2 + t, t**3 - t**2
    return 0.5 * np.concatenate([before, current, after, beyond], axis=1)


def _interpolate_closed_curve(corners: _Floats, steps: int) -> _Floats:
    around = np.stack([np.roll(corners, k, axis=0) for k in (1, 0, -1, -2)])  # [4, n, 2]
    curve: _Floats = np.einsum("sk,kni->nsi", _compute_catmull_rom_weights(steps), around).reshape(
        -1, 2
    )
    return curve


def _interpolate_open_curve(points: _Floats, steps: int) -> _Floats:
    padded = np.concatenate([points[:1], points, points[-1:]])
    around = np.stack([padded[k : len(padded) - 3 + k] for k in range(4)])
    curve = np.einsum("sk,kni->nsi", _compute_catmull_rom_weights(steps), around).reshape(-1, 2)
    return np.concatenate([curve, points[-1:]])
