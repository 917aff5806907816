"""Notes of a run, and those among them that must be read before any number: ``Caution``.

What leaves something out says so in a note. Most notes explain; a caution says that the numbers
may be wrong. Both travel in the same tuples (``Dataset.notes``, ``Scores.notes``), and
``split_cautions_from_notes`` parts them where the run is written down: the screen and the report's
first screen show ``record["warnings"]`` before they show a number.
"""

from __future__ import annotations

from collections.abc import Iterable

SMALL_GROUPS_SHOWN = (
    "Nothing is hidden here to protect small groups: share this only with people who may see the"
    " data."
)
"""On pages and summaries that have no ``--publish-min``, or were written without it."""


class Caution(str):
    """A note that must be read first: the numbers beside it may be wrong.

    A text like any other note, so that it travels wherever notes do.

    Examples
    --------
    >>> split_cautions_from_notes(
    ...     ["Two rows were left out.", Caution("The boxes leave their images.")],
    ... )
    (['The boxes leave their images.'], ['Two rows were left out.'])
    """

    __slots__ = ()


def split_cautions_from_notes(notes: Iterable[str]) -> tuple[list[str], list[str]]:
    """Part notes into cautions and the others, each once and in the order given."""
    unique_notes = list(dict.fromkeys(notes))
    cautions = [str(note) for note in unique_notes if isinstance(note, Caution)]
    return cautions, [note for note in unique_notes if not isinstance(note, Caution)]
