"""pytest inside a test, with the plugin, as `pytest -p isolux_gate ARGS` would run in a folder.

Not by pytester: it forgets what was imported meanwhile, and scipy cannot be imported twice.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

__all__ = ["Seen", "pytest_in"]


@dataclass
class Seen:
    """Each test's outcome and what was said of it, in order."""

    code: int = 0
    outcomes: list[tuple[str, str]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take the outcome of a test itself."""
        if report.when == "call":
            self.outcomes.append((report.nodeid.rpartition("::")[2], report.outcome))
            self.said.append(report.longreprtext)


def pytest_in(folder: Path, *args: str) -> Seen:
    """Run the tests of a folder."""
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    seen, here = Seen(), Path.cwd()
    # What looks for garbage ten times at the end, among all that the outer run holds, is left out.
    without = ["cacheprovider", "xdist", "unraisableexception", "threadexception"]
    flags = ["-p", "isolux_gate", *(word for name in without for word in ("-p", f"no:{name}")),
             "-c", "pytest.ini", "--import-mode=importlib", "-q"]  # fmt: skip
    os.chdir(folder)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
            seen.code = int(pytest.main([*flags, *args], plugins=[seen]))
    finally:
        os.chdir(here)
    return seen
