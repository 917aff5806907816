"""Reads damaged inputs, some a line of standard input, and says what became of each.

In: ``{"reader": "datasets/coco", "seeds": [7]}``. Out, a line for each: ``{"seed": 7, "did":
"refused" | "read" | "unnamed", "said": …, "seconds": …, "mib": …}``. The parent sees to it that a
line comes in time.
"""

from __future__ import annotations

import csv
import json
import os
import random
import shutil
import stat
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from isolux.core.errors import IsoluxError
from tests._left_open import open_below
from tests.contracts._hostile import MUTATIONS, OF_TEXT, damage
from tests.faults._fuzz_readers import reader
from tests.faults._memory import peak_mib

KINDS = (*MUTATIONS, *OF_TEXT, *OF_TEXT, "bytes changed", "cut off")


class Sample:
    """A whole sample of one reader, and copies of it that are damaged."""

    def __init__(self, name: str, folder: Path) -> None:
        write, self.read = reader(name)
        self.folder, self.whole = folder / "damaged", folder / "whole"
        self.whole.mkdir(parents=True)
        self.top = folder.resolve()
        self.inner = write(self.whole).relative_to(self.whole)
        self.stamps = _stamps(self.whole)
        (folder / "outside").mkdir()
        self.outside = folder / "outside"

    def damaged(self, seed: int) -> Path:
        """Damage one file of a fresh copy, once or up to three times."""
        self._restore()
        chance = random.Random(seed)  # noqa: S311 - a test's chance
        for _ in range(chance.choice((1, 1, 2, 3))):
            try:
                damage(
                    self.folder / self.inner, chance.choice(KINDS), chance.randrange(1 << 30),
                    self.outside,
                )  # fmt: skip
            except (OSError, ValueError, IndexError, RecursionError, csv.Error):
                break  # what is damaged already cannot always be damaged again
        return self.folder / self.inner

    def _restore(self) -> None:
        """Make the copy whole again: the files that differ, or all where files came or went."""
        now = _stamps(self.folder)
        if now.keys() != self.stamps.keys() or any(
            stamp is None and self.stamps[name] is not None for name, stamp in now.items()
        ):
            shutil.rmtree(self.folder, ignore_errors=True)
            shutil.copytree(self.whole, self.folder, symlinks=True)
            return
        for name, stamp in now.items():
            if stamp != self.stamps[name]:
                shutil.copy2(self.whole / name, self.folder / name)


def _stamps(folder: Path) -> dict[str, tuple[int, int, int] | None]:
    """Stamp each file below a folder by size, mode and when it was written; None: no plain file.

    A copy has the time of what was copied, long before anything damages it.
    """
    found: dict[str, tuple[int, int, int] | None] = {}
    left = [""]
    while left:
        inner = left.pop()
        for entry in os.scandir(folder / inner) if (folder / inner).is_dir() else ():
            name = f"{inner}/{entry.name}" if inner else entry.name
            seen = entry.stat(follow_symlinks=False)
            plain = stat.S_ISREG(seen.st_mode)
            found[name] = (seen.st_size, seen.st_mtime_ns, seen.st_mode) if plain else None
            if entry.is_dir(follow_symlinks=False):
                left.append(name)
    return found


def tried(sample: Sample, seed: int) -> dict[str, Any]:
    """Read one damaged input."""
    path = sample.damaged(seed)
    began = time.process_time()
    did, said = "read", ""
    try:
        sample.read(path)
    except IsoluxError as error:
        did = "refused"
        said = "" if error.problem else "no words"
        if left := open_below(sample.top):
            said = f"left open: {left[0]}"
    except BaseException as error:  # noqa: BLE001 - which it is, is what is asked
        did, said = "unnamed", f"{type(error).__name__}: {error}"[:300]
    return {
        "seed": seed,
        "did": did,
        "said": said,
        "seconds": time.process_time() - began,
        "mib": peak_mib(),
    }


def main() -> None:
    """Answer each line; what a library prints meanwhile is no answer."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with tempfile.TemporaryDirectory() as top:
        samples: dict[str, Sample] = {}
        for line in sys.stdin:
            told = json.loads(line)
            name = told["reader"]
            if name not in samples:
                samples[name] = Sample(name, Path(top) / str(len(samples)))
            for seed in told["seeds"]:
                print(json.dumps(tried(samples[name], seed)), file=answers, flush=True)


if __name__ == "__main__":
    main()
