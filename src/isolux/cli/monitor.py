"""``isolux monitor``: a model's gaps over time, asked at every run."""

from __future__ import annotations

from typing import Any

from isolux.cli import document
from isolux.cli.streams import say

VERB = "isolux.verbs.monitor:monitor"


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
    from isolux.cli.screen import say_figures, show_table
    from isolux.io.atomic import refuse_existing
    from isolux.verbs.monitor import MARK
    from isolux.verbs.monitor import monitor as watch

    if out is not None:
        refuse_existing(out, overwrite=overwrite, marks=(MARK,), what="monitoring")
    found = watch(runs, **settings)
    for text in found.findings:
        say(f"• {text}")
    for note in found.notes:
        document.note(note)
    say()
    shown = found.shown() if document.giving() else found.brief()
    rows = [[_cell(x) for x in row] for row in shown.rows()]
    show_table("", [name.replace("_", "-") for name in shown.columns], rows)
    if out is not None:
        say()
        document.wrote("page", found.report(out, overwrite=overwrite))
        say_figures()


def _cell(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:g}" if isinstance(value, float) else str(value)
