"""A table in shards, from a million people to a hundred million: is memory flat, is time a line?

Shards of a million rows: an id, a truth, an answer, a group, a sex and the person in the photo.
Each person has three photos in three different shards. Each size is audited in a process of its
own, the run directory and the report included, and by photos as well as by people (``--cluster``).
The smallest size is audited as one file too, and all tables are held against one another, byte for
byte.

Beside it, on the same cores, what it takes to read those columns and count their rows with polars
alone: nothing can be cheaper. ``--ray`` adds the largest size but one on Ray.

``--quick`` is a tenth of the smallest size; ``--rows N`` is the largest number.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks._timing import last_line

SIZES = (1_000_000, 10_000_000, 100_000_000)
SHARD, PHOTOS = 1_000_000, 3
AUDIT = "from isolux.cli import main; main()"
TABLES = ("group_metrics", "disparities", "findings")


def main() -> None:
    asked = _asked()
    sizes = [n for n in SIZES if n <= asked.rows] or [asked.rows]
    spent: dict[str, float] = {}
    peak: dict[str, float] = {}
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        root = Path(folder)
        print("        rows   clusters        MB   CPU s   wall s   peak GiB   CPU s a million")
        for rows in sizes:
            shards = written(root / str(rows), rows)
            size = sum(path.stat().st_size for path in shards.iterdir())
            for cluster in (None, "person"):
                cost = audited(f"table:{shards}", root / "run", cluster)
                name = f"{rows} {cluster or 'rows'}"
                spent[name], peak[name] = cost[0], cost[2]
                print(
                    f"{rows:>12,} {cluster or 'rows':>10} {size / 1e6:9,.0f} {cost[0]:7.1f} "
                    f"{cost[1]:8.1f} {cost[2]:10.2f} {cost[0] / rows * 1e6:17.2f}", flush=True,
                )  # fmt: skip
                if rows == sizes[0]:
                    _held_against_one_file(root, shards, cluster)
            floor = counted_alone(shards)
        print(f"every table of the {sizes[0]:,} rows is that of one file, byte for byte")
        print(f"polars alone, {sizes[-1]:,} rows read and counted: {floor:.1f} CPU s")
        if asked.ray:
            _on_ray(root, sizes[-2] if len(sizes) > 1 else sizes[-1])
    last_line(
        "shards", spent[f"{sizes[-1]} rows"], "polars alone: read and count", floor,
        rows=sizes[-1], cpu_s=spent, peak_gib=peak,
    )  # fmt: skip


def _asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="within 60 s")
    parser.add_argument("--ray", action="store_true", help="also on Ray, on this machine")
    parser.add_argument("--rows", type=int, default=SIZES[-1])
    parser.add_argument("--folder", help="where shards are written; default: the system's own")
    asked = parser.parse_args()
    asked.rows = SIZES[0] // 10 if asked.quick else asked.rows
    return asked


def written(folder: Path, rows: int) -> Path:
    """Write shards of people whose photos lie in three shards each."""
    folder.mkdir()
    n_people = max(1, rows // PHOTOS)
    words, groups, sexes = pl.Series(["no", "yes"]), pl.Series(list("abcd")), pl.Series(["f", "m"])
    for k, start in enumerate(range(0, rows, SHARD)):
        photo = np.arange(start, min(start + SHARD, rows))
        person = photo % n_people
        draw = np.random.default_rng([7, k])
        own = (person * 2_654_435_761) % (1 << 32)  # what is a person's is the same in each photo
        group, sex, true = own % 4, (own >> 8) % 2, (own >> 16) % 2
        wrong = draw.random(len(photo)) < 0.10 + 0.02 * (group % 3)
        pl.DataFrame(
            {
                "id": pl.Series(photo).cast(pl.String), "person": pl.Series(person).cast(pl.String),
                "truth": words.gather(true),
                "answer": words.gather(true ^ wrong), "group": groups.gather(group),
                "sex": sexes.gather(sex),
            }
        ).write_parquet(folder / f"{k:05d}.parquet")  # fmt: skip
    return folder


def audited(data: str, out: Path, cluster: str | None, *more: str) -> tuple[float, float, float]:
    """Audit in a process of its own: CPU seconds, seconds, and its peak memory in GiB."""
    command = [
        sys.executable, "-c", AUDIT, "audit", data, "--id", "id", "--target", "truth",
        "--prediction-column", "answer", "--positive", "yes", "--by", "group", "--by", "group*sex",
        "--out", str(out), "--overwrite", *(["--cluster", cluster] if cluster else []), *more,
    ]  # fmt: skip
    start = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise RuntimeError(f"the audit ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime, time.monotonic() - start, used.ru_maxrss / (1 << 20)


def _held_against_one_file(root: Path, shards: Path, cluster: str | None) -> None:
    whole = root / "whole.parquet"
    # Cut again, so that there is more than one shard to be put together.
    frame = pl.concat([pl.read_parquet(path) for path in sorted(shards.iterdir())])
    frame.write_parquet(whole)
    again = root / f"again {cluster}"
    again.mkdir()
    step = -(-frame.height // 7)
    for k, start in enumerate(range(0, frame.height, step)):
        frame[start : start + step].write_parquet(again / f"{k}.parquet")
    audited(f"table:{whole}", root / "one", cluster)
    audited(f"table:{again}", root / "seven", cluster)
    for table in TABLES:
        found = {(root / run / f"{table}.parquet").read_bytes() for run in ("run", "one", "seven")}
        if len(found) > 1:
            raise RuntimeError(f"{table} of shards is not that of one file")


def counted_alone(shards: Path) -> float:
    """Read the columns and count rows that are alike, with polars: CPU seconds."""
    columns = ["truth", "answer", "group", "sex"]
    start = time.process_time()
    for path in sorted(shards.iterdir()):
        pl.read_parquet(path, columns=columns).group_by(columns).len()
    return time.process_time() - start


def _on_ray(root: Path, rows: int) -> None:
    shards = root / str(rows)
    here = audited(f"table:{shards}", root / "here", None, "--option", "workers=2")
    ray = audited(f"table:{shards}", root / "ray", None, "--engine", "ray")
    for table in TABLES:
        if len({(root / run / f"{table}.parquet").read_bytes() for run in ("here", "ray")}) > 1:
            raise RuntimeError(f"{table} on Ray is not that of two processes")
    print(
        f"{rows:,} rows: two processes {here[1]:.1f} s, Ray {ray[1]:.1f} s (its start included); "
        "the same bytes"
    )


if __name__ == "__main__":
    main()
