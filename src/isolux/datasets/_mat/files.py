"""MATLAB files as columns of text and arrays of numbers: versions 5 to 7.2, and 7.3 (HDF5).

A file from elsewhere is not trusted: objects, functions and links to other files are refused, and
so is what unpacks to more than ``LARGEST``. Version 7.3 needs h5py, which is optional.
"""

from __future__ import annotations

import importlib
import io
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.errors import FileError, TableError, extract_first_line, format_location
from isolux.datasets._files import MAX_ANNOTATION_BYTES
from isolux.io.bounded_zlib import max_unpacked_bytes

_HDF5 = b"\x89HDF\r\n\x1a\n"
_HEADER_BYTES = 128  # bytes of text and version before the first variable
_COMPRESSED = 15  # miCOMPRESSED, a variable packed by zlib
# of one variable: a hundred times what IMDB-WIKI has, and few enough for memory
_MAX_CELLS = 50_000_000
_MAX_TEXT_LENGTH = 4_096  # characters of one text

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class MatVariables:
    """What was asked for, by name: cells of text as columns, matrices as MATLAB shows them."""

    texts: dict[str, pl.Series]
    numbers: dict[str, Array]


def read_mat_variables(
    content: bytes,
    source: str,
    *,
    text_variables: Sequence[str] = (),
    number_variables: Sequence[str] = (),
) -> MatVariables:
    """Read cell arrays of text and matrices of numbers from a MATLAB file of any version."""
    if content.startswith(_HDF5) or content[512:520] == _HDF5:
        return MatVariables(
            *read_mat73_variables(content, source, text_variables, number_variables)
        )
    mat = read_mat5_variables(content, source, (*text_variables, *number_variables))
    return MatVariables(
        {name: convert_mat_cells_to_text(mat[name], source, name) for name in text_variables},
        {name: _check_is_number_matrix(mat[name], source, name) for name in number_variables},
    )


def read_mat5_variables(
    content: bytes, source: str, variable_names: Sequence[str]
) -> dict[str, Array]:
    """Read these variables of a file of version 5 to 7.2; a structure is a record of fields."""
    from scipy.io import loadmat

    if content.startswith(_HDF5) or content[512:520] == _HDF5:
        raise FileError(
            "this MATLAB file is of version 7.3",
            expected="version 5 to 7.2",
            where=source,
            hint="in MATLAB: save(name, '-v7')",
        )
    _check_mat5_is_intact(content, source, variable_names)
    try:
        variables: dict[str, Any] = loadmat(
            io.BytesIO(content), variable_names=list(variable_names)
        )
    except Exception as error:  # loadmat raises whatever its parts do: zlib, struct, TypeError, …
        raise FileError(
            "this is not a MATLAB file, or it is damaged",
            expected="a .mat of version 5 to 7.2",
            found=extract_first_line(error, 120),
            where=source,
        ) from error
    for name in variable_names:
        if name not in variables:
            raise _build_missing_variable_error(
                name, [key for key in variables if not key.startswith("__")], source
            )
        # scipy gives objects and functions as subclasses of an array, and plain data as arrays.
        if type(variables[name]) is not np.ndarray:
            raise TableError(
                "a MATLAB file holds an object",
                expected="numbers, text, cells and structures",
                found=type(variables[name]).__name__,
                where=format_location(source, column=name),
            )
    return {name: variables[name] for name in variable_names}


def _build_missing_variable_error(
    name: str, variable_names: Sequence[str], source: str
) -> TableError:
    return TableError(
        f"the MATLAB file has no {name}",
        found=", ".join(variable_names)[:200] or "nothing",
        where=source,
    )


def _check_mat5_is_intact(content: bytes, source: str, variable_names: Sequence[str]) -> None:
    """Walk through every variable before scipy does, which a damaged one can end the process of."""
    order: Literal["big", "little"] = "big" if content[126:128] == b"MI" else "little"
    offset, total = _HEADER_BYTES, len(content)
    limit = max_unpacked_bytes(len(content), MAX_ANNOTATION_BYTES)
    while offset + 8 <= len(content):
        type_code = int.from_bytes(content[offset : offset + 4], order)
        size = int.from_bytes(content[offset + 4 : offset + 8], order)
        stop = offset + 8 + size
        if stop > len(content):
            raise _build_damaged_mat_error(
                f"{len(content):,} bytes, and a variable up to {stop:,}", source
            )
        if type_code == _COMPRESSED:
            unpacked = _decompress_variable_or_none(content[offset + 8 : stop], limit - total)
            if unpacked is None:
                raise _build_damaged_mat_error(
                    f"a packed variable at byte {offset:,} that cannot be unpacked", source
                )
            total += len(unpacked)
            if total > limit:
                raise FileError(
                    "this MATLAB file unpacks to far more than its size, like a decompression bomb",
                    expected=f"at most {limit >> 20:,} MiB",
                    where=source,
                )
            _check_mat5_variable(unpacked, offset, order, source, variable_names)
        else:
            _check_mat5_variable(content[offset:stop], offset, order, source, variable_names)
        offset = stop


def _check_mat5_variable(
    variable_bytes: bytes,
    offset: int,
    order: Literal["big", "little"],
    source: str,
    variable_names: Sequence[str],
) -> None:
    from isolux.datasets._mat.structure import HAS_OBJECT, INTACT, find_damage_in_variable

    damage = int(find_damage_in_variable(np.frombuffer(variable_bytes, np.uint8), order == "big"))
    if damage == HAS_OBJECT:
        # Of a variable that is not asked for scipy reads the name alone.
        requested = [
            name for name in variable_names if name.encode() in variable_bytes[:_HEADER_BYTES]
        ]
        if requested:
            raise TableError(
                "a MATLAB file holds an object",
                expected="numbers, text, cells and structures",
                where=format_location(source, column=requested[0]),
            )
    elif damage != INTACT:
        raise _build_damaged_mat_error(
            f"a variable that does not fit together at byte {offset + damage:,}", source
        )


def _build_damaged_mat_error(description: str, source: str) -> FileError:
    return FileError(
        "this is not a MATLAB file, or it is damaged",
        expected="a .mat of version 5 to 7.2",
        found=description,
        where=source,
    )


def _decompress_variable_or_none(packed: bytes, max_bytes: int) -> bytes | None:
    """Unpack a variable up to a limit; None where it is damaged or cut off, as its checksum tells.

    scipy reads on in a variable that was cut off, and can end the whole process.
    """
    stream, chunks, total, remainder = zlib.decompressobj(), [], 0, packed
    try:
        while remainder and not stream.eof and total <= max_bytes:
            chunks.append(stream.decompress(remainder, 1 << 20))
            total += len(chunks[-1])
            remainder = stream.unconsumed_tail
    except zlib.error:
        return None
    return b"".join(chunks) if stream.eof or total > max_bytes else None


def convert_mat_cells_to_text(cells: Array, source: str, name: str) -> pl.Series:
    """Give cells of text, or rows of a matrix of characters, as a column; an empty cell is null."""
    flat = np.ravel(cells)
    if flat.dtype.kind == "U":
        return pl.Series(name, flat.astype(object), dtype=pl.String, strict=False)
    if flat.dtype != object or flat.size > _MAX_CELLS:
        raise TableError(
            f"{name} is not a cell array",
            found=str(flat.dtype),
            where=format_location(source, column=name),
        )
    # Each cell is an array of its own: there is no other way to its text than one by one.
    texts = [_convert_mat_cell_to_text(cell) for cell in flat]
    if False in texts:
        row = texts.index(False)
        raise TableError(
            f"a cell of {name} is not text",
            found=str(flat[row])[:60],
            where=format_location(source, row + 1, name),
        )
    return pl.Series(name, texts, dtype=pl.String)


def _convert_mat_cell_to_text(cell: object) -> str | bool | None:
    """Return a cell's text, None for an empty one, False for what is not text."""
    if type(cell) is not np.ndarray:
        return False
    if not cell.size:
        return None
    return (
        str(cell.item())[:_MAX_TEXT_LENGTH] if cell.dtype.kind == "U" and cell.size == 1 else False
    )


def _check_is_number_matrix(cells: Array, source: str, name: str) -> Array:
    if cells.dtype.kind not in "buif":
        raise TableError(
            f"{name} holds no numbers",
            found=str(cells.dtype),
            where=format_location(source, column=name),
        )
    return cells


def read_mat73_variables(
    content: bytes, source: str, text_variables: Sequence[str], number_variables: Sequence[str]
) -> tuple[dict[str, pl.Series], dict[str, Array]]:
    """Read cell arrays of text and matrices of numbers, these as MATLAB shows them."""
    try:
        h5py: Any = importlib.import_module("h5py")
    except ImportError as error:
        raise FileError(
            "this MATLAB file is of version 7.3, which h5py reads, and h5py is not installed",
            where=source,
            hint="pip install h5py; or in MATLAB: save(name, '-v7')",
        ) from error
    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            return (
                {
                    name: _read_hdf5_texts(
                        h5py, file, _find_hdf5_variable_or_raise(h5py, file, name, source), source
                    )
                    for name in text_variables
                },
                {
                    name: _read_hdf5_matrix(
                        _find_hdf5_variable_or_raise(h5py, file, name, source), source
                    )
                    for name in number_variables
                },
            )
    except TableError:
        raise
    except Exception as error:  # HDF5's own library says what it likes of a damaged file
        raise FileError(
            "this is not a MATLAB file, or it is damaged",
            expected="a .mat of version 7.3",
            found=extract_first_line(error, 120),
            where=source,
        ) from error


def _find_hdf5_variable_or_raise(h5py: Any, file: Any, name: str, source: str) -> Any:
    link = file.get(name, getlink=True)
    if link is None:
        raise _build_missing_variable_error(
            name, [key for key in file if not key.startswith("#")], source
        )
    variable = file[name] if isinstance(link, h5py.HardLink) else None
    problem = _describe_unreadable_hdf5_variable(h5py, variable)
    if problem:
        raise TableError(
            f"{name} of a MATLAB file cannot be read",
            expected="numbers, text or cells in the file itself",
            found=problem,
            where=format_location(source, column=name),
        )
    return variable


def _describe_unreadable_hdf5_variable(h5py: Any, variable: Any) -> str:
    """Say what keeps a variable from being read; empty: nothing."""
    if variable is None:
        return "a link"
    if not isinstance(variable, h5py.Dataset):
        return "a structure or an object"
    if "MATLAB_object_decode" in variable.attrs:
        return "an object"
    if variable.external or variable.is_virtual:
        return "data in another file"
    if variable.size is None or variable.size > _MAX_CELLS:
        return f"{variable.size} values"
    return ""


def _read_hdf5_texts(h5py: Any, file: Any, cells: Any, source: str) -> pl.Series:
    name = cells.name.strip("/")
    if cells.dtype != h5py.ref_dtype:
        raise TableError(
            f"{name} is not a cell array",
            found=str(cells.dtype),
            where=format_location(source, column=name),
        )
    # Each cell is a reference to an array of its own: there is no other way than one by one.
    return pl.Series(
        name,
        [
            _read_hdf5_text(h5py, file, cell, name, row, source)
            for row, cell in enumerate(np.ravel(cells[()]))
        ],
        dtype=pl.String,
    )


def _read_hdf5_text(
    h5py: Any, file: Any, cell: Any, name: str, row: int, source: str
) -> str | None:
    cell_array: Any = file[cell] if cell else None
    if cell_array is not None and cell_array.attrs.get("MATLAB_empty"):
        return None
    codes = (
        cell_array[()]
        if not _describe_unreadable_hdf5_variable(h5py, cell_array)
        and cell_array.size <= _MAX_TEXT_LENGTH
        else None
    )
    if codes is None or codes.dtype != np.uint16:
        raise TableError(
            f"a cell of {name} is not text",
            found=str(getattr(cell_array, "dtype", "nothing")),
            where=format_location(source, row + 1, name),
        )
    return str(np.ravel(codes, order="F").astype("<u2").tobytes().decode("utf-16-le"))


def _read_hdf5_matrix(cells: Any, source: str) -> Array:
    if cells.dtype.kind not in "buif":
        raise TableError(
            f"{cells.name.strip('/')} holds no numbers",
            found=str(cells.dtype),
            where=format_location(source, column=cells.name.strip("/")),
        )
    matrix: Array = np.asarray(cells[()]).T  # MATLAB writes columns first
    return matrix
