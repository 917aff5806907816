"""Is a difference of the size called detectable found with power .8?"""

from __future__ import annotations

import numpy as np
import pytest

from isolux.disparity.family import standard_error_of_difference
from isolux.disparity.family import test_family as run_family
from isolux.stats.detectable import smallest_detectable
from isolux.vocabulary.spec import Comparing
from isolux_worlds.populations.rates import simulate_rates
from tests.laws._figures import FULL, record, scaled
from tests.laws._worlds import one_attribute, with_bootstrap

pytestmark = pytest.mark.law
WORLDS, REPLICATES = scaled(2000, 150), scaled(599, 299)
CELLS = [
    (3, 30, False),
    (7, 30, False),
    (7, 100, False),
    (2, (30, 300), False),
    (3, 30, True),
    (7, 30, True),
]


def _draw(rng, groups, sizes, rates, worlds, *, shared):
    made = simulate_rates(
        rng, groups=groups, subjects_per_group=sizes, photos=10, rates=rates, icc=0.3,
        within_cluster=shared, worlds=worlds,
    )  # fmt: skip
    for w in range(worlds):
        yield one_attribute(made.photos[w], made.successes[w], shared=shared)


def _power(groups: int, sizes: int | tuple[int, ...], *, shared: bool) -> dict[str, object]:
    rng = np.random.default_rng([groups, int(np.sum(sizes)), int(shared)])
    spec = Comparing(replicates=REPLICATES)
    least = []
    for world in _draw(rng, groups, sizes, 0.7, scaled(100, 20), shared=shared):
        estimates = with_bootstrap(world, spec)
        se = standard_error_of_difference(estimates, 0, np.array([1]), np.array([2]))
        least.append(smallest_detectable(se, run_family(estimates, spec, {}).critical)[0])
    planted = float(np.mean(least))
    rates = [0.7 - planted / 2, 0.7 + planted / 2] + [0.7] * (groups - 2)
    hits = [
        run_family(world, spec, {}).tested["a", 0].adjusted[0] <= 0.05
        for world in _draw(rng, groups, sizes, rates, WORLDS, shared=shared)
    ]
    return {
        "groups": groups,
        "subjects": sizes if isinstance(sizes, int) else "/".join(map(str, sizes)),
        "varies": "within subjects" if shared else "between subjects",
        "detectable": planted, "power": float(np.mean(hits)),
    }  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
def test_a_detectable_difference_is_found_with_power_eighty_percent(cell):
    groups, sizes, shared = cell
    found = _power(groups, sizes, shared=shared)
    name = f"power-{groups}-{found['subjects']}-{shared}".replace("/", "-")
    record(name, [found], worlds=WORLDS, replicates=REPLICATES)
    slack = 0.09 if FULL else 0.18
    assert abs(found["power"] - 0.8) <= slack, found
