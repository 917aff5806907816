"""What several steps of ``isolux curate`` do at their end: notes are said, tables are written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from isolux.cli import document
from isolux.io.atomic import refuse_existing, write_text
from isolux.io.csv_text import csv_text
from isolux.vocabulary.notes import by_severity


def warn_first(notes: Sequence[str]) -> Sequence[str]:
    """Say what must be read before any number, and give the notes that come after."""
    cautions, rest = by_severity(notes)
    for caution in cautions:
        document.warn(caution)
    return rest


def say_notes(notes: Sequence[str]) -> None:
    """Say what was decided or left out."""
    for note in notes:
        document.note(note)


def write_csv(path: str | Path, table: pl.DataFrame) -> None:
    """Write a table."""
    write_text(path, csv_text(table))


def refuse_folder(out: Path | None, mark: str, what: str, *, overwrite: bool) -> None:
    """Refuse a folder that stands there already before anything is measured and written down."""
    if out is not None:
        target = out.expanduser().resolve()
        refuse_existing(target, overwrite=overwrite, marks=(mark,), what=what)
