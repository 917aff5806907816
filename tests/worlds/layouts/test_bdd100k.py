from __future__ import annotations

import csv
import json
from collections import defaultdict

import pytest

from isolux.datasets.bdd100k import load
from isolux_worlds.layouts import bdd100k
from isolux_worlds.photo_world.people import draw_people
from tests.worlds.layouts._worlds import HOSTILE, settings


@pytest.fixture(scope="module")
def world():
    return draw_people(settings(households=60))


@pytest.fixture(scope="module")
def root(world, tmp_path_factory):
    root = tmp_path_factory.mktemp("bdd100k")
    bdd100k.write(world, root)
    return root


def test_every_video_lies_in_its_own_district(world, root):
    shapes = json.loads((root / "districts" / "districts.geojson").read_text())["features"]
    squares = {
        s["properties"]["postalCode"]: s["geometry"]["coordinates"][0] for s in shapes
    }  # fmt: skip
    place = {s["properties"]["postalCode"]: s["properties"]["name"] for s in shapes}
    frames = json.loads((root / "labels" / "det_20" / "det_val.json").read_text())
    homes = dict(world.photos.select("image_id", "household_id").rows())
    video = {
        homes[image]: frame["videoName"]
        for image, frame in zip(world.photos["image_id"], frames, strict=True)
    }
    seen = set()
    for home, district in world.households.select("household_id", "district").rows():
        info = json.loads((root / "info" / "100k" / "val" / f"{video[home]}.json").read_text())
        spot = info["locations"][0]
        inside = [
            code
            for code, ring in squares.items()
            if min(x for x, _ in ring) < spot["longitude"] < max(x for x, _ in ring)
            and min(y for _, y in ring) < spot["latitude"] < max(y for _, y in ring)
        ]
        assert len(inside) == 1
        assert place[inside[0]].startswith(district)
        seen.add(district)
    assert seen == set(HOSTILE)


def test_the_loader_finds_the_median_income_of_each_district(world, root):
    dataset = load(
        root,
        info=root / "info/100k/val",
        districts=root / "districts/districts.geojson",
        incomes=root / "districts/income.csv",
    )
    with (root / "districts" / "income.csv").open(newline="") as file:
        rows = {r["postalCode"]: r for r in csv.DictReader(file)}
    of_area = defaultdict(list)
    incomes = world.households["income"].sort().to_list()
    thirds = [incomes[len(incomes) * k // 3] for k in (1, 2)]
    for district, income in world.households.select("district", "income").rows():
        word = ("low", "middle", "high")[sum(income >= edge for edge in thirds)]
        of_area[f"{district}, {word} incomes"].append(income)
    for row in rows.values():
        found = sorted(of_area[row["area"]])
        half = len(found) // 2
        median = found[half] if len(found) % 2 else (found[half - 1] + found[half]) / 2
        assert float(row["median_income"]) == pytest.approx(12 * median, abs=0.01)
    told = dict(dataset.values_of("income").select("unit_id", "number").rows())
    district = dict(dataset.values_of("district").select("unit_id", "value").rows())
    assert None not in district.values()
    assert all(told[k] == float(rows[v]["median_income"]) for k, v in district.items())


def test_boxes_end_at_their_edge(world, root):
    assert (load(root).instances["box_w"] - world.people["box_w"]).abs().max() < 0.02
