"""A sample that stands for a population: who weighs how much, among those who were scored.

The table ``sample`` beside the scores turns the design of an audit into one of weights and strata;
without it nothing here does anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from isolux.groups.estimates import Measure
from isolux.stats.design import Design, IntArray, build_design
from isolux.stats.drawn_design import DrawnDesign, build_drawn, with_other_way
from isolux.stats.raking import Margins
from isolux.stats.rows import AT_ONCE
from isolux.stats.sampling import Strata
from isolux.stats.shares import ClusterMeans, are_shares, joined, pooled_correlation
from isolux.stats.statistic import FloatArray
from isolux.stats.weighted_means import RowsEffect, both_ways, weighted_means
from isolux.vocabulary.drawn import SAMPLE
from isolux.vocabulary.errors import SpecError

if TYPE_CHECKING:
    from isolux.groups.measure.columns import Judged
    from isolux.vocabulary.spec import Statistics

_CENSUS = 1e-6


@dataclass(frozen=True, slots=True)
class Worth:
    """How many units and clusters of one weight tell as much as those there are: ``[g, m]``.

    Units count by Kish's effective number, clusters by that of their mean weights: where all weigh
    alike, both are the numbers there are.
    """

    units: FloatArray
    clusters: FloatArray


def drawn(
    design: Design,
    judged: Judged,
    entries: tuple[IntArray, IntArray],
    evidence: Mapping[str, pl.DataFrame],
    spec: Statistics,
) -> Design:
    """Return the design with every unit's weight and stratum; the same where there are none.

    Shapes: ``entries`` [n].
    """
    if SAMPLE not in evidence:
        return design
    _refuse(judged, spec)
    table = evidence[SAMPLE].unique("unit_id", keep="first", maintain_order=True)
    held = pl.DataFrame({"unit_id": judged.unit_ids.cast(pl.String)}).join(
        table, on="unit_id", how="left", maintain_order="left"
    )
    weight = held["weight"].to_numpy().astype(np.float64)
    scaled = weight / weight.mean() if len(weight) else weight
    strata = strata_of_clusters(held, judged.cluster_of)
    rows = judged.columns[judged.row_of]
    margins = _margins(held)
    found = build_drawn(rows, judged.cluster_of, entries, design, scaled, strata, margins)
    if "other_cluster" not in held.columns or held["other_cluster"].is_null().all():
        return found
    other = (held["other_cluster"].rank("dense") - 1).to_numpy().astype(np.int64)
    groups = design.n_groups
    plain = build_design(judged.columns, other, *entries, groups, judged.row_of)
    return with_other_way(found, rows, (judged.cluster_of, other), entries, plain, margins)


def _margins(held: pl.DataFrame) -> Margins | None:
    """Take the cells of a population that the weights add up to; None: there is none."""
    codes = [held[name].to_numpy().astype(np.int64) for name in held.columns if _is_margin(name)]
    sizes = tuple(int(code.max(initial=-1)) + 1 for code in codes)
    if not codes:
        return None
    return Margins(tuple(codes), sizes, held["base_weight"].to_numpy().astype(np.float64))


def _is_margin(name: str) -> bool:
    return name.startswith("margin_")


def _refuse(judged: Judged, spec: Statistics) -> None:
    """Refuse what cannot take weights, by name."""
    names = [str(judged.measures[j][2]) for j in judged.detected]
    if names:
        others = [str(parts[2]) for parts in judged.measures if str(parts[2]) not in names]
        raise SpecError(
            f"{', '.join(dict.fromkeys(names))} takes no weights and no strata: a false alarm "
            "does not represent a person, so no weight applies to it",
            expected="metrics that are of people: --metric "
            + (" --metric ".join(dict.fromkeys(others)) or "with another task"),
            found="--weight or --strata",
        )
    if spec.interval == "bca" or spec.weights == "poisson":
        raise SpecError(
            "a sample with weights or strata has no such bootstrap",
            expected="--interval score, logit-t, percentile, wilson or clopper-pearson, and "
            "--weights multinomial",
            found=f"--interval {spec.interval} --weights {spec.weights}",
        )


def strata_of_clusters(held: pl.DataFrame, cluster_of: IntArray) -> Strata | None:
    """Give strata numbers, and say in which each cluster is; None: the sample has none.

    Shapes: ``cluster_of`` [n].
    """
    finite = "stratum_size" in held.columns and held["stratum_size"].is_not_null().any()
    if held["stratum"].is_null().all() and not finite:
        return None
    code = (held["stratum"].fill_null("").rank("dense") - 1).to_numpy().astype(np.int64)
    of = np.zeros(int(cluster_of.max(initial=-1)) + 1, dtype=np.int64)
    of[cluster_of] = code
    counts = np.zeros(int(code.max(initial=-1)) + 1, dtype=np.int64)
    counts[code] = held["stratum_clusters"].to_numpy()
    return Strata(of, counts, _left(held, code, counts))


def _left(held: pl.DataFrame, code: IntArray, drawn: IntArray) -> FloatArray | None:
    """Return the share of each stratum's clusters that were not drawn; None if no size is known."""
    if "stratum_size" not in held.columns or held["stratum_size"].is_null().all():
        return None
    size = np.ones(len(drawn))
    size[code] = held["stratum_size"].to_numpy()
    return np.maximum(1.0 - drawn / size, _CENSUS)


def is_census(design: Design) -> bool:
    """Tell whether all of a finite population was drawn, so that nothing is left to chance."""
    if not isinstance(design, DrawnDesign) or design.strata is None:
        return False
    left = design.strata.left
    return left is not None and bool((left <= _CENSUS).all())


def drawn_means(design: DrawnDesign, measure: Measure, rows: IntArray) -> ClusterMeans:
    """Reduce one mean's clusters in a sample with weights, for some rows of the design."""
    if design.ways is None:
        return _means_one_way(design, measure, rows).moved(measure.centre)
    one, two, cells = (_means_one_way(way, measure, rows) for way in design.each_way)
    return both_ways(one, two, cells).moved(measure.centre)


def correlation_of(design: DrawnDesign, measure: Measure) -> tuple[float, bool]:
    """Return the correlation of two rows of one cluster, and whether rows are 0 or 1."""
    assert measure.mean is not None  # noqa: S101 - callers ask of means only
    sums, counts = measure.mean
    plain = design.unweighted
    everyone = plain.rows(0, sums), plain.rows(0, counts)
    rho = float(pooled_correlation(*everyone, plain.copies)[0])
    return rho, measure.fraction and are_shares(*everyone)


def _means_one_way(design: DrawnDesign, measure: Measure, rows: IntArray) -> ClusterMeans:
    assert measure.mean is not None  # noqa: S101 - callers ask of means only
    sums, counts = measure.mean
    rho, shares = correlation_of(design, measure)
    effect = rows_effect(design, measure) if shares else None

    def reduced(some: IntArray) -> ClusterMeans:
        squares = design.rows_of_squares(some, counts)
        parts = design.rows(some, sums), design.rows(some, counts), squares
        varying = None
        if design.calibration is not None:
            varying = design.varying(some, sums), design.varying(some, counts)
        return weighted_means(parts, design.strata, rho, effect, varying, shares=shares)

    first = rows * design.n_columns + counts
    ends = np.cumsum(design.matrix.indptr[first + 1] - design.matrix.indptr[first])
    turns = np.split(rows, np.flatnonzero(np.diff(ends // AT_ONCE)) + 1)
    return joined([reduced(some) for some in turns])


def rows_effect(design: DrawnDesign, measure: Measure) -> RowsEffect:
    """Say how much rows of 0 and 1 vary beyond what their weights say, from everyone."""
    assert measure.mean is not None  # noqa: S101 - callers ask of means only
    sums, counts = measure.mean
    s, n = design.rows(0, sums).toarray()[0], design.rows(0, counts).toarray()[0]
    right, every = (float(design.rows_of_squares(0, q).data.sum()) for q in (sums, counts))
    rare = min(int((s > 0).sum()), int((s < n * (1.0 - 1e-9)).sum()))
    return RowsEffect.of(float(s.sum() / n.sum()) if n.sum() > 0 else 0.0, right, every, rare)


def worth_of(design: Design, counts: list[int], groups: int) -> Worth | None:
    """Say how many units and clusters of one weight those of each cell are worth.

    Shapes: ``counts`` [m].
    """
    if not isinstance(design, DrawnDesign):
        return None
    if design.ways is not None:
        one, two = (worth_of(way, counts, groups) for way in design.each_way[:2])
        assert one is not None and two is not None  # noqa: S101, PT018 - both are drawn
        return Worth(one.units, np.minimum(one.clusters, two.clusters))
    units, clusters = np.zeros((groups, len(counts))), np.zeros((groups, len(counts)))
    rows = np.arange(groups)
    for j, column in enumerate(counts):
        weight, square = design.rows(rows, column), design.rows_of_squares(rows, column)
        total = np.asarray(weight.sum(axis=1)).ravel()
        units[:, j] = _kish(total, np.asarray(square.sum(axis=1)).ravel())
        # A cluster's mean weight, not its sum: many photos of one person are no reason to count
        # fewer people.
        mean = square.copy()
        mean.data = square.data / weight.data
        of_means = np.asarray(mean.sum(axis=1)).ravel()
        clusters[:, j] = _kish(of_means, np.asarray(mean.power(2).sum(axis=1)).ravel())
    return Worth(units, clusters)


def _kish(total: FloatArray, square: FloatArray) -> FloatArray:
    return np.divide(total**2, square, out=np.zeros_like(total), where=square > 0)
