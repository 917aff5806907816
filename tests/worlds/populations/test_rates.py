"""Worlds as sums: their shapes, means, intra-class correlation, and independence."""

import numpy as np
import pytest

from isolux.core.errors import SpecError
from isolux_worlds import simulate_crossed, simulate_rates

SETTINGS = {
    "groups": 3,
    "subjects_per_group": 20,
    "photos": 10,
    "rates": (0.9, 0.7, 0.4),
    "icc": 0.3,
    "within_cluster": False,
    "worlds": 400,
}


def worlds(seed=1, **changes):
    return simulate_rates(np.random.default_rng(seed), **(SETTINGS | changes))


@pytest.mark.law
@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("icc", [0.0, 0.5])
def test_injected_means_are_kept(within, icc):
    # A group's rate has a standard error of at most sqrt(.24 (1 + 9 * .5) / (20 * 10)) = .081 a
    # world, .004 over 400: the bound is more than 4 of them.
    found = np.nanmean(worlds(within_cluster=within, icc=icc).rates(), axis=0)
    assert found == pytest.approx([0.9, 0.7, 0.4], abs=0.018)


@pytest.mark.law
@pytest.mark.parametrize("icc", [0.0, 0.1, 0.5])
def test_the_variance_of_a_cluster_is_beta_binomial(icc):
    made = worlds(icc=icc, worlds=1000)
    share = made.successes / 10
    p = np.array([0.9, 0.7, 0.4])
    expected = p * (1 - p) * (1 + 9 * icc) / 10
    assert share.var(axis=(0, 2)) / expected == pytest.approx([1, 1, 1], abs=0.08)


@pytest.mark.law
def test_one_subject_in_several_groups_hangs_together():
    # Two photos of one subject in two groups of equal rate have covariance icc * p (1 - p).
    made = worlds(rates=0.5, within_cluster=True, photos=30, icc=0.4, worlds=300)
    share = made.successes / np.where(made.photos == 0, np.nan, made.photos)
    a, b = share[:, 0].ravel(), share[:, 1].ravel()
    both = ~np.isnan(a) & ~np.isnan(b)
    assert np.cov(a[both], b[both])[0, 1] == pytest.approx(0.4 * 0.25, abs=0.008)


@pytest.mark.law
def test_worlds_groups_and_clusters_are_independent():
    # With positive icc and own subjects nothing correlates but photos of one subject, so the
    # variance of a group's rate over worlds is that of one cluster divided by 20.
    made = worlds(worlds=3000, rates=0.6)
    expected = 0.24 * (1 + 9 * 0.3) / 10 / 20
    assert made.rates().var(axis=0) / expected == pytest.approx([1, 1, 1], abs=0.15)
    assert np.abs(np.corrcoef(made.rates().T) - np.eye(3)).max() < 0.1


def test_shapes_and_counts():
    made = worlds(photos=(1, 4), worlds=50)
    assert made.photos.shape == made.successes.shape == (50, 3, 20)
    assert (made.photos.min(), made.photos.max()) == (1, 4)
    assert (made.successes <= made.photos).all()
    shared = worlds(within_cluster=True, worlds=50)
    assert shared.photos.shape == (50, 3, 60)
    assert (shared.photos.sum(axis=1) == 10).all()


def test_groups_of_unequal_size_end_in_clusters_without_photos():
    made = worlds(subjects_per_group=(5, 20, 10), worlds=7)
    assert (made.photos > 0).sum(axis=2).tolist() == [[5, 20, 10]] * 7
    assert made.successes[:, 0, 5:].max() == 0


def test_rates_of_0_and_1_are_kept_exactly():
    made = worlds(groups=2, rates=(0.0, 1.0), worlds=20)
    assert made.rates().tolist() == [[0.0, 1.0]] * 20


def test_a_group_without_photos_has_no_rate():
    made = worlds(groups=2, rates=0.5, subjects_per_group=1, photos=1, within_cluster=True)
    empty = made.photos.sum(axis=-1) == 0
    assert empty.any()
    assert np.isnan(made.rates()[empty]).all()


def test_a_seed_repeats():
    assert np.array_equal(worlds(3).successes, worlds(3).successes)
    assert not np.array_equal(worlds(3).successes, worlds(4).successes)


@pytest.mark.parametrize("changes", [{"rates": 1.2}, {"icc": 1.0}, {"icc": -0.1}])
def test_impossible_worlds_are_refused(changes):
    with pytest.raises(SpecError, match=r"cannot be drawn\n.*rates of 0 to 1, an icc of 0"):
        worlds(**changes)


def test_shared_subjects_have_no_group_sizes():
    with pytest.raises(SpecError, match=r"separate sizes(.|\n)*\[5, 20, 10\]"):
        worlds(within_cluster=True, subjects_per_group=(5, 20, 10))


@pytest.mark.parametrize("within", [False, True])
def test_crossed_attributes_share_their_answers(within):
    made = simulate_crossed(
        np.random.default_rng(0),
        attributes=4,
        groups=3,
        subjects=30,
        photos=5,
        rate=0.7,
        icc=0.2,
        within_cluster=within,
        worlds=20,
    )
    assert made.photos.shape == (20, 4, 3, 30)
    assert (made.photos.sum(axis=2) == 5).all()
    hits = made.successes.sum(axis=2)  # [worlds, attributes, subjects]: the same for each attribute
    assert (hits == hits[:, :1]).all()
    assert hits.mean() / 5 == pytest.approx(0.7, abs=0.08)
    groups_of_a_subject = (made.photos > 0).sum(axis=2)
    assert (groups_of_a_subject.max() > 1) == within
    if not within:
        assert ((made.photos > 0).sum(axis=3) == 10).all()
