"""Random weights: their laws, their streams, and that a seed repeats them."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.stats.weights import (
    BLOCK_SIZE,
    build_random_generator,
    draw_multinomial_weights,
    draw_poisson_weights,
    draw_random_sign_sums,
    draw_weight_batches,
    iterate_seeded_replicate_blocks,
    split_replicates_into_batch_sizes,
)

MANY = 40_000
FEW_KINDS = np.array([60, 30, 10])  # drawn kind by kind
MANY_KINDS = np.array([3, 1, 2, 4])  # drawn cluster by cluster


@pytest.mark.parametrize("copies", [FEW_KINDS, MANY_KINDS])
def test_multinomial_has_the_multinomials_moments(copies):
    n = int(copies.sum())
    drawn = draw_multinomial_weights(build_random_generator(1, "bootstrap"), copies, MANY)
    assert drawn.shape == (len(copies), MANY)
    assert (drawn.sum(axis=0) == n).all()
    share = copies / n
    exact = n * (np.diag(share) - np.outer(share, share))
    np.testing.assert_allclose(drawn.mean(axis=1), copies, rtol=0.02)
    np.testing.assert_allclose(np.cov(drawn), exact, atol=0.03 * n)


def test_poisson_and_signs_have_their_moments():
    drawn = draw_poisson_weights(build_random_generator(2, "bootstrap"), MANY_KINDS, MANY)
    np.testing.assert_allclose(drawn.mean(axis=1), MANY_KINDS, rtol=0.03)
    np.testing.assert_allclose(drawn.var(axis=1), MANY_KINDS, rtol=0.05)
    flipped = draw_random_sign_sums(build_random_generator(2, "signs"), MANY_KINDS, MANY)
    np.testing.assert_allclose(flipped.mean(axis=1), 0, atol=0.05)
    np.testing.assert_allclose(flipped.var(axis=1), MANY_KINDS, rtol=0.05)
    # k signs sum to -k, -k + 2, ..., k
    for k, row in zip(MANY_KINDS, flipped, strict=True):
        assert set(np.unique(row)) == set(range(-k, k + 1, 2))


def test_a_seed_repeats_and_purposes_blocks_and_seeds_differ():
    def draw(*key):
        return build_random_generator(*key).random(4).tolist()

    assert draw(3, "signs", 1) == draw(3, "signs", 1)
    every = [draw(s, p, b) for s in (3, 4) for p in ("signs", "bootstrap") for b in (0, 1)]
    assert len({tuple(x) for x in every}) == len(every)


def test_blocks_add_up_and_do_not_depend_on_how_many_are_asked_for():
    sizes = [size for _, size in iterate_seeded_replicate_blocks(2 * BLOCK_SIZE + 3, 0, "signs")]
    assert sizes == [BLOCK_SIZE, BLOCK_SIZE, 3]
    short = [rng.random() for rng, _ in iterate_seeded_replicate_blocks(BLOCK_SIZE + 1, 0, "signs")]
    longer = [
        rng.random() for rng, _ in iterate_seeded_replicate_blocks(3 * BLOCK_SIZE, 0, "signs")
    ]
    assert short == longer[:2]


def test_an_unknown_purpose_is_refused():
    with pytest.raises(KeyError, match="lottery"):
        build_random_generator(0, "lottery")


@pytest.mark.parametrize("law", ["multinomial", "poisson"])
@pytest.mark.parametrize("copies", [[1] * 50, [2000, 70], [3, 1, 1]])
@pytest.mark.parametrize("replicates", [1, 40, 63, 64, 95, 96, 200, BLOCK_SIZE])
def test_parts_side_by_side_are_what_the_law_draws_at_once(law, copies, replicates):
    at_once = {"multinomial": draw_multinomial_weights, "poisson": draw_poisson_weights}[law]
    expected = at_once(build_random_generator(1, "bootstrap"), np.array(copies), replicates)
    parts = [
        *draw_weight_batches(
            law, build_random_generator(1, "bootstrap"), np.array(copies), replicates
        )
    ]
    assert [part.shape[1] for part in parts] == split_replicates_into_batch_sizes(replicates)
    assert np.hstack(parts).tolist() == expected.tolist()


def test_no_part_is_too_small_for_what_is_compiled():
    for replicates in range(1, 600):
        sizes = split_replicates_into_batch_sizes(replicates)
        assert sum(sizes) == replicates
        assert len(sizes) == 1 or min(sizes) >= 32
        assert max(sizes) < 64
