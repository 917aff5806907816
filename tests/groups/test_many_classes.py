"""Thousands of classes: what is counted and kept grows with the rows, not with their square."""

from __future__ import annotations

import tracemalloc

import numpy as np
import polars as pl
import pytest

from isolux.groups.measure import distinct_rows
from isolux.groups.measure.distinct_rows import DistinctRows
from isolux.tasks._balanced_accuracy import BALANCED_ACCURACY
from isolux.tasks.classification import label_matching

N_CLASSES, N = 4000, 8000


def test_each_column_of_a_class_costs_its_own_units_alone():
    rows = DistinctRows(N)
    for k in range(N_CLASSES):  # two units of each class, of which one is right
        units = np.array([k, k + N_CLASSES])
        rows.add(units, np.array([[1.0, 1.0], [0.0, 1.0]]))
    # A type for each pair of values that occurs, until there are too many: never one of each
    # column for each type.
    assert len(rows.parent) <= 2 * distinct_rows._MIN_MAX_TYPES + 2 * N_CLASSES
    matrix, index = rows.matrix()
    assert matrix.nnz <= N + 3 * N
    of_unit = matrix[index]
    for unit in (0, 17, N_CLASSES + 17):
        first = 1 + 2 * (unit % N_CLASSES)
        right = 1.0 if unit < N_CLASSES else 0.0
        assert of_unit[[unit]].toarray()[0, [0, first, first + 1]].tolist() == [1.0, right, 1.0]
        assert of_unit[[unit]].sum() == 2.0 + right


def test_types_are_ordered_by_their_first_columns():
    rows = DistinctRows(4)
    rows.add(np.arange(4), np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [1.0, 2.0]]))
    matrix, index = rows.matrix()
    assert matrix.toarray().tolist() == [[1, 0, 0], [1, 0, 1], [1, 1, 0], [1, 1, 2]]
    assert index.tolist() == [2, 1, 0, 3]


def test_sums_of_thousands_of_classes_are_sparse():
    evidence = pl.DataFrame({
        "truth": [[f"c{k % N_CLASSES}"] for k in range(N)],
        "correct": [k % 3 == 0 for k in range(N)],
    })  # fmt: skip
    tracemalloc.start()
    sums = BALANCED_ACCURACY.columns(evidence)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert sums.shape == (N, 2 * N_CLASSES)
    assert sums.nnz == N + sum(k % 3 == 0 for k in range(N))
    assert peak < 20e6  # as a full matrix it would be 512 MB


def test_a_class_that_a_row_names_twice_counts_once():
    evidence = pl.DataFrame({"truth": [["a", "a"], ["b"]], "correct": [True, False]})
    assert BALANCED_ACCURACY.columns(evidence).toarray().tolist() == [[1, 0, 1, 0], [0, 0, 0, 1]]


@pytest.mark.parametrize("n", [500, 2000])
def test_each_spelling_is_folded_a_few_times(monkeypatch, n):
    folded = label_matching._fold_spelling
    calls = []
    monkeypatch.setattr(
        label_matching, "_fold_spelling", lambda text: calls.append(text) or folded(text)
    )
    classes, answers = [f"class {k}" for k in range(n)], [f"klasse {k}" for k in range(n)]
    assert label_matching._match_spellings(answers, classes, classes) == {}
    assert len(calls) <= 8 * n


def test_an_abbreviation_of_one_class_is_found():
    classes = ["Female", "Male", "Non-binary", "North", "Northern"]
    found = label_matching._match_spellings(["F", "male", "N", "Northe", "Nonb"], classes, classes)
    # "N" may be one of three classes; "Northe" begins with "North" and begins "Northern".
    assert found == {"F": "Female", "male": "Male"}
