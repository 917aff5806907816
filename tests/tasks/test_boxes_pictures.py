"""Pictures that the truth or the predictions lack: told before any number."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.notes import Caution
from isolux.tasks._boxes.image_coverage import caution_on_empty_images, keep_known_images

IMAGES = pl.DataFrame({"image_id": [f"{i:03}" for i in range(300)]}).with_row_index("image")


def predicted(first, last):
    """Two boxes in each picture from ``first`` on, before ``last``."""
    return pl.DataFrame({"image_id": [f"{i:03}" for i in range(first, last) for _ in range(2)]})


def test_pictures_of_the_dataset_alone_say_nothing():
    kept, notes = keep_known_images(predicted(0, 300), IMAGES)
    assert kept.height == 600
    assert notes == ()


@pytest.mark.parametrize(("beyond", "first"), [(2, False), (4, True), (200, True)])
def test_strange_pictures_are_a_caution_from_one_in_a_hundred(beyond, first):
    kept, notes = keep_known_images(predicted(0, 300 + beyond), IMAGES)
    assert kept.height == 600
    assert len(notes) == 1
    assert isinstance(notes[0], Caution) is first
    assert f"no truth for {beyond:,} of {300 + beyond:,} pictures" in notes[0]
    assert f"{2 * beyond:,} predictions in them" in notes[0]


def test_pictures_of_people_who_withdrew_are_not_missing_and_not_named():
    gone = frozenset({"300", "301", "302", "303"})
    assert keep_known_images(predicted(0, 304), IMAGES, gone)[1] == ()
    _, notes = keep_known_images(predicted(0, 308), IMAGES, gone)
    assert "no truth for 4 of 304 pictures that have predictions: 8 predictions" in notes[0]


def test_boxes_without_pixels_are_left_out_and_told_first():
    frame = predicted(0, 10).with_columns(box_x=pl.Series([1.0, None] * 10))
    kept, notes = keep_known_images(frame, IMAGES)
    assert kept.height == 10
    assert isinstance(notes[0], Caution)
    assert notes[0].startswith("10 of 20 predictions, in 10 pictures, have no box in pixels")
    masks = frame.with_columns(mask_counts=pl.lit("0"))  # a mask needs no box
    assert keep_known_images(masks, IMAGES)[1] == ()


def silent(*counts):
    """Pictures with so many predictions each."""
    drawn = np.repeat(np.arange(len(counts)), counts)
    return caution_on_empty_images(np.arange(len(counts)), drawn, "net")


def test_a_quarter_of_pictures_without_a_prediction_is_told_first():
    assert isinstance(silent(*[0] * 25, *[1] * 75)[0], Caution)
    assert not isinstance(silent(*[0] * 24, *[1] * 76)[0], Caution)


def test_a_hole_is_told_first_where_every_other_picture_has_many():
    said = silent(*[0] * 3, *[8] * 97)
    assert isinstance(said[0], Caution)
    assert said[0].startswith("3 of 100 pictures with people have no prediction of 'net' at all")
    falling = silent(*[0] * 10, *[1] * 12, *[2] * 14, *[5] * 64)
    assert not isinstance(falling[0], Caution)


def test_a_single_silent_picture_of_many_is_no_news():
    assert silent(*[0] * 1, *[3] * 199) == []
    assert silent(*[0] * 5, *[3] * 10) == []
