"""Joins that keep the order of the table on the left."""

from __future__ import annotations

import polars as pl

__all__ = ["left_join_in_order"]


def left_join_in_order(
    left: pl.DataFrame, right: pl.DataFrame, on: str = "image_id"
) -> pl.DataFrame:
    """Join a table's columns to another's rows, which stay as many and in their order."""
    return left.join(right, on=on, how="left", maintain_order="left")
