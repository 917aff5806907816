"""Equivalence tests: by how much the groups of an attribute differ at most, against a margin.

One row for each attribute and metric (kind ``max_difference_bound``): ``value`` is the largest
measured difference, 0 to ``high`` a one-sided interval of the largest true difference, so ``high``
is the smallest margin that could be claimed. With ``--margin`` there is a p-value: of the claim
that no two groups differ by more. The claims of an audit are a family of their own, corrected by
Holm.

"No difference was found" does not bound how large one may be. Here the null hypothesis is "some two
groups differ by at least a margin". For one pair these are two one-sided tests (TOST [1]_), by
inverting the pair's interval: z is the critical value at which it reaches the margin,
p = 1 - Phi(z). For all pairs of an attribute the largest p counts (intersection-union [2]_), which
needs no correction: the claim is made only where every pair allows it.

The smallest margin that could be claimed is the outermost of all pairs' one-sided bounds at
the audit's level.

References
----------
.. [1] Schuirmann, D. J. (1987). A comparison of the two one-sided tests procedure and the power
   approach for assessing the equivalence of average bioavailability. Journal of Pharmacokinetics
   and Biopharmaceutics 15(6), 657-680.
.. [2] Berger, R. L. and Hsu, J. C. (1996). Bioequivalence trials, intersection-union tests and
   equivalence confidence sets. Statistical Science 11(4), 283-319.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from isolux.core.spec import ComparisonSettings
from isolux.core.tables import Status
from isolux.disparity.attribute_measures import drop_unknown_groups_if_testable
from isolux.disparity.family import AttributeTests, ComparisonFamily, choose_max_workers
from isolux.disparity.rows import DisparityRows, RowStatus, build_disparity_rows, list_cautions
from isolux.groups.estimates import Estimates
from isolux.groups.interval_methods.noise_bias import NOISE_BIAS_REASON, has_noise_bias
from isolux.io.threads import map_in_threads
from isolux.stats.constants import MAX_Z
from isolux.stats.multiplicity import adjust_p_holm
from isolux.stats.null_distribution import COMPLEMENT
from isolux.stats.statistic import FloatArray, IntArray
from isolux.stats.test_inversion import Difference

_POINTS_PER_UNIT = 100.0  # ``--margin`` is in percentage points


@dataclass(frozen=True, slots=True)
class _EquivalenceClaim:
    """Equivalence of one attribute's groups on one metric; ``p`` is NaN without a margin."""

    attribute: str
    j: int
    pair: tuple[int, int]
    widest: float
    bound: float
    p: float
    flag: RowStatus | None


def build_equivalence_rows(
    estimates: Estimates, family: ComparisonFamily, spec: ComparisonSettings
) -> list[DisparityRows]:
    """Build a row for each attribute and metric of which two groups or more were compared."""

    def test_key(key: tuple[str, int]) -> _EquivalenceClaim:
        return _test_equivalence(
            estimates, spec, *key, drop_unknown_groups_if_testable(estimates, family.tested[key])
        )

    max_workers = choose_max_workers(tested.contrasts for tested in family.tested.values())
    claims = map_in_threads(test_key, family.tested, max_threads=max_workers)
    p = np.array([claim.p for claim in claims])
    # Claims of equivalence are a family of their own (docs/methods/uncertainty.md).
    adjusted = adjust_p_holm(p) if len(p) else p
    n_claims = int(np.isfinite(p).sum())
    margin = "" if spec.margin is None else f"{spec.margin:g} points"
    referenced = [tested.has_reference for tested in family.tested.values()]
    statement = (
        "no two groups differ" if not all(referenced) else "no group differs from its reference"
    )
    if any(referenced) and not all(referenced):
        statement += ", or no group from its reference,"
    name = f"claims that {statement} by more than {margin} (m = {n_claims}), by Holm"
    return [
        build_disparity_rows(
            estimates,
            claim.j,
            claim.attribute,
            "max_difference_bound",
            groups=(np.array([claim.pair[0]]), np.array([claim.pair[1]])),
            value=np.array([claim.widest]),
            low=np.array([0.0]),
            high=np.array([claim.bound]),
            method="one-sided, all pairs",
            p_value=np.array([claim.p]),
            p_adjusted=np.array([adjusted[k]]),
            test="two one-sided tests, all pairs" if np.isfinite(claim.p) else None,
            family=name if np.isfinite(claim.p) else None,
            flags=[claim.flag],
        )
        for k, claim in enumerate(claims)
    ]


def _test_equivalence(
    estimates: Estimates, spec: ComparisonSettings, attribute: str, j: int, tested: AttributeTests
) -> _EquivalenceClaim:
    first, second = _list_tested_pairs(tested)
    differences = tested.comparisons.compare_pairs(first, second)
    fraction = estimates.measures[j].is_fraction
    # A group without an interval leaves the largest difference unbounded.
    has_intervals = bool(np.isfinite(estimates.interval.low[tested.members, j]).all())
    # The margin is in percentage points, so it applies to fractions only.
    is_tested = spec.margin is not None and fraction and has_intervals
    upper = one_sided_bounds(differences, spec.level)
    # A pair without a bound may be the one that differs most.
    worst = int(np.argmax(np.where(np.isnan(upper), np.inf, upper)))
    flag = next(filter(None, list_cautions(estimates, j)[tested.members]), None)
    # How much noise adds to such values is unknown, so no equivalence is claimed.
    if has_noise_bias(estimates.measures[j]):
        flag = RowStatus(Status.NOISE_BIAS.value, NOISE_BIAS_REASON)
    return _EquivalenceClaim(
        attribute,
        j,
        (int(first[worst]), int(second[worst])),
        float(np.abs(differences.a - differences.b).max()),
        float(upper.max()) if has_intervals else float("nan"),
        equivalence_p_value(differences, (spec.margin or 0.0) / _POINTS_PER_UNIT)
        if is_tested
        else float("nan"),
        flag,
    )


def _list_tested_pairs(tested: AttributeTests) -> tuple[IntArray, IntArray]:
    contrasts = tested.contrasts[tested.contrasts[:, 1] != COMPLEMENT]
    return tested.members[contrasts[:, 0]], tested.members[contrasts[:, 1]]


_N_BISECTIONS = 50  # from a bracket of 16 to 1e-14


def one_sided_bounds(differences: Difference, level: float) -> FloatArray:
    """Return each pair's one-sided bound; the largest is the smallest margin to be claimed."""
    from scipy.special import ndtri

    return differences.outermost_bound(float(ndtri(level)))


def equivalence_p_value(differences: Difference, margin: float) -> float:
    """Return the p-value of the null that some pair differs by at least ``margin``."""
    from scipy.special import ndtr

    # A pair without a bound leaves the claim about all pairs undecided.
    if np.isnan(_largest_or_nan(_outer_bounds(differences, 1.0))):
        return float("nan")
    if (
        differences.proportion_differences is not None
    ):  # the interval is a score interval: z in closed form
        upper_z, lower_z = (
            differences.proportion_differences.z_statistics(margin),
            -differences.proportion_differences.z_statistics(-margin),
        )
        # The larger z of both one-sided tests, then the largest of all pairs (intersection-union).
        return float(ndtr(np.maximum(upper_z, lower_z).max()))
    z = _bisect_increasing(lambda z: _largest_or_nan(_outer_bounds(differences, z)), margin)
    return float(ndtr(-z))


def _outer_bounds(differences: Difference, z: float) -> FloatArray:
    """Return each pair's one-sided bound away from 0 at ``z``; for a negative z, towards 0."""
    gap = differences.a - differences.b
    if z == 0:
        return np.abs(gap)
    if z > 0:
        return differences.outermost_bound(z)
    # For a negative z, with p above 0.5, it is the other bound of the interval at -z.
    interval = differences.interval(-z)
    return np.asarray(np.where(gap >= 0, interval.low, -interval.high))


def _largest_or_nan(bounds: FloatArray) -> float:
    """Return the largest bound; NaN if any is NaN, or if there is none."""
    return float(np.max(bounds)) if len(bounds) else float("nan")


def _bisect_increasing(function: Callable[[float], float], target: float) -> float:
    """Find by bisection where an increasing function reaches ``target``, between -8 and 8."""
    low, high = -MAX_Z, MAX_Z
    if function(high) <= target:
        return high
    for _ in range(_N_BISECTIONS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if function(middle) <= target else (low, middle)
    return low
