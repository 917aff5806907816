"""Repeated text is looked at once a run, with the result of looking at every row."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from isolux.tasks._boxes.image_coverage import distinct_values, with_image_numbers

IMAGES = pl.DataFrame({"image_id": ["7", "8", "9"], "image": [0, 1, 2]})
ids = st.sampled_from(["7", "8", "9", "10", None])


@given(st.lists(st.tuples(ids, st.integers(1, 9)), max_size=9))
def test_image_numbers_are_those_of_a_join(runs):
    rows = pl.Series("image_id", [i for i, n in runs for _ in range(n)], dtype=pl.String)
    frame = pl.DataFrame({"image_id": rows, "row": range(len(rows))})
    plain = frame.join(IMAGES, on="image_id", how="left", maintain_order="left")
    assert_frame_equal(with_image_numbers(frame, IMAGES), plain)


@given(st.lists(st.sampled_from(["a", "b", None])))
def test_distinct_values(values):
    found = distinct_values(pl.DataFrame({"label": pl.Series(values, dtype=pl.String)}), "label")
    assert found == sorted({value for value in values if value is not None})


@pytest.mark.parametrize("values", [[], [None, None], ["a", "a"], ["b", None, "a"]])
def test_distinct_values_of_one_kind(values):
    frame = pl.DataFrame({"label": pl.Series(values, dtype=pl.String)})
    assert distinct_values(frame, "label") == sorted({v for v in values if v})


def test_a_repeated_value_is_not_written_out():
    frame = pl.DataFrame({"row": range(3)}).with_columns(label=pl.lit("person"))
    assert distinct_values(frame, "label") == ["person"]
