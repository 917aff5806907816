"""Training images: scanned before the first step, and cached in memory as far as they fit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.core import progress
from isolux.core.errors import SpecError
from isolux.io.cpu_count import count_cores
from isolux.io.images import Pixels

MAX_CACHE_BYTES = 1 << 30
"""Bytes of prepared images in the cache; images beyond it are opened in each epoch."""
_SCAN_CHUNK = 1_000  # images per chunk of the scan


@dataclass(frozen=True, slots=True)
class DecodedTrainingImage:
    """A decoded image with the SHA-256 of its bytes, or the reason why it is unreadable."""

    pixels: Pixels | None
    sha256: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class ImageScan:
    """Result of the scan of all images.

    Parameters
    ----------
    hashes : [n] int64
        The first 63 bits of each file's SHA-256; 0 of one that could not be read.
    reasons : tuple of (str or None)
        Why a picture cannot be learnt from.
    """

    hashes: npt.NDArray[np.int64]
    reasons: tuple[str | None, ...]

    def is_readable(self) -> npt.NDArray[np.bool_]:
        """Return the mask of readable images."""
        return np.array([reason is None for reason in self.reasons], dtype=bool)


@dataclass(slots=True)
class TrainingImages:
    """Prepared images by row.

    Parameters
    ----------
    n_images : int
    decode : callable
        The row's picture.
    prepare : callable
        ``[height, width, 3]`` of 8 bits to what the network is given, all of one shape.
    threads : int
        Threads that open pictures; 0: one per core.
    """

    n_images: int
    decode: Callable[[int], DecodedTrainingImage]
    prepare: Callable[[Pixels], npt.NDArray[Any]]
    threads: int = 0
    _cached: list[npt.NDArray[Any] | None] = field(default_factory=list)

    def scan(self) -> ImageScan:
        """Scan every image once; unreadable ones are recorded, not refused."""
        hashes = np.zeros(self.n_images, dtype=np.int64)
        reasons: list[str | None] = [None] * self.n_images
        self._cached, n_cached_bytes = [None] * self.n_images, 0
        with ThreadPoolExecutor(self._choose_n_threads()) as pool:
            for start in range(0, self.n_images, _SCAN_CHUNK):
                rows = range(start, min(start + _SCAN_CHUNK, self.n_images))
                progress.report_step(f"opening pictures: {start:,} of {self.n_images:,}")
                for row, (decoded_image, values) in zip(
                    rows, pool.map(self._decode_and_prepare_or_none, rows), strict=True
                ):
                    reasons[row] = decoded_image.reason
                    if decoded_image.sha256 is not None:
                        hashes[row] = int(decoded_image.sha256[:16], 16) >> 1
                    if values is not None and n_cached_bytes + values.nbytes <= MAX_CACHE_BYTES:
                        self._cached[row] = values
                        n_cached_bytes += values.nbytes
        return ImageScan(hashes, tuple(reasons))

    def iterate_prepared_batches(
        self, row_batches: Sequence[npt.NDArray[np.int64]]
    ) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[Any]]]:
        """Give each part's rows and pictures ``[k, …]``, prepared ahead of the network."""
        threads = self._choose_n_threads()
        with ThreadPoolExecutor(threads) as pool:
            waiting: list[tuple[npt.NDArray[np.int64], Future[npt.NDArray[Any]]]] = []
            for batch_rows in chain(row_batches, repeat(None, threads)):
                if batch_rows is not None:
                    waiting.append(
                        (batch_rows, pool.submit(self._stack_prepared_images, batch_rows))
                    )
                if waiting and (batch_rows is None or len(waiting) > threads):
                    rows, values = waiting.pop(0)
                    yield rows, values.result()

    def _choose_n_threads(self) -> int:
        return self.threads or count_cores()

    def _decode_and_prepare_or_none(
        self, row: int
    ) -> tuple[DecodedTrainingImage, npt.NDArray[Any] | None]:
        decoded_image = self.decode(row)
        return decoded_image, None if decoded_image.pixels is None else self.prepare(
            decoded_image.pixels
        )

    def _stack_prepared_images(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        arrays = [self._read_prepared_image(int(row)) for row in rows]
        if len({array.shape for array in arrays}) > 1:
            raise _build_different_shapes_error(arrays)
        return np.stack(arrays)

    def _read_prepared_image(self, row: int) -> npt.NDArray[Any]:
        cached_values = self._cached[row] if self._cached else None
        if cached_values is not None:
            return cached_values
        decoded, values = self._decode_and_prepare_or_none(row)
        if values is None:  # readable in the scan, but not any more
            raise OSError(f"picture {row}: {decoded.reason}")
        return values


def _build_different_shapes_error(arrays: Sequence[npt.NDArray[Any]]) -> SpecError:
    shapes = sorted({" × ".join(map(str, array.shape)) for array in arrays})
    return SpecError(
        "the model prepares pictures to several shapes, and a step of a training needs one",
        expected="a model that brings every picture to one size",
        found=" and ".join(shapes[:2]),
        hint="bring pictures to one size in `prepare`; isolux train probe takes features of any",
    )
