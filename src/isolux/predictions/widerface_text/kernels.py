"""Lines of numbers in WIDER FACE's text of detections, compiled."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isolux.predictions._scan.numbers import READ, compiled, read_number

__all__ = ["read_lines"]

_NEWLINE, _RETURN, _SPACE, _TAB = 10, 13, 32, 9


@compiled
def read_lines(
    data: npt.NDArray[np.uint8], at: int, out: npt.NDArray[np.float64]
) -> tuple[int, int]:
    """Read lines of five numbers parted by spaces, as many as ``out`` [N, 5] has rows."""
    for row in range(len(out)):
        start = at
        for k in range(5):
            while data[at] == _SPACE or data[at] == _TAB:
                at += 1
            out[row, k], at, status = read_number(data, at)
            after = data[at]
            if status != READ or not (after <= 32):
                return row, start
        while data[at] == _SPACE or data[at] == _TAB or data[at] == _RETURN:
            at += 1
        if data[at] == _NEWLINE:
            at += 1
        elif data[at] != 0:
            return row, start
    return len(out), at
