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

from isolux.groups.regrouping import judged_units, regroup
from isolux.vocabulary.containers import Run
from isolux.vocabulary.drawn import SAMPLE

if TYPE_CHECKING:
    from scipy.sparse import csr_array


FloatArray = npt.NDArray[np.float64]
_Cell = TypeVar("_Cell")
_NODES, _GAP = 100, 0.1  # how long a program is searched: not by the clock, which differs
_WHOLE = 1e-6
_LARGEST = 1_000  # unknown counts and sums of scores of a part: more would take hours
_STILL = 1e-6  # of a random solution's order 1: what moves less is taken for determined
_TURNS = 12  # programs of many counts at once, before those of single ones


@dataclass(slots=True)
class Ranges(Generic[_Cell]):
    """The counts that were seen to range widely enough.

    Parameters
    ----------
    width : int
        How far apart the ends of a hidden count's range have to be, in people.
    """

    width: int
    wide: set[_Cell] = field(default_factory=set)

    def narrow(
        self,
        counts: Mapping[_Cell, int],
        sums: Sequence[Mapping[_Cell, float]],
        unseen: Collection[_Cell],
        small: Collection[_Cell],
        totals: Sequence[Mapping[_Cell, float]] = (),
    ) -> list[_Cell]:
        """Name the small counts whose range is narrower than ``width``.

        Examples
        --------
        >>> counts = {"all": 43, "A": 3, "B": 8, "C": 32}
        >>> total = {"all": -1.0, "A": 1.0, "B": 1.0, "C": 1.0}
        >>> Ranges(10).narrow(counts, [total], {"A", "B"}, {"A"})
        []
        >>> Ranges(12).narrow(counts, [total], {"A", "B"}, {"A"})
        ['A']
        """
        found = []
        for part in _parts(sums, set(unseen)):
            cells = list(dict.fromkeys(c for s in part for c in s if c in unseen))
            asked = [c for c in cells if c in small and c not in self.wide]
            if asked and len(cells) * (1 + len(totals)) <= _LARGEST:
                program = _Program(counts, part, cells, totals)
                still = _still_narrow(program, cells, asked, self.width)
                self.wide.update(set(asked) - set(still))
                found += still
        return found


def determined(cells: Sequence[_Cell], sums: Sequence[Mapping[_Cell, float]]) -> list[_Cell]:
    """Name the cells that the sums determine: those in which no solution differs from another."""
    if not cells:
        return []
    from scipy.sparse.linalg import lsmr

    equations = _matrix(cells, sums)
    start = np.random.default_rng(0).normal(size=len(cells))
    ended = lsmr(equations, equations @ start, atol=1e-14, btol=1e-14, maxiter=20 * len(cells))
    moves = np.abs(start - ended[0])
    return [cell for cell, moved in zip(cells, moves, strict=True) if moved < _STILL]


def _matrix(cells: Sequence[_Cell], sums: Sequence[Mapping[_Cell, float]]) -> csr_array:
    """Lay out the factors of unseen cells: a row for each sum, a column for each cell."""
    from scipy.sparse import csr_array

    place = {cell: at for at, cell in enumerate(cells)}
    rows, columns, factors = [], [], []
    for row, total in enumerate(sums):
        for cell, factor in total.items():
            if cell in place:
                rows.append(row)
                columns.append(place[cell])
                factors.append(factor)
    shape = (len(sums), len(cells))
    return csr_array((factors, (rows, columns)), shape=shape, dtype=np.float64)


def _parts(
    sums: Sequence[Mapping[_Cell, float]], unseen: set[_Cell]
) -> Iterator[list[Mapping[_Cell, float]]]:
    """Part the sums into those that share no unseen cell, even through others."""
    holding: dict[_Cell, list[int]] = {}
    for at, total in enumerate(sums):
        for cell in unseen.intersection(total):
            holding.setdefault(cell, []).append(at)
    seen: set[int] = set()
    for first, total in enumerate(sums):
        if first in seen or not unseen.intersection(total):
            continue
        part, waiting = [], [first]
        seen.add(first)
        while waiting:
            at = waiting.pop()
            part.append(at)
            for cell in unseen.intersection(sums[at]):
                new = [other for other in holding[cell] if other not in seen]
                seen.update(new)
                waiting += new
        yield [sums[at] for at in sorted(part)]


class _Program(Generic[_Cell]):
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

        place = set(cells)
        self.truth = np.array([float(counts[cell]) for cell in cells])
        blocks, right = [], []
        for known in (counts, *totals):
            usable = [s for s in sums if all(c in place or c in known for c in s)]
            blocks.append(_matrix(cells, usable))
            shown = [{c: f for c, f in s.items() if c not in place} for s in usable]
            right += [-sum(f * known[c] for c, f in s.items()) for s in shown]
        self.constraints = [LinearConstraint(block_diag(blocks, format="csr"), right, right)]
        one = eye_array(len(cells), format="csr")
        for at in range(len(totals)):  # no sum of scores is above its count
            parts = [one, *(-one if k == at else 0.0 * one for k in range(len(totals)))]
            self.constraints.append(LinearConstraint(hstack(parts, format="csr"), 0.0, np.inf))
        self.most = np.full(len(cells) * (1 + len(totals)), float(max(counts.values())))
        self.whole = np.repeat([1, 0], [len(cells), len(cells) * len(totals)])

    def least(
        self, costs: FloatArray, lowest: FloatArray | None = None, most: FloatArray | None = None
    ) -> FloatArray | None:
        """Solve for the counts of least cost; None where no whole ones were found."""
        from scipy.optimize import Bounds, milp

        n = len(costs)
        low, high = np.zeros_like(self.most), self.most.copy()
        low[:n] = 0.0 if lowest is None else lowest
        high[:n] = high[:n] if most is None else most
        costs = np.append(costs, np.zeros(len(self.whole) - n))
        bounds = Bounds(low, high)
        for whole in (np.zeros_like(self.whole), self.whole):  # most often the first are whole
            done = milp(
                costs,
                integrality=whole,
                bounds=bounds,
                constraints=self.constraints,
                options={"node_limit": _NODES, "mip_rel_gap": _GAP},
            )
            if done.x is not None and np.abs(done.x[:n] - done.x[:n].round()).max() <= _WHOLE:
                found: FloatArray = done.x[:n].round()
                return found
        return None


def _still_narrow(
    program: _Program[_Cell], cells: Sequence[_Cell], asked: Sequence[_Cell], width: int
) -> list[_Cell]:
    low, high = program.truth.copy(), program.truth.copy()
    place = {cell: at for at, cell in enumerate(cells)}
    waiting = np.array([place[cell] for cell in asked])

    def solve(costs: FloatArray, *bounds: FloatArray | None) -> None:
        found = program.least(costs, *bounds)
        if found is not None:
            np.minimum(low, found, out=low)
            np.maximum(high, found, out=high)

    for turn in range(_TURNS):
        waiting = waiting[high[waiting] - low[waiting] < width]
        if not waiting.size:
            return []
        costs, most = np.zeros(len(cells)), program.most[: len(cells)].copy()
        if turn % 2 == 0:  # as many as can be are raised far enough, and none farther
            costs[waiting], most[waiting] = -1.0, low[waiting] + width
            solve(costs, None, most)
        else:
            costs[waiting] = 1.0
            lowest = np.zeros(len(cells))
            lowest[waiting] = np.maximum(high[waiting] - width, 0.0)
            solve(costs, lowest)
    narrow = []
    for cell in asked:
        at = place[cell]
        for sign in (-1.0, 1.0):
            if high[at] - low[at] < width:
                costs = np.zeros(len(cells))
                costs[at] = sign
                solve(costs)
        if high[at] - low[at] < width:
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


def with_people(run: Run) -> pl.DataFrame:
    """Count each row's people: ``group_metrics`` with ``n_people``, at most its clusters."""
    rows = run.group_metrics.with_columns(n_people=pl.min_horizontal("n_units", "n_clusters"))
    for who in _persons(run):
        scored = run.scores.filter(pl.col("value").is_not_null())
        told = scored.select(*_LINE, "unit_id").join(who, on="unit_id")
        plain = judged_units(run).join(who, on="unit_id")
        members = _members(run)
        people = pl.col("person").n_unique().cast(pl.Int64)
        of_line = pl.concat(
            _in_groups(line, members).group_by(*_LINE, *_GROUP).agg(by_line=people)
            for line in _lines(told)
        )
        of_group = _in_groups(plain, members).group_by(*_GROUP).agg(by_group=people)
        rows = rows.join(of_line, on=[*_LINE, *_GROUP], how="left", nulls_equal=True)
        rows = rows.join(of_group, on=_GROUP, how="left", nulls_equal=True)
        known = pl.coalesce("by_line", "by_group", pl.lit(0, pl.Int64))
        fewest = pl.min_horizontal("n_people", known)
        rows = rows.with_columns(n_people=fewest).drop("by_line", "by_group")
    return rows


def heaviest_shares(run: Run) -> pl.DataFrame:
    """Say how much of each group's weight one person has at most, of every measured mean."""
    weight = (
        run.evidence[SAMPLE]
        .select(pl.col("unit_id").cast(pl.String), _weight="weight")
        .unique("unit_id")
    )
    scored = run.scores.filter(pl.col("value").is_not_null()).select(
        *_LINE, pl.col("unit_id").cast(pl.String), _cluster="cluster_id"
    )
    names: list[str] = []
    for who in _persons(run):
        names.append(f"_person_{len(names)}")
        own = who.rename({"person": names[-1]}).with_columns(pl.col("unit_id").cast(pl.String))
        scored = scored.join(own, on="unit_id", how="left")
    names, members = names or ["_cluster"], _members(run)
    weighed = scored.join(weight, on="unit_id")
    return pl.concat(_heaviest(_in_groups(line, members), names) for line in _lines(weighed))


def _heaviest(told: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    """Say it of one line, whose units stand once for each of their groups."""
    line = [*_LINE, *_GROUP]
    whole = told.group_by(line).agg(_whole=pl.col("_weight").sum())
    for at, name in enumerate(names):
        nobody = pl.col("unit_id") if name == "_cluster" else pl.lit("\0")
        person = pl.col(name).fill_null(nobody)
        own = told.group_by(*line, person.alias(name)).agg(pl.col("_weight").sum())
        most = own.group_by(line).agg(pl.col("_weight").max().alias(f"_most_{at}"))
        whole = whole.join(most, on=line, nulls_equal=True)
    most_of_all = pl.max_horizontal([f"_most_{at}" for at in range(len(names))])
    return whole.select(*line, _heaviest=most_of_all / pl.col("_whole"))


def classes_of(run: Run) -> pl.DataFrame:
    """Count the people of each true class in each group, whether or not a metric prints them."""
    truths = [table for table in map(_truths, run.evidence.values()) if table is not None]
    if not truths:
        return pl.DataFrame(schema=_SCHEMA)
    own = pl.concat(truths).unique()
    counts = [pl.col("unit_id").n_unique().cast(pl.Int64).alias("n_units")]
    named = ["cluster"]
    for at, who in enumerate(_persons(run)):
        named.append(f"person_{at}")
        own = own.join(who.rename({"person": named[-1]}), on="unit_id", how="left")
    counts += [pl.col(name).drop_nulls().n_unique().alias(name) for name in named]
    inside = _in_groups(own, _members(run))
    found = inside.group_by("model", *_GROUP, "label").agg(counts)
    found = found.with_columns(n_people=pl.min_horizontal(*named).cast(pl.Int64)).drop(named)
    groups = inside.select(_GROUP).unique().join(own.select("model", "label").unique(), how="cross")
    found = groups.join(found, on=["model", *_GROUP, "label"], how="left", nulls_equal=True)
    whole = found.with_columns(pl.col("n_units", "n_people").fill_null(0))
    return whole.select(_SCHEMA.keys()).sort("model", "attribute", "label", "values")


def _truths(table: pl.DataFrame) -> pl.DataFrame | None:
    """Give the classes of each unit of a table of evidence: ``model, unit_id, cluster, label``."""
    names = [n for n in ("truth", "label") if n in table.columns]
    if not names or not {"model", "unit_id", "cluster_id"} <= set(table.columns):
        return None
    rows = table.filter(pl.col("reason").is_null()) if "reason" in table.columns else table
    if "kind" in table.columns:  # of detections, people and images: those who are to be found
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


def _persons(run: Run) -> Iterator[pl.DataFrame]:
    """Give each unit's person, ``unit_id, person``, by every attribute that is called so."""
    names = run.attributes["attribute"].unique(maintain_order=True).to_list()
    for name in [n for n in names if PERSON.fullmatch(n)]:
        rows = run.attributes.filter(pl.col("attribute") == name).drop_nulls("value")
        if rows.height:
            yield rows.select("unit_id", person="value").unique("unit_id")


def _members(run: Run) -> pl.DataFrame:
    """Put the run's units into its groups again: ``attribute, values, unit_id``."""
    units = judged_units(run)
    everyone = units.select(
        pl.lit(None, pl.String).alias("attribute"),
        pl.lit([], pl.List(pl.String)).alias("values"),
        "unit_id",
    )
    return pl.concat([everyone, regroup(run).frame.select("attribute", "values", "unit_id")])


def _lines(rows: pl.DataFrame) -> list[pl.DataFrame]:
    """Part rows by metric: a unit stands in each of its groups, and all metrics are many rows."""
    return rows.partition_by(_LINE) or [rows]


def _in_groups(units: pl.DataFrame, members: pl.DataFrame) -> pl.DataFrame:
    return units.join(members, on="unit_id")
