"""A process that has imported the command line and forks a child for every command it is told.

Starting Python and importing polars cost a second; what is to be killed is what comes after. Lines
of JSON in: ``{"argv": [...], "signal": 9, "after": seconds or null, "at": point or null}``; lines
out: ``{"code": …, "seconds": …, "err": "…"}``. Nothing here may use polars: its threads do not
survive a fork.
"""

from __future__ import annotations

import json
import os
import pkgutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import isolux.cli.app
from isolux.api import audit, compare  # noqa: F401
from isolux.io import atomic, run_directory, staging  # noqa: F401
from isolux.report import html  # noqa: F401

# What the commands that are killed would import one by one, each in a process of its own.
MODULES = (
    *(f"isolux.cli.{one.name}" for one in pkgutil.iter_modules(isolux.cli.__path__)),
    "isolux_worlds.synthesis", "isolux_worlds.commands.synthesize", "isolux.datasets.table",
    "isolux.datasets.facet", "isolux.datasets.fiftyone", "isolux.predictions.csv",
    "isolux.tasks.classification", "isolux.stats.roc", "isolux.stats.references",
    "isolux.stats.calibration", "isolux.analyses.group_gaps",
    "isolux.analyses.model_changes", "isolux.disparity.measures", "isolux.api.publish",
    "jinja2", "rich.console", "scipy.special", "vl_convert",
)  # fmt: skip


def strike(point: str, number: int) -> None:
    """Arrange that this process gets the signal at one point of the swap of directories."""

    def struck(function: Callable[..., Any], *, before: bool) -> Callable[..., Any]:
        def wrapped(*args: Any, **settings: Any) -> Any:
            if before:
                os.kill(os.getpid(), number)
                time.sleep(0)  # Python's own handlers run between two of its steps
            done = function(*args, **settings)
            if not before:
                os.kill(os.getpid(), number)
                time.sleep(0)
            return done

        return wrapped

    where, _, when = point.partition(":")
    if where == "rename":  # of the old result, then of the new one
        Path.rename = struck(Path.rename, before=when == "before")  # type: ignore[method-assign]
    elif where == "remove":
        staging.remove_path = struck(staging.remove_path, before=when == "before")
    else:
        staging.StagingPath._create = struck(staging.StagingPath._create, before=when == "before")  # type: ignore[method-assign]


def child(told: dict[str, Any], err: Path) -> None:
    """Run the command in this forked process; never returns."""
    handle = os.open(err, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number, source in ((0, nowhere), (1, nowhere), (2, handle)):
        os.dup2(source, number)
    if told["at"] is not None:
        strike(told["at"], told["signal"])
    sys.argv = ["isolux", *told["argv"]]
    code = 99
    try:
        from isolux.cli import main

        main()
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else 98
    finally:
        # as Python does when a process ends; a fork may not end that way
        staging.discard_all_staging()
        os._exit(code)


def serve() -> None:
    """Run commands until there are no more."""
    for name in MODULES:
        __import__(name)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # `nohup` and `&` ignore some
        signal.signal(number, signal.SIG_DFL)
    print(json.dumps({"ready": True}), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        err = Path(folder) / "err"
        for line in sys.stdin:
            told = json.loads(line)
            began = time.monotonic()
            pid = os.fork()
            if pid == 0:
                child(told, err)
            if told["after"] is not None:
                time.sleep(told["after"])
                os.kill(pid, told["signal"])
            _, status = os.waitpid(pid, 0)
            answer = {
                "code": os.waitstatus_to_exitcode(status),
                "seconds": time.monotonic() - began,
                "err": err.read_text() if err.exists() else "",
            }
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    serve()
