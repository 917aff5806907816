"""Audits of boxes, masks and poses, built from a line each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from isolux.groups.membership import build_membership
from isolux.plausibility import AuditInputs
from isolux.tasks import score
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.tables import ATTRIBUTES, IMAGES, INSTANCES
from tests.plausibility._inputs import INFO

Boxes = Sequence[tuple[str, Sequence[float]]]
SIDES = ("box_x", "box_y", "box_w", "box_h")
WIDTH, HEIGHT = 640, 480


def detect(
    people: Boxes,
    predicted: Boxes,
    races: Sequence[str],
    *,
    task: str = "detection",
    classes: Sequence[str] | None = None,
    scores: Sequence[float] | None = None,
    labels: Sequence[str | None] | None = None,
    people_columns: Mapping[str, Any] | None = None,
    predicted_columns: Mapping[str, Any] | None = None,
    **options: Any,
) -> AuditInputs:
    """Score ``(image, box)`` of people and predictions, and group the people by race."""
    ids = [f"p{i}" for i in range(len(people))]
    instances = pl.DataFrame(
        {"instance_id": ids, "image_id": [image for image, _ in people], **_sides(people)}
    ).with_columns(**{name: pl.Series(column) for name, column in (people_columns or {}).items()})
    if classes is not None:
        instances = instances.with_columns(classes=pl.Series([[name] for name in classes]))
    attributes = pl.DataFrame(
        {"unit_kind": "instance", "unit_id": ids, "attribute": "race", "value": list(races)}
    )
    images = pl.DataFrame({"image_id": sorted({image for image, _ in [*people, *predicted]})})
    dataset = Dataset(
        "made up",
        INFO,
        INSTANCES.conform(instances.with_columns(cluster_id="image_id")),
        ATTRIBUTES.conform(attributes),
        IMAGES.conform(images.with_columns(width=pl.lit(WIDTH), height=pl.lit(HEIGHT))),
    )
    n = len(predicted)
    outputs = pl.DataFrame(
        {"model": ["m"] * n, "image_id": [image for image, _ in predicted], **_sides(predicted),
         "score": [0.9] * n if scores is None else list(scores),
         "label": pl.Series([None] * n if labels is None else list(labels), dtype=pl.String)}
    ).with_columns(
        **{name: pl.Series(column) for name, column in (predicted_columns or {}).items()}
    )  # fmt: skip
    measured = score(task, dataset, outputs, **options)
    membership = build_membership(
        dataset.instance_attributes(), ["race"], units=measured.evaluated_units()
    )
    return AuditInputs(task, dataset, outputs, measured, membership, options)


def _sides(boxes: Boxes) -> dict[str, list[float]]:
    return {name: [float(box[k]) for _, box in boxes] for k, name in enumerate(SIDES)}
