"""Who ought to be found and what a model drew, as numbered rows: what all tasks of boxes share.

Images get whole numbers, people their reasons for not being scored, predictions their image and, if
wanted, their class. From here ``matching`` matches them and makes the scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from isolux.geometry.boxes import BoxColumns, check_boxes_xywh
from isolux.geometry.matching import Detections, Truths
from isolux.tasks._boxes.pictures import distinct, in_pictures
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.tables import IMAGES, INSTANCES, Table, check, to_polars

BOX = ("box_x", "box_y", "box_w", "box_h")
NO_BOX = {"no box": pl.any_horizontal(pl.col(c).is_null() for c in BOX)}
NO_MASK = {
    "no mask": pl.all_horizontal(pl.col(c).is_null() for c in ("mask_counts", "mask_polygons"))
}
OF_DETECTIONS = {
    "model": pl.String(),
    "unit_id": pl.String(),
    "cluster_id": pl.String(),
    "image_id": pl.String(),
    "label": pl.String(),
    "score": pl.Float64(),
    "kind": pl.String(),
}
"""Columns that every table of evidence begins with whose rows are detections and people missed."""
_FLAGS = {"is_crowd": False, "ignore": False, "judged": True}


@dataclass(frozen=True, slots=True)
class People:
    """The instances of a dataset, whether they are scored or only take part.

    Parameters
    ----------
    rows : polars.DataFrame
        Columns of instances, and ``unit_id``, ``image`` (its number), ``class`` (class by class:
        its class), ``reason`` (null: scored).
    truths : Truths
    images : polars.DataFrame
        ``image_id``, ``image`` from 0, ``cluster_id``, ``width``, ``height`` of every image looked
        at; sizes are null where the dataset does not know them.
    classes : tuple of str or None
        Class by class: their names, sorted; None: a detection may find a person of any class.
    apart : bool
        Class by class: whether each class is told too, and not the means over classes alone.
    withdrawn : frozenset of str
        The dataset's: pictures of people who withdrew are not missing.
    """

    rows: pl.DataFrame
    truths: Truths
    images: pl.DataFrame
    classes: tuple[str, ...] | None
    apart: bool = True
    withdrawn: frozenset[str] = frozenset()

    @property
    def label(self) -> pl.Expr:
        """The class under which a person's scores are told; null where classes are not."""
        told = pl.col("class") if self.apart else pl.lit(None, dtype=pl.String)
        return told.alias("label")

    @property
    def scored(self) -> pl.Series:
        """Whether each of them gets a score."""
        return self.rows["reason"].is_null()


@dataclass(frozen=True, slots=True)
class Found:
    """What one model drew in the images of the dataset, in the order given."""

    model: str
    rows: pl.DataFrame
    detections: Detections


def columns_of(rows: pl.DataFrame) -> BoxColumns:
    """Give the boxes of people or predictions; NaN where there is none."""
    x, y, w, h = (rows[name].cast(pl.Float64).to_numpy() for name in BOX)
    return BoxColumns(x, y, w, h)


def read_people(
    dataset: Dataset,
    *,
    person_class: str | Sequence[str] | None,
    by_class: bool,
    lacking: Mapping[str, pl.Expr],
) -> People:
    """Give images and people numbers, and say who is not scored."""
    instances = INSTANCES.conform(dataset.instances)
    needed = {c for expr in lacking.values() for c in expr.meta.root_names()} | set(_FLAGS)
    blank = [pl.lit(None).alias(c) for c in sorted(needed - set(instances.columns))]
    flags = [pl.col(name).fill_null(value=value) for name, value in _FLAGS.items()]
    known = instances.with_columns(blank).with_columns(flags)
    images = _images(dataset, instances)
    rows = _of_classes(known, person_class, dataset.name).join(
        images.select("image_id", "image"), on="image_id", how="left", maintain_order="left"
    )
    rows = rows.with_columns(_class(rows, by_class=by_class), unit_id="instance_id")
    for reason, nothing in lacking.items():
        if rows.height and rows.select(nothing.all()).item():
            raise SpecError(
                f"nobody in the dataset can be found: {reason}",
                expected="instances with " + ", ".join(nothing.meta.root_names()),
                found="nothing but nulls",
                where=dataset.name,
            )
    rows = rows.with_columns(_reason(lacking, by_class=by_class))
    classes = tuple(rows["class"].drop_nulls().unique().sort()) if by_class else None
    truths = _truths(rows, lacking, classes)
    return People(rows, truths, images, classes, withdrawn=dataset.withdrawn)


def read_found(
    predictions: object,
    table: Table,
    people: People,
    *,
    person_label: str | Sequence[str] | None,
    model: str | None,
) -> tuple[tuple[Found, ...], tuple[str, ...]]:
    """Keep what is of people, in images of the dataset: one ``Found`` a model, and notes."""
    frame, classes = check(to_polars(predictions), table, where="predictions"), people.classes
    _refuse_negative(frame)
    rows, notes = in_pictures(frame, people.images, people.withdrawn)
    if classes is None:
        rows, said = _of_labels(rows, frame, person_label)
    else:
        rows, said = _of_known_classes(rows, classes, person_label)
    models = distinct(frame, "model") or [model or "model"]
    found = []
    for name in models:
        own = rows.filter(pl.col("model") == name) if len(models) > 1 else rows
        label = None if classes is None else _codes(own["label"], classes).to_numpy()
        drawn = Detections(own["image"].to_numpy(), own["score"].to_numpy(), label)
        found.append(Found(name, own, drawn))
    return tuple(found), (*notes, *said)


def _images(dataset: Dataset, instances: pl.DataFrame) -> pl.DataFrame:
    """Put images in the order of their ids, as numbers if all are: COCO's, which decides ties."""
    listed = IMAGES.conform(dataset.images)
    ids = pl.concat([listed["image_id"], instances["image_id"]]).unique()
    number = ids.cast(pl.Int64, strict=False)
    frame = pl.DataFrame({"image_id": ids, "at": number if not number.null_count() else ids})
    images = frame.sort("at").select("image_id", image=pl.int_range(pl.len(), dtype=pl.Int64))
    clusters = instances.group_by("image_id").agg(pl.col("cluster_id").unique())
    sizes = listed.select("image_id", "width", "height").unique("image_id")
    for other in (clusters, sizes):
        images = images.join(other, on="image_id", how="left", maintain_order="left")
    held = instances.filter(pl.col("cluster_id").is_not_null())
    own = held.height > 0 and bool((held["cluster_id"] == held["image_id"]).all())
    several = pl.col("cluster_id")
    one = pl.when(several.list.len() == 1).then(several.list.first())
    nobody = several.is_null() & pl.lit(value=own)
    cluster = pl.when(nobody).then(pl.col("image_id")).otherwise(one)
    return images.select("image_id", "image", "width", "height", cluster_id=cluster)


def _of_classes(
    instances: pl.DataFrame, person_class: str | Sequence[str] | None, where: str
) -> pl.DataFrame:
    if person_class is None:
        return instances
    names = [person_class] if isinstance(person_class, str) else list(person_class)
    known = instances["classes"].explode().drop_nulls().unique().sort().to_list()
    for name in names if instances.height else ():
        if name not in known:
            raise UnknownNameError("class", name, known, where=where)
    wanted = pl.col("classes").list.eval(pl.element().is_in(names)).list.any()
    return instances.filter(wanted.fill_null(value=False))


def _class(rows: pl.DataFrame, *, by_class: bool) -> pl.Expr:
    if not by_class:
        return pl.lit(None, dtype=pl.String).alias("class")
    several = rows.filter(pl.col("classes").list.len() > 1)
    if several.height:
        raise SpecError(
            "class by class, each person has one class",
            expected="one entry in `classes`",
            found=f"{several['instance_id'][0]!r} of {several['classes'][0].to_list()}",
            hint="leave by_class out, or name one class as person_class",
        )
    return pl.col("classes").list.first().alias("class")


def _reason(lacking: Mapping[str, pl.Expr], *, by_class: bool) -> pl.Expr:
    return pl.coalesce(
        pl.when("is_crowd").then(pl.lit("a crowd, not one person")),
        pl.when("ignore").then(pl.lit("marked to be ignored")),
        *(pl.when(nothing).then(pl.lit(word)) for word, nothing in lacking.items()),
        pl.when(pl.col("class").is_null() & pl.lit(value=by_class)).then(pl.lit("no class")),
        pl.when(~pl.col("judged")).then(pl.lit("takes part in matching only")),
    ).alias("reason")


def _truths(
    rows: pl.DataFrame, lacking: Mapping[str, pl.Expr], classes: tuple[str, ...] | None
) -> Truths:
    """People without an outline or a class are ignored, as nothing can find them."""
    nothing = rows.select(pl.any_horizontal(*lacking.values())).to_series()
    ignore = rows["ignore"] | nothing
    label = None
    if classes is not None:
        ignore |= rows["class"].is_null()
        label = _codes(rows["class"], classes).fill_null(len(classes)).to_numpy()
    return Truths(rows["image"].to_numpy(), ignore.to_numpy(), rows["is_crowd"].to_numpy(), label)


def _codes(names: pl.Series, classes: Sequence[str]) -> pl.Series:
    return names.replace_strict(
        list(classes), list(range(len(classes))), default=None, return_dtype=pl.Int64
    )


def _refuse_negative(frame: pl.DataFrame) -> None:
    if not set(BOX) <= set(frame.columns):
        return
    least = frame.select(pl.min_horizontal(pl.col("box_w", "box_h").min())).item()
    if least is not None and least < 0:
        boxes = np.column_stack([frame[name].fill_null(0.0).to_numpy() for name in BOX])
        check_boxes_xywh(boxes, file="predictions")


def _of_labels(
    rows: pl.DataFrame, given: pl.DataFrame, person_label: str | Sequence[str] | None
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Keep predictions that mean a person: all of them where there is one label or none."""
    known = distinct(given, "label")
    shown = ", ".join(map(repr, known[:12])) + (", …" if len(known) > 12 else "")
    if person_label is None:
        if len(known) > 1:
            raise SpecError(
                "the predictions are of several things, and none was named as people",
                expected="person_label, one or more of the labels",
                found=f"{len(known)} labels: {shown}",
                hint="name all of them to count any box",
            )
        return rows, ()
    names = [person_label] if isinstance(person_label, str) else list(person_label)
    if given.height and not set(names) & set(known):
        raise SpecError(
            f"no prediction is labelled {' or '.join(map(repr, names))}",
            expected="a label that the predictions have",
            found=shown or "no labels at all",
            where="person_label",
            hint=None if known else "leave person_label out: every prediction is then a person",
        )
    kept = rows.filter(pl.col("label").is_in(names))
    left = rows.height - kept.height
    note = f"{left:,} of {rows.height:,} predictions have other labels and were left out."
    return kept, (note,) if left else ()


def _of_known_classes(
    rows: pl.DataFrame, classes: tuple[str, ...], person_label: str | Sequence[str] | None
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    if person_label is not None:
        raise SpecError(
            "class by class, every label is its own class",
            expected="by_class or person_label",
            found="both",
        )
    kept = rows.filter(pl.col("label").is_in(list(classes)))
    if rows.height and classes and not kept.height:
        raise SpecError(
            "no prediction has a class of the dataset",
            expected="labels such as " + ", ".join(map(repr, classes[:3])),
            found=", ".join(map(repr, rows["label"].unique().sort().head(3))),
            hint="COCO results name categories by number: read them with categories=…",
        )
    left = rows.height - kept.height
    where = "that do not occur in this dataset; they were left out."
    note = f"{left:,} predictions are of classes {where}"
    return kept, (note,) if left else ()
