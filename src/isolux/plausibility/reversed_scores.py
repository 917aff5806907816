"""Scores that are lower the surer the model is: 1 - p, a distance, a loss."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isolux.core.info import PlausibilityInfo
from isolux.core.notes import Caution
from isolux.geometry.previews import ShapePreview
from isolux.plausibility._audit_inputs import AuditInputs
from isolux.stats.statistic import FloatArray

# The area under the curve of right against wrong predictions is .5 where scores say nothing, and
# rises by .2 or more if scores of .4 or less are turned round. Chance alone is excluded.
_MAX_AREA, _MIN_STANDARD_ERRORS, _MIN_ROWS = 0.4, 3.0, 10
_MIN_IOU = 0.5

INFO = PlausibilityInfo(
    title="Scores the wrong way round",
    summary="How often a prediction that finds someone scores higher than one that finds nobody, in"
    " up to 300 images.",
    rule=f"Warns where that is {_MAX_AREA:g} of all pairs or fewer in both halves of the images,"
    f" and {_MIN_STANDARD_ERRORS:g} standard errors below a half.",
    tasks=("detection", "face_detection", "segmentation", "keypoints"),
)


def check(inputs: AuditInputs) -> list[Caution]:
    """Caution where predictions that find nobody have the higher scores."""
    cautions = []
    for preview in map(ShapePreview.only_judged, inputs.scores.previews):
        pairs = preview.find_pairs(preview.predicted)
        is_right = np.isin(np.arange(len(preview.score)), pairs.detection[pairs.iou >= _MIN_IOU])
        is_compared = is_right | ~preview.is_of_unscored
        is_even = preview.predicted.image % 2 == 0
        areas = [
            _measure_area(preview.score[rows], is_right[rows])
            for rows in (is_compared & is_even, is_compared & ~is_even, is_compared)
        ]
        if any(area is None or area[0] > _MAX_AREA for area in areas) or areas[-1] is None:
            continue
        area, standard_error = areas[-1]
        if area <= 0.5 - _MIN_STANDARD_ERRORS * standard_error:
            cautions.append(
                Caution(
                    f"Predictions of {preview.model!r} that find nobody have higher scores than"
                    f" those that find someone ({100 * (1 - area):.0f} % of pairs). Are scores"
                    " written as 1 - p, or as distances? Matching and average precision take the"
                    " highest as the surest; nothing was changed."
                )
            )
    return cautions


def _measure_area(score: FloatArray, is_right: NDArray[np.bool_]) -> tuple[float, float] | None:
    """Return the AUC and its standard error under the null, or None for too few."""
    n, m = int(is_right.sum()), int((~is_right).sum())
    if min(n, m) < _MIN_ROWS:
        return None
    rank_sum = pl.Series(score).rank("average").to_numpy()[is_right].sum()
    area = float((rank_sum - n * (n + 1) / 2) / (n * m))
    return area, float(np.sqrt((n + m + 1) / (12 * n * m)))
