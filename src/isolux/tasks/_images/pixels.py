"""How unlike two pictures are, pixel by pixel: PSNR and SSIM. Arrays in, a number out."""

from __future__ import annotations

import math

import numpy as np

from isolux.io.images import Pixels

__all__ = ["SSIM_WINDOW", "peak_signal_to_noise_db", "structural_similarity"]

# Wang et al. (2004), section III-B: a Gaussian window; K1 and K2 keep 0 / 0 away.
SSIM_WINDOW = 11
_SSIM_SIGMA = 1.5
_K1, _K2 = 0.01, 0.03


def peak_signal_to_noise_db(first: Pixels, second: Pixels, *, error_floor: float) -> float:
    """Return −10 · log10(mean squared difference + ``error_floor``) of pixels from 0 to 1.

    Examples
    --------
    One of twelve numbers differs, by 51 of 255: the mean square is .04 / 12, hence 24.771 dB.

    >>> grey = np.full((2, 2, 3), 100, dtype=np.uint8)
    >>> other = grey.copy()
    >>> other[0, 0, 0] = 151
    >>> round(peak_signal_to_noise_db(grey, other, error_floor=0.0), 3)
    24.771
    >>> round(peak_signal_to_noise_db(grey, grey, error_floor=1e-8), 3)
    80.0
    """
    apart = first.astype(np.int32) - second.astype(np.int32)
    squared = float(np.einsum("ijk,ijk->", apart, apart, dtype=np.int64))
    error = squared / (255.0**2 * apart.size) + error_floor
    return max(-10.0 * math.log10(error), 0.0) if error > 0 else math.inf


def structural_similarity(first: Pixels, second: Pixels) -> float:
    """Return SSIM: equation 13 of Wang et al. (2004), averaged over windows and the three colours.

    Examples
    --------
    Two even greys, 100 and 200: (2 · 100 · 200 + 2.55²) / (100² + 200² + 2.55²).

    >>> grey = np.full((11, 11, 3), 100, dtype=np.uint8)
    >>> round(structural_similarity(grey, 2 * grey), 6)
    0.800026
    """
    from scipy.ndimage import correlate1d

    half = SSIM_WINDOW // 2
    window = np.exp(-(np.arange(-half, half + 1) ** 2) / (2 * _SSIM_SIGMA**2))
    window /= window.sum()
    a, b = first.astype(np.float64), second.astype(np.float64)
    stacked = np.stack([a, b, a * a, b * b, a * b])
    for axis in (1, 2):
        stacked = correlate1d(stacked, window, axis=axis, mode="nearest")
    mean_a, mean_b, aa, bb, ab = stacked[:, half:-half, half:-half]
    c1, c2 = (_K1 * 255) ** 2, (_K2 * 255) ** 2
    product = mean_a * mean_b
    squares = mean_a**2 + mean_b**2
    like = (2 * product + c1) * (2 * (ab - product) + c2)
    total = (squares + c1) * (aa + bb - squares + c2)
    return float(np.clip((like / total).mean(), -1.0, 1.0))
