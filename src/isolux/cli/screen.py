"""How commands print: tables that fit the screen, warnings, and what a page lacks."""

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

_ROWS = 20
_COLUMNS = 8
_WIDE_ROWS = 60
_APART = 2  # blanks between columns


def give_run(run: Run, answer: Mapping[str, Any] | None, report: Path | None) -> None:
    """Hand a run to a script: cautions, notes, its answer, the tables behind it, the files."""
    where = None if report is None else report.parent
    for warning in run.record.get("warnings") or ():
        document.warn(warning)
    for note in filter(None, (words_of(run.record), *run.record.get("notes", ()))):
        document.note(note)
    if answer is not None:
        document.give_answer(answer, of=where)
    document.give("findings", run.findings.sort("rank", maintain_order=True), of=where)
    document.give("group_metrics", run.group_metrics, of=where)
    document.give("disparities", run.disparities, of=where)
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


def say_figures(again: str | None = None) -> None:
    """Say that a page has no figures, and what adds them, where the extra is not installed.

    Parameters
    ----------
    again : str, optional
        The command that makes the page again; default: the one that was given.
    """
    from isolux.report.figures.svg import drawable

    if drawable():
        return
    say("It has no figures, only tables: the package that draws them is not installed.")
    say("  to add them: pip install 'isolux[figures]'")
    say(f"  then: {again or 'the same command again'}")


def say_hidden(run: Run, cut: Run, minimum: int) -> None:
    """Tell who publishes what ``--publish-min`` costs, where it costs much."""
    from isolux.verbs.publish.hiding import hiding

    said = hiding(run, cut, minimum)
    if said:
        document.note(said)


def show_paper(run: Run) -> None:
    """Print the paper's tables, short ones whole, of an audit that followed a protocol."""
    from isolux.statements.numbers import cell_text

    for caption, why in (run.record.get("protocol") or {}).get("absent", {}).items():
        say("", caption, f"  is not printed: {why}")
    for caption, table in (run.record.get("protocol") or {}).get("tables", {}).items():
        rows = [[cell_text(cell) for cell in row] for row in table["rows"]]
        if document.giving():
            document.give_words(caption, table["columns"], rows)
            continue
        say("", caption)
        columns = [column.replace("_", " ") for column in table["columns"]]
        if len(columns) > max(_COLUMNS, len(rows)):  # a screen is higher than it is wide
            columns, *rows = [list(row) for row in zip(columns, *rows, strict=True)]
        show_table("", columns, rows[:_ROWS])
        if len(rows) > _ROWS:
            say(f"… and {len(rows) - _ROWS} more rows in the report.")


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
    least = [max(_longest_word(cell) for cell in column) + _APART for column in cells]
    if sum(least) <= width + _APART:
        _print_table(columns, rows, least)
    elif least[0] + max(least[1:], default=0) <= width + _APART:
        for block in _blocks(cells, 1, width, least):
            head, *body = (list(row) for row in zip(*block, strict=True))
            _print_table(head, body, [max(map(_longest_word, c)) + _APART for c in block])
    else:
        for row in rows:
            said = [f"{name}: {cell}" if name else cell for name, cell in zip(columns, row) if cell]  # noqa: B905
            say(*said[:1], *(f"  {line}" for line in said[1:]))


def _print_table(columns: list[str], rows: list[list[str]], least: list[int]) -> None:
    from rich.table import Table
    from rich.text import Text

    console = screen()
    table = Table(header_style="bold", box=None, pad_edge=False)
    cells = [list(column) for column in zip(columns, *rows, strict=True)]
    whole = [max(_longest_line(cell) for cell in column) for column in cells]
    needs = [width - _APART for width in least]
    room = console.width - _APART * (len(columns) - 1)
    for column, width in zip(columns, _shared_out(whole, needs, room), strict=True):
        # Set, as rich would narrow a column below its longest word and cut the last one off.
        table.add_column(Text(column), overflow="fold", width=width)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def _shared_out(whole: list[int], least: list[int], room: int) -> list[int]:
    """Give columns their width: whole where that fits, else what is left to the most in need.

    Examples
    --------
    >>> _shared_out([30, 5], [8, 5], 80), _shared_out([60, 40], [10, 10], 50)
    ([30, 5], [35, 15])
    """
    widths = [max(own, 1) for own in least]
    for _ in range(max(room - sum(widths), 0)):
        lacking = [full - width for full, width in zip(whole, widths, strict=True)]
        if max(lacking) <= 0:
            break
        widths[lacking.index(max(lacking))] += 1
    return widths


def _longest_line(cell: str) -> int:
    from rich.cells import cell_len

    return max((cell_len(line) for line in cell.splitlines()), default=0)


def _longest_word(cell: str) -> int:
    from rich.cells import cell_len

    return max((cell_len(word) for word in cell.split()), default=0)


_PS = ("p_value", "p_adjusted")


def show_wide(caption: str, table: pl.DataFrame) -> None:
    """Print a table in as many blocks of columns as the screen needs, each with the row's name."""
    from isolux.statements.numbers import cell_text, decimals, p_text

    if document.giving():
        document.give(caption, table)
        return
    say("", caption)
    head = table.head(_WIDE_ROWS)
    cells = []
    for name in head.columns:
        values = head[name].to_list()
        places = 1 if "%" in name else decimals(values)
        told = map(p_text, values) if name in _PS else (cell_text(v, places) for v in values)
        cells.append([name, *told])
    named = [name in {"dataset", "attribute"} for name in head.columns]
    keys = min(len(head.columns), (named.index(False) if False in named else 0) + 1)
    for block in _blocks(cells, keys, screen().width):
        columns, *rows = (list(row) for row in zip(*block, strict=True))
        show_table("", columns, rows)
    if table.height > _WIDE_ROWS:
        say(f"… and {table.height - _WIDE_ROWS:,} more rows; --out writes all of them.")


def _blocks(
    cells: list[list[str]], keys: int, width: int, needs: list[int] | None = None
) -> list[list[list[str]]]:
    """Part columns into blocks that fit the screen; the first ``keys`` stand in each of them.

    ``needs`` are the columns' widths; default: those of their longest cells.
    """
    wide = needs or [max(len(cell) for cell in column) + _APART for column in cells]
    blocks, block, used = [], cells[:keys], sum(wide[:keys])
    for column, own in zip(cells[keys:], wide[keys:], strict=True):
        if used + own > width + _APART and len(block) > keys:
            blocks.append(block)
            block, used = cells[:keys], sum(wide[:keys])
        block, used = [*block, column], used + own
    return [*blocks, block]
