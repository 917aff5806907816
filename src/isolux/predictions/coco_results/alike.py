"""Objects that are spelled as one before them was, eight bytes at a time, compiled.

Whatever is spelled otherwise is left to ``kernels``, which reads every object.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import uint64

from isolux.predictions._scan.numbers import READ, inlined, short, short_whole
from isolux.predictions._scan.words import WORD, word_at
from isolux.predictions.coco_results.spelling import OTHER, Spelling

__all__ = ["alike"]

_Bytes = npt.NDArray[np.uint8]
_Wholes = npt.NDArray[np.int64]
_Numbers = npt.NDArray[np.float64]


@inlined
def _spelled(data: _Bytes, at: int, k: int, spelling: Spelling) -> int:
    """Compare what stands at ``at`` with the text before number k: the byte after it, or -1."""
    here = at
    for j in range(spelling.starts[k], spelling.starts[k + 1]):
        if here + WORD > len(data):
            return -1
        other = word_at(data, here) ^ word_at(spelling.texts, WORD * j)
        if other & word_at(spelling.masks, WORD * j) != uint64(0):
            return -1
        here += WORD
    return int(at + spelling.lengths[k])


@inlined
def alike(
    data: _Bytes,
    at: int,
    row: int,
    wholes: _Wholes,
    numbers: _Numbers,
    spelling: Spelling,
) -> int:
    """Read an object that is spelled as was learned: the byte after it; -1 where it is not."""
    rows, places = len(numbers) // 5, spelling.places
    for k in range(len(places)):
        at = _spelled(data, at, k, spelling)
        if at < 0:
            return -1
        place = places[k]
        if place < 2:
            wholes[place * rows + row], at = short_whole(data, at)
            if at < 0:
                return -1
        else:
            value, at, status = short(data, at)
            if status != READ:
                return -1
            if place != OTHER:
                numbers[(place - 2) * rows + row] = value
    return _spelled(data, at, len(places), spelling)
