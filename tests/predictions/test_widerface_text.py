"""WIDER FACE's text: folder, archive and single file give the same; archives are not trusted."""

from __future__ import annotations

import io
import tarfile

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolux.core.errors import FileError, IsoluxError, TableError
from isolux.core.tables import BOX_PREDICTIONS, check
from isolux.predictions import widerface_text
from isolux.predictions.widerface_text import read_texts
from tests._left_open import open_below
from tests._shared import shared_data

FILES = {
    "0--Parade/0_Parade_a.txt": "0_Parade_a\n2\n4 5 20 30 0.9 \n1.5 -2 3 4 1e-3\n",
    "0--Parade/0_Parade_b.txt": "0_Parade_b\r\n1\r\n7 8 9 10 0.25\r\n",
    "1--Handshaking/1_c.txt": "1--Handshaking/1_c.jpg\n0\n",
}
ROWS = [
    ("net", "0--Parade/0_Parade_a.jpg", None, 4.0, 5.0, 20.0, 30.0, 0.9),
    ("net", "0--Parade/0_Parade_a.jpg", None, 1.5, -2.0, 3.0, 4.0, 0.001),
    ("net", "0--Parade/0_Parade_b.jpg", None, 7.0, 8.0, 9.0, 10.0, 0.25),
]


def packed(path, files, mode="w:gz", **changes):
    with tarfile.open(path, mode) as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            for key, value in changes.items():
                setattr(member, key, value)
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def text(content: str) -> pl.DataFrame:
    return read_texts([("0--Parade/a.txt", content.encode())], "net")


def test_a_folder(tmp_path):
    for name, content in FILES.items():
        (tmp_path / "net" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "net" / name).write_bytes(content.encode())
    assert check(widerface_text.read(tmp_path / "net"), BOX_PREDICTIONS).rows() == ROWS


@pytest.mark.parametrize(
    ("ending", "mode"), [("tar", "w"), ("tar.gz", "w:gz"), ("tgz", "w:gz"), ("tar.xz", "w:xz")]
)
def test_an_archive(tmp_path, ending, mode):
    path = packed(tmp_path / f"net.{ending}", FILES, mode)
    assert widerface_text.read(path).rows() == ROWS


@pytest.mark.parametrize("ending", ["", ".tar", ".tar.gz"])
def test_damage_in_the_middle_leaves_nothing_open(tmp_path, ending):
    path = tmp_path / f"net{ending}"
    files = FILES | {"0--Parade/0_Parade_b.txt": "0_Parade_b\n1\nnone\n"}
    if ending:
        packed(path, files, "w:gz" if ending.endswith("gz") else "w")
    for name, text in files.items() if not ending else ():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(text)
    with pytest.raises(TableError, match="0_Parade_b") as caught:
        widerface_text.read(path)
    # `caught` holds the error, and so all frames that it came through.
    assert not open_below(tmp_path.resolve()), caught


def test_one_file_of_many_images(tmp_path):
    path = tmp_path / "net.txt"
    path.write_text("x/a.jpg\n1\n1 2 3 4 0.5\n\ny/b\n0\n0 0 0 0 0\nz/c.png\n1\n5 6 7 8 .5e0\n"
                    .replace(".5e0", "0.5"))  # fmt: skip
    assert widerface_text.read(path)["image_id"].to_list() == ["x/a.jpg", "z/c.png"]


def test_nothing_found_anywhere_is_no_error():
    assert text("a\n0\n").is_empty()


def test_numbers_that_the_quick_reader_leaves():
    assert text("a\n3\n+1 2 3 4 .5\n1 2 3 4 0.5\n1 2 3 4 1e-320\n")["score"].to_list() == [
        0.5, 0.5, 1e-320
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "told", "line"),
    [
        ("a\n2\n1 2 3 4 0.5\n", "an image has fewer boxes than it says", 4),
        ("a\n2\n1 2 3 4 0.5\nb\n1\n1 2 3 4 0.5\n", "an image has fewer boxes than it says", 4),
        ("a\n999999999\n1 2 3 4 0.5\n", "an image has fewer boxes than it says", 4),
        ("a\n1\n1 2 3 4 0.5\n1 2 3 4 0.5\n", "an image has more boxes than it says", 4),
        ("a\n1\n1 2 3 4\n", "a box cannot be read", 3),
        ("a\n1\n1 2 3 4 0.5 6\n", "a box cannot be read", 3),
        ("a\n1\n1 2 3 4 nan\n", "a box cannot be read", 3),
        ("a\n1\n1 2 3 4 1e999\n", "a box cannot be read", 3),
        ("a\n1\n1 2 x 4 0.5\n", "a box cannot be read", 3),
        ("a\n1 2 3 4 0.5\n", "the number of boxes is missing", 2),
        ("a\n-1\n", "the number of boxes is missing", 2),
        ("1 2 3 4 0.5\n", "an image's name or its number of boxes|begins with a box", 1),
        ("a", "an image's name or its number of boxes is missing", 1),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(content, told, line):
    with pytest.raises(IsoluxError, match=told) as caught:
        text(content)
    assert f"0--Parade/a.txt, line {line}" in str(caught.value)


@pytest.mark.parametrize(
    ("line", "column"),
    [("1 2 3 \u0664 0.5", "height"), ("1_000 2 3 4 0.5", "x"), ("1 2 3 4 nan", "score")],
)
def test_what_is_no_number_in_ascii_digits_is_told_with_its_column(line, column):
    with pytest.raises(TableError, match=f"a box cannot be read(?s:.*), line 3, column '{column}'"):
        text(f"a\n1\n{line}\n")


def test_an_image_that_occurs_twice():
    with pytest.raises(TableError, match="two lists of detections are of the same image"):
        text("a\n0\na\n0\n")


def test_a_negative_side(tmp_path):
    (tmp_path / "net.txt").write_text("x/a.jpg\n1\n1 2 -3 4 0.5\n")
    with pytest.raises(TableError, match="a box has a negative width or height"):
        widerface_text.read(tmp_path / "net.txt")


@settings(max_examples=300, deadline=None)
@given(st.text("ab/ 0123456789.-e\n\r\t", max_size=60).map(str.encode) | st.binary(max_size=40))
def test_any_bytes_give_a_table_or_an_error_of_ours(data):
    try:
        read_texts([("0--Parade/a.txt", data)], "net")
    except IsoluxError as error:
        assert "0--Parade/a.txt" in str(error)  # noqa: PT017


# Archives ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"name": "../a.txt"}, "a name in this archive leads out of it"),
        ({"name": "a/../../b.txt"}, "a name in this archive leads out of it"),
        ({"name": "/etc/a.txt"}, "a name in this archive leads out of it"),
        ({"name": "..\\a.txt"}, "a name in this archive leads out of it"),
        ({"type": tarfile.SYMTYPE, "linkname": "/etc/passwd", "size": 0}, "holds a link"),
        ({"type": tarfile.LNKTYPE, "linkname": "../a", "size": 0}, "holds a link"),
        ({"type": tarfile.CHRTYPE, "size": 0}, "holds a link, a device"),
    ],
)
def test_an_archive_that_reaches_outside_is_refused(tmp_path, changes, told):
    path = packed(tmp_path / "net.tar.gz", {"x/a.txt": "a\n0\n"}, **changes)
    with pytest.raises(FileError, match=told):
        widerface_text.read(path)


def test_a_bomb_is_refused_without_being_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr("isolux.io.bounded_zlib._MIN_LIMIT_BYTES", 1 << 20)
    path = packed(tmp_path / "net.tar.gz", {"x/a.bin": "0" * (32 << 20)})
    with pytest.raises(FileError, match="unpacks to far more than its"):
        widerface_text.read(path)


@pytest.mark.parametrize("keep", [0, 5, 40, 120])
def test_an_archive_that_is_cut_off(tmp_path, keep):
    path = packed(tmp_path / "net.tar.gz", FILES)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(FileError, match=r"damaged, cut off|the file is empty"):
        widerface_text.read(path)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.binary(min_size=1, max_size=4), st.sampled_from(["w", "w:gz"]))
def test_a_damaged_archive_gives_a_table_or_an_error_of_ours(tmp_path_factory, at, put, mode):
    path = packed(tmp_path_factory.mktemp("tar") / "net.tar", FILES, mode)
    data = bytearray(path.read_bytes())
    at %= min(len(data), 3000)
    data[at : at + len(put)] = put
    path.write_bytes(data)
    try:
        widerface_text.read(path)
    except IsoluxError as error:
        assert "net.tar" in str(error)  # noqa: PT017


def test_an_archive_without_texts(tmp_path):
    with pytest.raises(FileError, match="there is no file of detections"):
        widerface_text.read(packed(tmp_path / "net.tar", {"a.csv": "1"}, "w"))
    with pytest.raises(FileError, match="this archive holds no file"):
        widerface_text.read(packed(tmp_path / "none.tar", {}, "w"))


def test_a_zip_and_nothing_at_all(tmp_path):
    with pytest.raises(FileError, match="zip archives are not read"):
        widerface_text.read(tmp_path / "net.zip")
    with pytest.raises(FileError, match="there is no such file"):
        widerface_text.read(tmp_path / "absent.tar")
    (tmp_path / "net").mkdir()
    with pytest.raises(FileError, match="there is no file of detections"):
        widerface_text.read(tmp_path / "net")


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "out.txt").write_text("a\n0\n")
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "a.txt").symlink_to(tmp_path / "out.txt")
    with pytest.raises(FileError, match="a path leads out of its folder"):
        widerface_text.read(tmp_path / "net")


def test_the_real_archive():
    """Counted by hand: tar -xzO | awk 'NF==5' | wc -l gives 143,889 lines of five cells."""
    found = widerface_text.read(shared_data("widerface/retinaface.widerface_txt.tar.gz"))
    assert found.height == 143_889
    assert found["image_id"].n_unique() == 3219  # of 3,226 images; in seven nothing was found
    assert found["image_id"].str.contains(r"^\d+--[^/]+/[^/]+\.jpg$").all()
    assert found["score"].is_between(0, 1).all()


# Long files --------------------------------------------------------------------------------------


def test_boxes_of_several_images():
    lines = "".join(f"{k} 2 3 4 {k / 64}\n" for k in range(64))
    content = f"a\n64\n{lines}\nb\n0\n0 0 0 0 0\nc.png\n1\n5 6 7 8 0.5"
    assert text(content)["score"].to_list() == [*(k / 64 for k in range(64)), 0.5]
    with pytest.raises(TableError, match="fewer boxes than it says") as caught:
        text(content.replace("\n1\n5", "\n2\n5"))
    assert "line 74" in str(caught.value)
    with pytest.raises(FileError, match="the number of boxes is missing") as caught:
        text(content.replace("c.png\n1\n5 6 7 8 0.5", "c.png\n"))
    assert "line 72" in str(caught.value)


def test_text_that_is_no_utf_8():
    with pytest.raises(FileError, match="not UTF-8") as caught:
        read_texts([("a.txt", b"a\n0\nb\n0\n\xff\n1\n1 2 3 4 5\n")], "net")
    assert "a.txt, row 4" in str(caught.value)
