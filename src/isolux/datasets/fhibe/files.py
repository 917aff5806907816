"""FHIBE's two spellings, the processed CSV and a JSON file for each image, to one wide frame.

Every cell is text as the CSV has it. Only the columns that are asked for are held: polygons make
up nearly all of the 77 columns' bytes.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from isolux.datasets._files import Inputs
from isolux.datasets._json import decode
from isolux.datasets.fhibe.words import OF_IMAGES, OF_PEOPLE, REQUIRED
from isolux.io.paths import inside
from isolux.vocabulary.errors import FileError, UnknownNameError, place

KEPT = (
    *REQUIRED,
    *OF_IMAGES,
    *OF_PEOPLE,
    "consent",
    "person_bbox",
    "face_bbox",
    "keypoints",
    "segments",
    "CelebA",
)
_LARGEST_CELL = 32 << 20  # characters


def read_csv_rows(path: Path, *, segments: bool) -> pl.DataFrame:
    """Read the processed CSV row by row: memory holds the columns kept, not the file."""
    where = str(path)
    with _large_cells(), path.open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, strict=True)
        number = 0
        try:
            header = next(reader, [])
            columns = _columns(header, segments=segments, where=where)
            cells: list[list[str | None]] = [[] for _ in columns]
            for number, row in enumerate(reader, start=1):
                if len(row) != len(header):
                    raise _ragged(len(row), len(header), number, where)
                for kept, at in zip(cells, columns.values(), strict=True):
                    kept.append(row[at].strip("\0 ") or None)
        except UnicodeDecodeError as error:
            raise FileError("the file is not UTF-8 text", found=str(error), where=where) from error
        except csv.Error as error:
            raise FileError(
                "the table cannot be parsed", found=str(error), where=place(where, number + 1)
            ) from error
    if not number:
        raise FileError("the table has columns but no rows", where=where)
    return pl.DataFrame(dict(zip(columns, cells, strict=True)), schema=dict.fromkeys(columns, _S))


_S = pl.String()


def _columns(header: list[str], *, segments: bool, where: str) -> dict[str, int]:
    if not header:
        raise FileError("the file is empty", where=where)
    for name in REQUIRED:
        if name not in header:
            raise UnknownNameError("column", name, header, where=where)
    return {
        name: header.index(name)
        for name in dict.fromkeys(KEPT)
        if name in header and (segments or name != "segments")
    }


def _ragged(found: int, expected: int, row: int, where: str) -> FileError:
    return FileError(
        f"a row has {'fewer' if found < expected else 'more'} cells than there are columns",
        expected=f"{expected} cells",
        found=str(found),
        where=place(where, row),
        hint="the file may be cut off" if found < expected else None,
    )


@contextmanager
def _large_cells() -> Iterator[None]:
    """Allow cells beyond 128 KiB, which polygons are, while this file is read."""
    before = csv.field_size_limit(_LARGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


class _File(msgspec.Struct):
    image_annotation: dict[str, Any]
    subject_annotation: list[dict[str, Any]]


def read_json_files(
    files: list[Path], root: Path, inputs: Inputs, *, segments: bool
) -> pl.DataFrame:
    """Read the JSON file of each image; values are written as the CSV has them."""
    columns = [name for name in dict.fromkeys(KEPT) if segments or name != "segments"]
    cells: dict[str, list[str | None]] = {name: [] for name in columns}
    for file in files:
        inside(root, file)
        read = decode(inputs.read(file), _File, str(file))
        relative = file.relative_to(root).as_posix()
        stem = file.name.partition("annos_")[2].removesuffix(".json")
        of_file = {
            "image_id": stem,
            "json_path": relative,
            "filepath": relative.replace("annos_", "").removesuffix(".json") + ".png",
        }
        for person in read.subject_annotation:
            values = {"is_primary": True, **read.image_annotation, **person, **of_file}
            for name in columns:
                cells[name].append(_as_cell(values.get(name)))
    frame = pl.DataFrame(cells, schema=dict.fromkeys(columns, _S))
    absent = [n for n in columns if n not in REQUIRED and frame[n].is_null().all()]
    return frame.drop(absent)


def _as_cell(value: Any) -> str | None:
    if value is None:
        return None
    return (value.strip("\0 ") if isinstance(value, str) else repr(value)) or None
