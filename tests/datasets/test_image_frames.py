"""Photos that EXIF turns by a quarter, annotated with the size of the stored file.

Each stored photo is 100 × 60, and shown as 60 × 100; a red square of 20 pixels lies at one place of
the photo as shown, and the rest is grey.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

import isolux
from isolux.checks import image_sizes, inspect_images, locate_images
from isolux.core.notes import Caution

N = 12
_TURN_RIGHT = 6  # EXIF: turn the stored photo by 90° clockwise to show it
LOW = [(3 * k, 6 * k) for k in range(N)]  # left and upper side of the square, 0 to 66 from above
HIGH = [(3 * k, 3 * k) for k in range(N)]  # its lower side at 53 at most: it fits both frames


def _write(folder: Path, places: list[tuple[int, int]], *, is_swapped: bool = True) -> str:
    exif = Image.Exif()
    exif[0x0112] = _TURN_RIGHT
    (folder / "photos").mkdir()
    for k, (x, y) in enumerate(places):
        shown = np.full((100, 60, 3), 128, np.uint8)
        shown[y : y + 20, x : x + 20] = (255, 0, 0)
        stored = Image.fromarray(np.ascontiguousarray(np.rot90(shown)))
        stored.save(folder / "photos" / f"{k}.png", exif=exif)
    width, height = (100, 60) if is_swapped else (60, 100)
    file = {
        "images": [
            {"id": k, "file_name": f"{k}.png", "width": width, "height": height} for k in range(N)
        ],
        "annotations": [
            {"id": k, "image_id": k, "category_id": 1, "bbox": [x, y, 20, 20]}
            for k, (x, y) in enumerate(places)
        ],
        "categories": [{"id": 1, "name": "person"}],
    }
    (folder / "people.json").write_text(json.dumps(file))
    return str(folder / "people.json")


def _is_red(pictures: list[np.ndarray]) -> list[str]:
    return ["red" if one[..., 0].mean() > 250 else "grey" for one in pictures]


def _cautions(notes) -> list[str]:
    return [note for note in notes if isinstance(note, Caution)]


@pytest.mark.parametrize("is_swapped", [True, False])
def test_boxes_of_the_photo_as_shown_are_cut_out_of_it(tmp_path, is_swapped):
    data = isolux.load(
        "coco", _write(tmp_path, LOW, is_swapped=is_swapped), images=tmp_path / "photos"
    )
    assert set(data.images.select("width", "height").rows()) == {(60, 100)}
    assert not any("reach beyond" in note for note in data.notes)
    run = isolux.predict(data, _is_red, input_unit="person")
    assert run.predictions["label"].to_list() == ["red"] * N
    assert not _cautions(run.notes)
    # Of 12 boxes, those from y = 54 on have their centre below a frame that is 60 high.
    said = "12 of 12 images are turned by EXIF; the dataset has their size before that, and boxes"
    assert any(note.startswith(said) and "(3 lie" in note for note in run.notes) is is_swapped


def test_without_the_pictures_it_is_a_caution(tmp_path):
    file = _write(tmp_path, LOW)
    (tmp_path / "photos").rename(tmp_path / "elsewhere")
    (caution,) = _cautions(isolux.load("coco", file).notes)
    assert caution.startswith("3 of 12 boxes lie outside their images, and inside them if width")


def test_where_boxes_fit_both_ways_predict_says_which_was_taken(tmp_path):
    data = isolux.load("coco", _write(tmp_path, HIGH), images=tmp_path / "photos")
    run = isolux.predict(data, _is_red, input_unit="person")
    (caution,) = _cautions(run.notes)
    assert caution.startswith("12 of 12 images are read as they are stored, not turned by")
    assert run.record["unturned"] == caution


def test_boxes_of_the_stored_photo_are_left_as_they_are(tmp_path):
    """As COCO's: the size and the boxes are of the stored photo, turned a quarter to the left."""
    file = Path(_write(tmp_path, LOW))
    content = json.loads(file.read_text())
    for row in content["annotations"]:
        x, y, w, h = row["bbox"]
        row["bbox"] = [y, 60 - x - w, h, w]
    file.write_text(json.dumps(content))
    data = isolux.load("coco", file, images=tmp_path / "photos")
    assert set(data.images.select("width", "height").rows()) == {(100, 60)}
    run = isolux.predict(data, _is_red, input_unit="person")
    assert run.predictions["label"].to_list() == ["red"] * N
    assert not _cautions(run.notes)


def test_a_careless_box_beyond_the_edge_turns_nothing(tmp_path):
    data = isolux.load("coco", _write(tmp_path, [*HIGH[:-1], (30, 48)]), images=tmp_path / "photos")
    assert set(data.images.select("width", "height").rows()) == {(100, 60)}


@pytest.mark.parametrize(
    ("places", "problem"),
    [
        (LOW, "the annotated size is that before EXIF turns the picture, boxes are not"),
        (HIGH, "the annotated size is that before EXIF turns the picture"),
    ],
)
def test_the_check_of_sizes_says_which_frame_the_boxes_fit(tmp_path, places, problem):
    data = isolux.load("coco", _write(tmp_path, places))
    found = image_sizes.check(
        data, pictures=inspect_images(locate_images(data, tmp_path / "photos"))
    )
    assert found.select(pl.col("problem").unique(), pl.len()).rows() == [(problem, N)]
