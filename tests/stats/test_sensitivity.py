"""Robustness values: published ones, their definition, and worlds with a hidden cause."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.stats.confounding import robustness_from_stratum_sums, robustness_value


def test_published_values():
    """Cinelli & Hazlett's Table 1 (Darfur): 13.9 % of the estimate, 7.6 % of its interval.

    t = 4.18 of 783 degrees of freedom; the bound takes t* = 1.963 of 782 away first.
    """
    f = 4.18 / 783**0.5
    assert 100 * robustness_value(f) == pytest.approx(13.9, abs=0.05)
    assert 100 * robustness_value(f - 1.963 / 782**0.5) == pytest.approx(7.6, abs=0.05)


@pytest.mark.parametrize("f", [1e-6, 0.01, 0.3, 1.0, 20.0, 300.0])
def test_its_definition(f):
    r = robustness_value(f)
    assert 0 < r < 1
    assert r / np.sqrt(1 - r) == pytest.approx(f, rel=1e-6)


def test_ends():
    assert robustness_value(0.0) == 0.0
    assert robustness_value(1e9) == pytest.approx(1.0)


def biased(rng, k=3):
    """A world with a hidden cause u of group and score: the bias, and what u explains of both."""
    at = rng.dirichlet(np.ones(2 * k) * 3).reshape(k, 2)  # P(e, u)
    group = rng.uniform(0.15, 0.85, (k, 2))  # P(first | e, u)
    mean = rng.uniform(0.1, 0.9, (2, k, 2))  # E[score | group, e, u]
    p = np.stack([at * group, at * (1 - group)])  # P(g, e, u)
    short = (p * mean).sum(axis=2) / p.sum(axis=2)
    q = at.sum(axis=1)
    long_gap = float((at * (mean[0] - mean[1])).sum())
    short_gap = float((q * (short[0] - short[1])).sum())
    seen = float((p.sum(axis=2) * short * (1 - short)).sum())
    all_seen = float((p * mean * (1 - mean)).sum())
    alpha_short = float((q**2 / p.sum(axis=2)).sum())
    alpha = float((at**2 / p).sum())
    found = robustness_from_stratum_sums(
        p.sum(axis=2), (p * mean).sum(axis=2), (p * mean).sum(axis=2), q
    )
    return found, short_gap - long_gap, 1 - all_seen / seen, 1 - alpha_short / alpha


def test_a_hidden_cause_never_does_more_than_the_bound():
    """Scores of 0 and 1, so a sum of squares is a sum; the bound is met almost in some worlds."""
    rng = np.random.default_rng(1)
    ratios = []
    for _ in range(3000):
        found, bias, of_score, of_group = biased(rng)
        bound = found.scale * np.sqrt(of_score * of_group / (1 - of_group))
        assert abs(bias) <= bound + 1e-12
        ratios.append(abs(bias) / bound)
        # What is weaker on both sides than the gap's robustness value cannot take the gap away.
        if max(of_score, of_group) < found.robustness_value_of_gap(0.1):
            assert abs(bias) < 0.1
    assert max(ratios) > 0.98, max(ratios)


def test_the_values_themselves_by_hand():
    """Two values, groups 30 : 10 and 10 : 30, all of the first value wrong and the second right.

    Values explain all of the score; of the groups' variance (.25) .1875 is left: a quarter.
    """
    people = np.array([[30.0, 10.0], [10.0, 30.0]])
    right = np.array([[0.0, 10.0], [0.0, 30.0]])
    found = robustness_from_stratum_sums(people, right, right, np.array([40.0, 40.0]))
    assert (found.score_share_explained, found.group_share_explained) == (1.0, pytest.approx(0.25))
    assert found.scale == 0.0
    assert (found.robustness_value_of_gap(0.1), found.robustness_value_of_gap(0.0)) == (1.0, 0.0)


def test_nothing_to_judge_by():
    none = np.zeros((2, 0))
    found = robustness_from_stratum_sums(none, none, none, np.zeros(0))
    assert np.isnan(
        [
            found.scale,
            found.score_share_explained,
            found.group_share_explained,
            found.robustness_value_of_gap(0.1),
        ]
    ).all()
