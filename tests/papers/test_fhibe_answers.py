"""FHIBE's protocols of foundation models: from texts to its tables, on people counted by hand."""

from __future__ import annotations

from collections import Counter

import polars as pl
import pytest
from PIL import Image

import isolux
from isolux.core.errors import InputError
from isolux.datasets import load
from isolux.io.prompts import read_prompt_file
from isolux.papers.fhibe import tables
from tests.papers._fhibe_files import audited, crowd, table_of, write_release

WOMAN, MAN = "She/her/hers", "He/him/his"
ASKED = read_prompt_file("fhibe_questions").prompts


def pronoun(person):
    return person.pronoun.partition(". ")[2]


def work(k, person):
    """A nurse, of women two in three; of all others one in six. Pronouns follow nothing."""
    often = 2 if pronoun(person) == WOMAN else 1
    return "nurse" if k % (3 if often == 2 else 6) < often else "chef"


def said(k, person, question, way):
    if way == 1 and k % 10 == 0:  # the second way of each is answered less often
        return "I cannot tell."
    they = ("He", "She")[k % 2]
    return {
        "neutral": f"{they} works as a {work(k, person)}.",
        "positive": f"{they} is likeable because of {they.lower()[:2]} smile"
        if k % 4
        else f"{they} is friendly.",
        "negative": "murder" if k % 5 == 0 else "nothing that I know of",
    }[question]


@pytest.fixture(scope="module")
def people():
    return crowd(200)


@pytest.fixture(scope="module")
def folder(people, tmp_path_factory):
    root = write_release(tmp_path_factory.mktemp("fhibe"), people)
    rows = [
        {"id": person.key, "question": ways[way], "answer": said(k, person, name, way)}
        for k, person in enumerate(people)
        for name, ways in ASKED.items()
        for way in (0, 1)
    ]
    pl.DataFrame(rows).write_csv(root / "said.csv")
    scenes = [{"id": p.key, "label": "outdoor" if k % 4 else "indoor"}
              for k, p in enumerate(people)]  # fmt: skip
    pl.DataFrame(scenes).write_csv(root / "scenes.csv")
    return root


@pytest.fixture(scope="module")
def answered(folder):
    return audited(folder, "question_answering", "said.csv", by=("pronoun",), nested=())


def test_shares_of_answers_by_hand(answered, people):
    table = table_of(tables("question_answering", answered.run), "Self-reported pronouns")
    assert table.columns[:3] == ["model", "metric", "label"]
    nurses = table.filter(metric="answer_rate", label="nurse (neutral)")
    everyone = Counter(pronoun(p) for p in people)
    called = Counter(pronoun(p) for k, p in enumerate(people) if work(k, p) == "nurse")
    for group in (WOMAN, MAN):
        share = 100 * called[group] / everyone[group]
        assert nurses[group].item() == pytest.approx(share, abs=0.05)
    assert set(table["metric"]) == {
        "answer_rate", "pronoun_rate", "response_rate", "refusal_rate", "toxic_rate"
    }  # fmt: skip


def test_the_injected_association_is_found_and_the_absent_one_is_not(answered):
    found = answered.disparities.filter(kind="omnibus_test").drop_nulls("p_adjusted")
    p = {(m, x): q for m, x, q in found.select("metric", "label", "p_adjusted").iter_rows()}
    assert p["answer_rate", "nurse (neutral)"] < 0.01
    others = [q for (metric, label), q in p.items()
              if "neutral" not in str(label) or metric != "answer_rate"]  # fmt: skip
    assert min(others) > 0.05
    rows = next(iter(answered.run.record["explained"]["answer_associations"].values()))
    first = dict(zip(rows["columns"], rows["rows"][0], strict=True))
    assert (first["answer"], first["group"]) == ("Answer rate of chef (neutral)", WOMAN)
    assert first["log odds high"] < 0  # odds of being called a chef: lower for women


def test_the_first_way_of_each_question_was_chosen(answered):
    asked = answered.run.record["chosen"]["prompts"]["m"]
    assert asked == {name: ways[0] for name, ways in ASKED.items()}
    files = answered.run.record["chosen"]["files"]
    assert set(files) == {"prompts", "declined", "lexicon", "words", "occupation",
                          "likeable_reason"}  # fmt: skip


def test_seeds_repeat(folder, answered):
    again = audited(folder, "question_answering", "said.csv", by=("pronoun",), nested=())
    assert again.group_metrics.equals(answered.group_metrics)
    assert again.disparities.equals(answered.disparities)


def test_zero_shot_labels(folder, people):
    found = audited(folder, "zero_shot", "scenes.csv", by=("pronoun",), nested=())
    table = table_of(tables("zero_shot", found.run), "Self-reported pronouns")
    inside = [k % 4 == 0 for k, p in enumerate(people) if pronoun(p) == MAN]
    shown = table.filter(metric="answer_rate", label="indoor")[MAN].item()
    assert shown == pytest.approx(100 * sum(inside) / len(inside), abs=0.05)


def test_crops_without_the_person_take_the_union_of_fhibes_parts(tmp_path):
    """Parts are 20 pixels wide and 50 high from (5 + 30 at, 5): the rest stays as it was."""
    everyone = crowd(20)
    people = [p for p in everyone if p.image == everyone[0].image]
    root = write_release(tmp_path / "fhibe", people)
    for row in load("fhibe", root).images.iter_rows(named=True):
        path = root / str(row["uri"])
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (row["width"], row["height"]), (200, 200, 200)).save(path)
    data = load("fhibe", root, segments=True)
    found = isolux.crop(data, recipe="person-black", out=tmp_path / "crops").crops
    assert found["reason"].null_count() == found.height == len(people)
    first = Image.open(tmp_path / "crops" / found["file"][0]).convert("L")
    x = people[0].x
    assert (first.getpixel((x + 2, 8)), first.getpixel((x + 22, 58))) == (0, 200)
    with pytest.raises(InputError, match="--data-option segments=true"):
        isolux.crop(load("fhibe", root), recipe="person-black", out=tmp_path / "none")
