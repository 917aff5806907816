"""What the first commands of a new installation cost: kernels compiled, then kept, or not.

A copy of the sources without byte code or kernels, a home of its own, 250 images with 400 people,
and a table of 100. The audit of boxes twice: writable, in a folder that may only be read, where
kernels were brought by who installed, and where nothing at all may be written. CPU seconds of
processes of their own.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks._facet_scale import make
from benchmarks._timing import last_line
from benchmarks.scale import people

HERE = Path(__file__).parent.parent
SOURCES = (
    HERE / "src" / "isolux",
    HERE / "packages" / "curate" / "src" / "isolux_curate",
    HERE / "worlds" / "src" / "isolux_worlds",
)
SHARE = 1 / 128


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        results, truth, _ = make(SHARE).write(folder)
        boxes = (
            "audit", f"coco:{truth}", "--task", "detection", "--predictions", str(results),
            "--by", "box_size", "--by", "truncated", "--out", str(folder / "run"), "--overwrite",
        )  # fmt: skip
        table = (
            "audit", f"table:{people(folder, 100)}", "--id", "id", "--target", "truth",
            "--prediction-column", "answer", "--positive", "yes", "--by", "group",
            "--out", str(folder / "run"), "--overwrite",
        )  # fmt: skip
        found = _seconds(folder, boxes, table)
    for what, seconds in found.items():
        print(f"{seconds:7.2f} s  {what}")
    last_line(
        "first_commands", found["boxes, second command"], "the first command",
        found["boxes, first command"], cpu_s=found,
    )  # fmt: skip


def _seconds(folder: Path, boxes: tuple[str, ...], table: tuple[str, ...]) -> dict[str, float]:
    fresh, home, shut = folder / "fresh", folder / "home", folder / "shut"
    for one in (home, shut):
        one.mkdir()
    shut.chmod(0o555)
    fresh.mkdir()
    _copied(fresh)
    found = {
        "boxes, first command": _child(fresh, home, boxes),
        "boxes, second command": _child(fresh, home, boxes),
        "table of 100, first command": _child(fresh, home, table),
        "table of 100, second command": _child(fresh, home, table),
        "--help": _child(fresh, home, ("--help",)),
        "list tasks": _child(fresh, home, ("list", "tasks")),
    }
    _read_only(fresh)
    found["boxes, nothing may be written, kernels brought"] = _child(fresh, shut, boxes)
    bare = folder / "bare"
    bare.mkdir()
    _copied(bare)
    _read_only(bare)
    found["boxes, read-only sources, first command"] = _child(bare, home, boxes)
    found["boxes, read-only sources, second command"] = _child(bare, home, boxes)
    found["boxes, nothing may be written"] = _child(bare, shut, boxes)
    return found


def _copied(to: Path) -> None:
    for package in SOURCES:
        without = shutil.ignore_patterns("__pycache__")
        shutil.copytree(package, to / package.name, ignore=without)


def _read_only(folder: Path) -> None:
    for one in (folder, *folder.rglob("*")):
        if one.is_dir():
            one.chmod(0o555)


def _child(sources: Path, home: Path, words: tuple[str, ...]) -> float:
    """Run a command as a user who may not write to what is read-only."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("NUMBA", "XDG", "PYTHON"))}
    environment = kept | {"PYTHONPATH": str(sources), "HOME": str(home)}
    command = [sys.executable, "-P", "-m", "isolux", *words]
    if os.geteuid() == 0:
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


if __name__ == "__main__":
    main()
