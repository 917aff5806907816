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

from isolux.core.errors import IsoluxError, SpecError
from isolux.engine import source_images as of_pictures
from isolux.engine.inference import LATE_REASON, MIN_TIME_ALONE_S
from isolux.engine.jobs import Executor, Job, JobLimits, JobRequest, JobStore, Tables
from isolux.engine.settings import Failures, PredictionSettings, Progress, RunOutcome
from isolux.engine.shard_predictor import ShardPredictor
from isolux.engine.shards import Shard, build_inference_table_schema, compute_shard_key
from isolux.engine.source_images import SourceImage
from isolux.engine.store import ShardStore, shorten_key_for_file_name
from isolux.io import images
from isolux.io.image_folder import ImageFolder
from isolux.io.staging import StagingPath
from isolux.models import Model, hash_module_sources, open_model

OPEN_MODEL_CALL = "isolux.engine.remote_prediction:open_model_in_worker"
PREDICT_SHARD_CALL = "isolux.engine.remote_prediction:predict_shard_in_worker"

_MAX_LISTED = 3
_open_predictors: dict[str, ShardPredictor] = {}
"""The open predictor of this process by its request: later shards reuse it."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
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
    pictures, working_dir : str
        The folder of the pictures, and the one that the command was started in.
    settings : mapping
        Of ``PredictionSettings``.
    """

    model: str
    options: Sequence[str]
    name: str
    key: str
    versions: Mapping[str, str]
    code: str
    run_key: str
    pictures: str
    working_dir: str
    settings: Mapping[str, Any]


def shard_to_json(shard: Shard) -> dict[str, Any]:
    """Convert a shard to JSON values."""
    return {"index": shard.index, "shard": msgspec.to_builtins(shard.images)}


def hash_decoding_code() -> str:
    """Return one SHA-256 of the code that decodes images."""
    return hash_module_sources(of_pictures, images)


def open_model_in_worker(request: Mapping[str, Any]) -> Tables:
    """Open the model before the first shard, so that its time limit excludes loading."""
    _open_cached_predictor(request)
    return {}


def predict_shard_in_worker(
    request: Mapping[str, Any],
    index: int,
    shard: Sequence[Mapping[str, Any]],
    settled_keys: Sequence[str] = (),
) -> Tables:
    """Predict one shard in a worker."""
    predictor = _open_cached_predictor(request)
    rebuilt_shard = Shard(index, msgspec.convert(shard, tuple[SourceImage, ...]))
    if settled_keys:
        key = predictor.compute_key(rebuilt_shard)
        if shorten_key_for_file_name(key) in settled_keys:
            return {"made": pl.DataFrame({"key": [key], "batch": [predictor.caller.batch]})}
    (shard_predictions,) = predictor.predict_shards([rebuilt_shard])
    job_result = pl.DataFrame({"key": [shard_predictions.key], "batch": [predictor.caller.batch]})
    return {"made": job_result, "inferences": shard_predictions.table}


def _open_cached_predictor(request: Mapping[str, Any]) -> ShardPredictor:
    """Open the requested model, once per process."""
    name = json.dumps(request, sort_keys=True)
    if name not in _open_predictors:
        for open_name in list(_open_predictors):  # the memory holds one model
            _open_predictors.pop(open_name).close()
        model_request = ModelRequest(**request)
        _change_directory(model_request.working_dir)
        model = open_model(model_request.model, model_request.options, name=model_request.name)
        _check_same_model(model, model_request)
        settings = PredictionSettings(**model_request.settings)
        _open_predictors[name] = ShardPredictor(
            model, ImageFolder(model_request.pictures), model_request.run_key, settings
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


def _check_same_model(model: Model, request: ModelRequest) -> None:
    """Refuse a worker whose model, packages or code differ from the command's."""
    if model.key == request.key and hash_decoding_code() == request.code:
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


_TIME_LIMIT_FACTOR, _MIN_MARGIN_S, _MAX_MARGIN_S = 2.1, 5.0, 30.0
"""Factor of a shard's time limit, and seconds added to it (as many as the limit, between the two),
after which a worker is killed. A worker keeps the limit itself, and takes as much again to retry
pictures one by one; it cannot if a call hangs without releasing Python's lock."""
_MAX_LOST_IN_ROW = 2  # pictures of a shard, each alone: a third would be lost too


def predict_missing_shards_remotely(
    executor: Executor,
    model: Model,
    options: Sequence[str],
    shards: Sequence[Shard],
    folder: ImageFolder,
    store: ShardStore,
    run_key: str,
    settings: PredictionSettings,
    *,
    retries: int = 2,
    report: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> RunOutcome:
    """Have the shards that the store lacks predicted by an executor's workers, and commit each."""
    check_model_has_spec(model)
    request = ModelRequest(
        model.spec,
        tuple(options),
        model.name,
        model.key,
        dict(model.versions),
        hash_decoding_code(),
        run_key,
        str(folder.base.absolute()),
        os.getcwd(),  # noqa: PTH109 - a text
        asdict(settings),
    )
    stage = StagingPath(store.folder / "workers", is_folder=True)
    try:
        run = _RemoteRun(
            model,
            asdict(request),
            shards,
            store,
            settings,
            JobStore(stage.path),
            report or (lambda *_: None),
        )
        return run.execute(executor, retries, stop or (lambda: False))
    finally:
        stage.discard()


def _build_limits(time_limit: float, retries: int) -> JobLimits:
    """Build the limits of a job; a late one is not tried again as it is."""
    margin_s = min(max(time_limit, _MIN_MARGIN_S), _MAX_MARGIN_S)
    return JobLimits(time_limit * _TIME_LIMIT_FACTOR + margin_s, retries, retries_late=False)


def check_model_has_spec(model: Model) -> None:
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
    request: dict[str, Any]
    shards: Sequence[Shard]
    store: ShardStore
    settings: PredictionSettings
    job_store: JobStore
    report: Progress
    key_by_index: dict[int, str] = field(default_factory=dict)
    n_computed: int = 0
    n_computed_images: int = 0
    n_finished_images: int = 0
    lost_tables: dict[int, pl.DataFrame] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.batch = self.settings.batch
        self.total = sum(len(shard.images) for shard in self.shards)
        inferences = sum(len(p.units) for shard in self.shards for p in shard.images)
        self.failures = Failures(inferences, self.settings.max_failures, self.store.folder)
        self.there = self.store.list_committed_keys()
        self.run_key = str(self.request["run_key"])

    def execute(self, executor: Executor, retries: int, stop: Callable[[], bool]) -> RunOutcome:
        first = Job("open", self.model.spec, OPEN_MODEL_CALL, {"request": self.request})
        executor(
            JobRequest(
                self._build_jobs(),
                len(self.shards),
                self.job_store,
                _build_limits(self.settings.time_limit, retries),
                self._commit_shard,
                first,
                stop,
                self._build_failed_shard,
            )
        )
        for position, lost_rows in self.lost_tables.items():
            if not stop():
                self._retry_images_alone(executor, first, position, lost_rows, stop)
        keys = [
            (s, self.key_by_index[s.index]) for s in self.shards if s.index in self.key_by_index
        ]
        return RunOutcome(
            keys, self.n_computed, self.n_computed_images, len(keys) == len(self.shards), self.batch
        )

    def _build_jobs(self) -> Iterator[Job]:
        for position, shard in enumerate(self.shards):
            settled_shards = self.store.select_keys_without_retry(
                shard, self.there.get(shard.index, ())
            )
            yield Job(
                str(position),
                f"shard {shard.index}",
                PREDICT_SHARD_CALL,
                {
                    "request": self.request,
                    **shard_to_json(shard),
                    "settled_keys": list(settled_shards),
                },
            )

    def _commit_shard(self, job: Job) -> None:
        """Commit the result of a shard's job; the images of a lost one are tried alone first."""
        tables = self.job_store.pop(job.key)
        inferences = tables.get("inferences")
        if int(job.key) in self.lost_tables:
            return
        ((key, batch),) = tables["made"].select("key", "batch").iter_rows()
        self.batch = min(self.batch, batch)
        self._record_shard(self.shards[int(job.key)], key, inferences)

    def _record_shard(self, shard: Shard, key: str, inferences: pl.DataFrame | None) -> None:
        """Commit a shard's inferences (None: they are there), and count them."""
        self.n_finished_images += len(shard.images)
        if inferences is None:
            self.failures.add_earlier_failures(
                self.store.select_keys_without_retry(shard, [shorten_key_for_file_name(key)]).get(
                    shorten_key_for_file_name(key), 0
                )
            )
        else:
            self.store.commit(shard, key, inferences)
            self.n_computed += 1
            self.n_computed_images += len(shard.images)
        self.key_by_index[shard.index] = key
        self.report(self.n_finished_images, self.total, self.n_computed_images)
        if inferences is not None:
            self.failures.add_shard_failures(inferences)

    def _build_failed_shard(self, job: Job, loss_reason: str, is_late: bool) -> Tables:
        """Build a failed shard, which the next command predicts again."""
        tables = self._build_failed_tables(self.shards[int(job.key)], loss_reason, is_late)
        if len(self.shards[int(job.key)].images) > 1:
            self.lost_tables[int(job.key)] = tables["inferences"]
        return tables

    def _retry_images_alone(
        self,
        executor: Executor,
        first: Job,
        position: int,
        lost_rows: pl.DataFrame,
        stop: Callable[[], bool],
    ) -> None:
        """Predict each image of a lost shard alone: the one that hangs or ends its worker stays."""
        shard = self.shards[position]
        alone = _ImagesAlone(shard, self.request, self.job_store, self._build_failed_tables)
        limit, n_images = self.settings.time_limit, len(shard.images)
        time_alone = max(limit / n_images, min(limit, MIN_TIME_ALONE_S))
        executor(
            JobRequest(
                alone.build_jobs(),
                n_images,
                self.job_store,
                _build_limits(time_alone, 0),
                alone.keep_rows,
                first,
                stop,
                alone.build_failed,
            )
        )
        if stop():  # the next command tries the rest
            return
        inferences = alone.combine_rows(lost_rows)
        hash_by_id = dict(inferences.select("image_id", "sha256").iter_rows())
        hashes = [hash_by_id[image.image_id] for image in shard.images]
        self._record_shard(shard, compute_shard_key(self.run_key, shard, hashes), inferences)

    def _build_failed_tables(self, shard: Shard, loss_reason: str, is_late: bool) -> Tables:
        """Build the tables of images whose worker was lost or late."""
        reason, fault = (
            (LATE_REASON, "time") if is_late else (f"its worker was lost: {loss_reason}", "model")
        )
        rows = [
            (unit.id, picture.image_id, None, None, None, reason, fault, None)
            for picture in shard.images
            for unit in picture.units
        ]
        schema = build_inference_table_schema(self.model.predicts).schema
        key = compute_shard_key(self.run_key, shard, [None] * len(shard.images))
        job_result = pl.DataFrame({"key": [key], "batch": [self.batch]})
        return {"made": job_result, "inferences": pl.DataFrame(rows, schema=schema, orient="row")}


@dataclass
class _ImagesAlone:
    """The images of a shard whose worker was lost or late, each as a job of its own."""

    shard: Shard
    request: Mapping[str, Any]
    job_store: JobStore
    build_failed_tables: Callable[[Shard, str, bool], Tables]
    row_tables: dict[int, pl.DataFrame] = field(default_factory=dict)
    lost_keys: set[str] = field(default_factory=set)
    n_lost_in_row: int = 0

    def build_jobs(self) -> Iterator[Job]:
        for k, image in enumerate(self.shard.images):
            if self.n_lost_in_row < _MAX_LOST_IN_ROW:
                arguments = shard_to_json(Shard(self.shard.index, (image,)))
                yield Job(
                    f"{self.shard.index}-{k}",
                    f"shard {self.shard.index}, picture {k}",
                    PREDICT_SHARD_CALL,
                    {"request": self.request, **arguments},
                )

    def keep_rows(self, job: Job) -> None:
        self.row_tables[_read_image_index(job)] = self.job_store.pop(job.key)["inferences"]
        if job.key not in self.lost_keys:
            self.n_lost_in_row = 0

    def build_failed(self, job: Job, loss_reason: str, is_late: bool) -> Tables:
        self.lost_keys.add(job.key)
        self.n_lost_in_row += 1  # here, before the worker takes its next job
        image = self.shard.images[_read_image_index(job)]
        return self.build_failed_tables(Shard(self.shard.index, (image,)), loss_reason, is_late)

    def combine_rows(self, lost_rows: pl.DataFrame) -> pl.DataFrame:
        """Put the images' rows in the shard's order; those not tried have the rows of the loss."""
        return pl.concat(
            self.row_tables.get(k, lost_rows.filter(pl.col("image_id") == image.image_id))
            for k, image in enumerate(self.shard.images)
        )


def _read_image_index(job: Job) -> int:
    return int(job.key.rpartition("-")[2])
