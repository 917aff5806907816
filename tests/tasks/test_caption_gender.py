"""Captions by hand, bias amplification against the papers' formulas, and what is refused."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.tables import ATTRIBUTES, INSTANCES
from isolux.tasks._word_lists.lists import read_word_list
from isolux.tasks._word_lists.mentions import classify_mentions
from isolux.tasks.caption_gender import (
    BIAS_AMPLIFICATION,
    GENDER_RATIO_CHANGE,
    GENDER_TO_OBJECT,
    OBJECT_TO_GENDER,
    score,
)
from isolux_worlds.associations import write_captions
from tests.cli._run import isolux as run

INFO = DatasetInfo(title="Made up", summary="People that a test made up.", references=())


def people(genders, objects=None):
    ids = [f"p{i}" for i in range(len(genders))]
    rows = [(i, "gender", g) for i, g in zip(ids, genders, strict=True)]
    rows += [(i, "objects", o) for i, own in zip(ids, objects or [], strict=False) for o in own]
    attributes = pl.DataFrame(rows, schema=["unit_id", "attribute", "value"], orient="row")
    instances = pl.DataFrame({"instance_id": ids, "image_id": ids})
    long = attributes.with_columns(unit_kind=pl.lit("instance"))
    return Dataset("made up", INFO, INSTANCES.conform(instances), ATTRIBUTES.conform(long))


def said(*texts):
    ids = [f"p{i}" for i in range(len(texts))]
    return pl.DataFrame({"model": "m", "instance_id": ids, "label": list(texts)})


def values(found, metric, label=None):
    rows = found.units.filter(pl.col("metric") == metric, pl.col("label").eq_missing(label))
    return [r if v is None else v for v, r in rows.select("value", "reason").iter_rows()]


TEXTS = said("A man's bag", "the lady and her dog", "a man with a woman", "two people", "a dog")
FIVE = people(["woman", "woman", "man", "man", "man"])


def test_five_captions_by_hand():
    every = ["wrong_gender", "right_gender", "neutral", "both_genders", "no_person",
             "wrong_when_gendered", "said_gender"]  # fmt: skip
    found = score(FIVE, TEXTS, target="gender", metrics=every)
    assert values(found, "wrong_gender") == [1, 0, 0, 0, 0]
    assert values(found, "right_gender") == [0, 1, 0, 0, 0]
    assert values(found, "both_genders") == [0, 0, 1, 0, 0]
    assert values(found, "neutral") == [0, 0, 0, 1, 0]
    assert values(found, "no_person") == [0, 0, 0, 0, 1]
    silent = "no gender said"
    assert values(found, "wrong_when_gendered") == [1, 0, silent, silent, silent]
    assert values(found, "said_gender", "masculine") == [1, 0, 0, 0, 0]


def test_each_caption_is_of_one_kind():
    kinds = ["wrong_gender", "right_gender", "neutral", "both_genders", "no_person"]
    found = score(FIVE, TEXTS, target="gender", metrics=kinds).units
    assert found.group_by("unit_id").agg(pl.col("value").sum())["value"].to_list() == [1.0] * 5


def test_words_are_whole_words():
    """A human stands in a womanly kimono: neither man nor woman, but a human."""
    found = score(people(["woman", "man"]), said("a human in a womanly kimono", "a man"),
                  target="gender", metrics=["neutral"])  # fmt: skip
    assert values(found, "neutral") == [1.0, 0.0]


def test_lists_differ():
    """Hendricks et al.'s words hold no pronouns and no plural girls."""
    two = people(["woman", "man"])
    texts = said("girls run", "a man")
    ours = score(two, texts, target="gender", metrics=["right_gender"])
    theirs = score(two, texts, target="gender", words="hendricks_2018", metrics=["right_gender"])
    assert values(ours, "right_gender") == [1.0, 1.0]
    assert values(theirs, "right_gender") == [0.0, 1.0]
    assert theirs.task_choices["words"]["title"] == "Gendered words of Women also Snowboard"


def counted(table, predicted):
    """Rows of captions: ``table`` and ``predicted`` count pictures by object and gender.

    Every caption's gender is right; the pictures' first object is said, or the second.
    """
    rows = []
    for gender in (0, 1):
        true = [0] * int(table[0][gender]) + [1] * int(table[1][gender])
        told = [0] * int(predicted[0][gender]) + [1] * int(predicted[1][gender])
        rows += [("fm"[gender], "fm"[gender], ["ab"[t]], ["ab"[s]])
                 for t, s in zip(true, told, strict=True)]  # fmt: skip
    frame = pl.DataFrame(rows, schema=["truth", "gender", "objects", "said_objects"], orient="row")
    return frame.with_columns(reason=pl.lit(None, dtype=pl.String))


@pytest.mark.parametrize(("painting", "directional", "of_zhao"), [
    # Wang & Russakovsky's painting example (paint_ex, figure 2): 30 of 40 women and 10 of 40 men
    # paint, men are predicted as they are. All 40 women: (40 - 30) / 40 either way, men 0: 1/8.
    # Zhao's: women are 40 of 50 painters, less 30 of 40; men 30 of 30 others, less 30 of 40.
    (40, 0.125, (0.05 + 0.25) / 2),
    (30, 0.0, 0.0),
    # No woman: (0 - 30) / 40 either way, men 0: -3/8. Zhao's: 0 of 10, less .75; 30 of 70 others.
    (0, -0.375, (-0.75 + 30 / 70 - 0.75) / 2),
])  # fmt: skip
def test_the_painting_example(painting, directional, of_zhao):
    evidence = counted([[30, 10], [10, 30]], [[painting, 10], [40 - painting, 30]])
    weights = np.ones(evidence.height)
    assert float(GENDER_TO_OBJECT(evidence, weights)) == pytest.approx(directional)
    assert float(BIAS_AMPLIFICATION(evidence, weights)) == pytest.approx(of_zhao)
    assert float(OBJECT_TO_GENDER(evidence, weights)) == pytest.approx(0.0)  # genders are right


def by_loops(rows):
    """Equations 2 to 4 of Wang & Russakovsky, a loop at a time; pairs without pictures left out."""
    genders = sorted({r[0] for r in rows})
    objects = sorted({o for r in rows for o in r[2]})
    n, to_gender, to_object = len(rows), [], []
    for a in genders:
        for t in objects:
            with_t = [r for r in rows if t in r[2]]
            of_a = [r for r in rows if r[0] == a]
            both = sum(t in r[2] for r in of_a)
            sign = np.sign(both / n - len(with_t) / n * len(of_a) / n)
            if with_t:
                change = sum((r[1] == a) - (r[0] == a) for r in with_t) / len(with_t)
                to_gender.append(sign * change)
            change = sum((t in r[3]) - (t in r[2]) for r in of_a) / len(of_a)
            to_object.append(sign * change)
    return np.mean(to_gender), np.mean(to_object)


@pytest.mark.parametrize("seed", range(5))
def test_amplification_is_that_of_plain_loops(seed):
    draw = np.random.default_rng(seed)
    names = ["cup", "dog", "tie"]
    rows = [
        ("fm"[draw.integers(2)], "fm"[draw.integers(2)],
         [t for t in names if draw.random() < 0.4], [t for t in names if draw.random() < 0.4])
        for _ in range(60)
    ]  # fmt: skip
    lists = {"objects": pl.List(pl.String), "said_objects": pl.List(pl.String)}
    frame = pl.DataFrame(
        rows, schema={"truth": pl.String, "gender": pl.String, **lists}, orient="row"
    ).with_columns(reason=pl.lit(None, dtype=pl.String))
    to_gender, to_object = by_loops(rows)
    weights = np.ones(60)
    assert float(OBJECT_TO_GENDER(frame, weights)) == pytest.approx(to_gender)
    assert float(GENDER_TO_OBJECT(frame, weights)) == pytest.approx(to_object)


def test_a_weight_of_two_is_the_row_twice():
    draw = np.random.default_rng(1)
    evidence = counted([[8, 3], [2, 7]], [[9, 3], [1, 7]])
    times = draw.integers(0, 3, evidence.height)
    again = evidence[np.repeat(np.arange(evidence.height), times).tolist()]
    for statistic in (OBJECT_TO_GENDER, GENDER_TO_OBJECT, BIAS_AMPLIFICATION):
        ours = float(statistic(evidence, times.astype(float)))
        assert ours == pytest.approx(float(statistic(again, np.ones(again.height))))


def test_the_gender_ratio_of_captions_less_that_of_pictures():
    evidence = score(FIVE, TEXTS, target="gender").evidence["captions"]
    # Captions: one names a woman alone and one a man alone, 1; pictures: two women to three men.
    assert float(GENDER_RATIO_CHANGE(evidence, np.ones(5))) == pytest.approx(1 - 2 / 3)
    only_women = (evidence["truth"] == "feminine").to_numpy().astype(float)
    assert np.isnan(GENDER_RATIO_CHANGE(evidence, only_women))
    found = score(FIVE, TEXTS, target="gender", metrics=["gender_ratio_change"])
    assert [m.name for m in found.info.metrics] == ["wrong_gender", "gender_ratio_change"]


def test_among_people_of_one_gender_there_is_no_amplification():
    women = counted([[30, 0], [10, 0]], [[40, 0], [0, 0]])
    both = counted([[30, 10], [10, 30]], [[40, 10], [0, 30]])
    weights = (both["truth"] == "f").to_numpy().astype(float)
    for statistic in (OBJECT_TO_GENDER, GENDER_TO_OBJECT, BIAS_AMPLIFICATION):
        assert np.isnan(statistic(women, np.ones(women.height)))
        assert np.isnan(statistic(both, weights))


def test_objects_of_two_words_and_several_are_read(tmp_path):
    world = people(["man", "woman"], [["traffic light", "dog"], ["dog"]])
    texts = said("a man by two Traffic Lights", "a woman with a puppy")
    found = score(world, texts, target="gender", objects="objects").evidence["captions"]
    assert found["said_objects"].to_list() == [["traffic light"], []]
    words = tmp_path / "objects.json"
    words.write_text(json.dumps({"dog": ["dog", "puppy"]}))
    more = score(world, texts, target="gender", objects="objects", object_words=str(words))
    assert more.evidence["captions"]["said_objects"].to_list() == [["traffic light"], ["dog"]]
    words.write_text(json.dumps({"cat": ["cat"]}))
    with pytest.raises(SpecError, match="are of none that is in the pictures"):
        score(world, texts, target="gender", objects="objects", object_words=str(words))


def test_captions_in_another_language_are_refused_and_mostly_so_cautioned_about():
    with pytest.raises(SpecError, match="not one caption has a word of the list"):
        score(FIVE, said(*["eine Frau mit Hund"] * 5), target="gender")
    mixed = said("a woman", *["eine Frau mit Hund"] * 4)
    notes = score(FIVE, mixed, target="gender").notes
    assert any(isinstance(n, Caution) and "80% of the captions have no word" in n for n in notes)


def test_an_empty_caption_and_none_are_null():
    found = score(FIVE, said("a woman", "", None, "a man"), target="gender",
                  metrics=["wrong_gender"])  # fmt: skip
    assert values(found, "wrong_gender") == [0.0, "no caption", "no prediction", 0.0,
                                             "no prediction"]  # fmt: skip


LIST = "source: a test\ngroups:\n  x: {words: [one]}\n  y: {words: [two]}\n"


@pytest.mark.parametrize(("text", "problem"), [
    (LIST.replace("source: a test\n", ""), "say where it is from"),
    (LIST.replace("[two]", "[one]"), "the word 'one' is of two groups"),
    (LIST.replace("[two]", "[two words]"), "is not a single word"),
    (LIST.replace("[two]", "[]"), "the group 'y' has no words"),
    ("source: a test\ngroups: {x: {words: [one]}}\n", "has words by group"),
    (LIST + "colour: red\n", "colour"),
    (LIST, "is one that the word list knows"),  # it maps nothing
])  # fmt: skip
def test_a_word_list_that_does_not_fit_is_refused(tmp_path, text, problem):
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(Exception, match=problem):
        score(FIVE, TEXTS, target="gender", words=str(path))


def in_pictures(*objects):
    """60 pictures, of a woman or a man in turn, that all hold these objects."""
    genders = ["woman", "man"] * 30
    dataset = people(genders, [[*objects] for _ in genders])
    texts = said(*(f"a {g} with a ball and a fork" for g in genders))
    notes = score(dataset, texts, target="gender", objects="objects").notes
    return [note for note in notes if isinstance(note, Caution)]


@pytest.mark.parametrize(
    ("objects", "told"),
    [
        (("ball", "fork"), None),
        (("ball", "fork", "sports_ball"), "1 of 3 objects are named in no caption: 'sports_ball'."),
        (("ball;fork",), "1 of 1 objects are named in no caption: 'ball;fork'."),
        (("ball", "woman"), "Objects that are words for people of a gender: 'woman'."),
        (("ball", "Ball "), "Objects differ in their spelling alone: 'Ball ' and 'ball'."),
    ],
)
def test_objects_that_bend_an_amplification_are_told(objects, told):
    found = in_pictures(*objects)
    if told is None:
        assert found == []
    else:
        assert any(note.startswith(told) for note in found)


def test_rare_objects_and_pictures_without_any_are_told():
    genders = ["woman", "man"] * 30
    lists = [["ball"] if i < 35 else [] for i in range(60)]
    lists[0] = ["ball", "kite"]
    texts = said(*(f"a {g} with a ball" for g in genders))
    notes = score(people(genders, lists), texts, target="gender", objects="objects").notes
    told = [note for note in notes if isinstance(note, Caution)]
    assert told[0].startswith("1 of 2 objects are in fewer than 10 pictures: 'kite'.")
    assert told[1].startswith("25 of 60 pictures list no object")
    lists = [["ball"] if i < 50 else [] for i in range(60)]
    notes = score(people(genders, lists), texts, target="gender", objects="objects").notes
    (note,) = [n for n in notes if n.startswith("10 of 60 pictures list no object")]
    assert not isinstance(note, Caution)


def test_amplification_needs_objects():
    with pytest.raises(SpecError, match="nothing says what is in the pictures"):
        score(FIVE, TEXTS, target="gender", metrics=["object_to_gender"])


def test_by_the_command_line_a_injected_amplification_is_found_and_its_absence_is_not(
    monkeypatch, capsys, tmp_path
):
    found = {}
    for name, size in (("injected", 0.3), ("absent", 0.0)):
        files = write_captions(tmp_path / name, association=size, seed=1)
        out = tmp_path / f"{name} run"
        ran = run(
            monkeypatch, capsys, "audit", f"table:{files['people']}", "--option", "separator=;",
            "--task", "caption_gender", "--target", "gender", "--objects", "objects",
            "--predictions",
            files["captions"], "--prediction-column", "caption", "--by", "gender", "--by", "light",
            "--metric", "wrong_gender", "--metric", "object_to_gender", "--metric",
            "bias_amplification", "--out", out,
        )  # fmt: skip
        assert ran.code == 0, ran.err
        rows = pl.read_parquet(out / "group_metrics.parquet")
        everyone = rows.filter(pl.col("attribute").is_null())
        found[name] = {m: (low, high) for m, low, high in everyone.select(
            "metric", "low", "high").iter_rows()}  # fmt: skip
        of_gender = rows.filter(attribute="gender", metric="bias_amplification")
        assert of_gender["status"].unique().to_list() == ["undefined"]
    for metric in ("object_to_gender", "bias_amplification"):
        assert found["injected"][metric][0] > 0.0
        assert found["absent"][metric][0] < 0.0 < found["absent"][metric][1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("He'd jump", "masculine"), ("She’ll go", "feminine"), ("a man'll ride", "masculine"),
        ("a wo\u00adman runs", "feminine"), ("a wo-\nman runs", "feminine"),
        ("a hu\u00adman", "neutral"), ("Womens shoes", "feminine"), ("mens singles", "masculine"),
        ("\uff4d\uff41\uff4e rides", "masculine"), ("a well-\nknown dog", "no word for a person"),
    ],
)  # fmt: skip
def test_words_that_are_contracted_or_broken(text, said):
    words = read_word_list("english_people")
    assert classify_mentions(pl.Series([text]), words).to_list() == [said]
