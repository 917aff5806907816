"""COCO's results read without a scanner of our own: whole blocks of rows, by msgspec or by polars.

``python -m benchmarks._json_blocks PATH msgspec|polars`` is the child: CPU seconds and the most
memory it held, as JSON. Both are given less to do than our reader: ids are whole numbers, every
row has a box, and nothing is checked, so that polars takes ``"score": "high"`` for a missing one.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from benchmarks._facet_peers import peak_mb

BLOCK_BYTES = {"msgspec": 1 << 17, "polars": 1 << 19}
"""The quickest of 64 KiB to 16 MiB for each."""
BOX = ("box_x", "box_y", "box_w", "box_h")
SCHEMA = {
    "image_id": pl.Int64,
    "category_id": pl.Int64,
    "bbox": pl.List(pl.Float64),
    "score": pl.Float64,
}


class Row(msgspec.Struct, gc=False):
    image_id: int
    category_id: int
    bbox: tuple[float, float, float, float]
    score: float


def blocks(path: Path, size: int) -> Iterator[bytes]:
    """Cut the list between objects; a brace, comma and brace stand nowhere else in this file."""
    with path.open("rb") as file:
        left = file.read(size).lstrip(b" [")
        while more := file.read(size):
            end = left.rfind(b"}, {")
            yield b"[" + left[: end + 1] + b"]"
            left = left[end + 3 :] + more
        yield b"[" + left


def by_msgspec(path: Path) -> pl.DataFrame:
    decoder = msgspec.json.Decoder(list[Row])
    parts = []
    for block in blocks(path, BLOCK_BYTES["msgspec"]):
        rows = decoder.decode(block)
        box = np.array([row.bbox for row in rows])
        ids = {
            "image_id": pl.Series([row.image_id for row in rows]).cast(pl.String),
            "label": pl.Series([row.category_id for row in rows]).cast(pl.String),
        }
        sides = {name: box[:, k] for k, name in enumerate(BOX)}
        parts.append(pl.DataFrame(ids | sides | {"score": [row.score for row in rows]}))
    return pl.concat(parts, rechunk=True)


def by_polars(path: Path) -> pl.DataFrame:
    sides = (pl.col("bbox").list.get(k).alias(name) for k, name in enumerate(BOX))
    columns = (
        pl.col("image_id").cast(pl.String),
        pl.col("category_id").cast(pl.String).alias("label"),
        *sides,
        "score",
    )
    parts = [
        pl.read_json(block, schema=SCHEMA).select(columns)
        for block in blocks(path, BLOCK_BYTES["polars"])
    ]
    return pl.concat(parts, rechunk=True)


def measured(path: Path, how: str) -> dict[str, Any]:
    """Run a child that reads the file this way."""
    command = [sys.executable, "-m", "benchmarks._json_blocks", str(path), how]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    path, read = Path(sys.argv[1]), {"msgspec": by_msgspec, "polars": by_polars}[sys.argv[2]]
    start = time.process_time()
    boxes = read(path)
    seconds = time.process_time() - start
    total = [float(boxes[name].sum()) for name in (*BOX, "score")]
    print(json.dumps({"s": seconds, "peak_mb": peak_mb(), "boxes": boxes.height, "total": total}))


if __name__ == "__main__":
    main()
