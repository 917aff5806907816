"""Numbers in sentences: one number is printed once alike, and lies within its printed interval."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.report.wording import MINUS, points, value_text
from isolux.statements.words import number, size
from isolux.vocabulary.words import fixed, significant, tiny_points


@pytest.mark.parametrize(
    ("value", "places", "expected"),
    [
        (21.25, 1, "21.3"), (-21.25, 1, "-21.3"), (0.25, 1, "0.3"), (-0.04, 1, "0.0"),
        (0.0, 1, "0.0"), (1e-300, 1, "0.0"), (2.675, 2, "2.68"), (99.96, 1, "100.0"),
        (float("nan"), 1, "nan"), (float("inf"), 1, "inf"), (123456.0, 0, "123456"),
    ],
)  # fmt: skip
def test_halves_go_away_from_nothing(value, places, expected):
    assert fixed(value, places) == expected


def test_what_is_left_of_a_subtraction_is_no_digit():
    assert 100 * (0.85 - 0.6375) != 100 * 0.2125, "else this tests nothing"
    assert fixed(100 * (0.85 - 0.6375)) == fixed(100 * 0.2125) == "21.3"
    assert number(0.85 - 0.6375, "fraction") == number(0.2125, "fraction") == "21.3"
    assert size(0.6375 - 0.85, "fraction") == "21.3 points"
    assert significant(3.145) == significant(3.145 - 4e-16) == "3.15"


def test_thousands_are_printed_whole():
    told = [significant(x) for x in (999.4, 999.5, 1000, -12345.6, 1_700_000_053.81, 3e13)]
    assert told == ["999", "1,000", "1,000", "-12,346", "1,700,000,054", "3e+13"]


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
@pytest.mark.parametrize("say", [number, value_text])
def test_a_value_lies_within_its_printed_interval(say, unit):
    for low, value, high in _triples(np.random.default_rng(3), 3000):
        said = [_read(say(float(x), unit)) for x in (low, value, high)]
        assert said[0] <= said[1] <= said[2], (low, value, high)


@pytest.mark.parametrize("unit", ["fraction", "years"])
def test_one_number_is_printed_once_alike(unit):
    rng = np.random.default_rng(4)
    for _, value, _ in _triples(rng, 3000):
        noisy = float(value * (1.0 + rng.choice([-1, 1]) * 2e-15))
        assert number(float(value), unit) == number(noisy, unit)
        assert value_text(float(value), unit) == value_text(noisy, unit)
        assert size(float(value), unit) == size(float(-value), unit), "a size has no sign"
    assert tiny_points(0.000996) == "0.1", "as 0.1 itself"


def test_a_size_in_a_sentence_is_that_of_the_table():
    for _, value, _ in _triples(np.random.default_rng(5), 2000):
        in_table = points(float(value)).replace("\N{NO-BREAK SPACE}", " ")
        assert size(float(value), "fraction") == in_table
