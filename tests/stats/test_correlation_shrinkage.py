"""What two attributes share beyond chance: by hand, by loops, and over many draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from isolux.stats import correlation_shrinkage
from isolux.stats.correlation_shrinkage import (
    correlation_shrinkage_factors,
    mean_influences_from_overall,
)


def block(rows, everyone=None):
    rows = np.atleast_2d(np.asarray(rows, dtype=float))
    common = np.zeros((1, rows.shape[1])) if everyone is None else np.atleast_2d(everyone)
    return [(csr_array(rows), csr_array(common))]


def test_by_hand():
    # u = (1, 1, -1, -1) and v = (1, 1, -1, 1): sum uv = 2, sums of squares 4 and 4, so r² = 1/4;
    # sum (uv)² = 4 of 16, so chance gives 1/4 as well: nothing is left. With itself r² = 1, and
    # sqrt(1 - 1/4) is left.
    u, v = [1, 1, -1, -1], [1, 1, -1, 1]
    kept = correlation_shrinkage_factors([block(u), block(v), block(u)], np.ones(4, int))
    assert kept[0] == pytest.approx([1.0, 0.0, np.sqrt(0.75)])
    # A column that stands for two clusters is the same as the column twice.
    once = correlation_shrinkage_factors(
        [block([1, 2, -3]), block([2, 1, -3])], np.array([2, 1, 1])
    )
    twice = correlation_shrinkage_factors(
        [block([1, 1, 2, -3]), block([2, 2, 1, -3])], np.ones(4, int)
    )
    assert once == pytest.approx(twice)


def test_what_everyone_adds_is_taken_off():
    rng = np.random.default_rng(1)
    common = 5 * rng.normal(size=60)
    a, b = rng.normal(size=(3, 60)), rng.normal(size=(2, 60))
    blocks = [block(a + common, common), block(b + common, common)]
    plain = correlation_shrinkage_factors([block(a), block(b)], np.ones(60, int))
    assert correlation_shrinkage_factors(blocks, np.ones(60, int)) == pytest.approx(plain, abs=1e-9)


def by_loops(blocks, copies):
    """Follow the definition, entry by entry."""
    rows = [
        (k, own - everyone[0])
        for k, parts in enumerate(blocks)
        for part, common in parts
        for everyone in [common.toarray()]
        for own in part.toarray()
    ]
    found, expected = np.zeros((2, len(blocks), len(blocks)))
    for a, u in rows:
        for b, v in rows:
            size = (copies * u * u).sum() * (copies * v * v).sum()
            found[a, b] += (copies * u * v).sum() ** 2 / size
            expected[a, b] += (copies * (u * v) ** 2).sum() / size
    left = np.sqrt(np.clip(1.0 - expected / found, 0.0, 1.0))
    np.fill_diagonal(left, 1.0)
    return left


def test_against_loops_and_some_rows_for_all(monkeypatch):
    rng = np.random.default_rng(2)
    shared = rng.normal(size=(1, 300))
    blocks = [
        block(rng.normal(size=(40, 300)) + weight * shared, rng.normal(size=300) / 9)
        for weight in (0.0, 0.5, 0.7)
    ]
    copies = rng.integers(1, 4, 300)
    found = correlation_shrinkage_factors(blocks, copies)
    assert found == pytest.approx(by_loops(blocks, copies), abs=1e-9)
    monkeypatch.setattr(
        correlation_shrinkage, "_MAX_MULTIPLICATIONS", 300 * (3 * 12) ** 2
    )  # twelve rows a block
    few = correlation_shrinkage_factors(blocks, copies)
    assert abs(few - found).max() > 0
    assert few == pytest.approx(found, abs=0.25)
    assert few[1, 2] == pytest.approx(found[1, 2], abs=0.1)


def test_what_is_shared_is_kept_and_chance_is_not():
    # 200 pairs of blocks of six rows over 90 clusters. Chance alone: a squared correlation of 1/90
    # before; a shared cause that makes r = .5 is left with nearly all of it.
    rng = np.random.default_rng(3)
    apart, together = [], []
    for _ in range(200):
        one, other, cause = rng.normal(size=(6, 90)), rng.normal(size=(6, 90)), rng.normal(size=90)
        apart.append(
            correlation_shrinkage_factors([block(one), block(other)], np.ones(90, int))[0, 1]
        )
        both = [block(one + cause), block(other + cause)]
        together.append(correlation_shrinkage_factors(both, np.ones(90, int))[0, 1])
    assert np.mean(np.square(apart)) < 0.2
    assert np.median(apart) == pytest.approx(0.0, abs=0.2)
    assert min(together) > 0.9


def test_it_is_a_matrix_of_correlations():
    # a goes with b and b with c, a not with c: .97, .97 and 0 alone are no correlations.
    rng = np.random.default_rng(4)
    a, c = rng.normal(size=(1, 60)), rng.normal(size=(1, 60))
    c -= a * (a @ c.T) / (a @ a.T)  # exactly uncorrelated
    kept = correlation_shrinkage_factors([block(a), block(a + c), block(c)], np.ones(60, int))
    assert np.linalg.eigvalsh(kept).min() > -1e-12
    assert np.diagonal(kept) == pytest.approx(np.ones(3))
    assert kept[0, 1] > 0.5


def test_groups_that_do_not_vary():
    kept = correlation_shrinkage_factors(
        [block(np.zeros((2, 9))), block(np.ones((1, 9)))], np.ones(9, int)
    )
    assert kept.tolist() == [[1.0, 0.0], [0.0, 1.0]]
    empty = csr_array((2, 5))
    own, everyone = mean_influences_from_overall(empty, empty, (np.zeros(2), np.zeros(2)))
    assert own.toarray().tolist() == [[0.0] * 5]
    assert everyone.shape == (1, 5)
