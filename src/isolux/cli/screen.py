"""What a finished command prints: the first findings, and where the rest is."""

from __future__ import annotations

from pathlib import Path

from isolux.vocabulary.containers import Run

__all__ = ["show_audit", "show_table"]

_FIRST = 6
_ROWS = 20
_COLUMNS = 8


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
