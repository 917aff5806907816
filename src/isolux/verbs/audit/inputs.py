"""A model's answers and the task's settings: what an audit takes beside the people."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from isolux.datasets import load
from isolux.io.hashing import sha256_file, sha256_listing
from isolux.io.ids import reduced
from isolux.io.settings_files import read_label_map_file
from isolux.predictions import (
    from_attributes,
    holds_scores_alone,
    join,
    output_format,
    read_labels,
    read_outputs,
    read_scores,
    scores_from_attributes,
    with_own_image_ids,
)
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.plugin_options import named_options, read_options
from isolux.vocabulary.spec import AuditSpec, IdFrom, Predictions, read_task, task_parameters

__all__ = ["Answers", "read_answers", "resolved", "task_options"]

Answers = tuple[pl.DataFrame, tuple[str, ...], dict[str, str]]
"""Predictions, notes, and the hash of each file read."""


def read_answers(spec: AuditSpec, dataset: Dataset) -> Answers:
    """Read the answers, from their own file or from the people's own table, and join them."""
    settings = spec.predictions
    inputs = dict(dataset.inputs)
    if settings.file is not None:
        inputs |= _hashes(settings.file)
    if registry.task_info(spec.task.name).predictions == "outputs":
        if settings.file is None and dataset.outputs is not None:
            return dataset.outputs, (), inputs
        outputs = with_own_image_ids(dataset, _outputs(settings, spec.task.name))
        return outputs.frame, outputs.notes, inputs
    if settings.prediction_option:
        raise SpecError(
            "predictions of labels have no settings of their own",
            expected="--prediction-column, --score-column, … instead of --prediction-option",
            found=", ".join(settings.prediction_option),
        )
    if _scores_alone(settings):
        return *_read_scores(settings, dataset), inputs
    common: dict[str, Any] = {
        "score": settings.score_column,
        "scale": settings.score_scale,
        "detected": settings.detected_column,
        "separator": spec.people.separator,
        "model": settings.model_name,
    }
    if settings.file is None:
        if settings.prediction_column is None:
            raise SpecError(
                "there are no predictions to audit",
                expected="--prediction-column COLUMN (answers), --score-column COLUMN (scores"
                " alone) or --predictions FILE",
                found="none of them",
                hint=None
                if dataset.outputs is None
                else f"what {dataset.name}:FILE holds is judged by --task face_verification",
            )
        return from_attributes(dataset, settings.prediction_column, **common), (), inputs
    answers = read_labels(
        settings.file,
        id=settings.prediction_id,
        column=settings.prediction_column,
        format=settings.format,
        **common,
    )
    answers = _of_who_stayed(answers, dataset, settings.id_from)
    joined, notes = join(dataset, answers, id_from=settings.id_from)
    return joined, notes, inputs


def _scores_alone(settings: Predictions) -> bool:
    """Tell whether there are scores and nothing that is known to hold answers."""
    if settings.score_column is None or settings.prediction_column is not None:
        return False
    return settings.file is None or holds_scores_alone(settings.file, settings.format)


def _read_scores(settings: Predictions, dataset: Dataset) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """Read scores without answers, from their own file or the people's own table."""
    column = str(settings.score_column)
    if settings.detected_column is not None:
        raise SpecError(
            "scores alone say nothing of who was detected",
            expected="--prediction-column beside --detected-column",
            found=f"--score-column {column} alone",
        )
    scale, model = settings.score_scale, settings.model_name
    if settings.file is None:
        return scores_from_attributes(dataset, column, scale=scale, model=model), ()
    scores = read_scores(
        settings.file, column=column, id=settings.prediction_id, scale=scale, model=model,
        form=settings.format,
    )  # fmt: skip
    return join(dataset, _of_who_stayed(scores, dataset, settings.id_from),
                id_from=settings.id_from)  # fmt: skip


def _of_who_stayed(answers: pl.DataFrame, dataset: Dataset, id_from: IdFrom) -> pl.DataFrame:
    """Leave out answers about people who withdrew, before strangers are counted and named."""
    if not dataset.withdrawn:
        return answers
    gone = reduced(pl.Series(sorted(dataset.withdrawn)), id_from)
    whose = reduced(answers["instance_id"], id_from)
    # An id may be of several kinds: a subject 7 who withdrew is not the photo 7 of somebody else.
    stays = reduced(dataset.instances["instance_id"].cast(pl.String), id_from)
    return answers.filter(~whose.is_in(gone.implode()) | whose.is_in(stays.implode()))


def _outputs(settings: Predictions, task: str) -> pl.DataFrame:
    """Read boxes, masks, keypoints or embeddings; the task brings them to its images."""
    if settings.file is None:
        raise SpecError(
            "there are no predictions to audit",
            expected=f"--predictions FILE: what the task {task} judges stands in no column",
            found="none",
        )
    chosen = settings.format or output_format(settings.file)
    options = read_options(
        registry.load("predictions", chosen).read,
        settings.prediction_option,
        owner=f"the format {chosen}",
        flag="--prediction-option",
        hidden=("model",),
    )
    return read_outputs(settings.file, format=settings.format, model=settings.model_name, **options)


def _hashes(path: str) -> dict[str, str]:
    """Hash a file of predictions, or the names and sizes of a folder of them."""
    return {path: sha256_listing(path) if Path(path).is_dir() else sha256_file(path)}


def task_options(spec: AuditSpec) -> dict[str, Any]:
    """Return the task's own settings, and those of other stages that its ``score`` takes too."""
    options = dict(read_task(spec.task, where=None).settings)
    if isinstance(options.get("prediction_map"), str):
        options["prediction_map"] = read_label_map_file(options["prediction_map"])
    options |= _database(options)
    taken = named_options(registry.load("tasks", spec.task.name).score)
    of_others = {
        "unknown_values": spec.groups.unknown_values,
        "model": spec.predictions.model_name,
    }
    return options | {
        key: value for key, value in of_others.items() if key in taken and value is not None
    }


def _database(options: Mapping[str, Any]) -> dict[str, Any]:
    """Read who is searched, where they are not the people themselves: NAME:PATH and a file."""
    found: dict[str, Any] = {}
    data, file = options.get("database"), options.get("database_predictions")
    if isinstance(data, str):
        name, colon, path = data.partition(":")
        if not colon or not path:
            raise SpecError(
                "the database is not named",
                expected="NAME:PATH, such as facet:FOLDER",
                found=repr(data),
                where="--option database",
            )
        found["database"] = load(name, path)
    if isinstance(file, str):
        found["database_predictions"] = read_outputs(file)
    return found


def resolved(spec: AuditSpec) -> AuditSpec:
    """Return the spec with every setting of its task, given or by default, for the record."""
    task = read_task(spec.task, where=None)
    defaults = {name: one.default for name, one in task_parameters(task.name).items()}
    settings = {"settings": {**defaults, **task.settings}}
    return spec.model_copy(update={"task": spec.task.model_copy(update=settings)})
