"""Vendi scores: by hand, against the package that its authors wrote, and by what must hold."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import InputError, SpecError
from isolux.stats import diversity
from isolux.stats.diversity import rarefied_vendi_score, vendi_score

# The package asks scipy for a name that scipy has moved.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning:vendi_score.*")


def vectors(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * np.exp(-np.arange(d) / 20) + 0.3


@pytest.fixture(scope="module")
def package():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from vendi_score import vendi
    return vendi


def test_by_hand():
    # Three of one direction and one of another: eigenvalues ¾ and ¼, exp of their entropy
    four = np.array([[1.0, 0.0], [2.0, 0.0], [5.0, 0.0], [0.0, 9.0]])
    expected = math.exp(-(0.75 * math.log(0.75) + 0.25 * math.log(0.25)))
    assert vendi_score(four).value == pytest.approx(expected, abs=1e-12)
    # order 2: 1 / (¾² + ¼²) = 1.6; of infinite order: 1 / ¾; of order 0: the rank
    assert vendi_score(four, order=2).value == pytest.approx(1.6, abs=1e-12)
    assert vendi_score(four, order=math.inf).value == pytest.approx(4 / 3, abs=1e-12)
    assert vendi_score(four, order=0).value == pytest.approx(2.0, abs=1e-12)


@pytest.mark.parametrize(("n", "d"), [(200, 30), (30, 200), (50, 50), (1, 5), (7, 1)])
@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_it_is_the_packages(package, n, d, kind):
    made = vectors(n, d).astype(kind)
    found = vendi_score(made)
    assert found.method == ("gram" if n <= d else "dual")
    double = made.astype(np.float64)
    assert found.value == pytest.approx(package.score_X(double), abs=1e-6)
    assert found.value == pytest.approx(package.score_dual(double), abs=1e-6)


@pytest.mark.parametrize("order", [0.5, 2.0, 5.0])
def test_other_orders_are_the_packages(package, order):
    made = vectors(80, 20)
    assert vendi_score(made, order=order).value == pytest.approx(
        package.score_dual(made, q=order), abs=1e-6
    )


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 99))
def test_it_lies_between_one_and_what_there_is(n, d, seed):
    made = np.random.default_rng(seed).normal(size=(n, d))
    score = vendi_score(made).value
    assert 1.0 - 1e-9 <= score <= min(n, d) + 1e-9
    assert vendi_score(np.vstack([made, made])).value == pytest.approx(score)  # copies add none
    assert vendi_score(7.0 * made[::-1]).value == pytest.approx(score)  # nor length, nor order
    assert vendi_score(made, order=3).value <= score + 1e-9  # falls with the order


def test_nobody_has_no_score():
    found = vendi_score(np.empty((0, 4)))
    assert found.value is None
    assert found.n == 0


@pytest.mark.parametrize("order", [1.0, 2.0])
def test_the_estimate_is_near_and_says_how_near(monkeypatch, order):
    mixed = np.random.default_rng(1).normal(size=(60, 300))
    made = vectors(700, 60, seed=2) @ mixed + 0.5 * vectors(700, 300, seed=3)
    exact = vendi_score(made, order=order)
    monkeypatch.setattr(diversity, "MAX_EXACT_SIZE", 100)
    found = vendi_score(made, order=order)
    assert found.method == "lanczos"
    assert 0.0 < found.standard_error < 0.02 * exact.value
    assert abs(found.value - exact.value) < 5 * found.standard_error + 0.005 * exact.value
    again = vendi_score(made, order=order)
    assert again == found  # a seed repeats it
    assert vendi_score(made, order=order, seed=1).value != found.value


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (np.zeros((2, 3)), r"(?s)has no direction.*length 0.*row 1"),
        (np.array([[1.0], [np.nan]]), r"(?s)has no direction.*row 2"),
        (np.ones(4), "these are not vectors"),
        (np.array([["a"]]), "these are not vectors"),
        (np.ones((2, 0)), "these are not vectors"),
    ],
)
def test_what_is_no_vector_is_refused(made, words):
    with pytest.raises(InputError, match=words):
        vendi_score(made)


@pytest.mark.parametrize("order", [-1.0, math.nan])
def test_an_order_below_zero_is_refused(order):
    with pytest.raises(SpecError, match="order of the Vendi score"):
        vendi_score(np.eye(2), order=order)


@pytest.mark.parametrize("order", [0.0, math.inf])
def test_an_order_that_cannot_be_estimated_is_refused(monkeypatch, order):
    monkeypatch.setattr(diversity, "MAX_EXACT_SIZE", 5)
    with pytest.raises(SpecError, match="is not estimated"):
        vendi_score(vectors(20, 20), order=order)


def test_one_photo_of_each_subject_is_drawn():
    # 20 subjects at right angles, ten photos each: 10 drawn subjects are 10 different people,
    # whichever photos they come with. Photos taken as people would be fewer directions.
    subject = np.repeat(np.arange(20), 10)
    found = rarefied_vendi_score(np.eye(20)[subject], subject, 10)
    assert found.value == pytest.approx(10.0)
    assert (found.low, found.high) == (pytest.approx(10.0), pytest.approx(10.0))
    assert found.reason is None


def test_the_interval_is_the_delete_d_jackknifes():
    made = vectors(60, 30, seed=4)
    found = rarefied_vendi_score(made, np.arange(60), 15, seed=3)
    rng = np.random.default_rng(3)
    logs = [
        math.log(vendi_score(made[rng.choice(60, size=15, replace=False, shuffle=False)]).value)
        for _ in range(50)
    ]
    assert found.value == pytest.approx(math.exp(np.mean(logs)))
    spread = np.std(logs, ddof=1) * math.sqrt(15 / 45 + 1 / 50)
    assert found.high == pytest.approx(math.exp(np.mean(logs) + 1.959964 * spread), rel=1e-6)
    assert found.low == pytest.approx(math.exp(np.mean(logs) - 1.959964 * spread), rel=1e-6)


@pytest.mark.parametrize(("subjects", "size"), [(19, 10), (30, 5), (0, 10)])
def test_too_few_subjects_say_so(subjects, size):
    found = rarefied_vendi_score(np.ones((subjects, 3)), np.arange(subjects), size)
    assert (found.value, found.low, found.high) == (None, None, None)
    assert found.reason == f"{subjects} subjects of the 20 needed"
