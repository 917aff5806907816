"""An injected id is found however it is written; what cannot be looked into is never clean."""

from __future__ import annotations

import base64
import bz2
import gzip
import io
import json
import lzma
import sqlite3
import tarfile
import zipfile
import zlib
from urllib.parse import quote

import numpy as np
import polars as pl
import pytest
from PIL import Image, PngImagePlugin

from isolux.core.errors import SpecError
from isolux_curate.api.withdraw import search_folders_for_people
from isolux_curate.proof import search
from isolux_curate.proof.search_terms import SearchTerms
from isolux_curate.withdrawal.file_walk import iterate_files_sorted
from isolux_curate.withdrawal.project_rows import PersonReferences
from isolux_curate.withdrawal.rewriting import rewrite_file_without_people
from isolux_curate.withdrawal.terms import IdentifyingTerms
from tests.cli._run import isolux as run

WHO = "Zoë/s-0417"
PLAIN = "s-0417x"


def _zip(name, data, method=zipfile.ZIP_DEFLATED):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr(name, data)
    return out.getvalue()


def _tar(name, data):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        info = tarfile.TarInfo(name)
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _frame(write, **options):
    out = io.BytesIO()
    frame = pl.DataFrame({"said": ["x", f"by {PLAIN}, once"] * 500, "n": range(1000)})
    getattr(frame, write)(out, **options)
    return out.getvalue()


def _npz(**arrays):
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def _picture(form, **options):
    out = io.BytesIO()
    picture(7).save(out, form, **options)
    return out.getvalue()


def _png(text, *, packed=False):
    said = PngImagePlugin.PngInfo()
    said.add_text("of", text, zip=packed)
    return _picture("PNG", pnginfo=said)


def _exif(tag, value):
    told = Image.Exif()
    told[tag] = value
    return told


def _gzip_of(name):
    out = io.BytesIO()
    with gzip.GzipFile(filename=name, mode="wb", fileobj=out) as stream:
        stream.write(b"x")
    return out.getvalue()


TEXT = f"of {PLAIN} here".encode()
PLANTED = {
    "utf-8": TEXT, "utf-16": TEXT.decode().encode("utf-16"),
    "utf-16-be": TEXT.decode().encode("utf-16-be"), "utf-32": TEXT.decode().encode("utf-32"),
    "base64 at 0": base64.b64encode(TEXT[3:]), "base64 at 1": base64.b64encode(b"." + TEXT[3:]),
    "base64 at 2": base64.b64encode(b".." + TEXT[3:]),
    "url-safe base64": base64.urlsafe_b64encode(b"\xff\xfe" + TEXT),
    "zip": _zip("a.txt", TEXT), "zip by bzip2": _zip("a.txt", TEXT, zipfile.ZIP_BZIP2),
    "zip by lzma": _zip("a.txt", TEXT, zipfile.ZIP_LZMA), "name in a zip": _zip(PLAIN, b"x"),
    "zip in zip": _zip("b.zip", _zip("a.txt", TEXT)), "gzip": gzip.compress(TEXT),
    "tar.bz2": bz2.compress(_tar("a.txt", TEXT)), "xz": lzma.compress(TEXT),
    "after a space of an address": f"q=of%20{PLAIN}&x=1".encode(),
    "after a line's end in JSON": json.dumps({"note": f"of\n{PLAIN}"}).encode(),
    "after an escaped accent": json.dumps({"note": f"é{PLAIN}"}).encode(),
    "xlsx": _zip("xl/sharedStrings.xml", f"<t>{PLAIN}</t>".encode()),
    "parquet": _frame("write_parquet", compression="zstd"), "arrow": _frame("write_ipc"),
    "packed arrow": _frame("write_ipc", compression="zstd"),
    "npz": _npz(id=np.array(["a", PLAIN])),
    "before a byte that is no text": PLAIN.encode() + b"\xff\xc0", "zlib": zlib.compress(TEXT),
    "after a byte that is no text": b"\x00\xff" + PLAIN.encode() + b"\x00",
    "in Japanese": f"\u88ab\u9a13\u8005{PLAIN}\u3055\u3093".encode(),
    "in Japanese, utf-16": f"\u88ab\u9a13\u8005{PLAIN}\u3055\u3093".encode("utf-16-le"),
    "JPEG comment": lambda: _picture("JPEG", comment=PLAIN.encode()),
    "PNG text": lambda: _png(PLAIN), "packed PNG text": lambda: _png(PLAIN, packed=True),
    "Exif": lambda: _picture("JPEG", exif=_exif(0x10E, PLAIN)),
    "Exif of Windows": lambda: _picture("JPEG", exif=_exif(0x9C9D, PLAIN.encode("utf-16-le"))),
    "Exif of WebP": lambda: _picture("WEBP", exif=_exif(0x10E, PLAIN)),
    "comment of a GIF": lambda: _picture("GIF", comment=PLAIN.encode()),
    "tag of a TIFF": lambda: _picture("TIFF", description=PLAIN),
    "name in gzip": _gzip_of(f"{PLAIN}.txt"),
    "zip behind a picture": lambda: _picture("JPEG") + _zip("a.txt", TEXT),
    "parquet in base64 in html": b"<script>" + base64.b64encode(gzip.compress(
        _frame("write_parquet"))) + b"</script>",
}  # fmt: skip

NOT_CLEAN = "after a byte that is no text"  # of no format that is known


@pytest.mark.parametrize("way", PLANTED)
def test_a_injected_id_is_found(tmp_path, way):
    held = PLANTED[way]
    (tmp_path / "x.dat").write_bytes(held() if callable(held) else held)
    assert search_folders_for_people([tmp_path], who=[PLAIN]).matches
    other = search_folders_for_people([tmp_path], who=["s-0418x"])
    assert other.is_clean or (way == NOT_CLEAN and not other.matches)


@pytest.mark.parametrize(
    "text",
    [WHO, json.dumps(WHO), json.dumps(WHO).replace("/", "\\/"), quote(WHO), quote(WHO, safe=""),
     "Zo&#235;/s-0417", quote(WHO, safe="").lower().replace("zo", "Zo"),
     json.dumps(WHO).replace("eb", "EB")],
)  # fmt: skip
def test_an_id_with_a_slash_and_an_accent_is_found_however_it_is_escaped(tmp_path, text):
    (tmp_path / "x.txt").write_text(f"[{text}]")
    assert search_folders_for_people([tmp_path], who=[WHO]).matches
    (tmp_path / "x.txt").write_bytes(f"[{text}]".encode("latin-1"))
    assert search_folders_for_people([tmp_path], who=[WHO]).matches


@pytest.mark.parametrize("coding", ["utf-8", "utf-16", "utf-16-be", "utf-32"])
def test_a_part_of_a_longer_word_is_someone_else_in_every_coding(tmp_path, coding):
    (tmp_path / "x.txt").write_bytes("11_0 a1_0 1_0b".encode(coding))
    assert search_folders_for_people([tmp_path], who=["1_0x", "1_00"]).is_clean
    held = SearchTerms.from_names_without_contained(["11_0"], [])
    assert list(held.iterate_names_with_offset("111_0 11_00".encode(coding))) == []
    assert [
        name for name, _ in held.iterate_names_with_offset("111_0 11_0 11_00".encode(coding))
    ] == ["11_0"]


def test_a_deleted_row_of_a_database_is_found(tmp_path):
    path = tmp_path / "x.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA secure_delete = OFF")
    connection.execute("CREATE TABLE people (name TEXT)")
    connection.executemany("INSERT INTO people VALUES (?)", [(PLAIN,), ("other",)])
    connection.commit()
    connection.execute("DELETE FROM people WHERE name = ?", (PLAIN,))
    connection.commit()
    connection.close()
    assert search_folders_for_people([tmp_path], who=[PLAIN]).matches


def test_a_deleted_row_whose_cells_stand_without_a_gap_is_found_and_goes(tmp_path):
    path = tmp_path / "x.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA secure_delete = OFF")
    connection.execute("CREATE TABLE people (name TEXT, note TEXT)")
    rows = [(PLAIN, "Ada"), ("s-0500x", f"{PLAIN}7"), ("s-0501x", "")]
    connection.executemany("INSERT INTO people VALUES (?, ?)", rows)
    connection.commit()
    assert search_folders_for_people(
        [tmp_path], who=[f"{PLAIN}9"]
    ).is_clean  # the one with a 7 is someone else
    connection.execute("DELETE FROM people WHERE name = ?", (PLAIN,))
    connection.commit()
    connection.close()
    assert f"{PLAIN}Ada".encode() in path.read_bytes()
    assert search_folders_for_people([tmp_path], who=[PLAIN]).matches
    terms = IdentifyingTerms({"subject": frozenset({PLAIN})})
    path.write_bytes(rewrite_file_without_people("x.db", path.read_bytes(), [], terms)[0])
    assert search_folders_for_people([tmp_path], who=[PLAIN]).is_clean
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT * FROM people").fetchall() == rows[1:]
    connection.close()


def test_a_part_of_a_longer_word_is_someone_else(tmp_path):
    (tmp_path / "x.csv").write_text("subject_id,note\ns0417,xs041\ns0410,\n")
    assert search_folders_for_people([tmp_path], who=["s041"]).is_clean
    assert search_folders_for_people([tmp_path], who=["s0410"]).matches


@pytest.mark.parametrize("who", ["1", "a", "é", "table", "subject_id"])
def test_ids_that_are_any_word_are_looked_for_as_cells_of_ids(tmp_path, who):
    """They stand as a column's name, a value and a word; a row of theirs is found all the same."""
    (tmp_path / "x.csv").write_text(f"subject_id,label,note\nb,{who},a table of 1\n")
    pl.DataFrame({"subject_id": ["b"], "table": [1]}).write_parquet(tmp_path / "x.parquet")
    assert search_folders_for_people([tmp_path], who=[who]).is_clean
    (tmp_path / "y.csv").write_text(f"subject_id,label\n{who},c\n")
    assert [where for where, _ in search_folders_for_people([tmp_path], who=[who]).matches] == [
        f"{tmp_path.name}/y.csv"
    ]


def picture(seed, size=(96, 96)):
    small = np.random.default_rng(seed).integers(0, 255, (6, 6, 3), dtype=np.uint8)
    return Image.fromarray(small).resize(size, Image.Resampling.BICUBIC)


def test_a_photo_is_found_smaller_in_another_format_and_in_a_page(tmp_path):
    theirs = tmp_path / "theirs.png"
    picture(1).save(theirs)
    folder = tmp_path / "looked"
    folder.mkdir()
    picture(2).save(folder / "other.jpg")
    assert search_folders_for_people([folder], photo=[str(theirs)]).is_clean
    picture(1).resize((40, 40)).save(folder / "a.jpg", quality=60)
    held = io.BytesIO()
    picture(1).transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(held, "PNG")
    data = base64.b64encode(held.getvalue()).decode()
    (folder / "b.html").write_text(f'<img src="data:image/png;base64,{data}">')
    (folder / "c.zip").write_bytes(_zip("c.png", held.getvalue()))
    picture(1).rotate(90, expand=True).save(folder / "on_its_side.png")
    picture(3).save(folder / "film.gif", save_all=True, append_images=[picture(1)])
    picture(3).save(folder / "pages.tif", save_all=True, append_images=[picture(1)])
    rows = [{"path": "x", "bytes": held.getvalue()}, {"path": "y", "bytes": b"z"}]
    pl.DataFrame({"image": rows}).write_parquet(folder / "hub.parquet")
    connection = sqlite3.connect(folder / "d.sqlite")
    connection.execute("CREATE TABLE t (b BLOB)")
    connection.execute("INSERT INTO t VALUES (?)", (held.getvalue(),))
    connection.commit()
    connection.close()
    found = {where.split("!")[0].split("/")[1] for where, _ in
             search_folders_for_people([folder], photo=[str(theirs)]).matches}  # fmt: skip
    assert found == {"a.jpg", "b.html", "c.zip", "on_its_side.png", "film.gif", "pages.tif",
                     "hub.parquet", "d.sqlite"}  # fmt: skip


def _encrypted():
    data = bytearray(_zip("a.txt", b"x" * 100))
    data[6] |= 1  # the flag of the local head, and of the directory
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


BLIND = {
    "a.zip": _encrypted(), "b.zip": _zip("a.txt", b"x" * 100)[:60], "c.7z": b"7z\xbc\xaf\x27\x1c..",
    "d.zst": b"\x28\xb5\x2f\xfd...", "e.bin2": np.random.default_rng(0).bytes(9000),
    "f.mp4": b"\0\0\0 ftypisom", "g.jpg": b"\xff\xd8\xff\xe0 no more", "h.parquet": b"PAR1 no more",
    "i.pdf": b"%PDF-1.4 /Encrypt", "j.gz": b"\x1f\x8b\x08 no more", "k.h5": b"\x89HDF\r\n",
    "l.heic": b"\0\0\0 ftypheic",
}  # fmt: skip


@pytest.mark.parametrize("name", BLIND)
def test_what_cannot_be_looked_into_is_not_clean(tmp_path, name):
    (tmp_path / name).write_bytes(BLIND[name])
    done = search_folders_for_people([tmp_path], who=[PLAIN])
    assert [where for where, _ in done.unsearchable] == [f"{tmp_path.name}/{name}"]
    assert not done.is_clean


def test_a_link_is_named_and_not_followed(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "x.txt").write_text(PLAIN)
    (folder / "x.txt").symlink_to(tmp_path / "x.txt")
    done = search_folders_for_people([folder], who=[PLAIN])
    assert not done.matches
    assert "a link" in done.unsearchable[0][1]


def test_weights_are_searched_and_said(tmp_path):
    head = b'{"w": {"dtype": "F32", "shape": [50, 45], "data_offsets": [0, 9000]}}'
    weights = np.random.default_rng(0).bytes(9000)
    (tmp_path / "net.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + weights)
    done = search_folders_for_people([tmp_path], who=[PLAIN])
    assert done.is_clean
    assert "no search tells" in done.notes[0]


def test_needles_are_those_that_find_the_others():
    held = SearchTerms.from_names_without_contained(
        ["s0417", "s0417_1", "s04171", "abc"], ["s0417-b"]
    )
    assert held.names == ("s0417", "s04171")
    assert list(held.iterate_names_with_offset(b"of s0417-b")) == []
    assert [name for name, _ in held.iterate_names_with_offset(b"s0417-b, s0417")] == ["s0417"]


def test_by_the_command_line(tmp_path, monkeypatch, capsys):
    (tmp_path / "x.txt").write_text(f"of {PLAIN}")
    done = run(monkeypatch, capsys, "withdraw", tmp_path, "--prove", "--who", PLAIN)
    assert done.code == 1
    assert "it holds 's-0417x'" in done.out
    clean = run(monkeypatch, capsys, "withdraw", tmp_path, "--prove", "--who", "s-0418x")
    assert clean.code == 0, clean.out
    assert "0 found, 0 not looked into" in clean.out
    both = run(monkeypatch, capsys, "withdraw", tmp_path, "--prove", "--who", "a", "--dry-run")
    assert both.code == 2
    with pytest.raises(SpecError, match="who is searched for"):
        search_folders_for_people([tmp_path])


def test_a_damaged_picture_is_clean_only_where_it_is_known_to_be_of_someone_else(tmp_path):
    """Half a JPEG cannot be compared with theirs."""
    import hashlib

    out = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 255, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(noise).save(out, "JPEG")
    data = out.getvalue()[: len(out.getvalue()) // 3]
    (tmp_path / "photo.jpg").write_bytes(data)
    found = PersonReferences()
    found.add_names("subject", [PLAIN])
    places = list(iterate_files_sorted([tmp_path]))
    looks = np.zeros((0, 32, 32), dtype=np.uint8)
    blind = search.search_files_for_people(places, found.build_identifying_terms(), looks)
    assert [why for _, why in blind.unsearchable] == ["a picture that cannot be opened"]
    known = search.search_files_for_people(
        places, found.build_identifying_terms(), looks, other_ids={hashlib.sha256(data).hexdigest()}
    )
    assert known.is_clean
    assert known.notes[0].startswith("damaged pictures that could not be compared: 1.")
