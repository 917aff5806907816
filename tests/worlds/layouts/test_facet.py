from __future__ import annotations

import csv
import io
import json
import time

import polars as pl
import pytest

from isolux.datasets.facet import load
from isolux_worlds.layouts import facet
from isolux_worlds.photo_world.people import draw_people
from tests.worlds.layouts._painter import painted
from tests.worlds.layouts._worlds import settings, small_world

COLUMNS = [
    "person_id", "filename", "class1", "class2", "bounding_box", "gender_presentation_masc",
    "gender_presentation_fem", "gender_presentation_non_binary", "gender_presentation_na",
    "skin_tone_1", "skin_tone_2", "skin_tone_3", "skin_tone_4", "skin_tone_5", "skin_tone_6",
    "skin_tone_7", "skin_tone_8", "skin_tone_9", "skin_tone_10", "skin_tone_na",
    "age_presentation_young", "age_presentation_middle", "age_presentation_older",
    "age_presentation_na", "hair_color_brown", "hair_color_blonde", "hair_color_grey",
    "hair_color_na", "hair_color_black", "hair_color_colored", "hair_color_red",
    "hairtype_coily", "hairtype_dreadlocks", "hairtype_bald", "hairtype_straight",
    "hairtype_curly", "hairtype_wavy", "hairtype_na", "has_facial_hair", "has_tattoo",
    "has_cap", "has_mask", "has_headscarf", "has_eyeware", "visible_torso", "visible_face",
    "visible_minimal", "lighting_underexposed", "lighting_dimly_lit", "lighting_well_lit",
    "lighting_na", "lighting_overexposed",
]  # fmt: skip
"""FACET's, as ``formats/datasets.md`` lists them."""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("facet")
    facet.write(small_world(), root, painted(small_world()))
    return root


def test_the_table_has_facets_columns_and_cells(root):
    text = (root / "annotations" / "annotations.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert list(rows[0]) == COLUMNS
    assert len(rows) == small_world().people.height
    for row in rows:
        box = json.loads(row["bounding_box"])
        assert list(box) == ["x", "y", "width", "height"]
        for family in ("gender_presentation_", "age_presentation_", "hairtype_", "lighting_"):
            assert sum(int(row[c]) for c in COLUMNS if c.startswith(family)) == 1
        assert sum(int(row[c]) for c in COLUMNS if c.startswith("skin_tone_")) == 6


def test_the_coco_files_link_people(root):
    for name, categories in (
        ("coco_masks.json", {"person", "clothing", "hair"}),
        ("coco_boxes.json", None),
    ):
        found = json.loads((root / "annotations" / name).read_text())
        if categories:
            assert {c["name"] for c in found["categories"]} == categories
        assert {a["person_id"] for a in found["annotations"]} == set(
            small_world().people["person_id"]
        )
        images = {i["id"]: i["file_name"] for i in found["images"]}
        assert all(a["image_id"] in images for a in found["annotations"])


def test_photos_lie_in_three_folders(root):
    folders = {p.parent.name for p in root.rglob("sa_*.jpg")}
    assert folders == {"imgs_1", "imgs_2", "imgs_3"}


def test_a_second_occupation_is_the_second_class(tmp_path):
    named = settings(attributes={
        "second_occupation": {"level": "subject", "shares": {'cook, "head"': 0.5, "None": 0.5}},
    }, by=["lighting"])  # fmt: skip
    world = draw_people(named)
    facet.write(world, tmp_path)
    read = dict(load(tmp_path).instances.select("instance_id", "classes").rows())
    for person, first, second in world.people.select(
        "person_id", "occupation", "second_occupation"
    ).rows():
        expected = [first] if second == "None" else [first, second]
        assert read[str(person)] == expected


def test_annotators_err_as_often_as_is_injected(tmp_path):
    noisy = settings(households=1500, annotators={"error": 0.2}, by=["lighting"])
    world = draw_people(noisy)
    facet.write(world, tmp_path)
    told = load(tmp_path).values_of("age_presentation").select("unit_id", "value")
    true = world.people.select(unit_id=pl.col("person_id").cast(pl.String), true="age_group")
    both = true.join(told, on="unit_id", validate="1:1")
    # Of three values: wrong if two of three take the same wrong one, or three do:
    # each wrong value 3 · .1² · .9 + .1³ = .028; twice .056. Nobody agrees: 6 · .8 · .1² = .048.
    wrong = (both["true"] != both["value"]).sum() / both.height
    assert abs(wrong - 0.056) < 0.015
    assert abs(both["value"].null_count() / both.height - 0.048) < 0.015


def test_a_person_has_the_same_annotators_whatever_else_is_in_the_world(tmp_path):
    one, two = (draw_people(settings(annotators={"error": 0.3}, by=["lighting"], models=m))
                for m in ([], [{"name": "other", "base_rate": 0.5}]))  # fmt: skip
    for world, name in ((one, "a"), (two, "b")):
        (tmp_path / name).mkdir()
        facet.write(world, tmp_path / name)
    tables = [(tmp_path / n / "annotations" / "annotations.csv").read_text() for n in "ab"]
    assert tables[0] == tables[1]


def test_fifty_thousand_people_are_written_in_seconds(tmp_path):
    world = draw_people(settings(households=17_000, subjects=[3, 3], photos=[2, 2], people=[2, 2]))
    assert world.people.height > 50_000
    start = time.process_time()
    facet.write(world, tmp_path)
    assert time.process_time() - start < 10  # half a second on a quiet machine
    table = pl.scan_csv(tmp_path / "annotations" / "annotations.csv")
    assert table.select(pl.len()).collect().item() == world.people.height
