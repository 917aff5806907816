"""A finished run on disk, its report beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from isolux.io import run_directory
from isolux.vocabulary.containers import Run


def write_with_report(
    run: Run, out: str | Path, write: Callable[[Run, Path], object], *, overwrite: bool
) -> Path:
    """Write a run directory with its ``report.html``, all or nothing; return the report's path."""
    where = run_directory.save(
        run, out, overwrite=overwrite, extra=lambda folder: write(run, folder / "report.html")
    )
    return where / "report.html"
