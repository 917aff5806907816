"""What cannot be read is named: each of these was neither found nor named before."""

from __future__ import annotations

import gzip
import io
import zipfile
from base64 import b64encode
from urllib.parse import quote

import numpy as np
import pytest
from PIL import Image

from isolux_curate.api.withdraw import search_folders_for_people
from isolux_curate.privacy import hash_pseudonym_key, read_or_create_pseudonym_key

PLAIN, NUMBER = "s-0417x", "20417"
PIXELS = np.zeros((3, 8, 8, 3), np.uint8)


def npz(**arrays):
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


def npy(array):
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def zipped(**parts):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in parts.items():
            archive.writestr(f"{name}.json", data)
    return out.getvalue()


def picture(side=96, kind="JPEG", *, of_them=True, **settings):
    """Write a picture of theirs, or of plain grey."""
    tiles = np.random.default_rng(7).integers(0, 256, 64).tolist()
    small = Image.frombytes("L", (8, 8), bytes(tiles if of_them else [90] * 64))
    out = io.BytesIO()
    small.resize((side, side), Image.Resampling.BICUBIC).convert("RGB").save(out, kind, **settings)
    return out.getvalue()


def deep_picture():
    """Write theirs in grey of 16 bits."""
    with Image.open(io.BytesIO(picture())) as opened:
        wide = np.asarray(opened.convert("L")).astype(np.uint16) * 257
    out = io.BytesIO()
    Image.fromarray(wide).save(out, "PNG")
    return out.getvalue()


def with_thumbnail():
    """Write a grey photo whose Exif holds their small one."""
    exif = b"Exif\0\0II*\0\x08\0\0\0\0\0\0\0\0\0" + picture(64)
    grey = picture(of_them=False)
    return grey[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + grey[2:]


def zip_of(text):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("n.txt", text)
    return out.getvalue()


GREY = picture(of_them=False)
FOUND = {
    "escaped.txt": "".join(f"%{one:02x}" for one in PLAIN.encode()),
    "twice.txt": f"https://a.b/c?next=%252Fphotos%252F{PLAIN.replace('-', '%252D')}.jpg",
}


PLACES = {
    "hung.png": picture(kind="PNG", of_them=False) + zip_of(f"of {PLAIN}\n"),
    "hung.jpg": GREY + gzip.compress(f"of {PLAIN}\n".encode()),
    "two.jpg": GREY + picture(),
    "thumbnail.jpg": with_thumbnail(),
    "bytes.npy": npy(np.frombuffer(picture(), np.uint8)),
    "bytes.npz": npz(photo=np.frombuffer(picture(), np.uint8)),
    "grey16.png": deep_picture(),
    "escaped.svg": f'<image href="data:image/jpeg,{quote(picture())}"/>'.encode(),
    "escaped64.svg": b'<image href="data:image/png;base64,'
    + quote(b64encode(picture(kind="PNG"))).encode() + b'"/>',
    "runs.docx": zip_of(f"<w:r><w:t>{PLAIN[:3]}</w:t></w:r><w:r><w:t>{PLAIN[3:]}</w:t></w:r>"),
    "bold.html": f"<p>{PLAIN[:3]}<b>{PLAIN[3:]}</b>".encode(),
    "hyphen.html": f"{PLAIN[:3]}&shy;{PLAIN[3:]}".encode(),
    f"%{ord(PLAIN[0]):x}{PLAIN[1:]}.txt": b"nothing",
    "width.txt": f"{PLAIN[:3]}\u200b{PLAIN[3:]}".encode(),
    "soft.eml": f"x: {PLAIN[:3]}=\n{PLAIN[3:]} a\n".encode(),
    "printable.txt": b"Content-Transfer-Encoding: quoted-printable\n\n"
    + "".join(f"={one:02X}" for one in PLAIN.encode()).encode(),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_what_lies_in_a_file_or_is_split_in_it_is_found(tmp_path, name):
    (tmp_path / "in").mkdir()
    (tmp_path / "theirs.jpg").write_bytes(picture())
    (tmp_path / "in" / name).write_bytes(PLACES[name])
    theirs = [tmp_path / "theirs.jpg"]
    assert search_folders_for_people([tmp_path / "in"], who=[PLAIN], photo=theirs).matches


def test_neighbours_in_a_table_and_chance_bytes_in_a_picture_are_nothing(tmp_path):
    (tmp_path / "a.html").write_text("<tr><td>20</td><td>417</td></tr><p>20</p><p>417</p>")
    (tmp_path / "b.jpg").write_bytes(GREY + b"\xff\xd8\xff..\x1f\x8b\x08..")
    assert search_folders_for_people([tmp_path], who=[NUMBER]).is_clean


def test_a_zip_of_a_published_folder_is_read_with_its_key(tmp_path):
    keys, folder = [], tmp_path / "in"
    for name in ("ab", "cd"):
        keys.append(tmp_path / f"{name}.key")
        keys[-1].write_text(name * 32 + "\n")
    mark = hash_pseudonym_key(read_or_create_pseudonym_key(keys[0]))
    dataset = f'{{"format": "isolux curated dataset", "pseudonym_key_mark": "{mark}"}}'
    folder.mkdir()
    (folder / "a.zip").write_bytes(zipped(dataset=dataset, publish='{"settings": {}, "files": {}}'))
    assert search_folders_for_people([folder], who=[PLAIN], published_key=keys[:1]).is_clean
    assert not search_folders_for_people([folder], who=[PLAIN], published_key=keys[1:]).is_clean
    assert not search_folders_for_people([folder], who=[PLAIN]).is_clean


def test_a_reader_that_fails_names_the_file(tmp_path, monkeypatch):
    def fail(*_):
        raise OverflowError("too far")

    (tmp_path / "a.tar").write_bytes(b"\0" * 257 + b"ustar" + b"\0" * 250)
    monkeypatch.setattr("tarfile.open", lambda **_: fail())
    assert "too far" in search_folders_for_people([tmp_path], who=[PLAIN]).unsearchable[0][1]


@pytest.mark.parametrize("name", FOUND)
def test_escapes_of_addresses_are_read(tmp_path, name):
    (tmp_path / name).write_text(FOUND[name])
    assert search_folders_for_people([tmp_path], who=[PLAIN]).matches
    assert search_folders_for_people([tmp_path], who=["s-0418x"]).is_clean


def test_arrays_whose_rows_have_ids_are_read(tmp_path):
    images = {"images": PIXELS, "vectors": np.zeros((3, 8))}
    (tmp_path / "a.npz").write_bytes(npz(unit=np.array(["a", "b", "c"]), **images))
    (tmp_path / "b.npz").write_bytes(npz(subject_id=np.array([1, 2, 3]), **images))
    (tmp_path / "probe.npz").write_bytes(npz(classes=np.array(["a", "b"]), weights=np.ones((9, 2))))
    assert search_folders_for_people([tmp_path], who=[PLAIN, NUMBER]).is_clean
    (tmp_path / "c.npz").write_bytes(npz(subject_id=np.array([1, 20417, 3]), **images))
    matches = search_folders_for_people([tmp_path], who=[NUMBER]).matches
    assert {where.partition("!")[0] for where, _ in matches} == {f"{tmp_path.name}/c.npz"}


def test_a_link_within_the_folders_is_no_gap_and_its_name_is_read(tmp_path):
    (tmp_path / "a.txt").write_text("nothing")
    (tmp_path / "b.txt").symlink_to(tmp_path / "a.txt")
    assert search_folders_for_people([tmp_path], who=[PLAIN]).is_clean
    (tmp_path / f"{PLAIN}.txt").symlink_to(tmp_path / "a.txt")
    assert search_folders_for_people([tmp_path], who=[PLAIN]).matches
