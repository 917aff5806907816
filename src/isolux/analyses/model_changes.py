"""Who gains and who loses from one model to another, in plain sentences.

Reads the table of comparisons that ``isolux compare`` makes (kinds ``model_difference``,
``change_difference`` and ``gap_difference``); a run of a single model has none, and gives no
finding. Everyone comes first (of single classes, where the change is confirmed), then the groups
whose change the family-adjusted test confirms: single attributes before intersections, then by the
end of their interval that is nearer to 0, losses before gains of the same size; then, in the same
order, two groups whose changes differ, the surest pair of each attribute and metric; then the
groups of which no change is judged; then the widest gaps that became wider or narrower; then how
much stayed unconfirmed. A change that says again what an earlier one said (a rate that is one minus
another, of the same people) comes last.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from isolux.groups.unknown import UNKNOWN
from isolux.statements.numbers import interval, points, value_text
from isolux.statements.words import Words, lowered
from isolux.vocabulary import registry, works
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.drawn import is_weighted
from isolux.vocabulary.info import AnalysisInfo, Metric
from isolux.vocabulary.tables import FINDINGS, Status
from isolux.vocabulary.words import UNTESTED, target_of

__all__ = ["INFO", "explain"]

_FACET = works.FACET.at("Tables 11 and 12: two models side by side")

INFO = AnalysisInfo(
    tests=False,
    title="Changes between two models",
    summary="Which groups gained and which lost from one model to another, and by how much.",
    references=(_FACET,),
    assumptions=(
        "Both models answered about the same people, and only those are compared.",
        "Clusters are independent of one another.",
        "A gap can close because one group lost: read both groups' changes.",
    ),
)

_NAME = "model_changes"


def explain(run: Run) -> Explained:
    """Say who gained and who lost.

    Parameters
    ----------
    run : Run
        Its ``disparities`` are comparisons of two models.

    Returns
    -------
    Explained
        ``findings``; ``effect`` is the second model's value less the first's, in the
        metric's unit; empty where ``run`` holds no comparison.

    Examples
    --------
    >>> from isolux.vocabulary.tables import ATTRIBUTES, COMPARISONS, GROUP_METRICS, SCORES
    >>> empty = Run({}, SCORES.empty(), ATTRIBUTES.empty(), GROUP_METRICS.empty(),
    ...             COMPARISONS.empty(), FINDINGS.empty())
    >>> explain(empty).findings.height
    0
    """
    return Explained(_findings(run))


def _findings(run: Run) -> pl.DataFrame:
    if "model_a" not in run.disparities.columns or run.disparities.is_empty():
        return FINDINGS.empty()
    words = _words(run)
    alpha = 1.0 - words.level
    every = run.disparities.filter(pl.col("kind") == "model_difference")
    sure = (pl.col("p_adjusted") <= alpha).fill_null(value=False)
    mute = (pl.col("reason") == UNTESTED).fill_null(value=False)  # apart, and nothing can test it
    judged = pl.col("value").is_not_null()
    near = pl.max_horizontal(-pl.col("high"), pl.col("low"), 0.0).fill_null(0.0)
    changes = every.filter(judged)
    overall = changes.filter(pl.col("attribute").is_null())
    leads = pl.col("label").is_null() | sure
    crossed = pl.col("attribute").str.contains("*", literal=True)
    found = changes.filter(pl.col("attribute").is_not_null() & (sure | mute)).sort(
        crossed, near, "value", descending=[False, True, False]
    )
    told = pl.concat([overall.filter(leads), found])
    first = told.select(pl.struct(_statement()).is_first_distinct()).to_series()
    rows = [_finding(row, _change(row, words)) for row in told.filter(first).iter_rows(named=True)]
    apart = run.disparities.filter(pl.col("kind") == "change_difference")
    rows += [_finding(row, _unlike(row, words)) for row in _surest(apart.filter(sure | mute), near)]
    rows += _unjudged(every, words)
    rows += _of_gaps(run.disparities.filter(pl.col("kind") == "gap_difference"), near, words)
    rows += [
        _finding(row, _change(row, words)) for row in overall.filter(~leads).iter_rows(named=True)
    ]
    same = pl.col("p_value").is_null() & (pl.col("value") == 0)
    unsure = changes.filter(pl.col("attribute").is_not_null() & ~(sure | mute | same))
    rows += _rest(unsure, changes, words) + _same(changes.filter(same), changes)
    if apart.height:
        rows += _alike(apart, sure | mute, words)
    rows += [
        _finding(row, _change(row, words)) for row in told.filter(~first).iter_rows(named=True)
    ]
    frame = pl.DataFrame(rows, infer_schema_length=None) if rows else FINDINGS.empty()
    return FINDINGS.conform(frame.with_columns(rank=pl.int_range(1, pl.len() + 1)))


def _statement() -> list[pl.Expr]:
    """Name what two changes share that say the same of the same people: a recall, a miss rate."""
    return [pl.col("attribute", "group_a", "n_units_a"), pl.col("value").abs().round(12)]


def _words(run: Run) -> Words:
    task = str(run.record.get("task"))
    known = registry.task_info(task).metrics if task in registry.names("tasks") else ()
    metrics: dict[str, Metric] = {m.name: m for m in known}
    spec = run.record.get("spec") or {}
    dataset = run.record.get("dataset") or {}
    clusters = run.record.get("clusters") or {}
    return Words(
        terms=dataset.get("terms") or {},
        metrics=metrics,
        level=float(spec.get("level", 0.95)),
        corrected=spec.get("correction") != "none",
        cluster=clusters.get("column"),
        target=target_of(run.record),
        weighted=is_weighted(run.record),
    )


def _ends(row: Mapping[str, Any], words: Words) -> str:
    if row["low"] is None or row["high"] is None:
        return "no interval"
    flip = row["value"] < 0
    ends = (-row["high"], -row["low"]) if flip else (row["low"], row["high"])
    told = interval(*ends, words.unit(row), row["value"])
    return f"{100 * words.level:g} % interval {told}"


def _change(row: Mapping[str, Any], words: Words) -> str:
    who = "everyone" if row["attribute"] is None else str(row["group_a"])
    of = "" if row["attribute"] is None else f" ({words.title(row['attribute'])})"
    way = "lower" if row["value"] < 0 else "higher"
    if row["value"] == 0:
        far = "the same"
        against = f"with {row['model_b']} as with {row['model_a']}"
    else:
        far = points(row["value"], words.unit(row), (row["low"], row["high"]))
        far = f"{far} {way} ({_ends(row, words)})"
        p = row["p_adjusted"]
        if p is not None and p > 1.0 - words.level:
            far = f"not shown to differ: {far}"
        against = f"with {row['model_b']} than with {row['model_a']}"
    better = words.better(row, row["value"])
    note = f" ({better})" if better and row["value"] != 0 else ""
    told = (
        f"{words.measure(row)} for {who}{of} is {far} {against}{note}; "
        f"n = {row['n_units_a']:,}; {words.p(row['p_adjusted'])}.{_care(row)}"
    )
    return told[:1].upper() + told[1:]


def _care(row: Mapping[str, Any]) -> str:
    if row["status"] != Status.BOUNDARY:
        return ""
    if row["low"] is None or row["high"] is None:
        return f" Read this with caution: {row['reason']}."
    return f" Read this interval with caution, it may be too narrow: {row['reason']}."


def _of_gaps(gaps: pl.DataFrame, near: pl.Expr, words: Words) -> list[dict[str, Any]]:
    """Say which widest gaps became wider or narrower, and of how many that is not shown."""
    shown = gaps.filter(near > 0).sort(pl.col("value").abs(), descending=True)
    rows = [_finding(row, _gap(row, words)) for row in shown.iter_rows(named=True)]
    known = gaps.filter(pl.col("value").is_not_null()).height
    if shown.height < known:
        told = (
            f"{known - shown.height:,} of {known:,} widest gaps across an attribute's groups were"
            " not shown to become wider or narrower (intervals that hold no change)."
        )
        rows.append({"analysis": _NAME, "claim": told, "status": Status.OK.value, "n": None})
    return rows


def _gap(row: Mapping[str, Any], words: Words) -> str:
    way = "narrower" if row["value"] < 0 else "wider"
    return (
        f"The widest gap in {lowered(words.measure(row))} across {words.title(row['attribute'])} is"
        f" {points(row['value'], words.unit(row))} {way} with {row['model_b']} than with "
        f"{row['model_a']}, after what chance adds to a widest gap is taken out "
        f"({_ends(row, words)}; not adjusted for the other gaps)."
    )


_LISTED = 10
_BLOCK = ["metric", "label", "threshold", "attribute"]


def _surest(apart: pl.DataFrame, near: pl.Expr) -> list[dict[str, Any]]:
    """Choose the surest pair of each attribute and metric, of known groups first, and count."""
    unknown = pl.any_horizontal(
        pl.col(f"group_{side}").str.contains(UNKNOWN, literal=True) for side in "ab"
    )
    crossed = pl.col("attribute").str.contains("*", literal=True)
    ranked = apart.with_columns(near=near, pairs=pl.len().over(_BLOCK)).sort(
        unknown, crossed, "near", descending=[False, False, True], maintain_order=True
    )
    surest = ranked.unique(_BLOCK, keep="first", maintain_order=True)
    once = [pl.col("attribute", "group_a", "group_b"), pl.col("value").abs().round(12)]
    return surest.unique(once, keep="first", maintain_order=True).to_dicts()


def _unlike(row: Mapping[str, Any], words: Words) -> str:
    way = "lower" if row["value"] < 0 else "higher"
    others = row["pairs"] - 1
    more = f"; {others:,} more pair{'s differ' if others > 1 else ' differs'}" if others else ""
    return (
        f"From {row['model_a']} to {row['model_b']}, the change in"
        f" {lowered(words.measure(row))} is {points(row['value'], words.unit(row))} {way} for"
        f" {row['group_a']} than for {row['group_b']} ({words.title(row['attribute'])};"
        f" {_ends(row, words)}); {words.p(row['p_adjusted'])}{more}.{_care(row)}"
    )


def _alike(apart: pl.DataFrame, sure: pl.Expr, words: Words) -> list[dict[str, Any]]:
    """Say where no two groups' changes were found to differ, and how far apart they may be."""
    ends = pl.max_horizontal(pl.col("low").abs(), pl.col("high").abs())
    blocks = apart.group_by(_BLOCK, maintain_order=True).agg(
        sure.any().alias("found"), ends.max().alias("far")
    )
    silent = blocks.filter(~pl.col("found"))
    if not silent.height:
        return []
    of_shares = [_is_fraction(name, words) for name in silent["metric"]]
    far = silent.filter(pl.Series(of_shares))["far"].drop_nulls().to_list()
    seen = (
        f" They may still: the intervals reach up to {points(max(far), 'fraction')} from no"
        " difference."
        if far
        else ""
    )
    told = (
        f"No two groups' changes were found to differ in {silent.height:,} of {blocks.height:,}"
        f" comparisons of an attribute's groups by a metric.{seen}"
    )
    return [{"analysis": _NAME, "claim": told, "status": Status.OK.value, "n": None}]


def _is_fraction(metric: str, words: Words) -> bool:
    return words.unit({"metric": metric}) == "fraction"


def _rest(unsure: pl.DataFrame, changes: pl.DataFrame, words: Words) -> list[dict[str, Any]]:
    if unsure.is_empty():
        return []
    of_groups = changes.filter(pl.col("attribute").is_not_null()).height
    fractions = unsure.filter(
        pl.col("metric").is_in([n for n in unsure["metric"].unique() if _is_fraction(n, words)])
    )
    least = [float(x) for x in fractions["detectable"].drop_nulls()]
    seen = ""
    if least:
        low, high = (value_text(end) for end in (min(least), max(least)))
        far = f"{low} points" if low == high else f"{low} points (the best case) to {high}"
        seen = f" Changes of {far} could have been detected (power 0.8)."
    told = f"{unsure.height:,} of {of_groups:,} changes of single groups were not confirmed.{seen}"
    return [{"analysis": _NAME, "claim": told, "status": Status.OK.value, "n": None}]


def _same(same: pl.DataFrame, changes: pl.DataFrame) -> list[dict[str, Any]]:
    """Count the groups' values that are the same with both models, so that nothing was tested."""
    n, of = (rows.filter(pl.col("attribute").is_not_null()).height for rows in (same, changes))
    told = f"{n:,} of {of:,} values of single groups are the same with both models."
    return [{"analysis": _NAME, "claim": told, "status": Status.OK.value, "n": None}] if n else []


def _unjudged(rows: pl.DataFrame, words: Words) -> list[dict[str, Any]]:
    """Name the groups whose change is not judged by any metric, or not by some."""
    without = pl.col("value").is_null()
    counted = rows.filter(pl.col("attribute").is_not_null()).group_by(
        "attribute", "group_a", maintain_order=True
    )
    groups = counted.agg(
        without.sum().alias("n"), pl.len().alias("of"), pl.col("n_units_a").max(),
        pl.col("status").filter(without).first(), pl.col("reason").filter(without).first(),
    ).filter(pl.col("n") > 0)  # fmt: skip
    told = []
    for own in groups.partition_by("attribute", maintain_order=True):
        title = words.title(own["attribute"][0])
        named = [_without(row) for row in own.head(_LISTED).iter_rows(named=True)]
        if own.height > _LISTED:
            named.append(f"{own.height - _LISTED:,} more")
        claim = f"Changes of these groups of {title} are not judged: {', '.join(named)}."
        first = own.row(0, named=True)
        told.append({
            "analysis": _NAME, "claim": claim, "status": first["status"], "n": first["n_units_a"],
            "attribute": first["attribute"],
        })  # fmt: skip
    return told


def _without(row: Mapping[str, Any]) -> str:
    some = "" if row["n"] == row["of"] else f" by {row['n']:,} of {row['of']:,} measures"
    return f"{row['group_a']}{some} (n = {row['n_units_a'] or 0:,}; {row['reason']})"


def _finding(row: Mapping[str, Any], claim: str) -> dict[str, Any]:
    return {
        "analysis": _NAME,
        "claim": claim,
        "effect": row["value"],
        "low": row["low"],
        "high": row["high"],
        "n": row["n_units_a"],
        "reference": "facet",
        "status": row["status"],
        "metric": row["metric"],
        "label": row["label"],
        "attribute": row["attribute"],
        "group_a": row["group_a"],
        "group_b": row["group_b"],
        "p_adjusted": row["p_adjusted"],
    }
