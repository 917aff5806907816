"""Whether a threshold lies among the scores that it is to part."""

from __future__ import annotations

import numpy as np

from isolux.stats.statistic import FloatArray
from isolux.vocabulary.notes import Caution

__all__ = ["out_of_reach"]


def out_of_reach(
    model: str,
    scores: FloatArray,
    threshold: float,
    *,
    none: str,
    every: str,
    falling: bool = False,
    ask: str = "Is the threshold on the scale of the scores?",
) -> list[Caution]:
    """Caution where no score, or every score, reaches the threshold: it parts nothing.

    Shapes: ``scores`` [m].

    Examples
    --------
    >>> (said,) = out_of_reach("m", np.array([0.1, 0.9]), 50.0, none="no answer is 'yes'",
    ...                        every="every answer is 'yes'")
    >>> print(said.removesuffix(" Is the threshold on the scale of the scores?"))
    No score of 'm' reaches the threshold of 50: scores run from 0.1 to 0.9, so no answer is 'yes'.
    >>> out_of_reach("m", np.array([0.1, 0.9]), 0.5, none="", every="")
    []
    """
    known = scores[~np.isnan(scores)]
    if not len(known):
        return []
    reached = known <= threshold if falling else known >= threshold
    if reached.any() and not reached.all():
        return []
    ends = (f"{known.min():g}", f"{known.max():g}")
    at = f"{threshold:g}"
    if at in ends:  # just beyond an end: seventeen digits tell them apart
        at = repr(float(threshold))
    what = "Every score" if reached.any() else "No score"
    return [
        Caution(
            f"{what} of {model!r} reaches the threshold of {at}: scores run from {ends[0]} to"
            f" {ends[1]}, so {every if reached.any() else none}."
            f" {ask}"
        )
    ]
