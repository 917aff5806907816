"""Settings that all tasks of boxes, masks and poses share; declared only here.

A task takes them as ``**box: Unpack[BoxSettings]``, so that each is a keyword of its ``score``, a
flag and a line of help. Where a setting means more in a task, that task's docstring says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict

from isolux.core.plugin_options import SharedOption

Matching = Literal["one-to-one", "best-overlap"]


# Texts of SharedOption are printed by --help.
class MatchSettings(TypedDict, total=False):
    """How detections are matched to people: of boxes, masks and poses."""

    person_label: Annotated[
        str | Sequence[str] | None,
        SharedOption(
            None,
            'The labels of predictions that mean a person (``"person"``; of COCO results read'
            ' without their categories ``"1"``); others are left out. Must be named where there'
            " are several and none is a class of the dataset.",
        ),
    ]
    max_detections: Annotated[
        int | None,
        SharedOption(
            None,
            "Only this many of each image's highest-scoring detections take part. Default: all"
            " (FACET's person detection uses all predicted boxes); COCO's is 100.",
        ),
    ]
    matching: Annotated[
        Matching,
        SharedOption(
            "one-to-one",
            "COCO's rule, or that of FHIBE's released tool: each person has the detection that"
            " overlaps them most, however often it is used. The second can only find more.",
        ),
    ]
    common_count: Annotated[
        float | None,
        SharedOption(
            None,
            "The count N of ``normalised_average_precision``. Default: for each attribute (and"
            " class) the mean count of people over its groups, as in ICON².",
        ),
    ]
    model: Annotated[
        str | None,
        SharedOption(None, "What to call the model if there is not one prediction to say so."),
    ]


class BoxSettings(MatchSettings, total=False):
    """And the IoU thresholds and scores at which a person counts as detected: boxes and masks."""

    # FACET's tables report AR at 0.50 and 0.75 next to the mean over ten thresholds.
    iou_thresholds: Annotated[
        Sequence[float],
        SharedOption(
            (0.5, 0.75),
            "Of ``recall_at_iou``, in column ``threshold``: AR@.50 and AR@.75 where not said.",
        ),
    ]
    score_threshold: Annotated[
        float | Sequence[float] | None,
        SharedOption(
            None,
            "Adds ``recall_at_score``, in column ``threshold``. Of the model's own scale. Other"
            " metrics go by all detections.",
        ),
    ]
    # 0.5 is the threshold of PASCAL VOC and WIDER FACE.
    score_iou: Annotated[
        float, SharedOption(0.5, "The overlap at which ``recall_at_score`` is read.")
    ]
    top_k: Annotated[
        Sequence[int],
        SharedOption(
            (),
            "Adds ``average_recall_at_k`` for each k: (1, 10, 100) gives COCO's AR1, AR10, AR100.",
        ),
    ]
