"""What a network's outputs mean: labels, boxes or vectors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.models._boxes import BoxFormat, BoxUnits, box_rows, boxes_table
from isolux.models._classes import ClassMap, label_rows, probabilities, vector_rows
from isolux.models._preprocessing import Prepared
from isolux.models.onnx.session import Session
from isolux.vocabulary.errors import SpecError

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
    least_score: float = 0.05
    count: int | None = None

    @classmethod
    def of(cls, session: Session, kind: str, told: Mapping[str, Any], *, where: str) -> Outputs:
        """Find the outputs by the settings, or by usual names."""
        scores = _named(
            session,
            told.get("scores_output"),
            _SCORES if kind != "embeddings" else _VECTORS,
            "scores_output",
            where,
        )
        if kind != "boxes":
            last = session.outputs[scores][-1] if len(session.outputs[scores]) == 2 else None
            return cls(
                scores,
                activation=told.get("activation", "softmax"),
                top=int(told.get("top", 5)),
                count=last if isinstance(last, int) else None,
            )
        missing = [key for key in ("box_format", "box_units") if key not in told]
        if missing:
            raise SpecError(
                "nothing says how the network writes a box",
                expected="--model-option box_format=xyxy, xywh or cxcywh, and box_units=pixels"
                " (of its input) or shares",
                found="without " + " and ".join(missing),
                where=where,
            )
        own = told.get("labels_output")
        labels_name = own or next((n for n in session.outputs if n in _LABELS), None)
        return cls(
            scores,
            _named(session, told.get("boxes_output"), _BOXES, "boxes_output", where),
            None
            if labels_name is None
            else _named(session, labels_name, (), "labels_output", where),
            told.get("activation", "sigmoid" if labels_name is None else "none"),
            box_format=told["box_format"],
            box_units=told["box_units"],
            background=told.get("background", "none"),
            least_score=float(told.get("least_score", 0.05)),
        )

    def said(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        return asdict(self)


def _named(
    session: Session, asked: str | None, usual: Sequence[str], setting: str, where: str
) -> str:
    if asked is not None and asked in session.outputs:
        return asked
    known = [name for name in session.outputs if name in usual]
    if asked is None and len(known) == 1:
        return known[0]
    if asked is None and len(session.outputs) == 1:
        return next(iter(session.outputs))
    raise SpecError(
        "it is not said which output of the network is meant"
        if asked is None
        else f"the network has no output {asked!r}",
        expected=f"--model-option {setting}=NAME",
        found=session.outputs_text(),
        where=where,
    )


def labels(found: Arrays, how: Outputs, classes: ClassMap, n: int) -> pl.DataFrame:
    """Read scores ``[n, c]`` as labels."""
    if not n:
        return label_rows(np.zeros((0, len(classes.names))), classes.names, how.top)
    scores = _flat(found[how.scores], n, how.scores)
    if scores.shape[1] == 1 and classes.count == 2:  # one number for two classes: the second one's
        sure = probabilities(scores, "none" if how.activation == "none" else "sigmoid")
        scores = np.concatenate([1 - sure, sure], axis=1)
    else:
        scores = probabilities(scores, how.activation)
    if scores.shape[1] != classes.count:
        raise SpecError(
            "the names do not fit the network",
            expected=f"{scores.shape[1]:,} names",
            found=f"{classes.count:,}",
        )
    return label_rows(classes(scores), classes.names, how.top)


def vectors(found: Arrays, how: Outputs, n: int) -> pl.DataFrame:
    """Read an output ``[n, d]`` as embeddings."""
    return vector_rows(_flat(found[how.scores], n, how.scores) if n else np.zeros((0, 1)))


def _flat(array: npt.NDArray[Any], n: int, name: str) -> npt.NDArray[Any]:
    """Take ``[n, c]``, or ``[n, c, 1, 1]`` as convolutions leave it."""
    shape = np.shape(array)
    if shape[:1] == (n,) and len(shape) >= 2 and all(side == 1 for side in shape[2:]):
        return np.asarray(array).reshape(n, -1)
    raise SpecError(
        "the network's output is not one row for each picture",
        expected=f"[{n}, …]",
        found=f"{name} {list(shape)}",
        hint="name another output: --model-option scores_output=NAME",
    )


def detections(
    found: Arrays,
    how: Outputs,
    names: Sequence[str],
    shown: Sequence[Prepared],
    size: tuple[int, int],
) -> pl.DataFrame:
    """Read boxes ``[n, m, 4]``, or ``[m, 4]`` of one picture, with their scores and classes."""
    rows: list[tuple[Any, ...]] = []
    for k, one in enumerate(shown):
        boxes = _of_one(found[str(how.boxes)], k, len(shown), 2)
        scores, numbers = _scored(found, how, k, len(shown))
        kept = scores >= how.least_score
        rows += box_rows(
            boxes[kept],
            scores[kept],
            [_name(names, j) for j in numbers[kept]],
            one,
            picture=k,
            box_format=how.box_format,
            box_units=how.box_units,
            input_size=size,
        )
    return boxes_table(rows)


def _scored(
    found: Arrays, how: Outputs, k: int, n: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Give each box of one picture its score and the number of its class."""
    if how.labels is not None:
        scores = _of_one(found[how.scores], k, n, 1)
        numbers = _of_one(found[how.labels], k, n, 1).astype(np.int64)
        return probabilities(scores[None], how.activation)[0], numbers
    whole = _of_one(found[how.scores], k, n, 2)
    if whole.ndim == 1:
        whole = whole[:, None]
    sure = probabilities(whole, how.activation)
    first = 1 if how.background == "first" else 0
    sure = sure[:, first : sure.shape[1] - (how.background == "last")]
    return sure.max(axis=1), sure.argmax(axis=1) + first


def _of_one(array: npt.NDArray[Any], k: int, n: int, sides: int) -> npt.NDArray[Any]:
    """Take one picture's part of an output that has a side for the batch, or has none."""
    whole = np.asarray(array)
    if whole.ndim > sides and len(whole) == n:
        return np.asarray(whole[k], dtype=np.float64)
    if n == 1:
        return np.asarray(whole, dtype=np.float64)
    raise SpecError(
        "the network's boxes cannot be assigned to pictures",
        expected=f"an output [{n}, boxes, …]",
        found=str(list(whole.shape)),
        hint="the setting batch=1",
    )


def _name(names: Sequence[str], number: int) -> str:
    return names[number] if 0 <= number < len(names) else str(number)
