"""The tables that packages pass to one another: their columns, types, units and meanings.

An audit is a chain of tables, ``images, instances, attributes, predictions -> scores ->
group_metrics -> disparities -> findings``. This file names their columns once; ``check`` (of
``isolux.core.schema``) refuses a frame that is not such a table, and says which file, row
and column is at fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from isolux.core.schema import (
    CAUTION_STATUSES,
    COMPARABLE_STATUSES,
    Column,
    Status,
    Table,
    check,
    to_polars,
)

if TYPE_CHECKING:
    from polars._typing import PolarsDataType

__all__ = [
    "ATTRIBUTES",
    "BOX_PREDICTIONS",
    "CAUTION_STATUSES",
    "COMPARABLE_STATUSES",
    "COMPARISONS",
    "DISPARITIES",
    "EMBEDDINGS",
    "FINDINGS",
    "GROUP_METRICS",
    "IMAGES",
    "IMAGE_PREDICTIONS",
    "INSTANCES",
    "KEYPOINT_PREDICTIONS",
    "LABEL_PREDICTIONS",
    "MASK_PREDICTIONS",
    "MEMBERSHIP",
    "NUMBER_PREDICTIONS",
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


def _build_column(name: str, dtype: PolarsDataType, meaning: str, **kwargs: Any) -> Column:
    return Column(name, dtype, meaning, **kwargs)


IMAGES = Table(
    "images",
    "an image",
    (
        _build_column("image_id", S, "identifier, unique"),
        _build_column(
            "uri", S, "path inside the dataset's root, or address", optional=True, nullable=True
        ),
        _build_column("width", I, "pixels", optional=True, nullable=True),
        _build_column("height", I, "pixels", optional=True, nullable=True),
    ),
    key=("image_id",),
    open=True,
)

INSTANCES = Table(
    "instances",
    "a person or object to be judged",
    (
        _build_column("instance_id", S, "identifier, unique"),
        _build_column("image_id", S, "its image"),
        _build_column("subject_id", S, "the person, where known", optional=True, nullable=True),
        _build_column(
            "cluster_id",
            S,
            "what was sampled independently; null: the row itself",
            optional=True,
            nullable=True,
        ),
        _build_column("classes", L, "the classes it validly carries", optional=True, nullable=True),
    ),
    key=("instance_id",),
    open=True,
)

ATTRIBUTES = Table(
    "attributes",
    "one value of one attribute of one unit; several values are normal",
    (
        _build_column("unit_kind", S, "what unit_id identifies", allowed=_UNIT_KINDS),
        _build_column("unit_id", S, "the unit"),
        _build_column("attribute", S, "the attribute's name"),
        _build_column("value", S, "the value as text; null: unknown", nullable=True),
        _build_column(
            "number", F, "the value of a numeric attribute", optional=True, nullable=True
        ),
        _build_column(
            "votes", F, "how many annotators gave this value", optional=True, nullable=True
        ),
        _build_column("annotator", S, "who gave it", optional=True, nullable=True),
    ),
)

LABEL_PREDICTIONS = Table(
    "predictions (labels)",
    "one label that a model gave one unit",
    (
        _build_column("model", S, "name of the model"),
        _build_column("instance_id", S, "the unit judged"),
        _build_column(
            "label", S, "the predicted class; null: the model gave no answer", nullable=True
        ),
        _build_column("score", F, "confidence, 0 to 1, higher is surer; null: none", nullable=True),
        _build_column("rank", I, "1 for the first answer, 2 for the second, …"),
        _build_column(
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
    _build_column("model", S, "name of the model"),
    _build_column("image_id", S, "the image"),
    _build_column("label", S, "the class, as the file names it; null: not said", nullable=True),
)
_BOX_EDGES = (
    ("box_x", "left edge of the box, pixels from the image's left edge"),
    ("box_y", "upper edge of the box, pixels from the image's upper edge"),
    ("box_w", "width of the box, pixels, 0 or more"),
    ("box_h", "height of the box, pixels, 0 or more"),
)
_SCORE = _build_column("score", F, "higher is surer; of any scale, only the order counts")

_REQUIRED_BOX_COLUMNS = tuple(
    _build_column(name, F, f"{meaning}; null: the picture's size is not known", nullable=True)
    for name, meaning in _BOX_EDGES
)

BOX_PREDICTIONS = Table(
    "predictions (boxes)",
    "one box that a model drew; equal rows get a caution",
    (*_MODEL_OUTPUT_COLUMNS, *_REQUIRED_BOX_COLUMNS, _SCORE),
    open=True,
)

_OPTIONAL_BOX_COLUMNS = tuple(
    _build_column(name, F, f"{meaning}; null: not said", optional=True, nullable=True)
    for name, meaning in _BOX_EDGES
)

MASK_PREDICTIONS = Table(
    "predictions (masks)",
    "one mask that a model drew; equal rows get a caution",
    (
        *_MODEL_OUTPUT_COLUMNS,
        *_OPTIONAL_BOX_COLUMNS,
        _SCORE,
        _build_column("mask_counts", S, "the mask as COCO's compressed run lengths"),
        _build_column("mask_height", I, "height of the picture that the run lengths fill, pixels"),
        _build_column("mask_width", I, "width of that picture, pixels"),
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
        _build_column("keypoints_x", _COORDINATES, "x of each keypoint, pixels"),
        _build_column("keypoints_y", _COORDINATES, "y of each keypoint, pixels"),
        _build_column(
            "keypoints_v", _COORDINATES, "the third number of each: a confidence, or 0, 1, 2"
        ),
    ),
    open=True,
)

EMBEDDINGS = Table(
    "predictions (embeddings)",
    "one vector that a model gave one unit",
    (
        _build_column("model", S, "name of the model"),
        _build_column("instance_id", S, "the unit"),
        _build_column(
            "embedding",
            pl.List(pl.Float32),
            "the vector, as long in every row; null: no template could be made",
            nullable=True,
        ),
    ),
    key=("model", "instance_id"),
    open=True,
)

NUMBER_PREDICTIONS = Table(
    "predictions (numbers)",
    "one number that a model gave one unit: an age, a quality",
    (
        _build_column("model", S, "name of the model"),
        _build_column("instance_id", S, "the unit"),
        _build_column("value", F, "the number; null: the model gave none", nullable=True),
    ),
    key=("model", "instance_id"),
    open=True,
)

IMAGE_PREDICTIONS = Table(
    "predictions (images)",
    "one picture that a model made, before it is a file",
    (
        _build_column("model", S, "name of the model"),
        _build_column("instance_id", S, "the unit, or its image"),
        _build_column(
            "png", pl.Binary(), "the picture as PNG; null: the model gave none", nullable=True
        ),
    ),
    key=("model", "instance_id"),
)

PART_MASK_FILES = Table(
    "predictions (part masks)",
    "one part's mask, as a file that is opened when it is needed",
    (
        _build_column("model", S, "name of the model"),
        _build_column("image_id", S, "the image"),
        _build_column("part", S, "the part: skin, hair, …; a part without a file is not there"),
        _build_column("uri", S, "path of the file"),
    ),
    key=("model", "image_id", "part"),
    open=True,
)

_METRIC = (
    _build_column("task", S, "the task's name"),
    _build_column("metric", S, "the metric's name"),
    _build_column("label", S, "class, part or keypoint; null: none", nullable=True),
    _build_column("threshold", F, "IoU, FAR or k; null: none", nullable=True),
)

SCORES = Table(
    "scores",
    "one metric of one unit",
    (
        _build_column("model", S, "name of the model"),
        *_METRIC,
        _build_column("unit_kind", S, "what unit_id identifies", allowed=_UNIT_KINDS),
        _build_column("unit_id", S, "the unit"),
        _build_column(
            "cluster_id", S, "what was sampled independently; null: the row", nullable=True
        ),
        _build_column("value", F, "the score; null: not scored, see reason", nullable=True),
        _build_column("reason", S, "why the value is null", nullable=True),
    ),
    key=("model", "task", "metric", "label", "threshold", "unit_id"),
)

MEMBERSHIP = Table(
    "membership",
    "one unit in one group of one attribute or intersection",
    (
        _build_column("attribute", S, "attribute, or attributes joined by * in the order given"),
        _build_column("group", S, "the group, for display; never parsed"),
        _build_column("values", L, "the value of each attribute of the intersection"),
        _build_column("unit_id", S, "the unit"),
    ),
    key=("attribute", "values", "unit_id"),
)

GROUP_METRICS = Table(
    "group_metrics",
    "one metric of one group",
    (
        _build_column("model", S, "name of the model"),
        *_METRIC,
        _build_column("attribute", S, "attribute or intersection; null: everyone", nullable=True),
        _build_column("group", S, "the group, for display"),
        _build_column("values", L, "the value of each attribute of the intersection"),
        _build_column("n_units", I, "units with a score"),
        _build_column("n_clusters", I, "independent clusters among them"),
        _build_column("value", F, "the group's value; null: see status", nullable=True),
        _build_column("low", F, "lower end of the interval", nullable=True),
        _build_column("high", F, "upper end of the interval", nullable=True),
        _build_column("standard_error", F, "bootstrap standard error", nullable=True),
        _build_column("method", S, "how the interval was made", nullable=True),
        _build_column("status", S, "may the value be read as it stands?", allowed=_STATUS),
        _build_column("reason", S, "what the status rests on", nullable=True),
        _build_column(
            "shrunken",
            F,
            "estimate that borrows strength from the attributes of an intersection that has small "
            "groups; null elsewhere. No claim rests on it",
            optional=True,
            nullable=True,
        ),
        _build_column("shrunken_low", F, "lower end of its interval", optional=True, nullable=True),
        _build_column(
            "shrunken_high", F, "upper end of its interval", optional=True, nullable=True
        ),
        _build_column(
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
    _build_column("attribute", S, "attribute or intersection; null: everyone", nullable=True),
    _build_column("kind", S, "difference, ratio, range, …: see disparity/measure_registry.py"),
    _build_column("group_a", S, "the first group; of a whole attribute: the worst", nullable=True),
    _build_column("group_b", S, "the second group; of a whole attribute: the best", nullable=True),
    _build_column("value", F, "the disparity; null: see status", nullable=True),
    _build_column("low", F, "lower end of the interval", nullable=True),
    _build_column("high", F, "upper end of the interval", nullable=True),
    _build_column(
        "simultaneous_low",
        F,
        "lower end of the interval that holds together with those of all of the family: made like "
        "low and high, at the critical value of max-T, in the same unit. For a comparison that was "
        "chosen by its result. Null where low is, where the correction is not max-T, where the "
        "interval asked for is not the one that the test inverts (score), and of whole attributes",
        optional=True,
        nullable=True,
    ),
    _build_column(
        "simultaneous_high", F, "upper end of that interval", optional=True, nullable=True
    ),
    _build_column("method", S, "how the interval was made", nullable=True),
    _build_column("p_value", F, "against 'these do not differ'", nullable=True),
    _build_column(
        "p_adjusted",
        F,
        "the same, adjusted over the family, at its part of the error rate",
        nullable=True,
    ),
    _build_column("test", S, "which null test", nullable=True),
    _build_column(
        "family",
        S,
        "the hypotheses corrected together, and their part of the error rate",
        nullable=True,
    ),
    _build_column("detectable", F, "smallest value seen with power .8", nullable=True),
    _build_column("n_units_a", I, "units of group_a", nullable=True),
    _build_column("n_clusters_a", I, "clusters of group_a", nullable=True),
    _build_column("n_units_b", I, "units of group_b", nullable=True),
    _build_column("n_clusters_b", I, "clusters of group_b", nullable=True),
    _build_column("status", S, "may the value be read as it stands?", allowed=_STATUS),
    _build_column("reason", S, "what the status rests on", nullable=True),
)

DISPARITIES = Table(
    "disparities", "one comparison", (_build_column("model", S, "name of the model"), *_DISPARITY)
)

COMPARISONS = Table(
    "disparities",
    "one comparison of two models",
    (
        _build_column("model_a", S, "the first model"),
        _build_column("model_b", S, "the second model"),
        *_DISPARITY,
    ),
)

FINDINGS = Table(
    "findings",
    "one claim a person can act on",
    (
        _build_column("rank", I, "1 is what to read first"),
        _build_column("analysis", S, "which analysis made it"),
        _build_column("claim", S, "a plain sentence"),
        _build_column("effect", F, "the size of it, in the metric's unit", nullable=True),
        _build_column("low", F, "lower end of the interval", nullable=True),
        _build_column("high", F, "upper end of the interval", nullable=True),
        _build_column("n", I, "units it rests on", nullable=True),
        _build_column("reference", S, "the method's source", nullable=True),
        _build_column("status", S, "may it be read as it stands?", allowed=_STATUS),
        _build_column("metric", S, "the metric it is about", nullable=True),
        _build_column("label", S, "the class it is about", nullable=True),
        _build_column("attribute", S, "the attribute it is about", nullable=True),
        _build_column("group_a", S, "the worse group", nullable=True),
        _build_column("group_b", S, "the reference; null: everyone", nullable=True),
        _build_column("p_adjusted", F, "family-adjusted p", nullable=True),
        _build_column("also", L, "what else shows the same fact", optional=True, nullable=True),
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
