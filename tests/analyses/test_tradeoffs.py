"""Trade-offs: every point of a curve recomputed in plain Python, and what is said of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.stats import t

import isolux
from isolux.analyses.tradeoffs import COVERAGE, MATCHES, RATES, explain, format_thresholds_caption
from isolux.analyses.tradeoffs.curves import (
    SortedScoreRows,
    build_sorted_score_rows,
    estimate_coverage_curves,
    find_equal_rate_thresholds,
)
from isolux.analyses.tradeoffs.tradeoff_kernels import (
    find_equal_tpr_thresholds,
    sum_weights_within_coverages,
)
from isolux.api.explain import run_analyses
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import DatasetInfo
from isolux.core.spec import ComparisonSettings
from isolux.core.tables import COMPARISONS, FINDINGS, check
from isolux.tasks import score
from tests.analyses._scene import scene_run

SPEC = ComparisonSettings(replicates=200, min_units=1, min_clusters=1)


def small(seed, n=60):
    """Scores with many ties, two attributes, one of them with several values of one person."""
    rng = np.random.default_rng(seed)
    people = pl.DataFrame(
        {
            "unit_id": [f"u{i:02}" for i in range(n)],
            "cluster_id": [f"s{i // 3}" for i in range(n)],
            "score": rng.integers(0, 8, n) / 8,
            "mark": rng.random(n) < 0.5,
        }
    )
    rows = []
    for i in range(n):
        rows += [("tone", t, f"u{i:02}") for t in "abc" if rng.random() < 0.5]
        rows.append(("light", "dim" if i % 4 else "bright", f"u{i:02}"))
    members = pl.DataFrame(rows, schema=["attribute", "group", "unit_id"], orient="row")
    return people, members


def in_group(people, members, name):
    if name[0] is None:
        return people
    own = members.filter((pl.col("attribute") == name[0]) & (pl.col("group") == name[1]))
    return people.join(own.select("unit_id"), on="unit_id", how="semi")


def slow_rates(people, threshold):
    """Share of negatives and of positives at or above a threshold."""
    above = people.filter(pl.col("score") >= threshold)
    count = {m: people.filter(pl.col("mark") == m).height for m in (False, True)}
    hit = {m: above.filter(pl.col("mark") == m).height for m in (False, True)}
    return [hit[m] / count[m] if count[m] else np.nan for m in (False, True)]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("operating", [0.25, 0.5, 0.8])
def test_thresholds_are_the_highest_at_which_a_group_fares_as_everyone_does(seed, operating):
    people, members = small(seed)
    rows = build_sorted_score_rows(people, members)
    found = find_equal_rate_thresholds(rows, operating, SPEC)
    target = slow_rates(people, operating)[1]
    for g, name in enumerate(rows.names):
        own = in_group(people, members, name)
        false, true = slow_rates(own, operating)
        assert found.positive_rate[g, 0] == pytest.approx(true)
        assert found.false_rate[g, 0] == pytest.approx(false)
        candidates = sorted(own.filter("mark")["score"].to_list(), reverse=True)
        wanted = next(t for t in candidates if slow_rates(own, t)[1] >= target - 1e-12)
        assert found.threshold[g, 0] == wanted
        assert found.false_rate_at_threshold[g, 0] == pytest.approx(slow_rates(own, wanted)[0])


@pytest.mark.parametrize("seed", range(6))
def test_who_remains_at_each_coverage_is_counted_one_by_one(seed):
    people, members = small(seed)
    rows = build_sorted_score_rows(people, members)
    coverages = (0.9, 0.7, 0.5, 0.1)
    found = estimate_coverage_curves(rows, coverages, SPEC)
    for k, coverage in enumerate((1.0, *coverages)):
        falling = sorted(people["score"].to_list(), reverse=True)
        cut = falling[int(np.ceil(coverage * len(falling) - 1e-9)) - 1]  # ties are kept together
        for g, name in enumerate(rows.names):
            own = in_group(people, members, name)
            rest = people.join(own.select("unit_id"), on="unit_id", how="anti")
            kept, others = (x.filter(pl.col("score") >= cut) for x in (own, rest))
            assert found.coverage[k, g, 0] == pytest.approx(kept.height / own.height)
            error = kept["mark"].mean() if kept.height else np.nan
            assert found.error[k, g, 0] == pytest.approx(error, nan_ok=True)
            gap = error - others["mark"].mean() if kept.height and others.height else np.nan
            assert found.gap[k, g, 0] == pytest.approx(gap, nan_ok=True)


def repeated(rows, weight):
    """Write every row as often as its cluster weighs."""
    copies = weight[rows.cluster].astype(int)
    held = np.repeat(np.arange(len(rows.score)), copies)
    lists = [rows.group[rows.start[i] : rows.start[i + 1]] for i in held]
    start = np.concatenate([[0], np.cumsum([len(x) for x in lists])]).astype(np.int64)
    group = np.concatenate(lists)
    return SortedScoreRows(
        rows.score[held], rows.is_marked[held], rows.cluster[held], start, group, rows.names
    )


def test_a_weight_of_two_is_two_rows():
    rows = build_sorted_score_rows(*small(1))
    g, n = len(rows.names), int(rows.cluster.max()) + 1
    weights = np.random.default_rng(0).integers(0, 3, (5, n)).astype(float)

    def both(own, w):
        arrays = (w, own.cluster, own.score, own.is_marked, own.start, own.group)
        kept = np.zeros((2, 2, g, len(w)))
        sum_weights_within_coverages(*arrays, np.array([0.4, 1.0]), kept)
        out = np.empty((2, g, len(w))), np.empty((g, len(w))), np.empty((g, len(w)))
        find_equal_tpr_thresholds(*arrays, 0.5, *out)
        return kept, *out

    for j in range(5):
        one, other = both(rows, weights[j : j + 1]), both(repeated(rows, weights[j]),
                                                             np.ones((1, n)))  # fmt: skip
        for a, b in zip(one, other, strict=True):
            np.testing.assert_allclose(a, b)


def classified(seed=0, subjects=200, shift=0.6, tones=("dark", "light"), score_of="positive",
               **settings):  # fmt: skip
    """Positives of dark people score lower by ``shift``."""
    rng = np.random.default_rng(seed)
    s = np.repeat(np.arange(subjects), 6)
    n = len(s)
    tone, truth = rng.choice(tones, subjects)[s], rng.choice(["yes", "no"], n)
    z = np.where(truth == "yes", 0.8, -0.8) + rng.normal(0, 1, n)
    z -= shift * ((tone == "dark") & (truth == "yes"))
    p = 1 / (1 + np.exp(-2 * z))
    unit = [f"u{i}" for i in range(n)]
    people = Dataset(
        name="people",
        info=DatasetInfo(title="People", summary="Made up.", references=()),
        instances=pl.DataFrame(
            {"instance_id": unit, "image_id": unit, "cluster_id": [f"s{i}" for i in s],
             "classes": [[t] for t in truth]}
        ),
        attributes=pl.DataFrame(
            {"unit_kind": "instance", "unit_id": unit, "attribute": "tone", "value": tone}
        ),
    )  # fmt: skip
    answers = pl.DataFrame(
        {"model": "m", "instance_id": unit, "label": np.where(p >= 0.5, "yes", "no"),
         "score": None if score_of is None else p, "rank": 1}
    ).with_columns(pl.col("score").cast(pl.Float64))  # fmt: skip
    options = {} if score_of is None else {"positive": "yes", "score_of": score_of}
    scores = score("classification", people, answers, **options)
    done = isolux.audit(scores, people, by="tone", cluster="cluster_id", replicates=300, seed=0,
                        **settings)  # fmt: skip
    return done.run


@pytest.fixture(scope="module")
def run():
    return classified()


@pytest.fixture(scope="module")
def made(run):
    return explain(run)


def test_rates_at_the_operating_threshold_are_the_audits(run, made):
    table = made.tables[format_thresholds_caption(0.5)]
    wanted = run.group_metrics.filter(pl.col("metric") == "true_positive_rate")
    own = dict(table.select("group", "true positive rate of yes").rows())
    assert own == pytest.approx(dict(wanted.select("group", "value").rows()))
    curve = made.tables[RATES].filter(threshold=0.5)
    ends = dict(wanted.select("group", "low").rows())
    assert dict(curve.select("group", "from").rows()) == pytest.approx(
        ends, abs=0.01
    )  # other draws


def test_scores_that_are_too_low_are_met_by_a_lower_threshold(made):
    row = made.tables[format_thresholds_caption(0.5)].filter(group="dark").row(0, named=True)
    assert row["from"] < row["threshold"] < row["to"] < 0.5
    assert row["status"] == "ok"
    first = made.findings.row(0, named=True)
    assert (first["group_a"], first["reference"]) == ("dark", "hardt-2016")
    assert first["effect"] == pytest.approx(row["threshold"] - 0.5)
    assert "for as much it needs" in first["claim"]
    assert check(made.findings, FINDINGS).height == 2
    assert all(len(claim.split()) <= 30 for claim in made.findings["claim"])


def test_the_shares_kept_add_up(made):
    table = made.tables[COVERAGE]
    assert table["overall coverage"].unique().sort().to_list() == [0.5, 0.6, 0.7, 0.8, 0.9, 1.0]
    everyone = table.filter(pl.col("attribute").is_null())
    assert (everyone["coverage"] >= everyone["overall coverage"] - 1e-9).all()
    assert everyone["difference to everyone else"].null_count() == 6
    dark, light = (table.filter(group=g)["difference to everyone else"] for g in ("dark", "light"))
    assert dark.to_list() == pytest.approx((-light).to_list())


def test_a_gap_that_abstaining_widens_is_found_once():
    # Dark people's wrong answers are as sure as right ones: leaving out the unsure spares them
    # nothing, and everyone else much.
    rng = np.random.default_rng(0)
    run = classified(subjects=300)
    table = run.evidence["classification"].join(
        run.attributes.select("unit_id", tone="value"), on="unit_id"
    )
    dark = (table["tone"] == "dark").to_numpy()
    sure = rng.random(table.height)
    chance = np.where(dark, 0.75, 0.5 + 0.5 * sure)
    right = rng.random(table.height) < chance
    evidence = table.drop("tone").with_columns(confidence=pl.Series(sure), correct=pl.Series(right))
    changed = explain(replace(run, evidence={"classification": evidence}))
    told = changed.findings.filter(reference="jones-2021")
    assert told.height == 1
    assert told["group_a"][0] == "dark"
    assert 0.08 < told["effect"][0] < 0.17  # .125 at half coverage, 0 before
    assert told["p_adjusted"][0] < 0.001
    assert told["claim"][0].startswith("Keeping the surest 50 % of answers widens the gap in error")


def test_no_change_is_said_with_its_interval():
    told = explain(classified(shift=0.0)).findings.filter(reference="jones-2021")
    assert told.height == 1
    assert "is not shown to change a gap in error by tone; most: " in told["claim"][0]
    assert told["low"][0] < told["effect"][0] < told["high"][0]


def test_p_and_interval_of_a_change_have_the_freedom_of_the_fewer_clusters():
    """The interval reaches t(.975; c − 1) standard errors, and p is of the same t."""
    run = classified(shift=0.0, subjects=30)
    (told,) = explain(run).findings.filter(reference="jones-2021").to_dicts()
    who = run.scores.join(run.attributes.filter(value=told["group_a"]), on="unit_id", how="semi")
    own, others = who["cluster_id"].unique(), run.scores["cluster_id"].unique()
    freedom = min(len(own), len(set(others) - set(own))) - 1
    assert freedom < 20
    se = (told["high"] - told["low"]) / 2 / t.ppf(0.975, freedom)
    assert told["p_adjusted"] == pytest.approx(2 * t.sf(abs(told["effect"] / se), freedom))


def test_two_models_make_one_family(run):
    twice = pl.concat(
        [run.evidence["classification"],
         run.evidence["classification"].with_columns(model=pl.lit("n"))]
    )  # fmt: skip
    both = explain(replace(run, evidence={"classification": twice}))
    alone = explain(run)
    p, wanted = (x.findings.filter(reference="jones-2021")["p_adjusted"][0] for x in (both, alone))
    assert p == pytest.approx(min(1.0, 2 * wanted))
    assert both.tables[COVERAGE].height == 2 * alone.tables[COVERAGE].height


def test_the_seed_repeats_the_result(run, made):
    assert explain(run).findings.equals(made.findings)
    evidence = run.evidence["classification"].sample(fraction=1.0, shuffle=True, seed=1)
    mixed = explain(replace(run, evidence={"classification": evidence}))
    assert mixed.findings["effect"].to_list() == pytest.approx(made.findings["effect"].to_list())


def test_it_is_stored_with_the_run(run):
    done = run_analyses(run, ["tradeoffs"], ["operating=0.4"])
    stored = done.record["explained"]["tradeoffs"]
    assert set(stored) == {RATES, COVERAGE, format_thresholds_caption(0.4)}
    assert len(stored[COVERAGE]["rows"]) == 18


def test_detectors_have_the_share_found_by_threshold():
    run, _ = scene_run(metrics=("average_precision", "recall_at_iou"))
    made = explain(run, operating=0.0)
    table = made.tables[format_thresholds_caption(0.0)]
    recall = run.group_metrics.filter(
        (pl.col("metric") == "recall_at_iou") & (pl.col("threshold") == 0.5)
    )
    wanted = dict(recall.select("group", "value").rows())
    own = dict(table.select("group", "share found").rows())
    assert own == pytest.approx({name: wanted[name] for name in own}, abs=1e-9)
    assert "false positive" not in " ".join(table.columns)


def test_a_group_that_is_never_found_so_often_has_no_threshold():
    run, _ = scene_run(metrics=("average_precision",))
    table = explain(run, operating=0.0).tables[format_thresholds_caption(0.0)]
    least = table.sort("share found").row(0, named=True)
    assert least["threshold"] is None
    assert least["status"] == "undefined"


def test_runs_without_scores_are_told_what_to_give():
    with pytest.raises(SpecError, match="no scores that a threshold could part") as caught:
        explain(classified(score_of=None, subjects=60))
    assert "--score-column" in str(caught.value)
    assert "--positive" in str(caught.value)


def test_a_constant_score_parts_nobody(run):
    flat = run.evidence["classification"].with_columns(
        positive_score=pl.lit(0.7), confidence=pl.lit(0.7)
    )
    with pytest.raises(SpecError, match="no scores that a threshold could part") as caught:
        explain(replace(run, evidence={"classification": flat}))
    assert "gives everyone the same score" in str(caught.value)


def test_one_group_is_compared_with_nobody():
    made = explain(classified(tones=("dark",), subjects=60))
    assert made.findings.is_empty()
    assert (
        made.tables[COVERAGE].filter(group="dark")["difference to everyone else"].null_count() == 6
    )


def test_groups_below_the_minimum_are_counted():
    made = explain(classified(subjects=60, min_units=300))
    assert made.tables[COVERAGE]["group"].unique().to_list() == ["overall"]
    assert "2 group(s) with fewer than 300 units" in made.notes[0]


def test_a_comparison_of_models_is_left_alone(run):
    assert explain(replace(run, disparities=COMPARISONS.empty())).findings.is_empty()


def test_verifiers_have_match_rates_at_thresholds_of_everyones_impostors():
    rng = np.random.default_rng(0)
    who = np.repeat(np.arange(60), 2)
    unit = [f"u{i}" for i in range(len(who))]
    tone = rng.choice(["dark", "light"], 60)
    first, second = np.triu_indices(len(who), 1)
    genuine = who[first] == who[second]
    alike = rng.normal(0, 1, len(first)) + 2.5 * genuine
    people = Dataset(
        name="faces",
        info=DatasetInfo(title="Faces", summary="Made up.", references=()),
        instances=pl.DataFrame({"instance_id": unit, "image_id": unit,
                                "subject_id": [f"p{i}" for i in who],
                                "cluster_id": [f"p{i}" for i in who]}),
        attributes=pl.DataFrame({"unit_kind": "instance", "unit_id": unit, "attribute": "tone",
                                 "value": tone[who]}),
    )  # fmt: skip
    pairs = pl.DataFrame({"model": "m", "instance_id": [unit[i] for i in first],
                          "other_id": [unit[i] for i in second], "score": alike})  # fmt: skip
    scores = score("face_verification", people, pairs)
    run = isolux.audit(scores, people, by="tone", replicates=100, seed=0, min_units=10).run
    run = replace(run, evidence={"pairs": scores.evidence["pairs"]})
    table = explain(run).tables[MATCHES]
    for far in (0.1, 0.01):
        own = table.filter(pl.col("false match rate of everyone") == far)
        cut = own["threshold"][0]
        assert np.mean(alike[~genuine] >= cut) == pytest.approx(far, abs=1e-3)
        for group in ("overall", "dark", "light"):
            inside = np.isin(tone[who], ["dark", "light"] if group == "overall" else [group])
            both = inside[first] & inside[second]
            for name, kind in (("true_match_rate", genuine), ("false_match_rate", ~genuine)):
                wanted = np.mean(alike[both & kind] >= cut)
                cell = own.filter(group=group, rate=name)["value"].item()
                assert cell == pytest.approx(wanted, abs=1e-5)
