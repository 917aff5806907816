"""Processes that read pictures ahead of a model on a GPU: the command's side.

What is prepared comes back through memory that the processes share: it has no name, so nothing is
left of it, however they end. A process that is lost is not replaced, and whatever it had is read by
the command's own threads; so is everything once none is left.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import selectors
import signal
import socket
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock, Thread
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.engine.pictures import Picture
from isolux.engine.reader_messages import Asked, How, ask, heard
from isolux.engine.reading import Read
from isolux.io.cores import cores
from isolux.io.picture_folder import PictureFolder
from isolux.models import Model, Preprocessing
from isolux.vocabulary.addresses import allowed_addresses
from isolux.vocabulary.errors import SpecError

__all__ = ["ReaderProcesses", "process_count", "started_early"]

_ABLE = hasattr(os, "memfd_create")  # Linux
_MOST = 16  # processes
_FEWEST_CORES = 8
_AT_ONCE = 4  # pictures that a process is asked for at once; it has two such parts
_UNITS = 16  # people in a picture, at most, for it to be read by a process
_BUFFER = 1 << 16
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"), "1"
)
"""A fork copies one thread: what is imported before it may start no others."""
_PATIENCE = 0.2  # seconds in which processes may end by themselves: one that imports does not


def process_count(model: Model, asked: int | None) -> int:
    """Say how many processes read for a model; 0: threads alone."""
    if asked == 0:
        return 0
    able = isinstance(getattr(model.predictor, "prepare", None), Preprocessing)
    able = able and _ABLE and not getattr(model.predictor, "by_box", False)
    if asked is not None:
        if not able:
            raise SpecError(
                "no processes can read pictures for this model",
                expected="a model of timm:, open_clip:, onnx: or fairface:, on Linux",
                found=model.spec,
                hint="leave --reader-processes out: threads read (--readers)",
            )
        return asked
    return _count_here() if able and model.on_gpu else 0


def _count_here() -> int:
    many = cores() >= _FEWEST_CORES and allowed_addresses() is None
    return min(_MOST, cores() - 1) if many and _ABLE else 0


class _Server:
    """The process from which the others come, the sockets to them, and memory without a name."""

    def __init__(self, count: int) -> None:
        self.memory: int | None = os.memfd_create("isolux-pictures")
        pairs = [socket.socketpair() for _ in range(count)]
        self.lines = [ours for ours, _ in pairs]
        told = [self.memory, *(theirs.fileno() for _, theirs in pairs)]
        try:
            self.process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, "-m", "isolux.engine.reader_server", *map(str, told)],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                pass_fds=told, env={**os.environ, **_ONE_THREAD}, process_group=0,
            )  # fmt: skip
        except BaseException:
            self._let_go()
            raise
        finally:
            for _, theirs in pairs:
                theirs.close()

    def shared(self, places: int, shape: tuple[int, ...]) -> npt.NDArray[np.uint8]:
        """Give the memory its size."""
        assert self.memory is not None  # noqa: S101 - it has not ended
        os.ftruncate(self.memory, places * math.prod(shape))
        return np.frombuffer(mmap.mmap(self.memory, 0), np.uint8).reshape(places, *shape)

    def end(self) -> None:
        """End all of them."""
        self._let_go()
        try:
            self.process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def _let_go(self) -> None:
        for line in self.lines:
            _hang_up(line)
        if self.memory is not None:
            os.close(self.memory)
            self.memory = None


_early: list[_Server] = []


@contextmanager
def started_early(options: Sequence[str], asked: int | None) -> Iterator[None]:
    """Start the processes while a model is opened that will be on a GPU, as its options say."""
    count = _count_here() if asked is None else 0
    if count and not _early and any(one.startswith("device=cuda") for one in options):
        _early.append(_Server(count))
    try:
        yield
    finally:
        while _early:
            unused = _early.pop()
            unused.end()
            for line in unused.lines:
                line.close()


@dataclass(slots=True, eq=False)
class _Process:
    """One process, by its socket, and what it was asked for and has not answered."""

    line: socket.socket
    ready: bool = False
    given_up: bool = False
    waiting: bytes = b""
    asked: dict[int, Asked] = field(default_factory=dict)


class ReaderProcesses:
    """Reads pictures in processes.

    Parameters
    ----------
    count : int
        How many.
    prepare : Preprocessing
    folder : PictureFolder
    box_factor : float
    batch : int
        Looks at a time, at most.
    room : int
        Bytes of memory that they share, at most.
    instead : callable
        Begins to read a picture that no process could read.
    """

    def __init__(
        self, count: int, prepare: Preprocessing, folder: PictureFolder, box_factor: float,
        batch: int, room: int, instead: Callable[[Picture], Future[Read]],
    ) -> None:  # fmt: skip
        self._prepare, self._instead = prepare, instead
        places = min(4 * batch + 3 * _AT_ONCE * count, max(room // math.prod(prepare.shape), 1))
        self._server = _early.pop() if _early else _Server(count)
        self._shared = self._server.shared(places, prepare.shape)
        self._all = [_Process(line) for line in self._server.lines]
        how = How(str(folder.base.absolute()), box_factor, prepare.said()).written()
        for line in self._server.lines:
            with suppress(OSError):  # it is lost, as the listener will hear
                line.sendall(how, socket.MSG_NOSIGNAL)
        self._lock = Lock()
        self._places = list(range(places))
        self._wanted: deque[Asked] = deque()
        self._futures: dict[int, Future[Read]] = {}
        self._number = 0
        self._closed = False
        self._listener = Thread(target=self._listen, daemon=True)
        self._listener.start()

    @property
    def ready(self) -> bool:
        """Whether any process reads."""
        return any(one.ready for one in self._all)

    def takes(self, picture: Picture) -> bool:
        """Tell whether a process can read a picture: of very many people it takes much room."""
        return len(picture.units) <= min(_UNITS, len(self._shared)) and picture.boxes is None

    def submit(self, picture: Picture) -> Future[Read] | None:
        """Have a picture read once ``hand_out`` is called, or return None if there is no room."""
        need = len(picture.units)
        with self._lock:
            if need > len(self._places):
                return None
            places = [self._places.pop() for _ in range(need)]
            self._number += 1
            future: Future[Read] = Future()
            future.set_running_or_notify_cancel()
            self._futures[self._number] = future
            self._wanted.append(Asked(self._number, places, picture))
        return future

    def hand_out(self) -> None:
        """Give what waits to the processes that have least to do."""
        with self._lock:
            self._give()

    def _give(self) -> None:
        able = [one for one in self._all if one.ready]
        while self._wanted and able:
            least = min(able, key=lambda one: len(one.asked))
            if len(least.asked) > _AT_ONCE:
                return
            n = max(1, min(_AT_ONCE, len(self._wanted) // len(able)))
            part = [self._wanted.popleft() for _ in range(n)]
            least.asked.update((one.number, one) for one in part)
            with suppress(OSError):  # it is lost, as the listener will hear
                least.line.sendall(ask(part), socket.MSG_NOSIGNAL)

    def give_up(self, future: Future[Read]) -> bool:
        """End the process that is at a picture too long; False: none of them is."""
        with self._lock:
            number = next((k for k, one in self._futures.items() if one is future), None)
            for one in self._all if number is not None else ():
                if number in one.asked:
                    one.given_up = True
                    _hang_up(one.line)
        return number is not None

    def close(self) -> None:
        """End the processes."""
        with self._lock:
            self._closed = True
        self._server.end()
        self._listener.join(_PATIENCE)  # it closes the sockets

    def _listen(self) -> None:
        with selectors.DefaultSelector() as lines:
            for one in self._all:
                lines.register(one.line, selectors.EVENT_READ, one)
            while lines.get_map():
                for key, _ in lines.select():
                    self._listen_to(key.data, lines)

    def _listen_to(self, one: _Process, lines: selectors.BaseSelector) -> None:
        try:
            data = one.line.recv(_BUFFER)
        except OSError:
            data = b""
        if not data:
            lines.unregister(one.line)
            self._lost(one)
            return
        *whole, one.waiting = (one.waiting + data).split(b"\n")
        for line in whole:
            self._heard(one, json.loads(line))

    def _heard(self, one: _Process, told: list[list[Any]]) -> None:
        with self._lock:
            one.ready = True
            found = [(each, one.asked.pop(each[0]), self._futures.pop(each[0])) for each in told]
            self._give()
        for each, of, future in found:
            if len(each) == 1:
                self._free(of.places)
                self._read_instead(of.picture, future)
                continue
            read, unused = heard(each, of, self._shared.__getitem__, self._prepare)
            self._free(unused)
            read.free = partial(self._free, [k for k in of.places if k not in unused])
            future.set_result(read)

    def _lost(self, one: _Process) -> None:
        """Have what a process had read by threads; if it was the last, what waits as well."""
        with self._lock:
            self._all.remove(one)
            one.line.close()
            had = list(one.asked.values())
            if not one.given_up:  # else it may still write to its places
                self._places += [place for of in had for place in of.places]
            if not self._all:
                had += self._wanted
                self._wanted.clear()
            left = [(of.picture, self._futures.pop(of.number)) for of in had]
            if self._closed:
                return
            self._give()
        for picture, future in left:
            self._read_instead(picture, future)

    def _read_instead(self, picture: Picture, future: Future[Read]) -> None:
        self._instead(picture).add_done_callback(partial(_pass_on, future))

    def _free(self, places: Sequence[int]) -> None:
        with self._lock:
            self._places += places


def _pass_on(to: Future[Read], of: Future[Read]) -> None:
    error = of.exception()
    if error is None:
        to.set_result(of.result())
    else:
        to.set_exception(error)


def _hang_up(line: socket.socket) -> None:
    with suppress(OSError):
        line.shutdown(socket.SHUT_RDWR)
