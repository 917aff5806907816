"""One object or person under several ids: the same box drawn twice, the same row written twice.

A model finds an object once, so that every further annotation of it counts as missed. A person in
several rows counts as several people. If this happens in one group more than in another, the
groups differ by that alone.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.checks._problems import concatenate_problems, make_person_problems
from isolux.core import citations
from isolux.core.containers import Dataset
from isolux.core.info import CheckInfo
from isolux.core.tables import INSTANCES
from isolux.geometry.boxes import BoxColumns, build_pair_finder_xywh
from isolux.geometry.matching import Detections, Truths

INFO = CheckInfo(
    title="Each object once",
    summary="Boxes of one class in the same place of an image, and rows that repeat another.",
    references=(citations.COCO.with_location("section 4.3: one instance, one segmentation"),),
    assumptions=(
        "Two objects of one class hardly ever have the same box.",
        "Rows of one image with the same values are of one person, unless values are often alike.",
    ),
    needs="tables",
)

_BOX = ("box_x", "box_y", "box_w", "box_h")
# Of 44,000 boxes of WIDER FACE, COCO and BDD100K, 6 pairs of one class overlap by .8 or more. A
# small box that moves by a pixel overlaps less, and is judged by its edges.
_MIN_IOU = 0.8  # from which two boxes of one class are of one object
_MIN_EDGE_IOU, _MAX_EDGE_DIFFERENCE_PX = 0.5, 1.5
# Rows of one image may be alike by chance, as rows of different images are, where some of them
# differ; people in one image are more alike than others.
_CHANCE_FACTOR, _MIN_ALIKE_SHARE = 20, 0.9
_MAX_COMPARED_ROWS = 2_000


def check(dataset: Dataset) -> pl.DataFrame:
    """List annotations and rows that repeat an earlier one.

    Parameters
    ----------
    dataset : Dataset
        Instances with boxes; crowds and what is marked as ignored are left aside. Or a table with
        one row a person and a column of images.

    Returns
    -------
    polars.DataFrame
        Table ``problems``, a row for each repeat. Error: exactly the same box. Warnings: nearly the
        same box; a row that repeats another one.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> two = Dataset(
    ...     name="one person twice",
    ...     info=DatasetInfo(title="One person", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b"], "image_id": ["1", "1"],
    ...                             "box_x": [4.0, 4.0], "box_y": [5.0, 5.0],
    ...                             "box_w": [20.0, 20.0], "box_h": [50.0, 50.0]}),
    ... )
    >>> check(two).select("problem", "unit_id", "found").rows()
    [('an object is annotated twice', 'b', "the box of 'a'")]
    """
    people = INSTANCES.conform(dataset.instances).drop_nulls("image_id")
    if set(_BOX) <= set(people.columns) and people["box_x"].is_not_null().any():
        exact, near = _find_repeated_boxes(people)
        rows = exact.head(0)
    else:
        rows = _find_repeated_rows(dataset, people)
        exact = near = rows.head(0)
    hint = "keep each object once"
    return concatenate_problems(
        make_person_problems(
            "repeats",
            exact,
            "an object is annotated twice",
            "error",
            "each object once",
            pl.format("the box of '{}'", "first"),
            hint,
        ),
        make_person_problems(
            "repeats",
            near,
            "an object is probably annotated twice",
            "warning",
            "each object once",
            pl.format("nearly the box of '{}'", "first"),
            hint,
        ),
        make_person_problems(
            "repeats",
            rows,
            "a row repeats another one",
            "warning",
            "each person once",
            pl.format("the image and the values of '{}'", "first"),
            hint,
        ),
    )


def _find_repeated_boxes(people: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """List who has exactly or nearly the box of an earlier one: ``instance_id, first``."""
    flags = [
        pl.col(c).fill_null(value=False) for c in ("is_crowd", "ignore") if c in people.columns
    ]
    label = pl.col("classes").list.sort().list.join("\0").fill_null("")
    boxes = people.filter(~pl.any_horizontal(pl.lit(value=False), *flags)).select(
        "instance_id", "image_id", *(pl.col(c).cast(pl.Float64) for c in _BOX), label=label
    )
    boxes = boxes.drop_nulls(_BOX).filter(
        pl.all_horizontal(pl.col(_BOX).is_finite()), pl.col("box_w") > 0, pl.col("box_h") > 0
    )
    key_columns = ["image_id", "label", *_BOX]
    is_repeat = ~boxes.select(pl.struct(key_columns).is_first_distinct()).to_series()
    distinct = boxes.filter(~is_repeat)
    first = distinct.select(*key_columns, first="instance_id")
    exact = boxes.filter(is_repeat).join(first, on=key_columns, how="left", nulls_equal=True)
    # Only images with several boxes can hold repeats.
    distinct = distinct.filter(pl.len().over("image_id") > 1)
    earlier, later = _find_near_boxes(distinct)
    ids = distinct["instance_id"]
    near = pl.DataFrame({"instance_id": ids[later], "first": ids[earlier]})
    return exact.select("instance_id", "first"), near.unique("instance_id", maintain_order=True)


def _find_near_boxes(boxes: pl.DataFrame) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows of each pair of boxes that are nearly the same, the earlier one first."""
    if not boxes.height:
        return np.empty(0, np.int64), np.empty(0, np.int64)
    image, label = (
        boxes[name].rank("dense").cast(pl.Int64).to_numpy() - 1 for name in ("image_id", "label")
    )
    columns = BoxColumns(*(boxes[name].to_numpy() for name in _BOX))
    pairs = build_pair_finder_xywh(
        Detections(image, np.ones(len(image)), label),
        Truths(image, label=label),
        columns,
        lowest_iou=_MIN_EDGE_IOU,
    )(columns)
    is_later = pairs.truth > pairs.detection
    a, b = pairs.detection[is_later], pairs.truth[is_later]
    x, y, right, lower = columns.x, columns.y, columns.x + columns.width, columns.y + columns.height
    differences = [np.abs(edge[a] - edge[b]) for edge in (x, y, right, lower)]
    is_within_a_pixel = np.max(differences, axis=0) <= _MAX_EDGE_DIFFERENCE_PX
    is_near = (pairs.iou[is_later] >= _MIN_IOU) | is_within_a_pixel
    return a[is_near].astype(np.int64), b[is_near].astype(np.int64)


def _find_repeated_rows(dataset: Dataset, people: pl.DataFrame) -> pl.DataFrame:
    """List who has the image and all values of an earlier one: ``instance_id, first``."""
    if dataset.bundled_predictions is not None or dataset.multiplicity is not None:
        return pl.DataFrame(schema={"instance_id": pl.String, "first": pl.String})
    in_shared_images = people.filter(pl.len().over("image_id") > 1)
    identities = _hash_values(dataset, in_shared_images)
    key_columns = ["image_id", "values"]
    is_repeat = ~identities.select(pl.struct(key_columns).is_first_distinct()).to_series()
    repeats = identities.filter(is_repeat)
    n_further = identities.height - identities["image_id"].n_unique()
    if repeats.height < _MIN_ALIKE_SHARE * n_further:
        chance = _share_alike(_hash_values(dataset, _take_evenly(people, _MAX_COMPARED_ROWS)))
        if repeats.height < _CHANCE_FACTOR * chance * n_further:
            repeats = repeats.head(0)
    first = identities.filter(~is_repeat).select(*key_columns, first="instance_id")
    return repeats.join(first, on=key_columns, how="left").select("instance_id", "first")


def _take_evenly(people: pl.DataFrame, n: int) -> pl.DataFrame:
    """Take every k-th row, so that at most 2 n remain."""
    return people.gather_every(max(people.height // n, 1))


def _hash_values(dataset: Dataset, people: pl.DataFrame) -> pl.DataFrame:
    """Return a digest of everything known of each person but their id: ``values``."""
    ids = people["instance_id"].implode()
    attributes = dataset.attributes.filter(pl.col("unit_id").is_in(ids), unit_kind="instance")
    digests = (
        attributes.select("unit_id", digest=pl.struct("attribute", "value").hash())
        .group_by("unit_id")
        .agg(digest=pl.col("digest").sort().implode().hash())
    )
    columns = [c for c in people.columns if c not in ("instance_id", "image_id", "cluster_id")]
    people_with_digests = people.join(
        digests, left_on="instance_id", right_on="unit_id", how="left", maintain_order="left"
    )
    values = pl.struct(*columns, "digest").hash()
    return people_with_digests.select("instance_id", "image_id", values=values)


def _share_alike(identities: pl.DataFrame) -> float:
    """Return the share of pairs of rows of different images that have the same values."""

    def count_pairs(columns: list[str]) -> float:
        n = identities.group_by(columns).len()["len"].cast(pl.Float64)
        return float((n * (n - 1) / 2).sum())

    n = identities.height
    n_pairs = n * (n - 1) / 2 - count_pairs(["image_id"])
    return (count_pairs(["values"]) - count_pairs(["image_id", "values"])) / max(n_pairs, 1.0)
