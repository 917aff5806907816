"""The executor of one machine: threads read and prepare ahead, one model answers, shards follow."""

from __future__ import annotations

import os
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from isolux.engine.answering import Answerer, Said
from isolux.engine.pictures import Opened, Picture, hash_picture, open_picture
from isolux.engine.readers import Readers
from isolux.engine.shards import Shard, looks_table, shard_key
from isolux.engine.store import Store
from isolux.io.picture_folder import PictureFolder
from isolux.models import Model
from isolux.vocabulary.errors import InputError

__all__ = ["Progress", "Ran", "Settings", "run_local"]

Progress = Callable[[int, int, int], None]
"""Called with how many pictures are done, of how many, and how many of them were looked at now."""

_WAIT_BYTES = 1 << 29  # of pictures that wait for the model
_BATCH_BYTES = 1 << 28  # of pictures in a batch: large ones go in smaller batches
_SHOWN = 3  # reasons in an error


@dataclass(frozen=True, slots=True)
class Settings:
    """How a run is done. Of these only ``batch`` and ``box_factor`` can move an answer.

    Parameters
    ----------
    batch : int
        Looks at a time, at most.
    readers : int or None
        Threads that read ahead; None: one a core, at most 4.
    time_limit : float
        Seconds a shard.
    max_failures : float
        The share of looks, 0 to 1, that may remain without an answer.
    box_factor : float
        See ``open_picture``.
    """

    batch: int = 16
    readers: int | None = None
    time_limit: float = 1800.0
    max_failures: float = 0.05
    box_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Ran:
    """What became of a run: every shard with its key, how many were computed, whether it ended."""

    keys: list[tuple[Shard, str]]
    computed: int
    pictures: int
    whole: bool
    batch: int


@dataclass(slots=True)
class _Read:
    """A picture that was read ahead: what the model is shown of it, and the room that takes."""

    opened: Opened
    shown: list[Any]
    said: list[Said | None]
    n_bytes: int = 0


def run_local(
    model: Model,
    shards: Sequence[Shard],
    folder: PictureFolder,
    store: Store,
    run_key: str,
    settings: Settings,
    *,
    tell: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> Ran:
    """Predict the shards that the store lacks, and commit each of them.

    Parameters
    ----------
    model : Model
    shards : sequence of Shard
    folder : PictureFolder
    store : Store
        Opened by the caller.
    run_key : str
        Of all that is the same for each shard.
    settings : Settings
    tell : callable, optional
        See ``Progress``.
    stop : callable, optional
        Asked after each shard; true ends the run there.

    Raises
    ------
    InputError
        More looks without an answer than ``max_failures`` allows.
    OutputError
        A shard cannot be written.
    IsoluxError
        The model gives what it should not.
    """
    run = _Run(model, shards, folder, store, run_key, settings, tell or (lambda *_: None))
    try:
        return run.done(stop or (lambda: False))
    finally:
        run.close()


@dataclass
class _Run:
    model: Model
    shards: Sequence[Shard]
    folder: PictureFolder
    store: Store
    run_key: str
    settings: Settings
    tell: Progress
    keys: dict[int, str] = field(default_factory=dict)
    failures: Counter[str] = field(default_factory=Counter)
    example: str = ""
    computed: int = 0
    pictures: int = 0

    def __post_init__(self) -> None:
        count = self.settings.readers or max(1, min(4, os.cpu_count() or 1))
        self.readers = Readers(count)
        self.answerer = Answerer(self.model, self.settings.batch)
        self.depth = self.settings.batch + 2 * count
        self.total = sum(len(shard.pictures) for shard in self.shards)
        self.looks = sum(len(p.units) for shard in self.shards for p in shard.pictures)
        self.there = self.store.committed()
        self.begun: deque[Shard] = deque()
        self.ahead: deque[Future[_Read]] = deque()
        self.coming = self._coming()

    def close(self) -> None:
        self.readers.close()
        self.answerer.close()

    def done(self, stop: Callable[[], bool]) -> Ran:
        self._refill()
        while self.begun and not stop():
            self._compute(self.begun.popleft())
            self._refill()
        keys = [(s, self.keys[s.index]) for s in self.shards if s.index in self.keys]
        whole = len(keys) == len(self.shards)
        return Ran(keys, self.computed, self.pictures, whole, self.answerer.batch)

    def _coming(self) -> Iterator[Picture]:
        """Give the pictures of the shards that must be computed, and pass over the others."""
        for shard in self.shards:
            if self._is_there(shard):
                self._tell()
                continue
            self.begun.append(shard)
            yield from shard.pictures

    def _is_there(self, shard: Shard) -> bool:
        """Tell whether a shard was committed of the very same content."""
        candidates = self.there.get(shard.index)
        if not candidates:
            return False
        waiting = [self.readers.submit(lambda p=p: hash_picture(p, self.folder))  # type: ignore[misc]
                   for p in shard.pictures]  # fmt: skip
        key = shard_key(self.run_key, shard, [future.result() for future in waiting])
        if not any(key.startswith(one) for one in candidates):
            return False
        faults = self.store.faults(shard, key)
        if faults is None or (faults != "picture").any():
            return False  # what hung or raised is tried once more
        self.keys[shard.index] = key
        self.failures["a picture that could not be used, as the run before found"] += len(faults)
        return True

    def _refill(self) -> None:
        """Keep the readers busy, a bounded number of pictures and bytes ahead of the model."""
        while len(self.ahead) < self.depth:
            held = sum(f.result().n_bytes for f in self.ahead if f.done() and not f.exception())
            if held > _WAIT_BYTES:
                return
            picture = next(self.coming, None)
            if picture is None:
                return
            self.ahead.append(self.readers.submit(lambda p=picture: self._read(p)))  # type: ignore[misc]

    def _read(self, picture: Picture) -> _Read:
        """Do what threads do ahead of the model: read, unpack, cut out, prepare."""
        opened = open_picture(picture, self.folder, self.settings.box_factor)
        prepare = getattr(self.model.predictor, "prepare", None)
        # Without its cuts: a shard of large pictures would fill the memory until it is committed.
        read = _Read(replace(opened, cuts=()), [], [])
        for cut in opened.cuts:
            if cut.pixels is None:
                read.shown.append(None)
                read.said.append(Said(None, cut.reason, "picture"))
                continue
            try:
                # A model of poses is given people's boxes with the picture (``by_box``).
                boxes = () if picture.boxes is None else (picture.boxes,)
                shown = cut.pixels if prepare is None else prepare(cut.pixels, *boxes)
            except Exception as error:  # noqa: BLE001 - whatever a model raises is its own
                why = (str(error).splitlines() or [""])[0][:200]
                read.shown.append(None)
                read.said.append(
                    Said(None, f"the model's preparation raised {type(error).__name__}: {why}",
                         "model")
                )  # fmt: skip
                continue
            read.shown.append(shown)
            read.said.append(None)
            read.n_bytes += shown.nbytes if isinstance(shown, np.ndarray) else cut.pixels.nbytes
        return read

    def _compute(self, shard: Shard) -> None:
        """Predict one shard and commit it."""
        deadline = time.monotonic() + self.settings.time_limit
        reads: list[_Read] = []
        batch: list[tuple[_Read, int]] = []
        room = 0
        for picture in shard.pictures:
            read = self._next(picture, deadline)
            reads.append(read)
            batch += [(read, k) for k, said in enumerate(read.said) if said is None]
            room += read.n_bytes
            if len(batch) >= self.settings.batch or room > _BATCH_BYTES:
                self._answer(batch, deadline)
                batch, room = [], 0
                self._tell(len(reads))
            self._refill()
        self._answer(batch, deadline)
        key = shard_key(self.run_key, shard, [read.opened.sha256 for read in reads])
        self.store.commit(shard, key, _looks(reads, self.model.predicts))
        self.keys[shard.index] = key
        self.computed += 1
        self.pictures += len(shard.pictures)
        self._tell()
        self._count(reads)

    def _next(self, picture: Picture, deadline: float) -> _Read:
        if not self.ahead:
            self._refill()
        future = self.ahead.popleft()
        try:
            return future.result(timeout=max(deadline - time.monotonic(), 0.0))
        except TimeoutError:
            future.cancel()
            self.readers.more()
            late = Said(None, "not read within the time limit of its shard", "time")
            n = len(picture.units)
            return _Read(Opened(picture, None, None, None, ()), [None] * n, [late] * n)

    def _answer(self, batch: list[tuple[_Read, int]], deadline: float) -> None:
        if not batch:
            return
        found = self.answerer.ask([read.shown[k] for read, k in batch], deadline)
        for (read, k), said in zip(batch, found, strict=True):
            read.said[k], read.shown[k] = said, None  # the picture is not needed any more

    def _tell(self, begun: int = 0) -> None:
        """Say how far it is; ``begun`` pictures of the shard at hand are answered."""
        done = sum(len(self.shards[index].pictures) for index in self.keys)
        self.tell(done + begun, self.total, self.pictures + begun)

    def _count(self, reads: Sequence[_Read]) -> None:
        """Stop where too many looks have no answer: something is wrong with all of them."""
        for read in reads:
            for unit, said in zip(read.opened.picture.units, read.said, strict=True):
                if said is not None and said.reason is not None:
                    self.example = self.example or f"{unit.id!r}: {said.reason}"
                    self.failures[said.reason] += 1
        failed = self.failures.total()
        if failed <= self.settings.max_failures * self.looks:
            return
        told = ", ".join(f"{n:,} × {why}" for why, n in self.failures.most_common(_SHOWN))
        raise InputError(
            "too many pictures have no answer",
            expected=f"at most {self.settings.max_failures:.3g} of {self.looks:,} (--max-failures)",
            found=f"{failed:,} so far: {told}; the first: {self.example}",
            where=str(self.store.folder),
            hint="`isolux check` finds broken pictures; what was answered is kept",
        )


def _looks(reads: Sequence[_Read], kind: str) -> pl.DataFrame:
    """Make the table of a shard, one row a look."""
    rows = [
        (unit.id, read.opened.picture.image_id, read.opened.sha256, read.opened.width,
         read.opened.height, said.reason, said.fault, said.answers)
        for read in reads
        for unit, said in zip(read.opened.picture.units, read.said, strict=True)
        if said is not None
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=looks_table(kind).schema, orient="row")
