"""Known illegal material: told by id, never copied, and nothing leaves until it is decided."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import imagehash
import numpy as np
import polars as pl
import pytest
from PIL import Image

from isolux.core.errors import FileError, SpecError, TableError, UnknownNameError
from isolux_curate.annotation.sheets import plan_and_write_open_tasks, write_consented_answers
from isolux_curate.intake.ingest import ingest_sheet_photos
from isolux_curate.intake.intake_verdicts import (
    apply_and_record_rules,
    list_refusal_reasons_by_subject,
)
from isolux_curate.project.folder import (
    Project,
    create_or_open_project,
    read_journal,
    verify_journal_and_seals,
)
from isolux_curate.project.queries import read_images
from isolux_curate.project.verdicts import read_hash_matches_with_state
from isolux_curate.quality.evidence import gather_evidence_for_review
from isolux_curate.quality.hash_lists import (
    match_and_exclude_photos,
    read_hash_list,
    record_decisions_about_matches,
)
from isolux_curate.quality.sampling import draw_and_write_review_sample
from tests.curate._projects import project_of


def noise(seed: int, kind: str = "PNG", **more: int) -> bytes:
    """Paint a smooth picture of its own for each seed."""
    small = np.random.default_rng(seed).integers(0, 255, (8, 8, 3), dtype=np.uint8)
    file = io.BytesIO()
    Image.fromarray(small).resize((96, 96), Image.Resampling.BICUBIC).save(file, kind, **more)
    return file.getvalue()


@pytest.fixture
def inbox(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for k in range(4):
        (tmp_path / "in" / f"{k}.png").write_bytes(noise(k))
    rows = "".join(f"{k}.png,s{k}\n" for k in range(4))
    (tmp_path / "photos.csv").write_text("file,subject_id\n" + rows)
    return tmp_path


def listing(folder: Path, text: str) -> Path:
    (folder / "list.txt").write_text(text)
    return folder / "list.txt"


def brought(folder: Path, hashes: Path | None = None) -> Project:
    project = create_or_open_project(folder / "p", curator="ada")
    known = None if hashes is None else read_hash_list(hashes)
    ingest_sheet_photos(
        project, folder / "photos.csv", photo_folder=folder / "in", illegal_hashes=known
    )
    return project


@pytest.mark.parametrize("name", ["md5", "sha1", "sha256"])
def test_a_match_is_not_copied_and_stops_what_leaves(inbox: Path, name: str) -> None:
    bad = noise(2)
    digest = hashlib.new(name, bad).hexdigest()
    project = brought(inbox, listing(inbox, f"# a list\n{digest.upper()}\n"))
    assert not [p for p in (project.folder / "photos").rglob("*.png") if p.read_bytes() == bad]
    assert read_hash_matches_with_state(project).rows() == [("2", f"{name} {digest}", "undecided")]
    assert read_images(project)["image_id"].to_list() == ["0", "1", "3"]
    for step in (
        lambda: plan_and_write_open_tasks(project, "count", inbox / "out"),
        lambda: write_consented_answers(project, "count", inbox / "a.csv"),
        lambda: draw_and_write_review_sample(project, inbox / "s", type=["image"]),
        lambda: gather_evidence_for_review(project, contradict=["a=b"]),
    ):
        with pytest.raises(SpecError, match="1 photo matches a list of known illegal material"):
            step()
    assert not (inbox / "out").exists()
    apply_and_record_rules(project)
    assert "2" not in list_refusal_reasons_by_subject(project)["image_id"]  # nobody is told
    assert digest not in read_journal(project)["said"].str.join(" ").item()
    verify_journal_and_seals(project)


def test_what_is_decided_opens_the_project(inbox: Path) -> None:
    project = brought(inbox, listing(inbox, hashlib.md5(noise(2)).hexdigest()))  # noqa: S324
    sheet = inbox / "decided.csv"
    sheet.write_text("image_id,verdict,reason\n2,out,Reported on 2026-11-23.\n")
    assert record_decisions_about_matches(project, sheet) == 1
    assert record_decisions_about_matches(project, sheet) == 0
    assert plan_and_write_open_tasks(project, "count", inbox / "out") == 3
    assert read_hash_matches_with_state(project)["state"].to_list() == ["out"]


def test_a_false_match_comes_in_the_next_time_that_it_is_added(inbox: Path) -> None:
    hashes = listing(inbox, hashlib.md5(noise(2)).hexdigest())  # noqa: S324
    project = brought(inbox, hashes)
    sheet = inbox / "decided.csv"
    sheet.write_text("image_id,verdict,reason\n2,in,Another picture with the same hash.\n")
    assert record_decisions_about_matches(project, sheet) == 1
    brought(inbox, hashes)
    held = read_images(project).filter(image_id="2")
    assert (project.folder / held["file"][0]).read_bytes() == noise(2)
    assert match_and_exclude_photos(project, read_hash_list(hashes)).new_ids == ()


def test_a_project_that_is_there_is_compared(inbox: Path) -> None:
    project = brought(inbox)
    known = read_hash_list(listing(inbox, hashlib.sha1(noise(1)).hexdigest()))  # noqa: S324
    found = match_and_exclude_photos(project, known)
    assert (found.n_photos, found.new_ids, found.undecided_ids) == (4, ("1",), ("1",))
    assert match_and_exclude_photos(project, known).new_ids == ()


def test_perceptual_hashes_find_a_picture_that_was_saved_anew(inbox: Path) -> None:
    entries = [imagehash.phash(Image.open(io.BytesIO(noise(k)))) for k in (2, 77)]
    (inbox / "in/2.png").write_bytes(noise(2, "JPEG", quality=60))
    (inbox / "in/3.png").write_bytes(_mirrored(noise(77)))
    project = brought(inbox)
    known = read_hash_list(listing(inbox, "\n".join(map(str, entries))))
    assert match_and_exclude_photos(project, known).new_ids == ("2", "3")


def _mirrored(data: bytes) -> bytes:
    file = io.BytesIO()
    Image.open(io.BytesIO(data)).transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(file, "PNG")
    return file.getvalue()


def test_a_table_names_its_hashes(tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(f"md5,sha256\n{'a' * 32},{'b' * 64}\n,{'c' * 64}\n")
    assert len(read_hash_list(tmp_path / "list.csv")) == 3


def first_byte(data: bytes) -> str:
    return data[:2].hex()


def test_another_hasher_is_asked(inbox: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isolux_curate.quality.hash_lists.BITS", 0)
    project = brought(inbox)
    path = listing(inbox, "8950\n")  # how a PNG begins
    hasher = f"python:{__name__}:first_byte"
    assert len(match_and_exclude_photos(project, read_hash_list(path, hasher=hasher)).new_ids) == 4


@pytest.mark.parametrize(
    ("text", "said"),
    [("abc\n", "a line is not a hash"), ("z" * 32 + "\n", "an entry is no md5"),
     ("# none\n", "is empty"),
     ("perceptual\nabcd\n", "perceptual hashes of another kind")],
)  # fmt: skip
def test_lists_that_are_none(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises((TableError, FileError, SpecError), match=said):
        read_hash_list(listing(tmp_path, text))


def test_decisions_about_other_photos_are_refused(tmp_path: Path) -> None:
    project = project_of(tmp_path / "p", ["a"])
    (tmp_path / "d.csv").write_text("image_id,verdict,reason\na,in,\n")
    with pytest.raises(UnknownNameError, match="match named 'a'"):
        record_decisions_about_matches(project, tmp_path / "d.csv")
    assert pl.DataFrame(read_hash_matches_with_state(project)).is_empty()
