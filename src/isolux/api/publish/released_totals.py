"""Totals that may be published together: no two of them differ by a few people.

A suppressed small count follows from any two totals with and without those people: "900 are in both
runs" in a note, and 896 in the table. So one of the two is dropped: of numbers in notes, the note;
of two metrics, the later one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import polars as pl

_NUMBER = re.compile(r"(?<![\w.,])(\d{1,3}(?:,\d{3})*|\d+)(?![\w%]|[.,]\d| %)")
_SHARE = re.compile(r"(?<![\w.,])(\d+(?:\.\d+)?) ?%")
_COUNT_COLUMNS = ("n_units", "n_clusters", "n_people")
_CELL_COLUMNS = ("attribute", "values", "label")
_PERCENT = 100.0
_MIN_COUNT_DIFFERENCE = 0.5  # people: smaller differences are rounding of shares


def differs_by_less_than_minimum(a: float, b: float, minimum: int) -> bool:
    """Return whether two totals differ by a count below the minimum.

    Examples
    --------
    >>> [differs_by_less_than_minimum(900, total, 10) for total in (896, 900, 890)]
    [True, False, False]
    """
    return _MIN_COUNT_DIFFERENCE <= abs(a - b) < minimum


class ReleasedTotals:
    """The numbers that a page has released: no later note may reveal a small count.

    Parameters
    ----------
    published_groups : polars.DataFrame
        The rows of ``group_metrics`` that are published.
    minimum : int
        The fewest people of whom the page tells.
    level : float
        Of the intervals, 0 to 1: "95 %" is not a share of people.
    """

    def __init__(self, published_groups: pl.DataFrame, minimum: int, level: float) -> None:
        self._minimum, self._level = minimum, _PERCENT * level
        counts = [name for name in _COUNT_COLUMNS if name in published_groups.columns]
        overall = published_groups.filter(pl.col("attribute").is_null())
        self._totals = _collect_numbers(overall.select(counts))
        self._released: set[float] = set()
        group_rows = published_groups.filter(pl.col("attribute").is_not_null())
        self._groups = {
            str(group): _collect_numbers(rows.select(counts))
            for (group,), rows in group_rows.group_by("group")
        }

    def select_unrevealing_notes(self, notes: Iterable[str]) -> list[str]:
        """Select the notes that reveal nobody, and remember their numbers."""
        selected_notes = []
        for note in notes:
            numbers = {float(n.replace(",", "")) for n in _NUMBER.findall(note)}
            if not self._reveals_few(note, numbers):
                selected_notes.append(note)
                self._released |= numbers
        return selected_notes

    def _reveals_few(self, note: str, numbers: set[float]) -> bool:
        if any(n < self._minimum for n in numbers):
            return True
        known_totals = self._totals | numbers  # totals of which a note may state a share
        for group, counts in self._groups.items():
            if re.search(rf"(?<!\w){re.escape(group)}(?!\w)", note):
                known_totals = known_totals | counts
        if any(
            differs_by_less_than_minimum(a, b, self._minimum)
            for a in numbers
            for b in known_totals | self._released
        ):
            return True
        shares = {float(share) for share in _SHARE.findall(note)} - {self._level}
        implied_counts = (
            (share * n / _PERCENT, float(n)) for share in shares for n in known_totals
        )
        # Few of them, or all but a few.
        return any(
            differs_by_less_than_minimum(implied_count, end, self._minimum)
            for implied_count, n in implied_counts
            for end in (0.0, n)
        )


def _collect_numbers(counts: pl.DataFrame) -> set[float]:
    return {float(n) for column in counts.iter_columns() for n in column.drop_nulls()}


def flag_nearly_equal_totals(
    person_counts: pl.DataFrame, minimum: int, means: Collection[str]
) -> pl.Series:
    """Flag rows of metrics whose counts differ by a few people from an earlier metric's."""
    key_columns = ["label", "metric", "threshold"]
    counts = [name for name in _COUNT_COLUMNS if name in person_counts.columns]
    released: dict[tuple[Any, ...], set[float]] = {}
    removed_keys: list[tuple[Any, ...]] = []
    compared_rows = person_counts.filter(
        pl.col("label").is_null() | pl.col("metric").is_in(list(means))
    )
    for key, rows in compared_rows.group_by(key_columns, maintain_order=True):
        metric_counts = [
            ((name, row["attribute"], *row["values"], "\0", row["label"]), float(row[name]))
            for row in rows.select(*_CELL_COLUMNS, *counts).to_dicts()
            for name in counts
            if row[name] is not None
        ]
        if any(
            differs_by_less_than_minimum(n, m, minimum)
            for cell, n in metric_counts
            for m in released.get(cell, ())
        ):
            removed_keys.append(key)
            continue
        for cell, n in metric_counts:
            released.setdefault(cell, set()).add(n)
    row_keys = person_counts.select(key_columns).iter_rows()
    return pl.Series([row in removed_keys for row in row_keys], dtype=pl.Boolean)


def replace_nearly_equal_totals(
    clusters: dict[str, Any], published_groups: pl.DataFrame, minimum: int
) -> dict[str, Any]:
    """Replace the page's totals by those of the overall rows, where they differ by few."""
    overall = published_groups.filter(pl.col("attribute").is_null() & pl.col("label").is_null())
    totals = dict(clusters)
    for name in ("n_units", "n_clusters"):
        counts: Sequence[int] = overall[name].drop_nulls().to_list()
        if any(
            differs_by_less_than_minimum(float(totals.get(name) or 0), n, minimum) for n in counts
        ):
            totals[name] = max(counts)
    return totals
