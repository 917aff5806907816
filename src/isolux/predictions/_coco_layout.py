"""How long the arrays are that hold what ``_coco_layout_kernels`` has learnt of a file."""

from __future__ import annotations

__all__ = ["LAYOUT", "LITERALS"]

LITERALS = 256
"""Bytes of a row that stand between its numbers."""

LAYOUT = 40
"""The number of numbers n (0: nothing learnt), how often a layout was learnt, then from the second
place on the n columns, and from the sixteenth on the n + 1 ends of what stands between."""
