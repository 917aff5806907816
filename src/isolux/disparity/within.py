"""How far apart the groups of an attribute are at most, and whether that is within a margin.

One row for each attribute and metric (kind ``within``): ``value`` is the widest gap that was
measured, 0 to ``high`` a one-sided interval of the widest gap that there is, so ``high`` is the
smallest margin that could be claimed. With ``--margin`` there is a p-value: of the claim that no
two groups differ by more. The claims of an audit are a family of their own, corrected by Holm.

Claims of sameness: at most so far apart are groups.

"No difference was found" says nothing of how large one may be. Here the question is turned round:
the hypothesis that is rejected is "some two groups are at least a margin apart". For one pair these
are two one-sided tests (TOST), read from the pair's own interval: at which reach z does it touch
the margin, p = 1 - Phi(z). For all pairs of an attribute the largest p counts (intersection-union),
which needs no correction: the claim is made only where every pair allows it.

The smallest margin that could be claimed is the farthest end of all pairs' one-sided 95 % bounds.

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

from isolux.disparity.family import Family, Tested, at_once
from isolux.disparity.rows import Rows, rows_of
from isolux.disparity.whole import of_known
from isolux.groups.estimates import Estimates
from isolux.groups.interval_methods.noisy import ENLARGED, is_enlarged
from isolux.io.threads import in_threads
from isolux.stats.deviates import Difference
from isolux.stats.multiplicity import holm
from isolux.stats.nulls import REST
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.spec import Comparing
from isolux.vocabulary.tables import Status

_POINTS = 100.0


@dataclass(frozen=True, slots=True)
class _Claim:
    """One attribute's groups on one metric; ``p`` is NaN where no margin is asked about."""

    attribute: str
    j: int
    pair: tuple[int, int]
    widest: float
    bound: float
    p: float
    status: str
    why: str | None


def within_rows(estimates: Estimates, family: Family, spec: Comparing) -> list[Rows]:
    """Return a row for each attribute and metric of which two groups or more were compared."""

    def claim_of(key: tuple[str, int]) -> _Claim:
        return _claim(estimates, spec, *key, of_known(estimates, family.tested[key]))

    most = at_once(tested.contrasts for tested in family.tested.values())
    claims = in_threads(claim_of, family.tested, most=most)
    p = np.array([claim.p for claim in claims])
    adjusted = holm(p) if len(p) else p
    asked = int(np.isfinite(p).sum())
    margin = "" if spec.margin is None else f"{spec.margin:g} points"
    referenced = [tested.referenced for tested in family.tested.values()]
    what = "no two groups differ" if not all(referenced) else "no group differs from its reference"
    if any(referenced) and not all(referenced):
        what += ", or no group from its reference,"
    name = f"claims that {what} by more than {margin} (m = {asked}), by Holm"
    return [
        rows_of(
            estimates,
            claim.j,
            claim.attribute,
            "within",
            groups=(np.array([claim.pair[0]]), np.array([claim.pair[1]])),
            value=np.array([claim.widest]),
            low=np.array([0.0]),
            high=np.array([claim.bound]),
            method="one-sided, all pairs",
            p_value=np.array([claim.p]),
            p_adjusted=np.array([adjusted[k]]),
            test="two one-sided tests, all pairs" if np.isfinite(claim.p) else None,
            family=name if np.isfinite(claim.p) else None,
            status=[claim.status],
            reason=[claim.why],
        )
        for k, claim in enumerate(claims)
    ]


def _claim(estimates: Estimates, spec: Comparing, attribute: str, j: int, tested: Tested) -> _Claim:
    from scipy.special import ndtri

    first, second = _pairs(tested)
    apart = tested.compared.pairs(first, second)
    fraction = estimates.measures[j].fraction
    shown = bool(np.isfinite(estimates.interval.low[tested.members, j]).all())
    asked = spec.margin is not None and fraction and shown
    upper = apart.farthest(float(ndtri(spec.level)))  # as ``largest_bound``, of which pair
    worst = int(np.argmax(np.where(np.isnan(upper), np.inf, upper)))
    edge = (estimates.status[tested.members, j] == Status.BOUNDARY.value).any()
    reasons = [r for r in estimates.reason[tested.members, j] if r]
    if is_enlarged(estimates.measures[j]):
        edge, reasons = True, [ENLARGED]
    return _Claim(
        attribute,
        j,
        (int(first[worst]), int(second[worst])),
        float(np.abs(apart.a - apart.b).max()),
        float(upper.max()) if shown else float("nan"),
        sameness_p(apart, (spec.margin or 0.0) / _POINTS) if asked else float("nan"),
        (Status.BOUNDARY if edge else Status.OK).value,
        str(reasons[0]) if edge and reasons else None,
    )


def _pairs(tested: Tested) -> tuple[IntArray, IntArray]:
    kept = tested.contrasts[tested.contrasts[:, 1] != REST]
    return tested.members[kept[:, 0]], tested.members[kept[:, 1]]


_FURTHEST = 8.0
_HALVINGS = 50


def largest_bound(apart: Difference) -> float:
    """Return the smallest margin of which it could be claimed that no pair differs by more."""
    from scipy.special import ndtri

    return _largest(apart.farthest(float(ndtri(0.95))))


def sameness_p(apart: Difference, margin: float) -> float:
    """Test that some pair is at least ``margin`` apart, against that none is."""
    from scipy.special import ndtr

    if np.isnan(largest_bound(apart)):
        return float("nan")
    if apart.gaps is not None:  # whose interval touches the margin where its deviate says
        above, below = apart.gaps.deviates(margin), -apart.gaps.deviates(-margin)
        return float(ndtr(np.maximum(above, below).max()))
    z = _where(lambda z: _largest(_bounds(apart, z)), margin)
    return float(ndtr(-z))


def _bounds(apart: Difference, z: float) -> FloatArray:
    """Return the end of each pair's one-sided bounds farther from 0; of a negative z, towards 0."""
    gap = apart.a - apart.b
    if z == 0:
        return np.abs(gap)
    if z > 0:
        return apart.farthest(z)
    ends = apart.interval(-z)
    return np.asarray(np.where(gap >= 0, ends.low, -ends.high))


def _largest(bounds: FloatArray) -> float:
    """Return the largest; NaN if one is not known, or if there is none."""
    return float(np.max(bounds)) if len(bounds) else float("nan")


def _where(rising: Callable[[float], float], height: float) -> float:
    """Find where a rising function passes a height, between -8 and 8."""
    low, high = -_FURTHEST, _FURTHEST
    if rising(high) <= height:
        return high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        low, high = (middle, high) if rising(middle) <= height else (low, middle)
    return low
