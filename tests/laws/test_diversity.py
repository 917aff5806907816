"""Does the interval of a Vendi score hold, and what do group size and photos do to the score?

Two groups of people whose embeddings come from one distribution are equally diverse, whatever
their size. Worlds of subjects are drawn from it; the truth is the mean score of ``size`` subjects
drawn afresh. Beside: the score as published, of all photos, and a percentile bootstrap of it.
"""

from __future__ import annotations

import numpy as np
import pytest

from isolux.stats.diversity import rarefied_vendi_score, vendi_score
from tests.laws._figures import at_least, record, scaled

pytestmark = pytest.mark.law
WORLDS = scaled(1_000, 50)
WIDTH, KINDS = 64, 6
_RNG = np.random.default_rng(41)
CENTRES = _RNG.normal(size=(KINDS, WIDTH))
WEIGHTS = np.array([0.4, 0.25, 0.15, 0.1, 0.06, 0.04])  # rare kinds: a small draw misses them
SCALE = np.exp(-np.arange(WIDTH) / 30)


def photos(rng, subjects, each=1):
    """Draw ``each`` photos of subjects of six kinds, and whose they are."""
    own = CENTRES[rng.choice(KINDS, size=subjects, p=WEIGHTS)]
    own = own + 1.5 * rng.normal(size=(subjects, WIDTH)) * SCALE
    who = np.repeat(np.arange(subjects), each)
    return own[who] + 0.3 * rng.normal(size=(len(who), WIDTH)) * SCALE, who


def truth(size):
    rng = np.random.default_rng(size)
    scores = [vendi_score(photos(rng, size)[0]).value for _ in range(scaled(20_000, 1_500))]
    return float(np.exp(np.log(scores).mean()))


@pytest.mark.parametrize(
    ("subjects", "size", "each"), [(40, 20, 1), (120, 20, 1), (60, 30, 10), (400, 100, 1)]
)
def test_the_interval_of_as_many_subjects_holds(subjects, size, each):
    true = truth(size)
    inside = low = 0
    widths, raw, boot = [], [], 0
    for world in range(WORLDS):
        rng = np.random.default_rng([world, subjects])
        vectors, who = photos(rng, subjects, each)
        found = rarefied_vendi_score(vectors, who, size, seed=world)
        inside += found.low <= true <= found.high
        low += true > found.high
        widths.append(found.high - found.low)
        if world < WORLDS // 5:
            raw.append(vendi_score(vectors).value)
            boot += _bootstrapped(rng, vectors, who)
    row = {
        "subjects": subjects,
        "photos each": each,
        "subjects drawn": size,
        "true score": true,
        "interval covers %": inside / WORLDS,
        "of misses, too low %": low / max(WORLDS - inside, 1),
        "mean width": float(np.mean(widths)),
        "score of all photos": float(np.mean(raw)),
        "percentile bootstrap of it holds it %": float(boot / len(raw)),
    }
    record(f"diversity-cover-{subjects}-{size}-{each}", [row], worlds=WORLDS, replicates=50)
    error = np.sqrt(0.95 * 0.05 / WORLDS)
    # Draws of few of many: on the safe side.
    assert row["interval covers %"] > at_least(0.95, WORLDS, full=0.93 - 4 * error)
    assert row["score of all photos"] > true  # the score grows with the number of photos
    assert row["percentile bootstrap of it holds it %"] < 0.85  # copies are no diversity


def _bootstrapped(rng, vectors, who):
    """Tell whether 100 bootstraps' middle 95 % hold the score that was resampled."""
    n = who.max() + 1
    rows = [np.flatnonzero(who == s) for s in range(n)] if len(who) > n else None
    scores = []
    for _ in range(100):
        drawn = rng.integers(n, size=n)
        at = drawn if rows is None else np.concatenate([rows[s] for s in drawn])
        scores.append(vendi_score(vectors[at]).value)
    low, high = np.quantile(scores, [0.025, 0.975])
    return low <= vendi_score(vectors).value <= high


def test_groups_of_unequal_size_are_equally_diverse_when_as_many_are_drawn():
    ratios, raw = [], []
    for world in range(scaled(500, 20)):
        rng = np.random.default_rng([world, 9])
        small, large = photos(rng, 60), photos(rng, 600)
        drawn = [rarefied_vendi_score(*group, 30, seed=world).value for group in (small, large)]
        ratios.append(drawn[0] / drawn[1])
        raw.append(vendi_score(small[0]).value / vendi_score(large[0]).value)
    row = {
        "subjects": "60 and 600",
        "ratio of scores as published": float(np.mean(raw)),
        "ratio of 30 subjects each": float(np.mean(ratios)),
    }
    record("diversity-sizes", [row], worlds=len(raw), replicates=50)
    assert abs(row["ratio of 30 subjects each"] - 1.0) < 0.03
    assert row["ratio of scores as published"] < 0.85
