"""How the widest gap of an attribute changes from one model to another.

A gap (largest less smallest value) is never below 0 and grows with noise, so the model that is
measured worse seems to have the larger one. Each model's gap is therefore shrunk to what noise
leaves of the groups' spread (tau over the standard deviation), and bounded with all pairs at once
at half the error; the change of the gap lies between the differences of these bounds.
"""

from __future__ import annotations

import math

import numpy as np

from isolux.disparity.family import UNTESTED, Tested
from isolux.disparity.formulas import value_range
from isolux.disparity.rows import Rows, doubts_of, either, rows_of
from isolux.disparity.whole import among, both_ways, range_interval
from isolux.groups.chance_added import ENLARGED, is_enlarged
from isolux.groups.estimates import Estimates
from isolux.stats.design import IntArray
from isolux.stats.dispersion import noise_corrected_sd
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.spec import Comparing
from isolux.vocabulary.tables import Status

__all__ = ["gap_rows"]


def gap_rows(
    estimates: Estimates,
    spec: Comparing,
    pair: tuple[int, int],
    groups: IntArray,
    tests: dict[tuple[str, int], Tested],
) -> list[Rows]:
    """Return how much larger or smaller each attribute's range is under the second model."""
    frames = []
    half = spec.model_copy(update={"level": 1.0 - (1.0 - spec.level) / 2.0})
    a, b = pair
    for attribute in estimates.domain_of:
        of_b, of_a = (tests.get((attribute, j)) for j in (b, a))
        rows = np.intersect1d(estimates.members(attribute), groups)
        if len(rows) < 2 or of_b is None or of_a is None:
            continue
        value, low, high, why = _gap_of_both(estimates, half, pair, rows, (of_b, of_a))
        known, sure = math.isfinite(value), Status.OK if why is None else Status.BOUNDARY
        frames.append(
            rows_of(
                estimates, a, attribute, "gap_difference", groups=(None, None),
                value=np.array([value]), low=np.array([low]), high=np.array([high]),
                method="noise-corrected, simultaneous pairs", reason=[why],
                status=[(sure if known else Status.UNDEFINED).value],
            )
        )  # fmt: skip
    return frames


def _gap_of_both(
    estimates: Estimates,
    spec: Comparing,
    pair: tuple[int, int],
    rows: IntArray,
    tests: tuple[Tested, Tested],
) -> tuple[float, float, float, str | None]:
    """Return the second model's range less the first's, its ends, and what is in doubt or amiss."""
    a, b = pair
    doubts = either(doubts_of(estimates, a)[rows], doubts_of(estimates, b)[rows])
    doubt = next(filter(None, doubts), None)
    if is_enlarged(estimates.measures[a]):
        return math.nan, math.nan, math.nan, ENLARGED
    (low_b, high_b, gap_b), (low_a, high_a, gap_a) = (
        _gap(estimates, among(one, rows), j, spec) for one, j in zip(tests, (b, a), strict=True)
    )
    low, high = low_b - high_a, high_b - low_a
    if math.isfinite(low) and math.isfinite(high):
        return gap_b - gap_a, low, high, doubt
    bare = np.isnan(estimates.interval.low[rows][:, [a, b]]).any()
    return math.nan, math.nan, math.nan, doubt if bare else UNTESTED


def _gap(
    estimates: Estimates, tested: Tested, j: int, spec: Comparing
) -> tuple[float, float, float]:
    """Bounds of one model's range, and the range less its noise."""
    from scipy.special import ndtri

    low, high = range_interval(estimates, tested, j, spec, log=False)
    values = estimates.value[tested.members, j]
    spread = float(np.std(values, ddof=1))
    errors = np.diag(estimates.standard_error[tested.members, j] ** 2)
    pairs = tested.compared.pairs(*both_ways(tested.members))
    covariance = _covariance(errors, pairs.standard_error, tested.members)
    # A flawless group's errors are not nothing: what its interval's width implies.
    ends = estimates.interval
    width = ends.high[tested.members, j] - ends.low[tested.members, j]
    reach = float(ndtri(0.5 + spec.level / 2.0))
    implied = np.nan_to_num((width / (2.0 * reach)) ** 2)
    covariance += np.diag(np.where(np.diagonal(covariance) > 0, 0.0, implied))
    tau = noise_corrected_sd(values, covariance, spec.level).tau
    share = tau / spread if spread > 0 else 0.0
    return low, high, float(value_range(values)) * share


def _covariance(errors: FloatArray, apart: FloatArray, members: IntArray) -> FloatArray:
    """Covariance of values whose own and whose differences' standard errors are known."""
    n = len(members)
    square = np.zeros((n, n))
    square[~np.eye(n, dtype=bool)] = apart**2
    own = np.diagonal(errors)
    full = (own[:, None] + own[None, :] - square) / 2.0
    np.fill_diagonal(full, own)
    return np.asarray((full + full.T) / 2.0)
