"""Pictures for training: opened once, kept while there is room, named when they cannot be read."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from isolux.training import training_images as room
from isolux.training.training_images import DecodedTrainingImage, TrainingImages


def grey(row):
    pixels = np.full((4, 4, 3), row, dtype=np.uint8)
    return DecodedTrainingImage(pixels, hashlib.sha256(pixels.tobytes()).hexdigest())


def counted(opened, broken=()):
    def look(row):
        opened.append(row)
        return DecodedTrainingImage(None, None, "it is damaged") if row in broken else grey(row)

    return look


def flat(pixels):
    return pixels.transpose(2, 0, 1)


def test_those_that_cannot_be_read_have_a_reason_and_no_mark():
    found = TrainingImages(6, counted([], broken={3}), flat, 2).scan()
    assert found.is_readable().tolist() == [True, True, True, False, True, True]
    assert found.reasons[3] == "it is damaged"
    assert found.hashes[3] == 0
    assert len(set(found.hashes.tolist())) == 6
    assert (found.hashes >= 0).all()


@pytest.mark.parametrize(("space", "again"), [(1 << 20, 0), (48, 5)])
def test_batches_come_in_order_from_memory_or_from_the_files(monkeypatch, space, again):
    monkeypatch.setattr(room, "MAX_CACHE_BYTES", space)  # a picture of 48 bytes: one alone has room
    opened = []
    shown = TrainingImages(6, counted(opened), flat, 2)
    shown.scan()
    assert len(opened) == 6
    opened.clear()
    parts = [np.array([5, 0]), np.array([2, 4]), np.array([1, 3])]
    met = list(shown.iterate_prepared_batches(parts))
    assert [rows.tolist() for rows, _ in met] == [[5, 0], [2, 4], [1, 3]]
    assert [values[:, 0, 0, 0].tolist() for _, values in met] == [[5, 0], [2, 4], [1, 3]]
    assert met[0][1].shape == (2, 3, 4, 4)
    assert len(opened) == again


def test_a_picture_that_went_away_meanwhile_is_named(monkeypatch):
    monkeypatch.setattr(room, "MAX_CACHE_BYTES", 0)
    gone = set()
    shown = TrainingImages(4, counted([], broken=gone), flat, 2)
    shown.scan()
    gone.add(2)
    with pytest.raises(OSError, match="picture 2: it is damaged"):
        list(shown.iterate_prepared_batches([np.array([0, 1]), np.array([2, 3])]))
