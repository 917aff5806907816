"""What a network's outputs mean: which kind of answer they are, and which output is what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import SpecError
from isolux.models._boxes import BoxFormat, BoxUnits
from isolux.models._classes import (
    ClassMap,
    build_embedding_table,
    build_top_label_table,
    to_probabilities,
)
from isolux.models._images import build_image_table, restore_image
from isolux.models._numbers import build_number_table, compute_numbers
from isolux.models._preprocessing import Preprocessing
from isolux.models.onnx.session import Session

_BOXES = ("boxes", "pred_boxes", "bboxes", "dets", "detection_boxes")
_SCORES = ("scores", "logits", "pred_logits", "confidences", "detection_scores")
_LABELS = ("labels", "classes", "class_ids", "detection_classes")
_MASKS = ("masks", "pred_masks", "detection_masks")
_KEYPOINTS = ("keypoints", "pred_keypoints", "poses", "landmarks")
_IMAGES = ("image", "images", "output", "reconstruction", "sr")
_NUMBERS = ("age", "number", "value", "score", "quality", *_SCORES)
_VECTORS = ("embeddings", "embedding", "features", "image_embeds", "pooler_output")
Answers = Literal["labels", "numbers", "boxes", "masks", "keypoints", "embeddings", "images"]
ANSWERS = get_args(Answers)
DETECTIONS = ("boxes", "masks", "keypoints")
_USUAL_NAMES: Mapping[str, Sequence[str]] = {
    "numbers": _NUMBERS,
    "embeddings": _VECTORS,
    "images": _IMAGES,
}
Arrays = Mapping[str, npt.NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Outputs:
    """Which output is what, and how it is read.

    ``count``: how many classes the scores have, where the file says it. ``values``: the number that
    each of them stands for. ``output_range``: the numbers of black and white in a picture.
    """

    scores: str
    boxes: str | None = None
    labels: str | None = None
    masks: str | None = None
    keypoints: str | None = None
    activation: str = "softmax"
    top: int = 5
    box_format: BoxFormat = "xyxy"
    box_units: BoxUnits = "pixels"
    background: str = "none"
    min_score: float = 0.05
    mask_threshold: float = 0.5
    output_range: tuple[float, ...] | None = None
    count: int | None = None

    @classmethod
    def from_settings(
        cls, session: Session, prediction_type: str, settings: Mapping[str, Any], source: str
    ) -> Outputs:
        """Find the outputs by the settings, or by usual names."""
        if prediction_type in DETECTIONS:
            return _find_detection_outputs(session, prediction_type, settings, source)
        usual_names = _USUAL_NAMES.get(prediction_type, _SCORES)
        scores = _find_output_name(
            session, settings.get("scores_output"), usual_names, "scores_output", source
        )
        shape = session.outputs[scores]
        count = shape[-1] if len(shape) == 2 and isinstance(shape[-1], int) else None
        output_range = settings.get("output_range")
        if output_range is not None and (len(output_range) != 2 or len(set(output_range)) != 2):
            raise SpecError(
                "output_range is not two numbers",
                expected="output_range=BLACK,WHITE, such as 0,1 or -1,1",
                found=f"output_range={','.join(map(str, output_range))}",
                where=source,
            )
        return cls(
            scores,
            activation=settings.get("activation", "softmax"),
            top=int(settings.get("top", 5)),
            output_range=None if output_range is None else tuple(map(float, output_range)),
            count=count,
        )

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        return asdict(self)


def _find_detection_outputs(
    session: Session, prediction_type: str, settings: Mapping[str, Any], source: str
) -> Outputs:
    def find(setting: str, usual_names: Sequence[str], *, is_optional: bool = False) -> str | None:
        requested = settings.get(setting)
        if is_optional and requested is None:
            return next((name for name in session.outputs if name in usual_names), None)
        return _find_output_name(session, requested, usual_names, setting, source, is_alone=False)

    is_boxes = prediction_type == "boxes"
    boxes = None if is_boxes else find("boxes_output", _BOXES, is_optional=True)
    required_names = ["box_format"] if is_boxes or boxes is not None else []
    required_names += ["box_units"] if required_names or prediction_type == "keypoints" else []
    missing = [name for name in required_names if name not in settings]
    if missing:
        noun = "box" if len(required_names) > 1 else "keypoint"
        raise SpecError(
            f"nothing says how the network writes a {noun}",
            expected="--model-option box_format=xyxy, xywh or cxcywh, and box_units=pixels"
            " (of its input) or shares",
            found="without " + " and ".join(missing),
            where=source,
        )
    boxes = find("boxes_output", _BOXES) if is_boxes else boxes
    masks = find("masks_output", _MASKS) if prediction_type == "masks" else None
    keypoints = find("keypoints_output", _KEYPOINTS) if prediction_type == "keypoints" else None
    labels = find("labels_output", _LABELS, is_optional=True)
    return Outputs(
        str(find("scores_output", _SCORES)),
        boxes,
        labels,
        masks,
        keypoints,
        settings.get("activation", "sigmoid" if labels is None else "none"),
        box_format=settings.get("box_format", "xyxy"),
        box_units=settings.get("box_units", "pixels"),
        background=settings.get("background", "none"),
        min_score=float(settings.get("min_score", 0.05)),
        mask_threshold=float(settings.get("mask_threshold", 0.5)),
    )


def infer_answers(session: Session, settings: Mapping[str, Any], source: str) -> Answers:
    """Find which kind of answer a network gives: said, or by its outputs' names and shapes."""
    answers = settings.get("answers")
    if answers is None:
        answers = _infer_by_names(session, settings) or _infer_by_main_output(session, settings)
    if answers not in ANSWERS:
        raise SpecError(
            "the file does not say what the network answers",
            expected="--model-option answers=" + ", ".join(ANSWERS[:-1]) + f" or {ANSWERS[-1]}",
            found=f"outputs {session.outputs_text()}" if answers is None else f"answers={answers}",
            where=source,
        )
    return cast("Answers", answers)


def _infer_by_names(session: Session, settings: Mapping[str, Any]) -> Answers | None:
    by_names: Sequence[tuple[Answers, Sequence[str]]] = (
        ("masks", _MASKS),
        ("keypoints", _KEYPOINTS),
        ("boxes", _BOXES),
    )
    for answers, usual_names in by_names:
        has_usual_name = len(session.outputs) > 1 and any(n in usual_names for n in session.outputs)
        if f"{answers}_output" in settings or has_usual_name:
            return answers
    return None


def _infer_by_main_output(session: Session, settings: Mapping[str, Any]) -> Answers | None:
    """Infer from the only output, or that of the scores: its shape, its name, its numbers."""
    name = settings.get("scores_output") or next(iter(session.outputs))
    if name not in session.outputs or (
        len(session.outputs) > 1 and "scores_output" not in settings
    ):
        return None
    shape = session.outputs[name]
    if len(shape) == 4 and 3 in (shape[1], shape[3]):
        return "images"
    if "values" in settings:
        return "numbers"
    if "labels" in settings:
        return "labels"
    if name in _VECTORS:
        return "embeddings"
    return "labels" if _are_probabilities(session, name) else None


def _are_probabilities(session: Session, name: str) -> bool:
    """Tell whether the rows of an output sum to 1 for a picture of noise."""
    if session.size is None or len(session.outputs[name]) != 2:
        return False
    noise = np.random.default_rng(0).random((1, *session.size, 3)) * 255
    values = noise.transpose(0, 3, 1, 2) if session.channels_first else noise
    scores = np.asarray(session.run(values.astype(session.dtype))[name], dtype=np.float64)
    is_share = scores.ndim == 2 and scores.shape[1] > 1 and bool((scores >= 0).all())
    return is_share and bool(np.allclose(scores.sum(axis=1), 1, atol=1e-3))


def _find_output_name(
    session: Session,
    requested: str | None,
    usual_names: Sequence[str],
    setting: str,
    source: str,
    *,
    is_alone: bool = True,
) -> str:
    """Find an output's name: said, the only usual one, or (``is_alone``) the only output."""
    if requested is not None and requested in session.outputs:
        return requested
    candidates = [name for name in session.outputs if name in usual_names]
    if requested is None and len(candidates) == 1:
        return candidates[0]
    if is_alone and requested is None and len(session.outputs) == 1:
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
    if scores.shape[1] == 1 and classes.count == 2:
        scores = _split_into_two_classes(scores, outputs)
    else:
        scores = to_probabilities(scores, outputs.activation)
    if scores.shape[1] != classes.count:
        raise SpecError(
            "the names do not fit the network",
            expected=f"{scores.shape[1]:,} names",
            found=f"{classes.count:,}",
        )
    return build_top_label_table(classes(scores), classes.names, outputs.top)


def _split_into_two_classes(scores: npt.NDArray[Any], outputs: Outputs) -> npt.NDArray[Any]:
    """Take one number for two classes as the probability of the second, or its logit."""
    confidences = to_probabilities(scores, "none" if outputs.activation == "none" else "sigmoid")
    return np.concatenate([1 - confidences, confidences], axis=1)


def build_number_table_from_output(
    arrays: Arrays, outputs: Outputs, values: Sequence[float], n_images: int
) -> pl.DataFrame:
    """Read an output ``[n, 1]`` as numbers, or scores ``[n, c]`` as the expectation of values."""
    if not n_images:
        return build_number_table(np.zeros(0))
    scores = np.asarray(arrays[outputs.scores])
    rows = _reshape_to_image_rows(
        scores[:, None] if scores.ndim == 1 else scores, n_images, outputs.scores
    )
    activation = outputs.activation
    if rows.shape[1] == 1 and len(values) == 2:
        rows, activation = _split_into_two_classes(rows, outputs), "none"
    return build_number_table(compute_numbers(rows, values, activation, source=outputs.scores))


def build_image_table_from_output(
    arrays: Arrays, outputs: Outputs, prepare: Preprocessing, n_images: int
) -> pl.DataFrame:
    """Read an output ``[n, 3, h, w]`` or ``[n, h, w, 3]`` as pictures."""
    values = np.asarray(arrays[outputs.scores]) if n_images else ()
    return build_image_table(
        [restore_image(image, prepare, outputs.output_range) for image in values]
    )


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
