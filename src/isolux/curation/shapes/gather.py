"""Which drawings of several annotators are of one object."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def gathered(
    first: IntArray, second: IntArray, alike: FloatArray, annotator: IntArray, lowest: float
) -> IntArray:
    """Give each drawing the number of its object: ``[n]``, from 0, in order of first drawings.

    Shapes: ``first, second`` [p], ``alike`` [p], ``annotator`` [n].

    Examples
    --------
    Annotators 0, 1, 2; the third drawing is by annotator 1 as well, who drew two objects:

    >>> a, b = np.array([0, 0, 1, 2]), np.array([1, 2, 3, 3])
    >>> gathered(a, b, np.array([0.9, 0.6, 0.8, 0.5]), np.array([0, 1, 1, 2]), 0.3).tolist()
    [0, 0, 1, 0]
    """
    likeness = {(int(a), int(b)): float(s) for a, b, s in zip(first, second, alike, strict=True)}
    likeness |= {(b, a): s for (a, b), s in likeness.items()}
    cluster = np.arange(len(annotator))
    members = {k: [k] for k in range(len(annotator))}
    for p in np.argsort(-alike, kind="stable"):
        a, b = int(cluster[first[p]]), int(cluster[second[p]])
        if a == b or alike[p] < lowest:
            continue
        if {int(annotator[k]) for k in members[a]} & {int(annotator[k]) for k in members[b]}:
            continue
        sums = sum(likeness.get((i, j), 0.0) for i in members[a] for j in members[b])
        if sums < lowest * len(members[a]) * len(members[b]):
            continue
        a, b = min(a, b), max(a, b)
        members[a] += members.pop(b)
        cluster[members[a]] = a
    return np.asarray(np.unique(cluster, return_inverse=True)[1], dtype=np.int64)
