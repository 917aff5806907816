"""The ledger of consent: what stands, what is found when rows are touched, writers that die."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from isolux.core.errors import FileError, OutputError, SpecError, TableError
from isolux.core.notes import Caution
from isolux.io.consent import (
    append_consent,
    compute_current_consent,
    is_ledger,
    list_revoked,
    read_ledger,
)


@pytest.fixture
def ledger(tmp_path):
    path = tmp_path / "consent.jsonl"
    append_consent(path, "grant", "subject", ["s1", "s2", "s3"], ["evaluation", "training"])
    append_consent(path, "revoke", "subject", ["s2"], ["training"], note="form 12")
    append_consent(path, "grant", "copyright", ["p1"], ["publication"])
    return path


def lines(path):
    return path.read_text().splitlines()


def test_the_last_act_of_each_scope_stands(ledger):
    append_consent(ledger, "revoke", "subject", ["s3"], ["evaluation", "training", "publication"])
    append_consent(ledger, "grant", "subject", ["s3"], ["evaluation"])
    rows = read_ledger(ledger).rows
    assert compute_current_consent(rows).rows() == [
        ("subject", "s1", True, True, None), ("subject", "s2", True, False, None),
        ("subject", "s3", True, False, False), ("copyright", "p1", None, None, True),
    ]  # fmt: skip
    assert list_revoked(rows) == frozenset()
    assert list_revoked(rows, "training") == {"s2", "s3"}


def test_an_annotator_who_revokes_takes_no_photo_along(tmp_path):
    path = tmp_path / "c.jsonl"
    append_consent(path, "grant", "annotator", ["w1"], ["evaluation"])
    append_consent(path, "revoke", "annotator", ["w1"], ["evaluation"])
    assert list_revoked(read_ledger(path).rows) == frozenset()


@pytest.mark.parametrize(
    ("field", "value"),
    [("who", "s9"), ("act", "revoke"), ("scopes", ["evaluation"]), ("at", "2020-01-01T00:00:00Z"),
     ("note", "x")],
)  # fmt: skip
def test_a_row_that_was_changed_is_found(ledger, field, value):
    rows = lines(ledger)
    rows[1] = json.dumps(json.loads(rows[1]) | {field: value})
    ledger.write_text("\n".join(rows) + "\n")
    with pytest.raises(TableError, match=r"(?s)row was changed.*row 2"):
        read_ledger(ledger)


def test_a_row_that_is_changed_and_hashed_anew_is_found_by_its_signature(ledger):
    from isolux.io.consent.rows import parse_row, sign_row

    rows = lines(ledger)
    last = json.loads(rows[-1]) | {"who": "p9"}
    forged = sign_row(parse_row(json.dumps(last), 5, ""), b"another key")
    ledger.write_text("\n".join([*rows[:-1], forged.to_json_line()]) + "\n")
    with pytest.raises(TableError, match=r"(?s)signature does not verify.*row 5"):
        read_ledger(ledger)


@pytest.mark.parametrize("order", [[0, 2, 1, 3, 4], [0, 2, 3, 4], [0, 1, 1, 2, 3, 4]])
def test_rows_moved_taken_out_or_put_in_are_found(ledger, order):
    rows = lines(ledger)
    ledger.write_text("\n".join(rows[i] for i in order) + "\n")
    with pytest.raises(TableError, match="taken out, put in or moved"):
        read_ledger(ledger)
    with pytest.raises(TableError):  # and nothing is added to it
        append_consent(ledger, "grant", "subject", ["s7"], ["training"])


def test_a_writer_that_was_stopped_in_a_row_leaves_what_was_there(ledger):
    whole = lines(ledger)
    with ledger.open("a") as file:
        file.write('{"n": 6, "at": "2026-')
    found = read_ledger(ledger)
    assert len(found.rows) == 5
    assert any(isinstance(note, Caution) and "middle of row 6" in note for note in found.notes)
    append_consent(ledger, "revoke", "subject", ["s1"], ["evaluation"])
    assert lines(ledger)[:5] == whole
    assert list_revoked(read_ledger(ledger).rows) == {"s1"}


def test_without_the_key_the_chain_is_checked_and_that_is_said(ledger):
    key = ledger.with_name("consent.jsonl.key")
    assert key.stat().st_mode & 0o077 == 0
    key.rename(ledger.with_name("elsewhere"))
    found = read_ledger(ledger)
    assert not found.has_checked_signatures
    assert any("Signatures were not checked" in note for note in found.notes)
    with pytest.raises(OutputError, match="key that signed this ledger"):
        append_consent(ledger, "grant", "subject", ["s9"], ["training"])
    assert read_ledger(ledger, key=ledger.with_name("elsewhere")).has_checked_signatures


def _add(path, who):
    append_consent(path, "grant", "subject", [f"{who}-{k}" for k in range(5)], ["evaluation"])


def test_writers_at_once_lose_nothing(tmp_path):
    path = tmp_path / "c.jsonl"
    append_consent(path, "grant", "subject", ["first"], ["evaluation"])
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        pool.starmap(_add, [(path, f"w{i}") for i in range(12)])
    rows = read_ledger(path).rows
    assert len(rows) == 61
    assert len({row.who for row in rows}) == 61


def test_killed_writers_leave_a_whole_ledger(tmp_path):
    """A writer is killed in the middle of its work, five times; the chain verifies each time."""
    path = tmp_path / "c.jsonl"
    append_consent(path, "grant", "subject", ["first"], ["evaluation"])
    code = (
        "from isolux.io.consent import append_consent\n"
        f"for k in range(10_000): append_consent({str(path)!r}, 'grant', 'subject', [f's{{k}}'],"
        " ['evaluation'])\n"
    )
    seen = 1
    for _ in range(5):
        child = subprocess.Popen([sys.executable, "-c", code])
        deadline = time.monotonic() + 60
        while len(lines(path)) < seen + 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
        now = len(read_ledger(path).rows)
        assert now >= seen + 3
        seen = now
        append_consent(path, "grant", "subject", ["next"], ["training"])
        seen += 1
    assert len(read_ledger(path).rows) == seen


def test_a_full_disk_adds_nothing(ledger, monkeypatch):
    before = ledger.read_bytes()

    def full(_descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OutputError, match="No space left"):
        append_consent(ledger, "revoke", "subject", ["s1"], ["evaluation"])
    assert ledger.read_bytes() == before


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("", FileError, "no rows"),
        ("id,name\n", TableError, "not one of a ledger"),
        ('{"n": 1}\n', TableError, "without at, act"),
    ],
)
def test_what_is_no_ledger_is_refused(tmp_path, text, error, words):
    path = tmp_path / "c.jsonl"
    path.write_text(text)
    assert not is_ledger(path)
    with pytest.raises(error, match=words):
        read_ledger(path)


def test_a_row_names_a_person_and_a_scope(tmp_path):
    for who, scopes in (([], ["training"]), ([" "], ["training"]), (["s1"], [])):
        with pytest.raises(SpecError, match="a person and a scope"):
            append_consent(tmp_path / "c.jsonl", "grant", "subject", who, scopes)
    assert not (tmp_path / "c.jsonl").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="pipes of POSIX")
def test_a_pipe_is_no_ledger_and_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "gone.csv")
    assert not is_ledger(tmp_path / "gone.csv")


def test_a_whole_last_row_counts_though_its_line_does_not_end(ledger):
    append_consent(ledger, "revoke", "subject", ["s3"], ["evaluation"])
    ledger.write_text(ledger.read_text().removesuffix("\n"))
    found = read_ledger(ledger)
    assert list_revoked(found.rows) == {"s3"}
    assert not found.has_unfinished_row
    append_consent(ledger, "grant", "subject", ["s4"], ["training"])
    assert list_revoked(read_ledger(ledger).rows) == {"s3"}
    assert len(lines(ledger)) == 7


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"who": "s2"', '"who": "s1", "who": "s2"'),
        ('"act": "revoke"', '"act": "grant", "act": "revoke"'),
        ('"act": "revoke"', '"act":  "revoke"'),
        ('"who": "s2"', '"who": "\\u00732"'),
        ("\n", "\r\n"),
        ("\n", "\n\n"),
    ],
)
def test_a_row_that_only_reads_the_same_is_found(ledger, old, new):
    ledger.write_bytes(ledger.read_text().replace(old, new).encode())
    with pytest.raises(TableError):
        read_ledger(ledger)


def test_characters_behind_the_last_row_are_found(ledger):
    with ledger.open("a") as file:
        file.write("x}")
    assert read_ledger(ledger).has_unfinished_row
    with ledger.open("a") as file:
        file.write("\n")
    with pytest.raises(TableError, match="not one of a ledger"):
        read_ledger(ledger)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
def test_a_row_that_is_nested_without_end_is_named(ledger, text):
    ledger.write_text(text + "\n" + ledger.read_text())
    with pytest.raises(TableError, match="not one of a ledger of consent"):
        read_ledger(ledger)


@pytest.mark.parametrize("field", ["previous", "hash", "signature"])
def test_a_hash_of_other_signs_is_named(ledger, field):
    first = {**json.loads(lines(ledger)[0]), field: "é" * 64}
    ledger.write_text("\n".join([json.dumps(first), *lines(ledger)[1:]]) + "\n")
    with pytest.raises(TableError, match=f"the field '{field}'"):
        read_ledger(ledger)
