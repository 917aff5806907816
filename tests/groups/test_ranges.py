"""Values that are ranges: every way of writing one, and which end belongs to it."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.groups.display_order import NumberRange, parse_range_or_number


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3-9", NumberRange(3, 9)),
        ("18 to 29 years", NumberRange(18, 29)),
        (" 1,000–2,000 ", NumberRange(1000, 2000)),
        ("-5–0", NumberRange(-5, 0)),
        ("[18, 30)", NumberRange(18, 30, is_high_open=True)),
        ("(18, 30]", NumberRange(18, 30, is_low_open=True)),
        ("<18", NumberRange(-inf, 18, is_high_open=True)),
        ("Under 18", NumberRange(-inf, 18, is_high_open=True)),
        ("<=18", NumberRange(-inf, 18)),
        ("up to 18", NumberRange(-inf, 18)),
        (">70", NumberRange(70, inf, is_low_open=True)),
        ("more than 70", NumberRange(70, inf, is_low_open=True)),
        ("at least 70", NumberRange(70, inf)),
        ("≥ 70", NumberRange(70, inf)),
        ("70+", NumberRange(70, inf)),
        ("70 and over", NumberRange(70, inf)),
        ("2 or more", NumberRange(2, inf)),
        ("34", NumberRange(34, 34)),
        ("2.5 m", NumberRange(2.5, 2.5)),
    ],
)
def test_a_range_is_read(text, found):
    assert parse_range_or_number(text) == found


@pytest.mark.parametrize("text", ["", "Black", "2019-10-01", "type 3", "3-9-12", "+", "III"])
def test_what_is_no_range_is_none(text):
    assert parse_range_or_number(text) is None


@given(st.text(max_size=20))
def test_any_text_is_read_without_a_crash(text):
    assert parse_range_or_number(text) is None or isinstance(
        parse_range_or_number(text), NumberRange
    )


@pytest.mark.parametrize("relation", [">=", ">", "<=", "<"])
@given(low=st.integers(0, 20), width=st.integers(0, 20), number=st.integers(0, 40))
def test_a_range_passes_where_every_number_in_it_does(relation, low, width, number):
    import operator

    compare = {">=": operator.ge, ">": operator.gt, "<=": operator.le, "<": operator.lt}[relation]
    inside = [low + k for k in range(width + 1)]
    assert NumberRange(low, low + width).lies_entirely_in_relation(relation, number) == all(
        compare(n, number) for n in inside
    )
