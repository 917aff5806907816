"""Where people stand: boxes in the photo, views as their names say, and nobody covered whole."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux_worlds.photo_world.people import draw_people
from isolux_worlds.photo_world.placement import LEAST_PX
from isolux_worlds.photo_world.settings import parse_world
from isolux_worlds.photo_world.tables import JOINTS

SIZES = [(640, 480), (480, 640), (64, 64), (1920, 400)]
AT = {name: i for i, name in enumerate(JOINTS)}


def drawn(size, **changes):
    width, height = size
    settings = {"name": "w", "households": 400, "subjects": [2, 5], "photos": [1, 3],
                "people": [1, 5], "image": {"width": width, "height": height}}  # fmt: skip
    return draw_people(parse_world(settings | changes)).people


def joints(people):
    return np.stack(people["joints_x"].to_numpy()), np.stack(people["joints_y"].to_numpy())


@pytest.mark.parametrize("size", SIZES)
def test_boxes_are_inside_and_never_empty(size):
    people = drawn(size)
    for kind in ("box", "face"):
        x, y, w, h = (people[f"{kind}_{c}"].to_numpy() for c in "xywh")
        assert min(w.min(), h.min()) >= LEAST_PX
        assert min(x.min(), y.min()) >= 0
        assert (x + w).max() <= size[0] + 1e-9
        assert (y + h).max() <= size[1] + 1e-9


@pytest.mark.parametrize("size", SIZES)
def test_a_view_shows_what_its_name_says(size):
    people = drawn(size)
    x, y = joints(people)
    width, height = size
    view = people["view"].to_numpy()
    inside = (x >= 0) & (x <= width) & (y >= 0) & (y <= height)
    assert inside[view == "full"].all()
    hips = [AT["right_hip"], AT["left_hip"]]
    assert not inside[view == "torso"][:, hips].any()
    elbows = [AT["right_elbow"], AT["left_elbow"]]
    shoulders = [AT["right_shoulder"], AT["left_shoulder"]]
    upright = ~people["pose"].is_in(["bending"]).to_numpy()
    low = view == "face"
    still = low & people["pose"].is_in(["standing", "sitting"]).to_numpy()
    assert not inside[still][:, elbows].any()
    assert (y[low & upright][:, shoulders] < height).all()
    assert (y[low][:, hips] > height).all()
    face = [AT["nose"], AT["right_eye"], AT["left_eye"], AT["mouth_left"], AT["mouth_right"]]
    assert inside[:, face].all()


def test_faces_hold_the_eyes_and_bodies_hold_the_face():
    people = drawn((640, 480))
    x, y = joints(people)
    box = {k: people[f"{k}"].to_numpy() for k in people.columns if k[:4] in ("box_", "face")}
    for name in ("nose", "right_eye", "left_eye", "mouth_left", "right_ear"):
        at = AT[name]
        across = x[:, at] - box["face_x"]
        down = y[:, at] - box["face_y"]
        slack = 0.05 * box["face_w"] + 0.5
        assert ((across > -slack) & (across < box["face_w"] + slack)).all()
        assert ((down > -slack) & (down < box["face_h"] + slack)).all()
    assert (box["face_y"] + 0.1 >= box["box_y"]).all()
    assert (box["face_x"] + 0.1 >= box["box_x"] - 0.05 * box["face_w"]).all()
    # A box touches its outermost joints: who is whole in the photo is no more than flesh away.
    full = (people["view"] == "full").to_numpy()
    reach = x[full].max(axis=1) - x[full].min(axis=1)
    stature = y[full, AT["right_ankle"]] - y[full, AT["right_eye"]]
    assert (box["box_w"][full] - reach < 0.12 * np.maximum(stature, reach)).all()


def test_nobody_is_covered_whole():
    """Of two people of a photo, no nearer one's shoulders reach over the other's nose."""
    people = drawn((640, 480), people=[5, 5], subjects=[5, 5])
    x, y = joints(people)
    rows = people.select(
        "image_id", "layer", "person_id",
        nose=pl.Series(x[:, AT["nose"]]),
        left=pl.Series(np.minimum(x[:, AT["right_shoulder"]], x[:, AT["left_shoulder"]])),
        right=pl.Series(np.maximum(x[:, AT["right_shoulder"]], x[:, AT["left_shoulder"]])),
    )  # fmt: skip
    pairs = rows.join(rows, on="image_id", suffix="_behind").filter(
        pl.col("layer") > pl.col("layer_behind")
    )
    assert pairs.height > 5000
    over = pairs.filter(pl.col("nose_behind").is_between("left", "right"))
    leaning = people.filter(pose="bending")["person_id"]
    assert over.filter(~pl.col("person_id").is_in(leaning.implode())).height == 0
    assert over.height < 0.01 * pairs.height
    del y


def test_layers_number_each_photos_people_and_nearer_is_larger():
    people = drawn((640, 480))
    per_photo = people.group_by("image_id").agg(pl.col("layer").sort(), n=pl.len())
    assert all(row["layer"] == list(range(row["n"])) for row in per_photo.iter_rows(named=True))
    x, y = joints(people)
    head = np.hypot(x[:, AT["right_ear"]] - x[:, AT["left_ear"]],
                    y[:, AT["right_ear"]] - y[:, AT["left_ear"]])  # fmt: skip
    sized = people.select("image_id", "layer", head=pl.Series(head)).sort("image_id", "layer")
    step = sized.with_columns(before=pl.col("head").shift(1).over("image_id")).drop_nulls()
    assert (step["head"] > 0.98 * step["before"]).all()


def test_near_is_larger_than_far():
    people = drawn((640, 480))
    for view in ("full", "torso", "face"):
        heights = people.filter(view=view).group_by("distance").agg(pl.col("face_h").median())
        by = dict(heights.iter_rows())
        assert by["near"] > 1.2 * by["middle"] > 1.2 * 1.1 * by["far"]
