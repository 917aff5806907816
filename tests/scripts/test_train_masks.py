"""The recipe of the demo's network: the file it writes is the network that was trained."""

from __future__ import annotations

import numpy as np
import pytest

from scripts import train_masks


def state():
    """Give weights of the network's shapes, drawn by chance."""
    rng, found = np.random.default_rng(0), {}
    for k, (a, b) in enumerate(zip(train_masks.CHANNELS, train_masks.CHANNELS[1:], strict=False)):
        found[f"{2 * k}.weight"] = rng.normal(0, 0.2, (b, a, 3, 3)).astype(np.float32)
        found[f"{2 * k}.bias"] = rng.normal(0, 0.2, b).astype(np.float32)
    end = 2 * (len(train_masks.CHANNELS) - 1) + 2
    found[f"{end}.weight"] = rng.normal(0, 0.2, (2, train_masks.CHANNELS[-1])).astype(np.float32)
    found[f"{end}.bias"] = rng.normal(0, 0.2, 2).astype(np.float32)
    return found


def test_the_file_answers_as_pytorch_does(tmp_path):
    ort = pytest.importorskip("onnxruntime", reason="ONNXRUNTIME IS ABSENT: not compared")
    torch = pytest.importorskip(
        "torch", reason="PYTORCH IS ABSENT: that ONNX and torch agree was NOT checked"
    )
    weights = state()
    path = tmp_path / "net.onnx"
    path.write_bytes(train_masks.exported(weights))
    pictures = np.random.default_rng(1).random((3, 3, 96, 96)).astype(np.float32)
    (found,) = ort.InferenceSession(str(path)).run(None, {"x": pictures})
    values = torch.from_numpy(pictures)
    for k in range(len(train_masks.CHANNELS) - 1):
        own = (torch.from_numpy(weights[f"{2 * k}.{name}"]) for name in ("weight", "bias"))
        values = torch.relu(torch.nn.functional.conv2d(values, *own, stride=2, padding=1))
    end = 2 * (len(train_masks.CHANNELS) - 1) + 2
    line = (torch.from_numpy(weights[f"{end}.{name}"]) for name in ("weight", "bias"))
    wanted = torch.nn.functional.linear(values.amax((2, 3)), *line).numpy()
    assert np.abs(found - wanted).max() < 1e-4


def test_the_same_weights_are_the_same_bytes():
    assert train_masks.exported(state()) == train_masks.exported(state())


def test_rates_that_lie_too_far_apart_are_told(capsys):
    row = {"group": "8 to 10", "value": 0.4}
    assert train_masks.compared([row], [row | {"value": 0.4 + train_masks.TOLERANCE - 0.01}]) == 0
    assert train_masks.compared([row], [row | {"value": 0.4 + train_masks.TOLERANCE + 0.01}]) == 1
    assert "lies more than" in capsys.readouterr().err
