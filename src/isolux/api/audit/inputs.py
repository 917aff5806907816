"""Predictions, task settings and in-memory tables of an audit."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from isolux.api.audit.person_predictions import (
    PredictionsWithNotes,
    hash_prediction_file_or_folder,
    join_to_dataset,
    read_number_column,
    read_person_predictions,
    select_or_name_model,
)
from isolux.core import registry
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.inputs import IN_MEMORY, infer_label_type, is_table_like, to_polars
from isolux.core.notes import Caution
from isolux.core.plugin_options import list_keyword_defaults, parse_option_assignments
from isolux.core.spec import (
    AuditSpec,
    Predictions,
    expand_option_assignments,
    list_task_options,
    parse_spec,
    validate_stage_settings,
    validate_task_settings,
)
from isolux.datasets import load
from isolux.io.settings_files import read_label_map_file, read_mapping
from isolux.people.loading import split_name_and_path
from isolux.predictions import (
    detect_output_format,
    list_image_sizes,
    list_models,
    match_image_ids,
    read_outputs,
)

if TYPE_CHECKING:
    from isolux.engine import Progress

OpenProgress = Callable[
    [], AbstractContextManager["tuple[Progress | None, Callable[[], bool] | None]"]
]
"""Opens a context with the callable that reports progress and the one that says whether to stop."""

_IMPORTED_PREFIX = "imported:"
PredictionInputs = tuple[pl.DataFrame, tuple[str, ...], dict[str, str]]
"""Predictions, notes, and the hash of each file read."""


def read_predictions(spec: AuditSpec, dataset: Dataset) -> PredictionInputs:
    """Read predictions from their file or the people's table, and join them to people."""
    settings = spec.predictions
    inputs = dict(dataset.inputs)
    if settings.file is not None:
        inputs |= hash_prediction_file_or_folder(settings.file)
    if registry.task_info(spec.task.name).predictions == "outputs":
        if settings.file is None and dataset.bundled_predictions is not None:
            return dataset.bundled_predictions, (), inputs
        outputs = match_image_ids(
            dataset, _read_structured_predictions(settings, spec.task.name, dataset)
        )
        return outputs.frame, outputs.notes, inputs
    if registry.task_info(spec.task.name).predictions == "numbers":
        return *_read_number_predictions(settings, dataset, spec.task.name), inputs
    frame, notes, extra_inputs = read_person_predictions(spec, dataset)
    return frame, notes, inputs | extra_inputs


def _read_number_predictions(
    settings: Predictions, dataset: Dataset, task: str
) -> PredictionsWithNotes:
    """Read one number per unit; known column names of a file need no setting."""
    if settings.file is None or settings.prediction_column or settings.score_column:
        return read_number_column(settings, dataset)
    value_settings = settings.model_copy(update={"format": settings.format or "unit_values"})
    try:
        return join_to_dataset(
            dataset, settings, _read_structured_predictions(value_settings, task, dataset)
        )
    except UnknownNameError as error:
        raise SpecError(
            "nothing says which column holds the numbers",
            expected="--score-column COLUMN",
            found="columns " + str(error.expected).removeprefix("one of "),
            where=settings.file,
        ) from error


def _read_structured_predictions(
    settings: Predictions, task: str, dataset: Dataset
) -> pl.DataFrame:
    """Read boxes, masks, keypoints or embeddings; the task matches them to its images."""
    if settings.file is None:
        raise SpecError(
            "there are no predictions to audit",
            expected=(
                f"--predictions FILE: the task {task} judges answers that do not fit in a column"
            ),
            found="none",
        )
    format_name = settings.format or detect_output_format(settings.file)
    options = parse_option_assignments(
        registry.load("predictions", format_name).read,
        settings.prediction_option,
        owner=f"the format {format_name}",
        flag="--prediction-option",
        hidden=("model",),
    )
    if "sizes" in list_keyword_defaults(registry.load("predictions", format_name).read):
        options.setdefault("sizes", list_image_sizes(dataset) or None)
    return select_or_name_model(
        read_outputs(settings.file, format=settings.format, **options), settings
    )


def build_task_options(spec: AuditSpec) -> dict[str, Any]:
    """Build the options of the task's ``score``: its settings and shared ones."""
    options = dict(validate_task_settings(spec.task, source=None).settings)
    if isinstance(options.get("prediction_map"), str):
        options["prediction_map"] = read_label_map_file(options["prediction_map"])
    options |= _read_searched_database(options)
    _refuse_unscaled_threshold(options.get("threshold"), spec.predictions.score_scale)
    accepted_names = list_keyword_defaults(registry.load("tasks", spec.task.name).score)
    shared_settings = {
        "unknown_values": spec.groups.unknown_values,
        "model": spec.predictions.model_name,
    }
    return options | {
        key: setting
        for key, setting in shared_settings.items()
        if key in accepted_names and setting is not None
    }


def _refuse_unscaled_threshold(threshold: object, scale: float) -> None:
    """Refuse a threshold on the file's scale where scores are rescaled to 0 to 1."""
    try:
        threshold_value = float(str(threshold))
    except ValueError:
        return
    if scale != 1.0 and threshold_value > 1.0:
        raise SpecError(
            f"score_scale={scale:g} divides the scores by {scale:g}, and the threshold is one of"
            " the divided scores",
            expected=f"--threshold {threshold_value / scale:g}, or --threshold"
            f" {threshold_value:g} without score_scale",
            found=f"--threshold {threshold_value:g}",
        )


def _read_searched_database(options: Mapping[str, Any]) -> dict[str, Any]:
    """Load the searched database of identification, given as NAME:PATH, and its predictions."""
    database_options: dict[str, Any] = {}
    database, file = options.get("database"), options.get("database_predictions")
    if isinstance(database, str):
        source = "--option database"
        database_options["database"] = load(
            *split_name_and_path(database, subject="the database is", source=source)
        )
    if isinstance(file, str):
        from isolux.api.predict import is_answers, read_prediction_dir

        is_prediction_dir = is_answers(file)  # of `isolux predict`
        database_options["database_predictions"] = (
            read_prediction_dir(file).predictions if is_prediction_dir else read_outputs(file)
        )
    return database_options


def fill_default_task_settings(spec: AuditSpec) -> AuditSpec:
    """Return the spec with every setting of its task, given or by default, for the record."""
    task = validate_task_settings(spec.task, source=None)
    defaults = {name: parameter.default for name, parameter in list_task_options(task.name).items()}
    settings = {"settings": {**defaults, **task.settings}}
    return spec.model_copy(update={"task": spec.task.model_copy(update=settings)})


_PREDICTION_SETTINGS = (
    "target",
    "prediction_column",
    "score_column",
    "detected_column",
    "predictions",
    "model",
    "found",
    "missed",
)
"""Settings that name truth or predictions: a table of scores needs none of them."""


@dataclass(frozen=True, slots=True)
class InMemoryTable:
    """A table of people, with its notes."""

    frame: pl.DataFrame
    notes: tuple[str, ...] = ()


def unwrap_numpy_scalars(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Convert numpy scalars in settings to Python numbers: ``min_units=counts.min()``."""
    return {k: v.item() if isinstance(v, np.generic) else v for k, v in settings.items()}


def has_prediction_columns(table: object, settings: Mapping[str, Any]) -> bool:
    """Return whether the table has predictions, not finished scores."""
    return is_table_like(table) and any(
        settings.get(name) is not None for name in _PREDICTION_SETTINGS
    )


def read_in_memory_table(
    table: object, attributes: object, settings: Mapping[str, Any]
) -> InMemoryTable:
    """Read a table of people and predictions; caution on classes of different types."""
    if attributes is not None:
        raise SpecError(
            "a table with truth and answers says itself who is who",
            expected="one table with one row per person: groups, truth and answer are its columns",
            found=f"a second argument: {type(attributes).__name__}",
            hint="join the two by the person's id first, or name a file: attributes=FILE",
        )
    frame = to_polars(table)
    truth, answer = (settings.get(n) for n in ("target", "prediction_column"))
    for name in (truth, answer, settings.get("score_column"), settings.get("detected_column")):
        if isinstance(name, str) and settings.get("predictions") is None:
            _refuse_unknown_columns(name, frame)
    if not (isinstance(truth, str) and isinstance(answer, str)):
        return InMemoryTable(frame)
    if not {truth, answer} <= set(frame.columns):
        return InMemoryTable(frame)
    value_types = infer_label_type(frame[truth]), infer_label_type(frame[answer])
    if set(value_types) == {"yes or no", "numbers"}:
        return InMemoryTable(frame.with_columns(pl.col(truth, answer).cast(pl.Float64)))
    if len(set(value_types)) == 1:
        return InMemoryTable(frame)
    return InMemoryTable(
        frame, (_build_mixed_type_caution((truth, value_types[0]), (answer, value_types[1])),)
    )


def _refuse_unknown_columns(name: str, frame: pl.DataFrame) -> None:
    if name not in frame.columns:
        raise UnknownNameError("column", name, frame.columns, where=IN_MEMORY)


def _build_mixed_type_caution(truth: tuple[str, str], answer: tuple[str, str]) -> Caution:
    return Caution(
        f"The truth {truth[0]!r} holds {truth[1]} and the answers {answer[0]!r} hold {answer[1]}: "
        "they were compared as text, so that '1' and 1 are one class. Are they of one code?"
    )


def resolve_imported_model_setting(spec: AuditSpec) -> AuditSpec:
    """Treat ``--model imported:FILE`` as ``--predictions FILE``; refuse two sources."""
    model, file = spec.model.spec, spec.predictions.file
    if model is None:
        return spec
    if file is not None and ":" not in model:
        return spec.updated(model=None, answers=None, model_name=model)
    column = spec.predictions.prediction_column
    if file is not None or (column is not None and not model.startswith(_IMPORTED_PREFIX)):
        raise SpecError(
            "a model is run and answers are given as well",
            expected="--model, or --predictions or --prediction-column",
            found=f"--model {model} and "
            + (f"--predictions {file}" if file is not None else f"--prediction-column {column}"),
        )
    if not model.startswith(_IMPORTED_PREFIX):
        return spec
    return spec.updated(model=None, predictions=model.removeprefix(_IMPORTED_PREFIX))


def split_by_model(spec: AuditSpec) -> tuple[AuditSpec, ...]:
    """Split an audit of a file with several models into one audit per model."""
    spec = resolve_imported_model_setting(spec)
    prediction_settings = spec.predictions
    if (
        prediction_settings.model_column is None
        or prediction_settings.model_name is not None
        or prediction_settings.file is None
    ):
        return (spec,)
    models = list_models(
        prediction_settings.file,
        prediction_settings.model_column,
        format=prediction_settings.format,
        sheet=prediction_settings.prediction_sheet,
    )
    folders = [re.sub(r"[^\w.-]+", "_", name).strip(".") or "model" for name in models]
    if len(models) == 1:
        return (spec.updated(model_name=models[0]),)
    if len({folder.lower() for folder in folders}) < len(models):
        folders = [f"{k + 1}-{folder}" for k, folder in enumerate(folders)]
    runs = zip(models, folders, strict=True)
    out = Path(spec.report.out or "runs")
    return tuple(spec.updated(model_name=model, out=str(out / folder)) for model, folder in runs)


# The audited data, as the command line and Python name them: a dataset or a settings file.

_SETTINGS_SUFFIXES = (".yaml", ".yml", ".json")


def read_audit_settings(source: str | Path, settings: Mapping[str, Any]) -> AuditSpec:
    """Read the settings of an audit from NAME:PATH or a settings file."""
    text = str(source)
    if not is_settings_file(text):
        return parse_spec({"data": text, **expand_option_assignments(settings)})
    file_settings = validate_stage_settings(read_settings_file(text), source=text).said()
    return parse_spec({**file_settings, **expand_option_assignments(settings)}, source=text)


def is_settings_file(source: str) -> bool:
    """Return whether the text is a settings file, not NAME:PATH.

    Examples
    --------
    >>> is_settings_file("audit.yaml"), is_settings_file("table:people.json")
    (True, False)
    """
    return (
        Path(source).suffix.lower() in _SETTINGS_SUFFIXES
        and ":" not in source
        and not source.startswith("-")
    )


def read_settings_file(path: str | Path) -> dict[str, Any]:
    """Read a settings file without validation, names written with ``_``."""
    return {key.replace("-", "_"): setting for key, setting in read_mapping(path).items()}
