"""Associations of answers with groups: how often each group gets each answer, and log odds ratios.

From the scores of the task ``answers`` to one table: counts and log odds ratios with intervals.
FHIBE (Xiang et al. 2025, Methods, foundation models) examines which answers are associated with
which group. It tests nothing: p-values are those of the audit, corrected over their family.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._regrouping import IS_COMPARABLE, build_membership_table, read_run_settings
from isolux.core import citations
from isolux.core.containers import AnalysisResult, Run
from isolux.core.errors import SpecError
from isolux.core.info import AnalysisInfo
from isolux.core.tables import FINDINGS
from isolux.statements.run_terms import RunTerms, read_display_terms
from isolux.stats.log_odds import LogOdds, log_odds_ratio_with_interval

INFO = AnalysisInfo(
    makes_claims=False,
    title="Associations of answers with groups",
    summary="How often each group gets each answer, with the log odds against all others.",
    references=(citations.FHIBE.with_location("Methods: bias discovery in foundation models"),),
    assumptions=(
        "Clusters are independent of one another.",
        "A half is added to each count, so that an answer that is never given has finite odds.",
        "An interval is about one answer and group; the adjusted p about all that was looked at.",
    ),
)
CAPTION = "Answers by group: counts, and the log odds of a group against all others"
_EVIDENCE = "answers"
_DIGITS = 4
_MAX_ROWS = 60
"""Of the table, the associations furthest from 0 first."""


def explain(run: Run) -> AnalysisResult:
    """Count answers by group and set the odds of each group against those of all others.

    Parameters
    ----------
    run : Run
        Of the task ``answers``.

    Returns
    -------
    AnalysisResult
        No findings, and one table: ``model`` (of several), ``answer``, ``attribute, group``,
        ``said, of`` (counts of people; sums of shares where one has several answers), ``others
        said, of others``, ``share, others' share`` (fractions), ``log odds, log odds low, log odds
        high`` (natural logarithm, 0: alike), ``p adjusted`` (the audit's, of the group against
        everyone).
        Groups below the audit's minimum are left out. Of two groups, each other's others, the one
        with the higher odds is listed.

    Raises
    ------
    SpecError
        A run of another task.

    Examples
    --------
    >>> from isolux.core.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).tables
    {}
    """
    if "model_a" in run.disparities.columns or not run.scores.height:
        return AnalysisResult(FINDINGS.empty())
    if _EVIDENCE not in run.evidence:
        raise SpecError(
            "this run does not say what a model answered",
            expected="--task answers",
            found=f"the task {run.record.get('task')!r}",
        )
    terms, level = read_display_terms(run), read_run_settings(run).statistics.level
    rows = list(_iterate_association_rows(run, terms, level))
    if not rows:
        return AnalysisResult(FINDINGS.empty())
    table = pl.DataFrame(rows, infer_schema_length=None)
    nearest = pl.max_horizontal(pl.col("log odds low"), -pl.col("log odds high"), pl.lit(0.0))
    ordered = table.with_columns(nearest=nearest, size=pl.col("log odds").abs()).sort(
        "nearest",
        "size",
        "answer",
        "attribute",
        "group",
        descending=[True, True, False, False, False],
    )
    largest = ordered.drop("nearest", "size").head(_MAX_ROWS)
    largest = largest.with_columns(pl.selectors.float().round(_DIGITS))
    n_omitted = table.height - largest.height
    note = (
        f"Associations of answers: the {_MAX_ROWS} of {table.height:,} furthest from 0 are listed."
    )
    table_rows = largest if terms.n_models > 1 else largest.drop("model")
    return AnalysisResult(FINDINGS.empty(), {CAPTION: table_rows}, (note,) if n_omitted else ())


def _iterate_association_rows(
    run: Run, terms: RunTerms, level: float
) -> Iterator[dict[str, object]]:
    """Yield a row for each metric, label and comparable group."""
    spec = read_run_settings(run)
    units = run.scores["unit_id"].unique(maintain_order=True)
    members = build_membership_table(run, spec.groups, units)
    keys = ["model", "metric", "label", "threshold"]
    comparable = run.group_metrics.filter(pl.col("attribute").is_not_null() & IS_COMPARABLE)
    comparable = comparable.select(*keys, "attribute", "group")
    tested = run.disparities.filter(kind="difference_to_overall").select(
        *keys, "attribute", "p_adjusted", group="group_a"
    )
    associations = comparable.join(
        tested,
        on=[*keys, "attribute", "group"],
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    defined_scores = run.scores.drop_nulls("value")
    units_by_group = {
        k: set(group_rows["unit_id"]) for k, group_rows in members.group_by("attribute", "group")
    }
    for (model, metric, label, _), metric_rows in associations.group_by(keys, maintain_order=True):
        metric_scores = defined_scores.filter(
            pl.col("label").eq_missing(pl.lit(label, dtype=pl.String)), model=model, metric=metric
        )
        yield from _iterate_association_rows_of_metric(
            metric_scores, metric_rows, units_by_group, terms, level
        )


def _iterate_association_rows_of_metric(
    scored: pl.DataFrame,
    associations: pl.DataFrame,
    units_by_group: dict[tuple[object, ...], set[str]],
    terms: RunTerms,
    level: float,
) -> Iterator[dict[str, object]]:
    answer_shares = scored["value"].to_numpy()
    cluster = pl.coalesce("cluster_id", "unit_id").rank("dense") - 1
    cluster_index = scored.select(cluster.cast(pl.Int64)).to_series().to_numpy()
    for (attribute,), rows in associations.group_by("attribute", maintain_order=True):
        groups = {
            group: unit_ids
            for (group_attribute, group), unit_ids in units_by_group.items()
            if group_attribute == attribute
        }
        is_known = scored["unit_id"].is_in(list(set().union(*groups.values()))).to_numpy()
        ids = scored["unit_id"].filter(is_known)
        is_two_groups = len(groups) == 2 and not set.intersection(*groups.values())
        for row in rows.iter_rows(named=True):
            is_member = ids.is_in(list(groups[row["group"]])).to_numpy().astype(float)
            log_odds = log_odds_ratio_with_interval(
                answer_shares[is_known], is_member, cluster_index[is_known], level=level
            )
            has_higher_odds = log_odds.value > 0 or (
                log_odds.value == 0 and row["group"] == min(map(str, groups))
            )
            if np.isnan(log_odds.value) or (is_two_groups and not has_higher_odds):
                continue
            yield _build_association_row(row, log_odds, terms)


def _build_association_row(
    row: Mapping[str, Any], log_odds: LogOdds, terms: RunTerms
) -> dict[str, object]:
    return {
        "model": row["model"],
        "answer": terms.format_metric(row),
        "attribute": terms.format_attribute(row["attribute"]),
        "group": row["group"],
        "said": log_odds.n_with_answer,
        "of": int(log_odds.n_asked),
        "others said": log_odds.other_n_with_answer,
        "of others": int(log_odds.other_n_asked),
        "share": log_odds.n_with_answer / log_odds.n_asked,
        "others' share": log_odds.other_n_with_answer / log_odds.other_n_asked,
        "log odds": log_odds.value,
        "log odds low": log_odds.low,
        "log odds high": log_odds.high,
        "p adjusted": row["p_adjusted"],
    }
