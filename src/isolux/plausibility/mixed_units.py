"""Numbers in two units: those of one group, or a part that follows no group.

A group whose ages are in months is 12 times as far off as any other, and reads as the one that is
served worst. Where two files of different units were joined, every mean and threshold is wrong.
"""

from __future__ import annotations

import numpy as np

from isolux.core.info import PlausibilityInfo
from isolux.core.notes import Caution
from isolux.plausibility._audit_inputs import AuditInputs
from isolux.plausibility._group_units import caution_on_groups_in_other_units
from isolux.plausibility._model_numbers import (
    FACTORS,
    ModelNumbers,
    divide,
    match_factor,
    read_numbers,
)
from isolux.stats.statistic import FloatArray

_MIN_NUMBERS, _MIN_SHARE = 20, 0.02
# Held against the truth, a number is in another unit if dividing it brings it near; most numbers
# that are far off are of that one unit, and people of all kinds have them: a model that calls
# toddlers of 2 and 3 thirty years old is wrong by a factor near 12, too.
_MAX_NEAR_RATIO, _MIN_FAR_RATIO = 1.5, 3.0
_MIN_SHARE_OF_FAR, _MIN_CORRELATION, _MIN_SPREAD = 0.8, 0.5, 0.5
# Without a truth: both parts have one shape. Two honest clusters have it for one ratio in six.
_QUANTILES, _TOLERANCE = (0.5, 0.75, 0.9), 1.1
_TOLERANCE_OF_SCORES = 1.4  # scores up to 1 and above: hardly any honest file has both

INFO = PlausibilityInfo(
    title="Numbers in two units",
    summary="The size and spread of each group's numbers against those of all others; then the "
    "ratio of each number to the truth; without one, the numbers above and below their widest gap "
    "(of scores: above and below 1).",
    rule="Warns where a group's size and spread both differ by one round factor (12, 100, 255, "
    "365.25, 1000 or its inverse), from 20 people in the group and outside it on; without a truth "
    f"where three quantiles differ by 100, 255 or 1000. Else where {_MIN_NUMBERS} numbers and 2 % "
    "or more are 12, 100, 255, 365.25 or 1000 times as large as the truth, and "
    "most others near it; without a truth where three quantiles of both parts differ by "
    "one such factor.",
)


def check(inputs: AuditInputs) -> list[Caution]:
    """Caution on groups whose numbers are in another unit, or on models with some such numbers."""
    cautions = caution_on_groups_in_other_units(inputs)
    if cautions:
        return cautions
    for numbers in read_numbers(inputs):
        split = _split_by_size if numbers.truth is None else _split_by_truth
        found_factor = split(numbers)
        if found_factor is not None:
            factor, n = found_factor
            standard = "" if numbers.truth is None else ", held against the truth,"
            size = max(factor, 1 / factor)
            comparison = "large" if factor > 1 else "small"
            cautions.append(
                Caution(
                    f"{n:,} of {len(numbers.values):,} numbers of {numbers.model!r}{standard} are"
                    f" about {size:g} times as {comparison} as the others: are two units mixed"
                    f" ({FACTORS[size]})?"
                )
            )
    return cautions


def _split_by_truth(numbers: ModelNumbers) -> tuple[float, int] | None:
    """Find a factor by which some numbers are off, and how many; None: there is none."""
    truth = np.asarray(numbers.truth)
    is_positive = (truth > 0) & (numbers.values > 0)
    truths = np.log(truth[is_positive])
    ratios = np.log(numbers.values[is_positive]) - truths
    is_far = np.abs(ratios) > np.log(_MIN_FAR_RATIO)
    for factor in (f for size in FACTORS for f in (size, 1 / size)):
        is_other = np.abs(ratios - np.log(factor)) <= np.log(_MAX_NEAR_RATIO)
        n = int(is_other.sum())
        if n < max(_MIN_NUMBERS, _MIN_SHARE * len(truth), _MIN_SHARE_OF_FAR * is_far.sum()):
            continue
        if is_other.all() or _spread(truths[is_other]) < _MIN_SPREAD * _spread(truths):
            continue
        answers = truths + ratios
        if np.corrcoef(truths[is_other], answers[is_other])[0, 1] >= _MIN_CORRELATION:
            return factor, n
    return None


def _spread(values: FloatArray) -> float:
    low, high = np.quantile(values, (0.25, 0.75))
    return float(high - low)


def _split_by_size(numbers: ModelNumbers) -> tuple[float, int] | None:
    """Find a part of the numbers that is a multiple of the rest, and how many; None: no part."""
    sizes = np.sort(np.abs(numbers.values[numbers.values != 0]))
    if len(sizes) < 2 * _MIN_NUMBERS:
        return None
    gap = int(np.argmax(np.diff(np.log(sizes[_MIN_NUMBERS - 1 : 1 - _MIN_NUMBERS])))) + _MIN_NUMBERS
    cuts: list[tuple[int, float, tuple[float, ...]]] = [
        (gap, _TOLERANCE, (12.0, 100.0, 255.0, 1000.0))
    ]
    if numbers.is_score:
        # Scores from 0 to 1 and percent lie side by side; others are a hundredfold apart.
        low, middle, high = np.quantile(sizes, (0.25, 0.5, 0.75))
        cuts += [
            (int((sizes <= bound).sum()), _TOLERANCE_OF_SCORES, (100.0, 255.0))
            for bound in (1.0, 10.0 * middle, middle / 10.0, (low * high) ** 0.5)
        ]
    for cut, tolerance, factors in cuts:
        low, high = sizes[:cut], sizes[cut:]
        if min(len(low), len(high)) < max(_MIN_NUMBERS, _MIN_SHARE * len(sizes)):
            continue
        ratios = divide(np.quantile(high, _QUANTILES), np.quantile(low, _QUANTILES))
        factor = match_factor(ratios, factors, tolerance)
        is_apart = numbers.is_score or (factor and high[0] / low[-1] >= factor**0.5)
        if factor is not None and is_apart:
            # The smaller part is the one to look for in the file.
            return (factor, len(high)) if len(high) <= len(low) else (1 / factor, len(low))
    return None
