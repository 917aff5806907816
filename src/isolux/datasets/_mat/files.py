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

from isolux.datasets._files import LARGEST
from isolux.io.inflating import unpacked_limit
from isolux.vocabulary.errors import FileError, TableError, place

_HDF5 = b"\x89HDF\r\n\x1a\n"
_HEADER = 128  # bytes of text and version before the first variable
_COMPRESSED = 15  # miCOMPRESSED, a variable packed by zlib
# of one variable: a hundred times what IMDB-WIKI has, and few enough for memory
_CELLS = 50_000_000
_LONGEST = 4_096  # characters of one text

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Variables:
    """What was asked for, by name: cells of text as columns, matrices as MATLAB shows them."""

    texts: dict[str, pl.Series]
    numbers: dict[str, Array]


def read_variables(
    data: bytes, where: str, *, texts: Sequence[str] = (), numbers: Sequence[str] = ()
) -> Variables:
    """Read cell arrays of text and matrices of numbers from a MATLAB file of any version."""
    if data.startswith(_HDF5) or data[512:520] == _HDF5:
        return Variables(*read_hdf5(data, where, texts, numbers))
    mat = read_mat5(data, where, (*texts, *numbers))
    return Variables(
        {name: texts_of_cells(mat[name], where, name) for name in texts},
        {name: _matrix(mat[name], where, name) for name in numbers},
    )


def read_mat5(data: bytes, where: str, names: Sequence[str]) -> dict[str, Array]:
    """Read these variables of a file of version 5 to 7.2; a structure is a record of fields."""
    from scipy.io import loadmat

    if data.startswith(_HDF5) or data[512:520] == _HDF5:
        raise FileError(
            "this MATLAB file is of version 7.3",
            expected="version 5 to 7.2",
            where=where,
            hint="in MATLAB: save(name, '-v7')",
        )
    _refuse_damage(data, where, names)
    try:
        read: dict[str, Any] = loadmat(io.BytesIO(data), variable_names=list(names))
    except Exception as error:  # loadmat raises whatever its parts do: zlib, struct, TypeError, …
        raise FileError(
            "this is not a MATLAB file, or it is damaged",
            expected="a .mat of version 5 to 7.2",
            found=(str(error).splitlines() or [type(error).__name__])[0][:120],
            where=where,
        ) from error
    for name in names:
        if name not in read:
            raise _missing(name, [key for key in read if not key.startswith("__")], where)
        # scipy gives objects and functions as subclasses of an array, and plain data as arrays.
        if type(read[name]) is not np.ndarray:
            raise TableError(
                "a MATLAB file holds an object",
                expected="numbers, text, cells and structures",
                found=type(read[name]).__name__,
                where=place(where, column=name),
            )
    return {name: read[name] for name in names}


def _missing(name: str, known: Sequence[str], where: str) -> TableError:
    return TableError(
        f"the MATLAB file has no {name}", found=", ".join(known)[:200] or "nothing", where=where
    )


def _refuse_damage(data: bytes, where: str, names: Sequence[str]) -> None:
    """Walk through every variable before scipy does, which a damaged one can end the process of."""
    order: Literal["big", "little"] = "big" if data[126:128] == b"MI" else "little"
    at, total = _HEADER, len(data)
    limit = unpacked_limit(len(data), LARGEST)
    while at + 8 <= len(data):
        kind = int.from_bytes(data[at : at + 4], order)
        size = int.from_bytes(data[at + 4 : at + 8], order)
        stop = at + 8 + size
        if stop > len(data):
            raise _damaged(f"{len(data):,} bytes, and a variable up to {stop:,}", where)
        if kind == _COMPRESSED:
            unpacked = _unpacked(data[at + 8 : stop], limit - total)
            if unpacked is None:
                raise _damaged(f"a packed variable at byte {at:,} that cannot be unpacked", where)
            total += len(unpacked)
            if total > limit:
                raise FileError(
                    "this MATLAB file unpacks to far more than its size, like a decompression bomb",
                    expected=f"at most {limit >> 20:,} MiB",
                    where=where,
                )
            _walk(unpacked, at, order, where, names)
        else:
            _walk(data[at:stop], at, order, where, names)
        at = stop


def _walk(
    data: bytes, at: int, order: Literal["big", "little"], where: str, names: Sequence[str]
) -> None:
    from isolux.datasets._mat.structure import OBJECT, SOUND, damaged_byte

    found = int(damaged_byte(np.frombuffer(data, np.uint8), order == "big"))
    if found == OBJECT:
        # Of a variable that is not asked for scipy reads the name alone.
        asked = [name for name in names if name.encode() in data[:_HEADER]]
        if asked:
            raise TableError(
                "a MATLAB file holds an object",
                expected="numbers, text, cells and structures",
                where=place(where, column=asked[0]),
            )
    elif found != SOUND:
        raise _damaged(f"a variable that does not fit together at byte {at + found:,}", where)


def _damaged(found: str, where: str) -> FileError:
    return FileError(
        "this is not a MATLAB file, or it is damaged",
        expected="a .mat of version 5 to 7.2",
        found=found,
        where=where,
    )


def _unpacked(packed: bytes, limit: int) -> bytes | None:
    """Unpack a variable up to a limit; None where it is damaged or cut off, as its checksum tells.

    scipy reads on in a variable that was cut off, and can end the whole process.
    """
    stream, parts, total, rest = zlib.decompressobj(), [], 0, packed
    try:
        while rest and not stream.eof and total <= limit:
            parts.append(stream.decompress(rest, 1 << 20))
            total += len(parts[-1])
            rest = stream.unconsumed_tail
    except zlib.error:
        return None
    return b"".join(parts) if stream.eof or total > limit else None


def texts_of_cells(cells: Array, where: str, name: str) -> pl.Series:
    """Give cells of text, or rows of a matrix of characters, as a column; an empty cell is null."""
    flat = np.ravel(cells)
    if flat.dtype.kind == "U":
        return pl.Series(name, flat.astype(object), dtype=pl.String, strict=False)
    if flat.dtype != object or flat.size > _CELLS:
        raise TableError(
            f"{name} is not a cell array", found=str(flat.dtype), where=place(where, column=name)
        )
    # Each cell is an array of its own: there is no other way to its text than one by one.
    read = [_text(cell) for cell in flat]
    if False in read:
        row = read.index(False)
        raise TableError(
            f"a cell of {name} is not text",
            found=str(flat[row])[:60],
            where=place(where, row + 1, name),
        )
    return pl.Series(name, read, dtype=pl.String)


def _text(cell: object) -> str | bool | None:
    """Return a cell's text, None for an empty one, False for what is not text."""
    if type(cell) is not np.ndarray:
        return False
    if not cell.size:
        return None
    return str(cell.item())[:_LONGEST] if cell.dtype.kind == "U" and cell.size == 1 else False


def _matrix(cells: Array, where: str, name: str) -> Array:
    if cells.dtype.kind not in "buif":
        raise TableError(
            f"{name} holds no numbers", found=str(cells.dtype), where=place(where, column=name)
        )
    return cells


def read_hdf5(
    data: bytes, where: str, texts: Sequence[str], numbers: Sequence[str]
) -> tuple[dict[str, pl.Series], dict[str, Array]]:
    """Read cell arrays of text and matrices of numbers, these as MATLAB shows them."""
    try:
        h5py: Any = importlib.import_module("h5py")
    except ImportError as error:
        raise FileError(
            "this MATLAB file is of version 7.3, which h5py reads, and h5py is not installed",
            where=where,
            hint="pip install h5py; or in MATLAB: save(name, '-v7')",
        ) from error
    try:
        with h5py.File(io.BytesIO(data), "r") as file:
            return (
                {
                    name: _hdf5_texts(h5py, file, _hdf5_variable(h5py, file, name, where), where)
                    for name in texts
                },
                {
                    name: _hdf5_numbers(_hdf5_variable(h5py, file, name, where), where)
                    for name in numbers
                },
            )
    except TableError:
        raise
    except Exception as error:  # HDF5's own library says what it likes of a damaged file
        raise FileError(
            "this is not a MATLAB file, or it is damaged",
            expected="a .mat of version 7.3",
            found=(str(error).splitlines() or [type(error).__name__])[0][:120],
            where=where,
        ) from error


def _hdf5_variable(h5py: Any, file: Any, name: str, where: str) -> Any:
    link = file.get(name, getlink=True)
    if link is None:
        raise _missing(name, [key for key in file if not key.startswith("#")], where)
    found = file[name] if isinstance(link, h5py.HardLink) else None
    problem = _hdf5_problem(h5py, found)
    if problem:
        raise TableError(
            f"{name} of a MATLAB file cannot be read",
            expected="numbers, text or cells in the file itself",
            found=problem,
            where=place(where, column=name),
        )
    return found


def _hdf5_problem(h5py: Any, found: Any) -> str:
    """Say what keeps a variable from being read; empty: nothing."""
    if found is None:
        return "a link"
    if not isinstance(found, h5py.Dataset):
        return "a structure or an object"
    if "MATLAB_object_decode" in found.attrs:
        return "an object"
    if found.external or found.is_virtual:
        return "data in another file"
    if found.size is None or found.size > _CELLS:
        return f"{found.size} values"
    return ""


def _hdf5_texts(h5py: Any, file: Any, cells: Any, where: str) -> pl.Series:
    name = cells.name.strip("/")
    if cells.dtype != h5py.ref_dtype:
        raise TableError(
            f"{name} is not a cell array", found=str(cells.dtype), where=place(where, column=name)
        )
    # Each cell is a reference to an array of its own: there is no other way than one by one.
    return pl.Series(
        name,
        [
            _hdf5_text(h5py, file, cell, name, row, where)
            for row, cell in enumerate(np.ravel(cells[()]))
        ],
        dtype=pl.String,
    )


def _hdf5_text(h5py: Any, file: Any, cell: Any, name: str, row: int, where: str) -> str | None:
    found: Any = file[cell] if cell else None
    if found is not None and found.attrs.get("MATLAB_empty"):
        return None
    codes = found[()] if not _hdf5_problem(h5py, found) and found.size <= _LONGEST else None
    if codes is None or codes.dtype != np.uint16:
        raise TableError(
            f"a cell of {name} is not text",
            found=str(getattr(found, "dtype", "nothing")),
            where=place(where, row + 1, name),
        )
    return str(np.ravel(codes, order="F").astype("<u2").tobytes().decode("utf-16-le"))


def _hdf5_numbers(cells: Any, where: str) -> Array:
    if cells.dtype.kind not in "buif":
        raise TableError(
            f"{cells.name.strip('/')} holds no numbers",
            found=str(cells.dtype),
            where=place(where, column=cells.name.strip("/")),
        )
    matrix: Array = np.asarray(cells[()]).T  # MATLAB writes columns first
    return matrix
