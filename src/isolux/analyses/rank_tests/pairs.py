"""All pairs of groups, tested: from a run's scores and attributes to one row a pair.

``scores`` becomes a table of vectors (one a metric, class and threshold) by units, sorted once;
every attribute is laid out once by cluster; ``stats.ranks`` does the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import polars as pl

from isolux.analyses._answers import answer_columns
from isolux.analyses._regrouping import groups_of
from isolux.statements.leading import MEASURE
from isolux.stats.design import IntArray
from isolux.stats.ranks import RankTests, cells_of, compare_groups, sort_scores
from isolux.stats.ranks.weighted import Weights, compare_weighted, weighted_median
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import IsoluxError
from isolux.vocabulary.spec import AuditSpec

_AT_ONCE = 64
"""Vectors compared at once: they hold a table of groups by groups each."""
_PART = "\x1f"
MIN_SUBJECTS = 10
"""Smallest group, in clusters with a score: the paper's."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """Score vectors by unit.

    Parameters
    ----------
    measures : polars.DataFrame
        The columns of ``MEASURE``; row v is vector v.
    values : [v, n] float
        NaN: that unit has no such score.
    units : polars.Series
        The n units.
    cluster : [n] int
        Each unit's cluster, from 0.
    drawn : Weights, optional
        Of a sample: medians, means and the clustered test are then weighted, within strata.
    """

    measures: pl.DataFrame
    values: FloatArray
    units: pl.Series
    cluster: IntArray
    drawn: Weights | None = None


@dataclass(frozen=True, slots=True)
class Grouped:
    """One attribute's groups: entry i puts unit ``unit[i]`` into group ``group[i]``."""

    attribute: str
    names: tuple[str, ...]
    unit: IntArray
    group: IntArray

    def units_of(self, name: str) -> IntArray:
        """Return the units of one group."""
        inside: IntArray = self.unit[self.group == self.names.index(name)]
        return inside


def ranked_scores(scores: pl.DataFrame) -> Ranked:
    """Lay out ``scores`` as vectors by units; rows without a value have none."""
    scores = scores.drop_nulls("value")
    units = scores["unit_id"].unique(maintain_order=True)
    measures = scores.select(MEASURE).unique(maintain_order=True).sort(MEASURE)
    rows = scores.join(
        measures.with_row_index("vector"), on=list(MEASURE), how="left", nulls_equal=True
    ).join(pl.DataFrame({"unit_id": units}).with_row_index("unit"), on="unit_id", how="left")
    values = np.full((measures.height, len(units)), np.nan)
    values[rows["vector"].to_numpy(), rows["unit"].to_numpy()] = rows["value"].to_numpy()
    of_unit = rows.group_by("unit").agg(pl.col("cluster_id").drop_nulls().first()).sort("unit")
    # A cluster may be called what a unit without one is called.
    owner = of_unit.select(
        pl.when(pl.col("cluster_id").is_null())
        .then(pl.format("unit\x1f{}", "unit"))
        .otherwise(pl.format("cluster\x1f{}", "cluster_id"))
    ).to_series()
    cluster: IntArray = owner.rank("dense").cast(pl.Int64).to_numpy() - 1
    return Ranked(measures, values, units, cluster)


def grouped_by(
    run: Run, spec: AuditSpec, ranked: Ranked, *, every: bool
) -> tuple[list[Grouped], list[str]]:
    """Put units into groups, by the run's settings; who is unknown is in none."""
    settings = spec.groups.model_copy(update={"unknown": "drop"})
    if not every:
        return _parted(groups_of(run, settings, ranked.units), ranked), []
    found: list[Grouped] = []
    notes: list[str] = []
    known = run.attributes["attribute"].unique().sort()
    said = [name for name in answer_columns(spec.predictions, known) if name not in settings.by]
    if said:
        notes.append(f"not ranked, for models said it of people: {', '.join(said)}")
    for name in known:
        if name in said:
            continue
        own = settings.model_copy(update={"by": tuple(dict.fromkeys((*settings.by, name)))})
        try:
            members = groups_of(run, own, ranked.units).filter(pl.col("attribute") == name)
        except IsoluxError as error:
            notes.append(f"{name} was not ranked: {str(error).splitlines()[0]}")
            continue
        found += _parted(members, ranked)
    crossed = [name for name in settings.by if "*" in name]
    if crossed:
        whole = groups_of(run, settings, ranked.units)
        found += _parted(whole.filter(pl.col("attribute").is_in(crossed)), ranked)
    return found, notes


def _parted(members: pl.DataFrame, ranked: Ranked) -> list[Grouped]:
    numbered = pl.DataFrame({"unit_id": ranked.units}).with_row_index("unit")
    rows = members.join(numbered, on="unit_id", how="inner", maintain_order="left").with_columns(
        key=pl.col("values").list.join(_PART)
    )
    found = []
    for (attribute,), own in rows.partition_by("attribute", as_dict=True).items():
        groups = own.select("key", "group").unique("key", maintain_order=True)
        coded = own.join(groups.select("key").with_row_index("code"), on="key", how="left")
        found.append(
            Grouped(
                str(attribute),
                tuple(groups["group"]),
                coded["unit"].cast(pl.Int64).to_numpy(),
                coded["code"].cast(pl.Int64).to_numpy(),
            )
        )
    return found


def rank_pairs(ranked: Ranked, attributes: Sequence[Grouped]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Test every pair of groups that are large enough."""
    pairs, small = [], []
    for start in range(0, len(ranked.values), _AT_ONCE):
        scores = sort_scores(ranked.values[start : start + _AT_ONCE])
        for place, own in enumerate(attributes):
            cells = cells_of(own.unit, own.group, ranked.cluster, len(own.names))
            tests = compare_groups(scores, cells)
            enough = (tests.clusters >= MIN_SUBJECTS) & (tests.n > 0)
            if ranked.drawn is not None:
                tests = _weighted(tests, enough, own, ranked, start)
            pairs.append(_rows(tests, enough, own, start, place))
            small.append(_sizes(tests, enough, own))
    measures = ranked.measures.with_columns(vector=pl.int_range(pl.len(), dtype=pl.Int64))
    found = pl.concat(pairs).join(measures, on="vector", how="left", maintain_order="left")
    sizes = pl.concat(small).group_by("attribute", "group", maintain_order=True)
    below = sizes.agg(pl.max("n"), pl.max("clusters"), pl.any("enough")).filter(~pl.col("enough"))
    p = ("p_naive", "p_clustered")
    return found.sort("vector", "place", maintain_order=True).with_columns(
        pl.col(p).fill_nan(None)
    ), below.drop("enough")


def _weighted(
    tests: RankTests, enough: np.ndarray, own: Grouped, ranked: Ranked, start: int
) -> RankTests:
    """Weigh what is said of groups that are large enough; the naive test stays as published."""
    assert ranked.drawn is not None  # noqa: S101 - asked before
    median, mean = tests.median.copy(), tests.mean.copy()
    superiority, p = tests.superiority.copy(), tests.p_clustered.copy()
    for v in range(len(tests.n)):
        value = ranked.values[start + v]
        held = {}
        for g in np.flatnonzero(enough[v]):
            units = own.unit[own.group == g]
            held[int(g)] = units = units[~np.isnan(value[units])]
            weight = ranked.drawn.weight[units]
            median[v, g] = weighted_median(value[units], weight)
            mean[v, g] = np.average(value[units], weights=weight)
        for a, b in combinations(held, 2):
            found = compare_weighted(value, (held[a], held[b]), ranked.drawn)
            superiority[v, a, b], superiority[v, b, a] = found.superiority, 1 - found.superiority
            p[v, a, b] = p[v, b, a] = found.p
    return replace(tests, median=median, mean=mean, superiority=superiority, p_clustered=p)


def _rows(
    tests: RankTests, enough: np.ndarray, own: Grouped, start: int, place: int
) -> pl.DataFrame:
    k = len(own.names)
    upper = np.triu(np.ones((k, k), dtype=bool), 1)
    v, a, b = np.nonzero(enough[:, :, None] & enough[:, None, :] & upper)
    names = pl.Series(own.names, dtype=pl.String)
    sides = {}
    for side, at in (("a", a), ("b", b)):
        sides[f"group_{side}"] = names.gather(at)
        for name in ("n", "clusters", "median", "mean"):
            sides[f"{name}_{side}"] = pl.Series(getattr(tests, name)[v, at])
    return pl.DataFrame(
        {
            "vector": (v + start).astype(np.int64),
            "place": np.full(len(v), place, dtype=np.int64),
            "attribute": pl.Series([own.attribute] * len(v), dtype=pl.String),
            **sides,
            "superiority": tests.superiority[v, a, b],
            "p_naive": tests.p_naive[v, a, b],
            "p_clustered": tests.p_clustered[v, a, b],
            "shared": tests.shared[v, a, b],
        }
    )


def _sizes(tests: RankTests, enough: np.ndarray, own: Grouped) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "attribute": pl.Series([own.attribute] * len(own.names), dtype=pl.String),
            "group": pl.Series(own.names, dtype=pl.String),
            "n": tests.n.max(axis=0),
            "clusters": tests.clusters.max(axis=0),
            "enough": enough.any(axis=0),
        }
    )
