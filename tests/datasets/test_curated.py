"""A published dataset is read back: numbers are numbers, and cells that are none are named."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

import isolux
from isolux.core.errors import TableError
from isolux.datasets.curated import load

HEAD = "instance_id,image_id,file,width,height,box_x,box_y,box_w,box_h,age_group\n"


def release(folder: Path, rows: str) -> Path:
    (folder / "dataset.json").write_text('{"format": "isolux curated dataset", "training": false}')
    (folder / "people.csv").write_text(HEAD + rows)
    return folder


def test_sizes_are_numbers_and_the_dataset_can_be_described(tmp_path: Path) -> None:
    folder = release(tmp_path, "a,p,p.jpg,640,480,0,0,320,240,old\nb,q,q.jpg,640,480,,,,,young\n")
    images = load(folder).images
    assert images.select("width", "height").rows() == [(640, 480), (640, 480)]
    assert images.schema["width"] == pl.Int64
    found = isolux.describe(f"curated:{folder}", by=["age_group"])
    share = found.tables["Box as a share of its image"].filter(pl.col("people") > 0)
    # 320 × 240 of 640 × 480 is a quarter; the other person has no box.
    assert share.select("part of the image", "people").rows() == [("20 to 30 %", 1)]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("a,p,p.jpg,640,480,left,0,9,9,old\n", "box_x"),
        ("a,p,p.jpg,wide,480,0,0,9,9,old\n", "width"),
    ],
)
def test_a_cell_that_is_no_number_is_named(tmp_path: Path, row: str, told: str) -> None:
    with pytest.raises(TableError, match=f"(?s)not numbers.*row 1, column '{told}'"):
        load(release(tmp_path, row))


@pytest.mark.parametrize("width", ["inf", "9.3e18", "640.5", "0", "-3", "nan"])
def test_a_width_that_no_photo_has_is_named(tmp_path: Path, width: str) -> None:
    first = "a,p,p.jpg,640,480,0,0,9,9,old\nb,p,p.jpg,640,480,,,,,old\n"
    with pytest.raises(TableError, match=r"(?s)width is not a number of pixels.*row 3, col"):
        load(release(tmp_path, f"{first}c,q,q.jpg,{width},480,0,0,9,9,old\n"))


def test_a_photo_of_unknown_size_stays_one(tmp_path: Path) -> None:
    images = load(release(tmp_path, "a,p,p.jpg,,480,0,0,9,9,old\nb,q,q.jpg,9,7,,,,,old\n")).images
    assert images.select("width", "height").rows() == [(None, 480), (9, 7)]
