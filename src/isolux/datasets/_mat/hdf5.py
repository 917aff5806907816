"""MATLAB files of version 7.3, which are HDF5: cells of text are references to arrays of codes.

HDF5 may point into other files (external links, external and virtual data): none is followed.
"""

from __future__ import annotations

import importlib
import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.vocabulary.errors import FileError, TableError, place

_CELLS = 50_000_000  # of one variable, as in files.py
_LONGEST = 4_096  # characters of one text

Array = npt.NDArray[Any]


def read_hdf5(
    data: bytes, where: str, texts: Sequence[str], numbers: Sequence[str]
) -> tuple[dict[str, pl.Series], dict[str, Array]]:
    """Read cell arrays of text and matrices of numbers; matrices are turned as MATLAB shows them.

    Raises
    ------
    FileError
        h5py is not installed; a damaged file.
    TableError
        A variable that is missing, an object, a link, or of another kind than asked for.
    """
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
                    name: _texts(h5py, file, _variable(h5py, file, name, where), where)
                    for name in texts
                },
                {name: _numbers(_variable(h5py, file, name, where), where) for name in numbers},
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


def _variable(h5py: Any, file: Any, name: str, where: str) -> Any:
    link = file.get(name, getlink=True)
    if link is None:
        known = ", ".join(key for key in file if not key.startswith("#"))
        raise TableError(
            f"the MATLAB file has no {name}", found=known[:200] or "nothing", where=where
        )
    found = file[name] if isinstance(link, h5py.HardLink) else None
    problem = _problem(h5py, found)
    if problem:
        raise TableError(
            f"{name} of a MATLAB file cannot be read",
            expected="numbers, text or cells in the file itself",
            found=problem,
            where=place(where, column=name),
        )
    return found


def _problem(h5py: Any, found: Any) -> str:
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


def _texts(h5py: Any, file: Any, cells: Any, where: str) -> pl.Series:
    name = cells.name.strip("/")
    if cells.dtype != h5py.ref_dtype:
        raise TableError(
            f"{name} is not a cell array", found=str(cells.dtype), where=place(where, column=name)
        )
    # Each cell is a reference to an array of its own: there is no other way than one by one.
    return pl.Series(
        name,
        [_text(h5py, file, cell, name, row, where) for row, cell in enumerate(np.ravel(cells[()]))],
        dtype=pl.String,
    )


def _text(h5py: Any, file: Any, cell: Any, name: str, row: int, where: str) -> str | None:
    found: Any = file[cell] if cell else None
    if found is not None and found.attrs.get("MATLAB_empty"):
        return None
    codes = found[()] if not _problem(h5py, found) and found.size <= _LONGEST else None
    if codes is None or codes.dtype != np.uint16:
        raise TableError(
            f"a cell of {name} is not text",
            found=str(getattr(found, "dtype", "nothing")),
            where=place(where, row + 1, name),
        )
    return str(np.ravel(codes, order="F").astype("<u2").tobytes().decode("utf-16-le"))


def _numbers(cells: Any, where: str) -> Array:
    if cells.dtype.kind not in "buif":
        raise TableError(
            f"{cells.name.strip('/')} holds no numbers",
            found=str(cells.dtype),
            where=place(where, column=cells.name.strip("/")),
        )
    matrix: Array = np.asarray(cells[()]).T  # MATLAB writes columns first
    return matrix
