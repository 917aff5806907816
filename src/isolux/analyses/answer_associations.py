"""Answers and groups: how often each group gets each answer, and the odds against all others.

From the scores of the task ``answers`` to one table: counts and log odds ratios with intervals.
FHIBE (Xiang et al. 2025, Methods, foundation models) looks at which answers go with which group. It
tests nothing: p-values are those of the audit, corrected for everything that it looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._regrouping import IS_SOUND, groups_of, settings_of
from isolux.statements.words import Words, words_of
from isolux.stats.odds import LogOdds, log_odds_ratio
from isolux.vocabulary import works
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import AnalysisInfo
from isolux.vocabulary.tables import FINDINGS

INFO = AnalysisInfo(
    tests=False,
    title="Associations of answers with groups",
    summary="How often each group gets each answer, with the log odds against all others.",
    references=(works.FHIBE.at("Methods: bias discovery in foundation models"),),
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


def explain(run: Run) -> Explained:
    """Count answers by group and set the odds of each group against those of all others.

    Parameters
    ----------
    run : Run
        Of the task ``answers``.

    Returns
    -------
    Explained
        No findings, and one table: ``model`` (of several), ``answer``, ``attribute, group``,
        ``said, of`` (counts of people; sums of shares where one has several answers), ``others
        said, of others``, ``share, others' share`` (fractions), ``log odds, low, high``
        (natural logarithm, 0: alike), ``p adjusted`` (the audit's, of the group against everyone).
        Groups below the audit's minimum are left out. Of two groups, each other's others, the one
        with the higher odds is listed.

    Raises
    ------
    SpecError
        A run of another task.

    Examples
    --------
    >>> from isolux.vocabulary.tables import ATTRIBUTES, DISPARITIES, GROUP_METRICS, SCORES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).tables
    {}
    """
    if "model_a" in run.disparities.columns or not run.scores.height:
        return Explained(FINDINGS.empty())
    if _EVIDENCE not in run.evidence:
        raise SpecError(
            "this run does not say what a model answered",
            expected="--task answers",
            found=f"the task {run.record.get('task')!r}",
        )
    words, level = words_of(run), settings_of(run).statistics.level
    rows = list(_rows(run, words, level))
    if not rows:
        return Explained(FINDINGS.empty())
    table = pl.DataFrame(rows, infer_schema_length=None)
    nearest = pl.max_horizontal(pl.col("low"), -pl.col("high"), pl.lit(0.0))
    order = table.with_columns(nearest=nearest, size=pl.col("log odds").abs()).sort(
        "nearest",
        "size",
        "answer",
        "attribute",
        "group",
        descending=[True, True, False, False, False],
    )
    shown = order.drop("nearest", "size").head(_MAX_ROWS)
    shown = shown.with_columns(pl.selectors.float().round(_DIGITS))
    left = table.height - shown.height
    note = (
        f"Associations of answers: the {_MAX_ROWS} of {table.height:,} furthest from 0 are listed."
    )
    listed = shown if words.models > 1 else shown.drop("model")
    return Explained(FINDINGS.empty(), {CAPTION: listed}, (note,) if left else ())


def _rows(run: Run, words: Words, level: float) -> Iterator[dict[str, object]]:
    """Give a row for each metric, label and group that was judged."""
    spec = settings_of(run)
    units = run.scores["unit_id"].unique(maintain_order=True)
    members = groups_of(run, spec.groups, units)
    keys = ["model", "metric", "label", "threshold"]
    judged = run.group_metrics.filter(pl.col("attribute").is_not_null() & IS_SOUND)
    judged = judged.select(*keys, "attribute", "group")
    tested = run.disparities.filter(kind="difference_to_overall").select(
        *keys, "attribute", "p_adjusted", group="group_a"
    )
    asked = judged.join(
        tested,
        on=[*keys, "attribute", "group"],
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    known = run.scores.filter(pl.col("value").is_not_null())
    of_group = {k: set(own["unit_id"]) for k, own in members.group_by("attribute", "group")}
    for (model, metric, label, _), own in asked.group_by(keys, maintain_order=True):
        scored = known.filter(
            (pl.col("model") == model)
            & (pl.col("metric") == metric)
            & pl.col("label").eq_missing(pl.lit(label, dtype=pl.String))
        )
        yield from _of_measure(scored, own, of_group, words, level)


def _of_measure(
    scored: pl.DataFrame,
    asked: pl.DataFrame,
    of_group: dict[tuple[object, ...], set[str]],
    words: Words,
    level: float,
) -> Iterator[dict[str, object]]:
    value = scored["value"].to_numpy()
    cluster = pl.coalesce("cluster_id", "unit_id").rank("dense") - 1
    number = scored.select(cluster.cast(pl.Int64)).to_series().to_numpy()
    for (attribute,), rows in asked.group_by("attribute", maintain_order=True):
        groups = {group: who for (one, group), who in of_group.items() if one == attribute}
        known = scored["unit_id"].is_in(list(set().union(*groups.values()))).to_numpy()
        ids = scored["unit_id"].filter(known)
        two = len(groups) == 2 and not set.intersection(*groups.values())
        for row in rows.iter_rows(named=True):
            inside = ids.is_in(list(groups[row["group"]])).to_numpy().astype(float)
            found = log_odds_ratio(value[known], inside, number[known], level=level)
            first = found.value > 0 or (found.value == 0 and row["group"] == min(map(str, groups)))
            if np.isnan(found.value) or (two and not first):
                continue
            yield _row(row, found, words)


def _row(row: Mapping[str, Any], found: LogOdds, words: Words) -> dict[str, object]:
    return {
        "model": row["model"],
        "answer": words.measure(row),
        "attribute": words.title(row["attribute"]),
        "group": row["group"],
        "said": found.said,
        "of": int(found.asked),
        "others said": found.other_said,
        "of others": int(found.other_asked),
        "share": found.said / found.asked,
        "others' share": found.other_said / found.other_asked,
        "log odds": found.value,
        "low": found.low,
        "high": found.high,
        "p adjusted": row["p_adjusted"],
    }
