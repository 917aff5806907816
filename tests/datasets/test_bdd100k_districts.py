"""Districts and incomes of BDD100K's frames, from the videos' places and a user's own files."""

from __future__ import annotations

import json
from contextlib import suppress

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import FileError, IsoluxError, SpecError, TableError, UnknownNameError
from isolux.datasets.bdd100k import load
from isolux.datasets.bdd100k.districts import Districts, find_district_of_points
from tests.cli._run import isolux

# Two squares of one degree side by side; the first has a hole in its middle. A third district is
# two triangles far off.
WEST = [
    [[0, 0], [1, 0], [1, 1], [0, 1], [0, 0]],
    [[0.4, 0.4], [0.6, 0.4], [0.6, 0.6], [0.4, 0.6], [0.4, 0.4]],
]
EAST = [[[1, 0, 12.5], [2, 0, 12.5], [2, 1, 12.5], [1, 1, 12.5], [1, 0, 12.5]]]
FAR = [[[[10, 10], [11, 10], [10, 11], [10, 10]]], [[[20, 10], [21, 10], [20, 11], [20, 10]]]]
MAP = {
    "type": "FeatureCollection",
    "features": [
        {"properties": {"postalCode": "00501"}, "geometry": {"type": "Polygon",
                                                             "coordinates": WEST}},
        {"properties": {"postalCode": 10002}, "geometry": {"type": "Polygon",
                                                           "coordinates": EAST}},
        {"properties": {"postalCode": "10003"}, "geometry": {"type": "MultiPolygon",
                                                             "coordinates": FAR}},
        {"properties": {"postalCode": "10004"}, "geometry": {"type": "Point",
                                                             "coordinates": [0, 0]}},
        {"properties": None, "geometry": None},
    ],
}  # fmt: skip
INCOMES = "postalCode,median_income,area\n00501,21400,Q\n10002,-,M\n10003,250000,K\n"
PLACES = {
    "a": [{"latitude": 0.25, "longitude": 0.5, "speed": 1}, {"latitude": 9, "longitude": 9}],
    "b": [{"latitude": 0.5, "longitude": 0.5}],  # in the hole
    "c": [{"latitude": 0.5, "longitude": 1.5}],
    "d": [{"latitude": 10.25, "longitude": 20.25}],
    "e": [],
    "f": None,  # no file
    "g": [{"latitude": 999, "longitude": 0}],
}


@pytest.fixture
def files(tmp_path):
    """The user's files and the videos', as settings of the loader; labels of seven frames."""
    frames = [
        {"name": f"{name}.jpg", "labels": [{"category": "car", "box2d": {
            "x1": 1, "y1": 2, "x2": 30, "y2": 40}}]}
        for name in PLACES
    ]  # fmt: skip
    (tmp_path / "det_val.json").write_text(json.dumps(frames))
    info = tmp_path / "info"
    info.mkdir()
    for name, places in PLACES.items():
        if places is not None:
            text = json.dumps({"rideID": name, "locations": places, "gps": []})
            (info / f"{name}.json").write_text(text)
    (tmp_path / "nyc.geojson").write_text(json.dumps(MAP))
    (tmp_path / "incomes.csv").write_text(INCOMES)
    return {
        "path": tmp_path / "det_val.json", "info": info, "districts": tmp_path / "nyc.geojson",
        "incomes": tmp_path / "incomes.csv",
    }  # fmt: skip


def test_frames_have_the_income_of_their_district(files):
    dataset = load(**files)
    rows = {name: dataset.values_of(name) for name in ("district", "income")}
    assert rows["district"]["unit_kind"].unique().to_list() == ["image"]
    assert dict(rows["district"].select("unit_id", "value").iter_rows()) == {
        "a.jpg": "00501", "b.jpg": None, "c.jpg": "10002", "d.jpg": "10003", "e.jpg": None,
        "f.jpg": None, "g.jpg": None,
    }  # fmt: skip
    assert rows["income"]["number"].to_list() == [21_400, None, None, 250_000, None, None, None]
    assert set(map(str, files.values())) == set(dataset.inputs)
    assert "3 of 7 video(s) have no place, 1 are in none of the districts." in dataset.notes
    assert "1 video(s) are in a district without an income." in dataset.notes
    assert any(note.startswith("2 feature(s) of nyc.geojson") for note in dataset.notes)


def test_places_themselves_are_not_kept(files):
    dataset = load(**files)
    assert set(dataset.attributes["attribute"]) == {
        "category", "occluded", "truncated", "district", "income"
    }  # fmt: skip
    assert not {"latitude", "longitude"} & {*dataset.images.columns, *dataset.instances.columns}


def test_districts_alone_have_no_incomes(files):
    alone = load(files["path"], info=files["info"], districts=files["districts"])
    assert "income" not in set(alone.attributes["attribute"])


def test_every_frame_of_a_video_has_its_district(files):
    frames = [{"name": f"a-{i}.jpg", "videoName": "a"} for i in range(3)]
    files["path"].write_text(json.dumps(frames))
    assert load(**files).values_of("district")["value"].to_list() == ["00501"] * 3


@pytest.mark.parametrize(
    ("name", "text", "error", "message"),
    [
        ("districts", "{", FileError, "cut off"),
        ("districts", '{"features": 3}', TableError, "does not hold what it should"),
        ("districts", json.dumps(MAP).replace("[0, 0], [1, 0], ", ""), TableError, "outline"),
        ("districts", json.dumps(MAP).replace("[2, 0, 12.5]", "[2000, 0]"), TableError,
         "(?s)in degrees.*row 2.*WGS 84"),
        ("districts", json.dumps(MAP).replace("[2, 0, 12.5]", '["x", 0]'), TableError,
         "(?s)feature 2"),
        ("districts", json.dumps(MAP).replace("postalCode", "zip"), UnknownNameError,
         "no property named 'postalCode'"),
        ("incomes", INCOMES.replace("21400", "much"), TableError, "(?s)'much'.*row 1"),
        ("incomes", INCOMES.replace("21400", "-5"), TableError, "(?s)income cannot be used.*row 1"),
        ("incomes", INCOMES + "00501,7,Q\n", TableError,
         "(?s)a district has two incomes.*'00501'.*row 4"),
        ("incomes", INCOMES.replace("median_income", "income"), UnknownNameError,
         "no column named 'median_income'"),
        ("info", None, FileError, "no such folder of videos' places"),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_named(files, name, text, error, message):
    if text is None:
        files[name] = files[name] / "absent"
    else:
        files[name].write_text(text)
    with pytest.raises(error, match=message):
        load(**files)


def test_settings_that_need_one_another(files):
    for lacking in ("info", "districts"):
        some = {k: v for k, v in files.items() if k != lacking}
        with pytest.raises(SpecError, match="districts need places and outlines"):
            load(**some)


def test_a_damaged_place_is_named(files):
    (files["info"] / "a.json").write_text('{"locations": [{"latitude": "north"}]}')
    with pytest.raises(TableError, match=r"(?s)a\.json"):
        load(**files)


def test_from_the_command_line_to_groups_of_income(monkeypatch, capsys, files):
    args = [f"--data-option={k}={v}" for k, v in files.items() if k != "path"]
    ran = isolux(monkeypatch, capsys, "describe", f"bdd100k:{files['path']}", *args,
                 "--by", "income", "--bins", "income=edges:100000")  # fmt: skip
    assert ran.code == 0, ran.err
    assert "By median income of the district" in ran.out


def _winding(ring, x, y):
    """Count how often a ring winds around a point: another rule than counting crossings."""
    total = 0.0
    for (x0, y0), (x1, y1) in zip(ring, ring[1:] + ring[:1], strict=True):
        first, second = np.arctan2(y0 - y, x0 - x), np.arctan2(y1 - y, x1 - x)
        total += (second - first + np.pi) % (2 * np.pi) - np.pi
    return round(total / (2 * np.pi))


@given(
    corners=st.integers(3, 9),
    seed=st.integers(0, 2**31),
)
def test_a_place_is_inside_what_winds_around_it(corners, seed):
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0, 2 * np.pi, corners))
    radii = rng.uniform(0.2, 5, corners)
    ring = [(r * np.cos(a), r * np.sin(a)) for r, a in zip(radii, angles, strict=True)]
    points = np.array(ring)
    one = Districts(("in",), (np.hstack([points, np.roll(points, -1, axis=0)]),), (), {})
    x, y = rng.uniform(-5, 5, (2, 40))
    found = find_district_of_points(one, x, y).is_not_null().to_list()
    assert found == [_winding(ring, a, b) != 0 for a, b in zip(x, y, strict=True)]


def test_a_border_belongs_to_one_of_two_neighbours():
    squares = [
        np.array([[k, 0, k + 1, 0], [k + 1, 0, k + 1, 1], [k + 1, 1, k, 1], [k, 1, k, 0]], float)
        for k in range(3)
    ]
    three = Districts(("a", "b", "c"), tuple(squares), (), {})
    x = np.array([0.0, 1.0, 2.0, 3.0])
    assert find_district_of_points(three, x, np.full(4, 0.5)).to_list() == ["a", "b", "c", None]
    assert find_district_of_points(three, np.array([np.nan]), np.array([np.nan])).to_list() == [
        None
    ]


@given(
    coordinates=st.recursive(
        st.none() | st.floats() | st.text(max_size=2),
        lambda inner: st.lists(inner, max_size=4),
        max_leaves=12,
    ),
    kind=st.sampled_from(["Polygon", "MultiPolygon", "Point", "x"]),
)
def test_any_geometry_gives_a_dataset_or_our_own_error(tmp_path_factory, coordinates, kind):
    folder = tmp_path_factory.mktemp("fuzz")
    (folder / "det_val.json").write_text('[{"name": "a.jpg"}]')
    geometry = {"type": kind, "coordinates": coordinates}
    feature = {"properties": {"postalCode": 1}, "geometry": geometry}
    (folder / "m.json").write_text(json.dumps({"features": [feature]}))
    with suppress(IsoluxError):
        load(folder / "det_val.json", info=folder, districts=folder / "m.json")


def test_seventy_thousand_places_are_found_at_once():
    grid = [
        np.array([[x, y, x + 1, y], [x + 1, y, x + 1, y + 1], [x + 1, y + 1, x, y + 1],
                  [x, y + 1, x, y]], float)
        for x in range(15) for y in range(15)
    ]  # fmt: skip
    names = tuple(f"{x}/{y}" for x in range(15) for y in range(15))
    rng = np.random.default_rng(5)
    x, y = rng.uniform(0, 15, (2, 70_000))
    found = find_district_of_points(Districts(names, tuple(grid), (), {}), x, y)
    expected = pl.select(pl.format("{}/{}", pl.Series(x.astype(int)), pl.Series(y.astype(int))))
    assert found.to_list() == expected.to_series().to_list()
