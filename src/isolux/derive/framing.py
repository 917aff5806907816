"""Where a person stands in the picture, and whether its border cuts them off."""

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

_BORDER_TOLERANCE_PX = 1.0
"""How near to the border a box counts as cut off: annotators stop a pixel short of it."""

INFO = DerivedInfo(
    title="Framing",
    summary="Whether the picture's border cuts a person off, and where in the picture they are.",
    references=(
        Reference(
            "hoiem-2012",
            "Hoiem, Chodpathumwan & Dai (2012). Diagnosing Error in Object Detectors. ECCV.",
            "section 2: truncation, size, aspect ratio",
        ),
    ),
    assumptions=("A box that reaches the border is of a person who goes on beyond it.",),
    attributes=(
        ("truncated", "yes: the box reaches within a pixel of the picture's border."),
        ("across", "left, middle or right third of the picture, by the box's centre."),
        ("off_centre", "distance of the box's centre from the picture's, by half its diagonal."),
    ),
)


def derive(dataset: Dataset) -> pl.DataFrame:
    """Place each person in their picture.

    Parameters
    ----------
    dataset : Dataset
        Instances with boxes, images with their size.

    Returns
    -------
    polars.DataFrame
        Table ``attributes``: ``truncated``, ``across`` and ``off_centre`` (0 in the middle, 1 in
        a corner); null without a box or a known size.

    Raises
    ------
    SpecError
        No instance has a box, or no image's size is known.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one person",
    ...     info=DatasetInfo(title="One person", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"], "box_x": [0.0],
    ...                             "box_y": [20.0], "box_w": [20.0], "box_h": [40.0]}),
    ...     images=pl.DataFrame({"image_id": ["1"], "width": [90], "height": [80]}),
    ... )
    >>> derive(one)["value"].to_list()
    ['yes', 'left', '0.5813']
    """
    people = add_image_size_px_or_null(
        select_people_with_columns(dataset, BOX, "framing"), dataset, "framing"
    )
    image_width, image_height = pl.col("width").cast(pl.Float64), pl.col("height").cast(pl.Float64)
    people = people.with_columns(
        _x=(pl.col("box_x") + pl.col("box_w") / 2) / image_width,
        _y=(pl.col("box_y") + pl.col("box_h") / 2) / image_height,
        _wide=image_width,
        _high=image_height,
    )
    touches_border = (
        (pl.col("box_x") <= _BORDER_TOLERANCE_PX)
        | (pl.col("box_y") <= _BORDER_TOLERANCE_PX)
        | (pl.col("box_x") + pl.col("box_w") >= pl.col("_wide") - _BORDER_TOLERANCE_PX)
        | (pl.col("box_y") + pl.col("box_h") >= pl.col("_high") - _BORDER_TOLERANCE_PX)
    )
    truncated = (
        pl.when(touches_border.is_null()).then(None).when(touches_border).then(pl.lit("yes"))
    )
    across = (
        pl.when(pl.col("_x") < 1 / 3)
        .then(pl.lit("left"))
        .when(pl.col("_x") <= 2 / 3)
        .then(pl.lit("middle"))
        .when(pl.col("_x").is_not_null())
        .then(pl.lit("right"))
    )
    from_centre = ((pl.col("_x") - 0.5) * pl.col("_wide")).pow(2) + (
        (pl.col("_y") - 0.5) * pl.col("_high")
    ).pow(2)
    half_diagonal = (pl.col("_wide").pow(2) + pl.col("_high").pow(2)).sqrt() / 2
    truncated_text = truncated.when(touches_border.is_not_null()).then(pl.lit("no"))
    return pl.concat(
        [
            build_attribute_rows(people, "truncated", text=truncated_text, number=None),
            build_attribute_rows(people, "across", text=across, number=None),
            build_attribute_rows(people, "off_centre", number=from_centre.sqrt() / half_diagonal),
        ]
    )
