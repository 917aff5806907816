"""A loop over the characters of COCO's run lengths, compiled; ``run_lengths`` says what for."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit


@njit()
def sum_mask_run_lengths(
    characters: npt.NDArray[np.uint8], bounds: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Add up the runs of each mask; -1 where its text does not hold run lengths."""
    totals = np.empty(len(bounds) - 1, dtype=np.int64)
    for mask in range(len(bounds) - 1):
        position, end = bounds[mask], bounds[mask + 1]
        total, index = np.int64(0), 0
        previous, run_before_previous = np.int64(0), np.int64(0)
        is_valid = position < end
        while is_valid and position < end:
            run, shift, has_more_bits = np.int64(0), 0, True
            while is_valid and has_more_bits:
                # Seven characters hold 35 bits: no picture has longer runs.
                is_valid = position < end and 48 <= characters[position] < 112 and shift < 35
                if is_valid:
                    # COCO's text has six bits a character, from "0" on: five of the number, and
                    # one that says whether more follow; the last one's highest bit is the sign.
                    bits = np.int64(characters[position]) - 48
                    run |= (bits & 31) << shift
                    shift += 5
                    has_more_bits = bits & 32 != 0
                    if not has_more_bits and bits & 16:
                        run -= 1 << shift
                    position += 1
            if index > 2:
                run += run_before_previous
            is_valid = is_valid and run >= 0
            total += run
            run_before_previous, previous = previous, run
            index += 1
        totals[mask] = total if is_valid else -1
    return totals
