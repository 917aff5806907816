"""Patterns of error: injected ones are found on other people, and what cannot be judged is said."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from isolux.analyses import patterns
from isolux.analyses.patterns.rules import (
    ItemSample,
    MinedRules,
    RuleLimits,
    mine_low_score_rules,
    split_sample_by_clusters,
)
from isolux.analyses.patterns.sentences import format_no_pattern
from isolux.api.explain import run_analyses
from isolux.core.containers import Run
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.tables import ATTRIBUTES, COMPARISONS, FINDINGS, SCORES, check
from isolux.statements.run_terms import RunTerms
from tests.laws._discovery import a_run, a_world

LIMITS = RuleLimits(0.05, 3, 10, 5)


def injected(subjects=200, **more):
    return a_world(np.random.default_rng(2), subjects, injected=0.4, **more)


@pytest.fixture(scope="module")
def found():
    return patterns.explain(injected())


def table(explained, start):
    (named,) = (t for name, t in explained.tables.items() if name.startswith(start))
    return named


def test_the_injected_pattern_leads(found):
    first = check(found.findings, FINDINGS).row(0, named=True)
    assert first["group_a"] == "light dim and size small"
    # .4 is taken from a rate of .8 where there is so much to take; those without luck keep theirs.
    assert 0.2 < first["low"] < first["effect"] < first["high"] < 0.5
    assert first["p_adjusted"] <= 0.01
    assert first["claim"].startswith(
        "Low performance (accuracy of 0) is more frequent with light dim and size small: "
    )
    assert "none of which chose the pattern" in first["claim"]
    assert "cause" not in " ".join(found.findings["claim"])


def test_numbers_are_those_of_the_half_that_did_not_choose(found):
    run = injected()
    wide = run.attributes.pivot("attribute", index="unit_id", values="value")
    wide = wide.join(run.scores.select("unit_id", "value", "cluster_id"), on="unit_id")
    wide = wide.sort("unit_id")
    low = (wide["value"] == 0).to_numpy()
    cluster = (wide["cluster_id"].rank("dense").cast(pl.Int64) - 1).to_numpy()
    hit = ((wide["light"] == "dim") & (wide["size"] == "small")).to_numpy()
    _, second = split_sample_by_clusters(hit[:, None], low, cluster, 0)
    inside = second.items[:, 0]
    row = table(found, "Patterns that").row(0, named=True)
    assert row["pattern"] == "light dim and size small"
    assert row["units"] == inside.sum()
    assert row["confidence"] == pytest.approx(second.is_low[inside].mean())
    assert row["of all others"] == pytest.approx(second.is_low[~inside].mean())
    assert row["lift"] == pytest.approx(second.is_low[inside].mean() / second.is_low.mean())
    assert row["support"] == pytest.approx((second.is_low & inside).mean())
    assert row["share of the low-performing"] == pytest.approx(inside[second.is_low].mean())


def test_values_and_groups_of_what_was_confirmed_are_laid_out(found):
    values = table(found, "Low performance by value")
    assert set(values["attribute"]) >= {"light", "size"}
    assert values.filter(attribute="size").height == 3
    groups = table(found, "Confirmed patterns and sensitive groups")
    assert set(groups["attribute"]) == {"tone"}
    own = groups.filter(pattern="light dim and size small")
    assert set(own["group"]) == {"dark", "light", "medium"}


def test_a_group_that_a_pattern_meets_harder_is_named():
    rng = np.random.default_rng(1)
    subject = np.repeat(np.arange(300), 10)
    tone = rng.choice(["dark", "light"], 300)[subject]
    light = rng.choice(["dim", "bright"], 3000)
    rate = 0.9 - 0.2 * (light == "dim") - 0.3 * ((light == "dim") & (tone == "dark"))
    value = (rng.random(3000) < rate).astype(float)
    found = patterns.explain(a_run(subject, {"tone": tone, "light": light}, value)).findings
    told = found.filter(attribute="tone", group_a="dark")
    assert told["claim"][0].startswith("With light dim, low performance is more frequent for dark")
    assert told["effect"][0] == pytest.approx(0.3, abs=0.12)
    # Of two groups, that the other one fares better says the same.
    assert found.filter(attribute="tone", group_a="light").height == 0


def test_nothing_is_said_as_such():
    run = a_world(np.random.default_rng(1), 60)
    found = patterns.explain(run).findings
    assert found.height == 1
    assert found["p_adjusted"].null_count() == 1
    assert found["claim"][0].startswith("No pattern of attribute values behind low performance")


def test_redundant_rules_are_left_out():
    # Only the first item matters; the second is a coin, the third says the first again.
    rng = np.random.default_rng(0)
    items = rng.random((4000, 2)) < 0.5
    items = np.column_stack([items, items[:, 0]])
    low = rng.random(4000) < np.where(items[:, 0], 0.5, 0.2)
    mined = mine_low_score_rules(ItemSample(items, low, np.repeat(np.arange(400), 10)), LIMITS)
    assert mined.members[:, 0].tolist() == [0]
    assert (mined.members[:, 1:] == -1).all()
    assert mined.n_itemsets == 7


def test_graded_scores_and_either_direction():
    run = injected(scores="graded")
    by_quantile = patterns.explain(run, low_quantile=0.2).findings["claim"][0]
    assert "or less (the worst 20 %)) is more frequent with light dim and size small" in by_quantile
    turned = replace(run, scores=run.scores.with_columns(value=1 - pl.col("value")))
    worse = patterns.explain(turned, worse="higher", low_quantile=0.2)
    assert "or more (the worst 20 %)) is more frequent with light dim" in worse.findings["claim"][0]
    below = patterns.explain(run, low_threshold=0.6).findings["claim"][0]
    assert "(accuracy below 0.6) is more frequent with light dim and size small" in below


def test_order_of_rows_and_seed_change_nothing_or_all():
    run = injected()
    turned = replace(run, scores=run.scores.reverse(), attributes=run.attributes.reverse())
    assert patterns.explain(turned).findings.equals(patterns.explain(run).findings)
    assert not patterns.explain(run, seed=1).findings.equals(patterns.explain(run).findings)


def test_an_attribute_that_is_the_score_is_left_out():
    run = injected()
    said = run.scores.select(
        unit_kind="unit_kind", unit_id="unit_id", attribute=pl.lit("verdict"),
        value=pl.when(pl.col("value") > 0).then(pl.lit("right")).otherwise(pl.lit("wrong")),
    )  # fmt: skip
    attributes = pl.concat([run.attributes, ATTRIBUTES.conform(said)])
    found = patterns.explain(replace(run, attributes=attributes))
    assert "verdict" not in "".join(found.findings["claim"])
    assert any(
        note.startswith("verdict: says of every unit what its score") for note in found.notes
    )


def test_the_models_own_answers_are_no_attributes():
    run = injected()
    ids = run.scores["unit_id"]
    value = run.scores["value"].to_numpy()
    truth = np.where(np.arange(len(value)) % 2, "cat", "dog")
    answer = np.where(value > 0, truth, np.where(truth == "cat", "dog", "cat"))
    both = [
        pl.DataFrame({"unit_kind": "instance", "unit_id": ids, "attribute": name, "value": words})
        for name, words in (("true", truth), ("said", answer))
    ]
    attributes = pl.concat([run.attributes, *(ATTRIBUTES.conform(part) for part in both)])
    record = {**run.record, "spec": {**run.record["spec"], "prediction_column": "said"}}
    told = replace(run, attributes=attributes, record=record)
    assert patterns.explain(told).findings["group_a"][0] == "light dim and size small"
    asked = patterns.explain(told, attributes=["true", "said"]).findings["claim"][0]
    assert "100.0 % of such units" in asked


def test_one_attribute_and_attributes_that_are_asked_for():
    found = patterns.explain(injected(), attributes=["light"]).findings
    assert found["group_a"][0] == "light dim"
    with pytest.raises(UnknownNameError, match="weather"):
        patterns.explain(injected(), attributes=["weather"])


def test_a_constant_score_is_noted():
    run = injected()
    same = replace(run, scores=run.scores.with_columns(value=pl.lit(1.0)))
    found = patterns.explain(same)
    assert found.findings.is_empty()
    assert "every unit has the same score" in found.notes[0]


def test_a_run_without_attributes_is_refused():
    run = injected()
    with pytest.raises(SpecError, match="there is nothing to explain scores with"):
        patterns.explain(replace(run, attributes=ATTRIBUTES.empty()))


def test_units_without_any_attribute_are_among_all_others():
    run = injected()
    half = run.attributes.filter(pl.col("unit_id") < "u01000")
    row = table(patterns.explain(replace(run, attributes=half)), "Patterns that").row(0, named=True)
    assert row["pattern"] == "light dim and size small"
    assert row["units"] < 200


def test_scores_of_nobody_and_metrics_without_a_direction_are_refused():
    run = injected()
    bare = replace(run, scores=run.scores.with_columns(metric=pl.lit("odd")))
    with pytest.raises(SpecError, match="of 'odd' neither way is better by itself"):
        patterns.explain(bare)
    assert patterns.explain(bare, worse="lower").findings.height
    with pytest.raises(UnknownNameError, match="no metric with scores of units named 'recall'"):
        patterns.explain(run, metric="recall")
    none = replace(run, scores=SCORES.empty(), evidence={"pairs": pl.DataFrame({"a": [1]})})
    with pytest.raises(SpecError, match="no unit of this run has a score of its own"):
        patterns.explain(none)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"max_length": 0}, "max_length cannot be used"),
        ({"min_support": 0.0}, "no set of items has such a support"),
        ({"low_threshold": 7.0}, "all people are on one side of 7"),
    ],
)
def test_settings_out_of_range_are_refused(option, message):
    with pytest.raises(SpecError, match=message):
        patterns.explain(injected(40), **option)
    with pytest.raises(SpecError, match="the worst share has to be a share"):
        patterns.explain(injected(40), low_quantile=1.0)


def test_a_comparison_has_none_and_two_models_are_both_told():
    run = injected()
    assert patterns.explain(replace(run, disparities=COMPARISONS.empty())).findings.is_empty()
    second = run.scores.with_columns(model=pl.lit("n"))
    both = replace(run, scores=pl.concat([run.scores, second]))
    found = patterns.explain(both)
    assert found.findings["group_a"].to_list().count("light dim and size small") == 2
    assert {name[-4:] for name in found.tables} == {" (m)", " (n)"}


def test_through_the_command_and_unknown_words_are_no_values():
    run: Run = injected()
    odd = run.attributes.with_columns(
        value=pl.when(pl.col("value") == "bright").then(pl.lit("Unknown")).otherwise("value")
    )
    found = run_analyses(replace(run, attributes=odd), ["patterns"], ["max_length=2"])
    assert "Unknown" not in str(found.record["explained"]["patterns"])
    assert found.findings["group_a"][0] == "light dim and size small"


def test_whose_value_is_unknown_is_no_other():
    # In dim light dark and light people fare alike, and those of unknown tone far worse.
    rng = np.random.default_rng(1)
    subject = np.repeat(np.arange(300), 10)
    tone = rng.choice(["dark", "light", "Not Sure"], 300)[subject]
    light = rng.choice(["dim", "bright"], 3000)
    rate = 0.9 - 0.2 * (light == "dim") - 0.5 * ((light == "dim") & (tone == "Not Sure"))
    value = (rng.random(3000) < rate).astype(float)
    run = a_run(subject, {"tone": tone, "light": light}, value,
                unknown_values=["not sure"])  # fmt: skip
    found = patterns.explain(run)
    assert found.findings["group_a"][0] == "light dim"
    assert found.findings.filter(attribute="tone").is_empty()
    # And where dark people do fare worse, it is beside those of known tone.
    value = (rng.random(3000) < rate - 0.4 * ((light == "dim") & (tone == "dark"))).astype(float)
    run = replace(run, scores=run.scores.with_columns(value=pl.Series(value)))
    row = patterns.explain(run).findings.filter(attribute="tone", group_a="dark")
    assert row["effect"][0] == pytest.approx(0.4, abs=0.12)
    assert " % of others of known tone with that pattern (difference " in row["claim"][0]
    assert row["group_b"][0] == "others of known value with the pattern"


def test_scores_of_two_values_at_a_threshold_are_said_in_words():
    run = injected()
    for metric, said in (
        ("recall_at_score", "(not found at a score of 0.5)"),
        ("correct", "(a value of 0 of correct at 0.5)"),
    ):
        at = run.scores.with_columns(
            metric=pl.lit(metric), task=pl.lit("detection"), threshold=pl.lit(0.5)
        )
        own = replace(run, scores=at)
        claim = patterns.explain(own, worse="lower", metric=metric).findings["claim"][0]
        assert claim.startswith(f"Low performance {said} is more frequent with light dim")


@pytest.mark.parametrize(
    ("smallest", "told"),
    [
        (0.125, "would have been shown from 12.5 points (power 0.8)."),
        (None, "No possible difference there could have been shown (power 0.8)."),
    ],
)
def test_what_could_have_been_shown_is_never_more_than_is_possible(smallest, told):
    mined = MinedRules(np.empty((2, 3), np.int32), 9, 4)
    about = SimpleNamespace(mined=mined, low_scores=SimpleNamespace(description="accuracy of 0"),
                            terms=RunTerms(), scores=SimpleNamespace(model="m"))  # fmt: skip
    assert format_no_pattern(about, 2, smallest).endswith(told)


def test_p_values_of_patterns_are_called_adjusted_whatever_the_audit_does():
    run = injected()
    raw = replace(run, record={**run.record, "spec": {**run.record["spec"], "correction": "none"}})
    one, two = (patterns.explain(r).findings["claim"].to_list() for r in (run, raw))
    assert one == two
    assert any("adjusted p" in claim for claim in two)
