"""Masks from results JSON to average recall by group, end to end, beside pycocotools.

17,000 people in 11,000 pictures of 480 × 640, 220,000 masks as run lengths, eight groups. Both
sides read the same two files, one thread. Ours: ``load``, ``read_outputs``, the task segmentation,
a mean by group. pycocotools: ``COCO``, ``loadRes``, one class-agnostic ``evaluate`` at all sizes,
and its own matches put into groups. The recalls of all groups must be equal before times count.
Ours is the best of three runs, for it is over in a second; pycocotools runs once.

The floor, reckoned: every byte of the results has to be looked at to find where a number ends, and
every run of every mask that shares an image with a person is decoded and added up once. See
``floor``: a pass over the file's bytes and two over its runs, timed here.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pycocotools import mask as rle
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

import isolux
from benchmarks._timing import cpu_seconds, last_line, quick
from isolux.io.compile_cache import njit
from isolux.predictions import read_outputs
from isolux.tasks import score

IMAGES, PEOPLE, MASKS, GROUPS = 11_000, 17_000, 220_000, 8
HEIGHT, WIDTH, CORNERS = 480, 640, 40
HIGHEST = 100  # detections an image, as COCO's AR100


def main() -> None:
    parts = (64, 32, 16, 8) if quick() else (8, 4, 2, 1)
    with tempfile.TemporaryDirectory() as folder:
        warm(Path(folder))
        rows = [compare(Path(folder), part) for part in parts]
    print("people   masks     JSON MB  isolux s  pycocotools s  ratio  floor s")
    for r in rows:
        print(
            f"{r['people']:6,} {r['masks']:8,} {r['megabytes']:9.1f} {r['ours_s']:9.2f}"
            f" {r['peer_s']:14.2f} {r['peer_s'] / r['ours_s']:6.1f} {r['floor_s']:8.2f}"
        )
    whole = rows[-1]
    print("CPU seconds; stages of the last row: " + stages(whole["stages"]))
    growth = [b["ours_s"] / a["ours_s"] for a, b in itertools.pairwise(rows)]
    print("growth where the data double: " + ", ".join(f"{g:.2f}" for g in growth))
    last_line(
        "mask_ar", whole["ours_s"], "pycocotools", whole["peer_s"], people=whole["people"],
        masks=whole["masks"], floor_s=whole["floor_s"], times_floor=whole["ours_s"]
        / whole["floor_s"], stages=whole["stages"], growth=growth,
    )  # fmt: skip


def stages(spent: dict[str, float]) -> str:
    return ", ".join(f"{name} {seconds:.2f}" for name, seconds in spent.items())


def warm(folder: Path) -> None:
    """Compile or load every kernel: a process pays for that once, whatever the data's size."""
    truth, results = write(folder, 400)
    ours(truth, results)
    floor(results)


def compare(folder: Path, part: int) -> dict[str, Any]:
    truth, results = write(folder, part)
    best = min((cpu_seconds(lambda: ours(truth, results)) for _ in range(3)), key=lambda r: r[0])
    ours_s, (mine, spent) = best
    peer_s, theirs = cpu_seconds(lambda: peer(truth, results))
    if mine.keys() != theirs.keys() or any(abs(mine[g] - theirs[g]) > 1e-12 for g in mine):
        raise SystemExit(f"the two disagree, so their times mean nothing: {mine} {theirs}")
    return {
        "people": PEOPLE // part, "masks": MASKS // part, "ours_s": ours_s, "peer_s": peer_s,
        "megabytes": results.stat().st_size / 1e6, "floor_s": floor(results), "stages": spent,
    }  # fmt: skip


def ours(truth: Path, results: Path) -> tuple[dict[str, float], dict[str, float]]:
    spent: dict[str, float] = {}
    spent["people"], people = cpu_seconds(lambda: isolux.load("coco", truth))
    spent["results"], found = cpu_seconds(lambda: read_outputs(results, kind="masks"))
    options = {"metrics": ["average_recall"], "max_detections": HIGHEST}
    spent["segmentation"], scores = cpu_seconds(
        lambda: score("segmentation", people, found, **options)
    )
    spent["groups"], recall = cpu_seconds(lambda: by_group(scores.units))
    return recall, spent


def by_group(units: pl.DataFrame) -> dict[str, float]:
    group = (pl.col("unit_id").cast(pl.Int64) % GROUPS).cast(pl.String)
    return dict(units.group_by(group.alias("group")).agg(pl.col("value").mean()).iter_rows())


def peer(truth: Path, results: Path) -> dict[str, float]:
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO(truth)
        asked = COCOeval(coco, coco.loadRes(str(results)), "segm")
        asked.params.useCats = 0
        asked.params.areaRng, asked.params.areaRngLbl = [[0, 1e10]], ["all"]
        asked.params.maxDets = [HIGHEST]
        asked.evaluate()
    looked = [e for e in asked.evalImgs if e is not None]
    ids = np.concatenate([e["gtIds"] for e in looked]).astype(np.int64)
    share = np.concatenate([(e["gtMatches"] > 0).mean(axis=0) for e in looked])
    return {str(g): float(share[ids % GROUPS == g].mean()) for g in range(GROUPS)}


def write(folder: Path, part: int) -> tuple[Path, Path]:
    """Make people, a detector that draws them worse and worse, and its false alarms."""
    rng = np.random.default_rng(part)
    images, people, masks = IMAGES // part, PEOPLE // part, MASKS // part
    at = np.sort(rng.integers(0, images, people))
    shape = outlines(rng, people)
    near = rng.integers(0, people, masks // 2)
    blur = rng.exponential(4.0, masks // 2)[:, None, None]
    drawn = shape[near] + rng.normal(size=(masks // 2, 1, 2)) * blur
    drawn = drawn + rng.normal(size=drawn.shape) * blur / 4
    alarms = outlines(rng, masks - masks // 2)
    where = np.concatenate([at[near], rng.integers(0, images, len(alarms))])
    sure = rng.permutation(masks) / masks  # no ties
    truth, results = folder / f"truth{part}.json", folder / f"results{part}.json"
    annotations = [
        {
            "id": i + 1, "image_id": int(at[i]) + 1, "category_id": 1, "iscrowd": 0,
            "segmentation": found, "area": float(rle.area(found)),
            "bbox": rle.toBbox(found).tolist(),
        }
        for i, found in enumerate(filled(shape))
    ]  # fmt: skip
    for a in annotations:
        a["segmentation"] = as_text(a["segmentation"])
    size = {"height": HEIGHT, "width": WIDTH}
    file = {
        "images": [{"id": i + 1, "file_name": f"{i}.jpg", **size} for i in range(images)],
        "annotations": annotations,
        "categories": [{"id": 1, "name": "person"}],
    }
    truth.write_text(json.dumps(file))
    order = rng.permutation(masks)
    every = filled(np.concatenate([drawn, alarms])[order])
    rows = (
        {"image_id": int(i) + 1, "category_id": 1, "segmentation": as_text(m), "score": float(s)}
        for i, m, s in zip(where[order], every, sure[order], strict=True)
    )
    results.write_text(json.dumps(list(rows)))
    return truth, results


def outlines(rng: np.random.Generator, n: int) -> np.ndarray:
    """Draw standing ovals with uneven edges: ``[n, corners, 2]``, x and y."""
    turn = np.linspace(0, 2 * np.pi, CORNERS, endpoint=False)
    half = rng.lognormal(3.6, 0.6, (n, 1)) * np.array([[0.45, 1.0]])
    uneven = 1 + 0.18 * rng.normal(size=(n, CORNERS))
    middle = rng.random((n, 2)) * [WIDTH, HEIGHT]
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    return middle[:, None] + half[:, None] * circle * uneven[:, :, None]


def filled(shape: np.ndarray) -> list[dict[str, Any]]:
    """Fill outlines, cut off at the picture's edges."""
    inside = np.clip(shape, 0, [WIDTH, HEIGHT])
    return rle.frPyObjects(inside.reshape(len(shape), -1).tolist(), HEIGHT, WIDTH)


def as_text(found: dict[str, Any]) -> dict[str, Any]:
    return found | {"counts": found["counts"].decode()}


def floor(results: Path) -> float:
    """CPU seconds to add up the bytes of the file once and their five-bit digits twice."""
    data = np.frombuffer(results.read_bytes(), dtype=np.uint8)
    _passes(data[:10])
    return cpu_seconds(lambda: _passes(data))[0]


@njit()
def _passes(data: np.ndarray) -> int:
    total, value = 0, 0
    for _ in range(3):
        for byte in data:
            value = (value << 5) | (byte & 31)
            if byte & 32 == 0:
                total += value & 0xFFFFFF
                value = 0
    return total


if __name__ == "__main__":
    main()
