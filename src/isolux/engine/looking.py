"""One process's part of a run: pictures are read ahead, one model answers, shards follow."""

from __future__ import annotations

import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from isolux.engine.ahead import Ahead
from isolux.engine.answering import Answerer, Asked, Said
from isolux.engine.pictures import Picture
from isolux.engine.reading import Read
from isolux.engine.settings import Settings
from isolux.engine.shards import Shard, looks_table, shard_key
from isolux.io.picture_folder import PictureFolder
from isolux.models import Model

_BATCH_BYTES = 1 << 28  # of pictures in a batch: large ones go in smaller batches
_IN_FLIGHT = 3  # batches, of a model on a GPU: one it is at, one before, one after
_SWITCH = 2e-4
"""Seconds for which a thread may keep Python's lock while another waits: whatever feeds a GPU lets
go of it hundreds of times a batch, and would wait for Python's usual 5 ms each time."""


@dataclass(frozen=True, slots=True)
class Looked:
    """A shard's answers: one row a look (``looks_table``), and the key of their content."""

    shard: Shard
    key: str
    table: pl.DataFrame


@dataclass(slots=True)
class _Batch:
    """What the model is asked for at once, all of one shard.

    Parameters
    ----------
    shard : Shard
    reads : list of Read
        The shard's, up to here.
    looks : list of (Read, int)
        Those that are asked for, each by its place in what was read.
    began : float
        When the shard began.
    last : bool
        Whether the shard ends with it.
    """

    shard: Shard
    reads: list[Read]
    looks: list[tuple[Read, int]]
    began: float
    last: bool


class Looker:
    """A loaded model with the threads that read for it.

    Parameters
    ----------
    model : Model
    folder : PictureFolder
    run_key : str
        Of all that is the same for each shard.
    settings : Settings
    expected : int
        Pictures that it will be shown, as far as is known.
    """

    def __init__(
        self, model: Model, folder: PictureFolder, run_key: str, settings: Settings,
        *, expected: int = 0,
    ) -> None:  # fmt: skip
        self.model, self.run_key, self.settings = model, run_key, settings
        self.ahead = Ahead(model, folder, settings, expected)
        self.answerer = Answerer(model, settings.batch)
        self._begun: deque[Shard] = deque()
        self._free_since = 0.0  # when the model had answered a shard
        self._switch = sys.getswitchinterval()
        if self.ahead.apart:
            sys.setswitchinterval(min(_SWITCH, self._switch))

    def close(self) -> None:
        """Let the threads and processes end."""
        sys.setswitchinterval(self._switch)
        self.ahead.close()
        self.answerer.close()

    def key(self, shard: Shard) -> str:
        """Read a shard's pictures for their hashes alone, and return the key of its answers."""
        return shard_key(self.run_key, shard, self.ahead.hashes(shard.pictures))

    def looked(
        self, shards: Iterable[Shard], tell: Callable[[int], None] = lambda _: None
    ) -> Iterator[Looked]:
        """Give one shard's answers after the other's; readers go on into the shards that follow."""
        most = _IN_FLIGHT if self.ahead.apart and self.model.on_gpu else 1
        asked: deque[tuple[_Batch, Asked]] = deque()
        for batch in self._batches(shards):
            asked.append((batch, self._ask(batch)))
            while len(asked) >= most:
                yield from self._taken(asked, tell)
        while asked:
            yield from self._taken(asked, tell)

    def _taken(
        self, asked: deque[tuple[_Batch, Asked]], tell: Callable[[int], None]
    ) -> Iterator[Looked]:
        """Take the answers to the batch that was asked for first."""
        batch, first = asked.popleft()
        hung = self.answerer.hung
        told = self.answerer.answered(first, self._deadline(batch))
        for read, k in batch.looks:  # the model has seen them
            read.shown[k] = None
        if batch.last:
            self._free_since = time.monotonic()
        if self.answerer.hung != hung:  # what waits behind it never comes
            again = [(later, self._ask(later)) for later, _ in asked]
            asked.clear()
            asked.extend(again)
        yield from self._put(batch, told(), tell)

    def _batches(self, shards: Iterable[Shard]) -> Iterator[_Batch]:
        """Take the pictures that were read, as many as the model is asked for at once."""
        self._begun.clear()
        self.ahead.follow(self._pictures(shards))
        while self._begun:
            shard, began = self._begun.popleft(), time.monotonic()
            reads: list[Read] = []
            looks: list[tuple[Read, int]] = []
            room = 0
            for picture in shard.pictures:
                read = self.ahead.next(picture, began + self.settings.time_limit)
                reads.append(read)
                looks += [(read, k) for k, said in enumerate(read.said) if said is None]
                room += read.n_bytes
                if len(looks) >= self.settings.batch or room > _BATCH_BYTES:
                    yield _Batch(shard, reads[:], looks, began, last=False)
                    looks, room = [], 0
                self.ahead.refill()
            yield _Batch(shard, reads, looks, began, last=True)
            self.ahead.refill()

    def _pictures(self, shards: Iterable[Shard]) -> Iterator[Picture]:
        for shard in shards:
            self._begun.append(shard)
            yield from shard.pictures

    def _ask(self, batch: _Batch) -> Asked:
        shown = [read.shown[k] for read, k in batch.looks]
        return self.answerer.begun(shown, self._deadline(batch))

    def _deadline(self, batch: _Batch) -> float:
        """Say until when a shard has time, whose clock stands while one before it is answered."""
        return max(batch.began, self._free_since) + self.settings.time_limit

    def _put(
        self, batch: _Batch, found: list[Said], tell: Callable[[int], None]
    ) -> Iterator[Looked]:
        """Put a batch's answers into its shard, and give the shard where it is whole."""
        for (read, k), said in zip(batch.looks, found, strict=True):
            read.said[k] = said
        if not batch.last:
            tell(len(batch.reads))
            return
        key = shard_key(self.run_key, batch.shard, [read.opened.sha256 for read in batch.reads])
        yield Looked(batch.shard, key, _table(batch.reads, self.model.predicts))


def _table(reads: Sequence[Read], kind: str) -> pl.DataFrame:
    """Make the table of a shard, one row a look."""
    rows = [
        (unit.id, read.opened.picture.image_id, read.opened.sha256, read.opened.width,
         read.opened.height, said.reason, said.fault, said.answers)
        for read in reads
        for unit, said in zip(read.opened.picture.units, read.said, strict=True)
        if said is not None
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=looks_table(kind).schema, orient="row")
