"""Run benchmarks and write RESULTS.md: machine, date, command, what was printed, and a summary.

``python -m benchmarks`` runs them all; with names, those, and the others' sections stay.
``--quick`` tries them at a small size and writes nothing; nor does ``--help``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
ABSENT = 3
"""The exit code of a benchmark that needs what this machine has not: a GPU."""
RESULTS = HERE / "RESULTS.md"
MORE = {"detection_groups": (("--end-to-end",),)}
"""Further runs of a benchmark, by the flags that make them."""

TARGETS = {
    "detection_groups": "100 × (hotcoco: 50 ×)",
    "detection_groups --end-to-end": "30 ×",
    "load_results": "10 ×",
    "mask_ar": "4 ×",
    "normalised_ap": "20 ×",
    "verification": "5 ×",
    "retrieval": "0.8 ×",
    "recall_bootstrap": "1 × (of the bound)",
    "rank_tests": "100 ×",
    "patterns": "100 ×",
    "confounders": "0.05 × (20 passes)",
    "synthesize": "1 × (of the 60 s allowed)",
    "vendi": "100 ×",
    "consensus": "20 ×",
    "inference": "0.95 × (of the bound)",
}
_HEAD = """# Benchmarks

Ratios against the peer on the same data in one run; CPU seconds of all threads.
Written by `make bench`. A ratio says how many times cheaper ours is than the peer.
"""


def machine() -> str:
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    )


def sections() -> dict[str, str]:
    """Read the sections that stand in RESULTS.md, by name."""
    if not RESULTS.exists():
        return {}
    parts = re.split(r"^## ", RESULTS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    found = {part.partition("\n")[0].strip(): "## " + part.rstrip() for part in parts}
    return {name: text for name, text in found.items() if name != "Summary"}


def run(name: str, flags: tuple[str, ...], quick: list[str]) -> str | None:
    """Run one benchmark and return its section; None where it failed, nothing where it skips."""
    command = [sys.executable, "-m", f"benchmarks.{name}", *flags, *quick]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=HERE.parent)
    print(done.stdout, end="", flush=True)
    if done.returncode == ABSENT:
        print(f"{name} was SKIPPED: RESULTS.md keeps what it says of it", flush=True)
        return ""
    if done.returncode:
        print(f"{name} failed:\n{done.stderr[-3000:]}", file=sys.stderr, flush=True)
        return None
    shown = " ".join(["python", *command[1:]])
    title = " ".join([name, *flags])
    where = f"{datetime.now(UTC):%Y-%m-%d}; {machine()}"
    return f"## {title}\n\n`{shown}` · {where}\n\n```\n{done.stdout.rstrip()}\n```"


def summary(found: dict[str, str]) -> str:
    """Lay out the ratio of each section beside what was asked of it."""
    rows = ["## Summary", "", "| benchmark | peer | ratio | asked |", "|---|---|---|---|"]
    for name in sorted(found):
        last = [line for line in found[name].splitlines() if line.startswith('{"name"')]
        if last:
            said = json.loads(last[-1])
            ratio = f"{said['ratio']:,.3g}" if isinstance(said.get("ratio"), int | float) else "–"
            rows.append(f"| {name} | {said.get('peer', '')} | {ratio} | {TARGETS.get(name, '')} |")
    return "\n".join(rows)


def write(found: dict[str, str]) -> None:
    packages = (
        "isolux",
        "numpy",
        "polars",
        "numba",
        "fairlearn",
        "pycocotools",
        "mlxtend",
        "scipy",
        "vendi-score",
    )
    versions = ", ".join(f"{p} {version(p)}" for p in packages)
    body = [f"{_HEAD}\nversions: {versions}", summary(found), *(found[n] for n in sorted(found))]
    waiting = RESULTS.with_suffix(".tmp")
    waiting.write_text("\n\n".join(body) + "\n", encoding="utf-8")
    waiting.replace(RESULTS)


def read(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Read which benchmarks are asked for, and the flags that each of them gets.

    A name or flag that is not known ends here, before anything ran.
    """
    known = sorted(p.stem for p in HERE.glob("[!_]*.py"))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Run benchmarks and write RESULTS.md."
    )
    parser.add_argument("names", nargs="*", help=f"default: all, which are {', '.join(known)}")
    parser.add_argument("--quick", action="store_true", help="small, and write nothing")
    asked = parser.parse_args(arguments)
    for name in asked.names:
        if name not in known:
            parser.error(f"no benchmark is called {name!r}: there are {', '.join(known)}")
    return asked.names or known, ["--quick"] if asked.quick else []


def main() -> None:
    names, quick = read(sys.argv[1:])
    found, failed = sections(), []
    for name in names:
        for flags in ((), *MORE.get(name, ())):
            section = run(name, flags, quick)
            if section is None:
                failed.append(name)
                continue
            if not section:
                continue
            found[" ".join([name, *flags])] = section
            if not quick:
                write(found)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
