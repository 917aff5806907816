"""Where people stand in a photo: how large, how far to the side, who is in front of whom.

``view`` says what of a person is in the photo: all of them (``full``); head to hips, the border
cutting them there (``torso``); head and shoulders (``face``). ``distance`` says how large that is.
Nearer people are larger, stand lower, and cover those behind.

The photo's width is parted among its people. No one's shoulders reach over a neighbour's head, so
that of two people neither covers the other whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux_worlds._random_streams import FloatArray, IntArray
from isolux_worlds.photo_world.poses import FLESH, HIPS_TO_TOP, SHOULDERS_TO_TOP, Figures, Floats
from isolux_worlds.photo_world.tables import JOINTS

__all__ = ["LEAST_PX", "Placement", "place_people_in_photos"]

Coded = tuple[tuple[str, ...], IntArray]
"""An attribute's values, and the place of each person's."""

LEAST_PX = 8.0
"""No box is narrower or lower than this."""

_NOSE, _RIGHT_EAR, _LEFT_EAR = (JOINTS.index(n) for n in ("nose", "right_ear", "left_ear"))
_RIGHT_SHOULDER, _LEFT_SHOULDER = (JOINTS.index(f"{s}_shoulder") for s in ("right", "left"))
_BELOW_SHOULDERS = 0.06
_REACH = 0.16  # half the breadth of shoulders and what is around them
_FRACTIONS: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "full": {"near": (0.74, 0.92), "middle": (0.50, 0.68), "far": (0.30, 0.44)},
    "torso": {"near": (0.76, 0.90), "middle": (0.58, 0.70), "far": (0.42, 0.52)},
    "face": {"near": (0.74, 0.86), "middle": (0.54, 0.66), "far": (0.38, 0.48)},
}
"""What is in the photo of a person, in parts of the photo's height."""
_SPANS = {"full": 1.0, "torso": HIPS_TO_TOP, "face": SHOULDERS_TO_TOP + _BELOW_SHOULDERS}
_OWN_PART = 0.65  # of a place: what stands out of its middle; two neighbours' heads are .7 apart
_MARGIN = 0.015


@dataclass(frozen=True, slots=True)
class Placement:
    """Everyone's joints and boxes in pixels, and their order of depth.

    ``joints_x``, ``joints_y``: [people, 33]; ``box``, ``face``: [people, 4]; ``layer``: [people]
    int.
    """

    joints_x: npt.NDArray[np.float32]
    joints_y: npt.NDArray[np.float32]
    box: FloatArray
    face: FloatArray
    layer: IntArray


def place_people_in_photos(
    body: Figures,
    *,
    view: Coded,
    distance: Coded,
    image: IntArray,
    stature: FloatArray,
    size: tuple[int, int],
    rng: np.random.Generator,
) -> Placement:
    """Put bodies into photos.

    ``image``: [people] int; ``stature``: [people] float.
    """
    width, height = size
    crowd = np.bincount(image)[image]
    left, right = _compute_horizontal_reach(body, view)
    scale = _compute_pixels_per_stature(
        body, view, distance, (left, right), stature, width / crowd, size, rng
    )
    nose = _draw_nose_x((left * scale, right * scale), image, crowd, width, rng)
    x0 = nose - body.x[_NOSE] * scale
    y0 = _draw_hip_y(body, view, scale, height, rng)
    joints_x = (body.x * scale.astype(np.float32) + x0.astype(np.float32)).T
    joints_y = (body.y * scale.astype(np.float32) + y0.astype(np.float32)).T
    order = np.lexsort((scale, image))
    starts = np.flatnonzero(np.diff(image, prepend=-1))
    layer = np.empty(len(image), dtype=np.int64)
    layer[order] = np.arange(len(image)) - starts[image]
    x_range = body.x.min(axis=0) - FLESH, body.x.max(axis=0) + FLESH
    top = np.minimum(body.top_y, body.y.min(axis=0) - FLESH)
    box = _compute_boxes_xywh(x_range, (top, body.y.max(axis=0) + FLESH), scale, (x0, y0), size)
    ears = body.x[_RIGHT_EAR], body.x[_LEFT_EAR]
    face_sides, face_ends = (
        (np.minimum(*ears), np.maximum(*ears)),
        (body.face_top, body.face_bottom),
    )
    face = _compute_boxes_xywh(face_sides, face_ends, scale, (x0, y0), size)
    joints = (np.ascontiguousarray(joints_x), np.ascontiguousarray(joints_y))
    return Placement(*joints, box, face, layer)


def _has_attribute_value(attribute: Coded, word: str) -> npt.NDArray[np.bool_]:
    values, codes = attribute
    return codes == values.index(word) if word in values else np.zeros(len(codes), np.bool_)


def _compute_horizontal_reach(body: Figures, view: Coded) -> tuple[FloatArray, FloatArray]:
    """How far people reach to the left and right of their nose, in statures."""
    nose = body.x[_NOSE]
    full = _has_attribute_value(view, "full")
    left = np.where(full, nose - body.x.min(axis=0) + FLESH, _REACH)
    right = np.where(full, body.x.max(axis=0) - nose + FLESH, _REACH)
    return left.astype(np.float64), right.astype(np.float64)


def _compute_pixels_per_stature(
    body: Figures,
    view: Coded,
    distance: Coded,
    reach: tuple[FloatArray, FloatArray],
    stature: FloatArray,
    room: FloatArray,
    size: tuple[int, int],
    rng: np.random.Generator,
) -> FloatArray:
    """Pixels per stature: by distance, reduced where people would not fit."""
    width, height = size
    fractions = [[_FRACTIONS[v][d] for d in distance[0]] for v in view[0]]
    fraction_range = np.array(fractions, dtype=np.float64)[view[1], distance[1]]
    share = fraction_range[:, 0] + rng.random(len(room)) * (
        fraction_range[:, 1] - fraction_range[:, 0]
    )
    span = np.array([_SPANS[v] for v in view[0]])[view[1]]
    widest = np.maximum(*reach)
    max_height_px = np.minimum(_OWN_PART * room / np.maximum(widest, _REACH), 0.48 * width / widest)
    requested_px = share * height / span * stature
    # Cut borders let heads be large: those of one photo shrink together, so that near stays near.
    largest = height / span
    fitted_px = requested_px * np.minimum(1.0, max_height_px / largest)
    high = (body.y.max(axis=0) - body.top_y.clip(max=body.y.min(axis=0)) + 2 * FLESH).astype(float)
    fitting = np.minimum(np.minimum(requested_px, max_height_px), (1 - 2 * _MARGIN) * height / high)
    return np.asarray(
        np.where(_has_attribute_value(view, "full"), fitting, fitted_px), dtype=np.float64
    )


def _draw_nose_x(
    reach: tuple[FloatArray, FloatArray],
    image: IntArray,
    crowd: IntArray,
    width: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Place noses (x): about the middles of places dealt at random, as far in as reach asks."""
    n = len(image)
    order = np.lexsort((rng.random(n), image))
    starts = np.flatnonzero(np.diff(image, prepend=-1))
    slot = np.empty(n, dtype=np.int64)
    slot[order] = np.arange(n) - starts[image]
    room = width / crowd
    spread = np.where(crowd == 1, 0.2, 0.08)
    nose = (slot + 0.5 + rng.uniform(-1, 1, n) * spread) * room
    min_x = np.minimum(reach[0] + _MARGIN * width / 2, width / 2)
    max_x = np.maximum(width - reach[1] - _MARGIN * width / 2, width / 2)
    return np.asarray(np.clip(nose, min_x, max_x))


def _draw_hip_y(
    body: Figures,
    view: Coded,
    scale: FloatArray,
    height: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Place hips (y): feet on a ground that rises with distance, or the border where it cuts."""
    feet = body.y.max(axis=0) + FLESH
    head = np.minimum(body.top_y, body.y.min(axis=0)) - FLESH
    ground = (0.58 + rng.uniform(-0.01, 0.01, len(scale))) * height + 0.40 * scale
    lowest = (1 - _MARGIN) * height
    ground = np.clip(ground, np.minimum(_MARGIN * height + (feet - head) * scale, lowest), lowest)
    shoulders = (body.y[_RIGHT_SHOULDER] + body.y[_LEFT_SHOULDER]) / 2
    hips: FloatArray = np.select(
        [_has_attribute_value(view, "torso"), _has_attribute_value(view, "face")],
        [height + 0.01 * scale, height - (shoulders + _BELOW_SHOULDERS) * scale],
        ground - feet * scale,
    )
    return hips


def _clip_interval_to_photo(
    x_range: tuple[Floats, Floats],
    scale: FloatArray,
    start: FloatArray,
    length: int,
) -> tuple[FloatArray, FloatArray]:
    """Start and extent of boxes inside the photo, widened about their middle where too small."""
    a, b = (np.clip(end * scale + start, 0, length) for end in x_range)
    middle, extent = (a + b) / 2, np.maximum(b - a, LEAST_PX)
    a = np.clip(middle - extent / 2, 0, length - extent)
    return np.floor(a * 100) / 100, np.floor(extent * 100) / 100


def _compute_boxes_xywh(
    across: tuple[Floats, Floats],
    down: tuple[Floats, Floats],
    scale: FloatArray,
    zero: tuple[FloatArray, FloatArray],
    size: tuple[int, int],
) -> FloatArray:
    """Boxes ``[people, 4]`` from their ends about a body's own zero, in statures."""
    x, w = _clip_interval_to_photo(across, scale, zero[0], size[0])
    y, h = _clip_interval_to_photo(down, scale, zero[1], size[1])
    return np.stack([x, y, w, h], axis=1)
