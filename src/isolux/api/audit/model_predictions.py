"""Predictions of a model that isolux ran: run now, or read from the prediction directory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.api.audit.inputs import OpenProgress
from isolux.api.crop.crop_store import list_crop_per_person
from isolux.api.predict import PredictionResult, is_answers, predict_people, read_prediction_dir
from isolux.core import registry
from isolux.core.containers import Dataset
from isolux.core.errors import IsoluxError, JoinError, SpecError
from isolux.core.notes import Caution
from isolux.core.spec import AuditSpec
from isolux.engine.source_images import (
    SourceImage,
    find_image_folder,
    hash_image_file,
    list_source_images,
)
from isolux.io.hashing import sha256_file
from isolux.io.image_folder import ImageFolder
from isolux.predictions import join_predictions

_MAX_LISTED = 3


@dataclass(frozen=True, slots=True)
class ModelPredictions:
    """A model's predictions with their people, notes, input hashes and record."""

    dataset: Dataset
    predictions: pl.DataFrame
    notes: tuple[str, ...]
    inputs: dict[str, str]
    record: dict[str, Any]


def run_model_or_read_predictions(
    spec: AuditSpec, dataset: Dataset, open_progress: OpenProgress | None
) -> ModelPredictions | None:
    """Run the model of a spec, or read its prediction directory; None: neither is set."""
    file = spec.predictions.file
    if spec.model.spec is not None:
        with (
            nullcontext((None, None)) if open_progress is None else open_progress() as (tell, stop)
        ):
            prediction_run = predict_people(
                spec,
                dataset,
                out=spec.model.answers,
                tell=tell,
                stop=stop,
                check=lambda prediction_type: _refuse_prediction_type(
                    spec.task.name, prediction_type
                ),
            )
    elif file is not None and is_answers(file):
        prediction_run = read_prediction_dir(file)
        _refuse_prediction_type(spec.task.name, prediction_run.record["model"]["predicts"])
        prediction_run = replace(
            prediction_run,
            notes=(*caution_on_changed_inputs(prediction_run, dataset), *prediction_run.notes),
        )
    else:
        return None
    inputs = dict(dataset.inputs)
    if prediction_run.folder is not None:
        path = prediction_run.folder / "predictions.parquet"
        inputs[str(path)] = sha256_file(path)
    record = {key: prediction_run.record[key] for key in ("model", "settings", "key", "pictures")}
    if prediction_run.record["model"]["predicts"] == "images":  # the task finds whose they are
        return ModelPredictions(
            dataset, prediction_run.predictions, prediction_run.notes, inputs, record
        )
    if "instance_id" in prediction_run.predictions.columns:
        # Row numbers are valid ids here: the model predicted these very rows.
        declared_dataset = (
            replace(dataset, has_row_number_ids=False) if spec.model.spec is not None else dataset
        )
        predictions, notes = join_predictions(
            declared_dataset, prediction_run.predictions, id_from=spec.predictions.id_from
        )
        return ModelPredictions(
            dataset, predictions, (*prediction_run.notes, *notes), inputs, record
        )
    predicted_dataset, notes = _restrict_to_predicted_images(dataset, prediction_run)
    predictions = prediction_run.predictions.filter(
        pl.col("image_id").is_in(_list_image_ids(predicted_dataset).implode())
    )
    return ModelPredictions(
        predicted_dataset, predictions, (*prediction_run.notes, *notes), inputs, record
    )


def _refuse_prediction_type(task: str, prediction_type: str) -> None:
    """Refuse a model whose predictions the task cannot score, before it is run."""
    task_info = registry.task_info(task)
    if task_info.predictions in ("labels", "numbers"):
        is_judged = prediction_type == task_info.predictions
    elif prediction_type == "images":
        is_judged = task_info.judges_images
    else:
        is_judged = prediction_type not in ("labels", "numbers")
    if not is_judged:
        raise SpecError(
            f"the task {task} does not judge what this model answers",
            expected="a model that answers with what it judges"
            if task_info.predictions == "outputs"
            else task_info.predictions,
            found=prediction_type,
            hint="`isolux list tasks` says what each task judges",
        )


def _list_image_ids(dataset: Dataset) -> pl.Series:
    """List the image ids of a dataset: predictions may include images of withdrawn people."""
    tables = [t for t in (dataset.images, dataset.instances) if "image_id" in t.columns]
    return pl.concat([t["image_id"].cast(pl.String) for t in tables]).unique()


def _restrict_to_predicted_images(
    dataset: Dataset, prediction_run: PredictionResult
) -> tuple[Dataset, tuple[str, ...]]:
    """Exclude images without inference, with their people."""
    predicted_ids = prediction_run.inferences.filter(pl.col("reason").is_null())[
        "image_id"
    ].unique()
    image_ids = dataset.instances["image_id"].cast(pl.String)
    if len(image_ids) and not image_ids.is_in(predicted_ids.implode()).any():
        examples = prediction_run.inferences["image_id"].head(_MAX_LISTED).to_list()
        raise JoinError(
            "the model answered for no image of these people",
            expected=f"images such as {image_ids.head(_MAX_LISTED).to_list()!r}",
            found=f"answers about {examples!r}",
        )
    has_prediction = image_ids.is_in(predicted_ids.implode()).fill_null(value=False)
    images = dataset.images
    if "image_id" in images.columns:
        images = images.filter(pl.col("image_id").cast(pl.String).is_in(predicted_ids.implode()))
    n_excluded = int((~has_prediction).sum())
    instances = dataset.instances.filter(has_prediction)
    ids = instances["instance_id"].cast(pl.String).implode()
    attributes = dataset.attributes.filter(
        (pl.col("unit_kind") != "instance") | pl.col("unit_id").is_in(ids)
    )
    notes: tuple[str, ...] = ()
    if n_excluded:
        notes = (
            Caution(
                f"{n_excluded:,} of {len(image_ids):,} people are in images that the model"
                " did not see and"
                " are left out: they were not missed by it."
            ),
        )
    return replace(dataset, instances=instances, images=images, attributes=attributes), notes


_MAX_HASHED_IMAGES = 1000  # images whose bytes are compared: of more, as many evenly spaced ones
_IMAGES_NOT_COMPARED = (
    "The pictures are not at hand: whether the answers are about them as they are now was not"
    " looked at."
)
_HASH = re.compile(r"[0-9a-f]{64}")


def caution_on_changed_inputs(prediction_run: PredictionResult, dataset: Dataset) -> list[str]:
    """Caution where images, model files or people's files changed after the predictions."""
    return [
        *_caution_on_changed_images(prediction_run, dataset),
        *_caution_on_changed_model(prediction_run.record),
        *_caution_on_changed_people(prediction_run, dataset),
    ]


def _caution_on_changed_images(prediction_run: PredictionResult, dataset: Dataset) -> list[str]:
    inferences = prediction_run.inferences.drop_nulls("sha256").unique(
        "image_id", maintain_order=True
    )
    recorded_hash_by_id = dict(inferences.select("image_id", "sha256").iter_rows())
    try:
        images, folder = _select_predicted_images(prediction_run.record, dataset)
    except IsoluxError:
        return [_IMAGES_NOT_COMPARED]
    comparable_images = [
        image
        for image in images
        if image.image_id in recorded_hash_by_id and image.path is not None
    ]
    if not comparable_images:
        return []
    sampled = np.unique(
        np.linspace(
            0, len(comparable_images) - 1, min(len(comparable_images), _MAX_HASHED_IMAGES)
        ).astype(int)
    )
    current_hash_by_id = {
        comparable_images[k].image_id: hash_image_file(comparable_images[k], folder)
        for k in sampled
    }
    missing_ids = [name for name, sha256 in current_hash_by_id.items() if sha256 is None]
    changed_ids = [
        name
        for name, sha256 in current_hash_by_id.items()
        if sha256 not in (None, recorded_hash_by_id[name])
    ]
    if len(missing_ids) == len(current_hash_by_id):
        return [_IMAGES_NOT_COMPARED]
    sample_text = f"of {len(current_hash_by_id):,} pictures" + (
        " looked at" if len(current_hash_by_id) < len(comparable_images) else ""
    )
    if 2 * len(changed_ids) >= len(current_hash_by_id):
        raise JoinError(
            "the answers are about other pictures than those that are there",
            expected="the pictures that the model saw, byte for byte",
            found=f"{len(changed_ids):,} {sample_text} differ: {_format_examples(changed_ids)}",
            where=str(prediction_run.folder),
            hint=_format_resume_hint(prediction_run),
        )
    notes: list[str] = []
    if changed_ids:
        notes.append(
            Caution(
                f"{len(changed_ids):,} {sample_text} changed after the model saw them"
                f" ({_format_examples(changed_ids)}): their"
                " answers are about what they were."
                f" {_format_resume_hint(prediction_run).capitalize()}."
            )
        )
    if missing_ids:
        notes.append(
            f"{len(missing_ids):,} {sample_text} that the model saw are not there:"
            f" {_format_examples(missing_ids)}."
        )
    return notes


def _select_predicted_images(
    record: Mapping[str, Any], dataset: Dataset
) -> tuple[list[SourceImage], ImageFolder]:
    settings = record["settings"]
    crops = settings.get("crops")
    if crops is not None:
        return list_crop_per_person(dataset, crops)
    images = list_source_images(dataset, record["model"]["predicts"], settings["input_unit"])
    return images, find_image_folder(dataset)


def _caution_on_changed_model(record: Mapping[str, Any]) -> list[str]:
    hashes = set(_HASH.findall(json.dumps(record["model"]["identity"])))
    changed_files = [
        str(file) for file in _list_model_files(record) if sha256_file(file) not in hashes
    ]
    if not changed_files:
        return []
    return [
        Caution(
            f"{', '.join(changed_files[:_MAX_LISTED])} changed after"
            f" {record['model']['spec']} gave these"
            " answers: they are those of the model as it was."
        )
    ]


def _list_model_files(record: Mapping[str, Any]) -> Iterator[Path]:
    """List the model's files, as far as its name and settings say where they are."""
    family, _, checkpoint = str(record["model"]["spec"]).partition(":")
    paths = [option.partition("=")[2] for option in record["settings"].get("option") or ()]
    own_identity = record["model"]["identity"].get("own") or {}
    if family == "onnx":
        external_names = own_identity["weights"].get("external", ())
        paths += [checkpoint, *(str(Path(checkpoint).parent / name) for name in external_names)]
    if family == "hf":
        paths += [str(Path(checkpoint) / name) for name in own_identity["files"]]
    if family == "python":  # a module of the working folder
        paths.append(checkpoint.rpartition(":")[0].replace(".", "/") + ".py")
        paths = [path.rpartition("=")[2] for path in paths]
    for path in dict.fromkeys(paths):
        try:
            file = Path(path).expanduser()
            if path and file.is_file():
                yield file
        except (OSError, ValueError, RuntimeError):
            continue


def _caution_on_changed_people(prediction_run: PredictionResult, dataset: Dataset) -> list[str]:
    """Caution where the people's table changed after the predictions."""
    recorded_inputs = prediction_run.record["dataset"]["inputs"]
    changed_files = [
        f
        for f, sha256 in dataset.inputs.items()
        if f in recorded_inputs and recorded_inputs[f] != sha256
    ]
    if not changed_files:
        return []
    message = f"{', '.join(changed_files[:_MAX_LISTED])} changed after the model answered"
    if prediction_run.record["settings"]["input_unit"] == "person":
        return [Caution(f"{message}: if boxes changed, it saw other parts of the pictures.")]
    return [f"{message}: answers are joined by ids, so people's ids must be the same."]


def _format_resume_hint(prediction_run: PredictionResult) -> str:
    return f"predict again: isolux predict --resume {prediction_run.folder}"


def _format_examples(names: list[str]) -> str:
    return ", ".join(names[:_MAX_LISTED]) + (", …" if len(names) > _MAX_LISTED else "")
