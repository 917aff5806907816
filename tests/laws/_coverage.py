"""How often intervals hold the truth: one cell of rate, group sizes and correlation."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isolux.groups.interval_methods import wilson_or_clopper_pearson_interval
from isolux.stats.clustered_proportions import means_from_cluster_sums
from isolux.stats.intervals import (
    Interval,
    bca_interval,
    has_fraction_nominal_coverage,
    logit_or_wilson_interval_at_level,
    mover_difference_interval,
    mover_log_ratio_interval,
    percentile_interval,
)
from isolux.stats.resampling.sums import bca_acceleration_by_jackknife
from isolux_worlds.populations.rates import simulate_rates
from tests.laws._worlds import Batch, bootstrap

LEVEL = 0.95
PER_BATCH = 100


def cover(
    rates: tuple[float, float],
    sizes: int | Sequence[int],
    icc: float,
    *,
    worlds: int,
    replicates: int,
    methods: bool = False,
) -> dict[str, object]:
    """Measure the coverage of rates, differences and ratios of two groups, ten photos a subject."""
    parts: list[dict[str, np.ndarray]] = []
    each = PER_BATCH if worlds >= 2 * PER_BATCH else worlds
    for batch in range(worlds // each):
        rng = np.random.default_rng(
            [batch, int(100 * icc), *(int(1000 * r) for r in rates), int(np.sum(sizes))]
        )
        made = simulate_rates(
            rng, groups=2, subjects_per_group=sizes, photos=10, rates=rates, icc=icc,
            within_cluster=False, worlds=each,
        )  # fmt: skip
        drawn = bootstrap(made, shared=False, replicates=replicates, seed=batch)
        parts.append(_hits(drawn, np.array(rates), methods=methods))
    cell: dict[str, object] = {
        "subjects": sizes if isinstance(sizes, int) else "/".join(map(str, sizes)),
        "icc": icc,
        "rate": rates[0] if rates[0] == rates[1] else "/".join(map(str, rates)),
    }
    for key in parts[0]:
        together = np.concatenate([p[key].ravel() for p in parts])
        judged = together[~np.isnan(together)]
        cell[key] = round(float(judged.mean()), 4) if judged.size else None
    return cell


def _hits(drawn: Batch, rates: np.ndarray, *, methods: bool) -> dict[str, np.ndarray]:
    value, clusters = drawn.value, drawn.clusters.astype(float)
    ends = logit_or_wilson_interval_at_level(value, drawn.se, clusters, LEVEL)
    zero = np.zeros(len(value))
    one, two = (Interval(ends.low[:, k], ends.high[:, k]) for k in (0, 1))
    gap = mover_difference_interval(value[:, 0], one, value[:, 1], two, zero)
    logs = mover_log_ratio_interval(value[:, 0], one, value[:, 1], two, zero)
    kept = has_fraction_nominal_coverage(value, drawn.se, clusters)
    inside = _inside(ends, rates)
    found = {
        "rates": inside,
        "differences": _inside(gap, rates[0] - rates[1]),
        "ratios": _inside(logs, np.log(rates[0] / rates[1])),
        "read with caution": ~kept * 1.0,
        "rates not marked": np.where(kept, inside, np.nan),
    }
    return {**found, **_others(drawn, rates)} if methods else found


def _others(drawn: Batch, rates: np.ndarray) -> dict[str, np.ndarray]:
    """Coverage of the other methods on the same worlds."""
    flat, replicates = drawn.value.ravel(), drawn.replicates.reshape(drawn.value.size, -1)
    clusters = drawn.clusters.ravel().astype(float)
    truth = np.tile(rates, len(drawn.value))
    speed = bca_acceleration_by_jackknife(drawn.design, drawn.measure.columns, np.arange(flat.size))
    gaps = percentile_interval(drawn.replicates[:, 0] - drawn.replicates[:, 1], LEVEL)
    rows = np.arange(flat.size)
    held = drawn.design.group_rows(rows, 0), drawn.design.group_rows(rows, 1)
    means = means_from_cluster_sums(*held, drawn.design.multiplicity, 0.0)
    names = ("wilson", "clopper-pearson")
    closed = {
        name: wilson_or_clopper_pearson_interval(name, means, clusters, LEVEL) for name in names
    }
    return {
        "percentile": _inside(percentile_interval(replicates, LEVEL), truth),
        "bca": _inside(bca_interval(flat, replicates, speed, LEVEL), truth),
        **{name: _inside(ends, truth) for name, ends in closed.items()},
        "percentile differences": _inside(gaps, rates[0] - rates[1]),
    }


def _inside(ends: Interval, truth: object) -> np.ndarray:
    hit = (ends.low <= truth) & (truth <= ends.high)
    return np.where(np.isnan(ends.low), np.nan, hit * 1.0)
