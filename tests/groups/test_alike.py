"""Units that are judged alike share a row; spread out again, the columns are as they were added."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.groups.measure.distinct_rows import DistinctRows


def _added(seed, n_units, *, repeated, many):
    """Add random blocks, and to a dense table by the definition: ``rows, dense, first columns``."""
    rng = np.random.default_rng(seed)
    rows, dense, firsts = DistinctRows(n_units), [np.ones((n_units, 1))], []
    for _ in range(3):
        units = (
            rng.integers(0, n_units, 8) if repeated else rng.permutation(n_units)[: n_units // 2]
        )
        values = rng.random(200) if many else np.array([0.0, 1.0, 0.5, -2.0])
        block = rng.choice(values, (len(units), 2))
        firsts.append(rows.add(units, block))
        dense.append(np.zeros((n_units, 2)))
        np.add.at(dense[-1], units, block)
    return rows, np.hstack(dense), firsts


@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_each_unit_adds_what_was_added_for_it(seed, repeated, many):
    rows, dense, firsts = _added(seed, 300, repeated=repeated, many=many)
    matrix, row_of = rows.matrix()
    assert firsts == [1, 3, 5]
    np.testing.assert_allclose(matrix.toarray()[row_of], dense, atol=1e-15)


def test_people_who_were_judged_alike_are_one_row():
    rows = DistinctRows(6)
    rows.add(np.arange(6), np.array([[1.0], [0.0], [1.0], [1.0], [0.0], [1.0]]))
    rows.add(np.array([0, 1, 2]), np.ones((3, 1)))
    matrix, row_of = rows.matrix()
    assert matrix.shape == (4, 3)
    assert row_of[0] == row_of[2] != row_of[3] == row_of[5]


@pytest.mark.parametrize("n_units", [0, 1])
def test_hardly_any_people(n_units):
    rows = DistinctRows(n_units)
    rows.add(np.arange(n_units), np.ones((n_units, 1)))
    matrix, row_of = rows.matrix()
    np.testing.assert_array_equal(matrix.toarray()[row_of], np.ones((n_units, 2)))


def test_nan_is_kept():
    rows = DistinctRows(2)
    rows.add(np.arange(2), np.array([[np.nan], [1.0]]))
    matrix, row_of = rows.matrix()
    assert np.isnan(matrix.toarray()[row_of][0, 1])
