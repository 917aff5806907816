"""Counts of people by group and class, and the sums that hold among them.

Everyone is the sum of the groups of an attribute, a group of its intersections, and of its classes.
People who are in none of them, such as those of unknown value, are a remainder: a cell of its own,
which is printed nowhere. ``suppression`` reads these sums as what a reader could solve.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from isolux.core.spec import split_intersection

Cell = tuple[tuple[str, ...], tuple[str, ...], str | None]
"""Attributes in alphabetical order, a value of each, and a class; of no attribute: everyone."""

_LINE = ("model", "task", "metric", "threshold")
_COUNTS = ("n_units", "n_clusters", "n_people")
_STILL = 1e-6  # sums of scores that differ by less are the same
_REST_PREFIX = "\0"  # begins the class of those who are left over: no file holds such a class


@dataclass(frozen=True, slots=True)
class CellSum:
    """``parent`` is the sum of all other ``terms``; it is the first of them."""

    terms: tuple[Cell, ...]

    @property
    def parent(self) -> Cell:
        """The total."""
        return self.terms[0]

    @property
    def factors(self) -> dict[Cell, float]:
        """The sum as an equation that comes to nought."""
        return {cell: -1.0 if cell == self.parent else 1.0 for cell in self.terms}


@dataclass(slots=True)
class CountTable:
    """One line's counts and the sums among them; ``unpublished`` are never printed anywhere.

    ``totals`` are sums of scores by cell, of the metrics whose sums are those of counts.
    """

    counts: dict[Cell, int]
    unpublished: set[Cell] = field(default_factory=set)
    sums: list[CellSum] = field(default_factory=list)
    totals: list[dict[Cell, float]] = field(default_factory=list)


def build_count_tables(
    group_metrics: pl.DataFrame, class_counts: pl.DataFrame | None
) -> list[CountTable]:
    """Make one table of counts of each line and kind of count; those with equal counts are one."""
    columns = [name for name in _LINE if name in group_metrics.columns]
    group_rows = group_metrics.filter(pl.col("label").is_null())
    row_sets = [rows for _, rows in group_metrics.group_by(columns, maintain_order=True)]
    row_sets = [rows for rows in row_sets if not _has_class_counting_whole_groups(rows, group_rows)]
    if class_counts is not None:
        row_sets += [rows for _, rows in class_counts.group_by("model", maintain_order=True)]
    tables_by_counts: dict[frozenset[tuple[Cell, int]], CountTable] = {}
    for count_name in [name for name in _COUNTS if name in group_metrics.columns]:
        groups = _read_counts_by_cell(
            group_rows, count_name
        )  # of any metric: a class's people are some of its group's
        for rows in row_sets:
            counted_column = count_name if count_name in rows.columns else "n_people"
            counts = {
                **groups,
                **_read_counts_by_cell(
                    rows, counted_column if counted_column in rows.columns else "n_units"
                ),
            }
            count_key = frozenset(counts.items())
            if count_key not in tables_by_counts:
                tables_by_counts[count_key] = _add_marginal_sums(CountTable(dict(counts)))
            if count_name == "n_units" and "value" in rows.columns:
                _append_score_totals(tables_by_counts[count_key], rows, group_rows)
    return list(tables_by_counts.values())


def _append_score_totals(table: CountTable, rows: pl.DataFrame, group_rows: pl.DataFrame) -> None:
    """Add the sums of scores by cell, of metrics whose sums are those of counts."""
    line_totals = _compute_score_totals(rows)
    group_totals = [
        _compute_score_totals(metric_rows)
        for _, metric_rows in group_rows.group_by(*_LINE, maintain_order=True)
    ]
    for totals in ({**line_totals, **extra_totals} for extra_totals in (*group_totals, {})):
        if totals and totals not in table.totals and _has_additive_totals(totals, table):
            table.totals.append(totals)


def _compute_score_totals(rows: pl.DataFrame) -> dict[Cell, float]:
    value_rows = rows.drop_nulls("value").select("attribute", "values", "label", "n_units", "value")
    return {
        to_count_cell(a, v, c): float(n or 0) * mean for a, v, c, n, mean in value_rows.iter_rows()
    }


def _has_additive_totals(totals: Mapping[Cell, float], table: CountTable) -> bool:
    """Return whether totals add up like counts, as those of a mean of scores from 0 to 1 do."""
    if any(not -_STILL <= n <= table.counts.get(c, 0) + _STILL for c, n in totals.items()):
        return False
    was_tested = False
    for total in table.sums:
        unknown_cells = [cell for cell in total.terms if cell not in totals]
        over = sum(f * totals[c] for c, f in total.factors.items() if c in totals)
        max_remainder = sum(table.counts[cell] for cell in unknown_cells)
        if total.parent in totals and not (
            -max_remainder - _STILL <= over <= _STILL * len(total.terms)
        ):
            return False
        was_tested |= total.parent in totals and not unknown_cells
    return was_tested


def _has_class_counting_whole_groups(rows: pl.DataFrame, group_rows: pl.DataFrame) -> bool:
    """Return whether a line names a class but counts whole groups, as selection rates do."""
    class_rows = rows.filter(pl.col("label").is_not_null())
    if class_rows.is_empty() or class_rows["label"].n_unique() > 1:
        return False
    groups = _read_counts_by_cell(group_rows, "n_units")
    return all(
        groups.get((*c[:2], None)) == n
        for c, n in _read_counts_by_cell(class_rows, "n_units").items()
    )


def _read_counts_by_cell(rows: pl.DataFrame, count_column: str) -> dict[Cell, int]:
    counts: dict[Cell, int] = {}
    cell_rows = rows.select("attribute", "values", "label", count_column).iter_rows()
    for attribute, values, label, n in cell_rows:
        cell = to_count_cell(attribute, values, label)
        counts[cell] = max(counts.get(cell, 0), int(n or 0))
    return counts


def to_count_cell(attribute: str | None, values: Iterable[str | None], label: str | None) -> Cell:
    """Name the cell of a row of ``group_metrics``.

    Examples
    --------
    >>> to_count_cell("tone*sex", ["a", "f"], None)
    (('sex', 'tone'), ('f', 'a'), None)
    """
    if attribute is None:
        return (), (), label
    names = split_intersection(attribute)
    value_texts = [str(text) for text in values]
    if len(names) != len(value_texts):  # an attribute with a star in its own name
        return (attribute,), (" × ".join(value_texts),), label
    ordered = sorted(zip(names, value_texts, strict=True))
    return tuple(name for name, _ in ordered), tuple(text for _, text in ordered), label


def _add_marginal_sums(table: CountTable) -> CountTable:
    """Add the sums: over the values of one attribute, and over classes; with cells not printed."""
    sets = {cell[0] for cell in table.counts}
    pending = sorted(sets, key=len, reverse=True)
    while pending:
        names = pending.pop(0)
        for left_out in range(len(names)):
            parent_names = names[:left_out] + names[left_out + 1 :]
            if parent_names not in sets:
                sets.add(parent_names)
                pending = sorted([*pending, parent_names], key=len, reverse=True)
            _add_sums_over_attribute(table, names, left_out)
    by_group: dict[Cell, list[Cell]] = {}
    for cell in [c for c in table.counts if c[2] is not None and not _is_remainder(c)]:
        by_group.setdefault((cell[0], cell[1], None), []).append(cell)
    # Where some are of another class, no one knows of a group that none is: 0 is a count too.
    has_other_classes = any(
        sum(table.counts[child] for child in children) < table.counts.get(parent, 0)
        for parent, children in by_group.items()
    )
    for parent, children in by_group.items():
        _append_sum(table, parent, children, has_other_classes=has_other_classes)
        for child in children:  # who is of another class: some metrics count those
            _append_sum(table, parent, [child], has_other_classes=True)
    return table


def _add_sums_over_attribute(
    table: CountTable, attributes: tuple[str, ...], summed_index: int
) -> None:
    children_by_parent: dict[Cell, list[Cell]] = {}
    for cell in [c for c in table.counts if c[0] == attributes and not _is_remainder(c)]:
        values = cell[1][:summed_index] + cell[1][summed_index + 1 :]
        parent = (attributes[:summed_index] + attributes[summed_index + 1 :], values, cell[2])
        children_by_parent.setdefault(parent, []).append(cell)
    for parent, children in children_by_parent.items():
        _append_sum(table, parent, children)


def _append_sum(
    table: CountTable, parent: Cell, children: list[Cell], *, has_other_classes: bool = False
) -> None:
    """Add a sum over cells; ``has_other_classes``: a remainder of 0 is also a count to protect."""
    children_total = sum(table.counts[cell] for cell in children)
    if parent not in table.counts:  # not printed, but a sum that several others share
        table.counts[parent] = children_total
        table.unpublished.add(parent)
    over = table.counts[parent] - children_total
    if over < 0:
        return  # people with several values: their groups sum to no one's count
    remainder: Cell | None = None
    if (
        over or has_other_classes
    ):  # people of unknown value are in no group: they are one that is not printed
        remainder = (
            *parent[:2],
            f"{_REST_PREFIX}{children if len(children) == 1 else children[0][0]}{parent}",
        )
        table.counts[remainder] = over
        table.unpublished.add(remainder)
    rest = () if remainder is None else (remainder,)
    table.sums.append(CellSum((parent, *children, *rest)))


def _is_remainder(cell: Cell) -> bool:
    return cell[2] is not None and cell[2].startswith(_REST_PREFIX)
