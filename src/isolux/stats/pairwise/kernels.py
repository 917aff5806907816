"""The compiled loop over pairs of vectors, imported only by ``stats/pairwise.py``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.io.kernels import njit


@njit(nogil=True, fastmath={"reassoc", "contract"})
def pair_distances(
    vectors: npt.NDArray[Any],
    first: npt.NDArray[np.int64],
    second: npt.NDArray[np.int64],
    out: npt.NDArray[np.float64],
) -> None:
    """Write L1, L2 and cosine distance of each pair of rows: ``out [3, pairs]``."""
    d = vectors.shape[1]
    for p in range(len(first)):
        a, b = vectors[first[p]], vectors[second[p]]
        one = two = dot = aa = bb = np.float64(0.0)
        for start in range(0, d, 64):
            s1 = s2 = s3 = s4 = s5 = np.float32(0.0)
            for k in range(start, min(start + 64, d)):
                gap = a[k] - b[k]
                s1 += abs(gap)
                s2 += gap * gap
                s3 += a[k] * b[k]
                s4 += a[k] * a[k]
                s5 += b[k] * b[k]
            one += np.float64(s1)
            two += np.float64(s2)
            dot += np.float64(s3)
            aa += np.float64(s4)
            bb += np.float64(s5)
        out[0, p] = one
        out[1, p] = np.sqrt(two)
        cosine = dot / np.sqrt(aa * bb)
        out[2, p] = 1.0 - min(1.0, max(-1.0, cosine))
