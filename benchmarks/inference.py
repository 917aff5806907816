"""Pictures through a whole run beside the bare work: unpack, resize, forward.

JPEG files of 1500 × 2250 and a network of ResNet-18's size with random weights, by onnxruntime. The
peer is what no pipeline can do without: each file unpacked and resized, each batch through the
network, nothing else. CPU seconds of all threads; so the ratio is the share of the run that is that
work, and on cores that are kept busy the share of the speed that they allow. Of a picture: the run
of all less that of a quarter of them, so that what each run costs once (its record, opening the
model) is told apart; three rounds, both sides in turn, the middle ratio. Where transformers is
installed, its ``pipeline()`` reads the same files with the same network; and 10,000 small pictures
show whether memory grows.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
from PIL import Image

import isolux
from benchmarks._timing import cpu_seconds, last_line, quick
from isolux.core.containers import Dataset
from isolux.io.images import decode_image
from isolux.models import open_model
from scripts.onnx_file import Node, onnx_bytes

DISTINCT = 50  # small pictures; the others are links to them
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
    few, batch = quick(), 16
    n = 16 if few else 128
    with tempfile.TemporaryDirectory() as there:
        folder = Path(there)
        photos(folder, n)
        (folder / "names.txt").write_text("\n".join(f"c{k}" for k in range(1000)))
        (folder / "net.onnx").write_bytes(resnet18())
        beside_pipeline(folder, n, batch)
        many = 1_000 if few else 10_000
        alone = f"from benchmarks.inference import held; held({str(folder)!r}, {many})"
        subprocess.run([sys.executable, "-c", alone], check=True)  # whose memory is its own
        beside_bare_work(folder, n, batch)


def beside_bare_work(folder: Path, n: int, batch: int) -> None:
    """Time the whole run, and what no pipeline can do without."""
    options = ("answers=labels", f"labels={folder / 'names.txt'}")
    spec = f"onnx:{folder / 'net.onnx'}"
    model = open_model(spec, options)
    prepare, session = model.predictor.prepare, model.predictor.session
    files = [folder / f"{k}.jpg" for k in range(n // 4, n)]
    everyone = isolux.load("table", folder / "people.csv")
    some = replace(everyone, instances=everyone.instances.head(n // 4))

    def run(people: Dataset, out: str) -> float:
        seconds, found = cpu_seconds(
            lambda: isolux.predict(people, spec, out=folder / out, model_option=options)
        )
        if found.looks["reason"].null_count() < people.instances.height:
            raise SystemExit("some picture has no answer")
        return seconds

    run(some, "warm")  # what is imported is imported
    rounds: list[tuple[float, float, float, float]] = []
    for k in range(3):
        few_s, whole_s = run(some, f"few{k}"), run(everyone, f"whole{k}")
        unpack_s, shown = cpu_seconds(
            lambda: [prepare(decode_image(one.read_bytes(), "")).values for one in files]
        )
        stacks = [np.stack(shown[at : at + batch]) for at in range(0, len(shown), batch)]
        forward_s, _ = cpu_seconds(lambda stacks=stacks: [session.run(one) for one in stacks])
        rounds.append((whole_s - few_s, unpack_s, forward_s, few_s - (whole_s - few_s) / 3))
        each = [1e3 * seconds / len(files) for seconds in rounds[-1][:3]]
        print(f"a picture: unpack and resize {each[1]:.1f} ms, forward {each[2]:.1f} ms; in a run"
              f" {each[0]:.1f} ms, and {rounds[-1][3]:.2f} s once; ratio"
              f" {(unpack_s + forward_s) / (whole_s - few_s):.3f}")  # fmt: skip
    ours, unpack_s, forward_s, once = sorted(rounds, key=lambda r: (r[1] + r[2]) / r[0])[1]
    last_line("inference", ours, "unpack, resize and forward alone", unpack_s + forward_s,
              once_s=once)  # fmt: skip


def beside_pipeline(folder: Path, n: int, batch: int) -> None:
    """Time transformers' own pipeline on the same files, with the same checkpoint in both."""
    if find_spec("torch") is None or find_spec("transformers") is None:
        print("TRANSFORMERS IS ABSENT: its pipeline was NOT timed")
        return
    sys.modules["torchvision"] = None  # type: ignore[assignment] # one beside another PyTorch fails
    import torch
    from transformers import (
        ResNetConfig,
        ResNetForImageClassification,
        ViTImageProcessor,
        pipeline,
    )

    torch.manual_seed(0)
    config = ResNetConfig(hidden_sizes=[64, 128, 256, 512], depths=[2] * 4, layer_type="basic",
                          num_labels=1000)  # fmt: skip
    ResNetForImageClassification(config).save_pretrained(folder / "net")
    ViTImageProcessor(size={"height": 224, "width": 224}).save_pretrained(folder / "net")
    people = isolux.load("table", folder / "people.csv")
    spec = f"hf:{folder / 'net'}"
    theirs = pipeline("image-classification", str(folder / "net"), batch_size=batch)
    files = [str(folder / f"{k}.jpg") for k in range(n)]
    theirs(files[:batch])
    open_model(spec)  # what is imported is imported
    loaded_s, _ = cpu_seconds(lambda: open_model(spec))
    for name, work in (
        ("transformers' pipeline()", lambda: theirs(files)),
        ("isolux", lambda: isolux.predict(people, spec, out=folder / "torch", batch=batch)),
    ):
        began = time.monotonic()
        seconds, _ = cpu_seconds(work)
        opened = loaded_s if name == "isolux" else 0.0
        clock = time.monotonic() - began
        said = f"{1e3 * (seconds - opened) / n:.1f} ms of CPU a picture, by the clock"
        print(f"{name}: {said} {1e3 * (clock - opened) / n:.1f} ms (PyTorch, one thread)")


def held(there: str, n: int) -> None:
    """Print the most memory that this process held by then, over many small pictures."""
    folder = Path(there)
    many = folder / "many"
    many.mkdir()
    rng = np.random.default_rng(2)
    for k in range(n):
        if k < DISTINCT:
            noise = Image.fromarray(rng.integers(0, 256, (6, 8, 3)).astype(np.uint8))
            noise.resize((320, 240)).save(many / f"{k}.jpg")
        else:
            os.link(many / f"{k % DISTINCT}.jpg", many / f"{k}.jpg")
    pl.DataFrame({"id": [f"{k}.jpg" for k in range(n)]}).write_csv(many / "people.csv")
    marks, found = iter(sorted({n // 10, n // 2, n})), []
    at = next(marks)

    def tell(done: int, _of: int, _fresh: int) -> None:
        nonlocal at
        if done >= at:
            found.append(f"{done:,}: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10}")
            at = next(marks, n + 1)

    class Small:
        predicts = "embeddings"
        identity: ClassVar = {"of": "corners"}

        def __call__(self, pictures: Sequence[np.ndarray]) -> np.ndarray:
            return np.stack([one[:4, :8, 0].reshape(-1) for one in pictures]).astype(np.float32)

    isolux.predict(isolux.load("table", many / "people.csv"), Small(), out=folder / "small",
                   progress=tell)  # fmt: skip
    print("most memory held by then, MiB, of small pictures: " + "; ".join(found))


if __name__ == "__main__":
    main()
