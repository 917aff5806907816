"""Is a difference of the size called detectable found with power .8?"""

from __future__ import annotations

import numpy as np
import pytest

from isolux.core.spec import ComparisonSettings
from isolux.disparity.detectable import find_detectable_difference
from isolux.disparity.family import run_family_tests as run_family
from isolux_worlds.populations.rates import simulate_rates
from tests.laws._cells import apart
from tests.laws._figures import FULL, record, scaled, sized
from tests.laws._worlds import one_attribute

pytestmark = pytest.mark.law
WORLDS, REPLICATES = scaled(2000, 60), sized(599, 199)
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
    spec = ComparisonSettings(replicates=REPLICATES)
    least = []
    for world in _draw(rng, groups, sizes, rate, scaled(100, 20), shared=shared):
        found = run_family(world, spec, {})
        tested = found.tested["a", 0]
        apart = tested.comparisons.compare_pairs(np.array([1]), np.array([2]))
        least.append(find_detectable_difference(apart, tested.critical, worse_is_lower=True)[0])
    injected = float(np.nanmean(least))
    rates = [rate - injected] + [rate] * (groups - 1)
    hits = [
        run_family(world, spec, {}).tested["a", 0].adjusted[0] <= 0.05
        for world in _draw(rng, groups, sizes, rates, WORLDS, shared=shared)
    ]
    return {
        "groups": groups,
        "subjects": sizes if isinstance(sizes, int) else "/".join(map(str, sizes)),
        "varies": "within subjects" if shared else "between subjects",
        "rate": rate, "detectable": injected, "power": float(np.mean(hits)),
    }  # fmt: skip


@pytest.mark.parametrize("cell", CELLS)
def test_a_detectable_difference_is_found_with_power_eighty_percent(cell):
    groups, sizes, shared, rate = cell
    found = _power(groups, sizes, rate, shared=shared)
    name = f"power-{groups}-{found['subjects']}-{shared}-{rate}".replace("/", "-")
    record(name, [found], worlds=WORLDS, replicates=REPLICATES)
    # 4 points are promised, one is the law's own error; 60 worlds have a standard error of .05.
    slack = 0.045 if FULL else 0.22
    assert abs(found["power"] - 0.8) <= slack, found


@pytest.mark.parametrize("critical", [1.96, 2.9])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("rate", [0.5, 0.8, 0.9, 0.95, 0.98])
def test_what_is_called_detectable_is_found_at_every_rate(rate, shared, critical):
    """Two groups, many worlds, at the deviate that one test and that a family of some asks for."""
    worlds = scaled(5000, 400)
    rng = np.random.default_rng([9, int(100 * rate), int(shared), int(10 * critical)])
    least = find_detectable_difference(
        apart(*_two(rng, rate, scaled(1000, 200), shared=shared)), critical, worse_is_lower=True
    )
    injected = float(np.nanmean(least))
    ends = apart(*_two(rng, [rate - injected, rate], worlds, shared=shared)).interval(critical)
    row = {"varies": "within subjects" if shared else "between subjects", "rate": rate,
           "deviate of a finding": critical, "planted = detectable": injected,
           "found, %": float((ends.high < 0).mean())}  # fmt: skip
    slug = f"detectable-{'within' if shared else 'between'}-{critical:g}-{rate:g}"
    record(slug, [row], worlds=worlds, replicates=1)
    # Small: 400 worlds at .8 have a standard error of .02.
    assert abs(row["found, %"] - 0.8) <= (0.04 if FULL else 0.1), row


def _two(rng, rates, worlds, *, shared):
    """Draw two groups of 100 subjects with ten photos, correlation .3: ``[w, 2, c]``."""
    made = simulate_rates(
        rng, groups=2, subjects_per_group=100, photos=10, rates=rates, icc=0.3,
        within_cluster=shared, worlds=worlds,
    )  # fmt: skip
    if shared:
        return made.photos, made.successes
    apart_ = []
    for own in (made.photos, made.successes):
        none = np.zeros_like(own[:, 0])
        sides = [np.concatenate(pair, axis=1) for pair in ((own[:, 0], none), (none, own[:, 1]))]
        apart_.append(np.stack(sides, axis=1))
    return apart_[0], apart_[1]
