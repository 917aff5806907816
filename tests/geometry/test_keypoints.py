from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from pycocotools.cocoeval import Params

from isolux.core.errors import SpecError
from isolux.geometry.keypoints import (
    COCO_KEYPOINTS,
    COCO_SIGMAS,
    correct_keypoints,
    head_length_xywh,
    keypoint_pairs,
    normalised_distance,
    pairs_oks,
    pck,
)
from isolux.geometry.matching import Detections, Truths


def poses(rows, keypoints=3):
    return hnp.arrays(np.float64, (rows, keypoints, 3), elements=st.integers(0, 6).map(float))


def oks_of_one(detected, truth, area, sigmas, box):
    """The definition, keypoint by keypoint."""
    labelled = [k for k in range(len(sigmas)) if truth[k][2] > 0]
    total = 0.0
    for k in labelled or range(len(sigmas)):
        if labelled:
            dx, dy = detected[k][0] - truth[k][0], detected[k][1] - truth[k][1]
        else:  # how far outside the box grown by its own size on every side
            x, y, w, h = box
            dx = max(0, x - w - detected[k][0]) + max(0, detected[k][0] - (x + 2 * w))
            dy = max(0, y - h - detected[k][1]) + max(0, detected[k][1] - (y + 2 * h))
        total += np.exp(-(dx**2 + dy**2) / (2 * sigmas[k]) ** 2 / (area + 2.3e-16) / 2)
    return total / len(labelled or sigmas)


def test_the_sigmas_are_pycocotools_own():
    assert np.array_equal(Params("keypoints").kpt_oks_sigmas, COCO_SIGMAS)
    assert len(COCO_KEYPOINTS) == len(COCO_SIGMAS) == 17


@given(poses(4), poses(4), st.integers(1, 90))
def test_similarity_is_its_definition(detected, truth, area):
    sigmas, box = (0.1, 0.2, 0.9), np.array([[1.0, 1, 1, 2]] * 4)
    found = pairs_oks(detected, truth, np.full(4, float(area)), sigmas=sigmas, box_xywh=box)
    expected = [
        oks_of_one(*pair, area, sigmas, box[0]) for pair in zip(detected, truth, strict=True)
    ]
    np.testing.assert_allclose(found, expected, atol=1e-12, rtol=0)


def test_a_perfect_pose_is_exactly_one_and_nobody_labelled_is_nan():
    pose = np.array([[[1.0, 2, 2], [3, 4, 1], [0, 0, 0]]])
    far = pose + np.array([[0, 0, 0], [0, 0, 0], [99, 99, 0]])  # only the unlabelled one moves
    assert pairs_oks(far, pose, np.array([5.0]), sigmas=(0.1, 0.3, 0.7)).tolist() == [1.0]
    unlabelled = pose * [1, 1, 0]
    assert np.isnan(pairs_oks(pose, unlabelled, np.array([5.0]), sigmas=(0.1, 0.3, 0.7))).all()


@given(poses(5), poses(4), st.randoms())
def test_pairs_are_all_that_reach_the_lowest_in_one_image_and_class(detected, truth, random):
    draw = lambda n: np.array([random.randrange(2) for _ in range(n)], dtype=np.int64)  # noqa: E731
    detections = Detections(draw(5), np.ones(5), draw(5))
    truths = Truths(draw(4), label=draw(4))
    area, sigmas = np.array([4.0, 30, 8, 50]), (0.5, 0.6, 0.9)
    pairs = keypoint_pairs(detections, truths, detected, truth, area, sigmas=sigmas, lowest_oks=0.3)
    expected = [
        (int(detections.image[d]), d, t)
        for d in range(5)
        for t in range(4)
        if detections.image[d] == truths.image[t]
        and detections.label[d] == truths.label[t]
        and (truth[t, :, 2] > 0).any()
        and oks_of_one(detected[d], truth[t], area[t], sigmas, None) >= 0.3
    ]
    found = zip(pairs.image.tolist(), pairs.detection.tolist(), pairs.truth.tolist(), strict=True)
    assert list(found) == sorted(expected)


def test_many_pairs_are_taken_in_chunks(monkeypatch):
    pose = np.random.default_rng(0).uniform(0, 9, (6, 1, 3)) + 1
    sides = Detections(np.zeros(6, int), np.ones(6)), Truths(np.zeros(6, int))
    whole = keypoint_pairs(*sides, pose, pose, np.full(6, 50.0), sigmas=(0.3,), lowest_oks=0.1)
    monkeypatch.setattr("isolux.geometry.keypoints._BATCH_PAIRS", 5)
    chunked = keypoint_pairs(*sides, pose, pose, np.full(6, 50.0), sigmas=(0.3,), lowest_oks=0.1)
    assert len(whole) > 6
    assert np.array_equal(whole.iou, chunked.iou)


def test_correct_keypoints_by_hand():
    # Scale 10. Offsets (3, 4) and (6, 8): distances .5 and 1; the third is unlabelled, the fourth
    # was not predicted. At .5: right, wrong, not scored, wrong. A third of three.
    truth = np.array([[[0.0, 0, 2], [0, 0, 1], [0, 0, 0], [0, 0, 2]]])
    detected = np.array([[[3.0, 4], [6, 8], [0, 0], [np.nan, np.nan]]])
    distance = normalised_distance(detected, truth, np.array([10.0]))
    assert distance[0, [0, 1, 3]].tolist() == [0.5, 1.0, np.inf]
    assert np.isnan(distance[0, 2])
    assert correct_keypoints(distance, 0.5)[0, [0, 1, 3]].tolist() == [1, 0, 0]
    assert pck(distance, 0.5).tolist() == [1 / 3]
    assert pck(distance, 1.0).tolist() == [2 / 3]


def test_a_person_without_labels_or_scale_is_not_scored():
    truth, detected = np.zeros((2, 1, 3)), np.zeros((2, 1, 2))
    truth[1, 0, 2] = 1
    distance = normalised_distance(detected, truth, np.array([10.0, 0.0]))
    assert np.isnan(pck(distance, 0.5)).all()


def test_head_length_is_three_fifths_of_the_diagonal():
    assert head_length_xywh(np.array([[5.0, 5, 30, 40]])).tolist() == [30.0]


def test_wrong_shapes_and_settings_are_refused():
    one = Detections(np.array([0]), np.ones(1)), Truths(np.array([0]))
    pose = np.zeros((1, 17, 3))
    with pytest.raises(SpecError, match="keypoints are of the wrong shape") as caught:
        keypoint_pairs(*one, np.zeros((1, 16, 3)), pose, np.ones(1))
    assert "[rows, 17 keypoints, 2 numbers or more]" in str(caught.value)
    with pytest.raises(SpecError, match="not as many poses as rows"):
        keypoint_pairs(*one, np.zeros((2, 17, 3)), pose, np.ones(1))
    with pytest.raises(SpecError, match="lowest similarity is not above 0"):
        keypoint_pairs(*one, pose, pose, np.ones(1), lowest_oks=0)
    with pytest.raises(SpecError, match="fraction of the scale is not above 0"):
        pck(np.zeros((1, 1)), 0)
