"""Whether several annotators' answers can be what Dawid and Skene's model makes of them.

The model finds out who errs from who disagrees. That asks for three annotators or more, for answers
that agree more often than chance, for a majority that errs less than half of the time, and for
errors that have nothing to do with one another. Two who copy each other look like two who never
err; a majority that exchanges the groups looks like a minority that does. What the answers
themselves can tell of that is asked here.

The fit is asked of every two annotators: how often they agree, beside how often they would if the
model held. How far apart that is by chance, answers drawn from the fitted model and fitted again
say (a parametric bootstrap), since the fit itself draws the two together. Three annotators of two
groups have as many numbers as the model, and always fit.

References
----------
.. [1] Dawid, A. P. & Skene, A. M. (1979). Maximum likelihood estimation of observer error-rates
   using the EM algorithm. Applied Statistics 28(1), 20-28.
.. [2] Efron, B. & Tibshirani, R. J. (1993). An Introduction to the Bootstrap. Chapman & Hall,
   section 16.3.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.stats.annotators import Answers, dawid_skene_of_answers
from isolux.stats.constants import COPIED_ERRORS, MIN_ERRORS_OF_COPY, MIN_PEOPLE_LABELLED_TWICE
from isolux.stats.statistic import FloatArray, IntArray

_MOST_PEOPLE, _MOST_PAIRS = 3000, 300
_DRAWS = 99
_ENOUGH = 5
"""Draws that are as far apart as the answers, from which it is plain that these fit."""


@dataclass(frozen=True, slots=True)
class PairFit:
    """Two annotators, how often they agree, and how often they would if the model held."""

    first: int
    second: int
    people: int
    agree: float
    expected: float


@dataclass(frozen=True, slots=True)
class AnnotatorFit:
    """What the answers say of the model.

    Parameters
    ----------
    annotators : int
        Who has labelled people whom others have labelled too.
    labels_each : float
        Labels of a person, the mean over people who have one.
    people_each : float
        People whom an annotator has labelled, the median.
    agreement_p : float
        Of independent answers: small where annotators agree other than by chance. NaN: no person
        has two answers.
    fit_p : float
        Whether pairs agree as often as the model says; NaN: the answers cannot tell.
    worst : PairFit or None
        The pair whose agreement is farthest from the model's.
    right : [annotators] float
        The mean over groups of the chance to name a person's group; NaN: nothing to go by.
    worse_than_chance : list of int
        Annotators who name the group more seldom than by chance, for sure.
    agree : float
        The share of people on whom two agree, of the pair that agrees least; NaN: no pair.
    alone : (int, int) or None
        Two of three who hardly ever err by the model, while the third does: they may have copied.
    """

    annotators: int
    labels_each: float
    people_each: float
    agreement_p: float
    fit_p: float
    worst: PairFit | None
    right: FloatArray
    worse_than_chance: list[int]
    agree: float
    alone: tuple[int, int] | None


def annotator_fit(votes: FloatArray, seed: int = 0) -> AnnotatorFit:
    """Ask answers whether they can be independent ones about one truth.

    Shapes: ``votes`` [n, annotators, g].
    """
    rng = np.random.default_rng([seed, 29])
    scale = max(len(votes) / _MOST_PEOPLE, 1.0)
    if len(votes) > _MOST_PEOPLE:
        votes = votes[rng.choice(len(votes), _MOST_PEOPLE, replace=False)]
    # Who gave a person two labels alike often has given no answer that could agree.
    said, given = votes.argmax(axis=2), 2.0 * votes.max(axis=2) > votes.sum(axis=2)
    shared = given & (given.sum(axis=1, keepdims=True) > 1)
    pairs, groups = _pairs(given), votes.shape[2]
    fitted = _fitted(said, given, groups)
    right = np.diagonal(fitted.error, axis1=1, axis2=2).mean(axis=1)
    right = np.where(given.any(axis=0), right, np.nan)
    found = _agreements(said, given, pairs, fitted)
    everyone = int(shared.any(axis=0).sum())
    # Whether the answers have more to say than the model has numbers.
    can_tell = len(pairs) >= 3 and everyone >= 3 and (everyone, groups) != (3, 2)
    return AnnotatorFit(
        everyone,
        float(given.sum() / max(given.any(axis=1).sum(), 1)),
        float(np.median(given.sum(axis=0)[given.any(axis=0)])) * scale if given.any() else 0.0,
        _beyond_chance(said, given, pairs, groups),
        _fit_p(rng, given, fitted, found) if can_tell else float("nan"),
        max(found, key=_distance, default=None),
        right,
        _worse(fitted, right),
        min((pair.agree for pair in found), default=float("nan")),
        _alone(right, given, groups),
    )


@dataclass(frozen=True, slots=True)
class _Fitted:
    """Groups' shares ``[g]``, P(label | group) ``[a, g, l]``, and answers by group ``[a, g]``."""

    share: FloatArray
    error: FloatArray
    answers: FloatArray


def _fitted(said: IntArray, given: npt.NDArray[np.bool_], groups: int) -> _Fitted:
    """Fit the model to one answer of each annotator about each person."""
    item, who = (x.astype(np.int32) for x in np.nonzero(given))
    own = said[item, who].astype(np.int32)
    n, annotators = given.shape
    if not len(item):
        return _Fitted(
            np.full(groups, 1.0 / groups),
            np.full((annotators, groups, groups), 1.0 / groups),
            np.zeros((annotators, groups)),
        )
    chance = dawid_skene_of_answers(Answers(item, who, own, n, annotators, groups)).chance
    counts = np.zeros((annotators, groups, groups))
    np.add.at(counts.swapaxes(1, 2), (who, own), chance[item])
    smoothed = counts + 0.01
    error = smoothed / smoothed.sum(axis=2, keepdims=True)
    return _Fitted(chance[given.any(axis=1)].mean(axis=0), error, counts.sum(axis=2))


def _pairs(given: npt.NDArray[np.bool_]) -> list[tuple[int, int]]:
    """List the pairs who have labelled enough people both, those with most first."""
    both = given.T.astype(np.int64) @ given
    first, second = np.nonzero(np.triu(both >= MIN_PEOPLE_LABELLED_TWICE, 1))
    order = np.argsort(-both[first, second], kind="stable")[:_MOST_PAIRS]
    return list(zip(first[order].tolist(), second[order].tolist(), strict=True))


def _agreements(
    said: IntArray, given: npt.NDArray[np.bool_], pairs: list[tuple[int, int]], fitted: _Fitted
) -> list[PairFit]:
    found = []
    for a, b in pairs:
        both = given[:, a] & given[:, b]
        agree = float((said[both, a] == said[both, b]).mean())
        expected = float(fitted.share @ (fitted.error[a] * fitted.error[b]).sum(axis=1))
        found.append(PairFit(a, b, int(both.sum()), agree, expected))
    return found


def _distance(pair: PairFit) -> float:
    """Return by how many standard errors of independent people a pair is off."""
    spread = max(pair.expected * (1.0 - pair.expected), 1.0 / pair.people) / pair.people
    return abs(pair.agree - pair.expected) / float(np.sqrt(spread))


def _beyond_chance(
    said: IntArray, given: npt.NDArray[np.bool_], pairs: list[tuple[int, int]], groups: int
) -> float:
    """Test that answers are independent: by pairs, by the pair that says most, and by people."""
    from scipy.stats import chi2

    crowd = _crowd_beyond_chance(said, given, groups)
    if not pairs:
        return crowd
    least, total, of_total = 1.0, 0.0, 0
    for a, b in pairs:
        both = given[:, a] & given[:, b]
        cell = said[both, a] * groups + said[both, b]
        table = np.bincount(cell, minlength=groups * groups).reshape(groups, groups).astype(float)
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        if min(table.shape) < 2:
            continue
        expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
        statistic = float(((table - expected) ** 2 / expected).sum())
        freedom = (table.shape[0] - 1) * (table.shape[1] - 1)
        total, of_total = total + statistic, of_total + freedom
        least = min(least, float(chi2.sf(statistic, freedom)) * len(pairs))
    together = float(chi2.sf(total, of_total)) if of_total else 1.0
    return min(3.0 * min(least, together, crowd), 1.0)


def _crowd_beyond_chance(said: IntArray, given: npt.NDArray[np.bool_], groups: int) -> float:
    """Test the same without asking who they are, as of many annotators with few people in common.

    How many answers to one person agree, beside how many would if each annotator gave the same
    shares of answers, no matter about which person.
    """
    from scipy.stats import norm

    answers = np.eye(groups)[said] * given[:, :, None]  # [n, a, l]
    counts = answers.sum(axis=1)
    share = answers.sum(axis=0) / np.maximum(given.sum(axis=0), 1)[:, None]
    pairs = (given.sum(axis=1) * (given.sum(axis=1) - 1) / 2.0).sum()
    if pairs == 0:
        return float("nan")
    agree = float((counts * (counts - 1.0) / 2.0).sum())
    expected = ((given @ share) ** 2).sum() / 2.0 - (given @ (share**2)).sum() / 2.0
    spread = max(expected * (1.0 - expected / pairs), 1e-12)
    return float(norm.sf((agree - expected) / np.sqrt(spread)))


def _fit_p(
    rng: np.random.Generator, given: npt.NDArray[np.bool_], fitted: _Fitted, found: list[PairFit]
) -> float:
    """Hold the pairs' distances against those of answers that are drawn from the model."""
    groups, pairs = len(fitted.share), [(pair.first, pair.second) for pair in found]
    seen = sum(_distance(pair) ** 2 for pair in found)
    beyond = 0
    for draw in range(1, _DRAWS + 1):
        true = rng.choice(groups, size=len(given), p=fitted.share)
        chances = fitted.error[:, true].cumsum(axis=2)[:, :, :-1]
        drawn = (rng.random((*chances.shape[:2], 1)) > chances).sum(axis=2).T
        again = _agreements(drawn, given, pairs, _fitted(drawn, given, groups))
        beyond += sum(_distance(pair) ** 2 for pair in again) >= seen
        if beyond == _ENOUGH:
            return beyond / draw
    return (1.0 + beyond) / (_DRAWS + 1.0)


def _worse(fitted: _Fitted, right: FloatArray) -> list[int]:
    """List annotators who are surely right more seldom than chance: all at once, 2.5 %."""
    from scipy.special import ndtri

    groups = len(fitted.share)
    sure = -float(ndtri(0.025 / max(int(np.isfinite(right).sum()), 1)))
    n = np.maximum(fitted.answers, 1.0)
    spread = (0.25 / n).sum(axis=1) ** 0.5 / groups
    return [int(a) for a in np.flatnonzero(right + sure * spread < 1.0 / groups)]


def _alone(right: FloatArray, given: npt.NDArray[np.bool_], groups: int) -> tuple[int, int] | None:
    """Find two of three, judging two groups, who may have copied from each other."""
    who = np.flatnonzero(given.any(axis=0))
    if len(who) != 3 or groups != 2:
        return None
    order = who[np.argsort(-right[who], kind="stable")]
    wrong = 1.0 - right[order]
    # One who is wrong more often than not is another question.
    if not MIN_ERRORS_OF_COPY <= wrong[2] <= 0.5 or wrong[1] > COPIED_ERRORS * wrong[2]:
        return None
    first, second = sorted(order[:2].tolist())
    return first, second
