"""``isolux curate journal``: who decided what, when, by which rule; and whether it is whole."""

from __future__ import annotations

from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["journal"]

_SHOWN = 40


def journal(project: str, *, head: str | None = None, last: int = _SHOWN) -> None:
    """Print who decided what, when and by which rule; check that nothing was changed afterwards.

    Parameters
    ----------
    project : str
        The project's folder.
    head : str, optional
        The hash of the last row, as noted elsewhere: detects rows that were cut off at the end.
    last : int
        How many of the last rows to print.
    """
    from isolux.cli.screen import show_wide
    from isolux.curation.project import check_journal, open_project, read_journal

    opened = open_project(project)
    rows = check_journal(opened, head=head)
    table = read_journal(opened)
    show_wide(f"The last {min(last, rows):,} of {rows:,} rows", table.tail(last).drop("hash"))
    say(f"{numbered(rows, 'row')}: hashes, signatures and verdicts verify")
    say(f"head: {table['hash'][-1]}")
