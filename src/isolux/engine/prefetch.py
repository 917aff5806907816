"""Prefetching images: decode, crop, prepare.

Threads of the command do this, and on a machine with a GPU processes beside it: the same function.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import chain
from multiprocessing import TimeoutError as LateError
from multiprocessing.pool import AsyncResult, ThreadPool
from typing import Any

from isolux.core.address_space import read_address_space_limit_bytes
from isolux.core.errors import SpecError
from isolux.engine.inference import ModelResponse
from isolux.engine.settings import PredictionSettings
from isolux.engine.source_images import (
    DecodedImage,
    SourceImage,
    decode_and_crop_units,
    hash_image_file,
)
from isolux.io.cpu_count import count_cores
from isolux.io.image_folder import ImageFolder
from isolux.models import Model, Preprocessing


@dataclass(slots=True)
class PrefetchedImage:
    """A prefetched image with the model's inputs and their size in memory.

    Parameters
    ----------
    decoded : DecodedImage
        Without its cuts.
    model_inputs : list
        What the model is shown of each unit; None where there is nothing.
    responses : list of ModelResponse or None
        Why there is nothing; None: there is something, and the model says more.
    n_bytes : int
        Of all that is shown.
    """

    decoded: DecodedImage
    model_inputs: list[Any]
    responses: list[ModelResponse | None]
    n_bytes: int = 0


def decode_and_prepare_image(
    image: SourceImage, folder: ImageFolder, prepare: Callable[..., Any] | None, box_factor: float
) -> PrefetchedImage:
    """Decode an image, crop its units, and prepare them as model inputs."""
    opened = decode_and_crop_units(image, folder, box_factor)
    # Without its crops: a shard of large images would fill the memory until it is committed.
    prefetched_image = PrefetchedImage(replace(opened, crops=()), [], [])
    for crop in opened.crops:
        if crop.pixels is None:
            prefetched_image.model_inputs.append(None)
            prefetched_image.responses.append(ModelResponse(None, crop.reason, "picture"))
            continue
        try:
            model_input = (
                crop.pixels if prepare is None else prepare(crop.pixels, *image.given_to_model)
            )
        except Exception as error:  # noqa: BLE001 - whatever a model raises is its own
            reason = (str(error).splitlines() or [""])[0][:200]
            prefetched_image.model_inputs.append(None)
            prefetched_image.responses.append(
                ModelResponse(
                    None,
                    f"the model's preparation raised {type(error).__name__}: {reason}",
                    "model",
                )
            )
            continue
        prefetched_image.model_inputs.append(model_input)
        prefetched_image.responses.append(None)
        n_input_bytes = getattr(model_input, "nbytes", None)
        prefetched_image.n_bytes += (
            n_input_bytes if isinstance(n_input_bytes, int) else crop.pixels.nbytes
        )
    return prefetched_image


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

    def read_alone(self, images: Sequence[SourceImage], deadline: float) -> list[PrefetchedImage]:
        """Read a few images by threads; none of them if one is late."""
        pending = self._threads.map_async(self._reader.__getitem__, images)
        try:
            return pending.get(max(deadline - time.monotonic(), 0.0))
        except LateError:
            self._replace_threads_and_resubmit()
            return []

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
