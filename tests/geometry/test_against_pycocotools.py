"""Matches equal pycocotools' one by one, on made-up cases and on COCO's own example."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pycocotools import mask as coco_mask

from isolux.geometry.boxes import box_pairs_xywh
from isolux.geometry.keypoints import keypoint_pairs
from isolux.geometry.masks import mask_pairs, masks_from_coco
from isolux.geometry.matching import IOU_THRESHOLDS
from tests._shared import shared_data
from tests.geometry._coco import Case, assert_same_matches, column, evaluated, matrix, summary

UNIT = 24  # px: one cell of a coarse grid, so that boxes, overlaps and scores tie often


def square(draw):
    left, top = draw(st.integers(0, 5)), draw(st.integers(0, 5))
    width, height = draw(st.integers(0, 8)), draw(st.integers(1, 8))
    return [float(v * UNIT) for v in (left, top, width, height)]


def common(draw, n_images, n_labels):
    return {
        "image": draw(st.integers(0, n_images - 1)),
        "label": draw(st.integers(0, n_labels - 1)),
    }


@st.composite
def box_cases(draw, *, repeats=True):
    """Crowds, ignored people, equal scores and boxes, empty images, classes nobody has.

    ``repeats``: whether one detection may be another exactly, which the tasks refuse if many are.
    """
    n_images, n_labels = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    truths = []
    for _ in range(draw(st.integers(0, 10))):
        box = square(draw)
        crowd = draw(st.integers(0, 5)) == 0
        row = {
            "bbox": box,
            "crowd": crowd,
            "left_out": draw(st.integers(0, 5)) == 0,
            # COCO's area is the mask's: not the box's, and sometimes exactly a range's end.
            "area": draw(st.sampled_from([box[2] * box[3], 32.0**2, 96.0**2, 5.0])),
        }
        truths.append(row | common(draw, n_images, n_labels))
    detections = []
    for _ in range(draw(st.integers(0, 14))):
        near = truths and draw(st.booleans())
        box = list(draw(st.sampled_from(truths))["bbox"]) if near else square(draw)
        box = [side + draw(st.sampled_from([0, 0, 0, 1, 5])) for side in box]
        row = {"bbox": box, "score": draw(st.integers(0, 4)) / 4, "area": box[2] * box[3]}
        row |= common(draw, n_images, n_labels)
        if repeats or row not in detections:
            detections.append(row)
    return Case(n_images, n_labels, truths, detections)


def pairs_of_boxes(case, **options):
    by_label = options.pop("by_label", True)
    return box_pairs_xywh(
        case.detection_table(by_label=by_label),
        case.truth_table(by_label=by_label),
        matrix(case.detections, "bbox"),
        matrix(case.truths, "bbox"),
        **options,
    )


def test_our_thresholds_are_pycocotools_to_the_last_bit():
    run = evaluated(Case(1, 1, [], []))
    assert np.array_equal(run.params.iouThrs, IOU_THRESHOLDS)


@settings(max_examples=70)
@given(box_cases())
def test_boxes_match_as_in_evalimgs_and_sum_up_to_the_same_summary(case):
    run = evaluated(case)
    pairs = pairs_of_boxes(case)
    assert_same_matches(case, run, pairs)
    np.testing.assert_allclose(summary(case, pairs), run.stats, atol=1e-12, rtol=0)


@settings(max_examples=50)
@given(box_cases(), st.integers(1, 4), st.booleans())
def test_only_the_best_detections_of_an_image_take_part(case, limit, by_label):
    if not by_label:  # pycocotools without classes still lists people class by class
        for rows in (case.truths, case.detections):
            rows.sort(key=lambda row: row["label"])
    run = evaluated(case, use_cats=by_label, limits=[limit])
    assert_same_matches(case, run, pairs_of_boxes(case, by_label=by_label), by_label=by_label)


@st.composite
def mask_cases(draw):
    case = draw(box_cases())
    for row in case.truths + case.detections:
        x, y, w, h = (int(v) // UNIT for v in row["bbox"])
        bitmap = np.zeros((400, 400), np.uint8, order="F")
        bitmap[y * UNIT : (y + h) * UNIT, x * UNIT : (x + w) * UNIT] = 1
        hole = draw(st.integers(0, 60))
        bitmap[: y * UNIT + hole, : x * UNIT + hole] = 0
        row["segmentation"] = coco_mask.encode(bitmap)
        row["area"] = float(coco_mask.area(row["segmentation"]))
    return case


@settings(max_examples=30)
@given(mask_cases())
def test_masks_match_as_in_evalimgs(case):
    run = evaluated(case, "segm")
    pairs = pairs_of_masks(case)
    assert_same_matches(case, run, pairs)
    np.testing.assert_allclose(summary(case, pairs), run.stats, atol=1e-12, rtol=0)


def pairs_of_masks(case):
    masks = []
    for rows in (case.detections, case.truths):
        sizes = [case.sizes.get(row["image"], (400, 400)) for row in rows]
        height, width = np.array(sizes, dtype=int).reshape(-1, 2).T
        masks.append(masks_from_coco([row["segmentation"] for row in rows], height, width))
    return mask_pairs(case.detection_table(), case.truth_table(), *masks)


@st.composite
def pose_cases(draw):
    case = draw(box_cases())
    case.n_labels = 1
    for row in case.truths + case.detections:
        x, y, w, h = row["bbox"]
        seed = draw(st.integers(0, 3))
        rng = np.random.default_rng(seed)
        points = np.column_stack(
            [x + w * rng.uniform(size=17), y + h * rng.uniform(size=17), rng.integers(0, 3, 17)]
        ).round(1)
        if draw(st.integers(0, 4)) == 0:
            points[:, 2] = 0
        row["keypoints"] = points.ravel().tolist()
        row["label"] = 0
        row["num_keypoints"] = int((points[:, 2] > 0).sum())
        if "crowd" in row and row["num_keypoints"] == 0:
            row["left_out"] = True
    return case


def pairs_of_poses(case):
    return keypoint_pairs(
        case.detection_table(),
        case.truth_table(),
        matrix(case.detections, "keypoints", 51).reshape(-1, 17, 3),
        matrix(case.truths, "keypoints", 51).reshape(-1, 17, 3),
        column(case.truths, "area", float),
        box_xywh=matrix(case.truths, "bbox"),
    )


@settings(max_examples=50)
@given(pose_cases())
def test_poses_match_as_in_evalimgs(case):
    run = evaluated(case, "keypoints")
    pairs = pairs_of_poses(case)
    assert_same_matches(case, run, pairs)
    np.testing.assert_allclose(summary(case, pairs, "keypoints"), run.stats, atol=1e-12, rtol=0)


def coco_case(truth_file, result_file):
    """Read one of COCO's examples as rows, images and classes counted from 0 in rising order."""
    data = json.loads(shared_data(f"coco/{truth_file}").read_text())
    results = json.loads(shared_data(f"coco/{result_file}").read_text())
    images = {i: at for at, i in enumerate(sorted(i["id"] for i in data["images"]))}
    sizes = {images[i["id"]]: (i["height"], i["width"]) for i in data["images"]}
    labels = {k: at for at, k in enumerate(sorted(k["id"] for k in data["categories"]))}
    rows = {"truths": data["annotations"], "detections": results}
    for row in data["annotations"] + results:
        row["image"], row["label"] = images[row["image_id"]], labels[row["category_id"]]
        row["crowd"], row["left_out"] = bool(row.get("iscrowd")), False
    return Case(len(images), len(labels), **rows, sizes=sizes)


BOXES = ("instances_val2014_100.json", "instances_val2014_fakebbox100_results.json")
MASKS = ("instances_val2014_100.json", "instances_val2014_fakesegm100_results.json")
POSES = ("keypoints_dataset_gt_dataset.json", "keypoints_dataset_dt_dataset.json")

# What the official tool printed: val2014_fake_eval_res.txt, blocks "bbox" and "segm"; for the one
# image with poses AP, AP50, AP75.
BOX_SUMMARY = [0.505, 0.697, 0.573, 0.586, 0.519, 0.501, 0.387, 0.594, 0.595, 0.640, 0.566, 0.564]
MASK_SUMMARY = [0.320, 0.562, 0.299, 0.387, 0.310, 0.327, 0.268, 0.415, 0.417, 0.469, 0.377, 0.381]


def test_coco_example_boxes_give_the_official_answers():
    case = coco_case(*BOXES)
    for row in case.detections:
        row["area"] = row["bbox"][2] * row["bbox"][3]
    pairs = pairs_of_boxes(case)
    assert np.round(summary(case, pairs), 3).tolist() == BOX_SUMMARY
    assert_same_matches(case, evaluated(case), pairs)


def test_coco_example_masks_give_the_official_answers():
    case = coco_case(*MASKS)
    for row in case.detections:
        row["area"] = float(coco_mask.area(row["segmentation"]))
    pairs = pairs_of_masks(case)
    assert np.round(summary(case, pairs), 3).tolist() == MASK_SUMMARY
    assert_same_matches(case, evaluated(case, "segm"), pairs)


def test_coco_example_poses_give_the_official_answers():
    case = coco_case(*POSES)
    for row in case.detections:
        x, y = row["keypoints"][0::3], row["keypoints"][1::3]
        row["area"] = (max(x) - min(x)) * (max(y) - min(y))
    for row in case.truths:
        row["left_out"] = row["num_keypoints"] == 0
    pairs = pairs_of_poses(case)
    assert np.round(summary(case, pairs, "keypoints")[:3], 3).tolist() == [0.505, 0.723, 0.634]
    assert_same_matches(case, evaluated(case, "keypoints"), pairs)


@pytest.mark.parametrize("threads", [2, 5])
def test_any_number_of_threads_finds_the_same_pairs(threads):
    rng = np.random.default_rng(7)
    n = 400
    rows = [
        {"image": int(i), "label": 0, "score": 0.5, "bbox": rng.integers(0, 30, 4).tolist()}
        for i in rng.integers(0, 20, n)
    ]
    truths = [row | {"crowd": False, "left_out": False} for row in rows]
    case = Case(20, 1, truths, rows)
    one, many = pairs_of_boxes(case), pairs_of_boxes(case, n_threads=threads)
    assert len(one) > n  # each with itself, and some by chance
    for name in ("image", "detection", "truth", "iou"):
        assert np.array_equal(getattr(one, name), getattr(many, name))
