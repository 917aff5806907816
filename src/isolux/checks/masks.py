"""Masks that are not of their person: another size than the image, empty, far from the box."""

from __future__ import annotations

import polars as pl

from isolux.checks._people_masks import MaskedPeople, masked_people
from isolux.checks._problems import problems_of_people, together
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.info import CheckInfo, Reference

INFO = CheckInfo(
    title="Masks where their people are",
    summary=(
        "Masks whose size differs from their image's, that are empty, or that are away from "
        "their box."
    ),
    references=(
        Reference(
            "lin-coco",
            "Lin, T.-Y. et al. (2014). Microsoft COCO: Common objects in context. ECCV.",
            "run lengths and boxes of an annotation",
            "https://arxiv.org/abs/1405.0312",
        ),
    ),
    assumptions=("A box is drawn around the visible part, as COCO's and FACET's are.",),
    needs="tables",
)


_LEAST_OVERLAP = 0.5  # of the box and the mask's own tight box (IoU): below it they are apart


def check(dataset: Dataset) -> pl.DataFrame:
    """List masks that do not fit their image or their box.

    Parameters
    ----------
    dataset : Dataset
        Instances with masks (run lengths or polygons). Crowds are not looked at.

    Returns
    -------
    polars.DataFrame
        Table ``problems``. Errors: run lengths that cannot be read, another size than the image, a
        mask that does not touch its box. Warnings: no pixel, a tight box that overlaps too little.

    Examples
    --------
    >>> from isolux.vocabulary.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one person",
    ...     info=DatasetInfo(title="One person", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"], "mask_counts": ["<"],
    ...                             "mask_height": [3], "mask_width": [4]}),
    ... )
    >>> check(one).select("problem", "unit_id").rows()
    [('a mask has no pixel', 'a')]
    """
    parts = []
    for people in masked_people(dataset):
        parts += _of_images(people)
        parts += _of_boxes(people)
    return together(*parts)


def _of_images(people: MaskedPeople) -> list[pl.DataFrame]:
    rows = people.rows.with_columns(area=pl.Series(people.masks.area_px))
    other = (pl.col("mask_height") != pl.col("height")) | (pl.col("mask_width") != pl.col("width"))
    size = pl.format("{} × {} pixels", "width", "height")
    own = pl.format("{} × {}", "mask_width", "mask_height")
    readable = "COCO's run lengths or polygons"
    return [
        problems_of_people(
            "masks", people.damaged, "a mask cannot be read", "error", readable, pl.col("said")
        ),
        problems_of_people(
            "masks",
            rows.filter(other),
            "a mask has another size than its image",
            "error",
            size,
            own,
        ),
        problems_of_people(
            "masks", rows.filter(area=0), "a mask has no pixel", "warning", "a pixel or more"
        ),
    ]


def _of_boxes(people: MaskedPeople) -> list[pl.DataFrame]:
    if "box_x" not in people.rows.columns:
        return []
    tight = people.masks.box_xywh
    sides = pl.DataFrame(tight, schema=[f"tight_{side}" for side in "xywh"], orient="row")
    rows = people.rows.select("instance_id", "^box_[xywh]$").hstack(sides)
    rows = rows.filter(pl.Series(people.masks.area_px > 0)).drop_nulls()

    def common(at: str, length: str) -> pl.Expr:
        ends = [pl.col(f"{kind}_{at}") + pl.col(f"{kind}_{length}") for kind in ("box", "tight")]
        starts = [pl.col(f"{kind}_{at}") for kind in ("box", "tight")]
        return (pl.min_horizontal(*ends) - pl.max_horizontal(*starts)).clip(0.0)

    shared = common("x", "w") * common("y", "h")
    union = pl.col("box_w") * pl.col("box_h") + pl.col("tight_w") * pl.col("tight_h") - shared
    rows = rows.with_columns(overlap=(shared / union).fill_nan(0.0))
    words = pl.format(
        "mask at [{}, {}, {}, {}], box at [{}, {}, {}, {}]",
        *(f"{kind}_{side}" for kind in ("tight", "box") for side in "xywh"),
    )
    apart = "a mask does not touch its person's box"
    other = "a mask and its person's box are of different parts"
    wanted = f"an overlap of {_LEAST_OVERLAP:g} or more"
    some = rows.filter((pl.col("overlap") > 0) & (pl.col("overlap") < _LEAST_OVERLAP))
    return [
        problems_of_people("masks", rows.filter(overlap=0.0), apart, "error", wanted, words),
        problems_of_people("masks", some, other, "warning", wanted, words),
    ]
