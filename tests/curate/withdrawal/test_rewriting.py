"""Files of each format lose the rows of who withdrew, and no one else's."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import sqlite3
import tarfile
import zipfile
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from isolux_curate.withdrawal.rewriting import UnsearchableFile, rewrite_file_without_people
from isolux_curate.withdrawal.terms import IdentifyingTerms
from tests.curate.withdrawal._people import GONE


def rewritten(name, data, terms=GONE, beside=()):
    before = data if isinstance(data, bytes) else data.encode()
    try:
        after, n = rewrite_file_without_people(name, before, list(beside), terms)
    except UnsearchableFile as reason:
        return SimpleNamespace(data=before, n=0, why=str(reason))
    return SimpleNamespace(data=after, n=n, why="")


# Rows 2 and 4 are theirs: by the subject, and by the photo 9. The subject 9 is someone else, s171
# and s17_1-b only begin as theirs do, and "9" as an age is a number.
TABLE = (
    "subject_id,image_id,age\n"
    "s1,7,9\n"
    's17,s17_1,30\n'
    '"s171","s171_1","30, or\n31"\n'
    "s171,9,30\n"
    "9,7,30\n"
    "s1,s17_1-b,17\n"
)  # fmt: skip


def test_a_table_of_text_keeps_the_bytes_of_all_others():
    done = rewritten("people.csv", TABLE)
    lines = TABLE.splitlines(keepends=True)
    assert done.n == 2
    assert done.data.decode() == "".join(lines[:2] + lines[3:5] + lines[6:])


@pytest.mark.parametrize("write", ["write_parquet", "write_ipc", "write_ipc_stream"])
def test_a_frame_loses_rows_and_entries_of_lists_beside_one_another(write):
    frame = pl.DataFrame(
        {
            "unit_kind": ["instance", "instance", "subject", "instance"],
            "unit_id": ["7-1", "s17_1-1", "9", "9-1"],
            "other_id": [["s17_1-1", "s171_1-1"], [], None, []],
            "similarity": [[0.1, 0.2], [], None, []],
            "value": [9.0, 1.0, 2.0, 3.0],
        }
    )
    out = io.BytesIO()
    getattr(frame, write)(out)
    done = rewritten("x.arrow" if "ipc" in write else "x.parquet", out.getvalue())
    read = {"write_parquet": pl.read_parquet, "write_ipc": pl.read_ipc,
            "write_ipc_stream": pl.read_ipc_stream}[write]  # fmt: skip
    left = read(io.BytesIO(done.data))
    assert done.n == 3  # two rows and one entry
    assert left["unit_id"].to_list() == ["7-1", "9"]
    assert left["other_id"].to_list() == [["s171_1-1"], None]
    assert left["similarity"].to_list() == [[0.2], None]
    assert b"s17_1-1" not in done.data


def test_attributes_that_are_ids_are_looked_at():
    frame = pl.DataFrame(
        {"unit_kind": ["instance"] * 3, "unit_id": ["a", "b", "7-1"],
         "attribute": ["subject", "subject", "age"], "value": ["s17", "s171", "9"]}
    )  # fmt: skip
    out = io.BytesIO()
    frame.write_parquet(out)
    left = pl.read_parquet(io.BytesIO(rewritten("attributes.parquet", out.getvalue()).data))
    assert left["unit_id"].to_list() == ["b", "7-1"]


def test_a_document_loses_records_and_keys():
    found = {"people": [{"subject_id": "s17", "x": 1}, {"subject_id": "s171", "x": 2}],
             "by_id": {"s17_1": 3, "s17_1-b": 4}, "note": "of s17_1 and s171", "n": 9}  # fmt: skip
    done = rewritten("x.json", json.dumps(found))
    assert json.loads(done.data) == {
        "people": [{"subject_id": "s171", "x": 2}], "by_id": {"s17_1-b": 4},
        "note": "of (withdrawn) and s171", "n": 9,
    }  # fmt: skip


def test_cocos_form_loses_what_a_photo_is_tied_to():
    found = {
        "images": [{"id": 1, "file_name": "in/s17_1.jpg"}, {"id": 9, "file_name": "s171_1.jpg"}],
        "annotations": [{"id": 1, "image_id": 9}, {"id": 9, "image_id": 1}],
        "categories": [{"id": 9, "name": "person"}],
    }
    left = json.loads(rewritten("coco.json", json.dumps(found)).data)
    assert [one["id"] for one in left["images"]] == [9]
    assert left["annotations"] == [{"id": 1, "image_id": 9}]
    assert left["categories"] == found["categories"]


def test_lines_of_documents():
    lines = ['{"image_id": "9", "a": 1}', '{"image_id":"7",  "a": 9}']
    done = rewritten("x.jsonl", "\n".join(lines) + "\n")
    assert done.data.decode() == lines[1] + "\n"


def test_a_page_loses_rows_of_packed_tables_and_goes_where_it_still_names_them():
    out = io.BytesIO()
    pl.DataFrame({"unit_id": ["s17_1-1", "7-1"]}).write_parquet(out)
    packed = base64.b64encode(gzip.compress(out.getvalue())).decode()
    tag = '<script type="application/vnd.apache.parquet+gzip;base64" id="table-people-0">'
    page = f"<html>isolux {tag}{packed}</script></html>"
    done = rewritten("view.html", page)
    text = done.data.decode().removeprefix(f"<html>isolux {tag}").removesuffix("</script></html>")
    kept = pl.read_parquet(io.BytesIO(gzip.decompress(base64.b64decode(text))))
    assert kept["unit_id"].to_list() == ["7-1"]
    gallery = "<html>Made by isolux. Who is shown in this file: <bdi>9-1</bdi></html>"
    assert rewritten("gallery.html", gallery).data is None
    theirs = rewritten("mine.html", "<html><td>s17_1</td></html>")
    assert (theirs.n, "did not make" in theirs.why) == (0, True)


def test_arrays_lose_the_same_places():
    out = io.BytesIO()
    np.savez(out, ids=np.array(["7", "9", "s17_1"]), features=np.arange(6).reshape(3, 2),
             mean=np.arange(2))  # fmt: skip
    done = rewritten(
        "features.npz", out.getvalue(), IdentifyingTerms({"image": frozenset({"9", "s17_1"})})
    )
    held = np.load(io.BytesIO(done.data))
    assert held["ids"].tolist() == ["7"]
    assert held["features"].tolist() == [[0, 1]]
    assert held["mean"].tolist() == [0, 1]


def test_a_database_keeps_nothing_in_free_pages(tmp_path):
    path = tmp_path / "x.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (subject_id TEXT, note TEXT)")
        connection.executemany("INSERT INTO people VALUES (?, ?)",
                               [("s17", "secret words"), ("s171", "stay")])  # fmt: skip
    connection.close()
    done = rewritten("x.db", path.read_bytes())
    assert done.n == 1
    assert b"secret words" not in done.data
    assert b"stay" in done.data


def test_archives_are_looked_into_and_parts_that_stay_are_as_they_were():
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("people.csv", TABLE)
        archive.writestr("crops/s17_1-1-0123456789abcdef.png", b"theirs")
        archive.writestr("crops/s17_1-b-1-0123456789abcdef.png", b"stays")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        info = tarfile.TarInfo("inner.zip")
        info.size = len(held.getvalue())
        archive.addfile(info, io.BytesIO(held.getvalue()))
    done = rewritten("all.tar.gz", packed.getvalue())
    with tarfile.open(fileobj=io.BytesIO(done.data)) as archive:
        inner = zipfile.ZipFile(io.BytesIO(archive.extractfile("inner.zip").read()))
    assert inner.namelist() == ["people.csv", "crops/s17_1-b-1-0123456789abcdef.png"]
    assert inner.read("crops/s17_1-b-1-0123456789abcdef.png") == b"stays"
    assert b"s17_1," not in inner.read("people.csv")


def test_photos_go_by_their_bytes_and_by_their_names():
    sums = frozenset({hashlib.sha256(b"pixels").hexdigest()})
    terms = IdentifyingTerms(GONE.names_by_kind, GONE.other_names, sums)
    assert rewritten("other name.jpg", b"pixels", terms).data is None
    assert rewritten("s17_1.jpg", b"crop").data is None
    assert rewritten("s17_1-b.jpg", b"crop").data == b"crop"
    # 9 could be any number: it is an id where ids stand beside it.
    assert rewritten("figures/9.png", b"crop", beside=["figures/1.png"]).data == b"crop"
    assert rewritten("photos/9.png", b"crop", beside=["photos/7.png", "photos/9.png"]).data is None


def test_rows_that_hold_the_bytes_of_their_photos_go(tmp_path):
    terms = IdentifyingTerms(
        GONE.names_by_kind, GONE.other_names, frozenset({hashlib.sha256(b"pixels").hexdigest()})
    )
    rows = [{"path": "x", "bytes": b"pixels"}, {"path": "y", "bytes": b"other"}, None]
    out = io.BytesIO()
    pl.DataFrame({"image": rows, "n": [1, 2, 3]}).write_parquet(out)
    done = rewritten("shard.parquet", out.getvalue(), terms)
    assert pl.read_parquet(io.BytesIO(done.data))["n"].to_list() == [2, 3]
    connection = sqlite3.connect(tmp_path / "x.db")
    connection.execute("CREATE TABLE t (n, b)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, b"pixels"), (2, b"other"), (3, "")])
    connection.commit()
    connection.close()
    done = rewritten("x.db", (tmp_path / "x.db").read_bytes(), terms)
    (tmp_path / "x.db").write_bytes(done.data)
    connection = sqlite3.connect(tmp_path / "x.db")
    assert connection.execute("SELECT n FROM t").fetchall() == [(2,), (3,)]
    connection.close()


def test_a_list_of_sums_loses_lines():
    text = f"{'0' * 64}  in/s17_1.jpg\n{'1' * 64}  in/s171_1.jpg\n"
    assert rewritten("checksums.sha256", text).data.decode() == text.splitlines(keepends=True)[1]


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("x.parquet", b"PAR1 cut off", "cannot be read"),
        ("x.json", b"{", "no JSON"),
        ("x.zip", b"PK\x03\x04 cut off", "cannot be opened"),
        ("x.csv.gz", b"\x1f\x8b cut off", "cannot be unpacked"),
        ("x.npz", b"nothing", "arrays cannot be read"),
    ],
)
def test_what_cannot_be_looked_through_is_told(name, data, why):
    done = rewritten(name, data)
    assert done.data == data
    assert why in done.why
