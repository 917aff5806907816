"""What annotators' own answers say against correcting by them: nothing, or why not to trust it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from isolux.stats.annotator_fit import AnnotatorFit, annotator_fit
from isolux.stats.statistic import FloatArray

_INFORMED = 0.01
"""The p of agreement below which annotators are taken to know something of the groups."""
_FITS = 0.02
_TWO, _MAJORITY = 2, 2
"""Annotators who are too few; and how many more must be better than chance than are worse."""
_NAMED = 3
_UNANIMOUS = 0.995
"""Agreement of every two from which there is nothing to learn errors from."""
_LABELS, _PEOPLE = 2.5, 50.0
"""Labels a person, and people an annotator and group, below which corrected gaps come out small."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """Reasons against a correction.

    Parameters
    ----------
    nothing : str
        Why there can be none; empty: there can.
    boundary : tuple of str
        Why it is not to be relied on.
    more : tuple of str
        What else a reader should know.
    """

    nothing: str = ""
    boundary: tuple[str, ...] = ()
    more: tuple[str, ...] = ()

    def told(self) -> tuple[str, ...]:
        """Return all of them, the weightiest first."""
        return (*([self.nothing] if self.nothing else []), *self.boundary, *self.more)


def doubts_of(votes: FloatArray, names: Sequence[str], seed: int) -> Doubts:
    """Ask annotators' answers whether they can be corrected by.

    Shapes: ``votes`` [n, annotators, g], ``names`` [annotators].
    """
    fit = annotator_fit(votes, seed)
    if not fit.agreement_p <= _INFORMED:
        return Doubts(
            "the annotators agree no more often than by chance, so their labels do not tell who "
            "belongs to which group"
        )
    boundary = list(_of_fit(fit, names))
    more: list[str] = []
    if fit.annotators > _TWO:
        boundary += _of_numbers(fit, votes.shape[2])
    if fit.annotators <= _TWO:
        boundary.insert(
            0,
            "two annotators who disagree do not show which of them is wrong, so the correction "
            "depends on where it starts; a third annotator would show it",
        )
    elif fit.worse_than_chance:
        better = fit.annotators - len(fit.worse_than_chance)
        clear = better - len(fit.worse_than_chance) >= _MAJORITY
        (more if clear else boundary).append(_of_worse(fit, names, clear=clear))
    return Doubts("", tuple(boundary), tuple(more))


def _of_numbers(fit: AnnotatorFit, groups: int) -> Iterator[str]:
    if fit.labels_each < _LABELS:
        yield (
            f"people have {fit.labels_each:.1f} labels on average, and with so few the corrected "
            "difference tends to be too small"
        )
    if fit.people_each < _PEOPLE * groups:
        yield (
            f"an annotator has typically labelled {fit.people_each:,.0f} people, which is too few "
            "to know how each of them errs, and the corrected difference tends to be too small"
        )


def _of_worse(fit: AnnotatorFit, names: Sequence[str], *, clear: bool) -> str:
    who = " and ".join(names[a] for a in fit.worse_than_chance[:_NAMED])
    left = len(fit.worse_than_chance) - _NAMED
    who += f" and {left} more" if left > 0 else ""
    rates = ", ".join(f"{100 * fit.right[a]:.0f} %" for a in fit.worse_than_chance[:_NAMED])
    told = f"according to the others, {who} named the right group less often than chance ({rates})"
    if clear:
        return f"{told}: check whether groups' names are exchanged there"
    was = "was" if len(fit.worse_than_chance) == 1 else "were"
    return (
        f"{told}. If {who} {was} right and the others wrong, the corrected difference would have "
        "the opposite sign: check whether groups' names are exchanged"
    )


def _of_fit(fit: AnnotatorFit, names: Sequence[str]) -> Iterator[str]:
    if fit.fit_p <= _FITS and fit.worst is not None:
        pair = fit.worst
        yield (
            f"the annotators' answers do not fit independent errors (p = {fit.fit_p:.2g}): of the "
            f"pairs of annotators, the one that is farthest off agrees on {100 * pair.agree:.0f} % "
            f"of people, where {100 * pair.expected:.0f} % would be expected. Either some "
            "annotators copied, not necessarily these two, or some people mislead several "
            "annotators at once"
        )
    if fit.agree >= _UNANIMOUS:
        yield (
            f"the annotators hardly ever disagree (every two give {100 * fit.agree:.1f} % of "
            "people or more the same label), so nothing shows whether they are never wrong or "
            "wrong together, as after copying"
        )
    if fit.alone is not None:
        one, two = (names[a] for a in fit.alone)
        known = np.flatnonzero(np.isfinite(fit.right)).tolist()
        (third,) = (a for a in known if a not in fit.alone)
        yield (
            f"{one} and {two} hardly ever disagree, and {names[third]} often differs from both: "
            "two who do not label independently look the same as two who are never wrong. If they "
            "copied, their mistakes are not corrected; a fourth annotator would show it"
        )
