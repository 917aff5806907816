"""Commands that are killed at a chosen moment, and what must be true afterwards."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isolux.io import run_directory
from isolux.io.staging import is_staging_name

SERVER = Path(__file__).with_name("_server.py")
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
POINTS = (
    "make:before", "make:after", "rename:before", "rename:after", "remove:before", "remove:after",
)  # fmt: skip


class Server:
    """The process that runs commands; see ``_server``."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._answer()

    def run(
        self, *argv: object, number: int = 9, after: float | None = None, at: str | None = None
    ) -> dict[str, Any]:
        """Run a command, and send it a signal after so many seconds or at that point."""
        assert self.process.stdin is not None
        told = {"argv": [str(a) for a in argv], "signal": int(number), "after": after, "at": at}
        self.process.stdin.write(json.dumps(told) + "\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End it."""
        self.process.communicate()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


@dataclass(frozen=True)
class Command:
    """One command that writes a directory: how it is called, and which files make it whole."""

    name: str
    argv: tuple[str, ...]
    target: str
    files: tuple[str, ...]
    replaces: bool = True


RUN = (
    "audit.json", "scores.parquet", "attributes.parquet", "group_metrics.parquet",
    "disparities.parquet", "findings.parquet", "report.html",
)  # fmt: skip


def commands(folder: Path) -> list[Command]:
    """List the commands; their data are made in the folder (see ``prepare``)."""
    audit = (
        "audit", f"table:{folder}/people.csv", "--id", "id", "--target", "truth",
        "--predictions", f"{folder}/answers.csv", "--prediction-column", "answer",
        "--by", "race", "--replicates", "100", "--metric", "accuracy",
    )  # fmt: skip
    over = "--overwrite"
    compare = ("compare", f"{folder}/a", f"{folder}/b", "--out", f"{folder}/out/comparison", over)
    world = ("synthesize", "biased", "--households", "6", "--no-pixels", over)
    written = ("world.yaml", "injected.json", "README.txt", "people.csv")
    export = ("export", f"table:{folder}/boxed.csv", "--out", f"{folder}/out/export")
    return [
        Command("audit", (*audit, "--out", f"{folder}/out/run", over), "out/run", RUN),
        Command("compare", compare, "out/comparison", RUN),
        Command("synthesize", (*world, "--out", f"{folder}/out/world"), "out/world", written),
        Command(
            "export", export, "out/export", ("metadata.json", "samples.json"), replaces=False
        ),
    ]  # fmt: skip


def prepare(folder: Path, server: Server) -> None:
    """Write 200 people with two models' answers, audit both, and leave them as ``a`` and ``b``."""
    people = [(f"p{i}", "AB"[i % 2], "x", "xxxy"[i % 4], "xyxx"[i % 4]) for i in range(200)]
    head = "id,race,truth\n"
    (folder / "people.csv").write_text(head + "".join(f"{i},{r},{t}\n" for i, r, t, _, _ in people))
    (folder / "boxed.csv").write_text(head + "".join(f"{i},{r},{t}\n" for i, r, t, _, _ in people))
    for name, at in (("a", 3), ("b", 4)):
        rows = "".join(f"{row[0]},{row[at]}\n" for row in people)
        (folder / "answers.csv").write_text(f"id,answer\n{rows}")
        audit = commands(folder)[0].argv[:-3]
        done = server.run(*audit, "--model-name", name, "--out", folder / name)
        assert done["code"] == 0, done["err"]


@dataclass
class Tally:
    """What was seen over all kills."""

    kills: int = 0
    finished: int = 0
    partial: int = 0
    lost: int = 0
    left_by_kill_9: int = 0
    left_after_next: int = 0
    odd: tuple[str, ...] = ()


def kill_once(
    server: Server, folder: Path, command: Command, number: int, tally: Tally, **when: Any
) -> None:
    """Kill a command once, let the next command come, and look at what is there."""
    target = folder / command.target
    if not command.replaces and target.exists():
        shutil.rmtree(target)
    stood = target.exists()
    done = server.run(*command.argv, number=number, **when)
    tally.kills += 1
    tally.finished += done["code"] == 0
    # At its first and last moments a process dies of the signal itself: there is nothing to clean.
    expected = {0, 128 + number, -number} if number != signal.SIGKILL else {0, -9}
    if done["code"] not in expected or "Traceback" in done["err"]:
        tally.odd += (f"{command.name} {number} {when}: {done['code']} {done['err'][-300:]}",)
    stages = [path for path in target.parent.rglob(".*") if is_staging_name(path.name)]
    if number == signal.SIGKILL:
        tally.left_by_kill_9 += len(stages)
    elif stages:
        tally.odd += (f"{command.name} {number} {when}: left {stages}",)
    # The next command on that path: it is refused, or finds nothing to read, and looks about first.
    if command.target.endswith("run") or command.target.endswith("comparison"):
        server.run("explain", target, "--analysis", "no-such-analysis")
    else:
        server.run(*command.argv)
    tally.left_after_next += sum(is_staging_name(path.name) for path in target.parent.rglob(".*"))
    tally.lost += stood and not target.exists()
    tally.partial += target.exists() and not whole(target, command)


def whole(target: Path, command: Command) -> bool:
    """Tell whether all of a result is there, and can be read."""
    if not all((target / name).is_file() for name in command.files):
        return False
    if command.files is RUN:
        run_directory.load_run(target)
        return (target / "report.html").read_text().endswith("</html>")
    if command.name == "export":
        json.loads((target / "samples.json").read_text())
    return True


def kill_many(server: Server, folder: Path, kills: int, seed: int = 0) -> Tally:
    """Kill the four commands in turn, by the four signals in turn: half at points of the swap."""
    random_ = np.random.default_rng(seed)
    tally = Tally()
    every = commands(folder)
    seconds = {c.name: server.run(*c.argv)["seconds"] for c in every}
    for n in range(kills):
        command, number = every[n % 4], SIGNALS[(n // 4) % 4]
        # Of each command by each signal every second time; point after point.
        if (n + n // 4 + n // 16) % 2 == 0:
            when: dict[str, Any] = {"at": POINTS[(n // 2 + n // 32) % len(POINTS)]}
        else:
            when = {"after": random_.uniform(0.0, seconds[command.name] * 1.05)}
        kill_once(server, folder, command, number, tally, **when)
    return tally
