"""``isolux curate candidates``: photos to look at, by their captions and tags."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.cli.streams import say
from isolux.vocabulary.words import numbered

__all__ = ["candidates"]

VERB = "isolux.curation.candidates.files:candidates_of_files"


def candidates(photos: str, *, out: Path, **settings: Any) -> None:
    """Choose photos whose caption and tags mention a class, those with the most terms first.

    Run it without rates for the first 50 photos per class; then with the share of them that showed
    the class, and with the photos you have so far, for rounds that favour classes with too few
    photos.

    Parameters
    ----------
    photos : str
        A table image_id, caption, tags (separated by commas).
    out : Path
        The CSV to write: image_id, class, overlap.
    """
    from isolux.cli.screen import show_wide
    from isolux.curation.candidates.files import candidates_of_files
    from isolux.io.atomic import write_text
    from isolux.io.csv_text import csv_text

    found = candidates_of_files(photos, **settings)
    write_text(out, csv_text(found))
    show_wide("Photos of this round", found["class"].value_counts().sort("class"))
    say(f"{numbered(found.height, 'photo')}: {out}")
