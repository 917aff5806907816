"""Numbers in sentences: one number is printed once alike, and lies within its printed interval."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.statements.metric_lines import describe_error_rate_ratio, describe_rates_as_counts
from isolux.statements.numbers import (
    MINUS,
    format_bare_value,
    format_fixed,
    format_gap_size,
    format_interval,
    format_values_and_gap,
)
from isolux.statements.run_terms import list_declared_metrics_by_name


@pytest.mark.parametrize(
    ("value", "places", "expected"),
    [
        (21.25, 1, "21.3"), (-21.25, 1, "-21.3"), (0.25, 1, "0.3"), (-0.04, 1, "0.0"),
        (0.0, 1, "0.0"), (1e-300, 1, "0.0"), (2.675, 2, "2.68"), (99.96, 1, "100.0"),
        (float("nan"), 1, "nan"), (float("inf"), 1, "inf"), (123456.0, 0, "123456"),
    ],
)  # fmt: skip
def test_halves_go_away_from_nothing(value, places, expected):
    assert format_fixed(value, places) == expected


def test_what_is_left_of_a_subtraction_is_no_digit():
    assert 100 * (0.85 - 0.6375) != 100 * 0.2125, "else this tests nothing"
    assert format_fixed(100 * (0.85 - 0.6375)) == format_fixed(100 * 0.2125) == "21.3"
    assert format_bare_value(0.85 - 0.6375) == format_bare_value(0.2125) == "21.3"
    assert format_gap_size(0.6375 - 0.85) == "21.3 points"
    assert format_bare_value(3.145, "ms") == format_bare_value(3.145 - 4e-16, "ms") == "3.15"


def test_other_units_have_three_digits_and_thousands_are_printed_whole():
    numbers = (0.01234, 9.996, 999.4, 999.5, 1000, -12345.6, 1_700_000_053.81)
    assert [format_bare_value(x, "ms") for x in numbers] == [
        "0.0123", "10.0", "999", "1,000", "1,000", "−12,346", "1,700,000,054",
    ]  # fmt: skip
    assert format_interval(0.213, 12.34, "years", 4.1) == "0.2 to 12.3", (
        "as many decimals as the largest"
    )


def _triples(rng, times):
    """Draw intervals and a value within, at all sizes, on grids on which halves are common."""
    scale = 10.0 ** rng.uniform(-8, 0.3, times)
    ends = np.sort(rng.normal(0, 1, (times, 3)) * scale[:, None], axis=1)
    people = rng.choice([40, 80, 400, 800, 2000], times)[:, None]
    on_grid = np.rint(ends * people) / people
    return np.concatenate([ends, on_grid])


def _read(text):
    return float(text.replace(MINUS, "-"))


@pytest.mark.parametrize("unit", ["fraction", "years"])
def test_a_value_lies_within_its_printed_interval(unit):
    for low, value, high in _triples(np.random.default_rng(3), 3000):
        said = [_read(format_bare_value(float(x), unit)) for x in (low, value, high)]
        assert said[0] <= said[1] <= said[2], (low, value, high)


@pytest.mark.parametrize("unit", ["fraction", "years"])
def test_one_number_is_printed_once_alike(unit):
    rng = np.random.default_rng(4)
    for _, value, _ in _triples(rng, 3000):
        noisy = float(value * (1.0 + rng.choice([-1, 1]) * 2e-15))
        assert format_bare_value(float(value), unit) == format_bare_value(noisy, unit)
        assert format_bare_value(float(value), unit) == format_bare_value(noisy, unit)
        assert format_gap_size(float(value), unit) == format_gap_size(float(-value), unit), (
            "a size has no sign"
        )
    assert format_bare_value(0.000996) == "0.1", "as 0.1 itself"


def test_a_printed_gap_is_the_difference_of_the_printed_values_or_has_one_more_digit():
    rng = np.random.default_rng(5)
    for a, b, width in rng.uniform(0, 1, (2000, 3)) * 10.0 ** rng.uniform(-4, 0, (2000, 1)):
        text = format_values_and_gap(a, b, a - b, (a - b - width / 9, a - b + width / 9))
        first, second, gap = (float(x.split()[0]) for x in text[:3])
        decimals = [len(x.split()[0].partition(".")[2]) for x in text[:3]]
        assert decimals[0] == decimals[1]
        if decimals[2] == decimals[0]:
            assert abs(gap - abs(first - second)) < 1e-9, text
        else:
            assert decimals[2] == decimals[0] + 1
        low, high = map(_read, text.interval.split(" to "))
        assert low <= gap <= high


def test_small_rates_can_be_told_apart():
    assert format_values_and_gap(0.0002, 0.0018, -0.0016, (None, None))[:3] == (
        "0.02 %", "0.18 %", "0.16 points",
    )  # fmt: skip
    assert format_values_and_gap(0.0002, 0.051, -0.0508, (None, None))[:2] == ("0.02 %", "5.10 %")
    years = format_values_and_gap(5.21, 4.9, 0.31, (0.1, 0.52), "years")
    assert years == ("5.21 years", "4.90 years", "0.31 years", "0.10 to 0.52")


METRICS = list_declared_metrics_by_name(["classification", "face_detection", "face_verification"])


@pytest.mark.parametrize(
    ("metric", "label", "values", "phrase"),
    [
        ("accuracy", "", (0.627, 0.968), "it is right for 63 of 100 against 97"),
        ("recall", "nurse", (0.9, 0.5), "of 100 of class nurse it finds 90 against 50"),
        ("recall", "", (0.9, 0.5), ""),
        ("recall_at_score", "", (0.40, 0.42), "it finds 40 of 100 against 42"),
        ("selection_rate", "", (0.0018, 0.0002), "it selects 18 of 10,000 against 2"),
        ("accuracy", "", (0.995, 0.999), "it is right for 995 of 1,000 against 999"),
        ("average_recall", "", (0.401, 0.523), ""),
        ("balanced_accuracy", "", (0.401, 0.523), ""),
    ],
)
def test_shares_of_people_are_said_in_people(metric, label, values, phrase):
    assert describe_rates_as_counts(METRICS[metric], label, values) == phrase


@pytest.mark.parametrize(
    ("values", "ends", "times"),
    [
        ((0.0018, 0.0002), (0.001, 0.002), "accepted nine times as often"),
        ((0.0002, 0.0018), (-0.002, -0.001), "accepted nine times as often"),
        ((0.02, 0.008), (0.001, 0.02), "accepted 2.5 times as often"),
        ((0.02, 0.0101), (0.001, 0.02), "accepted twice as often"),
        ((0.02, 0.001), (0.001, 0.02), "accepted 20 times as often"),
        ((0.02, 0.0), (0.001, 0.02), ""),
        ((0.02, 0.01), (-0.001, 0.02), ""),
    ],
)
def test_an_error_is_so_many_times_as_frequent_only_where_that_is_shown(values, ends, times):
    text = describe_error_rate_ratio(METRICS["false_match_rate"], values, ends)
    assert times in text
    assert bool(text) == bool(times)
    assert not describe_error_rate_ratio(METRICS["accuracy"], values, ends)
