"""How much of a person can be seen: from their keypoints, and from their mask in their box."""

from __future__ import annotations

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import DerivedInfo, Reference
from isolux.core.tables import INSTANCES
from isolux.derive._attribute_columns import build_attribute_rows, select_people_with_columns

INFO = DerivedInfo(
    title="Occlusion",
    summary="How many keypoints can be seen, and how much of the box the person fills.",
    references=(
        Reference(
            "coco-keypoints",
            "COCO Consortium. Keypoint annotation format.",
            "visibility flags: 0 not labelled, 1 labelled but hidden, 2 visible",
            "https://cocodataset.org/#format-data",
        ),
    ),
    assumptions=(
        "A keypoint that is not labelled cannot be seen; datasets also leave them out for others.",
        "A mask that fills little of its box is of a person in part hidden, or with spread limbs.",
    ),
    attributes=(
        ("visible_keypoints", "how many keypoints are labelled and visible."),
        ("hidden_share", "part of the keypoints that are hidden or not labelled, 0 to 1."),
        ("mask_to_box", "part of the box that the mask fills, 0 to 1."),
    ),
)


def derive(dataset: Dataset) -> pl.DataFrame:
    """Say how much of each person can be seen.

    Parameters
    ----------
    dataset : Dataset
        Instances with ``keypoints_v``, or with ``area`` of a mask and a box; what the dataset has
        is computed.

    Returns
    -------
    polars.DataFrame
        Table ``attributes``: ``visible_keypoints``, ``hidden_share``, ``mask_to_box``; null for
        who has no keypoints, or no mask.

    Raises
    ------
    SpecError
        The dataset has neither keypoints nor masks.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one person",
    ...     info=DatasetInfo(title="One person", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"],
    ...                             "keypoints_v": [[2, 1, 0, 2]]}),
    ... )
    >>> derive(one).select("attribute", "number").rows()
    [('visible_keypoints', 2.0), ('hidden_share', 0.5)]
    """
    people = INSTANCES.conform(dataset.instances)
    tables = []
    if "keypoints_v" in people.columns and people["keypoints_v"].is_not_null().any():
        n_visible = pl.col("keypoints_v").list.eval(pl.element() == 2).list.sum()
        count = pl.col("keypoints_v").list.len()
        has_keypoints = pl.col("keypoints_v").is_not_null() & (count > 0)
        tables.append(
            build_attribute_rows(
                people, "visible_keypoints", number=pl.when(has_keypoints).then(n_visible)
            )
        )
        hidden_share = 1.0 - n_visible.cast(pl.Float64) / count.cast(pl.Float64)
        tables.append(
            build_attribute_rows(
                people, "hidden_share", number=pl.when(has_keypoints).then(hidden_share)
            )
        )
    masks = [c for c in ("mask_counts", "mask_polygons") if c in people.columns]
    if masks and "area" in people.columns:
        people = select_people_with_columns(dataset, ("area", "box_w", "box_h"), "mask_to_box")
        share = pl.col("area") / (pl.col("box_w") * pl.col("box_h"))
        has_mask_and_box = (
            pl.any_horizontal(pl.col(c).is_not_null() for c in masks) & share.is_finite()
        )
        tables.append(
            build_attribute_rows(
                people, "mask_to_box", number=pl.when(has_mask_and_box).then(share)
            )
        )
    if not tables and people.height:
        raise SpecError(
            "occlusion cannot be computed",
            expected="instances with keypoints_v, or with a mask and its area",
            found="neither",
            where=dataset.name,
            hint="many datasets annotate occlusion themselves: look at their own attributes",
        )
    return (
        pl.concat(tables)
        if tables
        else build_attribute_rows(people, "visible_keypoints", number=None)
    )
