"""Identifiers become places: by number where they are numbers, with the result of a join."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from isolux.core.unit_index import build_unit_index, has_no_duplicates, lookup_positions

numbers = st.one_of(
    st.none(), st.integers(-3, 12).map(str), st.sampled_from(["07", "+7", "-0", " 7", "7.0", "x"])
)


@given(st.lists(numbers), st.lists(st.integers(-3, 12), unique=True))
@example([str(2**63 - 1), str(-(2**63))], [0, 1])
@example(["1"], [-(2**63), 2**63 - 1])
def test_places_of_numbers_are_those_of_a_dictionary(asked, units):
    known = {str(unit): place for place, unit in enumerate(units)}
    found = lookup_positions(
        pl.Series(asked, dtype=pl.String), pl.Series(list(known), dtype=pl.String)
    )
    assert found.tolist() == [known.get(text, -1) for text in asked]


@pytest.mark.parametrize("units", [["a", "7"], ["07", "7"], ["7", None], []])
def test_units_that_are_no_plain_numbers_are_joined(units):
    asked = ["7", "07", None, "a"]
    known = {unit: place for place, unit in enumerate(units) if unit is not None}
    found = lookup_positions(pl.Series(asked), pl.Series(units, dtype=pl.String))
    assert found.tolist() == [known.get(text, -1) for text in asked]


@given(st.integers(0, 10_000))
def test_blocks_in_the_order_of_the_units_are_found_as_a_dictionary_finds_them(seed):
    """Copies, some people in order, some in another order, strangers, nulls, a block twice."""
    rng = np.random.default_rng(seed)
    units = [f"p{k}" for k in range(40)]
    some = [unit for unit in units if rng.random() < 0.5]
    blocks = [units, some, units[::-1], some, [*some, "x"], [None, *some], [*some, *some]]
    blocks = [blocks[k] for k in rng.permutation(len(blocks))]
    asked = [unit for block in blocks for unit in block]
    starts = np.cumsum([0, *map(len, blocks)])[:-1]
    found = lookup_positions(pl.Series(asked, dtype=pl.String), pl.Series(units), starts)
    known = {unit: place for place, unit in enumerate(units)}
    assert found.tolist() == [known.get(unit, -1) for unit in asked]


@given(st.lists(st.lists(st.integers(0, 9), max_size=12), min_size=1, max_size=4))
def test_units_of_several_tables_are_numbered_as_they_first_occur(tables):
    frames = [
        pl.DataFrame({"unit_id": [f"p{k}" for k in ids], "metric": [str(k > 4) for k in ids]},
                     schema={"unit_id": pl.String, "metric": pl.String})
        for ids in tables
    ]  # fmt: skip
    found = build_unit_index(frames)
    every = list(dict.fromkeys(f"p{k}" for ids in tables for k in ids))
    assert found.ids.to_list() == every
    for ids, rows in zip(tables, found.rows, strict=True):
        assert [every[row] for row in rows] == [f"p{k}" for k in ids]


def test_rows_that_repeat_are_seen():
    rows = pl.DataFrame({"a": ["x", "x", None], "b": [1.0, None, 1.0]})
    assert has_no_duplicates(rows)
    assert not has_no_duplicates(pl.concat([rows, rows.tail(1)]))
    assert not has_no_duplicates(pl.DataFrame({"a": ["x", "x"], "b": [0.0, -0.0]}))
