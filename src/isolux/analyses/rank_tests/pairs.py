"""Rank tests of all pairs of groups: from a run's scores and attributes to one row a pair.

``scores`` becomes a matrix of vectors (one a metric, class and threshold) by units, sorted once;
every attribute is grouped once by cluster; ``stats.ranks`` computes the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import polars as pl

from isolux.analyses._model_columns import find_prediction_columns
from isolux.analyses._regrouping import build_membership_table
from isolux.core.containers import Run
from isolux.core.errors import IsoluxError
from isolux.core.spec import AuditSpec
from isolux.statements.leading import MEASURE_COLUMNS
from isolux.stats.cluster_sums import IntArray
from isolux.stats.ranks import (
    RankTests,
    index_groups_by_cluster,
    rank_test_all_group_pairs,
    sort_score_vectors,
)
from isolux.stats.ranks.weighted import RankWeights, weighted_median, weighted_rank_test_two_groups
from isolux.stats.statistic import FloatArray

_VECTORS_PER_BATCH = 64
"""Vectors compared in one batch: each needs a table of groups by groups."""
_SEPARATOR = "\x1f"
MIN_SUBJECTS = 10
"""Smallest group, in clusters with a score: the paper's."""


@dataclass(frozen=True, slots=True)
class ScoreVectors:
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
    survey_weights : RankWeights, optional
        Survey weights: medians, means and the clustered test are then weighted, within strata.
    """

    measures: pl.DataFrame
    values: FloatArray
    units: pl.Series
    cluster: IntArray
    survey_weights: RankWeights | None = None


@dataclass(frozen=True, slots=True)
class AttributeGroups:
    """One attribute's groups: entry i puts unit ``unit[i]`` into group ``group[i]``."""

    attribute: str
    group_names: tuple[str, ...]
    unit: IntArray
    group: IntArray

    def get_units(self, name: str) -> IntArray:
        """Return the units of one group."""
        units: IntArray = self.unit[self.group == self.group_names.index(name)]
        return units


def build_score_vectors(scores: pl.DataFrame) -> ScoreVectors:
    """Build score vectors by units; NaN where a unit has no value."""
    scores = scores.drop_nulls("value")
    units = scores["unit_id"].unique(maintain_order=True)
    measures = scores.select(MEASURE_COLUMNS).unique(maintain_order=True).sort(MEASURE_COLUMNS)
    rows = scores.join(
        measures.with_row_index("vector"), on=list(MEASURE_COLUMNS), how="left", nulls_equal=True
    ).join(pl.DataFrame({"unit_id": units}).with_row_index("unit"), on="unit_id", how="left")
    values = np.full((measures.height, len(units)), np.nan)
    values[rows["vector"].to_numpy(), rows["unit"].to_numpy()] = rows["value"].to_numpy()
    cluster_by_unit = (
        rows.group_by("unit").agg(pl.col("cluster_id").drop_nulls().first()).sort("unit")
    )
    # Prefixes keep names of clusters and of units without a cluster distinct.
    cluster_name = cluster_by_unit.select(
        pl.when(pl.col("cluster_id").is_null())
        .then(pl.format("unit\x1f{}", "unit"))
        .otherwise(pl.format("cluster\x1f{}", "cluster_id"))
    ).to_series()
    cluster: IntArray = cluster_name.rank("dense").cast(pl.Int64).to_numpy() - 1
    return ScoreVectors(measures, values, units, cluster)


def build_known_attribute_groups(
    run: Run, spec: AuditSpec, score_vectors: ScoreVectors, *, is_every: bool
) -> tuple[list[AttributeGroups], list[str]]:
    """Build every attribute's groups by the run's settings, without unknown values."""
    settings = spec.groups.model_copy(update={"unknown": "drop"})
    if not is_every:
        return _split_membership_by_attribute(
            build_membership_table(run, settings, score_vectors.units), score_vectors
        ), []
    groups: list[AttributeGroups] = []
    notes: list[str] = []
    attributes = run.attributes["attribute"].unique().sort()
    predictions = [
        name
        for name in find_prediction_columns(spec.predictions, attributes)
        if name not in settings.by
    ]
    if predictions:
        notes.append(f"not ranked, for models said it of people: {', '.join(predictions)}")
    for name in attributes:
        if name in predictions:
            continue
        attribute_settings = settings.model_copy(
            update={"by": tuple(dict.fromkeys((*settings.by, name)))}
        )
        try:
            members = build_membership_table(run, attribute_settings, score_vectors.units).filter(
                attribute=name
            )
        except IsoluxError as error:
            notes.append(f"{name} was not ranked: {str(error).splitlines()[0]}")
            continue
        groups += _split_membership_by_attribute(members, score_vectors)
    crossed = [name for name in settings.by if "*" in name]
    if crossed:
        members_crossed = build_membership_table(run, settings, score_vectors.units)
        groups += _split_membership_by_attribute(
            members_crossed.filter(pl.col("attribute").is_in(crossed)), score_vectors
        )
    return groups, notes


def _split_membership_by_attribute(
    members: pl.DataFrame, score_vectors: ScoreVectors
) -> list[AttributeGroups]:
    unit_index = pl.DataFrame({"unit_id": score_vectors.units}).with_row_index("unit")
    rows = members.join(unit_index, on="unit_id", how="inner", maintain_order="left").with_columns(
        key=pl.col("values").list.join(_SEPARATOR)
    )
    attribute_groups = []
    for (attribute,), attribute_rows in rows.partition_by("attribute", as_dict=True).items():
        groups = attribute_rows.select("key", "group").unique("key", maintain_order=True)
        coded_rows = attribute_rows.join(
            groups.select("key").with_row_index("code"), on="key", how="left"
        )
        attribute_groups.append(
            AttributeGroups(
                str(attribute),
                tuple(groups["group"]),
                coded_rows["unit"].cast(pl.Int64).to_numpy(),
                coded_rows["code"].cast(pl.Int64).to_numpy(),
            )
        )
    return attribute_groups


def run_pair_tests_and_list_small_groups(
    score_vectors: ScoreVectors, attributes: Sequence[AttributeGroups]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Test every pair of groups that are large enough."""
    pairs, small = [], []
    for start in range(0, len(score_vectors.values), _VECTORS_PER_BATCH):
        scores = sort_score_vectors(score_vectors.values[start : start + _VECTORS_PER_BATCH])
        for position, groups in enumerate(attributes):
            cells = index_groups_by_cluster(
                groups.unit, groups.group, score_vectors.cluster, len(groups.group_names)
            )
            tests = rank_test_all_group_pairs(scores, cells)
            is_large_enough = (tests.clusters >= MIN_SUBJECTS) & (tests.n > 0)
            if score_vectors.survey_weights is not None:
                tests = _replace_with_survey_weighted_tests(
                    tests, is_large_enough, groups, score_vectors, start
                )
            pairs.append(_build_large_pair_rows(tests, is_large_enough, groups, start, position))
            small.append(_build_small_group_rows(tests, is_large_enough, groups))
    measures = score_vectors.measures.with_columns(vector=pl.int_range(pl.len(), dtype=pl.Int64))
    tested_pairs = pl.concat(pairs).join(measures, on="vector", how="left", maintain_order="left")
    sizes = pl.concat(small).group_by("attribute", "group", maintain_order=True)
    below_minimum = sizes.agg(pl.max("n"), pl.max("clusters"), pl.any("enough")).filter(
        ~pl.col("enough")
    )
    p = ("p_naive", "p_clustered")
    return tested_pairs.sort("vector", "place", maintain_order=True).with_columns(
        pl.col(p).fill_nan(None)
    ), below_minimum.drop("enough")


def _replace_with_survey_weighted_tests(
    tests: RankTests,
    is_large_enough: np.ndarray,
    groups: AttributeGroups,
    score_vectors: ScoreVectors,
    start: int,
) -> RankTests:
    """Weight the statistics of groups that are large enough; the naive test stays as published."""
    assert score_vectors.survey_weights is not None  # noqa: S101 - asked before
    median, mean = tests.median.copy(), tests.mean.copy()
    superiority, p = tests.superiority.copy(), tests.p_clustered.copy()
    for v in range(len(tests.n)):
        scores = score_vectors.values[start + v]
        units_by_group = {}
        for g in np.flatnonzero(is_large_enough[v]):
            units = groups.unit[groups.group == g]
            units_by_group[int(g)] = units = units[~np.isnan(scores[units])]
            weight = score_vectors.survey_weights.weight[units]
            median[v, g] = weighted_median(scores[units], weight)
            mean[v, g] = np.average(scores[units], weights=weight)
        for a, b in combinations(units_by_group, 2):
            weighted_test = weighted_rank_test_two_groups(
                scores, (units_by_group[a], units_by_group[b]), score_vectors.survey_weights
            )
            superiority[v, a, b], superiority[v, b, a] = (
                weighted_test.superiority,
                1 - weighted_test.superiority,
            )
            p[v, a, b] = p[v, b, a] = weighted_test.p
    return replace(tests, median=median, mean=mean, superiority=superiority, p_clustered=p)


def _build_large_pair_rows(
    tests: RankTests,
    is_large_enough: np.ndarray,
    groups: AttributeGroups,
    start: int,
    position: int,
) -> pl.DataFrame:
    k = len(groups.group_names)
    upper = np.triu(np.ones((k, k), dtype=bool), 1)
    v, a, b = np.nonzero(is_large_enough[:, :, None] & is_large_enough[:, None, :] & upper)
    names = pl.Series(groups.group_names, dtype=pl.String)
    group_columns = {}
    for suffix, group_index in (("a", a), ("b", b)):
        group_columns[f"group_{suffix}"] = names.gather(group_index)
        for name in ("n", "clusters", "median", "mean"):
            group_columns[f"{name}_{suffix}"] = pl.Series(getattr(tests, name)[v, group_index])
    return pl.DataFrame(
        {
            "vector": (v + start).astype(np.int64),
            "place": np.full(len(v), position, dtype=np.int64),
            "attribute": pl.Series([groups.attribute] * len(v), dtype=pl.String),
            **group_columns,
            "superiority": tests.superiority[v, a, b],
            "p_naive": tests.p_naive[v, a, b],
            "p_clustered": tests.p_clustered[v, a, b],
            "shared": tests.shared[v, a, b],
        }
    )


def _build_small_group_rows(
    tests: RankTests, is_large_enough: np.ndarray, groups: AttributeGroups
) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "attribute": pl.Series([groups.attribute] * len(groups.group_names), dtype=pl.String),
            "group": pl.Series(groups.group_names, dtype=pl.String),
            "n": tests.n.max(axis=0),
            "clusters": tests.clusters.max(axis=0),
            "enough": is_large_enough.any(axis=0),
        }
    )
