"""Two groups of graded scores: overlaps that are now and then 0, errors now and then large."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from isolux.groups.interval_methods.skewness_adjusted import (
    VarianceSlopes,
    estimate_variance_slopes,
    skewness_adjusted_interval,
)
from isolux.stats.clustered_proportions import concatenate_means, means_from_cluster_sums
from isolux.stats.differences import independent_mean_difference
from isolux.stats.test_inversion import two_sided_p_from_z, z_statistics_by_test_inversion
from isolux.stats.weighted_means import estimate_weighted_means

Z = 1.959963984540054


def scores(rng, law, n):
    """Draw scores of one person each."""
    kind, share = law
    if kind == "overlap":  # found well, or not at all
        return np.where(rng.random(n) < share, 0.0, rng.beta(30.0, 2.0, n))
    if kind == "normal":
        return rng.normal(0.5, 0.1 * share, n)
    if kind == "lognormal":
        return rng.lognormal(0.0, share, n)
    if kind == "exponential":
        return rng.exponential(share, n)
    if kind == "beta":
        return rng.beta(17.0 * share, 3.0 * share, n)
    raise ValueError(kind)


def truth(law):
    """Return the mean of scores."""
    kind, share = law
    return {
        "overlap": (1.0 - share) * 30.0 / 32.0, "normal": 0.5, "beta": 0.85,
        "lognormal": float(np.exp(share**2 / 2.0)), "exponential": share,
    }[kind]  # fmt: skip


def _group(values, photos=None):
    one = np.ones(len(values), dtype=np.int64)
    photos = one if photos is None else photos
    return means_from_cluster_sums(
        csr_array(values[None, :]), csr_array(photos[None, :].astype(float)), one,
                         0.0, is_proportion=False)  # fmt: skip


def _subjects(rng, law, n, photos, alike):
    """Add up photos of subjects, of which a share are alike; ``photos`` 0: lognormal numbers."""
    many = np.maximum(np.rint(rng.lognormal(1.2, 1.0, n)), 1) if not photos else np.full(n, photos)
    many = many.astype(np.int64)
    who = np.repeat(np.arange(n), many)
    drawn = scores(rng, law, len(who))
    if alike:
        drawn = np.where(rng.random(len(who)) < alike, scores(rng, law, n)[who], drawn)
    return _group(np.bincount(who, weights=drawn, minlength=n), many)


def _weighted(rng, law, n, spread):
    """Draw people whose weights are lognormal and have nothing to do with their scores."""
    weight = rng.lognormal(0.0, spread, (1, n))
    parts = csr_array(weight * scores(rng, law, n)), csr_array(weight), csr_array(weight**2)
    return estimate_weighted_means(parts, None, 0.0, is_proportion=False)


def own_intervals(groups, worlds, *, photos=1, alike=0.0, weights=0.0):
    """Say how often the first group's interval holds its mean, as it is and by Student's t.

    ``groups``: the scores' law and the subjects of each of an attribute's groups.
    """
    (law, people), rest = groups[0], groups[1:]
    fraction, none = law[0] in ("overlap", "beta"), np.zeros(len(groups))
    family = np.ones(len(groups), dtype=np.int64) if rest else None
    found = []
    for world in range(worlds):
        rng = np.random.default_rng([43, world])
        means = concatenate_means([
            _weighted(rng, own, n, weights) if weights else _subjects(rng, own, n, photos, alike)
            for own, n in groups
        ])  # fmt: skip
        row = []
        for slopes in (estimate_variance_slopes(means, family), VarianceSlopes(none, none)):
            ends = skewness_adjusted_interval(means, slopes, Z, is_fraction=fraction)
            row += [ends.low[0] <= truth(law) <= ends.high[0], ends.high[0] - ends.low[0]]
        found.append(row)
    held, width, plain, was = np.array(found, dtype=np.float64).T
    others = " and ".join(f"{n} of {own[0]} {own[1]:g}" for own, n in dict.fromkeys(rest))
    return {
        "scores": f"{law[0]} {law[1]:g}", "people": people,
        "photos each": photos or "lognormal", "alike within subjects": alike,
        **({"weights, σ": weights} if weights else {}),
        "beside": f"{others}{f', {len(rest)} times' if len(rest) > 1 else ''}" or "–",
        "held, %": held.mean(), "by Student's t: held, %": plain.mean(),
        "width over Student's": float(np.mean(width / was)),
    }  # fmt: skip


def graded(laws, sizes, worlds, *, apart=0.0):
    """Count findings and intervals that hold, as they are and by each group's own variance."""
    rows = []
    for world in range(worlds):
        rng = np.random.default_rng([41, world])
        a, b = (scores(rng, law, n) for law, n in zip(laws, sizes, strict=True))
        a = a - apart
        one, two, none = _group(a), _group(b), np.zeros(1)
        row = []
        for alike in (True, False):
            found = independent_mean_difference(one, two, none, none, floor_variances=alike)
            p = two_sided_p_from_z(z_statistics_by_test_inversion(found, (Z,)))[0]
            ends = found.interval(Z)
            row += [p <= 0.05, p <= 0.005, ends.low[0] <= -apart <= ends.high[0]]
        rows.append(row)
    mean = np.mean(rows, axis=0)
    return {
        "scores": " and ".join(f"{kind} {x:g}" for kind, x in dict.fromkeys(laws)),
        "people": f"{sizes[0]} and {sizes[1]}", "apart": apart,
        "p <= .05, %": mean[0], "p <= .005, %": mean[1], "held, %": mean[2],
        "by own variances: p <= .05, %": mean[3], "by own variances: p <= .005, %": mean[4],
    }  # fmt: skip
