"""Bodies as 33 joints: limbs of a person's usual proportions, turned by the angles of a pose.

Lengths are parts of the stature, as Winter's table (after Drillis and Contini) has them, so that a
standing person is 1 high. x points to the right of the picture, y down, and 0 is between the hips.
Everyone faces the camera: their own right is on the picture's left. A pose is a row of angles and
of foreshortenings (a thigh that points at the camera is short); each person's angles differ a
little, and half of all poses are mirrored.

References
----------
.. [1] Winter, D. A. (2009). Biomechanics and Motor Control of Human Movement, 4th ed., figure 4.1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux_worlds._random_streams import IntArray
from isolux_worlds.photo_world.tables import JOINTS

__all__ = [
    "FLESH",
    "HIPS_TO_TOP",
    "POSES",
    "SHOULDERS_TO_TOP",
    "Figures",
    "Floats",
    "draw_joint_positions",
]

Floats = npt.NDArray[np.float32]

HIPS_TO_TOP = 0.47
"""From between the hips to the top of the head."""
SHOULDERS_TO_TOP = 0.182
FLESH = 0.03
"""How far a body reaches beyond its joints."""

_SPINE, _HALF_SHOULDERS, _HALF_HIPS = 0.288, 0.112, 0.055
_UPPER_ARM, _FOREARM, _THIGH, _SHANK = 0.186, 0.146, 0.245, 0.246
_JITTER = 5.0  # degrees: standard deviation of every angle
_LEAN_JITTER = 2.0

_COLUMNS = (
    "lean",
    "spine",
    "tilt",
    "head",  # degrees, parts of the length, degrees, parts
    "upper_arm_r",
    "upper_arm_l",
    "forearm_r",
    "forearm_l",
    "arm",  # degrees outward from below
    "thigh_r",
    "thigh_l",
    "thigh_short_r",
    "thigh_short_l",
    "shank_r",
    "shank_l",
    "shank_short_r",
    "shank_short_l",
)

POSES: Mapping[str, tuple[float, ...]] = {
    "standing": (0, 1, 0, 1, 12, 12, 6, 6, 1, 4, 4, 1, 1, 1, 1, 1, 1),
    "walking": (3, 1, 0, 1, 20, 16, -14, 34, 1, 19, 12, 1, 0.95, 10, 24, 1, 0.86),
    "sitting": (0, 0.98, 0, 1, 14, 14, -24, -24, 0.85, 26, 26, 0.4, 0.4, 1, 1, 1, 1),
    "arms_raised": (0, 1, 0, 1, 150, 150, 168, 168, 1, 7, 7, 1, 1, 3, 3, 1, 1),
    "bending": (18, 0.6, 4, 0.85, 6, 10, 0, 6, 1, 9, 9, 0.93, 0.93, 2, 2, 1, 1),
}
"""Angles and foreshortenings of each pose: ``_COLUMNS``."""

# Along the head's axis from the shoulders' middle, and across it to the person's left.
_HEAD = {
    "nose": (0.100, 0.0),
    "right_eye_inner": (0.118, -0.010),
    "right_eye": (0.118, -0.018),
    "right_eye_outer": (0.118, -0.027),
    "left_eye_inner": (0.118, 0.010),
    "left_eye": (0.118, 0.018),
    "left_eye_outer": (0.118, 0.027),
    "right_ear": (0.108, -0.044),
    "left_ear": (0.108, 0.044),
    "mouth_right": (0.080, -0.014),
    "mouth_left": (0.080, 0.014),
}
_FINGERS = {"pinky": (0.070, 14.0), "index": (0.082, -4.0), "thumb": (0.052, -26.0)}
_TOP, _FOREHEAD, _CHIN = SHOULDERS_TO_TOP, 0.160, 0.050
_JOINT_INDEX = {name: number for number, name in enumerate(JOINTS)}


@dataclass(frozen=True, slots=True)
class Figures:
    """Bodies in parts of their stature, y down, 0 between the hips.

    ``x``, ``y``: [33, people]; ``top_y``, ``face_top``, ``face_bottom``: [people].
    """

    x: Floats
    y: Floats
    top_y: Floats
    face_top: Floats
    face_bottom: Floats


@dataclass(frozen=True, slots=True)
class _JointPoints:
    x: Floats
    y: Floats

    def plus(self, length: Floats | float, along: _JointPoints) -> _JointPoints:
        return _JointPoints(self.x + length * along.x, self.y + length * along.y)


_PutPoint = Callable[[str, _JointPoints], _JointPoints]


def draw_joint_positions(
    pose: IntArray, values: tuple[str, ...], rng: np.random.Generator
) -> Figures:
    """Lay out everyone's joints.

    ``pose``: [people] int.
    """
    n = len(pose)
    usual = np.array([POSES[pose_name] for pose_name in values], dtype=np.float32)
    angle = {name: usual[pose, i] for i, name in enumerate(_COLUMNS)}
    mirrored = rng.random(n) < 0.5
    for name in ("upper_arm", "forearm", "thigh", "thigh_short", "shank", "shank_short"):
        right_angle, left_angle = angle[f"{name}_r"], angle[f"{name}_l"]
        angle[f"{name}_r"] = np.where(mirrored, left_angle, right_angle)
        angle[f"{name}_l"] = np.where(mirrored, right_angle, left_angle)
    for name in ("lean", "tilt"):
        angle[name] = np.where(mirrored, -angle[name], angle[name])
        angle[name] = angle[name] + _LEAN_JITTER * rng.standard_normal(n, dtype=np.float32)
    for name in ("upper_arm", "forearm", "thigh", "shank"):
        spread = _JITTER if "arm" in name else _JITTER / 3
        for letter in ("r", "l"):
            noise = np.clip(rng.standard_normal(n, dtype=np.float32), -2.5, 2.5)
            angle[f"{name}_{letter}"] = angle[f"{name}_{letter}"] + spread * noise
    head_turn = rng.uniform(-0.012, 0.012, n).astype(np.float32)
    return _compute_joint_positions(angle, head_turn)


def _compute_joint_positions(angle: Mapping[str, Floats], head_turn: Floats) -> Figures:
    n = len(head_turn)
    x, y = np.empty((33, n), np.float32), np.empty((33, n), np.float32)

    def put_point(name: str, point: _JointPoints) -> _JointPoints:
        x[_JOINT_INDEX[name]], y[_JOINT_INDEX[name]] = point.x, point.y
        return point

    zero = np.zeros(n, np.float32)
    lean = np.deg2rad(angle["lean"])
    up, across = _JointPoints(np.sin(lean), -np.cos(lean)), _JointPoints(np.cos(lean), np.sin(lean))
    middle = _JointPoints(zero, zero).plus(_SPINE * angle["spine"], up)
    for side_name, sign in (("right", -1.0), ("left", 1.0)):
        shoulder = put_point(f"{side_name}_shoulder", middle.plus(sign * _HALF_SHOULDERS, across))
        _add_arm_joints(angle, side_name, sign, shoulder, put_point)
        _add_leg_joints(
            angle,
            side_name,
            sign,
            put_point(f"{side_name}_hip", _JointPoints(zero + sign * _HALF_HIPS, zero)),
            put_point,
        )
    tilt = lean / 2 + np.deg2rad(angle["tilt"])
    head, sideways = (
        _JointPoints(np.sin(tilt), -np.cos(tilt)),
        _JointPoints(np.cos(tilt), np.sin(tilt)),
    )
    short = angle["head"]
    for name, (along, aside) in _HEAD.items():
        turn_shift = zero if "ear" in name else head_turn * (1.4 if name == "nose" else 1.0)
        put_point(name, middle.plus(along * short, head).plus(aside + turn_shift, sideways))
    heights = {
        landmark: middle.plus(landmark * short, head).y for landmark in (_TOP, _FOREHEAD, _CHIN)
    }
    return Figures(x, y, heights[_TOP], heights[_FOREHEAD], heights[_CHIN])


def _direction_at_angle(degrees: Floats, sign: float) -> _JointPoints:
    """Step one unit at an angle from straight down, outward from the body on that side."""
    radians = np.deg2rad(degrees)
    return _JointPoints(np.float32(sign) * np.sin(radians), np.cos(radians))


def _add_arm_joints(
    angle: Mapping[str, Floats],
    side: str,
    sign: float,
    shoulder: _JointPoints,
    put_point: _PutPoint,
) -> None:
    s, short = side[0], angle["arm"]
    elbow = shoulder.plus(_UPPER_ARM * short, _direction_at_angle(angle[f"upper_arm_{s}"], sign))
    put_point(f"{side}_elbow", elbow)
    forearm_angle = angle[f"forearm_{s}"]
    wrist = put_point(
        f"{side}_wrist", elbow.plus(_FOREARM * short, _direction_at_angle(forearm_angle, sign))
    )
    # Palms towards the body: the little finger is behind, the thumb in front.
    for finger, (length, turn) in _FINGERS.items():
        put_point(
            f"{side}_{finger}",
            wrist.plus(length * short, _direction_at_angle(forearm_angle + turn, sign)),
        )


def _add_leg_joints(
    angle: Mapping[str, Floats], side: str, sign: float, hip: _JointPoints, put_point: _PutPoint
) -> None:
    s = side[0]
    knee = hip.plus(
        _THIGH * angle[f"thigh_short_{s}"], _direction_at_angle(angle[f"thigh_{s}"], sign)
    )
    put_point(f"{side}_knee", knee)
    down = _direction_at_angle(angle[f"shank_{s}"], sign)
    ankle = put_point(f"{side}_ankle", knee.plus(_SHANK * angle[f"shank_short_{s}"], down))
    sideways = np.float32(sign)
    put_point(f"{side}_heel", _JointPoints(ankle.x - sideways * 0.006, ankle.y + 0.030))
    put_point(f"{side}_foot_index", _JointPoints(ankle.x + sideways * 0.040, ankle.y + 0.038))
