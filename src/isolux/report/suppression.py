"""Which counts may be published: none of a small group, and none that gives one away.

Primary suppression hides every count below a minimum. The others can give it back: everyone less
the other groups, a group less its intersections, a class less the other classes. Those sums are
equations over the hidden counts; complementary suppression hides more, the smallest first, until no
small count follows from what is published. The method is that of statistical offices' cell
suppression (Hundepool et al. 2012, Statistical Disclosure Control, chapter 4), solved greedily.
Only sums whose terms have changed since are looked at again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from isolux.core.progress import report_step
from isolux.report.count_tables import (
    Cell,
    CellSum,
    CountTable,
    build_count_tables,
    to_count_cell,
)
from isolux.report.disclosure_bounds import (
    DisclosureBounds,
    find_determined_cells,
)

_MAX_SINGLE_ROUNDS = 8  # in each of which one count is hidden: small tables need no more


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
    report_step("choosing the counts to hide")
    tables = build_count_tables(group_metrics, class_counts)
    small = {c for t in tables for c, n in t.counts.items() if 0 <= n < min_people}
    small |= {c for t in tables for c in t.counts if c in revealing_cells}
    suppression = _Suppression(min_people)
    suppression.tables = [_TableState(table, small, suppression) for table in tables]
    suppression.hide(small)
    while (
        suppression.hide_classes_of_hidden_groups()
        or suppression.hide_terms_of_disclosive_sums()
        or any(t.hide_more_if_determined() for t in suppression.tables)
        or any(t.hide_more_if_ranges_narrow() for t in suppression.tables)
    ):
        pass
    return suppression.hidden - {cell for table in tables for cell in table.unpublished}


@dataclass(slots=True)
class _Suppression:
    """The cells that are hidden so far, in all tables."""

    min_people: int
    tables: list[_TableState] = field(default_factory=list)
    hidden: set[Cell] = field(default_factory=set)
    hidden_groups: list[Cell] = field(default_factory=list)

    def hide(self, cells: Iterable[Cell]) -> bool:
        """Hide cells, and note which sums they are part of; tell whether any was shown."""
        new_cells = [cell for cell in cells if cell not in self.hidden]
        self.hidden.update(new_cells)
        self.hidden_groups += [cell for cell in new_cells if cell[0] and cell[2] is None]
        for table in self.tables:
            table.unseen_cells.update(new_cells)
            for cell in new_cells:
                changed_sums = table.sums_by_cell.get(cell, ())
                table.unchecked_sums.update(changed_sums)
                table.unsolved_sums.update(changed_sums)
        return bool(new_cells)

    def hide_classes_of_hidden_groups(self) -> bool:
        """Hide the classes of a hidden group: they sum to it."""
        groups, self.hidden_groups = self.hidden_groups, []
        return self.hide(
            [c for g in groups for table in self.tables for c in table.classes_by_group.get(g, ())]
        )

    def hide_terms_of_disclosive_sums(self) -> bool:
        """Hide more in each table whose sums changed."""
        n_hidden_before = len(self.hidden)
        for table in self.tables:
            table.hide_terms_of_disclosive_sums()
        return len(self.hidden) > n_hidden_before


class _TableState:
    """One table's sums by cell, and those that may have become disclosive."""

    def __init__(self, table: CountTable, small: set[Cell], suppression: _Suppression) -> None:
        self.table = table
        self.suppression = suppression
        self.small = small & table.counts.keys()
        self.unseen_cells = set(table.unpublished)  # and those that are hidden
        self.ranges: DisclosureBounds[Cell] = DisclosureBounds(suppression.min_people)
        self.n_related_rounds = 0
        self.unchecked_sums = set(range(len(table.sums)))
        self.unsolved_sums = set(range(len(table.sums)))
        self.equations = [total.factors for total in table.sums]
        self.sums_by_cell: dict[Cell, list[int]] = {}
        for index, total in enumerate(table.sums):
            for cell in total.terms:
                self.sums_by_cell.setdefault(cell, []).append(index)
        self.classes_by_group: dict[Cell, list[Cell]] = {}
        for cell in table.counts:
            if cell[0] and cell[2] is not None:
                self.classes_by_group.setdefault((*cell[:2], None), []).append(cell)

    def hide_terms_of_disclosive_sums(self) -> None:
        """Hide the smallest others until no sum holds a small count alone, or nearly so."""
        for index, total in enumerate(self.table.sums):
            if index not in self.unchecked_sums:
                continue
            self.unchecked_sums.discard(index)
            hidden_terms = [cell for cell in total.terms if cell in self.unseen_cells]
            if not self.small.intersection(hidden_terms):
                continue
            shown_terms = self.list_hideable_cells(total.terms)
            shown_terms.sort(key=total.parent.__eq__)  # the total last
            while shown_terms and self.is_sum_disclosive(total, hidden_terms):
                hidden_terms.append(shown_terms.pop(0))
                self.suppression.hide(hidden_terms[-1:])

    def is_sum_disclosive(self, total: CellSum, hidden_terms: Sequence[Cell]) -> bool:
        """Return whether a sum holds one hidden count, or several that are few together."""
        if len(hidden_terms) < 2:
            return True
        n_hidden = sum(self.table.counts[cell] for cell in hidden_terms)
        return total.parent not in self.unseen_cells and n_hidden < self.suppression.min_people

    def hide_more_if_determined(self) -> bool:
        """Hide more where small counts still follow from several sums together."""
        newly_hidden: set[Cell] = set()
        visited: set[int] = set()
        for seed in sorted(self.unsolved_sums):
            if seed in visited:
                continue
            component = self._list_connected_sums(seed, visited)
            sums = [self.table.sums[index] for index in component]
            cells = list(dict.fromkeys(c for s in sums for c in s.terms if c in self.unseen_cells))
            determined_cells = find_determined_cells(cells, [self.equations[i] for i in component])
            small_cells = [c for c in determined_cells if c in self.small]
            if small_cells:
                newly_hidden |= self._choose_cells_beside(small_cells, determined_cells)
            else:
                self.unsolved_sums.difference_update(component)
        return self.suppression.hide(newly_hidden)

    def hide_more_if_ranges_narrow(self) -> bool:
        """Hide more where the sums leave a small count too narrow a range."""
        sums = self.table.sums
        hidden_terms = {c for s in sums for c in s.terms if c in self.unseen_cells}
        narrow_cells = self.ranges.find_narrow_range_cells(
            self.table.counts,
            self.equations,
            hidden_terms,
            self.small & hidden_terms,
            self.table.totals,
        )
        return self.suppression.hide(self._choose_cells_beside(narrow_cells, narrow_cells))

    def _choose_cells_beside(
        self, small_cells: Sequence[Cell], solved_cells: Sequence[Cell]
    ) -> set[Cell]:
        """Choose the smallest shown count beside each."""
        newly_hidden: set[Cell] = set()
        for cell in small_cells:
            sum_cells = self._list_cells_of_sums([cell])
            if newly_hidden.intersection(sum_cells):
                continue  # what was hidden for another may do for this one: look again first
            if hideable_cells := self.list_hideable_cells(sum_cells):
                newly_hidden.add(hideable_cells[0])
            else:
                newly_hidden.update(self._choose_related_cells(solved_cells))
        return newly_hidden

    def _choose_related_cells(self, solved_cells: Sequence[Cell]) -> list[Cell]:
        """Choose the smallest shown counts of the sums that helped to solve one, or of any."""
        hideable_cells = self.list_hideable_cells(
            self._list_cells_of_sums(solved_cells)
        ) or self.list_hideable_cells(self._list_open_cells())
        # Large tables need hundreds, and each round solves all sums anew: so take more and more.
        self.n_related_rounds += 1
        return hideable_cells[: max(1, self.n_related_rounds - _MAX_SINGLE_ROUNDS)]

    def _list_open_cells(self) -> list[Cell]:
        """List the terms of all sums that hold a hidden cell."""
        sums = [s for s in self.table.sums if not self.unseen_cells.isdisjoint(s.terms)]
        return [cell for total in sums for cell in total.terms]

    def _list_cells_of_sums(self, cells: Iterable[Cell]) -> list[Cell]:
        indices = {index for cell in cells for index in self.sums_by_cell[cell]}
        return [cell for index in indices for cell in self.table.sums[index].terms]

    def _list_connected_sums(self, seed: int, visited: set[int]) -> list[int]:
        """List the sums that share hidden cells with one, even indirectly, and mark them."""
        component, pending = [], [seed]
        visited.add(seed)
        visited_cells: set[Cell] = set()
        while pending:
            component.append(index := pending.pop())
            for cell in self.unseen_cells.intersection(self.table.sums[index].terms):
                if cell in visited_cells:
                    continue
                visited_cells.add(cell)
                new = [i for i in self.sums_by_cell[cell] if i not in visited]
                visited.update(new)
                pending += new
        return sorted(component)

    def list_hideable_cells(self, cells: Iterable[Cell]) -> list[Cell]:
        """List the cells that are shown and may be hidden, the smallest first; never everyone's."""
        open_cells = {c for c in cells if c not in self.unseen_cells and (c[0] or c[2])}
        return sorted(open_cells, key=lambda c: (self.table.counts[c], str(c)))


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
