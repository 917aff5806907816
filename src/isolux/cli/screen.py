"""Printing of commands: tables that fit the screen, warnings, and hints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolux.cli import document
from isolux.cli.streams import print_error, say, screen
from isolux.vocabulary.containers import Run
from isolux.vocabulary.drawn import words_of
from isolux.vocabulary.printable import plain

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

_MAX_ROWS = 20
_MAX_COLUMNS = 8
_MAX_WIDE_ROWS = 60
_COLUMN_GAP = 2  # blanks between columns


def give_run(run: Run, answer: Mapping[str, Any] | None, report: Path | None) -> None:
    """Add a run to the JSON document: cautions, notes, answer, tables and files."""
    run_dir = None if report is None else report.parent
    for warning in run.record.get("warnings") or ():
        document.warn(warning)
    for note in filter(None, (words_of(run.record), *run.record.get("notes", ()))):
        document.note(note)
    if answer is not None:
        document.give_answer(answer, of=run_dir)
    document.give("findings", run.findings.sort("rank", maintain_order=True), of=run_dir)
    document.give("group_metrics", run.group_metrics, of=run_dir)
    document.give("disparities", run.disparities, of=run_dir)
    if report is not None:
        document.wrote("run", report.parent)
        document.wrote("report", report)


def say_warning(text: str) -> None:
    """Print what must be read before anything else."""
    if document.giving():
        document.warn(text)
    else:
        _print_warning(screen(), text)


def say_on_stderr(text: str) -> None:
    """Print a warning that must be seen where standard output is read by a program."""
    if document.giving():
        document.warn(text)
    else:
        print_error(f"WARNING: {text}")


def _print_warning(console: Console, text: str) -> None:
    console.print(plain(f"WARNING: {text}"), style="bold")


def say_figures(command: str | None = None) -> None:
    """Print how to add figures to a page, where the extra is not installed.

    Parameters
    ----------
    command : str, optional
        The command that makes the page again; default: the one that was given.
    """
    from isolux.report.figures.svg import drawable

    if drawable():
        return
    say("It has no figures, only tables: the package that draws them is not installed.")
    say("  to add them: pip install 'isolux[figures]'")
    say(f"  then: {command or 'the same command again'}")


def say_hidden(run: Run, published_run: Run, minimum: int) -> None:
    """Print how much ``--publish-min`` suppresses, where it is much."""
    from isolux.verbs.publish.hiding import hiding

    suppression_text = hiding(run, published_run, minimum)
    if suppression_text:
        document.note(suppression_text)


def show_paper(run: Run) -> None:
    """Print the paper's tables, short ones whole, of an audit that followed a protocol."""
    from isolux.statements.numbers import cell_text

    for caption, reason in (run.record.get("protocol") or {}).get("absent", {}).items():
        say("", caption, f"  is not printed: {reason}")
    for caption, table in (run.record.get("protocol") or {}).get("tables", {}).items():
        rows = [[cell_text(cell) for cell in row] for row in table["rows"]]
        if document.giving():
            document.give_words(caption, table["columns"], rows)
            continue
        say("", caption)
        columns = [column.replace("_", " ") for column in table["columns"]]
        if len(columns) > max(_MAX_COLUMNS, len(rows)):  # a screen is higher than it is wide
            columns, *rows = [list(row) for row in zip(columns, *rows, strict=True)]
        show_table("", columns, rows[:_MAX_ROWS])
        if len(rows) > _MAX_ROWS:
            say(f"… and {len(rows) - _MAX_ROWS} more rows in the report.")


def show_table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table whose words are never broken.

    What is too wide for the screen stands in several blocks of columns, each with the first one;
    what has a word as wide as the screen stands line by line, and the terminal wraps it.
    """
    if document.giving():
        document.give_words(title, columns, rows)
        return
    columns, rows = [plain(c) for c in columns], [[plain(cell) for cell in row] for row in rows]
    if title:
        say(title)
    width = screen().width
    cells = [list(column) for column in zip(columns, *rows, strict=True)]
    min_widths = [max(_longest_word(cell) for cell in column) + _COLUMN_GAP for column in cells]
    if sum(min_widths) <= width + _COLUMN_GAP:
        _print_rich_table(columns, rows, min_widths)
    elif min_widths[0] + max(min_widths[1:], default=0) <= width + _COLUMN_GAP:
        for block in _split_columns(cells, 1, width, min_widths):
            head, *body = (list(row) for row in zip(*block, strict=True))
            _print_rich_table(head, body, [max(map(_longest_word, c)) + _COLUMN_GAP for c in block])
    else:
        for row in rows:
            pairs = zip(columns, row)  # noqa: B905 - a row may be shorter
            cell_lines = [f"{name}: {cell}" if name else cell for name, cell in pairs if cell]
            say(*cell_lines[:1], *(f"  {line}" for line in cell_lines[1:]))


def _print_rich_table(columns: list[str], rows: list[list[str]], min_widths: list[int]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = screen()
    table = Table(header_style="bold", box=None, pad_edge=False)
    cells = [list(column) for column in zip(columns, *rows, strict=True)]
    full_widths = [max(_longest_line(cell) for cell in column) for column in cells]
    needed_widths = [width - _COLUMN_GAP for width in min_widths]
    available_width = console.width - _COLUMN_GAP * (len(columns) - 1)
    for column, width in zip(
        columns, _share_out_width(full_widths, needed_widths, available_width), strict=True
    ):
        # Set, as rich would narrow a column below its longest word and cut the last one off.
        table.add_column(Text(column), overflow="fold", width=width)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def _share_out_width(
    full_widths: list[int], min_widths: list[int], available_width: int
) -> list[int]:
    """Share out the width: full widths if they fit, else the rest to the widest columns.

    Examples
    --------
    >>> _share_out_width([30, 5], [8, 5], 80), _share_out_width([60, 40], [10, 10], 50)
    ([30, 5], [35, 15])
    """
    widths = [max(min_width, 1) for min_width in min_widths]
    for _ in range(max(available_width - sum(widths), 0)):
        missing_widths = [full - width for full, width in zip(full_widths, widths, strict=True)]
        if max(missing_widths) <= 0:
            break
        widths[missing_widths.index(max(missing_widths))] += 1
    return widths


def _longest_line(cell: str) -> int:
    from rich.cells import cell_len

    return max((cell_len(line) for line in cell.splitlines()), default=0)


def _longest_word(cell: str) -> int:
    from rich.cells import cell_len

    return max((cell_len(word) for word in cell.split()), default=0)


_P_VALUE_COLUMNS = ("p_value", "p_adjusted")


def show_wide(caption: str, table: pl.DataFrame) -> None:
    """Print a table in as many blocks of columns as the screen needs, each with the row's name."""
    from isolux.statements.numbers import cell_text, decimals, p_text

    if document.giving():
        document.give(caption, table)
        return
    say("", caption)
    head = table.head(_MAX_WIDE_ROWS)
    cells = []
    for name in head.columns:
        values = head[name].to_list()
        n_decimals = 1 if "%" in name else decimals(values)
        cell_texts = (
            map(p_text, values)
            if name in _P_VALUE_COLUMNS
            else (cell_text(v, n_decimals) for v in values)
        )
        cells.append([name, *cell_texts])
    is_key_column = [name in {"dataset", "attribute"} for name in head.columns]
    n_keys = min(
        len(head.columns), (is_key_column.index(False) if False in is_key_column else 0) + 1
    )
    for block in _split_columns(cells, n_keys, screen().width):
        columns, *rows = (list(row) for row in zip(*block, strict=True))
        show_table("", columns, rows)
    if table.height > _MAX_WIDE_ROWS:
        say(f"… and {table.height - _MAX_WIDE_ROWS:,} more rows; --out writes all of them.")


def _split_columns(
    cells: list[list[str]], n_keys: int, width: int, min_widths: list[int] | None = None
) -> list[list[list[str]]]:
    """Split columns into blocks that fit the screen; the first ``n_keys`` are in each block.

    ``min_widths`` are the columns' widths; default: those of their longest cells.
    """
    column_widths = min_widths or [
        max(len(cell) for cell in column) + _COLUMN_GAP for column in cells
    ]
    blocks, block, used_width = [], cells[:n_keys], sum(column_widths[:n_keys])
    for column, column_width in zip(cells[n_keys:], column_widths[n_keys:], strict=True):
        if used_width + column_width > width + _COLUMN_GAP and len(block) > n_keys:
            blocks.append(block)
            block, used_width = cells[:n_keys], sum(column_widths[:n_keys])
        block, used_width = [*block, column], used_width + column_width
    return [*blocks, block]
