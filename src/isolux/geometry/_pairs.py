"""Detections, annotated people, and the pairs of them that overlap enough.

Rows of all arrays are counted from 0; an image is a whole number from 0. Pairs are sorted by image,
then by detection, then by person, so that the pairs of an image are contiguous.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from isolux.core.errors import SpecError, TableError, format_location

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.integer[Any]]
BoolArray = npt.NDArray[np.bool_]

CERTAIN = 1 - 1e-10  # COCO's: a threshold of 1 still accepts an overlap that rounding spoiled


@dataclass(frozen=True, slots=True)
class Detections:
    """The predictions to be matched.

    Parameters
    ----------
    image : [n] int
        Index of the image, from 0.
    score : [n] float
        Confidence; higher is matched first, equal ones in the order given.
    label : [n] int, optional
        Index of the class, from 0. Default: any detection may find any person.

    Examples
    --------
    >>> Detections(np.array([0, 0, -1]), np.array([0.9, 0.5, 0.1]))
    Traceback (most recent call last):
    isolux.core.errors.TableError: an image index is negative
      expected: a whole number from 0
      found: -1
      where: detections, row 3, column 'image'
    """

    image: IntArray
    score: FloatArray
    label: IntArray | None = None

    def __post_init__(self) -> None:
        """Check every column once, so that the kernels need not."""
        table = "detections"
        object.__setattr__(self, "image", _check_index(self.image, table, "image"))
        score = np.asarray(self.score, dtype=np.float64)
        object.__setattr__(self, "score", _check_length(score, self.image, table, "score"))
        if not np.isfinite(score).all():
            row = int(np.argmin(np.isfinite(score)))
            raise TableError(
                "a detection's score is not a finite number",
                expected="a finite number; higher is matched first",
                found=str(score[row]),
                where=format_location(table, row + 1, "score"),
            )
        if self.label is not None:
            label = _check_length(self.label, self.image, table, "label")
            object.__setattr__(self, "label", _check_index(label, table, "label"))

    def __len__(self) -> int:
        return len(self.image)


@dataclass(frozen=True, slots=True)
class Truths:
    """The annotated people or objects.

    Parameters
    ----------
    image : [m] int
        Index of the image, from 0.
    ignore : [m] bool, optional
        True: a detection of this person is neither right nor wrong, and no recall counts them.
    crowd : [m] bool, optional
        True: many people under one outline. A crowd is ignored, any number of detections may fall
        on it, and the overlap is the share of the detection that lies within it.
    label : [m] int, optional
        Index of the class, from 0. Default: class-agnostic.
    """

    image: IntArray
    ignore: BoolArray | None = None
    crowd: BoolArray | None = None
    label: IntArray | None = None

    def __post_init__(self) -> None:
        """Check every column once, so that the kernels need not."""
        table = "people"
        object.__setattr__(self, "image", _check_index(self.image, table, "image"))
        for name in ("ignore", "crowd"):
            column_values = getattr(self, name)
            flags = (
                np.zeros(len(self.image), np.bool_)
                if column_values is None
                else np.asarray(column_values)
            )
            flags = _check_length(flags, self.image, table, name)
            if flags.dtype != np.bool_:
                raise SpecError(
                    f"the people's column {name!r} is not true or false",
                    expected="an array of bool",
                    found=str(flags.dtype),
                )
            object.__setattr__(self, name, flags)
        if self.label is not None:
            label = _check_length(self.label, self.image, table, "label")
            object.__setattr__(self, "label", _check_index(label, table, "label"))

    def __len__(self) -> int:
        return len(self.image)

    @property
    def is_crowd(self) -> BoolArray:
        """``[m]``: which of them are crowds."""
        return self.crowd if self.crowd is not None else np.zeros(len(self), np.bool_)

    @property
    def is_ignored(self) -> BoolArray:
        """``[m]``: those that count for no recall; every crowd is one."""
        # COCO ignores every crowd, whatever its field ``ignore``.
        ignored = self.is_crowd if self.ignore is None else self.ignore | self.is_crowd
        return np.asarray(ignored, dtype=np.bool_)


@dataclass(frozen=True, slots=True)
class OverlapPairs:
    """Every pair of a detection and a person of one image (and class) that overlaps enough.

    Parameters
    ----------
    image, detection, truth : [p] int
        The pair's image, row of the detection, row of the person. Sorted by all three.
    iou : [p] float
        Overlap, 0 to 1: intersection over union, or object keypoint similarity.
    lowest_iou : float
        Pairs below it were not looked for.
    n_detections, n_truths : int
        Rows of the two tables that the pairs point into.
    """

    image: IntArray
    detection: IntArray
    truth: IntArray
    iou: FloatArray
    lowest_iou: float
    n_detections: int
    n_truths: int

    def __len__(self) -> int:
        return len(self.iou)

    def select(self, keep: BoolArray) -> OverlapPairs:
        """Return the pairs for which ``keep [p]`` is true."""
        rows = np.flatnonzero(keep)
        return replace(
            self,
            image=self.image[rows],
            detection=self.detection[rows],
            truth=self.truth[rows],
            iou=self.iou[rows],
        )


@dataclass(frozen=True, slots=True)
class RowsByImage:
    """Rows of a table grouped by image: ``order[starts[i]:starts[i + 1]]`` are those of image i.

    ``in_order``: the table was sorted already, and ``order`` is empty instead of 0, 1, 2, …
    """

    starts: npt.NDArray[np.int64]
    order: npt.NDArray[np.int64]
    in_order: bool


def rows_by_image(image: IntArray, n_images: int) -> RowsByImage:
    """Group rows by image in linear time, keeping their order within an image.

    Examples
    --------
    >>> rows = rows_by_image(np.array([1, 0, 1]), 3)
    >>> rows.starts.tolist(), rows.order.tolist()
    ([0, 1, 3, 3], [1, 0, 2])
    """
    # The usual case: finding where each image begins costs less than sorting.
    if bool(np.all(image[1:] >= image[:-1])):
        edges = np.arange(n_images + 1, dtype=image.dtype)
        starts = np.searchsorted(image, edges).astype(np.int64)
        return RowsByImage(starts, np.empty(0, np.int64), in_order=True)
    from isolux.geometry._match_kernels import counting_sort

    starts = np.append(0, np.cumsum(np.bincount(image, minlength=n_images)))
    order = counting_sort(image.astype(np.int64, copy=False), starts)
    return RowsByImage(starts, order, in_order=False)


def is_class_aware(detections: Detections, truths: Truths) -> bool:
    """Return whether matching is class by class; refuse labels of one table alone."""
    if (detections.label is None) != (truths.label is None):
        raise SpecError(
            "only one of detections and people has class labels",
            expected="labels on both (matched class by class) or on neither (class-agnostic)",
        )
    return detections.label is not None


def find_in_image_chunks(
    find: Callable[[int, int], tuple[npt.NDArray[Any], ...]],
    starts: npt.NDArray[np.int64],
    n_threads: int,
) -> list[npt.NDArray[Any]]:
    """Run ``find(first_image, last_image)`` on chunks of images and join what it returns."""
    if n_threads < 1:
        raise SpecError("the number of threads is not positive", found=str(n_threads))
    n_images = len(starts) - 1
    if n_threads == 1 or n_images < 2:
        return list(find(0, n_images))
    # Four chunks a thread, of about as many rows each: images differ in how many people they have.
    shares = np.linspace(0, starts[-1], 4 * n_threads + 1)
    cuts = np.unique(np.concatenate([[0], np.searchsorted(starts, shares), [n_images]]))
    with ThreadPoolExecutor(n_threads) as pool:
        chunks = list(pool.map(find, cuts[:-1].tolist(), cuts[1:].tolist()))
    return [np.concatenate(columns) for columns in zip(*chunks, strict=True)]


def _check_index(values: npt.NDArray[Any], table: str, column: str) -> IntArray:
    """Return a column of non-negative integers; refuse any other."""
    indices = np.asarray(values)
    if not np.issubdtype(indices.dtype, np.integer) and len(indices):
        raise SpecError(
            f"the {table}' column {column!r} is not an index",
            expected="an array of whole numbers from 0",
            found=str(indices.dtype),
        )
    if len(indices) and indices.min() < 0:
        row = int(np.argmax(indices < 0))
        index_kind = "an image index" if column == "image" else "a class index"
        raise TableError(
            f"{index_kind} is negative",
            expected="a whole number from 0",
            found=str(indices[row]),
            where=format_location(table, row + 1, column),
        )
    # The kernels have signatures for signed integers only.
    return indices if np.issubdtype(indices.dtype, np.signedinteger) else indices.astype(np.int64)


def _check_length(
    values: npt.NDArray[Any], image: IntArray, table: str, column: str
) -> npt.NDArray[Any]:
    """Return a column; refuse one that is not as long as the images."""
    column_values = np.asarray(values)
    if column_values.shape != image.shape:
        raise SpecError(
            f"the {table}' column {column!r} is not as long as their images",
            expected=f"shape {image.shape}",
            found=f"shape {column_values.shape}",
        )
    return column_values
