"""Write the pages anew when a full run of the laws has ended; go on with one that was stopped.

Every test writes its figures as it ends, and its name into ``.laws``, a file that names the sources
by their hash. A full run leaves out what is named there, so one that was killed goes on where it
stopped; where any source has changed since, all is measured again.

Where a share of the worlds is drawn, nothing is kept: what a whole run would cost is printed.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.laws import _page as pages
from tests.laws._figures import FULL, KEPT, PART

ROOT = Path(__file__).resolve().parents[2]
DONE = ROOT / ".laws"
SECONDS = ROOT / "tests" / "laws" / "seconds.json"
"""What each law took when it was last run whole, and on what day; but for those below a second."""
TAKEN: Counter[str] = Counter()
SPENT: Counter[str] = Counter()
"""CPU seconds of a whole run by file."""


def sources() -> str:
    """Hash what a law's figures rest on: isolux's own files, its worlds' and the laws'."""
    digest = hashlib.sha256()
    for folder in ("src", "worlds/src", "tests/laws"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            digest.update(path.relative_to(ROOT).as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def measured(done: Path, of: str) -> set[str]:
    """Name the tests that have been measured from these sources."""
    lines = done.read_text(encoding="utf-8").splitlines() if done.exists() else []
    return set(lines[1:]) if lines[:1] == [of] else set()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out of a full run what an earlier one has measured; where that is all, begin anew."""
    if not KEPT or config.option.collectonly:
        return
    known = measured(DONE, sources())
    left = still_open([item.nodeid for item in items], known)
    if known <= left:  # workers come to the same, whichever is first
        DONE.unlink(missing_ok=True)
    if len(left) < len(items):
        config.hook.pytest_deselected(items=[i for i in items if i.nodeid not in left])
        items[:] = [item for item in items if item.nodeid in left]


def still_open(asked: Sequence[str], known: set[str]) -> set[str]:
    """Name the tests that a run has to measure: all that it is asked for, if none is left."""
    return (set(asked) - known) or set(asked)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note a law of a full run that held; its figures are written."""
    # The run's own process hears of its workers' tests, and alone writes.
    if not KEPT or "PYTEST_XDIST_WORKER" in os.environ:
        return
    TAKEN[report.nodeid] += report.duration
    if report.when == "teardown" and TAKEN[report.nodeid] >= 1.0:
        keep(SECONDS, report.nodeid, TAKEN[report.nodeid])
    if report.when == "call" and report.passed:
        note(DONE, sources(), report.nodeid)


def keep(path: Path, name: str, seconds: float) -> None:
    """Keep what a law took in one process, and on what day."""
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    today = dt.datetime.now(tz=dt.UTC).date().isoformat()
    kept[name.removeprefix("tests/laws/")] = {"seconds": round(seconds, 1), "date": today}
    lines = [f" {json.dumps(one)}: {json.dumps(kept[one])}" for one in sorted(kept)]
    waiting = path.with_name(f"{path.name}.tmp")
    waiting.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    waiting.replace(path)


def note(done: Path, of: str, name: str) -> None:
    """Add a test to those that have been measured from these sources."""
    known = measured(done, of)
    waiting = done.with_name(f"{done.name}.tmp")
    waiting.write_text("\n".join([of, *sorted(known | {name})]) + "\n", encoding="utf-8")
    waiting.replace(done)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    if KEPT and not hasattr(session.config, "workerinput"):  # the workers' figures are all there
        pages.write()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[object]:
    """Count what a law costs, its fixtures and child processes with it.

    Where a share of the worlds is drawn, a law costs as much more in a whole run; what is marked
    ``law(whole=True)``, or no law, draws no such worlds and costs the same.
    """
    before = sum(os.times()[:4])
    done = yield
    law = item.get_closest_marker("law")
    share = 1.0 if law is None or law.kwargs.get("whole") else PART
    SPENT[item.path.name] += (sum(os.times()[:4]) - before) / share
    return done


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what a whole run costs in one process, by file: measured, or reckoned of a share."""
    if not FULL:
        return
    terminalreporter.section("CPU minutes of a whole run")
    for name, seconds in [*SPENT.most_common(), ("all", sum(SPENT.values()))]:
        terminalreporter.write_line(f"| {name} | {seconds / 60:.1f} |")
