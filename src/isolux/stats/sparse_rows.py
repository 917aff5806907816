"""Rows of sparse matrices: selecting rows, and reading one matrix at the entries of another.

scipy does the same; for small matrices its indexing, sums and differences take three to five times
as long, and an audit selects rows a hundred times. All matrices here are in CSR format with sorted
indices.
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

MAX_ENTRIES_PER_BATCH = 500_000
"""Entries that are reduced at once: about twenty numbers are computed of each."""
_MAX_CELLS_PER_ENTRY = 8
"""Cells per entry up to which a dense table is faster than a search."""
_MAX_SLICED_ROWS = 512
"""Rows from which scipy's own indexing is as fast."""


def take_rows_of_all_arrays(container: Any, rows: npt.NDArray[Any]) -> Any:
    """Select rows of every array in a dataclass or tuple; other values are unchanged."""
    if isinstance(container, np.ndarray):
        return container[rows]
    if isinstance(container, tuple):
        return tuple(take_rows_of_all_arrays(element, rows) for element in container)
    if not is_dataclass(container) or isinstance(container, type):
        return container
    taken_fields = {
        field.name: take_rows_of_all_arrays(getattr(container, field.name), rows)
        for field in fields(container)
    }
    return replace(container, **taken_fields)


def take_matrix_rows(matrix: csr_array, indices: int | npt.NDArray[Any]) -> csr_array:
    """Return a copy of rows, in the order of the indices."""
    row_indices = np.atleast_1d(indices)
    if not 0 < len(row_indices) <= _MAX_SLICED_ROWS:
        return matrix[row_indices]
    starts, stops = matrix.indptr[row_indices], matrix.indptr[row_indices + 1]
    # A 0 of the pointers' own type: a Python 0 would make them 64-bit integers.
    row_pointers = np.concatenate([starts[:1] * 0, np.cumsum(stops - starts, dtype=starts.dtype)])
    row_slices = [slice(*pair) for pair in zip(starts.tolist(), stops.tolist(), strict=True)]
    values, columns = (
        np.concatenate([a[p] for p in row_slices]) for a in (matrix.data, matrix.indices)
    )
    return _build_csr_unchecked(matrix, values, columns, row_pointers)


def _build_csr_unchecked(
    template: csr_array,
    values: FloatArray,
    columns: npt.NDArray[Any],
    row_pointers: npt.NDArray[Any],
) -> csr_array:
    """Build a matrix of rows with the width of another, without validation by scipy."""
    from scipy.sparse import csr_array

    # To more rows, resize() would overwrite the new row pointers.
    if len(row_pointers) > len(template.indptr):
        return csr_array(
            (values, columns, row_pointers), shape=(len(row_pointers) - 1, template.shape[1])
        )
    matrix = copy(template)
    matrix.data, matrix.indices, matrix.indptr = values, columns, row_pointers
    matrix.resize((len(row_pointers) - 1, template.shape[1]))
    return matrix


def dense_to_csr(dense_matrix: FloatArray) -> csr_array:
    """Convert a dense matrix to a sparse one.

    Examples
    --------
    >>> dense_to_csr(np.array([[0.0, 1.0], [2.0, 0.0]])).toarray().tolist()
    [[0.0, 1.0], [2.0, 0.0]]
    """
    from scipy.sparse import csr_array

    flat_index = np.flatnonzero(dense_matrix)
    row_pointers = np.concatenate([[0], np.cumsum(np.count_nonzero(dense_matrix, axis=1))])
    columns = flat_index % max(dense_matrix.shape[1], 1)
    return csr_array(
        (dense_matrix.ravel()[flat_index], columns, row_pointers), shape=dense_matrix.shape
    )


def row_index_of_entries(matrix: csr_array) -> npt.NDArray[np.int64]:
    """Return the row of every entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def align_sum_and_count_entries(
    sums: csr_array, counts: csr_array, multiplicity: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], FloatArray, FloatArray, FloatArray]:
    """Align sums with counts: row, sum, count and multiplicity of every entry."""
    # A stored 0 is a cluster without units of the group.
    has_units = counts.data > 0
    row, column = row_index_of_entries(counts)[has_units], counts.indices[has_units]
    return (
        row,
        values_at_pattern_entries(counts, sums)[has_units],
        counts.data[has_units],
        multiplicity[column].astype(float),
    )


def values_at_pattern_entries(pattern: csr_array, matrix: csr_array) -> FloatArray:
    """Return the values of a matrix at the entries of another of its shape, 0 where it has none."""
    has_equal_counts = matrix.nnz == pattern.nnz and np.array_equal(matrix.indptr, pattern.indptr)
    if has_equal_counts and np.array_equal(matrix.indices, pattern.indices):
        return np.asarray(matrix.data, dtype=np.float64)
    values = np.zeros(pattern.nnz)
    if not pattern.nnz or not matrix.nnz:
        return values
    pattern_cells, matrix_cells = _flat_entry_positions(pattern), _flat_entry_positions(matrix)
    n_cells = pattern.shape[0] * pattern.shape[1]
    if n_cells <= _MAX_CELLS_PER_ENTRY * pattern.nnz:
        values = np.zeros(n_cells)
        values[matrix_cells] = matrix.data
        return values[pattern_cells]
    positions = np.minimum(np.searchsorted(pattern_cells, matrix_cells), len(pattern_cells) - 1)
    is_match = pattern_cells[positions] == matrix_cells
    values[positions[is_match]] = matrix.data[is_match]
    return values


def subtract_rows_from_total(
    pattern: csr_array, total_row: csr_array, rows: csr_array
) -> csr_array:
    """Subtract each row from a total, at the entries of a pattern row.

    Shapes: ``pattern, total_row`` [1, c], ``rows`` [g, c]; returns [g, c].

    Examples
    --------
    >>> from scipy.sparse import csr_array
    >>> whole, rows = csr_array(np.array([[5.0, 6.0]])), csr_array(np.array([[0.0, 6.0]]))
    >>> subtract_rows_from_total(whole, whole, rows).toarray().tolist()
    [[5.0, 0.0]]
    """
    n = rows.shape[0]
    row_pointers = np.arange(n + 1, dtype=pattern.indptr.dtype) * pattern.nnz
    remaining = np.tile(values_at_pattern_entries(pattern, total_row), n)
    differences = _build_csr_unchecked(rows, remaining, np.tile(pattern.indices, n), row_pointers)
    remaining -= values_at_pattern_entries(differences, rows)
    return differences


def _flat_entry_positions(matrix: csr_array) -> npt.NDArray[np.int64]:
    return np.asarray(row_index_of_entries(matrix) * matrix.shape[1] + matrix.indices)
