"""Weights, strata and their covariance, held against R's survey package, statsmodels and laws.

The numbers of R 4.2.2 with survey 4.1.1 are of ``tests._survey.survey`` written as s.csv:

    des <- svydesign(ids=~school, strata=~stratum, weights=~weight, data=read.csv("s.csv"))
    m <- svyby(~right, ~tone, des, svymean, covmat=TRUE); vcov(m)
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array, vstack

from isolux.stats import survey_sums as drawn_designs
from isolux.stats.cluster_sums import build_cluster_sums
from isolux.stats.clustered_proportions import means_from_cluster_sums
from isolux.stats.raking import Margins, rake_replicates_to_totals, rake_weights_to_shares
from isolux.stats.sampling import (
    Strata,
    bootstrap_covariance_of_sums,
    draw_rao_wu_weight_batches,
    draw_rao_wu_weights,
    draw_stratified_normal_weights,
    kish_effective_size,
    stratified_cross_products,
)
from isolux.stats.survey_sums import SurveyClusterSums, build_survey_cluster_sums
from isolux.stats.weighted_means import WeightingEffect, estimate_weighted_means
from tests._survey import survey

TONES = ("dark", "light", "mid")
R_MEANS = np.array([0.7537091988, 0.7581896552, 0.8475247525])  # svyby(~right, ~tone, des, svymean)
R_STRATA = np.array(  # vcov(m)
    [[0.0070724012072, -0.0006038695395, 0.000479506744],
     [-0.0006038695395, 0.0019903669596, 0.001181482582],
     [0.000479506744, 0.0011814825823, 0.003284546831]]
)  # fmt: skip
R_FLAT = np.array(  # the same without strata=~stratum
    [[0.0068040076242, 0.0001896160637, 0.001020230896],
     [0.0001896160637, 0.0034387972166, 0.002365006281],
     [0.001020230896, 0.002365006281, 0.004022854041]]
)  # fmt: skip


def _laid_out(weight: np.ndarray | None = None) -> tuple[csr_array, csr_array, csr_array, Strata]:
    """Return weighted sums, counts and squares by tone and school, and the strata."""
    data = survey()
    w = data["weight"].to_numpy() if weight is None else weight
    school = data["school"].str.slice(1).cast(int).to_numpy()
    tone = np.array([TONES.index(t) for t in data["tone"]])
    sums, counts, squares = (
        csr_array((x, (tone, school)), shape=(3, 24))
        for x in (w * data["right"].to_numpy(), w, w * w)
    )
    for matrix in (sums, counts, squares):
        matrix.sum_duplicates()
    return sums, counts, squares, Strata(np.arange(24) % 3, np.full(3, 8))


def _covariance(sums: csr_array, counts: csr_array, strata: Strata | None) -> np.ndarray:
    total = np.asarray(counts.sum(axis=1)).ravel()
    p = np.asarray(sums.sum(axis=1)).ravel() / total
    load = np.hstack([np.diag(1 / total), np.diag(-p / total)])
    return load @ stratified_cross_products(csr_array(vstack([sums, counts])), strata) @ load.T


def test_means_and_their_covariance_within_strata_are_those_of_r():
    sums, counts, squares, strata = _laid_out()
    found = estimate_weighted_means((sums, counts, squares), strata, 0.0, is_proportion=True)
    assert found.value == pytest.approx(R_MEANS, abs=1e-9)
    assert _covariance(sums, counts, strata) == pytest.approx(R_STRATA, abs=1e-12)


def test_without_strata_all_clusters_are_one_stratum_of_r():
    sums, counts, _, _ = _laid_out()
    together = Strata(np.zeros(24, dtype=np.int64), np.array([24]))
    assert _covariance(sums, counts, together) == pytest.approx(R_FLAT, abs=1e-12)


def test_the_variance_is_r_s_and_never_less_with_a_correction_for_few_clusters():
    sums, counts, squares, strata = _laid_out()
    found = estimate_weighted_means((sums, counts, squares), strata, 0.0, is_proportion=True)
    ratio = found.variance / np.diag(R_STRATA)
    assert (ratio >= 1.0).all()
    assert (ratio <= 1.15).all()
    assert (found.dof <= 24 - 3).all()  # R's degf(des): 21


def test_the_covariance_without_strata_is_statsmodels_for_weighted_least_squares():
    sm = pytest.importorskip("statsmodels.api")
    data = survey()
    tone = np.array([[t == name for name in TONES] for t in data["tone"]], dtype=float)
    fitted = sm.WLS(data["right"].to_numpy(), tone, weights=data["weight"].to_numpy()).fit(
        cov_type="cluster",
        cov_kwds={"groups": data["school"].str.slice(1).cast(int).to_numpy(),
                  "use_correction": False},
    )  # fmt: skip
    sums, counts, _, _ = _laid_out()
    assert fitted.params == pytest.approx(R_MEANS)
    assert _covariance(sums, counts, None) == pytest.approx(fitted.cov_params())


@pytest.mark.parametrize("scale", [1.0, 7.5])
def test_equal_weights_give_what_no_weights_give(scale):
    sums, counts, squares, _ = _laid_out(np.full(190, scale))
    plain = means_from_cluster_sums(sums / scale, counts / scale, np.ones(24, dtype=np.int64), 0.1)
    found = estimate_weighted_means((sums, counts, squares), None, 0.1, is_proportion=True)
    for name in (
        "value",
        "n_units",
        "variance",
        "dof",
        "kish_cluster_size",
        "n_clusters_with_event",
    ):
        assert getattr(found, name) == pytest.approx(getattr(plain, name)), name
    for z in (1.0, 1.96, 3.0):
        one, two = found.score_interval(z), plain.score_interval(z)
        assert one.low == pytest.approx(two.low)
        assert one.high == pytest.approx(two.high)


def test_replicates_have_the_covariance_of_r():
    sums, counts, _, strata = _laid_out()
    drawn = draw_rao_wu_weights(np.random.default_rng(3), 24, strata, 20_000)
    p = (sums @ drawn) / (counts @ drawn)
    # 20,000 replicates know a variance to 1 %; the ratio is not quite linear in 24 clusters.
    assert np.var(p, axis=1) == pytest.approx(np.diag(R_STRATA), rel=0.12)


def test_each_replicate_counts_as_many_clusters_of_a_stratum_as_were_drawn():
    strata = Strata(np.array([0, 0, 1, 1, 1]), np.array([2, 3]))
    drawn = draw_rao_wu_weights(np.random.default_rng(0), 5, strata, 50)
    assert drawn[:2].sum(axis=0) == pytest.approx(2.0)
    assert drawn[2:].sum(axis=0) == pytest.approx(3.0)


def test_clusters_of_which_nobody_is_judged_are_drawn_too():
    strata = Strata(np.array([0, 0]), np.array([10]))  # two of ten are left
    drawn = draw_rao_wu_weights(np.random.default_rng(0), 2, strata, 40_000)
    assert drawn.mean() == pytest.approx(1.0, abs=0.02)
    # Each cluster's weight is 10 / 9 times Binomial(9, 1 / 10): variance (10 / 9)² 9 · .09 = 1.
    assert drawn.var(axis=1) == pytest.approx([1.0, 1.0], rel=0.04)


@pytest.mark.parametrize("absent", [0, 5])
def test_normal_weights_have_the_covariance_that_products_say(absent):
    strata = Strata(np.array([0, 0, 0, 1, 1, 1]), np.array([3 + absent, 3]))
    rows = csr_array(np.array([[1.0, 2.0, 4.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 3.0, 1.0, 2.0]]))
    drawn = rows @ draw_stratified_normal_weights(np.random.default_rng(1), 6, strata, 60_000)
    assert np.cov(drawn) == pytest.approx(
        stratified_cross_products(rows, strata), rel=0.06, abs=0.12
    )


def test_sums_drawn_anew_vary_around_their_mean():
    rows = csr_array(np.array([[2.0, 2.0, 2.0, 2.0]]))
    assert bootstrap_covariance_of_sums(rows, None) == pytest.approx(np.zeros((1, 1)))


def test_strata_that_explain_everything_leave_no_interval_of_width_0():
    # Stratum 0 is all right, stratum 1 all wrong: the linearised variance is 0.
    counts = csr_array(np.ones((1, 40)))
    sums = csr_array(np.array([[1.0] * 20 + [0.0] * 20]))
    strata = Strata(np.repeat([0, 1], 20), np.array([20, 20]))
    found = estimate_weighted_means((sums, counts, counts), strata, 0.0, is_proportion=True)
    assert found.variance.item() == pytest.approx(0.0)
    ends = found.score_interval(1.96)
    assert ends.low.item() < 0.4
    assert ends.high.item() > 0.6


def test_errors_that_were_drawn_more_often_make_rates_surer_and_those_that_weigh_more_less_sure():
    surer = WeightingEffect.from_overall(
        0.9, event_square=90.0, total_square=91.0, n_clusters_with_event=200.0
    )
    less = WeightingEffect.from_overall(
        0.9, event_square=50.0, total_square=100.0, n_clusters_with_event=200.0
    )
    nothing = WeightingEffect.from_overall(
        0.9, event_square=90.0, total_square=100.0, n_clusters_with_event=200.0
    )
    assert surer.effect < nothing.effect < less.effect
    assert nothing.effect == pytest.approx(1.0)
    few = surer.group_effects(np.array([0.0, 1000.0]), np.ones(2))
    assert few[0] == pytest.approx(1.0)  # of a group without an error nothing is known
    assert few[1] < 0.35
    # Everyone: 600 clusters of effect 1 (nothing) and 3 of 2 make 1.005. A group with 7 clusters:
    # (7 · 1.004975 + 3 · 2) / 10, and without an error that of heavy errors, 2.
    unknown = WeightingEffect(1.0, 600.0).group_effects(np.array([7.0, 0.0]), np.full(2, 2.0))
    assert unknown == pytest.approx([1.3034826, 2.0])


def test_what_heavy_errors_would_cost():
    # Weights 1, 1, 2: sum w = 4, sum w² = 6, sum w³ = 10; 10 · 4 / 36 of one row a cluster.
    weight = csr_array(np.array([[1.0, 1.0, 2.0]]))
    nobody_wrong = weight.copy(), weight, weight.power(2)
    found = estimate_weighted_means(
        nobody_wrong, None, 0.0, WeightingEffect(1.0, 0.0), is_proportion=True
    )
    assert found.weighting_effect.item() == pytest.approx(10 / 9)
    equal = csr_array(np.ones((1, 5)))
    found = estimate_weighted_means(
        (equal, equal, equal), None, 0.0, WeightingEffect(1.0, 0.0), is_proportion=True
    )
    assert found.weighting_effect.item() == 1.0


def test_kish_counts_units_of_one_weight():
    assert kish_effective_size(np.full(7, 3.0)) == pytest.approx(7.0)
    assert kish_effective_size(np.array([1.0, 0.0])) == pytest.approx(1.0)
    assert kish_effective_size(np.zeros(0)) == 0.0


def _design(
    margins: Margins | None = None, shares: tuple = (), left: np.ndarray | None = None
) -> SurveyClusterSums:  # fmt: skip
    """Lay the survey out by photographer and tone: everyone, four photographers, others, light."""
    data = survey()
    n, w = data.height, data["weight"].to_numpy()
    school = data["school"].str.slice(1).cast(int).to_numpy()
    columns = csr_array(np.column_stack([data["right"].to_numpy(), np.ones(n)]))
    light = np.where(data["tone"].to_numpy() == "light", 3, 4)
    group = np.concatenate([np.zeros(n, dtype=np.int64), 1 + _photographer(), light])
    entries = group, np.tile(np.arange(n), 3)
    plain = build_cluster_sums(columns, school, *entries, 5)
    weight = w
    if margins is not None:
        weight, apart = rake_weights_to_shares(w, margins, shares)
        assert apart < 1e-9
    strata = Strata(np.arange(24) % 3, np.full(3, 8), left)
    return build_survey_cluster_sums(columns, school, entries, plain, weight, strata, margins)


def test_small_samples_are_laid_out_and_come_out_the_same(monkeypatch):
    laid = _design()
    monkeypatch.setattr(drawn_designs, "is_dense_faster", lambda *_: False)
    summed = _design()
    for one, other in ((laid.matrix, summed.matrix), (laid.squared_sums, summed.squared_sums)):
        assert np.array_equal(one.indptr, other.indptr)
        assert np.array_equal(one.indices, other.indices)
        np.testing.assert_allclose(one.data, other.data, rtol=1e-14)


def _photographer() -> np.ndarray:
    few = survey()["photographer"].is_in(["f0", "f1", "f2", "f3"]).to_numpy()
    return np.where(few, 0, 1)


def _margins(*names: str) -> Margins:
    tone = np.array([("light", "mid", "dark").index(t) for t in survey()["tone"]])
    codes = {"tone": (tone, 3), "photographer": (_photographer(), 2)}
    weight = survey()["weight"].to_numpy()
    kept = [codes[name] for name in names]
    return Margins(tuple(code for code, _ in kept), tuple(size for _, size in kept), weight)


def _errors(design: SurveyClusterSums) -> tuple[np.ndarray, np.ndarray]:
    """Return values and linearised standard errors of everyone, two photographers and light."""
    rows, totals = np.arange(4), design.totals()
    value = totals[rows, 0] / totals[rows, 1]
    stacked = csr_array(vstack([design.cluster_contributions(rows, q) for q in (0, 1)]))
    load = np.hstack([np.diag(1 / totals[rows, 1]), np.diag(-value / totals[rows, 1])])
    return value, np.sqrt(
        np.diag(load @ stratified_cross_products(stacked, design.strata) @ load.T)
    )


def test_post_stratification_is_that_of_r():
    # R's postStratify on light 500, mid 300 and dark 200, then svymean of right: everyone,
    # photographers f0 to f3, the others, tone light
    value, error = _errors(_design(_margins("tone"), (np.array([0.5, 0.3, 0.2]),)))
    assert value == pytest.approx([0.7840940931, 0.8038742865, 0.7744316159, 0.7581896552])
    assert error == pytest.approx([0.03697713725, 0.06259117365, 0.03942701749, 0.04461352889])


def test_raking_to_two_tables_is_that_of_r():
    # R's calibrate with calfun raking on these tones and photographers 600 (f0 to f3) and 400
    shares = np.array([0.5, 0.3, 0.2]), np.array([0.6, 0.4])
    value, error = _errors(_design(_margins("tone", "photographer"), shares))
    assert value == pytest.approx([0.7923639063, 0.8045294450, 0.7741155983, 0.8052591909])
    assert error == pytest.approx([0.04273229472, 0.05966042059, 0.0425617741, 0.04674039955])


def test_a_finite_population_is_that_of_r():
    # d$N <- c(a=20,b=12,c=9)[d$stratum]; svydesign(ids=~school, strata=~stratum, fpc=~N, …)
    left = 1.0 - 8 / np.array([20.0, 12.0, 9.0])
    _, error = _errors(_design(left=left))
    assert error == pytest.approx([0.02381583306, 0.03805312807, 0.02829221023, 0.02720561504])


def test_replicates_of_a_calibrated_sample_keep_the_population_and_its_variance():
    design = _design(_margins("tone"), (np.array([0.5, 0.3, 0.2]),))
    drawn = np.hstack([*design.draw_unit_weights(np.random.default_rng(5), 4000)])
    tone = design.calibration.margins.codes[0]
    held = np.stack([drawn[tone == k].sum(axis=0) for k in range(3)])
    assert held / held.sum(axis=0) == pytest.approx(np.tile([[0.5], [0.3], [0.2]], 4000))
    right = survey()["right"].to_numpy()
    rate = (right @ drawn) / drawn.sum(axis=0)
    assert rate.std() == pytest.approx(0.03697713725, rel=0.1)


@pytest.mark.parametrize("replicates", [3, 64, 95, 96, 256, 300])
@pytest.mark.parametrize("strata", [None, Strata(np.array([0, 1, 1, 0, 1]), np.array([2, 4]))])
def test_parts_of_a_rescaled_bootstrap_are_what_was_drawn_at_once(strata, replicates):
    # Rao and Wu (1988): n - 1 draws of n clusters of each stratum, each counted n / (n - 1) times.
    rng, of = np.random.default_rng(3), np.zeros(5, int) if strata is None else strata.stratum_index
    expected = np.zeros((5, replicates))
    for h, n in enumerate([5] if strata is None else strata.n_sampled.tolist()):
        rows = np.flatnonzero(of == h)
        for r in range(replicates):
            times = np.bincount(rng.integers(0, n, size=n - 1), minlength=n)[: len(rows)]
            expected[rows, r] = 1.0 + 1.0 * (times * (n / (n - 1)) - 1.0)
    parts = [*draw_rao_wu_weight_batches(np.random.default_rng(3), 5, strata, replicates)]
    assert np.hstack(parts).tolist() == expected.tolist()
    assert max(part.shape[1] for part in parts) < 64


def test_replicates_of_a_finite_population_vary_by_less():
    strata = Strata(np.zeros(6, dtype=np.int64), np.array([6]), np.array([0.25]))
    whole = Strata(np.zeros(6, dtype=np.int64), np.array([6]))
    few, many = (
        draw_rao_wu_weights(np.random.default_rng(1), 6, s, 30_000).var() for s in (strata, whole)
    )
    assert few == pytest.approx(many / 4, rel=0.02)


def test_a_census_leaves_nothing_to_chance():
    sums, counts, squares, _ = _laid_out()
    strata = Strata(np.arange(24) % 3, np.full(3, 8), np.zeros(3))
    found = estimate_weighted_means((sums, counts, squares), strata, 0.1, is_proportion=True)
    assert found.variance == pytest.approx(np.zeros(3))
    ends = found.score_interval(1.96)
    assert ends.low == pytest.approx(found.value)
    assert ends.high == pytest.approx(found.value)


def test_tables_that_no_weights_can_meet_are_told():
    both = np.array([0, 0, 1, 1])  # two tables that are one
    margins = Margins((both, both), (2, 2))
    _, apart = rake_weights_to_shares(
        np.ones(4), margins, [np.array([0.5, 0.5]), np.array([0.9, 0.1])]
    )
    assert apart > 0.1


def test_a_cell_without_anyone_in_a_replicate_stays_empty():
    drawn = rake_replicates_to_totals(
        np.array([[0.0], [0.0], [3.0]]), Margins((np.array([0, 0, 1]),), (2,)),
        [np.array([1.0, 1.0])],
    )  # fmt: skip
    assert drawn.ravel().tolist() == [0.0, 0.0, 1.0]
