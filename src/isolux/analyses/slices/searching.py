"""The two halves of ``slices``: one suggests slices, the other is asked about them.

The worst of thousands of slices is bad even where nothing differs. So clusters are
parted at random; slices are chosen on one half alone, and what is said of them is measured on the
other by the audit's own intervals and null tests (``groups.measure``, ``disparity.measured``), each
slice against everyone else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.analyses._features import Features
from isolux.analyses._judged import Judged
from isolux.analyses._sampled import Sampled
from isolux.disparity.measured import measure_disparities
from isolux.groups.measure import measure_groups
from isolux.stats.design import IntArray
from isolux.stats.sampling import Strata
from isolux.stats.slices import LONGEST, Slices, apart, rows_of, worst_slices
from isolux.stats.statistic import FloatArray
from isolux.vocabulary.containers import Scores
from isolux.vocabulary.drawn import SAMPLE
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import Metric, TaskInfo
from isolux.vocabulary.spec import Comparing
from isolux.vocabulary.tables import MEMBERSHIP

_BoolArray = npt.NDArray[np.bool_]
_STREAM = 67
_OF_A_STRATUM = 2
"""Fewest clusters of a stratum whose variance can be told."""
_CANDIDATES = 256
"""Slices listed before those that share their people with a worse one are left out."""
_OVERLAP = 0.5
"""Share of its people (Jaccard) above which a slice is a worse one said twice."""
_ALPHA = 0.95
"""SliceLine's weight of the error against the size."""
_HELD_OUT = 0.5


@dataclass(frozen=True, slots=True)
class Suggested:
    """What the first half suggests.

    ``found`` are the slices carried over, ``value [k]`` their mean scores, ``share [k]`` their
    shares of the half's units, ``inside [n, k]`` who of both halves is in them.
    """

    found: Slices
    value: FloatArray
    share: FloatArray
    inside: _BoolArray
    second: _BoolArray


def held_out_rows(
    cluster: IntArray, share: float, seed: int, strata: Strata | None = None
) -> _BoolArray:
    """Choose at random the clusters that are asked later, and return their rows: ``[n]``.

    Examples
    --------
    >>> held_out_rows(np.array([0, 0, 1, 2, 3]), 0.5, 0).tolist()
    [True, True, True, False, False]
    """
    n = int(cluster.max(initial=-1)) + 1
    order = np.random.default_rng(np.random.SeedSequence([seed, _STREAM])).permutation(n)
    held = np.zeros(n, dtype=np.bool_)
    if strata is None:
        held[order[: round(n * share)]] = True
    else:
        for h in range(len(strata.drawn)):
            own = order[strata.of[order] == h]
            held[own[: min(max(round(len(own) * share), 2), len(own) - 2)]] = True
    rows: _BoolArray = held[cluster]
    return rows


def search(
    judged: Judged,
    items: Features,
    metric: Metric,
    most: int,
    min_support: float,
    spec: Comparing,
    sampled: Sampled | None = None,
) -> Suggested:
    """Let one half of the clusters suggest its worst slices."""
    strata = None if sampled is None else sampled.strata
    _refuse_thin(strata)
    second = held_out_rows(judged.cluster, _HELD_OUT, spec.seed, strata)
    clusters = [len(np.unique(judged.cluster[half])) for half in (~second, second)]
    if min(clusters) < 2 * spec.min_clusters:
        raise SpecError(
            "there are too few clusters to choose slices on some and test them on others",
            expected=f"{2 * spec.min_clusters} clusters or more in either half",
            found=f"{clusters[0]} and {clusters[1]}",
            where="the analysis slices",
            hint="give it more subjects",
        )
    rows, value = items.matrix.astype(np.bool_), judged.value[~second]
    found = worst_slices(
        rows[~second],
        _numbers(items.attribute),
        _errors(value, metric, higher_is_better=judged.higher_is_better),
        judged.cluster[~second],
        most=_CANDIDATES,
        alpha=_ALPHA,
        min_size=max(spec.min_units, ceil(min_support * len(value))),
        min_clusters=spec.min_clusters,
        max_length=LONGEST,
    )
    kept = apart(rows_of(rows[~second], found.members), _OVERLAP)[:most]
    chosen = Slices(
        found.members[kept],
        found.size[kept],
        found.n_clusters[kept],
        found.error[kept],
        found.score[kept],
        found.n_rows,
        found.mean_error,
        found.looked_into,
    )
    inside = rows_of(rows, chosen.members)
    sums = np.where(inside[~second], value[:, None], 0.0).sum(axis=0)
    return Suggested(
        chosen, sums / np.maximum(chosen.size, 1), chosen.size / max(len(value), 1), inside, second
    )


def _refuse_thin(strata: Strata | None) -> None:
    if strata is None:
        return
    held = np.bincount(strata.of, minlength=len(strata.drawn))
    if (held < 2 * _OF_A_STRATUM).any():
        raise SpecError(
            f"{int((held < 2 * _OF_A_STRATUM).sum()):,} strata have too few clusters to be parted "
            "into two halves",
            expected=f"{2 * _OF_A_STRATUM} clusters or more in every stratum",
            found=f"{int(held.min())}",
            where="the analysis slices",
            hint="join small strata with their neighbours before the audit",
        )


def sample_of_half(held: pl.DataFrame, cluster: IntArray, second: _BoolArray) -> pl.DataFrame:
    """Return the table ``sample`` of one half: as many clusters drawn as the half has of them.

    Shapes: ``cluster`` [n], ``second`` [n].
    """
    names = [n for n in held.columns if n.startswith("margin_") or n == "base_weight"]
    parted = held.drop(names).with_columns(_of=pl.Series(cluster), _in=pl.Series(second))
    here = pl.col("_of").filter("_in").n_unique().over("stratum")
    every = pl.col("_of").n_unique().over("stratum")
    # Clusters without anyone judged were parted too, as the others were.
    drawn = (pl.col("stratum_clusters") * here / every).round().cast(pl.Int64)
    return parted.with_columns(stratum_clusters=drawn).filter("_in").drop("_of", "_in")


def asked(
    judged: Judged,
    suggested: Suggested,
    metric: Metric,
    task: str,
    spec: Comparing,
    held: pl.DataFrame | None = None,
) -> pl.DataFrame:
    """Ask the other half: each slice against everyone else there."""
    names = [f"slice {k}" for k in range(len(suggested.found.score))]
    second = suggested.second
    units = judged.units.filter(pl.Series(second))
    scores = judged.scores(task, second)
    members = _members(names, suggested.inside[second], units)
    info = TaskInfo(title=task, summary=task, references=(), metrics=(metric,))
    sample = {} if held is None else {SAMPLE: sample_of_half(held, judged.cluster, second)}
    estimates = measure_groups(Scores(scores, info, sample, task=task), members, spec)
    compared = measure_disparities(estimates, spec, dict.fromkeys(names, "others")).table
    keys = pl.DataFrame({"attribute": names}, schema={"attribute": pl.String})
    groups = estimates.table()
    own = groups.filter(pl.col("group") == "slice").select(
        "attribute", "value", n="n_units", n_clusters="n_clusters", status="status", reason="reason"
    )
    others = groups.filter(pl.col("group") == "others").select("attribute", others="value")
    gaps = compared.filter(kind="difference").select(
        "attribute", "low", "high", "p_value", difference="value", told="status"
    )
    joined = keys
    for part in (own, others, gaps):
        joined = joined.join(part, on="attribute", how="left", maintain_order="left")
    return joined.with_columns(status=pl.coalesce("told", "status", pl.lit("not scored"))).drop(
        "told"
    )


def _members(names: Sequence[str], inside: _BoolArray, units: pl.Series) -> pl.DataFrame:
    parts = [
        pl.DataFrame({"unit_id": units, "in": pl.Series(inside[:, k])}).select(
            attribute=pl.lit(name),
            group=pl.when("in").then(pl.lit("slice")).otherwise(pl.lit("others")),
            unit_id="unit_id",
        )
        for k, name in enumerate(names)
    ]
    if not parts:
        return MEMBERSHIP.empty()
    frame = pl.concat(parts).with_columns(values=pl.concat_list("group"))
    return MEMBERSHIP.conform(frame.sort("attribute", "group", descending=[False, True]))


def _numbers(names: Sequence[str]) -> IntArray:
    """Give attributes numbers: columns of one have one number."""
    place = {name: k for k, name in enumerate(dict.fromkeys(names))}
    return np.asarray([place[name] for name in names], dtype=np.int64)


def _errors(value: FloatArray, metric: Metric, *, higher_is_better: bool) -> FloatArray:
    """Turn scores into errors: how far they lie from the best score that there can be, or is."""
    if higher_is_better:
        best = metric.high if metric.high is not None else value.max(initial=-np.inf)
        return np.maximum(best - value, 0.0)
    best = metric.low if metric.low is not None else value.min(initial=np.inf)
    return np.maximum(value - best, 0.0)
