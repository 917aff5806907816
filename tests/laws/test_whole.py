"""One number for an attribute: what each does where groups differ clearly and where they do not."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.spec import ComparisonSettings
from isolux.disparity import formulas as formula
from isolux.disparity.disparity_table import measure_disparities
from isolux.stats.intervals import percentile_interval
from isolux_worlds.populations.rates import simulate_rates
from tests.laws._figures import FULL, at_least, at_most, record, scaled, sized
from tests.laws._worlds import one_attribute, with_bootstrap

pytestmark = pytest.mark.law
WORLDS, REPLICATES = scaled(1000, 30), sized(800, 300)
ALIKE = [0.8] * 7
APART = [0.6, 0.75, 0.8, 0.8, 0.8, 0.85, 0.9]
CELLS = {
    "nothing differs": (ALIKE, False),
    "nothing differs, rate .95": ([0.95] * 7, False),
    "nothing differs, varying within subjects": (ALIKE, True),
    "groups differ clearly": (APART, False),
}


def _one(rates: list[float], photos, successes, *, shared: bool, seed: int) -> dict[str, float]:
    spec = ComparisonSettings(replicates=REPLICATES, seed=seed)
    estimates = with_bootstrap(one_attribute(photos, successes, shared=shared), spec)
    table = measure_disparities(estimates, spec).table
    by_kind = {k: table.filter(pl.col("kind") == k).row(0, named=True) for k in _KINDS}
    drawn = estimates.replicates[1:, 0].T
    truth = {
        "range": formula.value_range(rates),
        "epsilon": formula.epsilon(rates),
        "standard_deviation": formula.standard_deviation(rates),
        "noise_corrected_sd": formula.standard_deviation(rates),
    }
    found: dict[str, float] = {}
    for kind, true in truth.items():
        row = by_kind[kind]
        found[f"{kind}"] = row["value"]
        found[f"{kind} covered"] = row["low"] - 1e-12 <= true <= row["high"] + 1e-12
        found[f"{kind} holds 0"] = row["low"] <= 0.0
    for kind, function in (("range", formula.value_range), ("epsilon", formula.epsilon)):
        ends = percentile_interval(function(drawn), 0.95)
        found[f"{kind} by percentile covered"] = ends.low <= truth[kind] <= ends.high
        found[f"{kind} by percentile holds 0"] = ends.low <= 0.0
    p = by_kind["omnibus_test"]["p_value"]  # null: nothing varies within groups that are apart
    found["test finds a difference"] = p is not None and p <= 0.05
    found["worst group is g0"] = by_kind["range"]["group_a"] == "g0"
    return {k: float(v) for k, v in found.items()}


_KINDS = (
    "range",
    "epsilon",
    "standard_deviation",
    "noise_corrected_sd",
    "omnibus_test",
)


def _figures(name: str) -> dict[str, float]:
    rates, shared = CELLS[name]
    rng = np.random.default_rng([len(name), int(shared)])
    made = simulate_rates(
        rng, groups=len(rates), subjects_per_group=30, photos=10, rates=rates, icc=0.3,
        within_cluster=shared, worlds=WORLDS,
    )  # fmt: skip
    rows = [
        _one(rates, made.photos[w], made.successes[w], shared=shared, seed=w) for w in range(WORLDS)
    ]
    return {k: float(np.mean([r[k] for r in rows])) for k in rows[0]}


@pytest.mark.parametrize("name", CELLS)
def test_what_each_measure_does(name):
    found = _figures(name)
    slug = name.replace(",", "").replace(" ", "-").replace(".", "")
    record(f"whole-{slug}", [{"worlds": name, **found}], worlds=WORLDS, replicates=REPLICATES)
    lowest = at_least(0.95, WORLDS, full=0.93)
    assert found["range covered"] >= lowest, found
    assert found["epsilon covered"] >= lowest, found
    assert found["noise_corrected_sd covered"] >= at_least(0.94, WORLDS, full=0.92), found
    if name.startswith("nothing"):
        # Never negative, so never 0: the percentile interval calls noise a disparity every time.
        assert found["range by percentile holds 0"] == 0.0
        assert found["epsilon by percentile covered"] == 0.0
        assert found["standard_deviation covered"] == 0.0
        assert found["test finds a difference"] <= at_most(0.05, WORLDS, full=0.071), found
        assert found["noise_corrected_sd"] < 0.4 * found["standard_deviation"]
    else:
        assert found["test finds a difference"] > 0.9
        assert found["worst group is g0"] > 0.9
        assert abs(found["noise_corrected_sd"] - np.std(APART, ddof=1)) < (0.012 if FULL else 0.03)
        assert found["standard_deviation"] > found["noise_corrected_sd"]
