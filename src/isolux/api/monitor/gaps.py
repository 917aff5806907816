"""Differences of clusters in each snapshot: one gap for each group and its complement.

A cluster with people of both (a photo of two people) gives the difference of its two means; other
clusters are paired at random within their snapshot, independently of their scores. Either way the
expectation of a difference is the gap, and no cluster is in two differences.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from isolux.api.monitor.snapshots import Snapshot
from isolux.core import registry
from isolux.core.containers import Run
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.info import Metric
from isolux.core.spec import Groups, read_recorded_spec
from isolux.core.survey_sample import add_weighted_to_title
from isolux.groups import build_membership, read_groupings
from isolux.groups.binning import parse_bins
from isolux.groups.unknown_values import UNKNOWN
from isolux.statements.numbers import format_interval
from isolux.stats.cluster_sums import IntArray
from isolux.stats.sequential_tests import pair_group_clusters_for_gap
from isolux.stats.statistic import FloatArray

_MIN_MIXTURE_SHARE = 0.05
"""Share of within-cluster differences, or of the others, from which a gap is a mixture."""
_METRIC_COLUMNS = ("metric", "label", "threshold")


@dataclass(slots=True)
class MonitoredGap:
    """One group against its complement within the attribute, over all snapshots.

    Parameters
    ----------
    identity : dict
        metric, label, threshold, attribute, group.
    metric : Metric
    complement_name : str
        Who the others are: the one other group, or "the others".
    difference, look : [n] float, int
        On a scale of 1, and the look of each.
    sizes : list of (int, int)
        Clusters of the group and of the others, in each look.
    n_within_clusters : int
        How many of the differences are within clusters that hold both sides.
    """

    identity: dict[str, Any]
    metric: Metric
    complement_name: str
    difference: FloatArray = field(default_factory=lambda: np.zeros(0))
    look: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    sizes: list[tuple[int, int]] = field(default_factory=list)
    n_within_clusters: int = 0

    @property
    def scale(self) -> float:
        """What a difference of 1 is in the metric's unit."""
        return float((self.metric.high or 0.0) - (self.metric.low or 0.0))

    def mean_difference(self, t: int) -> float:
        """Mean difference of one snapshot, on a scale of 1; NaN: there is none."""
        differences = self.difference[self.look == t]
        return float(differences.mean()) if len(differences) else float("nan")

    def add_snapshot(
        self, t: int, differences: FloatArray, sizes: tuple[int, int], n_within: int
    ) -> None:
        """Add a snapshot's differences."""
        self.n_within_clusters += n_within
        self.difference = np.concatenate([self.difference, differences])
        self.look = np.concatenate([self.look, np.full(len(differences), t, dtype=np.int64)])
        self.sizes.append(sizes)


def build_gaps(
    snapshots: Sequence[Snapshot], metric: str | None, seed: int
) -> tuple[list[MonitoredGap], tuple[str, ...]]:
    """Build every gap of one metric, and note snapshots without one of its groups."""
    first = read_recorded_spec(snapshots[0].run.record)
    _refuse_quantiles(first.groups)
    metric_info = _select_metric(snapshots[0].run, metric)
    for snapshot in snapshots:
        if (
            snapshot.run.scores.height
            and not (snapshot.run.scores["metric"] == metric_info.name).any()
        ):
            raise UnknownNameError(
                "metric",
                metric_info.name,
                snapshot.run.scores["metric"].unique().sort(),
                where=snapshot.name,
            )
    frames = [
        _read_scaled_unit_scores(snapshot.run, first.groups, metric_info) for snapshot in snapshots
    ]
    all_scores = pl.concat(frames)
    gaps = []
    for identity, complement_name in _iterate_gap_identities(all_scores, metric_info):
        gap = MonitoredGap(identity, metric_info, complement_name)
        for t, frame in enumerate(frames):
            rng = np.random.default_rng([seed, t])
            gap.add_snapshot(t, *_compute_differences(frame, identity, rng))
        gaps.append(gap)
    if not gaps:
        raise SpecError(
            "there is no gap to watch",
            expected="an attribute of which two groups have scores",
            found="groups " + (", ".join(all_scores["group"].unique().sort()) or "none"),
        )
    missing = [
        f"{gap.identity['group']} ({gap.identity['attribute']}) has nobody to compare in "
        f"{sum(min(size) == 0 for size in gap.sizes)} of {len(snapshots)} looks"
        for gap in gaps
        if any(min(size) == 0 for size in gap.sizes)
    ]
    return gaps, tuple(missing)


def caution_on_mixture(gap: MonitoredGap) -> str:
    """Caution on a gap that mixes differences within and between clusters."""
    n = len(gap.difference)
    if not _MIN_MIXTURE_SHARE < gap.n_within_clusters / max(n, 1) < 1.0 - _MIN_MIXTURE_SHARE:
        return ""
    return (
        f" Read this gap with caution: it is a mixture. {gap.n_within_clusters:,} of {n:,}"
        " differences are"
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


def _select_metric(run: Run, name: str | None) -> Metric:
    """Select the metric: a mean of people's scores with a declared range."""
    metric_names = run.scores["metric"].unique(maintain_order=True).to_list()
    if name is not None and name not in metric_names:
        raise UnknownNameError("metric", name, metric_names, where="--metric")
    try:
        declared_metrics = {
            m.name: m for m in registry.task_info(str(run.record.get("task"))).metrics
        }
    except UnknownNameError:
        declared_metrics = {}
    recorded_measures = run.record.get("measures") or {}
    for metric_name in [name] if name is not None else metric_names:
        metric = declared_metrics.get(metric_name)
        if metric is None and recorded_measures.get(metric_name, {}).get("unit") == "fraction":
            metric = Metric(name=metric_name, definition="", **recorded_measures[metric_name])
        if metric is not None and metric.low is not None and metric.high is not None:
            return metric
    raise SpecError(
        "no metric of the runs can be watched",
        expected="a mean of people's scores with a least and a largest value",
        found=name or ", ".join(metric_names) or "none",
        where="--metric",
    )


def _read_scaled_unit_scores(run: Run, settings: Groups, metric: Metric) -> pl.DataFrame:
    """Return each unit's score, scaled to 0 to 1, with its cluster, attributes and groups."""
    scores = run.scores.filter(pl.col("metric") == metric.name).drop_nulls("value")
    grouping_by_attribute = read_groupings(settings, run.attributes)
    members = build_membership(
        run.attributes,
        settings.by,
        grouping_by_attribute,
        units=scores["unit_id"].unique(maintain_order=True),
    ).frame.filter(pl.col("group") != UNKNOWN)
    low, high = float(metric.low or 0.0), float(metric.high or 1.0)
    cluster = pl.coalesce(pl.format("c:{}", "cluster_id"), pl.format("u:{}", "unit_id"))
    unit_scores = scores.select(
        "unit_id", *_METRIC_COLUMNS, cluster=cluster, value=(pl.col("value") - low) / (high - low)
    )
    return unit_scores.join(members.select("unit_id", "attribute", "group"), on="unit_id")


def _iterate_gap_identities(
    frame: pl.DataFrame, metric: Metric
) -> Iterator[tuple[dict[str, Any], str]]:
    """List each group with a complement; of two groups, one gap."""
    keys = [*_METRIC_COLUMNS, "attribute"]
    for key, attribute_rows in frame.group_by(keys, maintain_order=True):
        groups = attribute_rows["group"].unique().sort().to_list()
        identity = dict(zip(keys, key, strict=True)) | {"metric": metric.name}
        if len(groups) == 2:
            yield {**identity, "group": groups[0]}, groups[1]
        elif len(groups) > 1:
            for group in groups:
                yield {**identity, "group": group}, "the others"


def _compute_differences(
    frame: pl.DataFrame, identity: dict[str, Any], rng: np.random.Generator
) -> tuple[FloatArray, tuple[int, int], int]:
    """Compute a snapshot's differences, its cluster counts, and how many are within clusters."""
    keys = [*_METRIC_COLUMNS, "attribute"]
    gap_rows = frame.filter(*(pl.col(k).eq_missing(pl.lit(identity[k])) for k in keys))
    is_in_group = pl.col("group").eq(identity["group"]).any()
    people = gap_rows.group_by("cluster", "unit_id").agg(
        pl.col("value").first(), inside=is_in_group
    )
    cluster_means = people.group_by("cluster").agg(
        first=pl.col("value").filter(pl.col("inside")).mean(),
        second=pl.col("value").filter(~pl.col("inside")).mean(),
    )
    cluster_means = cluster_means.sort("cluster")[rng.permutation(cluster_means.height).tolist()]
    two_sided = cluster_means.drop_nulls()
    one_sided = cluster_means.filter(pl.any_horizontal(pl.col("first", "second").is_null()))
    paired = pair_group_clusters_for_gap(
        one_sided["first"].drop_nulls().to_numpy(), one_sided["second"].drop_nulls().to_numpy()
    )
    within_differences = (two_sided["first"] - two_sided["second"]).to_numpy()
    sizes = cluster_means["first"].count(), cluster_means["second"].count()
    return np.concatenate([within_differences, paired]), sizes, two_sided.height


def format_gap(
    gap: MonitoredGap,
    summary: dict[str, Any],
    snapshots: Sequence[Snapshot],
    level: float,
    threshold: float,
) -> str:
    """Format what is known of a gap after the last snapshot."""
    name = add_weighted_to_title(
        gap.metric.format_title(gap.identity["threshold"]), snapshots[0].run.record
    )
    metric_text = f"{name} of {gap.identity['label']}" if gap.identity["label"] else name
    group_text = f"{gap.identity['group']} ({gap.identity['attribute'].replace('_', ' ')})"
    level_text = f"{100 * level:g} % at every look"
    if summary["alarm_at"] is None:
        range_text = _format_range(gap, summary["constant_low"], summary["constant_high"])
        start = (
            f"{metric_text} for {group_text}: no gap to {gap.complement_name} is shown in"
            f" {len(snapshots)} looks "
            f"(e-value {format_e_value(summary['e_value'])}; an alarm needs"
            f" {format_e_value(threshold)})"
        )
        return (
            f"{start}. If it is always the same, {gap.identity['group']} less {gap.complement_name}"
            f" is {range_text} ({level_text})."
        )
    alarm = snapshots[summary["alarm_at"] - 1]
    size_text = _format_start_and_size(gap, summary, level_text)
    differs_text = "has differed" if summary["is_open"] is False else "differs"
    text = (
        f"{metric_text} for {group_text} {differs_text} from that for {gap.complement_name}: alarm"
        f" at look {summary['alarm_at']} "
        f"({alarm.timestamp}; an alarm needs an e-value of {format_e_value(threshold)}, "
        f"the largest so far is {format_e_value(summary['e_value'])}); {size_text}."
    )
    if summary["changed_at"] is not None:
        timestamp = snapshots[summary["changed_at"] - 1].timestamp
        text += (
            f" It has changed: no single gap fits all looks, which is known since look"
            f" {summary['changed_at']} ({timestamp})."
        )
    return text


def _format_start_and_size(gap: MonitoredGap, summary: dict[str, Any], level_text: str) -> str:
    """Format between which looks a gap began, and whether and how large it is now."""
    contrast = f"{gap.identity['group']} less {gap.complement_name}"
    first_start, last_start = summary["began_from"], summary["began_to"]
    text = (
        f"it began at look {first_start}"
        if first_start == last_start
        else f"it began between looks {first_start} and {last_start}"
    )
    if summary["low"] is not None:
        size_text = _format_range(gap, summary["low"], summary["high"])
        text += f", and if it has kept one size since, {contrast} is {size_text}"
    if summary["is_open"] is None:
        return f"{text} ({level_text}); whether it is still there, later looks will say"
    n = summary["now_looks"]
    return (
        f"{text}; in the last {'look' if n == 1 else f'{n} looks'} it is"
        f" {'still there' if summary['is_open'] else 'not there any more'}: {contrast} is"
        f" {_format_range(gap, summary['now_low'], summary['now_high'])} ({level_text})"
    )


def _format_range(gap: MonitoredGap, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "of no one size"
    unit = gap.metric.unit
    unit_text = "points" if unit == "fraction" else unit
    return f"from {format_interval(low, high, unit)} {unit_text}".rstrip()


def format_e_value(x: float) -> str:
    """Write an e-value: 0.2, 2,797, 4.0e+18."""
    return f"{x:,.1f}" if x < 100 else f"{x:,.0f}" if x < 1e6 else f"{x:.1e}"
