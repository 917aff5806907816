"""A long file takes the memory of its columns and of a few megabytes of text, whatever its length.

Each file is read in a process of its own, which says how much more it held at most than before.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

CHILD = """
import sys
from pathlib import Path
from isolux.predictions import read_outputs

def held(name):
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith(name))
    return int(line.split()[1]) * 1024

read_outputs(sys.argv[1])  # kernels, imports
before = held("VmRSS")
table = read_outputs(sys.argv[2])
print(held("VmHWM") - before, table.height)
"""
ROWS = 800_000
CELLS = 88  # bytes of a row: five numbers, three views of text
BOX = "1.25 2.5 30.125 40.0625 0.987654"
SPARE = 64 << 20  # the window, what is decoded together, what the allocators keep


def wider(path, rows):
    """One image of ever so many boxes, and then one that is like others."""
    with path.open("w") as file:
        file.write(f"a/b.jpg\n{rows - 1}\n")
        file.writelines(f"{BOX}\n" for _ in range(rows - 1))
        file.write(f"a/c.jpg\n1\n{BOX}\n")


def scalabel(path, rows):
    label = (
        '{"id": "0", "category": "pedestrian", "score": 0.987654, "attributes": {"occluded": 0},'
        ' "box2d": {"x1": 1.25, "y1": 2.5, "x2": 31.375, "y2": 42.5625}, "manualShape": true}'
    )
    labels = ", ".join([label] * 100)
    frames = (f'{{"name": "{k}.jpg", "labels": [{labels}]}}' for k in range(rows // 100))
    with path.open("w") as file:
        file.write('{"config": {"imageSize": null}, "frames": [')
        for k, frame in enumerate(frames):
            file.write((", " if k else "") + frame)
        file.write("]}")


def coco(path, rows):
    with path.open("w") as file:
        file.write("[")
        for k in range(rows):
            file.write(
                (", " if k else "")
                + f'{{"image_id": {k // 100}, "category_id": 1, "bbox": [1.25, 2.5, 30.125, 40.5],'
                f' "score": 0.987654, "area": {k % 1000}.5, "note": "as the model gave it"}}'
            )
        file.write("]")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(
    ("write", "ending", "times"),
    [(wider, "txt", 1.0), (coco, "json", 1.5), (scalabel, "json", 2.5)],
)
def test_memory_is_that_of_the_columns(tmp_path, write, ending, times):
    few, many = tmp_path / f"few.{ending}", tmp_path / f"many.{ending}"
    write(few, 1_000)
    write(many, ROWS)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(few), str(many)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    peak, rows = map(int, done.stdout.split())
    assert rows == ROWS
    assert peak < times * CELLS * ROWS + SPARE
