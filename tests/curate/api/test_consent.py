"""Consent by the command line, and an audit that asks the ledger who withdrew."""

from __future__ import annotations

import polars as pl
import pytest

import isolux
from isolux.core.errors import FileError, TableError
from isolux.io.consent import read_ledger
from isolux_curate.api.consent import append_grants_or_revocations
from tests.cli._run import isolux as run


@pytest.fixture
def asked(tmp_path, monkeypatch, capsys):
    def of(*args):
        return run(monkeypatch, capsys, "curate", *args)

    return of


def test_granted_revoked_and_counted(asked, tmp_path):
    ledger = tmp_path / "c.jsonl"
    some = tmp_path / "ids.txt"
    some.write_text("# first round\ns2\ns3\n")
    done = asked("grant", ledger, "--who", "s1", "--list", some, "--scope", "evaluation,training")
    assert done.code == 0, done.err
    assert "3 rows added" in done.out
    head = done.out.split("head: ")[1].strip()
    assert asked("revoke", ledger, "--who", "s2", "--note", "form 12").code == 0
    told = asked("consent", ledger, "--head", head[:12])
    assert told.code == 0, told.err
    assert "4 rows: hashes and signatures verify" in told.out
    rows = [line.split() for line in told.out.splitlines()]
    assert ["subject", "evaluation", "2", "1", "0"] in rows
    assert ["subject", "publication", "0", "1", "2"] in rows


def test_a_list_in_a_table_is_read_as_a_table(asked, tmp_path):
    ledger, table = tmp_path / "c.jsonl", tmp_path / "subs.csv"
    table.write_text('subject_id,note\ns1,x\n"ab\ncd",y\n')
    done = asked("grant", ledger, "--list", table, "--scope", "evaluation")
    assert done.code == 0, done.err
    assert "2 rows added" in done.out
    assert [row.who for row in read_ledger(ledger).rows] == ["s1", "ab\ncd"]
    assert "2 rows added" in asked("revoke", ledger, "--list", table).out


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("subs.txt", "subject_id\ns1\n", "begins with the name of a column"),
        ("subs.txt", "subject_id\tage\ns1\t4\n", "begins with the name of a column"),
        ("subs.txt", 'age,"subject_id"\n4,s1\n', "begins with the name of a column"),
        ("subs.csv", "s1\ns2\n", "not one column of ids"),  # else s1 would be the column's name
        ("subs.csv", "subject_id,person\ns1,s2\n", "'subject_id' and 'person'"),
        ("subs.csv", "image_id\ns1\n", "none among 1 column"),  # ids of pictures
        ("subs.csv", "subject_id,x\n,1\ns2,1\n", "have no id"),
        ("subs.txt", None, "no such file"),
    ],
)
def test_a_list_that_cannot_be_told_from_a_table_is_refused(asked, tmp_path, name, text, says):
    ledger, listed = tmp_path / "c.jsonl", tmp_path / name
    if text is not None:
        listed.write_text(text)
    done = asked("grant", ledger, "--list", listed, "--scope", "evaluation")
    assert (done.code, says in done.plain) == (2, True), done.plain
    assert not ledger.exists()


def test_a_ledger_is_no_list(asked, tmp_path):
    asked("grant", tmp_path / "c.jsonl", "--who", "s1", "--scope", "evaluation")
    done = asked("grant", tmp_path / "d.jsonl", "--list", tmp_path / "c.jsonl", "--scope",
                 "evaluation")  # fmt: skip
    assert (done.code, "a ledger of consent, and not a list" in done.plain) == (2, True)


def test_a_list_given_again_adds_nothing_and_brings_no_one_back_who_revoked(asked, tmp_path):
    ledger, some = tmp_path / "c.jsonl", tmp_path / "ids.txt"
    some.write_text("s1\ns2\n")
    given = ("grant", ledger, "--list", some, "--scope", "evaluation")
    asked(*given)
    assert "0 rows added" in asked(*given).out
    assert "2 rows added" in asked(*given, "--note", "form 3").out
    asked("revoke", ledger, "--who", "s2")
    assert "0 rows added" in asked("revoke", ledger, "--who", "s2").out
    before = ledger.read_bytes()
    done = asked(*given)
    assert done.code == 2
    assert "1 of 2 people took back what is granted here" in done.plain
    assert ledger.read_bytes() == before
    assert asked(*given, "--note", "form 9", "--again").code == 0
    assert read_ledger(ledger).allows("subject", pl.Series(["s2"]), "evaluation").to_list() == [
        True
    ]


def test_rows_that_were_cut_off_are_found_by_the_head(asked, tmp_path):
    ledger = tmp_path / "c.jsonl"
    asked("grant", ledger, "--who", "s1", "--scope", "evaluation")
    head = asked("revoke", ledger, "--who", "s1").out.split("head: ")[1].strip()
    ledger.write_text(ledger.read_text().splitlines()[0] + "\n")
    assert asked("consent", ledger).code == 0  # nothing in the rows tells
    cut = asked("consent", ledger, "--head", head)
    assert cut.code == 2
    assert "rows were cut off" in cut.plain


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("grant", "--who", "s1"), "what is granted is not said"),
        (("grant", "--who", "s1", "--scope", "selling"), "not a scope of consent"),
        (("grant", "--who", "s1", "--scope", "training", "--kind", "child"), "cannot be used"),
        (("revoke", "--who", "S1"), "are in no row of the ledger"),
        (("grant", "--list", "nothing.txt", "--scope", "training"), "there is no such file"),
    ],
)
def test_what_does_not_fit_is_refused(asked, tmp_path, args, words):
    ledger = tmp_path / "c.jsonl"
    asked("grant", ledger, "--who", "s1", "--scope", "training")
    before = ledger.read_bytes()
    done = asked(args[0], ledger, *args[1:])
    assert done.code == 2
    assert words in done.plain
    assert ledger.read_bytes() == before


def test_an_audit_leaves_out_who_revoked(tmp_path):
    people = tmp_path / "people.csv"
    rows = [f"p{i},s{i // 2},{'ab'[i % 2]},x,{'x' if i % 3 else 'y'}" for i in range(40)]
    people.write_text("\n".join(["id,subject,tone,truth,said", *rows, ""]))
    ledger = tmp_path / "c.jsonl"
    append_grants_or_revocations(ledger, "grant", who=["s1", "s2"], scope=["evaluation"])
    settings = {"target": "truth", "prediction_column": "said", "by": "tone", "replicates": 100}
    everyone = isolux.audit(f"table:{people}", **settings, withdrawn=str(ledger))
    append_grants_or_revocations(ledger, "revoke", who=["s2"], scope=["evaluation"])
    fewer = isolux.audit(f"table:{people}", **settings, withdrawn=str(ledger))
    whole = everyone.run.scores.filter(metric="accuracy").height
    assert fewer.run.scores.filter(metric="accuracy").height == whole - 2
    assert "2 people withdrew" in " ".join(fewer.run.record["notes"])


def test_several_ids_in_one_flag_are_refused(asked, tmp_path):
    done = asked("grant", tmp_path / "c.jsonl", "--who", "s1,s2", "--scope", "training")
    assert done.code == 2
    assert "there are several ids in one --who" in done.plain
    assert not (tmp_path / "c.jsonl").exists()


def test_an_audit_does_not_start_from_half_a_row_and_says_what_it_did_not_check(tmp_path):
    people = tmp_path / "people.csv"
    people.write_text("id,truth,said\n" + "".join(f"p{i},x,{'xy'[i % 2]}\n" for i in range(60)))
    ledger = tmp_path / "c.jsonl"
    append_grants_or_revocations(ledger, "grant", who=["p1", "p2"], scope=["evaluation"])
    (tmp_path / "c.jsonl.key").unlink()
    settings = {"target": "truth", "prediction_column": "said", "by": "said", "replicates": 100}
    done = isolux.audit(f"table:{people}", **settings, withdrawn=str(ledger))
    assert any("Signatures were not checked" in one for one in done.run.record["warnings"])
    with ledger.open("a") as file:
        file.write('{"n": 3, "act": "revoke", "who": "p')
    with pytest.raises(FileError, match="middle of a row"):
        isolux.audit(f"table:{people}", **settings, withdrawn=str(ledger))


def test_a_ledger_that_was_tampered_with_stops_an_audit(tmp_path):
    people = tmp_path / "people.csv"
    people.write_text("id,truth,said\np1,x,x\np2,x,y\n")
    ledger = tmp_path / "c.jsonl"
    append_grants_or_revocations(ledger, "grant", who=["p1", "p2"], scope=["evaluation"])
    ledger.write_text(ledger.read_text().replace("p2", "p3"))
    with pytest.raises(TableError, match="row was changed"):
        isolux.audit(
            f"table:{people}",
            target="truth",
            prediction_column="said",
            by="said",
            withdrawn=str(ledger),
        )
