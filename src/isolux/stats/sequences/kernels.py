"""The compiled loop of the bets, imported only by ``sequences``.

For each start, a gambler bets against each of some gaps ``m`` that the next difference will lie on
the side where the mean of those since the start lies. The bet is fixed before the difference is
seen. Capitals are kept between 1e-280 and 1e280; both ends lie far beyond any threshold.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int64]
_LEAST, _MOST = 1e-280, 1e280
_BOUND = 0.9  # of the largest bet that could lose everything
_VARIANCE = 0.25  # of the one difference, of 0, that is imagined before the first


@njit(nogil=True)
def capitals(
    difference: _Floats, ends: _Ints, starts: _Ints, weights: _Floats, gaps: _Floats
) -> tuple[_Floats, _Floats]:
    """Bet from each start on, and add the capitals up by weight at the end of every look.

    Shapes: ``difference`` [n], ``ends`` [looks], ``starts, weights`` [s], ``gaps`` [m]; returns
    ``total`` [looks, m], ``last`` [s, m].
    """
    n_looks, n_gaps = len(ends), len(gaps)
    total = np.zeros((n_looks, n_gaps))
    last = np.ones((len(starts), n_gaps))
    capital = np.empty(n_gaps)
    idle = 1.0
    for s in range(len(starts)):
        capital[:] = 1.0
        idle -= weights[s]
        count, mean, square = 1.0, 0.0, _VARIANCE
        first = starts[s]
        i = ends[first - 1] if first > 0 else 0
        for look in range(n_looks):
            if look < first:
                for m in range(n_gaps):
                    total[look, m] += weights[s]
                continue
            while i < ends[look]:
                x = difference[i]
                variance = square / count
                for m in range(n_gaps):
                    off = mean - gaps[m]
                    bet = off / (variance + off * off)
                    high = _BOUND / (1.0 + gaps[m])
                    low = -_BOUND / (1.0 - gaps[m])
                    bet = min(max(bet, low), high)
                    grown = capital[m] * (1.0 + bet * (x - gaps[m]))
                    capital[m] = min(max(grown, _LEAST), _MOST)
                count += 1.0
                before = x - mean
                mean += before / count
                square += before * (x - mean)
                i += 1
            for m in range(n_gaps):
                total[look, m] += weights[s] * capital[m]
        last[s] = capital
    for look in range(n_looks):
        for m in range(n_gaps):
            total[look, m] += idle
    return total, last
