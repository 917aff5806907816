"""The compiled loops that rank detections within their images; few audits need them.

A kernel with a signature is loaded or compiled when its module is imported, so these have a module
of their own.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from isolux.geometry._match_kernels import sort_by_falling_score, sorted_row
from isolux.io.compile_cache import njit

_F = types.Array(types.float64, 1, "A", readonly=True)
_I = types.Array(types.int64, 1, "A", readonly=True)

_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]
_Bools = npt.NDArray[np.bool_]


@njit((_I, _I, types.boolean, _F, _I, types.int64), nogil=True)
def rank_in_images(
    starts: _Ints, order: _Ints, in_order: bool, score: _Floats, label: _Ints, n_labels: int
) -> _Ints:
    """Rank every detection in its image (and class) by falling score, from 0."""
    rank = np.empty(len(score), np.int64)
    n_ranked = np.zeros(n_labels, np.int64)
    for i in range(len(starts) - 1):
        first, last = starts[i], starts[i + 1]
        image_scores = np.empty(last - first)
        for k in range(last - first):
            image_scores[k] = score[sorted_row(order, in_order, first + k)]
        sorted_positions = np.empty(last - first, np.int64)
        sort_by_falling_score(image_scores, 0, last - first, sorted_positions)
        for position in sorted_positions:
            d = sorted_row(order, in_order, first + position)
            rank[d] = n_ranked[label[d]] if n_labels > 1 else n_ranked[0]
            n_ranked[label[d] if n_labels > 1 else 0] += 1
        # Only the classes of this image are reset: there may be thousands.
        for k in range(first, last):
            n_ranked[label[sorted_row(order, in_order, k)] if n_labels > 1 else 0] = 0
    return rank


@njit(
    (_I, _I, _I, _I, types.boolean, _F, _I, types.boolean, types.int64),
    nogil=True,
)
def flag_beyond_limit(
    candidate: _Ints,
    image: _Ints,
    starts: _Ints,
    order: _Ints,
    in_order: bool,
    score: _Floats,
    label: _Ints,
    is_class_aware: bool,
    limit: int,
) -> _Bools:
    """Flag candidates that rank below the first ``limit`` detections of their image (and class).

    Only candidates are ranked, and counting stops at the limit: a full sort of all detections, of
    which one in thirty overlaps anyone, would cost more than everything else.
    """
    is_beyond = np.zeros(len(candidate), np.bool_)
    for c in range(len(candidate)):
        row, i = candidate[c], image[c]
        # No detection of such an image ranks beyond the limit: nothing needs to be counted.
        if starts[i + 1] - starts[i] <= limit:
            continue
        n_before = 0
        for k in range(starts[i], starts[i + 1]):
            d = sorted_row(order, in_order, k)
            if is_class_aware and label[d] != label[row]:
                continue
            # Of equal scores the earlier row comes first, as in a stable sort.
            n_before += score[d] > score[row] or (score[d] == score[row] and d < row)
            if n_before >= limit:
                is_beyond[c] = True
                break
    return is_beyond
