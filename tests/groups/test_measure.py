"""From scores to what each group gets: literal tables, statuses, and what must not matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

from isolux.core.containers import Scores
from isolux.core.errors import TableError
from isolux.core.info import Metric
from isolux.core.spec import ComparisonSettings
from isolux.core.tables import GROUP_METRICS, check
from isolux.groups.measure import measure_groups
from isolux.stats.proportions import clopper_pearson_interval, wilson_interval
from isolux.stats.statistic import MEAN, RankStatistic, SumStatistic
from tests._scored import ACCURACY, members, scored

SMALL = ComparisonSettings(min_units=1, min_clusters=1, replicates=500)


def _rows(scores, membership, spec=SMALL):
    return measure_groups(scores, membership, spec).to_table()


def _people(seed=0, people=60, photos=3):
    """Photos of people of groups a and b, with unequal rates."""
    rng = np.random.default_rng(seed)
    group = np.repeat(rng.permuted(np.arange(people) % 2), photos)
    values = (rng.random(people * photos) < np.where(group == 0, 0.8, 0.6)).astype(float)
    clusters = [f"s{k}" for k in np.repeat(np.arange(people), photos)]
    return values, clusters, ["ab"[g] for g in group]


def test_values_and_counts_by_hand():
    # Subjects p (1, 0), q (1), r (none scored); groups a = p, b = q and r.
    scores = scored([1, 0, 1, None], ["p", "p", "q", "r"])
    rows = _rows(scores, members(g=["a", "a", "b", "b"]))
    assert rows["group"].to_list() == ["overall", "a", "b"]
    assert rows["attribute"].to_list() == [None, "g", "g"]
    assert rows["value"].to_list() == pytest.approx([2 / 3, 0.5, 1.0])
    assert rows["n_units"].to_list() == [3, 2, 1]
    assert rows["n_clusters"].to_list() == [2, 1, 1]
    check(rows, GROUP_METRICS)


def test_a_unit_in_two_groups_counts_in_both_and_once_in_everyone():
    rows = _rows(scored([1, 0, 1]), members(tone=["3", ["3", "4"], "4"]))
    assert rows["n_units"].to_list() == [3, 2, 2]
    assert rows["value"].to_list() == pytest.approx([2 / 3, 0.5, 0.5])


def test_without_clusters_every_row_is_one():
    rows = _rows(scored([1, 0, 1, 1]), members(g=list("aabb")))
    assert rows["n_clusters"].to_list() == [4, 2, 2]


def test_a_unit_of_unknown_cluster_is_a_cluster_of_its_own():
    rows = _rows(scored([1, 0, 1, 1], ["p", "p", None, None]), members(g=list("aabb")))
    assert rows["n_clusters"].to_list() == [3, 1, 2]


def test_the_standard_error_is_the_clusters_not_the_rows():
    # 40 subjects of five equal photos: the error of 40 observations, not of 200.
    values = np.repeat(np.arange(40) % 2, 5).astype(float)
    clusters = [f"s{k}" for k in np.repeat(np.arange(40), 5)]
    row = _rows(scored(values, clusters), members(g=["a"] * 200)).row(0, named=True)
    assert row["standard_error"] == pytest.approx(np.sqrt(0.25 / 39))
    times = stats.t.ppf(0.975, 39) / stats.t.ppf(0.975, 199)
    effect = 0.25 / 39 / (0.25 / 199) * times**2
    assert (row["low"], row["high"]) == pytest.approx(_score_ends(100 / effect, 200 / effect))
    assert (row["method"], row["status"]) == ("score", "ok")


def _score_ends(hits, n):
    """Wilson's ends, moved to Clopper and Pearson's by 1 - events / (7.5 z²), and that is 28.81."""
    wilson, exact = wilson_interval(hits, n), clopper_pearson_interval(hits, n)
    of_hits, of_misses = (max(1.0 - k / 28.8109, 0.0) for k in (hits, n - hits))
    low = (1.0 - of_hits) * wilson.low.item() + of_hits * exact.low.item()
    return low, (1.0 - of_misses) * wilson.high.item() + of_misses * exact.high.item()


# 41 of 60: Wilson's ends are .5577 and .7869, Clopper and Pearson's .5503 and .7974 (R's binom.test
# and prop.test). 41 is more than 28.81; of 19 the weight is .3405: .7869 + .3405 x .0105 = .7905.
@pytest.mark.parametrize(("name", "high"), [("score", 0.7905), ("wilson", 0.7869)])
def test_independent_rows_have_the_textbooks_interval(name, high):
    spec = ComparisonSettings(interval=name)
    row = _rows(scored([1.0] * 41 + [0.0] * 19), members(g=["a"] * 60), spec).row(1, named=True)
    assert (round(row["low"], 4), round(row["high"], 4)) == (0.5577, high)


@pytest.mark.parametrize("name", ["wilson", "clopper-pearson"])
def test_closed_intervals_use_the_design_effect_of_the_standard_error(name):
    values, clusters, group = _people()
    spec = ComparisonSettings(interval=name)
    row = _rows(scored(values, clusters), members(g=group), spec).row(1, named=True)
    p, n = row["value"], row["n_units"]
    effect = max(row["standard_error"] ** 2 / (p * (1 - p) / (n - 1)), 1.0)
    ends = {"wilson": wilson_interval, "clopper-pearson": clopper_pearson_interval}[name](
        p * n, n, 0.95, effect
    )
    assert (row["low"], row["high"]) == pytest.approx((ends.low.item(), ends.high.item()))
    assert row["method"] == name


def test_everyone_right_has_the_interval_of_as_many_rows_as_clusters():
    clusters = [f"s{k}" for k in np.repeat(np.arange(20), 3)]
    row = _rows(scored([1.0] * 60, clusters), members(g=["a"] * 60)).row(1, named=True)
    assert (row["low"], row["high"]) == pytest.approx(_score_ends(20, 20))
    assert (row["method"], row["status"]) == ("score", "ok")


def test_subjects_who_are_all_alike_give_no_interval_without_width():
    # Each of 20 people has one right and one wrong photo: no spread to resample, at a rate of .5.
    clusters = [f"s{k}" for k in np.repeat(np.arange(20), 2)]
    row = _rows(scored([1.0, 0.0] * 20, clusters), members(g=["a"] * 40)).row(1, named=True)
    assert (row["low"], row["high"]) == pytest.approx(_score_ends(10, 20))


STATUSES = [
    # clusters, units each, spec, status, has value, has interval, reason
    (9, 10, {}, "insufficient clusters", True, False, "fewer than 10 clusters"),
    (12, 2, {}, "insufficient units", False, False, "fewer than 50 units"),
    (9, 10, {"min_clusters": 5}, "few clusters", True, False, "no interval is honest"),
    (12, 10, {}, "few clusters", True, True, "fewer than 15 effective clusters"),
    (20, 10, {}, "ok", True, True, None),
    (40, 10, {}, "ok", True, True, None),
]


@pytest.mark.parametrize("case", STATUSES)
def test_statuses_and_reasons(case):
    n, each, more, status, has_value, has_interval, reason = case
    values = np.tile([1.0, 0.0, 0.0], n * each)[: n * each]
    clusters = [f"s{k}" for k in np.repeat(np.arange(n), each)]
    spec = ComparisonSettings(replicates=200, **more)
    row = _rows(scored(values, clusters), members(g=["a"] * (n * each)), spec).row(1, named=True)
    assert row["status"] == status
    assert (row["value"] is not None) is has_value
    assert (row["low"] is not None) is (row["high"] is not None) is has_interval
    assert (row["method"] is not None) is has_interval
    assert row["n_clusters"] == n
    assert (reason is None) if row["reason"] is None else (reason in row["reason"])


def test_one_big_cluster_is_worth_few():
    # 39 people of four photos and one of 200: worth three people alike.
    sizes = [200] + [4] * 39
    clusters = [f"s{k}" for k, n in enumerate(sizes) for _ in range(n)]
    values = np.tile([1.0, 1.0, 0.0, 1.0], 89)
    row = _rows(scored(values, clusters), members(g=["a"] * 356)).row(1, named=True)
    assert row["n_clusters"] == 40
    assert row["status"] == "dominant clusters"
    assert "fewer than 15 effective clusters" in row["reason"]


def test_a_group_that_nobody_scored_says_so():
    rows = _rows(scored([1, 0, None, None]), members(g=list("aabb")))
    last = rows.row(2, named=True)
    assert (last["status"], last["value"], last["n_units"]) == ("not scored", None, 0)
    assert "nobody" in last["reason"]


def test_row_order_and_group_names_do_not_matter():
    values, clusters, group = _people()
    scores, membership = scored(values, clusters), members(g=group)
    first = _rows(scores, membership)
    order = np.random.default_rng(1).permutation(len(values))
    mixed = Scores(scores.units[order], scores.info)
    again = _rows(mixed, membership.sample(fraction=1.0, shuffle=True, seed=2)).sort("group")
    named = members(g=[{"a": "zebra ×, ;", "b": "<b>"}[g] for g in group])
    renamed = _rows(scores, named)
    exact, close = ["value", "n_units", "n_clusters", "status"], ["low", "high", "standard_error"]
    for other in (again, renamed.sort("value")):
        mine = first.sort("group") if other is again else first.sort("value")
        for column in exact:
            assert mine[column].to_list() == pytest.approx(other[column].to_list()), column
        for column in close:  # other random numbers, the same law
            np.testing.assert_allclose(mine[column], other[column], atol=0.02)


def test_a_seed_repeats_and_inputs_are_unchanged():
    values, clusters, group = _people()
    scores, membership = scored(values, clusters), members(g=group)
    before = scores.units.clone(), membership.clone()
    assert _rows(scores, membership).equals(_rows(scores, membership))
    assert scores.units.equals(before[0])
    assert membership.equals(before[1])
    other = _rows(scores, membership, SMALL.model_copy(update={"seed": 1}))
    assert other["value"].equals(_rows(scores, membership)["value"])
    assert other["low"].equals(_rows(scores, membership)["low"]), "nothing is drawn for a mean"


def test_attributes_with_unknown_people_have_their_own_domain():
    made = measure_groups(
        scored([1, 0, 1, 1]), members(g=["a", "b", None, None], h=["x", "x", "y", "y"]), SMALL
    )
    assert made.domain_rows["h"] == 0, "its groups unite everyone"
    domain = made.domain_rows["g"]
    assert domain >= len(made.groups)
    np.testing.assert_array_equal(made.cluster_sums.totals()[domain, 0], 2)
    assert made.value.shape[0] == len(made.groups) == 5


EVIDENCE = pl.DataFrame(
    {
        "model": ["m"] * 4, "unit_id": ["u0", "u1", "u2", "u3"],
        "cluster_id": pl.Series([None] * 4, dtype=pl.String), "value": [0.2, 0.4, 0.9, 0.7],
    }
)  # fmt: skip
SUMMED = Metric(
    name="summed", title="s", definition="d", direction="none", evidence="e",
    statistic=SumStatistic(
        lambda e: np.column_stack([e["value"].to_numpy(), np.ones(e.height)]),
        MEAN.finish,
    ),
)  # fmt: skip
RANKED = Metric(
    name="ranked", title="r", definition="d", direction="none", low=None, high=None, evidence="e",
    statistic=RankStatistic(
        lambda e: e.select("value").to_numpy(),
        lambda rows: lambda weights, at: MEAN.finish(_sums_of(rows[:, 0], weights, at)),
    ),
)  # fmt: skip


def _sums_of(values, weights, at):
    own = weights if at is None else weights[at]
    return np.column_stack([values @ own, own.sum(axis=0)])


def test_statistics_of_evidence_are_measured_beside_means():
    scores = scored([1, 0, 1, 1], evidence={"e": EVIDENCE}, others=(SUMMED, RANKED))
    rows = _rows(scores, members(g=list("aabb")))
    by_metric = {m: part["value"].to_list() for (m,), part in rows.group_by("metric")}
    assert by_metric["accuracy"] == pytest.approx([0.75, 0.5, 1.0])
    for name in ("summed", "ranked"):
        assert by_metric[name] == pytest.approx([0.55, 0.3, 0.8])
        counts = rows.filter(pl.col("metric") == name)
        assert counts["n_units"].to_list() == [4, 2, 2]


def test_an_unbounded_metric_has_a_t_interval():
    n = 40
    evidence = pl.concat([EVIDENCE] * 10).with_columns(
        unit_id=pl.Series([f"u{k}" for k in range(n)])
    )
    scores = scored([1, 0] * 20, evidence={"e": evidence}, others=(RANKED,))
    row = _rows(scores, members(g=["a"] * n)).filter(pl.col("metric") == "ranked")
    one = row.row(1, named=True)
    half = stats.t.ppf(0.975, n - 1) * one["standard_error"]
    assert (one["low"], one["high"]) == pytest.approx((0.55 - half, 0.55 + half))
    assert one["method"] == "t"


def test_a_unit_in_two_clusters_is_refused():
    scores = scored([1, 0], ["p", "q"])
    double = pl.concat([scores.units, scores.units.with_columns(
        metric=pl.lit("error"), cluster_id=pl.lit("other"))])  # fmt: skip
    with pytest.raises(TableError, match="a unit belongs to two clusters"):
        measure_groups(Scores(double, scores.info), members(g=["a", "b"]), SMALL)


def test_two_metrics_and_models_are_apart():
    first = scored([1, 0, 1, 1])
    both = Scores(
        pl.concat([first.units, first.units.with_columns(
            model=pl.lit("n"), value=1 - pl.col("value"))]),
        first.info,
    )  # fmt: skip
    rows = _rows(both, members(g=list("aabb")))
    everyone = rows.filter(pl.col("attribute").is_null())
    assert everyone["model"].to_list() == ["m", "n"]
    assert everyone["value"].to_list() == [0.75, 0.25]
    assert ACCURACY.name == everyone["metric"][0]


@pytest.mark.parametrize("seed", range(4))
def test_rows_that_lie_together_and_rows_in_any_order_give_the_same(seed):
    """Numbers from the order of the rows, from joins, and from a table of groups: one answer."""
    rng = np.random.default_rng(seed)
    n = 400
    values = np.where(
        rng.random(n) < 0.1, np.nan, rng.integers(0, 2, n) if seed % 2 else rng.random(n)
    )
    clusters = [None if rng.random() < 0.2 else f"s{k}" for k in rng.integers(0, 60, n)]
    scores = scored([None if np.isnan(v) else v for v in values], clusters)
    second = scores.units.filter(pl.Series(rng.random(n) < 0.5)).with_columns(label=pl.lit("x"))
    scores = replace(scores, units=pl.concat([scores.units, second]))
    tones = [[f"t{k}" for k in rng.permutation(4)[: rng.integers(1, 3)]] for _ in range(n)]
    who = members(tone=tones, light=[f"l{k}" for k in rng.integers(0, 2, n)])
    shuffled = replace(scores, units=scores.units.sample(fraction=1.0, shuffle=True, seed=seed))
    found = _rows(scores, who)
    again = _rows(shuffled, who.sample(fraction=1.0, shuffle=True, seed=seed))
    order = ["label", "attribute", "group"]
    numbers = ["value", "low", "high", "standard_error"]
    assert_frame_equal(
        found.sort(order), again.sort(order), check_exact=False, rel_tol=1e-12, abs_tol=1e-12
    )
    assert found.select(numbers).null_count().row(0) == again.select(numbers).null_count().row(0)
