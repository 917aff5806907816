"""Which counts may be published: none of a small group, and none that gives one away.

Primary suppression hides every count below a minimum. The others can give it back: everyone less
the other groups, a group less its intersections, a class less the other classes. Those sums are
equations over the hidden counts; complementary suppression hides more, the smallest first, until no
small count follows from what is published. The method is that of statistical offices' cell
suppression (Hundepool et al. 2012, Statistical Disclosure Control, chapter 4), solved greedily.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import polars as pl

from isolux.core.spec import split_intersection
from isolux.report.disclosure_bounds import DisclosureBounds, find_determined_cells

Cell = tuple[tuple[str, ...], tuple[str, ...], str | None]
"""Attributes in alphabetical order, a value of each, and a class; of no attribute: everyone."""

_LINE = ("model", "task", "metric", "threshold")
_COUNTS = ("n_units", "n_clusters", "n_people")
_STILL = 1e-6  # sums of scores that differ by less are the same
_REST_PREFIX = "\0"  # begins the class of those who are left over: no file holds such a class


@dataclass(frozen=True, slots=True)
class _CellSum:
    """``parent`` is the sum of ``children``, and of ``remainder`` who are in none of them."""

    parent: Cell
    children: tuple[Cell, ...]
    remainder: Cell | None

    @property
    def factors(self) -> dict[Cell, float]:
        """The sum as an equation that comes to nought."""
        return {cell: -1.0 if cell == self.parent else 1.0 for cell in self.terms}

    @property
    def terms(self) -> tuple[Cell, ...]:
        return (self.parent, *self.children, *(() if self.remainder is None else (self.remainder,)))


@dataclass(slots=True)
class _CountTable:
    """One line's counts and the sums among them; ``unpublished`` are never printed anywhere."""

    counts: dict[Cell, int]
    unpublished: set[Cell] = field(default_factory=set)
    sums: list[_CellSum] = field(default_factory=list)
    small: set[Cell] = field(default_factory=set)
    totals: list[dict[Cell, float]] = field(default_factory=list)
    ranges: DisclosureBounds[Cell] = field(default_factory=lambda: DisclosureBounds(0))


def choose_suppressed_cells(
    group_metrics: pl.DataFrame,
    min_people: int,
    class_counts: pl.DataFrame | None = None,
    revealing_cells: Collection[Cell] = (),
) -> set[Cell]:
    """Choose what must not be published.

    Examples
    --------
    >>> table = pl.DataFrame({"model": "m", "task": "t", "metric": "a", "threshold": 0.5,
    ...     "label": [None] * 4, "attribute": [None, "race", "race", "race"],
    ...     "values": [[], ["A"], ["B"], ["C"]], "n_units": [103, 3, 40, 60]},
    ...     schema_overrides={"label": pl.String})
    >>> sorted(values for _, values, _ in choose_suppressed_cells(table, 10))
    [('A',), ('B',)]
    """
    tables = _build_count_tables(group_metrics, class_counts)
    hidden = {c for t in tables for c, n in t.counts.items() if 0 <= n < min_people}
    hidden |= {c for t in tables for c in t.counts if c in revealing_cells}
    for table in tables:
        table.small, table.ranges = hidden & table.counts.keys(), DisclosureBounds(min_people)
    while True:
        n_hidden_before = len(hidden)
        hidden |= _find_classes_of_hidden_groups(tables, hidden)
        for table in tables:
            _hide_terms_of_disclosive_sums(table, hidden, min_people)
        if len(hidden) > n_hidden_before or any(
            _hide_more_if_determined(t, hidden) for t in tables
        ):
            continue
        if not any(_hide_more_if_ranges_narrow(t, hidden) for t in tables):
            return hidden - {cell for table in tables for cell in table.unpublished}


def _find_classes_of_hidden_groups(tables: Iterable[_CountTable], hidden: set[Cell]) -> set[Cell]:
    """Hide the classes of a hidden group: they sum to it."""
    return {
        cell
        for table in tables
        for cell in table.counts
        if cell[2] is not None and cell[0] and (cell[0], cell[1], None) in hidden
    }


def _hide_terms_of_disclosive_sums(table: _CountTable, hidden: set[Cell], min_people: int) -> None:
    """Hide the smallest others until no sum holds a small count alone, or nearly so."""
    for total in table.sums:
        hidden_terms = [
            cell for cell in total.terms if _is_hidden_or_unpublished(cell, table, hidden)
        ]
        if not table.small.intersection(hidden_terms):
            continue
        shown_terms = _list_hideable_terms(total, table, hidden)
        while shown_terms and _is_sum_disclosive(total, hidden_terms, table, hidden, min_people):
            hidden_terms.append(shown_terms.pop(0))
            hidden.add(hidden_terms[-1])


def _is_sum_disclosive(
    total: _CellSum,
    hidden_terms: list[Cell],
    table: _CountTable,
    hidden: set[Cell],
    min_people: int,
) -> bool:
    if len(hidden_terms) < 2:
        return True
    open_parent = not _is_hidden_or_unpublished(total.parent, table, hidden)
    return open_parent and sum(table.counts[cell] for cell in hidden_terms) < min_people


def _hide_more_if_determined(table: _CountTable, hidden: set[Cell]) -> bool:
    """Hide more where small counts still follow from several sums together."""
    sums = [
        s for s in table.sums if any(_is_hidden_or_unpublished(c, table, hidden) for c in s.terms)
    ]
    cells = list(
        dict.fromkeys(
            c for s in sums for c in s.terms if _is_hidden_or_unpublished(c, table, hidden)
        )
    )
    determined_cells = set(find_determined_cells(cells, [s.factors for s in sums]))
    return _hide_smallest_related_counts(
        [c for c in determined_cells if c in table.small], determined_cells, sums, table, hidden
    )


def _hide_more_if_ranges_narrow(table: _CountTable, hidden: set[Cell]) -> bool:
    """Hide more where the sums leave a small count too narrow a range."""
    hidden_terms = {
        c for s in table.sums for c in s.terms if _is_hidden_or_unpublished(c, table, hidden)
    }
    narrow_cells = table.ranges.find_narrow_range_cells(
        table.counts,
        [s.factors for s in table.sums],
        hidden_terms,
        table.small & hidden_terms,
        table.totals,
    )
    sums = [s for s in table.sums if hidden_terms.intersection(s.terms)]
    return _hide_smallest_related_counts(narrow_cells, set(narrow_cells), sums, table, hidden)


def _hide_smallest_related_counts(
    small_cells: Collection[Cell],
    determined_cells: set[Cell],
    sums: list[_CellSum],
    table: _CountTable,
    hidden: set[Cell],
) -> bool:
    """Hide the smallest shown count beside each; tell whether there was one."""
    if not small_cells:
        return False
    sums_by_cell: dict[Cell, list[_CellSum]] = {}
    for total in sums:
        for cell in total.terms:
            sums_by_cell.setdefault(cell, []).append(total)
    newly_hidden: set[Cell] = set()
    for cell in small_cells:
        sum_cells = [c for total in sums_by_cell[cell] for c in total.terms]
        if newly_hidden.intersection(sum_cells):
            continue  # what was hidden for another may do for this one: look again first
        # The smallest shown count of a sum that holds it, or of those that helped to solve it.
        related_cells = [
            c
            for solved_cell in determined_cells
            for total in sums_by_cell[solved_cell]
            for c in total.terms
        ]
        candidates = _list_hideable_cells(sum_cells, table, hidden) or _list_hideable_cells(
            related_cells, table, hidden
        )
        candidates = candidates or _list_hideable_cells(
            [c for total in sums for c in total.terms], table, hidden
        )
        newly_hidden.update(candidates[:1])
    hidden |= newly_hidden
    return bool(newly_hidden)


def _list_hideable_terms(total: _CellSum, table: _CountTable, hidden: set[Cell]) -> list[Cell]:
    """List what a sum shows and may hide, its total last."""
    return sorted(
        _list_hideable_cells(total.terms, table, hidden),
        key=lambda c: (c == total.parent, table.counts[c]),
    )


def _list_hideable_cells(
    cells: Iterable[Cell], table: _CountTable, hidden: set[Cell]
) -> list[Cell]:
    """List the cells that are shown and may be hidden, the smallest first; never everyone's."""
    open_cells = [
        c for c in cells if not _is_hidden_or_unpublished(c, table, hidden) and (c[0] or c[2])
    ]
    return sorted(open_cells, key=lambda c: (table.counts[c], str(c)))


def _is_hidden_or_unpublished(cell: Cell, table: _CountTable, hidden: set[Cell]) -> bool:
    return cell in hidden or cell in table.unpublished


def _build_count_tables(
    group_metrics: pl.DataFrame, class_counts: pl.DataFrame | None
) -> list[_CountTable]:
    """Make one table of counts of each line and kind of count; those with equal counts are one."""
    columns = [name for name in _LINE if name in group_metrics.columns]
    group_rows = group_metrics.filter(pl.col("label").is_null())
    row_sets = [rows for _, rows in group_metrics.group_by(columns, maintain_order=True)]
    row_sets = [rows for rows in row_sets if not _has_class_counting_whole_groups(rows, group_rows)]
    if class_counts is not None:
        row_sets += [rows for _, rows in class_counts.group_by("model", maintain_order=True)]
    tables_by_counts: dict[frozenset[tuple[Cell, int]], _CountTable] = {}
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
                tables_by_counts[count_key] = _add_marginal_sums(_CountTable(dict(counts)))
            if count_name == "n_units" and "value" in rows.columns:
                _append_score_totals(tables_by_counts[count_key], rows, group_rows)
    return list(tables_by_counts.values())


def _append_score_totals(table: _CountTable, rows: pl.DataFrame, group_rows: pl.DataFrame) -> None:
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


def _has_additive_totals(totals: Mapping[Cell, float], table: _CountTable) -> bool:
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


def _add_marginal_sums(table: _CountTable) -> _CountTable:
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
    table: _CountTable, attributes: tuple[str, ...], summed_index: int
) -> None:
    children_by_parent: dict[Cell, list[Cell]] = {}
    for cell in [c for c in table.counts if c[0] == attributes and not _is_remainder(c)]:
        values = cell[1][:summed_index] + cell[1][summed_index + 1 :]
        parent = (attributes[:summed_index] + attributes[summed_index + 1 :], values, cell[2])
        children_by_parent.setdefault(parent, []).append(cell)
    for parent, children in children_by_parent.items():
        _append_sum(table, parent, children)


def _append_sum(
    table: _CountTable, parent: Cell, children: list[Cell], *, has_other_classes: bool = False
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
    table.sums.append(_CellSum(parent, tuple(children), remainder))


def _is_remainder(cell: Cell) -> bool:
    return cell[2] is not None and cell[2].startswith(_REST_PREFIX)


def flag_publishable_rows(
    group_metrics: pl.DataFrame,
    hidden: Mapping[Cell, object] | set[Cell],
    class_counts: pl.DataFrame | None = None,
    metrics_with_class_counts: Collection[str] = (),
) -> pl.Series:
    """Tell for each row of ``group_metrics`` whether it may be published."""
    labels: list[str] = []
    known_cells: set[Cell] = set()
    if class_counts is not None:
        labels = class_counts["label"].unique().to_list()
        class_rows = class_counts.select("attribute", "values", "label").iter_rows()
        known_cells = {to_count_cell(*row) for row in class_rows}

    def is_publishable(metric: str, cell: Cell) -> bool:
        class_cells: list[Cell] = []
        if cell[2] is None and metric in metrics_with_class_counts:
            class_cells = [(*cell[:2], label) for label in labels]
        return cell not in hidden and all(p in known_cells and p not in hidden for p in class_cells)

    row_cells = group_metrics.select("metric", "attribute", "values", "label").iter_rows()
    return pl.Series(
        [is_publishable(row[0], to_count_cell(*row[1:])) for row in row_cells], dtype=pl.Boolean
    )
