"""Two columns of ids in a row that name two people: refused, or warned about where one is named."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import JoinError
from isolux.core.notes import Caution
from isolux.datasets import load
from isolux.people.attribute_join import join_attributes
from isolux.people.id_consistency import note_conflicting_file_ids
from tests.cli._run import isolux as run

N = 40
IDS = [str(k) for k in range(1, N + 1)]
FILES = [f"val/{k}.jpg" for k in IDS]


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    truth = ["f" if k % 3 else "m" for k in range(N)]
    race = ["A" if k % 2 else "B" for k in range(N)]
    table = pl.DataFrame({"id": IDS, "file": FILES, "gender": truth, "race": race})
    table.write_csv("people.csv")
    return load("table", "people.csv")


def answers(files, name="net.csv", **more):
    pl.DataFrame({"id": IDS, "file": files, "label": "f", **more}).write_csv(name)
    return name


def asked(people, name, **given):
    return note_conflicting_file_ids(people, name, **({"id": None, "id_from": "column"} | given))


def test_columns_that_agree_are_no_news(people):
    assert asked(people, answers(FILES)) == ()
    assert asked(people, answers([f"fairface/{file}" for file in FILES])) == ()
    assert asked(people, answers([f"{file}-crop" for file in FILES])) == ()
    pl.DataFrame({"id": IDS, "label": "f"}).write_csv("alone.csv")
    assert asked(people, "alone.csv") == ()


@pytest.mark.parametrize("prefix", ["", "fairface/"])
def test_rows_of_other_people_are_refused_with_one_of_them(people, prefix):
    name = answers([prefix + file for file in FILES[::-1]])
    with pytest.raises(
        JoinError,
        match=r"(?s)different people: 'id' and 'file'.*40 of 40 rows.*'1' has file '.*val/40\.jpg',"
        r" which is that of '40'.*--prediction-id file",
    ):
        asked(people, name)


def test_one_row_is_enough_to_refuse(people):
    with pytest.raises(JoinError, match="1 of 40 rows name another person"):
        asked(people, answers([FILES[1], *FILES[1:]]))


def test_a_column_that_is_named_is_believed_with_a_warning(people):
    (told,) = asked(people, answers(FILES[::-1]), id="id")
    assert isinstance(told, Caution)
    assert told.startswith("40 of 40 rows name another person by 'file' than by 'id'")
    # Joined by the file, the id is seen to be the number of a row.
    by_file = load("table", "people.csv", id="file")
    (told,) = asked(by_file, "net.csv", id="file")
    assert not isinstance(told, Caution)
    assert told == "'id' numbers rows: net.csv was joined by 'file'."


def test_several_people_of_one_picture_are_no_disagreement(tmp_path):
    table = pl.DataFrame({"id": list("abcd"), "file": ["1.jpg", "1.jpg", "2.jpg", "2.jpg"]})
    table.with_columns(sex=pl.lit("f")).write_csv(tmp_path / "crowd.csv")
    table.with_columns(label=pl.lit("f")).write_csv(tmp_path / "net.csv")
    crowd = load("table", tmp_path / "crowd.csv")
    assert asked(crowd, str(tmp_path / "net.csv")) == ()
    moved = table.with_columns(file=pl.Series(["1.jpg", "2.jpg", "2.jpg", "2.jpg"]))
    moved.with_columns(label=pl.lit("f")).write_csv(tmp_path / "net.csv")
    with pytest.raises(JoinError, match="1 of 4 rows"):
        asked(crowd, str(tmp_path / "net.csv"))


def test_more_attributes_are_held_to_the_same(people):
    pl.DataFrame({"id": IDS, "file": FILES[::-1], "tone": "3"}).write_csv("more.csv")
    with pytest.raises(
        JoinError, match=r"(?s)'id' and 'file'.*more\.csv.*--option attributes_id=file"
    ):
        join_attributes(people, "more.csv")
    notes = join_attributes(people, "more.csv", id="id").notes
    assert any(isinstance(n, Caution) and n.startswith("40 of 40 rows") for n in notes)


def audit(monkeypatch, capsys, *more):
    return run(
        monkeypatch, capsys, "audit", "table:people.csv", "--target", "gender", "--by", "race",
        "--min-units", 1, "--out", "run", "--overwrite", *more,
    )  # fmt: skip


def test_by_the_command_line(people, monkeypatch, capsys):
    draw = np.random.default_rng(1)
    label = [str(x) for x in draw.choice(["f", "m"], N)]
    answers(FILES[::-1], label=label, confidence=[0.9, 0.6] * (N // 2))
    pl.DataFrame({"id": IDS, "label": label}).write_csv("bare.csv")
    done = audit(monkeypatch, capsys, "--predictions", "net.csv")
    assert done.code != 0
    assert "name different people" in done.plain
    done = audit(monkeypatch, capsys, "--predictions", "bare.csv", "--option", "scores=net.csv")
    assert done.code != 0
    assert "name different people" in done.plain
    done = audit(monkeypatch, capsys, "--predictions", "net.csv", "--prediction-id", "id")
    assert done.code == 0, done.err
    assert " ".join(done.out.split()).startswith(
        "WARNING: 40 of 40 rows name another person by 'file'"
    )
