"""Average precision by hand, against a plain implementation, and what weights must mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.stats.precision_recall import average_precision, average_precision_at
from isolux.stats.statistic import Ranking


def ranking(rows, people, n_classes=1):
    """Rows of (class, cluster, right, wrong), sorted; people of (class, cluster)."""
    rows = sorted(rows, key=lambda row: row[0])
    columns = np.array(rows, dtype=np.int64).reshape(-1, 4)
    persons = np.array(people, dtype=np.int64).reshape(-1, 2)
    return Ranking(
        columns[:, 1].copy(),
        columns[:, 2].astype(np.uint16),
        columns[:, 3].astype(np.uint16),
        np.searchsorted(columns[:, 0], np.arange(n_classes + 1)).astype(np.int64),
        persons[:, 1].copy(),
        persons[:, 0].copy(),
    )


def plain(rows, people, weights, bits, n_classes=1):
    """The definition: list every detection as often as it weighs, and read 101 recalls."""
    found = []
    for k in range(n_classes):
        n = sum(weights[c] for label, c in people if label == k)
        if n == 0:
            continue
        for bit in bits:
            hits = [
                (right >> bit) & 1
                for label, c, right, wrong in rows
                if label == k and ((right | wrong) >> bit) & 1
                for _ in range(weights[c])
            ]
            recall = np.cumsum(hits) / n
            precision = np.cumsum(hits) / np.arange(1, len(hits) + 1)
            for point in np.linspace(0, 1, 101):
                reached = precision[recall >= point]
                found.append(reached.max() if len(reached) else 0.0)
    return np.mean(found) if found else np.nan


# One class, one overlap. People in clusters 0, 0, 1; right, wrong, right, one never found.
#   recall 1/3, 1/3, 2/3; precision 1, 1/2, 2/3. Points 0..33 (34 of them) read 1, 34..66 (33) 2/3.
BY_HAND = ranking([(0, 0, 1, 0), (0, 1, 0, 1), (0, 1, 1, 0)], [(0, 0), (0, 0), (0, 1)])


def test_average_precision_by_hand():
    value = average_precision(BY_HAND, np.ones(2), overlaps=(0,))
    assert value == pytest.approx((34 + 33 * 2 / 3) / 101)


def test_a_cluster_that_weighs_nothing_is_not_there():
    # Cluster 1 gone: one of two people found, without a false alarm: 51 points (0 to .50) read 1.
    value = average_precision(BY_HAND, np.array([1.0, 0.0]), overlaps=(0,))
    assert value == pytest.approx(51 / 101)


def test_nobody_to_be_found_is_undefined_not_zero():
    weights = np.array([[0.0, 1.0], [0.0, 1.0]])
    value = average_precision(BY_HAND, weights, overlaps=(0,))
    assert np.isnan(value[0])
    assert value[1] > 0


def test_people_whom_nobody_looked_for_are_missed():
    assert average_precision(ranking([], [(0, 0)]), np.ones(1)) == 0.0


def test_classes_without_people_are_left_out_of_the_mean():
    rows = [(0, 0, 1, 0), (1, 0, 0, 1)]
    assert average_precision(ranking(rows, [(0, 0)], 2), np.ones(1), (0,)) == pytest.approx(1.0)
    both = ranking(rows, [(0, 0), (1, 0)], 2)
    assert average_precision(both, np.ones(1), (0,)) == pytest.approx(0.5)


def test_each_overlap_is_a_bit():
    # Right at the first overlap alone, wrong at the second.
    one = ranking([(0, 0, 0b01, 0b10)], [(0, 0)])
    assert [float(average_precision_at((t,))(one, np.ones(1)).round(6)) for t in (0, 1)] == [1, 0]
    assert average_precision_at((0, 1))(one, np.ones(1)) == pytest.approx(0.5)


@st.composite
def cases(draw):
    n_classes, n_clusters = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    of = st.tuples(st.integers(0, n_classes - 1), st.integers(0, n_clusters - 1))
    people = draw(st.lists(of, max_size=8))
    rows = [
        (*draw(of), right := draw(st.integers(0, 7)), draw(st.integers(0, 7)) & ~right)
        for _ in range(draw(st.integers(0, 15)))
    ]
    weights = draw(
        st.lists(
            st.lists(st.integers(0, 3), min_size=n_clusters, max_size=n_clusters),
            min_size=1,
            max_size=4,
        )
    )
    return rows, people, np.array(weights).T, n_classes


@given(cases())
def test_a_weight_is_how_often_a_row_stands_there(case):
    rows, people, weights, n_classes = case
    # Recall beyond 1 (more right detections than people) is no case that matching can give.
    rows = rows[: len(people)]
    value = average_precision(
        ranking(rows, people, n_classes), weights.astype(float), overlaps=(0, 1, 2)
    )
    expected = [plain(sorted(rows, key=lambda r: r[0]), people, w, (0, 1, 2), n_classes)
                for w in weights.T]  # fmt: skip
    np.testing.assert_allclose(value, expected, atol=1e-12)
