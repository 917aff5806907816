"""Two models on the same people: the size of the test and the coverage of the change."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.spec import ComparisonSettings
from isolux.disparity.models import PLANNED_FAMILY, compare_models
from isolux_worlds._random_streams import beta_quantile_from_mean_and_icc
from tests.laws._figures import FULL, at_least, at_most, record, scaled, sized
from tests.laws._worlds import a_mean, crossed_entries, estimates_of, with_bootstrap

pytestmark = pytest.mark.law
WORLDS, REPLICATES = scaled(500, 50), sized(999, 199)
GROUPS, SIZE, PHOTOS = 3, 30, 10


def _world(rng, rates: tuple[float, float], icc: float):
    """Both models find the same subjects hard, and half of their answers share their luck."""
    subject = rng.random(GROUPS * SIZE)
    luck = rng.random((GROUPS * SIZE, PHOTOS))
    other = np.where(rng.random(luck.shape) < 0.5, luck, rng.random(luck.shape))
    member = np.repeat(np.eye(GROUPS, dtype=np.int64), SIZE, axis=1)[None]
    right = [
        member
        * (drawn < beta_quantile_from_mean_and_icc(np.array(rate), icc, subject)[:, None]).sum(
            axis=1
        )
        for rate, drawn in zip(rates, (luck, other), strict=True)
    ]
    measures = (a_mean(1, model="a"), a_mean(3, model="b"))
    return estimates_of(crossed_entries(member * PHOTOS, right), {"a": GROUPS}, measures)


@pytest.mark.parametrize("rates", [(0.8, 0.8), (0.8, 0.7)])
def test_paired_changes_are_covered_and_claims_are_rare(rates):
    rng = np.random.default_rng([int(100 * r) for r in rates])
    held, claimed, wider = [], [], []
    for world in range(WORLDS):
        spec = ComparisonSettings(replicates=REPLICATES, seed=world)
        estimates = with_bootstrap(_world(rng, rates, 0.3), spec)
        rows = compare_models(estimates, spec, ("a", "b")).table.filter(
            pl.col("kind") == "model_difference"
        )
        low, high = rows["low"].to_numpy(), rows["high"].to_numpy()
        held.append((low <= rates[1] - rates[0]) & (rates[1] - rates[0] <= high))
        claimed.append(
            (rows.filter(pl.col("family") != PLANNED_FAMILY)["p_adjusted"] <= 0.05).any()
        )
        alone = estimates.standard_error[: GROUPS + 1]
        wider.append((2 * 1.96 * np.hypot(alone[:, 0], alone[:, 1]) / (high - low)).mean())
    found = {
        "rates": "/".join(map(str, rates)), "covered": float(np.mean(held)),
        "any claim": float(np.mean(claimed)), "unpaired width over ours": float(np.mean(wider)),
    }  # fmt: skip
    record(f"models-{rates[1]}", [found], worlds=WORLDS, replicates=REPLICATES)
    assert found["covered"] >= at_least(0.95, WORLDS, full=0.925), found
    assert found["unpaired width over ours"] > 1.2, "pairing must pay"
    if rates[0] == rates[1]:
        assert found["any claim"] <= at_most(0.05, WORLDS, full=0.079), found
    else:
        assert found["any claim"] > (0.95 if FULL else 0.85), found


@pytest.mark.parametrize("rate", [0.8, 0.95, 0.98])
def test_a_change_called_detectable_is_found_in_eight_of_ten(rate):
    rng = np.random.default_rng([11, int(100 * rate)])
    worlds = scaled(500, 60)

    def everyone(second, seed):
        spec = ComparisonSettings(replicates=REPLICATES, seed=seed)
        world = with_bootstrap(_world(rng, (rate, second), 0.3), spec)
        of_all = pl.col("group_a") == "overall"
        changes = compare_models(world, spec, ("a", "b")).table.filter(kind="model_difference")
        return changes.row(by_predicate=of_all, named=True)

    least = float(np.mean([everyone(rate, seed)["detectable"] for seed in range(worlds // 4)]))
    found = [everyone(rate - least, seed)["p_adjusted"] <= 0.05 for seed in range(worlds)]
    row = {"rate": rate, "planted = detectable": least, "found": float(np.mean(found))}
    record(f"change-power-{rate}", [row], worlds=worlds, replicates=REPLICATES)
    assert row["found"] >= at_least(0.8, worlds, full=0.745), row
    assert row["found"] <= at_most(0.92, worlds, full=0.96), row


@pytest.mark.parametrize("churn", [0.02, 0.1, 0.3])
def test_a_change_between_versions_of_one_model_is_found_in_eight_of_ten(churn):
    """Rows are independent; the second answers anew for a share of people, and loses some."""
    rng = np.random.default_rng([12, int(100 * churn)])
    worlds, size, rate = scaled(500, 60), 300, 0.8

    def everyone(lost, seed):
        spec = ComparisonSettings(replicates=REPLICATES, seed=seed)
        one = rng.random(size) < rate
        two = np.where(rng.random(size) < churn, rng.random(size) < rate, one)
        two &= rng.random(size) >= lost / rate
        member = np.repeat(np.eye(2, dtype=np.int64), size // 2, axis=1)[None]
        entries = crossed_entries(member, [member * one, member * two])
        measures = (a_mean(1, model="a"), a_mean(3, model="b"))
        world = with_bootstrap(estimates_of(entries, {"a": 2}, measures), spec)
        changes = compare_models(world, spec, ("a", "b")).table.filter(kind="model_difference")
        return changes.row(by_predicate=pl.col("group_a") == "overall", named=True)

    said = [everyone(0.0, seed)["detectable"] for seed in range(worlds // 4)]
    least = float(np.mean([x for x in said if x is not None]))  # None: they agree on everyone
    found = [everyone(least, seed)["p_adjusted"] <= 0.05 for seed in range(worlds)]
    row = {"rate": rate, "answered anew, %": churn, "planted = detectable": least,
           "found": float(np.mean(found))}  # fmt: skip
    record(f"change-power-churn-{churn}", [row], worlds=worlds, replicates=REPLICATES)
    assert row["found"] >= at_least(0.74, worlds, full=0.7), row
    assert row["found"] <= at_most(0.87, worlds, full=0.915), row
