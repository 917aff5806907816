"""What a finished command prints: the first findings, and where the rest is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from isolux.vocabulary.containers import Run

if TYPE_CHECKING:
    import polars as pl

__all__ = ["say_figures", "show_audit", "show_table", "show_wide"]

_FIRST = 6
_ROWS = 20
_COLUMNS = 8
_WIDE_ROWS = 60


def show_audit(run: Run, report: Path | None) -> None:
    """Print the first findings, how many there are, and the report's path."""
    from rich.console import Console
    from rich.markup import escape
    from rich.padding import Padding

    screen = Console(highlight=False)
    for warning in run.record.get("warnings") or ():
        screen.print(escape(f"WARNING: {warning}"), style="bold")
    claims = run.findings.sort("rank")["claim"].to_list()
    for claim in claims[:_FIRST]:
        screen.print(Padding(f"• {escape(claim)}", (0, 0, 0, 0)))
    if len(claims) > _FIRST:
        screen.print(f"… and {len(claims) - _FIRST} more findings in the report.")
    if not claims:
        screen.print("No finding: nothing could be compared.")
    for note in list(run.record.get("notes", []))[:_FIRST]:
        screen.print(escape(f"note: {note}"), style="dim")
    _show_paper(run)
    if report is not None:
        screen.print()
        screen.print(f"report: {escape(str(report))}", soft_wrap=True)
        say_figures(f"isolux report {report.parent}")


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
    print("It has no figures, only tables: the package that draws them is not installed.")  # noqa: T201
    print("  to add them: pip install 'isolux[figures]'")  # noqa: T201
    print(f"  then: {again or 'the same command again'}")  # noqa: T201


def _show_paper(run: Run) -> None:
    """Print the paper's tables, short ones whole, of an audit that followed a protocol."""
    from isolux.report.wording import cell_text

    for caption, table in (run.record.get("protocol") or {}).get("tables", {}).items():
        print(f"\n{caption}")  # noqa: T201 - a table's own title would wrap at its width
        rows = [[cell_text(cell) for cell in row] for row in table["rows"]]
        columns = [column.replace("_", " ") for column in table["columns"]]
        if len(columns) > max(_COLUMNS, len(rows)):  # a screen is higher than it is wide
            columns, *rows = [list(row) for row in zip(columns, *rows, strict=True)]
        show_table("", columns, rows[:_ROWS])
        if len(rows) > _ROWS:
            print(f"… and {len(rows) - _ROWS} more rows in the report.")  # noqa: T201


def show_table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table; wide ones are wrapped inside their cells, never cut."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=title or None, title_justify="left", header_style="bold", box=None, pad_edge=False
    )
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(table)


def show_wide(caption: str, table: pl.DataFrame) -> None:
    """Print a table in as many blocks of columns as the screen needs, each with the row's name."""
    from rich.console import Console

    from isolux.report.wording import cell_text, decimals

    print(f"\n{caption}")  # noqa: T201 - as the paper's tables
    head = table.head(_WIDE_ROWS)
    cells = []
    for name in head.columns:
        values = head[name].to_list()
        places = 1 if "%" in name else decimals(values)
        cells.append([name, *(cell_text(value, places) for value in values)])
    named = [name in {"dataset", "attribute"} for name in head.columns]
    keys = min(len(head.columns), (named.index(False) if False in named else 0) + 1)
    for block in _blocks(cells, keys, Console().width):
        columns, *rows = (list(row) for row in zip(*block, strict=True))
        show_table("", columns, rows)
    if table.height > _WIDE_ROWS:
        print(  # noqa: T201
            f"… and {table.height - _WIDE_ROWS:,} more rows; --out writes all of them."
        )


def _blocks(cells: list[list[str]], keys: int, width: int) -> list[list[list[str]]]:
    """Part columns into blocks that fit the screen; the first ``keys`` stand in each of them."""
    wide = [max(len(cell) for cell in column) + 2 for column in cells]
    blocks, block, used = [], cells[:keys], sum(wide[:keys])
    for column, needs in zip(cells[keys:], wide[keys:], strict=True):
        if used + needs > width and len(block) > keys:
            blocks.append(block)
            block, used = cells[:keys], sum(wide[:keys])
        block, used = [*block, column], used + needs
    return [*blocks, block]
