"""What the tasks of boxes, masks and poses measure: definitions, directions, sources."""

from __future__ import annotations

from dataclasses import replace

from isolux.vocabulary import works
from isolux.vocabulary.info import Direction, Metric, Reference

FACET = works.FACET.at("section 6.2 and appendix A.5.4")
COCO = works.COCO.at("detection evaluation: https://cocodataset.org/#detection-eval")
WIDER = works.WIDER_FACE.at("section 5")
HOIEM = works.HOIEM.at("normalised precision; ICON², section 3.1, equation 3")
FHIBE = works.FHIBE.at("Methods, narrow model evaluation metrics")
PCK = Reference(
    "mpii",
    "Andriluka, M., Pishchulin, L., Gehler, P., & Schiele, B. (2014). 2D human pose estimation: New"
    " benchmark and state of the art analysis. In Proceedings of the IEEE Conference on Computer"
    " Vision and Pattern Recognition (CVPR) (pp. 3686–3693).",
    "section 4 (PCKh)",
    "http://human-pose.mpi-inf.mpg.de",
)


def _of_people(
    name: str,
    title: str,
    definition: str,
    reference: Reference,
    direction: Direction = "higher",
    at: str = "of",
    in_people: str = "",
) -> Metric:
    return Metric(
        name=name,
        title=title,
        definition=definition,
        direction=direction,
        reference=reference,
        at=at,
        in_people=in_people,
    )


DETECTION: tuple[Metric, ...] = (
    _of_people(
        "average_recall",
        "Average recall (.50:.95)",
        "Share of the ten overlaps from .50 to .95 at which a person is found, mean over people "
        "(mAR).",
        FACET,
    ),
    _of_people(
        "recall_at_iou",
        "Recall at an overlap",
        "Share of people found at an overlap (IoU) of at least the threshold.",
        FACET,
        in_people="Of {people} the model finds {n}",
    ),
    _of_people(
        "found_at_score",
        "Share found at a score",
        "Share of people found by a detection whose score is at least the threshold, at one "
        "overlap (.50 unless another is set).",
        WIDER,
        in_people="Of {people} the model finds {n}",
    ),
    _of_people(
        "average_recall_at_k",
        "Average recall of the first K",
        "Average recall when only the K highest-scoring detections of each image take part "
        "(AR1, AR10, AR100).",
        COCO,
        at="=",
    ),
)
RECALL_BY_SIZE = tuple(
    _of_people(
        f"average_recall_{size}",
        f"Average recall (.50:.95), {size}",
        f"Average recall of people whose area is {area}; others are ignored, and matched only by "
        "detections that find nobody of that size.",
        COCO,
    )
    for size, area in (
        ("small", "at most 32² pixels"),
        ("medium", "32² to 96² pixels"),
        ("large", "at least 96² pixels"),
    )
)
"""COCO's ARs, ARm and ARl."""
MISS_RATE = _of_people(
    "miss_rate",
    "Miss rate",
    "Share of people not found at one overlap (.50 unless another is set) by any detection, or by "
    "any whose score is at least the threshold.",
    WIDER,
    "lower",
    "at a score of",
    in_people="Of {people} the model misses {n}",
)
KEYPOINTS: tuple[Metric, ...] = (
    _of_people(
        "average_recall",
        "Average recall (.50:.95)",
        "Share of the ten similarities (OKS) from .50 to .95 at which a person's pose is found, "
        "mean over people.",
        COCO,
    ),
    _of_people(
        "recall_at_oks",
        "Recall at a similarity",
        "Share of people whose pose is found at a similarity (OKS) of at least the threshold.",
        COCO,
        in_people="Of {people} the model finds the pose of {n}",
    ),
    _of_people(
        "oks",
        "Object keypoint similarity",
        "Mean similarity of people's poses to those they were given; 0 for who was given none.",
        replace(COCO, place="keypoint evaluation: https://cocodataset.org/#keypoints-eval"),
    ),
    _of_people(
        "pck",
        "Correct keypoints (PCK)",
        "Share of a person's labelled keypoints that are within a fraction of the scale of their "
        "annotation, mean over people.",
        FHIBE,
        at="at",
    ),
    _of_people(
        "pck_by_keypoint",
        "Correct keypoints, each apart",
        "Share of people whose keypoint, if labelled, is within a fraction of the scale of its "
        "annotation.",
        PCK,
        at="at",
    ),
)
