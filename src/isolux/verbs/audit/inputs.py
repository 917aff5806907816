"""A model's answers and the task's settings: what an audit takes beside the people."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import polars as pl

from isolux.io.hashing import sha256_file, sha256_listing
from isolux.io.ids import reduced
from isolux.io.settings_files import read_label_map_file
from isolux.predictions import (
    from_attributes,
    join,
    output_format,
    read_outputs,
    read_predictions,
    with_own_image_ids,
)
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.plugin_options import read_options
from isolux.vocabulary.spec import AuditSpec, parse_merges

__all__ = ["Answers", "read_answers", "task_options"]

Answers = tuple[pl.DataFrame, tuple[str, ...], dict[str, str]]
"""Predictions, notes, and the hash of each file read."""


def read_answers(spec: AuditSpec, dataset: Dataset) -> Answers:
    """Read the answers, from their own file or from the people's own table, and join them."""
    inputs = dict(dataset.inputs)
    if spec.predictions is not None:
        inputs |= _hashes(spec.predictions)
    if registry.task_info(spec.task).predictions == "outputs":
        outputs = with_own_image_ids(dataset, _outputs(spec))
        return outputs.frame, outputs.notes, inputs
    if spec.prediction_option:
        raise SpecError(
            "predictions of labels have no settings of their own",
            expected="--prediction-column, --score-column, … instead of --prediction-option",
            found=", ".join(spec.prediction_option),
        )
    common: dict[str, Any] = {
        "score": spec.score_column,
        "scale": spec.score_scale,
        "detected": spec.detected_column,
        "separator": spec.separator,
        "model": spec.model_name,
    }
    if spec.predictions is None:
        if spec.prediction_column is None:
            raise SpecError(
                "there are no predictions to audit",
                expected="--prediction-column COLUMN, or --predictions FILE",
                found="neither",
            )
        return from_attributes(dataset, spec.prediction_column, **common), (), inputs
    answers = read_predictions(
        spec.predictions,
        id=spec.prediction_id,
        column=spec.prediction_column,
        format=spec.format,
        **common,
    )
    answers = _of_who_stayed(answers, dataset, spec)
    joined, notes = join(dataset, answers, id_from=spec.id_from)
    return joined, notes, inputs


def _of_who_stayed(answers: pl.DataFrame, dataset: Dataset, spec: AuditSpec) -> pl.DataFrame:
    """Leave out answers about people who withdrew, before strangers are counted and named."""
    if not dataset.withdrawn:
        return answers
    gone = reduced(pl.Series(sorted(dataset.withdrawn)), spec.id_from)
    whose = reduced(answers["instance_id"], spec.id_from)
    return answers.filter(~whose.is_in(gone.implode()))


def _outputs(spec: AuditSpec) -> pl.DataFrame:
    """Read boxes, masks, keypoints or embeddings; the task brings them to its images."""
    if spec.predictions is None:
        raise SpecError(
            "there are no predictions to audit",
            expected=f"--predictions FILE: what the task {spec.task} judges stands in no column",
            found="none",
        )
    chosen = spec.format or output_format(spec.predictions)
    options = read_options(
        registry.load("predictions", chosen).read,
        spec.prediction_option,
        owner=f"the format {chosen}",
        flag="--prediction-option",
        hidden=("model",),
    )
    return read_outputs(spec.predictions, format=spec.format, model=spec.model_name, **options)


def _hashes(path: str) -> dict[str, str]:
    """Hash a file of predictions, or the names and sizes of a folder of them."""
    return {path: sha256_listing(path) if Path(path).is_dir() else sha256_file(path)}


def task_options(spec: AuditSpec) -> dict[str, Any]:
    """Hand a task the settings that it takes; one that was set in vain is refused there.

    ``--option`` goes before the fields that tasks share.
    """
    options: dict[str, Any] = {
        "target": spec.target,
        "positive": spec.positive,
        "metrics": spec.metric,
        "top_k": spec.top_k,
        "undetected": spec.undetected,
        "score_of": spec.score_of,
        "person_label": spec.person_label,
        "person_class": spec.person_class,
        "matching": spec.matching,
        "score_threshold": spec.score_threshold,
        "max_detections": spec.max_detections,
        "label_map": parse_merges(spec.label_map, "label_map") or None,
        "prediction_map": read_label_map_file(spec.prediction_map) if spec.prediction_map else None,
        "unknown_values": spec.unknown_values,
        "model": spec.model_name,
    }
    function = registry.load("tasks", spec.task).score
    taken = inspect.signature(function).parameters
    fields = AuditSpec.model_fields
    unasked = {key: fields[key].get_default() for key in options if key in fields}
    shared = {
        key: value
        for key, value in options.items()
        if value is not None and (key in taken or (key in unasked and value != unasked[key]))
    }
    own = read_options(
        function,
        spec.option,
        owner=f"the task {spec.task}",
        flag="--option",
        hidden=("model", "metrics"),
    )
    return shared | own
