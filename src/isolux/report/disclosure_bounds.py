"""How narrowly published sums bound a hidden count, and which ones they bound too narrowly.

Counts are whole and never negative. With the sums that are published they leave each hidden count
a range. So do rates: those who were judged rightly are a part of each count, and sum as counts do.
An integer program finds the ends (Fischetti and Salazar-González 2000, Mathematical
Programming 88). Every solution found widens the ranges of all counts at once, so that few programs
are solved; what is hidden later can only widen them more.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from scipy.sparse import csr_array


FloatArray = npt.NDArray[np.float64]
_Cell = TypeVar("_Cell")
_MAX_NODES, _MIP_GAP = 100, 0.1  # how long a program is searched: not by the clock, which differs
_INTEGER_TOLERANCE = 1e-6
_MAX_UNKNOWNS = 1_000  # unknown counts and sums of scores of a part: more would take hours
_DETERMINED_TOLERANCE = (
    1e-6  # of a random solution's order 1: what moves less is taken for determined
)
_N_JOINT_PROGRAMS = 12  # programs of many counts at once, before those of single ones


@dataclass(slots=True)
class DisclosureBounds(Generic[_Cell]):
    """The counts that were seen to range widely enough.

    Parameters
    ----------
    width : int
        How far apart the ends of a hidden count's range have to be, in people.
    """

    width: int
    wide: set[_Cell] = field(default_factory=set)

    def find_narrow_range_cells(
        self,
        counts: Mapping[_Cell, int],
        sums: Sequence[Mapping[_Cell, float]],
        hidden_cells: Collection[_Cell],
        small_cells: Collection[_Cell],
        score_totals: Sequence[Mapping[_Cell, float]] = (),
    ) -> list[_Cell]:
        """Name the small counts whose range is narrower than ``width``.

        Examples
        --------
        >>> counts = {"all": 43, "A": 3, "B": 8, "C": 32}
        >>> total = {"all": -1.0, "A": 1.0, "B": 1.0, "C": 1.0}
        >>> DisclosureBounds(10).find_narrow_range_cells(counts, [total], {"A", "B"}, {"A"})
        []
        >>> DisclosureBounds(12).find_narrow_range_cells(counts, [total], {"A", "B"}, {"A"})
        ['A']
        """
        narrow_cells = []
        for component in _split_connected_sums(sums, set(hidden_cells)):
            cells = list(dict.fromkeys(c for s in component for c in s if c in hidden_cells))
            pending_cells = [c for c in cells if c in small_cells and c not in self.wide]
            if pending_cells and len(cells) * (1 + len(score_totals)) <= _MAX_UNKNOWNS:
                program = _CountProgram(counts, component, cells, score_totals)
                still_narrow_cells = _find_cells_still_narrow(
                    program, cells, pending_cells, self.width
                )
                self.wide.update(set(pending_cells) - set(still_narrow_cells))
                narrow_cells += still_narrow_cells
        return narrow_cells


def find_determined_cells(
    cells: Sequence[_Cell], sums: Sequence[Mapping[_Cell, float]]
) -> list[_Cell]:
    """Name the cells that the sums determine: those in which no solution differs from another.

    Examples
    --------
    >>> total = {"all": -1.0, "A": 1.0, "B": 1.0}
    >>> find_determined_cells(["A", "B"], [total]), find_determined_cells(["B"], [total])
    ([], ['B'])
    """
    core_sums, eliminations = _eliminate_free_cells(cells, sums)
    core_cells = list(dict.fromkeys(c for s in core_sums for c in s))
    determined_cells = set(_find_cells_equal_in_all_solutions(core_cells, core_sums))
    for cell, remaining_cells in reversed(eliminations):
        if determined_cells.issuperset(remaining_cells):
            determined_cells.add(cell)
    return [cell for cell in cells if cell in determined_cells]


def _eliminate_free_cells(
    cells: Sequence[_Cell], sums: Sequence[Mapping[_Cell, float]]
) -> tuple[list[dict[_Cell, float]], list[tuple[_Cell, list[_Cell]]]]:
    """Take out sums that hold an unknown of no other sum, and so tell nothing of their other terms.

    Return the remaining sums of unknowns, and each such unknown with the others of its sum: it is
    determined where all of those are.
    """
    unknown_cells = set(cells)
    open_sums = [{c: f for c, f in s.items() if c in unknown_cells} for s in sums]
    sums_by_cell: dict[_Cell, set[int]] = {}
    for index, total in enumerate(open_sums):
        for cell in total:
            sums_by_cell.setdefault(cell, set()).add(index)
    pending = [cell for cell, indices in sums_by_cell.items() if len(indices) == 1]
    eliminations = []
    while pending:
        cell = pending.pop()
        if not sums_by_cell[cell]:
            continue
        index = sums_by_cell[cell].pop()
        remaining_cells = [other for other in open_sums[index] if other != cell]
        eliminations.append((cell, remaining_cells))
        open_sums[index] = {}
        for other in remaining_cells:
            sums_by_cell[other].discard(index)
            if len(sums_by_cell[other]) == 1:
                pending.append(other)
    return [total for total in open_sums if total], eliminations


def _find_cells_equal_in_all_solutions(
    cells: Sequence[_Cell], sums: Sequence[Mapping[_Cell, float]]
) -> list[_Cell]:
    """Name the cells in which a random solution does not differ from the shortest one."""
    if not cells:
        return []
    from scipy.sparse.linalg import lsmr

    equations = _build_coefficient_matrix(cells, sums)
    start = np.random.default_rng(0).normal(size=len(cells))
    lsmr_result = lsmr(
        equations, equations @ start, atol=1e-14, btol=1e-14, maxiter=20 * len(cells)
    )
    changes = np.abs(start - lsmr_result[0])
    return [
        cell for cell, change in zip(cells, changes, strict=True) if change < _DETERMINED_TOLERANCE
    ]


def _build_coefficient_matrix(
    cells: Sequence[_Cell], sums: Sequence[Mapping[_Cell, float]]
) -> csr_array:
    """Lay out the factors of unseen cells: a row for each sum, a column for each cell."""
    from scipy.sparse import csr_array

    column_by_cell = {cell: column for column, cell in enumerate(cells)}
    rows, columns, factors = [], [], []
    for row, total in enumerate(sums):
        for cell, factor in total.items():
            if cell in column_by_cell:
                rows.append(row)
                columns.append(column_by_cell[cell])
                factors.append(factor)
    shape = (len(sums), len(cells))
    return csr_array((factors, (rows, columns)), shape=shape, dtype=np.float64)


def _split_connected_sums(
    sums: Sequence[Mapping[_Cell, float]], hidden_cells: set[_Cell]
) -> Iterator[list[Mapping[_Cell, float]]]:
    """Split the sums into connected components: sums that share no hidden cell, even indirectly."""
    sum_indices_by_cell: dict[_Cell, list[int]] = {}
    for index, total in enumerate(sums):
        for cell in hidden_cells.intersection(total):
            sum_indices_by_cell.setdefault(cell, []).append(index)
    visited: set[int] = set()
    for first, total in enumerate(sums):
        if first in visited or not hidden_cells.intersection(total):
            continue
        component, pending_indices = [], [first]
        visited.add(first)
        while pending_indices:
            index = pending_indices.pop()
            component.append(index)
            for cell in hidden_cells.intersection(sums[index]):
                new = [
                    neighbour for neighbour in sum_indices_by_cell[cell] if neighbour not in visited
                ]
                visited.update(new)
                pending_indices += new
        yield [sums[index] for index in sorted(component)]


class _CountProgram(Generic[_Cell]):
    """The counts that agree with what is shown: whole, at least 0, at most all that are counted."""

    def __init__(
        self,
        counts: Mapping[_Cell, int],
        sums: Sequence[Mapping[_Cell, float]],
        cells: Sequence[_Cell],
        totals: Sequence[Mapping[_Cell, float]],
    ) -> None:
        from scipy.optimize import LinearConstraint
        from scipy.sparse import block_diag, eye_array, hstack

        hidden_cells = set(cells)
        self.truth = np.array([float(counts[cell]) for cell in cells])
        blocks, right = [], []
        for known_values in (counts, *totals):
            usable = [s for s in sums if all(c in hidden_cells or c in known_values for c in s)]
            blocks.append(_build_coefficient_matrix(cells, usable))
            known_terms = [{c: f for c, f in s.items() if c not in hidden_cells} for s in usable]
            right += [-sum(f * known_values[c] for c, f in s.items()) for s in known_terms]
        self.constraints = [LinearConstraint(block_diag(blocks, format="csr"), right, right)]
        identity = eye_array(len(cells), format="csr")
        for index in range(len(totals)):  # no sum of scores is above its count
            row_blocks = [
                identity,
                *(-identity if k == index else 0.0 * identity for k in range(len(totals))),
            ]
            self.constraints.append(LinearConstraint(hstack(row_blocks, format="csr"), 0.0, np.inf))
        self.most = np.full(len(cells) * (1 + len(totals)), float(max(counts.values())))
        self.whole = np.repeat([1, 0], [len(cells), len(cells) * len(totals)])

    def minimise_cost(
        self,
        costs: FloatArray,
        lower_bounds: FloatArray | None = None,
        upper_bounds: FloatArray | None = None,
    ) -> FloatArray | None:
        """Solve for the counts of least cost; None where no whole ones were found."""
        from scipy.optimize import Bounds, milp

        n = len(costs)
        low, high = np.zeros_like(self.most), self.most.copy()
        low[:n] = 0.0 if lower_bounds is None else lower_bounds
        high[:n] = high[:n] if upper_bounds is None else upper_bounds
        costs = np.append(costs, np.zeros(len(self.whole) - n))
        bounds = Bounds(low, high)
        for integrality in (
            np.zeros_like(self.whole),
            self.whole,
        ):  # most often the first are whole
            solution = milp(
                costs,
                integrality=integrality,
                bounds=bounds,
                constraints=self.constraints,
                options={"node_limit": _MAX_NODES, "mip_rel_gap": _MIP_GAP},
            )
            if (
                solution.x is not None
                and np.abs(solution.x[:n] - solution.x[:n].round()).max() <= _INTEGER_TOLERANCE
            ):
                counts: FloatArray = solution.x[:n].round()
                return counts
        return None


def _find_cells_still_narrow(
    program: _CountProgram[_Cell],
    cells: Sequence[_Cell],
    pending_cells: Sequence[_Cell],
    width: int,
) -> list[_Cell]:
    low, high = program.truth.copy(), program.truth.copy()
    index_by_cell = {cell: index for index, cell in enumerate(cells)}
    pending_indices = np.array([index_by_cell[cell] for cell in pending_cells])

    def widen_ranges(costs: FloatArray, *bounds: FloatArray | None) -> None:
        counts = program.minimise_cost(costs, *bounds)
        if counts is not None:
            np.minimum(low, counts, out=low)
            np.maximum(high, counts, out=high)

    for turn in range(_N_JOINT_PROGRAMS):
        pending_indices = pending_indices[high[pending_indices] - low[pending_indices] < width]
        if not pending_indices.size:
            return []
        costs, upper_bounds = np.zeros(len(cells)), program.most[: len(cells)].copy()
        if turn % 2 == 0:  # as many as can be are raised far enough, and none farther
            costs[pending_indices], upper_bounds[pending_indices] = (
                -1.0,
                low[pending_indices] + width,
            )
            widen_ranges(costs, None, upper_bounds)
        else:
            costs[pending_indices] = 1.0
            lower_bounds = np.zeros(len(cells))
            lower_bounds[pending_indices] = np.maximum(high[pending_indices] - width, 0.0)
            widen_ranges(costs, lower_bounds)
    narrow = []
    for cell in pending_cells:
        index = index_by_cell[cell]
        for sign in (-1.0, 1.0):
            if high[index] - low[index] < width:
                costs = np.zeros(len(cells))
                costs[index] = sign
                widen_ranges(costs)
        if high[index] - low[index] < width:
            narrow.append(cell)
    return narrow
