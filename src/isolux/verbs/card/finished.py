"""A finished run for its cards: whole, as it was written, and about one model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isolux.io import run_directory
from isolux.io.atomic import RUN_MARK
from isolux.io.hashing import sha256_file
from isolux.io.run_changes import refuse_changed
from isolux.verbs._run_source import held_run
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import IsoluxError, RunError
from isolux.vocabulary.progress import at

__all__ = ["Finished", "finished_run"]


@dataclass(frozen=True, slots=True)
class Finished:
    """A run, the name of its folder and the SHA-256 of its record; empty: in memory."""

    run: Run
    name: str = ""
    sha256: str = ""


def finished_run(run: Any) -> Finished:
    """Take a run from memory, or read its directory if nothing in it was changed."""
    if not isinstance(run, str | Path):
        found = held_run(run)
        if found is None:
            raise RunError(
                "there is no run to make a card from", expected="an audit, a run or its directory",
                found=type(run).__name__,
            )  # fmt: skip
        _refuse_comparison(found, None)
        return Finished(found)
    at("reading the run")
    try:
        refuse_changed(run, hint="audit again: no card is made of numbers that were changed")
        found = run_directory.load(run, changed="told")
    except RunError:
        raise
    except IsoluxError as error:
        raise RunError(
            error.problem, expected=error.expected, found=error.found,
            where=error.where or str(run), hint=error.hint,
        ) from error  # fmt: skip
    _refuse_comparison(found, str(run))
    return Finished(found, Path(run).resolve().name, sha256_file(Path(run).expanduser() / RUN_MARK))


def _refuse_comparison(run: Run, where: str | None) -> None:
    if "model_a" in run.disparities.columns:
        raise RunError(
            "the run compares two models, and a card is of one",
            expected="a run of `isolux audit`", found="a run of `isolux compare`", where=where,
            hint="make a card of each model's own run",
        )  # fmt: skip
