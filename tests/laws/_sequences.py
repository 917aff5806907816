"""Series of looks with and without a gap, for the laws of watching over time."""

from __future__ import annotations

import numpy as np

from isolux.stats.sequential_tests import (
    pair_group_clusters_for_gap,
    run_sequential_gap_test,
    thin_clusters_to_equal_weight,
)
from tests._e_values import e_values

ALPHA = 0.05


def series(rng, rate, *, looks, clusters, gap=0.0, begins=0, icc=0.3, sizes="equal"):
    """Draw cluster means of two groups look by look; from look ``begins`` the first is worse.

    Clusters have 1 to 30 photos, alike within a cluster; the smaller group has a quarter of the
    clusters where sizes are uneven.
    """
    n = (clusters, clusters) if sizes == "equal" else (max(1, clusters // 4), clusters)
    means = []
    for side, k in enumerate(n):
        p = np.full((looks, 1), rate)
        p[begins:] -= gap * (side == 0)
        shape = looks, k
        photos = np.full(shape, 8) if sizes == "equal" else np.minimum(
            rng.lognormal(1, 1.6, shape).astype(int) + 1, 30)  # fmt: skip
        own = rng.beta(p * (1 / icc - 1), (1 - p) * (1 / icc - 1), shape) if icc else p
        means.append(rng.binomial(photos, own) / photos)
    x = paired(*means)
    return x.ravel(), np.repeat(np.arange(looks), x.shape[1])


def paired(first, second):
    """Pair the clusters of all looks at once, ``[looks, clusters]``, as ``differences`` does each.

    Every mean of the smaller side is held against that of a block of the larger.
    """
    n = min(first.shape[1], second.shape[1])
    sides = []
    for means in (first, second):
        k = means.shape[1]
        starts = np.searchsorted(np.arange(k) * n // k, np.arange(n))
        sides.append(np.add.reduceat(means, starts, axis=1) / np.diff([*starts, k]))
    return sides[0] - sides[1]


def false_alarms(rate, sizes, *, worlds, looks=1000, clusters=6):
    """Count series without a gap in which any of the looks raises an alarm; daily t-tests beside.

    The t-test is of all differences so far, its p below .05 at any look from the 5th on.
    """
    alarms, naive = 0, 0
    for seed in range(worlds):
        rng = np.random.default_rng([seed, int(1000 * rate), len(sizes)])
        x, look = series(rng, rate, looks=looks, clusters=clusters, sizes=sizes)
        alarms += bool((e_values(x, look, looks) >= 1 / ALPHA).any())
        ends = np.searchsorted(look, np.arange(looks), side="right")[4:]
        mean = np.cumsum(x)[ends - 1] / ends
        square = np.cumsum(x**2)[ends - 1] / ends - mean**2
        naive += bool((np.abs(mean) > 1.96 * np.sqrt(np.maximum(square, 1e-12) / ends)).any())
    return {
        "rate": rate, "sizes": sizes, "looks": looks, "clusters a group and look": clusters,
        "any alarm, %": alarms / worlds, "any daily test below .05, %": naive / worlds,
    }  # fmt: skip


def weighted_series(rng, rate, *, looks, clusters, gap=0.0, begins=0):
    """Draw a gap of 0 in the population that the sample shows where weights are not read.

    Three strata of 76, 19 and 5 % of the people, drawn alike. The first group's rate falls from one
    to the next by 1.2 logits, the second's is the first's mean in all. From look ``begins`` on the
    first is worse by ``gap``. Returns differences and looks of clusters kept by weight, and of all.
    """
    shares = np.array([16.0, 4.0, 1.0]) / 21.0
    lean = np.log(rate / (1.0 - rate)) + np.array([0.5, -0.7, -1.9])
    of_first = 1.0 / (1.0 + np.exp(-lean))
    rates = np.stack([of_first, np.full(3, shares @ of_first)])
    found = {"kept": ([], []), "all": ([], [])}
    for t in range(looks):
        means, weights = [], []
        for side in (0, 1):
            stratum = rng.integers(0, 3, clusters)
            p = np.maximum(rates[side, stratum] - gap * (side == 0 and t >= begins), 0.0)
            means.append(rng.binomial(4, rng.beta(p * 7 / 3 + 1e-9, (1 - p) * 7 / 3)) / 4)
            weights.append(shares[stratum])
        for name, (values, look) in found.items():
            sides = means
            if name == "kept":
                kept = [thin_clusters_to_equal_weight(rng, w, shares[0]) for w in weights]
                sides = [m[k] for m, k in zip(means, kept, strict=True)]
            values.append(pair_group_clusters_for_gap(*sides))
            look.append(np.full(len(values[-1]), t))
    return {name: (np.concatenate(v), np.concatenate(k)) for name, (v, k) in found.items()}


def weighted_alarms(rate, *, worlds, looks, clusters=12, gap=0.1, begins=100):
    """Count false alarms by weight and without, and how late a gap is found beside equal weights.

    The last column is the delay of so many clusters of one weight as Kish counts.
    """
    alarms = {"kept": 0, "all": 0}
    late, alike = [], []
    for seed in range(worlds):
        rng = np.random.default_rng([seed, 13, int(1000 * rate)])
        for name, (x, look) in weighted_series(rng, rate, looks=looks, clusters=clusters).items():
            alarms[name] += bool((e_values(x, look, looks) >= 1 / ALPHA).any())
    for seed in range(max(worlds // 10, 2)):
        rng = np.random.default_rng([seed, 17, int(1000 * rate)])
        x, look = weighted_series(rng, rate, looks=begins + 200, clusters=clusters, gap=gap,
                                  begins=begins)["kept"]  # fmt: skip
        late.append(_found(x, look, begins, begins + 200))
        x, look = series(rng, rate, looks=begins + 200, clusters=_WORTH * clusters // 100, gap=gap,
                         begins=begins)  # fmt: skip
        alike.append(_found(x, look, begins, begins + 200))
    return {
        "rate": rate, "looks": looks, "clusters a group and look": clusters,
        "any alarm, %": alarms["kept"] / worlds,
        "weights ignored: any alarm, %": alarms["all"] / worlds,
        "gap of 10 points: looks to the alarm, median": float(np.median(late)),
        "as many clusters of one weight as these are worth": float(np.median(alike)),
    }  # fmt: skip


_WORTH = 54
"""Kish's number of clusters of weights 16, 4 and 1 in equal parts, of 100: 21² / (3 · 273)."""


def _found(x, look, begins, looks):
    reached = e_values(x, look, looks) >= 1 / ALPHA
    return (int(reached.argmax()) if reached.any() else looks) - begins + 1


def covers(rate, gap, *, worlds, looks=200, clusters=10):
    """Count series of a constant gap whose sequence leaves it out at any look, or see a change."""
    out, changed, width = 0, 0, []
    for seed in range(worlds):
        rng = np.random.default_rng([seed, 7, int(1000 * rate)])
        x, look = series(rng, rate, looks=looks, clusters=clusters, gap=gap)
        found = run_sequential_gap_test(x, look, looks, 1 / ALPHA)
        out += bool(((found.low > -gap) | (found.high < -gap) | np.isnan(found.low)).any())
        changed += bool((found.change_e_value >= 1 / ALPHA).any())
        width.append(found.high[-1] - found.low[-1])
    return {
        "rate": rate, "gap": gap, "looks": looks, "clusters a group and look": clusters,
        "leaves the gap out at any look, %": out / worlds, "sees a change, %": changed / worlds,
        "width after the last look": float(np.nanmean(width)),
    }  # fmt: skip


def delay(rate, gap, *, worlds, begins=100, looks=300, clusters=20):
    """Measure how many looks after a gap began the alarm comes, and when it says it began."""
    late, early, held, dated, widths = [], 0, [], [], []
    for seed in range(worlds):
        rng = np.random.default_rng([seed, 11, int(1000 * rate)])
        x, look = series(rng, rate, looks=looks, clusters=clusters, gap=gap, begins=begins)
        e = e_values(x, look, looks)
        at = int((e >= 1 / ALPHA).argmax()) if (e >= 1 / ALPHA).any() else looks
        early += at < begins
        if at >= begins:
            late.append(at - begins + 1)
        found = run_sequential_gap_test(
            x[look <= min(at + 20, looks - 1)],
            look[look <= min(at + 20, looks - 1)],
            min(at + 21, looks),
            1 / ALPHA,
        )
        if at >= begins and at + 20 < looks:
            dated.append(found.start_range[0] <= begins <= found.start_range[1])
            held.append(found.gap_range[0] <= -gap <= found.gap_range[1])
            widths.append(found.gap_range[1] - found.gap_range[0])
    return {
        "rate": rate, "gap": gap, "begins at look": begins + 1,
        "clusters a group and look": clusters, "looks to the alarm, median": float(np.median(late)),
        "90 of 100 within": float(np.quantile(late, 0.9)),
        "alarm before it began, %": early / worlds,
        "20 looks later: interval of when holds it, %": float(np.mean(dated)),
        "of how large holds it, %": float(np.mean(held)),
        "its width": float(np.median(widths)),
    }  # fmt: skip


def closing(rate, gap, *, worlds, begins=10, ends=40, looks=80, clusters=20):
    """Ask when a gap began, while it is open and after it closed, and whether it is there now."""
    dated, held, open_said, dated_after, over = [], [], [], [], []
    for seed in range(worlds):
        rng = np.random.default_rng([seed, 13, int(1000 * rate)])
        x, look = series(rng, rate, looks=looks, clusters=clusters, gap=gap, begins=begins)
        quiet, _ = series(rng, rate, looks=looks, clusters=clusters)
        x = np.where(look < ends, x, quiet)
        while_open, after = (
            run_sequential_gap_test(x[look < n], look[look < n], n, 1 / ALPHA)
            for n in (ends, looks)
        )
        if while_open.e_value.max() < 1 / ALPHA:
            continue
        dated.append(while_open.start_range[0] <= begins <= while_open.start_range[1])
        open_said.append(while_open.current_gap.is_open)
        if while_open.current_gap.n_snapshots:
            held.append(while_open.current_gap.low <= -gap <= while_open.current_gap.high)
        over.append(after.current_gap.is_open)
        dated_after.append(after.start_range[0] <= begins <= after.start_range[1])
    later = f"{looks - ends} looks later"
    return {
        "rate": rate, "gap": gap, "open at looks": f"{begins + 1} to {ends}",
        "clusters a group and look": clusters,
        "start held, %": float(np.mean(dated)),
        "gap now held, %": float(np.mean(held)),
        "said to be open, %": float(np.mean([x is True for x in open_said])),
        "said to be over, %": float(np.mean([x is False for x in open_said])),
        f"{later}: said to be open, %": float(np.mean([x is True for x in over])),
        f"{later}: said to be over, %": float(np.mean([x is False for x in over])),
        f"{later}: start held, %": float(np.mean(dated_after)),
    }  # fmt: skip
