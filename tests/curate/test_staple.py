"""STAPLE beside its equations pixel by pixel, and beside SimpleITK where that is installed."""

from __future__ import annotations

import numpy as np
import pytest

from isolux_curate.shapes.staple import fit_staple


def by_the_pixel(drew: np.ndarray, rounds: int = 400) -> np.ndarray:
    """Equations 14, 15, 18 and 19 of Warfield et al. (2004), a pixel at a time, no logarithms."""
    prior = drew.mean()
    p = q = np.full(drew.shape[1], 0.99999)
    for _ in range(rounds):
        a = prior * np.prod(np.where(drew, p, 1 - p), axis=1)
        b = (1 - prior) * np.prod(np.where(drew, 1 - q, q), axis=1)
        w = a / (a + b)
        p = (w[:, None] * drew).sum(axis=0) / w.sum()
        q = ((1 - w)[:, None] * ~drew).sum(axis=0) / (1 - w).sum()
    return w


def drawings(seed: int, annotators: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """A true square of 20 by 20 in 50 by 50, and annotators who miss and invent pixels."""
    rng = np.random.default_rng(seed)
    true = np.zeros((50, 50), dtype=bool)
    true[10:30, 15:35] = True
    miss, invent = rng.uniform(0.02, 0.3, annotators), rng.uniform(0.01, 0.1, annotators)
    chance = np.where(true.reshape(-1, 1), 1 - miss, invent)
    return true.ravel(), rng.random((true.size, annotators)) < chance


def fitted(drew: np.ndarray) -> np.ndarray:
    patterns, which, counts = np.unique(drew, axis=0, return_inverse=True, return_counts=True)
    return fit_staple(patterns, counts).probability[which.ravel()]


@pytest.mark.parametrize("seed", range(4))
def test_patterns_counted_are_pixels_visited(seed):
    true, drew = drawings(seed)
    chance = fitted(drew)
    np.testing.assert_allclose(chance, by_the_pixel(drew), atol=1e-6)
    assert ((chance > 0.5) == true).mean() > 0.98
    assert ((chance > 0.5) == true).mean() > ((drew.mean(axis=1) > 0.5) == true).mean() - 0.002


def test_it_finds_how_well_each_annotator_draws():
    """Injected: the first misses 30 %, the second invents 20 %, the others draw well."""
    rng = np.random.default_rng(0)
    true = np.arange(20_000) < 6_000
    miss, invent = np.array([0.3, 0.05, 0.05, 0.05]), np.array([0.02, 0.2, 0.02, 0.02])
    drew = rng.random((len(true), 4)) < np.where(true[:, None], 1 - miss, invent)
    patterns, counts = np.unique(drew, axis=0, return_counts=True)
    fit = fit_staple(patterns, counts)
    assert fit.has_converged
    np.testing.assert_allclose(fit.sensitivity, 1 - miss, atol=0.02)
    np.testing.assert_allclose(fit.specificity, 1 - invent, atol=0.02)


def test_one_who_never_errs_does_not_break_it():
    """Two of three are without fault on their side: their logarithms would be infinite."""
    drew = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]], dtype=bool)
    chance = fit_staple(drew, [3182, 2, 112, 28, 172, 728]).probability
    assert chance[0] < 1e-6
    assert chance[5] > 1 - 1e-6


def test_nothing_drawn_is_nothing_found():
    fit = fit_staple(np.zeros((1, 3), dtype=bool), [100])
    assert fit.probability.tolist() == pytest.approx([0.0])


@pytest.mark.parametrize("seed", range(3))
def test_agrees_with_simpleitk(seed):
    sitk = pytest.importorskip("SimpleITK", reason="SIMPLEITK IS ABSENT: STAPLE was NOT compared")
    _, drew = drawings(seed)
    pictures = [
        sitk.GetImageFromArray(drew[:, k].reshape(50, 50).astype(np.uint8)) for k in range(5)
    ]
    theirs = sitk.GetArrayFromImage(sitk.STAPLE(pictures, 1.0)).ravel()
    np.testing.assert_allclose(fitted(drew), theirs, atol=1e-4)
