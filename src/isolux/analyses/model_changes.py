"""Who gains and who loses from one model to another, in plain sentences.

Reads the table of comparisons that ``isolux compare`` makes (kinds ``model_difference`` and
``gap_difference``); a run of a single model has none, and gives no finding. Everyone comes first,
then the groups whose change the family-adjusted test confirms: single attributes before
intersections, then by the end of their interval that is nearer to 0, losses before gains of the
same size; then what became of the widest gap of each attribute; then how many changes stayed
unconfirmed. A change that says again what an earlier one said (a rate that is one minus another,
of the same people) comes after all of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from isolux.analyses._words import Words, number, size
from isolux.vocabulary import registry, works
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.drawn import is_weighted
from isolux.vocabulary.info import AnalysisInfo, Metric
from isolux.vocabulary.tables import FINDINGS, Status
from isolux.vocabulary.words import target_of

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
    changes = run.disparities.filter(pl.col("kind") == "model_difference")
    sure = (pl.col("p_adjusted") <= alpha).fill_null(value=False)
    near = pl.max_horizontal(-pl.col("high"), pl.col("low"), 0.0).fill_null(0.0)
    overall = changes.filter(pl.col("attribute").is_null())
    crossed = pl.col("attribute").str.contains("*", literal=True)
    found = changes.filter(pl.col("attribute").is_not_null() & sure).sort(
        crossed, near, "value", descending=[False, True, False]
    )
    told = pl.concat([overall, found])
    first = told.select(pl.struct(_statement()).is_first_distinct()).to_series()
    gaps = run.disparities.filter(pl.col("kind") == "gap_difference").sort(
        pl.col("value").abs(), descending=True
    )
    rows = [_finding(row, _change(row, words)) for row in told.filter(first).iter_rows(named=True)]
    rows += [_finding(row, _gap(row, words)) for row in gaps.iter_rows(named=True)]
    unsure = changes.filter(pl.col("attribute").is_not_null() & ~sure)
    if unsure.height:
        rows.append(_rest(unsure, changes, words))
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
    low, high = (number(end, words.unit(row)) for end in ends)
    return f"{100 * words.level:g} % interval {low} to {high}"


def _change(row: Mapping[str, Any], words: Words) -> str:
    who = "everyone" if row["attribute"] is None else str(row["group_a"])
    of = "" if row["attribute"] is None else f" ({words.title(row['attribute'])})"
    way = "lower" if row["value"] < 0 else "higher"
    if row["value"] == 0:
        far = "the same"
        against = f"with {row['model_b']} as with {row['model_a']}"
    else:
        far = f"{size(row['value'], words.unit(row))} {way} ({_ends(row, words)})"
        against = f"with {row['model_b']} than with {row['model_a']}"
    better = words.better(row, row["value"])
    note = f" ({better})" if better and row["value"] != 0 else ""
    told = (
        f"{words.measure(row)} for {who}{of} is {far} {against}{note}; "
        f"n = {row['n_units_a']:,}; {words.p(row['p_adjusted'])}."
    )
    if row["status"] == Status.BOUNDARY:
        told += " Read this interval with care, it may be too narrow."
    return told[:1].upper() + told[1:]


def _gap(row: Mapping[str, Any], words: Words) -> str:
    title = words.title(row["attribute"])
    told = f"The widest gap in {words.measure(row)} across {title}"
    if row["value"] == 0:
        return f"{told} is the same with both models."
    way = "narrower" if row["value"] < 0 else "wider"
    return (
        f"{told} is {size(row['value'], words.unit(row))} {way} with {row['model_b']} than with "
        f"{row['model_a']} ({_ends(row, words)}; not adjusted for the other gaps)."
    )


def _is_fraction(metric: str, words: Words) -> bool:
    return words.unit({"metric": metric}) == "fraction"


def _rest(unsure: pl.DataFrame, changes: pl.DataFrame, words: Words) -> dict[str, Any]:
    of_groups = changes.filter(pl.col("attribute").is_not_null()).height
    fractions = unsure.filter(
        pl.col("metric").is_in([n for n in unsure["metric"].unique() if _is_fraction(n, words)])
    )
    least = [float(x) for x in fractions["detectable"].drop_nulls()]
    seen = ""
    if least:
        ends = [number(end, "fraction") for end in (min(least), max(least))]
        seen = (
            f" Changes of {ends[0]} points (the best case) to {ends[1]} could have been detected."
        )
    told = f"{unsure.height:,} of {of_groups:,} changes of single groups were not confirmed.{seen}"
    return {"analysis": _NAME, "claim": told, "status": Status.OK.value, "n": None}


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
