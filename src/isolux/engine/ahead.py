"""Pictures read ahead of the model, a bounded number and in their order.

Threads read them. For a network of PyTorch's on a GPU, that waits for many, the processes of its
``DataLoader`` do: threads share Python's lock with whatever feeds the GPU. Where one of those is
lost or hangs, threads read on.
"""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import chain
from multiprocessing import TimeoutError as LateError
from multiprocessing.pool import AsyncResult, ThreadPool
from typing import Any

from isolux.engine.answering import Said
from isolux.engine.pictures import Opened, Picture, hash_picture
from isolux.engine.reading import Read, read_picture
from isolux.engine.settings import Settings
from isolux.io.cores import cores
from isolux.io.picture_folder import PictureFolder
from isolux.models import Model, Preprocessing
from isolux.vocabulary.addresses import allowed_addresses
from isolux.vocabulary.errors import SpecError

_MAX_THREADS = 8  # with more of them the model's own waits for Python's lock
_MAX_PROCESSES = 16
_MIN_CORES = 8
_MIN_PICTURES = 768  # for fewer, no process is started
_MAX_WAITING_BYTES = 1 << 29  # of pictures that wait for the model
_PER_PROCESS = 4  # pictures that a process reads ahead


def process_count(model: Model, asked: int | None) -> int:
    """Say how many processes read for a model; 0: threads alone."""
    if asked == 0:
        return 0
    is_torch = "torch" in sys.modules  # a network of PyTorch's has imported it
    can_prepare = isinstance(getattr(model.predictor, "prepare", None), Preprocessing)
    is_able = is_torch and can_prepare and not getattr(model.predictor, "by_box", False)
    if asked is not None:
        if not is_able:
            raise SpecError(
                "no processes can read pictures for this model",
                expected="a model of timm:, open_clip: or fairface:",
                found=model.spec,
                hint="leave reader_processes out: threads read (readers)",
            )
        return asked
    has_room = cores() >= _MIN_CORES and allowed_addresses() is None
    return min(_MAX_PROCESSES, cores() - 1) if is_able and model.on_gpu and has_room else 0


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads pictures, in a thread by a call, in a process of a ``DataLoader`` by an index."""

    folder: PictureFolder
    prepare: Callable[..., Any] | None
    box_factor: float

    def __getitem__(self, picture: Picture) -> Read:
        return read_picture(picture, self.folder, self.prepare, self.box_factor)


class Ahead:
    """Reads pictures before they are asked for.

    Parameters
    ----------
    model : Model
    folder : PictureFolder
    settings : Settings
    expected : int
        Pictures that will come, as far as is known; more may.
    """

    def __init__(
        self, model: Model, folder: PictureFolder, settings: Settings, expected: int = 0
    ) -> None:
        self._settings = settings
        prepare = getattr(model.predictor, "prepare", None)
        self._reader = _Reader(folder, prepare, settings.box_factor)
        self._n_threads = settings.readers or max(1, min(_MAX_THREADS, cores()))
        self._threads = ThreadPool(self._n_threads)
        self._n_processes = process_count(model, settings.reader_processes)
        self.apart = self._n_processes > 0
        if settings.reader_processes is None and expected < _MIN_PICTURES:
            self._n_processes = 0
        self._ahead: deque[tuple[Picture, AsyncResult[Read]]] = deque()
        self._coming: Iterator[Picture] = iter(())
        self._by_processes: Iterator[Read] | None = None
        self._at_processes: deque[Picture] = deque()

    def close(self) -> None:
        """Let the threads and processes end; one that hangs is not waited for."""
        self._by_processes = None
        self._threads.close()

    def hashes(self, pictures: tuple[Picture, ...]) -> list[str | None]:
        """Read pictures for their hashes alone; None where one cannot be read."""
        return self._threads.map(partial(hash_picture, folder=self._reader.folder), pictures)

    def follow(self, pictures: Iterator[Picture]) -> None:
        """Read these from now on, which are taken as there is room."""
        self._ahead.clear()
        self._at_processes.clear()
        self._coming = pictures
        self._by_processes = self._loader() if self._n_processes else None
        self.refill()

    def next(self, picture: Picture, deadline: float) -> Read:
        """Give the next picture, which is this one, and read on."""
        if self._by_processes is not None:
            try:
                read = next(self._by_processes)
            except Exception:  # noqa: BLE001 - one was lost, or hangs: a thread will say why
                self._by_processes, self._n_processes = None, 0
                self._coming = chain(tuple(self._at_processes), self._coming)
            else:
                self._at_processes.popleft()
                return read
        if not self._ahead:
            self.refill()
        _, result = self._ahead.popleft()
        try:
            return result.get(max(deadline - time.monotonic(), 0.0))
        except LateError:
            self._replace_threads()
            late = Said(None, "not read within the time limit of its shard", "time")
            n = len(picture.units)
            return Read(Opened(picture, None, None, None, ()), [None] * n, [late] * n)

    def refill(self) -> None:
        """Keep the threads busy, a bounded number of pictures and bytes ahead of the model."""
        if self._by_processes is not None:
            return
        while not self._ahead or self._has_room():
            picture = next(self._coming, None)
            if picture is None:
                return
            self._ahead.append((picture, self._begin(picture)))

    def _begin(self, picture: Picture) -> AsyncResult[Read]:
        return self._threads.apply_async(self._reader.__getitem__, (picture,))

    def _has_room(self) -> bool:
        waiting = [r.get().n_bytes for _, r in self._ahead if r.ready() and r.successful()]
        depth = self._settings.batch + 2 * self._n_threads
        return len(self._ahead) < depth and sum(waiting) <= _MAX_WAITING_BYTES

    def _replace_threads(self) -> None:
        """Start threads anew, for what waits too: those there are may be stuck."""
        self._threads.close()
        self._threads = ThreadPool(self._n_threads)
        waiting = [(p, r if r.ready() else self._begin(p)) for p, r in self._ahead]
        self._ahead = deque(waiting)

    def _loader(self) -> Iterator[Read]:
        loader: Iterable[Read] = import_module("torch.utils.data").DataLoader(
            self._reader,
            sampler=self._handed_out(),
            batch_size=None,
            collate_fn=_unchanged,
            num_workers=self._n_processes,
            prefetch_factor=_PER_PROCESS,
            timeout=self._settings.time_limit,
        )
        return iter(loader)

    def _handed_out(self) -> Iterator[Picture]:
        """Yield the pictures that come, and remember those that processes have."""
        for picture in self._coming:
            self._at_processes.append(picture)
            yield picture


def _unchanged(read: Read) -> Read:
    return read
