"""Recall at ten overlaps of 206 groups, beside one pass of pycocotools and 206 of hotcoco.

From columns, as a user calls it: ``isolux.score`` and ``average_metrics_by_group``. The values for
everyone are compared with pycocotools', those of groups with hotcoco's, before a ratio is given.
``--end-to-end``: a fresh process from COCO's JSON to the 206 groups, kernels and bytecode cached
and the collector set as the command line sets it, beside pycocotools' load and pass, whose
process is not counted. One thread.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ["POLARS_MAX_THREADS"] = "1"
os.environ["RAYON_NUM_THREADS"] = "1"

from benchmarks._timing import cpu_seconds, last_line  # isort: skip

import numpy as np
import polars as pl

import isolux
from benchmarks._facet_peers import hotcoco, pycocotools
from benchmarks._facet_scale import BY, GROUPS, World, make
from isolux.core.containers import Dataset
from isolux.groups import build_membership
from isolux.groups.measure import average_metrics_by_group

OVERLAPS = tuple(np.linspace(0.5, 0.95, 10).tolist())
SHARES = (1 / 8, 1 / 4, 1 / 2, 1.0)
BYTECODE = Path(tempfile.gettempdir()) / "isolux-benchmarks-bytecode"
NS_A_PAIR = 1.0  # a dozen operations, four a cycle, at 3 GHz

OURS = """
import json, sys, time
from isolux.cli import reduce_garbage_collection
reduce_garbage_collection()  # as the command line does
spent, at = {}, time.process_time()
spent["start of Python"] = at
def mark(name):
    global at
    now = time.process_time(); spent[name] = now - at; at = now
from pathlib import Path
import polars as pl
import isolux
from isolux.groups import build_membership
from isolux.groups.measure import average_metrics_by_group
from isolux.predictions import read_outputs
mark("imports")
folder, overlaps, by = Path(sys.argv[1]), json.loads(sys.argv[2]), json.loads(sys.argv[3])
people = isolux.load("coco", folder / "truth.json"); mark("ground truth, and numba's start")
boxes = read_outputs(folder / "results.json"); n = boxes.height; mark("results")
scores = isolux.score("detection", people, boxes, metrics=["recall_at_iou"],
                      iou_thresholds=overlaps); del boxes; mark("score")
attributes = pl.read_parquet(folder / "attributes.parquet")
groups = build_membership(attributes, by, units=scores.evaluated_units()); mark("membership")
found = average_metrics_by_group(scores, groups); mark("means of groups")
values = found.filter(pl.col("attribute").is_null())["value"].to_list()
from benchmarks._facet_peers import peak_mb
print(json.dumps({"spent": spent, "boxes": n, "cells": found.height, "peak_mb": peak_mb(),
                  "recall": values}))
"""


@dataclass(frozen=True)
class Columns:
    """What a run from columns starts with: all that the peers are given, too."""

    people: Dataset
    boxes: pl.DataFrame
    members: pl.DataFrame

    def run(self) -> pl.DataFrame:
        scores = isolux.score(
            "detection", self.people, self.boxes, metrics=["recall_at_iou"],
            iou_thresholds=OVERLAPS,
        )  # fmt: skip
        return average_metrics_by_group(scores, self.members)


def columns_of(world: World) -> Columns:
    people = world.dataset()
    return Columns(people, world.predictions(), build_membership(people.attributes, BY).frame)


def best(work: Any, times: int = 3) -> tuple[float, Any]:
    """Run some times: the least seconds, since others may use the machine, and the result."""
    runs = [cpu_seconds(work) for _ in range(times)]
    return min(seconds for seconds, _ in runs), runs[-1][1]


def from_columns(largest: float) -> None:
    columns_of(make(largest / 64)).run()  # kernels
    seconds: dict[float, float] = {}
    for share in (s * largest for s in SHARES):
        world = make(share)
        given = columns_of(world)
        seconds[share], found = best(given.run)
        boxes = len(world.score)
        print(
            f"{seconds[share]:7.3f} s  {boxes:9,} boxes, {world.n_people:6,} people,"
            f" {found.height // len(OVERLAPS) - 1} groups"
        )
    ours = seconds[largest]
    print(growth(list(seconds.values())))
    pairs = int(np.bincount(world.people_image, minlength=world.n_images + 1)[world.image].sum())
    floor = world.box.nbytes / 1e9 / bandwidth() + pairs * NS_A_PAIR / 1e9
    print(
        f"the floor we reckon: {floor:.3f} s ({world.box.nbytes / 1e6:.0f} MB of boxes read once at"
        f" the memory's rate, {pairs / 1e6:.2f} M pairs at {NS_A_PAIR:.0f} ns); ours is"
        f" {ours / floor:.0f} times that"
    )
    with tempfile.TemporaryDirectory() as folder:
        world.write(Path(folder))
        peer = pycocotools(Path(folder), "pass")
    check_everyone(found, peer["recall"])
    matched, read, recall = hotcoco(world, given.members)
    apart = largest_difference(found, recall)
    whole = peer["evaluate_s"] + peer["accumulate_s"]
    print(f"pycocotools: {peer['evaluate_s']:.1f} s to match, {whole:.1f} s with its recall")
    print(
        f"hotcoco: {matched:.1f} s to match {GROUPS} groups, {matched + GROUPS * read:.1f} s with"
        f" their recall (that read for {len(recall)} and multiplied)"
    )
    print(f"a match per group and a match of all differ by {apart:.5f} at most in recall")
    print(f"{whole / ours:.0f} times pycocotools with its recall, {matched / ours:.0f} hotcoco")
    last_line(
        "detection_groups", ours, "pycocotools, evaluate() alone", peer["evaluate_s"],
        ratio_with_recall=whole / ours, hotcoco_s=matched, ratio_hotcoco=matched / ours,
        ratio_hotcoco_with_recall=(matched + GROUPS * read) / ours, boxes=len(world.score),
        people=world.n_people, groups=GROUPS, overlaps=len(OVERLAPS), floor_s=floor,
        seconds_by_share={f"{share:.4f}": s for share, s in seconds.items()},
    )  # fmt: skip


def end_to_end(largest: float) -> None:
    seconds: dict[float, float] = {}
    for share in (s * largest for s in SHARES):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            results, _, _ = make(share).write(folder)
            size = results.stat().st_size
            runs = [child_seconds(folder) for _ in range(3)]
            seconds[share] = min(s for s, _ in runs)
            found = min(runs, key=lambda run: run[0])[1]
            print(
                f"{seconds[share]:7.3f} s  {found['boxes']:9,} boxes, {size / 1e6:6.1f} MB of JSON,"
                f" {found['peak_mb']:.0f} MB held at most"
            )
            if share == largest:
                peer = pycocotools(folder, "pass")
    for step, spent in found["spent"].items():
        print(f"{spent:7.3f} s  {step}")
    check_recall(found["recall"], peer["recall"])
    ours, shares = seconds[largest], list(seconds)
    slope = (seconds[shares[-1]] - seconds[shares[-2]]) / (shares[-1] - shares[-2])
    print(f"a process with nothing to read would take {ours - slope * largest:.2f} s")
    floor = size / 1e9 / bandwidth()
    print(f"the floor we reckon: {floor:.3f} s to read the JSON once at the memory's rate")
    loaded = peer["truth_s"] + peer["load_s"]
    least = loaded + peer["evaluate_s"]
    whole = least + peer["accumulate_s"]
    print(
        f"pycocotools: {loaded:.1f} s to load, {peer['evaluate_s']:.1f} s to match,"
        f" {peer['accumulate_s']:.1f} s to read the recall; {peer['peak_mb']:.0f} MB"
    )
    last_line(
        "detection_groups --end-to-end", ours, "pycocotools, load and evaluate()", least,
        ratio_with_recall=whole / ours, peak_mb=found["peak_mb"], peer_peak_mb=peer["peak_mb"],
        boxes=found["boxes"], floor_s=floor, spent=found["spent"],
        seconds_by_share={f"{share:.4f}": s for share, s in seconds.items()},
    )  # fmt: skip


def child_seconds(folder: Path) -> tuple[float, dict[str, Any]]:
    """Run the whole way in a fresh process: its CPU seconds, all threads, and what it found."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    # An installed package has its bytecode beside it, whatever the parent was told to write.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment.setdefault("PYTHONPYCACHEPREFIX", str(BYTECODE))
    command = [sys.executable, "-c", OURS, str(folder), json.dumps(OVERLAPS), json.dumps(BY)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)
    return spent, json.loads(done.stdout.splitlines()[-1])


def growth(seconds: list[float]) -> str:
    """Say what each doubling of the data costs."""
    times = [f"{b / a:.2f}" for a, b in itertools.pairwise(seconds)]
    return "doubling the data takes " + ", ".join(times) + " times as long"


def bandwidth() -> float:
    """Measure the rate at which one thread reads memory, in GB/s."""
    block = np.ones(1 << 25)
    seconds, _ = best(block.sum)
    return block.nbytes / 1e9 / seconds


def check_everyone(found: pl.DataFrame, recall: list[float]) -> None:
    check_recall(found.filter(pl.col("attribute").is_null())["value"].to_list(), recall)


def check_recall(ours: list[float], theirs: list[float]) -> None:
    if not np.allclose(ours, theirs, rtol=0, atol=1e-12):
        raise SystemExit(f"the two disagree, so their times mean nothing: {ours}, {theirs}")


def largest_difference(found: pl.DataFrame, recall: dict[tuple[str, str], Any]) -> float:
    """Compare with hotcoco: a match per group is another rule, so it may differ by a little."""
    of_group = found.sort("threshold").group_by("attribute", "group").agg("value")
    ours = {(a, g): v for a, g, v in of_group.iter_rows()}
    apart = max(float(np.abs(np.array(ours[key]) - recall[key]).max()) for key in recall)
    if apart > 0.02:
        raise SystemExit(f"hotcoco's groups differ by {apart}, so the times mean nothing")
    return apart


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="an eighth of the size")
    parser.add_argument("--end-to-end", action="store_true", help="a fresh process, from JSON")
    asked = parser.parse_args()
    largest = 1 / 8 if asked.quick else 1.0
    if asked.end_to_end:
        end_to_end(largest)
    else:
        from_columns(largest)


if __name__ == "__main__":
    main()
