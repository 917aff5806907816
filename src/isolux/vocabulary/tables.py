"""The tables that rooms hand to one another: their columns, types, units and meanings.

An audit is a chain of tables, ``images, instances, attributes, predictions -> scores ->
group_metrics -> disparities -> findings``. This file names their columns once; ``check`` (of
``isolux.vocabulary.schema``) refuses a frame that is not such a table, and says which file, row
and column is at fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from isolux.vocabulary.schema import Column, Status, Table, check, to_polars

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

__all__ = [
    "ATTRIBUTES",
    "BOX_PREDICTIONS",
    "COMPARISONS",
    "DISPARITIES",
    "EMBEDDINGS",
    "FINDINGS",
    "GROUP_METRICS",
    "IMAGES",
    "INSTANCES",
    "KEYPOINT_PREDICTIONS",
    "LABEL_PREDICTIONS",
    "MASK_PREDICTIONS",
    "MEMBERSHIP",
    "PART_MASK_FILES",
    "SCORES",
    "TABLES",
    "Column",
    "Status",
    "Table",
    "check",
    "to_polars",
]

S, F, I, L = pl.String(), pl.Float64(), pl.Int64(), pl.List(pl.String())  # noqa: E741
_STATUS = tuple(s.value for s in Status)
_UNIT_KINDS = ("instance", "image", "subject", "household", "query")


def _col(name: str, dtype: PolarsDataType, meaning: str, **kwargs: Any) -> Column:
    return Column(name, dtype, meaning, **kwargs)


IMAGES = Table(
    "images",
    "an image",
    (
        _col("image_id", S, "identifier, unique"),
        _col("uri", S, "path inside the dataset's root, or address", optional=True, nullable=True),
        _col("width", I, "pixels", optional=True, nullable=True),
        _col("height", I, "pixels", optional=True, nullable=True),
    ),
    key=("image_id",),
    open=True,
)

INSTANCES = Table(
    "instances",
    "a person or object to be judged",
    (
        _col("instance_id", S, "identifier, unique"),
        _col("image_id", S, "its image"),
        _col("subject_id", S, "the person, where known", optional=True, nullable=True),
        _col(
            "cluster_id",
            S,
            "what was sampled independently; null: the row itself",
            optional=True,
            nullable=True,
        ),
        _col("classes", L, "the classes it validly carries", optional=True, nullable=True),
    ),
    key=("instance_id",),
    open=True,
)

ATTRIBUTES = Table(
    "attributes",
    "one value of one attribute of one unit; several values are normal",
    (
        _col("unit_kind", S, "what unit_id identifies", allowed=_UNIT_KINDS),
        _col("unit_id", S, "the unit"),
        _col("attribute", S, "the attribute's name"),
        _col("value", S, "the value as text; null: unknown", nullable=True),
        _col("number", F, "the value of a numeric attribute", optional=True, nullable=True),
        _col("votes", F, "how many annotators gave this value", optional=True, nullable=True),
        _col("annotator", S, "who gave it", optional=True, nullable=True),
    ),
)

LABEL_PREDICTIONS = Table(
    "predictions (labels)",
    "one label that a model gave one unit",
    (
        _col("model", S, "name of the model"),
        _col("instance_id", S, "the unit judged"),
        _col("label", S, "the predicted class; null: the model gave no answer", nullable=True),
        _col("score", F, "confidence, 0 to 1, higher is surer; null: none", nullable=True),
        _col("rank", I, "1 for the first answer, 2 for the second, …"),
        _col(
            "detected",
            pl.Boolean(),
            "whether the model found the person at all",
            optional=True,
            nullable=True,
        ),
    ),
    key=("model", "instance_id", "rank"),
    open=True,
)

_MODEL_OUTPUT_COLUMNS = (
    _col("model", S, "name of the model"),
    _col("image_id", S, "the image"),
    _col("label", S, "the class, as the file names it; null: not said", nullable=True),
)
_BOX_EDGES = (
    ("box_x", "left edge of the box, pixels from the image's left edge"),
    ("box_y", "upper edge of the box, pixels from the image's upper edge"),
    ("box_w", "width of the box, pixels, 0 or more"),
    ("box_h", "height of the box, pixels, 0 or more"),
)
_SCORE = _col("score", F, "higher is surer; of any scale, only the order counts")

_REQUIRED_BOX_COLUMNS = tuple(
    _col(name, F, f"{meaning}; null: the picture's size is not known", nullable=True)
    for name, meaning in _BOX_EDGES
)

BOX_PREDICTIONS = Table(
    "predictions (boxes)",
    "one box that a model drew; equal rows get a caution",
    (*_MODEL_OUTPUT_COLUMNS, *_REQUIRED_BOX_COLUMNS, _SCORE),
    open=True,
)

_OPTIONAL_BOX_COLUMNS = tuple(
    _col(name, F, f"{meaning}; null: not said", optional=True, nullable=True)
    for name, meaning in _BOX_EDGES
)

MASK_PREDICTIONS = Table(
    "predictions (masks)",
    "one mask that a model drew; equal rows get a caution",
    (
        *_MODEL_OUTPUT_COLUMNS,
        *_OPTIONAL_BOX_COLUMNS,
        _SCORE,
        _col("mask_counts", S, "the mask as COCO's compressed run lengths"),
        _col("mask_height", I, "height of the picture that the run lengths fill, pixels"),
        _col("mask_width", I, "width of that picture, pixels"),
    ),
    open=True,
)

_COORDINATES = pl.List(pl.Float64)

KEYPOINT_PREDICTIONS = Table(
    "predictions (keypoints)",
    "one pose that a model drew; equal rows get a caution",
    (
        *_MODEL_OUTPUT_COLUMNS,
        *_OPTIONAL_BOX_COLUMNS,
        _SCORE,
        _col("keypoints_x", _COORDINATES, "x of each keypoint, pixels"),
        _col("keypoints_y", _COORDINATES, "y of each keypoint, pixels"),
        _col("keypoints_v", _COORDINATES, "the third number of each: a confidence, or 0, 1, 2"),
    ),
    open=True,
)

EMBEDDINGS = Table(
    "predictions (embeddings)",
    "one vector that a model gave one unit",
    (
        _col("model", S, "name of the model"),
        _col("instance_id", S, "the unit"),
        _col(
            "embedding",
            pl.List(pl.Float32),
            "the vector, as long in every row; null: no template could be made",
            nullable=True,
        ),
    ),
    key=("model", "instance_id"),
    open=True,
)

PART_MASK_FILES = Table(
    "predictions (part masks)",
    "one part's mask, as a file that is opened when it is needed",
    (
        _col("model", S, "name of the model"),
        _col("image_id", S, "the image"),
        _col("part", S, "the part: skin, hair, …; a part without a file is not there"),
        _col("uri", S, "path of the file"),
    ),
    key=("model", "image_id", "part"),
    open=True,
)

_METRIC = (
    _col("task", S, "the task's name"),
    _col("metric", S, "the metric's name"),
    _col("label", S, "class, part or keypoint; null: none", nullable=True),
    _col("threshold", F, "IoU, FAR or k; null: none", nullable=True),
)

SCORES = Table(
    "scores",
    "one metric of one unit",
    (
        _col("model", S, "name of the model"),
        *_METRIC,
        _col("unit_kind", S, "what unit_id identifies", allowed=_UNIT_KINDS),
        _col("unit_id", S, "the unit"),
        _col("cluster_id", S, "what was sampled independently; null: the row", nullable=True),
        _col("value", F, "the score; null: not scored, see reason", nullable=True),
        _col("reason", S, "why the value is null", nullable=True),
    ),
    key=("model", "task", "metric", "label", "threshold", "unit_id"),
)

MEMBERSHIP = Table(
    "membership",
    "one unit in one group of one attribute or intersection",
    (
        _col("attribute", S, "attribute, or attributes joined by * in the order given"),
        _col("group", S, "the group, for display; never parsed"),
        _col("values", L, "the value of each attribute of the intersection"),
        _col("unit_id", S, "the unit"),
    ),
    key=("attribute", "values", "unit_id"),
)

GROUP_METRICS = Table(
    "group_metrics",
    "one metric of one group",
    (
        _col("model", S, "name of the model"),
        *_METRIC,
        _col("attribute", S, "attribute or intersection; null: everyone", nullable=True),
        _col("group", S, "the group, for display"),
        _col("values", L, "the value of each attribute of the intersection"),
        _col("n_units", I, "units with a score"),
        _col("n_clusters", I, "independent clusters among them"),
        _col("value", F, "the group's value; null: see status", nullable=True),
        _col("low", F, "lower end of the interval", nullable=True),
        _col("high", F, "upper end of the interval", nullable=True),
        _col("standard_error", F, "bootstrap standard error", nullable=True),
        _col("method", S, "how the interval was made", nullable=True),
        _col("status", S, "may the value be read as it stands?", allowed=_STATUS),
        _col("reason", S, "what the status rests on", nullable=True),
        _col(
            "shrunken",
            F,
            "estimate that borrows strength from the attributes of an intersection that has small "
            "groups; null elsewhere. No claim rests on it",
            optional=True,
            nullable=True,
        ),
        _col("shrunken_low", F, "lower end of its interval", optional=True, nullable=True),
        _col("shrunken_high", F, "upper end of its interval", optional=True, nullable=True),
        _col(
            "shrunken_from",
            F,
            "the raw value beside it, also where value is withheld",
            optional=True,
            nullable=True,
        ),
    ),
    key=("model", "task", "metric", "label", "threshold", "attribute", "values"),
    open=True,  # of a sample with weights also n_effective: units of one weight that tell as much
)

_DISPARITY = (
    *_METRIC,
    _col("attribute", S, "attribute or intersection; null: everyone", nullable=True),
    _col("kind", S, "difference, ratio, range, …: see disparity/measure_registry.py"),
    _col("group_a", S, "the first group; of a whole attribute: the worst", nullable=True),
    _col("group_b", S, "the second group; of a whole attribute: the best", nullable=True),
    _col("value", F, "the disparity; null: see status", nullable=True),
    _col("low", F, "lower end of the interval", nullable=True),
    _col("high", F, "upper end of the interval", nullable=True),
    _col(
        "simultaneous_low",
        F,
        "lower end of the interval that holds together with those of all of the family: made like "
        "low and high, at the critical value of max-T, in the same unit. For a comparison that was "
        "chosen by its result. Null where low is, where the correction is not max-T, where the "
        "interval asked for is not the one that the test inverts (score), and of whole attributes",
        optional=True,
        nullable=True,
    ),
    _col("simultaneous_high", F, "upper end of that interval", optional=True, nullable=True),
    _col("method", S, "how the interval was made", nullable=True),
    _col("p_value", F, "against 'these do not differ'", nullable=True),
    _col("p_adjusted", F, "the same, for the whole family", nullable=True),
    _col("test", S, "which null test", nullable=True),
    _col("family", S, "the hypotheses corrected together", nullable=True),
    _col("detectable", F, "smallest value seen with power .8", nullable=True),
    _col("n_units_a", I, "units of group_a", nullable=True),
    _col("n_clusters_a", I, "clusters of group_a", nullable=True),
    _col("n_units_b", I, "units of group_b", nullable=True),
    _col("n_clusters_b", I, "clusters of group_b", nullable=True),
    _col("status", S, "may the value be read as it stands?", allowed=_STATUS),
    _col("reason", S, "what the status rests on", nullable=True),
)

DISPARITIES = Table(
    "disparities", "one comparison", (_col("model", S, "name of the model"), *_DISPARITY)
)

COMPARISONS = Table(
    "disparities",
    "one comparison of two models",
    (
        _col("model_a", S, "the first model"),
        _col("model_b", S, "the second model"),
        *_DISPARITY,
    ),
)

FINDINGS = Table(
    "findings",
    "one claim a person can act on",
    (
        _col("rank", I, "1 is what to read first"),
        _col("analysis", S, "which analysis made it"),
        _col("claim", S, "a plain sentence"),
        _col("effect", F, "the size of it, in the metric's unit", nullable=True),
        _col("low", F, "lower end of the interval", nullable=True),
        _col("high", F, "upper end of the interval", nullable=True),
        _col("n", I, "units it rests on", nullable=True),
        _col("reference", S, "the method's source", nullable=True),
        _col("status", S, "may it be read as it stands?", allowed=_STATUS),
        _col("metric", S, "the metric it is about", nullable=True),
        _col("label", S, "the class it is about", nullable=True),
        _col("attribute", S, "the attribute it is about", nullable=True),
        _col("group_a", S, "the worse group", nullable=True),
        _col("group_b", S, "the reference; null: everyone", nullable=True),
        _col("p_adjusted", F, "family-adjusted p", nullable=True),
        _col("also", L, "what else shows the same fact", optional=True, nullable=True),
    ),
)

TABLES = (
    IMAGES,
    INSTANCES,
    ATTRIBUTES,
    LABEL_PREDICTIONS,
    SCORES,
    MEMBERSHIP,
    GROUP_METRICS,
    DISPARITIES,
    FINDINGS,
)
