"""WIDER FACE's ground truth as columns: its text list, its MATLAB lists, its three levels.

Yang et al. (2016). All give the same boxes in the same order; a face is known by its image and
its place in that image's list.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.datasets._columns import BOX
from isolux.datasets._mat.files import read_mat5
from isolux.io.cells import row_of
from isolux.io.refusals import refuse_repeats
from isolux.io.text import decodable
from isolux.vocabulary.errors import FileError, TableError, place

LABELS: dict[str, tuple[str, ...]] = {
    "blur": ("clear", "normal", "heavy"),
    "expression": ("typical", "exaggerate"),
    "illumination": ("normal", "extreme"),
    "invalid": ("false", "true"),
    "occlusion": ("none", "partial", "heavy"),
    "pose": ("typical", "atypical"),
}
"""Label to the words for its codes 0, 1, 2, in the order of the text file's columns."""

_NUMBERS = (*BOX, *LABELS)
_NAMED = ("event_list", "file_list")
_LABEL_LISTS = {name: f"{name}_label_list" for name in LABELS}


def read_text(data: bytes, where: str) -> pl.DataFrame:
    """Parse ``wider_face_*_bbx_gt.txt``: an image's name, its number of boxes, then the boxes."""
    text = decodable(data, where).decode("utf-8")
    lines = [line.strip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    names: list[str] = []
    counts: list[int] = []
    first: list[int] = []
    at = 0
    while at < len(lines):
        name, count = lines[at], _count(lines, at, where)
        names.append(name)
        counts.append(count)
        first.append(at + 2)
        at += 2 + count
        # Images without boxes are followed by one dummy line of zeros.
        if count == 0 and at < len(lines) and not lines[at].strip("0 "):
            at += 1
    if not names:
        raise FileError("the file lists no image", where=where)
    return _faces(names, np.array(counts), _boxes(lines, counts, first, where), where)


def _count(lines: Sequence[str], at: int, where: str) -> int:
    if "/" not in lines[at]:
        raise FileError(
            "an image's name was expected",
            expected="event/image.jpg after the last box of the image before",
            found=repr(lines[at][:60]),
            where=place(where, at + 1),
            hint="the number of boxes of the image before may be wrong",
        )
    text = lines[at + 1] if at + 1 < len(lines) else ""
    count = int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else -1
    if count < 0 or at + 2 + count > len(lines):
        raise FileError(
            "an image has no usable number of boxes",
            expected="a whole number, and as many lines after it",
            found=repr(text[:60]) + (", and the file is cut off" if count >= 0 else ""),
            where=place(where, at + 2),
        )
    return count


def _boxes(
    lines: Sequence[str], counts: Sequence[int], first: Sequence[int], where: str
) -> npt.NDArray[np.int64]:
    """Read the lines of boxes: [N, 10], x, y, width, height and six labels."""
    pairs = zip(first, counts, strict=True)
    numbers = np.concatenate([np.arange(start, start + n) for start, n in pairs])
    rows = pl.Series(lines, dtype=pl.String).gather(numbers)
    parts = rows.str.split(" ").list.eval(pl.element().filter(pl.element() != ""))
    cells = parts.list.eval(pl.element().cast(pl.Int64, strict=False))
    good = (cells.list.len() == len(_NUMBERS)) & ~cells.list.eval(pl.element().is_null()).list.any()
    if not good.all():
        row = row_of(~good)
        raise TableError(
            "a box cannot be read",
            expected="ten whole numbers: x y w h " + " ".join(LABELS),
            found=repr(rows[row][:80]),
            where=place(where, int(numbers[row]) + 1),
        )
    return cells.explode().to_numpy().reshape(-1, len(_NUMBERS)) if len(cells) else _NO_BOX


_NO_BOX = np.empty((0, len(_NUMBERS)), dtype=np.int64)


def lists_of_mat(data: bytes, where: str) -> pl.DataFrame:
    """Parse ``wider_face_*.mat``: the same rows as ``read_text`` gives."""
    mat = read_mat5(data, where, [*_NAMED, "face_bbx_list", *_LABEL_LISTS.values()])
    names = _image_names(mat, where)
    boxes = _per_image(mat, "face_bbx_list", len(names), 4, where)
    labels = [_per_image(mat, held, len(names), 1, where) for held in _LABEL_LISTS.values()]
    counts = np.array([len(box) for box in boxes], dtype=np.int64)
    for name, found in zip(LABELS, labels, strict=True):
        for image, (one, n) in enumerate(zip(found, counts, strict=True)):
            if len(one) != n:
                raise TableError(
                    f"an image has another number of {name} labels than of boxes",
                    expected=str(n),
                    found=f"{len(one)} for {names[image]!r}",
                    where=place(where, image + 1, _LABEL_LISTS[name]),
                )
    columns = [np.concatenate(boxes), *(np.concatenate(found) for found in labels)]
    return _faces(names, counts, np.hstack(columns), where)


def chosen_of_mat(data: bytes, where: str) -> pl.DataFrame:
    """Parse ``wider_easy_*.mat`` and its like: the faces it lists, ``image_id, face_index``."""
    mat = read_mat5(data, where, [*_NAMED, "gt_list"])
    names = _image_names(mat, where)
    lists = _per_image(mat, "gt_list", len(names), 1, where)
    counts = np.array([len(one) for one in lists], dtype=np.int64)
    return pl.DataFrame(
        {
            "image_id": np.repeat(np.array(names, dtype=object), counts),
            "face_index": np.concatenate(lists).ravel().astype(np.int64) - 1,  # MATLAB's from 1
        },
        schema={"image_id": pl.String, "face_index": pl.Int64},
    )


def _image_names(mat: dict[str, Any], where: str) -> list[str]:
    events, files = _cells(mat, "event_list", where), _cells(mat, "file_list", where)
    if len(events) != len(files):
        raise TableError(
            "events and files do not go together",
            expected=f"as many lists of files as events, {len(events)}",
            found=str(len(files)),
            where=place(where, column="file_list"),
        )
    return [
        f"{_word(event, where, 'event_list')}/{_word(file, where, 'file_list')}.jpg"
        for event, of_event in zip(events, files, strict=True)
        for file in np.ravel(of_event)
    ]


def _cells(mat: dict[str, Any], name: str, where: str) -> npt.NDArray[Any]:
    cells = np.ravel(mat[name])
    if cells.dtype != object:
        raise TableError(
            f"{name} is not a cell array", found=str(cells.dtype), where=place(where, column=name)
        )
    return cells


def _word(cell: Any, where: str, name: str) -> str:
    word = np.ravel(cell)
    if word.dtype.kind != "U" or len(word) != 1:
        raise TableError(
            "a name is not text", found=str(cell)[:60], where=place(where, column=name)
        )
    return str(word[0])


def _per_image(
    mat: dict[str, Any], name: str, n_images: int, width: int, where: str
) -> list[npt.NDArray[np.int64]]:
    """List each image's numbers: [k, width]."""
    found = [image for event in _cells(mat, name, where) for image in np.ravel(event)]
    if len(found) != n_images:
        raise TableError(
            f"{name} does not go with file_list",
            expected=f"{n_images:,} images",
            found=f"{len(found):,}",
            where=place(where, column=name),
        )
    lists = []
    for row, one in enumerate(found, start=1):
        numbers = np.asarray(one)
        if numbers.size == 0 and numbers.dtype.kind in "uifO":
            numbers = np.empty((0, width), dtype=np.int64)
        if numbers.dtype.kind not in "uif" or numbers.ndim != 2 or numbers.shape[1] != width:
            raise TableError(
                f"an image's {name} is not a matrix of {width} column(s)",
                found=f"{numbers.dtype} {numbers.shape}",
                where=place(where, row, name),
            )
        # No picture is a billion pixels wide.
        if not np.isfinite(numbers).all() or (np.abs(numbers) > 1e9).any():
            raise TableError(f"{name} holds no usable numbers", where=place(where, row, name))
        lists.append(numbers.astype(np.int64))
    return lists


def _faces(
    names: Sequence[str], counts: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64], where: str
) -> pl.DataFrame:
    """Bring boxes and images together; check the codes of the labels."""
    of = np.repeat(np.arange(len(names)), counts)
    index = np.arange(len(of)) - np.repeat(np.cumsum(counts) - counts, counts)
    columns: dict[str, Any] = {"image": of, "face_index": index}
    for i, name in enumerate(BOX):
        columns[name] = numbers[:, i].astype(np.float64)
    for i, (name, words) in enumerate(LABELS.items(), start=len(BOX)):
        codes = numbers[:, i]
        strange = (codes < 0) | (codes >= len(words))
        if strange.any():
            row = int(np.flatnonzero(strange)[0])
            raise TableError(
                f"a face's {name} has a code that WIDER FACE does not have",
                expected=", ".join(f"{c} ({word})" for c, word in enumerate(words)),
                found=f"{codes[row]} for face {index[row]} of {names[of[row]]!r}",
                where=place(where, column=name),
            )
        columns[name] = pl.Series(words).gather(codes)
    faces = pl.DataFrame(columns).with_columns(pl.col("image").cast(pl.Int64))
    images = pl.DataFrame({"image_id": pl.Series(names, dtype=pl.String)})
    refuse_repeats(images["image_id"].alias(""), "an image is listed twice", None, where)
    return (
        images.with_row_index("image")
        .with_columns(pl.col("image").cast(pl.Int64))
        .join(faces, on="image", how="left", maintain_order="left_right")
        .drop("image")
    )
