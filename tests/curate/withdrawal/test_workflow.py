"""A person withdraws from a lab's folders: nothing of theirs is left, all of everyone else's is."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest
from PIL import Image

from isolux.core.errors import FileError, SpecError, TableError
from isolux.io import run_directory
from isolux.io.consent import append_consent, read_ledger
from isolux.io.run_changes import list_changed_files
from isolux_curate.api.withdraw import (
    search_folders_for_people,
    verify_and_read_receipt,
    withdraw,
    withdraw_reappeared_people,
)
from isolux_curate.project.folder import open_project, verify_journal_and_seals
from isolux_curate.project.queries import read_images, read_subjects
from tests.curate.withdrawal._lab import lab_of
from tests.curate.withdrawal._search import hits

WHO = "s0003"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return lab_of(tmp_path_factory.mktemp("lab") / "lab", 12)


@pytest.fixture
def lab(made, tmp_path):
    """Give a copy of the lab, with the words and pictures of who withdraws."""
    root = tmp_path / "lab"
    shutil.copytree(made.root, root)
    return root


def theirs(made):
    images = made.of(WHO)
    return [WHO, *images], list(made.pixels(images).values())


def others(root):
    """List everything that must stay: files, and rows of the tables."""
    kept = sorted(p.relative_to(root).as_posix() for p in root.rglob("*.jpg") if WHO not in p.name)
    tables = {
        "photos": pl.read_csv(root / "inbox" / "photos.csv")["image_id"],
        "crops": pl.read_csv(root / "crops" / "crops.csv")["image_id"],
        "answers": pl.read_parquet(root / "answers" / "predictions.parquet")["instance_id"],
        "scores": pl.read_parquet(root / "runs" / "light" / "scores.parquet")["unit_id"],
        "people": pl.read_ndjson(root / "public" / "people.jsonl")["image_id"],
        "project": read_images(open_project(root / "faces"))["image_id"],
        "subjects": read_subjects(open_project(root / "faces"))["subject_id"],
    }
    return [f for f in kept if not f.startswith("faces/")], {
        name: sorted(one for one in column if not one.startswith(WHO))
        for name, column in tables.items()
    }


def test_nothing_is_left_and_everyone_else_stays(made, lab):
    words, pixels = theirs(made)
    assert len(hits(lab, words, pixels)) > 60  # the search finds them before
    before = others(lab)
    done = withdraw([lab], who=[WHO])
    assert hits(lab, words, pixels) == []
    assert others(lab) == before
    assert not (lab / "faces" / "consent.jsonl.withdrawing").exists()
    project = open_project(lab / "faces")
    assert verify_journal_and_seals(project) > 0
    ledger = read_ledger(project.consent_path)
    assert ledger.has_checked_signatures
    told = ledger.allows("subject", pl.Series([WHO, "s0004"]), "evaluation")
    assert told.to_list() == [False, True]
    said = verify_and_read_receipt(done.receipt)
    assert {one["done"] for one in said["artefacts"]} == {"deleted", "rewritten"}
    run = run_directory.load_run(lab / "runs" / "light")
    assert "People withdrew after this audit" in run.record["warnings"][0]
    assert list_changed_files(lab / "runs" / "light") == []
    assert "People withdrew after this audit" in (lab / "runs/light/report.html").read_text()


def held(root):
    """Read all files but the database, which is written anew, and receipts."""
    files = (p for p in root.rglob("*") if p.is_file() and p.parent.name != "withdrawals")
    return {p: p.read_bytes() for p in files if "project.sqlite" not in p.name}


def test_given_again_it_changes_nothing(lab):
    withdraw([lab], who=[WHO])
    files = held(lab)
    again = withdraw([lab], who=[WHO])
    assert again.artefacts == ()
    assert held(lab) == files


def test_a_dry_run_changes_nothing(lab):
    before = {p: p.read_bytes() for p in lab.rglob("*") if p.is_file()}
    found = withdraw([lab], who=[WHO], dry_run=True)
    assert len(found.artefacts) > 10
    assert before == {p: p.read_bytes() for p in lab.rglob("*") if p.is_file()}


def test_killed_at_any_moment_and_given_again_it_goes_on(made, lab, tmp_path):
    """A withdrawal that is never stopped and one that is killed often end in the same receipt."""
    whole = tmp_path / "whole" / "lab"
    shutil.copytree(lab, whole)
    straight = withdraw([whole], who=[WHO])
    code = (
        "import sys, time\nfrom isolux_curate.api.withdraw import withdraw\n"
        "print('on', flush=True)\n"
        f"withdraw([{str(lab)!r}], who=[{WHO!r}])\nprint('done', flush=True)\n"
    )
    words, pixels = theirs(made)
    chance = random.Random(4)  # noqa: S311 (moments of a test)
    for _ in range(10 if os.environ.get("ISOLUX_LAWS") == "full" else 3):
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        child.stdout.readline()
        try:
            child.wait(chance.uniform(0.0, 1.0))
        except subprocess.TimeoutExpired:
            os.kill(child.pid, signal.SIGKILL)
        child.communicate()
    begun = (lab / "faces" / "consent.jsonl.withdrawing").exists()
    if begun or not (lab / "faces" / "withdrawals").exists():
        withdraw([lab], who=[WHO])
    assert hits(lab, words, pixels) == []
    receipts = sorted((lab / "faces" / "withdrawals").iterdir())
    shown = ("done", "n", "what", "after")

    def told(found):
        made = [one for r in found for one in json.loads(r.read_text())["artefacts"]]
        return sorted(str([one[k] for k in shown]) for one in made if one["what"] == "file")

    assert told(receipts) == told([straight.receipt])
    rows = [row.act for row in read_ledger(lab / "faces" / "consent.jsonl").rows]
    assert rows.count("revoke") == 1
    assert verify_journal_and_seals(open_project(lab / "faces")) > 0


def test_photos_of_the_same_bytes_go_along(lab):
    project = open_project(lab / "faces")
    copy = lab / "more"
    copy.mkdir()
    (copy / "other.jpg").write_bytes((lab / "inbox" / f"{WHO}_0.jpg").read_bytes())
    (copy / "photos.csv").write_text("file,image_id,subject_id\nother.jpg,other,s0001\n")
    from isolux_curate.intake.ingest import ingest_sheet_photos

    ingest_sheet_photos(project, copy / "photos.csv")
    withdraw([lab], who=[WHO])
    assert not (copy / "other.jpg").exists()
    images = read_images(open_project(lab / "faces"))["image_id"].to_list()
    assert "other" not in images
    assert "s0001_0" in images


def test_a_copyright_holder_takes_photos_and_no_subject(made, lab):
    append_consent(
        lab / "faces" / "consent.jsonl", "grant", "copyright", ["holder-2"], ["evaluation"]
    )
    theirs = made.photos.filter(copyright_holder="holder-2")["image_id"].to_list()
    withdraw([lab], who=["holder-2"], kind="copyright")
    project = open_project(lab / "faces")
    left = read_images(project)["image_id"].to_list()
    assert set(left).isdisjoint(theirs)
    assert len(left) == 48 - len(theirs)
    assert read_subjects(project).height == 12
    assert hits(lab, ["holder-2", *theirs], []) == []


def test_publication_alone_leaves_the_project(made, lab):
    withdraw([lab / "public"], who=[WHO], scope=["publication"],
             ledger=str(lab / "faces" / "consent.jsonl"))  # fmt: skip
    assert hits(lab / "public", [WHO, *made.of(WHO)], []) == []
    assert read_images(open_project(lab / "faces")).height == 48
    state = read_ledger(lab / "faces" / "consent.jsonl")
    told = [state.allows("subject", pl.Series([WHO]), s)[0] for s in ("evaluation", "publication")]
    assert told == [True, False]


def test_a_receipt_that_was_changed_is_refused(lab):
    receipt = withdraw([lab], who=[WHO]).receipt
    said = json.loads(receipt.read_text())
    receipt.write_text(json.dumps(said | {"ended": "2020-01-01T00:00:00Z"}))
    with pytest.raises(TableError, match="receipt was changed"):
        verify_and_read_receipt(receipt)
    receipt.write_text(json.dumps(said | {"signature": "0" * 64}))
    with pytest.raises(TableError, match="signature does not verify"):
        verify_and_read_receipt(receipt)


def test_a_ledger_that_was_tampered_with_stops_it(lab):
    ledger = lab / "faces" / "consent.jsonl"
    ledger.write_text(ledger.read_text().replace("s0005", "s0006", 1))
    before = sorted(p for p in lab.rglob("*"))
    with pytest.raises(TableError, match="was changed"):
        withdraw([lab], who=[WHO])
    assert before == sorted(p for p in lab.rglob("*"))


def test_what_cannot_be_looked_through_keeps_it_unfinished(made, lab):
    (lab / "odd.json").write_text("{ no JSON")
    done = withdraw([lab], who=[WHO])
    assert done.receipt is None
    assert done.unsearchable == (("lab/odd.json", "it is no JSON"),)
    assert (lab / "faces" / "consent.jsonl.withdrawing").stat().st_mode & 0o077 == 0
    (lab / "odd.json").unlink()
    # The project no longer knows their photos: the plan does, and a search reads it.
    image = made.of(WHO)[0]
    cut = Image.fromarray(next(iter(made.pixels([image]).values())))
    cut.save(lab / "thumb.png")
    told = dict(search_folders_for_people([lab], who=[WHO]).matches)
    assert told["lab/thumb.png"] == "a picture that looks like theirs"
    (lab / "thumb.png").unlink()
    # A folder that is named later is looked through too, before there is a receipt.
    later = lab.parent / "later"
    later.mkdir()
    (later / "more.csv").write_text(f"subject_id,n\n{WHO},1\ns0001,2\n")
    (later / "odd.json").write_text("{ no JSON")
    (lab / "odd.json").write_text("{ no JSON")
    assert withdraw([lab, later], who=[WHO]).receipt is None
    (lab / "odd.json").unlink()
    (later / "odd.json").unlink()
    assert (later / "more.csv").read_text() == "subject_id,n\ns0001,2\n"
    assert withdraw([lab]).receipt is not None  # without --who it ends what was begun


def test_someone_else_waits_for_what_was_begun_and_is_told(lab):
    (lab / "odd.json").write_text("{ no JSON")
    withdraw([lab], who=[WHO])
    waits = withdraw([lab], who=["s0002"])
    assert waits.receipt is None
    assert "has not begun" in waits.remaining[0][1]
    (lab / "odd.json").unlink()
    done = withdraw([lab], who=["s0002"])
    assert "was finished first" in done.notes[0]
    assert done.receipt.name == "0002.json"


def test_an_id_that_nothing_knows_is_refused(lab):
    with pytest.raises(SpecError, match=r"(?s)1 of 2 ids .*are in no table.*'s9999'"):
        withdraw([lab], who=[WHO, "s9999"])
    assert not (lab / "faces" / "withdrawals").exists()
    (lab / "s9999.txt").write_text("of nobody else")
    assert withdraw([lab], who=["s9999"], allow_unmatched=True).receipt is not None
    assert not (lab / "s9999.txt").exists()


def test_a_file_is_no_folder(lab):
    with pytest.raises(FileError, match="this is a file"):
        withdraw([lab / "faces" / "consent.jsonl"], who=[WHO])


def test_who_withdraws_must_be_said(lab):
    with pytest.raises(SpecError, match="who withdraws is not said"):
        withdraw([lab])


def test_2000_photos_take_less_than_a_minute(tmp_path):
    if os.environ.get("ISOLUX_LAWS") != "full":
        pytest.skip("2,000 photos: ISOLUX_LAWS=full")
    made = lab_of(tmp_path / "lab", 500)
    words, pixels = theirs(made)
    start, cpu = time.perf_counter(), time.process_time()
    withdraw([made.root], who=[WHO])
    print(f"{time.process_time() - cpu:.1f} s CPU, {time.perf_counter() - start:.1f} s")
    assert time.process_time() - cpu < 60
    assert hits(made.root, words, pixels) == []


def test_what_was_published_under_a_key_is_found_by_it(made, lab):
    """Ids and photos of a publication say nothing; sums of files are told anew."""
    import hashlib

    from isolux_curate.api.anonymise import anonymise

    key, out = lab.parent / "names.key", lab / "anonymous"
    people = lab / "inbox" / "people.csv"
    made.photos.select("subject_id", "file").write_csv(people)
    anonymise(people, out=out, key=key, id=["subject_id"], photos=lab / "inbox")
    table = out / "people.csv"
    before = pl.read_csv(table)
    listed = out / "croissant.json"
    listed.write_text(json.dumps({"sha256": hashlib.sha256(table.read_bytes()).hexdigest()}))
    copied = lab.parent / "copied" / "people.csv"
    copied.parent.mkdir()
    copied.write_bytes(table.read_bytes())
    done = withdraw([lab], who=[WHO], published_key=[str(key)])
    assert done.receipt is not None, (done.remaining, done.unsearchable)
    # A copy elsewhere still has them, under a name that only the key tells.
    ((where, why),) = search_folders_for_people([copied.parent], who=[WHO]).unsearchable
    assert (where, "pseudonyms" in why) == (str(copied), True)
    assert not search_folders_for_people(
        [copied.parent], who=[WHO], published_key=[str(key)]
    ).is_clean
    assert search_folders_for_people([out], who=[WHO], published_key=[str(key)]).is_clean
    after = pl.read_csv(table)
    assert after.height == before.height - 4
    assert len(list((out / "photos").iterdir())) == before.height - 4
    told = json.loads(listed.read_text())["sha256"]
    assert told == hashlib.sha256(table.read_bytes()).hexdigest()
    assert hits(lab, [WHO], list(made.pixels(made.of(WHO)).values())) == []


def test_a_publication_whose_key_is_not_named(made, lab):
    """It is refused before anything is changed, also if its photos look like those of the lab."""
    from isolux_curate.api.anonymise import anonymise

    people, out, key = lab / "inbox" / "people.csv", lab / "anonymous", lab.parent / "names.key"
    made.photos.select("subject_id", "file").write_csv(people)
    anonymise(people, out=out, key=key, id=["subject_id"], photos=lab / "inbox")
    before = {p: p.read_bytes() for p in lab.rglob("*") if p.is_file()}
    for way in ({}, {"dry_run": True}):
        with pytest.raises(SpecError, match=r"(?s)lab/anonymous.*--published-key FILE"):
            withdraw([lab], who=[WHO], **way)
    with pytest.raises(SpecError, match="--published-key FILE"):
        withdraw_reappeared_people([lab])
    assert before == {p: p.read_bytes() for p in lab.rglob("*") if p.is_file()}
    # An older folder does not say under which key: one that leads nobody back is none.
    record = json.loads((out / "privacy.json").read_text())
    assert len(record.pop("pseudonym_key_mark")) == 16
    (out / "privacy.json").write_text(json.dumps(record))
    other = lab.parent / "other.key"
    other.write_text("ab" * 32 + "\n")
    with pytest.raises(SpecError, match="leads any of them back"):
        withdraw([lab], who=[WHO], published_key=[str(other)])
    assert withdraw([lab], who=[WHO], published_key=[str(key)]).receipt is not None
    assert pl.read_csv(out / "people.csv").height == 44
    assert len(list((out / "photos").iterdir())) == 44


@pytest.mark.parametrize("listed", [6, 2, 0])
def test_files_of_one_name_in_folders_of_their_own(lab, listed):
    """``s0003/1.jpg`` is not ``s0004/1.jpg``, whether a table lists all, theirs or none."""
    import io
    import zipfile

    out = lab / "own"
    rows, held = ["subject_id,file,n"], io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for k, who in enumerate((WHO, "s0004", "s0005")):
            (out / who).mkdir(parents=True)
            for n in (1, 2):
                name = f"{who}/{n}.jpg"
                Image.effect_noise((48, 48), 20 + 10 * k + n).save(out / name)
                rows.append(f"{who},{name},{n}")
                archive.write(out / name, name)
    rows = rows[: 1 + listed]
    (out / "people.csv").write_text("\n".join(rows) + "\n")
    files = ["file", *(r.split(",")[1] for r in rows[1:])]
    (out / "files.csv").write_text("\n".join(files) + "\n")
    (lab / "own.zip").write_bytes(held.getvalue())
    assert withdraw([lab], who=[WHO]).receipt is not None
    kept = [f"{who}/{n}.jpg" for who in ("s0004", "s0005") for n in (1, 2)]
    assert sorted(p.relative_to(out).as_posix() for p in out.rglob("*.jpg")) == kept
    assert (out / "people.csv").read_text().splitlines()[1:] == rows[3:]
    assert (out / "files.csv").read_text().splitlines()[1:] == files[3:]
    assert zipfile.ZipFile(lab / "own.zip").namelist() == kept


def test_a_proof_without_the_key_of_a_publication_says_so(tmp_path):
    (tmp_path / "dataset.json").write_text('{"format": "isolux curated dataset"}')
    (tmp_path / "names.key").write_text("ab" * 32 + "\n")
    done = search_folders_for_people([tmp_path], who=["s0017"])
    assert not done.is_clean
    ((where, why),) = done.unsearchable
    assert (where, "--published-key FILE" in why) == (str(tmp_path), True)


@pytest.mark.parametrize("form", ["zip", "tar.gz", "zip in a zip", "table outside"])
def test_photos_that_only_a_table_in_an_archive_links_to_the_person_go(tmp_path, form):
    import io
    import tarfile
    import zipfile

    rows = {"subject_id": [WHO, "s0009"], "image_id": ["beach17", "forest18"],
            "file": ["beach17.png", "forest18.png"]}  # fmt: skip
    pixels = {
        name: np.random.default_rng(seed).integers(0, 256, (8, 8, 3)).astype(np.uint8)
        .repeat(8, axis=0).repeat(8, axis=1)
        for seed, name in enumerate(rows["file"])
    }  # fmt: skip
    photos = {}
    for name, shown in pixels.items():
        out = io.BytesIO()
        Image.fromarray(shown).save(out, "PNG")
        photos[name] = out.getvalue()
    table = pl.DataFrame(rows).write_csv().encode()
    parts = {**photos, "people.csv": table}
    folder = tmp_path / "data"
    folder.mkdir()

    def zipped(of):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in of.items():
                archive.writestr(name, data)
        return out.getvalue()

    if form == "tar.gz":
        with tarfile.open(folder / "set.tar.gz", "w:gz") as archive:
            for name, data in parts.items():
                info = tarfile.TarInfo(name)
                info.size = len(data)
                archive.addfile(info, io.BytesIO(data))
    elif form == "table outside":
        (folder / "people.zip").write_bytes(zipped({"people.csv": table}))
        for name, data in photos.items():
            (folder / name).write_bytes(data)
    else:
        inner = zipped(parts)
        (folder / "set.zip").write_bytes(inner if form == "zip" else zipped({"inner.zip": inner}))
    ledger = tmp_path / "consent.jsonl"
    append_consent(ledger, "grant", "subject", [WHO, "s0009"], ["publication"])
    withdraw([folder], who=[WHO], ledger=ledger)
    assert hits(folder, [WHO, "beach17"], [pixels["beach17.png"]]) == []
    assert hits(folder, ["forest18"], [pixels["forest18.png"]])
