"""Whole rows of sparse matrices, against scipy's own index and arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from isolux.stats.sparse_rows import (
    dense_to_csr,
    row_index_of_entries,
    subtract_rows_from_total,
    take_matrix_rows,
    values_at_pattern_entries,
)


def _matrix(seed: int, rows: int = 7, columns: int = 11, density: float = 0.4) -> csr_array:
    rng = np.random.default_rng(seed)
    return csr_array(
        np.where(rng.random((rows, columns)) < density, rng.normal(size=(rows, columns)), 0)
    )


@pytest.mark.parametrize("at", [3, [3], [0, 6, 3, 3], [], [*range(7)] * 3, [*range(7)] * 100])
def test_rows_are_those_that_scipy_takes(at):
    matrix = _matrix(1)
    wanted = np.asarray(at, dtype=np.int64)
    found = take_matrix_rows(matrix, wanted)
    theirs = matrix[np.atleast_1d(wanted)]
    assert found.toarray().tolist() == theirs.toarray().tolist()
    assert (found.shape, found.nnz) == (theirs.shape, theirs.nnz)
    assert (found @ np.arange(11.0)).tolist() == pytest.approx((theirs @ np.arange(11.0)).tolist())
    found.check_format(full_check=True)


@pytest.mark.parametrize("shape", [(7, 11), (1, 5), (3, 0), (0, 3)])
def test_laid_out_numbers_become_the_matrix_that_scipy_makes(shape):
    laid = _matrix(9).toarray()[: shape[0], : shape[1]]
    found, theirs = dense_to_csr(laid), csr_array(laid)
    assert found.shape == theirs.shape
    for name in ("data", "indices", "indptr"):
        assert getattr(found, name).tolist() == getattr(theirs, name).tolist()


def test_rows_are_a_copy():
    matrix = _matrix(2)
    before = matrix.toarray()
    take_matrix_rows(matrix, 1).data[:] = 99.0
    assert matrix.toarray().tolist() == before.tolist()


def test_a_row_without_entries_and_one_beyond_the_last():
    matrix = csr_array(np.zeros((2, 3)))
    assert take_matrix_rows(matrix, np.array([1, 0])).toarray().tolist() == [[0.0] * 3] * 2
    with pytest.raises(IndexError):
        take_matrix_rows(matrix, 2)


def test_the_row_of_every_entry():
    matrix = csr_array(np.array([[0.0, 0.0], [1.0, 2.0], [0.0, 3.0]]))
    assert row_index_of_entries(matrix).tolist() == [
        1, 1, 2,
    ]  # fmt: skip


@pytest.mark.parametrize("density", [0.0, 0.1, 0.5, 1.0])
def test_what_another_holds_at_each_entry(density):
    where, other = _matrix(3), _matrix(4, density=density)
    dense = other.toarray()
    entries = where.tocoo()
    assert (
        values_at_pattern_entries(where, other).tolist() == dense[entries.row, entries.col].tolist()
    )
    assert values_at_pattern_entries(where, where).tolist() == where.data.tolist()


def test_each_row_is_taken_from_everyone():
    counts = csr_array(np.array([[2.0, 1.0, 0.0, 3.0]]))
    # Everyone's sum of the first cluster is 0 (+1 and -1), and has no entry of its own.
    sums = csr_array(np.array([[0.0, 1.0, 0.0, 2.0]]))
    groups = csr_array(np.array([[1.0, 0.0, 0.0, 2.0], [-1.0, 1.0, 0.0, 0.0]]))
    left = subtract_rows_from_total(counts, sums, groups)
    assert left.toarray().tolist() == (sums.toarray() - groups.toarray()).tolist()
    assert left.indices.tolist() == [0, 1, 3, 0, 1, 3]
