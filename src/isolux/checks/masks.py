"""Masks that are not of their person: another size than the image, empty, far from the box."""

from __future__ import annotations

import polars as pl

from isolux.checks._person_masks import PeopleWithMasks, read_people_with_masks
from isolux.checks._problems import concatenate_problems, make_person_problems
from isolux.core.containers import Dataset
from isolux.core.info import CheckInfo, Reference

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


_MIN_BOX_IOU = 0.5  # of the box and the mask's own tight box (IoU): below it they are apart


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
    >>> from isolux.core.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one person",
    ...     info=DatasetInfo(title="One person", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"], "mask_counts": ["<"],
    ...                             "mask_height": [3], "mask_width": [4]}),
    ... )
    >>> check(one).select("problem", "unit_id").rows()
    [('a mask has no pixel', 'a')]
    """
    problems = []
    for people in read_people_with_masks(dataset):
        problems += _check_against_images(people)
        problems += _check_against_boxes(people)
    return concatenate_problems(*problems)


def _check_against_images(people: PeopleWithMasks) -> list[pl.DataFrame]:
    rows = people.rows.with_columns(area=pl.Series(people.masks.area_px))
    has_other_size = (pl.col("mask_height") != pl.col("height")) | (
        pl.col("mask_width") != pl.col("width")
    )
    size = pl.format("{} × {} pixels", "width", "height")
    mask_size = pl.format("{} × {}", "mask_width", "mask_height")
    readable = "COCO's run lengths or polygons"
    return [
        make_person_problems(
            "masks", people.damaged, "a mask cannot be read", "error", readable, pl.col("said")
        ),
        make_person_problems(
            "masks",
            rows.filter(has_other_size),
            "a mask has another size than its image",
            "error",
            size,
            mask_size,
        ),
        make_person_problems(
            "masks", rows.filter(area=0), "a mask has no pixel", "warning", "a pixel or more"
        ),
    ]


def _check_against_boxes(people: PeopleWithMasks) -> list[pl.DataFrame]:
    if "box_x" not in people.rows.columns:
        return []
    tight_xywh = people.masks.box_xywh
    tight_boxes = pl.DataFrame(
        tight_xywh, schema=[f"tight_{edge}" for edge in "xywh"], orient="row"
    )
    rows = people.rows.select("instance_id", "^box_[xywh]$").hstack(tight_boxes)
    rows = rows.filter(pl.Series(people.masks.area_px > 0)).drop_nulls()

    def common(axis: str, length: str) -> pl.Expr:
        upper_ends = [
            pl.col(f"{prefix}_{axis}") + pl.col(f"{prefix}_{length}") for prefix in ("box", "tight")
        ]
        starts = [pl.col(f"{prefix}_{axis}") for prefix in ("box", "tight")]
        return (pl.min_horizontal(*upper_ends) - pl.max_horizontal(*starts)).clip(0.0)

    # Intersection over union of the annotated box and the mask's tight box.
    intersection = common("x", "w") * common("y", "h")
    union = pl.col("box_w") * pl.col("box_h") + pl.col("tight_w") * pl.col("tight_h") - intersection
    rows = rows.with_columns(overlap=(intersection / union).fill_nan(0.0))
    boxes_text = pl.format(
        "mask at [{}, {}, {}, {}], box at [{}, {}, {}, {}]",
        *(f"{prefix}_{edge}" for prefix in ("tight", "box") for edge in "xywh"),
    )
    no_overlap_problem = "a mask does not touch its person's box"
    low_overlap_problem = "a mask and its person's box are of different parts"
    expected = f"an overlap of {_MIN_BOX_IOU:g} or more"
    low_overlap = rows.filter(pl.col("overlap") > 0, pl.col("overlap") < _MIN_BOX_IOU)
    return [
        make_person_problems(
            "masks", rows.filter(overlap=0.0), no_overlap_problem, "error", expected, boxes_text
        ),
        make_person_problems(
            "masks", low_overlap, low_overlap_problem, "warning", expected, boxes_text
        ),
    ]
