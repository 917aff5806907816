"""Whether answers fit independent errors: what is injected is seen, and what is sound is not."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.stats.annotator_fit import diagnose_annotator_model


def answers(rng, true, right, groups=2):
    """Draw answers of annotators who are right so often, and else name any other group."""
    other = (true[:, None] + rng.integers(1, groups, (len(true), len(right)))) % groups
    return np.where(rng.random((len(true), len(right))) < right, true[:, None], other)


def votes_of(said, groups=2):
    return np.eye(groups)[np.maximum(said, 0)] * (said >= 0)[:, :, None]


def test_the_agreement_of_a_pair_by_hand():
    # Three who always agree: the model makes all of them infallible but for a hundredth of an
    # answer in each cell, and expects of each pair what it sees.
    true = np.repeat([0, 1], 30)
    fit = diagnose_annotator_model(votes_of(np.stack([true] * 3, axis=1)))
    assert fit.annotators == 3
    assert (fit.labels_per_person, fit.people_per_annotator) == (3.0, 60.0)
    assert fit.agreement_p < 1e-10
    assert fit.worst is not None
    assert (fit.worst.n_people, fit.worst.agreement) == (60, 1.0)
    # 30.01 of 30.02 answers of either group are right: (30.01² + .01²) / 30.02².
    assert fit.worst.expected_agreement == pytest.approx((30.01**2 + 0.01**2) / 30.02**2)
    assert fit.accuracy.tolist() == pytest.approx([30.01 / 30.02] * 3)
    assert np.isnan(fit.fit_p)  # three annotators of two groups always fit
    assert fit.worse_than_chance == []
    assert fit.possible_copiers is None


@pytest.mark.parametrize("right", [(0.85, 0.85, 0.85, 0.85), (0.9, 0.7, 0.8, 0.6, 0.95)])
def test_independent_answers_seldom_misfit(right):
    found = [
        diagnose_annotator_model(votes_of(answers(rng, rng.integers(0, 2, 300), right)), seed)
        for seed, rng in ((seed, np.random.default_rng(seed)) for seed in range(30))
    ]
    assert all(fit.agreement_p < 0.01 for fit in found)
    for p in ("fit_p", "hard_people_p"):  # 2 % of 30: five or more once in 2,600
        assert sum(getattr(fit, p) <= 0.02 for fit in found) <= 4
    assert not any(fit.worse_than_chance for fit in found)


def test_copied_answers_misfit():
    rng = np.random.default_rng(1)
    said = answers(rng, rng.integers(0, 2, 300), [0.8] * 5)
    said[:, 1] = said[:, 0]
    fit = diagnose_annotator_model(votes_of(said))
    assert fit.fit_p <= 0.02
    three = diagnose_annotator_model(votes_of(said[:, :3]))
    assert np.isnan(three.fit_p)
    assert three.possible_copiers == (0, 1)


def test_hard_people_mislead_several():
    rng = np.random.default_rng(2)
    true, hard = rng.integers(0, 2, 400), rng.random(400) < 0.3
    said = np.where(hard[:, None], answers(rng, true, [0.55] * 5), answers(rng, true, [0.97] * 5))
    assert diagnose_annotator_model(votes_of(said)).fit_p <= 0.02


def test_people_guessed_by_all_are_seen_where_pairs_agree_as_expected():
    """Right for 90 %, and guesses at a quarter: errors of each look alike, but fall together."""
    seen = []
    for seed in range(20):
        rng = np.random.default_rng([seed, 5])
        true = rng.integers(0, 2, 300)
        is_guessed = rng.random(300) < 0.25
        said = np.where(is_guessed[:, None], rng.integers(0, 2, (300, 5)),
                        answers(rng, true, [0.9] * 5))  # fmt: skip
        fit = diagnose_annotator_model(votes_of(said), seed)
        seen.append((fit.fit_p <= 0.02, fit.hard_people_p <= 0.02))
    by_pairs, by_people = np.mean(seen, axis=0)
    assert by_people >= 0.5 > by_pairs


def test_random_answers_carry_nothing():
    found = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        found.append(diagnose_annotator_model(votes_of(rng.integers(0, 2, (200, 3)))).agreement_p)
    assert sum(p <= 0.01 for p in found) <= 3  # 1 % of 40: four or more once in 1,000 runs
    # Nor do those that nearly always give the same answer: they agree, but not beyond that.
    lazy = (np.random.default_rng(9).random((400, 3)) < 0.05).astype(int)
    assert diagnose_annotator_model(votes_of(lazy)).agreement_p > 0.01


def test_many_annotators_with_few_people_in_common():
    rng = np.random.default_rng(3)
    said = np.full((300, 60), -1)
    own = answers(rng, rng.integers(0, 2, 300), [0.85] * 60)
    for person in range(300):
        who = rng.choice(60, 3, replace=False)
        said[person, who] = own[person, who]
    fit = diagnose_annotator_model(votes_of(said))
    assert fit.agreement_p < 0.01
    assert np.isnan(fit.fit_p)
    assert fit.labels_per_person == 3.0
    assert fit.people_per_annotator < 25
    said[said >= 0] = rng.integers(0, 2, (said >= 0).sum())
    assert diagnose_annotator_model(votes_of(said)).agreement_p > 0.01


def test_who_is_worse_than_chance():
    rng = np.random.default_rng(4)
    said = answers(rng, rng.integers(0, 3, 400), [0.9, 0.85, 0.8, 0.9, 0.1], groups=3)
    fit = diagnose_annotator_model(votes_of(said, 3))
    assert fit.worse_than_chance == [4]
    assert fit.accuracy[4] == pytest.approx(0.1, abs=0.05)


def test_people_without_answers_and_annotators_with_none():
    said = np.full((30, 3), -1)
    fit = diagnose_annotator_model(votes_of(said))
    assert np.isnan(fit.agreement_p)
    assert np.isnan(fit.accuracy).all()
    assert (fit.annotators, fit.labels_per_person, fit.people_per_annotator) == (0, 0.0, 0.0)
    assert fit.worst is None


def test_an_annotator_who_gives_both_labels_has_given_no_answer():
    rng = np.random.default_rng(5)
    true = rng.integers(0, 2, 200)
    votes = votes_of(answers(rng, true, [0.85, 0.85, 0.85]))
    fit = diagnose_annotator_model(votes)
    both = np.concatenate([votes, np.ones((200, 1, 2))], axis=1)
    more = diagnose_annotator_model(both)
    assert (more.annotators, more.labels_per_person) == (3, 3.0)
    assert np.isnan(more.accuracy[3])
    assert more.accuracy[:3].tolist() == pytest.approx(fit.accuracy.tolist())
    assert more.worse_than_chance == []
