"""The declaration that the tasks of boxes and of masks share."""

from __future__ import annotations

from isolux.core.info import TaskInfo
from isolux.tasks._boxes.evidence import (
    AVERAGE_PRECISION,
    PRECISION_BY_SIZE,
    RECALL_OVER_CLASSES,
)
from isolux.tasks._boxes.metrics import COCO, DETECTION, FACET, HOIEM, RECALL_BY_SIZE, WIDER


def info_of_shapes(title: str, summary: str) -> TaskInfo:
    """Declare a task that detects each person's box or mask: references, assumptions, metrics."""
    return TaskInfo(
        predictions="outputs",
        # Crops of single people would leave a detector nothing to find.
        uses_unscored_people=True,
        title=title,
        summary=summary,
        references=(FACET, COCO, WIDER, HOIEM),
        assumptions=(
            "Everyone in an image is annotated, or covered by a crowd box.",
            "Recall does not see false alarms: a model that draws more boxes can only gain by it.",
            "Overlap at high thresholds also measures how the annotators drew.",
        ),
        metrics=(
            *DETECTION,
            *RECALL_BY_SIZE,
            *AVERAGE_PRECISION,
            *PRECISION_BY_SIZE,
            *RECALL_OVER_CLASSES,
        ),
        defaults=("average_recall", "recall_at_iou"),
    )
