"""Pictures of a dataset, opened one after the other: each once, a few at a time, none kept.

What is computed from pixels (``pixels``, ``skin_tone``) hands a function in and gets a number or
a reason for each person. Threads pay, as unpacking a picture and the kernels leave Python's lock;
as many pictures are in memory as there are threads, and large ones are made smaller.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.io.images import Pixels, Shrunk, read_shrunk
from isolux.io.picture_folder import PictureFolder
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, IsoluxError, SpecError
from isolux.vocabulary.tables import IMAGES

LONGEST_PX = 1600
"""A picture is halved (by 2, 4 or 8) as long as its longer side stays as long as this."""

_AT_ONCE = 64  # pictures decoded ahead, so that a large dataset takes little memory
_WORKERS = max(1, min(4, os.cpu_count() or 1))
_ADDRESS = r"^[A-Za-z][A-Za-z0-9+.-]+://"
_OPTION = "name the folder that holds them: --images FOLDER (images=…)"
OTHER_SIZE = "picture of another size than annotated"
"""Why there is nothing of a person whose picture is there."""

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Seen:
    """One picture, and which rows of the people stand in it.

    Parameters
    ----------
    pixels : [height, width, 3] uint8
    rows : [n] int
        Rows of the people's frame.
    scale : float
        Side of an annotated pixel in pixels of this picture: 1, or less where it was halved.
    placed : bool
        Whether boxes lie where they ought to: false where the picture has another size than the
        dataset says.
    """

    pixels: Pixels
    rows: npt.NDArray[np.int64]
    scale: float
    placed: bool


Measure = Callable[[Seen], FloatArray]
"""One picture to ``[n, k]``: k numbers of each of its people; NaN: none."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Numbers of each person ``[n, k]`` (NaN: none), and why their picture gave none: ``[n]``."""

    values: FloatArray
    reason: npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class _Job:
    path: str | None
    rows: npt.NDArray[np.int64]
    width: int | None
    height: int | None


def measure_pictures(
    dataset: Dataset, people: pl.DataFrame, measure: Measure, k: int, what: str
) -> Measured:
    """Open each picture that shows a person, once, and measure them."""
    found = Measured(np.full((people.height, k), np.nan), np.full(people.height, None, object))
    if not people.height:
        return found
    jobs = _jobs(dataset, people, what)
    folder = PictureFolder(_root(dataset, jobs, what))

    def one(job: _Job) -> tuple[_Job, FloatArray | str]:
        try:
            return job, measure(_opened(job, folder))
        except IsoluxError as error:
            return job, str(error).splitlines()[0]

    pending, opened = iter(jobs), 0
    with ThreadPoolExecutor(_WORKERS) as pool:
        while chunk := list(islice(pending, _AT_ONCE)):
            for job, result in pool.map(one, chunk):
                if isinstance(result, str):
                    found.reason[job.rows] = result
                else:
                    found.values[job.rows] = result
                    opened += 1
    if not opened:
        raise SpecError(
            f"{what} cannot be computed: no picture could be read",
            expected=f"{_first_path(jobs)!r} below {folder.base}",
            found=f"{len(jobs):,} without a picture; of the first: {found.reason[jobs[0].rows[0]]}",
            where=dataset.name,
            hint=_OPTION,
        )
    return found


def _jobs(dataset: Dataset, people: pl.DataFrame, what: str) -> list[_Job]:
    """List the pictures in the order of their people."""
    images = IMAGES.conform(dataset.images).unique("image_id", keep="first", maintain_order=True)
    rows = (
        people.select("image_id")
        .with_row_index("row")
        .group_by("image_id", maintain_order=True)
        .agg("row")
        .join(images, on="image_id", how="left", maintain_order="left")
        .with_columns(path=pl.coalesce("uri", "image_id"))
    )
    away = rows["path"].str.contains(_ADDRESS)
    if away.all():
        raise SpecError(
            f"{what} cannot be computed",
            expected="images with paths (uri)",
            found="web addresses, which are not opened",
            where=dataset.name,
        )
    rows = rows.with_columns(path=pl.when(~away).then("path"))
    return [
        _Job(path, np.asarray(own, dtype=np.int64), width, height)
        for path, own, width, height in rows.select("path", "row", "width", "height").iter_rows()
    ]


def _root(dataset: Dataset, jobs: list[_Job], what: str) -> str:
    if dataset.root is not None:
        return dataset.root
    raise SpecError(
        f"{what} cannot be computed: nothing says where the pictures are",
        expected=f"{_first_path(jobs)!r} with the dataset's files",
        found="no such file there nor in three folders above",
        where=dataset.name,
        hint=_OPTION,
    )


def _first_path(jobs: list[_Job]) -> str | None:
    return next((job.path for job in jobs if job.path), None)


def _opened(job: _Job, folder: PictureFolder) -> Seen:
    """Open a picture, turned the way in which it has the annotated size."""
    if job.path is None:
        raise FileError("a web address, which is not opened")
    path = folder.file(job.path)
    shown = read_shrunk(path, LONGEST_PX)
    placed = _has_size(shown, job)
    if not placed:
        lying = read_shrunk(path, LONGEST_PX, exif_orientation=False)
        placed = _has_size(lying, job)
        shown = lying if placed else shown
    return Seen(shown.pixels, job.rows, 1.0 / shown.factor, placed)


def _has_size(shown: Shrunk, job: _Job) -> bool:
    """Tell whether a picture has the annotated size; one that is not annotated is believed."""
    sides = zip(shown.pixels.shape[:2], (job.height, job.width), strict=True)
    return all(side is None or has == -(-side // shown.factor) for has, side in sides)
