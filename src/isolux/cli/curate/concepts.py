"""``isolux curate concepts``: classes of people, by FACET's rules."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from isolux.cli import document
from isolux.cli.streams import say

__all__ = ["concepts"]

VERB = "isolux.curation.candidates.files:concepts_of_files"


def concepts(nouns: str, *, out: Path, **settings: Any) -> None:
    """List WordNet's concepts for people, and why FACET's rules exclude each of them.

    People then choose among those not excluded: FACET's 52 were chosen by hand.

    Parameters
    ----------
    nouns : str
        WordNet's file data.noun; version 3.0 has ImageNet's numbers.
    out : Path
        The CSV to write: synset, lemmas, depth, reason (empty: it stands).
    """
    from isolux.curation.candidates.files import concepts_of_files
    from isolux.io.atomic import write_text
    from isolux.io.csv_text import csv_text

    for name, what in (("imagenet", "presence in ImageNet-21k"), ("examples", "500 examples")):
        if settings.get(name) is None:
            document.warn(f"the rule on {what} was not applied: no --{name}")
    if settings.get("offensive") is None:
        document.warn("no --offensive: synsets that insult people are among those that stand")
    found = concepts_of_files(nouns, **settings)
    write_text(out, csv_text(found))
    say(f"{found.height:,} concepts of people: {found['reason'].null_count():,} stand")
    kinds = found["reason"].drop_nulls().str.replace(r"^\d+ (examples|steps)", "$1")
    for reason, number in kinds.value_counts(sort=True).iter_rows():
        say(f"  {number:,} {reason}")
    say(f"concepts: {out}")
