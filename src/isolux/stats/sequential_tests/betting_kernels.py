"""The compiled loop of the bets, imported only by ``sequential_tests``.

For each start, a player bets against each of some gaps ``m`` that the next difference is on the
same side as the mean of those since the start. The bet is fixed before the difference is seen.
Capitals are limited to 1e-280 to 1e280, far beyond any threshold.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]
_MIN_CAPITAL, _MAX_CAPITAL = 1e-280, 1e280
_MAX_BET_FRACTION = 0.9  # of the largest bet without ruin
_PRIOR_VARIANCE = 0.25  # of one pseudo-observation of 0 before the first


@njit(nogil=True)
def mixture_capital_by_snapshot(
    difference: _Floats,
    snapshot_ends: _Ints,
    bet_starts: _Ints,
    bet_weights: _Floats,
    gaps: _Floats,
) -> _Floats:
    """Bet from each start on, and sum the capitals by weight at the end of every snapshot.

    Shapes: ``difference`` [n], ``snapshot_ends`` [n_snapshots], ``starts, weights`` [s],
    ``gaps`` [m]; returns [n_snapshots, m].
    """
    n_snapshots, n_gaps = len(snapshot_ends), len(gaps)
    total = np.zeros((n_snapshots, n_gaps))
    capital = np.empty(n_gaps)
    idle_weight = 1.0
    for s in range(len(bet_starts)):
        capital[:] = 1.0
        idle_weight -= bet_weights[s]
        count, mean, sum_of_squares = 1.0, 0.0, _PRIOR_VARIANCE
        first = bet_starts[s]
        i = snapshot_ends[first - 1] if first > 0 else 0
        for snapshot in range(n_snapshots):
            if snapshot < first:
                for m in range(n_gaps):
                    total[snapshot, m] += bet_weights[s]
                continue
            while i < snapshot_ends[snapshot]:
                x = difference[i]
                variance = sum_of_squares / count
                for m in range(n_gaps):
                    distance = mean - gaps[m]
                    # aGRAPA (Waudby-Smith & Ramdas, section B.3): an approximate Kelly bet.
                    bet = distance / (variance + distance * distance)
                    # Within these limits no difference in [-1, 1] can make the capital negative.
                    high = _MAX_BET_FRACTION / (1.0 + gaps[m])
                    low = -_MAX_BET_FRACTION / (1.0 - gaps[m])
                    bet = min(max(bet, low), high)
                    new_capital = capital[m] * (1.0 + bet * (x - gaps[m]))
                    capital[m] = min(max(new_capital, _MIN_CAPITAL), _MAX_CAPITAL)
                count += 1.0
                deviation = x - mean
                mean += deviation / count
                sum_of_squares += deviation * (x - mean)
                i += 1
            for m in range(n_gaps):
                total[snapshot, m] += bet_weights[s] * capital[m]
    # Starts after the last snapshot have not bet yet: their capital is 1.
    for snapshot in range(n_snapshots):
        for m in range(n_gaps):
            total[snapshot, m] += idle_weight
    return total
