"""How large a person is in the picture: from their box, or their mask where COCO goes by it.

Size is the first thing that stands between a sensitive attribute and a detector's recall: whoever
is photographed from farther away is found less often, whoever they are (ICON², section 4).
"""

from __future__ import annotations

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.info import DerivedInfo, Reference
from isolux.derive._attribute_columns import (
    BOX,
    add_image_size_px_or_null,
    build_attribute_rows,
    select_people_with_columns,
)

MAX_AREA_PX2 = {"small": 32.0**2, "medium": 96.0**2}
"""COCO's upper ends of small and of medium, square pixels; what is larger is large."""

INFO = DerivedInfo(
    title="Size in the picture",
    summary="How many pixels a person takes up, in COCO's ranges and as numbers.",
    references=(
        Reference(
            "coco-areas",
            "COCO Consortium. Detection evaluation: metrics across scales.",
            "AP small, medium and large",
            "https://cocodataset.org/#detection-eval",
        ),
    ),
    assumptions=("Pixels of the pictures as annotated: a resized dataset has other sizes.",),
    attributes=(
        ("size", "box_size, by COCO's own word."),
        ("box_size", "small (below 32², square pixels), medium (below 96²) or large, as COCO."),
        ("box_area", "square pixels of the mask where the dataset gives them, else of the box."),
        ("box_height", "height of the box, pixels."),
        ("box_share", "the box's part of its image's area, 0 to 1."),
        ("aspect_ratio", "width of the box by its height."),
    ),
)


def derive(dataset: Dataset) -> pl.DataFrame:
    """Measure each person's size.

    Parameters
    ----------
    dataset : Dataset
        Instances with boxes; ``area`` (square pixels) goes before the box's own. ``box_share`` is
        left out where no image's size is known.

    Returns
    -------
    polars.DataFrame
        Table ``attributes``: ``size``, ``box_size``, ``box_area``, ``box_height``,
        ``box_share``, ``aspect_ratio`` of each instance; null where there is no box, and of a ratio
        to nothing.

    Raises
    ------
    SpecError
        No instance has a box.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one person",
    ...     info=DatasetInfo(title="One person", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"], "box_x": [0.0],
    ...                             "box_y": [0.0], "box_w": [20.0], "box_h": [50.0]}),
    ... )
    >>> derive(one).select("attribute", "value").rows()
    [('size', 'small'), ('box_size', 'small'),
     ('box_area', '1000'), ('box_height', '50'), ('aspect_ratio', '0.4')]
    """
    people = select_people_with_columns(dataset, BOX, "size")
    box_area = pl.col("box_w") * pl.col("box_h")
    area = pl.coalesce("area", box_area) if "area" in people.columns else box_area
    people = people.with_columns(_area=area)
    size = (
        pl.when(pl.col("_area") < MAX_AREA_PX2["small"])
        .then(pl.lit("small"))
        .when(pl.col("_area") < MAX_AREA_PX2["medium"])
        .then(pl.lit("medium"))
        .when(pl.col("_area").is_not_null())
        .then(pl.lit("large"))
    )
    tables = [
        build_attribute_rows(people, "size", text=size, number=None),
        build_attribute_rows(people, "box_size", text=size, number=None),
        build_attribute_rows(people, "box_area", number=pl.col("_area")),
        build_attribute_rows(people, "box_height", number=pl.col("box_h")),
    ]
    if {"width", "height"} <= set(dataset.images.columns) and dataset.images[
        "width"
    ].is_not_null().any():
        sized = add_image_size_px_or_null(people, dataset, "box_share")
        share = box_area / (pl.col("width") * pl.col("height")).cast(pl.Float64)
        tables.append(
            build_attribute_rows(sized, "box_share", number=_replace_non_finite_by_null(share))
        )
    tables.append(
        build_attribute_rows(
            people,
            "aspect_ratio",
            number=_replace_non_finite_by_null(pl.col("box_w") / pl.col("box_h")),
        )
    )
    return pl.concat(tables)


def _replace_non_finite_by_null(expression: pl.Expr) -> pl.Expr:
    return pl.when(expression.is_finite()).then(expression)
