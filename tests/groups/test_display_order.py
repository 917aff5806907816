from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.groups import sort_groups_for_display

FAIRFACE_AGES = [
    "0-2", "3-9", "10-19", "20-29", "30-39", "40-49", "50-59", "60-69", "more than 70",
]  # fmt: skip


@pytest.mark.parametrize(
    "ordered",
    [
        FAIRFACE_AGES,
        [*FAIRFACE_AGES[:-1], "70+"],
        ["<18", "18–30", "30–45", "45–70", "70+"],
        ["under 18", "18 to 29", "30 and over"],
        ["70–75", "70 and over"],
        ["9", "X"],
        ["-5–0", "0–5", "5+"],
        ["[18, 30)", "[30, 40)", "[40, 100)"],
        ["1", "2", "9", "10"],
        ["1.5", "2.25", "10"],
        ["999", "1,000–2,000", "2,000+"],
        ["scale 1", "scale 2", "scale 10"],
        ["type ii", "type iv", "type v", "type ix"],
        ["I", "II", "III", "IV", "V", "VI"],
        ["[102, 78, 65]", "[136, 105, 81]", "[1000, 0, 0]"],
    ],
)
def test_numbers_ages_and_bins_come_in_the_order_of_their_numbers(ordered):
    shuffled = [*ordered[1::2], *reversed(ordered[::2])]
    assert sort_groups_for_display(shuffled) == ordered
    # A group's size does not disturb an order that its name gives.
    assert sort_groups_for_display(shuffled, {v: i for i, v in enumerate(ordered)}) == ordered


def test_unknown_is_last_among_numbers_and_among_names():
    assert sort_groups_for_display(["unknown", "2", "1"]) == ["1", "2", "unknown"]
    assert sort_groups_for_display(["zebra", "unknown", "ant"]) == ["ant", "zebra", "unknown"]
    assert sort_groups_for_display(["unknown", "a"], {"unknown": 99, "a": 1}) == ["a", "unknown"]


def test_a_value_that_is_no_range_stands_behind_the_ranges():
    assert sort_groups_for_display(["Not listed", "3-9", "0-2"]) == ["0-2", "3-9", "Not listed"]


def test_one_number_among_many_words_is_a_word():
    values = ["White", "Black", "Asian", "2 or more"]
    assert sort_groups_for_display(values) == ["2 or more", "Asian", "Black", "White"]
    sizes = {"White": 5, "Black": 9, "Asian": 7, "2 or more": 1}
    assert sort_groups_for_display(values, sizes) == [
        "Black", "Asian", "White", "2 or more",
    ]  # fmt: skip


def test_words_go_by_falling_size_then_by_name():
    assert sort_groups_for_display(["b", "c", "a"], {"a": 1, "b": 1, "c": 2}) == ["c", "a", "b"]


def test_nothing_in_nothing_out():
    assert sort_groups_for_display([]) == []


VALUES = st.lists(
    st.one_of(st.text(max_size=6), st.sampled_from([*FAIRFACE_AGES, "70+", "unknown", "9", "IV"])),
    unique=True,
)


@given(VALUES, st.randoms())
def test_the_order_depends_on_the_values_alone(values, rng):
    shuffled = rng.sample(values, len(values))
    assert sort_groups_for_display(shuffled) == sort_groups_for_display(values)
    assert sorted(sort_groups_for_display(values)) == sorted(values)
