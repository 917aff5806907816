"""Prediction of shards in one process: images are prefetched, one model predicts them."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import chain
from multiprocessing import TimeoutError as LateError
from multiprocessing.pool import AsyncResult, ThreadPool
from typing import Any

import polars as pl

from isolux.core.address_space import read_address_space_limit_bytes
from isolux.core.errors import SpecError
from isolux.engine.inference import MIN_TIME_ALONE_S, ModelCaller, ModelResponse, PendingBatch
from isolux.engine.prefetch import PrefetchedImage, decode_and_prepare_image
from isolux.engine.settings import PredictionSettings
from isolux.engine.shards import Shard, build_inference_table_schema, compute_shard_key
from isolux.engine.source_images import (
    DecodedImage,
    SourceImage,
    count_units,
    hash_image_file,
)
from isolux.io.cpu_count import count_cores
from isolux.io.image_folder import ImageFolder
from isolux.models import Model, Preprocessing

_MAX_THREADS = 8  # with more of them the model's thread waits for Python's lock
_MAX_PROCESSES = 16
_MIN_CORES = 8
_MIN_IMAGES_FOR_PROCESSES = 768  # for fewer images, no process is started
_MAX_WAITING_BYTES = 1 << 29  # of images that wait for the model
_PREFETCH_PER_PROCESS = 4  # images that a process prefetches


def choose_n_decoding_processes(model: Model, n_requested: int | None) -> int:
    """Choose how many processes decode images for a model; 0: threads alone."""
    if n_requested == 0:
        return 0
    is_torch = "torch" in sys.modules  # imported by any PyTorch network
    can_prepare = isinstance(getattr(model.predictor, "prepare", None), Preprocessing)
    can_use_processes = is_torch and can_prepare and not getattr(model.predictor, "by_box", False)
    if n_requested is not None:
        if not can_use_processes:
            raise SpecError(
                "no processes can read pictures for this model",
                expected="a model of timm:, open_clip: or fairface:",
                found=model.spec,
                hint="leave reader_processes out: threads read (readers)",
            )
        return n_requested
    has_enough_cores = count_cores() >= _MIN_CORES and read_address_space_limit_bytes() is None
    return (
        min(_MAX_PROCESSES, count_cores() - 1)
        if can_use_processes and model.on_gpu and has_enough_cores
        else 0
    )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads images: called by a thread, or indexed by a process of a ``DataLoader``."""

    folder: ImageFolder
    prepare: Callable[..., Any] | None
    box_factor: float

    def __getitem__(self, picture: SourceImage) -> PrefetchedImage:
        return decode_and_prepare_image(picture, self.folder, self.prepare, self.box_factor)


class ImagePrefetcher:
    """Prefetches images by threads or processes.

    Parameters
    ----------
    model : Model
    folder : ImageFolder
    settings : PredictionSettings
    expected : int
        Pictures that will come, as far as is known; more may.
    """

    def __init__(
        self, model: Model, folder: ImageFolder, settings: PredictionSettings, expected: int = 0
    ) -> None:
        self._settings = settings
        prepare = getattr(model.predictor, "prepare", None)
        self._reader = _Reader(folder, prepare, settings.box_factor)
        self._n_threads = settings.readers or max(1, min(_MAX_THREADS, count_cores()))
        self._threads = ThreadPool(self._n_threads)
        self._n_processes = choose_n_decoding_processes(model, settings.reader_processes)
        self.uses_processes = self._n_processes > 0
        if settings.reader_processes is None and expected < _MIN_IMAGES_FOR_PROCESSES:
            self._n_processes = 0
        self._queue: deque[tuple[SourceImage, AsyncResult[PrefetchedImage]]] = deque()
        self._upcoming: Iterator[SourceImage] = iter(())
        self._process_results: Iterator[PrefetchedImage] | None = None
        self._in_processes: deque[SourceImage] = deque()

    def close(self) -> None:
        """Let the threads and processes end; one that hangs is not waited for."""
        self._process_results = None
        self._threads.close()

    def hash_image_files(self, pictures: tuple[SourceImage, ...]) -> list[str | None]:
        """Hash the files of images; None where one cannot be read."""
        return self._threads.map(partial(hash_image_file, folder=self._reader.folder), pictures)

    def start(self, pictures: Iterator[SourceImage]) -> None:
        """Start to prefetch these images, as far as there is room."""
        self._queue.clear()
        self._in_processes.clear()
        self._upcoming = pictures
        self._process_results = self._iterate_process_reads() if self._n_processes else None
        self.submit_reads()

    def next(self, picture: SourceImage, deadline: float) -> PrefetchedImage:
        """Return the next image, which is this one, and prefetch further."""
        if self._process_results is not None:
            try:
                read = next(self._process_results)
            except Exception:  # noqa: BLE001 - one was lost, or hangs: a thread will say why
                self._process_results, self._n_processes = None, 0
                self._upcoming = chain(tuple(self._in_processes), self._upcoming)
            else:
                self._in_processes.popleft()
                return read
        if not self._queue:
            self.submit_reads()
        _, pending_read = self._queue.popleft()
        try:
            return pending_read.get(max(deadline - time.monotonic(), 0.0))
        except LateError:
            self._replace_threads_and_resubmit()
            response = ModelResponse(None, "not read within the time limit of its shard", "time")
            n = len(picture.units)
            return PrefetchedImage(
                DecodedImage(picture, None, None, None, ()), [None] * n, [response] * n
            )

    def submit_reads(self) -> None:
        """Keep the threads busy, a bounded number of images and bytes ahead of the model."""
        if self._process_results is not None:
            return
        while not self._queue or self._has_room_for_read():
            picture = next(self._upcoming, None)
            if picture is None:
                return
            self._queue.append((picture, self._submit_read(picture)))

    def _submit_read(self, picture: SourceImage) -> AsyncResult[PrefetchedImage]:
        return self._threads.apply_async(self._reader.__getitem__, (picture,))

    def _has_room_for_read(self) -> bool:
        waiting = [r.get().n_bytes for _, r in self._queue if r.ready() and r.successful()]
        max_queue_length = self._settings.batch + 2 * self._n_threads
        return len(self._queue) < max_queue_length and sum(waiting) <= _MAX_WAITING_BYTES

    def _replace_threads_and_resubmit(self) -> None:
        """Replace the threads, which may be stuck, and resubmit pending reads."""
        self._threads.close()
        self._threads = ThreadPool(self._n_threads)
        waiting = [(p, r if r.ready() else self._submit_read(p)) for p, r in self._queue]
        self._queue = deque(waiting)

    def _iterate_process_reads(self) -> Iterator[PrefetchedImage]:
        loader: Iterable[PrefetchedImage] = import_module("torch.utils.data").DataLoader(
            self._reader,
            sampler=self._iterate_and_record_images(),
            batch_size=None,
            collate_fn=_return_unchanged,
            num_workers=self._n_processes,
            prefetch_factor=_PREFETCH_PER_PROCESS,
            timeout=self._settings.time_limit,
        )
        return iter(loader)

    def _iterate_and_record_images(self) -> Iterator[SourceImage]:
        """Yield the upcoming images, and remember those given to processes."""
        for picture in self._upcoming:
            self._in_processes.append(picture)
            yield picture


def _return_unchanged(read: PrefetchedImage) -> PrefetchedImage:
    return read


_MAX_BATCH_BYTES = 1 << 28  # of images per batch: large images go in smaller batches
_MAX_PENDING_BATCHES = 3  # batches of a model on a GPU: one running, one before, one after
_SWITCH_INTERVAL_S = 2e-4
"""Seconds for which a thread may keep Python's lock while another waits: whatever feeds a GPU lets
go of it hundreds of times a batch, and would wait for Python's usual 5 ms each time."""


@dataclass(frozen=True, slots=True)
class ShardPredictions:
    """The content key of a shard and its predictions, one row per inference.

    Columns: ``build_inference_table_schema``.
    """

    shard: Shard
    key: str
    table: pl.DataFrame


@dataclass(slots=True)
class _Batch:
    """Inputs that are given to the model together, all of one shard.

    Parameters
    ----------
    shard : Shard
    reads : list of PrefetchedImage
        The shard's, up to here.
    inferences : list of (PrefetchedImage, int)
        Those that are asked for, each by its place in what was read.
    began : float
        When the shard began.
    last : bool
        Whether the shard ends with it.
    """

    shard: Shard
    reads: list[PrefetchedImage]
    inferences: list[tuple[PrefetchedImage, int]]
    began: float
    last: bool


class ShardPredictor:
    """A loaded model with its prefetcher.

    Parameters
    ----------
    model : Model
    folder : ImageFolder
    run_key : str
        Of all that is the same for each shard.
    settings : PredictionSettings
    expected : int
        Pictures that it will be shown, as far as is known.
    """

    def __init__(
        self,
        model: Model,
        folder: ImageFolder,
        run_key: str,
        settings: PredictionSettings,
        *,
        expected: int = 0,
    ) -> None:
        self.model, self.run_key, self.settings = model, run_key, settings
        self.prefetcher = ImagePrefetcher(model, folder, settings, expected)
        self.caller = ModelCaller(model, settings.batch)
        self._started_shards: deque[Shard] = deque()
        self._free_since = 0.0  # when the model finished its last shard
        self._switch = sys.getswitchinterval()
        if self.prefetcher.uses_processes:
            sys.setswitchinterval(min(_SWITCH_INTERVAL_S, self._switch))

    def close(self) -> None:
        """Let the threads and processes end."""
        sys.setswitchinterval(self._switch)
        self.prefetcher.close()
        self.caller.close()

    def compute_key(self, shard: Shard) -> str:
        """Compute the key of a shard's predictions from the hashes of its images."""
        return compute_shard_key(
            self.run_key, shard, self.prefetcher.hash_image_files(shard.images)
        )

    def predict_shards(
        self, shards: Iterable[Shard], report: Callable[[int], None] = lambda _: None
    ) -> Iterator[ShardPredictions]:
        """Yield the predictions of each shard; later shards are prefetched meanwhile."""
        max_pending = (
            _MAX_PENDING_BATCHES if self.prefetcher.uses_processes and self.model.on_gpu else 1
        )
        pending: deque[tuple[_Batch, PendingBatch]] = deque()
        for batch in self._iterate_batches_of_shards(shards):
            pending.append((batch, self._submit_batch(batch)))
            while len(pending) >= max_pending:
                yield from self._await_first_batch(pending, report)
        while pending:
            yield from self._await_first_batch(pending, report)

    def _await_first_batch(
        self, pending: deque[tuple[_Batch, PendingBatch]], report: Callable[[int], None]
    ) -> Iterator[ShardPredictions]:
        """Finish the batch that was submitted first."""
        batch, first_pending = pending.popleft()
        n_hung, deadline = self.caller.n_hung, self._compute_deadline(batch)
        read_responses = self.caller.await_batch(first_pending, deadline)
        if time.monotonic() >= deadline:
            limit, n = self.settings.time_limit, count_units(batch.shard.images)
            time_alone = max(limit / n, min(limit, MIN_TIME_ALONE_S))
            read_responses = self.caller.retry_late_inputs_alone(
                [read.model_inputs[k] for read, k in batch.inferences],
                read_responses(),
                time_alone,
                deadline + max(limit, 2 * time_alone),
            )
        for read, k in batch.inferences:  # free the memory of finished inputs
            read.model_inputs[k] = None
        if batch.last:
            self._free_since = time.monotonic()
        if self.caller.n_hung != n_hung:  # batches submitted after a hanging call never finish
            resubmitted_batches = [
                (later_batch, self._submit_batch(later_batch)) for later_batch, _ in pending
            ]
            pending.clear()
            pending.extend(resubmitted_batches)
        yield from self._store_responses_and_yield_shard(batch, read_responses(), report)

    def _iterate_batches_of_shards(self, shards: Iterable[Shard]) -> Iterator[_Batch]:
        """Group prefetched images into batches of one shard."""
        self._started_shards.clear()
        self.prefetcher.start(self._iterate_and_record_shard_images(shards))
        while self._started_shards:
            shard, began = self._started_shards.popleft(), time.monotonic()
            reads: list[PrefetchedImage] = []
            inferences: list[tuple[PrefetchedImage, int]] = []
            n_bytes, limit = 0, self.settings.time_limit
            for picture in shard.images:
                end = max(began + limit, time.monotonic() + min(limit, MIN_TIME_ALONE_S))
                read = self.prefetcher.next(picture, end)
                reads.append(read)
                inferences += [
                    (read, k) for k, response in enumerate(read.responses) if response is None
                ]
                n_bytes += read.n_bytes
                if len(inferences) >= self.settings.batch or n_bytes > _MAX_BATCH_BYTES:
                    yield _Batch(shard, reads[:], inferences, began, last=False)
                    inferences, n_bytes = [], 0
                self.prefetcher.submit_reads()
            yield _Batch(shard, reads, inferences, began, last=True)
            self.prefetcher.submit_reads()

    def _iterate_and_record_shard_images(self, shards: Iterable[Shard]) -> Iterator[SourceImage]:
        for shard in shards:
            self._started_shards.append(shard)
            yield from shard.images

    def _submit_batch(self, batch: _Batch) -> PendingBatch:
        model_inputs = [read.model_inputs[k] for read, k in batch.inferences]
        return self.caller.submit_batch(model_inputs, self._compute_deadline(batch))

    def _compute_deadline(self, batch: _Batch) -> float:
        """Return a shard's deadline; its time does not run while earlier shards are predicted."""
        return max(batch.began, self._free_since) + self.settings.time_limit

    def _store_responses_and_yield_shard(
        self, batch: _Batch, responses: list[ModelResponse], report: Callable[[int], None]
    ) -> Iterator[ShardPredictions]:
        """Store a batch's responses, and yield the shard when it is complete."""
        for (read, k), response in zip(batch.inferences, responses, strict=True):
            read.responses[k] = response
        if not batch.last:
            report(len(batch.reads))
            return
        key = compute_shard_key(
            self.run_key, batch.shard, [read.decoded.sha256 for read in batch.reads]
        )
        yield ShardPredictions(
            batch.shard, key, _build_inference_table(batch.reads, self.model.predicts)
        )


def _build_inference_table(reads: Sequence[PrefetchedImage], prediction_type: str) -> pl.DataFrame:
    """Build the table of a shard, one row per inference."""
    rows = [
        (
            unit.id,
            read.decoded.source.image_id,
            read.decoded.sha256,
            read.decoded.width,
            read.decoded.height,
            response.reason,
            response.fault,
            response.predictions,
        )
        for read in reads
        for unit, response in zip(read.decoded.source.units, read.responses, strict=True)
        if response is not None
    ]
    return pl.DataFrame(
        rows, schema=build_inference_table_schema(prediction_type).schema, orient="row"
    )
