"""The compiled loop over pairs of vectors, imported only by ``stats/pairwise.py``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.io.compile_cache import njit


# Without reassociation the compiler may not vectorise the sums.
@njit(nogil=True, fastmath={"reassoc", "contract"})
def fill_l1_l2_cosine_distances(
    vectors: npt.NDArray[Any],
    first: npt.NDArray[np.int64],
    second: npt.NDArray[np.int64],
    out: npt.NDArray[np.float64],
) -> None:
    """Write L1, L2 and cosine distance of each pair of rows: ``out [3, pairs]``."""
    d = vectors.shape[1]
    for p in range(len(first)):
        a, b = vectors[first[p]], vectors[second[p]]
        l1_sum = l2_sum = dot = aa = bb = np.float64(0.0)
        # Single precision is twice as fast in vectors; sums of 64 are added in double precision, so
        # that rounding does not grow with d.
        for start in range(0, d, 64):
            block_l1 = block_l2 = block_dot = block_aa = block_bb = np.float32(0.0)
            for k in range(start, min(start + 64, d)):
                difference = a[k] - b[k]
                block_l1 += abs(difference)
                block_l2 += difference * difference
                block_dot += a[k] * b[k]
                block_aa += a[k] * a[k]
                block_bb += b[k] * b[k]
            l1_sum += np.float64(block_l1)
            l2_sum += np.float64(block_l2)
            dot += np.float64(block_dot)
            aa += np.float64(block_aa)
            bb += np.float64(block_bb)
        out[0, p] = l1_sum
        out[1, p] = np.sqrt(l2_sum)
        cosine = dot / np.sqrt(aa * bb)
        # Rounding can take the cosine of equal directions above 1, and the distance below 0.
        out[2, p] = 1.0 - min(1.0, max(-1.0, cosine))
