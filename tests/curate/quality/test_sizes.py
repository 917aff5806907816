"""How many units a review needs, and what it says of all: FHIBE's numbers, and coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import hypergeom
from statsmodels.stats.proportion import proportion_confint

from isolux.core.errors import SpecError
from isolux_curate.quality.sampling import (
    compute_required_sample_size,
    estimate_stratified_population_share,
)


def test_fhibes_fourteen_of_four_hundred() -> None:
    # 400 of 2,017 without replacement are worth 400 × 2016 / 1617 = 498.7 independent ones.
    worth = 400 * 2016 / 1617
    low, high = proportion_confint(0.035 * worth, worth, method="wilson")
    found = estimate_stratified_population_share([14], [400], [2017])
    assert found.value == 14 / 400
    assert (found.low, found.high) == pytest.approx((low, high), abs=1e-12)
    # It prints ± 1.7 points. Wald's are ± 1.80, and of a finite population ± 1.61.
    wald = 1.959964 * np.sqrt(0.035 * 0.965 / 400)
    assert wald == pytest.approx(0.0180, abs=5e-5)
    assert wald * np.sqrt(1617 / 2016) == pytest.approx(0.0161, abs=5e-5)


def test_everyone_seen_leaves_nothing_to_chance() -> None:
    found = estimate_stratified_population_share([3, 1], [50, 10], [50, 10])
    assert (found.low, found.value, found.high) == pytest.approx((4 / 60,) * 3)


def test_ends_are_possible_counts() -> None:
    # 99 of 100 seen, one found: one more at the most.
    found = estimate_stratified_population_share([1], [99], [100])
    assert 0.01 <= found.low <= found.value <= found.high <= 0.02


@pytest.mark.parametrize("population", [60, 500, 2017, 10_318])
@pytest.mark.parametrize(("margin", "expected"), [(0.05, 0.5), (0.02, 0.035), (0.1, 0.9)])
def test_the_size_is_the_fewest_that_keep_the_margin(
    population: int, margin: float, expected: float
) -> None:
    def half(n: int) -> float:
        if n == population:
            return 0.0
        worth = n * (population - 1) / (population - n)
        low, high = proportion_confint(expected * worth, worth, method="wilson")
        return float(high - low) / 2

    n = compute_required_sample_size(population, margin, expected)
    assert half(n) <= margin
    assert n == 1 or half(n - 1) > margin


def test_known_sizes() -> None:
    # Wilson's half width at .5 is z / 2 / sqrt(n + z²): z²/4/.0025 - z² = 380.3 of endless many.
    assert compute_required_sample_size(10_000_000) == 381
    assert compute_required_sample_size(1) == 1


@pytest.mark.law
def test_intervals_cover_as_often_as_they_say() -> None:
    """Coverage is reckoned exactly: over every sample that a population can give."""
    held = []
    for population, n in ((120, 40), (400, 100), (2017, 400)):
        for has in np.unique(np.linspace(0, population, 41).astype(int)):
            x = np.arange(max(0, n - (population - has)), min(n, has) + 1)
            chance = hypergeom(population, has, n).pmf(x)
            truth = has / population
            ends = [estimate_stratified_population_share([int(k)], [n], [population]) for k in x]
            inside = [e.low - 1e-12 <= truth <= e.high + 1e-12 for e in ends]
            held.append(float(chance[np.array(inside)].sum()))
    assert min(held) > 0.88  # one share in a few, as Wilson's own (Brown, Cai and DasGupta 2001)
    assert 0.945 < np.mean(held) < 0.975


@pytest.mark.law
def test_strata_cover_too() -> None:
    draw = np.random.default_rng(7)
    sizes, has, n = [900, 300, 60], [9, 30, 30], [90, 30, 20]
    truth = sum(has) / sum(sizes)
    x = np.array(
        [draw.hypergeometric(h, s - h, m, 4000) for s, h, m in zip(sizes, has, n, strict=True)]
    )
    found = [estimate_stratified_population_share(k.tolist(), n, sizes) for k in x.T]
    assert np.mean([f.value for f in found]) == pytest.approx(truth, abs=0.002)
    assert 0.94 < np.mean([f.low <= truth <= f.high for f in found]) <= 0.995


@pytest.mark.parametrize(
    ("counts", "said"),
    [(([2], [1], [5]), "these are not the counts"), (([0], [0], [5]), "these are not the counts"),
     (([1], [6], [5]), "these are not the counts")],
)  # fmt: skip
def test_impossible_counts_are_refused(counts: tuple[list[int], ...], said: str) -> None:
    with pytest.raises(SpecError, match=said):
        estimate_stratified_population_share(*counts)


@pytest.mark.parametrize("settings", [{"margin": 0}, {"margin": 0.5}, {"expected_share": 1.2}])
def test_settings_out_of_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(SpecError, match="out of its range"):
        compute_required_sample_size(100, **settings)


def test_nothing_to_review_is_told() -> None:
    with pytest.raises(SpecError, match="nothing to review"):
        compute_required_sample_size(0)
