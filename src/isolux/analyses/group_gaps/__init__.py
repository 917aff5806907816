"""Which groups a model serves worse, in plain sentences, in the order in which to read them.

The first analysis of every audit: ``group_metrics`` and ``disparities`` go in, ``findings`` come
out. It computes nothing; it chooses, orders and says. At most one pair of groups speaks for each
metric and attribute.

Order: differences that the family-adjusted test confirms; differences of an attribute as a whole
without a pair that stands out; groups too small to judge; attributes where nothing was found,
with what could have been seen; then differences of single classes, and what is known only of
people whose value is unknown; then confirmed differences that say again what another has said
(an intersection not shown to differ by more than one of its attributes, a rate that is one minus
another, a metric at a second threshold); then intersections and single classes where nothing was
found. The first ``LEAD`` take some of each kind, so that silence about a group is read as early as
a disparity.

Confirmed differences begin with pairs of groups; then the audit's main metric; then metrics that
have a better direction. Of the main metric the attribute with the worst-off group comes first,
whatever that group's size (``disparity.leading``); other metrics and classes, of which there are
many, are ordered by the end of the interval that is nearer to 0.

Of a metric that is measured class by class one finding speaks for all classes (in how many groups
differ, and in which most) and stands where its worst class would; the classes come later. Nothing
is said of a group without people.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import polars as pl

from isolux.analyses._blocks import blocks_of, unjudged_of
from isolux.analyses.group_gaps.borrowed import borrowed
from isolux.analyses.group_gaps.classes import by_class, classes_claim
from isolux.analyses.group_gaps.sentences import differs, no_difference, only_overall, without_value
from isolux.statements.words import Words, words_of
from isolux.vocabulary.containers import Explained, Run
from isolux.vocabulary.info import AnalysisInfo, Reference
from isolux.vocabulary.tables import FINDINGS, Status

__all__ = ["INFO", "LEAD", "explain"]

FAIRLEARN = Reference(
    "fairlearn",
    "Weerts, Dudík, Edgar, Jalali, Lutz & Madaio (2023). Fairlearn: Assessing and Improving "
    "Fairness of AI Systems. Journal of Machine Learning Research 24(257):1-8.",
    "",
    "https://jmlr.org/papers/v24/23-0389.html",
)

INFO = AnalysisInfo(
    tests=False,
    title="Gaps between groups",
    summary="Which groups differ on which metric, by how much, how certain that is, and what "
    "could not be detected.",
    references=(FAIRLEARN,),
    assumptions=(
        "Clusters are independent of one another.",
        "A difference that was found is between these groups as labelled; its cause remains open.",
        "A difference that was not found may still exist.",
        "The pair shown for an attribute differs most, so its gap is probably overstated.",
    ),
)

_CORRECTION_SOURCE = {
    "max-t": "westfall-young-1993",
    "holm": "holm-1979",
    "bh": "benjamini-hochberg-1995",
}
"""Keys of ``stats.references``, by the spec's ``correction``."""

_ROUNDING = 1e-12
"""A standard error below this is what is left of equal numbers."""
LEAD = 25
"""Findings that stand first, with some of each kind."""

_FOUND, _OVERALL, _UNJUDGED, _NOT_FOUND, _CLASS, _UNKNOWN, _AGAIN, _LAST = range(8)
_QUOTA = {_FOUND: 12, _OVERALL: 2, _UNJUDGED: 4, _NOT_FOUND: 4, _CLASS: 2, _UNKNOWN: 1}
"""How many of the lead each kind may take; they add up to ``LEAD``."""
_BY_CLASS = {_FOUND: _CLASS, _OVERALL: _CLASS, _NOT_FOUND: _LAST}
"""Where a class is said, when another finding speaks for all classes."""


def explain(run: Run) -> Explained:
    """Say what an audit found about each attribute, and what it could not see.

    Parameters
    ----------
    run : Run
        Its ``group_metrics``, ``disparities`` and record are read. The level of the intervals
        is one minus the level of the tests.

    Returns
    -------
    Explained
        ``findings``. ``effect``, ``low``, ``high``: group_a − group_b in the metric's unit;
        of a difference that was not found, of the widest gap seen, with an interval that holds
        for all pairs of the attribute at once; null for groups without a value. ``n``: units of
        the two groups; of everyone where nothing was found. ``status`` is the pair's. A run
        without groups gives no findings.

    Examples
    --------
    >>> from isolux.vocabulary.tables import DISPARITIES, GROUP_METRICS, SCORES, ATTRIBUTES
    >>> tables = (SCORES, ATTRIBUTES, GROUP_METRICS, DISPARITIES, FINDINGS)
    >>> explain(Run({}, *(t.empty() for t in tables))).findings.height
    0
    """
    return Explained(_findings(run))


def _findings(run: Run) -> pl.DataFrame:
    words = words_of(run)
    told = [*_of_blocks(run, words), *_of_unjudged(run, words)]
    if not told:
        return FINDINGS.empty()
    told.sort(key=lambda row: (row["tier"], row["place"]))
    ranked: list[dict[str, Any]] = []
    for tier, rows in groupby(told, key=lambda row: row["tier"]):
        quota = _QUOTA.get(tier, 0)
        ranked += [{**row, "lead": i < quota} for i, row in enumerate(rows)]
    ranked.sort(key=lambda row: not row["lead"])
    columns = {name: [row.get(name) for row in ranked] for name in FINDINGS.schema}
    columns["rank"] = list(range(1, len(ranked) + 1))
    columns["analysis"] = ["group_gaps"] * len(ranked)
    return pl.DataFrame(columns, schema=FINDINGS.schema)


def _of_blocks(run: Run, words: Words) -> Iterator[dict[str, Any]]:
    source = _CORRECTION_SOURCE.get((run.record.get("spec") or {}).get("correction", ""))
    lower_is_better = [name for name, m in words.metrics.items() if m.direction == "lower"]
    blocks = blocks_of(run, 1.0 - words.level, lower_is_better)
    placed = _placed(blocks, run, words).with_row_index("place")
    classes = by_class(placed)
    for own in classes:
        yield _of_classes(own, words, source)
    spoken_for = {row["place"] for own in classes for row in own}
    # Where one class alone differs, what is said of all classes has said its gap already.
    said = {own[0]["place"] for own in classes if sum(row["found"] for row in own) == 1}
    for row in placed.iter_rows(named=True):
        tier = row["tier"]
        if row["place"] in spoken_for and tier in _BY_CLASS:
            tier = _AGAIN if row["place"] in said else _BY_CLASS[tier]
        found = row["found"]
        sentence = differs if found else only_overall if row["any_found"] else no_difference
        low, high = (row["low"], row["high"]) if found else _ends_of_widest(row)
        yield {
            "tier": tier,
            "place": (float(row["place"]),),
            "claim": sentence(row, words),
            "effect": row["value"],
            "low": low,
            "high": high,
            "n": row["n_units_a"] + row["n_units_b"] if found else row["n_units"],
            "reference": source,
            "p_adjusted": row["p_adjusted"] if found else row["any_p"],
            **{name: row[name] for name in ("status", "metric", "label", "attribute")},
            **{name: row[name] for name in ("group_a", "group_b")},
        }


def _of_classes(
    rows: Sequence[Mapping[str, Any]], words: Words, source: str | None
) -> dict[str, Any]:
    """Speak for all classes of a metric and attribute, in the place of the first."""
    first = rows[0]
    found = bool(first["found"])
    tier = min(row["tier"] for row in rows if row["found"] == found)
    low, high = (first["low"], first["high"]) if found else (None, None)
    widest = first if found else max(rows, key=lambda row: abs(row["value"]))
    p = [row["any_p"] for row in rows if row["any_p"] is not None]
    return {
        "tier": tier,
        "place": (first["place"] - 0.5,),
        "claim": classes_claim(rows, words),
        "effect": widest["value"],
        "low": low,
        "high": high,
        "n": sum(row["n_units"] or 0 for row in rows) or None,
        "reference": source,
        "p_adjusted": first["p_adjusted"] if found else min(p, default=None),
        **{name: widest[name] for name in ("status", "metric", "attribute")},
        **{name: widest[name] for name in ("group_a", "group_b")},
    }


def _ends_of_widest(row: Mapping[str, Any]) -> tuple[float | None, float | None]:
    """Interval of the widest gap with its sign, all pairs at once; no such interval: none."""
    low, high = row["range_low"], row["range_high"]
    if low is None or high is None:
        return None, None
    return (0.0 - high, 0.0 - low) if row["value"] < 0 else (low, high)


def _placed(blocks: pl.DataFrame, run: Run, words: Words) -> pl.DataFrame:
    """Give every block its tier, and put the blocks in the order in which to read them."""
    ranked = _read_in_order(_with_flat(blocks, run), run, words)
    repeated = pl.struct(_same_statement()).is_first_distinct().not_()
    elsewhere = pl.struct(_same_but_threshold()).is_first_distinct().not_()
    again = pl.col("covered") | repeated | (pl.col("threshold").is_not_null() & elsewhere)
    return ranked.with_columns(
        tier=pl.when(pl.col("found") & again)
        .then(_AGAIN)
        .when("aside")
        .then(_UNKNOWN)
        .when("found")
        .then(_FOUND)
        .when("any_found")
        .then(_OVERALL)
        .when(pl.col("crossed") | again)
        .then(_LAST)
        .otherwise(_NOT_FOUND)
    )


def _with_flat(blocks: pl.DataFrame, run: Run) -> pl.DataFrame:
    """Tell where no judged group's value varies from cluster to cluster."""
    keys = ["model", "task", "metric", "label", "threshold", "attribute"]
    judged = pl.col("status").is_in([Status.OK.value, Status.BOUNDARY.value])
    varies = run.group_metrics.filter(judged).group_by(keys).agg(
        flat=pl.col("standard_error").max() < _ROUNDING
    )  # fmt: skip
    return blocks.join(
        varies, on=keys, how="left", nulls_equal=True, maintain_order="left"
    ).with_columns(pl.col("flat").fill_null(value=False))


def _read_in_order(blocks: pl.DataFrame, run: Run, words: Words) -> pl.DataFrame:
    """Sort blocks: what differs by who is served worst, all else as it was asked for."""
    metrics, attributes = _orders(run, words)
    bounded = {n: m for n, m in words.metrics.items() if m.low is not None and m.high is not None}
    spans = {name: (m.high or 0.0) - (m.low or 0.0) for name, m in bounded.items()}
    span = pl.col("metric").replace_strict(spans, default=1.0, return_dtype=pl.Float64)
    # Of a metric without a better direction no group is served worse.
    neutral = [name for name, m in words.metrics.items() if m.direction == "none"]
    last = len(metrics) + len(attributes)
    placed = blocks.with_columns(
        crossed=pl.col("attribute").str.contains("*", literal=True),
        of_metric=pl.col("metric").replace_strict(metrics, default=last, return_dtype=pl.Int64),
        of_attribute=pl.col("attribute").replace_strict(
            attributes, default=last, return_dtype=pl.Int64
        ),
    )
    is_main = pl.col("of_metric") == _main_place(blocks, metrics, run)
    order = {  # a metric's first threshold is the one that the report leads with
        "_against_everyone": pl.col("pair").not_().cast(pl.Float64),
        "_side_metric": is_main.not_().cast(pl.Float64),
        "_neutral": pl.col("metric").is_in(neutral).cast(pl.Float64),
        "_side_threshold": (pl.col("threshold") != pl.col("threshold").first().over("metric"))
        .fill_null(value=False)
        .cast(pl.Float64),
        "_worst": pl.when(is_main & pl.col("label").is_null()).then("worst").otherwise(0.0),
        "_unsure": -pl.col("strength") / span,
        "_narrow": -pl.col("value").abs() / span,
    }
    placed = placed.with_columns(
        pl.when("found").then(key).otherwise(0.0).alias(name) for name, key in order.items()
    )
    more = ("of_metric", "threshold", "label", "of_attribute", "attribute", "model", "metric")
    return placed.sort(*order, *more).drop(*order)


def _main_place(blocks: pl.DataFrame, metrics: Mapping[str, int], run: Run) -> int:
    """Place of the audit's main metric: the first that was asked for, else the task's first."""
    measured = set(blocks["metric"])
    asked = [m for m in (run.record.get("spec") or {}).get("metric") or () if m in measured]
    named = asked or [name for name in metrics if name in measured]
    return metrics.get(named[0], 0) if named else 0


def _same_statement() -> list[pl.Expr]:
    """Name what blocks share that say the same of the same people: a recall, and a miss rate."""
    counts = [pl.col(f"n_units_{side}") for side in ("a", "b")]
    names = [pl.col(name) for name in ("model", "task", "group_a", "group_b")]
    return [*names, *counts, pl.col("value").abs().round(12)]


def _same_but_threshold() -> list[pl.Expr]:
    """Name what blocks share that differ in the threshold of their metric alone."""
    return [pl.col(name) for name in ("model", "task", "metric", "label", "attribute", "found")]


def _of_unjudged(run: Run, words: Words) -> Iterator[dict[str, Any]]:
    rows = unjudged_of(run.group_metrics).with_columns(
        everywhere=pl.col("n_without") == pl.col("n_measures")
    )
    _, attributes = _orders(run, words)
    by = ("model", "attribute", "small", "named", "everywhere")
    parts = rows.partition_by(*by, maintain_order=True)
    for part in parts:
        groups = part.to_dicts()
        first = groups[0]
        asked = attributes.get(first["attribute"], len(attributes))
        weight = (not first["everywhere"], not first["small"])
        yield {
            "tier": _UNJUDGED if first["named"] else _UNKNOWN,
            # After the blocks of a tier: a number does not compare with a row of them.
            "place": (float("inf"), *weight, asked, first["attribute"], first["model"]),
            "claim": without_value(groups, words, everywhere=first["everywhere"])
            + (borrowed(run, groups, words) if first["small"] and first["named"] else ""),
            "n": first["n_units"],
            "status": first["status"],
            "attribute": first["attribute"],
            "group_a": first["group"] if len(groups) == 1 else None,
        }


def _orders(run: Run, words: Words) -> tuple[dict[str, int], dict[str, int]]:
    """Place of each metric (the task's own order) and of each attribute (the order asked for)."""
    by = (run.record.get("spec") or {}).get("by") or ()
    named = [*by, *sorted(run.group_metrics["attribute"].drop_nulls().unique())]
    attributes = {name: i for i, name in enumerate(dict.fromkeys(named))}
    return {name: i for i, name in enumerate(words.metrics)}, attributes
