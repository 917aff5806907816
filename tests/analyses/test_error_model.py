"""Error models: injected attributes are found, bad input is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from isolux.analyses import error_model
from isolux.analyses._contrasts import ContrastSums, contrast_means_of_disjoint_sets
from isolux.analyses._features import Features
from isolux.analyses.error_model.forest import (
    assign_clusters_to_folds,
    permute_scores_among_similar_clusters,
    select_features_above_elbow,
)
from isolux.analyses.error_model.groups import ErrorTree, bootstrap_se_of_mean_differences
from isolux.analyses.error_model.sentences import ErrorModelContext
from isolux.core.errors import SpecError
from isolux.core.spec import Bootstrap
from isolux.core.tables import ATTRIBUTES, COMPARISONS, FINDINGS, check
from isolux.statements.run_terms import RunTerms
from tests.laws._discovery import a_run, a_world

QUICK = {"check_trees": 10, "bootstrap": 300}


def injected(subjects=120):
    return a_world(np.random.default_rng(2), subjects, scores="graded", injected=0.3)


@pytest.fixture(scope="module")
def found():
    return error_model.explain(injected(), **QUICK)


def table(explained, start):
    (named,) = (t for name, t in explained.tables.items() if name.startswith(start))
    return named


def test_what_was_injected_is_found(found):
    findings = check(found.findings, FINDINGS)
    assert findings["claim"][0].startswith("The attributes predict accuracy of unseen people: R²")
    assert findings["p_adjusted"][0] == 0.05  # 1 of 20
    assert findings["low"][0] < findings["effect"][0] < findings["high"][0]
    assert set(findings["attribute"].drop_nulls()) == {"light", "size"}
    small = findings.filter(attribute="size").row(0, named=True)
    # .3 is taken of a half of small people: .15 beside those of other sizes.
    assert small["group_a"] == "size small"
    assert small["effect"] == pytest.approx(-0.15, abs=0.03)
    assert (
        "lower (worse) with size small than for others of known size (95 % interval 1"
        in small["claim"]
    )
    assert ", lower with small" in small["claim"]
    assert "cause" not in " ".join(findings["claim"])


def test_both_importances_and_the_leaves_are_laid_out(found):
    told = table(found, "What predicts")
    assert told["chosen"].to_list()[:2] == ["yes", "yes"]
    assert set(told["attribute"].to_list()[:2]) == {"light", "size"}
    # Age has sixty values and nothing to say: impurity sees it, people not seen do not.
    age = told.filter(attribute="age").row(0, named=True)
    tone = told.filter(attribute="tone").row(0, named=True)
    assert age["impurity importance"] > 2 * tone["impurity importance"]
    assert age["R² lost when shuffled"] < 0.02
    leaves = table(found, "A shallow tree")
    worst = leaves.sort("mean").row(0, named=True)
    assert "size small" in worst["who"]
    assert "light dim" in worst["who"] or "light not bright" in worst["who"]
    assert worst["difference"] == pytest.approx(-0.3, abs=0.06)
    assert 0 < leaves["units"].sum() < 1200  # one half of the clusters


def test_means_differences_and_errors_are_those_of_the_units(found):
    run = injected()
    small = run.attributes.filter(attribute="size", value="small")["unit_id"]
    scores = run.scores.with_columns(small=pl.col("unit_id").is_in(small.implode()))
    means = dict(scores.group_by("small").agg(pl.col("value").mean()).rows())
    row = table(found, "Differences").filter(attribute="size", value="small").row(0, named=True)
    assert row["mean"] == pytest.approx(means[True])
    assert row["of others of known value"] == pytest.approx(means[False])
    assert row["units"] == small.len()


def test_bootstrap_errors_agree_with_the_formula():
    rng = np.random.default_rng(0)
    count = rng.integers(1, 6, (200, 2)).astype(float)
    total = count * rng.normal(0.5, 0.1, (200, 1)) + rng.normal(0, 0.2, (200, 2))
    a, b = ContrastSums(total[:, :1], count[:, :1]), ContrastSums(total[:, 1:], count[:, 1:])
    drawn = bootstrap_se_of_mean_differences(a, b, Bootstrap(replicates=5000, seed=1))
    assert drawn == pytest.approx(contrast_means_of_disjoint_sets(a, b).standard_error, rel=0.06)


def test_nothing_is_said_as_such():
    found = error_model.explain(a_world(np.random.default_rng(3), 60), **QUICK)
    (claim,) = found.findings["claim"]
    assert claim.startswith("Nothing to explain was found in accuracy: ")
    assert claim.endswith("No tree was grown.")
    assert found.findings["p_adjusted"].null_count() == 1
    assert found.tables == {}


def test_a_permuted_target_deals_whole_clusters():
    rng = np.random.default_rng(0)
    size = rng.integers(3, 6, 90)
    cluster = np.repeat(np.arange(90), size)
    y = cluster.astype(float)
    moved = permute_scores_among_similar_clusters(y, cluster, rng)
    assert sorted(moved) == sorted(y)
    held = pl.DataFrame({"cluster": cluster, "y": moved}).group_by("cluster").agg(pl.col("y"))
    assert (held["y"].list.n_unique() == 1).all()
    assert (held["y"].list.first() == held["cluster"]).mean() < 0.1


def test_sizes_that_few_clusters_have_are_pooled():
    size = np.arange(1, 31)  # every size once
    cluster = np.repeat(np.arange(30), size)
    moved = permute_scores_among_similar_clusters(
        cluster.astype(float), cluster, np.random.default_rng(0)
    )
    assert sorted(moved) == sorted(cluster)
    assert (moved == cluster).mean() < 0.3


def test_folds_never_part_a_cluster():
    cluster = np.random.default_rng(0).integers(0, 40, 500)
    fold = assign_clusters_to_folds(cluster, 5, 3)
    assert pl.DataFrame({"c": cluster, "f": fold}).group_by("c").n_unique()["f"].max() == 1
    assert sorted(set(fold.tolist())) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("importance", "most", "chosen"),
    [
        ([5.0, 4.8, 4.9, 0.2, 0.1, 0.0], 6, [0, 2, 1]),
        ([5.0, 4.8, 4.9, 0.2, 0.1, 0.0], 2, [0, 2]),
        ([0.0, -0.1], 6, []),
        ([0.0, 0.3, 0.01], 6, [1]),
        ([0.3], 6, [0]),
        ([0.2, 0.3], 6, [1, 0]),
    ],
)
def test_the_elbow(importance, most, chosen):
    assert select_features_above_elbow(np.array(importance), most).tolist() == chosen


def test_one_attribute_numbers_with_gaps_and_the_published_importance():
    rng = np.random.default_rng(0)
    subject = np.repeat(np.arange(100), 6)
    height = rng.integers(10, 300, 600).astype(float)
    value = np.clip(0.4 + height / 600 + rng.normal(0, 0.1, 600), 0, 1)
    text = [None if i % 7 == 0 else str(int(h)) for i, h in enumerate(height)]
    run = a_run(subject, {"box_height": text}, value)
    found = error_model.explain(run, importance="impurity", **QUICK).findings
    assert found["attribute"].drop_nulls().to_list() == ["box_height"]
    assert "In the shallow tree, higher scores go with higher values." in found["claim"][1]


def test_an_attribute_that_is_the_score_is_left_out():
    run = injected(40)
    said = run.scores.select("unit_kind", "unit_id", attribute=pl.lit("points"),
                             number=2 * pl.col("value") + 1)  # fmt: skip
    said = said.with_columns(value=pl.col("number").cast(pl.String))
    only = error_model.explain(replace(run, attributes=ATTRIBUTES.conform(said)), **QUICK)
    assert only.findings.is_empty()
    assert only.notes[0].startswith("points: says of every unit what its score says")


def test_fewer_subjects_than_folds_and_few_units_are_told():
    few = error_model.explain(injected(4), **QUICK).findings.row(0, named=True)
    assert few["status"] == "insufficient clusters"
    assert "4 clusters, and 10 are needed" in few["claim"]
    subject = np.arange(30)
    small = a_run(subject, {"light": ["dim", "bright"] * 15}, np.arange(30) / 30)
    row = error_model.explain(small, **QUICK).findings.row(0, named=True)
    assert row["status"] == "insufficient units"
    assert "30 units, and 100 are needed" in row["claim"]


def test_a_constant_score_is_noted_and_a_comparison_has_none():
    run = injected(40)
    same = replace(run, scores=run.scores.with_columns(value=pl.lit(0.5)))
    found = error_model.explain(same, **QUICK)
    assert found.findings.is_empty()
    assert "so there is nothing to predict" in found.notes[0]
    other = replace(run, disparities=COMPARISONS.empty())
    assert error_model.explain(other, **QUICK).findings.is_empty()


def test_a_seed_repeats_the_result_in_any_order_of_rows():
    run = injected(40)
    turned = replace(run, scores=run.scores.reverse(), attributes=run.attributes.reverse())
    first, again = (error_model.explain(r, **QUICK).findings for r in (run, turned))
    assert first.equals(again)


@pytest.mark.parametrize(("centre", "size"), [(1.7e9, 60.0), (0.5, 1e-9)])
def test_scores_far_from_0_and_close_together_are_told_as_others(centre, size):
    """Trees take variances below 1e-16 for 0; squares of seconds since 1970 leave no digits."""
    run = injected(60)
    value = centre + size * pl.col("value")
    far = error_model.explain(replace(run, scores=run.scores.with_columns(value=value)), **QUICK)
    near = error_model.explain(run, **QUICK)
    assert far.findings["attribute"].to_list() == near.findings["attribute"].to_list()
    # Rounding may turn a tie between two splits: forests are alike, not equal.
    for column, unit in (("effect", size), ("low", size), ("high", size), ("p_adjusted", 1.0)):
        ours, theirs = far.findings[column].to_numpy().copy(), near.findings[column].to_numpy()
        ours[1:] /= unit  # the first is R²
        assert ours == pytest.approx(theirs, rel=0.1, abs=0.01)
    leaves = table(far, "A shallow tree")
    assert ((leaves["mean"] - centre) / size).is_between(0.0, 1.0).all()
    rows = table(far, "Differences")
    assert rows["standard error"].drop_nulls().max() < 0.1 * size


def test_settings_out_of_range_are_refused():
    with pytest.raises(SpecError, match="check_trees cannot be used\n  expected: 1 or more"):
        error_model.explain(injected(20), check_trees=0)


def test_two_models_are_told_each_at_half_the_level():
    run = injected(60)
    second = run.scores.with_columns(model=pl.lit("n"))
    found = error_model.explain(replace(run, scores=pl.concat([run.scores, second])), **QUICK)
    first = found.findings.filter(pl.col("claim").str.contains("of unseen people"))
    assert first["p_adjusted"].to_list() == [0.025, 0.025]  # 1 of 40
    assert {name[-4:] for name in found.tables} == {" (m)", " (n)"}


def test_a_metric_without_a_direction_and_no_attributes_are_refused():
    run = injected(40)
    odd = replace(run, scores=run.scores.with_columns(metric=pl.lit("odd")))
    with pytest.raises(SpecError, match="neither way is better by itself"):
        error_model.explain(odd)
    with pytest.raises(SpecError, match="there is nothing to explain scores with"):
        error_model.explain(replace(run, attributes=ATTRIBUTES.empty()))


def test_whose_value_is_unknown_is_no_other_and_signs_follow_the_words():
    # Half are unknown and served worst (.2); a has .5, b .7, so a is lower than b by .2.
    rng = np.random.default_rng(0)
    subject = np.repeat(np.arange(200), 6)
    tone = np.tile(["a", "b", "Unknown", "Unknown"], 300)
    value = pl.Series(tone).replace_strict({"a": 0.5, "b": 0.7, "Unknown": 0.2}).to_numpy()
    value = value + rng.normal(0, 0.05, 1200)
    found = error_model.explain(a_run(subject, {"tone": tone}, value), **QUICK)
    row = found.findings.filter(attribute="tone").row(0, named=True)
    assert abs(row["effect"]) == pytest.approx(0.2, abs=0.02)
    assert "than for others of known tone (95 % interval 1" in row["claim"]
    assert "\N{MINUS SIGN}" not in row["claim"]
    means = table(found, "Differences").select("value", "of others of known value")
    assert dict(means.rows()) == pytest.approx({"a": 0.7, "b": 0.5}, abs=0.01)


def test_what_was_held_out_is_called_by_its_name():
    run = injected(60)
    for column, said in (("image", "cluster (image)"), (None, "sample")):
        named = replace(run, record={**run.record, "clusters": {"column": column}})
        claim = error_model.explain(named, **QUICK).findings["claim"][0]
        assert f": R² out of {said} 0." in claim


def test_the_tree_names_each_value_once_by_its_way():
    words = RunTerms()
    told = ErrorModelContext(None, words, None)
    columns = Features(("b", "b", "b", "c"), ("none", "light", "heavy", None), np.zeros((0, 4)))
    tree = ErrorTree({0: 0.2, 1: 0.1, 2: -0.3}, pl.DataFrame())
    said = told._describe_direction("b", columns, tree)
    assert said == " In the shallow tree, higher scores go with none and light, lower with heavy."
    assert told._describe_direction("c", columns, tree) == " The shallow tree does not use it."
