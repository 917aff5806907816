"""Labels that are classes under other names, and models that are merely poor."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.stats.label_assignment import AnswerCodes, find_label_assignment


def codes(truth, answers, n_labels, **more) -> AnswerCodes:
    truth, answers = np.asarray(truth, np.int64), np.asarray(answers, np.int64)
    clusters = more.pop("clusters", np.arange(len(truth)))
    return AnswerCodes(truth, answers, n_labels, clusters, **more)


def draw(confusion, truth, rng) -> np.ndarray:
    """Draw an answer for each truth from the rows of a confusion matrix."""
    cumulated = (confusion / confusion.sum(1, keepdims=True)).cumsum(1)
    return (rng.random(len(truth))[:, None] > cumulated[truth]).sum(1).clip(max=len(confusion) - 1)


@pytest.mark.parametrize("accuracy", [0.6, 0.9])
def test_any_permutation_is_found(accuracy) -> None:
    rng = np.random.default_rng(4)
    order = np.array([2, 0, 1, 3, 5, 4])  # class c is answered as order[c]
    truth = rng.integers(0, 6, 600)
    answers = np.where(rng.random(600) < accuracy, order[truth], rng.integers(0, 6, 600))
    assert find_label_assignment(codes(truth, answers, 6)) == {2: 0, 0: 1, 1: 2, 5: 4, 4: 5}


def test_foreign_labels_are_assigned() -> None:
    """Labels 2 and 3 are true of nobody: Man and Woman beside Male and Female."""
    rng = np.random.default_rng(4)
    truth = rng.integers(0, 2, 100)
    answers = np.where(rng.random(100) < 0.85, 2 + truth, 3 - truth)
    assert find_label_assignment(codes(truth, answers, 4)) == {2: 0, 3: 1}


def test_a_label_of_everyone_is_no_name_of_a_class() -> None:
    truth = np.tile([0, 1], 200)
    assert find_label_assignment(codes(truth, np.full(400, 2), 3)) == {}


def test_a_class_that_swallows_another_is_not_exchanged_with_it() -> None:
    """1 is answered for most of 0, and for 1: exchanging both would make 350 of 500 right."""
    truth = np.repeat([0, 0, 1, 1], [100, 350, 45, 5])
    answers = np.repeat([0, 1, 1, 0], [100, 350, 45, 5])
    assert find_label_assignment(codes(truth, answers, 2)) == {}


def test_photos_of_few_subjects_establish_nothing() -> None:
    """400 photos, all exchanged, of four subjects: as four people."""
    truth = np.repeat([0, 1, 0, 1], 100)
    assert find_label_assignment(codes(truth, 1 - truth, 2))
    assert not find_label_assignment(codes(truth, 1 - truth, 2, clusters=np.repeat(range(4), 100)))


def test_counts_are_people() -> None:
    counts = np.array([90, 10, 12, 88])
    assert find_label_assignment(codes([0, 0, 1, 1], [1, 0, 1, 0], 2, counts=counts)) == {
        1: 0,
        0: 1,
    }


def test_of_many_labels_the_disagreeing_ones_are_assigned() -> None:
    """2,000 classes: no table of 2,000 × 2,000, and the two that are exchanged are still found."""
    truth = np.repeat(np.arange(2_000), 3)
    truth = np.append(truth, np.repeat([7, 8], 100))
    answers = np.where(truth == 7, 8, np.where(truth == 8, 7, truth))
    assert find_label_assignment(codes(truth, answers, 2_000)) == {8: 7, 7: 8}


@pytest.mark.law
def test_poor_and_biased_models_raise_no_alarm() -> None:
    """Models that overuse classes, that lean to a neighbouring class, and that ignore the truth."""
    rng = np.random.default_rng(11)
    for world in range(600):
        k, n = int(rng.integers(2, 12)), int(rng.choice([20, 60, 200, 1000]))
        truth = rng.choice(k, n, p=rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 10.0]))))
        distance = np.arange(k)[None, :] - np.arange(k)[:, None] - rng.uniform(-0.45, 0.45)
        confusion = (
            np.eye(k) * rng.uniform(0, 0.9) + 0.3 * rng.dirichlet(np.full(k, 0.5)),
            np.exp(-0.5 * (distance / rng.uniform(0.2, 2)) ** 2),
            np.tile(rng.dirichlet(np.full(k, 0.5)) + 1e-9, (k, 1)),
        )[world % 3]
        answers = draw(confusion, truth, rng)
        assert find_label_assignment(codes(truth, answers, k), seed=world) == {}
