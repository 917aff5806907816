"""How narrowly published sums bound a hidden count, and which ones they bound too narrowly.

Counts are whole and never negative. With the sums that are published they leave each hidden count
a range. So do rates: those who were judged rightly are a part of each count, and sum as counts do.
An integer program finds the ends (Fischetti and Salazar-González 2000, Mathematical
Programming 88). Every solution found widens the ranges of all counts at once, so that few programs
are solved; what is hidden later can only widen them more.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.containers import Run
from isolux.core.survey_sample import SAMPLE
from isolux.groups.run_membership import list_scored_units, rebuild_membership

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
    """Name the cells that the sums determine: those in which no solution differs from another."""
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


PERSON = re.compile(r"(?i)(subject|person|participant|identity)([_ ]?ids?)?")
"""Names of attributes that say who a person is."""
_SCHEMA = {
    "model": pl.String(),
    "attribute": pl.String(),
    "values": pl.List(pl.String()),
    "label": pl.String(),
    "n_units": pl.Int64(),
    "n_people": pl.Int64(),
}
_GROUP = ["attribute", "values"]
_LINE = ["model", "metric", "label", "threshold"]


def count_people_per_metric_row(run: Run) -> pl.DataFrame:
    """Count each row's people: ``group_metrics`` with ``n_people``, at most its clusters."""
    rows = run.group_metrics.with_columns(n_people=pl.min_horizontal("n_units", "n_clusters"))
    for person_by_unit in _yield_person_id_tables(run):
        scored = run.scores.filter(pl.col("value").is_not_null())
        line_people = scored.select(*_LINE, "unit_id").join(person_by_unit, on="unit_id")
        group_people = list_scored_units(run).join(person_by_unit, on="unit_id")
        members = _read_group_members(run)
        people = pl.col("person").n_unique().cast(pl.Int64)
        of_line = pl.concat(
            _join_group_members(line, members).group_by(*_LINE, *_GROUP).agg(by_line=people)
            for line in _partition_by_line(line_people)
        )
        of_group = _join_group_members(group_people, members).group_by(*_GROUP).agg(by_group=people)
        rows = rows.join(of_line, on=[*_LINE, *_GROUP], how="left", nulls_equal=True)
        rows = rows.join(of_group, on=_GROUP, how="left", nulls_equal=True)
        n_known_people = pl.coalesce("by_line", "by_group", pl.lit(0, pl.Int64))
        min_people = pl.min_horizontal("n_people", n_known_people)
        rows = rows.with_columns(n_people=min_people).drop("by_line", "by_group")
    return rows


def compute_max_person_weight_shares(run: Run) -> pl.DataFrame:
    """Say how much of each group's weight one person has at most, of every measured mean."""
    weight = (
        run.evidence[SAMPLE]
        .select(pl.col("unit_id").cast(pl.String), _weight="weight")
        .unique("unit_id")
    )
    scored = run.scores.filter(pl.col("value").is_not_null()).select(
        *_LINE, pl.col("unit_id").cast(pl.String), _cluster="cluster_id"
    )
    person_columns: list[str] = []
    for person_by_unit in _yield_person_id_tables(run):
        person_columns.append(f"_person_{len(person_columns)}")
        persons = person_by_unit.rename({"person": person_columns[-1]}).with_columns(
            pl.col("unit_id").cast(pl.String)
        )
        scored = scored.join(persons, on="unit_id", how="left")
    person_columns, members = person_columns or ["_cluster"], _read_group_members(run)
    weighted_scores = scored.join(weight, on="unit_id")
    return pl.concat(
        _compute_max_weight_shares(_join_group_members(line, members), person_columns)
        for line in _partition_by_line(weighted_scores)
    )


def _compute_max_weight_shares(
    weighted_scores: pl.DataFrame, person_columns: list[str]
) -> pl.DataFrame:
    """Compute the largest weight share of one person in each group of one line."""
    line = [*_LINE, *_GROUP]
    group_weights = weighted_scores.group_by(line).agg(_whole=pl.col("_weight").sum())
    for index, name in enumerate(person_columns):
        fallback = pl.col("unit_id") if name == "_cluster" else pl.lit("\0")
        person = pl.col(name).fill_null(fallback)
        person_weights = weighted_scores.group_by(*line, person.alias(name)).agg(
            pl.col("_weight").sum()
        )
        max_weights = person_weights.group_by(line).agg(
            pl.col("_weight").max().alias(f"_most_{index}")
        )
        group_weights = group_weights.join(max_weights, on=line, nulls_equal=True)
    most_of_all = pl.max_horizontal([f"_most_{index}" for index in range(len(person_columns))])
    return group_weights.select(*line, _heaviest=most_of_all / pl.col("_whole"))


def count_people_by_true_class(run: Run) -> pl.DataFrame:
    """Count the people of each true class in each group, whether or not a metric prints them."""
    truth_tables = [
        table for table in map(_read_true_classes, run.evidence.values()) if table is not None
    ]
    if not truth_tables:
        return pl.DataFrame(schema=_SCHEMA)
    truth_rows = pl.concat(truth_tables).unique()
    counts = [pl.col("unit_id").n_unique().cast(pl.Int64).alias("n_units")]
    count_columns = ["cluster"]
    for index, person_by_unit in enumerate(_yield_person_id_tables(run)):
        count_columns.append(f"person_{index}")
        truth_rows = truth_rows.join(
            person_by_unit.rename({"person": count_columns[-1]}), on="unit_id", how="left"
        )
    counts += [pl.col(name).drop_nulls().n_unique().alias(name) for name in count_columns]
    group_truth_rows = _join_group_members(truth_rows, _read_group_members(run))
    class_counts = group_truth_rows.group_by("model", *_GROUP, "label").agg(counts)
    class_counts = class_counts.with_columns(
        n_people=pl.min_horizontal(*count_columns).cast(pl.Int64)
    ).drop(count_columns)
    groups = (
        group_truth_rows.select(_GROUP)
        .unique()
        .join(truth_rows.select("model", "label").unique(), how="cross")
    )
    class_counts = groups.join(
        class_counts, on=["model", *_GROUP, "label"], how="left", nulls_equal=True
    )
    complete_counts = class_counts.with_columns(pl.col("n_units", "n_people").fill_null(0))
    return complete_counts.select(_SCHEMA.keys()).sort("model", "attribute", "label", "values")


def _read_true_classes(evidence_table: pl.DataFrame) -> pl.DataFrame | None:
    """Read the true classes of a table of evidence: ``model, unit_id, cluster, label``."""
    names = [n for n in ("truth", "label") if n in evidence_table.columns]
    if not names or not {"model", "unit_id", "cluster_id"} <= set(evidence_table.columns):
        return None
    rows = (
        evidence_table.filter(pl.col("reason").is_null())
        if "reason" in evidence_table.columns
        else evidence_table
    )
    if (
        "kind" in evidence_table.columns
    ):  # of detections, people and images: those who are to be found
        rows = rows.filter(pl.col("kind") == "person")
    if isinstance(rows.schema[names[0]], pl.List):
        rows = rows.explode(names[0])
    cluster = pl.col("cluster_id").fill_null(pl.col("unit_id"))
    return rows.select(
        pl.col("model").cast(pl.String),
        "unit_id",
        cluster=cluster,
        label=pl.col(names[0]).cast(pl.String),
    ).drop_nulls()


def _yield_person_id_tables(run: Run) -> Iterator[pl.DataFrame]:
    """Yield ``unit_id, person`` for every attribute whose name identifies people (``PERSON``)."""
    names = run.attributes["attribute"].unique(maintain_order=True).to_list()
    for name in [n for n in names if PERSON.fullmatch(n)]:
        rows = run.attributes.filter(pl.col("attribute") == name).drop_nulls("value")
        if rows.height:
            yield rows.select("unit_id", person="value").unique("unit_id")


def _read_group_members(run: Run) -> pl.DataFrame:
    """Recompute group membership of the run's units: ``attribute, values, unit_id``."""
    units = list_scored_units(run)
    overall_members = units.select(
        pl.lit(None, pl.String).alias("attribute"),
        pl.lit([], pl.List(pl.String)).alias("values"),
        "unit_id",
    )
    return pl.concat(
        [overall_members, rebuild_membership(run).frame.select("attribute", "values", "unit_id")]
    )


def _partition_by_line(rows: pl.DataFrame) -> list[pl.DataFrame]:
    """Split rows by line, so that the join with groups stays small in memory."""
    return rows.partition_by(_LINE) or [rows]


def _join_group_members(unit_rows: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    return unit_rows.join(members, on="unit_id")
