"""Pictures for training: each is opened before the first step, and kept where all fit in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.io.cores import cores
from isolux.io.images import Pixels
from isolux.vocabulary import progress
from isolux.vocabulary.errors import SpecError

ROOM = 1 << 30
"""Bytes of prepared pictures that are kept in memory; beyond it each epoch opens them again."""
_AHEAD = 1_000  # pictures that are opened ahead of those that are kept


@dataclass(frozen=True, slots=True)
class Look:
    """One picture as it was opened: what is seen, the SHA-256 of its bytes; or why it is not."""

    pixels: Pixels | None
    sha256: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Looked:
    """What a first look found.

    Parameters
    ----------
    marks : [n] int64
        The first 63 bits of each file's SHA-256; 0 of one that could not be read.
    reasons : tuple of (str or None)
        Why a picture cannot be learnt from.
    """

    marks: npt.NDArray[np.int64]
    reasons: tuple[str | None, ...]

    def readable(self) -> npt.NDArray[np.bool_]:
        """Say which can be learnt from."""
        return np.array([reason is None for reason in self.reasons], dtype=bool)


@dataclass(slots=True)
class Pictures:
    """Prepared pictures by their row.

    Parameters
    ----------
    count : int
    open : callable
        The row's picture.
    prepare : callable
        ``[height, width, 3]`` of 8 bits to what the network is given, all of one shape.
    threads : int
        Threads that open pictures; 0: one per core.
    """

    count: int
    open: Callable[[int], Look]
    prepare: Callable[[Pixels], npt.NDArray[Any]]
    threads: int = 0
    _kept: list[npt.NDArray[Any] | None] = field(default_factory=list)

    def look(self) -> Looked:
        """Open every picture once; nothing is refused here."""
        marks = np.zeros(self.count, dtype=np.int64)
        reasons: list[str | None] = [None] * self.count
        self._kept, taken = [None] * self.count, 0
        with ThreadPoolExecutor(self._threads()) as pool:
            for start in range(0, self.count, _AHEAD):
                rows = range(start, min(start + _AHEAD, self.count))
                progress.at(f"opening pictures: {start:,} of {self.count:,}")
                for row, (look, values) in zip(rows, pool.map(self._seen, rows), strict=True):
                    reasons[row] = look.reason
                    if look.sha256 is not None:
                        marks[row] = int(look.sha256[:16], 16) >> 1
                    if values is not None and taken + values.nbytes <= ROOM:
                        self._kept[row] = values
                        taken += values.nbytes
        return Looked(marks, tuple(reasons))

    def batches(
        self, parts: Sequence[npt.NDArray[np.int64]]
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[Any]]]:
        """Give each part's rows and pictures ``[k, …]``, prepared ahead of the network."""
        threads = self._threads()
        with ThreadPoolExecutor(threads) as pool:
            waiting: list[tuple[npt.NDArray[np.int64], Future[npt.NDArray[Any]]]] = []
            for part in chain(parts, repeat(None, threads)):
                if part is not None:
                    waiting.append((part, pool.submit(self._batch, part)))
                if waiting and (part is None or len(waiting) > threads):
                    rows, values = waiting.pop(0)
                    yield rows, values.result()

    def _threads(self) -> int:
        return self.threads or cores()

    def _seen(self, row: int) -> tuple[Look, npt.NDArray[Any] | None]:
        look = self.open(row)
        return look, None if look.pixels is None else self.prepare(look.pixels)

    def _batch(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        shown = [self._values(int(row)) for row in rows]
        if len({one.shape for one in shown}) > 1:
            raise _several_shapes(shown)
        return np.stack(shown)

    def _values(self, row: int) -> npt.NDArray[Any]:
        kept = self._kept[row] if self._kept else None
        if kept is not None:
            return kept
        look, values = self._seen(row)
        if values is None:  # it was readable at first, and is not any more
            raise OSError(f"picture {row}: {look.reason}")
        return values


def _several_shapes(shown: Sequence[npt.NDArray[Any]]) -> SpecError:
    shapes = sorted({" × ".join(map(str, one.shape)) for one in shown})
    return SpecError(
        "the model prepares pictures to several shapes, and a step of a training needs one",
        expected="a model that brings every picture to one size",
        found=" and ".join(shapes[:2]),
        hint="bring pictures to one size in `prepare`; isolux train probe takes features of any",
    )
