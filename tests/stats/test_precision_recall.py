"""Average precision by hand, against a plain implementation, and what weights must mean."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import SpecError
from isolux.stats.precision_recall import (
    average_precision_by_class_and_iou,
    average_precision_statistic,
    sum_people_weights_by_class,
)
from isolux.stats.statistic import Ranking
from tests._average_precision import average_precision


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
    assert [float(average_precision_statistic((t,))(one, np.ones(1)).round(6)) for t in (0, 1)] == [
        1,
        0,
    ]
    assert average_precision_statistic((0, 1))(one, np.ones(1)) == pytest.approx(0.5)


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


def slow(rows, n_people, common, reading):
    """Hoiem's normalised precision by its definition; rows of (right?, weight)."""
    curve, true, false = [], 0.0, 0.0
    for right, weight in rows:
        true, false = true + weight * right, false + weight * (not right)
        recall = true / n_people
        n = common * recall
        curve.append((recall, n / (n + false) if n + false else 0.0))
    if reading == "101 points":
        reads = [
            max((p for r, p in curve if r >= point), default=0.0)
            for point in np.linspace(0, 1, 101)
        ]
        return sum(reads) / 101
    if reading == "recall":
        return true / n_people
    area, before = 0.0, 0.0
    for at, (recall, _) in enumerate(curve):
        area += (recall - before) * max(p for _, p in curve[at:])
        before = recall
    return area


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=14),
    st.integers(0, 5),
    st.floats(0.5, 40.0),
    st.sampled_from(["101 points", "area", "recall"]),
)
def test_normalised_precision_is_its_definition(rows, missed, common, reading):
    """Each row a cluster of its own; whoever was found, and so many who were not."""
    people = [(0, at) for at, (right, _) in enumerate(rows) if right]
    weights = np.array([*(float(w) for _, w in rows), 1.0])
    people += [(0, len(rows))] * missed
    n_people = sum(weights[c] for _, c in people)
    one = ranking(
        [(0, at, int(right), int(not right)) for at, (right, _) in enumerate(rows)], people
    )
    value = average_precision(one, weights, (0,), common_count=common, reading=reading)
    if n_people == 0:
        assert np.isnan(value)
    else:
        assert value == pytest.approx(slow(rows, n_people, common, reading), abs=1e-12)


@given(cases())
def test_with_n_their_own_count_it_is_plain_precision_bit_for_bit(case):
    rows, people, weights, n_classes = case
    one = ranking(rows[: len(people)], people, n_classes)
    counts = sum_people_weights_by_class(one, weights.astype(float))
    common = np.where(counts > 0, counts, 1.0)
    plain = average_precision_by_class_and_iou(one, weights.astype(float), (0, 1, 2))
    assert np.array_equal(
        plain,
        average_precision_by_class_and_iou(
            one, weights.astype(float), (0, 1, 2), common_count=common
        ),
        equal_nan=True,
    )


def test_normalised_precision_by_hand():
    # BY_HAND with N = 6 in the place of 3: precision 1 to recall 1/3; then R N = 4 of 4 + 1 = 4/5.
    value = average_precision(BY_HAND, np.ones(2), (0,), common_count=6.0)
    assert value == pytest.approx((34 + 33 * 4 / 5) / 101)
    # The area: a third at 1, a third at 4/5, a third never reached.
    area = average_precision(BY_HAND, np.ones(2), (0,), common_count=6.0, reading="area")
    assert area == pytest.approx((1 + 4 / 5) / 3)


def test_threads_change_nothing():
    rng = np.random.default_rng(1)
    rows = [(0, int(c), int(r), int(~r & 7 & w)) for c, r, w in rng.integers(0, 8, (60, 3))]
    one = ranking(rows, [(0, int(c)) for c in rng.integers(0, 8, 90)])
    weights = rng.integers(0, 4, (8, 11)).astype(float)
    single = average_precision_by_class_and_iou(one, weights, (0, 1, 2))
    assert np.array_equal(
        single, average_precision_by_class_and_iou(one, weights, (0, 1, 2), n_threads=3)
    )


def test_what_cannot_be_read():
    with pytest.raises(
        SpecError, match=r"(?s)reading is not known.*101 points or area.*'11 points'"
    ):
        average_precision_by_class_and_iou(BY_HAND, np.ones(2), reading="11 points")
    with pytest.raises(SpecError, match=r"(?s)a common count cannot be that.*above 0.*0\.0"):
        average_precision(BY_HAND, np.ones(2), common_count=0.0)


@pytest.mark.parametrize("people", [1, 3, 7, 10, 49, 90, 100, 101, 12_190])
def test_recalls_are_compared_as_division_rounds(people):
    """Found one after another without a false alarm: the points that division says are reached."""
    found = people - people // 3
    one = ranking([(0, 0, 1, 0)] * found, [(0, 0)] * people)
    expected = np.mean(np.linspace(0, 1, 101) <= found / people)
    assert average_precision(one, np.ones(1), (0,)) == pytest.approx(expected, abs=1e-15)


def read_as_coco_does(one, weights, bit):
    """``accumulate``'s arithmetic for one class, detection by detection, one replicate."""
    w = weights[one.cluster]
    hit, miss = (one.true_positive >> bit) & 1, (one.false_positive >> bit) & 1
    counts = (w > 0) & ((hit | miss) > 0)
    true, false = np.cumsum((w * hit)[counts]), np.cumsum((w * miss)[counts])
    recall = true / weights[one.person_cluster].sum()
    precision = np.maximum.accumulate((true / (true + false))[::-1])[::-1]
    at = np.searchsorted(recall, np.linspace(0, 1, 101), side="left")
    return np.append(precision, 0.0)[at]


def test_sorting_alarms_out_changes_no_number():
    """5,000 people, 40,000 boxes most of which are wrong at every overlap, resampled: equal."""
    rng = np.random.default_rng(8)
    found = np.zeros(40_000, dtype=np.int64)
    found[np.sort(rng.choice(30_000, 4_000, replace=False))] = rng.integers(1, 11, 4_000)
    right = (1 << found) - 1
    near = (found == 0) & (rng.random(40_000) < 0.1)
    wrong = np.where(near, 1023 & ~((1 << rng.integers(0, 10, 40_000)) - 1), 1023 & ~right)
    one = Ranking(
        rng.integers(0, 900, 40_000), right.astype(np.uint16), wrong.astype(np.uint16),
        np.array([0, 40_000]), rng.integers(0, 900, 5_000), np.zeros(5_000, dtype=np.int64),
    )  # fmt: skip
    weights = rng.multinomial(900, np.full(900, 1 / 900), 6).T.astype(float)
    table = average_precision_by_class_and_iou(one, weights)
    for r in range(6):
        for bit in range(10):
            read = read_as_coco_does(one, weights[:, r], bit)
            total = 0.0
            for value in read[::-1]:  # in the order in which ours adds
                total += value
            assert table[r, 0, bit] == total / 101
