"""Geodiversity by hand, against plain dataframes, and on real homes by the command line."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from isolux.core.containers import Dataset
from isolux.core.errors import JoinError, SpecError, TableError, UnknownNameError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.spec import Statistics
from isolux.core.tables import ATTRIBUTES, INSTANCES, LABEL_PREDICTIONS
from isolux.groups.measure import measure_groups
from isolux.tasks.geodiversity import EVIDENCE, INFO, score
from tests._shared import shared_data
from tests.cli._run import isolux as run

MADE = DatasetInfo(title="Synthetic", summary="Photos that a test numbered.", references=())
BOTH = ("household_hit_rate", "hit_rate")


def photos(homes, truths, images=None):
    ids = [f"p{i}" for i in range(len(homes))]
    instances = pl.DataFrame(
        {
            "instance_id": ids,
            "image_id": images or ids,
            "household_id": homes,
            "cluster_id": homes,
            "classes": pl.Series(truths, dtype=pl.List(pl.String)),
        }
    )
    return Dataset("made up", MADE, INSTANCES.conform(instances))


def labels(*given):
    """Labels of each photo, the first one first."""
    rows = [(f"p{i}", label, rank) for i, own in enumerate(given) for rank, label in enumerate(own)]
    frame = pl.DataFrame(rows, schema=["instance_id", "label", "rank"], orient="row")
    return LABEL_PREDICTIONS.conform(
        frame.with_columns(pl.col("rank") + 1, model=pl.lit("m"), score=pl.lit(None, pl.Float64))
    )


def rate(evidence, metric="household_hit_rate", weights=None):
    """Evaluate the statistic as an audit does, on photos that were judged."""
    statistic, evidence = INFO.metric(metric).statistic, evidence.drop_nulls("hit")
    weights = np.ones(evidence.height) if weights is None else weights
    return float(statistic(evidence, weights))


def test_a_table_by_hand():
    """Three homes, k = 2.

    Home A: p0 bed (bed first: hit), p1 bed or sofa (sofa second: hit), p2 bed (third: miss): 2/3.
    Home B: one photo, p3, a miss: 0. Home C: p4 a hit, p5 of unknown truth: 1 of 1.
    Homes: (2/3 + 0 + 1) / 3 = 5/9. Photos: 3 of 5.
    """
    found = score(
        photos(
            ["A", "A", "A", "B", "C", "C"],
            [["bed"], ["bed", "sofa"], ["bed"], ["cup"], ["cup"], None],
        ),
        labels(["bed"], ["car", "sofa"], ["car", "dog", "bed"], ["bed"], ["cup"], ["cup"]),
        top_k=2, metrics=BOTH,
    )  # fmt: skip
    assert rate(found.evidence[EVIDENCE]) == pytest.approx(5 / 9)
    assert found.units["value"].mean() == pytest.approx(3 / 5)
    assert found.units.filter(unit_id="p5")["reason"].item() == "unknown truth"
    assert any("5 photos of 3 homes are judged, 2 of them by one photo" in n for n in found.notes)


def test_a_photo_with_several_rows_counts_once_and_any_of_its_labels_is_right():
    """p0 and p1 are one image, a bed and a sofa; "sofa" is said of it once: a hit, once."""
    found = score(
        photos(["A", "A", "B"], [["bed"], ["sofa"], ["cup"]], images=["x", "x", "y"]),
        labels(["sofa"], ["car"], ["car"]),
        metrics=BOTH,
    )
    assert rate(found.evidence[EVIDENCE]) == pytest.approx(0.5)
    twice = found.units.filter(unit_id="p1")
    assert twice["value"].item() is None
    assert twice["reason"].item() == "the same photo as another row"
    assert any("1 row(s) are of a photo that another row has too" in note for note in found.notes)


def test_a_home_counts_once_in_a_group_that_holds_a_part_of_its_photos():
    """Group: p0, p1 of home A (1 and 0) and p3 of B (1): (1/2 + 1) / 2, whatever p2 is."""
    evidence = pl.DataFrame(
        {"household": ["A", "A", "A", "B"], "hit": [1.0, 0.0, 0.0, 1.0]}
    ).with_columns(model=pl.lit("m"))
    inside = evidence[[0, 1, 3]]
    assert rate(inside) == pytest.approx(0.75)
    # A replicate that draws home A twice and B once: (2 · 1/2 + 1) / 3.
    assert rate(inside, weights=np.array([2.0, 2.0, 1.0])) == pytest.approx(2 / 3)


@pytest.mark.parametrize("seed", range(3))
def test_groups_are_means_of_homes_in_plain_dataframes(seed):
    rng = np.random.default_rng(seed)
    n = 900
    homes = rng.integers(0, 60, n)
    region = np.array(["Africa", "Asia", "Europe"])[homes % 3]
    hit = rng.random(n) < 0.2 + 0.6 * (homes % 7) / 7
    dataset = photos([f"h{k}" for k in homes], [["bed"]] * n)
    found = score(dataset, labels(*[["bed"] if one else ["car"] for one in hit]), top_k=1)
    members = pl.DataFrame(
        {"attribute": "region", "group": region, "values": [[r] for r in region],
         "unit_id": dataset.instances["instance_id"]}
    )  # fmt: skip
    table = measure_groups(found, members, Statistics(replicates=100)).to_table()
    plain = pl.DataFrame({"home": homes, "region": region, "hit": hit})
    of_home = plain.group_by("region", "home").agg(pl.col("hit").mean())
    wanted = dict(of_home.group_by("region").agg(pl.col("hit").mean()).rows())
    got = table.filter(attribute="region").select("group", "value").rows()
    assert dict(got) == pytest.approx(wanted)
    assert table.row(0, named=True)["value"] == pytest.approx(of_home["hit"].mean())
    assert table.row(0, named=True)["n_clusters"] == 60


def test_a_home_is_what_is_named_or_the_cluster():
    own = photos(["A", "B"], [["bed"], ["bed"]])
    bare = Dataset("made up", MADE, own.instances.drop("household_id"))
    assert score(bare, labels(["bed"], ["bed"])).evidence[EVIDENCE]["household"].to_list() == [
        "A", "B"
    ]  # fmt: skip
    street = pl.DataFrame({"unit_kind": "instance", "attribute": "street", "value": ["x", None],
                           "unit_id": ["p0", "p1"]})  # fmt: skip
    named = Dataset("made up", MADE, own.instances, ATTRIBUTES.conform(street))
    found = score(named, labels(["bed"], ["bed"]), household="street", metrics=BOTH)
    assert found.units["reason"].to_list() == [None, "no home"]
    with pytest.raises(SpecError, match="in whose home"):
        score(
            Dataset("made up", MADE, bare.instances.with_columns(cluster_id=pl.lit(None))),
            labels(["bed"], ["bed"]),
        )
    with pytest.raises(UnknownNameError, match="village"):
        score(own, labels(["bed"], ["bed"]), household="village")


def test_a_photo_of_two_homes_is_refused():
    with pytest.raises(TableError, match="said to be of two homes"):
        score(photos(["A", "B"], [["bed"], ["bed"]], images=["x", "x"]), labels(["bed"], ["bed"]))


def test_labels_of_which_none_is_true_are_refused_unless_a_map_brings_them_there():
    two = photos(["A", "B"], [["beds"], ["cups"]])
    given = labels(["n02818832"], ["n03147509"])
    with pytest.raises(SpecError, match="no label of the predictions is true of any photo"):
        score(two, given)
    mapped = score(two, given, prediction_map={"n02818832": "beds"}, metrics=BOTH)
    assert mapped.units["value"].to_list() == [1.0, 0.0]


def test_predictions_of_others_and_odd_settings_are_refused():
    two = photos(["A", "B"], [["bed"], ["bed"]])
    with pytest.raises(JoinError, match="no prediction is for a photo"):
        score(two, labels(["bed"]).with_columns(instance_id=pl.lit("q9")))
    with pytest.raises(SpecError, match="top_k counts the first labels"):
        score(two, labels(["bed"], ["bed"]), top_k=0)


def test_fewer_labels_than_are_looked_at_are_cautioned_about():
    two = photos(["A", "B"], [["bed"], ["bed"]])
    assert any(isinstance(n, Caution) for n in score(two, labels(["bed"], ["bed"])).notes)
    assert not any(
        isinstance(n, Caution) for n in score(two, labels(["bed"], ["bed"]), top_k=1).notes
    )


def test_labels_of_other_photos_are_told_by_chance():
    """200 photos of four things; labels dealt at random are right for one in four."""
    rng = np.random.default_rng(0)
    things = np.array(["bed", "cup", "roof", "soap"])
    truth = rng.choice(things, 200)
    dataset = photos([f"h{k % 40}" for k in range(200)], [[one] for one in truth])
    right = score(dataset, labels(*[[one] for one in truth]), top_k=1)
    assert not any(isinstance(note, Caution) for note in right.notes)
    dealt = score(dataset, labels(*[[one] for one in rng.permutation(truth)]), top_k=1)
    (caution,) = [note for note in dealt.notes if isinstance(note, Caution)]
    assert "Are they of these photos?" in caution


def test_half_a_file_is_told_whichever_metric_is_asked_for():
    truth = [["bed"] if k % 2 else ["cup"] for k in range(60)]
    dataset = photos([f"h{k % 20}" for k in range(60)], truth)
    half = labels(*truth[:30])
    found = score(dataset, half, top_k=1)
    assert any("30 of 60 photos have no prediction of 'm'" in note for note in found.notes)


def test_an_income_of_0_is_told_before_it_counts_among_the_poorest():
    own = photos(["A", "B"], [["bed"], ["bed"]])
    income = pl.DataFrame({"unit_kind": "instance", "attribute": "income", "value": ["0", "80"],
                           "number": [0.0, 80.0], "unit_id": ["p0", "p1"]})  # fmt: skip
    dataset = Dataset("made up", MADE, own.instances, ATTRIBUTES.conform(income))
    found = score(dataset, labels(["bed"], ["bed"]), top_k=1)
    (caution,) = [note for note in found.notes if isinstance(note, Caution)]
    assert "1 photos have an income of 0 or less" in caution


def test_clip_on_real_homes_by_the_command_line(tmp_path, monkeypatch, capsys):
    """36,753 photos of 400 homes, 66 of them low; figures by polars and scipy alone."""
    path = shared_data("dollarstreet/CLIP_results_df.csv")
    ran = run(
        monkeypatch, capsys, "audit", f"dollarstreet:{path}", "--task", "number", "--predictions",
        path, "--prediction-id", "id", "--score-column", "CLIP score", "--better", "higher",
        "--along", "income", "--bins", "income=quantile:4", "--by", "income", "--by",
        "income_bucket", "--by", "region", "--by", "country", "--metric", "mean", "--metric",
        "spearman", "--replicates", "200", "--out", tmp_path / "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    table = pl.read_parquet(tmp_path / "run" / "group_metrics.parquet")
    clip = pl.read_csv(path)
    everyone = table.filter(pl.col("attribute").is_null())
    assert everyone["n_clusters"].to_list() == [400, 400]
    rho = stats.spearmanr(clip["CLIP score"], clip["income"]).statistic
    (found,) = everyone.filter(metric="spearman").to_dicts()
    assert found["value"] == pytest.approx(rho, abs=1e-9)
    assert found["low"] < rho < found["high"]
    assert found["low"] > 0.2
    low = table.filter(attribute="income_bucket", group="low", metric="mean").to_dicts()[0]
    poor = clip.filter(pl.col("income").log() / 3 < 1.5)
    assert (low["n_units"], low["n_clusters"]) == (poor.height, 66)
    assert low["value"] == pytest.approx(poor["CLIP score"].mean(), abs=1e-9)
    assert low["high"] < everyone.filter(metric="mean")["low"].item()
    by_country = clip.group_by("country.name").agg(pl.col("CLIP score").mean())
    shown = table.filter(attribute="country", metric="mean").drop_nulls("value")
    wanted = dict(by_country.rows())
    assert shown.height >= 20
    for group, value in shown.select("group", "value").rows():
        assert value == pytest.approx(wanted[group], abs=1e-9)
    regions = dict(
        table.filter(attribute="region", metric="mean").select("group", "n_units").rows()
    )
    assert sum(regions.values()) == clip.height
    assert set(regions) == {"Africa", "Asia", "Europe", "The Americas"}
    quarters = table.filter(attribute="income", metric="mean")["n_units"]
    assert quarters.sum() == clip.height
    assert len(quarters) == 4
