"""Boxes, masks, parts and joints as seen, against pycocotools and against the label pictures."""

from __future__ import annotations

import numpy as np
import pytest
from pycocotools import mask as coco

from isolux.core.schema import check
from isolux_worlds.drawing import measure_visible_people, render_photos
from isolux_worlds.photo_world.people import draw_people
from isolux_worlds.photo_world.settings import preset
from isolux_worlds.photo_world.tables import JOINTS, PARTS, PEOPLE
from tests.worlds.drawing._hand import HEIGHT, WIDTH, person, world

pytestmark = pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")  # pycocotools


def bitmap(counts, shape=(HEIGHT, WIDTH)):
    return coco.decode({"size": list(shape), "counts": counts.encode()}).astype(bool)


@pytest.fixture(scope="module")
def two():
    made = world(
        person(1, x=110.0, layer=0), person(2, x=170.0, layer=1, occupation="guitarist"),
        person(3, x=260.0, layer=2, occlusion="partial"),
    )  # fmt: skip
    rendered = next(render_photos(made))
    return rendered, measure_visible_people(made, rendered)


def test_masks_and_boxes_are_the_owners_pixels(two):
    rendered, people = two
    for k, row in enumerate(people.iter_rows(named=True), start=1):
        mine = rendered.owner == k
        np.testing.assert_array_equal(bitmap(row["mask_counts"]), mine)
        box = coco.toBbox({"size": [HEIGHT, WIDTH], "counts": row["mask_counts"].encode()})
        assert [row["box_x"], row["box_y"], row["box_w"], row["box_h"]] == box.tolist()
        assert row["seen_share"] == pytest.approx(mine.sum() / rendered.body_px[k - 1])


def test_run_lengths_are_those_that_pycocotools_writes(two):
    rendered, people = two
    for k, counts in enumerate(people["mask_counts"], start=1):
        packed = coco.encode(np.asfortranarray(rendered.owner == k, dtype=np.uint8))
        assert counts == packed["counts"].decode()


def test_parts_divide_a_persons_pixels_among_them(two):
    rendered, people = two
    for k, row in enumerate(people.iter_rows(named=True), start=1):
        names = [entry["part"] for entry in row["part_masks"]]
        assert len(set(names)) == len(names)
        assert set(names) <= set(PARTS) - {"prop"}
        maps = [bitmap(entry["counts"]) for entry in row["part_masks"]]
        np.testing.assert_array_equal(np.sum(maps, axis=0), (rendered.owner == k).astype(int))
        for name, where in zip(names, maps, strict=True):
            assert (rendered.part_labels[where] == PARTS.index(name) + 1).all()


def test_joints_are_seen_where_the_pixel_is_the_persons_own(two):
    rendered, people = two
    for k, row in enumerate(people.iter_rows(named=True), start=1):
        for x, y, v in zip(row["joints_x"], row["joints_y"], row["joints_v"], strict=True):
            inside = 0 <= x < WIDTH and 0 <= y < HEIGHT
            expected = 0 if not inside else 2 if rendered.owner[int(y), int(x)] == k else 1
            assert v == expected


def test_joints_of_a_scene_made_by_hand():
    # Two people at one place, the nearer 1.6 times as large: what is behind the trunk is hidden;
    # the photo ends at their knees, so that ankles are outside.
    far = person(1, x=160.0, tall=150.0, foot=200.0, layer=0)
    near = person(2, x=160.0, tall=400.0, foot=400.0, layer=1, occupation="computer_user",
                  hair_type="bald")  # fmt: skip
    made = world(far, near)
    states = measure_visible_people(made, next(render_photos(made)))["joints_v"]
    behind, before = (dict(zip(JOINTS, s, strict=True)) for s in states)
    assert behind["left_hip"] == behind["nose"] == 1
    assert before["nose"] == before["left_eye"] == before["right_shoulder"] == 2
    assert before["left_ankle"] == before["right_foot_index"] == 0


def test_somebody_unhidden_shows_the_whole_face_and_limbs():
    made = world(person(occupation="disk_jockey", hair_type="bald"))
    states = dict(
        zip(
            JOINTS,
            measure_visible_people(made, next(render_photos(made)))["joints_v"][0],
            strict=True,
        )
    )
    assert [name for name, v in states.items() if v != 2] == []


def test_somebody_of_whom_nothing_is_seen():
    hidden = person(1, x=160.0, tall=60.0, foot=180.0, layer=0)
    wall = person(2, x=160.0, tall=900.0, foot=750.0, layer=1)
    made = world(hidden, wall)
    row = measure_visible_people(made, next(render_photos(made))).row(0, named=True)
    assert row["mask_counts"] is None
    assert row["part_masks"] is None
    assert row["seen_share"] == 0
    assert [row[f"box_{k}"] for k in "xywh"] == [0.0, 0.0, WIDTH, HEIGHT]  # as in the tables
    assert 2 not in row["joints_v"]


def test_a_photo_of_nobody_has_no_rows():
    made = world()
    people = measure_visible_people(made, next(render_photos(made)))
    assert people.height == 0
    assert {"joints_v", "mask_counts", "seen_share", "part_masks"} <= set(people.columns)


def test_people_as_seen_are_a_table_of_people():
    made = draw_people(preset("fair"), seed=1)
    rendered = next(render_photos(made))
    people = measure_visible_people(made, rendered)
    check(people, PEOPLE)
    before = made.people.filter(made.people["image_id"] == rendered.image_id)
    assert people["person_id"].to_list() == before["person_id"].to_list()
    assert "mask_counts" not in made.people.columns
