"""Whether the areas that annotations give can be those of their boxes: COCO's sizes go by them."""

from __future__ import annotations

import polars as pl

from isolux.vocabulary.notes import Caution

__all__ = ["on_areas"]

_LARGER, _SMALLER = 1.1, 0.02  # of the box: a mask lies within it, and a thin pole fills a little
_SLACK = 4.0  # square pixels, for boxes of a few
_SHARE = 0.05


def on_areas(instances: pl.DataFrame) -> tuple[str, ...]:
    """Caution where many areas are larger than their boxes, or next to nothing beside them.

    Examples
    --------
    >>> one = pl.DataFrame({"area": [5.0], "box_w": [40.0], "box_h": [50.0], "is_crowd": [False]})
    >>> on_areas(one)[0][:46]
    '1 of 1 annotations have an area that their box'
    """
    box = pl.col("box_w") * pl.col("box_h")
    rows = instances.filter(~pl.col("is_crowd")).select("area", box=box).filter(pl.col("box") > 0)
    rows = rows.drop_nulls()
    if not rows.height:
        return ()
    larger = pl.col("area") > _LARGER * pl.col("box") + _SLACK
    smaller = pl.col("area") < _SMALLER * pl.col("box") - _SLACK
    wrong = rows.filter(larger | smaller)
    if wrong.height < _SHARE * rows.height:
        return ()
    first = wrong.row(0, named=True)
    return (
        Caution(
            f"{wrong.height:,} of {rows.height:,} annotations have an area that their box cannot"
            f" have, such as {first['area']:g} square pixels in a box of {first['box']:,.0f}:"
            " small, medium and large go by it. Leave `area` out of the file to go by the boxes."
        ),
    )
