"""Is the second model better, who gained and who lost, and which gaps changed: plain sentences.

Reads the table of comparisons that ``isolux compare`` makes (kinds ``model_difference`` and
``gap_change``); a run of a single model has none, and gives no finding. The planned comparison
(everyone, on the metric asked for first) has a p of its own. Then come the groups whose change the
family of the others confirms: who lost, who gained, then metrics in which neither way is better.
Within these, metrics stand in the order asked for, classes after the whole, single attributes
before intersections (unless an intersection changed by more than each attribute in it), the largest
change first. One group that changed the same way by several metrics is one finding, as are a group
and an intersection of the same people. Then the gaps that changed; what is not shown comes last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from isolux.analyses._judged import findings_table
from isolux.analyses.model_changes.changes import (
    ChangeFinding,
    ModelChanges,
    line_of,
    simultaneous_ends,
)
from isolux.statements.words import HIDDEN_COMPARED
from isolux.vocabulary import works
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.info import AnalysisInfo

_FACET = works.FACET.at("Tables 11 and 12: two models side by side")

INFO = AnalysisInfo(
    tests=False,
    title="Changes between two models",
    summary="Whether the second model is better, who gained and who lost, and which gaps changed.",
    references=(_FACET,),
    assumptions=(
        "Both models answered about the same people, and only those are compared.",
        "Clusters are independent of one another.",
        "A gap can close because one group lost: read both groups' changes.",
    ),
)

_NAME = "model_changes"
_MAX_FURTHER = 3
_SAME = ("status", "metric", "label", "attribute", "group_a", "group_b", "p_adjusted")
"""Columns of findings that are the comparison's own."""


@dataclass(frozen=True, slots=True)
class ChangesAnswer:
    """What a comparison says first: is the second model better, who lost and gained, which gaps.

    ``gaps`` has a sentence for the gap of each attribute on the metric asked for first; ``n_more``
    counts further groups that gained or lost.
    """

    first: str
    further: tuple[str, ...]
    n_more: int
    gaps: tuple[str, ...]


def explain(run: Run) -> Explained:
    """Say whether the second model is better, who gained and who lost.

    Parameters
    ----------
    run : Run
        Its ``disparities`` are comparisons of two models.

    Returns
    -------
    Explained
        ``findings``; ``effect`` is the second model's value less the first's, of a gap how much
        wider it became, in the metric's unit; empty where ``run`` holds no comparison.

    Examples
    --------
    >>> from isolux.vocabulary.tables import ATTRIBUTES, COMPARISONS, FINDINGS
    >>> from isolux.vocabulary.tables import GROUP_METRICS, SCORES
    >>> empty = Run({}, SCORES.empty(), ATTRIBUTES.empty(), GROUP_METRICS.empty(),
    ...             COMPARISONS.empty(), FINDINGS.empty())
    >>> explain(empty).findings.height
    0
    """
    changes = ModelChanges.of(run)
    shown = [*changes.facts(), *changes.gaps(shown=True)]
    planned = [] if changes.planned is None else [changes.planned]
    if planned and changes.is_shown(planned[0]):
        shown, planned = [changes.say_planned(planned[0]), *shown], []
    unshown = [*map(changes.say_planned, planned), *changes.gaps(shown=False)]
    rows = [_cells(finding) for finding in [*shown, *unshown]]
    rows += [{"analysis": _NAME, **row} for row in changes.count_unshown()]
    rows += [{"analysis": _NAME, **row} for row in changes.count_unjudged()]
    return Explained(findings_table(rows))


def answer_of_changes(run: Run) -> ChangesAnswer:
    """Choose what a reader of a comparison sees first."""
    changes = ModelChanges.of(run)
    first = "The two models have no metric in common."
    if changes.planned is not None:
        first = changes.say_planned(changes.planned).claim
    elif changes.rows:
        measure = changes.words.measure(changes.rows[0])
        first = f"{measure} for everyone was not judged for both models."
    facts = [fact for fact in changes.facts() if fact.row["attribute"] is not None]
    lost, gained = (([f for f in facts if f.way == way]) for way in ("lost", "gained"))
    chosen = [*lost[:1], *gained[:1]]
    chosen += [fact for fact in facts if fact not in chosen][: _MAX_FURTHER - len(chosen)]
    losses, others = (
        [fact.claim for fact in facts if fact in chosen and (fact.way == "lost") == is_loss]
        for is_loss in (True, False)
    )
    further = [*losses, *(changes.list_unshown() if facts else ()), *others]
    if not facts:
        further += [row["claim"] for row in changes.count_unshown()]
    if changes.words.withheld:
        further.append(HIDDEN_COMPARED)
    gaps = [gap.claim for gap in changes.gaps(shown=True) if line_of(gap.row) == changes.line]
    gaps += changes.list_unchanged_gaps()
    return ChangesAnswer(first, tuple(further), len(facts) - len(chosen), tuple(gaps))


def say_gaps(run: Run) -> dict[tuple[Any, ...], str]:
    """Say of each metric, class, threshold and attribute whether its gap changed."""
    changes = ModelChanges.of(run)
    return {
        (*line_of(row), row["attribute"]): changes.say_gap(row)
        for row in changes.gap_rows
        if row["value"] is not None
    }


def _cells(finding: ChangeFinding) -> dict[str, Any]:
    row = finding.row
    low, high = simultaneous_ends(row)
    return {
        "analysis": _NAME,
        "claim": finding.claim,
        "effect": row["value"],
        "low": low,
        "high": high,
        "n": row["n_units_a"],
        "reference": "facet",
        **{name: row[name] for name in _SAME},
    }
