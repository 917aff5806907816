"""Pairs alone: which column is which, who is one person, what is refused, and the audit of them."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux.core.notes import Caution
from isolux.datasets.pairs import load
from isolux.tasks import score
from tests.cli._run import isolux as run


def written(tmp_path, **columns):
    file = tmp_path / "pairs.csv"
    pl.DataFrame(columns).write_csv(file)
    return file


def groups(dataset, name):
    rows = dataset.attributes.filter(attribute=name)
    return dict(rows.select("unit_id", "value").iter_rows())


@pytest.mark.parametrize(
    "names",
    [("race_a", "race_b"), ("race1", "race2"), ("race_1", "race_2"), ("a_race", "b_race"),
     ("raceA", "raceB"), ("race_probe", "race_gallery"), ("first_race", "second_race")],
)  # fmt: skip
def test_two_columns_are_the_groups_of_either_side(tmp_path, names):
    sides = dict(zip(names, (["x", "x"], ["x", "y"]), strict=True))
    found = load(written(tmp_path, genuine=[1, 0], score=[0.9, 0.1], age=["old", "young"], **sides))
    assert groups(found, "race") == {
        "pair 1, first": "x", "pair 1, second": "x", "pair 2, first": "x", "pair 2, second": "y",
    }  # fmt: skip
    assert groups(found, "age") == {
        "pair 1, first": "old", "pair 1, second": "old",
        "pair 2, first": "young", "pair 2, second": "young",
    }  # fmt: skip
    told = "race: 1 of 2 pairs are of two groups; they count only in the row for everyone."
    assert told in found.notes
    assert any(note.startswith("Clusters are unknown") for note in found.notes)
    assert found.instances["cluster_id"].to_list() == ["pair 1", "pair 2", "pair 1", "pair 2"]


@pytest.mark.parametrize(
    "words", [("1", "0"), ("true", "false"), ("Yes", "No"), ("genuine", "impostor"),
              ("same", "different"), ("match", "nonmatch"), ("1.0", "-1")],
)  # fmt: skip
def test_genuine_is_read_as_files_say_it(tmp_path, words):
    found = load(written(tmp_path, label=[*words, None], score=[0.9, 0.1, None], g=["a"] * 3))
    assert found.bundled_predictions["genuine"].to_list() == [True, False, None]
    assert found.bundled_predictions["score"].to_list() == [0.9, 0.1, None]
    assert found.bundled_predictions["model"].unique().to_list() == ["score"]


def test_pictures_that_genuine_pairs_connect_are_one_cluster(tmp_path):
    file = written(tmp_path, img1=["a", "b", "c", "d"], img2=["b", "c", "d", "e"],
                   same=[1, 1, 0, 0], sim=[0.9, 0.8, 0.1, 0.2], tone_1=["x"] * 4,
                   tone_2=["x"] * 4)  # fmt: skip
    found = load(file)
    clusters = dict(found.instances.select("instance_id", "cluster_id").iter_rows())
    assert clusters["a"] == clusters["b"] == clusters["c"]
    assert len({clusters["a"], clusters["d"], clusters["e"]}) == 3  # d meets both
    assert groups(found, "tone") == dict.fromkeys("abcde", "x")


def test_people_of_either_side_say_who_is_genuine(tmp_path):
    file = written(
        tmp_path,
        id1=["a", "c"],
        id2=["b", "d"],
        subject_a=["p", "q"],
        subject_b=["p", "r"],
        cosine=[0.9, 0.1],
        g_a=["x", "x"],
        g_b=["x", "x"],
    )
    found = load(file)
    assert found.bundled_predictions["genuine"].to_list() == [True, False]
    # q and r are compared with each other alone: one draw.
    assert sorted(found.instances["cluster_id"]) == ["p", "p", "q", "q"]
    assert found.instances["subject_id"].to_list() == ["p", "q", "p", "r"]
    assert found.attributes["attribute"].unique().to_list() == ["g"]


def test_columns_may_be_named(tmp_path):
    file = written(tmp_path, left_file=["a"], right_file=["b"], z=[3.5], truth=[1], w=[1])
    found = load(
        file, first="left_file", second="right_file", score="z", genuine="truth", model="m"
    )
    assert found.bundled_predictions.rows() == [("m", "a", "b", 3.5, True)]


@pytest.mark.parametrize(
    ("columns", "settings", "error", "match"),
    [
        ({"same": [1], "x": [1.0]}, {}, SpecError, "no column says how alike the two"),
        ({"score": [1.0], "x": [1]}, {}, SpecError, "name it with --data-option genuine=COLUMN"),
        ({"score": [1.0], "same": [1]}, {"genuine": "sme"}, UnknownNameError, "mean 'same'"),
        ({"score": [1.0], "same": ["perhaps"]}, {}, TableError, "do not say whether"),
        ({"score": ["high"], "same": [1]}, {}, TableError, "are not numbers"),
        ({"score": [float("inf")], "same": [1]}, {}, TableError, "infinite"),
        ({"score": [1.0], "same": [1], "a": [1]}, {"first": "a"}, SpecError, "one side of a pair"),
        (
            {"id1": ["a", "a"], "id2": ["b", "c"], "score": [1.0, 2.0], "same": [1, 0],
             "g_a": ["x", "y"], "g_b": ["x", "x"]},
            {}, TableError, r"another g in one pair than in another",
        ),
        (
            {"score": [1.0], "same": [1], "subject_a": ["p"], "subject_b": ["q"]},
            {}, TableError, "called genuine against the people in them",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(tmp_path, columns, settings, error, match):
    with pytest.raises(error, match=match):
        load(written(tmp_path, **columns), **settings)


def crowd(tmp_path, n=1200):
    draw = np.random.default_rng(0)
    group = draw.choice(["A", "B", "C"], n)
    same = np.arange(n) % 2 == 0
    score = np.where(same, 0.6, np.where(group == "A", 0.3, 0.1)) + draw.normal(0, 0.15, n)
    file = tmp_path / "pairs.parquet"
    pl.DataFrame({"race": group, "same": same, "cosine": score, "away": 1 - score}).write_parquet(
        file
    )
    return file, group, same, score


def test_an_audit_by_the_command_line_gives_shares_of_pairs(monkeypatch, capsys, tmp_path):
    file, group, same, score = crowd(tmp_path)
    given = ("audit", f"pairs:{file}", "--task", "face_verification", "--by", "race",
             "--replicates", 100, "--out", tmp_path / "run", "--overwrite")  # fmt: skip
    done = run(monkeypatch, capsys, *given, "--threshold", 0.35)
    assert done.code == 0, done.err
    assert "works worse for people labelled A than for people labelled B: false match" in " ".join(
        done.out.split()
    )
    table = pl.read_parquet(tmp_path / "run" / "group_metrics.parquet")
    for name in "ABC":
        for metric, kind in (("false_match_rate", False), ("false_non_match_rate", True)):
            own = (group == name) & (same == kind)
            row = table.row(
                by_predicate=(pl.col("group") == name) & (pl.col("metric") == metric), named=True
            )
            accepted = score[own] >= 0.35
            assert row["value"] == pytest.approx((~accepted if kind else accepted).mean())
            assert row["n_units"] == own.sum()
            assert row["low"] < row["value"] < row["high"]
    summaries = pl.read_parquet(tmp_path / "run" / "disparities.parquet").filter(
        metric="false_match_and_non_match_rates"
    )
    assert summaries["kind"].to_list() == [
        "fairness_discrepancy_rate", "inequity_rate", "garbe", "skewed_error_ratio",
    ]  # fmt: skip
    assert summaries["low"].null_count() == 0
    record = json.loads((tmp_path / "run" / "audit.json").read_text(encoding="utf-8"))
    assert record["clusters"] == {"column": None, "n_clusters": 1200, "n_units": 1200}
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Rows were taken as independent." in page
    # The same comparisons as distances, at the distance that belongs to .35.
    done = run(monkeypatch, capsys, *given, "--score-column", "away", "--lower-score-means", "same",
               "--threshold", 0.65)  # fmt: skip
    assert "works worse for people labelled A than for people labelled B: false match" in " ".join(
        done.out.split()
    )
    again = pl.read_parquet(tmp_path / "run" / "group_metrics.parquet")
    assert again["value"].to_list() == pytest.approx(table["value"].to_list())


def test_a_wrong_task_or_column_is_told_what_to_do(monkeypatch, capsys, tmp_path):
    file, *_ = crowd(tmp_path)
    done = run(monkeypatch, capsys, "audit", f"pairs:{file}", "--by", "race")
    assert "is judged by --task face_verification" in done.plain
    done = run(monkeypatch, capsys, "audit", f"pairs:{file}", "--by", "race", "--task",
               "face_verification", "--score-column", "cosin")  # fmt: skip
    assert "did you mean 'cosine'" in done.plain


@pytest.mark.parametrize("second", [("a", "b"), ("b", "a")])
def test_a_pair_called_both_genuine_and_impostors_is_refused_with_both_rows(tmp_path, second):
    file = written(tmp_path, img1=["a", "c", second[0]], img2=["b", "d", second[1]],
                   same=[0, 1, 1], score=[0.2, 0.8, 0.2], g=["x"] * 3)  # fmt: skip
    with pytest.raises(
        TableError, match="'a' and 'b': genuine in row 3, impostors in row 1"
    ) as found:
        load(file)
    assert "1 pair(s) are called both genuine and impostors" in str(found.value)


def test_a_pair_called_the_same_twice_or_once_left_blank_is_read(tmp_path):
    file = written(tmp_path, img1=["a", "b", "a"], img2=["b", "a", "b"], same=[1, 1, None],
                   score=[0.2, 0.2, 0.2], g=["x"] * 3)  # fmt: skip
    assert load(file).bundled_predictions["genuine"].to_list() == [True, True, None]


def faces_of(n=400, seed=4):
    """Make n genuine and n impostor pairs of people who meet no one else; ids and people."""
    draw = np.random.default_rng(seed)
    same = np.arange(2 * n) % 2 == 0
    race = draw.choice(["A", "B"], 2 * n)
    near = np.where(same, 0.6, 0.25) + draw.normal(0, 0.12, 2 * n)
    return pl.DataFrame({
        "id1": [f"a{k}" for k in range(2 * n)], "id2": [f"b{k}" for k in range(2 * n)],
        "subject_a": [f"p{k}" for k in range(2 * n)],
        "subject_b": [f"p{k}" if one else f"q{k}" for k, one in enumerate(same)],
        "same": same.astype(int), "score": near.round(6), "race_a": race, "race_b": race,
    })  # fmt: skip


def rates(monkeypatch, capsys, tmp_path, table):
    table.write_csv(tmp_path / "pairs.csv")
    done = run(
        monkeypatch, capsys, "audit", f"pairs:{tmp_path / 'pairs.csv'}", "--task",
        "face_verification", "--by", "race", "--threshold", 0.45, "--replicates", 1000, "--out",
        tmp_path / "run", "--overwrite", "--notes",
    )  # fmt: skip
    assert done.code == 0, done.err
    found = pl.read_parquet(tmp_path / "run" / "group_metrics.parquet")
    found = found.filter(pl.col("metric").str.contains("match_rate")).sort("metric", "group")
    return found.select("metric", "group", "n_units", "n_clusters", "value", "low", "high"), done


def test_people_who_meet_no_one_else_do_not_widen_intervals(monkeypatch, capsys, tmp_path):
    table = faces_of()
    by_pairs, _ = rates(monkeypatch, capsys, tmp_path, table.drop("subject_a", "subject_b"))
    by_people, done = rates(monkeypatch, capsys, tmp_path, table)
    assert "two people who are compared with each other alone are one" in " ".join(done.out.split())
    told = ["metric", "group", "n_units", "n_clusters", "value"]
    assert by_people.select(told).equals(by_pairs.select(told))
    width = (by_people["high"] - by_people["low"]) / (by_pairs["high"] - by_pairs["low"])
    assert 0.93 < width.min() <= width.max() < 1.07  # 1.73 where each of the two is drawn
    # One more photo of one person leaves the others as they are.
    shared = table.with_columns(id2=pl.col("id2").replace({"b1": "b3"}),
                                subject_b=pl.col("subject_b").replace({"q1": "q3"}))  # fmt: skip
    again, _ = rates(monkeypatch, capsys, tmp_path, shared)
    width = (again["high"] - again["low"]) / (by_pairs["high"] - by_pairs["low"])
    assert 0.93 < width.min() <= width.max() < 1.07


def test_a_pair_that_stands_twice_changes_nothing(monkeypatch, capsys, tmp_path):
    table = faces_of().drop("subject_a", "subject_b")
    once, _ = rates(monkeypatch, capsys, tmp_path, table)
    turned = table[7:8].rename({"id1": "id2", "id2": "id1"}).select(table.columns)
    for again in (table[3:4], turned):
        twice, done = rates(monkeypatch, capsys, tmp_path, pl.concat([table, again]))
        assert twice.equals(once)
        assert "1 of 801 pairs repeat another" in " ".join(done.out.split())


def test_impostors_that_genuine_pairs_connect_are_told_first(tmp_path):
    file = written(tmp_path, img1=["a", "b", "a"], img2=["b", "c", "c"], same=[1, 1, 0],
                   score=[0.9, 0.9, 0.1], g=["x"] * 3)  # fmt: skip
    (told,) = [note for note in load(file).notes if isinstance(note, Caution)]
    assert told.startswith("1 pair(s) are called impostors although genuine pairs connect")
    assert "'a' and 'c' (row 3)" in told


def sided(tmp_path, first, second, n=20, same=None):
    same = [k % 2 for k in range(n)] if same is None else same
    file = written(tmp_path, genuine=same, score=[k / 7 for k in range(n)],
                   race_a=first, race_b=second)  # fmt: skip
    return [n for n in load(file).notes if n.startswith("race")]


def test_genuine_pairs_of_two_groups_are_told_first(tmp_path):
    race = ["A", "B"] * 10
    (told,) = sided(tmp_path, race, ["A", "C", *race[2:]])
    assert isinstance(told, Caution)
    assert told.startswith("race: 1 genuine pair(s)")
    assert "'B' and 'C' (row 2)" in told
    (told,) = sided(tmp_path, race, ["C", *race[1:]])
    assert not isinstance(told, Caution)
    assert told.startswith("race: 1 of 20 pairs are of two groups")


@pytest.mark.parametrize(("n", "first"), [(1, False), (2, True)])
def test_pairs_with_a_group_on_one_side_are_told_first_from_a_tenth_on(tmp_path, n, first):
    race = ["A", "B"] * 10
    (told,) = sided(tmp_path, race, [None] * n + race[n:])
    assert told.startswith(f"race: {n} of 20 pairs have a group on one side alone")
    assert isinstance(told, Caution) == first


@pytest.mark.parametrize("each", [True, False])
def test_rows_without_ids_that_repeat_others_are_told_first(tmp_path, each):
    table = faces_of(60).drop("id1", "id2", "subject_a", "subject_b")
    twice = table[np.repeat(np.arange(120), 2)] if each else pl.concat([table, table[:30]])
    twice.write_csv(tmp_path / "pairs.csv")
    (told,) = [note for note in load(tmp_path / "pairs.csv").notes if isinstance(note, Caution)]
    told = told.split(", and count")[0]
    rows = "120 of 240 rows equal the row 1" if each else "30 of 150 rows equal the row 120"
    assert told == f"{rows} before them in every column"
    coarse = twice.with_columns(pl.col("score").round(1))
    coarse.write_csv(tmp_path / "pairs.csv")
    assert not [n for n in load(tmp_path / "pairs.csv").notes if isinstance(n, Caution)]


def test_two_scores_of_one_pair_are_refused_with_both_rows(tmp_path):
    given = {"img1": ["a", "c", "b"], "img2": ["b", "d", "a"], "same": [1, 1, 1], "g": ["x"] * 3}
    with pytest.raises(TableError, match=r"(?s)1 pair.*'b' and 'a': 0\.2 in row 1, 0\.3 in row 3"):
        load(written(tmp_path, score=[0.2, 0.8, 0.3], **given))
    twice = {"img1": ["a", "c"] * 2, "img2": ["b", "d"] * 2, "same": [1] * 4, "g": ["x"] * 4}
    with pytest.raises(TableError, match=r"(?s)2 pair.*0\.3 in row 3; others in row\(s\) 4\n"):
        load(written(tmp_path, score=[0.2, 0.8, 0.3, 0.9], **twice))
    load(written(tmp_path, score=[0.2, 0.8, 0.2 + 1e-9], **given))
    load(written(tmp_path, score=[0.2, 0.8, 0.3], model=["m", "m", "n"], **given))


def test_the_flag_and_the_people_are_counted_both_ways(tmp_path):
    given = {"score": [0.1] * 3, "subject_a": ["p", "q", "r"], "subject_b": ["p", "x", "r"]}
    with pytest.raises(TableError, match="3 of 3 pairs are called genuine or impostors against"):
        load(written(tmp_path, same=[0, 1, 0], **given))
    with pytest.raises(TableError, match="2 of 3 pairs are called impostors against"):
        load(written(tmp_path, same=[0, 0, 0], **given))


def test_a_table_of_pairs_is_not_taken_for_another_table(monkeypatch, capsys, tmp_path):
    file = written(tmp_path, score=[0.1], same=["perhaps"], race_a=["x"], race_b=["x"])
    done = run(monkeypatch, capsys, "audit", f"pairs:{file}", "--task", "face_verification",
               "--by", "race")  # fmt: skip
    assert "do not say whether" in done.plain
    assert "table of your own" not in done.plain


@pytest.mark.parametrize(("left", "first"), [(1, False), (4, True)])
def test_pairs_that_are_left_out_are_told_first_from_a_tenth_on(tmp_path, left, first):
    table = faces_of(15)
    blank = pl.int_range(pl.len()) < left
    table.with_columns(score=pl.when(~blank).then("score")).write_csv(tmp_path / "pairs.csv")
    found = load(tmp_path / "pairs.csv")
    notes = score("face_verification", found, found.bundled_predictions, threshold=0.4).notes
    (told,) = [note for note in notes if "comparisons failed" in note]
    assert told == f"{left} of 30 comparisons failed and are left out of rates."
    assert isinstance(told, Caution) == first
