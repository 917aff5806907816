"""Pictures with people and detections, written as one line each."""

from __future__ import annotations

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, BOX_PREDICTIONS, IMAGES, INSTANCES

INFO = DatasetInfo(title="Made up", summary="People that a test made up.", references=())
SIDES = ("box_x", "box_y", "box_w", "box_h")


def pictures(people, images=(), groups=None, sizes=None):
    """Make a dataset of ``id: (image, box or None, further columns)``; clusters are images."""
    rows = [
        {"instance_id": name, "image_id": image, "cluster_id": image}
        | dict(zip(SIDES, box or [None] * 4, strict=True))
        | more
        for name, (image, box, more) in people.items()
    ]
    schema = INSTANCES.schema | dict.fromkeys(SIDES, pl.Float64)
    instances = pl.DataFrame(rows, schema_overrides=dict.fromkeys(SIDES, pl.Float64))
    if not rows:
        instances = pl.DataFrame(schema=schema)
    attributes = [
        {"unit_kind": "instance", "unit_id": unit, "attribute": "group", "value": value}
        for unit, value in (groups or {}).items()
    ]
    ids = dict.fromkeys([*images, *(row["image_id"] for row in rows)])
    height, width = sizes or (None, None)
    return Dataset(
        "made up",
        INFO,
        INSTANCES.conform(instances),
        pl.DataFrame(attributes, schema=ATTRIBUTES.schema),
        IMAGES.conform(pl.DataFrame({"image_id": list(ids), "height": height, "width": width})),
    )


def boxes(*rows, model="m"):
    """Make predictions of ``(image, box, score)`` or ``(image, box, score, label)``."""
    return pl.DataFrame(
        [
            {"model": model, "image_id": image, "score": score, "label": (*label, None)[0]}
            | dict(zip(SIDES, box, strict=True))
            for image, box, score, *label in rows
        ],
        schema=BOX_PREDICTIONS.schema,
    )


def values(scores, metric, threshold=None):
    """Unit to value of one metric; of a null one, the reason."""
    wanted = (pl.col("metric") == metric) & pl.col("threshold").eq_missing(threshold)
    rows = scores.units.filter(wanted).select("unit_id", "value", "reason").iter_rows()
    return {unit: reason if value is None else value for unit, value, reason in rows}


def of_case(case):
    """Turn a case of ``tests.geometry._coco`` into a dataset and predictions."""
    names = [f"{i:03}" for i in range(case.n_images)]
    people = {
        f"p{at}": (
            names[row["image"]],
            row["bbox"],
            {
                "classes": [f"c{row['label']}"],
                "is_crowd": bool(row["crowd"]),
                "ignore": bool(row["left_out"]),
            },
        )
        for at, row in enumerate(case.truths)
    }
    found = [
        (names[row["image"]], row["bbox"], row["score"], f"c{row['label']}")
        for row in case.detections
    ]
    return pictures(people, images=names), boxes(*found)
