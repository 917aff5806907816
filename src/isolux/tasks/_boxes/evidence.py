"""What average precision needs, and groups and resampling with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.matching import (
    IOU_THRESHOLDS,
    Matches,
    limit_detections,
    match,
    ranks_in_image,
)
from isolux.stats.precision_recall import average_precision_at
from isolux.tasks._boxes.areas import SIZES, areas_of_people, detections_outside, people_within
from isolux.tasks._boxes.matching import Asked
from isolux.tasks._boxes.metrics import AREAS, COCO, HOIEM
from isolux.tasks._boxes.table import OF_DETECTIONS
from isolux.vocabulary.info import Metric

# The evidence `overlaps`: what a match against one group's people alone needs.

OVERLAPS = "overlaps"
"""Name of the evidence table."""
_SCHEMA_OVERLAPS = {
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
    return rows.select(pl.col(name).cast(dtype) for name, dtype in _SCHEMA_OVERLAPS.items())


FOUND_AT = "found_at"
"""Name of the evidence table."""


def found_at(asked: Sequence[Asked], names: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Make the table of all models where average recall is measured; else nothing."""
    if "average_recall" not in names:
        return {}
    return {FOUND_AT: pl.concat([_of_model(one) for one in asked])}


def _of_model(asked: Asked) -> pl.DataFrame:
    rows = asked.people.rows
    bits = asked.found_at(IOU_THRESHOLDS) @ np.left_shift(1, np.arange(len(IOU_THRESHOLDS)))
    return rows.select(
        pl.lit(asked.found.model).alias("model"),
        "unit_id",
        "cluster_id",
        asked.people.label,
        pl.Series("at", bits, dtype=pl.UInt16),
        pl.Series("area_px", areas_of_people(asked.people), dtype=pl.Float64).fill_nan(None),
    ).filter(asked.people.scored)


EVIDENCE = "detections"
"""Name of the evidence table."""
_SCHEMA = {
    **OF_DETECTIONS,
    "at": pl.UInt16(),  # bit t: at the t-th of the ten overlaps
    "common": pl.Float64(),  # N of normalised precision, where it was given; alike in every row
    "apart": pl.Boolean(),  # whether each class is told beside their mean; alike in every row
}
_BITS = {"": range(len(IOU_THRESHOLDS)), "_50": (0,), "_75": (5,)}
_ALARMS = "; a false alarm counts for every group with a person in its image."
_TEN = "Mean precision over 101 recalls and ten overlaps from .50 to .95"
_precision = partial(Metric, direction="higher", reference=COCO)
AVERAGE_PRECISION = (
    *(
        _precision(
            name=f"average_precision{end}",
            title="Average precision" + (f" at .{end[1:]}" if end else ""),
            definition=_TEN + _ALARMS
            if not end
            else f"Mean precision over 101 recalls at an overlap of .{end[1:]}{_ALARMS}",
            evidence=EVIDENCE,
            statistic=average_precision_at(bits),
        )
        for end, bits in _BITS.items()
    ),
    _precision(
        name="normalised_average_precision",
        title="Normalised average precision",
        definition="Average precision with a common count of people N in the place of each group's "
        "own, R N / (R N + F) with recall R and false alarms F: N given, or the mean count of the "
        "attribute's groups (for everyone, their own: plain average precision)" + _ALARMS,
        evidence=EVIDENCE,
        statistic=average_precision_at(normalised=True),
        reference=HOIEM,
    ),
)
"""AP, AP50 and AP75, as COCO has them, and AP normalised."""
PRECISION_BY_SIZE = tuple(
    _precision(
        name=f"average_precision_{size}",
        title=f"Average precision, {size}",
        definition=f"{_TEN}, of people whose area is {area}; others, and what is of another size "
        f"and found no one, are ignored{_ALARMS}",
        evidence=f"{EVIDENCE}_{size}",
        statistic=average_precision_at(),
    )
    for size, area in AREAS.items()
)
"""COCO's APs, APm and APl."""
_FIRST = (1, 10)
RECALL_OVER_CLASSES = tuple(
    _precision(
        name=f"average_recall_over_classes{end}",
        title=f"Average recall, mean over classes{said}",
        definition="Average recall of each class's people, mean over the classes that anyone is "
        f"of{meaning} (COCO's {name}); without classes, average recall.",
        evidence=f"{EVIDENCE}{end}",
        statistic=average_precision_at(reading="recall"),
    )
    for end, said, meaning, name in (
        ("", "", "", "AR"),
        *(
            (
                f"_first_{k}",
                f", first {k}",
                f", by the {k} highest-scoring detections of each image and class",
                f"AR{k}",
            )
            for k in _FIRST
        ),
        *(
            (f"_{s}", f", {s}", f", of people whose area is {area}", f"AR{s[0]}")
            for s, area in AREAS.items()
        ),
    )
)
"""COCO's AR, AR1, AR10, ARs, ARm and ARl."""
OFFICIAL = (
    "average_precision",
    "average_precision_50",
    "average_precision_75",
    "average_recall_over_classes",
)
"""What is measured first of boxes and masks class by class."""
IN_GROUP = (
    _precision(
        name="average_recall_in_group",
        title="Average recall, each group matched alone",
        definition="Share of the ten overlaps from .50 to .95 at which a person is found, mean "
        "over people, when each group's people are matched as if nobody else could be "
        "found: one detection may then find a person of every group.",
        evidence=OVERLAPS,
        statistic=average_precision_at(reading="recall"),
    ),
    _precision(
        name="average_precision_in_group",
        title="Average precision, each group matched alone",
        definition=f"{_TEN}, when each group's people are matched as if nobody else could be found"
        + _ALARMS,
        evidence=OVERLAPS,
        statistic=average_precision_at(),
    ),
)
"""What a match against one group's people only gives; never the default."""


def evidence_tables(asked: Sequence[Asked], names: Sequence[str]) -> dict[str, pl.DataFrame]:
    """Make the evidence of all models that these metrics rest on."""
    metrics = (*AVERAGE_PRECISION, *PRECISION_BY_SIZE, *RECALL_OVER_CLASSES, *IN_GROUP)
    wanted = {metric.evidence for metric in metrics if metric.name in names}
    if wanted and any(not one.people.apart for one in asked):
        # COCO's numbers of a size, where people are grouped by it: see groups.measure.detections.
        wanted |= {f"{EVIDENCE}_{size}" for size in SIZES}
    makers: dict[str, Callable[[Asked], pl.DataFrame]] = {
        EVIDENCE: evidence_of,
        **{f"{EVIDENCE}_{size}": partial(evidence_of, size=size) for size in SIZES},
        **{f"{EVIDENCE}_first_{k}": partial(evidence_of, first=k) for k in _FIRST},
        OVERLAPS: overlaps_of,
    }
    made = {
        name: pl.concat([make(one) for one in asked])
        for name, make in makers.items()
        if name in wanted
    }
    return made | found_at(asked, names)


def evidence_of(asked: Asked, size: str | None = None, first: int | None = None) -> pl.DataFrame:
    """Make one model's rows of the table ``detections``, or of that of one size or first K."""
    if size is not None:
        asked = replace(asked, people=people_within(asked.people, size))
    people, found = asked.people, asked.found
    limit = min((n for n in (first, asked.settings.max_detections) if n is not None), default=None)
    outside = None if size is None else detections_outside(found, size)
    matches = match(asked.pairs, found.detections, people.truths, max_detections=limit)
    rank = ranks_in_image(found.detections)
    parts = [
        people.images.select("image_id", "cluster_id", kind=pl.lit("image")),
        people.rows.filter(people.scored).select(
            "unit_id", "cluster_id", "image_id", label="class", kind=pl.lit("person")
        ),
        _judged(asked, matches, (rank, limit), outside),
    ]
    rows = pl.concat(parts, how="diagonal").with_columns(
        model=pl.lit(found.model),
        common=pl.lit(asked.settings.common_count),
        apart=pl.lit(people.apart),
    )
    return rows.select(pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items())


def _judged(
    asked: Asked,
    matches: Matches,
    ranks: tuple[npt.NDArray[np.int64], int | None],
    outside: npt.NDArray[np.bool_] | None,
) -> pl.DataFrame:
    """List right and wrong detections, each with the overlaps at which it is that."""
    scored, (rank, limit) = asked.people.scored.to_numpy(), ranks
    bit = np.left_shift(1, np.arange(len(matches.thresholds)))
    wrong = np.full(matches.n_detections, int(bit.sum()), dtype=np.int64)
    wrong[matches.candidate] = (matches.candidate_truth < 0) @ bit
    if limit is not None:
        wrong[rank >= limit] = 0
    if outside is not None:
        wrong[outside] = 0
    c, t = np.nonzero(matches.candidate_truth >= 0)
    person = matches.candidate_truth[c, t].astype(np.int64)
    counts = scored[person] if len(person) else np.zeros(0, np.bool_)
    right = pl.DataFrame(
        {"row": matches.candidate[c[counts]], "person": person[counts], "at": bit[t[counts]]},
        schema={"row": pl.Int64, "person": pl.Int64, "at": pl.Int64},
    )
    right = right.group_by("row", "person").agg(pl.col("at").sum())
    false = np.flatnonzero(wrong).astype(np.int64)
    alarms = pl.DataFrame({"row": false, "at": wrong[false]})
    whose = asked.people.rows.select(
        "unit_id", "cluster_id", person=pl.int_range(pl.len(), dtype=pl.Int64)
    )
    right = right.join(whose, on="person", how="left")
    both = [right.with_columns(kind=pl.lit("right")), alarms.with_columns(kind=pl.lit("wrong"))]
    return _placed(asked, pl.concat(both, how="diagonal"), rank)


def _placed(asked: Asked, rows: pl.DataFrame, rank: npt.NDArray[np.int64]) -> pl.DataFrame:
    """Give rows their image, class and score, and COCO's order; alarms their image's cluster."""
    at = rows["row"].to_numpy()
    label = "label" if asked.people.classes is not None else pl.lit(None, pl.String).alias("label")
    own = asked.found.rows[at].select("image_id", "image", "score", label)
    placed = rows.hstack(own).with_columns(rank=pl.Series(rank[at], dtype=pl.Int64))
    of_image = asked.people.images.select("image", of_image="cluster_id")
    cluster = pl.when(pl.col("kind") == "wrong").then("of_image").otherwise("cluster_id")
    return (
        placed.join(of_image, on="image", how="left")
        .with_columns(cluster_id=cluster)
        .sort("image", "rank", "person", nulls_last=True)
        .drop("row", "person", "image", "rank", "of_image")
    )
