"""Clusters both ways, held against statsmodels' two-way covariance and a plain numpy one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from isolux.core.info import Metric
from isolux.groups.estimates import Measure
from isolux.groups.means import estimate_survey_means
from isolux.stats.cluster_sums import build_cluster_sums
from isolux.stats.raking import Margins
from isolux.stats.sampling import Strata
from isolux.stats.survey_sums import (
    SurveyClusterSums,
    add_second_clustering,
    build_survey_cluster_sums,
    residual_strata_or_none,
)
from isolux.stats.weighted_means import (
    combine_two_way_cluster_overlap,
    combine_two_way_means,
    two_way_inclusion_exclusion,
)
from tests._survey import survey

_RATE = Metric(name="rate", title="Rate", definition="d", direction="higher")
MEASURE = Measure("m", "t", "rate", None, None, _RATE, None, (0, 1))
TONES = ("dark", "light", "mid")


STRATA = Strata(np.arange(24) % 3, np.full(3, 8))


def design(
    weight: np.ndarray | None = None, strata: Strata | None = None, margins: Margins | None = None
) -> SurveyClusterSums:
    """Lay the survey out by school and photographer: everyone and three tones."""
    data = survey()
    n = data.height
    school = data["school"].str.slice(1).cast(int).to_numpy()
    photographer = data["photographer"].str.slice(1).cast(int).to_numpy()
    _, photographer = np.unique(photographer, return_inverse=True)
    columns = csr_array(np.column_stack([data["right"].to_numpy(), np.ones(n)]))
    tone = np.array([1 + TONES.index(t) for t in data["tone"]])
    entries = np.concatenate([np.zeros(n, dtype=np.int64), tone]), np.tile(np.arange(n), 2)
    plain = build_cluster_sums(columns, school, *entries, 4)
    held = data["weight"].to_numpy() if weight is None else weight
    one = build_survey_cluster_sums(
        columns, school, entries, plain, held / held.mean(), strata, margins
    )
    other = build_cluster_sums(columns, photographer, *entries, 4)
    return add_second_clustering(one, columns, (school, photographer), entries, other, margins)


def _covariance(of: SurveyClusterSums) -> np.ndarray:
    rows = np.arange(1, 4)
    totals = of.totals()[rows]
    p = totals[:, 0] / totals[:, 1]
    load = np.hstack([np.diag(1 / totals[:, 1]), np.diag(-p / totals[:, 1])])
    return load @ of.cross_products(rows, (0, 1)) @ load.T


def test_the_covariance_is_statsmodels_for_two_ways():
    sm = pytest.importorskip("statsmodels.api")
    data = survey()
    tone = np.array([[t == name for name in TONES] for t in data["tone"]], dtype=float)
    codes = [data[c].str.slice(1).cast(int).to_numpy() for c in ("school", "photographer")]
    fitted = sm.WLS(data["right"].to_numpy(), tone, weights=data["weight"].to_numpy()).fit(
        cov_type="cluster", cov_kwds={"groups": np.column_stack(codes), "use_correction": False}
    )
    assert _covariance(design()) == pytest.approx(fitted.cov_params())


def test_the_covariance_is_that_of_cameron_gelbach_and_miller_in_plain_numpy():
    data = survey()
    w, y = data["weight"].to_numpy(), data["right"].to_numpy()
    light = data["tone"].to_numpy() == "light"
    p = (w * y)[light].sum() / w[light].sum()
    u = np.where(light, w * (y - p), 0.0) / w[light].sum()
    school, photographer = data["school"].to_list(), data["photographer"].to_list()

    def squares(keys: list[object]) -> float:
        sums: dict[object, float] = {}
        for key, value in zip(keys, u, strict=True):
            sums[key] = sums.get(key, 0.0) + value
        return sum(v * v for v in sums.values())

    cells = list(zip(school, photographer, strict=True))
    by_hand = squares(school) + squares(photographer) - squares(cells)
    assert _covariance(design())[1, 1] == pytest.approx(by_hand)


def _linearised(tone: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return every pupil's part of a tone's rate, and the school and photographer, in numpy."""
    data = survey()
    w, y = data["weight"].to_numpy(), data["right"].to_numpy()
    inside = data["tone"].to_numpy() == tone
    p = (w * y)[inside].sum() / w[inside].sum()
    u = np.where(inside, w * (y - p), 0.0) / w[inside].sum()
    return u, data["school"].to_numpy(), data["photographer"].to_numpy()


def _squares(u: np.ndarray, keys: np.ndarray, *, centred: bool = False) -> float:
    sums = np.array([u[keys == key].sum() for key in np.unique(keys)])
    lift = len(sums) / (len(sums) - 1) if centred else 1.0
    return float(lift * ((sums - sums.mean() * centred) ** 2).sum())


def test_strata_are_those_of_the_way_that_was_drawn_within_them():
    u, school, photographer = _linearised("light")
    stratum = np.array([int(s[1:]) % 3 for s in school])
    within = sum(
        _squares(u[stratum == h], school[stratum == h], centred=True)
        for h in range(3)
    )  # fmt: skip
    cells = np.char.add(school.astype(str), photographer.astype(str))
    by_hand = within + _squares(u, photographer) - _squares(u, cells)
    # 8 schools of each stratum have light pupils, so that none is missing from a sum above.
    assert _covariance(design(strata=STRATA))[1, 1] == pytest.approx(by_hand)
    found = estimate_survey_means(design(strata=STRATA), MEASURE, np.arange(4))
    flat = estimate_survey_means(design(), MEASURE, np.arange(4))
    assert found.value == pytest.approx(flat.value)
    assert (found.dof <= flat.dof + 1e-9).all()


def test_weights_brought_to_a_population_leave_both_ways_their_residuals():
    data = survey()
    stratum = np.array([int(s[1:]) % 3 for s in data["school"]])
    u, school, photographer = _linearised("light")
    w = data["weight"].to_numpy()
    # Post-stratification: each cell's mean of u / w, by weight, is explained.
    for h in range(3):
        cell = stratum == h
        u[cell] -= w[cell] * u[cell].sum() / w[cell].sum()
    cells = np.char.add(school.astype(str), photographer.astype(str))
    by_hand = sum(
        sign * _squares(u, keys, centred=True)
        for sign, keys in ((1, school), (1, photographer), (-1, cells))
    )
    of = design(margins=Margins((stratum,), (3,), w / w.mean()))
    assert _covariance(of)[1, 1] == pytest.approx(by_hand)


def test_what_varies_both_ways_stands_side_by_side_with_its_strata():
    of = design(strata=STRATA)
    strata = residual_strata_or_none(of)
    schools, photographers = of.n_clusters, of.other_clusterings[0].n_clusters
    assert of.cluster_contributions(1, 0).shape == (1, schools + photographers)
    assert strata.n_sampled.tolist() == [8, 8, 8, photographers]
    assert strata.stratum_index.tolist() == [*(np.arange(24) % 3).tolist(), *[3] * photographers]
    assert residual_strata_or_none(design()) is None
    assert residual_strata_or_none(replace(of, other_clusterings=None)) is STRATA


def test_replicates_of_a_population_move_by_both_ways_and_meet_it_each_time():
    stratum = np.array([int(s[1:]) % 3 for s in survey()["school"]])
    w = survey()["weight"].to_numpy()
    of = design(margins=Margins((stratum,), (3,), w / w.mean()))
    drawn = np.hstack([*of.draw_unit_weights(np.random.default_rng(3), 40)])
    totals = np.array([drawn[stratum == h].sum(axis=0) for h in range(3)])
    told = np.array([(w / w.mean())[stratum == h].sum() for h in range(3)])
    assert totals == pytest.approx(np.repeat(told[:, None], 40, axis=1))
    ratio = drawn / (w / w.mean())[:, None]
    school, cell = survey()["school"].to_numpy(), of.unit_cell_index
    apart = [np.ptp(ratio[school == s], axis=0).max() for s in np.unique(school)]
    assert max(apart) > 0.1  # photographers move the pupils of one school apart
    assert max(np.ptp(ratio[cell == c], axis=0).max() for c in np.unique(cell)) < 1e-9


def test_the_way_with_fewer_clusters_says_how_sure_a_mean_is():
    of = design(np.ones(190))
    found = estimate_survey_means(of, MEASURE, np.arange(4))
    data = survey()
    one, two = (data[c].value_counts()["count"].to_numpy() for c in ("school", "photographer"))
    fewest = min((n.sum() ** 2) / (n**2).sum() for n in (one, two))
    assert found.n_effective_clusters[0] == pytest.approx(fewest)
    alone = [estimate_survey_means(way, MEASURE, np.arange(4)) for way in of.other_clusterings]
    assert (found.variance >= alone[0].variance - 1e-15).all()
    assert (found.dof <= alone[0].dof).all()


def test_replicates_vary_at_least_as_much_as_the_formula_says():
    of = design()
    drawn = np.hstack([*of.draw_cluster_weights(np.random.default_rng(2), 8000)])
    assert drawn.min() >= 0.0
    sums = of.other_clusterings[1].weighted_sums(drawn)
    rate = 2.0 * sums[1:4, 0] / sums[1:4, 1]
    both = np.diag(_covariance(replace(of, other_clusterings=None))) + np.diag(
        _covariance(of.other_clusterings[0])
    )
    assert (rate.var(axis=1) > 0.9 * np.diag(_covariance(of))).all()
    assert rate.var(axis=1) == pytest.approx(both, rel=0.35)  # a ratio, of 30 people the first


def test_ways_add_up_less_the_cells_of_both():
    one, two, cells = (np.array([x]) for x in (5.0, 3.0, 2.0))
    assert two_way_inclusion_exclusion(one, two, cells) == pytest.approx([6.0])


def test_what_groups_share_is_weighed_by_each_way_s_correlation():
    one, two = np.array([0.2]), np.array([0.4])
    assert combine_two_way_cluster_overlap(one, two, (0.3, 0.0)) == pytest.approx([0.2])
    assert combine_two_way_cluster_overlap(one, two, (0.0, 0.3)) == pytest.approx([0.4])
    assert combine_two_way_cluster_overlap(one, two, (0.0, 0.0)) == pytest.approx([0.0])


def test_a_way_in_which_nothing_is_alike_changes_little():
    of = design(np.ones(190))
    rows = np.arange(4)
    alone = estimate_survey_means(replace(of, other_clusterings=None), MEASURE, rows)
    put = combine_two_way_means(alone, alone, alone)
    assert put.variance == pytest.approx(alone.variance)
    assert put.kish_cluster_size == pytest.approx(alone.kish_cluster_size)
