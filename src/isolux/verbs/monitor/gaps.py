"""From looks to differences of clusters: one gap for each group and everybody else.

A cluster that has people on both sides (a photo of two people) gives the difference of its own two
means; the others are paired within their look, by a shuffle that knows nothing of their scores.
Either way a difference has the gap as its mean, and no cluster is in two of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from isolux.groups import groupings, membership
from isolux.groups.binning import parse_bins
from isolux.groups.unknown import UNKNOWN
from isolux.statements.numbers import interval, signed_points
from isolux.stats.design import IntArray
from isolux.stats.sequences import differences
from isolux.stats.statistic import FloatArray
from isolux.verbs.monitor.looks import Look
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Run
from isolux.vocabulary.drawn import weighted_title
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


def sentence(
    gap: Gap, found: dict[str, Any], looks: Sequence[Look], level: float, threshold: float
) -> str:
    """Word what is known of a gap after the last look."""
    name = weighted_title(gap.metric.titled(gap.named["threshold"]), looks[0].run.record)
    what = f"{name} of {gap.named['label']}" if gap.named["label"] else name
    who = f"{gap.named['group']} ({gap.named['attribute'].replace('_', ' ')})"
    said = f"{100 * level:g} % at every look"
    if found["alarm_at"] is None:
        could = _range(gap, found["constant_low"], found["constant_high"])
        start = (
            f"{what} for {who}: no gap to {gap.others} is shown in {len(looks)} looks "
            f"(e-value {e_text(found['e_value'])}; an alarm needs {e_text(threshold)})"
        )
        return (
            f"{start}. If it is always the same, {gap.named['group']} less {gap.others} is "
            f"{could} ({said})."
        )
    alarm, since = looks[found["alarm_at"] - 1], looks[found["since"] - 1]
    begun = (
        "most likely since the first look"
        if found["since"] == 1
        else f"most likely since look {found['since']} ({since.at})"
    )
    looks_late = "1 look" if found["delay"] == 1 else f"{found['delay']} looks"
    late = f", {looks_late} earlier" if found["since"] != 1 and found["delay"] else ""
    size = _size(gap, found, len(looks), said)
    differs = "has differed" if found["began_from"] is None else "differs"  # it may be over
    told = (
        f"{what} for {who} {differs} from that for {gap.others}: alarm at look {found['alarm_at']} "
        f"({alarm.at}; an alarm needs an e-value of {e_text(threshold)}, the largest so far is "
        f"{e_text(found['e_value'])}), {begun} "
        f"({100 * found['share']:.0f} % of the evidence){late}; {size}."
    )
    if found["changed_at"] is not None:
        when = looks[found["changed_at"] - 1].at
        told += (
            f" It has changed: no single gap fits all looks, which is known since look"
            f" {found['changed_at']} ({when})."
        )
    return told


def _size(gap: Gap, found: dict[str, Any], looks: int, said: str) -> str:
    """Word how large a gap has been since it began; one that came and went has no one size."""
    less = f"{gap.named['group']} less {gap.others}"
    if found["began_from"] is None:
        measured = gap.of_look(looks - 1) * gap.scale
        size = signed_points(measured, gap.metric.unit)
        last = "" if math.isnan(measured) else f"; in the last look {less} is {size}"
        return f"no gap that began once and kept one size since fits these looks{last}"
    if found["low"] is None:
        return f"how large {less} is since then, later looks will say"
    first, latest = found["began_from"], found["began_to"]
    when = f"at look {first}" if first == latest else f"between looks {first} and {latest}"
    unsettled = ", its sign not known yet" if found["low"] < 0.0 < found["high"] else ""
    size = _range(gap, found["low"], found["high"])
    return f"if it began once, it did so {when}, and {less} is {size} since{unsettled} ({said})"


def _range(gap: Gap, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "of no one size"
    unit = gap.metric.unit
    return f"from {interval(low, high, unit)} {'points' if unit == 'fraction' else unit}".rstrip()


def e_text(x: float) -> str:
    """Write an e-value: 0.2, 2,797, 4.0e+18."""
    return f"{x:,.1f}" if x < 100 else f"{x:,.0f}" if x < 1e6 else f"{x:.1e}"
