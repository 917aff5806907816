"""Dawid–Skene and GLAD: against a plain loop, what is injected, and whom they believe."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.stats.annotators import AnnotatorLabels, fit_dawid_skene, fit_glad, label_shares_by_item
from isolux.stats.label_noise import dawid_skene_group_posterior


def injected(seed, *, items=400, annotators=8, classes=3, each=5, skill=(0.5, 0.95)):
    """Answers of annotators whose confusion matrices are known: right, else any other class."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, items)
    skills = np.linspace(*skill, annotators)
    item = np.repeat(np.arange(items), each)
    who = np.concatenate([rng.choice(annotators, each, replace=False) for _ in range(items)])
    other = (truth[item] + rng.integers(1, classes, len(item))) % classes
    said = np.where(rng.random(len(item)) < skills[who], truth[item], other)
    codes = (x.astype(np.int32) for x in (item, who, said))
    return AnnotatorLabels(*codes, items, annotators, classes), truth, skills


def by_loops(answers, rounds):
    """Dawid & Skene's EM, by arrays of every annotator and answer, from the shares of answers."""
    n, a, k = answers.n_items, answers.n_annotators, answers.n_classes
    chance = label_shares_by_item(answers)
    said = np.zeros((n, a, k))
    said[answers.item_index, answers.annotator_index, answers.label] = 1
    for _ in range(rounds):
        share = chance.sum(axis=0) / n
        error = 0.01 + np.einsum("ig,iws->wgs", chance, said)  # annotator, true class, answer
        error /= error.sum(axis=2, keepdims=True)
        logs = np.log(share) + np.einsum("wgs,iws->ig", np.log(error), said)
        chance = np.exp(logs - logs.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
    return chance


@pytest.mark.parametrize("seed", range(3))
def test_two_rounds_are_those_of_arrays(seed):
    answers, *_ = injected(seed, items=60)
    fitted = fit_dawid_skene(answers, tolerance=np.inf)  # whatever moved: it stops at once
    np.testing.assert_allclose(fitted.posterior, by_loops(answers, 2), atol=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_leaps_end_where_plain_rounds_end(seed):
    answers, *_ = injected(seed, items=60)
    fitted = fit_dawid_skene(answers, tolerance=1e-9)
    assert fitted.has_converged
    np.testing.assert_allclose(fitted.posterior, by_loops(answers, 4_000), atol=1e-5)


def test_it_says_when_it_did_not_settle():
    answers, *_ = injected(0, items=60)
    assert not fit_dawid_skene(answers, max_rounds=3, tolerance=0.0).has_converged


def test_dawid_skene_is_that_of_the_audit():
    """The audit's own, of people times annotators times groups, gives the same chances."""
    answers, *_ = injected(4, items=120)
    votes = np.zeros((120, 8, 3))
    votes[answers.item_index, answers.annotator_index, answers.label] = 1
    fitted = fit_dawid_skene(answers, max_rounds=100)
    np.testing.assert_allclose(
        fitted.posterior, dawid_skene_group_posterior(votes, max_rounds=100), atol=1e-5
    )


@pytest.mark.parametrize("fit", [fit_dawid_skene, fit_glad])
def test_what_is_injected_is_found(fit):
    """4,000 items: the best label is right more often than a vote's, skills within 3 points."""
    answers, truth, skills = injected(1, items=4_000)
    fitted = fit(answers)
    best = (fitted.posterior.argmax(axis=1) == truth).mean()
    vote = (label_shares_by_item(answers).argmax(axis=1) == truth).mean()
    assert best > vote + 0.01
    np.testing.assert_allclose(fitted.accuracy, skills, atol=0.03)
    assert fitted.has_converged


def test_chances_are_as_often_true_as_they_say():
    answers, truth, _ = injected(2, items=6_000, each=3)
    chance = fit_dawid_skene(answers).posterior
    top, right = chance.max(axis=1), chance.argmax(axis=1) == truth
    for low, high in ((0.4, 0.6), (0.6, 0.8), (0.8, 0.95), (0.95, 1.0)):
        held = (top >= low) & (top < high)
        if held.sum() > 200:
            four_errors = 4 * (0.25 / held.sum()) ** 0.5
            assert right[held].mean() == pytest.approx(top[held].mean(), abs=four_errors + 0.02)


@pytest.mark.parametrize("fit", [fit_dawid_skene, fit_glad])
def test_a_weight_of_two_is_an_item_twice(fit):
    answers, *_ = injected(3, items=50)
    weights = np.ones(50)
    weights[:10] = 2
    twice = np.concatenate([np.arange(50), np.arange(10)])
    rows = [np.flatnonzero(answers.item_index == i) for i in twice]
    item = np.repeat(np.arange(60), [len(r) for r in rows]).astype(np.int32)
    at = np.concatenate(rows)
    copied = AnnotatorLabels(item, answers.annotator_index[at], answers.label[at], 60, 8, 3)
    settings = {"max_rounds": 400, "tolerance": 1e-8}
    once, both = fit(answers, item_weights=weights, **settings), fit(copied, **settings)
    np.testing.assert_allclose(once.posterior, both.posterior[:50], atol=0.01)


def test_an_item_without_answers_has_the_classes_shares():
    answers = AnnotatorLabels(
        np.array([0, 0, 1, 1], np.int32), np.array([0, 1, 0, 1], np.int32),
        np.array([0, 0, 0, 0], np.int32), 3, 2, 2,
    )  # fmt: skip
    chance = fit_dawid_skene(answers).posterior
    assert chance[2].sum() == pytest.approx(1.0)
    assert label_shares_by_item(answers)[2].tolist() == [0.0, 0.0]
