"""The contact sheet: a row for each value, the same each time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from isolux.core.errors import SpecError, UnknownNameError
from isolux_worlds.photo_world.people import draw_people
from isolux_worlds.photo_world.settings import preset
from isolux_worlds.photo_world.vocabulary import MONK_TONES
from scripts.contact_sheet import contact_sheet

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def fair():
    return draw_people(preset("fair"))


def test_a_sheet_is_the_same_each_time(fair):
    one, other = (contact_sheet(fair, "age_group", columns=2) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_a_row_shows_its_tone(fair):
    sheet = contact_sheet(fair, "skin_tone", columns=1).astype(int)
    for k, tone in enumerate(MONK_TONES.values()):
        colour = [int(tone[i : i + 2], 16) for i in (1, 3, 5)]
        row = sheet[k * 140 + 4 : (k + 1) * 140]
        assert (np.abs(row[:, :92] - colour).max(axis=2) == 0).sum() > 2000  # the swatch
        assert (np.abs(row[:, 96:] - colour).max(axis=2) <= 14).sum() > 40  # somebody's skin


def test_groups_too_small_leave_places_empty(fair):
    few = fair.people.filter(pl.col("age_group") == "older").head(1)
    small = type(fair)(fair.settings, fair.seed, fair.households, fair.subjects, fair.photos, few)
    sheet = contact_sheet(small, "age_group", columns=3)
    assert sheet.shape == (144, 448, 3)
    assert len(np.unique(sheet[4:140, 220:330].reshape(-1, 3), axis=0)) == 1


def test_what_cannot_be_shown(fair):
    with pytest.raises(UnknownNameError, match="there is no attribute named 'shoe'"):
        contact_sheet(fair, "shoe")
    with pytest.raises(SpecError, match=r"a sheet needs columns(?s:.*)0"):
        contact_sheet(fair, columns=0)


def test_the_sheet_of_the_docs_is_there_and_light():
    path = ROOT / "docs" / "assets" / "photo_world.webp"
    assert path.stat().st_size < 400_000
    with Image.open(path) as sheet:
        assert sheet.size == (1144, 1404)
