"""Annotated people and detections as numbered rows: what all tasks of boxes share.

Images get whole numbers, people a reason where they are not scored, predictions their image and,
class by class, their class. ``matching`` makes the scores from these tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, refuse_unknown_names
from isolux.core.formatting import join_first
from isolux.core.tables import IMAGES, INSTANCES, Table, check, to_polars
from isolux.geometry.boxes import BoxColumns, check_boxes_xywh
from isolux.geometry.matching import Detections, Truths
from isolux.tasks._boxes.image_coverage import distinct_values, keep_known_images

BOX = ("box_x", "box_y", "box_w", "box_h")
NO_BOX = {"no box": pl.any_horizontal(pl.col(c).is_null() for c in BOX)}
# One of the two is enough: polygons are filled when masks are needed.
NO_MASK = {
    "no mask": pl.all_horizontal(pl.col(c).is_null() for c in ("mask_counts", "mask_polygons"))
}
DETECTION_COLUMNS = {
    "model": pl.String(),
    "unit_id": pl.String(),
    "cluster_id": pl.String(),
    "image_id": pl.String(),
    "label": pl.String(),
    "score": pl.Float64(),
    "kind": pl.String(),
}
"""The first columns of every evidence table with rows for detections and people."""
IS_CROWD = pl.col("is_crowd")
# COCO's defaults: without a flag, an annotation is one person and is evaluated.
_FLAG_DEFAULTS = {"is_crowd": False, "ignore": False, "judged": True}


@dataclass(frozen=True, slots=True)
class AnnotatedInstances:
    """The instances of a dataset, whether they are scored or only take part in matching.

    Parameters
    ----------
    rows : polars.DataFrame
        Columns of instances, and ``unit_id``, ``image`` (its number), ``class`` (class by class:
        its class), ``reason`` (null: scored).
    truths : Truths
    images : polars.DataFrame
        ``image_id``, ``image`` from 0, ``cluster_id``, ``width``, ``height`` of every image; sizes
        are null where the dataset does not know them.
    classes : tuple of str or None
        Class by class: their names, sorted; None: a detection may find a person of any class.
    has_class_scores : bool
        Class by class: whether each class has scores too, besides the means over classes.
    withdrawn : frozenset of str
        The dataset's: images of people who withdrew are not missing.
    """

    rows: pl.DataFrame
    truths: Truths
    images: pl.DataFrame
    classes: tuple[str, ...] | None
    has_class_scores: bool = True
    withdrawn: frozenset[str] = frozenset()

    @property
    def label(self) -> pl.Expr:
        """The class under which a person's scores are reported; null where classes are not."""
        label_expr = pl.col("class") if self.has_class_scores else pl.lit(None, dtype=pl.String)
        return label_expr.alias("label")

    @property
    def scored(self) -> pl.Series:
        """Whether each person gets a score: ``[m]``."""
        return self.rows["reason"].is_null()


@dataclass(frozen=True, slots=True)
class ModelDetections:
    """One model's detections in the images of the dataset, in the order of the file."""

    model: str
    rows: pl.DataFrame
    detections: Detections


def box_columns(rows: pl.DataFrame) -> BoxColumns:
    """Return the boxes of people or predictions; NaN where there is none."""
    x, y, w, h = (rows[name].cast(pl.Float64).to_numpy() for name in BOX)
    return BoxColumns(x, y, w, h)


def read_people(
    dataset: Dataset,
    *,
    person_class: str | Sequence[str] | None,
    by_class: bool,
    missing_by_reason: Mapping[str, pl.Expr],
    crowd: pl.Expr = IS_CROWD,
) -> AnnotatedInstances:
    """Assign numbers to images and people, and find who is not scored and why.

    Any number of predictions may match who is in ``crowd``, by the share of each that lies there.
    """
    instances = INSTANCES.conform(dataset.instances)
    required_columns = {
        c for expr in missing_by_reason.values() for c in expr.meta.root_names()
    } | set(_FLAG_DEFAULTS)
    null_columns = [
        pl.lit(None).alias(c) for c in sorted(required_columns - set(instances.columns))
    ]
    # Flags may be null or absent: then they have their defaults.
    flags = [pl.col(name).fill_null(value=value) for name, value in _FLAG_DEFAULTS.items()]
    complete_instances = instances.with_columns(null_columns).with_columns(flags)
    images = _number_images(dataset, instances)
    rows = _keep_classes(complete_instances, person_class, dataset.name).join(
        images.select("image_id", "image"), on="image_id", how="left", maintain_order="left"
    )
    rows = rows.with_columns(_class_expr(rows, by_class=by_class), unit_id="instance_id")
    for reason, is_missing in missing_by_reason.items():
        # Without any box (or mask) everyone would count as missed, with equal recalls in all
        # groups.
        if rows.height and rows.select(is_missing.all()).item():
            raise SpecError(
                f"nobody in the dataset can be found: {reason}",
                expected="instances with " + ", ".join(is_missing.meta.root_names()),
                found="nothing but nulls",
                where=dataset.name,
            )
    rows = rows.with_columns(_reason_expr(missing_by_reason, by_class=by_class))
    classes = tuple(rows["class"].drop_nulls().unique().sort()) if by_class else None
    truths = _build_truths(rows, missing_by_reason, classes, crowd)
    return AnnotatedInstances(rows, truths, images, classes, withdrawn=dataset.withdrawn_ids)


def read_detections(
    predictions: object,
    table: Table,
    people: AnnotatedInstances,
    *,
    person_label: str | Sequence[str] | None,
    model: str | None,
) -> tuple[tuple[ModelDetections, ...], tuple[str, ...]]:
    """Keep detections of people in images of the dataset, by model; with notes."""
    frame, classes = check(to_polars(predictions), table, source="predictions"), people.classes
    # Before rows are excluded, so that the row number in the error is that of the file.
    _check_box_sizes(frame)
    rows, notes = keep_known_images(frame, people.images, people.withdrawn)
    if classes is None:
        rows, label_notes = _keep_labels(rows, frame, person_label)
    else:
        rows, label_notes = _keep_known_classes(rows, classes, person_label)
    # A file without rows is a model that detected no one; it needs a name to be scored.
    models = distinct_values(frame, "model") or [model or "model"]
    detections = []
    for name in models:
        model_rows = rows.filter(model=name) if len(models) > 1 else rows
        label = None if classes is None else _class_codes(model_rows["label"], classes).to_numpy()
        model_detections = Detections(
            model_rows["image"].to_numpy(), model_rows["score"].to_numpy(), label
        )
        detections.append(ModelDetections(name, model_rows, model_detections))
    return tuple(detections), (*notes, *label_notes)


def _number_images(dataset: Dataset, instances: pl.DataFrame) -> pl.DataFrame:
    """Sort images by their ids, numeric if all are: COCO's order, which decides ties."""
    image_rows = IMAGES.conform(dataset.images)
    ids = pl.concat([image_rows["image_id"], instances["image_id"]]).unique()
    number = ids.cast(pl.Int64, strict=False)
    frame = pl.DataFrame({"image_id": ids, "at": number if not number.null_count() else ids})
    # COCO's ids are numbers: as text "10" would come before "9", and ties would be broken
    # otherwise.
    images = frame.sort("at").select("image_id", image=pl.int_range(pl.len(), dtype=pl.Int64))
    clusters = instances.group_by("image_id").agg(pl.col("cluster_id").unique())
    sizes = image_rows.select("image_id", "width", "height").unique("image_id")
    for table in (clusters, sizes):
        images = images.join(table, on="image_id", how="left", maintain_order="left")
    clustered_rows = instances.drop_nulls("cluster_id")
    is_image_cluster = clustered_rows.height > 0 and bool(
        (clustered_rows["cluster_id"] == clustered_rows["image_id"]).all()
    )
    cluster_ids = pl.col("cluster_id")
    # An image with people of two clusters belongs to neither; its false positives have no cluster.
    only_cluster = pl.when(cluster_ids.list.len() == 1).then(cluster_ids.list.first())
    # Where images are the clusters, one without people is a cluster of its own.
    has_no_people = cluster_ids.is_null() & pl.lit(value=is_image_cluster)
    cluster = pl.when(has_no_people).then(pl.col("image_id")).otherwise(only_cluster)
    return images.select("image_id", "image", "width", "height", cluster_id=cluster)


def _keep_classes(
    instances: pl.DataFrame, person_class: str | Sequence[str] | None, source: str
) -> pl.DataFrame:
    """Keep the people with one of these classes."""
    if person_class is None:
        return instances
    names = [person_class] if isinstance(person_class, str) else list(person_class)
    known_classes = instances["classes"].explode().drop_nulls().unique().sort().to_list()
    refuse_unknown_names("class", names if instances.height else (), known_classes, where=source)
    has_class = pl.col("classes").list.eval(pl.element().is_in(names)).list.any()
    return instances.filter(has_class.fill_null(value=False))


def _class_expr(rows: pl.DataFrame, *, by_class: bool) -> pl.Expr:
    """Select each person's only class; refuse several, if matching is class by class."""
    if not by_class:
        return pl.lit(None, dtype=pl.String).alias("class")
    # Class by class, a person with two classes would be counted twice.
    multi_class_rows = rows.filter(pl.col("classes").list.len() > 1)
    if multi_class_rows.height:
        raise SpecError(
            "class by class, each person has one class",
            expected="one entry in `classes`",
            found=f"{multi_class_rows['instance_id'][0]!r} of"
            f" {multi_class_rows['classes'][0].to_list()}",
            hint="leave by_class out, or name one class as person_class",
        )
    return pl.col("classes").list.first().alias("class")


def _reason_expr(missing_by_reason: Mapping[str, pl.Expr], *, by_class: bool) -> pl.Expr:
    """Select the reason why a person is not scored; the first that applies."""
    return pl.coalesce(
        # The order is that of COCO's rules first: a crowd is never evaluated, whatever else it
        # lacks.
        pl.when("is_crowd").then(pl.lit("a crowd, not one person")),
        pl.when("ignore").then(pl.lit("marked to be ignored")),
        *(pl.when(is_missing).then(pl.lit(word)) for word, is_missing in missing_by_reason.items()),
        pl.when(pl.col("class").is_null() & pl.lit(value=by_class)).then(pl.lit("no class")),
        pl.when(~pl.col("judged")).then(pl.lit("takes part in matching only")),
    ).alias("reason")


def _build_truths(
    rows: pl.DataFrame,
    missing_by_reason: Mapping[str, pl.Expr],
    classes: tuple[str, ...] | None,
    crowd: pl.Expr,
) -> Truths:
    """Build the truths of matching; people without a shape or class are ignored."""
    is_missing = rows.select(pl.any_horizontal(*missing_by_reason.values())).to_series()
    # Those with judged = False match like all others and are only not scored.
    ignore = rows["ignore"] | is_missing
    label = None
    if classes is not None:
        ignore |= rows["class"].is_null()
        # One code beyond all classes: no detection has it, so people without a class match nothing.
        label = _class_codes(rows["class"], classes).fill_null(len(classes)).to_numpy()
    is_crowd = rows.select(crowd=crowd)["crowd"].to_numpy()
    return Truths(rows["image"].to_numpy(), ignore.to_numpy(), is_crowd, label)


def _class_codes(names: pl.Series, classes: Sequence[str]) -> pl.Series:
    """Map names of classes to their positions; null for others."""
    return names.replace_strict(
        list(classes), list(range(len(classes))), default=None, return_dtype=pl.Int64
    )


def _check_box_sizes(frame: pl.DataFrame) -> None:
    """Refuse boxes with a negative width or height."""
    if not set(BOX) <= set(frame.columns):
        return
    min_side = frame.select(pl.min_horizontal(pl.col("box_w", "box_h").min())).item()
    # IoU of a negative side is negative or above 1, without any error; so it is refused here.
    if min_side is not None and min_side < 0:
        boxes = np.column_stack([frame[name].fill_null(0.0).to_numpy() for name in BOX])
        check_boxes_xywh(boxes, file="predictions")


def _keep_labels(
    rows: pl.DataFrame, predictions: pl.DataFrame, person_label: str | Sequence[str] | None
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Keep predictions that mean a person: all of them where there is one label or none."""
    labels = distinct_values(predictions, "label")
    label_list = join_first(map(repr, labels), 12)
    if person_label is None:
        # Counting cars and dogs as detections of people would make recall depend on what else is
        # shown.
        if len(labels) > 1:
            raise SpecError(
                "the predictions are of several things, and none was named as people",
                expected="person_label, one or more of the labels",
                found=f"{len(labels)} labels: {label_list}",
                hint="name all of them to count any box",
            )
        return rows, ()
    names = [person_label] if isinstance(person_label, str) else list(person_label)
    # A misspelt label would exclude every prediction, and recall would be 0 for all groups.
    if predictions.height and not set(names) & set(labels):
        raise SpecError(
            f"no prediction is labelled {' or '.join(map(repr, names))}",
            expected="a label that the predictions have",
            found=label_list or "no labels at all",
            where="person_label",
            hint=None if labels else "leave person_label out: every prediction is then a person",
        )
    kept_rows = rows.filter(pl.col("label").is_in(names))
    n_excluded = rows.height - kept_rows.height
    note = f"{n_excluded:,} of {rows.height:,} predictions have other labels and were left out."
    return kept_rows, (note,) if n_excluded else ()


def _keep_known_classes(
    rows: pl.DataFrame, classes: tuple[str, ...], person_label: str | Sequence[str] | None
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Keep predictions with a class of the dataset; refuse if none has one."""
    if person_label is not None:
        raise SpecError(
            "class by class, every label is its own class",
            expected="by_class or person_label",
            found="both",
        )
    kept_rows = rows.filter(pl.col("label").is_in(list(classes)))
    if rows.height and classes and not kept_rows.height:
        raise SpecError(
            "no prediction has a class of the dataset",
            expected="labels such as " + ", ".join(map(repr, classes[:3])),
            found=", ".join(map(repr, rows["label"].unique().sort().head(3))),
            hint="COCO results name categories by number: read them with categories=…",
        )
    n_excluded = rows.height - kept_rows.height
    clause = "that do not occur in this dataset; they were left out."
    note = f"{n_excluded:,} predictions are of classes {clause}"
    return kept_rows, (note,) if n_excluded else ()
