"""Annotation files as large as FACET's, COCO's and FHIBE's to tables, each in a fresh process.

``isolux.datasets.load`` as a user calls it, beside the least that a person would write instead:
pandas and ``json.loads`` of each box for FACET's table (its masks are then still unread),
pycocotools' ``COCO(path)`` for COCO, pandas for FHIBE's. CPU seconds of all threads, kernels
compiled before; memory is the most that the whole process held. One thread.
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

from benchmarks import _dataset_files as made

CHILD = """
import json, sys, time
name, work, path = sys.argv[1:]
from benchmarks._facet_peers import peak_mb
if work == "ours":
    import isolux
    from isolux.datasets import load
    def run(): return load(name, path)
    def count(found): return found.instances.height
elif name == "coco":
    from pycocotools.coco import COCO
    import contextlib, io
    def run():
        with contextlib.redirect_stdout(io.StringIO()):
            return COCO(path)
    def count(found): return len(found.anns)
else:
    import pandas as pd
    def run():
        if name == "fhibe":
            return pd.read_csv(path)
        found = pd.read_csv(path + "/annotations.csv")
        found["bounding_box"] = [json.loads(cell) for cell in found["bounding_box"]]
        return found
    count = len
before = peak_mb()
start, wall = time.process_time(), time.perf_counter()
found = run()
print(json.dumps({"s": time.process_time() - start, "wall_s": time.perf_counter() - wall,
                  "peak_mb": peak_mb(), "before_mb": before, "rows": count(found)}))
"""
LIMITS = {"facet": (2.0, 500.0), "coco": (5.0, None), "fhibe": (None, None)}
PEERS = {"facet": "pandas and json.loads", "coco": "pycocotools COCO(path)", "fhibe": "pandas"}


def main() -> None:
    share = 1 / 16 if quick() else 1.0
    found: dict[str, dict[str, Any]] = {}
    for name in LIMITS:
        with tempfile.TemporaryDirectory() as folder:
            path = getattr(made, name)(Path(folder), share)
            files = path.rglob("*") if path.is_dir() else [path]
            size = sum(file.stat().st_size for file in files)
            child(name, "ours", path)  # compiles what is not compiled yet
            runs = [child(name, "ours", path) for _ in range(3)]
            ours = min(runs, key=lambda run: float(run["s"]))
            peer = child(name, "peer", path)
        if ours["rows"] != peer["rows"]:
            raise SystemExit(f"{name}: not the rows that were written, so the times mean nothing")
        found[name] = {"ours": ours, "peer": peer, "bytes": size}
        print(
            f"{name:5} {ours['rows']:8,} rows, {size / 1e6:6.1f} MB of files: {ours['s']:.2f} s,"
            f" {ours['peak_mb']:.0f} MB held at most; {PEERS[name]}: {peer['s']:.2f} s,"
            f" {peer['peak_mb']:.0f} MB"
        )
        say_limits(name, ours, share)
    coco = found["coco"]
    last_line(
        "load_datasets", coco["ours"]["s"], PEERS["coco"], coco["peer"]["s"],
        ratio_facet=found["facet"]["peer"]["s"] / found["facet"]["ours"]["s"],
        facet_s=found["facet"]["ours"]["s"], facet_mb=found["facet"]["ours"]["peak_mb"],
        coco_mb=coco["ours"]["peak_mb"], coco_peer_mb=coco["peer"]["peak_mb"],
        fhibe_s=found["fhibe"]["ours"]["s"], fhibe_mb=found["fhibe"]["ours"]["peak_mb"],
        fhibe_peer_mb=found["fhibe"]["peer"]["peak_mb"], fhibe_bytes=found["fhibe"]["bytes"],
    )  # fmt: skip


def say_limits(name: str, ours: dict[str, Any], share: float) -> None:
    seconds, memory = LIMITS[name]
    for limit, value, unit in ((seconds, ours["s"], "s"), (memory, ours["peak_mb"], "MB")):
        if limit is not None and share == 1.0:
            kept = "kept" if value <= limit else "NOT KEPT"
            print(f"      {limit:g} {unit}: {kept} ({value:.2f})")


def child(name: str, work: str, path: Path) -> dict[str, Any]:
    command = [sys.executable, "-c", CHILD, name, work, str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    read: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return read


if __name__ == "__main__":
    main()
