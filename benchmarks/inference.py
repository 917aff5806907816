"""Pictures through a whole run beside the bare work: unpack, resize, forward.

JPEG files of 1500 × 2250 and a network of ResNet-18's size with random weights, by onnxruntime. The
peer is what no pipeline can do without: each file unpacked and resized, each batch through the
network, nothing else. CPU seconds of all threads; so the ratio is the share of the run that is that
work, and on cores that are kept busy the share of the speed that they allow.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from PIL import Image

import isolux
from benchmarks._timing import cpu_seconds, last_line, quick
from isolux.io.images import decode_image
from isolux.models import open_model
from scripts.onnx_file import Node, onnx_bytes

BLOCKS = (64, 64, 128, 128, 256, 256, 512, 512)


def resnet18() -> bytes:
    rng, weights, nodes = np.random.default_rng(0), {}, []

    def conv(name: str, source: str, into: int, out: int, side: int, stride: int) -> str:
        scale = np.sqrt(2 / (into * side * side))
        weights[f"{name}.w"] = rng.normal(0, scale, (out, into, side, side)).astype(np.float32)
        weights[f"{name}.b"] = np.zeros(out, np.float32)
        pad = side // 2
        nodes.append(
            Node("Conv", [source, f"{name}.w", f"{name}.b"], [name],
                 {"strides": [stride, stride], "pads": [pad] * 4, "kernel_shape": [side, side]})
        )  # fmt: skip
        return name

    def relu(source: str) -> str:
        nodes.append(Node("Relu", [source], [f"{source}.r"]))
        return f"{source}.r"

    last = relu(conv("stem", "x", 3, 64, 7, 2))
    pool = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    nodes.append(Node("MaxPool", [last], ["pool"], pool))
    last, width = "pool", 64
    for k, out in enumerate(BLOCKS):
        stride = 2 if out != width else 1
        inner = relu(conv(f"b{k}.1", last, width, out, 3, stride))
        inner = conv(f"b{k}.2", inner, out, out, 3, 1)
        beside = last if stride == 1 else conv(f"b{k}.s", last, width, out, 1, 2)
        nodes.append(Node("Add", [inner, beside], [f"b{k}"]))
        last, width = relu(f"b{k}"), out
    weights["fc.w"] = rng.normal(0, 0.01, (512, 1000)).astype(np.float32)
    weights["fc.b"] = np.zeros(1000, np.float32)
    nodes += [
        Node("GlobalAveragePool", [last], ["mean"]),
        Node("Flatten", ["mean"], ["flat"], {"axis": 1}),
        Node("Gemm", ["flat", "fc.w", "fc.b"], ["logits"]),
    ]
    return onnx_bytes(
        nodes, weights, {"x": ("float32", ("n", 3, 224, 224))},
        {"logits": ("float32", ("n", 1000))},
    )  # fmt: skip


def photos(folder: Path, n: int) -> None:
    rng = np.random.default_rng(1)
    for k in range(n):
        coarse = Image.fromarray(rng.integers(0, 256, (50, 75, 3)).astype(np.uint8))
        coarse.resize((2250, 1500), Image.Resampling.BICUBIC).save(folder / f"{k}.jpg", quality=90)
    pl.DataFrame({"id": [f"{k}.jpg" for k in range(n)]}).write_csv(folder / "people.csv")


def main() -> None:
    n, batch = (16 if quick() else 128), 16
    with tempfile.TemporaryDirectory() as there:
        folder = Path(there)
        photos(folder, n)
        (folder / "net.onnx").write_bytes(resnet18())
        (folder / "names.txt").write_text("\n".join(f"c{k}" for k in range(1000)))
        options = ("answers=labels", f"labels={folder / 'names.txt'}")
        spec = f"onnx:{folder / 'net.onnx'}"
        model = open_model(spec, options)
        prepare, session = model.predictor.prepare, model.predictor.session
        files = [(folder / f"{k}.jpg") for k in range(n)]
        people = isolux.load("table", folder / "people.csv")
        warm = np.stack([prepare(decode_image(files[0].read_bytes(), "")).values] * batch)
        session.run(warm)
        unpack_s, shown = cpu_seconds(
            lambda: [prepare(decode_image(one.read_bytes(), "")).values for one in files]
        )
        stacks = [np.stack(shown[at : at + batch]) for at in range(0, n, batch)]
        forward_s, _ = cpu_seconds(lambda: [session.run(one) for one in stacks])
        loaded_s, _ = cpu_seconds(lambda: open_model(spec, options))
        whole_s, found = cpu_seconds(
            lambda: isolux.predict(people, spec, out=folder / "out", model_option=options)
        )
        if found.looks["reason"].null_count() < n:
            raise SystemExit("some picture has no answer")
    bare_s = unpack_s + forward_s
    print(f"{n} pictures: unpack and resize {1e3 * unpack_s / n:.1f} ms each, forward"
          f" {1e3 * forward_s / n:.1f} ms; the whole run {1e3 * (whole_s - loaded_s) / n:.1f} ms,"
          f" and {loaded_s:.2f} s to open the model")  # fmt: skip
    last_line("inference", whole_s - loaded_s, "unpack, resize and forward alone", bare_s)


if __name__ == "__main__":
    main()
