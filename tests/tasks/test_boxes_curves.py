"""At which overlaps each person was found: bits by hand, and the mean of them against the score."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from isolux.tasks import score
from isolux_worlds import Detector, Scene
from isolux_worlds.scenes.scene_world import simulate_scene


@pytest.fixture(scope="module")
def world():
    return simulate_scene(Scene(clusters=80), Detector(name="m", base_rate=0.7), seed=3)


def people(**more):
    # A 10 × 10 box, found by one of 10 × 8: IoU .80, enough at the first seven of the ten.
    world = simulate_scene(Scene(clusters=3, people=1), Detector(name="m", base_rate=0.5), seed=1)
    ten = {f"box_{side}": [v] * 3 for side, v in zip("xywh", (0.0, 0.0, 10.0, 10.0), strict=True)}
    ids = {"instance_id": ["a", "b", "c"], "image_id": ["1", "2", "3"]}
    crowd = {"is_crowd": [False, False, True]}
    return replace(world.dataset, instances=pl.DataFrame({**ids, **ten, **crowd, **more}))


BOXES = {
    "model": ["m", "m"],
    "image_id": ["1", "3"],
    "label": ["person", "person"],
    "box_x": [0.0, 0.0],
    "box_y": [0.0, 0.0],
    "box_w": [10.0, 10.0],
    "box_h": [8.0, 8.0],
    "score": [0.9, 0.8],
}


def test_bits_by_hand_and_nobody_who_is_not_scored():
    found = score("detection", people(), pl.DataFrame(BOXES)).evidence["recall_by_iou"]
    assert found.select("model", "unit_id", "at", "area_px").rows() == [
        ("m", "a", 0b0001111111, 100.0),
        ("m", "b", 0, 100.0),
    ]
    assert found.schema["at"] == pl.UInt16


def test_the_area_is_that_of_the_annotation_where_there_is_one():
    given = people(area=[60.0, None, None])
    found = score("detection", given, pl.DataFrame(BOXES)).evidence["recall_by_iou"]
    assert found["area_px"].to_list() == [60.0, 100.0]


def test_the_bits_are_the_parts_of_average_recall(world):
    scores = score("detection", world.dataset, world.predictions, max_detections=2)
    found = scores.evidence["recall_by_iou"]
    bits = sum((found["at"].cast(pl.Int64) // 2**t) % 2 for t in range(10))
    recall = scores.units.filter(metric="average_recall")
    joined = found.select("unit_id", share=bits / 10).join(recall, on="unit_id")
    assert joined.height == recall.height > 100
    assert (joined["share"] - joined["value"]).abs().max() < 1e-12


def test_without_average_recall_nothing_is_kept(world):
    scores = score("detection", world.dataset, world.predictions, metrics=["recall_at_iou"])
    assert "recall_by_iou" not in scores.evidence
