"""Keypoints: how close a model's poses are to those of each person, and who has none.

From poses to scores per person: COCO's similarity (OKS) and average recall over ten similarities,
the share of correct keypoints (PCK), and each keypoint separately. Poses are matched to people one
to one, all people of an image together, by similarity.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Literal, Unpack

import numpy as np
import polars as pl

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.info import TaskInfo
from isolux.core.notes import Caution
from isolux.core.tables import KEYPOINT_PREDICTIONS
from isolux.geometry.keypoints import correct_keypoints, normalised_distance, pck
from isolux.stats.statistic import FloatArray
from isolux.tasks._boxes.evidence import (
    AVERAGE_PRECISION,
    PRECISION_BY_SIZE,
    build_evidence_tables,
)
from isolux.tasks._boxes.instance_tables import AnnotatedInstances, read_people
from isolux.tasks._boxes.matching import (
    ModelMatches,
    measured_task_info,
    parse_box_settings,
    person_score_rows,
    score_rows,
    select_metrics,
)
from isolux.tasks._boxes.metrics import COCO, FHIBE, HOIEM, KEYPOINTS, PCK, RECALL_BY_SIZE
from isolux.tasks._boxes.scoring import build_matching_notes, match_models
from isolux.tasks._boxes.settings import MatchSettings
from isolux.tasks._scores import read_metrics, stack_scores
from isolux.tasks.keypoints.poses import (
    NO_POINTS,
    SCALES,
    AnnotatedPoses,
    PoseAssignment,
    assign_poses,
    build_pose_previews,
    find_pose_pairs,
    measure_scale,
    read_poses,
)

Scale = Literal["face-diagonal", "head-length", "box-diagonal"]
_SCALED_METRICS = ("pck", "pck_by_keypoint")

INFO = TaskInfo(
    predictions="outputs",
    uses_unscored_people=True,
    title="Keypoints",
    summary="How close a model's poses are to the annotated keypoints of each person.",
    references=(COCO, FHIBE, PCK, HOIEM),
    assumptions=(
        "Only keypoints that are labelled count, the hidden ones among them included.",
        "A person who was given no pose has none of their keypoints right.",
        "A person without a known area is taken to be as large as their box.",
    ),
    metrics=(
        *KEYPOINTS,
        *RECALL_BY_SIZE[1:],  # COCO has no small ones: none of its small people has keypoints
        *AVERAGE_PRECISION,
        *PRECISION_BY_SIZE[1:],
    ),
    defaults=("average_recall", "oks", "pck"),
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    metrics: Sequence[str] = (),
    person_class: str | Sequence[str] | None = None,
    fractions: Sequence[float] = (0.5,),
    scale: Scale = "face-diagonal",
    area_of_box: float | None = None,
    sigmas: Sequence[float] | None = None,
    lowest_oks: float = 0.1,
    **box: Unpack[MatchSettings],
) -> Scores:
    """Judge for each person how near the poses of one or several models come.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances, with ``keypoints_x``, ``keypoints_y`` (pixels), ``keypoints_v``
        (0 not labelled), and if given ``keypoint_names``, ``area`` (square pixels), boxes and face
        boxes. Crowds, those to ``ignore`` and those not ``judged`` are treated as in detection.
    predictions : frame
        Table ``KEYPOINT_PREDICTIONS``: ``model, image_id, label, score, keypoints_x, keypoints_y,
        keypoints_v``. An image without any: no one there was given a pose.
    metrics : sequence of str
        What to measure. None: ``average_recall``, ``oks`` and ``pck``; ``pck_by_keypoint``,
        ``recall_at_oks`` and average precision when named.
    person_class
        As in detection.
    fractions : sequence of float
        Of ``pck``, in column ``threshold``: a keypoint is right within this share of ``scale``.
    scale : {"face-diagonal", "head-length", "box-diagonal"}
        The diagonal of the face's box; the head's length, as MPII takes it .6 of that diagonal; or
        the diagonal of the person's box.
    area_of_box : float, optional
        The share of their box that a person without a known area fills, for similarity: CrowdPose's
        tool takes .53. Not given: all of it, which makes poses more similar, and a warning says so.
    sigmas : sequence of float, optional
        The spread of each keypoint, used for similarity. Default: COCO's, for its 17.
    lowest_oks : float
        Poses less similar than this find nobody: for ``oks`` and ``pck``.
    max_detections : int, optional
        Only this many of each image's highest-scoring poses take part. Default: all; COCO's is 20.
    matching : {"one-to-one", "best-overlap"}
        COCO's rule, or each person's most similar pose, however often it is used.
    **box
        The settings of ``MatchSettings``, as in detection: beside those above ``person_label``,
        ``common_count`` and ``model``.

    Returns
    -------
    Scores
        ``units``: table ``scores``, one row for each model, metric, ``threshold`` and person, and
        of ``pck_by_keypoint`` for each labelled keypoint (its name in ``label``); 0 to 1, higher
        is better. Null with the reason "no labelled keypoint"; of PCK also "no face box" (or "no
        box"); and as in detection.

    Raises
    ------
    SpecError, UnknownNameError, TableError, JoinError
        A setting that cannot be used, PCK where no one has a face box; no such metric; a pose with
        another number of keypoints; no prediction in any image of the dataset.

    Examples
    --------
    The face is 30 × 40 pixels. The first keypoint is off by 20 of the 25 that half its diagonal
    allows, the second by 30, the third is not labelled.

    >>> from isolux.core.info import DatasetInfo
    >>> face = dict(zip([f"face_box_{s}" for s in "xywh"], ([0.0], [0.0], [30.0], [40.0])))
    >>> person = Dataset(
    ...     name="one",
    ...     info=DatasetInfo(title="One", summary="An example.", references=()),
    ...     instances=pl.DataFrame(
    ...         {
    ...             "instance_id": ["a"],
    ...             "image_id": ["1"],
    ...             "area": [9000.0],
    ...             "keypoints_x": [[0.0, 100.0, None]],
    ...             "keypoints_y": [[0.0, 0.0, None]],
    ...             "keypoints_v": [[2, 1, 0]],
    ...             **face,
    ...         }
    ...     ),
    ... )
    >>> pose = pl.DataFrame(
    ...     {
    ...         "model": ["m"],
    ...         "image_id": ["1"],
    ...         "label": ["person"],
    ...         "score": [0.9],
    ...         "keypoints_x": [[20.0, 130.0, 5.0]],
    ...         "keypoints_y": [[0.0, 0.0, 5.0]],
    ...         "keypoints_v": [[1.0, 1.0, 1.0]],
    ...     }
    ... )
    >>> scores = score(person, pose, metrics=["pck", "oks"], sigmas=(0.1, 0.1, 0.1))
    >>> scores.units.select("metric", "threshold", pl.col("value").round(3)).rows()
    [('oks', None, 0.43), ('pck', 0.5, 0.5)]
    """
    settings = parse_box_settings(**box)
    _check_settings(fractions, lowest_oks, area_of_box)
    names = select_metrics(INFO, metrics, settings)
    people = read_people(
        dataset, person_class=person_class, by_class=False, missing_by_reason=NO_POINTS
    )
    poses = read_poses(people, sigmas, 1.0 if area_of_box is None else area_of_box)
    scale_px = measure_scale(people, scale)
    # Pairs are found once, at the lowest similarity that any metric needs.
    min_similarity = min(lowest_oks, settings.min_iou)
    model_matches, cautions, notes = match_models(
        predictions,
        KEYPOINT_PREDICTIONS,
        people,
        settings,
        partial(find_pose_pairs, poses=poses, lowest_oks=min_similarity),
    )
    is_named = bool(set(read_metrics(INFO, metrics)) & set(_SCALED_METRICS))
    names, scale_notes = _drop_unscaled_metrics(names, scale_px, scale, is_named=is_named)
    sorted_fractions, scale_lengths = sorted(set(fractions)), (scale, scale_px)
    tables = [
        rows
        for matches in model_matches
        for rows in _model_rows(
            matches,
            poses,
            assign_poses(matches, poses, lowest_oks),
            scale_lengths,
            sorted_fractions,
            names,
        )
    ]
    return Scores(
        units=stack_scores(tables),
        info=measured_task_info(INFO, names),
        evidence=build_evidence_tables(model_matches, names),
        task="keypoints",
        notes=(
            *cautions,
            *_caution_on_missing_areas(people, area_of_box),
            *notes,
            *scale_notes,
            *build_matching_notes(people, settings, names),
        ),
        previews=build_pose_previews(predictions, people, settings.person_label, poses),
    )


def _caution_on_missing_areas(
    people: AnnotatedInstances, area_of_box: float | None
) -> list[Caution]:
    """Caution where people without an area make similarity depend on their box."""
    rows = people.rows.filter(people.scored)
    # OKS divides by the area of the person (COCO's s²); a box has more area than the person in it.
    n_missing = rows["area"].null_count() if "area" in rows.columns else rows.height
    text = (
        f"{n_missing:,} of {rows.height:,} people have no area and are taken to fill their whole"
        " box, which makes every pose look nearer than by COCO's rule. --option area_of_box=.53"
        " is what CrowdPose's tool takes; --option area_of_box=1 takes the whole box."
    )
    return [Caution(text)] if n_missing and area_of_box is None else []


def _check_settings(
    fractions: Sequence[float], lowest_oks: float, area_of_box: float | None
) -> None:
    # "not > 0" also refuses NaN.
    invalid = [fraction for fraction in fractions if not fraction > 0]
    share_text = "above 0, at most 1"
    for is_wrong, problem, expected, setting in (
        (
            area_of_box is not None and not 0 < area_of_box <= 1,
            "area_of_box is a share of the box",
            share_text,
            area_of_box,
        ),
        (
            bool(invalid),
            "fractions cannot be that",
            "shares of the scale, above 0",
            invalid[0] if invalid else None,
        ),
        (not 0 < lowest_oks <= 1, "lowest_oks cannot be that", share_text, lowest_oks),
    ):
        if is_wrong:
            raise SpecError(problem, expected=expected, found=repr(setting))


def _drop_unscaled_metrics(
    names: tuple[str, ...], scale_px: FloatArray, scale: str, *, is_named: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Drop PCK where no one has a scale to divide by; refuse it if it was named."""
    kept_names = tuple(name for name in names if name not in _SCALED_METRICS)
    # One person with a scale is enough; the others have a reason each.
    if kept_names == names or not len(scale_px) or not np.isnan(scale_px).all():
        return names, ()
    columns, reason = SCALES[scale]
    # A default may be dropped with a note; a metric that was named may not.
    if is_named or not kept_names:
        raise SpecError(
            f"correct keypoints (PCK) cannot be counted: {reason}",
            expected="instances with " + ", ".join(columns),
            found="nothing but nulls",
            hint="another scale, such as scale='box-diagonal'",
        )
    return kept_names, (f"Correct keypoints (PCK) were not counted: {reason} to measure them by.",)


def _model_rows(
    matches: ModelMatches,
    poses: AnnotatedPoses,
    assignment: PoseAssignment,
    scale_lengths: tuple[str, FloatArray],
    fractions: Sequence[float],
    names: Sequence[str],
) -> list[pl.DataFrame]:
    """Build one model's score tables: one for each metric, threshold and keypoint."""
    scale, scale_px = scale_lengths
    people, model = matches.people, matches.predictions.model
    tables = score_rows("keypoints", matches, names)
    if "oks" in names:
        tables.append(
            person_score_rows("keypoints", people, model, "oks", None, assignment.similarity)
        )
    # Divided by each person's own scale, so that people of all sizes count equally (PCK).
    distance = normalised_distance(assignment.points, poses.points, scale_px)
    unscaled_reason = pl.when(pl.Series(np.isnan(scale_px))).then(pl.lit(SCALES[scale][1]))
    rows = people.rows.with_columns(reason=pl.coalesce("reason", unscaled_reason))
    for fraction in fractions:
        if "pck" in names:
            scored_people, values = replace(people, rows=rows), pck(distance, fraction)
            tables.append(
                person_score_rows("keypoints", scored_people, model, "pck", fraction, values)
            )
        for k, keypoint in enumerate(poses.names if "pck_by_keypoint" in names else ()):
            # Visibility 1 (labelled, hidden) counts as 2 does: COCO's v > 0.
            is_labelled = (poses.points[:, k, 2] > 0) & people.scored.to_numpy()
            keypoint_rows = rows.filter(is_labelled).with_columns(pl.lit(keypoint).alias("class"))
            is_correct = correct_keypoints(distance[is_labelled, k : k + 1], fraction)[:, 0]
            scored_people = replace(people, rows=keypoint_rows)
            tables.append(
                person_score_rows(
                    "keypoints", scored_people, model, "pck_by_keypoint", fraction, is_correct
                )
            )
    return tables
