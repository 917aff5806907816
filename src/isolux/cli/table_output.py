"""Printing of commands: tables that fit the screen, warnings, and hints."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isolux.cli import command_output
from isolux.cli.streams import build_rich_console, print_clean_lines, print_to_stderr
from isolux.core.containers import Run
from isolux.core.printable import clean_line
from isolux.core.survey_sample import describe_survey_sample

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Console

_MAX_ROWS = 20
_MAX_COLUMNS = 8
_MAX_WIDE_ROWS = 60
_COLUMN_GAP = 2  # blanks between columns


def add_run_to_json(run: Run, answer: Mapping[str, Any] | None, report: Path | None) -> None:
    """Add a run to the JSON document: cautions, notes, answer, tables and files."""
    run_dir = None if report is None else report.parent
    for warning in run.record.get("warnings") or ():
        command_output.report_warning(warning)
    for note in filter(None, (describe_survey_sample(run.record), *run.record.get("notes", ()))):
        command_output.report_note(note)
    if answer is not None:
        command_output.add_answer_to_json(answer, run_dir=run_dir)
    command_output.add_table_to_json(
        "findings", run.findings.sort("rank", maintain_order=True), run_dir=run_dir
    )
    command_output.add_table_to_json("group_metrics", run.group_metrics, run_dir=run_dir)
    command_output.add_table_to_json("disparities", run.disparities, run_dir=run_dir)
    if report is not None:
        command_output.report_file("run", report.parent)
        command_output.report_file("report", report)


def print_stdout_warning(text: str) -> None:
    """Print what must be read before anything else."""
    if command_output.is_json_active():
        command_output.report_warning(text)
    else:
        _print_warning_to_console(build_rich_console(), text)


def print_stderr_warning(text: str) -> None:
    """Print a warning that must be seen where standard output is read by a program."""
    if command_output.is_json_active():
        command_output.report_warning(text)
    else:
        print_to_stderr(f"WARNING: {text}")


def _print_warning_to_console(console: Console, text: str) -> None:
    console.print(clean_line(f"WARNING: {text}"), style="bold")


def print_missing_figures_hint(command: str | None = None) -> None:
    """Print how to add figures to a page, where it has none.

    Parameters
    ----------
    command : str, optional
        The command that makes the page again; default: the one that was given.
    """
    from isolux.report.figures.svg import find_drawing_obstacle

    obstacle = find_drawing_obstacle()
    if obstacle is None:
        return
    print_clean_lines(f"It has no figures, only tables: {obstacle[0]}.")
    print_clean_lines(f"  to add them: {obstacle[1]}")
    print_clean_lines(f"  then: {command or 'the same command again'}")


def print_suppression_if_large(run: Run, published_run: Run, minimum: int) -> None:
    """Print how much ``--publish-min`` suppresses, where it is much."""
    from isolux.api.publish.suppression_summary import describe_suppression

    suppression_text = describe_suppression(run, published_run, minimum)
    if suppression_text:
        command_output.report_note(suppression_text)


def print_paper_tables(run: Run) -> None:
    """Print the paper's tables, short ones whole, of an audit that followed a protocol."""
    from isolux.statements.numbers import format_paper_cell

    for caption, reason in (run.record.get("protocol") or {}).get("absent", {}).items():
        print_clean_lines("", caption, f"  is not printed: {reason}")
    for caption, table in (run.record.get("protocol") or {}).get("tables", {}).items():
        rows = [[format_paper_cell(cell) for cell in row] for row in table["rows"]]
        if command_output.is_json_active():
            command_output.add_text_table_to_json(caption, table["columns"], rows)
            continue
        print_clean_lines("", caption)
        columns = [column.replace("_", " ") for column in table["columns"]]
        n_keys = _count_leading_text_columns(table["rows"])
        if len(columns) > max(_MAX_COLUMNS, len(rows)):  # a screen is higher than it is wide
            columns, *rows = [list(row) for row in zip(columns, *rows, strict=True)]
            n_keys = 1
        if n_remaining := max(len(rows) - _MAX_ROWS, 0):
            # The last row stays: papers' averages stand there.
            rows = [*rows[: _MAX_ROWS - 1], ["…"] * len(columns), rows[-1]]
        print_unbroken_table("", columns, rows, n_keys=n_keys)
        if n_remaining:
            print_clean_lines(f"… and {n_remaining} more rows in the report.")


def _count_leading_text_columns(rows: list[list[object]]) -> int:
    """Count the columns before the first number: they name a row."""
    has_numbers = [
        any(isinstance(cell, int | float) for cell in c) for c in zip(*rows, strict=True)
    ]
    return max(has_numbers.index(True), 1) if True in has_numbers else 1


def print_unbroken_table(
    title: str, columns: list[str], rows: list[list[str]], *, n_keys: int = 1
) -> None:
    """Print a table whose words are never broken.

    What is too wide for the screen stands in several blocks of columns, each with the first
    ``n_keys``; what has a word as wide as the screen stands line by line, and the terminal wraps
    it.
    """
    if command_output.is_json_active():
        command_output.add_text_table_to_json(title, columns, rows)
        return
    columns = [clean_line(c) for c in columns]
    rows = [[clean_line(cell) for cell in row] for row in rows]
    if title:
        print_clean_lines(title)
    width = build_rich_console().width
    cells = [list(column) for column in zip(columns, *rows, strict=True)]
    min_widths = [
        max(_measure_longest_word(cell) for cell in column) + _COLUMN_GAP for column in cells
    ]
    if sum(min_widths) <= width + _COLUMN_GAP:
        _print_rich_table(columns, rows, min_widths)
    elif sum(min_widths[:n_keys]) + max(min_widths[n_keys:], default=0) <= width + _COLUMN_GAP:
        for block in _split_into_column_blocks(cells, n_keys, width, min_widths):
            head, *body = (list(row) for row in zip(*block, strict=True))
            _print_rich_table(
                head, body, [max(map(_measure_longest_word, c)) + _COLUMN_GAP for c in block]
            )
    else:
        for row in rows:
            pairs = zip(columns, row)  # noqa: B905 - a row may be shorter
            cell_lines = [f"{name}: {cell}" if name else cell for name, cell in pairs if cell]
            print_clean_lines(*cell_lines[:1], *(f"  {line}" for line in cell_lines[1:]))


def _print_rich_table(columns: list[str], rows: list[list[str]], min_widths: list[int]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = build_rich_console()
    table = Table(header_style="bold", box=None, pad_edge=False)
    cells = [list(column) for column in zip(columns, *rows, strict=True)]
    full_widths = [max(_measure_longest_line(cell) for cell in column) for column in cells]
    needed_widths = [width - _COLUMN_GAP for width in min_widths]
    available_width = console.width - _COLUMN_GAP * (len(columns) - 1)
    for column, width in zip(
        columns, _fit_widths_to_screen(full_widths, needed_widths, available_width), strict=True
    ):
        # Set, as rich would narrow a column below its longest word and cut the last one off.
        table.add_column(Text(column), overflow="fold", width=width)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def _fit_widths_to_screen(
    full_widths: list[int], min_widths: list[int], available_width: int
) -> list[int]:
    """Share out the width: full widths if they fit, else the rest to the widest columns.

    Examples
    --------
    >>> _fit_widths_to_screen([30, 5], [8, 5], 80), _fit_widths_to_screen([60, 40], [10, 10], 50)
    ([30, 5], [35, 15])
    """
    widths = [max(min_width, 1) for min_width in min_widths]
    for _ in range(max(available_width - sum(widths), 0)):
        missing_widths = [full - width for full, width in zip(full_widths, widths, strict=True)]
        if max(missing_widths) <= 0:
            break
        widths[missing_widths.index(max(missing_widths))] += 1
    return widths


def _measure_longest_line(cell: str) -> int:
    from rich.cells import cell_len

    return max((cell_len(line) for line in cell.splitlines()), default=0)


def _measure_longest_word(cell: str) -> int:
    from rich.cells import cell_len

    return max((cell_len(word) for word in cell.split()), default=0)


_P_VALUE_COLUMNS = ("p_value", "p_adjusted")


def print_table_in_column_blocks(caption: str, table: pl.DataFrame) -> None:
    """Print a table in as many blocks of columns as the screen needs, each with the row's name."""
    from isolux.statements.numbers import (
        choose_paper_column_decimals,
        format_p_value,
        format_paper_cell,
    )

    if command_output.is_json_active():
        command_output.add_table_to_json(caption, table)
        return
    print_clean_lines("", caption)
    head = table.head(_MAX_WIDE_ROWS)
    cells = []
    for name in head.columns:
        values = head[name].to_list()
        n_decimals = 1 if "%" in name else choose_paper_column_decimals(values)
        cell_texts = (
            map(format_p_value, values)
            if name in _P_VALUE_COLUMNS
            else (format_paper_cell(v, n_decimals) for v in values)
        )
        cells.append([name, *cell_texts])
    is_key_column = [name in {"dataset", "attribute"} for name in head.columns]
    n_keys = min(
        len(head.columns), (is_key_column.index(False) if False in is_key_column else 0) + 1
    )
    for block in _split_into_column_blocks(cells, n_keys, build_rich_console().width):
        columns, *rows = (list(row) for row in zip(*block, strict=True))
        print_unbroken_table("", columns, rows)
    if table.height > _MAX_WIDE_ROWS:
        print_clean_lines(
            f"… and {table.height - _MAX_WIDE_ROWS:,} more rows; --out writes all of them."
        )


def _split_into_column_blocks(
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
