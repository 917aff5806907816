"""Annotators who err independently, and who do not: what ``label_errors`` makes of either."""

from __future__ import annotations

import numpy as np

from isolux.analyses.label_errors.annotators import warn_of_unreliable_annotators
from isolux.analyses.label_errors.gaps import correct_gaps_by_annotators
from tests.laws._mislabelled import LEVEL, labelled, people_of, truth_of, world

RATES = (0.7, 0.9)


def _sure(right: float, g: int) -> np.ndarray:
    """Return a matrix of an annotator who is right so often, and wrong in all other ways alike."""
    return np.full((g, g), (1 - right) / (g - 1)) + np.eye(g) * (right - (1 - right) / (g - 1))


def _independent(*right: float):
    def said(rng, true, g):
        return np.stack([labelled(rng, true, _sure(r, g)) for r in right], axis=1)

    return said


def _copied(*right: float, noise: float = 0.0):
    """The second gives the first's answer, but for some that it gives anew."""

    def said(rng, true, g):
        own = _independent(*right)(rng, true, g)
        kept = rng.random(len(true)) >= noise
        own[kept, 1] = own[kept, 0]
        return own

    return said


def _misled(rng, true, g):
    """A third of the people are hard: five annotators are right for 55 % of them."""
    easy, hard = (_independent(*[r] * 5)(rng, true, g) for r in (0.97, 0.55))
    return np.where((rng.random(len(true)) < 0.3)[:, None], hard, easy)


def _guessed(rng, true, g):
    """All five annotators guess at a quarter of the people; of the others 95 % are right."""
    easy, guess = (_independent(*[r] * 5)(rng, true, g) for r in (0.95, 1 / g))
    return np.where((rng.random(len(true)) < 0.25)[:, None], guess, easy)


def _alike(rng, true, g):
    """Three in ten of the first group look like the second to everybody."""
    seen = np.where((true == 0) & (rng.random(len(true)) < 0.3), 1, true)
    return _independent(*[0.95] * 5)(rng, seen, g)


def _two_each(rng, true, g):
    """Six annotators, of whom each person has two: -1 elsewhere."""
    own = _independent(*[0.85] * 6)(rng, true, g)
    order = rng.random(own.shape).argsort(axis=1)
    return np.where(order < 2, own, -1)


KINDS = {
    "three, right for 85 %": _independent(0.85, 0.85, 0.85),
    "three, 90, 85 and 80 %": _independent(0.9, 0.85, 0.8),
    "five, 80 %": _independent(*[0.8] * 5),
    "five, one of them right for 20 %": _independent(0.85, 0.85, 0.85, 0.85, 0.2),
    "three, 65 %": _independent(0.65, 0.65, 0.65),
    "two, 90 and 70 %": _independent(0.9, 0.7),
    "six, two for each person": _two_each,
    "three, two copy": _copied(0.75, 0.75, 0.75),
    "three, two copy all but 5 %": _copied(0.75, 0.75, 0.75, noise=0.05),
    "four, two copy": _copied(0.75, 0.75, 0.75, 0.75),
    "five, two copy": _copied(*[0.8] * 5),
    "three, two of them right for 20 %": _independent(0.9, 0.2, 0.2),
    "three who answer at random": _independent(0.5, 0.5, 0.5),
    "five, 30 % of people are hard": _misled,
    "five, 30 % of a group look like the other": _alike,
    "five, 25 % of people are guessed": _guessed,
}
SOUND = list(KINDS)[:4]
BROKEN = [*list(KINDS)[5:14], "five, 25 % of people are guessed"]


def doubted(kind: str, *, worlds: int, replicates: int, people: int = 300) -> dict[str, object]:
    """Count what is corrected, doubted and refused, and how often corrected intervals hold."""
    truth, held, gaps, no, doubt = truth_of(RATES), [], [], 0, 0
    for seed in range(worlds):
        rng = np.random.default_rng([seed, 17, list(KINDS).index(kind)])
        true, score, _, _, cluster = world(rng, RATES, error=0.1, subjects=people, photos=1)
        said = KINDS[kind](rng, true, 2)
        votes = np.eye(2)[said] * (said >= 0)[:, :, None]
        found = warn_of_unreliable_annotators(votes, [f"a{k}" for k in range(said.shape[1])], seed)
        no, doubt = no + bool(found.impossible_reason), doubt + bool(found.caution_reasons)
        if found.impossible_reason:
            continue
        code = votes.sum(axis=1).argmax(axis=1)
        own = people_of(score, code, cluster, 2)
        # Of what is doubted the value alone is looked at.
        one = correct_gaps_by_annotators(
            own, votes, 2 if found.caution_reasons else replicates, LEVEL, seed
        )
        gaps.append(one.gap[0])
        if not found.caution_reasons:
            held.append(one.gap_low[0] <= truth <= one.gap_high[0])
    return {
        "annotators": kind, "true gap": truth,
        "corrected": float(np.nanmean(gaps)) if gaps else None,
        "not corrected, %": no / worlds, "doubtful, %": doubt / worlds,
        "ok, %": len(held) / worlds, "covered where ok, %": float(np.mean(held)) if held else None,
    }  # fmt: skip
