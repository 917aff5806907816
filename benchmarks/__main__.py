"""Run every benchmark and write RESULTS.md: machine, date, command, what was printed."""

from __future__ import annotations

import platform
import subprocess
import sys
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent


def machine() -> str:
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.processor(),
    )
    import os

    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}"
    )


def main() -> None:
    quick = sys.argv[1:]
    names = sorted(p.stem for p in HERE.glob("[!_]*.py"))
    packages = ", ".join(f"{p} {version(p)}" for p in ("isolux", "numpy", "polars", "fairlearn"))
    parts = [
        "# Benchmarks",
        "",
        "Ratios against the peer on the same data in one run; CPU seconds of all threads.",
        "Written by `make bench`.",
        "",
        f"- machine: {machine()}",
        f"- date: {datetime.now(UTC):%Y-%m-%d}",
        f"- versions: {packages}",
    ]
    for name in names:
        command = [sys.executable, "-m", f"benchmarks.{name}", *quick]
        done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=HERE.parent)
        print(done.stdout, end="", flush=True)
        shown = " ".join(["python", *command[1:]])
        parts += ["", f"## {name}", "", f"`{shown}`", "", "```", done.stdout.rstrip(), "```"]
    if not quick:
        (HERE / "RESULTS.md").write_text("\n".join(parts) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
