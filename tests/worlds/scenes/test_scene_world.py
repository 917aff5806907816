"""Worlds of boxes: their tables, their seeds, their geometry, and what was injected in them."""

from __future__ import annotations

import time

import numpy as np
import polars as pl
import pytest

from isolux.core.tables import ATTRIBUTES, BOX_PREDICTIONS, IMAGES, INSTANCES, check
from isolux.geometry.boxes import box_pairs_xywh
from isolux.geometry.matching import Detections, Truths
from isolux.tasks import score
from isolux_worlds import (
    Detector,
    Effect,
    Scene,
    SceneAttribute,
    confounded_scene,
    simulate_scene,
)

SIDES = ["box_x", "box_y", "box_w", "box_h"]
ATTRIBUTES_OF = (
    SceneAttribute(name="tone", shares={"a": 0.6, "b": 0.4}),
    SceneAttribute(name="light", shares={"bright": 0.7, "dim": 0.3}, varies="image"),
    SceneAttribute(name="place", shares={"north": 0.5, "south": 0.5}, varies="cluster"),
)
DETECTOR = Detector(
    name="m",
    base_rate=0.7,
    effects=(Effect({"tone": "b"}, -0.5), Effect({"size": "small", "occluded": "true"}, -1.0)),
    per_doubling=0.4,
    false_alarm_effects=(Effect({"light": "dim"}, np.log(3)),),
)


def scene(**changes):
    settings = {"clusters": 300, "images": (1, 3), "people": (1, 6), "attributes": ATTRIBUTES_OF}
    return Scene(**(settings | {"occluded": 0.5, "correlation": 0.3} | changes))


@pytest.fixture(scope="module")
def world():
    return simulate_scene(scene(), DETECTOR, seed=4)


def test_tables_are_what_they_should_be(world):
    data = world.dataset
    check(data.instances, INSTANCES)
    check(data.attributes, ATTRIBUTES)
    check(data.images, IMAGES)
    check(world.predictions, BOX_PREDICTIONS)
    assert data.instances["cluster_id"].n_unique() == 300
    counts = data.instances.group_by("image_id").len()["len"]
    assert (counts.min(), counts.max()) == (1, 6)
    assert data.images["image_id"].to_list() == sorted(counts_of(data.instances, "image_id"))
    n_images = data.instances.group_by("cluster_id").agg(pl.col("image_id").n_unique())["image_id"]
    assert (n_images.min(), n_images.max()) == (1, 3)


def counts_of(frame, column):
    return frame[column].unique().to_list()


def values(world, name):
    rows = world.dataset.instance_attributes().filter(attribute=name)
    return world.dataset.instances.join(
        rows.select(instance_id="unit_id", value="value"), on="instance_id", maintain_order="left"
    )


@pytest.mark.parametrize(("name", "owner"), [("light", "image_id"), ("place", "cluster_id")])
def test_who_owns_an_attribute_has_one_value(world, name, owner):
    rows = values(world, name).group_by(owner).agg(pl.col("value").n_unique())
    assert rows["value"].max() == 1
    assert values(world, "tone").group_by(owner).agg(pl.col("value").n_unique())["value"].max() > 1


def test_derived_attributes_are_those_of_the_boxes(world):
    rows = values(world, "size")
    area = rows["box_w"] * rows["box_h"]
    expected = np.select([area < 32**2, area < 96**2], ["small", "medium"], "large")
    assert rows["value"].to_list() == expected.tolist()
    assert rows["area"].to_list() == pytest.approx(area.to_list())
    crowd = values(world, "crowding").with_columns(n=pl.len().over("image_id"))
    expected = np.select([crowd["n"] == 1, crowd["n"] < 4], ["alone", "few"], "many")
    assert crowd["value"].to_list() == expected.tolist()


def pairs(world, lowest):
    people, found = world.dataset.instances, world.predictions
    at = {name: k for k, name in enumerate(world.dataset.images["image_id"])}
    image = people["image_id"].replace_strict(at).to_numpy()
    of = found["image_id"].replace_strict(at).to_numpy()
    return box_pairs_xywh(
        Detections(of, found["score"].to_numpy()), Truths(image),
        found.select(SIDES).to_numpy(), people.select(SIDES).to_numpy(), lowest_iou=lowest,
    )  # fmt: skip


def test_nothing_overlaps_anybody_but_their_own_detection(world):
    beyond = pairs(world, 0.2)
    assert np.unique(beyond.detection).size == len(beyond)
    assert np.unique(beyond.truth).size == len(beyond)
    assert beyond.iou.min() > 0.5 - 1e-9
    # Those found come first, so that what is beyond them are the false alarms.
    assert beyond.detection.max() + 1 == len(beyond)
    image = np.unique(world.dataset.instances["image_id"].to_numpy(), return_inverse=True)[1]
    boxes = world.dataset.instances.select(SIDES).to_numpy()
    own = box_pairs_xywh(
        Detections(image, np.zeros(len(image))), Truths(image), boxes, boxes, lowest_iou=1e-6
    )
    touching = own.iou[own.detection != own.truth]
    assert 0 < touching.max() < 0.2


def test_the_occluded_are_overlapped_where_somebody_stands_to_their_left(world):
    rows = values(world, "occluded").with_columns(
        left=(pl.col("box_x") + pl.col("box_w")).shift(1).over("image_id")
    )
    overlapped = rows.filter(pl.col("left") > pl.col("box_x"))
    second = rows.drop_nulls("left")
    assert overlapped["value"].unique().to_list() == ["true"]
    assert overlapped.height == second.filter(value="true").height > 300


def test_everything_lies_within_its_image(world):
    sizes = world.dataset.images
    for frame in (world.dataset.instances, world.predictions):
        placed = frame.join(sizes, on="image_id")
        assert placed.select((pl.col(SIDES) >= 0).all()).row(0) == (True,) * 4
        assert (placed["box_x"] + placed["box_w"] <= placed["width"]).all()
        assert (placed["box_y"] + placed["box_h"] <= placed["height"]).all()


def test_the_same_seed_gives_the_same_world_and_another_another(world):
    again, other = (simulate_scene(scene(), DETECTOR, seed) for seed in (4, 5))
    assert again.predictions.equals(world.predictions)
    assert again.dataset.instances.equals(world.dataset.instances)
    assert again.dataset.attributes.equals(world.dataset.attributes)
    assert not other.dataset.instances.equals(world.dataset.instances)


def test_another_detector_or_attribute_leaves_the_others_draws_as_they_were(world):
    more = SceneAttribute(name="more", shares={"x": 0.5, "y": 0.5})
    wider = simulate_scene(
        scene(attributes=(more, *ATTRIBUTES_OF)), (Detector(name="first"), DETECTOR), seed=4
    )
    assert wider.predictions.filter(model="m").equals(world.predictions)
    assert wider.dataset.instances.equals(world.dataset.instances)


def test_false_alarms_are_as_many_as_injected():
    made = simulate_scene(scene(clusters=3000), DETECTOR, seed=2)
    own = np.unique(pairs(made, 0.2).detection)
    alarms = made.predictions.with_row_index("n").filter(~pl.col("n").is_in(own.tolist()))
    light = made.dataset.attributes.filter(attribute="light").select(image_id="unit_id", at="value")
    found = light.join(alarms.group_by("image_id").len(), on="image_id", how="left")
    means = dict(found.group_by("at").agg(pl.col("len").fill_null(0).mean()).iter_rows())
    assert means["bright"] == pytest.approx(1.0, abs=0.06)  # 4,200 images: a standard error of .015
    assert means["dim"] == pytest.approx(3.0, abs=0.17)


def test_overlaps_are_as_injected():
    detector = Detector(name="m", overlap=0.3, concentration=4.0)
    found = pairs(simulate_scene(scene(clusters=2000), detector), 0.2)
    stretched = (found.iou - 0.5) / 0.5
    # A Beta of shapes 1.2 and 2.8: mean .3, variance .3 × .7 / 5.
    assert stretched.mean() == pytest.approx(0.3, abs=0.01)
    assert stretched.var() == pytest.approx(0.042, abs=0.004)


def test_people_of_a_cluster_are_found_alike_as_far_as_was_injected():
    def spread(correlation):
        made = simulate_scene(
            Scene(clusters=4000, images=5, people=2, correlation=correlation),
            Detector(name="m", base_rate=0.5),
        )
        found = score("detection", made.dataset, made.predictions, metrics=("recall_at_iou",))
        rows = found.units.filter(threshold=0.5)
        of_cluster = rows.group_by("cluster_id").agg(pl.col("value").sum())["value"]
        return float(of_cluster.var()), float(rows["value"].mean())

    # Ten people, each found by half a chance: a binomial's variance of 2.5. With a correlation of
    # .5 behind the answers that of two is 2/π asin(.5) = 1/3: 2.5 × (1 + 9/3) = 10.
    assert spread(0.0) == pytest.approx((2.5, 0.5), abs=0.25)
    assert spread(0.5) == pytest.approx((10.0, 0.5), abs=0.8)


def test_a_million_people_take_seconds():
    planned = confounded_scene("both", clusters=166_700)
    started = time.process_time()
    made = simulate_scene(*planned, seed=3)
    assert time.process_time() - started < 20
    assert made.dataset.instances.height > 990_000
    found = score(
        "detection", made.dataset, made.predictions, metrics=("recall_at_iou",),
        iou_thresholds=(0.5,),
    ).units  # fmt: skip
    size = made.dataset.attributes.filter(attribute="size")["value"]
    assert found["unit_id"].equals(made.dataset.instances["instance_id"])
    rows = found.with_columns(group=size).group_by("group")
    truth = made.injected_effects.filter(metric="recall_at_iou", attribute="size")
    both = rows.agg(pl.col("value").mean(), n=pl.len()).join(
        truth.select("group", injected="value"), on="group"
    )
    assert both.height == 3
    # Within five standard errors of rates of people who are alike by a fifth, six a cluster.
    error = (both["value"] - both["injected"]).abs() / (0.5 / both["n"]).sqrt()
    assert error.max() < 5, both
