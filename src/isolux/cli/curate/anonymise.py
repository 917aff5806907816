"""``isolux curate anonymise``: photos and their table made fit to be published."""

from __future__ import annotations

from typing import Any

from isolux.cli import document
from isolux.cli.streams import say

__all__ = ["anonymise"]

VERB = "isolux.verbs.anonymise:anonymise"


def anonymise(table: str, **settings: Any) -> None:
    """Prepare photos and their table for publication: no metadata, no names, months for dates.

    Writes people.csv, counts.csv (what is published only as counts), photos/ and privacy.json.

    Parameters
    ----------
    table : str
        One row per person or photo.
    """
    from isolux.verbs.anonymise import anonymise as made_of
    from isolux.vocabulary.notes import by_severity

    done = made_of(table, **settings)
    cautions, notes = by_severity(done.notes)
    for caution in cautions:
        document.warn(caution)
    told = f"{done.people.height:,} rows"
    if done.pictures:
        told += f", {done.pictures:,} photos ({done.filled:,} with regions filled in)"
    say(told)
    for note in notes:
        document.note(note)
    document.wrote("dataset", done.folder)
