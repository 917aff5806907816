"""``isolux monitor``: a model's gaps over time, asked at every run."""

from __future__ import annotations

from typing import Any

from isolux.cli import command_output
from isolux.cli.streams import print_clean_lines

VERB = "isolux.api.monitor:monitor"


def monitor(
    runs: list[str], *, out: str | None = None, overwrite: bool = False, **settings: Any
) -> None:
    """Tell whether a gap has opened, since when, and how large it is: valid at every look.

    Each run is a look. Looking daily raises no more false alarms than looking once.

    Parameters
    ----------
    runs : list of str
        Run directories of one model, in order of time.
    out : str, optional
        Directory to write; default: print only.
    overwrite : bool
        Replace that directory.
    """
    from isolux.api.monitor import MONITOR_RECORD
    from isolux.api.monitor import monitor as run_monitor
    from isolux.cli.table_output import print_missing_figures_hint, print_unbroken_table
    from isolux.io.atomic import refuse_existing

    if out is not None:
        refuse_existing(out, overwrite=overwrite, marks=(MONITOR_RECORD,), folder_kind="monitoring")
    monitoring = run_monitor(runs, **settings)
    for text in monitoring.findings:
        print_clean_lines(f"• {text}")
    for note in monitoring.notes:
        command_output.report_note(note)
    print_clean_lines()
    summary = (
        monitoring.summary_table()
        if command_output.is_json_active()
        else monitoring.to_brief_table()
    )
    rows = [[_format_cell(x) for x in row] for row in summary.rows()]
    print_unbroken_table("", [name.replace("_", "-") for name in summary.columns], rows)
    if out is not None:
        print_clean_lines()
        command_output.report_file("page", monitoring.report(out, overwrite=overwrite))
        print_missing_figures_hint()


def _format_cell(cell: object) -> str:
    if cell is None:
        return "–"
    return f"{cell:g}" if isinstance(cell, float) else str(cell)
