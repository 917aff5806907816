"""Regions are filled, what surrounds them stays."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.core.errors import SpecError
from isolux_curate.privacy.photos import fill_boxes_or_refuse, load_region_filler

RAMP = np.tile(np.linspace(0, 255, 60).astype(np.uint8), (40, 1))[..., None].repeat(3, axis=2)


def test_black_within_and_nothing_without():
    """Half a pixel counts as a whole one: nothing of what is to go may stay."""
    done = fill_boxes_or_refuse(
        RAMP, [(20.5, 10, 9, 10), (-5, -5, 10, 10)], load_region_filler("black")
    )
    expected = RAMP.copy()
    expected[10:20, 20:30] = 0
    expected[:5, :5] = 0
    np.testing.assert_array_equal(done, expected)


def test_opencv_fills_from_what_surrounds():
    pytest.importorskip("cv2", reason="OPENCV IS NOT INSTALLED: in-painting was NOT run")
    damaged = RAMP.copy()
    damaged[10:20, 20:30] = 0
    done = fill_boxes_or_refuse(damaged, [(20, 10, 10, 10)], load_region_filler("opencv"))
    assert np.abs(done.astype(int) - RAMP).max() < 30
    np.testing.assert_array_equal(done[:10], RAMP[:10])


def test_a_region_outside_is_refused():
    with pytest.raises(SpecError, match="outside"):
        fill_boxes_or_refuse(RAMP, [(60, 0, 5, 5)], load_region_filler("black"))
