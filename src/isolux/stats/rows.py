"""Whole rows of sparse matrices: to take some, and to see what others hold at their entries.

scipy does the same; its index, sum and difference of two matrices take three to five times as long
where they are small, and an audit asks a hundred times for a few rows. All matrices here are
compressed by rows, and their rows sorted.
"""

from __future__ import annotations

from copy import copy
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isolux.stats.statistic import FloatArray

if TYPE_CHECKING:
    from scipy.sparse import csr_array

AT_ONCE = 500_000
"""Entries that are reduced at once: some twenty numbers are worked out of each."""
_FULL = 8
"""Cells for each entry up to which a table of all of them is quicker than a search."""
_MANY = 512
"""Rows from which scipy's own index is as quick."""


def take_rows(part: Any, rows: npt.NDArray[Any]) -> Any:
    """Take some rows of every array in a dataclass or tuple; what is no array stays as it is."""
    if isinstance(part, np.ndarray):
        return part[rows]
    if isinstance(part, tuple):
        return tuple(take_rows(each, rows) for each in part)
    if not is_dataclass(part) or isinstance(part, type):
        return part
    own = {field.name: take_rows(getattr(part, field.name), rows) for field in fields(part)}
    return replace(part, **own)


def some_rows(matrix: csr_array, at: int | npt.NDArray[Any]) -> csr_array:
    """Return a copy of some rows, in the order asked for."""
    wanted = np.atleast_1d(at)
    if not 0 < len(wanted) <= _MANY:
        return matrix[wanted]
    first, last = matrix.indptr[wanted], matrix.indptr[wanted + 1]
    ends = np.concatenate([first[:1] * 0, np.cumsum(last - first, dtype=first.dtype)])
    parts = [slice(*pair) for pair in zip(first.tolist(), last.tolist(), strict=True)]
    data, columns = (np.concatenate([a[p] for p in parts]) for a in (matrix.data, matrix.indices))
    return _as_wide(matrix, data, columns, ends)


def _as_wide(
    like: csr_array, data: FloatArray, columns: npt.NDArray[Any], ends: npt.NDArray[Any]
) -> csr_array:
    """Lay out rows of another matrix's width, not more than it has."""
    from scipy.sparse import csr_array

    if len(ends) > len(like.indptr):
        return csr_array((data, columns, ends), shape=(len(ends) - 1, like.shape[1]))
    found = copy(like)
    found.data, found.indices, found.indptr = data, columns, ends
    found.resize((len(ends) - 1, like.shape[1]))
    return found


def from_dense(values: FloatArray) -> csr_array:
    """Return the sparse matrix of numbers that are laid out.

    Examples
    --------
    >>> from_dense(np.array([[0.0, 1.0], [2.0, 0.0]])).toarray().tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """
    from scipy.sparse import csr_array

    flat = np.flatnonzero(values)
    ends = np.concatenate([[0], np.cumsum(np.count_nonzero(values, axis=1))])
    columns = flat % max(values.shape[1], 1)
    return csr_array((values.ravel()[flat], columns, ends), shape=values.shape)


def row_numbers(matrix: csr_array) -> npt.NDArray[np.int64]:
    """Return the row of every entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def entries(
    sums: csr_array, counts: csr_array, copies: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], FloatArray, FloatArray, FloatArray]:
    """Align sums with counts: row, sum, count and copies of every entry."""
    held = counts.data > 0
    row, column = row_numbers(counts)[held], counts.indices[held]
    return row, held_at(counts, sums)[held], counts.data[held], copies[column].astype(float)


def held_at(where: csr_array, other: csr_array) -> FloatArray:
    """Return what another matrix of the same shape holds at each entry of one, 0 where nothing."""
    alike = other.nnz == where.nnz and np.array_equal(other.indptr, where.indptr)
    if alike and np.array_equal(other.indices, where.indices):
        return np.asarray(other.data, dtype=np.float64)
    found = np.zeros(where.nnz)
    if not where.nnz or not other.nnz:
        return found
    own, theirs = _keys(where), _keys(other)
    cells = where.shape[0] * where.shape[1]
    if cells <= _FULL * where.nnz:
        found = np.zeros(cells)
        found[theirs] = other.data
        return found[own]
    at = np.minimum(np.searchsorted(own, theirs), len(own) - 1)
    same = own[at] == theirs
    found[at[same]] = other.data[same]
    return found


def less_each(where: csr_array, whole: csr_array, rows: csr_array) -> csr_array:
    """Take each of some rows from a single one, at the entries of another single one.

    Shapes: ``where, whole`` [1, c], ``rows`` [g, c]; returns [g, c].

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> whole, rows = csr_array(np.array([[5.0, 6.0]])), csr_array(np.array([[0.0, 6.0]]))
    >>> less_each(whole, whole, rows).toarray().tolist()
    [[5.0, 0.0]]
    """
    n = rows.shape[0]
    ends = np.arange(n + 1, dtype=where.indptr.dtype) * where.nnz
    left = np.tile(held_at(where, whole), n)
    found = _as_wide(rows, left, np.tile(where.indices, n), ends)
    left -= held_at(found, rows)
    return found


def _keys(matrix: csr_array) -> npt.NDArray[np.int64]:
    return np.asarray(row_numbers(matrix) * matrix.shape[1] + matrix.indices)
