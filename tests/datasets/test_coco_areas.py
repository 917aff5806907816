"""Areas that boxes cannot have, and boxes that are shares, in COCO's files."""

from __future__ import annotations

import json

import pytest

from isolux.core.errors import TableError
from isolux.core.notes import Caution
from isolux.datasets.coco import load

N = 40


def written(tmp_path, area=lambda w, h: w * h, box=lambda x: x):
    people = [
        {"id": k, "image_id": 1, "category_id": 1, "bbox": [box(v) for v in (9 * k, 5, 40, 50 + k)]}
        for k in range(N)
    ]
    for row in people:
        row["area"] = area(40, 50 + row["id"])
    file = tmp_path / "gt.json"
    file.write_text(
        json.dumps(
            {
                "images": [{"id": 1, "file_name": "1.jpg", "width": 640, "height": 480}],
                "annotations": people,
                "categories": [{"id": 1, "name": "person"}],
            }
        )
    )
    return file


def cautions(file):
    return [note for note in load(file).notes if isinstance(note, Caution)]


@pytest.mark.parametrize(
    "area", [lambda _w, _h: 5.0, lambda w, h: 4 * w * h, lambda w, h: w * h / 640 / 480]
)
def test_areas_that_boxes_cannot_have_are_told_first(tmp_path, area):
    said = cautions(written(tmp_path, area))
    assert len(said) == 1
    assert said[0].startswith(f"{N} of {N} annotations have an area that their box cannot have")


@pytest.mark.parametrize(
    "area", [lambda w, h: w * h, lambda w, h: 0.1 * w * h, lambda w, h: (w + 1) * (h + 1)]
)
def test_areas_of_masks_and_of_inclusive_pixels_are_no_news(tmp_path, area):
    assert cautions(written(tmp_path, area)) == []


def test_a_few_odd_areas_are_no_news(tmp_path):
    assert cautions(written(tmp_path, lambda w, h: 5.0 if h == 60 else w * h)) == []


def test_boxes_that_are_shares_are_refused(tmp_path):
    with pytest.raises(TableError, match="shares of their pictures, and pixels are needed"):
        load(written(tmp_path, box=lambda v: v / 640))
