"""Checks of annotators' labels before a correction by them: reasons against it, and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from isolux.stats.annotator_fit import AnnotatorFit, annotator_fit
from isolux.stats.statistic import FloatArray

_MAX_AGREEMENT_P = 0.01
"""The p of agreement up to which annotators count as informative of the groups."""
_FITS = 0.02
_TOO_FEW_ANNOTATORS, _MIN_MAJORITY = 2, 2
"""Number of annotators that is too few; and by how many those better than chance must exceed those
worse than chance."""
_NAMED = 3
_MIN_UNANIMITY = 0.995
"""Agreement of every two annotators from which errors cannot be estimated."""
_MIN_LABELS_PER_PERSON, _PEOPLE = 2.5, 50.0
"""Labels a person, and people an annotator and group, below which corrected gaps are too small."""


@dataclass(frozen=True, slots=True)
class Doubts:
    """Warnings about a correction by annotators.

    Parameters
    ----------
    nothing : str
        Why there can be no correction; empty: there can.
    boundary : tuple of str
        Why it is not reliable.
    more : tuple of str
        Further notes.
    """

    nothing: str = ""
    boundary: tuple[str, ...] = ()
    more: tuple[str, ...] = ()

    def told(self) -> tuple[str, ...]:
        """Return all warnings, the most important first."""
        return (*([self.nothing] if self.nothing else []), *self.boundary, *self.more)


def doubts_of(votes: FloatArray, names: Sequence[str], seed: int) -> Doubts:
    """Assess whether annotators' labels allow a correction.

    Shapes: ``votes`` [n, annotators, g], ``names`` [annotators].
    """
    fit = annotator_fit(votes, seed)
    if not fit.agreement_p <= _MAX_AGREEMENT_P:
        return Doubts(
            "the annotators agree no more often than by chance, so their labels do not tell who "
            "belongs to which group"
        )
    boundary_reasons = list(_warn_of_misfit(fit, names))
    further_notes: list[str] = []
    if fit.annotators > _TOO_FEW_ANNOTATORS:
        boundary_reasons += _warn_of_few_labels(fit, votes.shape[2])
    if fit.annotators <= _TOO_FEW_ANNOTATORS:
        boundary_reasons.insert(
            0,
            "two annotators who disagree do not show which of them is wrong, so the correction "
            "depends on where it starts; a third annotator would show it",
        )
    elif fit.worse_than_chance:
        n_better = fit.annotators - len(fit.worse_than_chance)
        has_majority = n_better - len(fit.worse_than_chance) >= _MIN_MAJORITY
        (further_notes if has_majority else boundary_reasons).append(
            _warn_of_poor_annotators(fit, names, has_majority=has_majority)
        )
    return Doubts("", tuple(boundary_reasons), tuple(further_notes))


def _warn_of_few_labels(fit: AnnotatorFit, groups: int) -> Iterator[str]:
    if fit.labels_each < _MIN_LABELS_PER_PERSON:
        yield (
            f"people have {fit.labels_each:.1f} labels on average, and with so few the corrected "
            "difference tends to be too small"
        )
    if fit.people_each < _PEOPLE * groups:
        yield (
            f"an annotator has typically labelled {fit.people_each:,.0f} people, which is too few "
            "to know how each of them errs, and the corrected difference tends to be too small"
        )


def _warn_of_poor_annotators(fit: AnnotatorFit, names: Sequence[str], *, has_majority: bool) -> str:
    annotator_list = " and ".join(names[a] for a in fit.worse_than_chance[:_NAMED])
    n_omitted = len(fit.worse_than_chance) - _NAMED
    annotator_list += f" and {n_omitted} more" if n_omitted > 0 else ""
    rates = ", ".join(f"{100 * fit.right[a]:.0f} %" for a in fit.worse_than_chance[:_NAMED])
    message = (
        f"according to the others, {annotator_list} named the right group less often than chance "
        f"({rates})"
    )
    if has_majority:
        return f"{message}: check whether groups' names are exchanged there"
    verb = "was" if len(fit.worse_than_chance) == 1 else "were"
    return (
        f"{message}. If {annotator_list} {verb} right and the others wrong, the corrected "
        "difference would have the opposite sign: check whether groups' names are exchanged"
    )


def _warn_of_misfit(fit: AnnotatorFit, names: Sequence[str]) -> Iterator[str]:
    if fit.fit_p <= _FITS and fit.worst is not None:
        pair = fit.worst
        yield (
            f"the annotators' answers do not fit independent errors (p = {fit.fit_p:.2g}): of the "
            f"pairs of annotators, the one that is farthest off agrees on {100 * pair.agree:.0f} % "
            f"of people, where {100 * pair.expected:.0f} % would be expected. Either some "
            "annotators copied, not necessarily these two, or some people mislead several "
            "annotators at once"
        )
    if fit.agree >= _MIN_UNANIMITY:
        yield (
            f"the annotators hardly ever disagree (every two give {100 * fit.agree:.1f} % of "
            "people or more the same label), so nothing shows whether they are never wrong or "
            "wrong together, as after copying"
        )
    if fit.alone is not None:
        first_name, second_name = (names[a] for a in fit.alone)
        assessed = np.flatnonzero(np.isfinite(fit.right)).tolist()
        (third_index,) = (a for a in assessed if a not in fit.alone)
        yield (
            f"{first_name} and {second_name} hardly ever disagree, and {names[third_index]} often "
            "differs from both: two who do not label independently look the same as two who are "
            "never wrong. If they copied, their mistakes are not corrected; a fourth annotator "
            "would show it"
        )
