"""MediaPipe: what it gives as rows, by stand-ins; and the person in a real photo, where it is."""

from __future__ import annotations

from types import SimpleNamespace as Told

import numpy as np
import pytest

from isolux.core.errors import UnknownNameError
from isolux.core.tables import check
from isolux.models import PREDICTION_TABLES, open_model, predict_and_check_table
from isolux.models.mediapipe import (
    INFO,
    MediaPipeFaceDetector,
    MediaPipePoseModel,
    list_blazepose_keypoint_indices,
)

PICTURES = [np.zeros((100, 200, 3), np.uint8), np.zeros((50, 50, 3), np.uint8)]


def face(x, y, w, h, score):
    box = Told(xmin=x, ymin=y, width=w, height=h)
    return Told(score=[score], location_data=Told(relative_bounding_box=box))


def test_shares_become_pixels_inside_the_picture():
    said = iter([Told(detections=[face(0.1, 0.2, 0.25, 0.5, 0.9), face(0.9, -0.1, 0.3, 0.3, 0.6)]),
                 Told(detections=None)])  # fmt: skip
    faces = MediaPipeFaceDetector(lambda _: next(said), {})
    found = check(
        predict_and_check_table(faces, INFO, PICTURES, list("ab"), model="m"),
        PREDICTION_TABLES["boxes"],
    )
    rows = found.select("image_id", "box_x", "box_y", "box_w", "box_h", "score").rows()
    assert [row[0] for row in rows] == ["a", "a"]
    np.testing.assert_allclose([row[1:] for row in rows],
                               [[20, 20, 50, 50, 0.9], [180, 0, 20, 20, 0.6]])  # fmt: skip


@pytest.mark.parametrize("order", ["coco", "fhibe", "blazepose"])
def test_keypoints_stand_in_the_order_that_is_asked_for(order):
    points = [Told(x=k / 40, y=k / 80, visibility=k / 32) for k in range(33)]
    said = iter([Told(pose_landmarks=Told(landmark=points)), Told(pose_landmarks=None)])
    poses = MediaPipePoseModel(lambda _: next(said), order, {})
    found = check(
        predict_and_check_table(poses, INFO, PICTURES, list("ab"), model="m"),
        PREDICTION_TABLES["keypoints"],
    )
    assert found["image_id"].to_list() == ["a"]
    own = list_blazepose_keypoint_indices(order)
    np.testing.assert_allclose(found["keypoints_x"][0], [k / 40 * 200 for k in own])
    np.testing.assert_allclose(found["keypoints_y"][0], [k / 80 * 100 for k in own])


def test_fhibes_order_has_right_before_left_and_cocos_is_a_part_of_blazeposes():
    from isolux.datasets.fhibe.value_lists import KEYPOINTS
    from isolux.geometry.keypoints import COCO_KEYPOINTS

    # BlazePose's own names follow from FHIBE's by the order that is claimed: each pair swapped.
    names = dict(zip(list_blazepose_keypoint_indices("fhibe"), KEYPOINTS, strict=True))
    assert (names[0], names[2], names[5]) == ("Nose", "Left eye", "Right eye")
    assert (names[11], names[12], names[31], names[32]) == (
        "Left shoulder", "Right shoulder", "Left foot index", "Right foot index",
    )  # fmt: skip
    assert [names[k].lower() for k in list_blazepose_keypoint_indices("coco")] == list(
        COCO_KEYPOINTS
    )


def test_other_models_of_it_are_named():
    with pytest.raises(UnknownNameError, match="faces, pose"):
        open_model("mediapipe:hands")


@pytest.mark.filterwarnings("ignore")
def test_the_person_in_a_real_photo_is_found():
    pytest.importorskip("mediapipe", reason="MEDIAPIPE IS ABSENT: its real weights were NOT run")
    data = pytest.importorskip("skimage.data", reason="SCIKIT-IMAGE IS ABSENT: no real photo")
    photo = data.astronaut()  # 512 × 512; by eye her face is at 224, 120 and 100 wide
    faces = open_model("mediapipe:faces").predictor([photo])
    assert faces.height == 1
    middle = faces.select(
        x=faces["box_x"] + faces["box_w"] / 2, y=faces["box_y"] + faces["box_h"] / 2
    ).row(0)
    assert np.hypot(middle[0] - 224, middle[1] - 120) < 25
    assert 70 < faces["box_w"][0] < 140
    pose = open_model("mediapipe:pose").predictor([photo])
    assert pose.height == 1
    x, y = pose["keypoints_x"][0], pose["keypoints_y"][0]
    assert np.hypot(x[0] - 224, y[0] - 128) < 25  # her nose
    assert x[5] > x[6] + 100  # her left shoulder is on the photo's right
