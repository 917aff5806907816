"""One network as an ONNX file and as a checkpoint of PyTorch answers alike, to 1e-4."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from isolux.models import open_model
from scripts.onnx_file import Node, onnx_bytes
from tests.models._vision_ops import with_torchvision

torch = pytest.importorskip("torch", reason="PYTORCH IS ABSENT: ONNX was NOT held to it")
with_torchvision()  # transformers takes it for whole where it is installed
pytest.importorskip("transformers", reason="TRANSFORMERS IS ABSENT: ONNX was NOT held to PyTorch")
pytest.importorskip("onnxruntime", reason="ONNXRUNTIME IS ABSENT: it was NOT held to PyTorch")
pytestmark = pytest.mark.filterwarnings("ignore")

SIDE, NAMES = 64, ("nurse", "chef", "other")


def checkpoint(folder: Path):
    """Write a small ResNet whose normalisations are not the identity, and give it."""
    from transformers import ResNetConfig, ResNetForImageClassification, ViTImageProcessor

    torch.manual_seed(0)
    config = ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic",
        num_labels=len(NAMES), id2label=dict(enumerate(NAMES)),
    )  # fmt: skip
    net = ResNetForImageClassification(config).eval()
    for one in net.modules():
        if isinstance(one, torch.nn.BatchNorm2d):
            one.running_mean.normal_(0, 0.1)
            one.running_var.uniform_(0.5, 1.5)
            one.weight.data.uniform_(0.5, 1.5)
            one.bias.data.normal_(0, 0.1)
    net.classifier[-1].weight.data.mul_(4)  # so that the labels are not all alike
    net.save_pretrained(folder)
    ViTImageProcessor(size={"height": SIDE, "width": SIDE}).save_pretrained(folder)
    return net


def as_onnx(net) -> bytes:
    """Write the same network as ONNX, each normalisation folded into its convolution."""
    weights, nodes = {}, []

    def conv(layer, source, name):
        inner, norm = layer.convolution, layer.normalization
        by = norm.weight / torch.sqrt(norm.running_var + norm.eps)
        weights[f"{name}.w"] = (inner.weight * by[:, None, None, None]).detach().numpy()
        weights[f"{name}.b"] = (norm.bias - norm.running_mean * by).detach().numpy()
        how = {"strides": list(inner.stride), "pads": list(inner.padding) * 2,
               "kernel_shape": list(inner.kernel_size)}  # fmt: skip
        nodes.append(Node("Conv", [source, f"{name}.w", f"{name}.b"], [name], how))
        return name

    def relu(source):
        nodes.append(Node("Relu", [source], [f"{source}.r"]))
        return f"{source}.r"

    last = relu(conv(net.resnet.embedder.embedder, "x", "stem"))
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    nodes.append(Node("MaxPool", [last], ["pool"], pool))
    last = "pool"
    for k, stage in enumerate(net.resnet.encoder.stages):
        (block,) = stage.layers
        first, second = block.layer
        inner = conv(second, relu(conv(first, last, f"s{k}.1")), f"s{k}.2")
        plain = isinstance(block.shortcut, torch.nn.Identity)
        beside = last if plain else conv(block.shortcut, last, f"s{k}.s")
        nodes.append(Node("Add", [inner, beside], [f"s{k}"]))
        last = relu(f"s{k}")
    linear = net.classifier[-1]
    weights["fc.w"] = linear.weight.detach().numpy().T.copy()
    weights["fc.b"] = linear.bias.detach().numpy()
    nodes += [
        Node("GlobalAveragePool", [last], ["mean"]),
        Node("Flatten", ["mean"], ["flat"], {"axis": 1}),
        Node("Gemm", ["flat", "fc.w", "fc.b"], ["logits"]),
    ]
    return onnx_bytes(nodes, weights, {"x": ("float32", ("n", 3, SIDE, SIDE))},
                      {"logits": ("float32", ("n", len(NAMES)))})  # fmt: skip


def pictures():
    rng = np.random.default_rng(0)
    found = []
    for size in ((90, 70), (64, 64), (50, 120)):
        coarse = Image.fromarray(rng.integers(0, 256, (5, 7, 3)).astype(np.uint8))
        found.append(np.asarray(coarse.resize(size, Image.Resampling.BICUBIC)))
    return found


def scores(model):
    found = model.predictor([model.predictor.prepare(one) for one in pictures()])
    return found.sort("picture", "label")["score"].to_numpy()


def test_onnx_and_torch_of_one_network_agree(tmp_path):
    net = checkpoint(tmp_path / "net")
    (tmp_path / "net.onnx").write_bytes(as_onnx(net))
    (tmp_path / "names.txt").write_text("\n".join(NAMES))
    theirs = scores(open_model(f"hf:{tmp_path / 'net'}"))
    ours = scores(
        open_model(
            f"onnx:{tmp_path / 'net.onnx'}",
            ["answers=labels", f"labels={tmp_path / 'names.txt'}", "fit=stretch",
             "filter=bilinear", "mean=.5,.5,.5", "std=.5,.5,.5"],
        )
    )  # fmt: skip
    assert np.ptp(theirs.reshape(3, 3), axis=0).min() > 1e-3  # pictures get other answers
    np.testing.assert_allclose(ours, theirs, atol=1e-4)
