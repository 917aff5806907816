"""Several annotators' drawings: gathered, merged, and each annotator beside the others."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.core.errors import IsoluxError, SpecError
from isolux.core.notes import Caution
from isolux.geometry.masks import masks_from_counts
from isolux.geometry.rle import masks_to_coco
from isolux_curate.shapes import find_consensus_shapes, group_similar_drawings
from isolux_curate.shapes.merging import merge_masks_by_object, merge_poses_by_huber_mean


def drawn(tmp_path, *rows: str, name: str = "drawn.csv"):
    """``"photo annotator label x y w h"``, one drawing a row."""
    head = "image,annotator,label,box_x,box_y,box_w,box_h\n"
    (tmp_path / name).write_text(head + "".join(f"{r.replace(' ', ',')}\n" for r in rows))
    return isolux.load("table", tmp_path / name)


def test_boxes_of_one_object_become_their_median(tmp_path):
    """By hand: lefts 0, 1, 4 and rights 10, 11, 12 give 1 to 11; the second object has one box."""
    data = drawn(
        tmp_path, "a x dog 0 0 10 10", "a y dog 1 0 10 10", "a z cat 4 0 8 10",
        "a x owl 50 50 10 10",
    )  # fmt: skip
    found = find_consensus_shapes(data, min_similarity=0.4)
    rows = found.objects.select("label", "drawn_by", "asked", "status", "box_x", "box_w").rows()
    assert rows == [
        ("dog", 3, 3, "agreed", 1.0, 10.0),
        ("owl", 1, 3, "needs more votes", 50.0, 10.0),
    ]
    # Unions: x and y 110 (9 by 10 shared), x and z 120 (6), y and z 120 - 10 + ... = 11 (7 shared).
    pairs = [90 / 110, 60 / 120, 70 / 110]
    assert found.objects["iou"][0] == pytest.approx(np.mean(pairs))
    assert found.objects["iou"][1] is None


def test_labels_that_tie_are_asked_again(tmp_path):
    found = find_consensus_shapes(drawn(tmp_path, "a x dog 0 0 9 9", "a y cat 0 0 9 9"))
    assert found.objects.select("label", "status").row(0) == (None, "needs more votes")


def test_no_annotator_is_twice_in_an_object():
    """Drawing 1 and 2 are both of annotator 1; 0 is likest to 1, and 3 joins them, 2 stays."""
    first, second = np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3])
    alike = np.array([0.9, 0.8, 0.7, 0.6])
    who = np.array([0, 1, 1, 2])
    assert group_similar_drawings(first, second, alike, who, 0.3).tolist() == [0, 0, 1, 0]
    assert group_similar_drawings(first, second, alike, who, 0.5).tolist() == [0, 0, 1, 1]


def test_each_annotator_is_judged_by_the_others_alone(tmp_path):
    """z misses the second object of every photo, y draws a third that no one else saw."""
    rows = []
    for k in range(6):
        rows += [f"p{k} {who} dog 0 0 10 10" for who in "xyz"]
        rows += [f"p{k} {who} dog 50 0 10 10" for who in "xy"]
        rows.append(f"p{k} y dog 90 0 10 10")
    found = find_consensus_shapes(drawn(tmp_path, *rows))
    told = found.annotators.select("annotator", "images", "drawn", "kept", "found").rows()
    assert told == [("x", 6, 12, 1.0, 1.0), ("y", 6, 18, 2 / 3, 1.0), ("z", 6, 6, 1.0, 0.5)]
    assert found.annotators["found_low"][2] == pytest.approx(0.5)  # alike in every photo
    assert any(isinstance(n, Caution) and "6 of 18 objects" in n for n in found.notes)


def test_intervals_hold_what_was_injected(tmp_path):
    """z misses 30 % of the objects of 40 photos; 20 worlds, and most intervals hold .7."""
    held = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        rows = [
            f"p{k} {who} dog {60 * o} 0 20 20"
            for k in range(40) for o in range(3) for who in "xyz"
            if who != "z" or rng.random() > 0.3 or o == 0
        ]  # fmt: skip
        z = find_consensus_shapes(drawn(tmp_path, *rows)).annotators.row(2, named=True)
        held += z["found_low"] <= 0.8 <= z["found_high"]  # one of three is never missed
    assert held >= 15


MASKS = [[0, 6, 10], [0, 8, 8], [8, 8]]


@pytest.mark.parametrize(
    ("rows", "rule", "runs"),
    [
        ([0, 1, 2], "vote", [0, 6, 10]),  # pixels 0 to 5 have two votes, 6 and 7 one, the rest one
        ([0, 1], "vote", [0, 6, 10]),  # of two, both
        ([0, 0, 1], "staple", [0, 6, 10]),
        ([2], "vote", [8, 8]),
    ],
)
def test_masks_by_hand(rows, rule, runs):
    masks = masks_from_counts(MASKS, np.full(3, 4), np.full(3, 4))
    merged = merge_masks_by_object(masks, [np.array(rows)], rule)
    expected = masks_from_counts([runs], np.array([4]), np.array([4]))
    assert masks_to_coco(merged) == masks_to_coco(expected)


@pytest.mark.parametrize("seed", range(5))
def test_a_vote_of_masks_is_the_vote_of_their_pixels(seed):
    rng = np.random.default_rng(seed)
    bits = rng.random((5, 60)) < 0.5
    runs = []
    for row in bits:
        turns = np.flatnonzero(np.diff(np.concatenate([[0], row, [1 - row[-1]]]))) + 0
        runs.append(np.diff(np.concatenate([[0], turns])).tolist())
    masks = masks_from_counts(runs, np.full(5, 6), np.full(5, 10))
    assert masks.area_px.tolist() == bits.sum(axis=1).tolist()
    merged = merge_masks_by_object(masks, [np.arange(5), np.arange(3)], "vote")
    assert merged.area_px.tolist() == [
        int((bits.sum(axis=0) > 2).sum()), int((bits[:3].sum(axis=0) > 1).sum())
    ]  # fmt: skip


def test_a_keypoint_that_most_left_out_is_left_out():
    pose = np.array([[[1.0, 1, 2], [5, 5, 2]], [[1, 1, 1], [0, 0, 0]], [[1, 1, 1], [0, 0, 0]]])
    assert merge_poses_by_huber_mean(pose, 50.0, np.array([0.05, 0.05])).tolist() == [
        [1, 1, 1],
        [0, 0, 0],
    ]


def test_one_far_off_hardly_moves_a_pose():
    """Huber: five at 10, one at 1,000; the mean would be 175."""
    pose = np.full((6, 1, 3), 10.0)
    pose[..., 2], pose[5, 0, 0] = 2, 1000
    x = merge_poses_by_huber_mean(pose, 100.0, np.array([0.05]))[0, 0]
    assert 10 <= x < 13


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"min_similarity": 0}, "overlap"), ({"min_similarity": 1.5}, "overlap"),
        ({"min_annotators": 0}, "min_annotators"),
        ({"mask_rule": "mean"}, "mask_rule"), ({"shape_type": "lines"}, "kind"),
        ({"shape_type": "masks"}, "nobody drew masks"), ({"annotator_column": "who"}, "who"),
    ],
)  # fmt: skip
def test_what_cannot_be(tmp_path, settings, word):
    with pytest.raises(IsoluxError, match=word):
        find_consensus_shapes(drawn(tmp_path, "a x dog 0 0 9 9"), **settings)


def test_a_drawing_without_an_annotator_is_refused(tmp_path):
    with pytest.raises(SpecError, match="no annotator"):
        find_consensus_shapes(drawn(tmp_path, "a x dog 0 0 9 9", "a  dog 0 0 9 9"))


def test_pictures_of_one_annotator_are_told_first(tmp_path):
    found = find_consensus_shapes(
        drawn(tmp_path, "a x dog 0 0 9 9", "b x dog 0 0 9 9", "b y dog 0 0 9 9")
    )
    said = "1 of 2 pictures have drawings of one annotator alone"
    assert isinstance(next(note for note in found.notes if said in note), Caution)


def test_row_order_changes_nothing(tmp_path):
    rows = [f"p{k} {w} dog {k} {d} 10 10" for k in range(4) for d, w in enumerate("xyz")]
    one = find_consensus_shapes(drawn(tmp_path, *rows)).objects
    two = find_consensus_shapes(drawn(tmp_path, *reversed(rows), name="b.csv")).objects
    held = ["image_id", "box_x", "box_y", "iou", "drawn_by"]
    assert one.select(held).sort("image_id").rows() == two.select(held).sort("image_id").rows()
    assert isinstance(one, pl.DataFrame)


def test_doubtful_drawings_are_told_first(tmp_path):
    data = drawn(tmp_path, "a ann dog 0 0 9 9", "a Ann dog 0 0 9 9", "a bo dog 50 0 0 9")
    told = [str(n) for n in find_consensus_shapes(data).notes if isinstance(n, Caution)]
    assert any("1 drawings have no area" in n for n in told)
    assert any("'Ann' and 'ann' count as different" in n for n in told)


def test_more_annotators_than_there_are_is_refused(tmp_path):
    with pytest.raises(SpecError, match="that many"):
        find_consensus_shapes(
            drawn(tmp_path, "a x dog 0 0 9 9", "a y dog 0 0 9 9"), min_annotators=3
        )
