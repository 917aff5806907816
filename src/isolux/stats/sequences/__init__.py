"""A gap that is looked at every day: e-values, confidence sequences, and when it began.

To look at a test every day and stop at the first p below .05 is to be wrong far more often than 5 %
of the time. What may be looked at as often as one likes is a bet. A player starts with 1 and bets,
before each difference of two clusters is seen, on its sign. If the mean difference is 0, the
capital is a martingale: it ever reaches 1/α with a chance of at most α, over all looks, however
many (Ville's inequality). The capital is the *e-value*. The same bet against every other gap m
gives the *confidence sequence*: the gaps against which no capital ever reached 1/α.

The bets are the approximate Kelly bets of Waudby-Smith & Ramdas (aGRAPA), which adapt to the
variance, so rates of .99 are as good as .5. They need neither a normal distribution nor a least
number of clusters; the one assumption is that differences are independent of what was seen before,
with a mean that is the gap, and lie between −1 and 1.

A gap that begins late is found late by a gambler who has bet since the first look. So half of the
capital bets from the first look on, and the other half is shared out among later starts (every look
up to the 32nd, then 16 in each doubling), none of which depends on how many looks will follow. A
mixture of bets is a bet. Which start's capital makes up most of it says when the gap began; and if
*no* constant gap is left, the gap has changed.

References
----------
.. [1] Waudby-Smith, I. & Ramdas, A. (2024). Estimating means of bounded random variables by
   betting. Journal of the Royal Statistical Society B 86(1), 1-27. Sections 4 and B.3.
.. [2] Shin, J., Ramdas, A. & Rinaldo, A. (2024). E-detectors: a nonparametric framework for
   sequential change detection. The New England Journal of Statistics in Data Science 2(2), 229-260.
.. [3] Vovk, V. & Wang, R. (2021). E-values: calibration, combination and applications. The Annals
   of Statistics 49(3), 1736-1754.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.stats.statistic import FloatArray, IntArray

STEP = 0.005
"""Of the gaps that are bet against: half a point, finer than what is reported of most gaps."""
_EACH = 16
"""Late starts within each doubling of looks: more cost time and gain no capital to speak of."""
_SINCE_FIRST = 0.5
_LATER = 0.5 * 6.0 / np.pi**2  # the other half: over all octaves, Σ 1 / k² is π² / 6
_FINER = 41  # points where the grid is too coarse to show what is left
_ENOUGH = 8  # gaps that are left where it is fine enough
_FINEST = 1e-9
_ROUNDS = 12
_COARSE = 3  # of the grid's points, every third where bets begin at many looks
_GRID = np.round(np.arange(-1.0 + STEP, 1.0 - STEP / 2, STEP), 10)


@dataclass(frozen=True, slots=True)
class Watched:
    """What bets on one gap say after every look.

    Parameters
    ----------
    e_value : [looks] float
        Capital of the bet against a gap of 0, 0 or more; 1 says nothing.
    low, high : [looks] float
        Ends of the confidence sequence of a gap that is the same at all looks: gaps against which
        the capital never reached the threshold so far. NaN: none is left.
    change : [looks] float
        Least capital over all constant gaps: an e-value against "the gap never changed".
    start : int
        The look (from 0) since which the gap most likely stands, by the share of the capital.
    share : float
        That start's share of the e-value's capital, 0 to 1.
    began : (int, int)
        Looks between which the gap began, and
    since : (float, float)
        how large it has been since: together a confidence set of "no gap at first, then one of one
        size". From the last look on which nothing is known the size may be anything. Without an
        alarm, and where no such gap is left, NaN and no look (-1).
    """

    e_value: FloatArray
    low: FloatArray
    high: FloatArray
    change: FloatArray
    start: int
    share: float
    began: tuple[int, int]
    since: tuple[float, float]


def differences(first: FloatArray, second: FloatArray) -> FloatArray:
    """Pair the clusters of one look, so that each difference has the gap as its mean.

    Shapes: ``first, second`` [a].
    """
    n = min(len(first), len(second))
    if not n:
        return np.zeros(0)
    sides = []
    for values in (first, second):
        block = np.arange(len(values)) * n // len(values)
        sides.append(np.bincount(block, values, n) / np.bincount(block, minlength=n))
    return np.asarray(sides[0] - sides[1])


def thinned(rng: np.random.Generator, weight: FloatArray, heaviest: float) -> npt.NDArray[np.bool_]:
    """Keep clusters with a chance of their weight over the heaviest: those kept count alike.

    Shapes: ``weight`` [n]; returns [n].

    Examples
    --------
    >>> kept = thinned(np.random.default_rng(0), np.repeat([4.0, 1.0], 1000), 4.0)
    >>> int(kept[:1000].sum()), int(kept[1000:].sum())
    (1000, 277)
    """
    return np.asarray(rng.random(len(weight)) * heaviest < weight)


def schedule(n_looks: int) -> tuple[IntArray, FloatArray]:
    """List the looks (from 0) at which bets begin, with their weights: the same for any length."""
    place = np.arange(1, n_looks + 1)
    octave = np.floor(np.log2(place)).astype(np.int64)
    step = 2 ** np.maximum(octave - int(np.log2(_EACH)), 0)
    kept = place % step == 0
    number = np.minimum(2**octave, _EACH)
    weight = _LATER / ((octave + 1) ** 2 * number)
    weight[:1] += _SINCE_FIRST
    return (place[kept] - 1).astype(np.int64), weight[kept]


def watched(difference: FloatArray, look: IntArray, n_looks: int, threshold: float) -> Watched:
    """Bet on the differences of all looks, and say after each what is known of the gap.

    Shapes: ``difference`` [n], ``look`` [n].
    """
    ends = np.searchsorted(look, np.arange(n_looks), side="right").astype(np.int64)
    values = np.ascontiguousarray(difference, dtype=np.float64)
    starts, weights = schedule(n_looks)
    gaps, reached = _searched(values, ends, 0, _GRID, threshold)
    mixed, last = _bets(values, ends, starts, weights, np.zeros(1))
    own = weights * last[:, 0]
    s = int(own.argmax())
    low, high = _ends(gaps, reached < threshold)
    began, since = (-1, -1), (float("nan"), float("nan"))
    if mixed.max() >= threshold:
        began, since = _begun(values, ends, mixed[:, 0], threshold)
    return Watched(
        mixed[:, 0],
        low,
        high,
        _change(values, ends, gaps, reached, threshold),
        int(starts[s]),
        float(own[s] / mixed[-1, 0]),
        began,
        since,
    )


def _bets(
    values: FloatArray, ends: IntArray, starts: IntArray, weights: FloatArray, gaps: FloatArray
) -> tuple[FloatArray, FloatArray]:
    from isolux.stats.sequences.kernels import capitals

    return capitals(values, ends, starts, weights, gaps)


def _begun(
    values: FloatArray, ends: IntArray, capital: FloatArray, threshold: float
) -> tuple[tuple[int, int], tuple[float, float]]:
    """Say when a gap that began once did so, and how large it has been since."""
    starts, _ = schedule(len(ends))
    before = np.maximum.accumulate(capital)
    # The earliest look that the start stands for, and what had been earned on any gap before it.
    first = np.concatenate([[0], starts[:-1] + 1])
    earned = np.where(first > 0, before[np.maximum(first - 1, 0)], 1.0)
    possible = np.flatnonzero(earned < 2.0 * threshold)
    low, high = np.ones(len(starts)), -np.ones(len(starts))
    for s in possible:
        gaps, reached = _searched(values, ends, int(starts[s]), _GRID[::_COARSE], 2.0 * threshold)
        own = _ends(gaps, reached[-1:] < 2.0 * threshold)
        low[s], high[s] = own[0][0], own[1][0]
    some = possible[np.isfinite(low[possible])]
    after = starts[-1] + 1 < len(ends) and before[starts[-1]] < 2.0 * threshold
    if after:
        return (int(first[some[0]]) if len(some) else 0, len(ends) - 1), (-1.0, 1.0)
    if not len(some):
        return (-1, -1), (float("nan"), float("nan"))
    since = float(low[some].min()), float(high[some].max())
    return (int(first[some[0]]), int(starts[some[-1]])), since


def _searched(
    values: FloatArray, ends: IntArray, start: int, gaps: FloatArray, bound: float
) -> tuple[FloatArray, FloatArray]:
    """Bet from one look on against a grid of gaps that becomes finer until it shows what is left.

    Shapes: ``gaps`` [m]; returns ``gaps`` [k], ``capital`` [looks, k].
    """

    def capital(at: FloatArray) -> FloatArray:
        found, _ = _bets(values, ends, np.array([start]), np.ones(1), at)
        return np.maximum.accumulate(found, axis=0)

    known = capital(gaps)
    for _ in range(_ROUNDS):
        held = known < bound
        some = held.any(axis=1)
        if some.all():
            left = np.flatnonzero(held[-1])
            if len(left) >= _ENOUGH:
                break
        else:  # between which two of the first look that has none?
            left = known[int(some.argmin())].argmin()[None]
        low, high = gaps[max(left[0] - 1, 0)], gaps[min(left[-1] + 1, len(gaps) - 1)]
        if high - low < _FINEST:
            break
        finer = np.linspace(low, high, _FINER)[1:-1]
        finer = finer[~np.isin(finer, gaps)]
        order = np.argsort(np.concatenate([gaps, finer]), kind="stable")
        gaps = np.concatenate([gaps, finer])[order]
        known = np.concatenate([known, capital(finer)], axis=1)[:, order]
    return gaps, known


def _change(
    values: FloatArray, ends: IntArray, gaps: FloatArray, reached: FloatArray, threshold: float
) -> FloatArray:
    """Give the least capital over all constant gaps, at any of which nothing has been earned."""
    far = _SINCE_FIRST * reached
    left = np.flatnonzero(far[-1] < threshold)
    if not len(left):
        left = far[-1].argmin()[None]
    low = gaps[left[0] - 1] if left[0] > 0 else -1.0
    high = gaps[left[-1] + 1] if left[-1] + 1 < len(gaps) else 1.0
    near = np.clip(np.linspace(low, high, _FINER), -1.0 + 1e-6, 1.0 - 1e-6)
    mixed, _ = _bets(values, ends, *schedule(len(ends)), near)
    inside = np.maximum.accumulate(mixed, axis=0).min(axis=1)
    outside = np.ones(len(gaps), dtype=np.bool_)
    outside[left] = False
    rest = far[:, outside].min(axis=1, initial=np.inf)
    return np.asarray(np.minimum(inside, rest))


def _ends(gaps: FloatArray, held: npt.NDArray[np.bool_]) -> tuple[FloatArray, FloatArray]:
    """Take the nearest gaps that are ruled out on either side: between two none was tried."""
    some = held.any(axis=1)
    wide = np.concatenate([[-1.0], gaps, [1.0]])
    first, final = held.argmax(axis=1), held.shape[1] - 1 - held[:, ::-1].argmax(axis=1)
    return np.where(some, wide[first], np.nan), np.where(some, wide[final + 2], np.nan)
