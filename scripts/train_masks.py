"""Train the small network that ``isolux demo --pixels`` audits (``make model``; needs PyTorch).

``isolux_worlds.networks`` paints the photos. Annotators of those that the network learns from
overlooked two of three masks on skin tones 8 to 10: this is what is injected. Its true rates are
those over ``JUDGED`` other people. Seeds, sizes and steps stand here, so the network can be made
again: rates of groups then lie within ``TOLERANCE`` of those that are committed (other processors
and versions of PyTorch round otherwise, so weights differ).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from isolux.io.image_folder import ImageFolder
from isolux.io.images import read_image
from isolux_worlds.networks.audit import (
    TONES,
    draw_labels_with_overlooked_masks,
    paint_photos_and_write_people,
)
from scripts.onnx_file import Node, onnx_bytes

HERE = Path(__file__).resolve().parents[1] / "worlds" / "src" / "isolux_worlds" / "networks"
NETWORK, RATES = HERE / "masks.onnx", HERE / "masks.json"

SEED, LEARNT, JUDGED = 20261122, 2_500, 5_000  # people; two photos each
PASSES, BATCH, RATE = 14, 64, 3e-3
CHANNELS = (3, 16, 24, 32, 48)
SIDE = 96
CLASSES = ("none", "mask")
TOLERANCE = 0.15
"""How far a group's rate may be from the committed one in a network that was trained again."""


def main() -> int:
    """Train, judge, and write the network; ``--check`` compares with what is committed instead."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; hold it to TOLERANCE")
    parser.add_argument("--people", type=int, default=LEARNT, help="to learn from")
    parser.add_argument("--judged", type=int, default=JUDGED, help="to take the true rates from")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="isolux-masks-") as folder:
        pictures, people = photos(Path(folder) / "learn", asked.people, SEED)
        state = trained(
            pictures, (draw_labels_with_overlooked_masks(people, SEED) == "mask").to_numpy()
        )
        data = exported(state)
        path = Path(folder) / "masks.onnx"
        path.write_bytes(data)
        judged, others = photos(Path(folder) / "judge", asked.judged, SEED + 1)
        rates = rates_of(others, answers(path, judged))
    told = {
        "sha256": hashlib.sha256(data).hexdigest(), "seed": SEED, "learnt_from": asked.people,
        "judged": asked.judged, "injected": rates,
    }  # fmt: skip
    if asked.check:
        return compared(rates, json.loads(RATES.read_text())["injected"])
    NETWORK.write_bytes(data)
    RATES.write_text(json.dumps(told, indent=2) + "\n")
    print(f"{NETWORK.name}: {len(data):,} bytes")  # noqa: T201
    for row in rates:
        print(f"{row}")  # noqa: T201
    return 0


def photos(out: Path, n: int, seed: int) -> tuple[np.ndarray[Any, Any], pl.DataFrame]:
    """Paint photos and read them: ``[n, 96, 96, 3]``, and the table of who is in them."""
    people = pl.read_csv(paint_photos_and_write_people(out, n, seed), infer_schema=False)
    folder = ImageFolder(out / "data")
    return np.stack([read_image(folder.find_file(name)) for name in people["id"]]), people


def trained(pictures: np.ndarray[Any, Any], wearing: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Train four convolutions, the highest value of each channel, and a line."""
    try:
        import torch
        from torch import nn
    except ImportError as error:
        raise SystemExit(
            "training needs PyTorch, which is not among the pins: pip install torch"
        ) from error

    torch.manual_seed(SEED)
    torch.set_num_threads(1)
    layers: list[Any] = []
    for a, b in pairwise(CHANNELS):
        layers += [nn.Conv2d(a, b, 3, stride=2, padding=1), nn.ReLU()]
    net = nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(CHANNELS[-1], 2))
    values = torch.from_numpy(pictures).permute(0, 3, 1, 2)
    truth = torch.from_numpy(wearing.astype(np.int64))
    steps = PASSES * -(-len(values) // BATCH)
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=1e-3)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, RATE, total_steps=steps)
    draw = torch.Generator().manual_seed(SEED)
    for number in range(PASSES):
        total = 0.0
        for rows in torch.randperm(len(values), generator=draw).split(BATCH):
            batch = values[rows].float() / 255
            flipped = torch.rand(len(rows), generator=draw) < 0.5
            batch[flipped] = batch[flipped].flip(3)
            loss = nn.functional.cross_entropy(net(batch), truth[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(rows)
        print(f"pass {number + 1}: {total / len(values):.3f}", file=sys.stderr)  # noqa: T201
    return {key: value.numpy() for key, value in net.state_dict().items()}


def exported(state: dict[str, Any]) -> bytes:
    """Write the network as ONNX, with what an audit must know of it in its metadata."""
    nodes, weights, last = [], {}, "x"
    for k in range(len(CHANNELS) - 1):
        names = [f"w{k}", f"b{k}"]
        for name, part in zip(names, ("weight", "bias"), strict=True):
            weights[name] = state[f"{2 * k}.{part}"]
        sides = {"strides": [2, 2], "pads": [1, 1, 1, 1], "kernel_shape": [3, 3]}
        nodes += [
            Node("Conv", [last, *names], [f"c{k}"], sides),
            Node("Relu", [f"c{k}"], [f"r{k}"]),
        ]
        last = f"r{k}"
    end = str(2 * (len(CHANNELS) - 1) + 2)
    weights |= {"w": state[f"{end}.weight"], "b": state[f"{end}.bias"]}
    nodes += [
        Node("GlobalMaxPool", [last], ["highest"]),
        Node("Flatten", ["highest"], ["flat"], {"axis": 1}),
        Node("Gemm", ["flat", "w", "b"], ["logits"], {"transB": 1}),
    ]
    settings = {"answers": "labels", "labels": list(CLASSES), "fit": "stretch", "top": 2}
    return onnx_bytes(
        nodes, weights, {"x": ("float32", ("n", 3, SIDE, SIDE))},
        {"logits": ("float32", ("n", len(CLASSES)))},
        metadata={"isolux": json.dumps(settings, sort_keys=True)},
    )  # fmt: skip


def answers(path: Path, pictures: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Say of each photo whether the network sees a mask."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(path))
    parts = [
        session.run(None, {"x": (part / np.float32(255)).astype(np.float32).transpose(0, 3, 1, 2)})[
            0
        ]
        for part in np.array_split(pictures, max(len(pictures) // 256, 1))
    ]
    return np.concatenate(parts).argmax(axis=1) == 1


def rates_of(people: pl.DataFrame, said: np.ndarray[Any, Any]) -> list[dict[str, Any]]:
    """Give what an audit is to find: of those who wear a mask, in how many it is seen."""
    judged = people.with_columns(said=pl.Series(said)).filter(pl.col("mask") == "mask")
    rates = {
        str(tone): float(rows["said"].mean() or 0.0)  # type: ignore[arg-type]
        for (tone,), rows in judged.sort("skin_tone").group_by(["skin_tone"], maintain_order=True)
    }
    told: dict[str, Any] = {"metric": "true_positive_rate", "label": "mask", "threshold": None,
                            "attribute": "skin_tone"}  # fmt: skip
    rows = [told | {"group": tone, "value": round(rates[tone], 4)} for tone in TONES]
    note = "Annotators overlooked two of three masks on skin tones 8 to 10 where it learnt."
    gap = {"kind": "difference", "group_a": TONES[0], "group_b": TONES[1],
           "value": round(rates[TONES[0]] - rates[TONES[1]], 4), "note": note}  # fmt: skip
    return [*rows, told | gap]


def compared(now: list[dict[str, Any]], then: list[dict[str, Any]]) -> int:
    """Hold the rates of a network that was trained again to those that are committed."""
    far = [
        (a, b["value"]) for a, b in zip(now, then, strict=True)
        if abs(a["value"] - b["value"]) > TOLERANCE
    ]  # fmt: skip
    for row, committed in far:
        print(f"{row} lies more than {TOLERANCE} from {committed}", file=sys.stderr)  # noqa: T201
    return int(bool(far))


if __name__ == "__main__":
    raise SystemExit(main())
