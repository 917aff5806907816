"""The evidence ``detections``: what average precision needs, and groups and resampling with it.

Four kinds of rows. ``image``: an image that was looked at, and its cluster. ``person``: somebody to
be found. ``right``: a detection and the person it found; ``wrong``: a detection and the overlaps at
which it found nobody. One detection may be both, at different overlaps. What found somebody who is
not scored (a crowd, a person without known attributes) is neither, and has no row.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.matching import IOU_THRESHOLDS, Matches, match, ranks_in_image
from isolux.info import Metric
from isolux.stats.precision_recall import average_precision_at
from isolux.tasks._boxes_matching import Asked
from isolux.tasks._boxes_metrics import COCO

__all__ = ["AVERAGE_PRECISION", "EVIDENCE", "evidence_of"]

EVIDENCE = "detections"
"""Name of the evidence table."""
_SCHEMA = {
    "model": pl.String(),
    "unit_id": pl.String(),
    "cluster_id": pl.String(),
    "image_id": pl.String(),
    "label": pl.String(),
    "score": pl.Float64(),
    "kind": pl.String(),
    "at": pl.UInt16(),  # bit t: at the t-th of the ten overlaps
}
_BITS = {"": range(len(IOU_THRESHOLDS)), "_50": (0,), "_75": (5,)}

AVERAGE_PRECISION = tuple(
    Metric(
        name=f"average_precision{end}",
        title="Average precision" + (f" at .{end[1:]}" if end else ""),
        definition="Mean precision over 101 recalls"
        + ("" if end else " and ten overlaps from .50 to .95")
        + (f" at an overlap of .{end[1:]}" if end else "")
        + "; a false alarm counts for every group with a person in its image.",
        direction="higher",
        evidence=EVIDENCE,
        statistic=average_precision_at(_BITS[end]),
        reference=COCO,
    )
    for end in ("", "_50", "_75")
)
"""AP, AP50 and AP75, as COCO has them."""


def evidence_of(asked: Asked) -> pl.DataFrame:
    """Make one model's rows of the table ``detections``.

    Detections stand in the order of their images and then of their scores, which is how COCO
    breaks ties of scores.
    """
    people, found, limit = asked.people, asked.found, asked.settings.max_detections
    matches = match(asked.pairs, found.detections, people.truths, max_detections=limit)
    scored = people.scored.to_numpy()
    rank = ranks_in_image(found.detections)
    parts = [_images(asked), _people(asked), _judged(asked, matches, scored, rank)]
    rows = pl.concat(parts, how="diagonal").with_columns(model=pl.lit(found.model))
    return rows.select(pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items())


def _images(asked: Asked) -> pl.DataFrame:
    return asked.people.images.select("image_id", "cluster_id", kind=pl.lit("image"))


def _people(asked: Asked) -> pl.DataFrame:
    rows = asked.people.rows.filter(asked.people.scored)
    return rows.select("unit_id", "cluster_id", "image_id", label="class", kind=pl.lit("person"))


def _judged(
    asked: Asked, matches: Matches, scored: npt.NDArray[np.bool_], rank: npt.NDArray[np.int64]
) -> pl.DataFrame:
    """List right and wrong detections, each with the overlaps at which it is that."""
    limit = asked.settings.max_detections
    bit = np.left_shift(1, np.arange(len(matches.thresholds)))
    wrong = np.full(matches.n_detections, int(bit.sum()), dtype=np.int64)
    wrong[matches.candidate] = (matches.candidate_truth < 0) @ bit
    if limit is not None:
        wrong[rank >= limit] = 0
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
