"""Does the interval of tau hold the spread that was planted, and 0 where none was?"""

from __future__ import annotations

import numpy as np
import pytest

from isolux.core.spec import ComparisonSettings
from isolux.disparity import family as families
from isolux.disparity.attribute_measures import _AttributeMeasures
from isolux.disparity.comparisons import build_comparisons
from isolux.stats.dispersion import estimate_noise_corrected_sd
from isolux.stats.null_distribution import NullTest
from isolux_worlds.populations.rates import simulate_rates
from tests.laws._figures import FULL, at_least, record, scaled, sized
from tests.laws._worlds import one_attribute, with_bootstrap

pytestmark = pytest.mark.law
WORLDS, REPLICATES = scaled(1000, 40), sized(500, 200)
CELLS = [
    (7, 30, 0.8, 0.0, False),
    (7, 30, 0.95, 0.0, False),
    (20, 30, 0.95, 0.0, False),
    (7, 30, 0.8, 0.05, False),
    (7, 30, 0.8, 0.1, False),
    (7, 100, 0.8, 0.05, False),
    (7, 30, 0.8, 0.0, True),
    (7, 30, 0.8, 0.05, True),
]


def _tau(estimates, spec: ComparisonSettings) -> dict[str, float]:
    nothing = np.zeros(0)
    members = estimates.attribute_rows("a")
    compared = build_comparisons(estimates, "a", 0)
    tested = families.AttributeTests(
        members, np.zeros((0, 2), np.int64), NullTest(*[nothing] * 4), "none", compared
    )
    family = families.ComparisonFamily({}, {})
    whole = _AttributeMeasures(estimates, family, spec, "a", 0, tested)
    row = whole._build_noise_corrected_row()
    freedom = estimates.n_clusters[members, 0] - 1.0
    apart = estimate_noise_corrected_sd(
        whole.values, whole._estimate_covariance(), spec.level, degrees_of_freedom=freedom
    )
    found = {name: float(row.numbers[name][0]) for name in ("value", "low", "high")}
    return {**found, "low apart": apart.low, "high apart": apart.high}


def _cell(groups: int, size: int, rate: float, tau: float, *, shared: bool) -> dict[str, object]:
    rng = np.random.default_rng([groups, size, int(100 * rate), int(100 * tau), int(shared)])
    value, held, zero, apart = [], [], [], []
    for world in range(WORLDS):
        rates = np.clip(rate + tau * rng.standard_normal(groups), 0.02, 0.98)
        made = simulate_rates(
            rng, groups=groups, subjects_per_group=size, photos=10, rates=rates.tolist(), icc=0.3,
            within_cluster=shared, worlds=1,
        )  # fmt: skip
        spec = ComparisonSettings(replicates=REPLICATES, seed=world)
        one = one_attribute(made.photos[0], made.successes[0], shared=shared)
        row = _tau(with_bootstrap(one, spec), spec)
        value.append(row["value"])
        held.append(row["low"] <= tau <= row["high"])
        zero.append(row["low"] <= 0.0)
        apart.append(row["low apart"] <= tau <= row["high apart"])
    return {
        "groups": groups, "subjects": size, "rate": rate, "planted": tau,
        "varies": "within subjects" if shared else "between subjects",
        "mean tau": float(np.mean(value)), "covered": float(np.mean(held)),
        "holds 0": float(np.mean(zero)), "apart": float(np.mean(apart)),
    }  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
def test_tau_is_covered(cell):
    *plain, shared = cell
    found = _cell(*plain, shared=shared)
    record("tau-" + "-".join(str(x) for x in cell), [found], worlds=WORLDS, replicates=REPLICATES)
    assert found["covered"] >= at_least(0.95, WORLDS, full=0.925), found
    if found["planted"] == 0.1:
        assert found["holds 0"] < (0.2 if FULL else 0.4)
        assert abs(found["mean tau"] - 0.1) < (0.02 if FULL else 0.03)
    if found["groups"] == 20:
        assert found["apart"] < (0.85 if FULL else 0.95), "why variances are pooled"
