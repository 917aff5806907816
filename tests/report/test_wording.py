from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.printable import clean_line
from isolux.core.tables import CAUTION_STATUSES, Status
from isolux.report import wording
from isolux.statements import numbers


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (0.7393, "fraction", "73.9"),
        (1.0, "fraction", "100.0"),
        (-1e-12, "fraction", "0.0"),  # never −0.0: a rounded zero has no direction
        (12.3456, "pixels", "12.3"),
        (None, "fraction", "–"),
    ],
)
def test_value_text(value, unit, expected):
    assert numbers.format_bare_value(value, unit) == expected


def test_signs_are_typographic_and_shown_on_both_sides():
    assert numbers.format_bare_value(0.034, with_sign=True) == "+3.4"
    assert numbers.format_bare_value(-0.034, with_sign=True) == "−3.4"
    assert numbers.format_bare_value(0.0, with_sign=True) == "0.0"


def test_points_drop_the_sign_and_agree_in_number():
    assert numbers.format_gap_size(-0.01) == "1.0 point"
    assert numbers.format_gap_size(-0.121) == "12.1 points"
    assert numbers.format_gap_size(0.5, "") == "0.500"


def test_an_interval_turns_with_its_difference():
    # a − b in (−0.163, −0.080) says that b − a lies in (0.080, 0.163)
    assert numbers.format_interval(-0.163, -0.080, is_negated=True) == "8.0 to 16.3"
    assert numbers.format_interval(-0.163, -0.080) == "−16.3 to −8.0"
    assert numbers.format_interval(0.1, None) == "–"


@given(st.floats(0.0, 1.0))
def test_p_never_reads_zero(p):
    text = numbers.format_p_value(p)
    assert float(text.replace("<", "")) > 0
    assert ("<" in text) == (p < 0.001)


def test_every_status_has_a_shape():
    assert set(wording.SHAPE) == {s.value for s in Status}
    assert {wording.SHAPE[s] for s in CAUTION_STATUSES} == {"○"}


def test_listed_counts_what_it_leaves_out():
    assert wording.join_with_and([]) == ""
    assert wording.join_with_and(["a"]) == "a"
    assert wording.join_with_and(list("abcde"), max_names=3) == "a, b, c and 2 more"


@given(st.text(st.characters(codec="utf-8"), max_size=40))
def test_plain_leaves_only_what_xml_allows(text):
    import xml.etree.ElementTree as ET
    from html import escape

    ET.fromstring(f"<a>{escape(clean_line(text))}</a>")  # noqa: S314 - our own string


def test_plain_takes_direction_overrides_but_keeps_right_to_left_words():
    assert clean_line("a\u202eb") == "a\ufffdb"
    assert clean_line("שלום") == "שלום"


@pytest.mark.parametrize(
    "url",
    ["javascript:alert(1)", "data:text/html,x", "//evil.example", "http:", "", "http://[", "x"],
)
def test_only_web_addresses_become_links(url):
    assert wording.keep_http_url_only(url) == ""


def test_a_spread_beyond_any_fraction_is_open():
    # Q-profile with two groups: the upper end of a standard deviation of rates exceeds 1
    assert numbers.format_dispersion_interval(0.059, 0.5) == "5.9 and up"
    assert numbers.format_dispersion_interval(0.059, 0.2) == "5.9 to 20.0"
    assert numbers.format_dispersion_interval(0.5, 40.0, "years") == "0.5 to 40.0"


def test_a_share_that_one_decimal_would_round_to_nothing_is_shown():
    assert numbers.format_bare_value(0.0002) == "0.02"
    assert numbers.format_bare_value(-0.0002) == "\N{MINUS SIGN}0.02"
    assert numbers.format_bare_value(0.0002, with_sign=True) == "+0.02"
    assert numbers.format_interval(0.00019, 0.00021) == "0.019 to 0.021"
    assert numbers.format_gap_size(0.00004) == "0.004 points"
    # What is 0 but for rounding stays 0.0, and what one decimal shows has one.
    assert [numbers.format_bare_value(x) for x in (0.0, -1e-16, 0.0011)] == [
        "0.0",
        "0.0",
        "0.1",
    ]


def test_analyses_print_numpy_numbers_alike():
    """Gaps of analyses are numpy's: a comparison of them is no Python bool."""
    import numpy as np

    from isolux.statements.numbers import format_bare_value

    assert format_bare_value(np.float64(-0.0002), "fraction") == "\N{MINUS SIGN}0.02"
    assert format_bare_value(np.float64(0.123), "fraction") == "12.3"
