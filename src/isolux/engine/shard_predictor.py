"""Prediction of shards in one process: images are prefetched, one model predicts them."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from isolux.engine.inference import MIN_TIME_ALONE_S, ModelCaller, ModelResponse, PendingBatch
from isolux.engine.prefetch import ImagePrefetcher, PrefetchedImage
from isolux.engine.settings import PredictionSettings
from isolux.engine.shards import Shard, build_inference_table_schema, compute_shard_key
from isolux.engine.source_images import SourceImage, count_units
from isolux.io.image_folder import ImageFolder
from isolux.models import Model

_MAX_BATCH_BYTES = 1 << 28  # of images per batch: large images go in smaller batches
_MAX_TRIAL_S = 60.0  # seconds for the pictures that are tried first
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

    def predict_trial(self, images: Sequence[SourceImage]) -> list[ModelResponse]:
        """Predict a few images outside the shards, within a minute; if one is late, none."""
        deadline = time.monotonic() + min(self.settings.time_limit, _MAX_TRIAL_S)
        reads = self.prefetcher.read_alone(images, deadline)
        return self.caller.predict_batch_or_explain(
            [
                model_input
                for read in reads
                for model_input, response in zip(read.model_inputs, read.responses, strict=True)
                if response is None
            ],
            deadline,
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
