"""Cells of detections against every cell ranked by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import SpecError
from isolux.stats.detection_cells import DetectionIndex, DetectionOutcomes, rank_detection_cells
from isolux.stats.detection_cells.detection_kernels import stable_argsort_descending

EMPTY = np.empty(0, dtype=np.int64)


@st.composite
def worlds(draw):
    """People in places and cells, detections in places, and what was right or wrong."""
    n_places, n_cells = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    place, cells = st.integers(0, n_places - 1), st.sets(st.integers(0, n_cells - 1))
    people = draw(st.lists(st.tuples(place, cells), max_size=6))
    scores = st.sampled_from([0.1, 0.5, 0.9])
    found = draw(st.lists(st.tuples(place, scores), max_size=8))
    rows = []
    for at, (where, _) in enumerate(found):
        here = [p for p, (of, _) in enumerate(people) if of == where]
        if here and draw(st.booleans()):
            rows.append((at, draw(st.sampled_from(here)), draw(st.integers(1, 7))))
        if draw(st.booleans()):
            rows.append((at, -1, draw(st.integers(1, 7))))
    return people, found, rows, n_cells


@given(worlds())
def test_a_cell_holds_what_it_would_hold_alone(world):
    people, found, rows, n_cells = world
    columns = np.array(rows, dtype=np.int64).reshape(-1, 3)
    entries = [(p, c) for p, (_, cells) in enumerate(people) for c in cells]
    who, cell = np.array(entries, dtype=np.int64).reshape(-1, 2).T
    detection_place = np.array([place for place, _ in found], dtype=np.int64)
    person_place = np.array([place for place, _ in people], dtype=np.int64)
    places = DetectionIndex(detection_place, person_place, detection_place + 10, person_place + 10)
    ranking = rank_detection_cells(
        DetectionOutcomes(columns[:, 0], columns[:, 1], columns[:, 2].astype(np.uint16)),
        np.array([score for _, score in found]), places, who, cell, n_cells,
    )  # fmt: skip
    for c in range(n_cells):
        held = {people[p][0] for p, own in entries if own == c}
        expected = []
        for at, person, bits in sorted(rows, key=lambda row: -found[row[0]][1]):  # stable
            place = found[at][0]
            if person >= 0 and c in people[person][1]:
                expected.append((place + 10, bits, 0))
            elif person < 0 and place in held:
                expected.append((place + 10, 0, bits))
        own = slice(ranking.starts[c], ranking.starts[c + 1])
        assert (
            list(
                zip(
                    ranking.cluster[own],
                    ranking.true_positive[own],
                    ranking.false_positive[own],
                    strict=True,
                )
            )
            == expected
        )
        mine = ranking.person_cluster[ranking.person_class == c]
        assert sorted(mine) == sorted(people[p][0] + 10 for p, own in entries if own == c)


@pytest.mark.parametrize(
    "score",
    [
        np.round(np.random.default_rng(1).random(5_000), 2),  # crowded buckets, many equals
        np.random.default_rng(2).normal(size=3_000),
        np.append(np.random.default_rng(3).random(900), 1e300),  # all but one in one bucket
        np.zeros(7),
        np.array([1e308, -1e308, 0.0]),  # a range that overflows
        np.empty(0),
    ],
)
def test_falling_scores_keep_the_order_of_equals(score):
    assert np.array_equal(stable_argsort_descending(score), np.argsort(-score, kind="stable"))


def test_what_cannot_be_ranked():
    one, two = np.zeros(1, dtype=np.int64), np.array([0, 1])
    outcomes = DetectionOutcomes(one, one - 1, one.astype(np.uint16))
    places = DetectionIndex(one, two, one, two)
    with pytest.raises(SpecError, match=r"(?s)a cell has no such number.*0 to 1.*found: 2"):
        rank_detection_cells(outcomes, np.ones(1), places, two, np.array([0, 2]), 2)
    with pytest.raises(SpecError, match=r"(?s)score is not a finite number.*nan"):
        rank_detection_cells(outcomes, np.array([np.nan]), places, two, two, 2)


def test_nobody_and_nothing():
    places = DetectionIndex(EMPTY, EMPTY, EMPTY, EMPTY)
    nothing = DetectionOutcomes(EMPTY, EMPTY, EMPTY.astype(np.uint16))
    ranking = rank_detection_cells(nothing, np.empty(0), places, EMPTY, EMPTY, 3)
    assert ranking.starts.tolist() == [0, 0, 0, 0]
