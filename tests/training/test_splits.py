"""Who is learnt from: whole clusters aside, nested parts, cells that come equally often."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.core.errors import SpecError
from isolux.training.splits import (
    count_draws_per_cell,
    draw_held_out_mask_by_cluster,
    draw_rows_balanced_by_cell,
    sample_rows_at_most,
)


def test_clusters_are_held_out_as_a_whole():
    clusters = np.repeat(np.arange(40), 5)
    for seed in range(5):
        aside = draw_held_out_mask_by_cluster(clusters, 0.2, seed)
        assert aside.sum() == 40
        both = set(clusters[aside]) & set(clusters[~aside])
        assert not both
    assert (
        draw_held_out_mask_by_cluster(clusters, 0.2, 0)
        != draw_held_out_mask_by_cluster(clusters, 0.2, 1)
    ).any()


def test_two_clusters_are_always_left_to_learn_from():
    clusters = np.repeat(np.arange(4), [1, 1, 1, 97])
    for seed in range(10):
        aside = draw_held_out_mask_by_cluster(clusters, 0.5, seed)
        assert len(set(clusters[~aside])) >= 2
    with pytest.raises(SpecError, match="too few clusters"):
        draw_held_out_mask_by_cluster(np.array([0, 1, 2]), 0.2, 0)


def test_a_part_of_fewer_rows_is_inside_one_of_more():
    rows = np.arange(100, 200)
    small, large = sample_rows_at_most(rows, 9, 3), sample_rows_at_most(rows, 18, 3)
    assert len(small) == 9
    assert set(small) < set(large) < set(rows)
    assert sample_rows_at_most(rows, 500, 3).tolist() == rows.tolist()
    assert set(sample_rows_at_most(rows, 9, 4)) != set(small)


def test_each_cell_is_drawn_as_often_and_its_rows_in_turn():
    # 90 of a, 9 of b, 1 of c: 100 rows over 3 cells are 33 draws of each.
    cells = np.repeat([7, 8, 9], [90, 9, 1])
    assert count_draws_per_cell(cells) == 33
    drawn = draw_rows_balanced_by_cell(cells, np.random.default_rng(1))
    assert np.bincount(cells[drawn])[7:].tolist() == [33, 33, 33]
    times = np.bincount(drawn, minlength=100)
    assert times[:90].max() == 1  # 33 different ones of 90
    assert sorted(times[90:99].tolist()) == [3, 3, 3, 4, 4, 4, 4, 4, 4]  # 33 = 9 · 3 + 6
    assert times[99] == 33
    assert drawn.tolist() != sorted(drawn.tolist())


def test_epochs_draw_other_rows_of_a_large_cell_in_the_long_run_all():
    cells = np.repeat([0, 1], [60, 4])
    seen = set()
    for epoch in range(20):
        seen |= set(draw_rows_balanced_by_cell(cells, np.random.default_rng([0, epoch])).tolist())
    assert seen == set(range(64))
