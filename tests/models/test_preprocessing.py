"""From a picture to a network's input: Pillow's pixels, and the numbers that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from isolux.models._preprocessing import Preprocessing, copy_batch_to_device, stack_model_inputs

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def noise(height, width, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("colours", ["rgb", "bgr"])
@pytest.mark.parametrize("first", [True, False])
def test_numbers_are_to_the_bit_those_of_the_formula(dtype, colours, first):
    how = Preprocessing(24, 20, mean=MEAN, std=STD, dtype=dtype, colours=colours,
                        channels_first=first)  # fmt: skip
    small = Image.fromarray(noise(60, 50)).resize((20, 24), Image.Resampling.BILINEAR)
    shown = np.asarray(small)[..., ::-1] if colours == "bgr" else np.asarray(small)
    mean, std = np.float32(MEAN), np.float32(STD)
    wanted = ((shown * np.float32(1 / 255) - mean) / std).astype(dtype)
    found = how(noise(60, 50))
    assert np.array_equal(found.values, wanted.transpose(2, 0, 1) if first else wanted)
    assert found.nbytes == 3 * 24 * 20  # a byte a colour, until its batch is asked
    assert np.array_equal(stack_model_inputs([found, found])[1], found.values)
    assert stack_model_inputs([found]).dtype == dtype


@pytest.mark.parametrize("fit", ["crop", "pad", "stretch"])
@pytest.mark.parametrize("size", [(60, 90), (90, 60), (31, 300), (9, 7), (24, 20), (24, 50)])
def test_a_picture_seen_often_stays_the_same(fit, size):
    """From the third picture of a size on, other code resizes it than Pillow's."""
    how = Preprocessing(24, 20, fit=fit, share=0.875, filter="bicubic", dtype="uint8")
    one, other = noise(*size), noise(*size, seed=1)
    first = how(one).values
    how(other)
    assert np.array_equal(how(one).values, first)


def test_a_gpu_is_given_the_same_numbers():
    torch = pytest.importorskip("torch", reason="PYTORCH IS ABSENT: no tensor was made")
    how = Preprocessing(24, 20, mean=MEAN, std=STD)
    shown = [how(noise(60, 50, seed)) for seed in range(3)]
    wanted = stack_model_inputs(shown)
    assert np.array_equal(copy_batch_to_device(torch, shown, "cpu").numpy(), wanted)
    device = "cuda" if torch.cuda.is_available() else "cpu:0"  # by the way of bytes, too
    assert np.array_equal(copy_batch_to_device(torch, shown, device).cpu().numpy(), wanted)
