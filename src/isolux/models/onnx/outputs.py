"""What a network's outputs mean: labels, boxes or vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError
from isolux.models._boxes import BoxFormat, BoxUnits, build_box_table, convert_boxes_to_rows
from isolux.models._classes import (
    ClassMap,
    build_embedding_table,
    build_top_label_table,
    to_probabilities,
)
from isolux.models._preprocessing import ModelInput
from isolux.models.onnx.session import Session

_BOXES = ("boxes", "pred_boxes", "bboxes", "dets", "detection_boxes")
_SCORES = ("scores", "logits", "pred_logits", "confidences", "detection_scores")
_LABELS = ("labels", "classes", "class_ids", "detection_classes")
_VECTORS = ("embeddings", "embedding", "features", "image_embeds", "pooler_output")
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Outputs:
    """Which output is what, and how it is read.

    ``count``: how many classes the scores have, where the file says it.
    """

    scores: str
    boxes: str | None = None
    labels: str | None = None
    activation: str = "softmax"
    top: int = 5
    box_format: BoxFormat = "xyxy"
    box_units: BoxUnits = "pixels"
    background: str = "none"
    min_score: float = 0.05
    count: int | None = None

    @classmethod
    def from_settings(
        cls, session: Session, prediction_type: str, settings: Mapping[str, Any], *, source: str
    ) -> Outputs:
        """Find the outputs by the settings, or by usual names."""
        scores = _find_output_name(
            session,
            settings.get("scores_output"),
            _SCORES if prediction_type != "embeddings" else _VECTORS,
            "scores_output",
            source,
        )
        if prediction_type != "boxes":
            last = session.outputs[scores][-1] if len(session.outputs[scores]) == 2 else None
            return cls(
                scores,
                activation=settings.get("activation", "softmax"),
                top=int(settings.get("top", 5)),
                count=last if isinstance(last, int) else None,
            )
        missing = [key for key in ("box_format", "box_units") if key not in settings]
        if missing:
            raise SpecError(
                "nothing says how the network writes a box",
                expected="--model-option box_format=xyxy, xywh or cxcywh, and box_units=pixels"
                " (of its input) or shares",
                found="without " + " and ".join(missing),
                where=source,
            )
        labels_setting = settings.get("labels_output")
        labels_name = labels_setting or next((n for n in session.outputs if n in _LABELS), None)
        return cls(
            scores,
            _find_output_name(
                session, settings.get("boxes_output"), _BOXES, "boxes_output", source
            ),
            None
            if labels_name is None
            else _find_output_name(session, labels_name, (), "labels_output", source),
            settings.get("activation", "sigmoid" if labels_name is None else "none"),
            box_format=settings["box_format"],
            box_units=settings["box_units"],
            background=settings.get("background", "none"),
            min_score=float(settings.get("min_score", 0.05)),
        )

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        return asdict(self)


def _find_output_name(
    session: Session, requested: str | None, usual_names: Sequence[str], setting: str, source: str
) -> str:
    if requested is not None and requested in session.outputs:
        return requested
    candidates = [name for name in session.outputs if name in usual_names]
    if requested is None and len(candidates) == 1:
        return candidates[0]
    if requested is None and len(session.outputs) == 1:
        return next(iter(session.outputs))
    raise SpecError(
        "it is not said which output of the network is meant"
        if requested is None
        else f"the network has no output {requested!r}",
        expected=f"--model-option {setting}=NAME",
        found=session.outputs_text(),
        where=source,
    )


def build_label_table_from_scores(
    arrays: Arrays, outputs: Outputs, classes: ClassMap, n_images: int
) -> pl.DataFrame:
    """Read scores ``[n, c]`` as labels."""
    if not n_images:
        return build_top_label_table(np.zeros((0, len(classes.names))), classes.names, outputs.top)
    scores = _reshape_to_image_rows(arrays[outputs.scores], n_images, outputs.scores)
    if scores.shape[1] == 1 and classes.count == 2:  # one number for two classes: the second one's
        confidences = to_probabilities(
            scores, "none" if outputs.activation == "none" else "sigmoid"
        )
        scores = np.concatenate([1 - confidences, confidences], axis=1)
    else:
        scores = to_probabilities(scores, outputs.activation)
    if scores.shape[1] != classes.count:
        raise SpecError(
            "the names do not fit the network",
            expected=f"{scores.shape[1]:,} names",
            found=f"{classes.count:,}",
        )
    return build_top_label_table(classes(scores), classes.names, outputs.top)


def build_embedding_table_from_output(
    arrays: Arrays, outputs: Outputs, n_images: int
) -> pl.DataFrame:
    """Read an output ``[n, d]`` as embeddings."""
    return build_embedding_table(
        _reshape_to_image_rows(arrays[outputs.scores], n_images, outputs.scores)
        if n_images
        else np.zeros((0, 1))
    )


def _reshape_to_image_rows(array: npt.NDArray[Any], n_images: int, name: str) -> npt.NDArray[Any]:
    """Take ``[n, c]``, or ``[n, c, 1, 1]`` as convolutions leave it."""
    shape = np.shape(array)
    if shape[:1] == (n_images,) and len(shape) >= 2 and all(size == 1 for size in shape[2:]):
        return np.asarray(array).reshape(n_images, -1)
    raise SpecError(
        "the network's output is not one row for each picture",
        expected=f"[{n_images}, …]",
        found=f"{name} {list(shape)}",
        hint="name another output: --model-option scores_output=NAME",
    )


def build_box_table_from_outputs(
    arrays: Arrays,
    outputs: Outputs,
    names: Sequence[str],
    inputs: Sequence[ModelInput],
    input_size: tuple[int, int],
) -> pl.DataFrame:
    """Read boxes ``[n, m, 4]``, or ``[m, 4]`` of one picture, with their scores and classes."""
    rows: list[tuple[Any, ...]] = []
    for k, model_input in enumerate(inputs):
        boxes = _select_image_output(arrays[str(outputs.boxes)], k, len(inputs), 2)
        scores, numbers = _compute_box_scores_and_classes(arrays, outputs, k, len(inputs))
        is_kept = scores >= outputs.min_score
        rows += convert_boxes_to_rows(
            boxes[is_kept],
            scores[is_kept],
            [_find_class_name_or_number(names, j) for j in numbers[is_kept]],
            model_input,
            image_index=k,
            box_format=outputs.box_format,
            box_units=outputs.box_units,
            input_size=input_size,
        )
    return build_box_table(rows)


def _compute_box_scores_and_classes(
    arrays: Arrays, outputs: Outputs, image_index: int, n_images: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Compute the score and class number of each box of one image."""
    if outputs.labels is not None:
        scores = _select_image_output(arrays[outputs.scores], image_index, n_images, 1)
        numbers = _select_image_output(arrays[outputs.labels], image_index, n_images, 1).astype(
            np.int64
        )
        return to_probabilities(scores[None], outputs.activation)[0], numbers
    class_scores = _select_image_output(arrays[outputs.scores], image_index, n_images, 2)
    if class_scores.ndim == 1:
        class_scores = class_scores[:, None]
    confidences = to_probabilities(class_scores, outputs.activation)
    first = 1 if outputs.background == "first" else 0
    confidences = confidences[:, first : confidences.shape[1] - (outputs.background == "last")]
    return confidences.max(axis=1), confidences.argmax(axis=1) + first


def _select_image_output(
    array: npt.NDArray[Any], image_index: int, n_images: int, n_dimensions: int
) -> npt.NDArray[Any]:
    """Take one picture's part of an output that has a side for the batch, or has none."""
    full_array = np.asarray(array)
    if full_array.ndim > n_dimensions and len(full_array) == n_images:
        return np.asarray(full_array[image_index], dtype=np.float64)
    if n_images == 1:
        return np.asarray(full_array, dtype=np.float64)
    raise SpecError(
        "the network's boxes cannot be assigned to pictures",
        expected=f"an output [{n_images}, boxes, …]",
        found=str(list(full_array.shape)),
        hint="the setting batch=1",
    )


def _find_class_name_or_number(names: Sequence[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else str(number)
