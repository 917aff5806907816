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

from isolux.core.containers import Dataset
from isolux.core.errors import FileError, IsoluxError, SpecError
from isolux.core.tables import IMAGES
from isolux.io.image_folder import ImageFolder
from isolux.io.images import DownscaledImage, Pixels, read_downscaled

MAX_SIDE_PX = 1600
"""A picture is halved (by 2, 4 or 8) as long as its longer side stays as long as this."""

_BATCH_SIZE = 64  # pictures decoded ahead, so that a large dataset takes little memory
_WORKERS = max(1, min(4, os.cpu_count() or 1))
_ADDRESS = r"^[A-Za-z][A-Za-z0-9+.-]+://"
_FOLDER_HINT = "name the folder that holds them: --images FOLDER (images=…)"
OTHER_SIZE = "picture of another size than annotated"
"""Why there is nothing of a person whose picture is there."""

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ImageWithPeople:
    """One picture, and which rows of the people stand in it.

    Parameters
    ----------
    pixels : [height, width, 3] uint8
    rows : [n] int
        Rows of the people's frame.
    scale : float
        Side of an annotated pixel in pixels of this picture: 1, or less where it was halved.
    has_annotated_size : bool
        Whether boxes lie where they ought to: false where the picture has another size than the
        dataset says.
    """

    pixels: Pixels
    rows: npt.NDArray[np.int64]
    scale: float
    has_annotated_size: bool


MeasureImage = Callable[[ImageWithPeople], FloatArray]
"""One picture to ``[n, k]``: k numbers of each of its people; NaN: none."""


@dataclass(frozen=True, slots=True)
class ImageMeasurements:
    """Numbers of each person ``[n, k]`` (NaN: none), and why their picture gave none: ``[n]``."""

    values: FloatArray
    reason: npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class _ImageJob:
    path: str | None
    rows: npt.NDArray[np.int64]
    width: int | None
    height: int | None


def measure_people_in_images(
    dataset: Dataset,
    people: pl.DataFrame,
    measure_image: MeasureImage,
    n_measures: int,
    attribute: str,
) -> ImageMeasurements:
    """Open each picture that shows a person, once, and measure them."""
    measurements = ImageMeasurements(
        np.full((people.height, n_measures), np.nan), np.full(people.height, None, object)
    )
    if not people.height:
        return measurements
    jobs = _list_jobs_by_image(dataset, people, attribute)
    folder = ImageFolder(_find_image_root_or_raise(dataset, jobs, attribute))

    def measure_job(job: _ImageJob) -> tuple[_ImageJob, FloatArray | str]:
        try:
            return job, measure_image(_read_image_in_annotated_orientation(job, folder))
        except IsoluxError as error:
            return job, str(error).splitlines()[0]

    pending, n_opened = iter(jobs), 0
    with ThreadPoolExecutor(_WORKERS) as pool:
        while chunk := list(islice(pending, _BATCH_SIZE)):
            for job, values_or_error in pool.map(measure_job, chunk):
                if isinstance(values_or_error, str):
                    measurements.reason[job.rows] = values_or_error
                else:
                    measurements.values[job.rows] = values_or_error
                    n_opened += 1
    if not n_opened:
        raise SpecError(
            f"{attribute} cannot be computed: no picture could be read",
            expected=f"{_find_first_image_path(jobs)!r} below {folder.base}",
            found=f"{len(jobs):,} without a picture; "
            f"of the first: {measurements.reason[jobs[0].rows[0]]}",
            where=dataset.name,
            hint=_FOLDER_HINT,
        )
    return measurements


def _list_jobs_by_image(dataset: Dataset, people: pl.DataFrame, attribute: str) -> list[_ImageJob]:
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
    is_url = rows["path"].str.contains(_ADDRESS)
    if is_url.all():
        raise SpecError(
            f"{attribute} cannot be computed",
            expected="images with paths (uri)",
            found="web addresses, which are not opened",
            where=dataset.name,
        )
    rows = rows.with_columns(path=pl.when(~is_url).then("path"))
    return [
        _ImageJob(path, np.asarray(person_rows, dtype=np.int64), width, height)
        for path, person_rows, width, height in rows.select(
            "path", "row", "width", "height"
        ).iter_rows()
    ]


def _find_image_root_or_raise(dataset: Dataset, jobs: list[_ImageJob], attribute: str) -> str:
    if dataset.root is not None:
        return dataset.root
    raise SpecError(
        f"{attribute} cannot be computed: nothing says where the pictures are",
        expected=f"{_find_first_image_path(jobs)!r} with the dataset's files",
        found="no such file there nor in three folders above",
        where=dataset.name,
        hint=_FOLDER_HINT,
    )


def _find_first_image_path(jobs: list[_ImageJob]) -> str | None:
    return next((job.path for job in jobs if job.path), None)


def _read_image_in_annotated_orientation(job: _ImageJob, folder: ImageFolder) -> ImageWithPeople:
    """Open a picture, turned the way in which it has the annotated size."""
    if job.path is None:
        raise FileError("a web address, which is not opened")
    path = folder.find_file(job.path)
    image = read_downscaled(path, MAX_SIDE_PX)
    has_annotated_size = _has_annotated_size(image, job)
    if not has_annotated_size:
        unrotated = read_downscaled(path, MAX_SIDE_PX, exif_orientation=False)
        has_annotated_size = _has_annotated_size(unrotated, job)
        image = unrotated if has_annotated_size else image
    return ImageWithPeople(image.pixels, job.rows, 1.0 / image.factor, has_annotated_size)


def _has_annotated_size(image: DownscaledImage, job: _ImageJob) -> bool:
    """Tell whether a picture has the annotated size; one that is not annotated is believed."""
    side_pairs = zip(image.pixels.shape[:2], (job.height, job.width), strict=True)
    return all(
        annotated_px is None or actual_px == -(-annotated_px // image.factor)
        for actual_px, annotated_px in side_pairs
    )
