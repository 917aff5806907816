"""Poses: similarity and correct keypoints by hand, who has none, and COCO's own example."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, TableError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.tables import KEYPOINT_PREDICTIONS
from isolux.datasets import load
from isolux.predictions import read_outputs
from isolux.tasks.keypoints import score
from tests._shared import shared_data
from tests.tasks._pictures import pictures, values
from tests.tasks.test_detection_exact import AP, everyone

FACE = dict(zip([f"face_box_{s}" for s in "xywh"], (0.0, 0.0, 30.0, 40.0), strict=True))
BARE = dict.fromkeys(FACE)
NAMES = {"keypoint_names": ["nose", "hand", "foot"]}
SIGMAS = (0.1, 0.1, 0.1)


def person(image, xy, v, face=FACE, **more):
    """A person with three keypoints on one height, 9,000 pixels large."""
    points = {
        "keypoints_x": [float(x) if seen else None for x, seen in zip(xy, v, strict=True)],
        "keypoints_y": [0.0 if seen else None for seen in v],
        "keypoints_v": list(v),
    }
    return image, None, points | face | NAMES | {"area": 9000.0} | more


def poses(*rows):
    return pl.DataFrame(
        [
            {"model": "m", "image_id": image, "score": sure, "label": None,
             "keypoints_x": [float(x) for x in xs], "keypoints_y": [0.0] * len(xs),
             "keypoints_v": [1.0] * len(xs)}
            for image, xs, sure in rows
        ],
        schema={c.name: c.dtype for c in KEYPOINT_PREDICTIONS.columns if not c.optional},
    )  # fmt: skip


def oks(*offsets):
    """exp(−d² / (2 × area × (2σ)²)), mean over labelled keypoints: 2 × 9000 × .04 = 720."""
    return float(np.mean([math.exp(-(d**2) / 720) for d in offsets]))


# a: the nose 20 off, the hand 30, the foot not labelled. b: in the same picture, far off, exact but
# for the foot. c: nobody drew a pose. d: has no labelled keypoint.
PEOPLE = {
    "a": person("1", (0, 100, 0), (2, 1, 0)),
    "b": person("1", (500, 600, 700), (2, 2, 2)),
    "c": person("2", (0, 100, 200), (2, 2, 2)),
    "d": person("1", (0, 0, 0), (0, 0, 0)),
}
FOUND = poses(("1", (20, 130, 9), 0.9), ("1", (500, 600, 740), 0.8))


def test_similarity_by_hand():
    scores = score(pictures(PEOPLE), FOUND, sigmas=SIGMAS)
    expected = {"a": oks(20, 30), "b": oks(0, 0, 40), "c": 0.0}
    found = values(scores, "oks")
    assert found.pop("d") == "no labelled keypoint"
    assert found == pytest.approx(expected)
    # .43 reaches none of the ten similarities, .70 the first five (.50 to .70).
    assert oks(0, 0, 40) == pytest.approx(0.7028, abs=1e-4)
    assert values(scores, "average_recall") == {
        "a": 0.0,
        "b": 0.5,
        "c": 0.0,
        "d": "no labelled keypoint",
    }


def test_correct_keypoints_by_hand():
    """Half the face's diagonal of 50 is 25; half the head, .6 of it, is 15."""
    options = {"sigmas": SIGMAS, "metrics": ["pck"]}
    scores = score(pictures(PEOPLE), FOUND, **options)
    nobody = "no labelled keypoint"
    assert values(scores, "pck", 0.5) == pytest.approx({"a": 0.5, "b": 2 / 3, "c": 0, "d": nobody})
    heads = score(pictures(PEOPLE), FOUND, scale="head-length", **options)
    assert values(heads, "pck", 0.5) == pytest.approx({"a": 0, "b": 2 / 3, "c": 0, "d": nobody})
    wider = score(pictures(PEOPLE), FOUND, fractions=(0.6, 0.8), **options)
    assert values(wider, "pck", 0.6)["a"] == 1.0  # 30 of 30: the fraction itself counts
    assert values(wider, "pck", 0.8)["b"] == 1.0


def test_each_keypoint_apart_has_only_people_for_whom_it_is_labelled():
    scores = score(pictures(PEOPLE), FOUND, sigmas=SIGMAS, metrics=["pck_by_keypoint"])
    rows = scores.units.group_by("label", maintain_order=True).agg("unit_id", "value")
    assert rows.rows() == [
        ("nose", ["a", "b", "c"], [1.0, 1.0, 0.0]),
        ("hand", ["a", "b", "c"], [0.0, 1.0, 0.0]),
        ("foot", ["b", "c"], [0.0, 0.0]),
    ]


def test_without_a_face_box_there_is_no_share_of_it():
    people = PEOPLE | {"b": person("1", (500, 600, 700), (2, 2, 2), face=BARE)}
    scores = score(pictures(people), FOUND, sigmas=SIGMAS)
    assert values(scores, "pck", 0.5)["b"] == "no face box"
    assert values(scores, "oks")["b"] == pytest.approx(oks(0, 0, 40))
    bare = {name: (image, box, more | BARE) for name, (image, box, more) in PEOPLE.items()}
    scores = score(pictures(bare), FOUND, sigmas=SIGMAS)
    assert set(scores.units["metric"]) == {"average_recall", "oks"}
    assert any("PCK" in note and "no face box" in note for note in scores.notes)
    with pytest.raises(SpecError, match=r"\(PCK\) cannot be counted: no face box"):
        score(pictures(bare), FOUND, sigmas=SIGMAS, metrics=["pck"])


def test_a_pose_is_given_to_one_person():
    """Two people in one place: the pose is the nearer one's, unless poses may be used again."""
    two = {"a": person("1", (0, 100, 0), (2, 2, 0)), "b": person("1", (9, 109, 0), (2, 2, 0))}
    found = poses(("1", (1, 101, 0), 0.9))
    assert values(score(pictures(two), found, sigmas=SIGMAS), "pck", 0.5) == {"a": 1.0, "b": 0.0}
    again = score(pictures(two), found, sigmas=SIGMAS, matching="best-overlap")
    assert values(again, "pck", 0.5) == {"a": 1.0, "b": 1.0}


def test_a_pose_less_similar_than_the_least_is_nobodys():
    far = poses(("1", (60, 160, 0), 0.9))  # exp(-3600 / 720) = .0067
    people = pictures({"a": person("1", (0, 100, 0), (2, 2, 0))})
    options = {"sigmas": SIGMAS, "metrics": ["oks"]}
    assert values(score(people, far, **options), "oks") == {"a": 0.0}
    given = score(people, far, lowest_oks=0.001, **options)
    assert values(given, "oks") == pytest.approx({"a": oks(60, 60)})


def test_only_the_highest_scores_take_part():
    scores = score(pictures(PEOPLE), FOUND, sigmas=SIGMAS, max_detections=1)
    assert values(scores, "oks")["b"] == 0.0
    assert values(scores, "pck", 0.5)["b"] == 0.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"fractions": (0.0,)}, "fractions cannot be that"),
        ({"lowest_oks": 0.0}, "lowest_oks cannot be that"),
        ({"sigmas": (0.1,)}, "sigmas do not fit the keypoints"),
        ({"sigmas": None}, "known for COCO's 17 alone"),
    ],
)
def test_settings_that_cannot_be_used(options, message):
    with pytest.raises(SpecError, match=message):
        score(pictures(PEOPLE), FOUND, **({"sigmas": SIGMAS} | options))


def test_poses_that_do_not_fit():
    with pytest.raises(TableError, match=r"(?s)another number of keypoints.*3, as.*row 2"):
        score(
            pictures(PEOPLE),
            pl.concat([FOUND.head(1), poses(("1", (1, 2), 0.5))]),
            sigmas=SIGMAS,
        )
    mixed = PEOPLE | {"e": person("1", (0, 1, 2), (2, 2, 2), keypoint_names=["x", "y", "z"])}
    with pytest.raises(SpecError, match="people have different keypoints"):
        score(pictures(mixed), FOUND, sigmas=SIGMAS)


def test_coco_example_of_poses():
    dataset = load("coco", shared_data("coco/keypoints_dataset_gt_dataset.json"))
    found = read_outputs(shared_data("coco/keypoints_dataset_dt_dataset.json"), kind="keypoints")
    scores = score(dataset, found, max_detections=20, metrics=["average_recall", *AP])
    precisions = [everyone(dataset, scores, name, "category") for name in AP]
    assert np.round(precisions, 3).tolist() == [0.505, 0.723, 0.634]


def test_people_without_an_area_are_told_first_and_the_option_says_how_large_they_are():
    names = [f"box_{side}" for side in "xywh"]
    frame = pl.DataFrame(
        {"instance_id": ["a"], "image_id": ["1"], "keypoints_x": [[10.0, 60.0]],
         "keypoints_y": [[10.0, 90.0]], "keypoints_v": [[2, 2]],
         **dict(zip(names, ([0.0], [0.0], [100.0], [100.0]), strict=True))}
    )  # fmt: skip
    dataset = Dataset("x", DatasetInfo(title="x", summary="x", references=()), frame)
    pose = pl.DataFrame(
        {"model": ["m"], "image_id": ["1"], "label": ["person"], "score": [0.9],
         "keypoints_x": [[15.0, 60.0]], "keypoints_y": [[10.0, 90.0]],
         "keypoints_v": [[1.0, 1.0]]}
    )  # fmt: skip

    def oks(**options):
        found = score(dataset, pose, metrics=["oks"], sigmas=(0.05, 0.05), **options)
        return found.units["value"][0], [n for n in found.notes if isinstance(n, Caution)]

    whole, said = oks()
    assert "1 of 1 people have no area" in said[0]
    # One point is off by 5 px: e = 25 / (2 * (2 * .05)^2 * area) = 1250 / area.
    assert whole == pytest.approx((1 + math.exp(-1250 / 10_000)) / 2)
    part, said = oks(area_of_box=0.53)
    assert part == pytest.approx((1 + math.exp(-1250 / 5_300)) / 2)
    assert said == []
    with pytest.raises(SpecError, match="area_of_box is a share"):
        oks(area_of_box=2.0)
