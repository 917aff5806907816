"""Checks of annotators' labels before a correction by them: reasons against it, and warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from isolux.stats.annotator_fit import AnnotatorFit, diagnose_annotator_model
from isolux.stats.statistic import FloatArray

_MAX_AGREEMENT_P = 0.01
"""The p of agreement up to which annotators count as informative of the groups."""
_MAX_MISFIT_P = 0.02
_TOO_FEW_ANNOTATORS, _MIN_MAJORITY = 2, 2
"""Number of annotators that is too few; and by how many those better than chance must exceed those
worse than chance."""
_MAX_LISTED = 3
_MIN_UNANIMITY = 0.995
"""Agreement of every two annotators from which errors cannot be estimated."""
_MIN_LABELS_PER_PERSON, _MIN_PEOPLE_PER_GROUP = 2.5, 50.0
"""Labels a person, and people an annotator and group, below which corrected gaps are too small."""


@dataclass(frozen=True, slots=True)
class CorrectionWarnings:
    """Warnings about a correction by annotators.

    Parameters
    ----------
    impossible_reason : str
        Why there can be no correction; empty: there can.
    caution_reasons : tuple of str
        Why it is not reliable.
    further_notes : tuple of str
        Further notes.
    """

    impossible_reason: str = ""
    caution_reasons: tuple[str, ...] = ()
    further_notes: tuple[str, ...] = ()

    def list_all(self) -> tuple[str, ...]:
        """Return all warnings, the most important first."""
        return (
            *([self.impossible_reason] if self.impossible_reason else []),
            *self.caution_reasons,
            *self.further_notes,
        )


def warn_of_unreliable_annotators(
    votes: FloatArray, names: Sequence[str], seed: int
) -> CorrectionWarnings:
    """Assess whether annotators' labels allow a correction.

    Shapes: ``votes`` [n, annotators, g], ``names`` [annotators].
    """
    fit = diagnose_annotator_model(votes, seed)
    if not fit.agreement_p <= _MAX_AGREEMENT_P:
        return CorrectionWarnings(
            "the annotators agree no more often than by chance, so their labels do not tell who "
            "belongs to which group"
        )
    caution_reasons = list(_warn_of_misfit(fit, names))
    further_notes: list[str] = []
    if fit.annotators > _TOO_FEW_ANNOTATORS:
        caution_reasons += _warn_of_few_labels(fit, votes.shape[2])
    if fit.annotators <= _TOO_FEW_ANNOTATORS:
        caution_reasons.insert(
            0,
            "two annotators who disagree do not show which of them is wrong, so the correction "
            "depends on where it starts; a third annotator would show it",
        )
    elif fit.worse_than_chance:
        n_better = fit.annotators - len(fit.worse_than_chance)
        has_majority = n_better - len(fit.worse_than_chance) >= _MIN_MAJORITY
        (further_notes if has_majority else caution_reasons).append(
            _warn_of_poor_annotators(fit, names, has_majority=has_majority)
        )
    return CorrectionWarnings("", tuple(caution_reasons), tuple(further_notes))


def _warn_of_few_labels(fit: AnnotatorFit, groups: int) -> Iterator[str]:
    if fit.labels_per_person < _MIN_LABELS_PER_PERSON:
        yield (
            f"people have {fit.labels_per_person:.1f} labels on average, and with so few the"
            " corrected difference tends to be too small"
        )
    if fit.people_per_annotator < _MIN_PEOPLE_PER_GROUP * groups:
        yield (
            f"an annotator has typically labelled {fit.people_per_annotator:,.0f} people, which is"
            " too few "
            "to know how each of them errs, and the corrected difference tends to be too small"
        )


def _warn_of_poor_annotators(fit: AnnotatorFit, names: Sequence[str], *, has_majority: bool) -> str:
    annotator_list = " and ".join(names[a] for a in fit.worse_than_chance[:_MAX_LISTED])
    n_omitted = len(fit.worse_than_chance) - _MAX_LISTED
    annotator_list += f" and {n_omitted} more" if n_omitted > 0 else ""
    rates = ", ".join(f"{100 * fit.accuracy[a]:.0f} %" for a in fit.worse_than_chance[:_MAX_LISTED])
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
    if fit.fit_p <= _MAX_MISFIT_P and fit.worst is not None:
        pair = fit.worst
        yield (
            f"the annotators' answers do not fit independent errors (p = {fit.fit_p:.2g}): of the"
            " pairs of annotators, the one that is farthest off agrees on"
            f" {100 * pair.agreement:.0f} % of people, where {100 * pair.expected_agreement:.0f} %"
            " would be expected. Either some annotators copied, not necessarily these two, or some"
            " people mislead several annotators at once"
        )
    if fit.hard_people_p <= _MAX_MISFIT_P:
        yield (
            "the annotators' disagreements are on fewer people than independent errors would be"
            f" (p = {fit.hard_people_p:.2g}): some people mislead all of them, and the corrected"
            " difference tends to be too small"
        )
    if fit.min_agreement >= _MIN_UNANIMITY:
        yield (
            f"the annotators hardly ever disagree (every two give {100 * fit.min_agreement:.1f} %"
            " of people or more the same label), so nothing shows whether they are never wrong or "
            "wrong together, as after copying"
        )
    if fit.possible_copiers is not None:
        first_name, second_name = (names[a] for a in fit.possible_copiers)
        assessed = np.flatnonzero(np.isfinite(fit.accuracy)).tolist()
        (third_index,) = (a for a in assessed if a not in fit.possible_copiers)
        yield (
            f"{first_name} and {second_name} hardly ever disagree, and {names[third_index]} often "
            "differs from both: two who do not label independently look the same as two who are "
            "never wrong. If they copied, their mistakes are not corrected; a fourth annotator "
            "would show it"
        )
