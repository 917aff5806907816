"""The layout of rows is learnt and followed, and a row that differs is read all the same."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest
from polars.testing import assert_frame_equal

from isolux.predictions import _coco_scan
from isolux.predictions._coco_layout import LAYOUT, LITERALS
from isolux.predictions._coco_layout_kernels import follow, learn
from isolux.predictions._window import Window

ROW = {"image_id": 1, "category_id": 2, "bbox": [4, 5.25, 20, 30.5], "score": 0.5}


def learnt(text: str) -> int:
    """How many numbers of a row the layout has; 0: nothing was learnt."""
    data = np.frombuffer(text.encode() + b"\0" * 16, np.uint8)
    layout = np.zeros(LAYOUT, np.int64)
    learn(data, 0, len(text), np.zeros(LITERALS, np.uint8), layout)
    return int(layout[0])


def scanned(text: str, *, general: bool = False, block: int = 1 << 12):
    return _coco_scan.scan(Window(io.BytesIO(text.encode()), "x.json", block), general=general)


def both(text: str):
    fast = scanned(text)
    assert_frame_equal(fast, scanned(text, general=True))
    return fast


@pytest.mark.parametrize(
    ("extra", "numbers"),
    [
        ({}, 7),
        ({"note": "the model's 1st"}, 7),
        ({"area": 5.5}, 0),  # a number that is none of COCO's
        ({"blur": 1}, 0),  # as long as bbox, and begins alike
        ({"iscrowd": None, "kept": True}, 7),
        ({"n" * 300: None}, 0),
    ],
)
def test_what_is_learnt(extra, numbers):
    assert learnt(json.dumps(ROW | extra) + ", ") == numbers
    assert both(json.dumps([ROW | extra] * 40)).height == 40


@pytest.mark.parametrize(
    "other",
    [
        ROW | {"bbox": [-4, 5e-3, 1e3, 0]},
        ROW | {"bbox": [123456789012345678, 0.1234567890123456789, 1, 1]},
        ROW | {"image_id": 12345678901234},
        ROW | {"score": "0.25"},
        ROW | {"image_id": "a.jpg"},
        ROW | {"area": 3},
        dict(reversed(ROW.items())),
    ],
)
def test_a_row_that_differs(other):
    rows = [ROW] * 20 + [other] + [ROW] * 20
    found = both(json.dumps(rows))
    assert found["score"].to_list() == [float(row["score"]) for row in rows]
    assert found["box_x"].to_list() == [float(row["bbox"][0]) for row in rows]
    assert found["image_id"].to_list() == [str(row["image_id"]) for row in rows]


def test_a_file_of_many_layouts_is_read():
    texts = [json.dumps(ROW | {"score": k / 64}).replace(" ", " " * (k % 23)) for k in range(64)]
    assert both(f"[{','.join(texts)}]")["score"].to_list() == [k / 64 for k in range(64)]


def test_a_layout_is_followed_to_the_very_end_of_the_data_and_not_beyond():
    text = json.dumps(ROW) + ", "
    data = np.frombuffer((text * 2)[:-9].encode() + b"\0" * 16, np.uint8)
    literals, layout = np.zeros(LITERALS, np.uint8), np.zeros(LAYOUT, np.int64)
    learn(data, 0, len(text), literals, layout)
    wholes, numbers = np.zeros(8, np.int64), np.zeros(10)
    assert follow(data, 0, 0, wholes, numbers, literals, layout) == len(text)
    assert numbers[::2].tolist() == [4.0, 5.25, 20.0, 30.5, 0.5]
    assert wholes[:4:2].tolist() == [1, 2]
    assert follow(data, len(text), 1, wholes, numbers, literals, layout) == -1
