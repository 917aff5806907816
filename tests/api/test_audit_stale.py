"""Answers that were kept: pictures, tables and networks that changed after them are told first."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from isolux.api.audit import run_audit
from isolux.api.predict import run_predict
from isolux.core.errors import JoinError
from isolux.core.spec import parse_spec

N = 60
NETS = """
from pathlib import Path

def net(*, weights=None):
    edge = 100.0 if weights is None else float(Path(weights).read_text())
    return lambda pictures: ["day" if one.mean() > edge else "night" for one in pictures]

def read_inside():
    edge = float(Path("inside.txt").read_text())
    return lambda pictures: ["day" if one.mean() > edge else "night" for one in pictures]
"""


def grey(name, value):
    Image.fromarray(np.full((6, 8, 3), value, np.uint8)).save(name)


@pytest.fixture
def people(tmp_path, monkeypatch):
    """60 grey pictures, bright ones by day; the folder is the working folder."""
    monkeypatch.chdir(tmp_path)
    lines = ["id,light,truth"]
    for k in range(N):
        grey(f"{k:03}.png", 200 - k % 7 if k % 2 else 20 + k % 7)
        lines.append(f"{k:03}.png,{'ab'[k % 3 == 0]},{'day' if k % 2 else 'night'}")
    Path("people.csv").write_text("\n".join(lines) + "\n")
    Path("isolux_stale_nets.py").write_text(NETS)
    Path("edge.txt").write_text("100")
    Path("inside.txt").write_text("100")
    sys.modules.pop("isolux_stale_nets", None)
    yield "table:people.csv"
    sys.modules.pop("isolux_stale_nets", None)


def predicted(people, factory="net", **more):
    model = f"python:isolux_stale_nets:{factory}"
    spec = parse_spec({"data": people, "model": model, "answers": "kept", **more})
    return run_predict(spec)


def audited(people, **more):
    common = {"data": people, "by": ("light",), "target": "truth", "replicates": 100}
    record = run_audit(parse_spec({**common, **more})).run.record
    return record["warnings"], record["notes"]


def test_answers_about_what_is_there_are_read_without_a_word(people):
    predicted(people, model_option=("settings=weights=edge.txt",))
    assert audited(people, predictions="kept")[0] == []


def test_a_picture_that_was_replaced_is_told_first(people):
    predicted(people)
    grey("004.png", 180)
    said, _ = audited(people, predictions="kept")
    assert said[0].startswith("1 of 60 pictures changed after the model saw them (004.png)")
    assert "isolux predict --resume" in said[0]
    predicted(people)  # the same command does what changed again
    assert audited(people, predictions="kept")[0] == []


def test_answers_about_other_pictures_are_refused(people):
    predicted(people)
    for k in range(0, N, 2):
        shutil.copy("001.png", f"{k:03}.png")
    with pytest.raises(JoinError, match=r"(?s)about other pictures.*30 of 60 pictures differ"):
        audited(people, predictions="kept")


def test_pictures_that_are_away_are_a_note(people):
    predicted(people)
    Path("010.png").unlink()
    said, notes = audited(people, predictions="kept")
    assert said == []
    assert any("1 of 60 pictures that the model saw are not there: 010.png" in n for n in notes)
    for k in range(N):
        Path(f"{k:03}.png").unlink(missing_ok=True)
    said, notes = audited(people, predictions="kept")
    assert said == []
    assert any(n.startswith("The pictures are not at hand") for n in notes)


@pytest.mark.parametrize("file", ["edge.txt", "isolux_stale_nets.py"])
def test_a_network_that_changed_is_told_first(people, file):
    predicted(people, model_option=("settings=weights=edge.txt",))
    Path(file).write_text(Path(file).read_text() + "\n")
    said, _ = audited(people, predictions="kept")
    assert said[0].startswith(f"{file} changed after python:isolux_stale_nets:net gave these")


def test_a_table_that_changed_is_a_note_for_whole_pictures(people):
    predicted(people)
    Path("people.csv").write_text(Path("people.csv").read_text().replace("a,day", "b,day", 1))
    said, notes = audited(people, predictions="kept")
    assert said == []
    assert any(note.startswith("people.csv changed after the model answered") for note in notes)


def test_reuse_is_said_and_first_where_weights_are_not_known(people):
    model = "python:isolux_stale_nets:read_inside"
    first, _ = audited(people, model=model, answers="kept")
    assert first == []
    Path("inside.txt").write_text("300")  # now everything is night, and no one can tell
    said, _ = audited(people, model=model, answers="kept")
    assert said[0].startswith("60 of 60 pictures were answered before, in ")
    assert "nothing says whether the weights of python:isolux_stale_nets:read_inside" in said[0]


def test_reuse_of_known_weights_is_a_note_and_new_ones_are_run(people):
    given = {"model": "python:isolux_stale_nets:net", "answers": "kept",
             "model_option": ("settings=weights=edge.txt",)}  # fmt: skip
    audited(people, **given)
    said, notes = audited(people, **given)
    assert said == []
    assert any("60 of 60 pictures were answered before" in note for note in notes)
    Path("edge.txt").write_text("300")
    _, notes = audited(people, **given)
    assert not any("answered before" in note for note in notes)


def test_people_without_an_id_are_judged_by_the_model_that_looked_at_them(people):
    """The rows that were looked at are those that are judged, so their numbers are ids."""
    table = pl.read_csv("people.csv").rename({"id": "image"})
    table.write_csv("plain.csv")
    model = "python:isolux_stale_nets:net"
    spec = {"by": ("light",), "target": "truth", "replicates": 100, "model": model}
    run = run_audit(parse_spec({"data": "table:people.csv", **spec})).run
    plain = run_audit(parse_spec({"data": "table:plain.csv", **spec})).run
    assert plain.group_metrics.equals(run.group_metrics)
