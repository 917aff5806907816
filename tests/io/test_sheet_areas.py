"""Workbooks whose cells lie too far apart, or that unpack to too much, are refused before reading.

The library that reads them ends the process where it gets no memory: such a test would not fail,
but end all tests of its worker.
"""

from __future__ import annotations

import struct
import zipfile

import pytest

from isolux.io import sheet_areas, sheets
from isolux.io.frames import read_table
from isolux.io.xls_areas import XLS_SIGNATURE, xls_areas
from isolux.vocabulary.errors import FileError
from tests._sheets import write_ods, write_xlsx

pytest.importorskip("python_calamine")

ROWS = [["id", "age"], ["a", 31], ["b", 32]]
SHEET = "xl/worksheets/sheet1.xml"
FAR = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
TOO_LARGE = r"(?s)too large.*at most 5,000,000 cells.*found: 1,048,576 rows of 16,384 columns: "
TOO_LARGE += r"17,179,869,184 cells.*sheet 'People'.*delete the cells"


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
    '<row r="1048576"><c r="A1048576"><v>1</v></c></row><row><c r="XFD9"><v>1</v></c></row>',
    FAR.replace('r="1048576"', 'r="0000001048576"'),
])  # fmt: skip
def test_a_cell_far_away_is_refused(tmp_path, far):
    with pytest.raises(FileError, match=TOO_LARGE):
        read_table(sheet_with(tmp_path, far))


def test_a_place_that_no_sheet_has_is_refused(tmp_path):
    for place in ("A" + "9" * 5000, "A" * 5000 + "1"):
        with pytest.raises(FileError, match="too large"):
            read_table(sheet_with(tmp_path, f'<row r="7"><c r="{place}"><v>1</v></c></row>'))


def test_what_a_workbook_says_of_its_own_size_is_not_believed(tmp_path):
    path = sheet_with(tmp_path, FAR)
    changed(path, SHEET, "<sheetData>", '<dimension ref="A1:B3"/><sheetData>')
    with pytest.raises(FileError, match=TOO_LARGE):
        read_table(path)


def test_cells_without_a_place_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(sheet_areas, "_MAX_CELLS", 1000)
    cells = "<c><v>1</v></c>"
    with pytest.raises(FileError, match="found: 103 rows of 10 columns: 1,030 cells"):
        read_table(sheet_with(tmp_path, "<row/>" * 99 + f"<row>{cells * 10}</row>"))


def test_cells_without_a_value_are_no_matter(tmp_path):
    empty = '<row r="1000000" spans="1:16384"><c r="XFD1000000" s="3"/><c s="3"/></row>'
    assert read_table(sheet_with(tmp_path, empty)).rows() == [("a", "31"), ("b", "32")]


def test_many_rows_and_gaps_are_read(tmp_path):
    more = '<row r="100000"><c r="A100000"><v>7</v></c><c r="B100000"><v>8</v></c></row>'
    assert read_table(sheet_with(tmp_path, more)).rows()[-1] == ("7", "8")


def test_only_the_sheet_that_is_read_matters(tmp_path):
    path = sheet_with(tmp_path, FAR, Other=ROWS)
    assert read_table(path, sheet="Other").height == 2
    for sheet in (None, "People"):
        with pytest.raises(FileError, match=TOO_LARGE):
            read_table(path, sheet=sheet)


@pytest.fixture
def without_calamine(monkeypatch):
    """Fail where calamine is asked: it would take gigabytes."""
    monkeypatch.setattr(sheets, "_cells", lambda *_: pytest.fail("calamine was asked"))


def test_a_few_cells_that_span_millions_are_refused(tmp_path, without_calamine):
    far = '<row r="1048576"><c r="AT1048576"><v>1</v></c></row>'
    message = r"(?s)at most 5,000,000 cells.*48,234,496 cells, up to AT1048576; 7 hold something"
    with pytest.raises(FileError, match=message):
        read_table(sheet_with(tmp_path, far))


def test_a_full_sheet_may_be_larger(tmp_path, monkeypatch):
    monkeypatch.setattr(sheet_areas, "_SPARSE_CELLS", 5)
    more = '<row r="600"><c r="B600"><v>1</v></c></row>'
    assert read_table(sheet_with(tmp_path, more)).height == 3


@pytest.mark.parametrize("cell", ['t="s"><v>0</v>', "t='s'><f>A1</f><v>0</v>"])
@pytest.mark.parametrize("comment", ["", "<!--<si/>-->"])
def test_a_long_shared_string_in_many_cells_is_refused(tmp_path, without_calamine, cell, comment):
    path = sheet_with(tmp_path, f"<row r='9'>{f'<c {cell}</c>' * 3000}</row>")
    with zipfile.ZipFile(path, "a") as archive:
        strings = f"<sst>{comment}<si><t>{'q' * 30_000}</t></si></sst>"
        archive.writestr("xl/sharedStrings.xml", strings)
    with pytest.raises(FileError, match=r"(?s)repeat a long text.*at most 64 MiB.*found: 85 MiB"):
        read_table(path)


@pytest.mark.parametrize(("n_rows", "text"), [
    (3000, "q" * 30_000), (3000, f"<![CDATA[{'q' * 30_000}]]>"), (1, '<text:s text:c="90000000"/>'),
])  # fmt: skip
def test_a_long_text_in_repeated_cells_of_ods_is_refused(tmp_path, without_calamine, n_rows, text):
    path = write_ods(tmp_path / "people.ods", {"People": ROWS})
    row = f'<table:table-row table:number-rows-repeated="{n_rows}"><table:table-cell'
    row += f' office:value-type="string"><text:p>{text}</text:p></table:table-cell>'
    end = "</table:table>"
    changed(path, "content.xml", end, f"{row}</table:table-row>{end}")
    with pytest.raises(FileError, match=r"(?s)repeat a long text.*at most 64 MiB.*found: 85 MiB"):
        read_table(path)


def test_repeated_cells_of_ods(tmp_path):
    def repeated(value):
        path = write_ods(tmp_path / "people.ods", {"People": ROWS})
        rows = '<table:table-row table:number-rows-repeated="1048573">'
        cell = f'<table:table-cell table:number-columns-repeated="16384"{value}/>'
        end = "</table:table>"
        return changed(path, "content.xml", end, f"{rows}{cell}</table:table-row>{end}")

    assert read_table(repeated("")).height == 2
    with pytest.raises(FileError, match=TOO_LARGE.replace("5,000", "50,000", 1)):
        read_table(repeated(' office:value-type="float" office:value="1"'))


def test_cells_of_xlsb(tmp_path):
    def text(words):
        return struct.pack("<I", len(words)) + words.encode("utf-16-le")

    def book(row, column):
        places = ((0, row), (5, column), (1, 9_999))  # a row, a number, a cell without a value
        cells = b"".join(bytes([kind, 4]) + struct.pack("<I", place) for kind, place in places)
        sheet = struct.pack("<II", 0, 1) + text("r1") + text("People")
        link = '<Relationship Id="r1" Target="worksheets/sheet1.bin"/>'
        path = tmp_path / "people.xlsb"
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("xl/workbook.bin", bytes([0x9C, 1, len(sheet)]) + sheet)
            archive.writestr("xl/_rels/workbook.bin.rels", f"<Relationships>{link}</Relationships>")
            archive.writestr("xl/worksheets/sheet1.bin", cells + bytes([0x92, 1, 0]))
            archive.writestr("xl/printerSettings1.bin", cells.replace(b"\0", b"\xff"))  # no cells
        return path

    with pytest.raises(FileError, match="not a workbook"):  # further than the check of its area
        read_table(book(100_000, 10))
    with pytest.raises(FileError, match=r"(?s)1,000,001 rows of 101 columns.*sheet 'People'"):
        read_table(book(1_000_000, 100))


@pytest.mark.parametrize("n_sectors", [3, 9])  # in sectors of the small stream, and of its own
def test_cells_of_xls(tmp_path, n_sectors):
    records = struct.pack("<3H", 0x809, 2, 0)  # a sheet, and its last cell
    records += struct.pack("<4H8x", 0x203, 12, 65535, 65535)
    stream = records.ljust(512 * n_sectors, b"\0")
    small = n_sectors == 3
    table = [0xFFFFFFFD, 0xFFFFFFFE, 0xFFFFFFFE, *range(4, 3 + n_sectors), 0xFFFFFFFE]
    numbers = [*range(1, 8 * n_sectors), 0xFFFFFFFE]
    entries = [("Root Entry", 3, len(stream)), ("Workbook", 0 if small else 3, len(stream))]
    head = bytearray(XLS_SIGNATURE.ljust(76, b"\0") + struct.pack("<I", 0) + b"\xff" * 432)
    for at, number in ((30, 9), (32, 6), (48, 1), (60, 2), (68, 0xFFFFFFFE)):
        struct.pack_into("<H" if at < 48 else "<I", head, at, number)
    directory = b"".join(
        name.encode("utf-16-le").ljust(64, b"\0")
        + struct.pack("<H50xIQ", 2 * len(name) + 2, start, size)
        for name, start, size in entries
    )
    fat = b"".join(struct.pack("<I", n) for n in table).ljust(512, b"\xff")
    small_fat = b"".join(struct.pack("<I", n) for n in numbers)[:512].ljust(512, b"\xff")
    path = tmp_path / "people.xls"
    path.write_bytes(head + fat + directory.ljust(512, b"\0") + small_fat + stream)
    assert max(xls_areas(path.read_bytes())) == (65536, 65536, 1)
    with pytest.raises(FileError, match="65,536 rows of 65,536 columns"):
        read_table(path)


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
