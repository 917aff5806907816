from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import SpecError, TableError
from isolux.geometry.matching import (
    Detections,
    OverlapPairs,
    Truths,
    limit_detections,
    match,
    match_best_overlap,
    outside_range,
    ranks_in_image,
)
from tests.geometry._coco import detection_ignored, detection_truth


def pairs_of(rows, n_detections, n_truths, lowest=0.5):
    """Pairs of one image from ``(detection, truth, iou)``."""
    d, t, iou = (np.array(column) for column in zip(*rows, strict=True))
    return OverlapPairs(
        np.zeros(len(d), int), d, t, iou.astype(float), lowest, n_detections, n_truths
    )


def one_image(scores, n_truths, **flags):
    found = Detections(np.zeros(len(scores), int), np.array(scores, float))
    return found, Truths(np.zeros(n_truths, int), **flags)


def test_the_surer_detection_takes_its_best_person_and_the_other_what_is_left():
    # Detection 1 (.9) takes person 0 (.8); detection 0 (.6) preferred 0 as well and gets 1 (.55)
    # at .5, nobody at .75.
    pairs = pairs_of([(0, 0, 0.9), (0, 1, 0.55), (1, 0, 0.8), (1, 1, 0.6)], 2, 2)
    found = match(pairs, *one_image([0.6, 0.9], 2), max_detections=None, thresholds=(0.5, 0.75))
    assert detection_truth(found).tolist() == [[1, -1], [0, 0]]
    assert found.truth_detection.tolist() == [[1, 1], [0, -1]]
    assert found.is_truth_detected.tolist() == [[True, True], [True, False]]


def test_equal_scores_keep_their_order_and_of_equal_overlaps_the_last_is_taken():
    pairs = pairs_of([(0, 0, 0.7), (0, 1, 0.7), (1, 0, 0.7), (1, 1, 0.7)], 2, 2)
    found = match(pairs, *one_image([0.5, 0.5], 2), max_detections=None, thresholds=(0.5,))
    assert detection_truth(found).tolist() == [[1], [0]]


def test_many_equal_scores_keep_their_order():
    # More candidates than are sorted by insertion: each wants person 0, the first gets him.
    n = 60
    pairs = pairs_of([(d, 0, 0.9) for d in range(n)], n, 1)
    found = match(pairs, *one_image([0.5] * n, 1), max_detections=None, thresholds=(0.5,))
    assert found.truth_detection.tolist() == [[0]]
    rising = match(pairs, *one_image(np.arange(n) / n, 1), max_detections=None, thresholds=(0.5,))
    assert rising.truth_detection.tolist() == [[n - 1]]


def test_an_ignored_person_is_taken_last_and_a_crowd_again_and_again():
    # Person 0 is ignored though he overlaps best; 1 counts; 2 is a crowd.
    rows = [(0, 0, 0.9), (0, 1, 0.6), (1, 0, 0.9), (2, 2, 0.8), (3, 2, 0.7), (4, 0, 0.9)]
    flags = {"ignore": np.array([True, False, False]), "crowd": np.array([False, False, True])}
    sides = one_image([0.9, 0.8, 0.7, 0.6, 0.5], 3, **flags)
    found = match(pairs_of(rows, 5, 3), *sides, max_detections=None, thresholds=(0.5,))
    assert detection_truth(found).ravel().tolist() == [1, 0, 2, 2, -1]
    assert detection_ignored(found).ravel().tolist() == [False, True, True, True, False]
    assert found.truth_detection.ravel().tolist() == [1, 0, 3]
    assert found.truth_ignored.tolist() == [True, False, True]


def test_a_threshold_of_one_accepts_what_rounding_spoiled():
    pairs = pairs_of([(0, 0, 1 - 1e-12)], 1, 1)
    found = match(pairs, *one_image([0.9], 1), max_detections=None, thresholds=(1.0,))
    assert found.is_truth_detected.all()


def test_a_detection_outside_the_range_is_ignored_unless_it_found_someone():
    pairs = pairs_of([(0, 0, 0.9)], 3, 1)
    found = match(
        pairs, *one_image([0.9, 0.8, 0.7], 1), max_detections=None, thresholds=(0.5, 0.95)
    )
    outside = np.array([True, True, False])
    assert detection_ignored(found, outside).tolist() == [[False, True], [True, True], [False] * 2]


def test_only_the_surest_of_an_image_or_of_its_class_take_part():
    # Image 0: scores .5 (class 0), .9 (class 1), .5 (class 0). Two a image: rows 1 and 0, for the
    # tie keeps its order. One a class: rows 0 and 1.
    image, score = np.array([0, 0, 0]), np.array([0.5, 0.9, 0.5])
    rows = [(0, 0, 0.9), (1, 1, 0.9), (2, 2, 0.9)]
    pairs = pairs_of(rows, 3, 3)
    plain = limit_detections(pairs, Detections(image, score), 2)
    assert plain.detection.tolist() == [0, 1]
    by_class = Detections(image, score, np.array([0, 1, 0]))
    assert limit_detections(pairs, by_class, 1).detection.tolist() == [0, 1]
    assert limit_detections(pairs, Detections(image, score), 3).detection.tolist() == [0, 1, 2]
    assert ranks_in_image(by_class).tolist() == [0, 0, 1]
    assert ranks_in_image(Detections(image, score)).tolist() == [1, 0, 2]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), max_size=90))
def test_ranks_are_places_after_a_stable_sort(rows):
    image, score, label = np.array(rows, dtype=int).reshape(-1, 3).T
    for labels in (None, label):
        found = ranks_in_image(Detections(image, score, labels))
        groups = image if labels is None else image * 3 + label
        for group in np.unique(groups):
            members = np.flatnonzero(groups == group)
            order = members[np.argsort(-score[members], kind="stable")]
            assert found[order].tolist() == list(range(len(order)))


@st.composite
def tangles(draw):
    """One image in which everything overlaps everything, more or less."""
    n, m = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    rows = [
        (d, t, draw(st.integers(5, 10)) / 10)
        for d in range(n)
        for t in range(m)
        if draw(st.booleans())
    ]
    scores = [draw(st.integers(0, 3)) / 4 for _ in range(n)]
    return rows, scores, n, m


@given(tangles())
def test_best_overlap_finds_everyone_whom_a_one_to_one_match_finds(tangle):
    rows, scores, n, m = tangle
    if not rows:
        return
    pairs = pairs_of(rows, n, m)
    best = match_best_overlap(pairs)
    for person in range(m):
        own = [(iou, -d) for d, t, iou in rows if t == person]
        iou, detection = max(own, default=(0.0, 1))
        assert (best.truth_iou[person], best.truth_detection[person]) == (iou, -detection)
    greedy = match(pairs, *one_image(scores, m), max_detections=None)
    assert (best.is_truth_detected(greedy.thresholds) | ~greedy.is_truth_detected).all()


def test_nobody_found_is_no_error():
    empty = OverlapPairs(*(np.empty(0, int),) * 3, np.empty(0), 0.5, 2, 3)
    found = match(empty, *one_image([0.5, 0.6], 3), max_detections=1)
    assert detection_truth(found).shape == (2, 10)
    assert not found.is_truth_detected.any()
    assert detection_ignored(found, np.array([True, False])).sum() == 10
    assert match_best_overlap(empty).truth_iou.tolist() == [0, 0, 0]
    nothing = OverlapPairs(*(np.empty(0, int),) * 3, np.empty(0), 0.5, 0, 0)
    assert match(nothing, *one_image([], 0), max_detections=100).is_truth_detected.shape == (0, 10)
    assert ranks_in_image(Detections(np.empty(0, int), np.empty(0))).shape == (0,)


def test_area_ranges_include_both_ends():
    assert outside_range(np.array([9.9, 10, 20, 20.1]), 10, 20).tolist() == [
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize("thresholds", [(), (0.0,), (1.1,), (np.nan,), ((0.5,),)])
def test_thresholds_that_are_none_are_refused(thresholds):
    with pytest.raises(SpecError, match="not a list of overlaps"):
        match(
            pairs_of([(0, 0, 0.9)], 1, 1),
            *one_image([0.5], 1),
            max_detections=None,
            thresholds=thresholds,
        )


def test_settings_that_contradict_the_pairs_are_refused():
    pairs, sides = pairs_of([(0, 0, 0.9)], 1, 1), one_image([0.5], 1)
    with pytest.raises(SpecError, match="lower than the overlap from which pairs") as caught:
        match(pairs, *sides, max_detections=None, thresholds=(0.4, 0.5))
    assert "no threshold below 0.5\n  found: 0.4" in str(caught.value)
    with pytest.raises(SpecError, match="belong to other tables"):
        match(pairs, *one_image([0.5, 0.6], 1), max_detections=None)
    with pytest.raises(SpecError, match="max_detections is not positive"):
        match(pairs, *sides, max_detections=0)


def test_tables_are_checked_once_with_the_row_named():
    image = np.array([0, 1])
    with pytest.raises(TableError, match="score is not a finite number") as caught:
        Detections(image, np.array([0.5, np.nan]))
    assert "detections, row 2, column 'score'" in str(caught.value)
    with pytest.raises(TableError, match="an image index is negative"):
        Truths(np.array([0, -1]))
    with pytest.raises(TableError, match="a class index is negative"):
        Detections(image, np.ones(2), np.array([-1, 0]))
    with pytest.raises(SpecError, match="not an index"):
        Truths(np.array([0.5]))
    with pytest.raises(SpecError, match="not as long as their images"):
        Detections(image, np.ones(3))
    with pytest.raises(SpecError, match="column 'crowd' is not true or false"):
        Truths(image, crowd=np.array([0, 1]))
