"""From scores to answers: the threshold from which a score is an answer, and on whom it is set."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.stats.statistic import FloatArray
from isolux.stats.verification import threshold_at_far
from isolux.tasks._threshold import (
    other_rates,
    out_of_reach,
    parse_number,
    part_to_set_on,
    shared_between,
)
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.notes import Caution

_FORM = "a number, fpr=SHARE, fnr=SHARE or best-accuracy"
_ROUNDING = 1e-12
"""A rate of .01 of 100 people is one of them, whatever .01 is in binary."""
_NONE_FITS = "Do scores tie, or does none tell the classes apart?"
_BLOCK = 1 << 20
Kind = Literal["value", "fpr", "fnr", "best-accuracy"]


@dataclass(frozen=True, slots=True)
class Rule:
    """How a threshold is found: a ``value`` as it is, a rate that may not be passed, or neither."""

    kind: Kind
    number: float = math.nan

    @property
    def words(self) -> str:
        """Say what was asked for."""
        return {
            "value": "as given",
            "fpr": f"false positive rate of at most {self.number:g}",
            "fnr": f"false negative rate of at most {self.number:g}",
            "best-accuracy": "best accuracy",
        }[self.kind]

    def found(self, scores: FloatArray, positive: npt.NDArray[np.bool_]) -> float:
        """Find the threshold: a unit is given the positive class from it on.

        Shapes: ``scores`` [m], ``positive`` [m].

        Examples
        --------
        One of two negatives may pass: not .3, but every score above .3 is positive.

        >>> scores, positive = np.array([0.9, 0.6, 0.3, 0.1]), np.array([True, False, False, True])
        >>> round(Rule("fpr", 0.5).found(scores, positive), 3)
        0.3
        >>> Rule("best-accuracy").found(scores, positive)
        0.9
        """
        if self.kind == "value":
            return self.number
        for kind, rows, of in (("fpr", ~positive, "not of"), ("fnr", positive, "of")):
            needed = math.ceil((1.0 - _ROUNDING) / self.number) if self.kind == kind else 1
            if int(rows.sum()) < needed:
                raise SpecError(
                    f"too few people {of} the positive class to set the threshold by",
                    expected=f"{needed:,} or more with a score ({self.words})",
                    found=f"{int(rows.sum()):,}",
                    where="threshold",
                )
        if self.kind == "fpr":
            return threshold_at_far(scores[~positive], self.number)
        if self.kind == "fnr":
            rising = np.sort(scores[positive])
            return float(rising[int(np.floor(self.number * len(rising) * (1.0 + _ROUNDING)))])
        return _most_accurate(scores, positive)


def _most_accurate(scores: FloatArray, positive: npt.NDArray[np.bool_]) -> float:
    """Find the score from which most answers are right; of several, the highest."""
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    gain = np.cumsum(np.where(positive[order], 1, -1))
    ends = np.append(np.flatnonzero(falling[1:] != falling[:-1]), len(falling) - 1)
    best = int(np.argmax(gain[ends]))
    if gain[ends[best]] <= 0:  # best is to give the class to no one
        return float(np.nextafter(falling[0], np.inf))
    return float(falling[ends[best]])


@dataclass(frozen=True, slots=True)
class Cutoff:
    """The rule, and the units that it is applied to: ``[n]`` of the dataset, or None for all.

    ``shared`` cautions about people who are on both sides.
    """

    rule: Rule
    on: npt.NDArray[np.bool_] | None = None
    where: str = ""
    shared: tuple[Caution, ...] = ()


def read_cutoff(
    threshold: float | str | None,
    threshold_on: float | str | None,
    dataset: Dataset,
    instances: pl.DataFrame,
    seed: int,
) -> Cutoff | None:
    """Read the two settings; None where no threshold was asked for."""
    rule = _rule(threshold)
    if threshold_on is None:
        return None if rule is None else Cutoff(rule)
    if rule is None:
        raise SpecError(
            "threshold_on says on whom the threshold is set, and there is none to set",
            expected=f"threshold: {_FORM}",
            found=f"threshold_on={threshold_on!r} alone",
        )
    if rule.kind == "value":
        raise SpecError(
            "a threshold that is given is not set on anyone",
            expected="threshold_on with fpr=SHARE, fnr=SHARE or best-accuracy",
            found=f"threshold={rule.number:g} and threshold_on={threshold_on!r}",
        )
    on, words = part_to_set_on(threshold_on, dataset, instances, seed)
    return Cutoff(rule, on, words, tuple(shared_between(dataset, instances, on, words)))


def _rule(threshold: float | str | None) -> Rule | None:
    if threshold is None:
        return None
    name, equals, text = str(threshold).strip().partition("=")
    name = name.strip().lower().replace("_", "-")
    share, number = parse_number(text), parse_number(name)
    if name == "best-accuracy" and not equals:
        return Rule("best-accuracy")
    if name in ("fpr", "fnr") and 0.0 < share < 1.0:
        return Rule("fpr" if name == "fpr" else "fnr", share)
    if not equals and math.isfinite(number) and not isinstance(threshold, bool):
        return Rule("value", number)
    raise SpecError(
        "the threshold cannot be used", expected=_FORM, found=repr(threshold), where="threshold"
    )


def set_on(
    cutoff: Cutoff,
    scores: FloatArray,
    positive: npt.NDArray[np.bool_],
    known: npt.NDArray[np.bool_],
) -> float:
    """Find one model's threshold among the units that have a score and a truth."""
    rows = known if cutoff.on is None else known & cutoff.on
    return cutoff.rule.found(scores[rows], positive[rows])


def on_reach(
    cutoff: Cutoff,
    model: str,
    scores: FloatArray,
    positive: npt.NDArray[np.bool_],
    at: float,
    *,
    classes: tuple[str, str],
    sign: float,
) -> list[Caution]:
    """Caution where a threshold parts no one who is judged, or parts them otherwise than the rest.

    Shapes: ``scores`` [n], ``positive`` [n].
    """
    on, known = cutoff.on, ~np.isnan(scores)
    held_on = np.zeros(len(scores), np.bool_) if on is None else on
    for kind, what in ((~positive, classes[1]), (positive, classes[0])) if on is not None else ():
        held = known & kind
        told = other_rates(
            scores[held] >= at,
            held_on[held],
            what=f"people of class {what!r}",
            where=cutoff.where,
            model=model,
        )
        if told:
            return told
    judged = scores if on is None else scores[~on]
    settings = {} if cutoff.rule.kind == "value" else {"ask": _NONE_FITS}
    return out_of_reach(
        model,
        sign * judged,
        sign * at,
        falling=sign < 0,
        none=f"no answer is {classes[0]!r}",
        every=f"every answer is {classes[0]!r}",
        **settings,
    )


_FEWEST, _MOST = 6, 17


def parting(threshold: float, scores: npt.NDArray[np.float64], *, falling: bool = False) -> str:
    """Write a threshold so that, read back, it parts these scores as it does.

    Shapes: ``scores`` [n].

    Examples
    --------
    >>> parting(0.12345678, np.array([0.1234561, 0.12345678, 0.9]))
    '0.1234567'
    >>> parting(0.5, np.array([0.1, 0.9]))
    '0.5'
    """
    if not np.isfinite(threshold):
        return f"{threshold:g}"
    known = scores[np.isfinite(scores)]
    passing = np.count_nonzero(known <= threshold if falling else known >= threshold)
    exact = Decimal(threshold)
    for digits in range(_FEWEST, _MOST):
        unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
        rounded = exact.quantize(unit, ROUND_CEILING if falling else ROUND_FLOOR)
        for text in (f"{threshold:.{digits}g}", f"{float(rounded):.{digits}g}"):
            at = float(text)
            if np.count_nonzero(known <= at if falling else known >= at) == passing:
                return text
    return repr(float(threshold))
