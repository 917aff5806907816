"""Every place in which a person may hide is found, or named as not looked into; no other is."""

from __future__ import annotations

import hashlib
import json
import sys

import numpy as np
import polars as pl
import pytest

from isolux_curate.api.withdraw import search_folders_for_people, withdraw
from tests.curate.proof import _hiding_places as designed
from tests.curate.proof import _places_kept_apart as kept_apart
from tests.curate.proof._writers import ID, JPEG, NAME, NUMBER, arrays, parquet, picture

SEARCHED = {"TEXTS": [ID, NAME], "NUMBERS": [NUMBER], "PICTURES": []}
PLACES = [
    pytest.param(kind, name, held, id=f"{module.__name__.rpartition('.')[2]}: {name}")
    for module in (designed, kept_apart)
    for kind in SEARCHED
    for name, held in getattr(module, kind).items()
]


def test_there_are_more_than_a_hundred():
    assert len(PLACES) > 250


@pytest.mark.parametrize(("kind", "name", "held"), PLACES)
def test_a_person_is_found_or_the_file_is_named(tmp_path, kind, name, held):
    folder = tmp_path / "in"
    folder.mkdir()
    (tmp_path / "theirs.jpg").write_bytes(JPEG)
    held(folder) if callable(held) else (folder / name).write_bytes(held)
    photo = [tmp_path / "theirs.jpg"] if kind == "PICTURES" else []
    proof = search_folders_for_people([folder], who=SEARCHED[kind], photo=photo)
    assert proof.matches or proof.unsearchable
    assert not proof.is_clean


_POLYGON = [[round(100 + 90 * np.cos(k), 1), round(100 + 90 * np.sin(k), 1)] for k in range(150)]
ORDINARY = {
    "people.csv": b"subject_id,age\ns-1,20417.5\n",
    "accents.txt": "Zo\u00eb, \u65e5\u672c\n".encode(),
    "latin-1.txt": "caf\u00e9 au lait\n".encode("latin-1"),
    "report.md": b"# Of 1,204 people\n\n`x = a[1] * 2`\n",
    "sums.sha256": b"".join(
        hashlib.sha256(bytes([k])).hexdigest().encode() + b"  a.jpg\n" for k in range(9)
    ),
    "curve.csv": b"x,y\n" + b"".join(f"{k / 999:.4f},{k * k}\n".encode() for k in range(999)),
    "curve.json": json.dumps({"fpr": [k / 99 for k in range(99)]}).encode(),
    "labels.csv": b"y_true,y_pred\n" + b"1,0\n" * 900,
    "polygon.json": json.dumps({"type": "Polygon", "coordinates": _POLYGON}).encode(),
    "coco.json": json.dumps(
        {
            "images": [{"id": 1, "file_name": "a.jpg"}],
            "annotations": [
                {"image_id": 1, "segmentation": {"counts": [k % 200 for k in range(900)]}}
            ],
        }
    ).encode(),
    "vectors.npz": arrays(instance_id=np.array(["a", "b"]), vectors=np.ones((2, 512))),
    "vectors.parquet": parquet({"subject_id": ["a", "b"], "vector": [[0.5] * 512] * 2}),
    "counts.parquet": parquet({"label": ["a"], "counts": [[1, 2, 3]]}),
    "probe.npz": arrays(classes=np.array(["a", "b"]), weights=np.ones((9, 2))),
    "code.js": b"var a=function(b){return b.map(function(c){return c*c})};" * 40,
    "grey.jpg": picture(of_them=False),
    "key.txt": b"sha512-" + b"q" * 86 + b"==",
    "address.txt": b"https://a.b/" + b"c/d-e_" * 30,
}


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_file_is_clean(tmp_path, name):
    (tmp_path / name).write_bytes(ORDINARY[name])
    assert search_folders_for_people([tmp_path], who=["s-0418y", "20418"]).is_clean


@pytest.mark.parametrize("name", ["categories.feather", "categories.parquet"])
def test_a_category_that_no_row_has_any_more_is_found(tmp_path, monkeypatch, name):
    """pandas keeps it; without pyarrow, which reads it, the file is named."""
    (tmp_path / name).write_bytes(designed.TEXTS[name])
    assert search_folders_for_people([tmp_path], who=[ID]).matches
    assert search_folders_for_people([tmp_path], who=["s-0418y"]).is_clean
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    unread = search_folders_for_people([tmp_path], who=["s-0418y"]).unsearchable
    assert ["pip install pyarrow" in why for _, why in unread] == [True]


def test_a_withdrawal_signs_nothing_while_a_file_is_unread(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    pl.DataFrame({"subject_id": [ID, "b"]}).write_csv(folder / "people.csv")
    (folder / "pixels.json").write_bytes(designed.PICTURES["pixels.json"])
    ledger = str(tmp_path / "consent.jsonl")
    done = withdraw([folder], who=[ID], ledger=ledger)
    assert done.receipt is None
    assert [where for where, _ in done.unsearchable] == ["in/pixels.json"]
    (folder / "pixels.json").unlink()
    assert withdraw([folder], who=[ID], ledger=ledger).receipt is not None
