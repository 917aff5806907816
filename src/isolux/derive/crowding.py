"""How many stand in a picture, and how much they cover one another: judged or not."""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.info import DerivedInfo
from isolux.core.tables import INSTANCES
from isolux.derive._attribute_columns import BOX, build_attribute_rows

INFO = DerivedInfo(
    title="Crowding",
    summary="How many annotated people an image holds, and how much their boxes overlap.",
    references=(
        citations.FACET.with_location(
            "section 6.1, appendix A.5.1: classification on images of one person"
        ),
    ),
    assumptions=("People who are not annotated are not counted, and crowd boxes are not either.",),
    attributes=(
        ("people_in_image", "how many annotated people, crowds aside, the image holds."),
        ("highest_overlap", "highest overlap (IoU) of the box with another person's, 0 to 1."),
    ),
)


def derive(dataset: Dataset) -> pl.DataFrame:
    """Count the people of each image, and measure how much their boxes overlap.

    Parameters
    ----------
    dataset : Dataset
        ``is_crowd`` instances are not counted and overlap no one; they get their image's count.

    Returns
    -------
    polars.DataFrame
        Table ``attributes``: ``people_in_image`` and, where there are boxes, ``highest_overlap``
        (0: no one overlaps; null: no box).

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> two = Dataset(
    ...     name="two people",
    ...     info=DatasetInfo(title="Two people", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["1", "1"],
    ...         "box_x": [0.0, 5.0], "box_y": [0.0, 0.0], "box_w": [10.0, 5.0],
    ...         "box_h": [10.0, 10.0]}),
    ... )
    >>> derive(two)["number"].to_list()
    [2.0, 2.0, 0.5, 0.5]
    """
    people = INSTANCES.conform(dataset.instances)
    crowd = pl.col("is_crowd").fill_null(value=False) if "is_crowd" in people.columns else None
    people = people.with_columns(_one=pl.lit(value=True) if crowd is None else ~crowd)
    tables = [
        build_attribute_rows(
            people, "people_in_image", number=pl.col("_one").sum().over("image_id")
        )
    ]
    if set(BOX) <= set(people.columns):
        overlapped = people.with_columns(_overlap=pl.Series(_compute_max_iou_in_image(people)))
        has_box = pl.all_horizontal(pl.col(c).is_not_null() for c in BOX) & pl.col("_one")
        overlap = pl.when(has_box).then("_overlap")
        tables.append(build_attribute_rows(overlapped, "highest_overlap", number=overlap))
    return pl.concat(tables)


def _compute_max_iou_in_image(people: pl.DataFrame) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Find each box's highest IoU with another of its image that is not a crowd."""
    from isolux.geometry.boxes import box_pairs_xywh
    from isolux.geometry.matching import Detections, Truths

    highest = np.zeros(people.height)
    image = (people["image_id"].rank("dense").cast(pl.Int64) - 1).to_numpy()
    boxes = np.column_stack([people[c].cast(pl.Float64).fill_null(np.nan).to_numpy() for c in BOX])
    usable = np.flatnonzero(~np.isnan(boxes).any(axis=1) & people["_one"].to_numpy())
    if usable.size:
        pairs = box_pairs_xywh(
            Detections(image[usable], np.zeros(usable.size)),
            Truths(image[usable]),
            boxes[usable],
            boxes[usable],
            lowest_iou=1e-9,  # any overlap at all
        )
        is_other_box = pairs.detection != pairs.truth
        np.maximum.at(highest, usable[pairs.detection[is_other_box]], pairs.iou[is_other_box])
    return highest
