"""One process's part of a run: threads read and prepare ahead, one model answers, shards follow."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from isolux.engine.answering import Answerer, Said
from isolux.engine.pictures import Opened, Picture, hash_picture, open_picture
from isolux.engine.readers import Readers
from isolux.engine.settings import Settings
from isolux.engine.shards import Shard, looks_table, shard_key
from isolux.io.cores import cores
from isolux.io.picture_folder import PictureFolder
from isolux.models import Model

__all__ = ["Looked", "Looker"]

_READERS = 8  # threads at most: with more of them the model's own waits for Python's lock
_WAIT_BYTES = 1 << 29  # of pictures that wait for the model
_BATCH_BYTES = 1 << 28  # of pictures in a batch: large ones go in smaller batches


@dataclass(frozen=True, slots=True)
class Looked:
    """A shard's answers: one row a look (``looks_table``), and the key of their content."""

    shard: Shard
    key: str
    table: pl.DataFrame


@dataclass(slots=True)
class _Read:
    """A picture that was read ahead: what the model is shown of it, and the room that takes."""

    opened: Opened
    shown: list[Any]
    said: list[Said | None]
    n_bytes: int = 0


class Looker:
    """A loaded model with the threads that read for it.

    Parameters
    ----------
    model : Model
    folder : PictureFolder
    run_key : str
        Of all that is the same for each shard.
    settings : Settings
    """

    def __init__(
        self, model: Model, folder: PictureFolder, run_key: str, settings: Settings
    ) -> None:
        self.model, self.folder, self.run_key, self.settings = model, folder, run_key, settings
        count = settings.readers or max(1, min(_READERS, cores()))
        self.readers = Readers(count)
        self.answerer = Answerer(model, settings.batch)
        self._depth = settings.batch + 2 * count
        self._held, self._counting = 0, threading.Lock()  # bytes that wait for the model
        self._begun: deque[Shard] = deque()
        self._ahead: deque[Future[_Read]] = deque()
        self._coming: Iterator[Picture] = iter(())

    def close(self) -> None:
        """Let the threads end."""
        self.readers.close()
        self.answerer.close()

    def key(self, shard: Shard) -> str:
        """Read a shard's pictures for their hashes alone, and return the key of its answers."""
        waiting = [self.readers.submit(lambda p=p: hash_picture(p, self.folder))  # type: ignore[misc]
                   for p in shard.pictures]  # fmt: skip
        return shard_key(self.run_key, shard, [future.result() for future in waiting])

    def looked(
        self, shards: Iterable[Shard], tell: Callable[[int], None] = lambda _: None
    ) -> Iterator[Looked]:
        """Give one shard's answers after the other's; readers go on into the shards that follow.

        Parameters
        ----------
        shards : iterable of Shard
            Taken as pictures are needed.
        tell : callable
            Called with how many pictures of the shard at hand are answered.

        Raises
        ------
        IsoluxError
            The model gives what it should not.
        """
        self._begun.clear()
        self._ahead.clear()
        self._coming = self._pictures(shards)
        self._refill()
        while self._begun:
            yield self._compute(self._begun.popleft(), tell)
            self._refill()

    def _pictures(self, shards: Iterable[Shard]) -> Iterator[Picture]:
        for shard in shards:
            self._begun.append(shard)
            yield from shard.pictures

    def _refill(self) -> None:
        """Keep the readers busy, a bounded number of pictures and bytes ahead of the model."""
        while len(self._ahead) < self._depth:
            if self._held > _WAIT_BYTES and self._ahead:
                return
            picture = next(self._coming, None)
            if picture is None:
                return
            self._ahead.append(self.readers.submit(lambda p=picture: self._read(p)))  # type: ignore[misc]

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
            taken = getattr(shown, "nbytes", None)
            read.n_bytes += taken if isinstance(taken, int) else cut.pixels.nbytes
        self._hold(read.n_bytes)
        return read

    def _let_go(self, future: Future[_Read]) -> None:
        if not future.exception():
            self._hold(-future.result().n_bytes)

    def _hold(self, n_bytes: int) -> None:
        with self._counting:
            self._held += n_bytes

    def _compute(self, shard: Shard, tell: Callable[[int], None]) -> Looked:
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
                tell(len(reads))
            self._refill()
        self._answer(batch, deadline)
        key = shard_key(self.run_key, shard, [read.opened.sha256 for read in reads])
        return Looked(shard, key, _table(reads, self.model.predicts))

    def _next(self, picture: Picture, deadline: float) -> _Read:
        if not self._ahead:
            self._refill()
        future = self._ahead.popleft()
        try:
            read = future.result(timeout=max(deadline - time.monotonic(), 0.0))
        except TimeoutError:
            if not future.cancel():  # it is let go when it comes after all
                future.add_done_callback(self._let_go)
            self.readers.more()
            late = Said(None, "not read within the time limit of its shard", "time")
            n = len(picture.units)
            return _Read(Opened(picture, None, None, None, ()), [None] * n, [late] * n)
        self._hold(-read.n_bytes)
        return read

    def _answer(self, batch: list[tuple[_Read, int]], deadline: float) -> None:
        if not batch:
            return
        found = self.answerer.ask([read.shown[k] for read, k in batch], deadline)
        for (read, k), said in zip(batch, found, strict=True):
            read.said[k], read.shown[k] = said, None  # the picture is not needed any more


def _table(reads: Sequence[_Read], kind: str) -> pl.DataFrame:
    """Make the table of a shard, one row a look."""
    rows = [
        (unit.id, read.opened.picture.image_id, read.opened.sha256, read.opened.width,
         read.opened.height, said.reason, said.fault, said.answers)
        for read in reads
        for unit, said in zip(read.opened.picture.units, read.said, strict=True)
        if said is not None
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=looks_table(kind).schema, orient="row")
