"""Workbooks whose cells lie too far apart, or that unpack to too much, are refused.

The library that reads them ends its process where it gets no memory; that process is none of ours.
"""

from __future__ import annotations

import json
import struct
import sys
import zipfile

import pytest

from isolux.core.errors import FileError
from isolux.io import sheet_reader
from isolux.io.frames import read_table
from tests._sheets import write_ods, write_xlsx

pytest.importorskip("python_calamine")

ROWS = [["id", "age"], ["a", 31], ["b", 32]]
SHEET = "xl/worksheets/sheet1.xml"
FAR = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
TOO_LARGE = r"(?s)too large to be read.*where: .*people.*save the table alone as CSV"


def changed(path, part, before, after):
    """Change the text of one file in a workbook."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    assert before.encode() in parts[part]
    parts[part] = parts[part].replace(before.encode(), after.encode(), 1)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def sheet_with(tmp_path, more, **others):
    path = write_xlsx(tmp_path / "people.xlsx", {"People": ROWS, **others})
    return changed(path, SHEET, "</sheetData>", f"{more}</sheetData>")


@pytest.mark.parametrize("far", [
    FAR, FAR.replace("row", "x:row").replace("<c", "<x:c").replace("/c", "/x:c"),
    '<row r="7"><c s="1" r = \'XFD1048576\'><v>1</v></c></row>',
    '<row r="1048576"><c r="CZ1048576"><v>1</v></c></row>',
])  # fmt: skip
def test_a_cell_far_away_is_refused(tmp_path, far):
    with pytest.raises(FileError, match=TOO_LARGE):
        read_table(sheet_with(tmp_path, far))


def test_a_place_that_no_sheet_has_is_refused(tmp_path):
    for place in ("A" + "9" * 5000, "A" * 5000 + "1"):
        with pytest.raises(FileError, match=r"too large|not a workbook"):
            read_table(sheet_with(tmp_path, f'<row r="7"><c r="{place}"><v>1</v></c></row>'))


def test_what_a_workbook_says_of_its_own_size_is_not_believed(tmp_path):
    path = sheet_with(tmp_path, FAR)
    changed(path, SHEET, "<sheetData>", '<dimension ref="A1:B3"/><sheetData>')
    with pytest.raises(FileError, match=TOO_LARGE):
        read_table(path)


def test_cells_without_a_value_are_no_matter(tmp_path):
    empty = '<row r="1000000" spans="1:16384"><c r="XFD1000000" s="3"/><c s="3"/></row>'
    assert read_table(sheet_with(tmp_path, empty)).rows() == [("a", "31"), ("b", "32")]


def test_many_rows_and_gaps_are_read(tmp_path):
    more = '<row r="100000"><c r="A100000"><v>7</v></c><c r="B100000"><v>8</v></c></row>'
    assert read_table(sheet_with(tmp_path, more)).rows()[-1] == ("7", "8")


def test_more_rows_than_a_sheet_has_are_refused(tmp_path):
    """Before they are read: six million rows would take gigabytes, and no program makes them."""
    for n_rows, cell in ((1_048_577, "A1048577"), (6_000_000, "A6000000")):
        path = sheet_with(tmp_path, f'<row r="{n_rows}"><c r="{cell}"><v>1</v></c></row>')
        with pytest.raises(FileError, match=rf"(?s)at most 1,048,576 rows.*{n_rows:,} rows of 2"):
            read_table(path)


def test_only_the_sheet_that_is_read_matters(tmp_path):
    path = sheet_with(tmp_path, FAR, Other=ROWS)
    assert read_table(path, sheet="Other").height == 2
    for sheet in (None, "People"):
        with pytest.raises(FileError, match=TOO_LARGE):
            read_table(path, sheet=sheet)


def test_a_long_shared_string_in_many_cells_is_refused(tmp_path):
    cells = "".join(f'<c r="A{k}" t="s"><v>0</v></c>' for k in range(9, 200_009))
    path = sheet_with(tmp_path, f"<row r='9'>{cells}</row>")
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/sharedStrings.xml", f"<sst><si><t>{'q' * 60_000}</t></si></sst>")
    with pytest.raises(FileError, match="too large to be read"):
        read_table(path)


def test_too_little_memory_is_no_damage(tmp_path, monkeypatch):
    def read(*_):
        raise MemoryError

    path = write_xlsx(tmp_path / "people.xlsx", {"People": ROWS})
    monkeypatch.setitem(sys.modules, "resource", None)  # no limit for this process
    monkeypatch.setattr(sheet_reader, "_read_sheet", read)
    monkeypatch.setattr(sys, "argv", ["", json.dumps([str(path), None])])
    with pytest.raises(MemoryError):
        sheet_reader.main()


def test_repeated_cells_of_ods(tmp_path):
    def repeated(value):
        path = write_ods(tmp_path / "people.ods", {"People": ROWS})
        rows = '<table:table-row table:number-rows-repeated="1048573">'
        cell = f'<table:table-cell table:number-columns-repeated="16384"{value}/>'
        end = "</table:table>"
        return changed(path, "content.xml", end, f"{rows}{cell}</table:table-row>{end}")

    assert read_table(repeated("")).height == 2
    with pytest.raises(FileError, match=TOO_LARGE):
        read_table(repeated(' office:value-type="float" office:value="1"'))


@pytest.mark.parametrize("declared", [None, 1000])
def test_a_workbook_that_unpacks_to_too_much_is_refused(tmp_path, declared):
    """By what comes out, whatever the archive says of it."""
    n_bytes = 80 << 20
    text = "x" * n_bytes
    path = sheet_with(
        tmp_path, f'<row r="9"><c r="A9" t="inlineStr"><is><t>{text}</t></is></c></row>'
    )
    with zipfile.ZipFile(path) as archive:
        size = archive.getinfo(SHEET).file_size
    if declared:
        data = path.read_bytes()
        assert data.count(struct.pack("<I", size)) == 2
        path.write_bytes(data.replace(struct.pack("<I", size), struct.pack("<I", declared)))
    with pytest.raises(FileError, match=r"(?s)decompression bomb.*at most 64 MiB"):
        read_table(path)
