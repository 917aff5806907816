"""A run's directory: whole or not there, one writer at a time, shards by content."""

from __future__ import annotations

import os
import sys

import polars as pl
import pytest

from isolux.core.errors import FileError, OutputError
from isolux.engine import ShardStore
from tests.engine._painted import Counting, paint, run


def test_something_else_is_left_as_it_is(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"(?s)contains something else.*predict.json"):
        run(paint(tmp_path / "in", 1), tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "mine"


def test_two_commands_cannot_fill_one_directory(tmp_path):
    store = ShardStore(tmp_path / "out")
    with (
        store.lock(),
        pytest.raises(OutputError, match="another command is predicting into this directory"),
        ShardStore(tmp_path / "out").lock(),
    ):
        pass
    with ShardStore(tmp_path / "out").lock():
        pass  # once the first has let go


def test_a_shard_that_lost_its_bytes_is_done_again(tmp_path):
    people, net = paint(tmp_path / "in", 8), Counting()
    run(people, tmp_path / "out", net)
    shard = min((tmp_path / "out" / "shards").iterdir())
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    net.batches.clear()
    _, ran, _ = run(people, tmp_path / "out", net)
    assert (ran.n_computed, net.shown) == (1, 4)
    assert shard.read_bytes() == whole
    shard.write_bytes(whole.replace(b"\x28\xb5\x2f\xfd", bytes(4)))  # no frame of zstd is one
    _, ran, _ = run(people, tmp_path / "out", net)
    assert ran.n_computed == 1
    assert shard.read_bytes() == whole


def test_what_a_killed_command_was_writing_goes(tmp_path):
    people = paint(tmp_path / "in", 8)
    run(people, tmp_path / "out")
    left = tmp_path / "out" / "shards" / ".000001-00.parquet.new-0a1b2c3d"
    left.write_bytes(b"half")
    run(people, tmp_path / "out")
    assert not left.exists()


def test_answers_that_are_not_complete_are_not_read(tmp_path):
    people = paint(tmp_path / "in", 8)
    asked = iter([False, True])
    run(people, tmp_path / "out", stop=lambda: next(asked))
    with pytest.raises(FileError, match=r"(?s)not complete.*1 of 2 shards.*predict --resume"):
        ShardStore(tmp_path / "out").read_all()
    with pytest.raises(FileError, match="no answers were predicted here"):
        ShardStore(tmp_path / "nowhere").read_record()


@pytest.mark.parametrize("name", ["predictions.parquet", "inferences.parquet"])
def test_damaged_answers_are_refused_by_name(tmp_path, name):
    ShardStore(tmp_path).write_record({"state": "finished", "shards": 1})
    for one in ("predictions.parquet", "inferences.parquet"):
        pl.DataFrame({"image_id": ["a"]}).write_parquet(tmp_path / one)
    assert ShardStore(tmp_path).read_all().predictions.height == 1
    (tmp_path / name).write_bytes(b"PAR1 and nothing more")
    with pytest.raises(FileError, match=name):
        ShardStore(tmp_path).read_all()


@pytest.mark.skipif(sys.platform == "win32", reason="a pipe of POSIX")
def test_a_record_that_is_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "predict.json")
    with pytest.raises(FileError, match="neither a file nor a folder"):
        ShardStore(tmp_path).read_record()
