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

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, UnknownNameError
from isolux_worlds.predictors.boxes import (
    simulate_class_boxes,
    simulate_detections,
    simulate_grounding,
    simulate_poses,
    simulate_segmentation,
)
from isolux_worlds.predictors.files import (
    write_face_part_images,
    write_noisy_images,
    write_predictions,
)
from isolux_worlds.predictors.labels import (
    simulate_associations,
    simulate_embeddings,
    simulate_face_embeddings,
    simulate_labels,
    simulate_question_answers,
    simulate_scene_labels,
    simulate_top_5_labels,
)
from isolux_worlds.predictors.simulated import SimulatedModel, join_is_right

__all__ = [
    "PREDICTORS",
    "SimulatedModel",
    "SimulatedPredictor",
    "join_is_right",
    "simulate_predictions",
    "write_predictions",
    "write_simulated_predictions",
]

Answer = Callable[[Dataset, pl.DataFrame, SimulatedModel], pl.DataFrame]


@dataclass(frozen=True, slots=True)
class SimulatedPredictor:
    """How one task's answers are simulated, and what of them is known exactly."""

    answers: Answer | None
    metric: str
    threshold: float | None
    exact: bool


PREDICTORS: Mapping[str, SimulatedPredictor] = {
    "classification": SimulatedPredictor(simulate_labels, "accuracy", None, exact=True),
    "label_association": SimulatedPredictor(simulate_associations, "non_harmful", 0.1, exact=True),
    "geodiversity": SimulatedPredictor(simulate_top_5_labels, "hit_rate", None, exact=True),
    "detection": SimulatedPredictor(simulate_detections, "recall_at_iou", 0.5, exact=True),
    "face_detection": SimulatedPredictor(simulate_detections, "recall_at_iou", 0.5, exact=True),
    "open_vocabulary": SimulatedPredictor(
        simulate_class_boxes, "person_recall_at_iou", 0.5, exact=True
    ),
    "grounding": SimulatedPredictor(simulate_grounding, "person_recall_at_iou", 0.5, exact=True),
    "segmentation": SimulatedPredictor(simulate_segmentation, "recall_at_iou", 0.5, exact=True),
    "keypoints": SimulatedPredictor(simulate_poses, "recall_at_oks", 0.5, exact=True),
    "face_verification": SimulatedPredictor(
        simulate_face_embeddings, "tar_at_far", 0.001, exact=False
    ),
    "identification": SimulatedPredictor(
        simulate_face_embeddings, "hit_rate_at_rank", 1.0, exact=False
    ),
    "retrieval": SimulatedPredictor(simulate_embeddings, "precision_at_k", 10.0, exact=False),
    "zero_shot": SimulatedPredictor(simulate_scene_labels, "answer_rate", None, exact=False),
    "question_answering": SimulatedPredictor(
        simulate_question_answers, "answer_rate", None, exact=False
    ),
    "reconstruction": SimulatedPredictor(None, "psnr", None, exact=False),
    "super_resolution": SimulatedPredictor(None, "psnr", None, exact=False),
    "face_parsing": SimulatedPredictor(None, "mean_f1", None, exact=False),
}
"""Every task of the house, two protocols, and how their answers are simulated."""


def simulate_predictions(
    task: str, dataset: Dataset, right: pl.DataFrame, model: SimulatedModel
) -> pl.DataFrame:
    """Simulate a model's answers to a task."""
    answers = _find_predictor_of_task(task).answers
    if answers is None:
        raise SpecError(
            f"the answers to {task} are pictures", hint="write them with write_simulated"
        )
    return answers(dataset, right, model)


def write_simulated_predictions(
    task: str,
    dataset: Dataset,
    right: pl.DataFrame,
    model: SimulatedModel,
    folder: str | Path,
    *,
    root: str | Path | None = None,
) -> Path:
    """Write a simulated model's answers to a task as files that an audit reads."""
    predictor, folder = _find_predictor_of_task(task), Path(folder)
    if predictor.answers is not None:
        predictions = predictor.answers(dataset, right, model)
        return write_predictions(predictions, folder, task, dataset.categories)
    if root is None:
        raise SpecError(f"simulated answers to {task} need the originals", expected="root")
    task_dir = folder / task
    task_dir.mkdir()
    write_image = write_face_part_images if task == "face_parsing" else write_noisy_images
    return write_image(dataset, right, model, task_dir, root=root)


def _find_predictor_of_task(task: str) -> SimulatedPredictor:
    if task not in PREDICTORS:
        raise UnknownNameError("task", task, PREDICTORS)
    return PREDICTORS[task]
