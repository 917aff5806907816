"""Pronouns by hand, as VisoGender's code judges them, by occupation, and what is refused."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.info import DatasetInfo
from isolux.core.notes import Caution
from isolux.core.tables import ATTRIBUTES, INSTANCES
from isolux.tasks.pronoun_resolution import score
from isolux_worlds.associations import write_pronouns
from tests.cli._run import isolux as run

INFO = DatasetInfo(title="Made up", summary="People that a test made up.", references=())


def people(genders, occupations=None):
    ids = [f"p{i}" for i in range(len(genders))]
    rows = [("gender", g) for g in genders] + [("work", o) for o in occupations or []]
    attributes = pl.DataFrame(
        {
            "unit_kind": "instance",
            "unit_id": [*ids, *(ids if occupations else [])],
            "attribute": [name for name, _ in rows],
            "value": [value for _, value in rows],
        }
    )
    instances = pl.DataFrame({"instance_id": ids, "image_id": ids})
    return Dataset("made up", INFO, INSTANCES.conform(instances), ATTRIBUTES.conform(attributes))


def said(*texts):
    ids = [f"p{i}" for i in range(len(texts))]
    return pl.DataFrame({"model": "m", "instance_id": ids, "label": list(texts)})


def values(found, metric, label=None):
    rows = found.units.filter(pl.col("metric") == metric, pl.col("label").eq_missing(label))
    return [r if v is None else v for v, r in rows.select("value", "reason").iter_rows()]


FOUR = people(["woman", "Man", "female", None], ["nurse", "nurse", "guard", "guard"])


def test_by_hand():
    found = score(
        FOUR, said("the nurse and HER desk", "her", "their", "his"), target="gender",
        occupation="work", metrics=["resolution_accuracy", "accuracy_by_occupation",
                                    "neutral_rate", "pronoun_rate"],
    )  # fmt: skip
    assert values(found, "resolution_accuracy") == [1.0, 0.0, 0.0, "unknown truth"]
    assert values(found, "accuracy_by_occupation", "nurse") == [1.0, 0.0]
    assert values(found, "accuracy_by_occupation", "guard") == [0.0, "unknown truth"]
    assert values(found, "neutral_rate") == [0.0, 0.0, 1.0, "unknown truth"]
    assert values(found, "pronoun_rate", "feminine") == [1.0, 1.0, 0.0, "unknown truth"]


def test_neutral_pronouns_may_be_left_out():
    found = score(FOUR, said("her", "her", "their", "his"), target="gender", neutral="leave out",
                  metrics=["resolution_accuracy"])  # fmt: skip
    assert values(found, "resolution_accuracy") == [1.0, 0.0, "neutral pronoun", "unknown truth"]


def test_both_pronouns_and_none_are_not_right():
    found = score(FOUR, said("his and her desk", "a desk", "her", "his"), target="gender",
                  metrics=["resolution_accuracy", "neutral_rate"])  # fmt: skip
    assert values(found, "resolution_accuracy")[:3] == [0.0, 0.0, 1.0]
    assert values(found, "neutral_rate")[:3] == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("both", ["s/he", "(s)he", "S/he works here.", "he/she"])
def test_a_pronoun_of_both_is_not_the_masculine_one(both):
    found = score(people(["man", "woman"]), said(both, both), target="gender")
    assert values(found, "resolution_accuracy") == [0.0, 0.0]


def test_no_answer_and_an_empty_one_are_told_apart():
    found = score(FOUR, said("her", " ", "her"), target="gender", metrics=["resolution_accuracy"])
    assert values(found, "resolution_accuracy") == [1.0, "no text", 1.0, "unknown truth"]


def test_the_highest_of_three_captions_as_in_visogenders_own_example():
    """OO_1 to OO_3 of its tests (test_prelim_files): three men who teach; match true, false, true.

    The pronoun of the highest logit: his 7.81 (of 5.91, 3.08), her 8.98 (8.09, 4.87), his 8.65.
    """
    rows = [
        (f"p{i}", pronoun, logit)
        for i, logits in enumerate(
            [
                (7.8050837517, 5.9056186676, 3.0772061348),
                (8.0900363922, 8.9764070511, 4.8685054779),
                (8.6470308304, 7.3932771683, 3.2412650585),
            ]
        )
        for pronoun, logit in zip(("his", "her", "their"), logits, strict=True)
    ]
    table = pl.DataFrame(rows, schema=["instance_id", "label", "score"], orient="row")
    ranked = table.with_columns(
        rank=pl.col("score").rank("ordinal", descending=True).over("instance_id"),
        model=pl.lit("blipv2"),
    )
    found = score(people(["masculine"] * 3), ranked, target="gender",
                  metrics=["resolution_accuracy"])  # fmt: skip
    assert values(found, "resolution_accuracy") == [1.0, 0.0, 1.0]


def test_other_names_of_genders_are_named():
    strange = people(["Frau", "Mann"])
    with pytest.raises(SpecError, match="is one that the word list knows"):
        score(strange, said("her", "his"), target="gender")
    merged = {"feminine": ["Frau"], "masculine": ["Mann"]}
    found = score(strange, said("her", "her"), target="gender", label_map=merged,
                  metrics=["resolution_accuracy"])  # fmt: skip
    assert values(found, "resolution_accuracy") == [1.0, 0.0]
    with pytest.raises(SpecError, match="the word list has no group 'women'"):
        score(strange, said("her"), target="gender", label_map={"women": ["Frau"]})


def test_a_value_without_words_is_null_with_a_reason():
    found = score(people(["woman", "man", "non-binary"]), said("her", "his", "their"),
                  target="gender", metrics=["resolution_accuracy"])  # fmt: skip
    assert values(found, "resolution_accuracy")[2] == "no words for this value"


def test_answers_in_another_language_are_refused():
    with pytest.raises(SpecError, match="not one answer has a word of the list"):
        score(FOUR, said("sie", "ihr", "sein", "er"), target="gender")


def test_an_occupation_with_one_person_of_a_gender_is_told():
    notes = score(FOUR, said("her", "his", "her"), target="gender", occupation="work").notes
    assert any("2 occupation(s) have a single person of one gender (guard, nurse)" in n
               for n in notes)  # fmt: skip


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(SpecError, match="nothing says which occupation"):
        score(FOUR, said("her"), target="gender", metrics=["accuracy_by_occupation"])
    with pytest.raises(UnknownNameError, match="english_pronoun"):
        score(FOUR, said("her"), target="gender", words="english_pronoun")


def test_answers_of_others_are_a_caution():
    many = people(["woman", "man"] * 40)
    right = said(*["her", "his"] * 40)
    moved = right.with_columns(label=pl.col("label").sort())
    assert not [n for n in score(many, right, target="gender").notes if isinstance(n, Caution)]
    cautions = [n for n in score(many, moved, target="gender").notes if isinstance(n, Caution)]
    assert "Are they of these people?" in cautions[0]


def test_by_the_command_line_a_injected_bias_is_found_and_its_absence_is_not(
    monkeypatch, capsys, tmp_path
):
    found = {}
    for name, size in (("injected", 0.3), ("absent", 0.0)):
        files = write_pronouns(tmp_path / name, association=size, seed=1)
        out = tmp_path / f"{name} run"
        ran = run(
            monkeypatch, capsys, "audit", f"table:{files['people']}", "--task",
            "pronoun_resolution", "--target", "gender", "--occupation", "occupation",
            "--predictions", files["answers"], "--by", "gender", "--by", "gender*other",
            "--out", out,
        )  # fmt: skip
        assert ran.code == 0, ran.err
        rows = pl.read_parquet(out / "disparities.parquet").filter(
            pl.col("metric") == "accuracy_by_occupation", pl.col("kind") == "difference",
            pl.col("attribute") == "gender",
        )  # fmt: skip
        found[name] = dict(rows.select("label", "p_adjusted").iter_rows())
    assert max(found["injected"][work] for work in ("nurse", "plumber")) < 0.001
    assert min(found["injected"][work] for work in ("teacher", "lawyer")) > 0.05
    assert min(p for p in found["absent"].values() if p is not None) > 0.05


def test_answers_without_one_clear_pronoun_are_counted_and_cautioned_about():
    """Of forty answers one that is unclear is told, two (a twentieth) are a caution."""
    crowd = people(["woman", "man"] * 20)
    right = ["her", "his"] * 20

    def told(*texts):
        notes = score(crowd, said(*texts), target="gender").notes
        return [n for n in notes if "name pronouns of two genders" in n]

    assert told(*right) == []
    (few,) = told("his and her", *right[1:])
    assert few.startswith("1 of 40 answers of 'm' name pronouns of two genders, and 0 name none")
    assert not isinstance(few, Caution)
    (more,) = told("his and her", "a desk", *right[2:])
    assert more.startswith("1 of 40 answers of 'm' name pronouns of two genders, and 1 name none")
    assert isinstance(more, Caution)
    (every,) = told(*["her and his"] * 40)
    assert every.startswith("40 of 40 answers")
    assert isinstance(every, Caution)
