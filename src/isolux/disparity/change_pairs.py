"""Two groups' changes from one model to another, held against each other.

The change of the widest gap depends on every pair of groups in both models, and its interval is
long. Whether the gap of two *given* groups changed is a simpler question: the one group's change
less the other's. Its interval is put together from those of the two changes (MOVER), and the test
asks at which reach it touches 0, as for any difference (``stats/deviates.py``). Groups that
share clusters are correlated: replicates resample the same clusters for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isolux.disparity.family import SCORE, UNTESTED, adjust
from isolux.disparity.rows import Rows, doubts_of, either, rows_of
from isolux.groups.estimates import Estimates
from isolux.stats.design import IntArray
from isolux.stats.deviates import Difference, Reach, deviates, two_sided
from isolux.stats.intervals import Interval, percentile
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.spec import Comparing
from isolux.vocabulary.tables import Status

__all__ = ["Changed", "change_pairs"]

_KIND = "change_difference"
_FLAT = 1e-12
"""A spread of replicates below this is rounding: neither group's change varies."""
_TIES = 1e-9
"""The share of a spread by which equal replicates are told apart."""
_PAIRS = 256
"""Pairs whose replicates are laid out at once."""


@dataclass(frozen=True, slots=True)
class Changed:
    """One metric of both models: its measures, the groups judged in both, and their changes."""

    a: int
    b: int
    groups: IntArray
    apart: Difference


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The pairs of one attribute's groups on one metric, the worse change first."""

    attribute: str
    change: Changed
    first: IntArray  # places in ``change.groups``
    second: IntArray
    apart: Difference
    t: FloatArray


def change_pairs(
    estimates: Estimates, spec: Comparing, changes: Sequence[Changed], z: float
) -> tuple[list[Rows], tuple[str, int]]:
    """Compare the changes of every two groups of an attribute.

    Parameters
    ----------
    estimates : Estimates
        Of both models' scores on the same people.
    spec : Comparing
    changes : sequence of Changed
    z : float
        The reach of the intervals.

    Returns
    -------
    list of Rows, (str, int)
        Kind ``change_difference``: the change (second model less first) of ``group_a`` less that of
        ``group_b``, who fared better. p-values are adjusted over all pairs and metrics: the
        family's name and size.
    """
    null_max = np.zeros(spec.replicates)
    found: list[_Pairs] = []
    for change in changes:
        # Which model is the first decides nothing but signs.
        one, two = sorted((change.a, change.b))
        drawn = estimates.replicates[change.groups][:, [one, two]]
        moved = np.asarray(drawn[:, 0] - drawn[:, 1], dtype=np.float64)
        found += _of_change(estimates, spec, change, moved, null_max, z)
    size = int(sum(np.isfinite(pairs.t).sum() for pairs in found))
    family = f"changes of all pairs of groups and metrics (m = {size:,})"
    t = np.concatenate([pairs.t for pairs in found]) if found else np.empty(0)
    adjusted = adjust(t, two_sided(t), null_max, spec.correction)
    cuts = np.cumsum([len(pairs.t) for pairs in found])[:-1]
    rows = [
        _rows(estimates, spec, pairs, p, family, z)
        for pairs, p in zip(found, np.split(adjusted, cuts), strict=False)
    ]
    return rows, (family, size)


def _of_change(
    estimates: Estimates,
    spec: Comparing,
    change: Changed,
    moved: FloatArray,
    null_max: FloatArray,
    z: float,
) -> list[_Pairs]:
    """Lay out the pairs of each attribute, and add what chance does to the family's largest."""
    place = {int(g): k for k, g in enumerate(change.groups)}
    drawn = _normal(moved, np.random.default_rng([spec.seed, min(change.a, change.b)]))
    found = []
    for attribute in estimates.domain_of:
        own = [place[g] for g in estimates.members(attribute).tolist() if g in place]
        if len(own) < 2:
            continue
        one, two = (np.array(own)[k] for k in np.triu_indices(len(own), 1))
        value = change.apart.a - change.apart.b
        swap = (value[one] - value[two]) * estimates.measures[change.a].sign > 0
        first, second = np.where(swap, two, one), np.where(swap, one, two)
        correlation = _correlations(drawn, first, second, null_max)
        apart = _apart(change.apart, first, second, correlation)
        still = (moved.std(axis=1) < _FLAT)[np.stack([first, second])].all(axis=0)
        # Where nothing varies, what the two changes' own intervals tell is all there is to test.
        still &= np.abs(apart.a - apart.b) <= _FLAT
        t = np.where(still, np.nan, deviates(apart, (z,)))
        found.append(_Pairs(attribute, change, first, second, apart, t))
    return found


def _correlations(
    drawn: tuple[FloatArray, FloatArray], first: IntArray, second: IntArray, null_max: FloatArray
) -> FloatArray:
    """Correlate two groups' changes over replicates; ``null_max`` grows by the largest |t|."""
    centred, spread = drawn
    covariance = centred @ centred.T / centred.shape[1]
    product = spread[first] * spread[second]
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.where(product > _FLAT**2, covariance[first, second] / product, 0.0)
    own = np.diagonal(covariance)
    apart = np.sqrt(np.maximum(own[first] + own[second] - 2.0 * covariance[first, second], 0.0))
    varies = np.flatnonzero(apart > _FLAT)
    single = centred.astype(np.float32)  # of a largest |t| seven digits are enough
    scale = (1.0 / np.where(apart > _FLAT, apart, 1.0)).astype(np.float32)
    for start in range(0, len(varies), _PAIRS):
        part = varies[start : start + _PAIRS]
        t = (single[first[part]] - single[second[part]]) * scale[part, None]
        np.maximum(null_max, np.maximum(t.max(axis=0), -t.min(axis=0)), out=null_max)
    return found


def _normal(moved: FloatArray, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    """Bring replicates to a normal distribution of their own spread, by their ranks.

    Tests are on the scale of normal deviates; replicates of rare changes have a few far values,
    which would make the family's largest |t| larger than chance does. Equal ones are put into an
    order by chance.
    """
    from scipy.special import ndtri

    # A replicate without a value tells nothing, as one in the middle does.
    centred = np.nan_to_num(moved - np.nanmean(moved, axis=1, keepdims=True))
    spread = centred.std(axis=1)
    order = np.argsort(centred + _TIES * spread[:, None] * rng.random(centred.shape), axis=1)
    n = centred.shape[1]
    scores = np.empty_like(centred)
    np.put_along_axis(scores, order, ndtri((np.arange(n) + 0.5) / n)[None], axis=1)
    return scores / scores.std(axis=1, keepdims=True) * spread[:, None], spread


def _apart(
    changes: Difference, first: IntArray, second: IntArray, correlation: FloatArray
) -> Difference:
    """Compare changes, which are differences themselves, as any two values with intervals are."""
    value = changes.a - changes.b
    one, two = value[first], value[second]

    def ends(z: Reach) -> tuple[Interval, Interval]:
        own = changes.of_ends(*changes.ends(z), z)
        return tuple(Interval(own.low[..., k], own.high[..., k]) for k in (first, second))  # type: ignore[return-value]

    error = np.hypot(changes.standard_error[first], changes.standard_error[second])
    freedom = np.minimum(changes.freedom[first], changes.freedom[second])
    return Difference(one, two, ends, lambda _: correlation, error, freedom)


def _rows(
    estimates: Estimates,
    spec: Comparing,
    pairs: _Pairs,
    adjusted: FloatArray,
    family: str,
    z: float,
) -> Rows:
    change = pairs.change
    first, second = change.groups[pairs.first], change.groups[pairs.second]
    value = pairs.apart.a - pairs.apart.b
    doubts = either(doubts_of(estimates, change.a), doubts_of(estimates, change.b))
    why = either(doubts[first], doubts[second])
    why[np.isnan(pairs.t) & (np.abs(value) > _FLAT)] = UNTESTED
    ends = pairs.apart.interval(z)
    if spec.interval == "percentile":
        moved = estimates.replicates[:, change.b] - estimates.replicates[:, change.a]
        ends = percentile(moved[first] - moved[second], spec.level)
    # Where a group has too few clusters for an interval, no change of it has one.
    own = estimates.interval.low[:, change.a] + estimates.interval.low[:, change.b]
    bare = np.isnan(own[first] + own[second])
    low, high = (np.where(bare, np.nan, end) for end in (ends.low, ends.high))
    return rows_of(
        estimates, change.a, pairs.attribute, _KIND, groups=(first, second),
        value=value, low=low, high=high,
        method="percentile" if spec.interval == "percentile" else "paired, MOVER twice",
        p_value=two_sided(pairs.t), p_adjusted=adjusted, test=SCORE, family=family,
        status=[Status.BOUNDARY.value if w else Status.OK.value for w in why],
        reason=why.tolist(),
    )  # fmt: skip
