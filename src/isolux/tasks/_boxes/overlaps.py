"""The evidence ``overlaps``: what a match against one group's people alone needs.

Whom a group holds is known only when people are grouped (votes, bins, intersections; one person
may be in several), so the pairs that overlap are kept and matched there, once for each group. Five
kinds of rows: ``image``; ``person``, one to be found; ``other``, one who takes part and
is not scored; ``detection``, in COCO's order; ``overlap``, a detection and a person who overlap by
.50 or more.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from isolux.geometry.matching import IOU_THRESHOLDS, limit_detections, ranks_in_image
from isolux.tasks._boxes.matching import Asked
from isolux.tasks._boxes.table import OF_DETECTIONS

OVERLAPS = "overlaps"
"""Name of the evidence table."""
_SCHEMA = {
    **OF_DETECTIONS,
    "detection": pl.Int64(),  # its place in COCO's order
    "person": pl.Int64(),  # a row of people, scored or not
    "overlap": pl.Float64(),
    "is_crowd": pl.Boolean(),
    "is_ignored": pl.Boolean(),
    "others": pl.String(),  # what becomes of other groups' people; alike in every row
    "common": pl.Float64(),  # as in ``detections``
}


def overlaps_of(asked: Asked) -> pl.DataFrame:
    """Make one model's rows of the table ``overlaps``."""
    people, found, settings = asked.people, asked.found, asked.settings
    pairs, rank = asked.pairs, ranks_in_image(found.detections)
    kept = np.arange(len(rank))
    if settings.max_detections is not None:
        pairs = limit_detections(pairs, found.detections, settings.max_detections)
        kept = np.flatnonzero(rank < settings.max_detections)
    pairs = pairs.where(pairs.iou >= IOU_THRESHOLDS[0])
    order = kept[np.lexsort((rank[kept], found.detections.image[kept]))]
    place = np.full(len(rank), -1, np.int64)
    place[order] = np.arange(len(order))
    labelled = people.classes is not None
    detections = found.rows[order].select(
        "image_id",
        "score",
        *(["label"] if labelled else []),
        detection=pl.int_range(pl.len(), dtype=pl.Int64),
        kind=pl.lit("detection"),
    )
    of_image = people.images.select("image_id", "cluster_id")
    truths = people.truths
    persons = people.rows.select(
        "cluster_id",
        "image_id",
        unit_id=pl.when(people.scored).then("unit_id"),
        label="class",
        person=pl.int_range(pl.len(), dtype=pl.Int64),
        is_crowd=pl.Series(truths.is_crowd),
        is_ignored=pl.Series(truths.is_ignored),
        kind=pl.when(people.scored).then(pl.lit("person")).otherwise(pl.lit("other")),
    )
    overlaps = pl.DataFrame(
        {"detection": place[pairs.detection], "person": pairs.truth, "overlap": pairs.iou}
    ).with_columns(kind=pl.lit("overlap"))
    parts = [
        of_image.with_columns(kind=pl.lit("image")),
        persons,
        detections.join(of_image, on="image_id", how="left", maintain_order="left"),
        overlaps.cast({"detection": pl.Int64, "person": pl.Int64}),
    ]
    rows = pl.concat(parts, how="diagonal").with_columns(
        model=pl.lit(found.model),
        others=pl.lit(settings.other_groups),
        common=pl.lit(settings.common_count),
    )
    return rows.select(pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items())
