"""Pictures for the local viewer: only where they may be shown, and blurred unless asked."""

from __future__ import annotations

import io
import json
import shutil

import numpy as np
import polars as pl
import pytest
from PIL import Image

import isolux
from isolux.api.view.person_images import (
    BLUR_PERSON_PX,
    MAX_SIDE_PX,
    THUMBNAIL_PX,
    PredictedBoxes,
    RunImages,
    find_person_images,
)
from isolux.core.errors import FileError, SpecError

NOISE = np.random.default_rng(0).integers(0, 256, (400, 300, 3), dtype=np.uint8)
SIDES = {"box_x": 30.0, "box_y": 40.0, "box_w": 100.0, "box_h": 200.0}
BARE = {
    **dict.fromkeys(("mask_counts", "mask_height", "mask_width")),
    **dict.fromkeys(("keypoints_x", "keypoints_y", "keypoints_v")),
}


def held(tmp_path, blurred, **changed):
    Image.fromarray(NOISE).save(tmp_path / "a.png")
    row = {"unit_id": "a", "uri": "a.png", **SIDES, **BARE, **changed}
    return RunImages(tmp_path, [pl.DataFrame([row])], blurred=blurred)


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB")).astype(float)


def test_a_picture_is_shown_as_it_is_only_when_asked(tmp_path):
    clear = pixels(held(tmp_path, blurred=False).picture(0, "a"))
    blurred = pixels(held(tmp_path, blurred=True).picture(0, "a"))
    assert clear.shape == blurred.shape == NOISE.shape
    assert clear.std() > 30
    # The person keeps BLUR_PERSON_PX points: noise of pixels is averaged away.
    assert blurred.std() < 6
    assert held(tmp_path, blurred=True).around(0, "a")["blurred"] is True


def test_no_detail_smaller_than_a_point_is_left(tmp_path):
    stripes = np.repeat(np.tile([0, 255], 150)[None, :, None], 400, axis=0)
    pictures = held(tmp_path, blurred=True)
    Image.fromarray(np.repeat(stripes, 3, axis=2).astype(np.uint8)).save(tmp_path / "b.png")
    pictures = RunImages(tmp_path, [pictures.people[0].with_columns(uri=pl.lit("b.png"))])
    assert np.ptp(pixels(pictures.picture(0, "a"))[50:200, 50:100]) < 30
    assert BLUR_PERSON_PX < 16


def test_boxes_points_and_masks_are_scaled_with_a_large_picture(tmp_path):
    from pycocotools import mask as coco

    drawn = np.zeros((3200, 2400), np.uint8)
    drawn[:1600] = 1
    counts = coco.encode(np.asfortranarray(drawn))["counts"].decode()
    Image.fromarray(np.zeros((3200, 2400, 3), np.uint8)).save(tmp_path / "large.png")
    row = {"unit_id": "a", "uri": "large.png", **SIDES, "mask_counts": counts,
           "mask_height": 3200, "mask_width": 2400, "keypoints_x": [10.0, 20.0, None],
           "keypoints_y": [30.0, 40.0, None], "keypoints_v": [2.0, 0.0, 0.0]}  # fmt: skip
    pictures = RunImages(tmp_path, [pl.DataFrame([row])], blurred=False)
    around = pictures.around(0, "a")
    assert (around["width"], around["height"]) == (1200, MAX_SIDE_PX)
    assert around["box"] == [15, 20, 50, 100]
    assert around["points"] == [[5, 15]]  # the others are not labelled
    mask = np.asarray(Image.open(io.BytesIO(pictures.mask(0, "a"))))
    assert mask.shape == (1600, 1200, 4)
    assert (mask[:799, :, 3] > 0).all()
    assert (mask[801:, :, 3] == 0).all()


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"uri": "../a.png"}, "leads out of its folder"),
        ({"uri": "/etc/passwd"}, "leads out of its folder"),
        ({"uri": "none.png"}, "no such picture"),
        ({"uri": None}, "names no picture"),
    ],
)
def test_a_path_out_of_the_folder_and_a_missing_picture_are_told(tmp_path, changed, said):
    (tmp_path / "in").mkdir()
    pictures = held(tmp_path / "in", blurred=True, **changed)
    assert said in pictures.around(0, "a")["why"]
    with pytest.raises(FileError, match=said):
        pictures.picture(0, "a")


def test_who_is_not_there_and_who_has_no_mask(tmp_path):
    pictures = held(tmp_path, blurred=True)
    for run, unit in ((0, "b"), (1, "a")):
        assert "not in the dataset as it is now" in pictures.around(run, unit)["why"]
    with pytest.raises(FileError, match="no mask"):
        pictures.mask(0, "a")
    assert pictures.around(0, "a")["mask"] is False


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A COCO file of 24 people with a box each, and a detector that finds eight."""
    folder = tmp_path_factory.mktemp("files")
    (folder / "images").mkdir()
    box = [20, 10, 20, 30]
    images = [{"id": i, "file_name": f"{i}.png", "width": 90, "height": 60} for i in range(24)]
    people = [{"id": i, "image_id": i, "category_id": 1, "bbox": box, "area": 600, "iscrowd": 0}
              for i in range(24)]  # fmt: skip
    for image in images:
        Image.fromarray(np.full((60, 90, 3), 9, np.uint8)).save(
            folder / "images" / image["file_name"]
        )
    truth = {"images": images, "annotations": people, "categories": [{"id": 1, "name": "person"}]}
    (folder / "truth.json").write_text(json.dumps(truth))
    found = [{"image_id": i, "category_id": 1, "bbox": box, "score": 0.9} for i in range(8)]
    (folder / "found.json").write_text(json.dumps(found))
    return folder


def test_of_a_run_pictures_are_shown_where_somebody_states_that_they_may(files):
    run = isolux.audit(
        f"coco:{files / 'truth.json'}", task="detection", predictions=files / "found.json",
        by=["category"], min_units=5, min_clusters=2, replicates=100,
    ).run  # fmt: skip
    with pytest.raises(SpecError, match="--confirm-image-rights"):
        find_person_images([run], files / "images")
    with pytest.raises(FileError, match="no such folder"):
        find_person_images([run], files / "none", may_show=True)
    found = find_person_images([run], files / "images", may_show=True)
    unit = run.scores["unit_id"][0]
    around = found.around(0, unit)
    assert (around["width"], around["height"], around["box"]) == (90, 60, [20, 10, 20, 30])
    assert found.blurred
    (files / "gone.txt").write_text(unit)
    left = find_person_images([run], files / "images", may_show=True, withdrawn=files / "gone.txt")
    assert "not in the dataset" in left.around(0, unit)["why"]


def test_synthetic_pictures_are_shown_whatever_the_licence_of_their_layout(files, tmp_path):
    run = isolux.audit(
        f"coco:{files / 'truth.json'}", task="detection", predictions=files / "found.json",
        by=["category"], min_units=5, min_clusters=2, replicates=100,
    ).run  # fmt: skip
    shutil.copytree(files / "images", tmp_path / "world" / "images")
    with pytest.raises(SpecError, match="licence does not say"):
        find_person_images([run], tmp_path / "world" / "images")
    (tmp_path / "world" / "SYNTHETIC.txt").write_text("A program painted them.")
    found = find_person_images([run], tmp_path / "world" / "images")
    assert found.around(0, run.scores["unit_id"][0])["width"] == 90


def test_a_thumbnail_is_the_person_with_a_margin_and_blurred_as_the_picture_is(tmp_path):
    """The box is 100 by 200 at (30, 40); 50 points more on each side: x 0 to 180, y 0 to 290."""
    small = pixels(held(tmp_path, blurred=False).thumbnail(0, "a"))
    assert small.shape[:2] == (THUMBNAIL_PX, round(180 / 290 * THUMBNAIL_PX))
    assert small.std() > 4 * pixels(held(tmp_path, blurred=True).thumbnail(0, "a")).std()
    whole = dict.fromkeys(("box_x", "box_y", "box_w", "box_h"))
    assert pixels(held(tmp_path, blurred=True, **whole).thumbnail(0, "a")).shape[:2] == (192, 144)
    outside = held(tmp_path, blurred=True, box_x=900.0)
    assert pixels(outside.thumbnail(0, "a")).shape[:2] == (192, 144)


def detected(files, name="found.json"):
    return isolux.audit(
        f"coco:{files / 'truth.json'}", task="detection", predictions=files / name,
        by=["category"], min_units=5, min_clusters=2, replicates=100,
    ).run  # fmt: skip


def test_the_boxes_that_the_model_drew_are_read_again(files):
    pictures = find_person_images([detected(files)], files / "images", may_show=True)
    drawn = pictures.around(0, "0")["drawn"]
    assert drawn["boxes"] == [
        {"model": "found", "label": "1", "score": 0.9, "box": [20, 10, 20, 30]}
    ]
    assert (drawn["more"], drawn["why"]) == (0, "")
    missed = pictures.around(0, "20")["drawn"]
    assert (missed["boxes"], missed["why"]) == ([], "")


def test_where_the_file_of_predictions_is_gone_the_page_says_why(files):
    again = files / "again.json"
    again.write_bytes((files / "found.json").read_bytes())
    run = detected(files, "again.json")
    again.unlink()
    around = find_person_images([run], files / "images", may_show=True).around(0, "0")
    assert around["box"] == [20, 10, 20, 30]
    assert around["drawn"]["boxes"] == []
    assert "cannot be read" in around["drawn"]["why"]
    assert "again.json" in around["drawn"]["why"]


def test_boxes_are_scaled_with_the_picture_and_the_surest_come_first():
    rows = [{"model": "m", "image_id": "i", "label": None, "score": k / 100, "box_x": 10.0,
             "box_y": 20.0, "box_w": 30.0, "box_h": float(k)} for k in range(25)]  # fmt: skip
    rows += [rows[0] | {"image_id": "other"}, rows[0] | {"box_w": None, "score": 1.0}]
    told = PredictedBoxes(lambda: pl.DataFrame(rows)).list_boxes("i", 0.5)
    assert len(told["boxes"]) == 20
    assert told["more"] == 5
    assert told["boxes"][0] == {"model": "m", "label": None, "score": 0.24, "box": [5, 10, 15, 12]}
    assert (
        PredictedBoxes(lambda: pl.DataFrame({"model": ["m"]})).list_boxes("i", 1.0)["boxes"] == []
    )
