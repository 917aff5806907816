"""Counts alone: what is read, what is refused, and an audit that agrees with one of the people."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux.datasets.counts import load
from isolux.stats.proportions import wilson_interval
from tests.cli._run import isolux as run

TABLE = "race,gender,errors,n\nBlack,F,30,200\nBlack,M,20,250\nWhite,F,12,300\nWhite,M,9,350\n"


def written(tmp_path, text=TABLE):
    file = tmp_path / "paper.csv"
    file.write_text(text)
    return file


def audited(monkeypatch, capsys, tmp_path, data, *more):
    done = run(monkeypatch, capsys, "audit", data, "--replicates", 200, "--out", tmp_path / "run",
               "--overwrite", *more)  # fmt: skip
    assert done.code == 0, done.err
    return done, pl.read_parquet(tmp_path / "run" / "group_metrics.parquet")


def test_a_row_is_its_successes_and_the_others(tmp_path):
    found = load(written(tmp_path, "race,k,n\na,3,10\nb,0,5\nc,4,4\n"))
    assert found.bundled_predictions.select("instance_id", "value", "times").rows() == [
        ("row 1, counted", 1.0, 3), ("row 1, others", 0.0, 7), ("row 2, others", 0.0, 5),
        ("row 3, counted", 1.0, 4),
    ]  # fmt: skip
    assert found.attributes["value"].to_list() == ["a", "a", "b", "c"]


def test_thousands_and_columns_of_rates_are_no_trouble(tmp_path):
    text = 'race,correct,total,accuracy\na,"1,204,000","2,000,000",0.602\nb,7,10,.7\n'
    found = load(written(tmp_path, text))
    assert found.bundled_predictions["times"].to_list() == [1_204_000, 796_000, 7, 3]
    assert found.attributes["attribute"].unique().to_list() == ["race"]
    assert "Not read as groups, since they hold fractions or lists: accuracy." in found.notes


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("race,k,n\na,12,10\nb,1,10\n", "count more successes than cases"),
        ("race,k,n\na,-1,10\nb,1,10\n", "are not counts"),
        ("race,k,n\na,.3,10\nb,1,10\n", "write how many of n it is"),
        ("race,k,n\na,,10\nb,1,10\n", "none missing"),
        ("race,k,n\na,1e999,10\nb,1,10\n", "are not counts"),
        ("race,k,n\na,1,9223372036854775808\nb,1,10\n", "are not counts"),
        ("race,k,n\na,1,10\na,2,10\n", "a group has two rows"),
        ("race,k,n\na,1,10\nb,2,10\nAll,3,20\n", r"row 3 \(race = 'All'\)"),
        ("race,k,n\na,1,10\nb,2,10\nc,3,20\n", r"row 3 \(race = 'c'\)"),  # the sum of the others
        ("race,sex,k,n\na,f,1,9\na,m,2,9\na,both,3,18\nb,f,1,9\n", r"row 3 \(sex = 'both'\)"),
        ("k,n\n1,10\n", "no column says which group"),
    ],
)
def test_what_would_count_wrongly_is_refused(tmp_path, text, match):
    with pytest.raises(TableError, match=match):
        load(written(tmp_path, text))


def test_columns_that_are_not_there_are_named(tmp_path):
    with pytest.raises(SpecError, match="name it with --data-option n=COLUMN"):
        load(written(tmp_path, "race,k\na,1\n"))
    with pytest.raises(UnknownNameError, match="did you mean 'errors'"):
        load(written(tmp_path), successes="erors")


def test_totals_may_be_left_out(tmp_path):
    found = load(written(tmp_path, TABLE + "All,All,71,1100\n"), totals="drop")
    assert found.bundled_predictions["times"].sum() == 1100
    assert any("1 rows repeat others and were left out: row 5" in note for note in found.notes)


def test_an_audit_of_counts_is_the_audit_of_the_people_behind_them(monkeypatch, capsys, tmp_path):
    cells = pl.read_csv(written(tmp_path))
    people = pl.concat(
        [
            pl.DataFrame({"race": race, "gender": gender, "wrong": [1.0] * k + [0.0] * (n - k)})
            for race, gender, k, n in cells.iter_rows()
        ]
    ).with_row_index("id")
    people.write_csv(tmp_path / "people.csv")
    by = ("--by", "race", "--by", "race*gender")
    done, counted = audited(monkeypatch, capsys, tmp_path, f"counts:{tmp_path / 'paper.csv'}",
                            "--task", "counts", "--better", "lower", "--notes", *by)  # fmt: skip
    assert "7.9 points" in " ".join(done.out.split())
    assert "Clusters are unknown: each of 1,100 cases counts as independent." in " ".join(
        done.out.split()
    )
    disparities = pl.read_parquet(tmp_path / "run" / "disparities.parquet")
    record = json.loads((tmp_path / "run" / "audit.json").read_text(encoding="utf-8"))
    assert record["clusters"] == {"column": None, "n_clusters": 1100, "n_units": 1100}
    units = people.select(unit_id=pl.col("id").cast(pl.String), value="wrong")
    who = people.select("race", "gender", unit_id=pl.col("id").cast(pl.String))
    import isolux

    theirs = isolux.audit(units, who, by=["race", "race*gender"], replicates=200)
    key = ["attribute", "group"]
    both = counted.join(theirs.group_metrics, on=key, suffix="_people", nulls_equal=True)
    assert both.height == counted.height == 7
    for column in ("value", "low", "high", "n_units", "n_clusters"):
        assert both[column].to_list() == pytest.approx(both[f"{column}_people"].to_list())
    pairs, own = (
        table.filter(kind="difference").sort("attribute", "group_a", "group_b", nulls_last=True)
        for table in (disparities, theirs.disparities)
    )
    named = ["attribute", "group_a", "group_b"]
    # The people's table takes its scores for "higher is better", so a and b may change places.
    assert {frozenset(r) for r in pairs.select(named).rows()} == {
        frozenset(r) for r in own.select(named).rows()
    }
    sizes = [sorted(t["value"].abs().drop_nulls().round(12)) for t in (pairs, own)]
    assert sizes[0] == pytest.approx(sizes[1])
    assert len(sizes[0]) >= 7


def test_a_thousand_million_comparisons_cost_what_their_cells_do(monkeypatch, capsys, tmp_path):
    file = written(tmp_path, "race,k,n\na,900000,1000000000\nb,1100000,1000000000\n")
    _, counted = audited(monkeypatch, capsys, tmp_path, f"counts:{file}", "--task", "counts",
                         "--by", "race")  # fmt: skip
    row = counted.row(by_predicate=pl.col("group") == "a", named=True)
    assert row["n_units"] == 1_000_000_000
    ends = wilson_interval(np.array([900_000.0]), np.array([1e9]), 0.95)
    wide = float(ends.low[0]), float(ends.high[0])
    assert (row["low"], row["high"]) == pytest.approx(wide, rel=1e-6)
    gaps = pl.read_parquet(tmp_path / "run" / "disparities.parquet").filter(kind="difference")
    # A question with one comparison, so its own p: z is far beyond 8.
    assert gaps["p_adjusted"].drop_nulls().max() < 1e-12


def test_several_measures_and_models_are_parted(monkeypatch, capsys, tmp_path):
    rows = [f"{model},{metric},{race},{k},400" for model in ("old", "new")
            for metric in ("false match", "false non-match")
            for race, k in (("a", 40), ("b", 70 if model == "old" else 44))]  # fmt: skip
    file = written(tmp_path, "\n".join(["model,metric,race,errors,n", *rows, ""]))
    _, counted = audited(monkeypatch, capsys, tmp_path, f"counts:{file}", "--task", "counts",
                         "--by", "race")  # fmt: skip
    found = counted.filter(group="b").sort("model", "label").select("model", "label", "value")
    assert found.rows() == [
        ("new", "false match", 0.11), ("new", "false non-match", 0.11),
        ("old", "false match", 0.175), ("old", "false non-match", 0.175),
    ]  # fmt: skip
    assert set(counted.filter(group="overall")["n_units"]) == {800}


def test_what_asks_of_people_is_refused(monkeypatch, capsys, tmp_path):
    file = written(tmp_path)
    audited(monkeypatch, capsys, tmp_path, f"counts:{file}", "--task", "counts", "--by", "race",
            "--by", "gender")  # fmt: skip
    for args in (
        ("describe", f"counts:{file}", "--by", "race"),
        ("check", f"counts:{file}"),
        ("explain", tmp_path / "run", "--analysis", "label_errors"),
        ("compare", tmp_path / "run", tmp_path / "run", "--out", tmp_path / "both"),
        ("monitor", tmp_path / "run", tmp_path / "run"),
        ("audit", f"counts:{file}", "--by", "race"),
    ):
        done = run(monkeypatch, capsys, *args)
        assert done.code == 2, args
        assert ("holds none" in done.plain) or ("--task counts" in done.plain), args
    done = run(monkeypatch, capsys, "explain", tmp_path / "run", "--analysis", "power")
    assert done.code == 0, done.err


VIDEOS = [
    (sex, f"v{v}", (v * 7 + 3 * (sex == "F")) % 11 + 5, 20 + v % 9) for v in range(24)
    for sex in "FM"
]  # fmt: skip
"""Sex, video, successes of 5 to 15, n of 20 to 28."""


def test_rows_of_a_cluster_are_resampled_together(monkeypatch, capsys, tmp_path):
    pl.DataFrame(VIDEOS, schema=["sex", "video", "k", "n"], orient="row").write_csv(
        tmp_path / "videos.csv"
    )
    people = pl.concat(
        [
            pl.DataFrame({"sex": sex, "video": video, "value": [1.0] * k + [0.0] * (n - k)})
            for sex, video, k, n in VIDEOS
        ]
    ).with_row_index("row")
    unit = pl.col("row").cast(pl.String)
    theirs = isolux.audit(
        people.select("value", unit_id=unit, cluster_id="video"),
        people.select("sex", unit_id=unit),
        by="sex",
        replicates=200,
    )
    done, counted = audited(monkeypatch, capsys, tmp_path, f"counts:{tmp_path / 'videos.csv'}",
                            "--task", "counts", "--by", "sex", "--cluster", "video",
                            "--notes")  # fmt: skip
    printed = " ".join(done.out.split())
    assert "in 24 clusters (video)" in printed
    assert "Clusters are unknown" not in printed
    key = ["attribute", "group"]
    both = counted.join(theirs.group_metrics, on=key, suffix="_people", nulls_equal=True)
    assert both.height == 3
    for column in ("value", "low", "high", "standard_error", "n_units", "n_clusters"):
        assert both[column].to_list() == pytest.approx(both[f"{column}_people"].to_list()), column
    # The ratio estimator's linearised error (Cochran 1977, section 6.3), by hand for F; ours has
    # a further term of the second order. Cases that are independent have 0.0208.
    k, n = (np.array([row[i] for row in VIDEOS if row[0] == "F"], dtype=float) for i in (2, 3))
    rate = k.sum() / n.sum()
    error = np.sqrt(24 / 23 * ((k - rate * n) ** 2).sum()) / n.sum()
    assert both.filter(group="F")["standard_error"].item() == pytest.approx(error, rel=1e-3)


def test_rows_that_nothing_tells_apart_are_asked_for_their_cluster(tmp_path):
    file = tmp_path / "videos.csv"
    pl.DataFrame(VIDEOS, schema=["sex", "video", "k", "n"], orient="row").write_csv(file)
    with pytest.raises(SpecError, match="several rows are of one group") as refused:
        isolux.audit(f"counts:{file}", by="sex", task="counts")
    assert "such as a video: --cluster video" in str(refused.value)
    dataset = isolux.load("counts", file)
    clustered = dataset.with_clusters("video")
    with pytest.raises(SpecError, match=r"several cases of a cluster(.|\n)*'v0' in one row"):
        isolux.score("counts", clustered, clustered.bundled_predictions)


def test_too_many_cases_for_clusters_are_refused(tmp_path):
    file = written(tmp_path, "race,video,k,n\na,v,1,3000000\nb,v,1,3000000\n")
    with pytest.raises(SpecError, match=r"too large for clusters(.|\n)*6,000,000"):
        isolux.load("counts", file, cluster="video")


# Three detectors of the same 100 light and 100 dark people: their rows are 300 and 300 looks.
DETECTORS = """detector,group,successes,n
A,light,90,100
A,dark,80,100
B,light,70,100
B,dark,60,100
C,light,95,100
C,dark,94,100
"""


@pytest.mark.parametrize("column", ["detector", "perturbation", "site"])
def test_rows_of_several_models_or_conditions_are_not_added_up_unasked(
    monkeypatch, capsys, tmp_path, column
):
    file = written(tmp_path, DETECTORS.replace("detector", column))
    asked = ("audit", f"counts:{file}", "--task", "counts", "--by", "group")
    done = run(monkeypatch, capsys, *asked, "--out", tmp_path / "none")
    assert done.code == 2
    assert "several rows are of one group" in done.plain
    assert f"--model-column {column}" in done.plain
    with pytest.raises(SpecError, match="several rows are of one group"):
        isolux.audit(f"counts:{file}", by="group", task="counts")


@pytest.mark.parametrize(
    ("more", "rates"),
    [
        (("--model-column", "detector"), {("A", 0.8, 100), ("B", 0.6, 100), ("C", 0.94, 100)}),
        (("--model-column", "detector", "--model-name", "B"), {("B", 0.6, 100)}),
        (("--only", "detector=A"), {("paper", 0.8, 100)}),
        (("--by", "group*detector", "--min-units", "1"), {("paper", 0.78, 300)}),
    ],
)
def test_a_further_column_counts_as_what_it_is_named(monkeypatch, capsys, tmp_path, more, rates):
    file = written(tmp_path, DETECTORS)
    _, counted = audited(monkeypatch, capsys, tmp_path, f"counts:{file}", "--task", "counts",
                         "--by", "group", *more)  # fmt: skip
    dark = counted.filter(attribute="group", group="dark")
    rows = dark.select("model", pl.col("value").round(12), "n_units").rows()
    assert set(rows) == rates


def test_a_column_or_model_that_is_not_there_is_named(monkeypatch, capsys, tmp_path):
    file = written(tmp_path, DETECTORS)
    with pytest.raises(UnknownNameError, match="did you mean 'detector'"):
        load(file, model_column="detectr")
    with pytest.raises(UnknownNameError, match="one of A, B, C"):
        load(file, model_column="detector", model="D")
    twice = written(tmp_path, DETECTORS.replace("group", "model"))
    with pytest.raises(SpecError, match="two columns would name the model"):
        load(twice, model_column="detector")


def test_a_model_column_of_a_table_of_pairs_is_refused_by_name(monkeypatch, capsys, tmp_path):
    file = tmp_path / "pairs.csv"
    file.write_text("net,a,b,group_a,group_b,score,genuine\nX,p1,p2,u,u,0.9,1\nX,p1,p3,u,v,0.1,0\n")
    done = run(monkeypatch, capsys, "audit", f"pairs:{file}", "--task", "face_verification",
               "--data-option", "first=a", "--data-option", "second=b", "--by", "group",
               "--model-column", "net", "--out", tmp_path / "none")  # fmt: skip
    assert done.code == 2, done.plain
    assert "--model-column is about answers of people" in done.plain


def test_models_are_not_added_up_in_a_group_of_one_attribute_alone(monkeypatch, capsys, tmp_path):
    # Each combination of race and sex stands once, but Black people's rows are of two models.
    rows = (
        "race,sex,net,correct,total\nB,m,A,60,100\nW,m,A,950,1000\nB,f,X,90,100\nW,f,X,960,1000\n"
    )
    asked = ("audit", f"counts:{written(tmp_path, rows)}", "--task", "counts")
    done = run(monkeypatch, capsys, *asked, "--by", "race", "--by", "sex", "--out", tmp_path / "n")
    assert done.code == 2
    assert "'net', such as net = 'A', 'X'" in done.plain
