"""PSNR by hand; SSIM against a loop over windows; what must hold whatever the picture."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.tasks._images.compare import peak_signal_to_noise_db, structural_similarity

BLACK, WHITE = np.zeros((2, 3, 3), dtype=np.uint8), np.full((2, 3, 3), 255, dtype=np.uint8)


def noise(seed, height=16, width=14):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def test_psnr_by_hand():
    # Every pixel off by 25.5 would be a mean square of .01: 20 dB. One of the 18 numbers off by
    # 255 is a mean square of 1 / 18: 10 · log10(18) = 12.553 dB. All off by 255: 0 dB.
    assert peak_signal_to_noise_db(BLACK, WHITE, error_floor=0.0) == 0.0
    one = BLACK.copy()
    one[1, 2, 0] = 255
    assert peak_signal_to_noise_db(BLACK, one, error_floor=0.0) == pytest.approx(12.5527, abs=1e-4)
    # Half of the numbers off by 51 = .2 · 255: the mean square is .02, 16.990 dB.
    half = BLACK.copy()
    half[0] = 51
    assert peak_signal_to_noise_db(BLACK, half, error_floor=0.0) == pytest.approx(16.9897, abs=1e-4)


def test_the_floor_bounds_psnr_and_hardly_moves_it():
    assert peak_signal_to_noise_db(BLACK, BLACK, error_floor=0.0) == math.inf
    assert peak_signal_to_noise_db(BLACK, BLACK, error_floor=1e-8) == pytest.approx(80.0)
    assert peak_signal_to_noise_db(BLACK, WHITE, error_floor=1e-8) == 0.0  # not −4e-8
    # 40 dB is a mean square of 1e-4: the floor is a ten-thousandth of it, 10 · log10(1.0001).
    near = np.full((10, 10, 3), 100, dtype=np.uint8)
    other = near.copy()
    other[:5] += 3
    other[5:] += 2  # mean square 6.5 / 65025 = 9.996e-5
    plain = peak_signal_to_noise_db(near, other, error_floor=0.0)
    assert plain == pytest.approx(40.0017, abs=1e-3)
    assert plain - peak_signal_to_noise_db(near, other, error_floor=1e-8) == pytest.approx(
        10 * math.log10(1 + 1e-8 / (6.5 / 65025)), abs=1e-9
    )


def test_psnr_does_not_overflow_where_bytes_would():
    # 0 − 255 in 8 bits would be 1; 9,000 × 9,000 pixels would overflow 32 bits of squares.
    large = np.zeros((600, 600, 3), dtype=np.uint8)
    assert peak_signal_to_noise_db(large, large + 255, error_floor=0.0) == 0.0


def slow_ssim(a, b):
    """Equation 13 at each place where the whole window lies in the picture, by its definition."""
    offset = np.arange(11) - 5
    weights = np.exp(-(offset[:, None] ** 2 + offset[None, :] ** 2) / (2 * 1.5**2))
    weights /= weights.sum()
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    found = []
    for colour in range(3):
        for y in range(a.shape[0] - 10):
            for x in range(a.shape[1] - 10):
                p = a[y : y + 11, x : x + 11, colour].astype(float)
                q = b[y : y + 11, x : x + 11, colour].astype(float)
                mp, mq = (weights * p).sum(), (weights * q).sum()
                vp, vq = (weights * (p - mp) ** 2).sum(), (weights * (q - mq) ** 2).sum()
                cov = (weights * (p - mp) * (q - mq)).sum()
                found.append(
                    (2 * mp * mq + c1) * (2 * cov + c2)
                    / ((mp**2 + mq**2 + c1) * (vp + vq + c2))
                )  # fmt: skip
    return float(np.mean(found))


@pytest.mark.parametrize(("height", "width"), [(11, 11), (16, 14), (12, 30)])
def test_ssim_agrees_with_a_loop_over_windows(height, width):
    first = noise(1, height, width)
    for mixed in (0.0, 0.3, 0.9):
        second = (first * mixed + noise(2, height, width) * (1 - mixed)).astype(np.uint8)
        assert structural_similarity(first, second) == pytest.approx(
            slow_ssim(first, second), abs=1e-10
        )


def test_a_negative_is_unlike():
    assert structural_similarity(noise(3), 255 - noise(3)) < -0.5


@given(st.integers(0, 10_000), st.integers(0, 10_000))
def test_both_are_symmetric_and_best_for_equal_pictures(i, j):
    a, b = noise(i, 12, 13), noise(j, 12, 13)
    psnr, back = (peak_signal_to_noise_db(*p, error_floor=1e-8) for p in ((a, b), (b, a)))
    assert psnr == back <= peak_signal_to_noise_db(a, a, error_floor=1e-8)
    assert structural_similarity(a, b) == pytest.approx(structural_similarity(b, a))
    assert structural_similarity(a, a) == pytest.approx(1.0)


def test_more_noise_is_less_of_both():
    rng = np.random.default_rng(5)
    smooth = np.add.outer(np.arange(40), np.arange(40))[:, :, None].repeat(3, axis=2) + 60
    found = []
    for sd in (2, 5, 10, 20):
        noisy = np.clip(smooth + rng.normal(0, sd, smooth.shape), 0, 255).astype(np.uint8)
        pair = smooth.astype(np.uint8), noisy
        found.append(
            (peak_signal_to_noise_db(*pair, error_floor=0.0), structural_similarity(*pair))
        )
    assert sorted(found, reverse=True) == found
    # Noise of 10 of 255 with a rounding's variance of 1 / 12: −10 log10(100.3 / 65025) = 28.1 dB.
    assert found[2][0] == pytest.approx(28.1, abs=0.3)
