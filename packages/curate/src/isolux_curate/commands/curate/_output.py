"""Output of the steps of ``isolux curate``: notes and tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from isolux.cli import command_output
from isolux.core.notes import split_cautions_from_notes
from isolux.io.atomic import refuse_existing, write_text
from isolux.io.csv_text import to_safe_csv


def print_cautions_return_other_notes(notes: Sequence[str]) -> Sequence[str]:
    """Print cautions, which must be read before any number, and return the other notes."""
    cautions, other_notes = split_cautions_from_notes(notes)
    for caution in cautions:
        command_output.report_warning(caution)
    return other_notes


def print_notes(notes: Sequence[str]) -> None:
    """Print notes."""
    for note in notes:
        command_output.report_note(note)


def write_spreadsheet_safe_csv(path: str | Path, table: pl.DataFrame) -> None:
    """Write a table as CSV."""
    write_text(path, to_safe_csv(table))


def refuse_existing_output_folder(
    output_folder: Path | None, record_file: str, folder_kind: str, *, overwrite: bool
) -> None:
    """Refuse an existing output folder before the computation starts."""
    if output_folder is not None:
        target = output_folder.expanduser().resolve()
        refuse_existing(target, overwrite=overwrite, marks=(record_file,), folder_kind=folder_kind)
