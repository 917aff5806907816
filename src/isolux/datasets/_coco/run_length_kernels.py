"""A loop over the characters of COCO's run lengths, compiled; ``run_lengths`` says what for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit


@njit()
def total_runs(data: npt.NDArray[np.uint8], bounds: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Add up the runs of each mask; -1 where its text does not hold run lengths."""
    totals = np.empty(len(bounds) - 1, dtype=np.int64)
    for mask in range(len(bounds) - 1):
        at, end = bounds[mask], bounds[mask + 1]
        total, index = np.int64(0), 0
        before, before_that = np.int64(0), np.int64(0)
        good = at < end
        while good and at < end:
            run, shift, more = np.int64(0), 0, True
            while good and more:
                # Seven characters hold 35 bits: no picture has longer runs.
                good = at < end and 48 <= data[at] < 112 and shift < 35
                if good:
                    # COCO's text has six bits a character, from "0" on: five of the number, and
                    # one that says whether more follow; the last one's highest bit is the sign.
                    bits = np.int64(data[at]) - 48
                    run |= (bits & 31) << shift
                    shift += 5
                    more = bits & 32 != 0
                    if not more and bits & 16:
                        run -= 1 << shift
                    at += 1
            if index > 2:
                run += before_that
            good = good and run >= 0
            total += run
            before_that, before = before, run
            index += 1
        totals[mask] = total if good else -1
    return totals
