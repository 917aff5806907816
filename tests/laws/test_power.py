"""Is a difference of the size called detectable found with power .8?"""

from __future__ import annotations

import numpy as np
import pytest

from isolux.disparity.detectable import least_detectable
from isolux.disparity.family import test_family as run_family
from isolux.vocabulary.spec import Comparing
from isolux_worlds.populations.rates import simulate_rates
from tests.laws._figures import FULL, record, scaled
from tests.laws._worlds import one_attribute

pytestmark = pytest.mark.law
WORLDS, REPLICATES = scaled(2000, 150), scaled(599, 299)
CELLS = [
    *[(3, 100, False, rate) for rate in (0.5, 0.8, 0.9, 0.95, 0.98)],
    *[(3, 100, True, rate) for rate in (0.5, 0.8, 0.9, 0.95, 0.98)],
    (7, 30, False, 0.7),
    (2, (60, 300), False, 0.7),
]


def _draw(rng, groups, sizes, rates, worlds, *, shared):
    made = simulate_rates(
        rng, groups=groups, subjects_per_group=sizes, photos=10, rates=rates, icc=0.3,
        within_cluster=shared, worlds=worlds,
    )  # fmt: skip
    for w in range(worlds):
        yield one_attribute(made.photos[w], made.successes[w], shared=shared)


def _power(
    groups: int, sizes: int | tuple[int, ...], rate: float, *, shared: bool
) -> dict[str, object]:
    rng = np.random.default_rng([groups, int(np.sum(sizes)), int(shared), int(100 * rate)])
    spec = Comparing(replicates=REPLICATES)
    least = []
    for world in _draw(rng, groups, sizes, rate, scaled(100, 20), shared=shared):
        found = run_family(world, spec, {})
        apart = found.tested["a", 0].compared.pairs(np.array([1]), np.array([2]))
        least.append(least_detectable(apart, found.critical, worse_is_lower=True)[0])
    planted = float(np.nanmean(least))
    rates = [rate - planted] + [rate] * (groups - 1)
    hits = [
        run_family(world, spec, {}).tested["a", 0].adjusted[0] <= 0.05
        for world in _draw(rng, groups, sizes, rates, WORLDS, shared=shared)
    ]
    return {
        "groups": groups,
        "subjects": sizes if isinstance(sizes, int) else "/".join(map(str, sizes)),
        "varies": "within subjects" if shared else "between subjects",
        "rate": rate, "detectable": planted, "power": float(np.mean(hits)),
    }  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
def test_a_detectable_difference_is_found_with_power_eighty_percent(cell):
    groups, sizes, shared, rate = cell
    found = _power(groups, sizes, rate, shared=shared)
    name = f"power-{groups}-{found['subjects']}-{shared}-{rate}".replace("/", "-")
    record(name, [found], worlds=WORLDS, replicates=REPLICATES)
    slack = 0.05 if FULL else 0.18
    assert abs(found["power"] - 0.8) <= slack, found
