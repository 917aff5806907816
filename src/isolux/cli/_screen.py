"""What a finished command prints: the first findings, and where the rest is."""

from __future__ import annotations

from pathlib import Path

from isolux.containers import Run

__all__ = ["show_audit", "show_table"]

_FIRST = 6


def show_audit(run: Run, report: Path | None) -> None:
    """Print the first findings, how many there are, and the report's path."""
    from rich.console import Console
    from rich.markup import escape
    from rich.padding import Padding

    screen = Console(highlight=False)
    claims = run.findings.sort("rank")["claim"].to_list()
    for claim in claims[:_FIRST]:
        screen.print(Padding(f"• {escape(claim)}", (0, 0, 0, 0)))
    if len(claims) > _FIRST:
        screen.print(f"… and {len(claims) - _FIRST} more findings in the report.")
    if not claims:
        screen.print("No finding: nothing could be compared.")
    for note in list(run.record.get("notes", []))[:_FIRST]:
        screen.print(escape(f"note: {note}"), style="dim")
    if report is not None:
        screen.print()
        screen.print(f"report: {escape(str(report))}", soft_wrap=True)


def show_table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table; wide ones are wrapped inside their cells, never cut."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(table)
