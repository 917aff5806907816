"""Which groups a model serves worse, in plain sentences, in the order in which to read them.

The first analysis of every audit. It computes nothing: ``statements`` chooses and words what the
tables ``group_metrics`` and ``disparities`` show, each fact once. First the sentence with which
every output begins; then the other established differences, of the metric requested first and then
of the others; then metrics without an established difference; then groups too small to compare;
then people of unknown value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from isolux.analyses._unit_scores import build_ranked_findings_table
from isolux.core.containers import AnalysisResult, Run
from isolux.core.info import AnalysisInfo, Reference
from isolux.statements.accounting import describe_groups_too_small, find_groups_too_small_to_judge
from isolux.statements.answer import answer_from_choice
from isolux.statements.choice import StatementChoice, choose_statements
from isolux.statements.text import (
    Statement,
    describe_further_statement,
    describe_margin_equivalence,
    describe_no_established_difference,
    describe_statement_briefly,
)
from isolux.statements.undefined_groups import describe_undefined_groups, find_undefined_groups

FAIRLEARN = Reference(
    "fairlearn",
    "Weerts, Dudík, Edgar, Jalali, Lutz & Madaio (2023). Fairlearn: Assessing and Improving "
    "Fairness of AI Systems. Journal of Machine Learning Research 24(257):1-8.",
    "",
    "https://jmlr.org/papers/v24/23-0389.html",
)

INFO = AnalysisInfo(
    makes_claims=False,
    title="Gaps between groups",
    summary="Which groups differ on which metric, by how much, how certain that is, and what "
    "cannot be ruled out.",
    references=(FAIRLEARN,),
    assumptions=(
        "Clusters are independent of one another.",
        "A difference that was found is between these groups as labelled; its cause remains open.",
        "A difference that was not found may still exist.",
        "The pair shown for an attribute was chosen, so its gap is probably overstated.",
    ),
)

_CORRECTION_SOURCE = {
    "max-t": "westfall-young-1993",
    "holm": "holm-1979",
    "bh": "benjamini-hochberg-1995",
}
"""Keys of ``stats.references``, by the spec's ``correction``."""


def explain(run: Run) -> AnalysisResult:
    """State what an audit established, and what it cannot rule out.

    Parameters
    ----------
    run : Run
        Its ``group_metrics``, ``disparities`` and record are read. The level of the intervals
        is one minus the level of the tests.

    Returns
    -------
    AnalysisResult
        ``findings``. ``group_a`` is the worse group, ``group_b`` the reference (null: everyone);
        ``effect``, ``low``, ``high``: group_a − group_b in the metric's unit, the interval
        simultaneous over the audit's comparisons where there is one; ``n``: units of both groups;
        ``also``: what else shows the same fact. A finding that nothing is established has no
        groups. A run without groups gives no findings.

    Examples
    --------
    >>> from isolux.core.tables import FINDINGS, DISPARITIES, GROUP_METRICS, SCORES
    >>> from isolux.core.tables import ATTRIBUTES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    choice = choose_statements(run)
    rows = _iterate_group_gap_findings(run, choice)
    common = {"analysis": "group_gaps", "status": "ok"}
    return AnalysisResult(build_ranked_findings_table([common | row for row in rows]))


def _iterate_group_gap_findings(run: Run, choice: StatementChoice) -> Iterator[dict[str, Any]]:
    """Yield the rows of ``findings`` in reading order."""
    source = _CORRECTION_SOURCE.get((run.record.get("spec") or {}).get("correction", ""))
    known_statements = [statement for statement in choice.stated if statement.row["is_known"]]
    first = answer_from_choice(run, choice).first
    for i, statement in enumerate(known_statements):
        yield _statement_to_finding(
            statement,
            first if i == 0 else describe_statement_briefly(statement, choice.names),
            source,
        )
    for statement in choice.untested:
        yield _statement_to_finding(
            statement, describe_further_statement(statement, statement, choice.names), source
        )
    for line, attributes in choice.unestablished.values():
        yield {
            "claim": describe_no_established_difference(
                line, attributes, choice.comparisons, choice.names
            ),
            "metric": line.metric,
            "reference": source,
            "attribute": attributes[0] if len(attributes) == 1 else None,
        }
    yield from _iterate_incomparable_group_findings(run, choice)
    for claim, columns in describe_margin_equivalence(run.disparities, choice.names):
        yield {"claim": claim, **columns}
    for statement in choice.stated:
        if not statement.row["is_known"]:
            yield _statement_to_finding(
                statement, describe_statement_briefly(statement, choice.names), source
            )


def _iterate_incomparable_group_findings(
    run: Run, choice: StatementChoice
) -> Iterator[dict[str, Any]]:
    """Yield findings on groups that cannot be compared, by the metric requested first."""
    line = choice.main
    if line is None:
        return
    rows = find_groups_too_small_to_judge(run, choice.names.key(line), line.direction)
    for attribute_rows in rows.partition_by("attribute", maintain_order=True):
        yield {
            "claim": describe_groups_too_small(attribute_rows, line, choice.names),
            "n": max(attribute_rows["n_units"].to_list()),
            "status": "insufficient units",
            "metric": line.metric,
            "attribute": attribute_rows["attribute"][0],
            "group_a": attribute_rows["group"][0] if attribute_rows.height == 1 else None,
        }
    undefined_groups = find_undefined_groups(run, choice.names.key(line))
    for attribute_rows in undefined_groups.partition_by("attribute", maintain_order=True):
        yield {
            "claim": describe_undefined_groups(attribute_rows, line, choice.names),
            "n": 0,
            "status": "undefined",
            "metric": line.metric,
            "label": line.label,
            "attribute": attribute_rows["attribute"][0],
            "group_a": attribute_rows["group"][0] if attribute_rows.height == 1 else None,
        }


def _statement_to_finding(statement: Statement, claim: str, source: str | None) -> dict[str, Any]:
    """Build a row of ``findings`` from a statement."""
    low, high = statement.bounds
    n_reference = statement.row["n_units_of_reference"] if statement.is_pair else 0
    return {
        "claim": claim,
        "effect": statement.row["gap"],
        "low": low,
        "high": high,
        "n": (statement.row["n_units"] or 0) + (n_reference or 0),
        "reference": source,
        "status": statement.row["status"],
        "metric": statement.line.metric,
        "label": statement.line.label,
        "attribute": statement.attribute,
        "group_a": statement.row["group"],
        "group_b": statement.row["reference"],
        "p_adjusted": statement.row["p_adjusted"],
        "also": statement.other_measures or None,
    }
