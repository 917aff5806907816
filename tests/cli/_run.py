"""Run the command line in this process, as ``isolux ARGS`` would."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def plain(self) -> str:
        """Standard error with its lines joined, for sentences that a terminal wraps."""
        return " ".join(self.err.split())


def isolux(monkeypatch, capsys, *args: object, width: int = 200) -> Ran:
    from isolux import cli

    monkeypatch.setattr(sys, "argv", ["isolux", *map(str, args)])
    monkeypatch.setenv("COLUMNS", str(width))
    code = 0
    try:
        cli.main()
    except SystemExit as done:
        code = int(done.code or 0)
    seen = capsys.readouterr()
    return Ran(code, seen.out, seen.err)
