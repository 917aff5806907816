"""Pictures read ahead of the model, a bounded number and in their order.

Threads read them. Where a model on a GPU waits for many, processes are started meanwhile and take
over once they are ready: threads share Python's lock with whatever feeds the GPU. What no process
can read (a picture of very many people, whatever one was lost with) threads read as before.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from threading import Lock

from isolux.engine.answering import Said
from isolux.engine.pictures import Opened, Picture, hash_picture
from isolux.engine.reader_processes import ReaderProcesses, process_count
from isolux.engine.readers import Readers
from isolux.engine.reading import Read, read_picture
from isolux.engine.settings import Settings
from isolux.io.cores import cores
from isolux.io.picture_folder import PictureFolder
from isolux.models import Model

__all__ = ["Ahead"]

_READERS = 8  # threads at most: with more of them the model's own waits for Python's lock
_WAIT_BYTES = 1 << 29  # of pictures that wait for the model
_FEW = 768  # pictures, for which no process is started


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
        self._folder, self._settings, self._expected = folder, settings, expected
        self._prepare = getattr(model.predictor, "prepare", None)
        count = settings.readers or max(1, min(_READERS, cores()))
        self._threads = Readers(count)
        self._depth = settings.batch + 2 * count
        self._held, self._counting = 0, Lock()  # bytes from threads that wait
        self._wanted = process_count(model, settings.reader_processes)
        self._processes: ReaderProcesses | None = None
        self._given = 0
        self._ahead: deque[Future[Read]] = deque()
        self._coming: Iterator[Picture] = iter(())
        self._first: Picture | None = None  # of those that come, where it had no room yet

    @property
    def apart(self) -> bool:
        """Whether processes read, or would of more pictures."""
        return self._wanted > 0

    def close(self) -> None:
        """Let the threads and processes end."""
        if self._processes is not None:
            self._processes.close()
        self._threads.close()

    def hashes(self, pictures: tuple[Picture, ...]) -> list[str | None]:
        """Read pictures for their hashes alone; None where one cannot be read."""
        waiting = [self._threads.submit(partial(hash_picture, p, self._folder)) for p in pictures]
        return [future.result() for future in waiting]

    def follow(self, pictures: Iterator[Picture]) -> None:
        """Read these from now on, which are taken as there is room."""
        for future in self._ahead:
            future.add_done_callback(_let_go)
        self._ahead.clear()
        self._coming, self._first = pictures, None
        self.refill()

    def next(self, picture: Picture, deadline: float) -> Read:
        """Give the next picture, which is this one, and read on."""
        if not self._ahead:
            self.refill()
        future = self._ahead.popleft()
        try:
            return future.result(timeout=max(deadline - time.monotonic(), 0.0))
        except TimeoutError:
            if not future.cancel():  # it is let go when it comes after all
                future.add_done_callback(_let_go)
            if self._processes is None or not self._processes.give_up(future):
                self._threads.more()
            late = Said(None, "not read within the time limit of its shard", "time")
            n = len(picture.units)
            return Read(Opened(picture, None, None, None, ()), [None] * n, [late] * n)

    def refill(self) -> None:
        """Keep the readers busy, a bounded number of pictures and bytes ahead of the model."""
        while (picture := self._first or next(self._coming, None)) is not None:
            future = self._begun(picture)
            self._first = picture if future is None else None
            if future is None:
                break
            self._ahead.append(future)
            self._given += 1
        if self._processes is not None:
            self._processes.hand_out()

    def _begun(self, picture: Picture) -> Future[Read] | None:
        """Begin to read a picture, or return None while there is no room for it."""
        processes = self._at_work()
        if processes is not None and processes.takes(picture):
            future = processes.submit(picture)
            if future is not None:
                return future
        if self._ahead and (len(self._ahead) >= self._depth or self._held > _WAIT_BYTES):
            return None
        return self._threads.submit(partial(self._read, picture))

    def _at_work(self) -> ReaderProcesses | None:
        """Give the processes that read, once they are started and ready."""
        if self._processes is None:
            few = max(self._given, self._expected) < _FEW
            if not self._wanted or (few and self._settings.reader_processes is None):
                return None
            self._processes = ReaderProcesses(
                self._wanted, self._prepare, self._folder, self._settings.box_factor,  # type: ignore[arg-type]
                self._settings.batch, _WAIT_BYTES, self._read_here,
            )  # fmt: skip
        return self._processes if self._processes.ready else None

    def _read_here(self, picture: Picture) -> Future[Read]:
        """Read what a process did not."""
        return self._threads.submit(partial(self._read, picture))

    def _read(self, picture: Picture) -> Read:
        read = read_picture(picture, self._folder, self._prepare, self._settings.box_factor)
        self._hold(read.n_bytes)
        read.free = partial(self._hold, -read.n_bytes)
        return read

    def _hold(self, n_bytes: int) -> None:
        with self._counting:
            self._held += n_bytes


def _let_go(future: Future[Read]) -> None:
    if not future.cancelled() and not future.exception():
        free = future.result().free
        if free is not None:
            free()
