"""Objects and people that are there twice, in each format that holds them."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import isolux
from isolux.checks.repeats import check
from tests.checks._dataset import dataset

_BOX = (10.0, 20.0, 30.0, 60.0)
EXACT, NEAR = "an object is annotated twice", "an object is probably annotated twice"


def _boxes(*rows: tuple[str, tuple[float, ...]], **columns: list) -> dict:
    sides = zip(*(box for _, box in rows), strict=True)
    return {
        "instance_id": [f"p{i}" for i in range(len(rows))],
        "image_id": [image for image, _ in rows],
        **dict(zip(("box_x", "box_y", "box_w", "box_h"), map(list, sides), strict=True)),
        **columns,
    }


def _problems(data) -> list[tuple[str, str, str]]:
    return check(data).select("problem", "unit_id", "found").rows()


@pytest.mark.parametrize(
    ("box", "expected"),
    [
        (_BOX, (EXACT, "the box of 'p0'")),
        # Moved by a pixel: 29 × 59 of 2 × 1800 - 29 × 59 square pixels, an overlap of .91.
        ((11.0, 21.0, 30.0, 60.0), (NEAR, "nearly the box of 'p0'")),
        # Moved by two: 28 × 58 of 1976, .82; by three: .74, which two people may have.
        ((12.0, 22.0, 30.0, 60.0), (NEAR, "nearly the box of 'p0'")),
        ((13.0, 23.0, 30.0, 60.0), None),
    ],
)
def test_a_box_that_another_object_has(box, expected):
    found = _problems(dataset(_boxes(("1", _BOX), ("1", box), ("2", box))))
    assert found == ([] if expected is None else [(expected[0], "p1", expected[1])])


def test_a_small_box_moved_by_a_pixel_is_judged_by_its_edges():
    """5 × 5 of 47 square pixels: an overlap of .53."""
    found = _problems(dataset(_boxes(("1", (4.0, 4.0, 6.0, 6.0)), ("1", (5.0, 5.0, 6.0, 6.0)))))
    assert found == [(NEAR, "p1", "nearly the box of 'p0'")]


@pytest.mark.parametrize(
    "columns",
    [
        {"classes": [["nurse"], ["doctor"]]},
        {"is_crowd": [False, True]},
        {"ignore": [True, False]},
    ],
)
def test_other_classes_crowds_and_what_is_ignored_are_no_repeats(columns):
    assert not _problems(dataset(_boxes(("1", _BOX), ("1", _BOX), **columns)))


def test_boxes_without_area_are_no_repeats():
    nothing = (0.0, 0.0, 0.0, 0.0)
    assert not _problems(dataset(_boxes(("1", nothing), ("1", nothing))))


def test_every_further_one_is_a_repeat_of_the_first():
    rows = _problems(dataset(_boxes(*[("1", _BOX)] * 3, ("1", (11.0, 20.0, 30.0, 60.0)))))
    assert [(problem, unit) for problem, unit, _ in rows] == [
        (EXACT, "p1"),
        (EXACT, "p2"),
        (NEAR, "p3"),
    ]


def _write_coco(folder: Path) -> str:
    rows = [{"id": k, "image_id": 7, "category_id": 1, "bbox": _BOX} for k in (1, 2)]
    images = [{"id": 7, "file_name": "7.jpg", "width": 64, "height": 96}]
    file = {"images": images, "annotations": rows, "categories": [{"id": 1, "name": "person"}]}
    (folder / "a.json").write_text(json.dumps(file))
    return "a.json"


def _write_yolo(folder: Path) -> str:
    (folder / "7.txt").write_text("0 0.4 0.5 0.5 0.25\n0 0.4 0.5 0.5 0.25\n")
    return "7.txt"


def _write_voc(folder: Path) -> str:
    box = "<bndbox><xmin>4</xmin><ymin>5</ymin><xmax>24</xmax><ymax>35</ymax></bndbox>"
    item = f"<object><name>dog</name>{box}</object>"
    (folder / "7.xml").write_text(f"<annotation>{item}{item}</annotation>")
    return "7.xml"


@pytest.mark.parametrize("write", [_write_coco, _write_yolo, _write_voc])
def test_in_each_format_of_boxes(tmp_path, write):
    name = write.__name__.removeprefix("_write_")
    (tmp_path / "sizes.csv").write_text("image_id,width,height\n7,64,96\n")
    options = {"sizes": tmp_path / "sizes.csv"} if name == "yolo" else {}
    found = _problems(isolux.load(name, tmp_path / write(tmp_path), **options))
    assert [problem for problem, *_ in found] == [EXACT]


def _rows(files: list[str], **columns: list) -> isolux.Dataset:
    ids = [f"r{i}" for i in range(len(files))]
    return isolux.load("table", pl.DataFrame({"id": ids, "file": files, **columns}), id="id")


def test_a_subject_with_several_rows_of_one_file_is_there_several_times():
    people = [*range(40), 3, 3, 7]
    data = _rows(
        [f"{p}.jpg" for p in people],
        subject=[f"s{p}" for p in people],
        race=["ABC"[p % 3] for p in people],
    )
    assert _problems(data) == [
        ("a row repeats another one", row, f"the image and the values of '{first}'")
        for row, first in (("r40", "r3"), ("r41", "r3"), ("r42", "r7"))
    ]


@pytest.mark.parametrize(
    "columns",
    [
        # Two people in each image, a third of them alike: rows of different images are, too.
        {"race": ["ABC"[k % 3] for k in range(60)], "sex": ["fm"[k // 2 % 2] for k in range(60)]},
        # Two annotators, captions or questions of one image.
        {"race": ["ABC"[k // 2 % 3] for k in range(60)], "worker": ["w1", "w2"] * 30},
    ],
)
def test_different_rows_of_one_image_are_no_repeats(columns):
    assert not _problems(_rows([f"{k // 2}.jpg" for k in range(60)], **columns))


def test_people_of_one_image_who_are_alike_by_chance_are_no_repeats():
    """Of each image's three, two are alike in two of three images: so are many across images."""
    races = [race for k in range(30) for race in ("AAB", "ABC", "BBC")[k % 3]]
    assert not _problems(_rows([f"{k // 3}.jpg" for k in range(90)], race=races))
