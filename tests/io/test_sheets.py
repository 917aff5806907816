"""Workbooks: the same table as CSV, which sheet, which row of names, and what is refused."""

from __future__ import annotations

import shutil
import sys
import zipfile

import polars as pl
import pytest

from isolux import load
from isolux.core.errors import FileError, SpecError, UnknownNameError
from isolux.io.frames import read_table
from isolux.io.sheets import DATASET_FLAGS
from isolux.predictions import read_predictions
from tests._sheets import Cell, write_ods, write_xlsx
from tests.cli._run import isolux

pytest.importorskip("python_calamine")

ROWS = [
    ["id", "age", "group", "share"],
    [7, 31, "Ärzte & Co", 0.25],
    ["007", None, "b", 1.0],
]
WRITERS = {".xlsx": write_xlsx, ".ods": write_ods}
every_kind = pytest.mark.parametrize("suffix", WRITERS)


def written(tmp_path, suffix, sheets):
    return WRITERS[suffix](tmp_path / f"people{suffix}", sheets)


@every_kind
def test_cells_are_text_as_in_csv(tmp_path, suffix):
    found = read_table(written(tmp_path, suffix, {"People": ROWS}))
    assert found.columns == ["id", "age", "group", "share"]
    assert found.rows() == [("7", "31", "Ärzte & Co", "0.25"), ("007", None, "b", "1")]


@every_kind
def test_one_of_several_sheets_is_named(tmp_path, suffix):
    path = written(tmp_path, suffix, {"Notes": [["read me"]], "People": ROWS, "Empty": []})
    with pytest.raises(FileError, match=r"(?s)several sheets.*'Notes', 'People'.*sheet alone"):
        read_table(path)
    with pytest.raises(FileError, match=r"several sheets[^=]*--data-option sheet=NAME"):
        read_table(path, sheet_flags=DATASET_FLAGS)
    assert read_table(path, sheet="People").height == 2
    with pytest.raises(UnknownNameError, match="'Peple'"):
        read_table(path, sheet="Peple")
    alone = written(tmp_path, suffix, {"Empty": [], "People": ROWS})
    assert read_table(alone).height == 2


@every_kind
def test_a_title_above_the_names_is_told(tmp_path, suffix):
    path = written(tmp_path, suffix, {"S": [["Table 1: people"], [None], *ROWS]})
    with pytest.raises(FileError, match=r"(?s)not name the columns.*column 2.*row 1.*delete the"):
        read_table(path)
    with pytest.raises(FileError, match=r"--data-option header_row=NUMBER"):
        read_table(path, sheet_flags=DATASET_FLAGS)
    with pytest.raises(FileError, match=r"header_row=1 names this row; another one holds") as one:
        read_table(path, header_row=1, sheet_flags=DATASET_FLAGS)
    assert "--data-option" not in str(one.value)  # it was named already
    assert read_table(path, header_row=3).rows()[0][0] == "7"
    with pytest.raises(FileError, match=r"(?s)row of names is empty.*rows with cells: 1 to 5"):
        read_table(path, header_row=2)
    with pytest.raises(SpecError, match="1 or more"):
        read_table(path, header_row=0)


@every_kind
def test_the_first_filled_row_names_the_columns(tmp_path, suffix):
    path = written(tmp_path, suffix, {"S": [[None], [None], *ROWS]})
    assert read_table(path).columns == ROWS[0]


def test_names_that_repeat_are_refused(tmp_path):
    path = write_xlsx(tmp_path / "x.xlsx", {"S": [["id", "id"], [1, 2]]})
    with pytest.raises(FileError, match=r"(?s)'id' twice"):
        read_table(path)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 cut off", b"id,age\n1,2\n"])
def test_what_is_no_workbook_is_refused(tmp_path, content):
    path = tmp_path / "people.xlsx"
    path.write_bytes(content)
    with pytest.raises(FileError, match=r"not a workbook|empty"):
        read_table(path)


@every_kind
@pytest.mark.parametrize("name", ["a.xls", "a.XLS", "a.xlsb", "a.xlsx", "a.ods"])
def test_a_workbook_is_told_by_its_content(tmp_path, suffix, name):
    path = written(tmp_path, suffix, {"People": ROWS}).rename(tmp_path / name)
    assert read_table(path)["age"].to_list() == ["31", None]


@pytest.mark.parametrize("program", [None, "", "/nowhere/python", shutil.which("true")])
def test_no_workbook_is_blamed_where_python_is_part_of_another_program(
    tmp_path, monkeypatch, program
):
    path = written(tmp_path, ".xlsx", {"people": ROWS})
    monkeypatch.setattr(sys, "executable", program)
    with pytest.raises(FileError, match=r"did not start, or gave no answer(.|\n)*sys\.executable"):
        read_table(path)


def test_only_workbooks_have_sheets(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("id,age\n1,2\n")
    with pytest.raises(SpecError, match="only a workbook has sheets"):
        read_table(path, sheet="People")


def test_ranges_that_the_spreadsheet_took_for_dates_are_refused(tmp_path):
    cells = [["id", "age"], ["a", "0-2"], ["b", "2026-03-09"], ["c", "10-19"]]
    path = write_xlsx(tmp_path / "x.xlsx", {"S": cells})
    with pytest.raises(Exception, match="repair"):
        load("table", path)
    mended = load("table", path, repair_ages=True)
    assert mended.values_of("age")["value"].to_list() == ["0-2", "3-9", "10-19"]


def test_an_audit_of_workbooks_from_end_to_end(tmp_path, monkeypatch, capsys):
    people = [["id", "race", "truth"]]
    people += [[f"p{i}", "AB"[i % 2], "xy"[i % 3 == 0]] for i in range(200)]
    answers = [["id", "label"], *([f"p{i}", "xy"[i % 5 == 0]] for i in range(200))]
    book = write_xlsx(tmp_path / "people.xlsx", {"About": [["made for a test"]],
                                                 "People": [["Our people"], *people]})  # fmt: skip
    write_ods(tmp_path / "net.ods", {"Log": [["made"]], "Answers": answers})
    done = isolux(
        monkeypatch, capsys, "audit", f"table:{book}", "--option", "sheet=People",
        "--option", "header_row=2", "--target", "truth", "--predictions",
        tmp_path / "net.ods", "--option", "prediction_sheet=Answers", "--by", "race",
        "--replicates", 100, "--out", tmp_path / "run",
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = pl.read_parquet(tmp_path / "run" / "group_metrics.parquet")
    right = sum((i % 3 == 0) == (i % 5 == 0) for i in range(200)) / 200
    mine = rows.filter(pl.col("metric") == "accuracy", pl.col("group") == "overall")
    assert mine["value"].item() == pytest.approx(right)
    found = read_predictions(tmp_path / "net.ods", sheet="Answers")
    assert found["instance_id"][:2].to_list() == ["p0", "p1"]


NO_ANSWER = Cell('t="e"', "<v>#N/A</v>")


def test_errors_of_a_spreadsheet_are_named_by_sheet_and_cell(tmp_path):
    rows = [["id", "answer"], *([k, NO_ANSWER if k % 2 else "x"] for k in range(1, 15))]
    path = write_xlsx(tmp_path / "e.xlsx", {"Notes": [], "R & D": rows})
    said = r"(?s)hold an error.*B2 #N/A, B4 #N/A, B6 #N/A, B8 #N/A, B10 #N/A and 2 more.*'R & D'"
    with pytest.raises(FileError, match=said):
        read_table(path)


def test_errors_above_the_names_and_on_other_sheets_are_no_matter(tmp_path):
    sheets = {"Data": [[NO_ANSWER], ["id", "answer"], [1, "x"]], "Other": [["id"], [NO_ANSWER]]}
    path = write_xlsx(tmp_path / "e.xlsx", sheets)
    assert read_table(path, sheet="Data", header_row=2).rows() == [("1", "x")]


@pytest.mark.parametrize("unsaved", [
    Cell("", "<f>A2</f>"), Cell("", "<f>A2</f><v/>"), Cell("", "<f>A2</f><v></v>"),
    Cell('t="b"', "<f>A2</f>"), Cell("", '<f t="shared" si="0"/>'), Cell('t="str"', "<f>A2</f>"),
])  # fmt: skip
def test_formulas_whose_values_were_not_saved_are_refused(tmp_path, unsaved):
    path = write_xlsx(tmp_path / "f.xlsx", {"S": [["id", "answer"], [1, "x"], [2, unsaved]]})
    with pytest.raises(FileError, match=r"(?s)no saved values.*found: B3\n.*sheet 'S'.*save it"):
        read_table(path)


@pytest.mark.parametrize(("saved", "text"), [
    (Cell("", "<f>A2</f><v>7</v>"), "7"), (Cell('t="str"', "<f>A2</f><v>y</v>"), "y"),
    (Cell('t="b"', "<f>A2</f><v>0</v>"), "false"), (Cell('t="str"', "<f>A2</f><v></v>"), None),
])  # fmt: skip
def test_formulas_whose_values_were_saved_are_those_values(tmp_path, saved, text):
    path = write_xlsx(tmp_path / "f.xlsx", {"S": [["id", "answer"], [1, "x"], [2, saved]]})
    assert read_table(path).rows() == [("1", "x"), ("2", text)]


def test_errors_in_ods_are_counted(tmp_path):
    path = write_ods(tmp_path / "e.ods", {"S": [["id", "answer"], [1, "x"], [2, "#N/A"]]})
    with zipfile.ZipFile(path) as parts:
        held = {name: parts.read(name) for name in parts.namelist()}
    wrong = b'office:value-type="string" calcext:value-type="error"><text:p>#N/A'
    held["content.xml"] = held["content.xml"].replace(
        b'office:value-type="string"><text:p>#N/A', wrong
    )
    with zipfile.ZipFile(path, "w") as parts:
        for name, data in held.items():
            parts.writestr(name, data)
    with pytest.raises(FileError, match=r"(?s)hold an error.*found: 1 cell\n.*sheet 'S'"):
        read_table(path)


def test_no_audit_of_empty_answers_says_that_no_difference_was_found(monkeypatch, capsys, tmp_path):
    """Of a workbook, a CSV file and words for unknown: an answer of no one is refused."""
    rows = [["id", "sex", "truth", "answer", "words"]]
    rows += [[f"p{k}", "fm"[k % 2], "ab"[k % 3 > 0], None, "N/A"] for k in range(200)]
    write_xlsx(tmp_path / "p.xlsx", {"S": rows})
    text = "\n".join(",".join("" if c is None else c for c in row) for row in rows)
    (tmp_path / "p.csv").write_text(text + "\n", encoding="utf-8")
    for file, column in (("p.xlsx", "words"), ("p.csv", "answer"), ("p.csv", "words")):
        ran = isolux(
            monkeypatch, capsys, "audit", f"table:{tmp_path / file}", "--id", "id", "--target",
            "truth", "--prediction-column", column, "--by", "sex", "--out", tmp_path / "run",
        )  # fmt: skip
        assert ran.code == 2
        assert f"nobody has an answer from '{column}'" in ran.plain
        assert not (tmp_path / "run").exists()
