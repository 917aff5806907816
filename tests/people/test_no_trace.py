"""Whoever withdrew is in nothing that is written or printed, byte for byte: short ids too."""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import shutil
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

from isolux.io import atomic
from tests.cli._run import isolux

LONG, SHORT = "who-seven-of-nine", "Ω7"  # the short one of letters that chance does not write
PEOPLE = 60


@pytest.fixture
def data(tmp_path) -> Path:
    """Make 60 subjects with two photos each, two models' answers, and a list of two to go."""
    subjects = [LONG, SHORT, *(f"s{i:03}" for i in range(2, PEOPLE))]
    photos = [f"{who}-{n}.jpg" for who in subjects for n in (0, 1)]
    head = "file,subject,race,truth,box_x,box_y,box_w,box_h\n"
    rows = [f"{p},{p[:-6]},{'AB'[i // 2 % 2]},x,2,2,9,9\n" for i, p in enumerate(photos)]
    (tmp_path / "people.csv").write_text(head + "".join(rows), encoding="utf-8")
    for name, step in (("old", 3), ("new", 5)):
        said = [f"{p},{'xy'[i % step == 0]}\n" for i, p in enumerate(photos)]
        (tmp_path / f"{name}.csv").write_text("file,answer\n" + "".join(said), encoding="utf-8")
    (tmp_path / "photos").mkdir()
    for i, photo in enumerate(photos):
        pixels = np.full((24, 24, 3), i, dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / photo)
    (tmp_path / "gone.txt").write_text(f"{LONG}\n{SHORT}\n", encoding="utf-8")
    return tmp_path


def unpacked(path: Path) -> bytes:
    """Read what a Parquet file holds: its pages are packed, so its bytes alone would hide ids."""
    return pl.read_parquet(path).write_json().encode()


def unpacked_page(path: Path) -> bytes:
    """Read what a page holds in packed tables: letters, which are gzip, which is Parquet."""
    packed = re.findall(r'base64" id="[^"]*">([^<]*)<', path.read_text(encoding="utf-8"))
    held = [gzip.decompress(base64.b64decode(text)) for text in packed]
    return b"".join(pl.read_parquet(io.BytesIO(one)).write_json().encode() for one in held)


def traces(content: bytes) -> list[str]:
    """Find the ids in bytes, as UTF-8 has them or as JSON escapes them."""
    forms = {i: {i.encode(), json.dumps(i)[1:-1].encode()} for i in (LONG, SHORT)}
    return [i for i, written in forms.items() if any(form in content for form in written)]


def test_nothing_that_is_written_names_them(data, monkeypatch, capsys):
    out, seen = data / "out", data / "stages"
    gone = ("--withdrawn", data / "gone.txt")
    people = f"table:{data / 'people.csv'}"
    swap = atomic._swap

    def keep_stage(stage: Path, target: Path, **settings: object) -> None:
        shutil.copytree(stage, seen / f"{len(list(seen.glob('*')))}-{target.name}")
        swap(stage, target, **settings)  # type: ignore[arg-type]

    def run(*args: object) -> None:
        done = isolux(monkeypatch, capsys, *args)
        assert done.code == 0, (args, done.err)
        assert traces((done.out + done.err).encode()) == [], args

    def audit(model: str, where: Path, *more: object) -> None:
        run(
            "audit", people, "--id", "file", "--target", "truth", "--predictions",
            data / f"{model}.csv", "--prediction-column", "answer", "--by", "race", "--metric",
            "accuracy", "--cluster", "subject", "--replicates", "100", "--model-name", model,
            "--out", where, *more,
        )  # fmt: skip

    audit("old", data / "before")  # made before they withdrew: it holds them
    assert traces(unpacked(data / "before" / "attributes.parquet")) == [LONG, SHORT]
    run("view", data / "before", "--bundle", data / "before.html", "--people")
    assert traces(unpacked_page(data / "before.html")) == [LONG, SHORT]
    seen.mkdir()
    monkeypatch.setattr(atomic, "_swap", keep_stage)
    audit("new", out / "new", *gone)
    audit("old", out / "old", *gone)
    run("explain", out / "new", "--out", out / "explained", "--analysis", "power")
    run("compare", data / "before", out / "new", "--out", out / "half")
    run("compare", data / "before", data / "before", *gone, "--out", out / "both")
    run("report", out / "new", "--out", out / "again.html")
    may = ("--images", data / "photos", "--confirm-image-rights")
    run("report", out / "new", "--gallery", "9", *may)
    run("export", out / "new", "--out", out / "seen", "--images", data / "photos")
    run("export", data / "before", *gone, "--out", out / "seen-before")
    run("export", people, "--data-option", "id=file", *gone, "--out", out / "seen-data")
    run("view", data / "before", *gone, "--bundle", out / "view-before.html")
    run("view", out / "new", "--bundle", out / "view.html", "--people")
    run("view", out / "new", out / "old", "--bundle", out / "two.html", "--publish-min", "2")
    run("describe", people, *gone, "--out", out / "people.html")
    run("check", people, *gone, "--no-images", "--out", out / "problems.csv")
    draw = ("sample", people, "--id", "file", "--balance", "race", "--per-cell", "500")
    run(*draw, *gone, "--out", out / "sample.csv")
    written = [path for path in (*out.rglob("*"), *seen.rglob("*")) if path.is_file()]
    assert {"gallery.html", "samples.json", "sample.csv"} <= {path.name for path in written}
    assert len({path.parts[-2] for path in seen.rglob("audit.json")}) == 5
    for path in written:
        assert traces(path.read_bytes() + str(path).encode()) == [], path
        if path.suffix == ".parquet":
            assert traces(unpacked(path)) == [], path
        if path.name.startswith(("view", "two")):
            assert len(unpacked_page(path)) > 1000, path  # else nothing was searched
            assert traces(unpacked_page(path)) == [], path
