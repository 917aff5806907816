"""From looks to differences of clusters: one gap for each group and everybody else.

A cluster that has people on both sides (a photo of two people) gives the difference of its own two
means; the others are paired within their look, by a shuffle that knows nothing of their scores.
Either way a difference has the gap as its mean, and no cluster is in two of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from isolux.groups import groupings, membership
from isolux.groups.binning import parse_bins
from isolux.groups.unknown import UNKNOWN
from isolux.stats.design import IntArray
from isolux.stats.sequences import differences
from isolux.stats.statistic import FloatArray
from isolux.verbs.monitor.looks import Look
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Run
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.info import Metric
from isolux.vocabulary.spec import Groups, recorded_spec

_MIXED = 0.05
"""The share of the one kind of differences, or of the other, from which a gap is a mixture."""
_MEASURE = ("metric", "label", "threshold")


@dataclass(slots=True)
class Gap:
    """One group against everybody else of its attribute, over all looks.

    Parameters
    ----------
    named : dict
        metric, label, threshold, attribute, group.
    metric : Metric
    others : str
        Who the others are: the one other group, or "the others".
    difference, look : [n] float, int
        On a scale of 1, and the look of each.
    sizes : list of (int, int)
        Clusters of the group and of the others, in each look.
    within : int
        How many of the differences are within clusters that hold both sides.
    """

    named: dict[str, Any]
    metric: Metric
    others: str
    difference: FloatArray = field(default_factory=lambda: np.zeros(0))
    look: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    sizes: list[tuple[int, int]] = field(default_factory=list)
    within: int = 0

    @property
    def scale(self) -> float:
        """What a difference of 1 is in the metric's unit."""
        return float((self.metric.high or 0.0) - (self.metric.low or 0.0))

    def of_look(self, t: int) -> float:
        """Mean difference of one look, on a scale of 1; NaN: there is none."""
        own = self.difference[self.look == t]
        return float(own.mean()) if len(own) else float("nan")

    def add(self, t: int, own: FloatArray, sizes: tuple[int, int], within: int) -> None:
        """Take a look's differences in."""
        self.within += within
        self.difference = np.concatenate([self.difference, own])
        self.look = np.concatenate([self.look, np.full(len(own), t, dtype=np.int64)])
        self.sizes.append(sizes)


def gaps_of(
    looks: Sequence[Look], metric: str | None, seed: int
) -> tuple[list[Gap], tuple[str, ...]]:
    """Lay out every gap of one metric, and say which look lacks which group."""
    first = recorded_spec(looks[0].run.record)
    _refuse_quantiles(first.groups)
    info = _metric_of(looks[0].run, metric)
    for look in looks:
        if look.run.scores.height and not (look.run.scores["metric"] == info.name).any():
            raise UnknownNameError(
                "metric", info.name, look.run.scores["metric"].unique().sort(), where=look.name
            )
    frames = [_means(look.run, first.groups, info) for look in looks]
    together = pl.concat(frames)
    gaps = []
    for named, others in _hypotheses(together, info):
        gap = Gap(named, info, others)
        for t, frame in enumerate(frames):
            rng = np.random.default_rng([seed, t])
            gap.add(t, *_differences(frame, named, rng))
        gaps.append(gap)
    if not gaps:
        raise SpecError(
            "there is no gap to watch",
            expected="an attribute of which two groups have scores",
            found="groups " + (", ".join(together["group"].unique().sort()) or "none"),
        )
    missing = [
        f"{gap.named['group']} ({gap.named['attribute']}) has nobody to compare in "
        f"{sum(min(size) == 0 for size in gap.sizes)} of {len(looks)} looks"
        for gap in gaps
        if any(min(size) == 0 for size in gap.sizes)
    ]
    return gaps, tuple(missing)


def mixture(gap: Gap) -> str:
    """Warn of a gap of which some differences are within clusters, and others between them."""
    n = len(gap.difference)
    if not _MIXED < gap.within / max(n, 1) < 1.0 - _MIXED:
        return ""
    return (
        f" Read this gap with caution: it is a mixture. {gap.within:,} of {n:,} differences are"
        " within clusters that hold both sides, the others between clusters of one side, and the"
        " two need not agree; with clusters that hold one group (people, not photos) they do."
    )


def _refuse_quantiles(settings: Groups) -> None:
    for text in settings.bins:
        bins = parse_bins(text.partition("=")[2])
        if bins.quantiles or bins.top:
            raise SpecError(
                "groups that are cut at quantiles, or are the commonest, are others in every run",
                expected="fixed edges, such as age=edges:18,40,65",
                found=text,
                where="--bins of the runs",
            )


def _metric_of(run: Run, name: str | None) -> Metric:
    """Find the metric: a mean of people's scores, whose range is declared."""
    measured = run.scores["metric"].unique(maintain_order=True).to_list()
    if name is not None and name not in measured:
        raise UnknownNameError("metric", name, measured, where="--metric")
    try:
        declared = {m.name: m for m in registry.task_info(str(run.record.get("task"))).metrics}
    except UnknownNameError:
        declared = {}
    said = run.record.get("measures") or {}
    for one in [name] if name is not None else measured:
        metric = declared.get(one)
        if metric is None and said.get(one, {}).get("unit") == "fraction":
            metric = Metric(name=one, definition="", **said[one])
        if metric is not None and metric.low is not None and metric.high is not None:
            return metric
    raise SpecError(
        "no metric of the runs can be watched",
        expected="a mean of people's scores with a least and a largest value",
        found=name or ", ".join(measured) or "none",
        where="--metric",
    )


def _means(run: Run, settings: Groups, metric: Metric) -> pl.DataFrame:
    """Count and sum each cluster's scores by measure, attribute and group, from 0 to 1."""
    scores = run.scores.filter(pl.col("metric") == metric.name).drop_nulls("value")
    by = groupings(settings, run.attributes)
    members = membership(
        run.attributes, settings.by, by, units=scores["unit_id"].unique(maintain_order=True)
    ).frame.filter(pl.col("group") != UNKNOWN)
    low, high = float(metric.low or 0.0), float(metric.high or 1.0)
    cluster = pl.coalesce(pl.format("c:{}", "cluster_id"), pl.format("u:{}", "unit_id"))
    told = scores.select(
        "unit_id", *_MEASURE, cluster=cluster, value=(pl.col("value") - low) / (high - low)
    )
    return told.join(members.select("unit_id", "attribute", "group"), on="unit_id")


def _hypotheses(frame: pl.DataFrame, metric: Metric) -> Iterator[tuple[dict[str, Any], str]]:
    """Name each group that has others; of two groups, one gap."""
    keys = [*_MEASURE, "attribute"]
    for key, part in frame.group_by(keys, maintain_order=True):
        groups = part["group"].unique().sort().to_list()
        named = dict(zip(keys, key, strict=True)) | {"metric": metric.name}
        if len(groups) == 2:
            yield {**named, "group": groups[0]}, groups[1]
        elif len(groups) > 1:
            for group in groups:
                yield {**named, "group": group}, "the others"


def _differences(
    frame: pl.DataFrame, named: dict[str, Any], rng: np.random.Generator
) -> tuple[FloatArray, tuple[int, int], int]:
    """Take a look's differences, the clusters of the group and of the others, and of both."""
    keys = [*_MEASURE, "attribute"]
    own = frame.filter(*(pl.col(k).eq_missing(pl.lit(named[k])) for k in keys))
    inside = pl.col("group").eq(named["group"]).any()
    people = own.group_by("cluster", "unit_id").agg(pl.col("value").first(), inside=inside)
    sides = people.group_by("cluster").agg(
        first=pl.col("value").filter(pl.col("inside")).mean(),
        second=pl.col("value").filter(~pl.col("inside")).mean(),
    )
    sides = sides.sort("cluster")[rng.permutation(sides.height).tolist()]
    both = sides.drop_nulls()
    alone = sides.filter(pl.any_horizontal(pl.col("first", "second").is_null()))
    paired = differences(
        alone["first"].drop_nulls().to_numpy(), alone["second"].drop_nulls().to_numpy()
    )
    within = (both["first"] - both["second"]).to_numpy()
    sizes = sides["first"].count(), sides["second"].count()
    return np.concatenate([within, paired]), sizes, both.height
