"""An audit of a sample, from files to the page: what is weighted, said, and refused."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from isolux.api.audit import Audit, audit
from isolux.api.compare import compare
from isolux.api.explain import explain
from isolux.api.gate import gate
from isolux.core.errors import JoinError, SpecError, TableError
from isolux.io import run_directory
from isolux.report.summary import summarise_run
from isolux.statements.answer import answer_from_run
from tests._survey import survey

SIZES = {"min_units": 10, "min_clusters": 5, "replicates": 300}


def _rows(**more: pl.Series) -> pl.DataFrame:
    return (
        survey()
        .rename({"id": "unit_id", "right": "value", "school": "cluster_id"})
        .with_columns(**more)
    )


def _audited(rows: pl.DataFrame, **settings: object) -> Audit:
    said = {"weight": "weight", "strata": "stratum", "cluster": "school", **SIZES, **settings}
    return audit(rows, by="tone", **{k: v for k, v in said.items() if v is not None})


def test_values_are_those_of_r_and_say_that_they_are_weighted():
    found = _audited(_rows())
    told = dict(found.group_metrics.select("group", "value").rows())
    # svyby(~right, ~tone, des, svymean) of R's survey package: see tests/stats/test_sampling.py
    assert told["dark"] == pytest.approx(0.7537091988)
    assert told["light"] == pytest.approx(0.7581896552)
    assert told["overall"] == pytest.approx(0.7799700300)
    said = "Every rate is weighted by 'weight': 190 units tell as much as 117 of one weight would"
    assert found.run.record["sample"]["said"].startswith(said)
    assert "intervals are of 3 strata ('stratum')." in repr(found)
    assert all("weighted" in claim.lower() for claim in found.findings["claim"])


def test_without_the_settings_the_audit_is_the_one_without_weights():
    found = audit(_rows(), by="tone", **SIZES)
    assert "n_effective" not in found.group_metrics.columns
    assert "sample" not in found.run.record
    assert found.group_metrics["value"][0] == pytest.approx(129 / 190)


def test_people_who_weigh_0_are_left_out_and_counted():
    zero = pl.when(pl.col("tone") == "mid").then(0.0).otherwise(pl.col("weight"))
    found = _audited(_rows(weight=zero))
    assert found.group_metrics["group"].to_list() == ["overall", "light", "dark"]
    assert found.group_metrics["n_units"][0] == 135
    assert "55 units weigh 0: they represent nobody and are left out." in found.run.record["notes"]
    assert found.run.record["warnings"][0] == (
        "tone: all 55 units of 'mid' weigh 0, so it is no group here, and nothing is said of it."
    )


def test_a_group_that_keeps_somebody_is_no_warning():
    first = pl.int_range(pl.len()).over("tone") == 0
    others = (pl.col("tone") == "mid") & ~first
    found = _audited(_rows(weight=pl.when(others).then(0.0).otherwise(pl.col("weight"))))
    assert not [said for said in found.run.record["warnings"] if "no group here" in said]


def test_negative_weights_and_lonely_strata_stop_an_audit():
    with pytest.raises(TableError, match="190 weights are negative"):
        _audited(_rows(weight=-pl.col("weight")))
    alone = pl.when(pl.col("cluster_id") == "s0").then(pl.lit("z")).otherwise(pl.col("stratum"))
    with pytest.raises(TableError, match="1 of 4 strata have a single cluster"):
        _audited(_rows(stratum=alone))


def test_a_run_directory_keeps_the_sample_and_its_page_says_so(tmp_path):
    page = _audited(_rows()).report(tmp_path / "run")
    again = run_directory.load_run(tmp_path / "run")
    assert again.evidence["sample"]["weight"].sum() == pytest.approx(survey()["weight"].sum())
    text = page.read_text(encoding="utf-8")
    assert "190 units worth 117 of one weight" in text
    assert "Weighted" in text
    assert "Kish’s effective number" in text


def test_analyses_that_would_ignore_weights_refuse():
    found = _audited(_rows())
    with pytest.raises(SpecError, match="the analysis patterns takes no weights"):
        explain(found, analysis=["patterns"])
    refused = explain(found).refused
    assert "takes no weights" in refused["patterns"]


def test_a_paper_s_protocol_takes_no_weights(tmp_path):
    with pytest.raises(SpecError, match="the paper's tables count people once each"):
        audit(f"table:{tmp_path / 'none.csv'}", by="tone", protocol="facet:detection", weight="w")


def _turned(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.with_columns(value=pl.col("value").shift(3).fill_null(1.0), model=pl.lit("new"))


def test_two_models_are_compared_by_weight():
    rows = _rows(model=pl.lit("old"))
    old, new = _audited(rows), _audited(_turned(rows))
    found = compare(old, new)
    change = found.disparities.filter(kind="model_difference").row(0, named=True)
    before, after = (one.group_metrics["value"][0] for one in (old, new))
    assert change["value"] == pytest.approx(after - before)
    assert change["low"] < change["value"] < change["high"]
    assert found.run.record["clusters"]["n_units"] == 190
    assert "weighted" in " ".join(found.findings["claim"]).lower()


def test_runs_that_weigh_people_differently_are_not_compared():
    rows = _rows(model=pl.lit("old"))
    other = _turned(rows).with_columns(weight=pl.col("weight") + 1)
    with pytest.raises(JoinError, match="190 of 190 people weigh differently"):
        compare(_audited(rows), _audited(other))
    with pytest.raises(SpecError, match="the first run has weights or strata"):
        compare(_audited(rows), _audited(_turned(rows), weight=None, strata=None))


def test_files_are_read_with_the_same_settings(tmp_path: Path):
    file = tmp_path / "people.csv"
    data = survey().with_columns(
        truth=pl.lit("yes"),
        says=pl.when(pl.col("right") > 0).then(pl.lit("yes")).otherwise(pl.lit("no")),
    )
    data.write_csv(file)
    found = audit(
        f"table:{file}", by="tone", id="id", target="truth", prediction_column="says",
        metric="accuracy", cluster="school", weight="weight", strata="stratum", **SIZES,
    )  # fmt: skip
    assert found.group_metrics["value"][0] == pytest.approx(0.7799700300)
    part = audit(
        f"table:{file}", by="tone", id="id", target="truth", prediction_column="says",
        metric="accuracy", cluster="school", weight="weight", strata="stratum",
        only="photographer=f0,f1,f2,f3,f4,f5", **SIZES,
    )  # fmt: skip
    assert part.run.evidence["sample"]["stratum_clusters"].unique().to_list() == [8]


def test_rates_are_those_of_a_stated_population(tmp_path):
    shares = {"tone": {"light": 0.5, "mid": 0.3, "dark": 0.2}}
    found = _audited(_rows(), population=shares)
    # postStratify of R: see tests/stats/test_sampling.py
    assert found.group_metrics["value"][0] == pytest.approx(0.7840940931)
    assert found.group_metrics["standard_error"][0] == pytest.approx(0.03697713725, rel=0.02)
    said = found.run.record["sample"]["said"]
    assert said.startswith(
        "Every rate is weighted by 'weight' and the population's tone: 190 units"
    )
    file = tmp_path / "tones.csv"
    file.write_text("tone,count\nlight,500\nmid,300\ndark,200\n", encoding="utf-8")
    rows = audit(
        _rows(), _rows().drop("value"), by="tone", weight="weight", strata="stratum",
        population=str(file), **SIZES,
    )  # fmt: skip
    assert rows.group_metrics["value"].to_list() == pytest.approx(
        found.group_metrics["value"].to_list()
    )


def test_a_population_alone_makes_weights():
    found = _audited(_rows(), weight=None, strata=None, population={"tone": {
        "light": 0.2, "mid": 0.2, "dark": 0.6}})  # fmt: skip
    told = dict(found.group_metrics.select("group", "value").rows())
    mixed = 0.2 * told["light"] + 0.2 * told["mid"] + 0.6 * told["dark"]
    assert told["overall"] == pytest.approx(mixed)
    assert "weighted" in found.findings["claim"][0].lower()


def test_what_was_drawn_of_a_finite_population_is_surer():
    plain = _audited(_rows()).group_metrics
    finite = _audited(_rows(), population_size="12").group_metrics  # 8 of 12 schools a stratum
    assert finite["value"].to_list() == pytest.approx(plain["value"].to_list())
    ratio = finite["standard_error"] / plain["standard_error"]
    assert ratio.to_list() == pytest.approx([(1 / 3) ** 0.5] * 4, rel=0.01)
    assert ((finite["high"] - finite["low"]) < 0.8 * (plain["high"] - plain["low"])).all()


def test_models_brought_to_one_population_are_compared():
    rows, shares = _rows(model=pl.lit("old")), {"tone": {"light": 0.5, "mid": 0.3, "dark": 0.2}}
    old, new = _audited(rows, population=shares), _audited(_turned(rows), population=shares)
    change = compare(old, new).disparities.filter(kind="model_difference").row(0, named=True)
    before, after = (one.group_metrics["value"][0] for one in (old, new))
    assert change["value"] == pytest.approx(after - before)
    with pytest.raises(SpecError, match="one run's weights were adjusted to a population"):
        compare(old, _audited(_turned(rows)))


def test_photos_may_be_alike_both_ways(tmp_path):
    plain = _audited(_rows(), weight=None, strata=None, cluster="school").group_metrics
    found = _audited(_rows(), weight=None, strata=None, cluster="school,photographer")
    both = found.group_metrics
    assert both["value"].to_list() == pytest.approx(plain["value"].to_list())
    assert (both["n_clusters"] <= plain["n_clusters"]).all()
    assert both["n_clusters"][0] == 12  # photographers, of 24 schools
    assert "Clusters count both ways: those of 'school' and of 'photographer'." in (
        " ".join(repr(found).split())
    )
    file = tmp_path / "people.csv"
    survey().with_columns(truth=pl.lit("1"), says=pl.col("right").cast(pl.Int64)).write_csv(file)
    read = audit(
        f"table:{file}", by="tone", id="id", target="truth", prediction_column="says",
        metric="accuracy", cluster="school,photographer", **SIZES,
    )  # fmt: skip
    assert read.group_metrics["standard_error"].to_list() == pytest.approx(
        both["standard_error"].to_list()
    )


def test_both_ways_take_weights_strata_and_a_population():
    found = _audited(_rows(), strata=None, cluster="school,photographer").group_metrics
    assert found["value"][0] == pytest.approx(0.7799700300)
    strata = _audited(_rows(), cluster="school,photographer").group_metrics
    assert strata["value"].to_list() == pytest.approx(found["value"].to_list())
    alone = _audited(_rows()).group_metrics
    assert (strata["standard_error"] >= alone["standard_error"] - 1e-12).all()
    shares = {"tone": {"light": 0.5, "mid": 0.3, "dark": 0.2}}
    brought = _audited(_rows(), cluster="school,photographer", population=shares).group_metrics
    assert brought["value"][0] == pytest.approx(0.7840940931)  # R's, as with clusters one way
    assert brought["standard_error"].null_count() == 0


@pytest.mark.parametrize("strata", [None, "stratum"])
def test_replicates_move_by_both_ways_and_meet_the_population(strata):
    shares = {"tone": {"light": 0.5, "mid": 0.3, "dark": 0.2}}
    found = _audited(_rows(), strata=strata, cluster="school,photographer", population=shares,
                     interval="percentile").group_metrics  # fmt: skip
    assert (found["low"] < found["value"]).all()
    assert (found["high"] > found["value"]).all()


def test_both_ways_take_no_finite_population():
    with pytest.raises(SpecError, match="no method says what that leaves of the other's variance"):
        _audited(_rows(), cluster="school,photographer", population_size="100")


@pytest.mark.parametrize("cluster", ["a,b,c", "a,", "a,a"])
def test_clusters_that_cannot_be_read_are_named(cluster):
    with pytest.raises(SpecError, match="clusters cannot be read"):
        _audited(_rows(), weight=None, strata=None, cluster=cluster)


@pytest.mark.filterwarnings("error")
def test_a_census_says_of_every_difference_that_it_is_there():
    rows = _rows()
    drawn = rows["cluster_id"].n_unique()
    settings = {"weight": None, "strata": None, "population_size": str(drawn)}
    found = _audited(rows, **settings)
    pairs = found.disparities.filter(pl.col("p_value").is_not_null() & (pl.col("value") != 0))
    assert pairs.height
    assert pairs["p_value"].max() < 0.01
    groups = found.group_metrics.filter(status="ok")
    assert (groups["high"] - groups["low"]).max() < 0.001
    assert "nothing is left to chance" in found.run.record["sample"]["said"]


def test_a_census_has_no_interval_of_a_gap_at_the_same_mix():
    groups = {"sex": ["f", "m"] * 200, "tone": ["a", "a", "b", "b"] * 100}
    rows = pl.DataFrame({"unit_id": range(400), **groups})
    rows = rows.with_columns(value=pl.Series([float(i % 2 or i % 10 > 0) for i in range(400)]))
    told = [
        " ".join(answer_from_run(audit(rows, by=["sex", "tone"], population_size=size).run).further)
        for size in ("400", None)
    ]
    assert ["same mix of tone: 20.0 (exploratory)" in text for text in told] == [True, False]
    assert all("same mix of tone: 20.0" in text for text in told)


@pytest.mark.filterwarnings("error")
def test_a_census_of_equal_groups_finds_no_difference():
    rows = _rows(
        value=pl.Series([1.0, 0.0] * (survey().height // 2) + [1.0] * (survey().height % 2))
    )
    half = pl.concat(
        [rows.with_columns(tone=pl.lit(t), unit_id=pl.col("unit_id") + t) for t in "ab"]
    )
    size = str(half["cluster_id"].n_unique())
    found = _audited(half, weight=None, strata=None, population_size=size)
    assert found.disparities["p_value"].drop_nulls().min() > 0.9
    assert found.disparities["detectable"].null_count() == found.disparities.height
    assert found.findings.is_empty()
    answer = summarise_run(found.run).answer
    assert "have the same score" in answer
    assert "ruled out" not in answer


def test_in_a_census_there_is_no_difference_beyond_what_the_values_show():
    people = pl.DataFrame({"unit_id": [str(k) for k in range(200)], "tone": ["a", "b"] * 100})
    people = people.with_columns(
        light=pl.Series(["day", "day", "night", "night"] * 50),
        value=pl.Series([1.0] * 80 + [1.0, 0.0] * 20 + [1.0] * 80),
    )
    found = audit(people, by=["tone", "light"], population_size="200", replicates=100)
    (claim,) = found.findings.filter(attribute="light")["claim"]
    assert claim.endswith("no difference in score by light is larger than 0.0 points.")
    assert claim.startswith("In this population")


def test_a_gate_asks_for_people_by_what_weighted_people_are_worth():
    first = pl.int_range(pl.len()).over("tone") == 0
    rows = _rows().with_columns(weight=pl.when(first).then(300.0).otherwise(1.0))
    found = _audited(rows, strata=None)
    rules = [
        {"metric": "score", "attribute": "tone", "at_least": "10 %"},
        {"required_groups": "tone"},
    ]
    held, covered = gate(found, policy={"policy": 1, "rules": rules}).rules
    short = [case for case in held.cases if "are worth" in str(case.reason)]
    assert short
    assert all((case.more or 0) > 20 for case in short)
    assert "of one weight" in covered.text


@pytest.mark.filterwarnings("error")
def test_a_change_between_models_in_a_census_is_there():
    """Three of 190 people are judged otherwise: chance in a sample, and in a census none."""
    rows = _rows(model=pl.lit("old"))
    first = (pl.col("value") == 1.0) & (pl.col("value").cum_sum() <= 3)
    new = rows.with_columns(
        value=pl.when(first).then(0.0).otherwise("value"), model=pl.lit("new")
    )  # fmt: skip
    size = str(rows["cluster_id"].n_unique())
    found = {}
    for drawn in (size, "100000"):
        settings = {"weight": None, "strata": None, "population_size": drawn}
        both = compare(_audited(rows, **settings), _audited(new, **settings)).disparities
        found[drawn] = both.filter(kind="model_difference", group_a="overall").row(0, named=True)
    assert found["100000"]["p_value"] > 0.05
    assert found[size]["p_value"] < 0.001
    assert found[size]["low"] <= found[size]["value"] <= found[size]["high"] < 0
    assert found[size]["detectable"] is None


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("n_changed", [1, 2, 3, 6])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"strata": None},
        {"weight": None, "strata": None},
        {"weight": None, "strata": None, "population_size": "100000"},
    ],
)
def test_changes_within_one_school_are_tested_as_their_interval_says(n_changed, settings):
    rows = _rows(model=pl.lit("old"))
    first = (pl.col("value") == 1.0) & (pl.col("value").cum_sum() <= n_changed)
    assert rows.filter(first)["cluster_id"].n_unique() == 1
    value = pl.when(first).then(0.0).otherwise("value")
    new = rows.with_columns(value=value, model=pl.lit("new"))
    tests = compare(_audited(rows, **settings), _audited(new, **settings)).disparities
    row = tests.filter(kind="model_difference", group_a="overall").row(0, named=True)
    # One school's change says nothing of other schools: t of one in 24 clusters is about 1.
    assert row["p_value"] > 0.1
    assert row["low"] < 0 < row["high"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("changed", [(2,), (8,), (10,)])
def test_one_small_cluster_that_changes_is_no_evidence(changed):
    """18 uneven clusters of 80 people, of which one of few people turns wrong."""
    cells = [(2, 2), (2, 1), (8, 1), (2, 0), (31, 13), (1, 0), (1, 1), (2, 1), (3, 2), (1, 0),
             (5, 2), (3, 3), (4, 1), (2, 0), (2, 2), (3, 1), (4, 4), (4, 2)]  # fmt: skip
    cluster = [str(i) for i, (n, _) in enumerate(cells) for _ in range(n)]
    old = [float(j < right) for n, right in cells for j in range(n)]
    new = [0.0 if int(i) in changed else v for i, v in zip(cluster, old, strict=True)]

    def audited(model, values):
        people = {"unit_id": [str(i) for i in range(80)], "cluster_id": cluster,
                  "g": ["a", "b"] * 40,
                  "model": [model] * 80, "value": values}  # fmt: skip
        return audit(pl.DataFrame(people), by="g", replicates=300)

    tests = compare(audited("old", old), audited("new", new)).disparities
    row = tests.filter(kind="model_difference", group_a="overall").row(0, named=True)
    assert row["p_value"] > 0.3
    assert row["low"] < 0 < row["high"]
