from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from isolux_worlds.layouts._annotators import (
    compute_annotator_error_rates,
    draw_majority_labels,
    draw_tone_votes,
)

N = 40_000


def random():
    return np.random.default_rng(5)


def test_everybody_names_the_true_tone_and_a_neighbour():
    tones = np.repeat(np.arange(1, 11), 50)
    votes = draw_tone_votes(tones, n_annotators=3, error_rate=0.0, rng=random())
    assert (votes.sum(axis=1) == 6).all()
    assert (votes[np.arange(len(tones)), tones - 1] == 3).all()
    far = np.abs(np.arange(1, 11)[None, :] - tones[:, None]) > 1
    assert (votes[far] == 0).all()


def test_between_the_ends_no_tone_has_as_many_votes_as_the_true_one():
    tones = np.repeat(np.arange(2, 10), 200)
    votes = draw_tone_votes(tones, n_annotators=3, error_rate=0.0, rng=random())
    votes[np.arange(len(tones)), tones - 1] = 0
    assert set(votes.max(axis=1)) == {2}
    # Both ways are as likely: 2 votes below and 1 above, or 1 below and 2 above.
    below = votes[np.arange(len(tones)), tones - 2]
    assert abs((below == 2).mean() - 0.5) < 0.05


def test_the_ends_have_one_neighbour():
    votes = draw_tone_votes(np.array([1, 10]), n_annotators=3, error_rate=0.0, rng=random())
    assert votes[0].tolist() == [3, 3, 0, 0, 0, 0, 0, 0, 0, 0]
    assert votes[1].tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 3, 3]


def test_who_errs_sees_any_other_tone_alike():
    # One annotator, always wrong, of tone 5: the nine others, each 1 in 9 times. The tone seen has
    # a vote, and so has a neighbour: tone 1 is seen (1/9) or tone 2 is, downwards (1/18).
    votes = draw_tone_votes(np.full(N, 5), n_annotators=1, error_rate=1.0, rng=random())
    assert (votes.sum(axis=1) == 2).all()
    assert abs((votes[:, 0] > 0).mean() - (1 / 9 + 1 / 18)) < 0.01
    # Tone 5 is never seen, only named beside 4 (upwards) or 6 (downwards): 2 × 1/9 × 1/2.
    assert abs((votes[:, 4] > 0).mean() - 1 / 9) < 0.01


@pytest.mark.parametrize("error", [0.1, 0.4])
def test_a_label_is_what_two_of_three_say(error):
    values = pl.Series("tattoo", ["no"] * N)
    found = draw_majority_labels(
        values, ("no", "yes"), n_annotators=3, error_rate=error, rng=random()
    )
    # Two or three of three wrong: 3 e² (1 − e) + e³. With two values somebody has a majority.
    wrong = 3 * error**2 * (1 - error) + error**3
    assert found.null_count() == 0
    assert abs((found == "yes").mean() - wrong) < 0.01


def test_where_no_label_has_a_majority_nobody_can_tell():
    # Of three values and error 1 all three annotators are wrong, each either way: never apart by
    # more than two, so two always agree, and on a wrong one.
    values = pl.Series(["a"] * N)
    found = draw_majority_labels(
        values, ("a", "b", "c"), n_annotators=3, error_rate=1.0, rng=random()
    )
    assert set(found.unique()) == {"b", "c"}
    # Of many values three who err hardly ever agree: null.
    many = tuple("abcdefghijklmnopqrstuvwxyz")
    found = draw_majority_labels(values, many, n_annotators=3, error_rate=1.0, rng=random())
    assert found.null_count() > 0.85 * N


def test_a_value_that_is_not_known_cannot_be_told():
    values = pl.Series("mask", ["mask", None, "veil"])
    found = draw_majority_labels(
        values, ("mask", "none"), n_annotators=3, error_rate=0.0, rng=random()
    )
    assert found.to_list() == ["mask", None, None]
    assert found.name == "mask"


def test_the_first_special_error_that_fits_counts():
    special = [
        SimpleNamespace(where={"tone": ("9", "10"), "light": ("dim",)}, error=0.5),
        SimpleNamespace(where={"light": ("dim",)}, error=0.3),
    ]
    settings = SimpleNamespace(annotators=SimpleNamespace(error=0.1, errors=special))
    people = pl.DataFrame({"tone": ["9", "1", "10"], "light": ["dim", "dim", "day"]})
    found = compute_annotator_error_rates(SimpleNamespace(settings=settings), people)
    assert found.tolist() == [0.5, 0.3, 0.1]
