"""VisoGender's two tables, synthetic: kinds by their columns, dates, words, saved pictures."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.core.errors import (
    FileError,
    LicenceError,
    TableError,
    UnknownNameError,
)
from tests.cli._run import isolux as run

PICTURE = "URL type (Type NA if can't find)"


def rows_of(kind, n=8, *, words=("masculine", "feminine"), address="https://a.org/{k}.jpg?w=600"):
    """Occupations in turn; the gender alternates, the other person's every second row."""
    found = []
    for k in range(1, n + 1):
        one = {
            "IDX": f"{kind}_{k}", "Sector": "office", "Specialisation": "legal",
            "Occupation": ("judge", "tax_adviser")[k // 2 % 2],
            ("Object" if kind == "OO" else "Participant"): "desk",
            PICTURE: address.format(k=k), "Licence": "Yes",
            "Occupation_perceived_gender": words[k % 2],
        }  # fmt: skip
        if kind == "OP":
            one["Participant_perceived_gender"] = words[k // 2 % 2]
        found.append(one | {"Error codes": "", "Annotator": "A"})
    return pl.DataFrame(found)


def write(folder, kind, date="02102023", frame=None, **settings):
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{kind}_Visogender_{date}.tsv"
    (rows_of(kind, **settings) if frame is None else frame).write_csv(file, separator="\t")
    return file


def test_both_tables_are_read_and_kinds_come_from_the_columns(tmp_path):
    write(tmp_path / "OO", "OO")
    write(tmp_path / "OO", "OP")  # in the other's folder, as it was once published
    dataset = isolux.load("visogender", tmp_path)
    assert dataset.instances.height == 16
    people = dataset.values_of("people")["value"].value_counts().sort("value").rows()
    assert people == [("one person", 8), ("two people", 8)]
    assert set(dataset.values_of("occupation")["value"]) == {"judge", "tax adviser"}
    assert set(dataset.values_of("gender")["value"]) == {"masculine", "feminine"}
    other = dataset.values_of("other_gender").drop_nulls("value")
    assert other["unit_id"].str.starts_with("OP_").all()


def test_of_several_dates_the_latest_is_read(tmp_path):
    write(tmp_path, "OO", "14082023", n=4)
    write(tmp_path, "OO", "02102023", n=6)  # October is after August, whatever the digits say
    write(tmp_path, "OO", "11012022", n=2)
    dataset = isolux.load("visogender", tmp_path)
    assert dataset.instances.height == 6
    assert "OO_Visogender_02102023.tsv is read; 2 older table(s)" in dataset.notes[0]


def test_words_of_2023_mean_the_same(tmp_path):
    frame = rows_of("OP", words=("man", "woman")).rename(
        {"Occupation_perceived_gender": "Occupation_Gender",
         "Participant_perceived_gender": "Participant_Gender"}
    )  # fmt: skip
    write(tmp_path, "OP", frame=frame)
    dataset = isolux.load("visogender", tmp_path)
    assert set(dataset.values_of("gender")["value"]) == {"masculine", "feminine"}
    assert set(dataset.values_of("other_gender")["value"]) == {"masculine", "feminine"}
    assert "no table of pictures of one person" in " ".join(dataset.notes)


def test_saved_pictures_are_found_by_id_and_others_are_told(tmp_path):
    write(tmp_path, "OO")
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "OO_3.jpg").touch()
    dataset = isolux.load("visogender", tmp_path)
    uris = dict(dataset.images.select("image_id", "uri").rows())
    assert uris["OO_3"] == "pictures/OO_3.jpg"
    assert uris["OO_4"].startswith("https://")
    assert "7 of 8 pictures are addresses alone" in " ".join(dataset.notes)


def test_a_picture_of_several_rows_is_one_cluster(tmp_path):
    frame = rows_of("OO").with_columns(
        pl.when(pl.col("IDX").is_in(["OO_1", "OO_2"]))
        .then(pl.lit("https://a.org/same.jpg?w=") + pl.col("IDX"))
        .otherwise(PICTURE).alias(PICTURE)
    )  # fmt: skip
    write(tmp_path, "OO", frame=frame)
    dataset = isolux.load("visogender", tmp_path)
    assert dataset.instances["cluster_id"].n_unique() == 7
    assert "1 row(s) are of a picture that another row is of" in " ".join(dataset.notes)
    assert (
        isolux.load("visogender", tmp_path, cluster="row").instances["cluster_id"].is_null().all()
    )


def test_rows_without_a_picture_are_kept_and_told(tmp_path):
    frame = rows_of("OO").with_columns(
        pl.when(pl.col("IDX") == "OO_5").then(pl.lit("NA")).otherwise(PICTURE).alias(PICTURE)
    )
    write(tmp_path, "OO", frame=frame)
    dataset = isolux.load("visogender", tmp_path)
    assert dataset.instances.height == 8
    assert "1 row(s) have no picture" in " ".join(dataset.notes)


def test_what_is_no_such_table_is_refused(tmp_path):
    with pytest.raises(FileError, match="no table of VisoGender's"):
        isolux.load("visogender", tmp_path)
    (tmp_path / "other.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(FileError, match="no table of VisoGender's"):
        isolux.load("visogender", tmp_path)
    write(tmp_path, "OO", words=("masculine", "unknown"))
    with pytest.raises(TableError, match="perceived gender that VisoGender does not have") as told:
        isolux.load("visogender", tmp_path)
    assert "row 1" in str(told.value)
    twice = pl.concat([rows_of("OO", 2), rows_of("OO", 1)])
    write(tmp_path, "OO", frame=twice)
    with pytest.raises(TableError, match="two rows have the same id"):
        isolux.load("visogender", tmp_path)
    write(tmp_path, "OO", frame=rows_of("OO").drop(PICTURE))
    with pytest.raises(UnknownNameError, match="URL type"):
        isolux.load("visogender", tmp_path)


def test_it_may_not_be_trained_on(tmp_path):
    with pytest.raises(LicenceError, match="strictly not to be used for training"):
        isolux.load("visogender", tmp_path, purpose="training")


def test_pronouns_are_judged_by_occupation_from_the_command_line(tmp_path, monkeypatch, capsys):
    write(tmp_path, "OO", n=80)
    write(tmp_path, "OP", n=80)
    dataset = isolux.load("visogender", tmp_path)
    # A model that says "his" of every judge, and of others what is right.
    gender = dict(dataset.values_of("gender").select("unit_id", "value").rows())
    work = dict(dataset.values_of("occupation").select("unit_id", "value").rows())
    own = {"masculine": "his", "feminine": "her"}
    said = [(k, "his" if work[k] == "judge" else own[gender[k]]) for k in gender]
    pl.DataFrame(said, schema=["id", "label"], orient="row").write_csv(tmp_path / "said.csv")
    ran = run(
        monkeypatch, capsys, "audit", f"visogender:{tmp_path}", "--task", "pronoun_resolution",
        "--target", "gender", "--occupation", "occupation", "--predictions", tmp_path / "said.csv",
        "--by", "gender", "--replicates", "200", "--out", tmp_path / "run",
    )  # fmt: skip
    assert ran.code == 0, ran.err
    values = pl.read_parquet(tmp_path / "run" / "group_metrics.parquet").filter(
        metric="resolution_accuracy", attribute="gender"
    )
    assert dict(values.select("group", "value").rows()) == {"feminine": 0.5, "masculine": 1.0}
