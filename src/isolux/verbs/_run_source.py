"""A finished run, however it is given: an audit, a run in memory, or its directory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeGuard

from isolux.io import run_directory
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError


class HasRun(Protocol):
    """An audit or a comparison: what holds a finished run."""

    @property
    def run(self) -> Run:
        """The finished run."""
        ...


RunSource = Run | HasRun | str | Path


def held_run(source: object) -> Run | None:
    """Return the run that an object holds or is; None for anything else, such as a path."""
    found: Any = source if isinstance(source, Run) else getattr(source, "run", None)
    return found if isinstance(found, Run) else None


def is_run_source(source: object) -> TypeGuard[RunSource]:
    """Tell one run from a list of them."""
    return isinstance(source, str | os.PathLike) or held_run(source) is not None


def run_of(source: object) -> Run:
    """Take a run from memory, or read its directory.

    Examples
    --------
    >>> run_of(3)
    Traceback (most recent call last):
    ...
    isolux.vocabulary.errors.SpecError: this is not a run
      expected: an audit, a run or its directory
      found: int
      what to do: isolux.audit makes one of a table in memory
    """
    held = held_run(source)
    if held is not None:
        return held
    if isinstance(source, str | os.PathLike):
        return run_directory.load(Path(source))
    raise SpecError(
        "this is not a run",
        expected="an audit, a run or its directory",
        found=type(source).__name__,
        hint="isolux.audit makes one of a table in memory",
    )


def given_twice(named: Mapping[str, Sequence[Run]]) -> Iterator[tuple[str, str]]:
    """Find runs that are one, under two names or one: the same files and the same numbers."""
    every = [(name, run) for name, own in named.items() for run in own]
    for k, (name, run) in enumerate(every):
        for other, earlier in every[:k]:
            files = run.record.get("inputs")
            same = bool(files) and files == earlier.record.get("inputs")
            if run is earlier or (same and run.group_metrics.equals(earlier.group_metrics)):
                yield other, name


def write_with_report(
    run: Run, out: str | Path, write: Callable[[Run, Path], object], *, overwrite: bool
) -> Path:
    """Write a run directory with its ``report.html``, all or nothing; return the report's path."""
    where = run_directory.save(
        run, out, overwrite=overwrite, extra=lambda folder: write(run, folder / "report.html")
    )
    return where / "report.html"
