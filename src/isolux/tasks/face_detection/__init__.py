"""Face detection: whether each face in an image was detected, how exactly, and the miss rate.

As detection, with the miss rate added to the recalls. Matched by COCO's one-to-one rule, all faces
of an image together, including those of unknown demographics; or by WIDER FACE's own protocol (Yang
et al. 2016), which is in ``wider_protocol``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Unpack

from isolux.core.containers import Dataset, Scores
from isolux.core.errors import SpecError
from isolux.core.info import TaskInfo
from isolux.core.tables import BOX_PREDICTIONS
from isolux.tasks._boxes.box_formats import BoxFormat
from isolux.tasks._boxes.evidence import AVERAGE_PRECISION, PRECISION_BY_SIZE
from isolux.tasks._boxes.instance_tables import NO_BOX
from isolux.tasks._boxes.matching import parse_box_settings
from isolux.tasks._boxes.metrics import (
    COCO,
    DETECTION,
    FACET,
    HOIEM,
    MISS_RATE,
    RECALL_BY_SIZE,
    WIDER,
)
from isolux.tasks._boxes.scoring import build_box_pairing, score_shapes
from isolux.tasks._boxes.settings import BoxSettings
from isolux.tasks._scores import read_metrics
from isolux.tasks.face_detection.wider_protocol import WIDER_METRICS, score_by_wider

INFO = TaskInfo(
    predictions="outputs",
    uses_unscored_people=True,
    title="Face detection",
    summary="Whether a model's boxes find each face, at ten overlaps, and how many it misses.",
    references=(WIDER, COCO, FACET, HOIEM),
    assumptions=(
        "Every face in an image is annotated, or covered by a crowd box.",
        "Recall does not see false alarms: a model that draws more boxes can only gain by it.",
        "Overlap at high thresholds also measures how the annotators drew.",
    ),
    metrics=(
        *DETECTION,
        MISS_RATE,
        *RECALL_BY_SIZE,
        *AVERAGE_PRECISION,
        *PRECISION_BY_SIZE,
        *WIDER_METRICS,
    ),
    # WIDER_METRICS are no defaults: they need the other protocol.
    defaults=("average_recall", "recall_at_iou", "miss_rate"),
)


def score(
    dataset: Dataset,
    predictions: object,
    *,
    metrics: Sequence[str] = (),
    pixel_inclusive: bool = False,
    box_format: BoxFormat = "xywh",
    protocol: Literal["coco", "wider"] = "coco",
    **box: Unpack[BoxSettings],
) -> Scores:
    """Judge for each face whether one or several models found it.

    Parameters
    ----------
    dataset : Dataset
        Units are its instances, with ``box_x``, ``box_y``, ``box_w``, ``box_h`` in pixels. Those
        that are not ``judged`` take part in the matching and are not scored.
    predictions : frame
        Table ``BOX_PREDICTIONS``: ``model, image_id, label, box_x, box_y, box_w, box_h, score``.
        None in an image: every face there was missed.
    metrics : sequence of str
        What to measure. None: ``average_recall``, ``recall_at_iou`` and ``miss_rate``, and what
        ``top_k`` and ``score_threshold`` ask for.
    person_label : str or sequence of str, optional
        The labels of predictions that mean a face. Must be named where there are several.
    score_threshold : float or sequence of float, optional
        Adds ``recall_at_score``; ``miss_rate`` then counts people not found at that score.
        Other metrics go by all detections.
    score_iou : float
        The overlap at which ``recall_at_score`` and ``miss_rate`` are read.
    max_detections : int, optional
        Only this many of each image's highest-scoring detections take part. Default: all, as crowds
        of several hundred faces require; COCO's is 100.
    box_format : {"xywh", "xyxy", "cxcywh", "yxhw", "yxyx", "xywhn", "xyxyn", "cxcywhn"}
        What the four numbers of a predicted box are, as in detection.
    pixel_inclusive : bool
        Boxes end with their last pixel, which is inside: overlaps count one more pixel each way, of
        people and of predictions alike, as the evaluations of WIDER FACE and Scalabel (BDD100K) do.
        This is the only place to set it: files are read unchanged.
    protocol : {"coco", "wider"}
        Whose rules say which face is found. ``wider``: WIDER FACE's own, with the metrics
        ``wider_average_precision_easy``, ``_medium``, ``_hard`` and ``wider_recall_easy``, … of the
        lists that the instances have
        (true or false in columns ``easy``, ``medium``, ``hard``), and of all faces without such an
        ending (measured where no list is at hand). A detection stands for the face that it
        overlaps most, at ``score_iou`` or more with the +1 convention; a face of another level is
        neither found nor missed; recall is also read at ``score_threshold``. Load WIDER FACE with
        ``judge="all"`` for its published numbers: faces without demographics are not others.
    **box
        The settings of ``BoxSettings``, as in detection: beside those above ``iou_thresholds``,
        ``top_k``, ``matching``, ``common_count`` and ``model``.

    Returns
    -------
    Scores
        ``units``: table ``scores``, one row for each model, metric, ``threshold`` and face, 0 to
        1; higher is better but for ``miss_rate``. Null with a reason as in detection.

    Raises
    ------
    SpecError
        A setting that cannot be used; predictions of several labels none of which was named.
    UnknownNameError, TableError, JoinError
        No such metric; a box that is none; no prediction in any image of the dataset.

    Examples
    --------
    The face is found, but not surely enough.

    >>> import polars as pl
    >>> from isolux.core.info import DatasetInfo
    >>> side = {"box_x": [0.0], "box_y": [0.0], "box_w": [10.0], "box_h": [10.0]}
    >>> face = Dataset(
    ...     name="a face",
    ...     info=DatasetInfo(title="A face", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"], **side}),
    ... )
    >>> box = pl.DataFrame(
    ...     {"model": ["m"], "image_id": ["1"], "label": [None], "score": [0.4], **side}
    ... )
    >>> for sure in (None, 0.5):
    ...     score(face, box, metrics=["miss_rate"], score_threshold=sure).units["value"].to_list()
    [0.0]
    [1.0]
    """
    settings, requested = parse_box_settings(**box), read_metrics(INFO, metrics)
    if protocol == "wider":
        # The released evaluation has one IoU threshold and no limit of detections.
        is_changed = {
            "iou_thresholds": settings.iou_thresholds != (0.5, 0.75),
            "max_detections": settings.max_detections is not None,
            "top_k": bool(settings.top_k),
            "matching": settings.matching != "one-to-one",
            "common_count": settings.common_count is not None,
            "pixel_inclusive": pixel_inclusive,  # its overlaps always are
        }
        unused = [name for name, is_given in is_changed.items() if is_given]
        if unused:
            raise SpecError(
                f"WIDER FACE's protocol has no {' and no '.join(unused)}",
                expected="no settings but score_iou and score_threshold with protocol='wider'",
                found=", ".join(unused),
            )
        return score_by_wider(INFO, dataset, predictions, settings, requested, box_format)
    # Otherwise the metric would be measured by COCO's matching under WIDER FACE's name.
    for name in requested:
        if name in {metric.name for metric in WIDER_METRICS}:
            raise SpecError(
                f"the metric {name!r} is one of WIDER FACE's protocol",
                expected="protocol='wider'",
                found="protocol='coco'",
            )
    pairs_of = build_box_pairing(settings, pixel_inclusive=pixel_inclusive)
    return score_shapes(
        ("face_detection", INFO, BOX_PREDICTIONS),
        dataset,
        predictions,
        settings,
        pairs_of,
        metrics=requested,
        missing_by_reason=NO_BOX,
        box_format=box_format,
    )
