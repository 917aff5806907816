"""No spelling of a withdrawn id is printed or written, in notes or in errors."""

from __future__ import annotations

import polars as pl
import pytest

from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux.core.notes import Caution
from isolux.people.redaction import redact_errors_in_block, redact_ids
from tests.cli._run import isolux

IDS = [f"ZQX{i:04d}KK" for i in range(120)]


@pytest.mark.parametrize(
    ("listed", "written"),
    [
        ("ZQX0000KK", "ZQX0000KK_crop1.jpg"),
        ("ZQX0000KK", "test-ZQX0000KK"),
        ("ZQX0000KK", "zqx0000kk"),
        ("ZQX0000KK", "ZQX-0000-KK"),
        ("ZQX0000KK", "faces/zqx0KK.png"),
        ("000007", "7"),
        ("7", "000007.jpg"),
        ("90007", "90007.0"),
        ("é07", "e\u030107"),
    ],
)
def test_an_id_that_is_quoted_in_another_spelling_is_blotted(listed, written):
    for mark in "'\"":
        note = Caution(f"1 of 120 ids was left out: {mark}{written}{mark}.")
        (said,) = redact_ids([note], frozenset({listed}))
        assert said == f"1 of 120 ids was left out: {mark}(withdrawn){mark}."
        assert isinstance(said, Caution)


def test_quoted_words_that_are_no_id_stay():
    notes = ["'race' has 3 values: 'a 1', 'b 2'; \"it's\" 7 of 9.", "no 'ZQX0001KK' here"]
    assert redact_ids(notes, frozenset({"ZQX0000KK", "19"})) == notes


def _columns(monkeypatch, capsys, folder, ids, predicted, listed):
    """Audit people of these ids, less one who withdrew; return all that is said and written."""
    n = len(ids)
    race, truth = (["A", "B"] * n)[:n], (["x", "x", "y"] * n)[:n]
    people = pl.DataFrame({"id": ids, "race": race, "truth": truth})
    people.write_csv(folder / "people.csv")
    answers = {"id": predicted, "answer": (["x", "y"] * n)[: len(predicted)]}
    pl.DataFrame(answers).write_csv(folder / "answers.csv")
    (folder / "gone.txt").write_text(f"{listed}\n", encoding="utf-8")
    done = isolux(
        monkeypatch, capsys, "audit", f"table:{folder / 'people.csv'}", "--id", "id", "--target",
        "truth", "--predictions", folder / "answers.csv", "--prediction-column", "answer", "--by",
        "race", "--metric", "accuracy", "--replicates", "100", "--withdrawn", folder / "gone.txt",
        "--out", folder / "run",
    )  # fmt: skip
    written = [
        p.read_bytes() for p in (folder / "run").rglob("*") if p.suffix in {".json", ".html"}
    ]
    return done, done.out + done.err + b"".join(written).decode()


@pytest.mark.parametrize(
    "written", ["ZQX0000KK_crop1.jpg", "zqx0000kk", "test-ZQX0000KK", " ZQX0000KK ", "Ann Example"]
)
def test_answers_about_strangers_are_counted_and_not_named(monkeypatch, capsys, tmp_path, written):
    done, said = _columns(monkeypatch, capsys, tmp_path, IDS, [written, *IDS[1:]], IDS[0])
    assert done.code == 0, done.err
    assert "1 of 120 ids in the predictions" in " ".join(said.split())
    assert written.strip().casefold() not in said.casefold()


def test_zeros_before_a_number_hide_no_one(monkeypatch, capsys, tmp_path):
    ids = [f"{i + 7:06d}" for i in range(120)]
    done, said = _columns(monkeypatch, capsys, tmp_path, ids, ["7", *ids[1:]], ids[0])
    assert done.code == 0, done.err
    assert "'7'" not in said
    assert "&#39;7&#39;" not in said


def test_an_error_about_their_rows_names_rows_alone(monkeypatch, capsys, tmp_path):
    twice = [*IDS, IDS[7]]
    done, said = _columns(monkeypatch, capsys, tmp_path, twice, IDS, IDS[7])
    assert done.code == 2
    assert "in rows 8 and 121" in said
    assert IDS[7] not in said
    done, said = _columns(monkeypatch, capsys, tmp_path, IDS, ["ZQ7", "ZQ8", "ZQ9"], IDS[7])
    assert done.code == 2
    assert "predictions 'aa9', 'aa9', 'aa9'" in said
    assert f"people '{IDS[0]}'" in said  # who stays is named


def test_an_error_keeps_its_kind_and_without_a_list_its_words():
    with (
        pytest.raises(TableError, match=r"'a9' in row 3, column 'age', not 'b'"),
        redact_errors_in_block(frozenset({"q"}), lambda: {"b", "age"}),
    ):
        raise TableError("bad", found="'a1' in row 3, column 'age', not 'b'")
    with pytest.raises(SpecError, match="'a1'"), redact_errors_in_block(frozenset({"q"}), set):
        raise SpecError("a setting", found="'a1'")
    with (
        pytest.raises(UnknownNameError, match="there is no"),
        redact_errors_in_block(frozenset({"q"}), set),
    ):
        raise UnknownNameError("column", "agee", ["age"])
    with pytest.raises(TableError, match="'a1'"), redact_errors_in_block(frozenset(), set):
        raise TableError("bad", found="'a1'")
