"""From scores to predicted classes: rules that set a threshold, and the sample it is set on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.notes import Caution
from isolux.stats.statistic import FloatArray
from isolux.stats.verification import lowest_threshold_at_far
from isolux.tasks._threshold import (
    caution_on_constant_outcome,
    caution_on_leakage,
    caution_on_rate_difference,
    parse_number,
    select_threshold_sample,
)

_VALID_FORMS = "a number, fpr=SHARE, fnr=SHARE or best-accuracy"
_RELATIVE_TOLERANCE = 1e-12
"""Relative; so that a rate of .01 of 100 people is one of them, in binary arithmetic too."""
_NO_THRESHOLD_QUESTION = "Do scores tie, or does none tell the classes apart?"
RuleKind = Literal["value", "fpr", "fnr", "best-accuracy"]


@dataclass(frozen=True, slots=True)
class ThresholdRule:
    """How a threshold is set: a given ``value``, a rate not to exceed, or the best accuracy."""

    kind: RuleKind
    number: float = math.nan

    @property
    def description(self) -> str:
        """The rule in words."""
        return {
            "value": "as given",
            "fpr": f"false positive rate of at most {self.number:g}",
            "fnr": f"false negative rate of at most {self.number:g}",
            "best-accuracy": "best accuracy",
        }[self.kind]

    def find_threshold(self, scores: FloatArray, positive: npt.NDArray[np.bool_]) -> float:
        """Find the threshold: units with at least this score get the positive class.

        Shapes: ``scores`` [m], ``positive`` [m].

        Examples
        --------
        One of two negatives may pass: not .3, but every score above .3 is positive.

        >>> scores, positive = np.array([0.9, 0.6, 0.3, 0.1]), np.array([True, False, False, True])
        >>> round(ThresholdRule("fpr", 0.5).find_threshold(scores, positive), 3)
        0.3
        >>> ThresholdRule("best-accuracy").find_threshold(scores, positive)
        0.9
        """
        if self.kind == "value":
            return self.number
        # A rate of 1/k can only be reached with k people or more.
        for rate_name, mask, membership in (("fpr", ~positive, "not of"), ("fnr", positive, "of")):
            min_people = (
                math.ceil((1.0 - _RELATIVE_TOLERANCE) / self.number)
                if self.kind == rate_name
                else 1
            )
            if int(mask.sum()) < min_people:
                raise SpecError(
                    f"too few people {membership} the positive class to set the threshold by",
                    expected=f"{min_people:,} or more with a score ({self.description})",
                    found=f"{int(mask.sum()):,}",
                    where="threshold",
                )
        if self.kind == "fpr":
            # The lowest threshold at which at most this share of negatives reaches it.
            return lowest_threshold_at_far(scores[~positive], self.number)
        if self.kind == "fnr":
            sorted_scores = np.sort(scores[positive])
            return float(
                sorted_scores[
                    # The scores below this one are the false negatives, at most this share of the
                    # positives.
                    int(np.floor(self.number * len(sorted_scores) * (1.0 + _RELATIVE_TOLERANCE)))
                ]
            )
        return _most_accurate_threshold(scores, positive)


def _most_accurate_threshold(scores: FloatArray, positive: npt.NDArray[np.bool_]) -> float:
    """Find the threshold with the best accuracy; of several, the highest."""
    order = np.argsort(-scores, kind="stable")
    sorted_scores = scores[order]
    # Correct minus incorrect if all scores down to each one are positive.
    net_correct = np.cumsum(np.where(positive[order], 1, -1))
    # Only between distinct scores: a threshold cannot divide tied ones.
    run_ends = np.append(
        np.flatnonzero(sorted_scores[1:] != sorted_scores[:-1]), len(sorted_scores) - 1
    )
    # argmax takes the first maximum, which is the highest threshold.
    best = int(np.argmax(net_correct[run_ends]))
    if net_correct[run_ends[best]] <= 0:  # the best is to give the class to no one
        return float(np.nextafter(sorted_scores[0], np.inf))
    return float(sorted_scores[run_ends[best]])


@dataclass(frozen=True, slots=True)
class Cutoff:
    """The rule, and the mask ``[n]`` of units that the threshold is set on, or None for all.

    ``leakage_cautions`` cautions about people who are in the sample and evaluated.
    """

    rule: ThresholdRule
    sample_mask: npt.NDArray[np.bool_] | None = None
    sample_description: str = ""
    leakage_cautions: tuple[Caution, ...] = ()


def read_cutoff(
    threshold: float | str | None,
    threshold_on: float | str | None,
    dataset: Dataset,
    instances: pl.DataFrame,
    seed: int,
) -> Cutoff | None:
    """Read the two settings; None where no threshold was requested."""
    rule = _parse_rule(threshold)
    if threshold_on is None:
        return None if rule is None else Cutoff(rule)
    if rule is None:
        raise SpecError(
            "threshold_on says on whom the threshold is set, and there is none to set",
            expected=f"threshold: {_VALID_FORMS}",
            found=f"threshold_on={threshold_on!r} alone",
        )
    if rule.kind == "value":
        raise SpecError(
            "a threshold that is given is not set on anyone",
            expected="threshold_on with fpr=SHARE, fnr=SHARE or best-accuracy",
            found=f"threshold={rule.number:g} and threshold_on={threshold_on!r}",
        )
    in_sample, description = select_threshold_sample(threshold_on, dataset, instances, seed)
    return Cutoff(
        rule,
        in_sample,
        description,
        tuple(caution_on_leakage(dataset, instances, in_sample, description)),
    )


def _parse_rule(threshold: float | str | None) -> ThresholdRule | None:
    """Parse the setting ``threshold``; None where it is not set."""
    if threshold is None:
        return None
    name, equals, text = str(threshold).strip().partition("=")
    name = name.strip().lower().replace("_", "-")
    share, number = parse_number(text), parse_number(name)
    if name == "best-accuracy" and not equals:
        return ThresholdRule("best-accuracy")
    # At 0 or 1 every or no score would be accepted, whatever the scores are.
    if name in ("fpr", "fnr") and 0.0 < share < 1.0:
        return ThresholdRule("fpr" if name == "fpr" else "fnr", share)
    if not equals and math.isfinite(number) and not isinstance(threshold, bool):
        return ThresholdRule("value", number)
    raise SpecError(
        "the threshold cannot be used",
        expected=_VALID_FORMS,
        found=repr(threshold),
        where="threshold",
    )


def threshold_for_model(
    cutoff: Cutoff,
    scores: FloatArray,
    positive: npt.NDArray[np.bool_],
    is_valid: npt.NDArray[np.bool_],
) -> float:
    """Find one model's threshold on the sample's units that have a score and a truth."""
    rows = is_valid if cutoff.sample_mask is None else is_valid & cutoff.sample_mask
    return cutoff.rule.find_threshold(scores[rows], positive[rows])


def caution_on_threshold(
    cutoff: Cutoff,
    model: str,
    scores: FloatArray,
    positive: npt.NDArray[np.bool_],
    threshold: float,
    *,
    classes: tuple[str, str],
    sign: float,
) -> list[Caution]:
    """Caution where a threshold decides nothing, or where rates differ from those of its sample.

    Shapes: ``scores`` [n], ``positive`` [n].
    """
    in_sample, has_score = cutoff.sample_mask, ~np.isnan(scores)
    sample_mask = np.zeros(len(scores), np.bool_) if in_sample is None else in_sample
    for class_mask, class_name in (
        ((~positive, classes[1]), (positive, classes[0])) if in_sample is not None else ()
    ):
        is_in_class = has_score & class_mask
        cautions = caution_on_rate_difference(
            scores[is_in_class] >= threshold,
            sample_mask[is_in_class],
            subject=f"people of class {class_name!r}",
            source=cutoff.sample_description,
            model=model,
        )
        # A difference of scale explains a constant outcome as well, so one caution is enough.
        if cautions:
            return cautions
    evaluated_scores = scores if in_sample is None else scores[~in_sample]
    options = {} if cutoff.rule.kind == "value" else {"question": _NO_THRESHOLD_QUESTION}
    return caution_on_constant_outcome(
        model,
        sign * evaluated_scores,
        sign * threshold,
        passes_below=sign < 0,
        none_phrase=f"no answer is {classes[0]!r}",
        all_phrase=f"every answer is {classes[0]!r}",
        **options,
    )


# 17 digits identify every double.
_MIN_DIGITS, _MAX_DIGITS = 6, 17


def format_threshold(
    threshold: float, scores: npt.NDArray[np.float64], *, passes_below: bool = False
) -> str:
    """Format a threshold in the fewest digits that divide these scores as it does.

    Shapes: ``scores`` [n].

    Examples
    --------
    >>> format_threshold(0.12345678, np.array([0.1234561, 0.12345678, 0.9]))
    '0.1234567'
    >>> format_threshold(0.5, np.array([0.1, 0.9]))
    '0.5'
    """
    if not np.isfinite(threshold):
        return f"{threshold:g}"
    finite_scores = scores[np.isfinite(scores)]
    n_passing = np.count_nonzero(
        finite_scores <= threshold if passes_below else finite_scores >= threshold
    )
    # Decimal arithmetic: rounding in binary could move the threshold past a score.
    exact = Decimal(threshold)
    for digits in range(_MIN_DIGITS, _MAX_DIGITS):
        unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
        # Rounded to the side on which every score that reaches the threshold still does.
        rounded = exact.quantize(unit, ROUND_CEILING if passes_below else ROUND_FLOOR)
        for text in (f"{threshold:.{digits}g}", f"{float(rounded):.{digits}g}"):
            parsed = float(text)
            if (
                np.count_nonzero(
                    finite_scores <= parsed if passes_below else finite_scores >= parsed
                )
                == n_passing
            ):
                return text
    return repr(float(threshold))
