"""A group in which nobody succeeds: its predictions are missing, or in other words.

A detector whose file lacks the pictures of one group finds nobody of it, and a group whose labels
are in another vocabulary is never right. Both read as the group that is served worst.
"""

from __future__ import annotations

import numpy as np

from isolux.core.info import PlausibilityInfo
from isolux.core.notes import Caution
from isolux.plausibility._audit_inputs import AuditInputs
from isolux.plausibility._unit_scores import (
    BoolArray,
    PersonScores,
    mask_attributes,
    read_unit_scores,
)
from isolux.stats.statistic import FloatArray

# A model that serves one person in ten of a group has no success among 20 in 12 of 100 samples,
# and among 60 in 2 of 1,000: where all others are mostly right, both are worth a look at the file.
_MIN_PEOPLE, _MIN_OTHER_SUCCESS = 20, 0.5
_MAX_SUCCESS = 0.05  # shapes of other people lie on a few of them

INFO = PlausibilityInfo(
    title="A group in which everyone fails",
    summary="The mean of the first metric in each group and outside it.",
    rule=f"Warns from {_MIN_PEOPLE} people on, where a group reaches {_MAX_SUCCESS:g} or less of "
    f"the way from the worst value to the best, and all others {_MIN_OTHER_SUCCESS:g} or more.",
)


def check(inputs: AuditInputs) -> list[Caution]:
    """Caution on each group of which hardly anyone scores above the worst, unlike all others."""
    cautions: list[Caution] = []
    for scores in read_unit_scores(inputs):
        success = _measure_success(scores)
        if success is None:
            continue
        is_scored = np.isfinite(success)
        for name, groups in mask_attributes(inputs).items():
            for group, members in groups.items():
                inside, outside = members & is_scored, ~members & is_scored
                n = int(scores.times[inside].sum())
                if n < _MIN_PEOPLE or not outside.any():
                    continue
                group_mean, other_mean = (
                    float(np.average(success[mask], weights=scores.times[mask]))
                    for mask in (inside, outside)
                )
                if group_mean <= _MAX_SUCCESS and other_mean >= _MIN_OTHER_SUCCESS:
                    cautions.append(_describe(scores, f"{name} {group!r}", n, inside, outside))
    return cautions


def _measure_success(scores: PersonScores) -> FloatArray | None:
    """Return scores from 0, the worst, to 1, or None where the metric has no ends."""
    metric = scores.metric
    if metric is None:
        return scores.score
    if (metric.low, metric.high) != (0.0, 1.0) or metric.direction == "none":
        return None
    return 1.0 - scores.score if metric.direction == "lower" else scores.score


def _describe(
    scores: PersonScores, group: str, n: int, inside: BoolArray, outside: BoolArray
) -> Caution:
    group_mean, other_mean = (scores.format(scores.mean(mask)) for mask in (inside, outside))
    title = scores.title[:1].upper() + scores.title[1:]
    return Caution(
        f"{title} of {scores.model!r} is {group_mean} for {n:,} people of {group}, and {other_mean}"
        " for all others. Are their predictions in the file, and in the same words?"
    )
