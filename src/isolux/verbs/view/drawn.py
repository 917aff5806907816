"""The boxes that a model drew itself, for a photo in the local viewer: read when first asked for.

A run keeps whom its model found, not where it looked. Its predictions are read again from the file
that the run was made of; where that is gone, the page says why there are no boxes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from isolux.verbs.audit.inputs import read_answers
from isolux.verbs.predict import is_answers, read_predicted
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import IsoluxError
from isolux.vocabulary.spec import AuditSpec

_MOST = 20
"""Boxes of one model in one picture, the surest first: detectors draw hundreds."""
_SIDES = ("box_x", "box_y", "box_w", "box_h")
_FAR = 1e9


@dataclass
class Drawn:
    """What models drew in the pictures of a run.

    Parameters
    ----------
    read : callable
        Gives the table ``predictions (boxes)``, or one that may lack boxes.
    """

    read: Callable[[], pl.DataFrame]
    _held: pl.DataFrame | None = None
    _why: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def of(self, image: str | None, scale: float) -> dict[str, Any]:
        """List the boxes of a picture."""
        with self._lock:  # the server answers from several threads
            if self._held is None:
                self._held, self._why = self._taken()
        rows = self._held.filter(pl.col("image_id") == image).sort("score", descending=True)
        kept = rows.group_by("model", maintain_order=True).head(_MOST)
        boxes = [
            {"model": row["model"], "label": row["label"], "score": row["score"],
             "box": [row[side] * scale for side in _SIDES]}
            for row in kept.iter_rows(named=True)
        ]  # fmt: skip
        return {"boxes": boxes, "more": rows.height - kept.height, "why": self._why}

    def _taken(self) -> tuple[pl.DataFrame, str]:
        try:
            found = self.read()
        except IsoluxError as error:
            told = [part for part in (error.found, error.where) if part]
            return _boxes(pl.DataFrame()), ": ".join([error.problem, *told])
        return _boxes(found), ""


def drawn_by(spec: AuditSpec, dataset: Dataset) -> Drawn | None:
    """Find what a run's model drew; None: it answers no boxes, or was not kept."""
    if registry.task_info(spec.task.name).predictions != "outputs":
        return None
    folder = spec.model.answers if spec.model.spec is not None else spec.predictions.file
    if spec.model.spec is not None and folder is None:
        return None
    if folder is not None and is_answers(folder):
        return Drawn(lambda: read_predicted(folder).predictions)
    return Drawn(lambda: read_answers(spec, dataset)[0])


def _boxes(found: pl.DataFrame) -> pl.DataFrame:
    """Keep whole boxes alone, with every column that is shown."""
    types = {"model": pl.String, "image_id": pl.String, "label": pl.String, "score": pl.Float64,
             **dict.fromkeys(_SIDES, pl.Float64)}  # fmt: skip
    if not {"model", "image_id", *_SIDES} <= set(found.columns):
        return pl.DataFrame(schema=types)
    lacking = [pl.lit(None, types[name]).alias(name) for name in types if name not in found.columns]
    rows = found.with_columns(lacking).select(pl.col(name).cast(types[name]) for name in types)
    near = [pl.col(side).abs() < _FAR for side in _SIDES]
    return rows.drop_nulls(_SIDES).filter(near)
