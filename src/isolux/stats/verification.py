"""What a verifier gets right and wrong: rates over pairs.

A genuine pair is two samples of one identity, an impostor pair of two (ISO/IEC 19795-1). Rates are
"true" rates: false non-matches per genuine pair, false matches per impostor pair. The statistics
are functions of pairs and of their clusters' weights (``statistic.PairStatistic``). How far groups'
rates at one common threshold differ is in ``both_error_rates``.

Pairs counted by their clusters, so that a total over all pairs is a sum over few terms.

A rate divides by the weight of all genuine or all impostor pairs. On a replicate a pair weighs the
product of its clusters' weights, so pairs of the same two clusters weigh the same.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from isolux.stats.statistic import FloatArray, Pairs, PairStatistic


@dataclass(frozen=True, slots=True)
class Tally:
    """How many pairs there are of each two clusters: what a sum over all pairs rests on.

    ``count[p]`` pairs of the clusters ``first[i]`` and ``second[p]``, p from ``starts[i]`` to
    ``starts[i + 1]``.
    """

    first: npt.NDArray[np.int32]
    starts: npt.NDArray[np.int64]
    second: npt.NDArray[np.int32]
    count: FloatArray

    def total(self, weights: FloatArray) -> FloatArray:
        """Weight of all pairs for each replicate: ``[r]``."""
        from isolux.stats._pair_kernels import counted_totals

        return np.asarray(counted_totals(self.first, self.starts, self.second, self.count, weights))


@dataclass(frozen=True, slots=True)
class TalliedPairs(Pairs):
    """Pairs whose totals are summed by clusters: 25 pairs of two people's photos are one term."""

    genuine_tally: Tally | None = None
    impostor_tally: Tally | None = None


def tallied(pairs: Pairs) -> TalliedPairs:
    """Count the pairs of each two clusters, once for all replicates."""
    return TalliedPairs(
        pairs.similarity,
        pairs.genuine,
        pairs.first,
        pairs.second,
        pairs.far,
        pairs.threshold,
        _tally(pairs.first[pairs.genuine], pairs.second[pairs.genuine]),
        _tally(pairs.first[~pairs.genuine], pairs.second[~pairs.genuine]),
    )


def _tally(first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> Tally:
    from scipy.sparse import coo_array

    n = 1 + max(int(first.max(initial=-1)), int(second.max(initial=-1)))
    low, high = np.minimum(first, second), np.maximum(first, second)
    each = np.ones(len(first), dtype=np.int32)
    matrix = coo_array((each, (low, high)), shape=(n, n)).tocsr()  # adds up what stands twice
    held = np.flatnonzero(np.diff(matrix.indptr)).astype(np.int32)
    starts = np.append(matrix.indptr[held], matrix.nnz).astype(np.int64)
    return Tally(held, starts, matrix.indices.astype(np.int32), matrix.data.astype(np.float64))


_OF_BIN = 4
"""Pairs of one bin, were similarities evenly spread."""
_LARGEST = float(np.finfo(np.float64).max)
_SAMPLED = 1 << 14
"""Similarities that say roughly where the highest begin, so that only those are sorted."""
_ROUNDING = 1e-12
"""A FAR of .001 of 1,000 pairs is one pair, whatever .001 is in binary."""


def falling_order(
    similarity: FloatArray, genuine: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.uint32], FloatArray, npt.NDArray[np.bool_]]:
    """Order pairs by falling similarity, impostors before genuine pairs of the same.

    Shapes: ``similarity`` [m], ``genuine`` [m]; returns ``order`` [m], ``similarity, genuine`` [m].

    Examples
    --------
    >>> order, falls, same = falling_order(np.array([0.2, 0.9, 0.9]), np.array([True, True, False]))
    >>> order.tolist(), falls.tolist(), same.tolist()
    ([2, 1, 0], [0.9, 0.9, 0.2], [False, True, True])
    """
    from isolux.stats._pair_kernels import falling

    similarity = np.ascontiguousarray(similarity, dtype=np.float64)
    genuine = np.ascontiguousarray(genuine, dtype=np.bool_)
    bins = 1 + len(similarity) // _OF_BIN
    top = float(similarity.max(initial=-np.inf))
    # Halves, so that the width of the whole range of floats is finite.
    half = top / 2.0 - float(similarity.min(initial=np.inf)) / 2.0
    steps = bins / half if half > bins / _LARGEST else 0.0
    order, falls, kind = falling(similarity, genuine, top, steps, bins)
    return order, falls, kind


def threshold_at_far(impostors: FloatArray, far: float, weight: FloatArray | None = None) -> float:
    """Find the lowest similarity at which the share of impostor pairs accepted is at most ``far``.

    Shapes: ``impostors`` [m], ``weight`` [m].
    """
    if not len(impostors):
        return float("nan")
    if weight is not None:
        return _weighted_threshold(impostors, far, weight)
    allowed = int(np.floor(far * len(impostors) * (1.0 + _ROUNDING)))
    if allowed >= len(impostors):
        return float("-inf")
    # The one to refuse is among the highest: of a sample, somewhat more than its share is.
    sample = np.sort(impostors[:: max(1, len(impostors) // _SAMPLED)])
    low = sample[max(0, int(len(sample) * (1.0 - 2.0 * far)) - 50)]
    highest = impostors[impostors >= low]
    if len(highest) <= allowed:
        highest = impostors
    refused = len(highest) - 1 - allowed
    return float(np.nextafter(np.partition(highest, refused)[refused], np.inf))


def _weighted_threshold(impostors: FloatArray, far: float, weight: FloatArray) -> float:
    order = np.argsort(-impostors, kind="stable")
    falls, passed = impostors[order], np.cumsum(weight[order])
    refused = int(np.searchsorted(passed, far * passed[-1] * (1.0 + _ROUNDING), side="right"))
    return float("-inf") if refused >= len(falls) else float(np.nextafter(falls[refused], np.inf))


def tar_at_far() -> PairStatistic:
    """Make the true accept rate at the pairs' ``far``: 0 to 1, higher is better."""

    def evaluate(pairs: Pairs, weights: FloatArray) -> FloatArray:
        from isolux.stats._pair_kernels import accepted_at_far

        n_genuine, n_impostors = _sizes(pairs, weights)
        limit = pairs.far * n_impostors * (1.0 + _ROUNDING)
        accepted = accepted_at_far(pairs.genuine, pairs.first, pairs.second, weights, limit)
        return _share(accepted, n_genuine, n_impostors > 0)

    return PairStatistic(evaluate, "far", resolves_far=True, over=(True,))


def true_match_rate() -> PairStatistic:
    """Make the share of genuine pairs at or above the threshold: 0 to 1, higher is better."""
    return PairStatistic(
        lambda p, w: _rate(p, w, genuine=True, accepted=True),
        "threshold",
        rests_on=(True,),
        over=(True,),
    )


def false_match_rate() -> PairStatistic:
    """Make the share of impostor pairs at or above the threshold: 0 to 1, lower is better."""
    return PairStatistic(
        lambda p, w: _rate(p, w, genuine=False, accepted=True),
        "threshold",
        resolves_far=True,
        rests_on=(False,),
        over=(False,),
    )


def false_non_match_rate() -> PairStatistic:
    """Make the share of genuine pairs below the threshold: 0 to 1, lower is better."""
    return PairStatistic(
        lambda p, w: _rate(p, w, genuine=True, accepted=False),
        "threshold",
        rests_on=(True,),
        over=(True,),
    )


def generalised_false_accept_rate() -> PairStatistic:
    """Make the share of all impostor comparisons that are accepted: 0 to 1, lower is better."""
    return replace(false_match_rate(), failed=True)


def generalised_false_reject_rate() -> PairStatistic:
    """Make the share of all genuine comparisons that are not accepted: 0 to 1, lower is better."""
    return replace(false_non_match_rate(), failed=True)


def area() -> PairStatistic:
    """Make the area under the ROC curve: 0 to 1, higher is better, ties count half."""
    return PairStatistic(lambda pairs, weights: _curve(pairs, weights)[0])


def equal_error_rate() -> PairStatistic:
    """Make the rate at which false matches and false non-matches are equally frequent."""
    return PairStatistic(lambda pairs, weights: _curve(pairs, weights)[1])


def _sizes(pairs: Pairs, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    return _whole(pairs, weights, genuine=True), _whole(pairs, weights, genuine=False)


def _whole(pairs: Pairs, weights: FloatArray, *, genuine: bool) -> FloatArray:
    """Weight of all pairs of one kind: ``[r]``."""
    from isolux.stats._pair_kernels import totals

    if isinstance(pairs, TalliedPairs):
        tally = pairs.genuine_tally if genuine else pairs.impostor_tally
        if tally is not None:
            return tally.total(weights)
    counted = pairs.genuine if genuine else ~pairs.genuine
    return np.asarray(totals(pairs.first, pairs.second, counted, weights))


def _share(part: FloatArray, whole: FloatArray, where: npt.NDArray[np.bool_]) -> FloatArray:
    return np.divide(part, whole, out=np.full_like(part, np.nan), where=where & (whole > 0))


def _rate(pairs: Pairs, weights: FloatArray, *, genuine: bool, accepted: bool) -> FloatArray:
    """Share of the pairs of one kind that are accepted, or refused, at the threshold."""
    from isolux.stats._pair_kernels import totals

    whole = _whole(pairs, weights, genuine=genuine)
    # Most alike first: what is accepted comes before what is not.
    end = bisect_right(pairs.similarity, -pairs.threshold, key=lambda s: -s)
    part = slice(end) if accepted else slice(end, None)
    kind = pairs.genuine[part] == genuine
    sum_of_part: FloatArray = totals(pairs.first[part], pairs.second[part], kind, weights)
    return _share(sum_of_part, whole, np.full(whole.shape, not np.isnan(pairs.threshold)))


def _curve(pairs: Pairs, weights: FloatArray) -> FloatArray:
    """Area and equal error rate, ``[2, r]``."""
    from isolux.stats._pair_kernels import area_and_equal_error

    n_genuine, n_impostors = _sizes(pairs, weights)
    some = (n_genuine > 0) & (n_impostors > 0)
    both: FloatArray = area_and_equal_error(
        pairs.similarity,
        pairs.genuine,
        pairs.first,
        pairs.second,
        weights,
        np.where(some, n_genuine, 1.0),
        np.where(some, n_impostors, 1.0),
    )
    return np.where(some, both, np.nan)
