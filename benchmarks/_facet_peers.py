"""What the peers take on the same boxes: pycocotools in a process of its own, hotcoco in this one.

``python -m benchmarks._facet_peers FOLDER load|pass`` is the child: seconds of each step and the
most memory it held, as JSON. Both peers are given as little to do as will do: one size of people,
one limit of detections, all classes as one.
"""

from __future__ import annotations

import contextlib
import io
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks._facet_scale import World

ACCUMULATED = 10  # groups whose recall is read from hotcoco, which takes longer than to match


def peak_mb() -> float:
    """Return the most memory this process held, in MB; of rusage a parent's would be part."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
    return float(line.split()[1]) * 1024 / 1e6


def pycocotools(folder: Path, task: str) -> dict[str, Any]:
    """Run a child that loads results, and with ``pass`` matches them and reads the recall."""
    command = [sys.executable, "-m", "benchmarks._facet_peers", str(folder), task]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def child(folder: Path, task: str) -> dict[str, Any]:
    """Do it: what ``pycocotools`` waits for."""
    spent: dict[str, Any] = {}

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            result = work()
        spent[name] = time.process_time() - start
        return result

    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    truth = timed("truth_s", lambda: COCO(str(folder / "truth.json")))
    results = timed("load_s", lambda: truth.loadRes(str(folder / "results.json")))
    spent["boxes"] = len(results.anns)
    if task == "pass":
        evaluation = COCOeval(truth, results, "bbox")
        one_size(evaluation.params)
        timed("evaluate_s", evaluation.evaluate)
        timed("accumulate_s", evaluation.accumulate)
        spent["recall"] = evaluation.eval["recall"].ravel().tolist()
    return spent | {"peak_mb": peak_mb()}


def one_size(params: Any) -> None:
    """Ask for people of all sizes and the first 100 boxes, and for nothing else."""
    params.useCats, params.maxDets = 0, [100]
    params.areaRng, params.areaRngLbl = [[0, 1e10]], ["all"]


def hotcoco(world: World, members: pl.DataFrame) -> tuple[float, float, dict[tuple[str, str], Any]]:
    """Evaluate each group's people alone, everybody else removed.

    Returns
    -------
    float
        Seconds to match all groups; loading not counted.
    float
        Seconds to read the recall of one group.
    dict of (str, str) to [10] float
        The recall of the first groups.
    """
    from hotcoco import COCO, COCOeval

    images = [
        {"id": i, "file_name": f"{i}.jpg", "width": 1500, "height": 1000}
        for i in range(1, world.n_images + 1)
    ]
    categories = [{"id": 1, "name": "person"}]

    def people(rows: Any) -> Any:
        image, box = world.people_image[rows], world.people_box[rows]
        return COCO.from_arrays(images, categories, image, np.ones(len(image), np.int64), box)

    one = np.ones(len(world.score))
    everyone = people(np.arange(world.n_people))
    results = everyone.load_res(np.column_stack([world.image, world.box, world.score, one]))
    matched, read = 0.0, 0.0
    recall: dict[tuple[str, str], Any] = {}
    for (attribute, group), part in members.group_by("attribute", "group", maintain_order=True):
        truth = people(part["unit_id"].cast(pl.Int64).to_numpy() - 1)
        evaluation = COCOeval(truth, results, "bbox")
        one_size(evaluation.params)
        start = time.process_time()
        evaluation.evaluate()
        matched += time.process_time() - start
        if len(recall) < ACCUMULATED:
            start = time.process_time()
            evaluation.accumulate()
            read += time.process_time() - start
            found: Any = evaluation.eval
            recall[str(attribute), str(group)] = np.ravel(found["recall"])
    return matched, read / max(len(recall), 1), recall


if __name__ == "__main__":
    print(json.dumps(child(Path(sys.argv[1]), sys.argv[2])))
