"""Likeness of answers: by hand, and against plain loops."""

from __future__ import annotations

import itertools
import json

import numpy as np
import polars as pl
import pytest
from PIL import Image, ImageDraw

from isolux.core.errors import TableError, UnknownNameError
from isolux.geometry.keypoints import COCO_SIGMAS
from isolux_curate.quality.agreement import (
    compare_with_specialists,
    compare_within_and_between_vendors,
)
from isolux_curate.quality.typed_answers import parse_answers_by_type


def boxes(rows: list[tuple[object, ...]]) -> pl.DataFrame:
    names = ["unit", "annotator", "vendor", "x", "y", "w", "h"]
    return pl.DataFrame(rows, schema=names, orient="row").with_columns(type=pl.lit("boxes"))


def test_boxes_against_the_mean_of_specialists() -> None:
    said = boxes(
        [("a", "v", "collected", 0.0, 0.0, 10.0, 10.0),
         ("a", "q", "specialists", 0.0, 0.0, 10.0, 8.0),
         ("a", "r", "specialists", 0.0, 0.0, 10.0, 12.0),
         ("b", "v", "collected", 0.0, 0.0, 10.0, 10.0),
         ("b", "q", "specialists", 5.0, 0.0, 10.0, 10.0),
         ("c", "q", "specialists", 5.0, 0.0, 10.0, 10.0)]
    )  # fmt: skip
    # a: the mean of 8 and 12 high is 10 high, the same; b: 50 shared of 150; c: not collected.
    found = compare_with_specialists(parse_answers_by_type(said, "said")["boxes"])
    assert dict(found.select("unit", "value").rows()) == pytest.approx({"a": 1.0, "b": 1 / 3})


def test_within_and_between_vendors() -> None:
    said = boxes(
        [("a", "v1", "v", 0.0, 0.0, 10.0, 10.0), ("a", "v2", "v", 0.0, 0.0, 10.0, 5.0),
         ("a", "w1", "w", 0.0, 0.0, 10.0, 10.0)]
    )  # fmt: skip
    # v1 and v2 share half; w1 is v1's, and half of v2's: (1 + .5) / 2.
    found = compare_within_and_between_vendors(parse_answers_by_type(said, "said")["boxes"])
    assert found.select("part", "vendor", "value", "pairs").rows() == [
        ("inter-vendor", None, 0.75, 2), ("intra-vendor", "v", 0.5, 1),
    ]  # fmt: skip


def test_sets_of_answers_against_a_plain_loop() -> None:
    draw = np.random.default_rng(1)
    rows = []
    for unit, (vendor, who) in itertools.product(range(30), itertools.product("vw", "123")):
        words = draw.choice(["a", "b", "c", "d"], draw.integers(1, 4), replace=False)
        rows += [(f"u{unit}", vendor + who, vendor, "hair", str(word)) for word in words]
    names = ["unit", "annotator", "vendor", "type", "answer"]
    said = pl.DataFrame(rows, schema=names, orient="row")
    found = compare_within_and_between_vendors(parse_answers_by_type(said, "said")["hair"]).filter(
        part="inter-vendor"
    )
    for unit, value in found.select("unit", "value").iter_rows():
        sets = {
            who: set(part["answer"])
            for (who,), part in said.filter(unit=unit).group_by("annotator")
        }
        pairs = [(a, b) for a, b in itertools.combinations(sorted(sets), 2) if a[0] != b[0]]
        jaccard = [len(sets[a] & sets[b]) / len(sets[a] | sets[b]) for a, b in pairs]
        assert value == pytest.approx(np.mean(jaccard), abs=1e-12)


def test_masks_against_pixels() -> None:
    draw = np.random.default_rng(2)
    rows, grids = [], {}
    for unit, who in itertools.product("ab", ["v", "q1", "q2", "q3"]):
        left, top = draw.integers(0, 12, 2)
        points = [[left, top], [left + 20, top], [left + 20, top + 15], [left, top + 15]]
        rows.append((unit, who, "collected" if who == "v" else "specialists", json.dumps(
            [[float(x), float(y)] for x, y in points])))  # fmt: skip
        canvas = Image.new("1", (64, 64))
        ImageDraw.Draw(canvas).rectangle((left, top, left + 19, top + 14), fill=1)
        grids[unit, who] = np.asarray(canvas)
    said = pl.DataFrame(rows, schema=["unit", "annotator", "vendor", "points"], orient="row")
    found = compare_with_specialists(
        parse_answers_by_type(said.with_columns(type=pl.lit("mask: hair")), "x")["mask: hair"]
    )
    for unit, value in found.select("unit", "value").iter_rows():
        mean = sum(grids[unit, f"q{k}"].astype(int) for k in (1, 2, 3)) >= 2
        ours = grids[unit, "v"]
        dice = 2 * (mean & ours).sum() / (mean.sum() + ours.sum())
        assert value == pytest.approx(dice, abs=1e-12)


def test_keypoints_by_cocos_formula() -> None:
    draw = np.random.default_rng(3)
    pose = np.column_stack([draw.uniform(0, 100, (17, 2)), np.full(17, 2)])
    moved = pose + np.array([3.0, 0.0, 0.0])
    moved[0, 2] = 0  # one that the other did not label does not count
    rows = [
        ("a", "v1", "v", json.dumps(pose.tolist())),
        ("a", "w1", "w", json.dumps(moved.tolist())),
    ]
    said = pl.DataFrame(rows, schema=["unit", "annotator", "vendor", "keypoints"], orient="row")
    found = compare_within_and_between_vendors(
        parse_answers_by_type(said.with_columns(type=pl.lit("pose")), "x")["pose"]
    )

    def area(points: np.ndarray) -> float:
        seen = points[points[:, 2] > 0, :2]
        return float(np.prod(seen.max(axis=0) - seen.min(axis=0)))

    size = (area(pose) + area(moved)) / 2
    each = np.exp(-9 / (2 * size * (2 * np.array(COCO_SIGMAS)) ** 2))
    assert found["value"][0] == pytest.approx(each[1:].mean(), abs=1e-9)


def test_the_mean_pose_is_of_those_who_labelled() -> None:
    def said(who: str, side: str, points: list[list[float]]) -> tuple[str, ...]:
        return ("a", who, side, json.dumps(points))

    rows = [
        said("v", "collected", [[2, 0, 2], [0, 9, 2], [8, 8, 2]]),
        said("q", "specialists", [[0, 0, 2], [0, 9, 2], [50, 50, 0]]),
        said("r", "specialists", [[4, 0, 2], [0, 9, 2], [50, 50, 0]]),
        said("s", "specialists", [[2, 0, 2], [0, 9, 0], [8, 8, 2]]),
    ]
    table = pl.DataFrame(rows, schema=["unit", "annotator", "vendor", "keypoints"], orient="row")
    found = compare_with_specialists(
        parse_answers_by_type(table.with_columns(type=pl.lit("p")), "x")["p"]
    )
    assert found["value"].to_list() == [
        1.0
    ]  # the third point, which one of three labelled, is none


BOX = {"unit": "a", "annotator": "v", "type": "boxes", "x": 1, "y": 1, "w": 4, "h": 4}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([BOX, BOX], "two answers with a box of one unit"),
        ([BOX | {"w": 0}], "a box has no area"),
        ([BOX | {"w": "wide"}], "a side of a box is not a number"),
        ([BOX, {"unit": "b", "annotator": "v", "type": "boxes", "answer": "yes"}],
         "has answers of two kinds"),
        ([BOX | {"annotator": None}], "a cell of 'annotator' is empty"),
        ([{"unit": "a", "annotator": "v", "type": "m", "points": "[[1,2],[3,4]]"}],
         "an outline is not a polygon"),
        ([{"unit": "a", "annotator": "v", "type": "m", "points": "round"}], "these are not points"),
        ([{"unit": "a", "annotator": "v", "type": "p", "keypoints": "[[1,2]]"}],
         "a point lacks a number"),
        ([{"unit": u, "annotator": "v", "type": "p", "keypoints": k}
          for u, k in (("a", "[[1,2,2]]"), ("b", "[[1,2,2],[3,4,2]]"))],
         "different numbers of keypoints"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused(rows: list[dict[str, object]], said: str) -> None:
    frame = pl.DataFrame(rows, infer_schema_length=None, strict=False)
    if isinstance(rows[0].get("w"), str):
        frame = frame.with_columns(pl.lit("wide").alias("w"))
    with pytest.raises(TableError, match=said):
        parse_answers_by_type(frame, "said.csv")


def test_a_missing_column_is_named() -> None:
    with pytest.raises(UnknownNameError, match="annotator"):
        parse_answers_by_type(pl.DataFrame({"unit": ["a"], "type": ["x"]}), "said.csv")
