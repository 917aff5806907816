"""``isolux sample``: draw a test set with as many people of every combination of attributes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.cli import document
from isolux.cli.outputs import refuse_file
from isolux.cli.streams import say

VERB = "isolux.verbs.sample:sample"


def sample(data: str, *, out: Path, overwrite: bool = False, **settings: Any) -> None:
    """Draw a balanced test set; cells with too few people are taken whole, and listed.

    If the dataset names subjects, either all of a subject's photos are drawn or none.

    Parameters
    ----------
    data : str
        NAME:PATH, such as fairface:labels.csv.
    out : Path
        The CSV file of ids to write.
    overwrite : bool
        Replace the file.
    """
    from isolux.cli.screen import show_wide
    from isolux.io.atomic import write_text
    from isolux.io.csv_text import csv_text
    from isolux.verbs.sample import sample as drawn_of

    refuse_file(out, source=data.partition(":")[2], overwrite=overwrite)
    drawn = drawn_of(data, **settings)
    document.give("cells", drawn.cells)
    short = drawn.cells.filter(drawn.cells["short"] > 0)
    if short.height:
        show_wide(f"Short of {settings['per_cell']:,} people", short)
        say()
    for note in drawn.notes:
        document.note(note)
    few = f", {short.height:,} of them short" if short.height else ""
    say(f"{drawn.people.height:,} people of {drawn.cells.height:,} cells{few}")
    document.wrote("ids", write_text(out, csv_text(drawn.people)))
