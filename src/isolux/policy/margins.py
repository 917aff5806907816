"""The margins that a proposed policy asks about: what people of this number can decide."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isolux.core.formatting import shorten_name
from isolux.disparity.attribute_measures import list_ordered_pairs
from isolux.disparity.comparisons import build_comparisons
from isolux.groups.estimates import Estimates
from isolux.groups.unknown_values import UNKNOWN
from isolux.policy.comparisons import split_groups_by_min_counts
from isolux.policy.evaluation import PolicyInputs
from isolux.stats.cluster_sums import IntArray

LEVEL, POWER = 0.95, 0.8
MAX_ATTRIBUTES = 3
"""Attributes with a rule that is not commented out."""


@dataclass(frozen=True, slots=True)
class GapMargin:
    """The margin that equal groups would keep, and the widest gap now, with its lower bound."""

    margin: float
    widest_gap: float
    widest_gap_low: float
    pair: tuple[str, str]
    unit: str


def n_standard_errors_of_margin(n_cases: int, spread: float = 1.0) -> float:
    """Return the standard errors of a margin: quantiles of the level and of the power, summed."""
    from scipy.special import ndtri

    return float(ndtri(LEVEL) + spread * ndtri(1.0 - (1.0 - POWER) / max(n_cases, 1)))


def compute_gap_margin(
    inputs: PolicyInputs, name: str, attribute: str, *, among_large: bool
) -> GapMargin | None:
    """Compute the margin and the widest gap of an attribute; None: a group is too small."""
    estimates, unit = inputs.estimates, ""
    cases: list[tuple[IntArray, IntArray, int]] = []
    for j, measure in enumerate(estimates.measures):
        if measure.metric != name or (
            measure.label is not None and _has_measure_over_all_classes(estimates, name)
        ):
            continue
        rows = np.array(
            [
                g
                for g in estimates.attribute_rows(attribute)
                if UNKNOWN not in estimates.groups[g].values
            ],
            dtype=np.int64,
        )
        decidable, small = split_groups_by_min_counts(estimates, j, rows, inputs.min_counts)
        if (small or len(decidable) < 2) and not among_large:
            return None
        if len(decidable) < 2:
            continue
        cases.append((*list_ordered_pairs(decidable), j))
        unit = measure.info.unit
    pairs = sum(len(first) for first, _, _ in cases)
    if not pairs:
        return None
    from scipy.special import ndtri

    z, margin, widest, low, widest_pair = (
        n_standard_errors_of_margin(pairs),
        0.0,
        -1.0,
        0.0,
        ("", ""),
    )
    # The rules share what the level leaves out, and the pairs of a rule its part.
    z_of_failure = float(ndtri(1.0 - (1.0 - LEVEL) / (pairs * (MAX_ATTRIBUTES + 1))))
    for first, second, j in cases:
        differences = build_comparisons(estimates, attribute, j).compare_pairs(first, second)
        gap, interval = differences.a - differences.b, differences.interval(z)
        margin = max(margin, float(np.nanmax(np.asarray(interval.high) - gap)))
        k = int(np.nanargmax(gap))
        if gap[k] > widest:
            widest = float(gap[k])
            low = float(np.asarray(differences.interval(z_of_failure).low)[k])
            names = [
                shorten_name(estimates.groups[int(pair_rows[k])].name)
                for pair_rows in (first, second)
            ]
            widest_pair = (names[0], names[1])
    return GapMargin(margin, widest, low, widest_pair, unit)


def _has_measure_over_all_classes(estimates: Estimates, name: str) -> bool:
    return any(m.metric == name and m.label is None for m in estimates.measures)
