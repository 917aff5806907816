"""Log odds ratios of answers: how often their intervals hold the planted one, clusters or not.

``make laws`` draws 2,000 worlds a cell; the suite a few hundred, with wider bounds.
"""

from __future__ import annotations

import numpy as np
import pytest

from isolux.stats.log_odds import log_odds_ratio_with_interval
from tests.laws._figures import FULL, scaled

WORLDS = scaled(2000, 250)


def logit(p):
    return np.log(p / (1 - p))


def share_of_worlds_held(rate, other, subjects, photos, shared, *, within=False):
    """Draw worlds; a subject's photos get one answer with chance ``shared``, else each its own.

    ``within``: the photos of one subject are in both groups, half of them each.
    """
    draw = np.random.default_rng([int(1000 * rate), int(1000 * other), subjects, photos, within])
    truth, held = logit(rate) - logit(other), 0
    n = subjects * photos
    whose = np.repeat(np.arange(subjects), photos)
    for _ in range(WORLDS):
        inside = (np.arange(n) % 2 if within else whose % 2).astype(float)
        p = np.where(inside > 0, rate, other)
        alike = np.repeat(draw.random(subjects) < shared, photos)
        one = np.repeat(draw.random(subjects), photos)
        said = (np.where(alike, one, draw.random(n)) < p).astype(float)
        found = log_odds_ratio_with_interval(said, inside, whose)
        held += found.low <= truth <= found.high
    return held / WORLDS


@pytest.mark.parametrize(
    ("rate", "other"), [(0.3, 0.3), (0.3, 0.1), (0.05, 0.05), (0.9, 0.7), (0.02, 0.2)]
)
def test_of_independent_people(rate, other):
    held = share_of_worlds_held(rate, other, 200, 1, 0.0)
    assert held >= (0.94 if FULL else 0.91)


@pytest.mark.parametrize(("rate", "other"), [(0.3, 0.3), (0.4, 0.15), (0.8, 0.9)])
@pytest.mark.parametrize("within", [False, True])
def test_of_photos_of_the_same_people(rate, other, within):
    held = share_of_worlds_held(rate, other, 60, 6, 0.5, within=within)
    assert held >= (0.945 if FULL else 0.91)


@pytest.mark.parametrize(
    ("rate", "other", "subjects", "photos", "shared"),
    [(0.02, 0.2, 60, 6, 0.5), (0.05, 0.05, 20, 6, 0.5), (0.98, 0.9, 60, 6, 0.5),
     (0.3, 0.3, 60, 6, 1.0), (0.3, 0.1, 30, 20, 0.8)],
)  # fmt: skip
def test_of_rare_answers_few_people_and_photos_that_are_all_alike(
    rate, other, subjects, photos, shared
):
    """Where clusters with the rarer answer are few, their number widens the interval."""
    held = share_of_worlds_held(rate, other, subjects, photos, shared)
    assert held >= (0.945 if FULL else 0.91)
