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

from isolux.engine import (
    RUN_FILE,
    Progress,
    Settings,
    Store,
    list_pictures,
    run_apart,
    run_local,
    shards_of,
)
from isolux.engine.apart import refuse_in_memory
from isolux.engine.pictures import picture_folder
from isolux.engine.pieces import Executor, executor_of
from isolux.models import Model, callable_model, open_model
from isolux.people.loading import load_people
from isolux.verbs.crop import crop_pictures
from isolux.verbs.predict.record import notes_of, record_of, run_key, same_run, unanswered
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.given import IN_MEMORY
from isolux.vocabulary.spec import AuditSpec, parse_spec, with_options

_BY_PEOPLE = ("labels", "embeddings")
_ON_CPU, _ON_GPU = 16, 64  # pictures at a time


@dataclass(frozen=True, slots=True)
class Predicted:
    """A model's answers to a whole dataset.

    Parameters
    ----------
    predictions : polars.DataFrame
        A table of predictions, as the model answers.
    looks : polars.DataFrame
        One row a look: ``unit_id``, ``image_id``, the picture's ``sha256`` and size, and where
        there is no answer the ``reason`` and whose ``fault`` it is.
    record : dict
        The content of ``predict.json``: model, weights' hash, versions, settings, failures.
    notes : tuple of str
        What the report must say; cautions first.
    folder : Path or None
        Where the answers are kept; None: nowhere.
    computed : int
        Pictures that were looked at now; the others were answered before.
    """

    predictions: pl.DataFrame
    looks: pl.DataFrame
    record: dict[str, Any]
    notes: tuple[str, ...]
    folder: Path | None
    computed: int = 0


def predict(
    data: Dataset | str,
    model: str | Callable[..., Any],
    *,
    out: str | Path | None = None,
    version: str | None = None,
    progress: Progress | None = None,
    **settings: Any,
) -> Predicted:
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
        ``picture_of``, ``time_limit``, ``only``, ``workers``, …; and ``model_name``.

    Returns
    -------
    Predicted

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
    held = data if isinstance(data, Dataset) else None
    called = model if isinstance(model, str) else None
    values = {"data": IN_MEMORY if held is not None else data, "model": called, **settings}
    if out is not None:
        values["answers"] = str(out)
    spec = parse_spec({k: v for k, v in values.items() if v is not None})
    if held is not None:
        _refuse_loading(spec)
    loaded = (
        _opened(spec)
        if isinstance(model, str)
        else callable_model(model, name=spec.predictions.model_name, version=version)
    )
    people = held if held is not None else _loaded(spec, loaded)
    return predict_people(spec, people, loaded, out=out, tell=progress)


def run_predict(
    spec: AuditSpec, *, tell: Progress | None = None, stop: Callable[[], bool] | None = None
) -> Predicted:
    """Run the model that a spec describes over the people that it describes."""
    model = _opened(spec)
    return predict_people(
        spec, _loaded(spec, model), model, out=spec.model.answers, tell=tell, stop=stop
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
) -> Predicted:
    """Run a model over people who are loaded already; see ``run_predict``."""
    model = model or _opened(spec)
    if check is not None:
        check(model.predicts)
    if out is None:
        with tempfile.TemporaryDirectory(prefix="isolux-") as folder:
            found = _into(Path(folder) / "answers", spec, dataset, model, tell, stop)
            return replace(found, folder=None)
    return _into(Path(out), spec, dataset, model, tell, stop)


def _into(
    out: Path,
    spec: AuditSpec,
    dataset: Dataset,
    model: Model,
    tell: Progress | None,
    stop: Callable[[], bool] | None,
) -> Predicted:
    settings = spec.model.model_copy(update={"batch": _batch(spec, model)})
    executor = executor_for(spec, model)
    if settings.crops is None:
        pictures = list_pictures(
            dataset,
            model.predicts,
            settings.picture_of,
            by_box=bool(getattr(model.predictor, "by_box", False)),
        )
        folder = picture_folder(dataset)
    else:
        _refuse_crops(settings.picture_of, model.predicts)
        pictures, folder = crop_pictures(dataset, settings.crops)
    shards = shards_of(pictures, settings.shard_size)
    how = Settings(
        _batch(spec, model),
        settings.readers,
        settings.time_limit,
        settings.max_failures,
        settings.box_factor,
        settings.reader_processes,
    )
    key = run_key(model, settings)
    store = Store(out)
    with store.opened():
        record = record_of(spec, settings, dataset, model, pictures, len(shards), key)
        if (store.folder / RUN_FILE).is_file():
            same_run(store.record(), record, overwrite=spec.report.overwrite, where=store.folder)
        store.write_record(record | {"state": "unfinished"})
        if executor is None:
            ran = run_local(model, shards, folder, store, key, how, tell=tell, stop=stop)
        else:
            ran = run_apart(
                executor,
                model,
                settings.option,
                shards,
                folder,
                store,
                key,
                how,
                retries=spec.engine.retries,
                tell=tell,
                stop=stop,
            )
        if not ran.whole:
            raise KeyboardInterrupt
        whole = store.gather(model.predicts, ran.keys, model.name)
        record |= {"state": "finished", "unanswered": unanswered(whole.looks)}
        store.write_record(record)
    return Predicted(
        whole.predictions,
        whole.looks,
        record,
        notes_of(record, whole.looks, earlier=len(pictures) - ran.pictures, where=store.folder),
        store.folder,
        ran.pictures,
    )


def _batch(spec: AuditSpec, model: Model) -> int:
    """Say how many pictures are asked at a time: a GPU has more to do at once than a few cores."""
    return spec.model.batch or (_ON_GPU if model.on_gpu else _ON_CPU)


def _refuse_crops(picture_of: str, predicts: str) -> None:
    """Refuse crops where a model is to be shown something else, or answers about whole images."""
    if predicts not in _BY_PEOPLE or picture_of == "person":
        raise SpecError(
            f"{predicts} are about whole images"
            if predicts not in _BY_PEOPLE
            else "a model is shown crops, or people's boxes",
            expected="one of the two",
            found="crops" + (" and --picture-of person" if picture_of == "person" else ""),
        )


def is_answers(path: str | Path) -> bool:
    """Tell whether a path is a directory of answers that ``isolux predict`` wrote."""
    return (Path(path).expanduser() / RUN_FILE).is_file()


def read_predicted(path: str | Path) -> Predicted:
    """Read a finished directory of answers."""
    store = Store(path)
    whole, record = store.whole(), store.record()
    return Predicted(
        whole.predictions, whole.looks, record, notes_of(record, whole.looks), store.folder
    )


def resumed_spec(out: str | Path, **changes: Any) -> AuditSpec:
    """Read from a directory of answers what was asked, to go on with it."""
    said = dict(Store(out).record().get("spec") or {})
    if said.get("data") in (None, IN_MEMORY) or not said.get("model"):
        raise SpecError(
            "this run cannot be resumed by its directory alone",
            expected="a dataset and a model that have names",
            found="one that was given in memory",
            where=str(out),
            hint="call isolux.predict again with the same out=",
        )
    return parse_spec(
        {**said, "answers": str(out), **with_options(changes)}, where=str(Path(out) / RUN_FILE)
    )


def _opened(spec: AuditSpec) -> Model:
    if spec.model.spec is None:
        raise SpecError(
            "there is no model to run",
            expected="--model FAMILY:WHAT, such as onnx:net.onnx",
            found="none",
            hint="`isolux list models` shows the families",
        )
    return open_model(spec.model.spec, spec.model.option, name=spec.predictions.model_name)


def _loaded(spec: AuditSpec, model: Model) -> Dataset:
    return load_people(spec.people, whole_images=model.predicts not in _BY_PEOPLE)


def _refuse_loading(spec: AuditSpec) -> None:
    said = spec.people.model_fields_set - {"data"}
    if said:
        raise SpecError(
            "these settings are about reading a dataset, and this dataset is in memory",
            expected="settings of the model's run alone",
            found=", ".join(sorted(said)),
            hint="give them to isolux.load, or name the dataset as NAME:PATH",
        )


# Where a model's shards are computed: in this process, in others of this machine, or on Ray.


def executor_for(spec: AuditSpec, model: Model) -> Executor | None:
    """Choose where shards are computed: None in this process, else by workers or by Ray."""
    engine = spec.engine
    engine.refuse_what_only_ray_takes()
    if engine.name == "local" and not engine.workers:
        return None
    refuse_in_memory(model)
    return executor_of(
        engine.name, engine.workers, engine.address, cpus=engine.cpus, gpus=engine.gpus
    )
