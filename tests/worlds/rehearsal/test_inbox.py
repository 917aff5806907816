"""An inbox holds the faults that were injected, no others, and the same for the same seed."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from isolux.core.errors import SpecError
from isolux_worlds.rehearsal import FAULTS, draw_submitted_photos, write_inbox
from isolux_worlds.rehearsal.fault_assignment import count_faults
from isolux_worlds.rehearsal.files import SERIAL
from isolux_worlds.rehearsal.inbox import Inbox


@pytest.fixture(scope="module")
def inbox() -> Inbox:
    return draw_submitted_photos(100, seed=3)


@pytest.fixture(scope="module")
def folder(inbox: Inbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("inbox") / "inbox"
    write_inbox(inbox, path)
    return path


@pytest.mark.parametrize(("photos", "seed"), [(100, 0), (100, 4), (240, 1), (600, 2)])
def test_every_fault_is_injected_as_often_as_it_should_be(photos: int, seed: int) -> None:
    drawn = draw_submitted_photos(photos, seed=seed)
    found = dict(drawn.photos["fault"].drop_nulls().value_counts().iter_rows())
    people = dict(drawn.subjects["fault"].drop_nulls().value_counts().iter_rows())
    wanted = count_faults(photos)
    for fault in FAULTS:
        if fault.level == "subject":
            assert people[fault.name] == wanted[fault.name]
            assert found[fault.name] >= wanted[fault.name]
        elif fault.name == "too many":  # 13 photos each, of which 10 are taken
            assert found[fault.name] == 3 * wanted[fault.name]
        else:
            assert found[fault.name] == wanted[fault.name], fault.name
    assert drawn.photos.height == photos
    assert drawn.photos["image_id"].is_unique().all()


def test_a_photo_of_someone_with_a_fault_has_that_one_and_no_other(inbox: Inbox) -> None:
    fault = dict(inbox.subjects.drop_nulls("fault").select("subject_id", "fault").iter_rows())
    told = inbox.people.filter("stands").join(
        inbox.photos.select("image_id", photo="fault"), on="image_id"
    )
    for row in told.iter_rows(named=True):
        if row["subject_id"] in fault:
            assert row["photo"] == fault[row["subject_id"]]


def test_the_same_seed_gives_the_same_inbox_and_another_does_not(inbox: Inbox) -> None:
    assert draw_submitted_photos(100, seed=3).photos.equals(inbox.photos)
    assert draw_submitted_photos(100, seed=3).people.equals(inbox.people)
    assert not draw_submitted_photos(100, seed=4).photos.equals(inbox.photos)


def test_too_few_photos_for_every_fault_are_refused() -> None:
    with pytest.raises(SpecError, match="too few photos for every fault"):
        draw_submitted_photos(99)


def _file(folder: Path, inbox: Inbox, fault: str, at: int = 0) -> bytes:
    name = inbox.photos.filter(pl.col("fault") == fault)["file"][at]
    return (folder / "photos" / name).read_bytes()


def test_files_have_what_was_injected_in_them(folder: Path, inbox: Inbox) -> None:
    """Read with Pillow, not with the reader that intake has."""
    with pytest.raises(OSError, match="truncated"):
        Image.open(io.BytesIO(_file(folder, inbox, "damaged file"))).load()
    assert _file(folder, inbox, "PNG named JPEG").startswith(b"\x89PNG")
    assert not Image.open(io.BytesIO(_file(folder, inbox, "no Exif"))).getexif()
    sizes = {f: Image.open(io.BytesIO(_file(folder, inbox, f))).size
             for f in ("too few pixels", "too long", "logo")}  # fmt: skip
    assert sizes == {"too few pixels": (160, 120), "too long": (640, 240), "logo": (320, 240)}
    zoomed = Image.open(io.BytesIO(_file(folder, inbox, "zoomed"))).getexif().get_ifd(0x8769)
    assert float(zoomed[0xA404]) == 2.5
    edited = Image.open(io.BytesIO(_file(folder, inbox, "editor named"))).getexif()
    assert "Photoshop" in edited[0x0131]
    filtered = Image.open(io.BytesIO(_file(folder, inbox, "hidden filter"))).getexif()
    assert filtered[0x0131] == "1.4.2"


def test_copies_are_the_same_bytes_and_what_was_saved_anew_is_not(
    folder: Path, inbox: Inbox
) -> None:
    digest = {
        row["image_id"]: hashlib.sha256((folder / "photos" / row["file"]).read_bytes()).digest()
        for row in inbox.photos.iter_rows(named=True)
    }
    first = dict(inbox.photos.filter(pl.col("of").is_null()).select("source", "image_id").rows())
    for row in inbox.photos.filter(pl.col("fault").str.starts_with("sent")).iter_rows(named=True):
        assert digest[row["image_id"]] == digest[first[row["of"]]]
    for row in inbox.photos.filter(fault="saved anew").iter_rows(named=True):
        assert digest[row["image_id"]] != digest[first[row["of"]]]
    assert len(set(digest.values())) == 98


def test_photos_carry_what_must_never_be_published(folder: Path) -> None:
    held = (folder / "photos" / "photo-0001.jpg").read_bytes()
    assert SERIAL.encode() in held


def test_boxes_hold_their_people(folder: Path) -> None:
    """A box is the extent of its mask: read with pycocotools."""
    mask = pytest.importorskip("pycocotools.mask", reason="not installed: pycocotools")
    people = pl.read_csv(folder / "truth" / "people.csv", infer_schema=False)
    there = people.drop_nulls("mask_counts")
    assert there.height > 100
    for row in there.iter_rows(named=True):
        box = mask.toBbox({"size": [240, 320], "counts": row["mask_counts"].encode()})
        assert box.tolist() == [float(row[f"box_{side}"]) for side in "xywh"]
