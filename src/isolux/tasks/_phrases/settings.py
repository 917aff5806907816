"""Settings that every task shares that judges boxes drawn for a prompt or a phrase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, TypedDict

from isolux.tasks._boxes.readings import BoxFormat
from isolux.vocabulary.grouping import UNKNOWN_VALUES
from isolux.vocabulary.plugin_options import Shared

__all__ = ["PhraseSettings"]


class PhraseSettings(TypedDict, total=False):
    """Which classes people are of, how labels name them, and at which overlaps a box finds one."""

    target: Annotated[
        str | None,
        Shared(None, "The attribute with the classes. Default: the instances' ``classes``."),
    ]
    prediction_map: Annotated[
        Mapping[str, str] | None,
        Shared(
            None,
            'The model\'s labels to classes (``{"1": "nurse"}``); goes before names and prompts.',
        ),
    ]
    iou_thresholds: Annotated[
        Sequence[float],
        Shared(
            (0.5, 0.75),
            "Of ``recall_at_iou``, in column ``threshold``: AR@.50 and AR@.75 where not said.",
        ),
    ]
    unknown_values: Annotated[
        Sequence[str],
        Shared(UNKNOWN_VALUES, 'Classes that mean "not known", compared without case.'),
    ]
    box_format: Annotated[
        BoxFormat,
        Shared(
            "xywh",
            "What the four numbers of a predicted box are: left, top, width, height; two"
            " corners; the centre and the sides; ``y`` first; with ``n`` as shares of the"
            " picture's sides.",
        ),
    ]
    model: Annotated[
        str | None,
        Shared(None, "What to call the model if there is not one prediction to say so."),
    ]
