"""From photos and their table to a folder that names no one, by the command."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from PIL import Image

import isolux_curate
from isolux.core.errors import IsoluxError, SpecError
from isolux.io.images import read_image
from tests.cli._run import isolux as run


@pytest.fixture
def inbox(tmp_path):
    (tmp_path / "in").mkdir()
    rows = ["file,subject_id,tone,taken,weight_kg,note"]
    for k in range(6):
        rows.append(f"ann-{k}.jpg,person-{k // 2},{k},2021-03-0{k + 1} 12:00:00,7{k},fine")
        exif = Image.Exif()
        exif[0x013B], exif[0x0112] = f"Ann Example {k}", 8
        pixels = np.full((30, 40, 3), 40 * k, dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "in" / f"ann-{k}.jpg", exif=exif)
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def asked(at, *more):
    return (
        "curate", "anonymise", at / "people.csv", "--photos", at / "in", "--out", at / "out",
        "--key", at / "secret.key", "--date", "taken", *more,
    )  # fmt: skip


def test_nothing_that_is_written_names_them(inbox, monkeypatch, capsys):
    done = run(monkeypatch, capsys, *asked(inbox))
    assert done.code == 0, done.err
    people = pl.read_csv(inbox / "out" / "people.csv")
    assert people["subject_id"].n_unique() == 3
    assert people["taken"].to_list() == ["2021-03"] * 6
    assert people["taken_time"].to_list() == ["afternoon"] * 6
    assert "weight_kg" not in people.columns
    for k, name in enumerate(people["file"]):
        np.testing.assert_array_equal(
            read_image(inbox / "out" / name), read_image(inbox / "in" / f"ann-{k}.jpg")
        )
    for path in (inbox / "out").rglob("*"):
        written = str(path.relative_to(inbox)).encode()
        written += path.read_bytes() if path.is_file() else b""
        assert not any(word in written for word in (b"ann-", b"person-", b"Example", b"secret"))
    audited = run(monkeypatch, capsys, "describe", f"table:{inbox / 'out' / 'people.csv'}")
    assert audited.code == 0, audited.err


def test_the_same_key_gives_the_same_ids_and_nothing_is_overwritten(inbox, monkeypatch, capsys):
    assert run(monkeypatch, capsys, *asked(inbox)).code == 0
    first = (inbox / "out" / "people.csv").read_text()
    again = run(monkeypatch, capsys, *asked(inbox))
    assert again.code == 2
    assert run(monkeypatch, capsys, *asked(inbox, "--overwrite")).code == 0
    assert (inbox / "out" / "people.csv").read_text() == first
    assert (inbox / "secret.key").stat().st_mode & 0o077 == 0


def test_regions_are_filled_and_nothing_else_changes(inbox, monkeypatch, capsys):
    (inbox / "regions.csv").write_text("file,x,y,w,h\nann-5.jpg,0,0,10,10\nann-5.jpg,20,5,5,5\n")
    done = run(monkeypatch, capsys, *asked(inbox, "--redact", inbox / "regions.csv"))
    assert done.code == 0, done.err
    assert "6 photos (1 with regions filled in)" in done.out
    name = pl.read_csv(inbox / "out" / "people.csv")["file"][5]
    filled = read_image(inbox / "out" / name)
    assert filled[:8, :8].max() < 30
    assert abs(int(filled[20:, 12:18].mean()) - 200) < 3
    assert json.loads((inbox / "out" / "privacy.json").read_text())["settings"]["filled"] == 1


def test_a_filler_of_ones_own(inbox, monkeypatch):
    (inbox / "grey.py").write_text(
        "import numpy as np\ndef fill(pixels, region):\n    return np.full_like(pixels, 99)\n"
        "def wrong(pixels, region):\n    return pixels[:5]\n"
    )
    monkeypatch.syspath_prepend(inbox)
    (inbox / "regions.csv").write_text("file,x,y,w,h\nann-5.jpg,0,0,10,10\n")
    given = {
        "out": inbox / "out", "key": inbox / "key", "photos": inbox / "in", "date": ["taken"],
        "redact": inbox / "regions.csv",
    }  # fmt: skip
    isolux_curate.anonymise(inbox / "people.csv", **given, inpaint="python:grey:fill")
    name = pl.read_csv(inbox / "out" / "people.csv")["file"][5]
    assert abs(int(read_image(inbox / "out" / name)[:8, :8].mean()) - 99) < 3
    with pytest.raises(SpecError, match="no such picture"):
        isolux_curate.anonymise(
            inbox / "people.csv", **given, inpaint="python:grey:wrong", overwrite=True
        )
    assert (inbox / "out" / "people.csv").exists()  # what was there is not lost


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"key": "out/key"}, "key would be published"), ({"keep_exif": ["Artist"]}, "Artist"),
        ({"inpaint": "magic"}, "magic"), ({"file": "photo"}, "photo"),
        ({"inpaint": "python:os:nothing"}, "no such function"),
    ],
)  # fmt: skip
def test_what_is_refused_writes_nothing(inbox, change, word):
    given = {"out": inbox / "out", "key": inbox / "key", "photos": inbox / "in", "date": ["taken"]}
    given |= change
    if "key" in change:
        given["key"] = inbox / change["key"]
    with pytest.raises(IsoluxError, match=word):
        isolux_curate.anonymise(inbox / "people.csv", **given)
    assert not (inbox / "out").exists()


@pytest.mark.parametrize(
    ("region", "word"),
    [("ann-9.jpg,0,0,5,5", "no photo"), ("ann-1.jpg,0,0,0,5", "not a box"),
     ("ann-1.jpg,900,0,5,5", "outside"), ("ann-1.jpg,a,0,5,5", "not a box"),
     ("ann-1.jpg,0.1,0.1,0.5,0.5", "shares of the picture")],
)  # fmt: skip
def test_regions_that_do_not_fit(inbox, region, word):
    (inbox / "regions.csv").write_text(f"file,x,y,w,h\n{region}\n")
    with pytest.raises(IsoluxError, match=word):
        isolux_curate.anonymise(
            inbox / "people.csv", out=inbox / "out", key=inbox / "key", photos=inbox / "in",
            date=["taken"], redact=inbox / "regions.csv",
        )  # fmt: skip
    assert not (inbox / "out").exists()


def test_a_photo_that_is_not_there_or_lies_elsewhere(inbox):
    given = {"out": inbox / "out", "key": inbox / "key", "photos": inbox / "in", "date": ["taken"]}
    table = inbox / "people.csv"
    for name in ("gone.jpg", "../people.csv"):
        table.write_text(f"file,subject_id,taken\n{name},person-1,2021-03-01\n")
        with pytest.raises(IsoluxError):
            isolux_curate.anonymise(table, **given)


def test_who_withdraws_is_in_no_count_of_an_anonymised_folder(inbox, monkeypatch, capsys):
    """Counts of 3 people less rows of 2 would be the weight of the one who left."""
    assert run(monkeypatch, capsys, *asked(inbox, "--publish-min", "1")).code == 0
    out, ledger = inbox / "out", inbox / "consent.jsonl"
    assert pl.read_csv(out / "counts.csv")["people"].to_list() == [3]
    done = run(monkeypatch, capsys, "withdraw", out, "--who", "person-1", "--ledger", ledger,
               "--published-key", inbox / "secret.key", "--allow-unmatched",
               "--keep-similar-images")  # fmt: skip
    assert done.code == 0, done.err
    assert not (out / "counts.csv").exists()
    record = json.loads((out / "privacy.json").read_text())
    assert (record["rows"], record["notes"]) == (4, [])
    assert pl.read_csv(out / "people.csv").height == 4
    assert "counts and documents" in " ".join(done.out.split())
