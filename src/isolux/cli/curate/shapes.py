"""``isolux curate shapes``: one box, mask or pose an object, of what several annotators drew."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.cli import document
from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["shapes"]

VERB = "isolux.verbs.consensus_shapes:consensus_shapes"

_SHOWN = 20


def shapes(data: str, *, out: Path, overwrite: bool = False, **settings: Any) -> None:
    """Merge what several annotators drew into one box, mask or pose per object.

    Writes objects.csv (label, how many drew it, how well they agree, status: agreed or ask again),
    annotators.csv (what each drew and missed, judged by the others), drawings.csv (the outcome for
    each drawing), agreed.json (the agreed objects in COCO format) and shapes.json.

    Parameters
    ----------
    data : str
        NAME:FILE with one instance per drawing, such as coco:drawn.json.
    out : Path
        The folder to write.
    overwrite : bool
        Replace that folder, if it contains such a consensus.
    """
    from isolux.cli.screen import show_wide
    from isolux.io.atomic import refuse_existing
    from isolux.verbs.consensus_shapes import MARK
    from isolux.verbs.consensus_shapes import consensus_shapes as found_of
    from isolux.vocabulary.notes import by_severity

    target = out.expanduser().resolve()
    refuse_existing(target, overwrite=overwrite, marks=(MARK,), what="consensus folder")
    done = found_of(data, **settings)
    cautions, notes = by_severity(done.notes)
    for caution in cautions:
        document.warn(caution)
    counts = dict(done.objects["status"].value_counts().iter_rows())
    told = ", ".join(f"{counts[s]:,} {s}" for s in ("agreed", "ask again") if s in counts)
    say(
        f"{numbered(done.drawings.height, 'drawing')} of"
        f" {numbered(done.objects.height, 'object')}: {told}"
    )
    if done.annotators.height <= _SHOWN:
        shown = done.annotators.select("annotator", "images", "drawn", "kept", "found", "alike")
        show_wide("Each annotator beside the others", shown)
    for note in notes:
        document.note(note)
    document.wrote("objects", done.write(out, overwrite=overwrite))
