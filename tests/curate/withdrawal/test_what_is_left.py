"""What a withdrawal says of texts that still name someone, and of ids it does not search for."""

from __future__ import annotations

import json

import pytest

from tests.cli._run import isolux as run


def told(done):
    return " ".join(done.out.split())


@pytest.fixture
def noted(tmp_path):
    """Make a table of people, and notes that name three of them."""
    (tmp_path / "d").mkdir()
    ids = ["12345", "José Ñ", "日本", "x", "zz88", "7"]
    (tmp_path / "d" / "people.csv").write_text("subject_id,n\n" + "".join(f"{i},1\n" for i in ids))
    notes = tmp_path / "d" / "notes.txt"
    notes.write_text("nothing\n12345 too\nJosé Ñ came\ncase-12345.png\n日本 here\nid x\n")
    return tmp_path, notes


def test_what_is_left_in_a_text_is_said_once_with_its_lines_and_without_an_id(
    noted, monkeypatch, capsys
):
    folder, notes = noted
    (folder / "l.txt").write_text("12345\nJosé Ñ\n")
    given = ("withdraw", folder / "d", "--list", folder / "l.txt", "--ledger", folder / "c.jsonl")
    done = run(monkeypatch, capsys, *given)
    assert done.code == 1
    said = "it still holds 2 of their ids or file names, in lines 2, 3 and 4"
    assert told(done).count("notes.txt") == told(done).count(said) == 1
    assert not any(one in told(done) for one in ("12345", "José", "'(withdrawn)'"))
    assert "take it out by hand" in told(done)
    shown = run(monkeypatch, capsys, "withdraw", folder / "d", "--prove", "--list",
                folder / "l.txt")  # fmt: skip
    assert "it holds '12345' in lines 2, 3 and 4" in told(shown)  # who asks by --prove sees which
    notes.write_text("nothing\n日本 here\nid x\n")
    done = run(monkeypatch, capsys, *given)
    assert (done.code, "searched for only as whole cells" in told(done)) == (0, False), told(done)


@pytest.mark.parametrize(("ids", "n"), [(["日本"], 1), (["x", "7", "zz88"], 2), (["zz88"], 0)])
def test_ids_that_no_sentence_is_searched_for_are_counted_on_the_screen_and_in_the_receipt(
    noted, monkeypatch, capsys, ids, n
):
    folder, notes = noted
    done = run(monkeypatch, capsys, "withdraw", folder / "d", "--ledger", folder / "c.jsonl",
               *(flag for one in ids for flag in ("--who", one)))  # fmt: skip
    assert done.code == 0, done.err
    assert "日本 here\nid x" in notes.read_text()
    said = f"{'1 id' if n == 1 else f'{n} ids'} could be searched for only as whole cells"
    assert (said in told(done)) is (n > 0)
    receipt = (folder / "withdrawals" / "0001.json").read_text()
    assert json.loads(receipt)["searched"]["ids_not_in_text"] == n
    assert not any(f'"{one}"' in receipt for one in ids)
    proved = run(monkeypatch, capsys, "withdraw", folder / "d", "--prove", "--who", ids[0])
    assert ("only as whole cells" in told(proved)) is (n > 0)
