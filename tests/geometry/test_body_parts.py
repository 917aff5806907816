"""Part masks of people: read from either column, united into whole people."""

from __future__ import annotations

import csv
import json

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux.core.tables import MASK_PREDICTIONS
from isolux.datasets import load
from isolux.geometry.body_parts import list_part_names, read_part_polygons, unite_part_masks
from isolux.geometry.masks import masks_from_coco, masks_from_counts
from isolux.tasks.segmentation import score
from tests.tasks._faces import dataset, run_lengths
from tests.tasks._pictures import values


def segment(name, *corners, number=1):
    return {"class_name": name, "num": number, "polygon": [{"x": x, "y": y} for x, y in corners]}


def square(x0, y0, x1, y1):
    return (x0, y0), (x1, y0), (x1, y1), (x0, y1)


# A picture of 6 × 8: hair over face skin, a bag apart; the second person has a bag alone.
SEGMENTS = [
    repr([
        segment("0. Face skin", *square(1, 1, 4, 4)),
        segment("6. Head hair", *square(1, 0, 4, 2)),
        segment("25. Bag", *square(6, 4, 8, 6)),
        segment("25. Bag", *square(6, 2, 8, 3), number=2),
    ]),
    repr([segment("25. Bag", *square(0, 0, 2, 2))]),
    None,
]  # fmt: skip


def polygons(size=(6, 8), cells=SEGMENTS):
    ids = [f"p{i}" for i in range(len(cells))]
    return dataset(ids, {"segments": pl.Series(cells, dtype=pl.String)}, size=size)


def areas(people):
    rows = people.instances
    found = []
    for counts, h, w in rows.select("mask_counts", "mask_height", "mask_width").iter_rows():
        none = counts is None
        mask = None if none else masks_from_counts([counts], np.array([h]), np.array([w]))
        found.append(None if mask is None else int(mask.area_px[0]))
    return found


def test_a_whole_person_is_all_parts_by_hand():
    """Face 3 × 3, hair one row above it and one upon it: 12; bags 2 × 2 and 2 × 1."""
    assert areas(unite_part_masks(polygons())) == [12 + 4 + 2, 4, None]


def test_only_the_parts_named():
    assert areas(unite_part_masks(polygons(), ["Face skin", "Head hair"])) == [12, None, None]
    assert areas(unite_part_masks(polygons(), "Bag")) == [6, 4, None]


def test_names_without_filling_anything():
    assert list_part_names(polygons().instances["segments"]) == ["Bag", "Face skin", "Head hair"]
    lists = pl.Series([run_lengths([[1, 13]]), None])
    assert list_part_names(lists) == ["hair", "skin"]
    assert list_part_names(pl.Series([None], dtype=pl.String)) == []


@pytest.mark.parametrize("seed", range(5))
def test_run_lengths_are_united_as_pixels_are(seed):
    rng = np.random.default_rng(seed)
    pictures = [rng.integers(0, 5, (7, 9)) * (rng.random((7, 9)) < 0.4) for _ in range(6)]
    pictures[0][0, 0] = 1
    cells = [run_lengths(p) if p.any() and i != 3 else None for i, p in enumerate(pictures)]
    people = dataset([f"p{i}" for i in range(6)], {"part_masks": cells})
    expected = [
        None if c is None else int((p > 0).sum()) for p, c in zip(pictures, cells, strict=True)
    ]
    assert areas(unite_part_masks(people)) == expected
    skin = [None if c is None or not (p == 1).any() else int((p == 1).sum())
            for p, c in zip(pictures, cells, strict=True)]  # fmt: skip
    assert areas(unite_part_masks(people, ["skin"])) == skin


def test_python_and_json_spell_one_cell():
    held = [segment("0. Face skin", *square(1, 1, 4, 4))]
    odd = repr([{**held[0], "note": "it's"}])  # a quote inside: no JSON, still a literal
    masks = [read_part_polygons(c, 6, 8, None) for c in (repr(held), json.dumps(held), odd)]
    assert [m.names for m in masks] == [("Face skin",)] * 3
    assert [int(m.masks.area_px[0]) for m in masks] == [9, 9, 9]


def test_polygons_without_an_area_are_no_part():
    cell = repr([segment("11. Nose", (1, 1), (2, 2)), segment("25. Bag", *square(0, 0, 2, 2))])
    assert read_part_polygons(cell, 6, 8, None).names == ("Bag",)


def test_whole_people_are_found_by_masks():
    """The prediction is person 0 without the smaller bag: 16 of 18 pixels, .889."""
    drawn = [[1, 0, 4, 0, 4, 4, 1, 4], [6, 4, 8, 4, 8, 6, 6, 6]]
    mask = masks_from_coco([drawn], np.array([6]), np.array([8]))
    assert mask.area_px.tolist() == [16]
    people = polygons()
    counts = unite_part_masks(dataset(["x"], {"segments": [repr([
        segment("0. A", *square(1, 0, 4, 4)), segment("1. B", *square(6, 4, 8, 6))])]},
        size=(6, 8))).instances["mask_counts"][0]  # fmt: skip
    found = pl.DataFrame(
        {"model": ["m"], "image_id": ["p0"], "label": [None], "score": [0.9],
         "mask_counts": [counts], "mask_height": [6], "mask_width": [8]},
        schema={c.name: c.dtype for c in MASK_PREDICTIONS.columns if not c.optional},
    )  # fmt: skip
    scores = score(people, found, whole_from="parts")
    assert values(scores, "average_recall") == {"p0": 0.8, "p1": 0.0, "p2": "no mask"}
    assert "A person's mask is the union of their parts: all." in scores.notes
    # Without bags: 12 of the 16 drawn, .75.
    skin = score(people, found, whole_from="parts", parts=["Face skin", "Head hair"])
    assert values(skin, "average_recall") == {"p0": 0.6, "p1": "no mask", "p2": "no mask"}


def test_whole_people_that_cannot_be_made():
    with pytest.raises(SpecError, match="nobody in the dataset has masks of parts") as caught:
        unite_part_masks(dataset(["a"], {}))
    assert "segments=True" in str(caught.value)
    with pytest.raises(UnknownNameError, match="no part named 'Bags'"):
        unite_part_masks(polygons(), ["Bags"])
    with pytest.raises(TableError, match="how large their image is, is not known"):
        unite_part_masks(polygons(size=None))
    two = [[run_lengths([[1, 0]])[0], run_lengths([[1], [0]])[0]]]
    with pytest.raises(TableError, match="parts of one person are in images of different sizes"):
        unite_part_masks(dataset(["a"], {"part_masks": two}))


def test_settings_of_segmentation_that_contradict_each_other():
    none = pl.DataFrame(schema=MASK_PREDICTIONS.schema)
    with pytest.raises(SpecError, match="parts are named, but people's own masks count"):
        score(polygons(), none, parts=["Bag"])


@pytest.mark.parametrize(
    "cell",
    [
        "[{'class_name': '0. Face skin'",
        "__import__('os').getcwd()",
        "[{'class_name': '0. Face skin', 'polygon': [{'x': 'left', 'y': 0}]}]",
        "[{'polygon': []}]",
        "[" * 100_000,
    ],
)
def test_cells_that_hold_no_polygons(cell):
    with pytest.raises(TableError, match="part polygons cannot be read") as caught:
        unite_part_masks(polygons(cells=[SEGMENTS[0], cell]))
    assert "row 2, column 'segments'" in str(caught.value)


@pytest.mark.parametrize("far", [1e300, -2e6])
def test_points_leagues_away_are_refused_not_walked_to(far):
    with pytest.raises(TableError, match="far outside any image"):
        read_part_polygons(repr([segment("0. A", (0, 0), (far, 0), (1, 1))]), 6, 8, None)


def test_fhibes_own_table_becomes_whole_people(tmp_path):
    """From the CSV: the text of its cells is what ``segments`` holds."""
    names = (
        "image_id filepath json_path subject_id is_primary image_height image_width age segments"
    )
    rows = [
        [f"i{k}", f"data/i{k}.png", f"data/i{k}.json", "s1", True, 6, 8, 30, cell or ""]
        for k, cell in enumerate(SEGMENTS)
    ]
    with (tmp_path / "fhibe_downsampled.csv").open("w", newline="") as file:
        csv.writer(file).writerows([names.split(), *rows])
    people = load("fhibe", tmp_path, segments=True)
    assert areas(unite_part_masks(people)) == [18, 4, None]
    with pytest.raises(SpecError, match="nobody in the dataset has masks of parts"):
        unite_part_masks(load("fhibe", tmp_path))
