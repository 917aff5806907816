"""What tests of tasks class by class share: tables of groups, and COCO's answer for each class."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import polars as pl

from isolux.core.spec import Groups, Statistics
from isolux.core.tables import ATTRIBUTES
from isolux.groups.measure import measure_groups
from isolux.groups.membership import build_membership
from isolux.groups.option_parsing import read_groupings
from tests.geometry._coco import Case, evaluated


def by_group(dataset, scores, metric, label=None, threshold=None, by="group"):
    """Group to value and number of people of one metric, with no minimum size."""
    spec = Statistics(min_units=1, min_clusters=1, replicates=100)
    attributes = dataset.instance_attributes()
    members = build_membership(
        attributes, [by], read_groupings(Groups(by=by), attributes), units=scores.evaluated_units()
    ).frame
    rows = (
        measure_groups(scores, members, spec)
        .to_table()
        .filter(
            pl.col("metric") == metric,
            pl.col("label").eq_missing(label),
            pl.col("threshold").eq_missing(threshold),
        )
    )
    return {group: (value, n) for group, value, n in
            rows.select("group", "value", "n_units").iter_rows()}  # fmt: skip


def judged(scores, metric, threshold=None):
    """Person and class to value of one metric; of a null one, the reason."""
    rows = scores.units.filter(
        pl.col("metric") == metric, pl.col("threshold").eq_missing(threshold)
    ).select("unit_id", "label", "value", "reason")
    return {(u, label): reason if value is None else value for u, label, value, reason in
            rows.iter_rows()}  # fmt: skip


def with_classes(dataset, whose):
    """The dataset of a case, its people of the classes ``whose``, and all of one group."""
    classes = {f"p{i}": [] for i in range(dataset.instances.height)}
    for person, name in whose:
        classes[person].append(name)
    lists = pl.Series(list(classes.values()), dtype=pl.List(pl.String))
    group = {"unit_kind": "instance", "attribute": "group", "value": "X"}
    rows = [{**group, "unit_id": person} for person in classes]
    return replace(
        dataset,
        instances=dataset.instances.with_columns(classes=lists),
        attributes=pl.DataFrame(rows, schema=ATTRIBUTES.schema),
    )


def each_class(case, second):
    """The case in which a person stands once for each class; and who each row is.

    ``second [m]`` is a further class of each person, or None.
    """
    truths, whose = [], []
    for person, (row, also) in enumerate(zip(case.truths, second, strict=True)):
        for label in dict.fromkeys([row["label"], row["label"] if also is None else also]):
            truths.append(dict(row, label=label))
            whose.append((f"p{person}", f"c{label}"))
    return Case(case.n_images, case.n_labels, truths, case.detections), whose


def found_by_coco(case, whose, limit):
    """Of each person and class, the share of ten overlaps at which COCO's tool finds them."""
    run = evaluated(case, limits=[limit])
    areas, images = len(run.params.areaRng), len(run.params.imgIds)
    values = {}
    for k in range(len(run.params.catIds)):
        for i in range(images):
            entry = run.evalImgs[k * areas * images + i]
            for at, row in enumerate(entry["gtIds"] if entry else ()):
                if not entry["gtIgnore"][at]:
                    values[whose[row - 1]] = float((entry["gtMatches"][:, at] > 0).mean())
    return values, run


def first_of_each(rows, limit, *keys):
    """The highest-scoring so many of the rows alike in ``keys``; ties in the order given."""
    alike = defaultdict(list)
    for row in rows:
        alike[tuple(row[key] for key in keys)].append(row)
    kept = [
        row for group in alike.values() for row in sorted(group, key=lambda r: -r["score"])[:limit]
    ]
    return [row for row in rows if any(row is k for k in kept)]
