"""Prediction of shards by worker processes: of this machine, or on Ray's nodes.

What ``run_local`` does in one process, the workers of ``pieces`` do in several. Each opens the
model once. Shards, keys, commits and resume are those of ``run_local``: the files are the same.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import msgspec
import polars as pl

from isolux.engine import pictures as of_pictures
from isolux.engine.answering import LATE
from isolux.engine.looking import Looker
from isolux.engine.pictures import Picture
from isolux.engine.pieces import Executor, Limits, Piece, PieceStore, Tables, Work
from isolux.engine.settings import Failures, Progress, Ran, Settings
from isolux.engine.shards import Shard, looks_table, shard_key
from isolux.engine.store import Store, short
from isolux.io import images
from isolux.io.picture_folder import PictureFolder
from isolux.io.stages import Stage
from isolux.models import Model, open_model, source_hash
from isolux.vocabulary.errors import IsoluxError, SpecError

OPEN = "isolux.engine.apart:open_shard_model"
PREDICT = "isolux.engine.apart:predict_shard"

_MAX_LISTED = 3
_open_predictors: dict[str, Looker] = {}
"""The open predictor of this process by its request: later shards reuse it."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The model that a worker opens, with its settings; all values are JSON.

    Parameters
    ----------
    model, options, name
        As ``open_model`` takes them.
    key : str
        Of the model that the command opened.
    versions : mapping of str to str
        Packages that it ran on.
    code : str
        Hash of what opens pictures.
    run_key : str
        Of all that is the same for each shard.
    pictures, here : str
        The folder of the pictures, and the one that the command was started in.
    settings : mapping
        Of ``Settings``.
    """

    model: str
    options: Sequence[str]
    name: str
    key: str
    versions: Mapping[str, str]
    code: str
    run_key: str
    pictures: str
    here: str
    settings: Mapping[str, Any]


def given(shard: Shard) -> dict[str, Any]:
    """Convert a shard to JSON values."""
    return {"index": shard.index, "shard": msgspec.to_builtins(shard.pictures)}


def code_hash() -> str:
    """Return one SHA-256 of the code that decodes images."""
    return source_hash(of_pictures, images)


def open_shard_model(request: Mapping[str, Any]) -> Tables:
    """Open the model before the first shard, so that its time limit excludes loading."""
    _open_predictor(request)
    return {}


def predict_shard(
    request: Mapping[str, Any],
    index: int,
    shard: Sequence[Mapping[str, Any]],
    settled_keys: Sequence[str] = (),
) -> Tables:
    """Predict one shard in a worker."""
    predictor = _open_predictor(request)
    rebuilt_shard = Shard(index, msgspec.convert(shard, tuple[Picture, ...]))
    if settled_keys:
        key = predictor.key(rebuilt_shard)
        if short(key) in settled_keys:
            return {"made": pl.DataFrame({"key": [key], "batch": [predictor.answerer.batch]})}
    (shard_predictions,) = predictor.looked([rebuilt_shard])
    job_result = pl.DataFrame({"key": [shard_predictions.key], "batch": [predictor.answerer.batch]})
    return {"made": job_result, "looks": shard_predictions.table}


def _open_predictor(request: Mapping[str, Any]) -> Looker:
    """Open the requested model, once per process."""
    name = json.dumps(request, sort_keys=True)
    if name not in _open_predictors:
        for open_name in list(_open_predictors):  # the memory holds one model
            _open_predictors.pop(open_name).close()
        model_request = Asked(**request)
        _change_directory(model_request.here)
        model = open_model(model_request.model, model_request.options, name=model_request.name)
        _refuse_other_model(model, model_request)
        settings = Settings(**model_request.settings)
        _open_predictors[name] = Looker(
            model, PictureFolder(model_request.pictures), model_request.run_key, settings
        )
    return _open_predictors[name]


def _change_directory(folder: str) -> None:
    """Change to the command's working directory: modules and weights may be relative to it."""
    try:
        os.chdir(folder)
    except OSError as error:
        raise IsoluxError(
            "a worker does not see the folder that the command was started in",
            expected="the same folders on each node, by the same paths",
            found=error.strerror,
            where=folder,
            hint="start the command in a folder that all nodes share",
        ) from error


def _refuse_other_model(model: Model, request: Asked) -> None:
    """Refuse a worker whose model, packages or code differ from the command's."""
    if model.key == request.key and code_hash() == request.code:
        return
    packages = sorted(set(request.versions) | set(model.versions))
    differences = [
        f"{name} {model.versions.get(name, 'absent')}, not {request.versions.get(name, 'absent')}"
        for name in packages
        if model.versions.get(name) != request.versions.get(name)
    ]
    raise IsoluxError(
        "a worker has another model, or other code, than the command",
        expected=f"the same {request.model} on each node, with the same packages and isolux",
        found="; ".join(differences[:_MAX_LISTED]) or "other weights, settings or code",
        where=os.uname().nodename if hasattr(os, "uname") else "a node",
    )


_TIME_LIMIT_MARGIN = 1.1, 30.0
"""A worker keeps its shard's time limit itself; one that cannot even do that (it hangs while it
holds Python's lock) is ended after so many times the limit, and so many seconds more."""


def run_apart(
    executor: Executor,
    model: Model,
    options: Sequence[str],
    shards: Sequence[Shard],
    folder: PictureFolder,
    store: Store,
    run_key: str,
    settings: Settings,
    *,
    retries: int = 2,
    report: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Ran:
    """Have the shards that the store lacks predicted by an executor's workers, and commit each."""
    refuse_in_memory(model)
    request = Asked(
        model.spec,
        tuple(options),
        model.name,
        model.key,
        dict(model.versions),
        code_hash(),
        run_key,
        str(folder.base.absolute()),
        os.getcwd(),  # noqa: PTH109 - a text
        asdict(settings),
    )
    stage = Stage(store.folder / "workers", folder=True)
    try:
        run = _RemoteRun(
            model,
            asdict(request),
            shards,
            store,
            settings,
            PieceStore(stage.path),
            report or (lambda *_: None),
        )
        return run.done(executor, retries, stop or (lambda: False))
    finally:
        stage.discard()


def refuse_in_memory(model: Model) -> None:
    """Refuse a model that other processes cannot open by its name."""
    if model.spec.startswith("("):
        raise SpecError(
            "a callable in memory cannot be given to other processes",
            expected="a model with a name, such as python:my_models:gender_net",
            found=model.name,
        )


@dataclass
class _RemoteRun:
    model: Model
    asked: dict[str, Any]
    shards: Sequence[Shard]
    store: Store
    settings: Settings
    pieces: PieceStore
    tell: Progress
    keys: dict[int, str] = field(default_factory=dict)
    computed: int = 0
    pictures: int = 0
    answered: int = 0

    def __post_init__(self) -> None:
        self.batch = self.settings.batch
        self.total = sum(len(shard.pictures) for shard in self.shards)
        looks = sum(len(p.units) for shard in self.shards for p in shard.pictures)
        self.failures = Failures(looks, self.settings.max_failures, self.store.folder)
        self.there = self.store.committed()
        self.run_key = str(self.asked["run_key"])

    def done(self, executor: Executor, retries: int, stop: Callable[[], bool]) -> Ran:
        factor, extra_s = _TIME_LIMIT_MARGIN
        limits = Limits(self.settings.time_limit * factor + extra_s, retries, late_again=False)
        first = Piece("open", self.model.spec, OPEN, {"request": self.asked})
        executor(
            Work(
                self._build_jobs(),
                len(self.shards),
                self.pieces,
                limits,
                self._commit_shard,
                first,
                stop,
                self._build_failed_shard,
            )
        )
        keys = [(s, self.keys[s.index]) for s in self.shards if s.index in self.keys]
        return Ran(keys, self.computed, self.pictures, len(keys) == len(self.shards), self.batch)

    def _build_jobs(self) -> Iterator[Piece]:
        for position, shard in enumerate(self.shards):
            settled_shards = self.store.settled(shard, self.there.get(shard.index, ()))
            yield Piece(
                str(position),
                f"shard {shard.index}",
                PREDICT,
                {"request": self.asked, **given(shard), "settled_keys": list(settled_shards)},
            )

    def _commit_shard(self, job: Piece) -> None:
        """Commit the result of a shard's job."""
        shard = self.shards[int(job.key)]
        tables = self.pieces.take(job.key)
        ((key, batch),) = tables["made"].select("key", "batch").iter_rows()
        self.batch = min(self.batch, batch)
        self.answered += len(shard.pictures)
        inferences = tables.get("looks")
        if inferences is None:
            self.failures.earlier(self.store.settled(shard, [short(key)]).get(short(key), 0))
        else:
            self.store.commit(shard, key, inferences)
            self.computed += 1
            self.pictures += len(shard.pictures)
        self.keys[shard.index] = key
        self.tell(self.answered, self.total, self.pictures)
        if inferences is not None:
            self.failures.count(inferences)

    def _build_failed_shard(self, job: Piece, loss_reason: str, is_late: bool) -> Tables:
        """Build a failed shard, which the next command predicts again."""
        shard = self.shards[int(job.key)]
        reason, fault = (
            (LATE, "time") if is_late else (f"its worker was lost: {loss_reason}", "model")
        )
        rows = [
            (unit.id, picture.image_id, None, None, None, reason, fault, None)
            for picture in shard.pictures
            for unit in picture.units
        ]
        schema = looks_table(self.model.predicts).schema
        key = shard_key(self.run_key, shard, [None] * len(shard.pictures))
        job_result = pl.DataFrame({"key": [key], "batch": [self.batch]})
        return {"made": job_result, "looks": pl.DataFrame(rows, schema=schema, orient="row")}
