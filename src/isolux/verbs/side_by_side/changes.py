"""From each model to each later one: which groups' values moved, which gaps grew or shrank.

Two models of one run each are compared as ``isolux.compare`` compares them. With several runs each
run is so compared with each of the other model; the difference of the means reaches as far as these
do, times how much surer the means are, joined with what differs between seeds (``seeds``). A gap is
that of one pair of groups, chosen by the mean of all runs; its change is the mean over pairs of
runs, its interval that of one pair, wider by what differs between seeds. P-values are multiplied by
the number of pairs of models (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl

from isolux.disparity.gap_changes import KIND
from isolux.disparity.models import compare_models, compare_runs
from isolux.disparity.rows import table_of
from isolux.groups.estimates import Estimates
from isolux.stats.design import IntArray
from isolux.stats.intervals import Interval
from isolux.stats.multiplicity import holm
from isolux.stats.statistic import FloatArray
from isolux.verbs.side_by_side.seeds import (
    Models,
    People,
    columns_of,
    joined_reach,
    p_values,
    quantile_t,
    spread_of,
    surer,
)
from isolux.vocabulary.spec import Comparing
from isolux.vocabulary.tables import Status

_SHOWN = (
    "model_a",
    "model_b",
    "task",
    "metric",
    "label",
    "threshold",
    "attribute",
    "kind",
    "group_a",
    "group_b",
    "value",
    "low",
    "high",
    "method",
    "p_value",
    "p_adjusted",
    "family",
    "detectable",
    "n_units_a",
    "n_clusters_a",
    "status",
    "reason",
)
_ROW = ["metric", "label", "threshold", "attribute", "group_a"]
_GAP = ["task", "metric", "label", "threshold", "attribute", "kind", "group_a", "group_b"]


def changes_of_pairs(
    estimates: Estimates,
    models: Models,
    spec: Comparing,
    references: Mapping[str, str],
    metrics: Sequence[str],
) -> pl.DataFrame:
    """Compare each two models, in the order given: the table ``changes`` of ``SideBySide``."""
    names = list(models.runs)
    pairs = list(combinations(range(len(names)), 2))
    frames = []
    for i, j in pairs:
        a, b = names[i], names[j]
        if len(models.runs[a]) == len(models.runs[b]) == 1:
            # As `isolux.compare` does: no other model's tests are in the family.
            two = compare_models(_only(estimates, (a, b)), spec, (a, b), references, metrics)
            found = two.table.select(_SHOWN)
        else:
            runs = _each_run(estimates, models, (a, b), spec, references)
            found = pl.concat(
                [_groups(estimates, models, (a, b), spec, runs), _gaps(models, (a, b), spec, runs)]
            )
        frames.append(found.with_columns(next=pl.lit(j == i + 1)))
    family = f"all groups and metrics of all {len(pairs)} pairs of models"
    whole = pl.concat(frames).with_columns(
        p_adjusted=(pl.col("p_adjusted") * len(pairs)).clip(upper_bound=1.0),
        family=pl.when(pl.col("p_adjusted").is_not_null()).then(pl.lit(family)),
    )
    return whole.with_columns(word=_word(1.0 - spec.level))


def _only(estimates: Estimates, labels: tuple[str, str]) -> Estimates:
    """Keep what two runs got."""
    held = [j for j, measure in enumerate(estimates.measures) if measure.model in labels]
    worth, ends = estimates.worth, estimates.interval
    of_measures = (
        "value",
        "replicates",
        "standard_error",
        "method",
        "n_units",
        "n_clusters",
        "status",
        "reason",
    )
    return replace(
        estimates,
        measures=tuple(estimates.measures[j] for j in held),
        **{name: getattr(estimates, name)[:, held] for name in of_measures},
        interval=Interval(ends.low[:, held], ends.high[:, held]),
        worth=None
        if worth is None
        else replace(worth, units=worth.units[:, held], clusters=worth.clusters[:, held]),
        others={k: estimates.others[j] for k, j in enumerate(held) if j in estimates.others},
    )


def _word(alpha: float) -> pl.Expr:
    """Say what is shown of each row: by the adjusted p, or for gaps of seeds by the ends."""
    gap, more = pl.col("kind") == KIND, pl.col("value") > 0
    outside = (pl.col("low") > 0) | (pl.col("high") < 0)
    shown = pl.when(gap & pl.col("family").is_null()).then(outside)
    return (
        pl.when(pl.col("value").is_null())
        .then(pl.lit("not judged"))
        .when(shown.otherwise(pl.col("p_adjusted") <= alpha).not_().fill_null(value=True))
        .then(pl.lit("not shown"))
        .when(gap)
        .then(pl.when(more).then(pl.lit("grew")).otherwise(pl.lit("shrank")))
        .otherwise(pl.when(more).then(pl.lit("higher")).otherwise(pl.lit("lower")))
    )


def _each_run(
    estimates: Estimates,
    models: Models,
    pair: tuple[str, str],
    spec: Comparing,
    references: Mapping[str, str],
) -> pl.DataFrame:
    """Compare each run of one model with each run of the other, as two runs are, without tests."""
    runs = [(one, two) for one in models.runs[pair[0]] for two in models.runs[pair[1]]]
    own = models.runs[pair[0]], models.runs[pair[1]]
    parts = [compare_runs(estimates, spec, both, own, references) for both in runs]
    whose = np.repeat(np.arange(len(runs)), [sum(map(len, part)) for part in parts])
    names = pl.DataFrame(runs, schema=["first", "second"], orient="row")
    return table_of([rows for part in parts for rows in part]).hstack(names[whose])


def _groups(
    estimates: Estimates, models: Models, pair: tuple[str, str], spec: Comparing, runs: pl.DataFrame
) -> pl.DataFrame:
    """Difference of two models' means over their runs, for everyone and every group."""
    frames = []
    reaches = _reaches(runs)
    for (metric, label, threshold), own in columns_of(estimates, models).items():
        a, b = own[pair[0]], own[pair[1]]
        one, two = spread_of(estimates, a), spread_of(estimates, b)
        both = np.concatenate([a, b])
        usable = estimates.judged()[:, both].all(axis=1)
        value = two.value - one.value
        named = pl.DataFrame(
            {
                "metric": [metric] * len(value),
                "label": pl.Series([label] * len(value), dtype=pl.String),
                "threshold": pl.Series([threshold] * len(value), dtype=pl.Float64),
                "attribute": pl.Series([g.attribute for g in estimates.groups], dtype=pl.String),
                "group_a": [g.name for g in estimates.groups],
            }
        )
        met = named.join(reaches, on=_ROW, how="left", nulls_equal=True, maintain_order="left")
        of_runs = [[estimates.replicates[:, j] for j in side] for side in (a, b)]
        drawn = [second - first for first in of_runs[0] for second in of_runs[1]]
        times = surer(estimates, two.replicates - one.replicates, drawn, of_runs, int(a[0]))
        below, above = (
            _people(met[side].fill_null(np.nan).to_numpy(), times) for side in ("below", "above")
        )
        toward = [
            np.where(value > 0, low, high)
            for low, high in ((below.mean, above.mean), (below.shared, above.shared))
        ]
        between = [(one.between, one.runs), (two.between, two.runs)]
        frames.append(
            named.with_columns(
                model_a=pl.lit(pair[0]),
                model_b=pl.lit(pair[1]),
                task=pl.lit(estimates.measures[int(a[0])].task),
                kind=pl.lit("model_difference"),
                value=value,
                low=value - joined_reach(below, between, spec.level),
                high=value + joined_reach(above, between, spec.level),
                method=pl.lit("paired over people, Cochran over runs"),
                p_value=p_values(value, People(*toward), between, spec.level),
                n_units_a=estimates.n_units[:, a[0]],
                n_clusters_a=estimates.n_clusters[:, a[0]],
                status=pl.Series(_edge(estimates, both)),
            ).filter(pl.Series(usable))
        )
    rows = pl.concat(frames).with_columns(pl.selectors.float().fill_nan(None))
    adjusted = pl.Series(holm(rows["p_value"].to_numpy())).fill_nan(None)
    return _completed(rows.with_columns(p_adjusted=adjusted))


def _people(of_one: FloatArray, times: People) -> People:
    return People(of_one * times.mean, of_one * times.shared)


def _reaches(runs: pl.DataFrame) -> pl.DataFrame:
    """Give how far intervals of single runs' differences reach, on average: null where one is."""
    known = {"below": pl.col("value") - pl.col("low"), "above": pl.col("high") - pl.col("value")}
    return (
        runs.filter(pl.col("kind") == "model_difference")
        .group_by(_ROW, maintain_order=True)
        .agg(
            pl.when(reach.is_not_null().all()).then(reach.mean()).alias(name)
            for name, reach in known.items()
        )
    )


def _edge(estimates: Estimates, columns: IntArray) -> list[str]:
    edge = (estimates.status[:, columns].astype(str) == Status.BOUNDARY.value).any(axis=1)
    return [Status.BOUNDARY.value if e else Status.OK.value for e in edge.tolist()]


def _gaps(
    models: Models, pair: tuple[str, str], spec: Comparing, each: pl.DataFrame
) -> pl.DataFrame:
    """Change of gaps over all pairs of runs, the interval wider by what differs between seeds."""
    runs = [models.runs[name] for name in pair]
    every = each.filter(pl.col("kind") == KIND)
    found = every.group_by(_GAP, maintain_order=True).agg(
        pl.col("value").mean(),
        pl.col("low").mean(),
        pl.col("high").mean(),
        pl.col("method").first(),
        pl.col("status").sort().first(),
        pl.col("reason").first(),
        lost=pl.col("value").is_null().any(),
    )
    for side, own in zip(("first", "second"), runs, strict=True):
        of_run = every.group_by([*_GAP, side]).agg(pl.col("value").mean())
        sd = of_run.group_by(_GAP).agg(
            (pl.col("value").std().fill_null(0.0) / len(own) ** 0.5).alias(f"sd_{side}")
        )
        found = found.join(sd, on=_GAP, how="left", nulls_equal=True, maintain_order="left")
    one, two = (
        (float(quantile_t(spec.level, len(own) - 1.0)), pl.col(f"sd_{side}") ** 2)
        for side, own in zip(("first", "second"), runs, strict=True)
    )
    both = one[1] + two[1]  # of a single run 0: nothing is known of its seeds
    wider = pl.when(both > 0).then((one[0] * one[1] + two[0] * two[1]) / both.sqrt()).otherwise(0.0)
    known = pl.when(~pl.col("lost"))
    rows = found.with_columns(
        value=known.then(pl.col("value")),
        low=known.then(pl.col("low") - wider),
        high=known.then(pl.col("high") + wider),
        model_a=pl.lit(pair[0]),
        model_b=pl.lit(pair[1]),
    )
    return _completed(rows)


def _completed(rows: pl.DataFrame) -> pl.DataFrame:
    """Bring rows to the columns of the table, with null where one has none."""
    kinds = {
        "p_value": pl.Float64,
        "p_adjusted": pl.Float64,
        "detectable": pl.Float64,
        "n_units_a": pl.Int64,
        "n_clusters_a": pl.Int64,
    }
    missing = [
        pl.lit(None, dtype=kinds.get(name, pl.String)).alias(name)
        for name in _SHOWN
        if name not in rows.columns
    ]
    return rows.with_columns(missing).select(_SHOWN)
