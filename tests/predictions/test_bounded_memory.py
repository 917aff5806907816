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
SPARE = 64 << 20  # the window, what is decoded together, what the allocators keep


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
def test_memory_is_that_of_the_columns(tmp_path):
    few, many = tmp_path / "few.json", tmp_path / "many.json"
    coco(few, 1_000)
    coco(many, ROWS)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(few), str(many)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    peak, rows = map(int, done.stdout.split())
    assert rows == ROWS
    assert peak < 1.5 * CELLS * ROWS + SPARE
