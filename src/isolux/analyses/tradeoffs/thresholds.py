"""Rates against the threshold by group, and where each group's threshold would meet everyone's.

Equal opportunity (Hardt, Price & Srebro 2016) asks for equal true positive rates; with one score it
can be had by a threshold for each group. Where that threshold lies says how far a group's scores
are off, in the score's own unit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from isolux.analyses._regrouping import ROUNDED, measure_again, scores_at
from isolux.analyses.tradeoffs.curves import Meeting, Rows, meeting_thresholds, rows_of_groups
from isolux.analyses.tradeoffs.evidence import People, Seen, finding
from isolux.statements.numbers import value_text
from isolux.statements.words import Words, lowered
from isolux.stats.constants import KEPT_CLUSTERS
from isolux.stats.design import IntArray
from isolux.stats.intervals import percentile
from isolux.vocabulary.info import Metric
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import Status

RATES = "Rates at each threshold, by group"
"""Caption of the curves."""
_THRESHOLDS = (0.1, 0.3, 0.5, 0.7, 0.9)


def meets_at(operating: float) -> str:
    """Caption the table of thresholds.

    Examples
    --------
    >>> meets_at(0.5)
    "Each group's threshold at which it would fare as everyone does at 0.5"
    """
    return f"Each group's threshold at which it would fare as everyone does at {operating:g}"


def add_thresholds(
    people: People,
    members: pl.DataFrame,
    operating: float,
    spec: Statistics,
    words: Words,
    seen: Seen,
) -> None:
    """Add one model's curves, its thresholds, and a finding for each attribute."""
    rows = rows_of_groups(people.rows, members)
    found = meeting_thresholds(rows, operating, spec)
    n, clusters = rows.count(rows.mark)
    table = _table(people, rows, found, (n, clusters), spec)
    _add(seen, meets_at(operating), table)
    _add(seen, RATES, _curves(people, members, spec))
    for attribute in dict.fromkeys(name for name, _ in rows.names[1:]):
        own = table.filter(pl.col("attribute") == attribute)
        row = _claimed(own, table.row(0, named=True), people, operating, words)
        seen.findings += [row] if row else []


def _add(seen: Seen, caption: str, table: pl.DataFrame) -> None:
    before = seen.tables.get(caption)
    seen.tables[caption] = table if before is None else pl.concat([before, table])


def _table(
    people: People, rows: Rows, found: Meeting, counts: tuple[IntArray, IntArray], spec: Statistics
) -> pl.DataFrame:
    n, clusters = counts
    ends = percentile(
        np.where(np.isfinite(found.threshold), found.threshold, np.nan)[:, 1:], spec.level
    )
    # A share of replicates without a threshold leaves that side of the interval open.
    lost = np.mean(~np.isfinite(found.threshold[:, 1:]), axis=1) > (1.0 - spec.level) / 2.0
    enough = (n >= spec.min_units) & (clusters >= spec.min_clusters)
    value = np.where(enough & np.isfinite(found.threshold[:, 0]), found.threshold[:, 0], np.nan)
    known = np.isfinite(value)
    low = np.where(known & ~lost, ends.low, np.nan)
    status = np.where(clusters < KEPT_CLUSTERS, Status.BOUNDARY.value, Status.OK.value)
    status = np.where(np.isfinite(found.threshold[:, 0]), status, Status.UNDEFINED.value)
    status = np.where(clusters < spec.min_clusters, Status.INSUFFICIENT_CLUSTERS.value, status)
    status = np.where(n < spec.min_units, Status.INSUFFICIENT_UNITS.value, status)
    columns: dict[str, Any] = {
        "model": [people.model] * len(n),
        "attribute": [name for name, _ in rows.names],
        "group": [group for _, group in rows.names],
        "people": n,
        people.rate: np.where(enough, found.positive_rate[:, 0], np.nan),
    }
    if people.false:
        columns[people.false] = np.where(enough, found.false_rate[:, 0], np.nan)
    columns |= {"threshold": value, "from": low, "to": np.where(known, ends.high, np.nan)}
    if people.false:
        there = np.where(known, found.false_there[:, 0], np.nan)
        columns[f"{people.false} there"] = there
    columns["status"] = status.tolist()
    schema = {"attribute": pl.String}
    return pl.DataFrame(columns, schema_overrides=schema).with_columns(
        pl.selectors.float().fill_nan(None)
    )


def _curves(people: People, members: pl.DataFrame, spec: Statistics) -> pl.DataFrame:
    """Measure both rates at fixed thresholds with the audit's own intervals."""
    parts, keys = [], ["model", "attribute", "group", "threshold"]
    for name, word, mark in ((people.rate, "", True), (people.false, "false ", False)):
        if not name:
            continue
        own = people.rows.filter(pl.col("mark") == mark)
        own = own.with_columns(model=pl.lit(people.model))
        metric = Metric(
            name=name, title=name, definition=name, direction="higher" if mark else "lower"
        )
        values = {t: pl.col("score") >= t for t in _THRESHOLDS}
        scores = scores_at(own, "tradeoffs", name, values)
        inside = members.join(own.select("unit_id"), on="unit_id", how="semi")
        measured = measure_again(scores, inside, "tradeoffs", metric, spec)
        names = {"value": name, "low": f"{word}from", "high": f"{word}to"}
        parts.append(measured.select(*keys, ROUNDED).rename(names))
    whole = parts[0]
    for other in parts[1:]:
        whole = whole.join(other, on=keys, how="left", nulls_equal=True, maintain_order="left")
    return whole.sort("model", "attribute", "group", "threshold", maintain_order=True)


def _claimed(
    own: pl.DataFrame, everyone: dict[str, Any], people: People, operating: float, words: Words
) -> dict[str, Any] | None:
    """Say of the group whose threshold lies furthest off where it lies."""
    far = own.drop_nulls("threshold").with_columns(off=(pl.col("threshold") - operating).abs())
    if own.height < 2 or far.is_empty() or everyone[people.rate] is None:
        return None
    row = far.sort("off", descending=True, maintain_order=True).row(0, named=True)
    ends = f"{row['from']:.3g} to {row['to']:.3g}" if row["from"] is not None else "not known"
    claim = (
        f"at the threshold {operating:g} the {lowered(people.rate)} is "
        f"{value_text(row[people.rate], 'fraction')} % for {row['group']} "
        f"({words.title(row['attribute'])}), {value_text(everyone[people.rate], 'fraction')} % for "
        f"everyone; for as much it needs {row['threshold']:.3g} ({ends})."
    )
    numbers = {
        "effect": row["threshold"] - operating,
        "n": row["people"],
        "status": row["status"],
        "low": None if row["from"] is None else row["from"] - operating,
        "high": None if row["to"] is None else row["to"] - operating,
        "reference": "hardt-2016",
        "metric": people.rate,
        "group_b": "everyone",
    }
    return finding(words, people.model, claim, numbers, (row["attribute"], row["group"]))
