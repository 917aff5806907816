"""``isolux curate consensus``: one label an item, of what several annotators answered."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.cli import document
from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["consensus"]

VERB = "isolux.verbs.consensus:consensus"

_SHOWN = 20
_STATUSES = ("agreed", "ask again", "discard")


def consensus(data: str, *, out: Path, overwrite: bool = False, **settings: Any) -> None:
    """Merge several annotators' answers into one label per item, with its certainty.

    Writes labels.csv (label, probability, status: agreed, ask again or discard), chances.csv (a
    column for each answer), annotators.csv (how often each is likely to be right) and
    consensus.json.

    Parameters
    ----------
    data : str
        ratings:FILE, with one row per answer or a column for each annotator.
    out : Path
        The folder to write.
    overwrite : bool
        Replace that folder, if it contains such a consensus.
    """
    from isolux.cli.screen import show_wide
    from isolux.io.atomic import refuse_existing
    from isolux.verbs.consensus import MARK
    from isolux.verbs.consensus import consensus as found_of
    from isolux.vocabulary.notes import by_severity

    target = out.expanduser().resolve()
    refuse_existing(target, overwrite=overwrite, marks=(MARK,), what="consensus folder")
    done = found_of(data, **settings)
    cautions, notes = by_severity(done.notes)
    for caution in cautions:
        document.warn(caution)
    counts = dict(done.labels["status"].value_counts().iter_rows())
    told = ", ".join(f"{counts[s]:,} {s}" for s in _STATUSES if s in counts)
    say(f"{numbered(done.labels.height, 'item')}: {told}")
    known = done.annotators.drop_nulls("right")
    if 0 < known.height <= _SHOWN and known["low"].null_count() == 0:
        show_wide("How often each annotator is likely right", known)
    for note in notes:
        document.note(note)
    document.wrote("labels", done.write(out, overwrite=overwrite))
