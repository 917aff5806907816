"""Distances of pairs against scipy's, what a sample of them may miss, and the map."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from isolux.core.errors import InputError
from isolux.stats import pairwise
from isolux.stats.pairwise import METRICS, map_to_plane_by_tsne, sample_pairwise_distances


def test_by_hand():
    # (0, 3) and (4, 0): |−4| + |3| = 7; √(16 + 9) = 5; at right angles
    found = sample_pairwise_distances(np.array([[0.0, 3.0], [4.0, 0.0]]))
    assert found.values[:, 0].tolist() == [7.0, 5.0, 1.0]
    assert (found.pairs, found.is_sampled, found.same_subject_share) == (1, False, None)


@pytest.mark.parametrize("d", [1, 63, 64, 130])
def test_all_pairs_are_scipys(d):
    made = np.random.default_rng(d).normal(size=(40, d)) + 0.5
    found = sample_pairwise_distances(made)
    for metric, theirs in zip(METRICS, ("cityblock", "euclidean", "cosine"), strict=True):
        expected = pdist(made.astype(np.float32).astype(np.float64), theirs)
        assert found.values[METRICS.index(metric)] == pytest.approx(expected, rel=1e-5, abs=1e-6)


def test_a_sample_of_pairs_stands_for_all(monkeypatch):
    made = np.random.default_rng(0).normal(size=(300, 20))
    whole = sample_pairwise_distances(made)
    monkeypatch.setattr(pairwise, "MAX_PAIRS", 20_000)
    part = sample_pairwise_distances(made, seed=1)
    assert not whole.is_sampled
    assert part.is_sampled
    assert part.pairs == whole.pairs == 300 * 299 // 2
    assert part.values.shape == (3, 20_000)
    assert (part.values[1] > 0.0).all()  # nobody is paired with themselves
    for metric in METRICS:
        at = whole.quantiles(metric, [0.1, 0.5, 0.9])
        below = [(part.values[METRICS.index(metric)] <= q).mean() for q in at]
        assert below == pytest.approx([0.1, 0.5, 0.9], abs=5 * 0.5 / np.sqrt(20_000))
    assert np.array_equal(part.values, sample_pairwise_distances(made, seed=1).values)


def test_pairs_of_one_subject_are_counted():
    # three photos of s and one of t: of six pairs three are within s
    made = np.eye(4)
    assert sample_pairwise_distances(made, subject=np.array([0, 0, 0, 1])).same_subject_share == 0.5


@pytest.mark.parametrize("n", [0, 1])
def test_without_a_pair_there_is_no_distance(n):
    found = sample_pairwise_distances(np.ones((n, 3)), subject=np.zeros(n, np.int64))
    assert found.pairs == 0
    assert found.same_subject_share is None
    assert np.isnan(found.quantiles("L1", [0.5])).all()


def test_what_is_not_finite_is_refused():
    with pytest.raises(InputError, match="finite numbers of shape"):
        sample_pairwise_distances(np.array([[np.inf, 0.0]]))


def test_a_map_keeps_clouds_apart_and_repeats():
    rng = np.random.default_rng(0)
    group = np.repeat([0, 1], 30)
    made = rng.normal(size=(60, 80)) + 3.0 * np.array([np.ones(80), -np.ones(80)])[group]
    places = map_to_plane_by_tsne(made, seed=2)
    assert places.shape == (60, 2)
    centres = [places[group == g].mean(axis=0) for g in (0, 1)]
    own = np.array([centres[g] for g in group])
    other = np.array([centres[1 - g] for g in group])
    near = np.linalg.norm(places - own, axis=1) < np.linalg.norm(places - other, axis=1)
    assert near.all()
    assert np.array_equal(places, map_to_plane_by_tsne(made, seed=2))


def test_few_or_equal_vectors_are_no_map_or_one_point():
    assert map_to_plane_by_tsne(np.eye(3)) is None
    assert np.array_equal(map_to_plane_by_tsne(np.ones((6, 4))), np.zeros((6, 2)))
    assert np.isfinite(map_to_plane_by_tsne(np.random.default_rng(0).normal(size=(5, 1)))).all()
