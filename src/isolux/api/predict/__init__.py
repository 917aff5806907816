"""``isolux.predict``: run a model over a dataset's pictures, shard by shard, and resume.

    load → open the model → list the pictures → predict what is not there yet → put it together

``run_predict`` starts from settings, as the command line does; ``predict`` takes a dataset and a
model that are at hand, or their names.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from isolux.api.crop.crop_store import list_crop_per_person
from isolux.api.predict.record import (
    build_notes,
    build_record,
    compute_run_key,
    count_inference_failures_by_reason,
    refuse_other_run,
)
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.inputs import IN_MEMORY
from isolux.core.spec import AuditSpec, expand_option_assignments, parse_spec
from isolux.datasets import describe_unturned_images
from isolux.engine import (
    RUN_FILE,
    PredictionSettings,
    Progress,
    ShardStore,
    list_source_images,
    predict_missing_shards_in_process,
    predict_missing_shards_remotely,
    split_into_shards,
)
from isolux.engine.jobs import Executor, build_executor
from isolux.engine.remote_prediction import check_model_has_spec
from isolux.engine.source_images import find_image_folder
from isolux.models import PERSON_PREDICTIONS, Model, open_model, wrap_callable_as_model
from isolux.people.loading import load_people

_CPU_BATCH_SIZE, _GPU_BATCH_SIZE = 16, 64  # images per batch


@dataclass(frozen=True, slots=True)
class PredictionResult:
    """A model's answers to a whole dataset.

    Parameters
    ----------
    predictions : polars.DataFrame
        A table of predictions, as the model answers.
    inferences : polars.DataFrame
        One row a look: ``unit_id``, ``image_id``, the picture's ``sha256`` and size, and where
        there is no answer the ``reason`` and whose ``fault`` it is.
    record : dict
        The content of ``predict.json``: model, weights' hash, versions, settings, failures.
    notes : tuple of str
        What the report must say; cautions first.
    folder : Path or None
        Where the answers are kept; None: nowhere.
    n_computed : int
        Pictures that were looked at now; the others were answered before.
    """

    predictions: pl.DataFrame
    inferences: pl.DataFrame
    record: dict[str, Any]
    notes: tuple[str, ...]
    folder: Path | None
    n_computed: int = 0


def predict(
    data: Dataset | str,
    model: str | Callable[..., Any],
    *,
    out: str | Path | None = None,
    version: str | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> PredictionResult:
    r"""Run a model over a dataset's pictures.

    Parameters
    ----------
    data : Dataset or str
        From ``isolux.load``, or NAME:PATH.
    model : str or callable
        FAMILY:WHAT of ``isolux list models``; or a callable: a list of arrays
        ``[height, width, 3]`` of 8 bits in, answers out. See ``isolux.models.Predictor``; labels
        may be a list of texts.
    out : str or Path, optional
        Directory in which the answers are kept; the same call then goes on where it was stopped.
        Not given: nothing is kept.
    version : str, optional
        What tells a callable's state from any other (the hash of its weights). Without it, and
        without an ``identity`` of its own, none of its earlier answers is used.
    progress : callable, optional
        Called with the pictures that are done, how many there are, and how many were looked at now.
    **settings
        Settings of the stages ``people``, ``model`` and ``engine`` by their flat names: ``batch``,
        ``input_unit``, ``time_limit``, ``only``, ``workers``, …; and ``model_name``.

    Returns
    -------
    PredictionResult

    Raises
    ------
    IsoluxError
        What is wrong with the data, the model or the settings, named.

    Examples
    --------
    >>> from PIL import Image
    >>> def net(pictures):
    ...     return ["day" if one.mean() > 127 else "night" for one in pictures]
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, grey in (("a.png", 10), ("b.png", 200)):
    ...         Image.new("RGB", (8, 8), (grey,) * 3).save(Path(folder) / name)
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("id\na.png\nb.png\n")
    ...     found = predict(f"table:{file}", net)
    >>> found.predictions.select("model", "instance_id", "label").rows()
    [('net', 'a.png', 'night'), ('net', 'b.png', 'day')]
    """
    dataset = data if isinstance(data, Dataset) else None
    model_name = model if isinstance(model, str) else None
    values = {"data": IN_MEMORY if dataset is not None else data, "model": model_name, **settings}
    if out is not None:
        values["answers"] = str(out)
    spec = parse_spec({k: v for k, v in values.items() if v is not None})
    if dataset is not None:
        _refuse_loading_settings(spec)
    loaded = (
        _open_model(spec)
        if isinstance(model, str)
        else wrap_callable_as_model(model, name=spec.predictions.model_name, version=version)
    )
    people = dataset if dataset is not None else _load_dataset(spec, loaded)
    return predict_people(spec, people, loaded, out=out, tell=progress)


def run_predict(
    spec: AuditSpec, *, tell: Progress | None = None, stop: Callable[[], bool] | None = None
) -> PredictionResult:
    """Run the model that a spec describes over the people that it describes."""
    model = _open_model(spec)
    return predict_people(
        spec, _load_dataset(spec, model), model, out=spec.model.answers, tell=tell, stop=stop
    )


def predict_people(
    spec: AuditSpec,
    dataset: Dataset,
    model: Model | None = None,
    *,
    out: str | Path | None,
    tell: Progress | None = None,
    stop: Callable[[], bool] | None = None,
    check: Callable[[str], None] | None = None,
) -> PredictionResult:
    """Run a model over people who are loaded already; see ``run_predict``."""
    model = model or _open_model(spec)
    if check is not None:
        check(model.predicts)
    if out is None:
        _refuse_images_without_directory(model)
        with tempfile.TemporaryDirectory(prefix="isolux-") as folder:
            prediction_run = _predict_into(
                Path(folder) / "answers", spec, dataset, model, tell, stop
            )
            return replace(prediction_run, folder=None)
    return _predict_into(Path(out), spec, dataset, model, tell, stop)


def _predict_into(
    out: Path,
    spec: AuditSpec,
    dataset: Dataset,
    model: Model,
    tell: Progress | None,
    stop: Callable[[], bool] | None,
) -> PredictionResult:
    settings = spec.model.model_copy(update={"batch": _choose_batch_size(spec, model)})
    executor = choose_executor(spec, model)
    if settings.crops is None:
        images = list_source_images(
            dataset,
            model.predicts,
            settings.input_unit,
            by_box=bool(getattr(model.predictor, "by_box", False)),
            by_class=bool(getattr(model.predictor, "by_class", False)),
        )
        folder = find_image_folder(dataset)
    else:
        _refuse_crops_if_unsupported(settings.input_unit, model.predicts)
        images, folder = list_crop_per_person(dataset, settings.crops)
    shards = split_into_shards(images, settings.shard_size)
    engine_settings = PredictionSettings(
        _choose_batch_size(spec, model),
        settings.readers,
        settings.time_limit,
        settings.max_failures,
        settings.box_factor,
        settings.reader_processes,
    )
    key = compute_run_key(model, settings)
    store = ShardStore(out)
    with store.lock():
        record = build_record(spec, settings, dataset, model, images, len(shards), key)
        if any(image.needs_annotated_size for image in images):
            record["unturned"] = describe_unturned_images(dataset)
        if (store.folder / RUN_FILE).is_file():
            refuse_other_run(
                store.read_record(), record, overwrite=spec.report.overwrite, folder=store.folder
            )
        store.write_record(record | {"state": "unfinished"})
        if executor is None:
            outcome = predict_missing_shards_in_process(
                model, shards, folder, store, key, engine_settings, report=tell, stop=stop
            )
        else:
            outcome = predict_missing_shards_remotely(
                executor,
                model,
                settings.option,
                shards,
                folder,
                store,
                key,
                engine_settings,
                retries=spec.engine.retries,
                report=tell,
                stop=stop,
            )
        if not outcome.is_complete:
            raise KeyboardInterrupt
        collected_predictions = store.collect(model.predicts, outcome.keys, model.name)
        record |= {
            "state": "finished",
            "unanswered": count_inference_failures_by_reason(collected_predictions.inferences),
        }
        store.write_record(record)
    return PredictionResult(
        collected_predictions.predictions,
        collected_predictions.inferences,
        record,
        (
            *build_notes(
                record,
                collected_predictions.inferences,
                n_earlier=len(images) - outcome.n_images,
                folder=store.folder,
            ),
            *dataset.notes,
        ),
        store.folder,
        outcome.n_images,
    )


def _choose_batch_size(spec: AuditSpec, model: Model) -> int:
    """Choose the batch size: larger on a GPU than on a CPU."""
    return spec.model.batch or (_GPU_BATCH_SIZE if model.on_gpu else _CPU_BATCH_SIZE)


def _refuse_images_without_directory(model: Model) -> None:
    if model.predicts == "images":
        raise SpecError(
            "this model answers with pictures, and nothing says where they are kept",
            expected="a directory: out=DIR (of an audit: --out RUN, or answers=DIR)",
            found="none",
        )


def _refuse_crops_if_unsupported(input_unit: str, predicts: str) -> None:
    """Refuse crops for models of whole images, or together with people's boxes."""
    can_use_crops = predicts in (*PERSON_PREDICTIONS, "images")
    if not can_use_crops or input_unit == "person":
        raise SpecError(
            f"{predicts} are about whole images"
            if not can_use_crops
            else "a model is shown crops, or people's boxes",
            expected="one of the two",
            found="crops" + (" and --input-unit person" if input_unit == "person" else ""),
        )


def is_answers(path: str | Path) -> bool:
    """Return whether a path is a prediction directory that ``isolux predict`` wrote."""
    return (Path(path).expanduser() / RUN_FILE).is_file()


def read_prediction_dir(path: str | Path) -> PredictionResult:
    """Read a finished prediction directory."""
    store = ShardStore(path)
    collected_predictions, record = store.read_all(), store.read_record()
    return PredictionResult(
        collected_predictions.predictions,
        collected_predictions.inferences,
        record,
        build_notes(record, collected_predictions.inferences),
        store.folder,
    )


def read_spec_with_changes(out: str | Path, **changes: Any) -> AuditSpec:
    """Read the spec of a prediction directory, to resume it."""
    recorded_spec = dict(ShardStore(out).read_record().get("spec") or {})
    if recorded_spec.get("data") in (None, IN_MEMORY) or not recorded_spec.get("model"):
        raise SpecError(
            "this run cannot be resumed by its directory alone",
            expected="a dataset and a model that have names",
            found="one that was given in memory",
            where=str(out),
            hint="call isolux.predict again with the same out=",
        )
    return parse_spec(
        {**recorded_spec, "answers": str(out), **expand_option_assignments(changes)},
        source=str(Path(out) / RUN_FILE),
    )


def _open_model(spec: AuditSpec) -> Model:
    if spec.model.spec is None:
        raise SpecError(
            "there is no model to run",
            expected="--model FAMILY:WHAT, such as onnx:net.onnx",
            found="none",
            hint="`isolux list models` shows the families",
        )
    return open_model(spec.model.spec, spec.model.option, name=spec.predictions.model_name)


def _load_dataset(spec: AuditSpec, model: Model) -> Dataset:
    return load_people(spec.people, uses_unscored_people=model.predicts not in PERSON_PREDICTIONS)


def _refuse_loading_settings(spec: AuditSpec) -> None:
    given_names = spec.people.model_fields_set - {"data"}
    if given_names:
        raise SpecError(
            "these settings are about reading a dataset, and this dataset is in memory",
            expected="settings of the model's run alone",
            found=", ".join(sorted(given_names)),
            hint="give them to isolux.load, or name the dataset as NAME:PATH",
        )


# Where a model's shards are computed: in this process, in others of this machine, or on Ray.


def choose_executor(spec: AuditSpec, model: Model) -> Executor | None:
    """Choose where shards are computed: None in this process, else by workers or by Ray."""
    engine = spec.engine
    engine.refuse_ray_only_settings()
    if engine.name == "local" and not engine.workers:
        return None
    check_model_has_spec(model)
    return build_executor(
        engine.name, engine.workers, engine.address, cpus=engine.cpus, gpus=engine.gpus
    )
