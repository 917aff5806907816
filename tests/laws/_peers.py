"""Tests of two groups of clustered photos, as others make them, many worlds at once.

All take photos and right ones ``[w, 2, c]`` of both groups by cluster and return a p-value a world.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import stdtr
from scipy.stats import permutation_test

from isolux.stats.differences import deviates, two_sided
from tests.laws._cells import Z, apart


def ours(photos, right, rng):
    """Our interval's reach to 0."""
    return two_sided(deviates(apart(photos, right), exact=(Z,)))


def photos_alone(photos, right, rng):
    """The z-test of two shares, photos taken for observations."""
    n, k = photos.sum(axis=2), right.sum(axis=2)
    p, pooled = k / n, (k.sum(axis=1) / n.sum(axis=1))[:, None]
    error = np.sqrt((pooled * (1 - pooled) / n).sum(axis=1))
    return two_sided(np.divide(p[:, 0] - p[:, 1], error, out=np.zeros(len(p)), where=error > 0))


def welch_cr2(photos, right, rng):
    """CR2 with Bell and McCaffrey's degrees of freedom, joined by Welch and Satterthwaite."""
    found = apart(photos, right)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(found.a - found.b) / found.standard_error
    return np.where(
        np.isfinite(t), 2 * stdtr(found.freedom, -t), np.where(found.a == found.b, 1, 0)
    )


def gee(photos, right, rng):
    """statsmodels' GEE: logistic, exchangeable within clusters, bias-reduced covariance."""
    import statsmodels.api as sm

    out = np.ones(len(photos))
    for w in range(len(photos)):
        group, cluster, y = _rows(photos[w], right[w])
        model = sm.GEE(y, sm.add_constant(group), groups=cluster, family=sm.families.Binomial(),
                       cov_struct=sm.cov_struct.Exchangeable())  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                out[w] = model.fit(cov_type="bias_reduced").pvalues[1]
            except (ValueError, np.linalg.LinAlgError):
                continue  # no fit, no claim
    return np.nan_to_num(out, nan=1.0)


def _rows(photos, right):
    """Lay one world out by photo: group, cluster, right."""
    side, cluster = np.nonzero(photos)
    n, k = photos[side, cluster], right[side, cluster]
    who = np.repeat(np.arange(len(n)), n)
    place = np.arange(len(who)) - np.repeat(np.cumsum(n) - n, n)
    order = np.argsort(cluster[who], kind="stable")
    return (
        side[who][order].astype(float),
        cluster[who][order],
        (place < k[who])[order].astype(float),
    )


def clusters_permuted(photos, right, rng):
    """scipy's permutation test of clusters' means; only where no cluster is in both groups."""
    out = np.full(len(photos), np.nan)
    for w in range(len(photos)):
        held = photos[w] > 0
        if (held.all(axis=0)).any():
            return out
        a, b = (right[w, g, held[g]] / photos[w, g, held[g]] for g in (0, 1))
        found = permutation_test(
            (a, b), lambda x, y, axis: x.mean(axis=axis) - y.mean(axis=axis), vectorized=True,
            n_resamples=499, rng=rng,
        )  # fmt: skip
        out[w] = found.pvalue
    return out


def wild_bootstrap(photos, right, rng, draws=399):
    """Wild cluster bootstrap, null imposed, studentised (Cameron, Gelbach and Miller 2008).

    Webb's six weights. Residuals of both groups of a cluster share a weight.
    """
    n, k = photos.sum(axis=2), right.sum(axis=2)
    pooled = k.sum(axis=1) / n.sum(axis=1)
    residual = right - pooled[:, None, None] * photos
    webb = np.array([-np.sqrt(1.5), -1, -np.sqrt(0.5), np.sqrt(0.5), 1, np.sqrt(1.5)])
    out = np.ones(len(photos))
    for w in range(len(photos)):
        weight = rng.choice(webb, (draws, photos.shape[2]))
        seen = _t(right[w][None], photos[w])
        drawn = pooled[w] * photos[w] + weight[:, None, :] * residual[w]
        out[w] = (1 + (np.abs(_t(drawn, photos[w])) >= np.abs(seen) - 1e-12).sum()) / (draws + 1)
    return out


def _t(right, photos):
    """Student's t of the difference with CR1 of clusters that may be in both groups: ``[b]``."""
    n = photos.sum(axis=1)
    p = right.sum(axis=2) / n
    left = (right - p[:, :, None] * photos) / n[:, None]
    spread = np.sqrt(((left[:, 0] - left[:, 1]) ** 2).sum(axis=1))
    return np.divide(p[:, 0] - p[:, 1], spread, out=np.zeros(len(p)), where=spread > 1e-12)


METHODS = {
    "ours": ours,
    "photos as observations": photos_alone,
    "CR2, Welch": welch_cr2,
    "wild cluster bootstrap": wild_bootstrap,
    "scipy, clusters permuted": clusters_permuted,
    "statsmodels, GEE": gee,
}
SLOW = {"statsmodels, GEE": 5, "scipy, clusters permuted": 2}
"""Methods that are asked about every so-manieth world only."""
