"""``isolux train fairface``: from a label table to a network that predicts, and what it refuses."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.api._training_people import (
    caution_or_refuse_unreadable,
    list_unreadable_ids,
    select_one_image_per_person,
)
from isolux.api.train_fairface import build_count_notes, count_classes
from isolux.api.train_fairface.training_rows import select_training_rows
from isolux.core.errors import (
    FileError,
    LicenceError,
    OutputError,
    SpecError,
    TableError,
    UnknownNameError,
)
from isolux.core.notes import Caution
from isolux.training import ImageScan, build_square_resize
from tests.api._faces import write_faces
from tests.cli._run import isolux as run


def networks():
    pytest.importorskip("torch", reason="PYTORCH IS ABSENT: no network was trained")
    pytest.importorskip("safetensors", reason="SAFETENSORS IS ABSENT: no network was trained")


@pytest.fixture(scope="module")
def labels(tmp_path_factory):
    return write_faces(tmp_path_factory.mktemp("faces"))


def command(labels, out, *more):
    return ("train", "fairface", labels, "--images", labels.parent, "--out", out, "--side", "32",
            "--batch", "16", "--held-out", "0.25", *more)  # fmt: skip


def trained(monkeypatch, capsys, labels, out, *more):
    return run(monkeypatch, capsys, *command(labels, out, *more))


def weights_of(folder):
    from safetensors.torch import load_file

    return load_file(folder / "fairface.safetensors")


def alike(one, other):
    return one.keys() == other.keys() and all(bool((one[k] == other[k]).all()) for k in one)


# What is refused before any network is made.


def test_a_benchmark_is_refused_with_its_licence_before_its_files_are_read(
    monkeypatch, capsys, tmp_path
):
    for data in ("facet:gone.csv", "fhibe:gone", "casual_conversations:gone"):
        ran = run(monkeypatch, capsys, "train", "fairface", data, "--out", tmp_path / "net")
        assert ran.code != 0
        assert "may not be used to train a model" in ran.plain
        assert "found:" in ran.plain
        assert not (tmp_path / "net").exists()
    with pytest.raises(LicenceError, match="not for their training"):
        isolux.train_fairface("casual_conversations:gone", out=tmp_path / "net")


def changed(labels, tmp_path, **columns):
    frame = pl.read_csv(labels, infer_schema=False).with_columns(**columns)
    frame.write_csv(tmp_path / "labels.csv")
    return tmp_path / "labels.csv"


def first_is(value, name):
    return pl.when(pl.int_range(pl.len()) == 0).then(pl.lit(value)).otherwise(pl.col(name))


def test_an_unknown_value_is_named_with_its_row(labels, tmp_path):
    table = changed(labels, tmp_path, race=first_is("Martian", "race"))
    with pytest.raises(TableError, match="does not declare") as refused:
        isolux.train_fairface(str(table), out=tmp_path / "net", images=labels.parent)
    assert "'Martian'" in str(refused.value)
    assert "row 1" in str(refused.value)


def test_one_class_alone_is_nothing_to_learn(labels, tmp_path):
    table = changed(labels, tmp_path, gender=pl.lit("Female"))
    with pytest.raises(SpecError, match="nothing to tell apart in 'gender'"):
        isolux.train_fairface(str(table), out=tmp_path / "net", images=labels.parent)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"side": 16}, "'side'"),
        ({"held_out": 0.9}, "'held_out'"),
        ({"rows": 1}, "'rows'"),
        ({"learning_rate": -1.0}, "'learning_rate'"),
        ({"batch": 1}, "'batch'"),
    ],
)
def test_settings_that_cannot_be_used(labels, tmp_path, settings, words):
    with pytest.raises(SpecError, match=words):
        isolux.train_fairface(str(labels), out=tmp_path / "net", **settings)


def test_attributes_that_are_not_there_or_are_ids(labels, tmp_path):
    with pytest.raises(UnknownNameError, match="hair"):
        isolux.train_fairface(str(labels), out=tmp_path / "net", balance=["race,hair"])
    table = changed(labels, tmp_path, number=pl.int_range(pl.len()).cast(pl.String))
    with pytest.raises(SpecError, match="nearly as many values as people"):
        isolux.train_fairface(str(table), out=tmp_path / "net", target=["number"])


def test_a_folder_of_other_things_is_left_alone(labels, tmp_path):
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "thesis.txt").write_text("mine")
    for overwrite in (False, True):
        with pytest.raises(OutputError):
            isolux.train_fairface(str(labels), out=tmp_path / "net", overwrite=overwrite)
    assert (tmp_path / "net" / "thesis.txt").read_text() == "mine"


# Who is learnt from.


def test_heads_are_fairfaces_own_in_their_order_and_unlabelled_people_wait(labels, tmp_path):
    table = changed(labels, tmp_path, age=first_is(None, "age"))
    people = select_training_rows(isolux.load("fairface", table), (), ())
    assert list(people.classes) == ["race", "gender", "age"]
    assert [len(one) for one in people.classes.values()] == [7, 2, 9]
    assert people.labels()[0, 2] == -1
    assert people.labels()[1:].min() >= 0
    assert "1 of 48 have no age" in people.notes[0]
    other = select_training_rows(isolux.load("fairface", labels), (), ())
    assert people.digest() != other.digest()


def test_years_become_the_nine_ranges(tmp_path):
    # UTKFace's names say years: 2 is 0-2, 3 begins 3-9, 70 begins "more than 70".
    years = [0, 2, 3, 9, 10, 19, 20, 69, 70, 116]
    for k, age in enumerate(years):
        (tmp_path / f"{age}_{k % 2}_{k % 3}_2017{k}.jpg").touch()
    people = select_training_rows(isolux.load("utkface", tmp_path), (), ())
    said = people.frame.with_columns(
        years=pl.col("instance_id").str.extract(r"^(\d+)_").cast(pl.Int64)
    ).sort("years")
    assert said["age"].to_list() == [
        "0-2", "0-2", "3-9", "3-9", "10-19", "10-19", "20-29", "60-69", "more than 70",
        "more than 70",
    ]  # fmt: skip
    assert len(people.classes["age"]) == 9
    assert people.classes["race"] == ("Asian", "Black", "White")  # not FairFace's seven
    assert people.classes["gender"] == ("Male", "Female")


def people_of(folder, races, genders):
    """Load a table of so many people."""
    table = pl.DataFrame({"id": range(len(races)), "race": races, "gender": genders})
    table.write_csv(folder / "people.csv")
    return isolux.load("table", folder / "people.csv")


def test_counts_before_and_after_a_balance_by_hand(tmp_path):
    # 6 White men, 2 White women, 3 Black men, 1 Black woman: 12 faces, 4 cells, 3 draws of each.
    races = ["White"] * 8 + ["Black"] * 4
    genders = ["Male"] * 6 + ["Female"] * 2 + ["Male"] * 3 + ["Female"]
    people = select_training_rows(people_of(tmp_path, races, genders), (), ("race*gender",))
    counts = count_classes(people, np.arange(12))
    alone = {row[:2]: row[2:] for row in counts.iter_rows()}
    assert alone["race", "White"] == (8, 6)
    assert alone["race", "Black"] == (4, 6)
    assert alone["gender", "Male"] == (9, 6)
    assert alone["gender", "Female"] == (3, 6)
    assert alone["race", "Indian"] == (0, 0)
    assert alone["race*gender", "White × Male"] == (6, 3)
    assert alone["race*gender", "Black × Female"] == (1, 3)
    plain = count_classes(
        select_training_rows(people_of(tmp_path, races, genders), (), ()), np.arange(12)
    )
    assert (plain["before"] == plain["after"]).all()


def test_rare_combinations_that_are_shown_again_and_again_are_told(tmp_path):
    races, genders = ["White"] * 60 + ["Black"] * 2, ["Male", "Female"] * 31
    people = select_training_rows(people_of(tmp_path, races, genders), (), ("race", "gender"))
    notes = build_count_notes(people, count_classes(people, np.arange(62)))
    cautions = [note for note in notes if isinstance(note, Caution)]
    # 62 over 4 cells are 15 draws of each; one Black man is shown 15 times.
    assert any("Black × Male (1 faces, 15 times)" in note for note in cautions)
    assert any("fewer than 10 faces" in note and "Black 2" in note for note in cautions)
    assert any("4 of 4 combinations of race × gender" in note for note in notes)


def test_a_few_broken_pictures_are_left_out_and_many_are_refused(tmp_path):
    labels = write_faces(tmp_path, 48)
    (tmp_path / "train" / "20.png").write_bytes(b"no picture")
    (tmp_path / "train" / "31.png").unlink()
    dataset = isolux.load("fairface", labels, images=tmp_path)
    ids = select_training_rows(dataset, (), ()).frame["instance_id"]
    looked = select_one_image_per_person(dataset, ids, "image", build_square_resize(32), 2).scan()
    assert [one for one, _ in list_unreadable_ids(ids, looked)] == ["train/20.png", "train/31.png"]
    (told,) = caution_or_refuse_unreadable(ids, looked, "fairface")
    assert isinstance(told, Caution)
    assert "2 of 48 pictures cannot be read and are left out: train/20.png (this is not" in told
    assert "train/31.png (no such picture)" in told
    lost = ImageScan(looked.hashes, ("no such picture",) * 3 + looked.reasons[3:])
    with pytest.raises(FileError, match="5 of 48 pictures cannot be learnt from"):
        caution_or_refuse_unreadable(ids, lost, "fairface")


# What is trained.


def test_it_says_counts_epochs_and_what_it_is_and_the_network_predicts(
    labels, monkeypatch, capsys, tmp_path
):
    networks()
    net = tmp_path / "net"
    ran = trained(monkeypatch, capsys, labels, net, "--epochs", "2", "--balance", "race,gender",
                  "--learning-rate", "0.002")  # fmt: skip
    assert ran.code == 0, ran.err
    assert "36 faces are learnt from, 12 are held out" in ran.out
    assert "White" in ran.out
    assert " → " in ran.out
    assert "epoch 2 of 2: loss" in ran.out
    assert "instrument for measuring datasets" in ran.out
    assert "Those held out chose the epoch" in ran.out
    record = json.loads((net / "training.json").read_text())
    assert record["recipe"]["balance"] == ["race", "gender"]
    assert [len(one) for one in record["heads"].values()] == [7, 2, 9]
    counts = pl.read_csv(net / "classes.csv")
    cells = counts.filter(pl.col("attribute") == "race*gender", pl.col("before") > 0)
    assert cells["after"].n_unique() == 1
    said = run(
        monkeypatch, capsys, "predict", f"fairface:{labels}", "--images", labels.parent,
        "--model", f"fairface:{net}", "--model-option", "answers=gender", "--out", tmp_path / "g",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert "not to be acted on" in said.out
    answers = pl.read_parquet(tmp_path / "g" / "predictions.parquet")
    assert answers.height == 96
    assert set(answers["label"]) == {"Male", "Female"}
    sums = answers.group_by("instance_id").agg(pl.col("score").sum())
    assert np.allclose(sums["score"], 1.0)
    unasked = run(
        monkeypatch, capsys, "predict", f"fairface:{labels}", "--images", labels.parent,
        "--model", f"fairface:{net}", "--out", tmp_path / "x",
    )  # fmt: skip
    assert "answers=race, gender, age or embeddings" in unasked.plain


def test_killed_after_an_epoch_and_resumed_it_is_the_uninterrupted_training(
    labels, monkeypatch, capsys, tmp_path
):
    networks()
    more = ("--epochs", "2", "--flip", "--balance", "race")
    assert trained(monkeypatch, capsys, labels, tmp_path / "whole", *more).code == 0
    line = [sys.executable, "-m", "isolux", *map(str, command(labels, tmp_path / "cut", *more))]
    child = subprocess.Popen(line, env=dict(os.environ), stdout=subprocess.PIPE, text=True)
    for said in child.stdout:
        if said.startswith("epoch 1"):  # said after its checkpoint stands
            child.send_signal(signal.SIGKILL)
            break
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    assert not (tmp_path / "cut" / "fairface.safetensors").exists()
    unfinished = run(
        monkeypatch, capsys, "predict", f"fairface:{labels}", "--images", labels.parent, "--model",
        f"fairface:{tmp_path / 'cut'}", "--model-option", "answers=race", "--out", tmp_path / "x",
    )  # fmt: skip
    assert "this training has not finished" in unfinished.plain
    resumed = trained(monkeypatch, capsys, labels, tmp_path / "cut", *more)
    assert resumed.code == 0, resumed.err
    assert "epoch 1 of 2" not in resumed.out
    assert "epoch 2 of 2" in resumed.out
    assert alike(weights_of(tmp_path / "whole"), weights_of(tmp_path / "cut"))


def test_a_resumed_training_refuses_other_labels_pictures_and_recipes(
    monkeypatch, capsys, tmp_path
):
    networks()
    labels, net = write_faces(tmp_path / "faces", 24), tmp_path / "net"
    assert trained(monkeypatch, capsys, labels, net, "--epochs", "1").code == 0
    before = weights_of(net)
    for more, words in (
        (("--seed", "5"), "whose first weights differed"),
        (("--learning-rate", "0.01"), "whose recipe differed"),
        (("--target", "race"), "whose heads differed"),
    ):
        ran = trained(monkeypatch, capsys, labels, net, "--epochs", "2", *more)
        assert ran.code != 0
        assert words in ran.plain
    other = write_faces(tmp_path / "faces", 24, seed=1)  # other pictures, and so other labels
    assert "whose labels differed" in trained(monkeypatch, capsys, other, net).plain
    same = write_faces(tmp_path / "faces", 24)
    face = same.parent / "train" / "3.png"
    face.write_bytes((same.parent / "train" / "4.png").read_bytes())
    ran = trained(monkeypatch, capsys, same, net, "--epochs", "2")
    assert "pictures have changed since this training began" in ran.plain
    assert "1 of 24" in ran.plain
    assert alike(before, weights_of(net))
    again = trained(monkeypatch, capsys, same, net, "--epochs", "1", "--overwrite")
    assert again.code == 0, again.err
    assert not alike(before, weights_of(net))


def test_first_weights_of_another_network_are_refused(labels, monkeypatch, capsys, tmp_path):
    networks()
    import torch
    from safetensors.torch import save_file

    save_file({"conv1.weight": torch.zeros(3)}, tmp_path / "other.safetensors")
    ran = trained(monkeypatch, capsys, labels, tmp_path / "n", "--weights",
                  tmp_path / "other.safetensors")  # fmt: skip
    assert "weights of another network" in ran.plain
    (tmp_path / "net.pt").write_bytes(b"pickled")
    ran = trained(monkeypatch, capsys, labels, tmp_path / "n", "--weights", tmp_path / "net.pt")
    assert "may be a pickle" in ran.plain
    ran = trained(monkeypatch, capsys, labels, tmp_path / "n", "--device", "cuda:9")
    assert "no such device" in ran.plain
    assert not (tmp_path / "n").exists()


def test_without_pytorch_it_says_what_to_install(labels, monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "torch", None)
    ran = trained(monkeypatch, capsys, labels, tmp_path / "net")
    assert ran.code != 0
    assert "pip install 'isolux[train]'" in ran.plain
