"""Two models of which one's mistakes come in clusters, and gaps where there are none."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.spec import ComparisonSettings
from isolux.disparity.models import compare_models
from isolux_worlds._random_streams import beta_quantile_from_mean_and_icc
from tests.laws._cells import Z, measured_estimates, paired
from tests.laws._figures import FULL, at_least, at_most, record, scaled, sized
from tests.laws._worlds import a_mean, crossed_entries, estimates_of, with_bootstrap

pytestmark = pytest.mark.law
WORLDS, REPLICATES, PHOTOS = scaled(1000, 40), sized(599, 199), 8


def _compared(rng, groups, size, first, second, seed):
    """Compare models of (rate, correlation) each, whose luck is not the same."""
    n = groups * size
    member = np.repeat(np.eye(groups, dtype=np.int64), size, axis=1)[None]
    right = [
        member
        * rng.binomial(PHOTOS, beta_quantile_from_mean_and_icc(np.array(rate), icc, rng.random(n)))
        for rate, icc in (first, second)
    ]
    measures = (a_mean(1, model="a"), a_mean(3, model="b"))
    world = estimates_of(crossed_entries(member * PHOTOS, right), {"a": groups}, measures)
    spec = ComparisonSettings(replicates=REPLICATES, seed=seed)
    estimates = measured_estimates(with_bootstrap(world, spec), spec)
    return compare_models(estimates, spec, ("a", "b")).table


def test_no_gap_changes_where_neither_model_has_one():
    """The mean of both models chooses the pair: one that the first chose would shrink by itself."""
    rng = np.random.default_rng(6)
    values, held, claimed = [], [], []
    for world in range(WORLDS):
        table = _compared(rng, 5, 30, (0.8, 0.5), (0.98, 0.1), world)
        gap = table.filter(pl.col("kind") == "gap_change").row(0, named=True)
        values.append(gap["value"])
        held.append(gap["low"] <= 0 <= gap["high"])
        claimed.append(gap["p_value"] <= 0.05)
    found = {"worlds": "5 groups of 30, no gap in either", "change of the gap, mean":
             float(np.mean(values)), "covered, %": float(np.mean(held)),
             "p <= .05, %": float(np.mean(claimed))}  # fmt: skip
    record("gaps-none", [found], worlds=WORLDS, replicates=REPLICATES)
    assert found["covered, %"] >= at_least(0.95, WORLDS, full=0.93), found
    assert found["p <= .05, %"] <= at_most(0.05, WORLDS, full=0.07), found
    assert abs(found["change of the gap, mean"]) < (0.01 if FULL else 0.04), found


def test_a_change_is_covered_where_one_model_is_more_clustered():
    rng = np.random.default_rng(7)
    held, claimed = [], []
    for world in range(WORLDS):
        table = _compared(rng, 2, 20, (0.95, 0.05), (0.95, 0.6), world)
        row = table.filter(
            (pl.col("kind") == "model_difference") & (pl.col("group_a") == "overall")
        ).row(0, named=True)
        held.append(row["low"] <= 0 <= row["high"])
        claimed.append(row["p_value"] <= 0.05)
    found = {"worlds": "40 clusters, .95, correlations .05 and .6",
             "covered, %": float(np.mean(held)),
             "p <= .05, %": float(np.mean(claimed))}  # fmt: skip
    record("gaps-clustered", [found], worlds=WORLDS, replicates=REPLICATES)
    assert found["covered, %"] >= at_least(0.95, WORLDS, full=0.93), found
    assert found["p <= .05, %"] <= at_most(0.05, WORLDS, full=0.065), found


PAIRED = [
    *[(clusters, 0.95, (0.05, 0.6)) for clusters in (24, 40, 80)],
    *[(40, rate, (0.05, 0.6)) for rate in (0.8, 0.9, 0.98)],
    (40, 0.95, (0.3, 0.3)),
]


@pytest.mark.parametrize(("clusters", "rate", "correlations"), PAIRED)
def test_intervals_of_a_change_hold_it(clusters, rate, correlations):
    worlds = scaled(5000, 500)
    rng = np.random.default_rng([8, clusters, int(100 * rate), int(10 * correlations[0])])
    photos = np.full((worlds, clusters), PHOTOS)
    right = [
        rng.binomial(
            PHOTOS,
            beta_quantile_from_mean_and_icc(np.array(rate), icc, rng.random(worlds * clusters)),
        )
        for icc in correlations
    ]
    ends = paired(photos, (right[0].reshape(photos.shape), right[1].reshape(photos.shape)))
    ends = ends.interval(Z)
    covered = float(((ends.low <= 0) & (ends.high >= 0)).mean())
    row = {"clusters": clusters, "rate of both": rate,
           "correlations": "/".join(map(str, correlations)), "covered, %": covered}  # fmt: skip
    record(f"paired-{clusters}-{rate:g}-{correlations[1]:g}", [row], worlds=worlds, replicates=1)
    # Small: 500 worlds at .935 have a standard error of .011.
    assert covered >= (0.925 if FULL else 0.89), row
