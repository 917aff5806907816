"""What the gaps at an equal mix can bear: their robustness values, from people's own scores.

Of metrics that are means of people's scores; of any other there is no residual to speak of, and no
value. The formulas are ``stats/confounding.py``.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.analyses.confounders.cases import Bearing, Case, number_of
from isolux.stats.confounding import strength_of_gap
from isolux.stats.design import IntArray
from isolux.stats.statistic import FloatArray

__all__ = ["bearing_of"]


def bearing_of(
    case: Case, s: int, scored: pl.DataFrame, weight: FloatArray | None = None
) -> Bearing | None:
    """Say how strong what was not annotated would have to be to take a gap away.

    Shapes: ``weight`` [n_units].
    """
    gap = case.gap_of(case.level[s])
    if case.pair is None or gap.value is None:
        return None
    known = scored.drop_nulls("value")
    sums = _sums(case, s, (known["unit"].to_numpy(), known["value"].to_numpy()), weight)
    held = case.of(s).mixed.compared[case.pair]
    everyone = case.layout.of_values(case.cells.people, s)
    people, total, square = (x[:, held] for x in sums)
    found = strength_of_gap(people, total, square, everyone[held])
    # The end nearer to 0; an interval that holds 0 bears nothing.
    end = 0.0 if gap.low is None or gap.high is None else max(gap.low, -gap.high, 0.0)
    bound = None if gap.low is None else found.robustness(end)
    return Bearing(
        number_of(found.robustness(gap.value)),
        None if bound is None else number_of(bound),
        number_of(found.score),
        number_of(found.group),
    )


def _sums(
    case: Case, s: int, scores: tuple[IntArray, FloatArray], weight: FloatArray | None
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Count people, and sum scores and their squares, of both groups at every value."""
    sensitive, strata = case.layout.sensitive, case.layout.strata[s]
    k = len(strata.values)
    score = np.full(len(strata.code), np.nan)
    score[scores[0]] = scores[1]
    mass = np.ones(len(score)) if weight is None else weight
    sums = np.zeros((3, 2, k))
    for side, place in enumerate(case.sides):
        theirs = sensitive.unit[sensitive.group == case.facts.judged[place]]
        theirs = theirs[(strata.code[theirs] >= 0) & np.isfinite(score[theirs])]
        code, own = strata.code[theirs], score[theirs]
        for i, part in enumerate((np.ones(len(own)), own, own**2)):
            sums[i, side] = np.bincount(code, mass[theirs] * part, minlength=k)
    return sums[0], sums[1], sums[2]
