"""A score along a number: bins and means against plain dataframe code, findings, bad input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.analyses.trends import explain
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.tables import ATTRIBUTES, FINDINGS, check

N, PHOTOS = 600, 3


def people(seed=0, slope=0.35, model="m"):
    """Subjects with three photos; dark photos are judged worse, in both groups alike.

    Group b's photos are darker: luminance .1 to .5 against .3 to .9.
    """
    rng = np.random.default_rng(seed)
    subject = np.arange(N) // PHOTOS
    group = np.where(subject % 2 == 0, "a", "b")
    luminance = np.where(group == "a", rng.uniform(0.3, 0.9, N), rng.uniform(0.1, 0.5, N)).round(3)
    right = rng.random(N) < 0.6 + slope * luminance
    ids = [f"u{k}" for k in range(N)]
    scores = pl.DataFrame(
        {"unit_id": ids, "cluster_id": subject.astype(str), "value": right.astype(float),
         "model": model, "metric": "accuracy"}
    )  # fmt: skip
    who = pl.DataFrame({"unit_id": ids, "group": group, "luminance": luminance})
    return scores, who


def run_of(scores, who, **settings):
    settings = {"by": "group", "replicates": 200, "min_units": 20, **settings}
    return isolux.audit(scores, who, **settings).run


@pytest.fixture(scope="module")
def world():
    scores, who = people()
    return scores, who, run_of(scores, who)


def test_each_bin_counts_and_averages_its_people(world):
    scores, who, run = world
    found = explain(run, bins={"luminance": "edges:.2,.4,.6"})
    table = found.tables["Accuracy along luminance"]
    names = ["<0.2", "0.2–0.4", "0.4–0.6", "0.6+"]
    place = np.digitize(who["luminance"], [0.2, 0.4, 0.6])
    both = who.with_columns(bin=pl.Series([names[k] for k in place])).join(scores, on="unit_id")
    assert table.filter(group="overall")["bin"].to_list() == names
    for group in ("overall", "a", "b"):
        own = both if group == "overall" else both.filter(group=group)
        for (name,), part in own.group_by("bin"):
            row = table.filter(group=group, bin=str(name)).row(0, named=True)
            assert row["people"] == part.height
            if row["status"] == "ok":
                assert row["value"] == pytest.approx(part["value"].mean(), abs=1e-5)
                assert row["low"] < row["value"] < row["high"]
            else:
                assert row["value"] is None
    assert set(table.filter(group="a")["bin"]) == {"0.2–0.4", "0.4–0.6", "0.6+"}


def test_the_spread_is_that_of_numpy(world):
    _, who, run = world
    table = explain(run).tables["How luminance is spread"]
    assert table["group"].to_list() == ["overall", "a", "b"]
    for group in ("a", "b"):
        numbers = who.filter(group=group)["luminance"].to_numpy()
        row = table.filter(group=group).row(0, named=True)
        assert row["people"] == len(numbers)
        for q in (5, 25, 50, 75, 95):
            assert row[f"{q} %"] == pytest.approx(np.percentile(numbers, q), rel=1e-3)


def test_the_ends_are_compared(world):
    scores, who, run = world
    finding = explain(run).findings.row(0, named=True)
    ordered = who.join(scores, on="unit_id").sort("luminance")
    edges = np.quantile(ordered["luminance"], [0.2, 0.8], method="higher")
    low = ordered.filter(pl.col("luminance") < edges[0])
    high = ordered.filter(pl.col("luminance") >= edges[1])
    assert finding["n"] == pytest.approx(low.height + high.height, abs=6)
    assert finding["effect"] == pytest.approx(low["value"].mean() - high["value"].mean(), abs=0.02)
    assert finding["low"] < finding["effect"] < finding["high"] < 0
    assert finding["p_adjusted"] < 0.05
    assert finding["attribute"] == "luminance"
    assert "lower (95 % interval" in finding["claim"]
    assert "in the lowest bin of luminance" in finding["claim"]
    assert "whether groups differ within the bins" in finding["claim"]


def test_nothing_found_is_said_as_that():
    run = run_of(*people(slope=0.0))
    finding = explain(run).findings.row(0, named=True)
    assert finding["claim"].startswith("No difference in accuracy was found between the lowest bin")
    assert finding["p_adjusted"] > 0.05


def test_too_few_people_are_said_and_not_compared():
    run = run_of(*people(), min_units=500)
    finding = explain(run).findings.row(0, named=True)
    assert finding["status"] == "insufficient units"
    assert (finding["effect"], finding["low"], finding["p_adjusted"]) == (None, None, None)
    assert "have too few people to be compared; n = 1" in finding["claim"]


def test_unknown_numbers_are_left_out_and_counted(world):
    scores, who, _ = world
    some = who.with_columns(luminance=pl.when(pl.col("group") == "a").then("luminance"))
    found = explain(run_of(scores, some))
    assert "Along luminance: 300 unit(s) of unknown luminance are left out" in found.notes
    spread = found.tables["How luminance is spread"]
    assert spread.select("group", "people", "unknown").rows() == [
        ("overall", 300, 300), ("a", 300, 0), ("b", 0, 300),
    ]  # fmt: skip


def test_several_numbers_and_models_are_one_family(world):
    scores, who, _ = world
    more = who.with_columns(noise=pl.Series(np.random.default_rng(1).random(N)))
    run = run_of(scores, more)
    alone, both = explain(run), explain(run, attribute=["luminance", "noise"])
    assert both.findings["attribute"].to_list() == ["luminance", "noise"]
    p = {r["attribute"]: r["p_adjusted"] for r in both.findings.iter_rows(named=True)}
    assert p["luminance"] >= alone.findings["p_adjusted"][0]
    other, _ = people(seed=5, model="n")
    run = run_of(pl.concat([scores, other]), who)
    found = explain(run)
    assert found.findings["claim"].str.slice(0, 2).sort().to_list() == ["m:", "n:"]
    assert set(found.tables["Accuracy along luminance"]["model"]) == {"m", "n"}


def test_two_models_are_asked_twice_as_much():
    # The same answers under two names: each p is twice that of the model alone.
    scores, who = people(slope=0.1)
    one = explain(run_of(scores, who)).findings["p_adjusted"][0]
    both = pl.concat([scores, scores.with_columns(model=pl.lit("n"))])
    found = explain(run_of(both, who)).findings["p_adjusted"].to_list()
    assert 0.005 < one < 0.5
    assert found == [pytest.approx(2 * one)] * 2


def test_a_sentence_that_says_lower_gives_the_interval_of_how_much(world):
    finding = explain(world[2]).findings.row(0, named=True)
    low, high = (f"{100 * -finding[end]:.1f}" for end in ("high", "low"))
    assert f"points lower (95 % interval {low} to {high})" in finding["claim"]


def test_only_the_largest_groups_are_shown(world):
    scores, who, _ = world
    few = who.with_columns(group=pl.Series([f"g{k // 46:02}" for k in range(600)]))
    found = explain(run_of(scores, few))
    for table in found.tables.values():
        assert set(table["group"]) == {"overall", *(f"g{k:02}" for k in range(12))}


def test_groups_made_of_the_number_itself_are_not_shown(world):
    scores, who, _ = world
    run = run_of(scores, who, by=["group", "luminance", "group*luminance"],
                 bins=["luminance=edges:.4"])  # fmt: skip
    found = explain(run, attribute=["luminance"])
    table = found.tables["Accuracy along luminance"]
    assert set(table["attribute"]) == {None, "group"}
    assert set(explain(run, by=["group"]).tables["Accuracy along luminance"]["attribute"]) == {
        None, "group",
    }  # fmt: skip


def test_a_person_with_two_numbers_has_their_median(world):
    run = world[2]
    twice = ATTRIBUTES.conform(
        pl.concat([run.attributes, run.attributes.filter(attribute="luminance")])
    )
    assert explain(replace(run, attributes=twice)).findings.equals(explain(run).findings)


def test_it_is_the_same_for_the_same_seed_and_any_order(world):
    _, _, run = world
    one, two = explain(run), explain(replace(run, attributes=run.attributes.reverse()))
    check(one.findings, FINDINGS)
    assert one.findings.equals(two.findings)
    for caption, table in one.tables.items():
        assert table.sort(table.columns).equals(two.tables[caption].sort(table.columns))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"attribute": ["group"]}, r"needs numbers(.|\n)*found: group(.|\n)*luminance"),
        ({"bins": {"lumnance": "quantile:3"}}, r"not gone along(.|\n)*lumnance"),
        ({"bins": {"luminance": "edges:5"}}, r"in one bin(.|\n)*edges 5"),
        ({"bins": {"luminance": "thirds"}}, "the bins cannot be used"),
        ({"by": ["tone"]}, r"not audited(.|\n)*found: tone"),
        ({"replicates": 10}, r"replicates cannot be used(.|\n)*100"),
    ],
)
def test_settings_that_cannot_be(world, options, words):
    with pytest.raises(SpecError, match=words):
        explain(world[2], **options)


def test_an_attribute_that_there_is_not_is_named(world):
    with pytest.raises(UnknownNameError, match=r"lumin"):
        explain(world[2], attribute=["lumin"])


def test_a_run_without_numbers_is_refused(world):
    scores, who, _ = world
    with pytest.raises(SpecError, match=r"needs numbers(.|\n)*--derive luminance"):
        explain(run_of(scores, who.drop("luminance")))


def test_infinite_and_constant_numbers_are_no_numbers(world):
    run = world[2]
    rows = run.attributes.filter(attribute="luminance")
    for bad in (pl.lit("inf"), pl.lit("1")):
        odd = ATTRIBUTES.conform(rows.with_columns(
            attribute=pl.lit("odd"), value=bad, number=pl.lit(None, pl.Float64)))  # fmt: skip
        with pytest.raises(SpecError, match=r"needs numbers(.|\n)*odd"):
            explain(replace(run, attributes=pl.concat([run.attributes, odd])), attribute=["odd"])


def test_ids_and_the_models_own_score_are_no_numbers_to_go_along_unless_named():
    rng = np.random.default_rng(3)
    n = 400
    table = pl.DataFrame(
        {"id": [f"u{k}" for k in range(n)], "truth": rng.integers(0, 2, n),
         "answer": rng.integers(0, 2, n), "confidence": rng.random(n).round(3),
         "number": np.arange(n) + 1000, "light": rng.normal(size=n).round(2),
         "group": rng.choice(["a", "b"], n)}
    )  # fmt: skip
    settings = {
        "id": "id", "target": "truth", "prediction_column": "answer", "by": "group",
        "score_column": "confidence", "replicates": 200,
    }  # fmt: skip
    run = isolux.audit(table, **settings).run
    assert explain(run).findings["attribute"].to_list() == ["light"]
    assert set(explain(run, attribute=["number"]).findings["attribute"]) == {"number"}
    bare = isolux.audit(table.drop("light"), **settings).run
    with pytest.raises(SpecError, match=r"(?s)all are ids, or the model's own answers.*name one"):
        explain(bare)
