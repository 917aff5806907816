"""3.17 M boxes from COCO's results JSON to columns, beside pycocotools' ``loadRes``.

``isolux.predictions.read_outputs`` as a user calls it, in a fresh process, its kernels cached; the
seconds are those of the call, as the peer's are. One thread. Memory is the most that the whole
process held.

Beside it the same file by msgspec and by polars, a block at a time and with nothing checked
(``_json_blocks``): the least that a reader without a scanner of its own can cost.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

os.environ["POLARS_MAX_THREADS"] = "1"

from benchmarks._timing import last_line, quick  # isort: skip

from benchmarks._facet_peers import pycocotools
from benchmarks._facet_scale import make
from benchmarks._json_blocks import measured
from benchmarks.detection_groups import SHARES, bandwidth, growth

OURS = """
import json, sys, time
import isolux
from isolux.predictions import read_outputs
from benchmarks._facet_peers import peak_mb
start = time.process_time()
boxes = read_outputs(sys.argv[1])
first = time.process_time() - start
peak, n = peak_mb(), boxes.height
total = [float(boxes[name].sum()) for name in ("box_x", "box_y", "box_w", "box_h", "score")]
del boxes
start = time.process_time()
read_outputs(sys.argv[1])
again = time.process_time() - start
print(json.dumps({"first": first, "again": again, "peak_mb": peak, "boxes": n, "total": total}))
"""
COLUMN_BYTES = 4 * 8 + 8 + 3 * 16  # a box, its score, three views of text


def main() -> None:
    largest = 1 / 8 if quick() else 1.0
    seconds: dict[str, float] = {}
    for share in (s * largest for s in SHARES):
        world = make(share)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            results, _, _ = world.write(folder)
            size = results.stat().st_size
            runs = [ours(results) for _ in range(3)]
            found = min(runs, key=lambda run: float(run["first"]))
            if share == largest:
                peer = pycocotools(folder, "load")
                plain = {how: plainly(results, how) for how in ("msgspec", "polars")}
        seconds[f"{share:.4f}"] = found["first"]
        print(
            f"{found['first']:7.3f} s  {found['boxes']:9,} boxes, {size / 1e6:6.1f} MB of JSON,"
            f" {found['peak_mb']:.0f} MB held at most; again in the same process"
            f" {found['again']:.3f} s"
        )
    check(found, world.box.sum(axis=0).tolist(), peer["boxes"])
    for how, other in plain.items():
        check(other, world.box.sum(axis=0).tolist(), peer["boxes"])
        print(
            f"{how} by blocks: {other['s']:.2f} s, {other['peak_mb']:.0f} MB:"
            f" {other['s'] / found['first']:.1f} times our time,"
            f" {other['peak_mb'] / found['peak_mb']:.2f} times our memory"
        )
    print(growth(list(seconds.values())))
    written = COLUMN_BYTES * found["boxes"]
    floor = (size + written) / 1e9 / bandwidth()
    print(
        f"the floor we reckon: {floor:.3f} s ({size / 1e6:.0f} MB read and {written / 1e6:.0f} MB"
        f" of columns written once at the memory's rate); ours, warm, is"
        f" {found['again'] / floor:.0f} times that: {size / 1e6 / found['again']:.0f} MB/s"
    )
    print(f"pycocotools: {peer['load_s']:.1f} s, {peer['peak_mb']:.0f} MB")
    last_line(
        "load_results", found["first"], "pycocotools loadRes", peer["load_s"],
        ratio_again=peer["load_s"] / found["again"], peak_mb=found["peak_mb"],
        peer_peak_mb=peer["peak_mb"], memory_share=found["peak_mb"] / peer["peak_mb"],
        boxes=found["boxes"], bytes=size, floor_s=floor, seconds_by_share=seconds,
        by_blocks={how: [other["s"], other["peak_mb"]] for how, other in plain.items()},
    )  # fmt: skip


def plainly(results: Path, how: str) -> dict[str, Any]:
    return min((measured(results, how) for _ in range(3)), key=lambda run: float(run["s"]))


def ours(results: Path) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", OURS, str(results)], check=True, capture_output=True, text=True
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def check(found: dict[str, Any], sums: list[float], boxes: int) -> None:
    same = all(abs(a - b) <= 1e-9 * abs(b) for a, b in zip(found["total"], sums, strict=False))
    if not same or found["boxes"] != boxes:
        raise SystemExit("the boxes read are not those written, so the times mean nothing")


if __name__ == "__main__":
    main()
