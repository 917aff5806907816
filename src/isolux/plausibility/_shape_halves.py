"""Halves of a preview: what is chosen on one half of its images is judged on the other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isolux.geometry.previews import ShapePreview
from isolux.stats.statistic import FloatArray

MIN_GAIN = 0.2
"""From this gain in average similarity on a transformation is named: no poor or odd model's boxes
fit people so much better elsewhere, mirrored or under another name."""
MIN_PEOPLE = 10
"""Fewer people in either half tell nothing."""


@dataclass(frozen=True, slots=True)
class Halves:
    """The people of both halves: ``chosen_on`` [m], ``judged_on`` [m] bool."""

    chosen_on: npt.NDArray[np.bool_]
    judged_on: npt.NDArray[np.bool_]

    @classmethod
    def split(cls, preview: ShapePreview) -> Halves:
        """Take every second image."""
        is_even = preview.people.image % 2 == 0
        return cls(is_even, ~is_even)

    def have_enough(self, rows: npt.NDArray[np.bool_] | None = None) -> bool:
        """Return whether both halves hold enough of these people (default: all)."""
        halves = (self.chosen_on, self.judged_on)
        counts = [half.sum() if rows is None else (half & rows).sum() for half in halves]
        return bool(min(counts) >= MIN_PEOPLE)


def is_gain(before: FloatArray, after: FloatArray, halves: Halves) -> bool:
    """Return whether similarities ``[m]`` rise enough in each half."""
    gain = after - before
    return bool(min(gain[halves.chosen_on].mean(), gain[halves.judged_on].mean()) >= MIN_GAIN)
