"""Keypoints whose lists disagree, that lie outside their image, or outside their person's mask."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.checks._person_masks import PeopleWithMasks, read_people_with_masks
from isolux.checks._problems import concatenate_problems, make_person_problems
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import CheckInfo, Reference
from isolux.core.tables import IMAGES, INSTANCES
from isolux.geometry.masks import Masks

INFO = CheckInfo(
    title="Keypoints on their people",
    summary="Lists of different lengths, keypoints outside their image or their person's mask.",
    references=(
        Reference(
            "ronchi-perona",
            "Ruggero Ronchi, M. and Perona, P. (2017). Benchmarking and error diagnosis in"
            " multi-instance pose estimation. ICCV.",
            "what a keypoint's visibility means",
            "https://arxiv.org/abs/1707.05388",
        ),
    ),
    assumptions=(
        "A visible keypoint (2) is on the person; a hidden one (1) may be behind a thing.",
    ),
    needs="tables",
)

_MASK_SLACK_PX = 4.0  # along either side: outlines and keypoints are drawn by different people
_LISTS = ("keypoints_x", "keypoints_y", "keypoints_v", "keypoint_names")


def check(dataset: Dataset, *, slack_px: float = 1.0) -> pl.DataFrame:
    """List keypoints that cannot be where they are.

    Parameters
    ----------
    dataset : Dataset
        Instances with ``keypoints_x``, ``keypoints_y``, ``keypoints_v``; masks of people, or of
        their parts, are optional.
    slack_px : float
        How far beyond the image's edge a labelled keypoint may lie, pixels.

    Returns
    -------
    polars.DataFrame
        Table ``problems``. Errors: lists of unlike lengths, a labelled keypoint without a place, or
        outside the image. Warning: visible keypoints outside the mask, one row a person.

    Raises
    ------
    SpecError
        A slack below 0.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one person",
    ...     info=DatasetInfo(title="One person", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"],
    ...                             "keypoints_x": [[3.0, 70.0]], "keypoints_y": [[3.0, 4.0]],
    ...                             "keypoints_v": [[2, 2]]}),
    ...     images=pl.DataFrame({"image_id": ["1"], "width": [64], "height": [48]}),
    ... )
    >>> check(one).select("problem", "found").rows()
    [('keypoints are outside their image', '1 keypoint(s), such as (70.0, 4.0)')]
    """
    if not slack_px >= 0:
        raise SpecError("a slack is not a length", expected="0 or more pixels")
    people = INSTANCES.conform(dataset.instances)
    lists = [name for name in _LISTS if name in people.columns]
    if not set(_LISTS[:3]) <= set(lists):
        return concatenate_problems()
    lengths = [pl.col(name).list.len() for name in lists]
    mismatched = people.filter(
        (pl.max_horizontal(lengths) != pl.min_horizontal(lengths))
        | pl.any_horizontal(pl.col(_LISTS[:3]).is_null())
        & pl.any_horizontal(pl.col(_LISTS[:3]).is_not_null())
    )
    matched_people = people.join(mismatched.select("instance_id"), on="instance_id", how="anti")
    lengths_text = pl.format(
        ", ".join("{}" for _ in lists), *(n.cast(pl.String).fill_null("none") for n in lengths)
    )
    left_out = set(mismatched["instance_id"])
    return concatenate_problems(
        make_person_problems(
            "keypoints",
            mismatched,
            "the lists of keypoints have unlike lengths",
            "error",
            "as many x as y, v and names",
            lengths_text,
        ),
        *_check_inside_images(matched_people, dataset, slack_px),
        *(_check_inside_masks(block, left_out) for block in read_people_with_masks(dataset)),
    )


def _check_inside_images(
    people: pl.DataFrame, dataset: Dataset, slack_px: float
) -> list[pl.DataFrame]:
    sizes = IMAGES.conform(dataset.images).select("image_id", "width", "height").unique("image_id")
    points = _list_labelled_points(people.select("instance_id", "image_id", *_LISTS[:3]))
    points = points.join(sizes, on="image_id", how="left", maintain_order="left")
    x, y = pl.col("keypoints_x"), pl.col("keypoints_y")
    is_finite = (x.is_finite() & y.is_finite()).fill_null(value=False)
    is_outside = is_finite & (
        (x < -slack_px)
        | (y < -slack_px)
        | (x > pl.col("width") + slack_px)
        | (y > pl.col("height") + slack_px)
    )
    problem_types = (
        ("labelled keypoints have no place", ~is_finite, "finite x and y"),
        ("keypoints are outside their image", is_outside.fill_null(value=False), None),
    )
    inside = pl.format("inside {} × {} pixels", "width", "height")
    texts = (coordinate.cast(pl.String).fill_null("null") for coordinate in (x, y))
    points_text = pl.format("{} keypoint(s), such as ({}, {})", "n", *texts)
    return [
        make_person_problems(
            "keypoints",
            _count_by_person(points.filter(test)),
            problem,
            "error",
            expected or inside,
            points_text,
        )
        for problem, test, expected in problem_types
    ]


def _list_labelled_points(people: pl.DataFrame) -> pl.DataFrame:
    """One row a labelled keypoint."""
    long = people.filter(pl.col("keypoints_x").list.len() > 0).explode(_LISTS[:3])
    return long.filter(pl.col("keypoints_v") > 0)


def _count_by_person(points: pl.DataFrame) -> pl.DataFrame:
    return points.group_by("instance_id", maintain_order=True).agg(
        pl.exclude("instance_id").first(), n=pl.len()
    )


def _check_inside_masks(block: PeopleWithMasks, left_out: set[str]) -> pl.DataFrame:
    rows = block.rows.with_row_index("mask")
    if "keypoints_x" not in rows.columns:
        return concatenate_problems()
    rows = rows.filter(~pl.col("instance_id").is_in(list(left_out)))
    points = _list_labelled_points(rows.select("instance_id", "mask", *_LISTS[:3]))
    points = points.filter(pl.col("keypoints_x", "keypoints_y").is_finite(), keypoints_v=2)
    if points.is_empty():
        return concatenate_problems()
    is_inside = _is_near_mask(
        block.masks,
        points["mask"].to_numpy().astype(np.int64),
        points["keypoints_x"].to_numpy(),
        points["keypoints_y"].to_numpy(),
    )
    visible_counts = points.group_by("mask").agg(visible=pl.len())
    outside = _count_by_person(points.filter(pl.Series(~is_inside))).join(visible_counts, on="mask")
    return make_person_problems(
        "keypoints",
        outside,
        "visible keypoints are outside their person's mask",
        "warning",
        f"every visible keypoint within {_MASK_SLACK_PX:g} pixels of the mask",
        pl.format("{} of {}, such as ({}, {})", "n", "visible", "keypoints_x", "keypoints_y"),
    )


def _is_near_mask(
    masks: Masks,
    mask_index: npt.NDArray[np.int64],
    x: npt.NDArray[np.float64],
    y: npt.NDArray[np.float64],
) -> npt.NDArray[np.bool_]:
    """Test whether point k lies within a few pixels of mask ``mask_index[k]``: ``[points]``."""
    mask_span = int((masks.height * masks.width).max(initial=0)) + 1
    edge_mask = np.repeat(np.arange(len(masks)), np.diff(masks.starts))
    edges = masks.edges + edge_mask * mask_span  # sorted: every mask has a stretch of its own
    height, width = masks.height[mask_index], masks.width[mask_index]
    is_inside = np.zeros(len(x), dtype=bool)
    for right, down in itertools.product((0.0, -_MASK_SLACK_PX, _MASK_SLACK_PX), repeat=2):
        column, row = np.floor(x + right), np.floor(y + down)
        is_on_canvas = (column >= 0) & (column < width) & (row >= 0) & (row < height)
        position = (
            np.where(is_on_canvas, column * height + row, 0).astype(np.int64)
            + mask_index * mask_span
        )
        # An odd number of edges at or before a position: inside a run.
        is_inside |= is_on_canvas & (np.searchsorted(edges, position, side="right") % 2 == 1)
    return is_inside
