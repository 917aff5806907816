"""Changes between two models in sentences: overall, groups that gained or lost, gaps that changed.

Reads the table of comparisons that ``isolux compare`` makes (kinds ``model_difference`` and
``gap_change``); a run of a single model has none, and gives no finding. The planned comparison
(overall, on the metric requested first) has its own p. Then come the groups with a significant
change in the family of the others: who lost, who gained, then metrics without a direction. Within
these, metrics are in the requested order, classes after all classes together, single attributes
before intersections (unless an intersection changed by more than each attribute in it), the largest
change first. One group that changed in the same direction on several metrics is one finding, as are
a group and an intersection of the same people. Then the gaps that changed; changes that are not
significant come last.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from isolux.analyses._unit_scores import build_ranked_findings_table
from isolux.analyses.model_changes.changes import (
    ChangeFinding,
    ModelChanges,
    metric_class_threshold_key,
    simultaneous_or_own_bounds,
)
from isolux.core import citations
from isolux.core.containers import AnalysisResult, Run
from isolux.core.info import AnalysisInfo
from isolux.statements.run_terms import HIDDEN_COMPARED

_FACET = citations.FACET.with_location("Tables 11 and 12: two models side by side")

INFO = AnalysisInfo(
    makes_claims=False,
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
_COPIED_COLUMNS = ("status", "metric", "label", "attribute", "group_a", "group_b", "p_adjusted")
"""Columns of findings that are copied from the comparison."""


@dataclass(frozen=True, slots=True)
class ChangeSummary:
    """The main claims of a comparison: overall, groups that lost and gained, gaps.

    ``gaps`` has a sentence for the gap of each attribute on the metric requested first; ``n_more``
    counts further groups that gained or lost.
    """

    first: str
    further: tuple[str, ...]
    n_more: int
    gaps: tuple[str, ...]


def explain(run: Run) -> AnalysisResult:
    """Say whether the second model is better, who gained and who lost.

    Parameters
    ----------
    run : Run
        Its ``disparities`` are comparisons of two models.

    Returns
    -------
    AnalysisResult
        ``findings``; ``effect`` is the second model's value less the first's, of a gap how much
        wider it became, in the metric's unit; empty where ``run`` holds no comparison.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, COMPARISONS, FINDINGS
    >>> from isolux.core.tables import GROUP_METRICS, SCORES
    >>> empty = Run({}, SCORES.empty(), ATTRIBUTES.empty(), GROUP_METRICS.empty(),
    ...             COMPARISONS.empty(), FINDINGS.empty())
    >>> explain(empty).findings.height
    0
    """
    changes = ModelChanges.from_run(run)
    shown_findings = [*changes.list_changes(), *changes.list_gaps(shown=True)]
    planned = [] if changes.planned is None else [changes.planned]
    if planned and changes.is_shown(planned[0]):
        shown_findings, planned = [changes.describe_planned(planned[0]), *shown_findings], []
    unshown = [*map(changes.describe_planned, planned), *changes.list_gaps(shown=False)]
    rows = [_change_to_finding_row(finding) for finding in [*shown_findings, *unshown]]
    rows += [{"analysis": _NAME, **row} for row in changes.count_unshown()]
    rows += [{"analysis": _NAME, **row} for row in changes.count_untested()]
    return AnalysisResult(build_ranked_findings_table(rows))


def select_summary_claims(run: Run) -> ChangeSummary:
    """Choose the claims that a reader of a comparison sees first."""
    changes = ModelChanges.from_run(run)
    first = "The two models have no metric in common."
    if changes.planned is not None:
        first = changes.describe_planned(changes.planned).claim
    elif changes.rows:
        measure = changes.terms.format_metric(changes.rows[0])
        first = f"{measure} for everyone was not judged for both models."
    change_facts = [fact for fact in changes.list_changes() if fact.row["attribute"] is not None]
    losers, gainers = (
        ([f for f in change_facts if f.direction == direction]) for direction in ("lost", "gained")
    )
    chosen_facts = [*losers[:1], *gainers[:1]]
    chosen_facts += [fact for fact in change_facts if fact not in chosen_facts][
        : _MAX_FURTHER - len(chosen_facts)
    ]
    losses, other_claims = (
        [
            fact.claim
            for fact in change_facts
            if fact in chosen_facts and (fact.direction == "lost") == is_loss
        ]
        for is_loss in (True, False)
    )
    further = [*losses, *(changes.list_unshown() if change_facts else ()), *other_claims]
    if not change_facts:
        further += [row["claim"] for row in changes.count_unshown()]
    if changes.terms.is_redacted:
        further.append(HIDDEN_COMPARED)
    gaps = [
        gap.claim
        for gap in changes.list_gaps(shown=True)
        if metric_class_threshold_key(gap.row) == changes.main_metric_key
    ]
    gaps += changes.list_unchanged_gaps()
    return ChangeSummary(first, tuple(further), len(change_facts) - len(chosen_facts), tuple(gaps))


def describe_gap_changes_by_key(run: Run) -> dict[tuple[Any, ...], str]:
    """Describe for each metric, class, threshold and attribute whether its gap changed."""
    changes = ModelChanges.from_run(run)
    return {
        (*metric_class_threshold_key(row), row["attribute"]): changes.describe_gap(row)
        for row in changes.gap_rows
        if row["value"] is not None
    }


def _change_to_finding_row(finding: ChangeFinding) -> dict[str, Any]:
    row = finding.row
    low, high = simultaneous_or_own_bounds(row)
    return {
        "analysis": _NAME,
        "claim": finding.claim,
        "effect": row["value"],
        "low": low,
        "high": high,
        "n": row["n_units_a"],
        "reference": "facet",
        **{name: row[name] for name in _COPIED_COLUMNS},
    }
