"""A model's answers and the task's settings: what an audit takes beside the people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from isolux.datasets import load
from isolux.io.settings_files import read_label_map_file
from isolux.people.loading import name_and_path
from isolux.predictions import image_sizes, output_format, read_outputs, with_own_image_ids
from isolux.verbs.audit.answers import (
    Joined,
    chosen,
    hashes,
    joined,
    numbers_of_column,
    people_answers,
)
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.counts import COUNTS
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.plugin_options import named_options, read_options
from isolux.vocabulary.spec import AuditSpec, Predictions, read_task, task_parameters

Answers = tuple[pl.DataFrame, tuple[str, ...], dict[str, str]]
"""Predictions, notes, and the hash of each file read."""


def read_answers(spec: AuditSpec, dataset: Dataset) -> Answers:
    """Read the answers, from their own file or from the people's own table, and join them."""
    settings = spec.predictions
    inputs = dict(dataset.inputs)
    if settings.file is not None:
        inputs |= hashes(settings.file)
    if registry.task_info(spec.task.name).predictions == "outputs":
        if settings.file is None and dataset.outputs is not None:
            if settings.model_column is not None and dataset.name != COUNTS:
                raise SpecError(
                    "--model-column names a column of --predictions, or of a table of counts",
                    expected=f"no such flag: {dataset.name}:FILE holds the answers of one model",
                    found=f"--model-column {settings.model_column}",
                )
            return dataset.outputs, (), inputs
        outputs = with_own_image_ids(dataset, _outputs(settings, spec.task.name, dataset))
        return outputs.frame, outputs.notes, inputs
    if registry.task_info(spec.task.name).predictions == "numbers":
        return *_numbers(settings, dataset, spec.task.name), inputs
    frame, notes, more = people_answers(spec, dataset)
    return frame, notes, inputs | more


def _numbers(settings: Predictions, dataset: Dataset, task: str) -> Joined:
    """Read one number of each unit; of a file whose columns say what they are, by their names."""
    if settings.file is None or settings.prediction_column or settings.score_column:
        return numbers_of_column(settings, dataset)
    of_values = settings.model_copy(update={"format": settings.format or "unit_values"})
    try:
        return joined(dataset, settings, _outputs(of_values, task, dataset))
    except UnknownNameError as error:
        raise SpecError(
            "nothing says which column holds the numbers",
            expected="--score-column COLUMN",
            found="columns " + str(error.expected).removeprefix("one of "),
            where=settings.file,
        ) from error


def _outputs(settings: Predictions, task: str, dataset: Dataset) -> pl.DataFrame:
    """Read boxes, masks, keypoints or embeddings; the task brings them to its images."""
    if settings.file is None:
        raise SpecError(
            "there are no predictions to audit",
            expected=(
                f"--predictions FILE: the task {task} judges answers that do not fit in a column"
            ),
            found="none",
        )
    form = settings.format or output_format(settings.file)
    options = read_options(
        registry.load("predictions", form).read,
        settings.prediction_option,
        owner=f"the format {form}",
        flag="--prediction-option",
        hidden=("model",),
    )
    if "sizes" in named_options(registry.load("predictions", form).read):
        options.setdefault("sizes", image_sizes(dataset) or None)
    of_labels = {
        f"--{name.replace('_', '-')}": getattr(settings, name)
        for name in ("scores", "found", "missed", "detected_column", "model_column")
    }
    for flag, value in of_labels.items():
        if value is not None:
            raise SpecError(
                f"{flag} is about answers of people, and the task {task} judges what pictures hold",
                expected="--predictions FILE only; several models go in its column model",
                found=f"{flag} {value}",
            )
    return chosen(read_outputs(settings.file, format=settings.format, **options), settings)


def task_options(spec: AuditSpec) -> dict[str, Any]:
    """Return the task's own settings, and those of other stages that its ``score`` takes too."""
    options = dict(read_task(spec.task, where=None).settings)
    if isinstance(options.get("prediction_map"), str):
        options["prediction_map"] = read_label_map_file(options["prediction_map"])
    options |= _database(options)
    _refuse_unscaled(options.get("threshold"), spec.predictions.score_scale)
    taken = named_options(registry.load("tasks", spec.task.name).score)
    of_others = {
        "unknown_values": spec.groups.unknown_values,
        "model": spec.predictions.model_name,
    }
    return options | {
        key: value for key, value in of_others.items() if key in taken and value is not None
    }


def _refuse_unscaled(threshold: object, scale: float) -> None:
    """Refuse a threshold on the file's scale beside scores that were brought to 0 to 1."""
    try:
        at = float(str(threshold))
    except ValueError:
        return
    if scale != 1.0 and at > 1.0:
        raise SpecError(
            f"score_scale={scale:g} divides the scores by {scale:g}, and the threshold is one of"
            " the divided scores",
            expected=f"--threshold {at / scale:g}, or --threshold {at:g} without score_scale",
            found=f"--threshold {at:g}",
        )


def _database(options: Mapping[str, Any]) -> dict[str, Any]:
    """Read who is searched, where they are not the people themselves: NAME:PATH and a file."""
    found: dict[str, Any] = {}
    data, file = options.get("database"), options.get("database_predictions")
    if isinstance(data, str):
        where = "--option database"
        found["database"] = load(*name_and_path(data, what="the database is", where=where))
    if isinstance(file, str):
        from isolux.verbs.predict import is_answers, read_predicted

        kept = is_answers(file)  # of `isolux predict`
        found["database_predictions"] = (
            read_predicted(file).predictions if kept else read_outputs(file)
        )
    return found


def resolved(spec: AuditSpec) -> AuditSpec:
    """Return the spec with every setting of its task, given or by default, for the record."""
    task = read_task(spec.task, where=None)
    defaults = {name: one.default for name, one in task_parameters(task.name).items()}
    settings = {"settings": {**defaults, **task.settings}}
    return spec.model_copy(update={"task": spec.task.model_copy(update=settings)})
