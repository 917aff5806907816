"""Tests of two groups of clustered photos, as others make them, many worlds at once.

All take photos and right ones ``[w, 2, c]`` of both groups by cluster and return a p-value a world,
NaN where the test cannot be asked.
"""

from __future__ import annotations

import warnings

import numpy as np
from scipy.special import stdtr
from scipy.stats import mannwhitneyu, permutation_test

from isolux.stats.test_inversion import two_sided_p_from_z, z_statistics_by_test_inversion
from tests.laws._cells import Z, apart


def ours(photos, right, rng):
    """Our interval's reach to 0."""
    return two_sided_p_from_z(z_statistics_by_test_inversion(apart(photos, right), exact_z=(Z,)))


def photos_alone(photos, right, rng):
    """The z-test of two shares, photos taken for observations."""
    n, k = photos.sum(axis=2), right.sum(axis=2)
    p, pooled = k / n, (k.sum(axis=1) / n.sum(axis=1))[:, None]
    error = np.sqrt((pooled * (1 - pooled) / n).sum(axis=1))
    return two_sided_p_from_z(
        np.divide(p[:, 0] - p[:, 1], error, out=np.zeros(len(p)), where=error > 0)
    )


def welch_cr2(photos, right, rng):
    """CR2 with Bell and McCaffrey's degrees of freedom, joined by Welch and Satterthwaite."""
    found = apart(photos, right)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.abs(found.a - found.b) / found.standard_error
    return np.where(np.isfinite(t), 2 * stdtr(found.dof, -t), np.where(found.a == found.b, 1, 0))


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


def fhibe(photos, right, rng):
    """FHIBE's: Mann and Whitney's test, every photo taken for a person of its own."""
    out = np.ones(len(photos))
    for w in range(len(photos)):
        n, k = photos[w].sum(axis=1).astype(int), right[w].sum(axis=1).astype(int)
        a, b = (
            np.repeat([1.0, 0.0], [own, all_of - own]) for own, all_of in zip(k, n, strict=True)
        )
        out[w] = mannwhitneyu(a, b, method="asymptotic").pvalue
    return np.nan_to_num(out, nan=1.0)  # all alike: no claim


def rates_permuted(photos, right, rng, draws=399):
    """Whole clusters permuted, the difference of the photos' rates over its CR1 error.

    Studentised as Chung and Romano (2013) have it; not where a cluster is in both groups.
    """
    out = np.full(len(photos), np.nan)
    if ((photos > 0).all(axis=1)).any():
        return out
    whole = np.stack([photos.sum(axis=1), right.sum(axis=1)], axis=1)
    first = photos[:, 0] > 0
    for w in range(len(photos)):
        held = rng.permuted(np.broadcast_to(first[w], (draws, first.shape[1])), axis=1)
        sides = np.stack([held, ~held], axis=1)
        seen = abs(_studentised(right[w][None], photos[w][None])[0])
        drawn = np.abs(_studentised(whole[w, 1] * sides, whole[w, 0] * sides))
        out[w] = (1 + (drawn >= seen - 1e-12).sum()) / (draws + 1)
    return out


def _studentised(right, photos):
    """Student's t of the difference of rates of clusters in one group each: ``[b]``."""
    n = photos.sum(axis=2)
    p = right.sum(axis=2) / n
    left = (right - p[:, :, None] * photos) / n[:, :, None]
    spread = np.sqrt((left**2).sum(axis=(1, 2)))
    return np.divide(p[:, 0] - p[:, 1], spread, out=np.zeros(len(p)), where=spread > 1e-12)


def wildboottest(photos, right, rng):
    """wildboottest 0.3.2 (MIT) where it is installed: WCR31, Webb's weights, 399 draws."""
    out = np.full(len(photos), np.nan)
    try:
        from wildboottest.wildboottest import WildboottestCL
    except ImportError:
        return out
    for w in range(len(photos)):
        group, cluster, y = _rows(photos[w], right[w])
        x = np.column_stack([np.ones(len(y)), group])
        boot = WildboottestCL(
            X=x, Y=y, cluster=cluster, R=np.array([0.0, 1.0]), B=399,
            seed=int(rng.integers(2**31)), parallel=False,
        )  # fmt: skip
        try:
            boot.get_scores(bootstrap_type="31", impose_null=True)
            boot.get_weights(weights_type="webb")
            boot.get_numer()
            # Its own ``get_denom`` compiles anew for every world; the same sums at once:
            left = boot.R @ boot.tXXinv @ np.array(boot.tXgXg_list) @ boot.tXXinv
            shifted = boot.Cg[:, None] * boot.v - left @ boot.scores_mat @ boot.v
            boot.denom = boot.ssc * (shifted**2).sum(axis=0)
            boot.get_tboot()
            boot.get_vcov()
            boot.get_tstat()
            boot.get_pvalue(pval_type="two-tailed")
        except (ValueError, ZeroDivisionError, np.linalg.LinAlgError):
            out[w] = 1.0
            continue
        out[w] = np.nan_to_num(boot.pvalue, nan=1.0)
    return out


METHODS = {
    "ours": ours,
    "photos as observations": photos_alone,
    "FHIBE's": fhibe,
    "CR2, Welch": welch_cr2,
    "wild cluster bootstrap": wild_bootstrap,
    "wildboottest, WCR31": wildboottest,
    "rates permuted, studentised": rates_permuted,
    "scipy, clusters' means permuted": clusters_permuted,
    "statsmodels, GEE": gee,
}
SLOW = {
    "wild cluster bootstrap": 2,
    "wildboottest, WCR31": 20,
    "rates permuted, studentised": 4,
    "scipy, clusters' means permuted": 4,
    "statsmodels, GEE": 20,
}
"""Methods that are asked about every so-manieth world only."""
OF_SUBJECTS = "scipy, clusters' means permuted", "statsmodels, GEE"
"""Methods whose question is about subjects, or about what lies within them, not about photos."""
