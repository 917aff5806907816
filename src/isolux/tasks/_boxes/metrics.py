"""Metrics of the tasks of boxes, masks and poses: definitions, directions, references."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from isolux.core import citations
from isolux.core.info import Metric, Reference

FACET = citations.FACET.with_location("section 6.2 and appendix A.5.4")
COCO = citations.COCO.with_location("detection evaluation: https://cocodataset.org/#detection-eval")
WIDER = citations.WIDER_FACE.with_location("section 5")
HOIEM = citations.HOIEM.with_location("normalised precision; ICON², section 3.1, equation 3")
FHIBE = citations.FHIBE.with_location("Methods, narrow model evaluation metrics")
PCK = Reference(
    "mpii",
    "Andriluka, M., Pishchulin, L., Gehler, P., & Schiele, B. (2014). 2D human pose estimation: New"
    " benchmark and state of the art analysis. In Proceedings of the IEEE Conference on Computer"
    " Vision and Pattern Recognition (CVPR) (pp. 3686–3693).",
    "section 4 (PCKh)",
    "http://human-pose.mpi-inf.mpg.de",
)


# Metrics of people are means of one value a person, so that intervals can resample clusters.
_person_metric = partial(Metric, direction="higher", threshold_phrase="of")


DETECTION: tuple[Metric, ...] = (
    _person_metric(
        name="average_recall",
        title="Average recall (.50:.95)",
        definition="Share of the ten overlaps from .50 to .95 at which a person is found, mean "
        "over people (mAR).",
        reference=FACET,
    ),
    _person_metric(
        name="recall_at_iou",
        title="Recall at an overlap",
        definition="Share of people found at an overlap (IoU) of at least the threshold.",
        reference=FACET,
        in_people="Of {people} the model finds {n}",
    ),
    _person_metric(
        name="recall_at_score",
        title="Share found at a score",
        definition="Share of people found by a detection whose score is at least the threshold, at "
        "one overlap (.50 unless another is set).",
        reference=WIDER,
        in_people="Of {people} the model finds {n}",
    ),
    _person_metric(
        name="average_recall_at_k",
        title="Average recall of the first K",
        definition="Average recall when only the K highest-scoring detections of each image take "
        "part (AR1, AR10, AR100).",
        reference=COCO,
        threshold_phrase="=",
    ),
)
# COCO's limits, in square pixels of the image as annotated: resizing images changes the sizes.
AREAS = {
    "small": "at most 32² pixels",
    "medium": "32² to 96² pixels",
    "large": "at least 96² pixels",
}
RECALL_BY_SIZE = tuple(
    _person_metric(
        name=f"average_recall_{size}",
        title=f"Average recall (.50:.95), {size}",
        definition=f"Average recall of people whose area is {area}; others are ignored, and "
        "matched only by detections that find nobody of that size.",
        reference=COCO,
    )
    for size, area in AREAS.items()
)
"""COCO's ARs, ARm and ARl."""
# The complement of found_at_score, for fields that report misses: lower is better.
MISS_RATE = _person_metric(
    name="miss_rate",
    title="Miss rate",
    definition="Share of people not found at one overlap (.50 unless another is set) by any "
    "detection, or by any whose score is at least the threshold.",
    reference=WIDER,
    direction="lower",
    threshold_phrase="at a score of",
    in_people="Of {people} the model misses {n}",
)
KEYPOINTS: tuple[Metric, ...] = (
    _person_metric(
        name="average_recall",
        title="Average recall (.50:.95)",
        definition="Share of the ten similarities (OKS) from .50 to .95 at which a person's pose "
        "is found, mean over people.",
        reference=COCO,
    ),
    _person_metric(
        name="recall_at_oks",
        title="Recall at a similarity",
        definition="Share of people whose pose is found at a similarity (OKS) of at least the "
        "threshold.",
        reference=COCO,
        in_people="Of {people} the model finds the pose of {n}",
    ),
    _person_metric(
        name="oks",
        title="Object keypoint similarity",
        definition="Mean similarity of people's poses to those they were given; 0 for who was "
        "given none.",
        reference=replace(
            COCO, location="keypoint evaluation: https://cocodataset.org/#keypoints-eval"
        ),
    ),
    _person_metric(
        name="pck",
        title="Correct keypoints (PCK)",
        definition="Share of a person's labelled keypoints that are within a fraction of the scale "
        "of their annotation, mean over people.",
        reference=FHIBE,
        threshold_phrase="at",
    ),
    _person_metric(
        name="pck_by_keypoint",
        title="Correct keypoints, each apart",
        definition="Share of people whose keypoint, if labelled, is within a fraction of the scale "
        "of its annotation.",
        reference=PCK,
        threshold_phrase="at",
    ),
)
