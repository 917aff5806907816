"""WIDER FACE's own protocol: its matching rule, its levels, its average precision.

Not COCO's. A detection stands for the one face that it overlaps most, found before or not: a
second detection of a face is a false alarm even where it would also do for the face next to it.
Boxes end one pixel later. At each level the faces of other levels are neither found nor missed,
and who finds them is neither right nor wrong; false alarms in all images with faces count, also
where no face is of the level. Scores are stretched over 0 to 1 (over all images, not image by
image) and read at 1,000 thresholds; average precision is the area under the curve.

What the released code leaves out is left out here: detections in images that have no face at all.

References
----------
.. [1] Yang, S. et al. (2016). WIDER FACE: A face detection benchmark. CVPR. Evaluation code
   (``wider_eval.m``, ``norm_score.m``, ``evaluation.m``): http://shuoyang1213.me/WIDERFACE/
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.geometry.boxes import box_pairs_xywh
from isolux.geometry.matching import Pairs, ranks_in_image
from isolux.stats.precision_recall import average_precision_at
from isolux.stats.statistic import FloatArray
from isolux.tasks._boxes.matching import Settings, measured, rows_of
from isolux.tasks._boxes.metrics import WIDER
from isolux.tasks._boxes.readings import BoxFormat
from isolux.tasks._boxes.scoring import (
    ask_models,
    box_pairs,
    notes_on_unscored,
    predictions_as_xywh,
)
from isolux.tasks._boxes.table import NO_BOX, OF_DETECTIONS, Found, People, columns_of, read_people
from isolux.tasks._scores import stack_scores
from isolux.vocabulary.containers import Dataset, Scores
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import Metric, TaskInfo
from isolux.vocabulary.tables import BOX_PREDICTIONS

LEVELS = ("easy", "medium", "hard")
"""WIDER FACE's lists of faces to be found: easy is part of medium, medium of hard."""

_STEPS = 1000  # score thresholds, as in WIDER FACE's evaluation code
_REFERENCE = replace(WIDER, place="section 5, and the evaluation code (wider_eval.m)")
_AREA = average_precision_at((0,), reading="area")
_PRECISION, _RECALL = "wider_average_precision", "wider_recall"
_SCHEMA = {**OF_DETECTIONS, "at": pl.UInt16()}


def _of_level(level: str | None) -> tuple[Metric, Metric]:
    end = f"_{level}" if level else ""
    which = f", {level}" if level else ", all faces"
    return (
        Metric(
            name=_PRECISION + end,
            title=f"WIDER FACE's average precision{which}",
            definition="Area under precision against recall at 1,000 thresholds of the score, by "
            "WIDER FACE's matching; a false alarm counts for every group with a face in its image.",
            direction="higher",
            evidence=f"wider{end}",
            statistic=_AREA,
            reference=_REFERENCE,
        ),
        Metric(
            name=_RECALL + end,
            title=f"WIDER FACE's recall{which}",
            definition="Share of faces that some detection overlaps more than any other face, and "
            "enough.",
            direction="higher",
            reference=_REFERENCE,
        ),
    )


WIDER_METRICS: tuple[Metric, ...] = tuple(
    metric
    for pair in zip(*(_of_level(at) for at in (*LEVELS, None)), strict=True)
    for metric in pair
)
"""Average precision of each level and of all faces, then recall of each."""


@dataclass(frozen=True, slots=True)
class _Judged:
    """One model's detections by WIDER FACE's rule.

    ``face [n]``: the face each stands for, or -1; ``rank [n]``: its place in its image;
    ``step [n]``: the first of the 1,000 thresholds, from the highest, that its score reaches.
    """

    people: People
    found: Found
    face: npt.NDArray[np.int64]
    rank: npt.NDArray[np.int64]
    step: npt.NDArray[np.int64]


def score_by_wider(
    info: TaskInfo,
    dataset: Dataset,
    predictions: object,
    settings: Settings,
    metrics: Sequence[str],
    box_format: BoxFormat,
) -> Scores:
    """Score faces by WIDER FACE's protocol; see ``face_detection.score``."""
    people = read_people(dataset, person_class=None, by_class=False, lacking=NO_BOX)
    names = _chosen(metrics, people.rows)
    read = predictions_as_xywh(predictions, box_format, people)
    pairs_of = box_pairs(settings, pixel_inclusive=True)
    asked, cautions, notes = ask_models(read, BOX_PREDICTIONS, people, settings, pairs_of)
    judged = [_judge(people, one.found, settings.score_iou) for one in asked]
    parts = [rows for one in judged for rows in _recall_rows(one, names, settings)]
    evidence = {
        metric.evidence: pl.concat([_evidence_of(one, _level_of(metric)) for one in judged])
        for metric in map(info.metric, names)
        if metric.evidence is not None
    }
    return Scores(
        units=stack_scores(parts),
        info=measured(info, names),
        evidence=evidence,
        notes=(*cautions, *notes, *_notes(people, settings)),
    )


def _level_of(metric: Metric) -> str | None:
    end = metric.name.rsplit("_", 1)[-1]
    return end if end in LEVELS else None


def _chosen(asked: Sequence[str], rows: pl.DataFrame) -> tuple[str, ...]:
    """List the metrics to measure: those asked for, or those of the levels that are at hand."""
    own = {m.name: m for m in WIDER_METRICS}
    known = [at for at in LEVELS if at in rows.columns and rows[at].is_not_null().any()]
    for name in asked:
        if name not in own:
            raise SpecError(
                f"the metric {name!r} is not part of WIDER FACE's protocol",
                expected=", ".join(own),
                hint="leave protocol out: it goes by COCO's rule",
            )
        level = _level_of(own[name])
        if level is not None and level not in known and rows.height:
            raise SpecError(
                f"it is not known which faces are {level}",
                expected=f"a column {level!r} of the instances, true or false",
                found="no such column, or nothing but nulls",
                hint=f"put wider_{level}_val.mat into the folder of WIDER FACE's ground truth",
            )
    if asked:
        return tuple(name for name in own if name in asked)
    wanted: list[str | None] = [*known] or [None]
    return tuple(name for name, metric in own.items() if _level_of(metric) in wanted)


def _judge(people: People, found: Found, lowest_iou: float) -> _Judged:
    pairs = box_pairs_xywh(
        found.detections,
        people.truths,
        columns_of(found.rows),
        columns_of(people.rows),
        lowest_iou=lowest_iou,
        pixel_inclusive=True,
    )
    rank = ranks_in_image(found.detections)
    return _Judged(people, found, _best_faces(pairs), rank, _steps(found.detections.score))


def _best_faces(pairs: Pairs) -> npt.NDArray[np.int64]:
    """Give each detection the face that it overlaps most, the first of equals, or -1: ``[n]``."""
    order = np.lexsort((pairs.truth, -pairs.iou, pairs.detection))
    detection, first = np.unique(pairs.detection[order], return_index=True)
    face = np.full(pairs.n_detections, -1, dtype=np.int64)
    face[detection] = pairs.truth[order[first]]
    return face


def _steps(score: FloatArray) -> npt.NDArray[np.int64]:
    """Tell which of the 1,000 falling thresholds each stretched score reaches first: ``[n]``."""
    if not len(score):
        return np.zeros(0, dtype=np.int64)
    spread = float(score.max() - score.min())
    stretched = (score - score.min()) / spread if spread > 0 else np.ones_like(score)
    falling = 1 - np.arange(1, _STEPS + 1) / _STEPS
    reached = np.searchsorted(falling[::-1], stretched, side="right")
    return np.asarray(_STEPS - reached, dtype=np.int64)


def _kept(people: People, level: str | None) -> npt.NDArray[np.bool_]:
    """Whether each face is to be found at the level; the others are ignored."""
    kept = ~people.truths.is_ignored
    if level is not None and level in people.rows.columns:
        kept = kept & people.rows[level].fill_null(value=False).to_numpy()
    return np.asarray(kept, dtype=np.bool_)


def _firsts(one: _Judged) -> npt.NDArray[np.bool_]:
    """Whether each detection is the first, by falling score, that stands for its face."""
    on = np.flatnonzero(one.face >= 0)
    order = on[np.lexsort((one.rank[on], one.face[on]))]
    _, first = np.unique(one.face[order], return_index=True)
    marked = np.zeros(len(one.face), dtype=np.bool_)
    marked[order[first]] = True
    return marked


def _evidence_of(one: _Judged, level: str | None) -> pl.DataFrame:
    """Make one model's rows of a table like ``detections``, of one overlap."""
    people, kept = one.people, _kept(one.people, level)
    scored = kept & people.scored.to_numpy()
    with_faces = people.images.filter(pl.col("image_id").is_in(people.rows["image_id"].implode()))
    whose = people.rows.select("unit_id", "cluster_id", "image_id")
    parts = [
        pl.DataFrame(schema=_SCHEMA),
        with_faces.select("image_id", "cluster_id", kind=pl.lit("image")),
        whose.filter(pl.Series(scored)).with_columns(kind=pl.lit("person")),
        _judged_rows(one, with_faces, kept, scored),
    ]
    rows = pl.concat(parts, how="diagonal_relaxed").with_columns(model=pl.lit(one.found.model))
    return rows.select(pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items())


def _judged_rows(
    one: _Judged,
    with_faces: pl.DataFrame,
    kept: npt.NDArray[np.bool_],
    scored: npt.NDArray[np.bool_],
) -> pl.DataFrame:
    on = one.face >= 0
    face = np.where(on, one.face, 0)
    first = _firsts(one)
    keeps, scores = _at(kept, face), _at(scored, face)
    right = first & scores
    wrong = ~on | (keeps & ~first)
    rows = pl.DataFrame(
        {
            "image": one.found.rows["image"],
            "face": one.face,
            "score": 1 - (one.step + 1) / _STEPS,
            "rank": one.rank,
            "kind": np.where(right, "right", "wrong"),
            "counts": right | wrong,
        }
    ).filter("counts")
    of_face = one.people.rows.select(
        "unit_id", of_face="cluster_id", face=pl.int_range(pl.len(), dtype=pl.Int64)
    )
    rows = rows.join(with_faces, on="image").with_columns(
        face=pl.when(pl.col("kind") == "right").then("face")
    )
    rows = rows.join(of_face, on="face", how="left")
    own = pl.when(pl.col("kind") == "right").then("of_face").otherwise("cluster_id")
    placed = rows.with_columns(cluster_id=own, at=pl.lit(1)).sort(
        "score", "kind", "image", "rank", descending=[True, True, False, False]
    )
    return placed.select("unit_id", "cluster_id", "image_id", "score", "kind", "at")


def _at(flags: npt.NDArray[np.bool_], face: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    return flags[face] if len(flags) else np.zeros(len(face), dtype=np.bool_)


def _recall_rows(one: _Judged, names: Sequence[str], settings: Settings) -> list[pl.DataFrame]:
    """Make the scores of the recalls: one row for each face, level and threshold."""
    rows = []
    for metric in WIDER_METRICS:
        if metric.statistic is not None or metric.name not in names:
            continue
        level = _level_of(metric)
        other = pl.when(~pl.Series(_kept(one.people, level))).then(
            pl.lit(f"not of the level {level}" if level else None, dtype=pl.String)
        )
        people = replace(
            one.people, rows=one.people.rows.with_columns(reason=pl.coalesce("reason", other))
        )
        for lowest in settings.score_threshold or (None,):
            value, model = _found(one, lowest).astype(np.float64), one.found.model
            rows.append(rows_of("face_detection", people, model, metric.name, lowest, value))
    return rows


def _found(one: _Judged, lowest_score: float | None) -> npt.NDArray[np.bool_]:
    """Whether each face was found, by detections of at least that score: ``[m]``."""
    counts = one.face >= 0
    if lowest_score is not None:
        counts = counts & (one.found.detections.score >= lowest_score)
    found = np.zeros(len(one.people.truths), dtype=np.bool_)
    found[one.face[counts]] = True
    return found


def _notes(people: People, settings: Settings) -> tuple[str, ...]:
    rule = (
        "Matched as WIDER FACE does: a detection stands for the face that it overlaps most, at an"
        f" overlap of {settings.score_iou:g} or more, boxes one pixel longer either way; faces of"
        " other levels are neither found nor missed."
    )
    empty = people.images.height - people.rows["image_id"].n_unique()
    bare = f"{empty:,} images without a face are not looked at, as in the released code."
    return (rule, *([bare] if empty else []), *notes_on_unscored(people))
