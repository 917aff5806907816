"""Average precision of a ranking, the mean over its classes and overlaps."""

from __future__ import annotations

import numpy as np

from isolux.stats.precision_recall import N_IOU_THRESHOLDS, average_precision_by_class_and_iou
from isolux.stats.statistic import DetectionStatistic


def average_precision(ranking, weights, overlaps=range(N_IOU_THRESHOLDS), **more):
    value = DetectionStatistic.average_classes(
        average_precision_by_class_and_iou(ranking, weights, overlaps, **more)
    )
    return np.asarray(value if weights.ndim == 2 else value[0])
