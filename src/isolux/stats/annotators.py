"""What is likely true of items that several annotators judged, and how often each errs.

Dawid & Skene (1979), "Maximum likelihood estimation of observer error-rates using the EM
algorithm", Applied Statistics 28:20-28: every annotator has a confusion matrix. Whitehill et al.
(2009), "Whose vote should count more", NIPS 22 (GLAD): every annotator has a skill and every item
a difficulty. Neither knows the truth: annotators who share a mistake are believed. Dawid & Skene's
EM leaps as Varadhan & Roland (2008), "Simple and globally convergent methods for accelerating the
convergence of any EM algorithm", Scandinavian Journal of Statistics 35:335-353, have it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.stats.statistic import FloatArray

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Answers:
    """Answers, one row each, numbered from 0.

    Parameters
    ----------
    item, who, said : [m] int32
        The item, the annotator, the answer.
    items, annotators, classes : int
        How many there are of each.
    """

    item: Codes
    who: Codes
    said: Codes
    items: int
    annotators: int
    classes: int


@dataclass(frozen=True, slots=True)
class Fitted:
    """What is likely true, and how often each annotator errs.

    Parameters
    ----------
    chance : [items, classes] float
        Of each class; rows sum to 1. An item without answers has the classes' shares.
    right : [annotators] float
        The share of an annotator's answers that are likely right; NaN: none.
    settled : bool
        Whether the fit stopped for having settled, not for having run out of rounds.
    """

    chance: FloatArray
    right: FloatArray
    settled: bool


def answer_shares(answers: Answers) -> FloatArray:
    """Give each item's share of each answer; 0 where it has none."""
    votes = np.bincount(
        answers.item.astype(np.int64) * answers.classes + answers.said,
        minlength=answers.items * answers.classes,
    ).reshape(answers.items, answers.classes)
    return np.asarray(votes / np.maximum(votes.sum(axis=1, keepdims=True), 1.0))


def dawid_skene_of_answers(
    answers: Answers,
    *,
    weights: FloatArray | None = None,
    start: FloatArray | None = None,
    rounds: int = 2000,
    close: float = 1e-6,
) -> Fitted:
    """Fit every annotator's confusion matrix, and give each item's chance of every class.

    Shapes: ``weights`` [items], ``start`` [items, classes].
    """
    own = np.ones(answers.items) if weights is None else weights
    chance = np.array(answer_shares(answers) if start is None else start)
    step = _em_step(answers, own, chance)
    at = _Point(_first_counts(answers, own, chance), own @ chance)
    settled = False
    for _ in range(rounds // 3 + 1):
        once, _, _ = step(at)
        twice, moved, likelihood = step(once)
        if moved < close:
            settled = True
            break
        at = _ahead(at, once, twice, likelihood, step)
    return Fitted(chance, _right(answers, chance, own), settled)


@dataclass(frozen=True, slots=True)
class _Point:
    """Where EM stands: soft counts of answers ``[annotators × classes, classes]`` and classes."""

    counts: FloatArray
    share: FloatArray

    def plus(self, first: _Point, once: float, second: _Point, twice: float) -> _Point:
        return _Point(
            self.counts + once * first.counts + twice * second.counts,
            self.share + once * first.share + twice * second.share,
        )

    def length(self) -> float:
        return float(np.sqrt((self.counts**2).sum() + (self.share**2).sum()))


_SMOOTH = 0.01  # of an answer, in every cell of a confusion matrix
_LEAP = 64.0  # how many rounds' way, at most, is leapt at once
_Step = Callable[[_Point], tuple[_Point, float, float]]


def _first_counts(answers: Answers, own: FloatArray, chance: FloatArray) -> FloatArray:
    from isolux.stats._annotator_kernels import add_confusions

    starts, cell = _by_item(answers)
    counts = np.full((answers.annotators * answers.classes, answers.classes), _SMOOTH)
    add_confusions(chance, starts, cell, own, counts)
    return counts


def _by_item(answers: Answers) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    counted = np.bincount(answers.item, minlength=answers.items)
    starts = np.concatenate([[0], np.cumsum(counted)]).astype(np.int32)
    cell = answers.who * np.int32(answers.classes) + answers.said
    if (np.diff(answers.item) < 0).any():
        cell = cell[np.argsort(answers.item, kind="stable")]
    return starts, cell


def _em_step(answers: Answers, own: FloatArray, chance: FloatArray) -> _Step:
    """Make one round of EM: from a point to the next, how far chances moved, and how likely it was.

    ``chance`` is written anew by each round.
    """
    from isolux.stats._annotator_kernels import one_round

    starts, cell = _by_item(answers)

    def step(at: _Point) -> tuple[_Point, float, float]:
        shaped = at.counts.reshape(answers.annotators, answers.classes, answers.classes)
        total = shaped.sum(axis=1, keepdims=True)
        error = np.divide(shaped, total, out=np.zeros_like(shaped), where=total > 0)
        log_share = np.log(np.maximum(at.share / at.share.sum(), 1e-300))
        log_error = np.log(np.maximum(error, 1e-300)).reshape(at.counts.shape)
        counts = np.full_like(at.counts, _SMOOTH)
        moved, likely = one_round(log_share, log_error, starts, cell, own, chance, counts)
        return _Point(counts, own @ chance), moved, likely + _SMOOTH * float(log_error.sum())

    return step


def _ahead(at: _Point, once: _Point, twice: _Point, likelihood: float, step: _Step) -> _Point:
    """Leap to where two rounds of EM are heading, if that is likelier than where the first led.

    SQUAREM's third scheme (Varadhan & Roland 2008); a leap is followed by a round of EM.
    """
    first = once.plus(at, -1.0, at, 0.0)
    second = twice.plus(once, -2.0, at, 1.0)
    size, bend = first.length(), second.length()
    length = min(size / bend, _LEAP) if bend > 0 else 1.0
    if length <= 1:
        return twice
    leap = at.plus(first, 2 * length, second, length**2)
    leap = _Point(np.maximum(leap.counts, _SMOOTH), np.maximum(leap.share, 1e-9))
    landed, _, there = step(leap)
    return landed if there >= likelihood else twice


def _right(answers: Answers, chance: FloatArray, weights: FloatArray) -> FloatArray:
    weight = weights[answers.item]
    likely = np.bincount(
        answers.who, chance[answers.item, answers.said] * weight, answers.annotators
    )
    given = np.bincount(answers.who, weight, answers.annotators)
    shares: FloatArray = np.full(answers.annotators, np.nan)
    np.divide(likely, given, out=shares, where=given > 0)
    return shares


def glad(
    answers: Answers,
    *,
    weights: FloatArray | None = None,
    start: FloatArray | None = None,
    rounds: int = 100,
    close: float = 1e-4,
) -> Fitted:
    """Fit a skill of every annotator and a difficulty of every item.

    Shapes: ``weights`` [items], ``start`` [items, classes].
    Both have normal priors, skills with mean 1 and log eases with mean 1, each with variance 1 (as
    in the paper's section 3).
    """
    own = np.ones(answers.items) if weights is None else weights
    chance = answer_shares(answers) if start is None else start
    at = np.ones(answers.annotators + answers.items)  # skills, then log eases, at their priors
    settled = False
    for _ in range(rounds):
        at = _best_skills(answers, chance, own, at)
        right = _chance_right(answers, at)
        wrong = np.log(np.maximum(1 - right, 1e-300) / max(answers.classes - 1, 1))
        share = own @ chance
        logs = np.tile(np.log(np.maximum(share / share.sum(), 1e-300)), (answers.items, 1))
        logs += np.bincount(answers.item, wrong, answers.items)[:, None]
        index = answers.item.astype(np.int64) * answers.classes + answers.said
        gain = np.log(np.maximum(right, 1e-300)) - wrong
        logs += np.bincount(index, gain, logs.size).reshape(logs.shape)
        new = np.exp(logs - logs.max(axis=1, keepdims=True))
        new /= new.sum(axis=1, keepdims=True)
        moved = float(np.abs(new - chance).max(initial=0.0))
        chance = new
        if moved < close:
            settled = True
            break
    return Fitted(chance, _right(answers, chance, own), settled)


def _chance_right(answers: Answers, at: FloatArray) -> FloatArray:
    skill, ease = at[: answers.annotators], np.exp(np.minimum(at[answers.annotators :], 10.0))
    return np.asarray(1 / (1 + np.exp(-np.clip(skill[answers.who] * ease[answers.item], -30, 30))))


def _best_skills(
    answers: Answers, chance: FloatArray, weights: FloatArray, at: FloatArray
) -> FloatArray:
    """Climb to the skills and eases that make the answers likeliest, given the chances."""
    from scipy.optimize import minimize

    likely = chance[answers.item, answers.said]
    weight = weights[answers.item]
    n = answers.annotators

    def loss(x: FloatArray) -> tuple[float, FloatArray]:
        right = _chance_right(answers, x)
        ease = np.exp(np.minimum(x[n:], 10.0))
        per_row = likely * np.log(right) + (1 - likely) * np.log1p(-np.minimum(right, 1 - 1e-15))
        slope = weight * (likely - right)
        gradient = np.concatenate(
            [
                np.bincount(answers.who, slope * ease[answers.item], n),
                np.bincount(answers.item, slope * x[answers.who], answers.items) * ease,
            ]
        )
        prior = 0.5 * ((x[:n] - 1) ** 2).sum() + 0.5 * (weights * (x[n:] - 1) ** 2).sum()
        pull = np.concatenate([x[:n] - 1, weights * (x[n:] - 1)])
        return float(prior - (weight * per_row).sum()), pull - gradient

    found = minimize(loss, at, jac=True, method="L-BFGS-B", options={"maxiter": 25})
    return np.asarray(found.x)
