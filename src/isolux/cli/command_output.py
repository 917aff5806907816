"""``--json``: what a command says as one JSON document on standard output, for scripts.

A command says what it did through ``report_warning``, ``report_note``, ``report_file`` and
``add_table_to_json``: on a screen these are lines, with ``--json`` they are fields. Whatever else
it prints stands under ``text``, so that a command of another package has ``--json`` too.
``docs/schemas/command-1.json`` is the schema.
"""

from __future__ import annotations

import io
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from isolux.cli.streams import print_clean_lines
from isolux.core.printable import escape_unsafe_json

if TYPE_CHECKING:
    import polars as pl

JSON_FLAG = "--json"
SCHEMA = "https://github.com/isolux/isolux/blob/main/docs/schemas/command-1.json"
_ERROR_LABELS = {"expected": "expected", "found": "found", "where": "where", "hint": "what to do"}
"""The fields of an error, and their labels on a screen."""


@dataclass
class _JsonDocument:
    """The JSON document of one command, until it is printed."""

    command: str
    has_own_document: bool
    out: TextIO
    is_printed: bool = False
    error: dict[str, Any] | None = None
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    files: list[dict[str, str]] = field(default_factory=list)
    answers: list[dict[str, Any]] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)
    text: io.StringIO = field(default_factory=io.StringIO)

    def print(self, code: int | None) -> None:
        """Print the document once; commands with their own document print theirs."""
        printed_text = self.text.getvalue()
        is_own_output = self.has_own_document and self.error is None and printed_text.strip()
        if not self.is_printed:
            json_text = (
                printed_text
                if is_own_output
                else _dump_json_for_stream(self._fields(printed_text, code), self.out) + "\n"
            )
            self.out.write(escape_unsafe_json(json_text))
        self.out.flush()
        self.is_printed = True

    def _fields(self, printed_text: str, code: int | None) -> dict[str, Any]:
        from importlib.metadata import version

        return {
            "schema": SCHEMA,
            "isolux": version("isolux"),
            "command": self.command,
            "exit_code": code,
            "error": self.error,
            "warnings": self.warnings,
            "notes": self.notes,
            "files": self.files,
            "answers": self.answers,
            "tables": self.tables,
            "text": [line.rstrip() for line in printed_text.strip("\n").splitlines()],
        }


_documents: list[_JsonDocument] = []
"""The current document; empty where a command prints to a screen."""


def run_with_json_document(
    args: Sequence[str],
    run: Callable[[], int],
    *,
    commands_with_own_document: Iterable[str] = (),
    is_group: Callable[[str], bool] = bool,
) -> int:
    """Run a command and return its exit code; with ``--json``, print what it said as JSON.

    Parameters
    ----------
    args : sequence of str
        The command line, without the program's name.
    run : callable
        Runs the command and gives its exit code.
    commands_with_own_document : iterable of str
        Commands whose ``--json`` prints a document of their own; where they end before that, by an
        error, this one tells it.
    is_group : callable
        Tells whether a command has commands of its own.
    """
    if not is_json_requested(args):
        return run()
    command_words = [text for text in args if not text.startswith("-")]
    name = command_words[0] if command_words else ""
    command_name = " ".join(command_words[:2]) if is_group(name) else name
    document = _JsonDocument(command_name, name in commands_with_own_document, sys.stdout)
    _documents.append(document)
    try:
        with redirect_stdout(document.text):
            code = run()
    finally:
        _documents.remove(document)
    document.print(code)
    return code


def is_json_requested(args: Sequence[str]) -> bool:
    """Return whether a command line has ``--json``, before any ``--``."""
    return JSON_FLAG in args[: args.index("--")] if "--" in args else JSON_FLAG in args


def is_json_active() -> bool:
    """Return whether the current command writes a JSON document."""
    return bool(_documents)


def report_warning(text: str, *, word: str = "WARNING") -> None:
    """Report a warning: a field of the document, or a line."""
    if _documents:
        _documents[-1].warnings.append(text)
    else:
        print_clean_lines(f"{word}: {text}")


def report_note(text: str) -> None:
    """Report a note: a field of the document, or a line."""
    if _documents:
        _documents[-1].notes.append(text)
    else:
        print_clean_lines(f"note: {text}")


def report_notes(notes: Iterable[str]) -> None:
    """Report notes: cautions first, as warnings."""
    from isolux.core.notes import split_cautions_from_notes

    cautions, plain_notes = split_cautions_from_notes(notes)
    for caution in cautions:
        report_warning(caution)
    for plain_note in plain_notes:
        report_note(plain_note)


def report_file(description: str, path: str | Path | None, suffix: str = "") -> None:
    """Report a written file; ``suffix`` is printed on a screen alone."""
    if _documents:
        _documents[-1].files.append({"what": description, "path": str(path)})
    else:
        print_clean_lines(f"{description}: {path}{suffix}")


def add_answer_to_json(answer: Mapping[str, Any], *, run_dir: str | Path | None = None) -> None:
    """Add the first sentences of an audit to the document."""
    if _documents:
        _documents[-1].answers.append({"of": _path_to_text(run_dir), **_to_json_value(answer)})


def add_table_to_json(name: str, table: pl.DataFrame, *, run_dir: str | Path | None = None) -> None:
    """Add a table to the document, with unrounded numbers.

    Parameters
    ----------
    name : str
        What the table is called: ``"findings"``.
    table : polars.DataFrame
    run_dir : str or Path, optional
        The run that it belongs to.
    """
    if _documents:
        rows = [
            {key: _to_json_value(cell) for key, cell in row.items()} for row in table.to_dicts()
        ]
        _documents[-1].tables.append({"name": name, "of": _path_to_text(run_dir), "rows": rows})


def add_text_table_to_json(
    name: str, columns: Sequence[str], rows: Iterable[Sequence[str]]
) -> None:
    """Add a printed table to the document, cells as text; equal column names are numbered."""
    names: list[str] = []
    for column in columns:
        heading = column or "name"
        n_same = sum(earlier_name.partition(" (")[0] == heading for earlier_name in names)
        names.append(f"{heading} ({n_same + 1})" if n_same else heading)
    text_rows = [dict(zip(names, row, strict=True)) for row in rows]
    _documents[-1].tables.append({"name": name, "of": None, "rows": text_rows})


def record_first_error(error: BaseException | str) -> None:
    """Record why the command ended in the document; the first reason stays.

    Parameters
    ----------
    error : exception or str
        An error of isolux or of the command line, or what the screen says of any other.
    """
    if not _documents or _documents[-1].error is not None:
        return
    format_usage = getattr(error, "format_message", None)
    first, *further_lines = str(
        format_usage() if callable(format_usage) else error
    ).splitlines() or [""]
    lines = [line.strip().partition(": ") for line in further_lines]
    details = {
        name: next((text for word, _, text in lines if word == label), None)
        for name, label in _ERROR_LABELS.items()
    }
    details |= {name: getattr(error, name) for name in _ERROR_LABELS if hasattr(error, name)}
    error_type = "Ended" if isinstance(error, str) else type(error).__name__
    _documents[-1].error = {
        "kind": error_type,
        "problem": first.removeprefix("isolux: "),
        **details,
    }


def print_unfinished_json() -> None:
    """Print the document while the command goes on, as a server does: its exit code is null."""
    if _documents:
        _documents[-1].print(None)


def _path_to_text(path: str | Path | None) -> str | None:
    return None if path is None else str(path)


def _to_json_value(cell: Any) -> Any:
    """Convert a cell to a JSON value: NaN and infinity are null, a date is text."""
    if isinstance(cell, float):
        return cell if math.isfinite(cell) else None
    if isinstance(cell, Mapping):
        return {str(key): _to_json_value(element) for key, element in cell.items()}
    if isinstance(cell, list | tuple):
        return [_to_json_value(element) for element in cell]
    return cell if cell is None or isinstance(cell, bool | int | str) else str(cell)


def _dump_json_for_stream(fields: Mapping[str, Any], out: TextIO) -> str:
    """Dump JSON; characters are escaped where the stream is not Unicode."""
    utf = "utf" in (getattr(out, "encoding", None) or "").lower()
    return json.dumps(fields, ensure_ascii=not utf, indent=1, allow_nan=False)
