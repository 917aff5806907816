from __future__ import annotations

import csv
import gzip
import io
import json
import os
from contextlib import suppress
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from isolux.core.errors import FileError, IsoluxError, TableError, UnknownNameError
from isolux.io import delimited_text as _delimited
from isolux.io import detect_table_format, read_table
from isolux.io.frames import MAX_CELL_BYTES, open_bytes

SMALL = pl.DataFrame({"id": ["007", "8"], "age": [31, None], "tones": [["3", "4"], []]})


def written(folder: Path, name: str, text: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# ── what is read ────────────────────────────────────────────────────────────────────────────────


def test_csv_cells_stay_text_and_empty_ones_are_null(tmp_path):
    path = written(tmp_path, "a.csv", 'id,n\n007,1.50\n"x,y",\n')
    assert read_table(path).rows() == [("007", "1.50"), ("x,y", None)]


@pytest.mark.parametrize(
    "text",
    [
        "a,b\r\n1,2\r\n3,4\r\n",  # Windows
        "a,b\n1,2\n3,4",  # no newline at the end
        "\ufeffa,b\n1,2\n3,4\n",  # Excel's byte order mark
        "\n\na,b\n\n1,2\n\r\n\n3,4\n\n",  # blank lines everywhere
        '"a",b\n"1",2\n3,"4"\n',
    ],
)
def test_the_same_table_in_many_spellings(tmp_path, text):
    frame = read_table(written(tmp_path, "a.csv", text))
    assert frame.rows(named=True) == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]


def test_quoted_cells_may_hold_separators_newlines_and_marks(tmp_path):
    path = written(tmp_path, "a.csv", 'a,b\n"x\ny, z","say ""hi"""\n1,2\n')
    assert read_table(path).rows() == [("x\ny, z", 'say "hi"'), ("1", "2")]


def test_tabs_and_gzip_are_told_by_the_suffix(tmp_path):
    written(tmp_path, "a.tsv", "a\tb,c\n1\t2\n")
    assert read_table(tmp_path / "a.tsv").rows(named=True) == [{"a": "1", "b,c": "2"}]
    written(tmp_path, "a.csv.gz", gzip.compress(b"a,b\n1,2\n"))
    assert read_table(tmp_path / "a.csv.gz").rows() == [("1", "2")]


def test_typed_formats_keep_their_types(tmp_path):
    SMALL.write_parquet(tmp_path / "a.parquet")
    SMALL.write_ipc(tmp_path / "a.feather")
    SMALL.write_ipc_stream(tmp_path / "a.arrow")
    SMALL.write_ndjson(tmp_path / "a.jsonl")
    for name in ("a.parquet", "a.feather", "a.arrow", "a.jsonl"):
        assert read_table(tmp_path / name).equals(SMALL), name


def test_a_table_that_pyarrow_wrote_is_read(tmp_path):
    table = pa.table({"id": ["a"], "tones": [["3"]]})
    with (
        pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, table.schema) as writer,
    ):
        writer.write_table(table)
    assert read_table(tmp_path / "a.arrow").rows() == [("a", ["3"])]


def test_columns_are_chosen_and_ordered(tmp_path):
    path = written(tmp_path, "a.csv", "a,b,c\n1,2,3\n")
    assert read_table(path, ["c", "a"]).columns == ["c", "a"]
    with pytest.raises(UnknownNameError, match=r"(?s)no column named 'ages'.*a\.csv"):
        read_table(path, ["ages"])


def test_a_named_format_goes_before_the_suffix(tmp_path):
    path = written(tmp_path, "a.txt", "a\tb\n1\t2\n")
    assert read_table(path, format="tsv").columns == ["a", "b"]
    with pytest.raises(UnknownNameError, match="no table format named 'xml'"):
        read_table(path, format="xml")


# ── what is refused, and in which words ─────────────────────────────────────────────────────────


def test_a_missing_file_names_those_near_it(tmp_path):
    written(tmp_path, "people.csv", "a\n1\n")
    with pytest.raises(FileError, match=r"(?s)there is no such file.*did you mean 'people.csv'"):
        read_table(tmp_path / "poeple.csv")
    with pytest.raises(FileError, match=r"(?s)there is no such file.*holds 'people.csv'"):
        read_table(tmp_path / "zz.parquet")
    with pytest.raises(FileError, match="nor the folder it should be in"):
        read_table(tmp_path / "none" / "people.csv")


def test_a_folder_is_no_table(tmp_path):
    for name in ("labels.csv", "net.json", "a.png"):
        written(tmp_path, name, "a\n1\n")
    words = r"(?s)this is a folder.*holds labels\.csv, net\.json, a\.png.*name the file itself"
    with pytest.raises(FileError, match=words):
        read_table(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_what_is_neither_file_nor_folder_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.csv")
    with pytest.raises(FileError, match="this is neither a file nor a folder"):
        read_table(tmp_path / "a.csv")


def test_a_line_of_names_without_end_is_refused(tmp_path):
    with pytest.raises(FileError, match="the line of column names cannot be read"):
        read_table(written(tmp_path, "a.csv", "x" * 200_000 + ",b\n1,2\n"))


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.parquet", "a.jsonl", "a.arrow"])
def test_an_empty_file_is_said(tmp_path, name):
    with pytest.raises(FileError, match="the file is empty"):
        read_table(written(tmp_path, name, ""))


def test_nothing_but_blank_lines_is_empty(tmp_path):
    with pytest.raises(FileError, match="the file is empty"):
        read_table(written(tmp_path, "a.csv", "\n\r\n \n"))


def test_a_header_without_rows_is_said(tmp_path):
    with pytest.raises(FileError, match=r"(?s)columns but no rows.*'id', 'race'"):
        read_table(written(tmp_path, "a.csv", "id,race\n\n"))
    SMALL.clear().write_parquet(tmp_path / "a.parquet")
    with pytest.raises(FileError, match="columns but no rows"):
        read_table(tmp_path / "a.parquet")


def test_text_in_another_encoding_names_row_and_byte(tmp_path):
    path = written(tmp_path, "a.csv", "id,name\n1,Ana\n2,Zoë\n".encode("latin-1"))
    # "id,name\n" has 8 bytes, "1,Ana\n" 6, "2,Zo" 4: the byte is the 19th, at position 18.
    with pytest.raises(
        FileError,
        match=r"(?s)not UTF-8 text.*byte 0xEB at position 18.*row 2.*iconv -f WINDOWS-1252",
    ):
        read_table(path)
    with pytest.raises(FileError, match=r"(?s)byte 0xEB at position 0.*a\.csv, first line"):
        read_table(written(tmp_path, "a.csv", "ë,b\n1,2\n".encode("latin-1")))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_is_recognised(tmp_path, encoding):
    with pytest.raises(FileError, match=r"(?s)UTF-16.*iconv -f UTF-16"):
        read_table(written(tmp_path, "a.csv", "id,name\n1,Ana\n".encode(encoding)))


@pytest.mark.parametrize(
    ("text", "row", "found"),
    [
        ("a,b\n1,2\n3\n", 2, "1 in row 2"),
        ("a,b\n1,2,3\n4,5\n", 1, "3 in row 1"),
        ("a,b\n\n1,2\n\n3,4,5\n", 2, "3 in row 2"),
        ('a,b\n"1,5",2\n3,4,\n', 2, "3 in row 2"),
    ],
)
def test_rows_of_unequal_length_name_the_row(tmp_path, text, row, found):
    path = written(tmp_path, "a.csv", text)
    with pytest.raises(
        FileError, match=rf"(?s)1 row\(s\) have .* cells.*2 cells.*{found}.*row {row}"
    ):
        read_table(path)


def test_short_and_long_rows_together_are_said(tmp_path):
    with pytest.raises(FileError, match="2 rows have more or fewer cells"):
        read_table(written(tmp_path, "a.csv", "a,b\n1\n1,2,3\n"))


def test_ragged_rows_are_found_across_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(_delimited, "_BLOCK_BYTES", 7)
    good = 'a,b\n"x,\ny",2\n' + "".join(f"{i},{i}\n" for i in range(50))
    assert read_table(written(tmp_path, "a.csv", good)).height == 51
    with pytest.raises(FileError, match="1 in row 52"):
        read_table(written(tmp_path, "a.csv", good + "alone\n"))


@pytest.mark.parametrize("text", ['a,b\n"1,2\n', 'a,b\n"x"y,2\n', 'a,b\n5" x,3\n'])
def test_quotation_marks_that_do_not_pair_are_said(tmp_path, text):
    with pytest.raises(FileError, match="quotation marks do not pair up"):
        read_table(written(tmp_path, "a.csv", text))


def test_two_columns_of_one_name_are_refused(tmp_path):
    with pytest.raises(TableError, match=r"(?s)two columns have the same name.*\[1, 3\]"):
        read_table(written(tmp_path, "a.csv", "a,b,a\n1,2,3\n"))
    with pytest.raises(TableError, match="two columns have no name"):
        read_table(written(tmp_path, "a.csv", "a,,\n1,2,3\n"))


def test_a_table_that_semicolons_part_is_read(tmp_path):
    found = read_table(written(tmp_path, "a.csv", '\n"id";tone\r\n1;"x;y"\r\n2;3,5\r\n'))
    assert found.rows() == [("1", "x;y"), ("2", "3,5")]
    assert found.columns == ["id", "tone"]
    # A comma among the names, or a semicolon within one: commas part the columns, as ever.
    assert read_table(written(tmp_path, "a.csv", "a;b,c\n1,2\n")).columns == ["a;b", "c"]
    with pytest.raises(FileError, match=r"(?s)more cells.*expected: 2 cells.*found: 3 in row 1"):
        read_table(written(tmp_path, "a.csv", "id;tone\n1;2;3\n"))


def test_another_separator_is_recognised(tmp_path):
    with pytest.raises(FileError, match=r"(?s)looks like several.*parted by '\|'"):
        read_table(written(tmp_path, "a.csv", "id|race\n1|x\n"))
    with pytest.raises(FileError, match=r"(?s)looks like several.*end its name in \.tsv"):
        read_table(written(tmp_path, "a.csv", "id\trace\n1\tx\n"))


def test_old_mac_line_ends_are_recognised(tmp_path):
    with pytest.raises(FileError, match="lines end in carriage returns alone"):
        read_table(written(tmp_path, "a.csv", "id,race\r1,x\r2,y\r"))


@pytest.mark.parametrize(
    ("start", "words"),
    [
        (b"PK\x03\x04", "an Excel workbook"),
        (b"\x1f\x8b", "a gzip archive"),
        (b"PAR1", "a Parquet file"),
        (b"ARROW1", "an Arrow file"),
    ],
)
def test_binary_files_called_csv_are_recognised(tmp_path, start, words):
    with pytest.raises(FileError, match=f"(?s)this is not text.*{words}"):
        read_table(written(tmp_path, "a.csv", start + b"\0\1\2"))


@pytest.mark.parametrize("name", ["a.docx", "a", "a.toml", "a.csv.zip"])
def test_an_unknown_suffix_lists_the_known_ones(tmp_path, name):
    with pytest.raises(FileError, match=r"(?s)suffix names no format.*\.parquet.*jsonlines"):
        read_table(written(tmp_path, name, "x"))


def test_suffixes_are_read_without_case():
    assert detect_table_format("A.CSV") == "csv"
    assert detect_table_format(Path("x/b.Parquet")) == "parquet"


def test_a_damaged_gzip_is_said(tmp_path):
    with pytest.raises(FileError, match="gzip file is damaged or cut off"):
        read_table(written(tmp_path, "a.csv.gz", gzip.compress(b"a,b\n1,2\n")[:-4]))
    with pytest.raises(FileError, match="gzip file is damaged or cut off"):
        read_table(written(tmp_path, "b.csv.gz", b"a,b\n1,2\n"))


def test_a_gzip_that_unpacks_to_far_more_than_its_size_is_refused_with_the_limit(
    tmp_path, monkeypatch
):
    path = written(tmp_path, "a.csv.gz", gzip.compress(b"a,b\n" + b"1,2\n" * (1 << 16)))
    assert read_table(path).height == 1 << 16
    monkeypatch.setattr("isolux.io.bounded_zlib._MIN_LIMIT_BYTES", 1 << 16)
    with pytest.raises(FileError, match=r"(?s)like a decompression bomb.*at most .*unpack it"):
        read_table(path)
    with open_bytes(path) as stream:
        assert stream.readline() == b"a,b\n"
    with pytest.raises(FileError, match="decompression bomb"), open_bytes(path) as stream:
        stream.read(1 << 17)


@pytest.mark.parametrize(("name", "kind"), [("a.parquet", "Parquet"), ("a.arrow", "Arrow")])
def test_damaged_binary_tables_are_said(tmp_path, name, kind):
    with pytest.raises(FileError, match=f"this is not a valid {kind} file, or it is damaged"):
        read_table(written(tmp_path, name, b"ARROW1 and so on"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a":1}\n{"a":', "(?s)not valid JSON.*row 2"),
        ('{"a":1}\n\n[1, 2]\n', "(?s)a line is not a JSON object.*row 3"),
        ('{"score":NaN}\n', "(?s)NaN is not a number in JSON; write null.*row 1"),
        ('{"a":["x"]}\n{"a":"x"}\n', "(?s)lists in some lines and text in others.*column 'a'"),
        ('{"a":[1]}\n{"a":3}\n', "do not make one table"),
    ],
)
def test_faults_of_json_lines_name_the_line(tmp_path, text, words):
    with pytest.raises(FileError, match=words):
        read_table(written(tmp_path, "a.jsonl", text))


def test_text_that_looks_like_a_list_is_text(tmp_path):
    path = written(tmp_path, "a.jsonl", '{"a":"[x]"}\n{"a":"y"}\n')
    assert read_table(path)["a"].to_list() == ["[x]", "y"]


def test_an_unreadable_file_is_said(tmp_path, monkeypatch):
    path = written(tmp_path, "a.csv", "a\n1\n")

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    with pytest.raises(FileError, match=r"(?s)the file cannot be read.*Permission denied"):
        read_table(path)


# ── laws ────────────────────────────────────────────────────────────────────────────────────────

CELL = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0\r"), max_size=6)


@given(
    st.integers(1, 4).flatmap(
        lambda k: st.lists(st.lists(CELL, min_size=k, max_size=k), min_size=1, max_size=6)
    )
)
def test_what_pythons_csv_writes_is_read_back(tmp_path_factory, rows):
    # The independent implementation is Python's csv module. Empty text and null are one.
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    names = [f"c{i}" for i in range(len(rows[0]))]
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([names, *rows])
    path.write_text(text.getvalue(), encoding="utf-8", newline="")
    assert [[cell or "" for cell in row] for row in read_table(path).rows()] == rows


PIECES = st.lists(
    st.sampled_from(
        ["id", "score", "label", ",", ",", "\n", "\n", "\r\n", '"', '""', "\t", ";", " ", "1",
         "0.5", "nan", "-inf", "1e400", "[", "]", "{", "}", ":", "é", "\ufeff", "\0", "\r", "'",
         "a/b.jpg", "null", "[1]", "\ud7ff", "𝟙"]
    ),
    max_size=30,
).map("".join)  # fmt: skip


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.arrow", "a.csv.gz"])
@given(data=st.one_of(PIECES.map(str.encode), st.binary(max_size=60)))
def test_only_our_own_errors_come_out(tmp_path_factory, name, data):
    path = written(tmp_path_factory.mktemp("fuzz"), name, data)
    with suppress(IsoluxError):
        assert read_table(path).height > 0


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["id", "label", "score", ""]),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
                lambda inner: (
                    st.lists(inner, max_size=2)
                    | st.dictionaries(st.text(max_size=2), inner, max_size=2)
                ),
                max_leaves=4,
            ),
        ),
        max_size=5,
    )
)
def test_json_of_any_shape_gives_a_table_or_our_own_error(tmp_path_factory, records):
    path = tmp_path_factory.mktemp("fuzz") / "a.jsonl"
    path.write_text("\n".join(json.dumps(r) for r in records))
    with suppress(IsoluxError):
        assert read_table(path).height > 0


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
@pytest.mark.parametrize("share", [0.02, 0.3, 0.5, 0.8, 0.99])
def test_a_file_that_was_cut_off_is_said(tmp_path, name, share):
    # Flipped bytes are not tried: polars can abort the process on a Parquet footer that lies.
    path = tmp_path / name
    (SMALL.write_parquet if name == "a.parquet" else SMALL.write_ipc)(path)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    with pytest.raises(FileError, match="or it is damaged"):
        read_table(path)


@pytest.mark.parametrize("as_list", [False, True])
def test_a_cell_as_long_as_a_book_is_refused_with_its_place(tmp_path, as_list):
    cells = ["short", "x" * (MAX_CELL_BYTES + 1)]
    frame = pl.DataFrame({"id": ["a", "b"], "note": [[c] for c in cells] if as_list else cells})
    frame.write_parquet(tmp_path / "long.parquet")
    with pytest.raises(FileError) as caught:
        read_table(tmp_path / "long.parquet")
    assert "at most 1 MiB of text in a cell" in str(caught.value)
    assert "found: 1,048,577 bytes, which begin with 'xxx" in str(caught.value)
    assert "long.parquet, row 2, column 'note'" in str(caught.value)
    many = pl.DataFrame({"id": ["a" * 1000] * 2000})
    many.write_parquet(tmp_path / "many.parquet")
    assert read_table(tmp_path / "many.parquet").height == 2000


@pytest.mark.parametrize("mark", [";", ",", "|"])
def test_the_separator_that_excel_is_told_is_used(tmp_path, mark):
    file = tmp_path / "people.csv"
    file.write_text(f"sep={mark}\r\nid{mark}race\r\n1{mark}a\r\n")
    assert read_table(file).rows(named=True) == [{"id": "1", "race": "a"}]


def test_comments_are_called_by_their_name(tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("# made by me, today; with care\n# 2026\nid,race\n1,a\n")
    with pytest.raises(FileError, match=r"(?s)begins with 2 line\(s\) of comments.*made by me"):
        read_table(file)
    file.write_text("#id,race\n#1,a\n2,b\n")  # a name, and an id
    assert read_table(file).rows() == [("#1", "a"), ("2", "b")]
    file.write_text("#id,race\n#1,a\n")
    assert read_table(file).columns == ["#id", "race"]
