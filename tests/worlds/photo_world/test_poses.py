"""Bodies: proportions as in Winter's figure, right and left where they belong, and variety."""

from __future__ import annotations

import numpy as np
import pytest

from isolux_worlds.photo_world.poses import FLESH, POSES, draw_joint_positions
from isolux_worlds.photo_world.tables import JOINTS
from isolux_worlds.photo_world.vocabulary import BUILT_IN_ATTRIBUTES

AT = {name: i for i, name in enumerate(JOINTS)}
NAMES = tuple(POSES)


def bodies(pose, n=400, seed=0):
    return draw_joint_positions(np.full(n, NAMES.index(pose)), NAMES, np.random.default_rng(seed))


def apart(body, a, b):
    return np.hypot(body.x[AT[a]] - body.x[AT[b]], body.y[AT[a]] - body.y[AT[b]])


def test_every_pose_that_is_drawn_has_its_angles():
    assert set(POSES) == set(BUILT_IN_ATTRIBUTES["pose"].shares)


@pytest.mark.parametrize("pose", ["standing", "arms_raised"])
def test_limbs_have_their_lengths(pose):
    body = bodies(pose)
    for a, b, length in (
        ("right_shoulder", "right_elbow", 0.186),
        ("left_elbow", "left_wrist", 0.146),
        ("right_hip", "right_knee", 0.245),
        ("left_knee", "left_ankle", 0.246),
        ("right_shoulder", "left_shoulder", 0.224),
        ("right_hip", "left_hip", 0.110),
    ):
        assert apart(body, a, b) == pytest.approx(np.full(400, length), abs=1e-5)


def test_who_stands_is_one_stature_high():
    body = bodies("standing")
    height = body.y.max(axis=0) - body.top_y
    assert height.min() > 0.96
    assert height.max() < 1.02
    # Winter: shoulders at .818, hips at .530, knees at .285, ankles at .039 of the stature.
    ground = body.y.max(axis=0)
    for joint, expected in (("right_shoulder", 0.818), ("left_hip", 0.530), ("right_knee", 0.285)):
        assert np.mean(ground - body.y[AT[joint]]) == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("pose", NAMES)
def test_right_is_on_the_pictures_left_and_the_head_is_up(pose):
    body = bodies(pose)
    for part in ("shoulder", "hip", "ear", "eye"):
        assert (body.x[AT[f"right_{part}"]] < body.x[AT[f"left_{part}"]]).all()
    shoulders = (body.y[AT["right_shoulder"]] + body.y[AT["left_shoulder"]]) / 2
    assert (body.top_y < body.face_top).all()
    assert (body.face_top < body.y[AT["nose"]]).all()
    assert (body.y[AT["nose"]] < body.face_bottom).all()
    assert (body.face_bottom < shoulders).all()
    assert (body.y[AT["right_knee"]] > 0).all()
    assert (body.y[AT["right_ankle"]] > body.y[AT["right_knee"]]).all()
    assert np.isfinite(body.x).all()
    assert FLESH < 0.1


def test_poses_differ_as_their_names_say():
    hands = {pose: bodies(pose).y[AT["right_wrist"]] for pose in NAMES}
    nose = {pose: bodies(pose).y[AT["nose"]] for pose in NAMES}
    assert (hands["arms_raised"] < nose["arms_raised"]).all()
    assert (hands["standing"] > nose["standing"]).all()
    assert nose["bending"].mean() > nose["standing"].mean() + 0.1
    ground = {pose: bodies(pose).y.max(axis=0) for pose in NAMES}
    assert (ground["sitting"] < 0.42).all()
    step = bodies("walking")
    assert np.mean(apart(step, "right_ankle", "left_ankle")) > 0.2


def test_half_of_all_poses_are_mirrored_and_no_two_are_alike():
    body = bodies("walking", n=2000)
    bent = body.y[AT["left_ankle"]] < body.y[AT["right_ankle"]]
    assert np.mean(bent) == pytest.approx(0.5, abs=0.06)
    assert len(np.unique(body.x[AT["left_wrist"]])) > 1990
