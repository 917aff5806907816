"""``isolux describe``: what one or several datasets hold, before any model is judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.cli import command_output
from isolux.cli.streams import build_rich_console, print_clean_lines

VERB = "isolux.api.describe:describe"


def describe(data: list[str], *, out: Path | None = None, **settings: Any) -> None:
    """Count people, images and subjects by attribute, intersection, size and crowding.

    People are the dataset's instances; in a dataset of objects, --only selects those that are
    people (--only category=pedestrian). Several datasets are shown side by side, with sampling
    intervals.

    Parameters
    ----------
    data : list of str
        NAME:PATH, such as table:people.csv; several are shown side by side.
    out : Path, optional
        An HTML page to write, with figures.
    """
    from isolux.api.describe import describe as run_describe
    from isolux.cli.audit_screen import print_lines, wrap_text
    from isolux.cli.table_output import print_missing_figures_hint, print_table_in_column_blocks
    from isolux.report.description import describe_sizes_and_least_represented

    description = run_describe(data, **settings)
    print_lines(
        wrap_text(
            describe_sizes_and_least_represented(description.tables, description.names),
            build_rich_console().width,
            "bold",
        )
    )
    for caption, table in description.tables.items():
        print_table_in_column_blocks(caption, table)
    print_clean_lines()
    for note in description.notes:
        command_output.report_note(note)
    if out is not None:
        command_output.report_file("page", description.report(out))
        print_missing_figures_hint()
