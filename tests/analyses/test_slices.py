"""The worst slices: each number recomputed in plain code, and what is asked of whom."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from isolux.analyses.slices import CAPTION, explain, search
from isolux.analyses.slices.search import is_in_held_out_clusters
from isolux.api.explain import run_analyses
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.tables import COMPARISONS, FINDINGS, check
from tests.laws._discovery import a_run

SETTINGS = {"replicates": 499, "min_units": 30}


def injected_run(seed=0, drop=0.5, subjects=200, metric="accuracy", **settings):
    """Ten photos a subject; dark people in dim light, seen from above, are served worse."""
    rng = np.random.default_rng(seed)
    subject = np.repeat(np.arange(subjects), 10)
    n = len(subject)
    who = {
        "tone": rng.choice(["light", "dark"], subjects)[subject],
        "light": rng.choice(["dim", "bright", "sun"], n),
        "angle": rng.choice(["above", "level"], n),
        "distance": rng.uniform(1, 9, n).round(3).astype(str),
    }
    hit = (who["tone"] == "dark") & (who["light"] == "dim") & (who["angle"] == "above")
    value = (rng.random(n) < np.where(hit, 0.9 - drop, 0.9)).astype(float)
    return a_run(subject, who, value, metric=metric, **(SETTINGS | settings)), who, value, subject


@pytest.fixture(scope="module")
def found():
    run, *arrays = injected_run()
    return explain(run, worse="lower"), *arrays


def test_the_injected_slice_of_three_is_found_first(found):
    first = found[0].findings.row(0, named=True)
    assert first["group_a"] == "angle: above, light: dim, tone: dark"
    assert first["status"] == "ok"
    assert first["low"] < -0.5 < first["high"] < 0
    assert check(found[0].findings, FINDINGS).height >= 1


def test_its_numbers_are_those_of_the_half_that_chose_nothing(found):
    made, who, value, subject = found
    # Judged numbers clusters in the order of their names.
    names = np.unique([f"s{s}" for s in subject], return_inverse=True)[1]
    second = is_in_held_out_clusters(names, 0.5, seed=0)
    hit = (who["tone"] == "dark") & (who["light"] == "dim") & (who["angle"] == "above")
    row = made.tables[CAPTION].row(0, named=True)
    assert row["units"] == (hit & second).sum()
    assert row["clusters"] == len(set(subject[hit & second]))
    assert row["mean"] == pytest.approx(value[hit & second].mean())
    assert row["of everyone else"] == pytest.approx(value[~hit & second].mean())
    assert row["difference"] == pytest.approx(row["mean"] - row["of everyone else"])
    assert row["mean where suggested"] == pytest.approx(value[hit & ~second].mean())
    n, size = (~second).sum(), (hit & ~second).sum()
    error = 1 - value
    score = 0.95 * (error[hit & ~second].mean() / error[~second].mean() - 1) - 0.05 * (n / size - 1)
    assert row["score"] == pytest.approx(score)
    assert row["share"] == pytest.approx(size / n)


def test_the_claim_says_whose_numbers_they_are(found):
    claim = found[0].findings["claim"][0]
    assert claim.lower().startswith("accuracy with angle: above, light: dim, tone: dark is ")
    row = found[0].findings.row(0, named=True)
    ends = f"{-100 * row['high']:.1f} to {-100 * row['low']:.1f}"
    assert f"points lower (95 % interval {ends}; adjusted" in claim
    assert claim.endswith("these numbers are the other half's.")


def test_p_values_are_holms_over_the_slices(found):
    table = found[0].tables[CAPTION]
    raised = found[0].findings["p_adjusted"].drop_nulls()
    assert (raised <= 0.05).all()
    # Tests of means draw nothing, so no number of replicates bounds p from below.
    assert table["adjusted p"].drop_nulls().is_between(0.0, 1.0).all()


def test_where_nothing_matters_it_says_what_was_looked_at():
    run, *_ = injected_run(seed=3, drop=0.0)
    made = explain(run, worse="lower")
    assert made.findings.height == 1
    assert made.findings["p_adjusted"].null_count() == 1
    assert "suggested was confirmed on the other" in made.findings["claim"][0]
    assert made.tables[CAPTION].height >= 1


def test_a_penalty_that_nothing_outweighs_leaves_none_to_ask(monkeypatch):
    run, *_ = injected_run(seed=3, drop=0.0)
    monkeypatch.setattr(search, "_ALPHA", 0.05)
    made = explain(run, worse="lower")
    assert "so none was tested on the other half" in made.findings["claim"][0]
    assert made.tables == {}


def test_the_order_of_rows_and_a_second_run_change_nothing(found):
    run, *_ = injected_run()
    mixed = replace(
        run,
        scores=run.scores.sample(fraction=1.0, shuffle=True, seed=1),
        attributes=run.attributes.sample(fraction=1.0, shuffle=True, seed=2),
    )
    made = explain(mixed, worse="lower")
    assert made.findings["group_a"][0] == found[0].findings["group_a"][0]
    assert made.findings["effect"][0] == pytest.approx(found[0].findings["effect"][0])
    again = explain(run, worse="lower")
    assert again.findings.equals(found[0].findings)


def test_an_error_is_a_score_turned_round():
    run, *_ = injected_run()
    turned = replace(run, scores=run.scores.with_columns(value=1.0 - pl.col("value")))
    own, other = explain(run, worse="lower"), explain(turned, worse="higher")
    assert own.findings["group_a"].to_list() == other.findings["group_a"].to_list()
    assert own.findings["effect"][0] == pytest.approx(-other.findings["effect"][0])
    assert "points higher" in other.findings["claim"][0]


def test_scores_without_bounds_count_from_the_best():
    run, *_ = injected_run()
    scaled = replace(run, scores=run.scores.with_columns(value=100.0 * pl.col("value") - 250.0))
    own, other = explain(run, worse="lower"), explain(scaled, worse="lower")
    assert own.findings["group_a"][0] == other.findings["group_a"][0]
    assert 100 * own.findings["effect"][0] == pytest.approx(other.findings["effect"][0])


def test_two_models_share_one_family():
    run, *_ = injected_run()
    both = pl.concat([run.scores, run.scores.with_columns(model=pl.lit("n"))])
    alone, made = explain(run, worse="lower"), explain(replace(run, scores=both), worse="lower")
    table = made.tables[CAPTION]
    assert table["model"].unique().sort().to_list() == ["m", "n"]
    assert table.height == 2 * alone.tables[CAPTION].height
    least = table["adjusted p"].min()
    assert least == pytest.approx(2 * alone.tables[CAPTION]["adjusted p"].min())


def test_slices_that_are_one_finding_again_are_left_out(monkeypatch):
    run, *_ = injected_run()
    apart = explain(run, worse="lower", max_slices=8).tables[CAPTION]["slice"].to_list()
    monkeypatch.setattr(search, "_MAX_JACCARD", 1.0)
    wide = explain(run, worse="lower", max_slices=8).tables[CAPTION]["slice"].to_list()
    assert wide[0] == apart[0]
    assert set(apart) != set(wide)


def test_fewer_attributes_when_asked():
    run, *_ = injected_run()
    only = explain(run, worse="lower", attributes=["tone"]).tables[CAPTION]["slice"]
    assert only.str.starts_with("tone: ").all()


def test_what_the_model_answered_is_no_slice():
    run, _, value, _ = injected_run(prediction_column="answer")
    answer = pl.DataFrame(
        {"unit_kind": "instance", "unit_id": run.scores["unit_id"], "attribute": "answer",
         "value": np.where(value > 0, "yes", "maybe")}
    )  # fmt: skip
    with_answer = replace(run, attributes=pl.concat([run.attributes, answer], how="diagonal"))
    made = explain(with_answer, worse="lower")
    assert not made.tables[CAPTION]["slice"].str.contains("answer").any()
    assert "Slices are not described by answer, which the model said." in made.notes


def test_settings_come_as_text_and_the_tables_are_stored():
    run, *_ = injected_run()
    done = run_analyses(run, ["slices"], ["worse=lower", "max_slices=2"])
    assert len(done.record["explained"]["slices"][CAPTION]["rows"]) == 2


def test_constant_scores_have_no_slice():
    run, *_ = injected_run()
    flat = replace(run, scores=run.scores.with_columns(value=pl.lit(1.0)))
    assert "none was tested" in explain(flat, worse="lower").findings["claim"][0]


def test_a_comparison_of_models_is_left_alone():
    run, *_ = injected_run()
    assert explain(replace(run, disparities=COMPARISONS.empty())).findings.is_empty()


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        ({"max_slices": 0}, "max_slices cannot be used"),
        ({"min_support": 1.0}, "min_support cannot be used"),
    ],
)
def test_settings_out_of_range_are_refused(setting, text):
    run, *_ = injected_run(subjects=50)
    with pytest.raises(SpecError, match=text) as caught:
        explain(run, **setting)
    assert f"slices.{next(iter(setting))}" in str(caught.value)


def test_a_metric_without_a_direction_is_refused():
    run, *_ = injected_run(metric="shade")
    with pytest.raises(SpecError, match="neither way is better by itself"):
        explain(run)


def test_names_that_are_not_there_are_refused():
    run, *_ = injected_run(subjects=50)
    with pytest.raises(UnknownNameError, match="no metric"):
        explain(run, metric="recal", worse="lower")
    with pytest.raises(UnknownNameError, match="no attribute"):
        explain(run, attributes=["ton"], worse="lower")


def test_too_few_clusters_for_two_halves_are_refused():
    run, *_ = injected_run(subjects=30)
    with pytest.raises(SpecError, match="too few clusters to choose slices on some"):
        explain(run, worse="lower")


def test_one_value_of_everything_is_refused():
    run, *_ = injected_run(subjects=50)
    one = run.attributes.filter(pl.col("attribute") == "tone").with_columns(value=pl.lit("dark"))
    with pytest.raises(SpecError, match="nothing to explain scores with"):
        explain(replace(run, attributes=one), worse="lower")
