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

from isolux.core.errors import FileError, TableError, format_location
from isolux.datasets._columns import BOX_COLUMNS
from isolux.datasets._mat.files import read_mat5_variables
from isolux.io.cell_parsing import first_true_row
from isolux.io.refusals import refuse_repeats
from isolux.io.text import check_utf8

LABEL_WORDS: dict[str, tuple[str, ...]] = {
    "blur": ("clear", "normal", "heavy"),
    "expression": ("typical", "exaggerate"),
    "illumination": ("normal", "extreme"),
    "invalid": ("false", "true"),
    "occlusion": ("none", "partial", "heavy"),
    "pose": ("typical", "atypical"),
}
"""Label to the words for its codes 0, 1, 2, in the order of the text file's columns."""

_BOX_COLUMNS = (*BOX_COLUMNS, *LABEL_WORDS)
_NAME_LISTS = ("event_list", "file_list")
_LABEL_LISTS = {name: f"{name}_label_list" for name in LABEL_WORDS}


def parse_ground_truth_text(content: bytes, source: str) -> pl.DataFrame:
    """Parse ``wider_face_*_bbx_gt.txt``: an image's name, its number of boxes, then the boxes."""
    text = check_utf8(content, source).decode("utf-8")
    lines = [line.strip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    names: list[str] = []
    counts: list[int] = []
    first: list[int] = []
    line_index = 0
    while line_index < len(lines):
        name, count = lines[line_index], _parse_box_count(lines, line_index, source)
        names.append(name)
        counts.append(count)
        first.append(line_index + 2)
        line_index += 2 + count
        # Images without boxes are followed by one dummy line of zeros.
        if count == 0 and line_index < len(lines) and not lines[line_index].strip("0 "):
            line_index += 1
    if not names:
        raise FileError("the file lists no image", where=source)
    return _build_widerface_faces(
        names, np.array(counts), _parse_box_lines(lines, counts, first, source), source
    )


def _parse_box_count(lines: Sequence[str], line_index: int, source: str) -> int:
    if "/" not in lines[line_index]:
        raise FileError(
            "an image's name was expected",
            expected="event/image.jpg after the last box of the image before",
            found=repr(lines[line_index][:60]),
            where=format_location(source, line_index + 1),
            hint="the number of boxes of the image before may be wrong",
        )
    text = lines[line_index + 1] if line_index + 1 < len(lines) else ""
    count = int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else -1
    if count < 0 or line_index + 2 + count > len(lines):
        raise FileError(
            "an image has no usable number of boxes",
            expected="a whole number, and as many lines after it",
            found=repr(text[:60]) + (", and the file is cut off" if count >= 0 else ""),
            where=format_location(source, line_index + 2),
        )
    return count


def _parse_box_lines(
    lines: Sequence[str], counts: Sequence[int], first_line_indices: Sequence[int], source: str
) -> npt.NDArray[np.int64]:
    """Read the lines of boxes: [N, 10], x, y, width, height and six labels."""
    pairs = zip(first_line_indices, counts, strict=True)
    numbers = np.concatenate([np.arange(start, start + n) for start, n in pairs])
    rows = pl.Series(lines, dtype=pl.String).gather(numbers)
    split_lines = rows.str.split(" ").list.eval(pl.element().filter(pl.element() != ""))
    cells = split_lines.list.eval(pl.element().cast(pl.Int64, strict=False))
    is_valid = (cells.list.len() == len(_BOX_COLUMNS)) & ~cells.list.eval(
        pl.element().is_null()
    ).list.any()
    if not is_valid.all():
        row = first_true_row(~is_valid)
        raise TableError(
            "a box cannot be read",
            expected="ten whole numbers: x y w h " + " ".join(LABEL_WORDS),
            found=repr(rows[row][:80]),
            where=format_location(source, int(numbers[row]) + 1),
        )
    return cells.explode().to_numpy().reshape(-1, len(_BOX_COLUMNS)) if len(cells) else _NO_BOXES


_NO_BOXES = np.empty((0, len(_BOX_COLUMNS)), dtype=np.int64)


def parse_ground_truth_mat(content: bytes, source: str) -> pl.DataFrame:
    """Parse ``wider_face_*.mat``: the same rows as ``parse_ground_truth_text`` gives."""
    mat = read_mat5_variables(
        content, source, [*_NAME_LISTS, "face_bbx_list", *_LABEL_LISTS.values()]
    )
    names = _read_widerface_image_names(mat, source)
    boxes = _list_numbers_by_image(mat, "face_bbx_list", len(names), 4, source)
    labels = [
        _list_numbers_by_image(mat, list_name, len(names), 1, source)
        for list_name in _LABEL_LISTS.values()
    ]
    counts = np.array([len(box) for box in boxes], dtype=np.int64)
    for name, label_lists in zip(LABEL_WORDS, labels, strict=True):
        for image, (image_labels, n) in enumerate(zip(label_lists, counts, strict=True)):
            if len(image_labels) != n:
                raise TableError(
                    f"an image has another number of {name} labels than of boxes",
                    expected=str(n),
                    found=f"{len(image_labels)} for {names[image]!r}",
                    where=format_location(source, image + 1, _LABEL_LISTS[name]),
                )
    columns = [np.concatenate(boxes), *(np.concatenate(label_lists) for label_lists in labels)]
    return _build_widerface_faces(names, counts, np.hstack(columns), source)


def parse_difficulty_mat(content: bytes, source: str) -> pl.DataFrame:
    """Parse ``wider_easy_*.mat`` and its like: the faces it lists, ``image_id, face_index``."""
    mat = read_mat5_variables(content, source, [*_NAME_LISTS, "gt_list"])
    names = _read_widerface_image_names(mat, source)
    lists = _list_numbers_by_image(mat, "gt_list", len(names), 1, source)
    counts = np.array([len(face_list) for face_list in lists], dtype=np.int64)
    return pl.DataFrame(
        {
            "image_id": np.repeat(np.array(names, dtype=object), counts),
            "face_index": np.concatenate(lists).ravel().astype(np.int64) - 1,  # MATLAB's from 1
        },
        schema={"image_id": pl.String, "face_index": pl.Int64},
    )


def _read_widerface_image_names(mat: dict[str, Any], source: str) -> list[str]:
    events = _find_cell_array_or_raise(mat, "event_list", source)
    files = _find_cell_array_or_raise(mat, "file_list", source)
    if len(events) != len(files):
        raise TableError(
            "events and files do not go together",
            expected=f"as many lists of files as events, {len(events)}",
            found=str(len(files)),
            where=format_location(source, column="file_list"),
        )
    return [
        f"{_convert_widerface_cell_to_text(event, source, 'event_list')}/"
        f"{_convert_widerface_cell_to_text(file, source, 'file_list')}.jpg"
        for event, event_files in zip(events, files, strict=True)
        for file in np.ravel(event_files)
    ]


def _find_cell_array_or_raise(mat: dict[str, Any], name: str, source: str) -> npt.NDArray[Any]:
    cells = np.ravel(mat[name])
    if cells.dtype != object:
        raise TableError(
            f"{name} is not a cell array",
            found=str(cells.dtype),
            where=format_location(source, column=name),
        )
    return cells


def _convert_widerface_cell_to_text(cell: Any, source: str, name: str) -> str:
    word = np.ravel(cell)
    if word.dtype.kind != "U" or len(word) != 1:
        raise TableError(
            "a name is not text", found=str(cell)[:60], where=format_location(source, column=name)
        )
    return str(word[0])


def _list_numbers_by_image(
    mat: dict[str, Any], name: str, n_images: int, width: int, source: str
) -> list[npt.NDArray[np.int64]]:
    """List each image's numbers: [k, width]."""
    image_cells = [
        image for event in _find_cell_array_or_raise(mat, name, source) for image in np.ravel(event)
    ]
    if len(image_cells) != n_images:
        raise TableError(
            f"{name} does not go with file_list",
            expected=f"{n_images:,} images",
            found=f"{len(image_cells):,}",
            where=format_location(source, column=name),
        )
    lists = []
    for row, image_cell in enumerate(image_cells, start=1):
        numbers = np.asarray(image_cell)
        if numbers.size == 0 and numbers.dtype.kind in "uifO":
            numbers = np.empty((0, width), dtype=np.int64)
        if numbers.dtype.kind not in "uif" or numbers.ndim != 2 or numbers.shape[1] != width:
            raise TableError(
                f"an image's {name} is not a matrix of {width} column(s)",
                found=f"{numbers.dtype} {numbers.shape}",
                where=format_location(source, row, name),
            )
        # No picture is a billion pixels wide.
        if not np.isfinite(numbers).all() or (np.abs(numbers) > 1e9).any():
            raise TableError(
                f"{name} holds no usable numbers", where=format_location(source, row, name)
            )
        lists.append(numbers.astype(np.int64))
    return lists


def _build_widerface_faces(
    names: Sequence[str], counts: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64], source: str
) -> pl.DataFrame:
    """Bring boxes and images together; check the codes of the labels."""
    image_index = np.repeat(np.arange(len(names)), counts)
    index = np.arange(len(image_index)) - np.repeat(np.cumsum(counts) - counts, counts)
    columns: dict[str, Any] = {"image": image_index, "face_index": index}
    for i, name in enumerate(BOX_COLUMNS):
        columns[name] = numbers[:, i].astype(np.float64)
    for i, (name, words) in enumerate(LABEL_WORDS.items(), start=len(BOX_COLUMNS)):
        codes = numbers[:, i]
        is_unknown_code = (codes < 0) | (codes >= len(words))
        if is_unknown_code.any():
            row = int(np.flatnonzero(is_unknown_code)[0])
            raise TableError(
                f"a face's {name} has a code that WIDER FACE does not have",
                expected=", ".join(f"{c} ({word})" for c, word in enumerate(words)),
                found=f"{codes[row]} for face {index[row]} of {names[image_index[row]]!r}",
                where=format_location(source, column=name),
            )
        columns[name] = pl.Series(words).gather(codes)
    faces = pl.DataFrame(columns).with_columns(pl.col("image").cast(pl.Int64))
    images = pl.DataFrame({"image_id": pl.Series(names, dtype=pl.String)})
    refuse_repeats(images["image_id"].alias(""), "an image is listed twice", None, source)
    return (
        images.with_row_index("image")
        .with_columns(pl.col("image").cast(pl.Int64))
        .join(faces, on="image", how="left", maintain_order="left_right")
        .drop("image")
    )
