"""Everybody is dressed: each occupation has an outfit, each word of it a painter."""

from __future__ import annotations

import pytest

from isolux_worlds.drawing import clothing_details, props
from isolux_worlds.drawing.outfits import OUTFITS
from isolux_worlds.photo_world.vocabulary import OCCUPATIONS


def test_every_occupation_has_an_outfit_of_its_own():
    assert set(OUTFITS) == set(OCCUPATIONS)
    assert len(set(OUTFITS.values())) == len(OCCUPATIONS)


@pytest.mark.parametrize("name", OCCUPATIONS)
def test_every_word_of_an_outfit_is_painted(name):
    outfit = OUTFITS[name]
    known = set(clothing_details._GARMENTS) | set(clothing_details._PATTERNS)
    assert set(outfit.details) <= known
    assert outfit.prop in set(props.FRONT) | set(props.BEHIND)


def test_no_painter_is_left_over():
    used = {word for outfit in OUTFITS.values() for word in outfit.details}
    assert used == set(clothing_details._GARMENTS) | set(clothing_details._PATTERNS)
    assert {o.prop for o in OUTFITS.values()} == set(props.FRONT) | set(props.BEHIND)
