"""Identifiers become places: by number where they are numbers, with the result of a join."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isolux.groups._places import places

numbers = st.one_of(
    st.none(), st.integers(-3, 12).map(str), st.sampled_from(["07", "+7", "-0", " 7", "7.0", "x"])
)


@given(st.lists(numbers), st.lists(st.integers(-3, 12), unique=True))
@example([str(2**63 - 1), str(-(2**63))], [0, 1])
@example(["1"], [-(2**63), 2**63 - 1])
def test_places_of_numbers_are_those_of_a_dictionary(asked, units):
    known = {str(unit): place for place, unit in enumerate(units)}
    found = places(pl.Series(asked, dtype=pl.String), pl.Series(list(known), dtype=pl.String))
    assert found.tolist() == [known.get(text, -1) for text in asked]


@pytest.mark.parametrize("units", [["a", "7"], ["07", "7"], ["7", None], []])
def test_units_that_are_no_plain_numbers_are_joined(units):
    asked = ["7", "07", None, "a"]
    known = {unit: place for place, unit in enumerate(units) if unit is not None}
    found = places(pl.Series(asked), pl.Series(units, dtype=pl.String))
    assert found.tolist() == [known.get(text, -1) for text in asked]
