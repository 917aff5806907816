"""How much of a gap hangs on the group labels: corrected by what is known of them, or bounded.

A gap of groups is a gap of labels. Labels that are wrong whatever the score draw groups together,
so that a gap looks smaller than it is; labels that are wrong where the model is wrong can do
anything. Three ways to say what that means for a number:

- With a *confusion matrix* of the labels (``matrix``: a file of counts of true by labelled group),
  or several annotators of each person (Dawid & Skene), the true groups' means are worked out, with
  intervals that carry the matrix's own error: its counts are resampled together with the clusters.
- Without one, *bounds*: how far could the gap be if up to a share of the labels is wrong, no matter
  whose (``wrong``)? Nothing is assumed, so they are wide; and the share at which the gap could be
  nothing is said.
- People of *unknown* group: how far could the gap be, whichever group each of them is of?

Gaps are a group's mean less that of all others. Formulas and references: ``stats/mislabelled.py``;
laws and what honesty costs: ``docs/methods/label_errors.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._judged import check_attributes, findings_table, number_of
from isolux.analyses._regrouping import settings_of
from isolux.analyses.label_errors.annotators import doubts_of as doubts_of_annotators
from isolux.analyses.label_errors.gaps import (
    ANNOTATORS_METHOD,
    Corrected,
    Gap,
    by_annotators,
    by_matrix,
    gap_of,
    not_corrected,
    of_each,
    sides,
)
from isolux.analyses.label_errors.people import (
    MEASURE,
    People,
    labels_of,
    people_of,
    unused_answers,
    votes_of,
)
from isolux.analyses.label_errors.words import (
    bounds_sentence,
    corrected_sentence,
    is_outside,
    says_nothing,
    unknown_sentence,
)
from isolux.statements.words import Words, words_of
from isolux.stats.confusion import doubts_of, read_matrix
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import AnalysisInfo, Reference
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.spec import AuditSpec
from isolux.vocabulary.tables import FINDINGS, Status

MATRIX_METHOD, BOUNDS, ANNOTATORS = "greenland-1988", "horowitz-manski-1995", "dawid-skene-1979"
_GROUPS = "Groups, as labelled and with labels corrected"
_GAPS = "Gaps to everyone else, if labels are wrong"
_TURNED = (
    "by this matrix most labels of some group are wrong, so that undoing them turns the difference "
    "round: check that its columns and names are not exchanged"
)
_MOST = 72

INFO = AnalysisInfo(
    tests=False,
    title="If group labels are wrong",
    summary="Gaps corrected for errors of the group labels, or bounds of how far they could be.",
    references=(
        Reference(
            MATRIX_METHOD,
            "Greenland, S. (1988). Variance estimation for epidemiologic effect estimates under "
            "misclassification. Statistics in Medicine 7(7), 745-757.",
            "the matrix method",
        ),
        Reference(
            BOUNDS,
            "Horowitz, J. L., & Manski, C. F. (1995). Identification and robustness with "
            "contaminated and corrupted data. Econometrica 63(2), 281-302.",
            "sharp bounds of means",
        ),
        Reference(
            "imbens-manski-2004",
            "Imbens, G. W., & Manski, C. F. (2004). Confidence intervals for partially identified "
            "parameters. Econometrica 72(6), 1845-1857.",
            "the interval of a bounded gap",
        ),
        Reference(
            ANNOTATORS,
            "Dawid, A. P., & Skene, A. M. (1979). Maximum likelihood estimation of observer "
            "error-rates using the EM algorithm. Applied Statistics 28(1), 20-28.",
            "the annotators' posterior",
        ),
    ),
    assumptions=(
        (
            "Corrections: among people truly of one group, an error of the label does not depend "
            "on the score. Bounds do not assume it."
        ),
        "The people on whom the matrix was counted are labelled as those of the audit are.",
        "Annotators err independently of one another, given the true group.",
    ),
)


def explain(
    run: Run,
    *,
    matrix: str = "",
    wrong: float = 0.1,
    attribute: Sequence[str] = (),
    annotators: bool = True,
    replicates: int | None = None,
) -> Explained:
    """Say what gaps are with labels corrected, and how far they could be if labels are wrong.

    Parameters
    ----------
    run : Run
        Its scores, attributes and record are read.
    matrix : str
        A file with columns ``true``, ``labelled`` and ``count`` (people), or ``share`` (rows of one
        true group sum to 1; taken as exact), and ``attribute`` where there are several. Empty: no
        correction by a matrix.
    wrong : float
        Share of each side's labels that may be wrong, 0 to below 0.5.
    attribute : sequence of str
        Default: the single attributes of the audit's ``by``.
    annotators : bool
        Whether labels of several named annotators are used where no matrix is given.
    replicates : int
        Replicates of the cluster bootstrap. Default: the audit's.

    Returns
    -------
    Explained
        Of the run's first metric and each attribute, the gap of the group farthest from the others:
        corrected, its bounds, and those with the unknown. ``effect``: the gap (corrected, or as
        labelled; group less others, in the metric's unit); ``low, high``: its interval, of bounds
        Imbens and Manski's. None has a p: whether groups differ the audit has tested. Tables have
        all groups.

    Raises
    ------
    SpecError, UnknownNameError, TableError
        A share that is none, no such attribute, people in several groups, or a matrix
        that cannot be used: negative, rows that do not sum to 1, singular, other groups.

    Examples
    --------
    >>> from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    if not 0.0 <= wrong < 0.5:
        raise SpecError(
            "with this share of wrong labels, nothing can be said",
            expected="0 to below 0.5",
            found=str(wrong),
            where="--analysis-option label_errors.wrong",
            hint=f"it is a share: {wrong / 100:g} is {wrong:g} %" if 1 <= wrong < 50 else None,
        )
    if run.scores.is_empty() or "model_a" in run.disparities.columns:
        return Explained(FINDINGS.empty())
    spec, words = settings_of(run, replicates=replicates), words_of(run)
    rows: list[dict[str, Any]] = []
    tables: dict[str, list[dict[str, Any]]] = {_GROUPS: [], _GAPS: []}
    notes: list[str] = []
    check_attributes(run, attribute, "--analysis-option label_errors.attribute")
    names = list(dict.fromkeys(attribute)) or [one for one in spec.groups.by if "*" not in one]
    for name in names:
        labels, groups = labels_of(run, spec, name)
        if not attribute and len(names) > 1 and len(groups) < 2:
            notes.append(f"label_errors: {name} has one group with scores and is left out")
            continue
        which = sides(len(groups))
        level = of_each(spec.statistics.level, len(which))
        for people in people_of(run, labels, name, groups):
            found = _corrected(run, people, spec, matrix, annotators=annotators, notes=notes)
            gaps = [gap_of(people, g, wrong, level, spec.statistics.seed) for g in which]
            rows += _findings(people, found, gaps, wrong, words)
            tables[_GROUPS] += _groups(people, found)
            tables[_GAPS] += [_gap_row(people, found, gap, k) for k, gap in enumerate(gaps)]
    drawn = {c: pl.DataFrame(r[:_MOST], infer_schema_length=None) for c, r in tables.items() if r}
    return Explained(findings_table(rows), drawn, tuple(dict.fromkeys(notes)))


def _corrected(
    run: Run, people: People, spec: AuditSpec, matrix: str, *, annotators: bool, notes: list[str]
) -> Corrected:
    """Correct by the matrix, else by several annotators, where there is either."""
    how = (spec.statistics.replicates, spec.statistics.level, spec.statistics.seed)
    where = f"label_errors, {people.attribute}"
    if matrix:
        read = read_matrix(
            matrix,
            people.attribute,
            people.groups,
            without="without a matrix, bounds are given: leave out label_errors.matrix",
        )
        doubts = doubts_of(read)
        notes += [Caution(f"{where}: {told[:1].lower()}{told[1:]}") for told in doubts]
        if read.counts is None:
            notes.append(
                f"{where}: the confusion matrix has shares and no counts, so intervals take it as "
                "exact; with a column count they would carry its own error"
            )
        if read.dropped_unknown:
            notes.append(
                f"{where}: people whom the matrix has as labelled unknown are left out of it"
            )
        return replace(by_matrix(people, read, *how), doubt=_TURNED if doubts else "")
    if not annotators:
        return not_corrected(people, "")
    found = votes_of(run, people)
    notes += [f"{where}: {text}" for text in unused_answers(run, people, used=found is not None)]
    if found is None:
        return not_corrected(people, "")
    votes, who = found
    against = doubts_of_annotators(votes, who, spec.statistics.seed)
    notes += [Caution(f"{where}: {told}") for told in against.told()]
    if against.nothing:
        return not_corrected(people, ANNOTATORS_METHOD, against.nothing)
    left = int((votes.sum(axis=(1, 2)) == 0).sum())
    if left:
        notes.append(
            f"{where}: {left:,} people without a named annotator's label "
            "are left out of the correction"
        )
    return replace(by_annotators(people, votes, *how), doubt="; ".join(against.boundary))


def _findings(
    people: People, found: Corrected, gaps: Sequence[Gap], wrong: float, words: Words
) -> Iterator[dict[str, Any]]:
    sizes = [abs(gap.labelled) for gap in gaps]
    if not np.isfinite(sizes).any():
        return
    k = int(np.nanargmax(sizes))
    gap = gaps[k]
    common = {
        "analysis": "label_errors",
        "n": len(people.score),
        "metric": people.row["metric"],
        "label": people.row["label"],
        "attribute": people.attribute,
        "group_a": people.groups[gap.group],
        "group_b": people.groups[1 - gap.group] if len(people.groups) == 2 else None,
        "status": Status.OK.value,
    }
    if found.method:
        value, low, high = (float(x[k]) for x in (found.gap, found.gap_low, found.gap_high))
        yield {
            **common,
            "claim": corrected_sentence(people, found, gap, k, words),
            "effect": _number(value),
            "low": _number(low),
            "high": _number(high),
            "reference": ANNOTATORS if found.method == ANNOTATORS_METHOD else MATRIX_METHOD,
            "status": _status(people, found, k),
        }
    texts = [(bounds_sentence(people, gap, wrong, words), gap.sampled)]
    if gap.unknown is not None:
        n_unknown = int((people.code < 0).sum())
        texts.append((unknown_sentence(people, gap, n_unknown, words), gap.unknown_sampled))
    for claim, ends in texts:
        yield {
            **common,
            "claim": claim,
            "effect": gap.labelled,
            "low": _number(ends.low),
            "high": _number(ends.high),
            "reference": BOUNDS,
        }


def _status(people: People, found: Corrected, k: int) -> str:
    """Mark what cannot be had; what says nothing; and means that scores cannot have."""
    low, high = found.gap_low[k], found.gap_high[k]
    if not np.isfinite([found.gap[k], low, high]).all():
        return Status.UNDEFINED.value
    doubted = bool(found.doubt) or says_nothing(people, float(low), float(high))
    return (Status.BOUNDARY if doubted or is_outside(people, found) else Status.OK).value


def _groups(people: People, found: Corrected) -> Iterator[dict[str, Any]]:
    for g, group in enumerate(people.groups):
        own = people.score[people.code == g]
        yield {
            **{name: people.row[name] for name in MEASURE},
            "attribute": people.attribute,
            "group": group,
            "n": len(own),
            "as labelled": _number(float(own.mean())) if len(own) else None,
            "corrected": _number(found.value[g]),
            "low": _number(found.low[g]),
            "high": _number(found.high[g]),
        }


def _gap_row(people: People, found: Corrected, gap: Gap, k: int) -> dict[str, Any]:
    numbers = {
        "as labelled": gap.labelled,
        "corrected": found.gap[k],
        "corrected_low": found.gap_low[k],
        "corrected_high": found.gap_high[k],
        "least": gap.wrong.low,
        "largest": gap.wrong.high,
        "interval_low": gap.sampled.low,
        "interval_high": gap.sampled.high,
        "wrong labels for a gap of 0": gap.breakdown,
        "least with unknown": gap.unknown.low if gap.unknown else None,
        "largest with unknown": gap.unknown.high if gap.unknown else None,
    }
    return {
        **{name: people.row[name] for name in MEASURE},
        "attribute": people.attribute,
        "group": people.groups[gap.group],
        **{name: _number(x) for name, x in numbers.items()},
    }


def _number(x: Any) -> float | None:
    finite = number_of(x)
    return None if finite is None else round(finite, 6)
