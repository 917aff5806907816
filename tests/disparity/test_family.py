"""The family of tests: which null, which contrasts, which correction, how many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy import stats

from isolux.core.info import Metric
from isolux.core.spec import ComparisonSettings
from isolux.core.survey_sample import SAMPLE
from isolux.disparity import contrast_z
from isolux.disparity import family as families
from isolux.groups.measure import measure_groups
from isolux.stats.multiplicity import MaxNormalTail, adjust_p_bonferroni, adjust_p_holm
from isolux.stats.null_distribution import COMPLEMENT
from isolux.stats.statistic import SumStatistic
from tests._scored import members, scored

# Eight subjects of two photos, four to a group.
RIGHT = [2, 2, 1, 2, 0, 1, 0, 1]
VALUES = [v for r in RIGHT for v in ([1.0] * r + [0.0] * (2 - r))]
SUBJECTS = [f"s{k}" for k in range(8) for _ in range(2)]
BETWEEN = ["a"] * 8 + ["b"] * 8
WITHIN = ["dark", "light"] * 8


def _spec(**more):
    return ComparisonSettings(**{"min_units": 1, "min_clusters": 1, "replicates": 2000, **more})


def _family(membership, references=None, scores=None, **more):
    spec = _spec(**more)
    scores = scored(VALUES, SUBJECTS) if scores is None else scores
    estimates = measure_groups(scores, membership, spec)
    return estimates, families.run_family_tests(estimates, spec, references or {})


def test_p_is_at_most_five_percent_just_where_the_interval_leaves_zero_out():
    rng = np.random.default_rng(0)
    seen = set()
    for trial in range(60):
        values = (rng.random(240) < np.where(np.arange(240) < 120, 0.9, 0.75)).astype(float)
        subjects = [f"s{k // 6}" for k in range(240)]
        light = rng.choice(["day", "night"], 240).tolist()
        _, found = _family(
            members(g=["a"] * 120 + ["b"] * 120, light=light),
            scores=scored(values, subjects), seed=trial,
        )  # fmt: skip
        for attribute in ("g", "light"):
            tested = found.tested[attribute, 0]
            ends = tested.comparisons.compare_pairs(
                tested.members[:1], tested.members[1:]
            ).interval(Z)
            outside = bool(ends.low[0] > 0 or ends.high[0] < 0)
            assert outside == (tested.null.p_value[0] <= 0.05)
            seen.add((attribute, outside))
    assert {("g", True), ("g", False)} <= seen


def test_a_group_and_everyone_else_say_what_two_groups_say():
    _, found = _family(members(g=BETWEEN, light=WITHIN))
    for tested in found.tested.values():
        t = tested.null.t
        assert t[1] == pytest.approx(t[0])
        assert t[2] == pytest.approx(-t[0])


def test_one_test_has_the_law_of_one_normal_number():
    _, found = _family(members(g=BETWEEN), replicates=20_000)
    largest = found.tested["g", 0].null.max_z
    assert (largest > Z).mean() == pytest.approx(0.05, abs=0.007)


def test_contrasts_are_all_pairs_and_each_group_against_the_rest():
    three = ["a"] * 4 + ["b"] * 6 + ["c"] * 6
    _, found = _family(members(g=three))
    tested = found.tested["g", 0]
    assert tested.contrasts.tolist() == [
        [0, 1],
        [0, 2],
        [1, 2],
        [0, COMPLEMENT],
        [1, COMPLEMENT],
        [2, COMPLEMENT],
    ]
    assert found.sizes == {"all pairs and groups against the rest, metrics by g (m = 6)": 6}


def test_with_a_reference_only_pairs_with_it_are_tested():
    three = ["a"] * 4 + ["b"] * 6 + ["c"] * 6
    _, found = _family(members(g=three), {"g": "b"})
    tested = found.tested["g", 0]
    assert tested.has_reference
    assert tested.contrasts[:2].tolist() == [[0, 1], [2, 1]]
    assert found.sizes == {"all comparisons and groups against the rest, metrics by g (m = 5)": 5}


def test_a_reference_too_small_to_judge_leaves_nothing_to_compare():
    three = ["a"] * 8 + ["b"] * 6 + ["c"] * 2
    _, found = _family(members(g=three), {"g": "c"}, min_clusters=2)
    assert ("g", 0) not in found.tested


def test_a_group_too_small_to_judge_is_not_compared():
    three = ["a"] * 8 + ["b"] * 6 + ["c"] * 2
    estimates, found = _family(members(g=three), min_clusters=2)
    assert [estimates.groups[g].name for g in found.tested["g", 0].members] == ["a", "b"]


@pytest.mark.parametrize(
    ("correction", "adjust"),
    [("holm", adjust_p_holm), ("bonferroni", adjust_p_bonferroni), ("none", lambda p: p)],
)
def test_other_corrections_are_over_all_attributes(correction, adjust):
    _, found = _family(members(g=BETWEEN, h=WITHIN), correction=correction)
    expected = adjust(np.concatenate([x.null.p_value for x in found.tested.values()]))
    got = np.concatenate([x.adjusted for x in found.tested.values()])
    np.testing.assert_allclose(got, expected)
    assert sum(found.sizes.values()) == 6


def _adjusted_alone(attribute_tests):
    """Adjust one question's tests at the whole error rate: max-T, never below the raw p."""
    null = attribute_tests.null
    tail = MaxNormalTail(null.max_z, int(np.isfinite(null.t).sum()))
    return np.maximum(tail.adjust_p(null.t), null.p_value)


QUESTIONS = [
    # Two attributes: half of the rate each.
    (("g", "h"), {"g": 0.5, "h": 0.5}),
    (("h", "g"), {"g": 0.5, "h": 0.5}),
    # With an intersection they have four fifths together, and it has the rest.
    (("g", "h", "g*h"), {"g": 0.4, "h": 0.4, "g*h": 0.2}),
    (("g*h",), {"g*h": 1.0}),
]


@pytest.mark.parametrize(("asked", "shares"), QUESTIONS)
def test_each_attribute_has_its_part_of_the_error_rate(asked, shares):
    groups = {"g": BETWEEN, "h": WITHIN}
    groups["g*h"] = [f"{a} × {b}" for a, b in zip(BETWEEN, WITHIN, strict=True)]
    _, found = _family(members(**{name: groups[name] for name in asked}))
    assert {attribute for attribute, _ in found.tested} == set(shares)
    for (attribute, _), tested in found.tested.items():
        share = shares[attribute]
        np.testing.assert_allclose(
            tested.adjusted, np.minimum(_adjusted_alone(tested) / share, 1.0)
        )
        assert f"metrics by {attribute} (m = " in tested.family
        says_share = f"{100 * share:.3g} % of the error rate" in tested.family
        assert says_share == (share < 1.0)


def test_single_classes_do_not_cost_the_metric_over_all_classes():
    scores = scored(VALUES, SUBJECTS)
    by_class = [scores.units.with_columns(label=pl.lit(name)) for name in ("cat", "dog")]
    scores = replace(scores, units=pl.concat([scores.units, *by_class]))
    _, found = _family(members(g=BETWEEN), scores=scores)
    families = {tested.family for tested in found.tested.values()}
    pairs = "all pairs and groups against the rest"
    assert (
        families
        == set(found.sizes)
        == {
            f"{pairs}, metrics by g (m = 3), 80 % of the error rate of the report",
            f"{pairs}, single classes by g (m = 6), 20 % of the error rate of the report",
        }
    )


@pytest.mark.parametrize(
    ("asked", "shares"),
    [
        (("g", "g*h"), [("metrics by g", 80), ("metrics by g*h", 10),
                        ("single classes by g", 5), ("single classes by g*h", 5)]),
        (("g*h",), [("metrics by g*h", 50), ("single classes by g*h", 50)]),
    ],
)  # fmt: skip
def test_intersections_and_classes_have_a_tenth_each(asked, shares):
    scores = scored(VALUES, SUBJECTS)
    by_class = [scores.units.with_columns(label=pl.lit(name)) for name in ("cat", "dog")]
    scores = replace(scores, units=pl.concat([scores.units, *by_class]))
    crossed = [f"{a} × {b}" for a, b in zip(BETWEEN, WITHIN, strict=True)]
    groups = {"g": BETWEEN, "g*h": crossed}
    _, found = _family(members(**{name: groups[name] for name in asked}), scores=scores)
    for scope, percent in shares:
        (name,) = [n for n in found.sizes if f", {scope} (m = " in n]
        assert name.endswith(f"), {percent} % of the error rate of the report")
    assert len(found.sizes) == len(shares)


def test_adjusted_p_falls_below_alpha_just_where_t_exceeds_the_critical_value():
    values = [1.0] * 30 + [1.0, 0.0] * 15
    _, found = _family(members(g=["a"] * 30 + ["b"] * 30), scores=scored(values), replicates=999)
    tested = found.tested["g", 0]
    above = np.abs(tested.null.t) > tested.critical
    np.testing.assert_array_equal(above, tested.adjusted <= 0.05)
    assert above.any()


@pytest.mark.parametrize("correction", ["max-t", "holm"])
def test_nothing_to_compare_is_an_empty_family(correction):
    _, found = _family(members(g=["a"] * 16), correction=correction)
    assert found.tested == {}
    assert found.sizes == {}


def test_everyone_right_is_not_tested():
    _, found = _family(
        members(g=BETWEEN, h=WITHIN), scores=scored([1.0] * 16, SUBJECTS), correction="holm"
    )
    assert sum(found.sizes.values()) == 0
    for tested in found.tested.values():
        assert np.isnan(tested.adjusted).all()


def test_group_names_and_row_order_do_not_change_t():
    _, one = _family(members(g=BETWEEN))
    swapped = members(g=["z" if g == "a" else "y" for g in BETWEEN])
    _, two = _family(swapped)
    assert one.tested["g", 0].null.t[0] == pytest.approx(-two.tested["g", 0].null.t[0])


Z = float(stats.norm.ppf(0.975))
MEDIANLIKE = Metric(
    name="square", title="s", definition="d", direction="higher", evidence="e",
    statistic=SumStatistic(
        lambda e: np.column_stack([e["value"].to_numpy(), np.ones(e.height)]),
        lambda s: np.divide(
            s[..., 0], s[..., 1], out=np.full(s.shape[:-1], np.nan), where=s[..., 1] > 0
        ) ** 2,
    ),
)  # fmt: skip


def test_statistics_that_are_no_means_ask_their_own_interval_by_students_t():
    rng = np.random.default_rng(0)
    n = 120
    values = np.concatenate([rng.random(60), 0.4 + 0.6 * rng.random(60)])
    evidence = pl.DataFrame(
        {"model": ["m"] * n, "unit_id": [f"u{k}" for k in range(n)],
         "cluster_id": pl.Series([None] * n, dtype=pl.String), "value": values}
    )  # fmt: skip
    scores = scored(values, evidence={"e": evidence}, others=(MEDIANLIKE,))
    estimates, found = _family(members(g=["a"] * 60 + ["b"] * 60), scores=scores)
    j = next(k for k, m in enumerate(estimates.measures) if m.metric == "square")
    tested = found.tested["g", j]
    assert tested.test == "bootstrap t interval"
    apart = tested.comparisons.compare_pairs(np.array([1]), np.array([2]))
    z = abs(tested.null.t[0])
    ends = apart.interval(float(z))
    assert min(abs(ends.low[0]), abs(ends.high[0])) == pytest.approx(0.0, abs=1e-3)
    assert tested.null.p_value[0] == pytest.approx(2 * stats.norm.sf(z))
    assert tested.null.p_value[0] < 0.01


def test_the_standard_error_of_a_difference_counts_shared_people():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, 300).astype(float)
    tones = [["3"]] * 100 + [["3", "4"]] * 100 + [["4"]] * 100
    estimates, _ = _family(members(tone=tones), scores=scored(values), replicates=8000)
    se = families.replicate_difference_se(estimates, 0, np.array([1]), np.array([2]))[0]
    u = np.zeros(300)
    u[:200] += (values[:200] - values[:200].mean()) / 200
    u[100:] -= (values[100:] - values[100:].mean()) / 200
    assert se == pytest.approx(np.sqrt((u**2).sum()), rel=0.04)
    apart = np.hypot(*estimates.standard_error[1:, 0])
    assert se < 0.8 * apart


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("products", [0.0, 7500.0])
def test_attributes_compared_together_say_what_each_says_alone(monkeypatch, products, weights):
    # h's groups share people, tone is not known of every eighth, and light varies within subjects.
    n, rng = 240, np.random.default_rng(3)
    subjects = [f"s{k // 4}" for k in range(n)]
    groups = members(
        g=["a" if k < n // 2 else "b" for k in range(n)],
        h=[["x", "y"] if k % 3 == 0 else ["x"] if k % 3 == 1 else ["y"] for k in range(n)],
        tone=[None if k % 8 == 0 else "12345"[k // 4 % 5] for k in range(n)],
        light=rng.choice(["day", "night", "dusk"], n).tolist(),
    )
    evidence = {}
    if weights:
        evidence[SAMPLE] = pl.DataFrame(
            {"model": ["m"] * n, "unit_id": [f"u{k}" for k in range(n)], "cluster_id": subjects,
             "weight": rng.lognormal(0.0, 0.5, n),
             "stratum": [f"t{k // 4 % 2}" for k in range(n)], "stratum_clusters": [n // 8] * n}
        )  # fmt: skip
    right = (rng.random(n) < 0.8).astype(float).tolist()
    scores = scored(right, subjects, evidence=evidence)
    _, together = _family(groups, scores=scores)
    monkeypatch.setattr(contrast_z, "_MAX_PRODUCTS", products)
    _, alone = _family(groups, scores=scores)
    assert list(together.tested) == list(alone.tested)
    assert {name for name, _ in together.tested} == {"g", "h", "tone", "light"}
    for key, one in together.tested.items():
        other = alone.tested[key]
        np.testing.assert_allclose(one.null.t, other.null.t, rtol=1e-10)
        np.testing.assert_allclose(one.adjusted, other.adjusted, rtol=1e-10)
        ends = [
            x.comparisons.compare_pairs(x.members[:1], x.members[1:2]).interval(Z)
            for x in (one, other)
        ]
        np.testing.assert_allclose(ends[0].low, ends[1].low, rtol=1e-9)
        np.testing.assert_allclose(ends[0].high, ends[1].high, rtol=1e-9)
        own = other.comparisons.complement_to_overall_factor(other.members)
        np.testing.assert_allclose(
            one.comparisons.complement_to_overall_factor(one.members), own, rtol=1e-12
        )
        assert one.comparisons.has_overlap == other.comparisons.has_overlap == (key[0] == "h")
