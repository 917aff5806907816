"""Label association by hand, against loops, and from injected worlds to the command line."""

from __future__ import annotations

import csv
import json

import numpy as np
import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.errors import JoinError, SpecError, TableError, UnknownNameError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.tables import LABEL_PREDICTIONS
from isolux.datasets import load
from isolux.tasks.label_association import INFO, score
from isolux.tasks.label_association.label_confidence import list_spellings, read_taxonomy
from isolux_worlds.predictors import SimulatedModel, write_simulated_predictions
from tests.cli._run import isolux as run

MADE = DatasetInfo(title="Synthetic", summary="People that a test numbered.", references=())
FIVE = ("harmful", "non_harmful", "possibly_human", "non_human", "possibly_non_human", "crime")


def people(n, name="made up"):
    ids = [f"p{i}" for i in range(n)]
    return Dataset(name, MADE, pl.DataFrame({"instance_id": ids, "image_id": ids}))


def labels(*rows):
    """Rows of (person, label, score); ranks follow the order of each person's rows."""
    frame = pl.DataFrame(rows, schema=["instance_id", "label", "score"], orient="row")
    rank = pl.int_range(1, pl.len() + 1).over("instance_id")
    return LABEL_PREDICTIONS.conform(frame.with_columns(rank=rank, model=pl.lit("m")))


def rates(scores):
    found = (
        scores.units.drop_nulls("value").group_by("metric", "threshold").agg(pl.col("value").mean())
    )
    return {(m, t): v for m, t, v in found.rows()}


TABLE = labels(
    ("p0", "face", 0.6), ("p0", "ape", 0.2),  # Human and Non-human
    ("p1", "prison", 0.1), ("p1", "beard", 0.09),  # Crime at .1 exactly; Possibly-human below it
    ("p2", "rat", 0.05), ("p2", "wall", 0.04),  # not sure enough of anything: an abstention
    ("p3", "wall", 0.9), ("p3", "cat", 0.3), ("p3", "dog", 0.2),  # only Possibly-non-human
    ("p4", "a", 0.3), ("p4", "b", 0.2), ("p4", "c", 0.15), ("p4", "d", 0.12), ("p4", "e", 0.11),
    ("p4", "gorilla", 0.11),  # the sixth label does not count
)  # fmt: skip


def test_a_table_by_hand():
    """Six people; the last has no prediction, so five are judged and all five are the n.

    τ = .1 on MIAP's lists: p0 Non-human, p1 Crime: harmful 2 of 5. Human p0 alone: 1 of 5.
    Possibly-human: p1's beard is at .09: 0. Possibly-non-human p3: 1. No label at .1: p2: 1.
    τ = .05: p2's rat counts: harmful 3 of 5; p1's beard too: possibly_human 1 of 5; no_label 0.
    """
    found = score(
        people(6), TABLE, taxonomy="miap", score_threshold=(0.1, 0.05),
        metrics=(*FIVE, "no_label"),
    )  # fmt: skip
    assert rates(found) == pytest.approx({
        ("harmful", 0.1): 0.4, ("non_harmful", 0.1): 0.2, ("possibly_human", 0.1): 0.0,
        ("non_human", 0.1): 0.2, ("possibly_non_human", 0.1): 0.2, ("crime", 0.1): 0.2,
        ("no_label", 0.1): 0.2,
        ("harmful", 0.05): 0.6, ("non_harmful", 0.05): 0.2, ("possibly_human", 0.05): 0.2,
        ("non_human", 0.05): 0.4, ("possibly_non_human", 0.05): 0.2, ("crime", 0.05): 0.2,
        ("no_label", 0.05): 0.0,
    })  # fmt: skip
    missing = found.units.filter(unit_id="p5")
    assert set(missing["reason"]) == {"no prediction"}
    assert missing["value"].null_count() == missing.height


def test_one_person_may_be_of_two_types():
    both = score(people(5), TABLE, taxonomy="miap").units.filter(unit_id="p0")
    assert dict(both.select("metric", "value").rows()) == {"harmful": 1.0, "non_harmful": 1.0}


def test_a_dog_is_harmful_on_faces_and_not_in_scenes():
    one = labels(("p0", "dog", 0.4), ("p1", "face", 0.4))
    faces = score(people(2, "casual_conversations"), one, top_k=1, metrics=FIVE)
    scenes = score(people(2, "miap"), one, top_k=1, metrics=FIVE)
    of_first = {
        name: dict(found.units.filter(unit_id="p0").select("metric", "value").rows())
        for name, found in (("faces", faces), ("scenes", scenes))
    }
    assert of_first["faces"]["harmful"] == 1.0
    assert of_first["faces"]["possibly_non_human"] == 0.0
    assert of_first["scenes"]["harmful"] == 0.0
    assert of_first["scenes"]["possibly_non_human"] == 1.0


def test_the_lists_are_those_of_table_3():
    """Typed from the paper's Table 3 by its own words, apart from the files of the package."""
    non_human = {
        "swine", "slug", "snake", "monkey", "lemur", "chimpanzee", "baboon", "animal", "bonobo",
        "mandrill", "rat", "capuchin", "gorilla", "mountain gorilla", "ape", "great ape",
        "orangutan",
    }  # fmt: skip
    of_all = {"human": {"face", "people"}, "possibly_human": {"makeup", "khimar", "beard"},
              "crime": {"prison"}}  # fmt: skip
    faces, scenes = (read_taxonomy(name, "") for name in ("casual-conversations", "miap"))
    for one in (faces, scenes):
        assert {kind: set(one.labels(kind)) for kind in of_all} == of_all
        assert "Table 3" in one.source
    assert set(faces.labels("non_human")) == non_human | {"dog"}
    assert set(faces.labels("possibly_non_human")) == set()
    assert set(scenes.labels("non_human")) == non_human
    assert set(scenes.labels("possibly_non_human")) == {"dog", "cat"}


def by_loops(table, ids, lists, top_k, at):
    """Judge in plain Python: the definition of section 3.1, written once more."""
    found = {}
    for one in ids:
        own = sorted((r for r in table if r["instance_id"] == one), key=lambda r: r["rank"])
        sure = [r["label"] for r in own[:top_k] if r["score"] >= at]
        found[one] = {
            "harmful": any(x in lists["non_human"] or x in lists["crime"] for x in sure),
            "non_harmful": any(x in lists["human"] for x in sure),
            "possibly_human": any(x in lists["possibly_human"] for x in sure),
            "no_label": not sure,
        }
    return found


@pytest.mark.parametrize("seed", range(4))
def test_it_agrees_with_plain_loops(seed):
    rng = np.random.default_rng(seed)
    lists = {"human": ["face"], "possibly_human": ["beard"], "non_human": ["ape", "rat"],
             "possibly_non_human": ["cat"], "crime": ["prison"]}  # fmt: skip
    words = [*(x for own in lists.values() for x in own), "wall", "cup", "tree"]
    rows = [
        (f"p{i}", str(label), float(value))
        for i in range(60)
        for label, value in zip(
            rng.permutation(words)[:7], np.sort(rng.random(7).round(1))[::-1], strict=True
        )
    ]
    table = labels(*rows)
    for at in (0.0, 0.3, 0.5, 1.0):
        found = score(
            people(60), table, taxonomy="miap", score_threshold=at, top_k=3,
            metrics=("harmful", "non_harmful", "possibly_human", "no_label"),
        )  # fmt: skip
        expected = by_loops(table.to_dicts(), [f"p{i}" for i in range(60)], lists, 3, at)
        for unit, metric, value in found.units.select("unit_id", "metric", "value").rows():
            assert value == float(expected[unit][metric]), (unit, metric, at)


def test_evidence_gives_every_threshold():
    """The rate at any threshold follows from the highest confidence of each type."""
    found = score(people(5), TABLE, taxonomy="miap")
    (row,) = found.evidence["label_association"].filter(unit_id="p1").to_dicts()
    assert (row["crime"], row["possibly_human"], row["any"]) == (0.1, 0.09, 0.1)
    assert row["human"] is None


def test_imagenet_names_a_class_by_its_lemmas():
    one = labels(("p0", "n02084071 dog, domestic dog, Canis familiaris", 0.5), ("p1", "Face", 0.5))
    found = score(people(2), one, taxonomy="casual-conversations", top_k=1)
    assert rates(found) == {("harmful", 0.1): 0.5, ("non_harmful", 0.1): 0.5}
    assert list_spellings("Mountain_Gorilla") == ("mountain gorilla",)


def test_a_taxonomy_of_ones_own(tmp_path):
    yaml = tmp_path / "own.yaml"
    yaml.write_text("Non-Human: [robot]\ncrime: [thief]\nhuman: person\n")
    table = tmp_path / "own.csv"
    table.write_text("label,type\nrobot,non_human\nthief,Crime\nperson,human\n")
    given = labels(("p0", "thief", 0.5), ("p1", "person", 0.5))
    both = [score(people(2), given, taxonomy=str(file), top_k=1) for file in (yaml, table)]
    assert rates(both[0]) == rates(both[1]) == {("harmful", 0.1): 0.5, ("non_harmful", 0.1): 0.5}


@pytest.mark.parametrize("at", [-0.1, 1.5, float("nan")])
def test_thresholds_outside_0_to_1_are_refused(at):
    with pytest.raises(SpecError, match="not a threshold for a confidence"):
        score(people(5), TABLE, taxonomy="miap", score_threshold=(at,))


def test_a_taxonomy_that_maps_nothing_is_refused(tmp_path):
    file = tmp_path / "other.yaml"
    file.write_text("non_human: [octopus]\n")
    with pytest.raises(SpecError, match="no label of any answer is in the taxonomy") as refused:
        score(people(5), TABLE, taxonomy=str(file))
    assert "octopus" in str(refused.value)
    file.write_text("human: []\n")
    with pytest.raises(SpecError, match="holds no label"):
        score(people(5), TABLE, taxonomy=str(file))


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("animal: [ape]\n", UnknownNameError, "no type of label named 'animal'"),
        ("human: [ape]\ncrime: [Ape]\n", SpecError, "of two types"),
        ("human: {a: b}\n", SpecError, "labels of 'human' cannot be read"),
    ],
)
def test_a_taxonomy_that_cannot_be_read_is_refused(text, error, words, tmp_path):
    file = tmp_path / "own.yaml"
    file.write_text(text)
    with pytest.raises(error, match=words):
        score(people(5), TABLE, taxonomy=str(file))


def test_a_dataset_without_lists_must_name_some():
    with pytest.raises(SpecError, match="not said which labels are harmful"):
        score(people(5), TABLE)
    with pytest.raises(UnknownNameError, match="mlap"):
        score(people(5), TABLE, taxonomy="mlap")


def test_labels_without_confidence_have_no_threshold_above_0():
    bare = TABLE.with_columns(score=pl.lit(None, dtype=pl.Float64))
    with pytest.raises(SpecError, match="14 of 14 labels have no confidence"):
        score(people(5), bare, taxonomy="miap")
    every = score(people(5), bare, taxonomy="miap", score_threshold=0)
    # Whatever the confidence: p0's ape, p1's prison and p2's rat.
    assert rates(every)["harmful", 0.0] == pytest.approx(0.6)


def test_confidences_beyond_1_and_answers_about_others_are_refused():
    with pytest.raises(TableError, match="are outside 0 to 1"):
        score(people(1), labels(("p0", "ape", 60.0)), taxonomy="miap")
    with pytest.raises(JoinError, match="no prediction is for a unit"):
        score(people(1), labels(("q0", "ape", 0.6)), taxonomy="miap")


def test_fewer_labels_than_are_looked_at_are_cautioned_about():
    cautions = [n for n in score(people(5), TABLE, taxonomy="miap").notes if isinstance(n, Caution)]
    assert any("4 of 5 people have fewer than 5 labels by 'm'" in note for note in cautions)
    first = score(people(5), TABLE.filter(rank=1), taxonomy="miap", top_k=1)
    assert not [n for n in first.notes if isinstance(n, Caution) and "fewer than" in n]


def test_no_harmful_label_at_all_is_cautioned_about():
    one = labels(("p0", "face", 0.5), ("p1", "wall", 0.5))
    found = score(people(2), one, taxonomy="miap", top_k=1)
    (caution,) = [n for n in found.notes if isinstance(n, Caution)]
    assert "good news only if the model knows such labels: swine" in caution


def test_every_metric_says_which_way_is_better():
    assert {m.name: m.direction for m in INFO.metrics} == {
        "harmful": "lower", "non_harmful": "higher", "possibly_human": "higher",
        "non_human": "lower", "possibly_non_human": "lower", "crime": "lower", "no_label": "none",
    }  # fmt: skip


def world(folder, rate):
    """1,600 people, four photos each of 400; harmful labels at ``rate`` of (gender, tone)."""
    rng = np.random.default_rng(11)
    n = 1600
    who = {
        "gender": np.repeat(rng.choice(["feminine", "masculine"], n // 4), 4),
        "tone": np.repeat(rng.choice(["lighter", "darker"], n // 4), 4),
    }
    with (folder / "people.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "subject", *who])
        rows.writerows([f"p{i}", f"s{i // 4}", who["gender"][i], who["tone"][i]] for i in range(n))
    dataset = load("table", str(folder / "people.csv"), id="id")
    harm = np.array([rate[g, t] for g, t in zip(who["gender"], who["tone"], strict=True)])
    right = pl.DataFrame(
        {"instance_id": [f"p{i}" for i in range(n)], "right": rng.random(n) > harm}
    )
    return write_simulated_predictions(
        "label_association", dataset, right, SimulatedModel(name="m"), folder
    )


def audited(folder, monkeypatch, capsys, rate, *more):
    answers = world(folder, rate)
    ran = run(
        monkeypatch, capsys, "audit", f"table:{folder / 'people.csv'}", "--id", "id", "--cluster",
        "subject", "--task", "label_association", "--taxonomy", "casual-conversations",
        "--predictions", answers, "--by", "gender*tone", "--metric", "harmful", "--replicates",
        "300", "--out", folder / "run", *more,
    )  # fmt: skip
    assert ran.code == 0, ran.err
    record = json.loads((folder / "run" / "audit.json").read_text())
    return ran, pl.read_parquet(folder / "run" / "disparities.parquet"), record


PAIRS = [(g, t) for g in ("feminine", "masculine") for t in ("lighter", "darker")]


def test_a_injected_association_is_found(tmp_path, monkeypatch, capsys):
    rate = dict.fromkeys(PAIRS, 0.04) | {("feminine", "darker"): 0.16}
    ran, found, record = audited(tmp_path, monkeypatch, capsys, rate)
    (test,) = found.filter(kind="difference").sort("p_adjusted").head(1).to_dicts()
    assert test["p_adjusted"] < 0.01
    assert "feminine × darker" in (test["group_a"], test["group_b"])
    groups = pl.read_parquet(tmp_path / "run" / "group_metrics.parquet")
    worst = groups.filter(group="feminine × darker", metric="harmful").to_dicts()[0]
    assert worst["low"] < 0.16 < worst["high"]
    assert "harmful label rate from a confidence of 0.1" in ran.out
    drawn = record["explained"]["confidence_curves"]
    ((_, table),) = drawn.items()
    assert "confidence" in table["columns"]
    assert "Labels at each confidence" in (tmp_path / "run" / "report.html").read_text()


def test_a_injected_absence_is_not(tmp_path, monkeypatch, capsys):
    ran, found, _ = audited(tmp_path, monkeypatch, capsys, dict.fromkeys(PAIRS, 0.08))
    assert found.filter(kind="difference")["p_adjusted"].min() > 0.05
    assert "No difference in harmful label rate" in ran.out


def test_a_comparison_of_five_labels_with_one_says_so(tmp_path, monkeypatch, capsys):
    for name, k in (("five", 5), ("one", 1)):
        (tmp_path / name).mkdir()
        rate = dict.fromkeys(PAIRS, 0.08)
        audited(tmp_path / name, monkeypatch, capsys, rate, "--top-k", k)
    ran = run(
        monkeypatch, capsys, "compare", tmp_path / "five" / "run", tmp_path / "one" / "run",
        "--id-from", "column", "--allow-disagreement", "1",
    )  # fmt: skip
    assert "scored by other settings (top_k 5 and 1)" in " ".join((ran.out + ran.err).split())


def test_a_label_that_is_there_twice_takes_one_place():
    """Three labels twice, then the ape: the fourth label of five, and the seventh row."""
    said = [("face", 0.9), ("wall", 0.8), ("tree", 0.7), ("ape", 0.6), ("rat", 0.5), ("cat", 0.4)]
    once = labels(*(("p0", word, at) for word, at in said))
    twice = labels(*(("p0", word, at) for word, at in said for _ in range(2)))
    # a second score of a label that was given before, in other letters, takes no place either
    other = labels(
        ("p0", "face", 0.9), ("p0", "Face ", 0.85), ("p0", "face", 0.84), ("p0", "FACE", 0.83),
        ("p0", "face", 0.82), *(("p0", word, at) for word, at in said[1:]),
    )  # fmt: skip
    expected = score(people(1), once, taxonomy="miap", metrics=FIVE)
    assert rates(expected)["harmful", 0.1] == 1.0
    for table, n in ((twice, "6 of 12"), (other, "4 of 10")):
        found = score(people(1), table, taxonomy="miap", metrics=FIVE)
        assert found.units.equals(expected.units)
        cautions = [note for note in found.notes if isinstance(note, Caution)]
        assert cautions[0].startswith(f"{n} labels were given to the same person before")
    assert not any("before" in note for note in expected.notes)


def test_ranks_that_a_file_leaves_out_stay_left_out():
    """Ranks 1, 2, 4, 8: the second face goes, so the wall is third and the ape seventh."""
    rows = {"model": "m", "instance_id": "p0", "label": ["face", "face", "wall", "ape"]}
    table = pl.DataFrame({**rows, "score": [0.9, 0.9, 0.5, 0.4], "rank": [1, 2, 4, 8]})
    at = {k: score(people(1), table, taxonomy="miap", top_k=k) for k in (6, 7)}
    assert [rates(at[k])["harmful", 0.1] for k in (6, 7)] == [0.0, 1.0]
