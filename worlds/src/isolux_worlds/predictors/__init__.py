"""Simulated models: predictions of each task, made from who is predicted correctly.

``dataset, who is right -> a model's output``, in the tables and formats that real models' output
comes in, so that an audit of it can be held against the truth. A dataset is any that a loader gives
(a photo world's own files among them): a simulated model can be run on your data too, before a
real one is judged on it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux_worlds.predictors.boxes import detected, grounded, named, posed, segmented
from isolux_worlds.predictors.files import parsed, restored, write_answers
from isolux_worlds.predictors.labels import (
    associated,
    classified,
    encoded,
    five_guesses,
    recognised,
)
from isolux_worlds.predictors.simulated import Simulated, people_and_right

__all__ = [
    "PREDICTORS",
    "Predictor",
    "Simulated",
    "people_and_right",
    "simulate_answers",
    "write_answers",
    "write_simulated",
]

Answer = Callable[[Dataset, pl.DataFrame, Simulated], pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Predictor:
    """How one task's answers are simulated, and what of them is known exactly."""

    answers: Answer | None
    metric: str
    threshold: float | None
    exact: bool


PREDICTORS: Mapping[str, Predictor] = {
    "classification": Predictor(classified, "accuracy", None, exact=True),
    "label_association": Predictor(associated, "non_harmful", 0.1, exact=True),
    "geodiversity": Predictor(five_guesses, "hit_rate", None, exact=True),
    "detection": Predictor(detected, "recall_at_iou", 0.5, exact=True),
    "face_detection": Predictor(detected, "recall_at_iou", 0.5, exact=True),
    "open_vocabulary": Predictor(named, "person_recall_at_iou", 0.5, exact=True),
    "grounding": Predictor(grounded, "person_recall_at_iou", 0.5, exact=True),
    "segmentation": Predictor(segmented, "recall_at_iou", 0.5, exact=True),
    "keypoints": Predictor(posed, "recall_at_oks", 0.5, exact=True),
    "face_verification": Predictor(recognised, "tar_at_far", 0.001, exact=False),
    "identification": Predictor(recognised, "hit_rate_at_rank", 1.0, exact=False),
    "retrieval": Predictor(encoded, "precision_at_k", 10.0, exact=False),
    "reconstruction": Predictor(None, "psnr", None, exact=False),
    "super_resolution": Predictor(None, "psnr", None, exact=False),
    "face_parsing": Predictor(None, "mean_f1", None, exact=False),
}
"""Every task of the house and how its answers are simulated."""


def simulate_answers(
    task: str, dataset: Dataset, right: pl.DataFrame, model: Simulated
) -> pl.DataFrame:
    """Simulate a model's answers to a task."""
    answers = _predictor(task).answers
    if answers is None:
        raise SpecError(
            f"the answers to {task} are pictures", hint="write them with write_simulated"
        )
    return answers(dataset, right, model)


def write_simulated(
    task: str,
    dataset: Dataset,
    right: pl.DataFrame,
    model: Simulated,
    folder: str | Path,
    *,
    root: str | Path | None = None,
) -> Path:
    """Write a simulated model's answers to a task as files that an audit reads."""
    predictor, folder = _predictor(task), Path(folder)
    if predictor.answers is not None:
        return write_answers(predictor.answers(dataset, right, model), folder, task)
    if root is None:
        raise SpecError(f"simulated answers to {task} need the originals", expected="root")
    task_dir = folder / task
    task_dir.mkdir()
    write_image = parsed if task == "face_parsing" else restored
    return write_image(dataset, right, model, task_dir, root=root)


def _predictor(task: str) -> Predictor:
    if task not in PREDICTORS:
        raise UnknownNameError("task", task, PREDICTORS)
    return PREDICTORS[task]
