"""Lay out rows of the table ``disparities``, and stack them once at the end.

A frame per attribute, metric and kind would cost more than the statistics in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.groups.estimates import Estimates
from isolux.stats.intervals import Interval
from isolux.stats.statistic import FloatArray, IntArray
from isolux.vocabulary.tables import DISPARITIES, Status

_CONSTANT = (
    "model",
    "task",
    "metric",
    "label",
    "threshold",
    "attribute",
    "kind",
    "method",
    "test",
    "family",
)
_NUMBERS = (
    "value",
    "low",
    "high",
    "simultaneous_low",
    "simultaneous_high",
    "p_value",
    "p_adjusted",
    "detectable",
)
_COUNTS = ("n_units_a", "n_clusters_a", "n_units_b", "n_clusters_b")
_NONE = -1  # a row's second group, where it has none


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows: what they have in common, and what each has (NaN and −1: null)."""

    common: dict[str, Any]
    numbers: dict[str, FloatArray]
    counts: dict[str, IntArray]
    texts: dict[str, Sequence[str | None]]

    def __len__(self) -> int:
        return len(self.numbers["value"])


def rows_of(
    estimates: Estimates,
    j: int,
    attribute: str | None,
    kind: str,
    *,
    groups: tuple[IntArray | None, IntArray | None],
    value: FloatArray,
    low: FloatArray | None = None,
    high: FloatArray | None = None,
    simultaneous: Interval | None = None,
    method: str | None = None,
    p_value: FloatArray | None = None,
    p_adjusted: FloatArray | None = None,
    test: str | None = None,
    family: str | None = None,
    detectable: FloatArray | None = None,
    status: Sequence[str],
    reason: Sequence[str | None],
) -> Rows:
    """Lay out rows of measure ``j``; ``groups`` are rows of the estimates, if there are any."""
    measure = estimates.measures[j]
    n = len(value)
    at_once = (None, None) if simultaneous is None else (simultaneous.low, simultaneous.high)
    given = (value, low, high, *at_once, p_value, p_adjusted, detectable)
    empty = np.full(n, np.nan)
    said = (
        measure.model,
        measure.task,
        measure.metric,
        measure.label,
        measure.threshold,
        attribute,
        kind,
        method,
        test,
        family,
    )
    counts, texts = {}, {}
    names = np.array([group.name for group in estimates.groups], dtype=object)
    for side, rows in zip("ab", groups, strict=True):
        none = rows is None
        at = np.zeros(n, dtype=np.int64) if rows is None else rows
        texts[f"group_{side}"] = [None] * n if none else names[at].tolist()
        for what, table in (("units", estimates.n_units), ("clusters", estimates.n_clusters)):
            counts[f"n_{what}_{side}"] = np.full(n, _NONE) if none else table[at, j]
    return Rows(
        dict(zip(_CONSTANT, said, strict=True)),
        {k: empty if v is None else v for k, v in zip(_NUMBERS, given, strict=True)},
        counts,
        {**texts, "status": status, "reason": reason},
    )


def by_attribute(estimates: Estimates, groups: IntArray) -> Iterator[tuple[str | None, IntArray]]:
    """Give each attribute of some groups, and where its own stand among them."""
    names = [estimates.groups[g].attribute for g in groups]
    for attribute in dict.fromkeys(names):
        yield attribute, np.array([i for i, name in enumerate(names) if name == attribute])


def table_of(parts: Sequence[Rows]) -> pl.DataFrame:
    """Stack rows into a frame with the columns of ``disparities``, empty if there are none."""
    if not parts:
        return DISPARITIES.empty()
    sizes = [len(part) for part in parts]
    columns: dict[str, pl.Series] = {}
    for name in _CONSTANT:
        dtype = DISPARITIES.schema[name]
        each = pl.Series([part.common[name] for part in parts], dtype=dtype)
        columns[name] = each.gather(np.repeat(np.arange(len(parts)), sizes))
    for name in _NUMBERS:
        flat = np.concatenate([part.numbers[name] for part in parts])
        columns[name] = pl.Series(np.where(np.isfinite(flat), flat, np.nan)).fill_nan(None)
    for name in _COUNTS:
        flat = np.concatenate([part.counts[name] for part in parts])
        count = pl.Series(flat.astype(np.int64))
        columns[name] = count.set(count == _NONE, None)
    for name in ("group_a", "group_b", "status", "reason"):
        texts = [text for part in parts for text in part.texts[name]]
        columns[name] = pl.Series(texts, dtype=pl.String)
    return DISPARITIES.conform(pl.DataFrame(columns))


def doubts_of(estimates: Estimates, j: int) -> npt.NDArray[np.object_]:
    """Return why each group's interval is in doubt, without its numbers; None where it is not."""
    edge = estimates.status[:, j] == Status.BOUNDARY.value
    why = np.full(len(edge), None, dtype=object)
    for g in np.flatnonzero(edge):
        why[g] = str(estimates.reason[g, j]).partition(": ")[0].replace(" in it", " in a group")
    return why


def either(*doubts: npt.NDArray[np.object_]) -> npt.NDArray[np.object_]:
    """Return the first doubt of each place, None where there is none."""
    found = doubts[0]
    for more in doubts[1:]:
        found = np.where(found.astype(bool), found, more)
    return found
