"""Evidence tables of detections: what average precision of groups and replicates is made from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.info import Metric
from isolux.geometry.matching import (
    IOU_THRESHOLDS,
    Matches,
    match,
    ranks_in_image,
)
from isolux.stats.precision_recall import average_precision_statistic
from isolux.tasks._boxes.areas import SIZES, is_outside_size, person_areas_px, restrict_to_size
from isolux.tasks._boxes.instance_tables import DETECTION_COLUMNS
from isolux.tasks._boxes.matching import ModelMatches
from isolux.tasks._boxes.metrics import AREAS, COCO, HOIEM

RECALL_BY_IOU = "recall_by_iou"
"""Name of the evidence table."""


def build_recall_tables(
    models: Sequence[ModelMatches], names: Sequence[str]
) -> dict[str, pl.DataFrame]:
    """Build the table of all models where average recall is measured; else none."""
    # The table is as long as the list of people, and only the views of average recall read it.
    if "average_recall" not in names:
        return {}
    return {RECALL_BY_IOU: pl.concat([_recall_rows(model_matches) for model_matches in models])}


def _recall_rows(model_matches: ModelMatches) -> pl.DataFrame:
    """Build one model's rows of the table ``build_recall_tables``: a bit for each IoU threshold."""
    rows = model_matches.people.rows
    # One bit for each of the ten thresholds, so that a group's recall at each can be counted.
    bits = model_matches.is_detected(IOU_THRESHOLDS) @ np.left_shift(
        1, np.arange(len(IOU_THRESHOLDS))
    )
    return rows.select(
        pl.lit(model_matches.predictions.model).alias("model"),
        "unit_id",
        "cluster_id",
        model_matches.people.label,
        pl.Series("at", bits, dtype=pl.UInt16),
        pl.Series("area_px", person_areas_px(model_matches.people), dtype=pl.Float64).fill_nan(
            None
        ),
    ).filter(model_matches.people.scored)


EVIDENCE = "detections"
"""Name of the evidence table."""
_SCHEMA = {
    **DETECTION_COLUMNS,
    "at": pl.UInt16(),  # bit t: at the t-th of the ten IoU thresholds
    "common": pl.Float64(),  # N of normalised precision, where set; the same in every row
    "apart": pl.Boolean(),  # whether each class has scores of its own; the same in every row
}
# COCO's thresholds rise from 0.50 in steps of 0.05, so that the first is AP50 and the sixth AP75.
_THRESHOLD_INDICES = {"": range(len(IOU_THRESHOLDS)), "_50": (0,), "_75": (5,)}
_FALSE_POSITIVE_RULE = "; a false alarm counts for every group with a person in its image."
_MEAN_PRECISION_TEXT = "Mean precision over 101 recalls and ten overlaps from .50 to .95"
_precision_metric = partial(Metric, direction="higher", reference=COCO)
AVERAGE_PRECISION = (
    *(
        _precision_metric(
            name=f"average_precision{end}",
            title="Average precision" + (f" at .{end[1:]}" if end else ""),
            definition=_MEAN_PRECISION_TEXT + _FALSE_POSITIVE_RULE
            if not end
            else f"Mean precision over 101 recalls at an overlap of .{end[1:]}"
            + _FALSE_POSITIVE_RULE,
            evidence=EVIDENCE,
            statistic=average_precision_statistic(bits),
        )
        for end, bits in _THRESHOLD_INDICES.items()
    ),
    _precision_metric(
        name="normalised_average_precision",
        title="Normalised average precision",
        definition="Average precision with a common count of people N in the place of each group's "
        "own, R N / (R N + F) with recall R and false alarms F: N given, or the mean count of the "
        "attribute's groups (for everyone, their own: plain average precision)"
        + _FALSE_POSITIVE_RULE,
        evidence=EVIDENCE,
        statistic=average_precision_statistic(is_normalised=True),
        reference=HOIEM,
    ),
)
"""AP, AP50 and AP75, as COCO has them, and AP normalised."""
PRECISION_BY_SIZE = tuple(
    _precision_metric(
        name=f"average_precision_{size}",
        title=f"Average precision, {size}",
        definition=f"{_MEAN_PRECISION_TEXT}, of people whose area is {area}; others, and what is of"
        f" another size and found no one, are ignored{_FALSE_POSITIVE_RULE}",
        evidence=f"{EVIDENCE}_{size}",
        statistic=average_precision_statistic(),
    )
    for size, area in AREAS.items()
)
"""COCO's APs, APm and APl."""
# COCO's AR1 and AR10; AR100 is the limit of all its metrics.
_TOP_K = (1, 10)
RECALL_OVER_CLASSES = tuple(
    _precision_metric(
        name=f"average_recall_over_classes{end}",
        title=f"Average recall, mean over classes{title_suffix}",
        definition="Average recall of each class's people, mean over the classes that anyone is "
        f"of{meaning} (COCO's {name}); without classes, average recall.",
        evidence=f"{EVIDENCE}{end}",
        statistic=average_precision_statistic(reading="recall"),
    )
    for end, title_suffix, meaning, name in (
        ("", "", "", "AR"),
        *(
            (
                f"_first_{k}",
                f", first {k}",
                f", by the {k} highest-scoring detections of each image and class",
                f"AR{k}",
            )
            for k in _TOP_K
        ),
        *(
            (f"_{s}", f", {s}", f", of people whose area is {area}", f"AR{s[0]}")
            for s, area in AREAS.items()
        ),
    )
)
"""COCO's AR, AR1, AR10, ARs, ARm and ARl."""
COCO_METRIC_NAMES = (
    "average_precision",
    "average_precision_50",
    "average_precision_75",
    "average_recall_over_classes",
)
"""The default metrics of boxes and masks that are matched class by class."""


def build_evidence_tables(
    models: Sequence[ModelMatches], names: Sequence[str]
) -> dict[str, pl.DataFrame]:
    """Build the evidence tables of all models that these metrics need."""
    metrics = (*AVERAGE_PRECISION, *PRECISION_BY_SIZE, *RECALL_OVER_CLASSES)
    table_names = {metric.evidence for metric in metrics if metric.name in names}
    if table_names and any(not model_matches.people.has_class_scores for model_matches in models):
        # COCO's numbers of a size, where people are grouped by it: see groups.measure.detections.
        table_names |= {f"{EVIDENCE}_{size}" for size in SIZES}
    builders: dict[str, Callable[[ModelMatches], pl.DataFrame]] = {
        EVIDENCE: build_detection_rows,
        **{f"{EVIDENCE}_{size}": partial(build_detection_rows, size=size) for size in SIZES},
        **{f"{EVIDENCE}_first_{k}": partial(build_detection_rows, first=k) for k in _TOP_K},
    }
    tables = {
        name: pl.concat([build(model_matches) for model_matches in models])
        for name, build in builders.items()
        if name in table_names
    }
    return tables | build_recall_tables(models, names)


def build_detection_rows(
    model_matches: ModelMatches, size: str | None = None, first: int | None = None
) -> pl.DataFrame:
    """Build one model's rows of ``detections``, or of the table of one size or of the top K."""
    if size is not None:
        model_matches = replace(model_matches, people=restrict_to_size(model_matches.people, size))
    people, predictions = model_matches.people, model_matches.predictions
    # The stricter limit applies: AR10 of an audit that keeps 5 detections an image counts 5.
    limit = min(
        (n for n in (first, model_matches.settings.max_detections) if n is not None), default=None
    )
    # pycocotools ignores an unmatched detection whose own area is outside the range (dtIg).
    outside = None if size is None else is_outside_size(predictions, size)
    matches = match(
        model_matches.pairs, predictions.detections, people.truths, max_detections=limit
    )
    ranks = ranks_in_image(predictions.detections)
    frames = [
        people.images.select("image_id", "cluster_id", kind=pl.lit("image")),
        people.rows.filter(people.scored).select(
            "unit_id", "cluster_id", "image_id", label="class", kind=pl.lit("person")
        ),
        _list_true_and_false_positives(model_matches, matches, (ranks, limit), outside),
    ]
    rows = pl.concat(frames, how="diagonal").with_columns(
        model=pl.lit(predictions.model),
        common=pl.lit(model_matches.settings.common_count),
        apart=pl.lit(people.has_class_scores),
    )
    return rows.select(pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items())


def _list_true_and_false_positives(
    model_matches: ModelMatches,
    matches: Matches,
    ranks: tuple[npt.NDArray[np.int64], int | None],
    outside: npt.NDArray[np.bool_] | None,
) -> pl.DataFrame:
    """List true and false positives, each with a bit for each IoU threshold where it is one."""
    scored, (rank_in_image, limit) = model_matches.people.scored.to_numpy(), ranks
    bits = np.left_shift(1, np.arange(len(matches.thresholds)))
    false_positive_bits = np.full(matches.n_detections, int(bits.sum()), dtype=np.int64)
    # A detection that overlaps no one is a false positive at every threshold.
    false_positive_bits[matches.candidate] = (matches.candidate_truth < 0) @ bits
    # Detections beyond the limit do not exist for COCO, so they are no false positives either.
    if limit is not None:
        false_positive_bits[rank_in_image >= limit] = 0
    if outside is not None:
        false_positive_bits[outside] = 0
    c, t = np.nonzero(matches.candidate_truth >= 0)
    person = matches.candidate_truth[c, t].astype(np.int64)
    # A detection matched to an ignored person or a crowd is neither a true nor a false positive.
    is_scored = scored[person] if len(person) else np.zeros(0, np.bool_)
    true_positives = pl.DataFrame(
        {
            "row": matches.candidate[c[is_scored]],
            "person": person[is_scored],
            "at": bits[t[is_scored]],
        },
        schema={"row": pl.Int64, "person": pl.Int64, "at": pl.Int64},
    )
    true_positives = true_positives.group_by("row", "person").agg(pl.col("at").sum())
    false_rows = np.flatnonzero(false_positive_bits).astype(np.int64)
    false_positives = pl.DataFrame({"row": false_rows, "at": false_positive_bits[false_rows]})
    person_ids = model_matches.people.rows.select(
        "unit_id", "cluster_id", person=pl.int_range(pl.len(), dtype=pl.Int64)
    )
    true_positives = true_positives.join(person_ids, on="person", how="left")
    frames = [
        true_positives.with_columns(kind=pl.lit("right")),
        false_positives.with_columns(kind=pl.lit("wrong")),
    ]
    return _add_image_and_rank(model_matches, pl.concat(frames, how="diagonal"), rank_in_image)


def _add_image_and_rank(
    model_matches: ModelMatches, rows: pl.DataFrame, rank: npt.NDArray[np.int64]
) -> pl.DataFrame:
    """Add image, class, score and COCO's order; false positives get their image's cluster."""
    detection_rows = rows["row"].to_numpy()
    label = (
        "label"
        # Without classes AP is that of a single class, whatever labels the predictions have.
        if model_matches.people.classes is not None
        else pl.lit(None, pl.String).alias("label")
    )
    image_and_score = model_matches.predictions.rows[detection_rows].select(
        "image_id", "image", "score", label
    )
    ranked_rows = rows.hstack(image_and_score).with_columns(
        rank=pl.Series(rank[detection_rows], dtype=pl.Int64)
    )
    image_clusters = model_matches.people.images.select("image", of_image="cluster_id")
    # A false positive belongs to no person; it varies with its image, so it is resampled with it.
    cluster = pl.when(pl.col("kind") == "wrong").then("of_image").otherwise("cluster_id")
    return (
        ranked_rows.join(image_clusters, on="image", how="left")
        .with_columns(cluster_id=cluster)
        # Ties of scores across images are broken by this order, as by pycocotools' stable merge
        # sort.
        .sort("image", "rank", "person", nulls_last=True)
        .drop("row", "person", "image", "rank", "of_image")
    )
