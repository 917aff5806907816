"""Sequential tests of a gap: e-values, confidence sequences, and when the gap began.

Repeating a test every day until p is below 0.05 has an error rate far above 5 %. A test by betting
may be repeated at any time. A player starts with capital 1 and bets, before each difference of two
clusters is seen, on its sign. If the mean difference is 0, the capital is a martingale: it ever
reaches 1/α with probability at most α, over any number of interim analyses (Ville's inequality).
The capital is the *e-value*. The same bet against every other gap m gives the *confidence
sequence*: the gaps against which the capital never reached 1/α.

The bets are the approximate Kelly bets of Waudby-Smith & Ramdas (aGRAPA), which adapt to the
variance, so rates of 0.99 are as good as 0.5. They need neither a normal distribution nor a minimum
number of clusters; the one assumption is that differences are independent of the past, with the gap
as mean, and lie between −1 and 1.

Bets since the first snapshot detect a gap that begins late with delay. So half of the capital bets
from the first snapshot, and the other half is divided among later starts (every snapshot up to the
32nd, then 16 in each doubling), which do not depend on the number of later snapshots. A mixture of
bets is a bet. If *no* constant gap remains, the gap has changed.

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

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.stats.statistic import FloatArray, IntArray

GRID_STEP = 0.005
"""Grid step of the tested gaps: half a percentage point, finer than most gaps are reported."""
_STARTS_PER_DOUBLING = 16
"""Late starts within each doubling of snapshots: more cost time and hardly gain capital."""
_FIRST_START_WEIGHT = 0.5
_LATER_STARTS_WEIGHT = 0.5 * 6.0 / np.pi**2  # the other half: over all octaves, Σ 1 / k² is π² / 6
_N_REFINED_POINTS = 41  # points of a refined grid
_MIN_REMAINING_GAPS = 8  # remaining gaps with which the grid is fine enough
_MIN_GRID_STEP = 1e-9
_MAX_REFINEMENTS = 12
_COARSE_STRIDE = 3  # every third grid point where bets have many starts
_GRID = np.round(np.arange(-1.0 + GRID_STEP, 1.0 - GRID_STEP / 2, GRID_STEP), 10)


@dataclass(frozen=True, slots=True)
class CurrentGap:
    """The gap over the last snapshots: the fewest (a power of 2) that tell whether it is there.

    ``is_open`` is true where ``low`` to ``high`` excludes 0, false where it excludes half of what
    the gap was at the alarm, and None where no number of snapshots tells.
    """

    is_open: bool | None
    n_snapshots: int
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SequentialResult:
    """Results of the bets on one gap after every snapshot.

    Parameters
    ----------
    e_value : [snapshots] float
        Capital of the bet against a gap of 0, at least 0; 1 is no evidence.
    low, high : [snapshots] float
        Bounds of the confidence sequence of a constant gap: gaps against which the capital never
        reached the threshold so far. NaN: none remains.
    change_e_value : [snapshots] float
        Smallest capital over all constant gaps: an e-value against "the gap never changed".
    start_range : (int, int)
        Snapshots between which the gap began, and
    gap_range : (float, float)
        its size since then: together a confidence set of "no gap at first, then a constant one". If
        the gap may have begun at the last snapshots, its size is unbounded. Where no such gap
        remains, the size is NaN and the start what was known at the alarm; without an alarm -1.
    current_gap : CurrentGap
        Whether the gap is still there.
    """

    e_value: FloatArray
    low: FloatArray
    high: FloatArray
    change_e_value: FloatArray
    start_range: tuple[int, int]
    gap_range: tuple[float, float]
    current_gap: CurrentGap


def pair_group_clusters_for_gap(
    cluster_scores_a: FloatArray, cluster_scores_b: FloatArray
) -> FloatArray:
    """Pair the clusters of one snapshot, so that each difference has the gap as its mean.

    Shapes: ``cluster_scores_a, cluster_scores_b`` [a].
    """
    n = min(len(cluster_scores_a), len(cluster_scores_b))
    if not n:
        return np.zeros(0)
    block_means = []
    for values in (cluster_scores_a, cluster_scores_b):
        block_index = np.arange(len(values)) * n // len(values)
        block_means.append(
            np.bincount(block_index, values, n) / np.bincount(block_index, minlength=n)
        )
    return np.asarray(block_means[0] - block_means[1])


def thin_clusters_to_equal_weight(
    rng: np.random.Generator, weight: FloatArray, max_weight: float
) -> npt.NDArray[np.bool_]:
    """Select clusters with probability weight / largest weight, so that all have equal weights.

    Shapes: ``weight`` [n]; returns [n].

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> kept = thin_clusters_to_equal_weight(rng, np.repeat([4.0, 1.0], 1000), 4.0)
    >>> int(kept[:1000].sum()), int(kept[1000:].sum())
    (1000, 277)
    """
    return np.asarray(rng.random(len(weight)) * max_weight < weight)


def schedule_bet_starts_and_weights(n_looks: int) -> tuple[IntArray, FloatArray]:
    """List the snapshots (from 0) at which bets start, with weights that do not depend on n."""
    position = np.arange(1, n_looks + 1)
    octave = np.floor(np.log2(position)).astype(np.int64)
    step = 2 ** np.maximum(octave - int(np.log2(_STARTS_PER_DOUBLING)), 0)
    is_start = position % step == 0
    starts_in_octave = np.minimum(2**octave, _STARTS_PER_DOUBLING)
    # Weights fall as 1 / k² over octaves, so that they sum to 1 for any length.
    weight = _LATER_STARTS_WEIGHT / ((octave + 1) ** 2 * starts_in_octave)
    weight[:1] += _FIRST_START_WEIGHT
    return (position[is_start] - 1).astype(np.int64), weight[is_start]


def run_sequential_gap_test(
    difference: FloatArray, snapshot_index: IntArray, n_snapshots: int, threshold: float
) -> SequentialResult:
    """Run the sequential test on the differences of all snapshots.

    Shapes: ``difference`` [n], ``snapshot_index`` [n].
    """
    snapshot_ends = np.searchsorted(snapshot_index, np.arange(n_snapshots), side="right").astype(
        np.int64
    )
    values = np.ascontiguousarray(difference, dtype=np.float64)
    starts, weights = schedule_bet_starts_and_weights(n_snapshots)
    gaps, max_capital = _bet_on_refined_gap_grid(values, snapshot_ends, 0, _GRID, threshold)
    capital = _run_bets_against_gaps(values, snapshot_ends, starts, weights, np.zeros(1))
    low, high = _nearest_rejected_gaps(gaps, max_capital < threshold)
    start_range, gap_range = (-1, -1), (float("nan"), float("nan"))
    current_gap = CurrentGap(is_open=None, n_snapshots=0, low=float("nan"), high=float("nan"))
    if capital.max() >= threshold:
        alarm = int((capital[:, 0] >= threshold).argmax())
        current_gap = _measure_current_gap(values, snapshot_ends, alarm, threshold)
        if current_gap.is_open:
            start_range, gap_range = _locate_change_and_gap_size(
                values, snapshot_ends, capital[:, 0], threshold
            )
        if start_range[0] < 0:  # it may have closed or changed: what was known at the alarm
            look_ends = snapshot_ends[: alarm + 1]
            start_range, _ = _locate_change_and_gap_size(
                values[: look_ends[-1]], look_ends, capital[: alarm + 1, 0], threshold
            )
    return SequentialResult(
        capital[:, 0],
        low,
        high,
        _min_capital_over_constant_gaps(values, snapshot_ends, gaps, max_capital, threshold),
        start_range,
        gap_range,
        current_gap,
    )


def _run_bets_against_gaps(
    values: FloatArray,
    snapshot_ends: IntArray,
    starts: IntArray,
    weights: FloatArray,
    gaps: FloatArray,
) -> FloatArray:
    from isolux.stats.sequential_tests.betting_kernels import mixture_capital_by_snapshot

    return mixture_capital_by_snapshot(values, snapshot_ends, starts, weights, gaps)


def _bound_gap_since(
    values: FloatArray, snapshot_ends: IntArray, threshold: float, start: int
) -> tuple[float, float]:
    """Bound the gap that has been constant since a snapshot; NaN: there is none."""
    gaps, max_capital = _bet_on_refined_gap_grid(
        values, snapshot_ends, start, _GRID[::_COARSE_STRIDE], threshold
    )
    low, high = _nearest_rejected_gaps(gaps, max_capital[-1:] < threshold)
    return float(low[0]), float(high[0])


def _measure_current_gap(
    values: FloatArray, snapshot_ends: IntArray, alarm: int, threshold: float
) -> CurrentGap:
    """Measure the gap over the last snapshots, of which the fewest that tell are chosen."""
    # The number of snapshots is chosen of so many: each has its part of the error rate.
    window_threshold = threshold * (int(np.log2(len(snapshot_ends))) + 1)

    def bound_by_window(n: int) -> Iterator[tuple[int, float, float]]:
        look_ends = snapshot_ends[:n]
        for k in range(int(np.log2(n)) + 1):
            yield (
                2**k,
                *_bound_gap_since(values[: look_ends[-1]], look_ends, window_threshold, n - 2**k),
            )

    # What the gap was at the alarm: over the fewest snapshots that show it, or over all.
    n_shown = next((k for k, low, high in bound_by_window(alarm + 1) if low > 0 or high < 0), 0)
    first = int(snapshot_ends[alarm - n_shown]) if 0 < n_shown <= alarm else 0
    at_alarm = float(values[first : snapshot_ends[alarm]].mean())
    for k, low, high in bound_by_window(len(snapshot_ends)):
        # More than half of all snapshots may be those of a gap that closed since.
        if k > max(len(snapshot_ends) // 2, n_shown):
            break
        if low > 0.0 or high < 0.0:
            return CurrentGap(is_open=True, n_snapshots=k, low=low, high=high)
        if (high if at_alarm > 0.0 else -low) < abs(at_alarm) / 2.0:
            return CurrentGap(is_open=False, n_snapshots=k, low=low, high=high)
    return CurrentGap(is_open=None, n_snapshots=0, low=float("nan"), high=float("nan"))


def _locate_change_and_gap_size(
    values: FloatArray, snapshot_ends: IntArray, capital: FloatArray, threshold: float
) -> tuple[tuple[int, int], tuple[float, float]]:
    """Estimate when a gap began, and its size since then: ranges of a confidence set."""
    n_snapshots = len(snapshot_ends)
    starts, _ = schedule_bet_starts_and_weights(n_snapshots)
    # A start is excluded by either of two bets, the one before it and the one since: each has half
    # of the error rate, hence twice the threshold.
    half_threshold = 2.0 * threshold
    max_capital_so_far = np.maximum.accumulate(capital)
    # The earliest snapshot that a start represents, and the largest capital before it.
    earliest_snapshot = np.concatenate([[0], starts[:-1] + 1])
    capital_before_start = np.where(
        earliest_snapshot > 0, max_capital_so_far[np.maximum(earliest_snapshot - 1, 0)], 1.0
    )
    bounds_by_start = {
        int(k): _bound_gap_since(values, snapshot_ends, half_threshold, int(starts[k]))
        for k in np.flatnonzero(capital_before_start < half_threshold)
    }
    open_bounds = {k: bounds for k, bounds in bounds_by_start.items() if np.isfinite(bounds[0])}
    if starts[-1] + 1 < n_snapshots and max_capital_so_far[starts[-1]] < half_threshold:
        first = int(earliest_snapshot[min(open_bounds)]) if open_bounds else 0
        return (first, n_snapshots - 1), (-1.0, 1.0)
    if not open_bounds:
        return (-1, -1), (float("nan"), float("nan"))
    low, high = zip(*open_bounds.values(), strict=True)
    start_range = int(earliest_snapshot[min(open_bounds)]), int(starts[max(open_bounds)])
    return start_range, (min(low), max(high))


def _bet_on_refined_gap_grid(
    values: FloatArray, snapshot_ends: IntArray, start: int, gaps: FloatArray, threshold: float
) -> tuple[FloatArray, FloatArray]:
    """Bet from one snapshot on against a grid of gaps, refined around the remaining ones.

    Shapes: ``gaps`` [m]; returns ``gaps`` [k], ``capital`` [snapshots, k].
    """

    def final_capital(tested_gaps: FloatArray) -> FloatArray:
        capitals = _run_bets_against_gaps(
            values, snapshot_ends, np.array([start]), np.ones(1), tested_gaps
        )
        return np.maximum.accumulate(capitals, axis=0)

    max_capital = final_capital(gaps)
    for _ in range(_MAX_REFINEMENTS):
        is_open = max_capital < threshold
        has_open_gap = is_open.any(axis=1)
        if has_open_gap.all():
            open_gaps = np.flatnonzero(is_open[-1])
            if len(open_gaps) >= _MIN_REMAINING_GAPS:
                break
        else:  # refine around the minimum at the first snapshot without a remaining gap
            open_gaps = max_capital[int(has_open_gap.argmin())].argmin()[None]
        low, high = gaps[max(open_gaps[0] - 1, 0)], gaps[min(open_gaps[-1] + 1, len(gaps) - 1)]
        if high - low < _MIN_GRID_STEP:
            break
        finer = np.linspace(low, high, _N_REFINED_POINTS)[1:-1]
        finer = finer[~np.isin(finer, gaps)]
        order = np.argsort(np.concatenate([gaps, finer]), kind="stable")
        gaps = np.concatenate([gaps, finer])[order]
        max_capital = np.concatenate([max_capital, final_capital(finer)], axis=1)[:, order]
    return gaps, max_capital


def _min_capital_over_constant_gaps(
    values: FloatArray,
    snapshot_ends: IntArray,
    gaps: FloatArray,
    max_capital: FloatArray,
    threshold: float,
) -> FloatArray:
    """Return the smallest capital over all constant gaps, refined near the minimum."""
    # A lower bound: the first start alone has this share of the mixture's capital.
    min_capital = _FIRST_START_WEIGHT * max_capital
    open_gaps = np.flatnonzero(min_capital[-1] < threshold)
    if not len(open_gaps):
        open_gaps = min_capital[-1].argmin()[None]
    low = gaps[open_gaps[0] - 1] if open_gaps[0] > 0 else -1.0
    high = gaps[open_gaps[-1] + 1] if open_gaps[-1] + 1 < len(gaps) else 1.0
    # At a gap of exactly 1 or -1 the limits of the bet divide by 0.
    refined_gaps = np.clip(np.linspace(low, high, _N_REFINED_POINTS), -1.0 + 1e-6, 1.0 - 1e-6)
    capital = _run_bets_against_gaps(
        values, snapshot_ends, *schedule_bet_starts_and_weights(len(snapshot_ends)), refined_gaps
    )
    inside_capital = np.maximum.accumulate(capital, axis=0).min(axis=1)
    is_outside = np.ones(len(gaps), dtype=np.bool_)
    is_outside[open_gaps] = False
    outside_capital = min_capital[:, is_outside].min(axis=1, initial=np.inf)
    return np.asarray(np.minimum(inside_capital, outside_capital))


def _nearest_rejected_gaps(
    gaps: FloatArray, is_open: npt.NDArray[np.bool_]
) -> tuple[FloatArray, FloatArray]:
    """Return the nearest rejected gaps on both sides, as gaps between grid points are untested."""
    has_open_gap = is_open.any(axis=1)
    padded_gaps = np.concatenate([[-1.0], gaps, [1.0]])
    first, final = is_open.argmax(axis=1), is_open.shape[1] - 1 - is_open[:, ::-1].argmax(axis=1)
    return np.where(has_open_gap, padded_gaps[first], np.nan), np.where(
        has_open_gap, padded_gaps[final + 2], np.nan
    )
