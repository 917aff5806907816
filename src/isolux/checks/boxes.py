"""Boxes that cannot be of a person: not numbers, without area, outside their image.

Loaders refuse what no method could read and keep the rest as the dataset gives it; here every one
of them is named. A box that reaches a little over the edge is the annotator's, one that lies
outside altogether is a mistake.
"""

from __future__ import annotations

import polars as pl

from isolux.checks._problems import Severity, concatenate_problems, make_person_problems
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import CheckInfo, Reference
from isolux.core.tables import IMAGES, INSTANCES

INFO = CheckInfo(
    title="Boxes inside their images",
    summary="Boxes that extend beyond their image, have no area, or are not numbers.",
    references=(
        Reference(
            "northcutt-label-errors",
            "Northcutt, C., Athalye, A. and Mueller, J. (2021). Pervasive label errors in test sets"
            " destabilize machine learning benchmarks. NeurIPS Datasets and Benchmarks.",
            "",
            "https://arxiv.org/abs/2103.14749",
        ),
    ),
    needs="tables",
)

_BOX_TYPES = (("box", ""), ("face box", "face_"))


def check(dataset: Dataset, *, slack_px: float = 1.0) -> pl.DataFrame:
    """List boxes that are not as a box must be.

    Parameters
    ----------
    dataset : Dataset
        Instances with ``box_x``, ``box_y``, ``box_w``, ``box_h`` (and those of faces); images with
        sizes, where boxes are to be held against them.
    slack_px : float
        How far, in pixels, a box may extend beyond its image, because annotation tools round.

    Returns
    -------
    polars.DataFrame
        Table ``problems``. Errors: not four finite numbers, a negative side, wholly outside.
        Warnings: no area, a part outside.

    Raises
    ------
    SpecError
        ``slack_px`` below 0.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one person",
    ...     info=DatasetInfo(title="One person", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"], "box_x": [0.0],
    ...                             "box_y": [0.0], "box_w": [20.0], "box_h": [50.0]}),
    ...     images=pl.DataFrame({"image_id": ["1"], "width": [16], "height": [60]}),
    ... )
    >>> check(one).select("problem", "expected", "found").row(0)
    ('a box reaches over the edge of its image', 'inside 16 × 60 pixels', '[0.0, 0.0, 20.0, 50.0]')
    """
    if not slack_px >= 0:
        raise SpecError(
            "a slack is not a length", expected="slack_px of 0 or more", found=f"{slack_px:g}"
        )
    sizes = IMAGES.conform(dataset.images).select("image_id", "width", "height")
    people = INSTANCES.conform(dataset.instances)
    problems = []
    for box_type, column_prefix in _BOX_TYPES:
        names = [f"{column_prefix}box_{edge}" for edge in "xywh"]
        if set(names) <= set(people.columns):
            boxes = people.select(
                "instance_id", "image_id", **dict(zip("xywh", names, strict=True))
            )
            problems += _check_boxes(
                boxes.join(sizes.unique("image_id"), on="image_id", how="left"), box_type, slack_px
            )
    return concatenate_problems(*problems)


def _check_boxes(boxes: pl.DataFrame, box_type: str, slack_px: float) -> list[pl.DataFrame]:
    edges = [pl.col(edge) for edge in "xywh"]
    boxes = boxes.filter(pl.any_horizontal(edge.is_not_null() for edge in edges))
    is_finite = pl.all_horizontal(edge.is_finite().fill_null(value=False) for edge in edges)
    x, y, w, h = edges
    is_outside = (x >= pl.col("width")) | (y >= pl.col("height")) | (x + w <= 0) | (y + h <= 0)
    crosses_edge = (
        (x < -slack_px)
        | (y < -slack_px)
        | (x + w > pl.col("width") + slack_px)
        | (y + h > pl.col("height") + slack_px)
    )
    is_negative, has_no_area = (w < 0) | (h < 0), (w == 0) | (h == 0)
    is_valid = is_finite & ~is_negative & ~has_no_area
    problem_types: tuple[tuple[str, Severity, pl.Expr, str | None], ...] = (
        ("is not four numbers", "error", ~is_finite, "four finite numbers"),
        (
            "has a negative side",
            "error",
            is_finite & is_negative,
            "a width and height of 0 or more",
        ),
        (
            "has no area",
            "warning",
            is_finite & has_no_area & ~is_negative,
            "a width and height above 0",
        ),
        ("is outside its image", "error", is_valid & is_outside, None),
        (
            "reaches over the edge of its image",
            "warning",
            is_valid & ~is_outside & crosses_edge,
            None,
        ),
    )
    image = pl.format("inside {} × {} pixels", "width", "height")
    box_text = pl.format(
        "[{}, {}, {}, {}]", *(edge.cast(pl.String).fill_null("null") for edge in edges)
    )
    return [
        make_person_problems(
            "boxes",
            boxes.filter(test.fill_null(value=False)),
            f"a {box_type} {problem}",
            severity,
            image if expected is None else expected,
            box_text,
        )
        for problem, severity, test, expected in problem_types
    ]
