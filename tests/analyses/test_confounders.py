"""The analysis on runs by hand: verdicts, gaps at an equal mix, and what it refuses."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from isolux.analyses import confounders
from isolux.analyses.confounders.audit_tests import MaxStatistic, replicate_se_with_minimum
from isolux.analyses.confounders.effects import ReplicatedValue
from isolux.api.explain import run_analyses
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.tables import DISPARITIES, FINDINGS, check
from tests.analyses._confounded import attributes, evidence_of, run_of


def made(cells, **kwargs):
    """Make a run of (n, tone, size, hits): who of n people is found."""
    scores, tone, size = [], [], []
    for n, t, s, hits in cells:
        scores += [1.0] * hits + [0.0] * (n - hits)
        tone += [t] * n
        size += [s] * n
    return run_of(scores, attributes(tone=tone, size=size), **kwargs)


# Small are found at .4, large at .8, whatever the tone; b has 80 small of 100, a 20.
SIZE_ONLY = [(20, "a", "small", 8), (80, "a", "large", 64),
             (80, "b", "small", 32), (20, "b", "large", 16)]  # fmt: skip


def table(found, start):
    (frame,) = (t for caption, t in found.tables.items() if caption.startswith(start))
    return frame


def test_a_gap_that_size_explains_whole():
    """a: .72, b: .48; standard deviation (ddof 1) .24 / sqrt 2.

    Everyone: small 40 / 100 = .4, large .8; proxies .72 and .48 again. Within each value nothing
    is left: Δ is the dispersion as it stands, the standardised gap 0.
    """
    found = confounders.explain(
        made(SIZE_ONLY), explanatory=["size"], min_cell=10, roles={"size": "before"}
    )
    check(found.findings, FINDINGS)
    row = table(found, "Explanatory").row(0, named=True)
    sd = 0.24 / 2**0.5
    assert row["proxy_dispersion"] == pytest.approx(sd, abs=1e-6)
    assert row["controlled_dispersion"] == pytest.approx(0.0, abs=1e-6)
    assert row["reduction"] == pytest.approx(sd, abs=1e-6)
    assert row["verdict"] == "probable explanation"
    gap = table(found, "Gaps").row(0, named=True)
    assert gap["unadjusted gap"] == pytest.approx(-0.24)
    assert gap["gap"] == pytest.approx(0.0, abs=1e-6)
    assert gap["share left"] == pytest.approx(0.0, abs=1e-6)
    assert (gap["group"], gap["other group"], gap["people_compared"]) == ("b", "a", 1.0)
    assert gap["agrees"] is True
    claim = found.findings["claim"][0]
    assert "size is a probable explanation of the differences" in claim
    assert "80 % of b and 20 % of a have the value 'small'" in claim
    assert "cause" not in " ".join(found.findings["claim"]).lower()


def test_variance_and_population_degrees_of_freedom():
    found = confounders.explain(
        made(SIZE_ONLY), explanatory=["size"], min_cell=10, dispersion="variance", ddof=0,
        roles={"size": "before"},
    )  # fmt: skip
    # Two values .24 apart: a population variance of .12².
    row = table(found, "Explanatory").row(0, named=True)
    assert row["proxy_dispersion"] == pytest.approx(0.0144)
    # The 1 point is held against its root: .12.
    assert row["verdict"] == "probable explanation"
    assert "a variance of 0.0144" in found.findings["claim"][0]


def test_what_goes_with_groups_and_explains_nothing():
    """At each size b is found .3 less often; sizes are alike in both groups."""
    cells = [(100, "a", "small", 70), (100, "a", "large", 70),
             (100, "b", "small", 40), (100, "b", "large", 40)]  # fmt: skip
    found = confounders.explain(made(cells), explanatory=["size"], min_cell=10)
    row = table(found, "Explanatory").row(0, named=True)
    assert row["proxy_dispersion"] == pytest.approx(0.0, abs=1e-6)
    assert row["verdict"] == "not probable"
    claims = found.findings["claim"].to_list()
    assert "none of the attributes examined is a probable explanation" in claims[0]
    assert "at an equal mix of size" in claims[1].lower()
    assert "30.0 points lower than for a" in claims[1]
    assert found.findings["p_adjusted"][1] < 0.05
    assert "100 % of the gap is left" in claims[1]


def test_a_gap_that_control_makes_larger():
    """b has more of the large, and is found less often at each size: Simpson's case.

    a: (80 x .5 + 20 x .9) / 100 = .58; b: (20 x .3 + 80 x .7) / 100 = .62; at equal mix .2 less.
    """
    cells = [(80, "a", "small", 40), (20, "a", "large", 18),
             (20, "b", "small", 6), (80, "b", "large", 56)]  # fmt: skip
    found = confounders.explain(
        made(cells), explanatory=["size"], min_cell=10, roles={"size": "before"}
    )
    row = table(found, "Explanatory").row(0, named=True)
    assert row["verdict"] == "persists after control"
    gap = table(found, "Gaps").row(0, named=True)
    # a is the worse group as it stands, and at an equal mix .2 better.
    assert (gap["group"], gap["unadjusted gap"]) == ("a", pytest.approx(-0.04))
    assert gap["gap"] == pytest.approx(0.2)
    assert (
        "20.0 points higher than for b"
        in found.findings.filter(pl.col("p_adjusted") <= 0.05)["claim"].item()
    )


def test_a_metric_of_which_less_is_better():
    flipped = [(n, t, s, n - hits) for n, t, s, hits in SIZE_ONLY]
    found = confounders.explain(
        made(flipped, metric="miss_rate", task="face_detection"), explanatory=["size"], min_cell=10
    )
    gap = table(found, "Gaps").row(0, named=True)
    assert (gap["group"], gap["unadjusted gap"]) == ("b", pytest.approx(0.24))


def test_several_attributes_are_crossed():
    run = made(SIZE_ONLY)
    light = attributes(light=["dim", "bright"] * 100)
    run = run_of(run.scores["value"].to_list(), pl.concat([run.attributes, light]))
    found = confounders.explain(run, explanatory=["size", "light"], min_cell=5)
    mixes = table(found, "Gaps")
    assert mixes["equal mix of"].to_list() == ["size", "light", "size*light"]
    assert found.findings.height == 3
    ranks = table(found, "Explanatory")
    assert ranks["explanatory"].to_list() == ["size", "light"]
    assert ranks["first_in"].sum() == pytest.approx(1.0)
    assert ranks["first_in"][0] > 0.95


def test_average_precision_class_by_class():
    people = [(i, c) for i in range(40) for c in ("car", "dog")]
    found_at = [
        (i, c, 0.9 - i / 1000, k, 1023) for k, (i, c) in enumerate(people) if i % 3 or c == "car"
    ]
    evidence = evidence_of(people, found_at)
    tone = ["a" if i % 2 else "b" for i, _ in people]
    run = run_of(
        [1.0] * 80, attributes(tone=tone, size=["s", "s", "l", "l"] * 20), evidence=evidence
    )
    found = confounders.explain(run, explanatory=["size"], min_cell=5)
    groups = table(found, "Values by group")
    assert groups["label"].unique(maintain_order=True).to_list() == ["car", "dog", None]
    assert groups["metric"].unique().to_list() == ["normalised_average_precision"]
    assert groups.filter(label="car")["value"].to_list() == [1.0, 1.0]
    # dog: 26 or 27 of 40 found, no false alarm: the area is the recall; 101 points step by .01.
    dog = groups.filter(label="dog", group="b")
    images = range(0, 40, 2)
    recall = sum(i % 3 != 0 for i in images) / len(images)
    assert dog["value, other AP"].item() == pytest.approx(recall, abs=1e-6)
    assert dog["value"].item() == pytest.approx((np.floor(recall * 100) + 1) / 101, abs=1e-6)
    whole = groups.filter(pl.col("label").is_null(), group="b")
    assert whole["value"].item() == pytest.approx((1 + dog["value"].item()) / 2, abs=1e-6)
    counts = table(found, "People by class")
    assert counts.rows() == [
        ("car", "tone", "b", 20), ("car", "tone", "a", 20), ("dog", "tone", "b", 20),
        ("dog", "tone", "a", 20),
    ] or set(counts["n"]) == {20}  # fmt: skip


def test_a_true_accept_rate_by_the_same_road():
    """Two photos a person; genuine pairs of b are as alike as impostors half of the time."""
    rng = np.random.default_rng(2)
    n = 240
    tone = ["a", "b"] * (n // 2)
    size = rng.choice(["s", "l"], n // 2).repeat(2).tolist()
    rows = []
    for i in range(n):
        for j in range(i + 1, n):
            genuine = i % 2 == j % 2 and i // 4 == j // 4
            if i % 2 == j % 2 and (genuine or rng.random() < 0.1):
                alike = rng.normal(3 if genuine and i % 2 == 0 else 1 if genuine else 0)
                rows.append((f"p{i}", f"c{i // 4}{i % 2}", f"p{j}", float(alike), genuine))
    names = ["unit_id", "cluster_id", "other_id", "similarity", "genuine"]
    pairs = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        model=pl.lit("m"), far=pl.lit(0.05), threshold=pl.lit(None, dtype=pl.Float64)
    )
    run = run_of([], attributes(tone=tone, size=size), task="face_verification")
    run.evidence["pairs"] = pairs
    found = confounders.explain(run, explanatory=["size"], metric=["tar_at_far"], min_cell=10)
    groups = dict(table(found, "Values by group").select("group", "value").iter_rows())
    assert groups["a"] > groups["b"] + 0.3
    assert table(found, "Explanatory")["verdict"].to_list() == ["not probable"]
    assert "for b is" in found.findings["claim"][1]


def test_through_the_front_door():
    found = run_analyses(
        made(SIZE_ONLY),
        ["confounders"],
        ["explanatory=size", "min_cell=10", "dispersion=variance", "ddof=0", "regression=no"],
    )
    assert found.findings["analysis"].unique().to_list() == ["confounders"]
    assert "Gaps at an equal mix of explanatory values" in found.record["explained"]["confounders"]


def test_numbers_are_binned_and_bins_can_be_named():
    n = 200
    income = [str(1000 + 7 * i) for i in range(n)]
    run = run_of([float(i % 2) for i in range(n)],
                 attributes(tone=["a", "b", "b", "a"] * 50, income=income))  # fmt: skip
    quarters = confounders.explain(run, explanatory=["income"], min_cell=5)
    assert table(quarters, "Groups within")["at"].n_unique() == 4
    thirds = confounders.explain(
        run, explanatory=["income"], min_cell=5, bins={"income": "tertiles"}
    )
    assert table(thirds, "Groups within")["at"].n_unique() == 3


def test_quantiles_are_those_of_the_units_with_a_score():
    """200 judged people of 1000 to 2393, 300 not judged below 300: quarters of the judged."""
    n, others = 200, 300
    income = [str(i) for i in range(others)] + [str(1000 + 7 * i) for i in range(n)]
    values = [None] * others + [float(i % 2) for i in range(n)]
    run = run_of(values, attributes(tone=["a", "b", "b", "a"] * 125, income=income))
    found = confounders.explain(run, explanatory=["income"], min_cell=5)
    assert table(found, "Groups within")["at"].unique(maintain_order=True).to_list() == [
        "<1350", "1350–1700", "1700–2050", "2050+",
    ]  # fmt: skip


def test_unknown_values_are_a_value_and_unknown_groups_nobodys():
    cells = [*SIZE_ONLY, (40, "a", None, 20), (40, "b", None, 20), (30, None, "small", 30)]
    found = confounders.explain(made(cells), explanatory=["size"], min_cell=10)
    within = table(found, "Groups within")
    assert within["at"].unique(maintain_order=True).to_list()[-1] == "unknown"
    assert table(found, "Values by group")["n"].sum() == 280


# What cannot be told, and why


def status_of(cells, **kwargs):
    found = confounders.explain(made(cells), explanatory=["size"], min_cell=10, **kwargs)
    row = table(found, "Explanatory").row(0, named=True)
    return found, row["verdict"]


def test_an_attribute_with_one_value():
    found, verdict = status_of([(50, "a", "small", 40), (50, "b", "small", 10)])
    assert verdict == "it has one value only, 'small'"
    assert found.findings.height


def test_groups_that_an_attribute_separates():
    cells = [(50, "a", "large", 40), (50, "b", "small", 10)]
    found, verdict = status_of(cells)
    assert verdict == "it separates the groups: none of its values is seen in two of them"
    gap = found.findings.filter(pl.col("claim").str.contains("equal mix"))
    assert gap["status"].to_list() == ["undefined"]
    assert "cannot be compared" in gap["claim"].item()
    assert gap["effect"].to_list() == [None]


def test_a_value_seen_in_one_group_only_is_left_out_and_said():
    cells = [(50, "a", "small", 20), (50, "b", "small", 20), (90, "a", "huge", 80)]
    found, _ = status_of(cells)
    assert table(found, "Groups within").filter(at="huge")["compared"].to_list() == [False, False]
    assert any("at 1 value(s) of size some group has fewer than 10" in n for n in found.notes)
    gap = found.findings.filter(pl.col("claim").str.contains("equal mix"))
    assert gap["status"].to_list() == ["low overlap"]
    # Of those compared both are found at .4; of everyone a is found at 100 / 140.
    claim = gap["claim"].item()
    assert (
        "31.4 points lower without adjustment and 0.0 points higher among those compared" in claim
    )
    assert "overlap in part only. Left out are 90 of a (of 140): at their values" in claim
    assert any("64% of the people of a group" in n and "min_cell" in n for n in found.notes)


def test_the_gap_beside_an_equal_mix_is_of_the_same_people():
    """Compared: a 100 small at .6, 100 large at .8; b 50 small at .4, 150 large at .6.

    Own mixes: a .7, b (50 x .4 + 150 x .6) / 200 = .55, .15 apart. Everyone's mix of small is
    150 / 400: a .375 x .6 + .625 x .8 = .725, b .525, .2 apart. 1.333 of the gap is left. The 100
    huge, all of a and all found, are left out: with them a is (60 + 80 + 100) / 300 = .8, .25
    above b.
    """
    cells = [(100, "a", "small", 60), (100, "a", "large", 80), (100, "a", "huge", 100),
             (50, "b", "small", 20), (150, "b", "large", 90)]  # fmt: skip
    found = confounders.explain(made(cells), explanatory=["size"], min_cell=10)
    row = table(found, "Gaps").row(0, named=True)
    assert row["unadjusted gap"] == pytest.approx(-0.25)
    assert row["gap of those compared"] == pytest.approx(-0.15)
    assert row["gap"] == pytest.approx(-0.2)
    assert row["share left"] == pytest.approx(4 / 3, abs=1e-6)
    assert (row["people_compared"], row["people left out"]) == (pytest.approx(2 / 3, abs=1e-6), 100)
    claim = found.findings.filter(pl.col("claim").str.contains("equal mix"))["claim"].item()
    assert "% of their gap is left" in claim


def test_two_groups_are_compared_where_a_third_has_nobody():
    cells = [(60, "a", "small", 30), (60, "a", "large", 50), (60, "b", "small", 10),
             (60, "b", "large", 40), (60, "c", "small", 30)]  # fmt: skip
    found = confounders.explain(made(cells), explanatory=["size"], min_cell=10)
    row = table(found, "Gaps").row(0, named=True)
    assert (row["group"], row["other group"]) == ("b", "a")
    assert row["people_compared"] == 1.0
    # At small b is 20 / 60 below a, at large 10 / 60; everyone's mix is 180 small to 120 large.
    assert row["gap"] == pytest.approx(-(0.6 * 20 / 60 + 0.4 * 10 / 60), abs=1e-6)
    assert table(found, "Groups within").filter(at="large")["compared"].unique().to_list() == [
        False
    ]


def test_a_mean_needs_few_people_in_a_cell_and_control_needs_more():
    """15 cells of 6 people of either group: none has the audit's 20 people, all have 5."""
    cells = [(6, t, f"s{i}", hits) for i in range(15) for t, hits in (("a", 5), ("b", 2))]
    found = confounders.explain(made(cells, spec={"min_units": 20}), explanatory=["size"])
    row = table(found, "Gaps").row(0, named=True)
    assert row["gap"] == pytest.approx(-0.5)
    assert row["people_compared"] == 1.0
    verdict = table(found, "Explanatory")["verdict"].item()
    assert verdict == "at none of its values has every group 20 people"
    # Six photos of one subject are one cluster, and 5 clusters are needed.
    owner = [f"{t}{i}" for i in range(15) for t in "ab" for _ in range(6)]
    alike = made(cells, spec={"min_units": 20}, cluster=owner)
    row = table(confounders.explain(alike, explanatory=["size"]), "Gaps").row(0, named=True)
    assert (row["gap"], row["note"]) == (None, "at none of its values have both 5 people")


def with_tests(run, *rows):
    """Give a run the audit's own tests: (group_a, group_b, value, p_adjusted, low, high)."""
    names = ["group_a", "group_b", "value", "p_adjusted", "low", "high"]
    frame = pl.DataFrame(rows, schema=names, orient="row").with_columns(
        model=pl.lit("m"), task=pl.lit("detection"), metric=pl.lit("average_recall"),
        attribute=pl.lit("tone"), kind=pl.lit("difference"), status=pl.lit("ok"),
    )  # fmt: skip
    return replace(run, disparities=DISPARITIES.conform(frame))


@pytest.mark.parametrize("turned", [False, True])
def test_one_gap_has_one_p_in_a_report(turned):
    row = ("b", "a", -0.24, 0.031, -0.4, -0.1) if turned else ("a", "b", 0.24, 0.031, 0.1, 0.4)
    found = confounders.explain(with_tests(made(SIZE_ONLY), row), explanatory=["size"], min_cell=10)
    first = found.findings.row(0, named=True)
    assert first["p_adjusted"] == pytest.approx(0.031)
    assert "average recall by tone (adjusted p = 0.031 by the audit)" in first["claim"].lower()
    gap = table(found, "Gaps").row(0, named=True)
    assert (gap["its p_adjusted"], gap["tested by"]) == (0.031, "the audit")


def test_a_p_says_whose_family_it_is_adjusted_for():
    """Without a correction the audit's p-values are raw; those of this analysis never are."""
    raw = made(SIZE_ONLY, spec={"correction": "none"})
    found = confounders.explain(
        with_tests(raw, ("a", "b", 0.24, 0.031, 0.1, 0.4)), explanatory=["size"], min_cell=10
    )
    first, second = found.findings["claim"]
    assert "(p = 0.031 (not adjusted for the other tests) by the audit)" in first
    assert re.search(r"; adjusted p [=<] [\d.]+\)", second), second
    gap = table(found, "Gaps").row(0, named=True)
    assert (gap["its p_adjusted"], gap["tested by"]) == (0.031, "the audit, not adjusted")
    ours = confounders.explain(raw, explanatory=["size"], min_cell=10).findings["claim"][0]
    assert re.search(r"\(adjusted p [=<] [\d.]+ by this analysis, the audit has no", ours), ours


def test_the_larger_p_of_a_claim_is_named_for_what_it_is():
    """Of an unknown role both gaps must be shown: here the audit's raw p is the larger one."""
    cells = [(100, "a", "small", 70), (100, "a", "large", 70),
             (100, "b", "small", 40), (100, "b", "large", 40)]  # fmt: skip
    raw = made(cells, spec={"correction": "none"})
    run = with_tests(raw, ("a", "b", 0.3, 0.041, 0.1, 0.4))
    found = confounders.explain(run, explanatory=["size"], min_cell=10).findings
    row = found.filter(p_adjusted=0.041).row(-1, named=True)
    assert "; p = 0.041 (not adjusted for the other tests)), " in row["claim"], row["claim"]


def test_where_the_audit_finds_no_gap_nothing_is_explained():
    run = with_tests(made(SIZE_ONLY), ("a", "b", 0.24, 0.066, -0.01, 0.5))
    found = confounders.explain(run, explanatory=["size"], min_cell=10)
    claims = found.findings.filter(pl.col("p_adjusted") > 0.05)["claim"]
    assert "the audit found no difference in average recall" in claims[0].lower()
    assert "adjusted p = 0.066" in claims[0]
    assert not found.findings["claim"].str.contains("probable explanation").any()


def test_a_gap_that_the_audit_has_otherwise_is_tested_here():
    """Another value is another metric, such as average precision that is read in another way."""
    run = with_tests(made(SIZE_ONLY), ("a", "b", 0.2, 0.9, -0.1, 0.5))
    found = confounders.explain(run, explanatory=["size"], min_cell=10)
    assert found.findings["p_adjusted"][0] < 0.05
    assert "by this analysis, the audit has no such test" in found.findings["claim"][0]
    assert table(found, "Gaps")["tested by"].to_list() == ["this analysis"]


def test_the_pair_that_speaks_is_the_one_that_leads_the_audit():
    """b and a are told apart more surely here; the audit's interval of c and a keeps farther."""
    cells = [(200, "a", "small", 180), (200, "b", "small", 120), (40, "c", "small", 20)]
    rows = (("a", "b", 0.3, 0.001, 0.2, 0.4), ("a", "c", 0.4, 0.001, 0.25, 0.55),
            ("b", "c", 0.1, 0.7, -0.1, 0.3))  # fmt: skip
    found = confounders.explain(
        with_tests(made(cells), *rows), explanatory=["size"], min_cell=10
    ).findings
    assert found.select("group_a", "group_b").unique().rows() == [("c", "a")]
    assert found["p_adjusted"].min() == pytest.approx(0.001)


def test_cells_too_small_to_compare():
    cells = [(50, "a", "small", 20), (5, "a", "large", 4), (5, "b", "small", 2),
             (50, "b", "large", 40)]  # fmt: skip
    found, verdict = status_of(cells)
    assert verdict == "at none of its values has every group 10 people"
    assert table(found, "Gaps")["gap"].to_list() == [None]


def test_scores_that_are_all_the_same():
    cells = [(n, t, s, n) for n, t, s, _ in SIZE_ONLY]
    found, verdict = status_of(cells)
    assert verdict == "not probable"
    assert "every group of tone has the same" in found.findings["claim"][0].lower()
    assert found.findings["status"][0] == "undefined"
    assert found.findings["p_adjusted"].to_list() == [None, None]


def test_one_group_alone():
    found = confounders.explain(made([(50, "a", "small", 20)]), explanatory=["size"], min_cell=10)
    assert found.findings["status"].to_list() == ["insufficient units"]
    assert "ewer than two groups of tone are" in found.findings["claim"].item()


def test_two_attributes_explain_each_other_unless_others_are_named():
    # Small people are half as often right, whatever their tone; most of a are small.
    run = made(SIZE_ONLY)
    named = pl.col("attribute").replace("size", "height")
    run = replace(run, attributes=run.attributes.with_columns(named))
    both = confounders.explain(run, sensitive=["tone", "height"], min_cell=10)
    by_tone, by_height = (both.findings.filter(attribute=name) for name in ("tone", "height"))
    as_named = confounders.explain(run, sensitive=["tone"], explanatory=["height"], min_cell=10)
    assert by_tone["effect"].to_list() == as_named.findings["effect"].to_list()
    assert "height" in by_tone["claim"][0]
    assert "tone" in by_height["claim"][0]
    one = confounders.explain(
        run, sensitive=["tone", "height"], explanatory=["height"], min_cell=10
    )
    assert one.findings["attribute"].unique().to_list() == ["tone"]


@pytest.mark.parametrize(
    ("settings", "error", "text"),
    [
        ({"explanatory": ["tone"]}, SpecError, r"cannot explain itself.*found: tone"),
        ({"explanatory": ["colour"]}, UnknownNameError, r"named 'colour'.*confounders.explanatory"),
        ({"sensitive": ["colour"]}, UnknownNameError, r"named 'colour'.*confounders.sensitive"),
        ({}, SpecError, r"not said what may explain.*found: attributes tall.*--derive box_size"),
        ({"explanatory": ["size"], "metric": ["f1"]}, UnknownNameError, r"'f1'"),
        ({"explanatory": ["size"], "min_cell": 0}, SpecError, r"cannot be that small.*found: 0"),
        ({"explanatory": ["size"], "bins": {"age": "quantile:3"}}, SpecError, r"bins.*found: age"),
        ({"explanatory": ["size"], "replicates": 5}, SpecError, r"'replicates' cannot be used"),
    ],
)  # fmt: skip
def test_what_is_refused(settings, error, text):
    run = made(SIZE_ONLY)
    if not settings:  # "size" is one that can be computed, and would be taken
        named = pl.col("attribute").replace("size", "tall")
        run = replace(run, attributes=run.attributes.with_columns(named))
    with pytest.raises(error, match=f"(?s){text}"):
        confounders.explain(run, **settings)


def test_a_metric_without_direction():
    run = made(SIZE_ONLY, metric="selection_rate", task="classification")
    with pytest.raises(SpecError, match=r"(?s)'selection_rate' has no direction"):
        confounders.explain(run, explanatory=["size"], metric=["selection_rate"])


def test_a_number_is_explained_where_the_run_says_which_way_is_better():
    run = made(SIZE_ONLY, metric="mean", task="number")
    with pytest.raises(SpecError, match="no metric of this run can be explained"):
        confounders.explain(run, explanatory=["size"], min_cell=10)
    said = {"mean": {"title": "Mean", "unit": "", "direction": "lower"}}
    directed = replace(run, record=dict(run.record) | {"measures": said})
    found = confounders.explain(directed, explanatory=["size"], min_cell=10)
    gap = table(found, "Gaps").row(0, named=True)
    assert (gap["group"], gap["unadjusted gap"]) == ("a", pytest.approx(0.24))


def test_a_run_without_any_metric_that_is_known():
    with pytest.raises(SpecError, match=r"(?s)no metric of this run can be explained.*found: odd"):
        confounders.explain(made(SIZE_ONLY, metric="odd"), explanatory=["size"])


def test_too_many_words_to_compare_within():
    run = run_of(
        [0.0, 1.0] * 40, attributes(tone=["a", "b"] * 40, name=[f"n{i}" for i in range(80)])
    )
    with pytest.raises(SpecError, match="80 different values, too many to compare people within"):
        confounders.explain(run, explanatory=["name"])


def test_the_family_is_all_gaps_at_once():
    rng = np.random.default_rng(0)
    clusters = np.full(3, 400.0)
    drawn = rng.normal(size=(2000, 3))
    one, all_three = MaxStatistic(), MaxStatistic()
    alone = ReplicatedValue(np.array([2.4]), drawn[:, :1] + 2.4)
    together = ReplicatedValue(np.array([2.4, 0.0, 0.0]), drawn + np.array([2.4, 0.0, 0.0]))
    p_one = one.adjust_p(one.add(alone, clusters[:1]))[0]
    p_all = all_three.adjust_p(all_three.add(together, clusters))[0]
    # Normal tails: .0164 alone; 1 - (1 - .0164)³ = .048 of three.
    assert p_one == pytest.approx(0.0164, abs=0.006)
    assert p_all == pytest.approx(0.048, abs=0.012)
    assert np.isnan(one.adjust_p(np.array([np.nan]))).all()


def test_an_error_needs_replicates_with_values():
    drawn = np.full((100, 1), np.nan)
    drawn[:80, 0] = np.arange(80.0)
    assert np.isnan(
        replicate_se_with_minimum(ReplicatedValue(np.array([1.0]), drawn), np.array([50.0]))
    ).all()


@pytest.mark.parametrize(
    ("spread", "rare", "pooled", "found"),
    [
        (0.02, 0.0, 0.03, 0.02**0.6 * 0.03**0.4),  # everyone's clusters have the audit's weight
        (0.03, 0.0, 0.02, 0.03),
        (0.01, 0.02, 0.03, 0.02**0.6 * 0.03**0.4),  # few rare answers count in full
        (0.0, 0.02, 0.02, 0.02),
    ],
)
def test_a_standard_error_is_as_large_as_chance_asks_for(spread, rare, pooled, found):
    clusters = np.array([1000.0])
    drawn = np.array([[1.0], [-1.0]] * 500) * spread
    least = np.array([[rare], [pooled]])
    estimate = ReplicatedValue(np.array([0.1]), 0.1 + drawn, least)
    assert replicate_se_with_minimum(estimate, clusters) == pytest.approx([found], rel=2e-3)
