"""WIDER FACE's own protocol: its matching rule, its levels, its average precision.

It differs from COCO's. A detection is matched to the face that it overlaps most, even if that face
is matched already: a second detection of a face is a false positive, even if it overlaps another
face enough. Boxes end one pixel later. At each level the faces of other levels are ignored, and
detections matched to them are neither true nor false positives; false positives count in all images
with faces, also where no face is of the level. Scores are rescaled to 0 to 1 (over all images, not
by image) and evaluated at 1,000 thresholds; average precision is the area under the curve.

As in the released code, detections in images without any face are excluded.

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

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.info import Metric, TaskInfo
from isolux.core.tables import BOX_PREDICTIONS
from isolux.geometry.boxes import box_pairs_xywh
from isolux.geometry.matching import OverlapPairs, ranks_in_image
from isolux.stats.precision_recall import average_precision_statistic
from isolux.stats.statistic import FloatArray
from isolux.tasks._boxes.box_formats import BoxFormat
from isolux.tasks._boxes.instance_tables import (
    DETECTION_COLUMNS,
    NO_BOX,
    AnnotatedInstances,
    ModelDetections,
    box_columns,
    read_people,
)
from isolux.tasks._boxes.matching import MatchingSettings, measured_task_info, person_score_rows
from isolux.tasks._boxes.metrics import WIDER
from isolux.tasks._boxes.scoring import (
    build_box_pairing,
    count_unscored,
    match_models,
    to_xywh_predictions,
)
from isolux.tasks._boxes.shape_previews import build_previews
from isolux.tasks._scores import stack_scores

LEVELS = ("easy", "medium", "hard")
"""WIDER FACE's lists of faces: easy is part of medium, medium of hard."""

_STEPS = 1000  # score thresholds, as in WIDER FACE's evaluation code
_REFERENCE = replace(WIDER, location="section 5, and the evaluation code (wider_eval.m)")
# The area under the curve itself: COCO's mean over 101 recalls gives slightly other numbers.
_AREA = average_precision_statistic((0,), reading="area")
_PRECISION, _RECALL = "wider_average_precision", "wider_recall"
_SCHEMA = {**DETECTION_COLUMNS, "at": pl.UInt16()}


def _level_metrics(level: str | None) -> tuple[Metric, Metric]:
    """Declare average precision and recall of one level, or of all faces."""
    suffix = f"_{level}" if level else ""
    level_text = f", {level}" if level else ", all faces"
    return (
        Metric(
            name=_PRECISION + suffix,
            title=f"WIDER FACE's average precision{level_text}",
            definition="Area under precision against recall at 1,000 thresholds of the score, by "
            "WIDER FACE's matching; a false alarm counts for every group with a face in its image.",
            direction="higher",
            evidence=f"wider{suffix}",
            statistic=_AREA,
            reference=_REFERENCE,
        ),
        Metric(
            name=_RECALL + suffix,
            title=f"WIDER FACE's recall{level_text}",
            definition="Share of faces that some detection overlaps more than any other face, and "
            "enough.",
            direction="higher",
            reference=_REFERENCE,
        ),
    )


WIDER_METRICS: tuple[Metric, ...] = tuple(
    metric
    for pair in zip(*(_level_metrics(level) for level in (*LEVELS, None)), strict=True)
    for metric in pair
)
"""Average precision of each level and of all faces, then recall of each."""


@dataclass(frozen=True, slots=True)
class _WiderMatches:
    """One model's detections by WIDER FACE's rule.

    ``face [n]``: the face matched to each, or -1; ``rank [n]``: its rank in its image;
    ``step [n]``: the first of the 1,000 thresholds, from the highest, that its score reaches.
    """

    people: AnnotatedInstances
    predictions: ModelDetections
    face: npt.NDArray[np.int64]
    rank: npt.NDArray[np.int64]
    step: npt.NDArray[np.int64]


def score_by_wider(
    task_info: TaskInfo,
    dataset: Dataset,
    predictions: object,
    settings: MatchingSettings,
    metrics: Sequence[str],
    box_format: BoxFormat,
) -> Scores:
    """Score faces by WIDER FACE's protocol; see ``face_detection.score``."""
    people = read_people(dataset, person_class=None, by_class=False, missing_by_reason=NO_BOX)
    names = _select_metrics(metrics, people.rows)
    boxes = to_xywh_predictions(predictions, box_format, people)
    # The evaluation code counts the last pixel as part of the box: width is right - left + 1.
    pairs_of = build_box_pairing(settings, pixel_inclusive=True)
    model_matches, cautions, notes = match_models(
        boxes, BOX_PREDICTIONS, people, settings, pairs_of
    )
    wider_matches = [
        _match_faces(people, matches.predictions, settings.score_iou) for matches in model_matches
    ]
    tables = [rows for matches in wider_matches for rows in _recall_rows(matches, names, settings)]
    evidence = {
        metric.evidence: pl.concat(
            [_build_evidence(matches, _level_of(metric)) for matches in wider_matches]
        )
        for metric in map(task_info.metric, names)
        if metric.evidence is not None
    }
    return Scores(
        units=stack_scores(tables),
        info=measured_task_info(task_info, names),
        evidence=evidence,
        notes=(*cautions, *notes, *_notes(people, settings)),
        previews=build_previews(boxes, people, settings.person_label),
    )


def _level_of(metric: Metric) -> str | None:
    suffix = metric.name.rsplit("_", 1)[-1]
    return suffix if suffix in LEVELS else None


def _select_metrics(requested: Sequence[str], rows: pl.DataFrame) -> tuple[str, ...]:
    """Select the metrics that were requested, or those of the levels that the faces have."""
    metric_by_name = {m.name: m for m in WIDER_METRICS}
    known_levels = [
        level_name
        for level_name in LEVELS
        # Levels are separate files of the release, which may be absent.
        if level_name in rows.columns and rows[level_name].is_not_null().any()
    ]
    for name in requested:
        if name not in metric_by_name:
            raise SpecError(
                f"the metric {name!r} is not part of WIDER FACE's protocol",
                expected=", ".join(metric_by_name),
                hint="leave protocol out: it goes by COCO's rule",
            )
        level = _level_of(metric_by_name[name])
        if level is not None and level not in known_levels and rows.height:
            raise SpecError(
                f"it is not known which faces are {level}",
                expected=f"a column {level!r} of the instances, true or false",
                found="no such column, or nothing but nulls",
                hint=f"put wider_{level}_val.mat into the folder of WIDER FACE's ground truth",
            )
    if requested:
        return tuple(name for name in metric_by_name if name in requested)
    # Without levels, all faces are one level.
    selected_levels: list[str | None] = [*known_levels] or [None]
    return tuple(
        name for name, metric in metric_by_name.items() if _level_of(metric) in selected_levels
    )


def _match_faces(
    people: AnnotatedInstances, predictions: ModelDetections, lowest_iou: float
) -> _WiderMatches:
    """Match one model's detections by WIDER FACE's rule."""
    pairs = box_pairs_xywh(
        predictions.detections,
        people.truths,
        box_columns(predictions.rows),
        box_columns(people.rows),
        lowest_iou=lowest_iou,
        pixel_inclusive=True,
    )
    rank = ranks_in_image(predictions.detections)
    return _WiderMatches(
        people,
        predictions,
        _best_faces(pairs),
        rank,
        _threshold_steps(predictions.detections.score),
    )


def _best_faces(pairs: OverlapPairs) -> npt.NDArray[np.int64]:
    """Match each detection to the face that it overlaps most, of ties the first; -1: none."""
    # Ties by the order of faces in the file, as MATLAB's max returns the first maximum.
    order = np.lexsort((pairs.truth, -pairs.iou, pairs.detection))
    detection, first = np.unique(pairs.detection[order], return_index=True)
    face = np.full(pairs.n_detections, -1, dtype=np.int64)
    face[detection] = pairs.truth[order[first]]
    return face


def _threshold_steps(score: FloatArray) -> npt.NDArray[np.int64]:
    """Find the first of 1,000 falling thresholds that each rescaled score reaches: ``[n]``."""
    if not len(score):
        return np.zeros(0, dtype=np.int64)
    # norm_score.m: scores are rescaled to 0 to 1 over all images; equal scores become 1.
    score_range = float(score.max() - score.min())
    rescaled_scores = (
        (score - score.min()) / score_range if score_range > 0 else np.ones_like(score)
    )
    # evaluation.m: thresholds fall from 1 - 1/1000 to 0, and a score at a threshold is included.
    falling_thresholds = 1 - np.arange(1, _STEPS + 1) / _STEPS
    n_reached = np.searchsorted(falling_thresholds[::-1], rescaled_scores, side="right")
    return np.asarray(_STEPS - n_reached, dtype=np.int64)


def _is_in_level(people: AnnotatedInstances, level: str | None) -> npt.NDArray[np.bool_]:
    """Return a mask of the faces that belong to the level; the others are ignored."""
    is_included = ~people.truths.is_ignored
    if level is not None and level in people.rows.columns:
        is_included = is_included & people.rows[level].fill_null(value=False).to_numpy()
    return np.asarray(is_included, dtype=np.bool_)


def _is_first_match(matches: _WiderMatches) -> npt.NDArray[np.bool_]:
    """Return a mask of the detections that are their face's first by falling score."""
    matched_rows = np.flatnonzero(matches.face >= 0)
    # The highest-scoring detection of a face is its true positive, the later ones are false
    # positives.
    order = matched_rows[np.lexsort((matches.rank[matched_rows], matches.face[matched_rows]))]
    _, first = np.unique(matches.face[order], return_index=True)
    is_first = np.zeros(len(matches.face), dtype=np.bool_)
    is_first[order[first]] = True
    return is_first


def _build_evidence(matches: _WiderMatches, level: str | None) -> pl.DataFrame:
    """Build one model's rows of a table like ``detections``, at one overlap."""
    people, is_included = matches.people, _is_in_level(matches.people, level)
    is_scored = is_included & people.scored.to_numpy()
    with_faces = people.images.filter(pl.col("image_id").is_in(people.rows["image_id"].implode()))
    unit_columns = people.rows.select("unit_id", "cluster_id", "image_id")
    tables = [
        pl.DataFrame(schema=_SCHEMA),
        with_faces.select("image_id", "cluster_id", kind=pl.lit("image")),
        unit_columns.filter(pl.Series(is_scored)).with_columns(kind=pl.lit("person")),
        _detection_rows(matches, with_faces, is_included, is_scored),
    ]
    rows = pl.concat(tables, how="diagonal_relaxed").with_columns(
        model=pl.lit(matches.predictions.model)
    )
    return rows.select(pl.col(name).cast(dtype) for name, dtype in _SCHEMA.items())


def _detection_rows(
    matches: _WiderMatches,
    with_faces: pl.DataFrame,
    is_included: npt.NDArray[np.bool_],
    is_scored: npt.NDArray[np.bool_],
) -> pl.DataFrame:
    """Build the rows of true and false positives; those of ignored faces are left out."""
    is_matched = matches.face >= 0
    face = np.where(is_matched, matches.face, 0)
    is_first = _is_first_match(matches)
    is_face_included, is_face_scored = _take_flags(is_included, face), _take_flags(is_scored, face)
    is_true_positive = is_first & is_face_scored
    # A second detection of an ignored face is ignored as well.
    is_false_positive = ~is_matched | (is_face_included & ~is_first)
    rows = pl.DataFrame(
        {
            "image": matches.predictions.rows["image"],
            "face": matches.face,
            # The threshold that the score reaches, instead of the score: precision is read at
            # thresholds.
            "score": 1 - (matches.step + 1) / _STEPS,
            "rank": matches.rank,
            "kind": np.where(is_true_positive, "right", "wrong"),
            "counts": is_true_positive | is_false_positive,
        }
    ).filter("counts")
    of_face = matches.people.rows.select(
        "unit_id", of_face="cluster_id", face=pl.int_range(pl.len(), dtype=pl.Int64)
    )
    # Detections in images without faces are dropped here, as the released code never reads them.
    rows = rows.join(with_faces, on="image").with_columns(
        face=pl.when(pl.col("kind") == "right").then("face")
    )
    rows = rows.join(of_face, on="face", how="left")
    cluster_column = pl.when(pl.col("kind") == "right").then("of_face").otherwise("cluster_id")
    # "wrong" sorts before "right" at one threshold; all of them count there in any case.
    sorted_rows = rows.with_columns(cluster_id=cluster_column, at=pl.lit(1)).sort(
        "score", "kind", "image", "rank", descending=[True, True, False, False]
    )
    return sorted_rows.select("unit_id", "cluster_id", "image_id", "score", "kind", "at")


def _take_flags(flags: npt.NDArray[np.bool_], face: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    return flags[face] if len(flags) else np.zeros(len(face), dtype=np.bool_)


def _recall_rows(
    matches: _WiderMatches, names: Sequence[str], settings: MatchingSettings
) -> list[pl.DataFrame]:
    """Build the scores of the recalls: one row for each face, level and threshold."""
    rows = []
    for metric in WIDER_METRICS:
        # Average precision is a statistic of the evidence and has no value of a single face.
        if metric.statistic is not None or metric.name not in names:
            continue
        level = _level_of(metric)
        level_reason = pl.when(~pl.Series(_is_in_level(matches.people, level))).then(
            pl.lit(f"not of the level {level}" if level else None, dtype=pl.String)
        )
        people = replace(
            matches.people,
            rows=matches.people.rows.with_columns(reason=pl.coalesce("reason", level_reason)),
        )
        # Compared with the model's own scores: rescaling depends on the other detections in the
        # file.
        for min_score in settings.score_threshold or (None,):
            values = _is_detected(matches, min_score).astype(np.float64)
            model = matches.predictions.model
            rows.append(
                person_score_rows("face_detection", people, model, metric.name, min_score, values)
            )
    return rows


def _is_detected(matches: _WiderMatches, lowest_score: float | None) -> npt.NDArray[np.bool_]:
    """Return a mask of the faces detected with at least that score: ``[m]``."""
    is_counted = matches.face >= 0
    if lowest_score is not None:
        is_counted = is_counted & (matches.predictions.detections.score >= lowest_score)
    is_detected = np.zeros(len(matches.people.truths), dtype=np.bool_)
    is_detected[matches.face[is_counted]] = True
    return is_detected


def _notes(people: AnnotatedInstances, settings: MatchingSettings) -> tuple[str, ...]:
    rule = (
        "Matched as WIDER FACE does: a detection stands for the face that it overlaps most, at an"
        f" overlap of {settings.score_iou:g} or more, boxes one pixel longer either way; faces of"
        " other levels are neither found nor missed."
    )
    n_empty = people.images.height - people.rows["image_id"].n_unique()
    empty_note = f"{n_empty:,} images without a face are not looked at, as in the released code."
    return (rule, *([empty_note] if n_empty else []), *count_unscored(people))
