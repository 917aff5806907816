"""Boxes that a model writes as words for places: four numbers in a row, as OFA has them.

OFA (Wang et al. 2022, section 3.1) writes ``<bin_k>``, k from 0 to 999 along either side of the
picture, for left, top, right and bottom.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

@dataclass(frozen=True, slots=True)
class Places:
    """Words for places: four of them in a row are a box.

    Parameters
    ----------
    word : str
        Such a word, with ``{}`` for its number: ``<bin_{}>``.
    bins : int
        How many there are, from 0 at the left or upper edge to the last at the other edge.
    order : str
        ``xyxy``, or ``yxyx`` (PaliGemma).
    """

    word: str
    bins: int
    order: str

    def said(self) -> list[Any]:
        """Say what moves an answer."""
        return [self.word, self.bins, self.order]

    def corners(
        self, line: str, width: int, height: int
    ) -> list[tuple[float, float, float, float]]:
        """Read the boxes in what a model wrote: left, top, right, bottom in pixels.

        Examples
        --------
        >>> Places("<bin_{}>", 1001, "xyxy").corners("<bin_0><bin_500> <bin_1000><bin_900>", 40, 20)
        [(0.0, 10.0, 40.0, 18.0)]
        """
        before, after = (re.escape(part) for part in self.word.split("{}"))
        runs = re.findall(rf"(?:{before}\d+{after}\s*){{4}}", line)
        found = []
        for run in runs:
            numbers = [int(one) for one in re.findall(rf"{before}(\d+){after}", run)]
            if max(numbers) >= self.bins:
                continue
            first, second, third, fourth = (one / (self.bins - 1) for one in numbers)
            if self.order == "yxyx":
                first, second, third, fourth = second, first, fourth, third
            found.append((first * width, second * height, third * width, fourth * height))
        return found
