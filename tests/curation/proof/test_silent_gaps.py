"""What cannot be read is named: each of these was neither found nor named before."""

from __future__ import annotations

import io
import pickle
import subprocess
import zipfile
import zlib
from base64 import a85encode

import numpy as np
import polars as pl
import pytest

pytest.importorskip("sqlalchemy", reason="not installed: pip install 'isolux[curate]'")

from isolux.verbs.withdraw import prove

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


def parquet(**columns):
    out = io.BytesIO()
    pl.DataFrame(columns).write_parquet(out)
    return out.getvalue()


def zipped(**parts):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in parts.items():
            archive.writestr(f"{name}.json", data)
    return out.getvalue()


def pdf():
    """Write a page as reportlab does by default: packed by zlib, and then in ASCII85."""
    text = a85encode(zlib.compress(f"BT ({PLAIN}) Tj ET".encode())) + b"~>"
    return (
        b"%PDF-1.4\n/Filter [ /ASCII85Decode /FlateDecode ]\nstream\n" + text + b"endstream\n%%EOF"
    )


NAMED = {
    "page.pdf": pdf(), "cache.npz": npz(images=PIXELS, labels=np.arange(3)),
    "cache.npy": npy(PIXELS), "vectors.npy": npy(np.zeros((3, 8))),
    "ids.npy": npy(np.array([20417])),
    "bare.npz": npz(arr_0=np.array([20417, 3])),
    "records.npy": npy(np.array([(20417, 1)], dtype=[("who", int), ("n", int)])),
    "old.pkl": pickle.dumps([PLAIN, 20417], protocol=0),
    "old.cache": pickle.dumps([PLAIN, 20417], protocol=0),
    "new.cache": pickle.dumps({"who": 20417}), "small.blob": b"\0\1\2\3",
    "unnamed.parquet": parquet(**{"0": [20417, 2], "n": [1, 2]}),
    "index.parquet": parquet(__index_level_0__=[20417, 2], n=[1, 2]),
    "published.zip": zipped(dataset='{"format": "isolux curated dataset"}'),
}  # fmt: skip
FOUND = {
    "escaped.txt": "".join(f"%{one:02x}" for one in PLAIN.encode()),
    "twice.txt": f"https://a.b/c?next=%252Fphotos%252F{PLAIN.replace('-', '%252D')}.jpg",
}


@pytest.mark.parametrize("name", NAMED)
def test_what_is_not_read_is_named(tmp_path, name):
    (tmp_path / name).write_bytes(NAMED[name])
    done = prove([tmp_path], who=[PLAIN, NUMBER])
    assert done.blind or done.found
    assert not done.is_clean


@pytest.mark.parametrize("name", FOUND)
def test_escapes_of_addresses_are_read(tmp_path, name):
    (tmp_path / name).write_text(FOUND[name])
    assert prove([tmp_path], who=[PLAIN]).found
    assert prove([tmp_path], who=["s-0418x"]).is_clean


def test_arrays_whose_rows_have_ids_are_read(tmp_path):
    images = {"images": PIXELS, "vectors": np.zeros((3, 8))}
    (tmp_path / "a.npz").write_bytes(npz(unit=np.array(["a", "b", "c"]), **images))
    (tmp_path / "b.npz").write_bytes(npz(subject_id=np.array([1, 2, 3]), **images))
    (tmp_path / "probe.npz").write_bytes(npz(classes=np.array(["a", "b"]), weights=np.ones((9, 2))))
    assert prove([tmp_path], who=[PLAIN, NUMBER]).is_clean
    (tmp_path / "c.npz").write_bytes(npz(subject_id=np.array([1, 20417, 3]), **images))
    assert [where for where, _ in prove([tmp_path], who=[NUMBER]).found] == [
        f"{tmp_path.name}/c.npz"
    ]


def test_a_history_that_git_packed_is_named(tmp_path):
    git = ("git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c")
    (tmp_path / "x.txt").write_text(f"of {PLAIN}\n")
    for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "x"), ("rm", "-q", "x.txt"),
                  ("commit", "-qm", "y"), ("gc", "-q", "--prune=now")):  # fmt: skip
        subprocess.run([*git, *words], check=True)
    done = prove([tmp_path], who=[PLAIN])
    assert not done.found
    assert any(why == "a pack of git's history" for _, why in done.blind)


def test_a_link_within_the_folders_is_no_gap_and_its_name_is_read(tmp_path):
    (tmp_path / "a.txt").write_text("nothing")
    (tmp_path / "b.txt").symlink_to(tmp_path / "a.txt")
    assert prove([tmp_path], who=[PLAIN]).is_clean
    (tmp_path / f"{PLAIN}.txt").symlink_to(tmp_path / "a.txt")
    assert prove([tmp_path], who=[PLAIN]).found
