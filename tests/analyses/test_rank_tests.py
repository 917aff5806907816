"""FHIBE's benchmarking analysis: pairs, D, what is kept and claimed, on small worlds."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import mannwhitneyu

import isolux
from isolux.analyses.rank_tests import explain
from isolux.api.explain import run_analyses
from isolux.core.containers import Run
from isolux.core.errors import SpecError
from isolux.core.tables import (
    ATTRIBUTES,
    COMPARISONS,
    DISPARITIES,
    FINDINGS,
    GROUP_METRICS,
    SCORES,
    check,
)

SUBJECTS, PHOTOS = 45, 4


def run_of(value, attributes, *, metric="average_recall", task="detection", cluster=None, by=None):
    """Make a run of units u0, u1, …; ``value`` may be several metrics by name."""
    vectors = value if isinstance(value, dict) else {metric: value}
    rows = [
        {"model": "m", "task": task, "metric": name, "unit_kind": "instance",
         "unit_id": f"u{i}", "value": v, "reason": None if v is not None else "not seen",
         "cluster_id": None if cluster is None else f"s{cluster[i]}"}
        for name, values in vectors.items() for i, v in enumerate(values)
    ]  # fmt: skip
    groups = [
        {"unit_kind": "instance", "unit_id": f"u{i}", "attribute": name, "value": one}
        for name, given in attributes.items()
        for i, v in enumerate(given)
        for one in (v if isinstance(v, list) else [v])
    ]
    told = [
        {"model": "m", "task": task, "metric": name, "group": "overall", "values": [],
         "n_units": 1, "n_clusters": 1, "status": "ok"}
        for name in vectors
    ]  # fmt: skip
    record = {
        "spec": {"data": "table:x.csv", "by": list(attributes) if by is None else by,
                 "replicates": 200},
        "clusters": {"column": None if cluster is None else "subject"},
        "dataset": {"terms": [["tone", "perceived skin tone"]]},
    }  # fmt: skip
    return Run(
        record,
        SCORES.conform(pl.DataFrame(rows, infer_schema_length=None)),
        ATTRIBUTES.conform(pl.DataFrame(groups, infer_schema_length=None)),
        GROUP_METRICS.conform(pl.DataFrame(told, infer_schema_length=None)),
        DISPARITIES.empty(),
        FINDINGS.empty(),
    )


def lines(found):
    """Return the leading pairs by attribute."""
    (table,) = (t for name, t in found.tables.items() if name.startswith("Rank tests"))
    return {row["attribute"]: row for row in table.iter_rows(named=True)}


def three_tones(n=20, low=0.4, middle=0.5, high=0.8):
    """Twenty people a tone, spread by hundredths around three medians."""
    spread = (np.arange(n) - (n - 1) / 2) / 100
    values = np.concatenate([low + spread, middle + spread, high + spread])
    return values.tolist(), np.repeat(["dark", "medium", "light"], n).tolist()


def test_the_pair_with_the_highest_disparity_is_kept():
    # Medians .4, .5 and .8. All three pairs differ: D = .2, .375 and 1 - .4/.8 = .5.
    values, tone = three_tones()
    found = explain(run_of(values, {"tone": tone}), replicates=100)
    row = lines(found)["perceived skin tone"]
    assert (row["worst"], row["best"], row["better is"]) == ("dark", "light", "higher")
    assert (row["median worst"], row["median best"]) == pytest.approx((0.4, 0.8))
    assert row["D"] == pytest.approx(0.5)
    assert (row["pairs found"], row["pairs published"]) == ("3 of 3", "3 of 3")
    p = mannwhitneyu(values[:20], values[40:], method="asymptotic").pvalue
    assert row["p naive"] == pytest.approx(p, rel=1e-4)
    assert row["p published"] == pytest.approx(3 * p, rel=1e-4)
    (finding,) = check(found.findings, FINDINGS).to_dicts()
    assert finding["effect"] == pytest.approx(0.5)
    assert finding["low"] < 0.5 < finding["high"]
    assert (finding["group_a"], finding["group_b"], finding["n"]) == ("dark", "light", 40)
    assert finding["claim"].startswith(
        "Average recall (.50:.95) by perceived skin tone: dark is served worse than light; the "
        "medians are 40.0 points and 80.0 points, D = 0.50 (95 % interval "
    )
    assert "of dark has the worse score in 100 of 100 cases" in finding["claim"]


def test_where_less_is_better_the_highest_median_is_the_worst():
    values, tone = three_tones()
    run = run_of(values, {"tone": tone}, metric="lpips", task="super_resolution")
    found = explain(run, replicates=100)
    row = lines(found)["perceived skin tone"]
    assert (row["worst"], row["best"], row["better is"]) == ("light", "dark", "lower")
    # Turned over, so that it lies between 0 and 1: 1 - .4/.8.
    assert row["D"] == pytest.approx(0.5)
    assert row["worse, share of pairs"] == 1.0
    assert found.findings["low"][0] < 0.5 < found.findings["high"][0]


def test_a_metric_without_a_direction_names_no_worse_group():
    values, tone = three_tones()
    found = explain(run_of(values, {"tone": tone}, metric="made_up"), replicates=100)
    row = lines(found)["perceived skin tone"]
    assert (row["worst"], row["best"], row["better is"]) == ("dark", "light", "none")
    assert "scores lower than light (neither way is better by itself)" in found.findings["claim"][0]
    assert any("not known which way is better: made_up" in note for note in found.notes)


@pytest.mark.parametrize("shift", [-0.4, -1.0])
def test_a_median_of_zero_or_less_leaves_d_undefined(shift):
    values, tone = three_tones()
    found = explain(run_of([v + shift for v in values], {"tone": tone}), replicates=100)
    row = lines(found)["perceived skin tone"]
    if shift == -1.0:  # all are negative: the pair furthest from even odds, every pair fully apart
        assert row["D"] is None
        assert found.findings["effect"].to_list() == [None]
        assert found.findings["status"].to_list() == ["undefined"]
        assert "D is undefined, for a median is 0 or negative" in found.findings["claim"][0]
    else:  # dark's median is 0; medium (.1) and light (.4) have one: 1 - .1/.4
        assert (row["worst"], row["D"]) == ("medium", pytest.approx(0.75))


def test_where_medians_tie_the_mean_decides_and_is_told():
    # Right or wrong: both medians are 1, the rates are .6 and .95.
    values = [*[1.0] * 36, *[0.0] * 24, *[1.0] * 57, *[0.0] * 3]
    run = run_of(values, {"tone": np.repeat(["dark", "light"], 60).tolist()})
    found = explain(run, replicates=100)
    row = lines(found)["perceived skin tone"]
    assert (row["worst"], row["decided by"], row["D"]) == ("dark", "mean", 0.0)
    # A pair is won by dark's unit .6 · .05, lost .4 · .95, so worse: .38 + .59/2.
    assert row["worse, share of pairs"] == pytest.approx(0.675)
    claim = found.findings["claim"][0]
    assert "the medians are the same (100.0 points), so the means decide: 60.0 points and" in claim
    assert found.findings["low"].to_list() == [None]


def test_where_medians_and_means_tie_the_ranks_decide():
    # Both have the median .5 and the mean 30/60. Of 3,600 pairs a's .6 beats 25 · 55, its .5 beats
    # 30 · 25 and ties 30 · 30: (1375 + 750 + 450) / 3600 = .71528 that b's unit is the worse one.
    a = [0.0] * 5 + [0.5] * 30 + [0.6] * 25
    b = [0.4] * 25 + [0.5] * 30 + [1.0] * 5
    run = run_of([*a, *b], {"tone": ["a"] * 60 + ["b"] * 60})
    row = lines(explain(run, replicates=100))["perceived skin tone"]
    assert row["decided by"] == "superiority"
    assert (row["worst"], row["worse, share of pairs"]) == ("b", pytest.approx(0.71528))


def nothing_but_subjects(seed=11):
    """Nothing differs by hair; photos of one subject are much alike."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(SUBJECTS), PHOTOS * 3)
    own = rng.normal(0.6, 0.1, SUBJECTS)
    hair = np.array(["black", "grey", "red"])[np.arange(SUBJECTS) % 3]
    values = own[owner] + rng.normal(0, 0.05, len(owner))
    return values.tolist(), hair[owner].tolist(), owner


def test_photos_are_not_people():
    values, hair, owner = nothing_but_subjects()
    found = explain(run_of(values, {"hair": hair}, cluster=owner), replicates=100)
    row = lines(found)["hair"]
    assert (row["pairs found"], row["pairs published"]) == ("0 of 3", "2 of 3")
    assert row["subjects"] == "15 / 15"
    assert row["p naive"] < 0.001
    assert row["p adjusted"] > 0.05
    (finding,) = found.findings.to_dicts()
    assert finding["effect"] is None
    assert finding["claim"].startswith(
        "Average recall (.50:.95): the clustered rank test found no difference between groups of "
        "hair (smallest"
    )
    assert "would claim differences by hair (2 of 3 pairs) at 0.05: it treats" in finding["claim"]
    assert any(name.startswith("Where the published") for name in found.tables)


def test_the_published_procedure_is_there_by_name():
    values, hair, owner = nothing_but_subjects()
    run = run_of(values, {"hair": hair}, cluster=owner)
    found = explain(run, test="naive", correction="published", replicates=100)
    row = lines(found)["hair"]
    assert row["pairs found"] == row["pairs published"] == "2 of 3"
    assert row["p adjusted"] == row["p published"]
    assert (
        "Mann–Whitney test as published, Bonferroni within the attribute"
        in (found.findings["claim"][0])
    )


@pytest.mark.parametrize(("correction", "factor"), [("holm", 4), ("bh", 2), ("published", 3)])
def test_the_family_is_all_that_was_looked_at(correction, factor):
    values, tone = three_tones()
    run = run_of(values, {"tone": tone, "light": ["day", "night"] * 30})
    row = lines(explain(run, correction=correction, replicates=100))["perceived skin tone"]
    # Four tests. Dark and light are as far apart as medium and light (fully), the others less:
    # two smallest p alike, so Holm gives 4 p, BH 4/2 p, and Bonferroni among three tones 3 p.
    assert row["p adjusted"] == pytest.approx(factor * row["p clustered"], rel=1e-3)


def test_small_groups_are_left_out_by_subjects_and_named():
    values, tone = three_tones()
    owner = np.r_[np.repeat(np.arange(5), 4), np.arange(20, 60)]  # five dark subjects
    run = run_of(values, {"tone": tone}, cluster=owner)
    found = explain(run, replicates=100)
    assert lines(found)["perceived skin tone"]["pairs found"] == "1 of 1"
    assert (
        "perceived skin tone: not ranked, for a group needs 10 subjects with a score: dark (5)"
    ) in found.notes
    none = explain(run_of(values, {"tone": tone}, cluster=np.arange(60) // 7))
    assert none.findings.is_empty()
    assert none.notes[-1] == "no attribute has two groups that are large enough to be ranked"


def test_unknown_people_are_in_no_group_and_missing_scores_in_no_rank():
    values, tone = three_tones()
    values[0] = None
    tone[59] = "unknown"
    row = lines(explain(run_of(values, {"tone": tone}), replicates=100))["perceived skin tone"]
    assert row["n"] == "19 / 19"


def test_somebody_with_two_values_is_in_both_groups():
    values, tone = three_tones()
    both = [[t, "all"] if t != "medium" else [t] for t in tone]
    row = lines(explain(run_of(values, {"tone": both}), replicates=100))["perceived skin tone"]
    assert row["pairs found"].endswith("of 6")


def test_all_attributes_leaves_out_what_cannot_be_groups():
    values, tone = three_tones()
    run = run_of(values, {"tone": tone, "height": [str(i) for i in range(60)]}, by=["tone"])
    found = explain(run, attributes="all", replicates=100)
    assert set(lines(found)) == {"perceived skin tone"}
    assert any(note.startswith("height was not ranked: 'height' has 60") for note in found.notes)


def test_a_constant_score_is_named_and_shows_nothing():
    _, tone = three_tones()
    found = explain(run_of([0.5] * 60, {"tone": tone}), replicates=100)
    assert lines(found)["perceived skin tone"]["p adjusted"] == 1.0
    assert any("every unit has the same score" in note for note in found.notes)


def test_one_group_alone_is_not_ranked():
    found = explain(run_of([0.1, 0.2] * 30, {"tone": ["dark"] * 60}), replicates=100)
    assert found.findings.is_empty()
    assert "no attribute has two groups that are large enough to be ranked" in found.notes


def test_several_metrics_have_lines_of_their_own():
    values, tone = three_tones()
    run = run_of({"average_recall": values, "recall_50": [0.5] * 60}, {"tone": tone})
    found = explain(run, replicates=100)
    assert found.findings["metric"].to_list() == ["average_recall", "recall_50"]
    assert found.findings["rank"].to_list() == [1, 2]


def test_a_comparison_of_models_has_none():
    values, tone = three_tones()
    run = run_of(values, {"tone": tone})
    other = Run(run.record, run.scores, run.attributes, run.group_metrics, COMPARISONS.empty(),
                FINDINGS.empty())  # fmt: skip
    assert explain(other).findings.is_empty()


def test_too_few_replicates_are_refused():
    with pytest.raises(SpecError, match="replicates cannot be used"):
        explain(run_of([0.1], {"tone": ["a"]}), replicates=10)


def test_a_run_without_scores_of_units_says_how_to_get_them():
    run = run_of([None] * 4, {"tone": list("abab")}, metric="average_precision")
    with pytest.raises(SpecError, match="no scores of single units") as caught:
        explain(run)
    assert "audit again with another --metric" in str(caught.value)


def test_a_run_without_attributes_says_how_to_name_them():
    run = run_of([0.1] * 4, {"tone": list("abab")}, by=[])
    with pytest.raises(SpecError, match="no attribute to compare") as caught:
        explain(run)
    assert "rank_tests.attributes=all" in str(caught.value)


def test_an_audit_takes_it_by_name():
    values, hair, owner = nothing_but_subjects()
    units = [f"u{i}" for i in range(len(values))]
    scores = pl.DataFrame({"unit_id": units, "value": values,
                           "cluster_id": [f"s{c}" for c in owner]})  # fmt: skip
    who = pl.DataFrame({"unit_id": units, "hair": hair})
    run = isolux.audit(scores, who, by="hair", cluster="subject", replicates=100).run
    after = run_analyses(run, ["rank_tests"], ["test=naive"])
    assert "rank_tests" in after.findings["analysis"].to_list()
    assert "rank_tests" in after.record["explained"]


def test_p_values_of_ranks_are_called_adjusted_whatever_the_audit_does():
    rng = np.random.default_rng(4)
    tone = ["a"] * 100 + ["b"] * 100
    value = np.concatenate([rng.normal(0.5, 0.1, 100), rng.normal(0.7, 0.1, 100)]).tolist()
    run = run_of(value, {"tone": tone})
    run.record["spec"]["correction"] = "none"
    claim = explain(run, replicates=100).findings["claim"][0]
    assert "adjusted p < 0.001" in claim
    assert "not adjusted" not in claim
