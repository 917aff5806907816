"""The gallery: permitted or refused, a file of its own, nothing from outside its folder."""

from __future__ import annotations

import base64
import io
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from PIL import Image

import isolux
from isolux.core.containers import Dataset
from isolux.core.errors import FileError, SpecError
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES
from isolux.report import error_gallery
from isolux.report.error_gallery import THUMBNAIL_PX, write_error_gallery
from isolux.report.html import write_report
from isolux.tasks import score
from tests.report._page import parse

N = 40
OPEN = DatasetInfo(title="Made", summary="Made up.", references=(), licence="CC BY 4.0")
CLOSED = DatasetInfo(
    title="Closed",
    summary="Made up.",
    references=(),
    licence="evaluation only",
    withdrawal="people may withdraw at any time",
)


def made(info=OPEN, **columns):
    """40 people, one in each 400 × 300 picture; the wider the box, the larger the number."""
    ids = [f"p{i:02d}" for i in range(N)]
    instances = pl.DataFrame(
        {
            "instance_id": ids,
            "image_id": [f"{i}.jpg" for i in range(N)],
            "box_x": [100.0] * N,
            "box_y": [80.0] * N,
            "box_w": [40.0 + i for i in range(N)],
            "box_h": [60.0] * N,
        }
    )
    images = pl.DataFrame({"image_id": instances["image_id"], "uri": instances["image_id"]})
    images = images.with_columns(**columns)
    attributes = ATTRIBUTES.conform(
        pl.DataFrame(
            {
                "unit_kind": "instance",
                "unit_id": ids,
                "attribute": "tone",
                "value": ["<b>dark</b>", "light"] * (N // 2),
            }
        )
    )
    return Dataset("made", info, instances, attributes, images)


@pytest.fixture(scope="module")
def run():
    people = made()
    found = people.instances.head(10)  # p00 … p09 are found, the others missed
    boxes = found.select("image_id", "box_x", "box_y", "box_w", "box_h").with_columns(
        model=pl.lit("m"), label=pl.lit("person"), score=pl.lit(0.9)
    )
    scores = score("detection", people, boxes)
    return isolux.audit(scores, people, by="tone", replicates=100, min_units=5).run


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(0)
    for i in range(N):
        pixels = rng.integers(0, 255, (300, 400, 3), dtype=np.uint8)
        image = Image.fromarray(pixels)
        exif = Image.Exif()
        exif[0x010E] = "a secret place"
        image.save(folder / f"{i}.jpg", exif=exif, quality=60)
    return folder


def pictures(path):
    tree = parse(path.read_text(encoding="utf-8"))
    return tree, tree.all("img")


def test_the_worst_of_each_group_the_largest_first(run, folder, tmp_path):
    done = write_error_gallery(run, made(), tmp_path / "gallery.html", images=folder, per_group=2)
    tree, images = pictures(done.path)
    assert (done.n_shown, len(images), done.notes) == (4, 4, ())
    told = [li.text.split(" · ")[1] for li in tree.all("li")]
    assert told == ["p38", "p36", "p39", "p37"]  # dark, then light; all were missed
    assert [h.text for h in tree.all("h3")] == [
        "<b>dark</b> 15 below the best value",
        "light 15 below the best value",
    ]
    assert tree.all("b") == []


def test_a_picture_is_cut_out_small_and_without_its_exif(run, folder, tmp_path):
    done = write_error_gallery(run, made(), tmp_path / "gallery.html", images=folder, per_group=1)
    _, (image, _) = pictures(done.path)
    head, _, data = image.attributes["src"].partition(",")
    assert head == "data:image/jpeg;base64"
    held = base64.b64decode(data)
    assert b"secret" not in held
    seen = Image.open(io.BytesIO(held))
    assert max(seen.size) == THUMBNAIL_PX
    assert "the box is where they were annotated" in image.attributes["alt"]


def test_the_box_is_drawn_where_it_was_annotated(tmp_path):
    black = np.zeros((300, 400, 3), dtype=np.uint8)
    cut = np.asarray(error_gallery._crop_person_thumbnail(black, [100.0, 80.0, 40.0, 60.0]))
    # Around: .75 × 60 = 45 px, so the cut is x 55 to 185, y 35 to 185, shown 240 / 150 as large.
    y, x = np.nonzero(cut.max(axis=2) > 200)
    scale = 240 / 150
    assert (x.min(), y.min()) == (round(45 * scale), round(45 * scale))
    assert abs(x.max() - 85 * scale) <= 1
    assert abs(y.max() - 105 * scale) <= 1


@pytest.mark.parametrize(
    "box", [[None] * 4, [float("nan")] * 4, [1e12, 0.0, 5.0, 5.0], [900.0, 900.0, 5.0, 5.0]]
)
def test_without_a_box_in_it_the_whole_picture_is_shown(box):
    pixels = np.zeros((300, 400, 3), dtype=np.uint8)
    assert error_gallery._crop_person_thumbnail(pixels, box).size == (240, 180)


def test_the_licence_is_asked_first(run, folder, tmp_path):
    path = tmp_path / "gallery.html"
    with pytest.raises(SpecError, match="does not say that its pictures may be shown") as caught:
        write_error_gallery(run, made(CLOSED), path, images=folder, per_group=1)
    assert "Closed: evaluation only; people may withdraw at any time" in str(caught.value)
    assert "--confirm-image-rights" in str(caught.value)
    assert not path.exists()
    done = write_error_gallery(run, made(CLOSED), path, images=folder, per_group=1, may_show=True)
    tree, _ = pictures(done.path)
    assert "Withdrawal: people may withdraw at any time." in tree.text
    assert "delete this file" in tree.text


@pytest.mark.parametrize(
    ("licence", "may"),
    [
        ("CC BY 4.0", True),
        ("CC0 1.0", True),
        ("CC BY-SA 4.0", True),
        ("CC BY-NC 4.0", False),
        ("CC BY-NC-SA 4.0", False),
        ("CC BY-ND 4.0", False),
        ("annotations CC BY 4.0; images under their own licences on Flickr", False),
        ("CC BY 4.0; images on request", False),
        ("the licence of your table", False),
        ("", False),
    ],
)
def test_which_licences_permit_it(run, folder, tmp_path, licence, may):
    people = made(replace(OPEN, licence=licence))
    if may:
        write_error_gallery(run, people, tmp_path / "g.html", images=folder, per_group=1)
    else:
        with pytest.raises(SpecError, match="may be shown"):
            write_error_gallery(run, people, tmp_path / "g.html", images=folder, per_group=1)


def test_whoever_left_the_dataset_is_not_shown(run, folder, tmp_path):
    people = made()
    left = replace(people, instances=people.instances.filter(pl.col("instance_id") != "p39"))
    done = write_error_gallery(run, left, tmp_path / "gallery.html", images=folder, per_group=20)
    assert done.n_shown == 29
    assert "p39" not in parse(done.path.read_text(encoding="utf-8")).text


def test_damaged_and_missing_pictures_are_left_out_and_counted(run, folder, tmp_path):
    uri = [f"{i}.jpg" for i in range(N)]
    uri[38], uri[39], uri[37] = "gone.jpg", "cut.jpg", "../secret.jpg"
    whole = (folder / "39.jpg").read_bytes()
    (folder / "cut.jpg").write_bytes(whole[: len(whole) // 2])
    (folder.parent / "secret.jpg").write_bytes(whole)
    people = made(uri=pl.Series(uri))
    done = write_error_gallery(run, people, tmp_path / "gallery.html", images=folder, per_group=2)
    assert done.n_shown == 1
    assert done.notes == (
        "1 picture was left out: a path leads out of its folder.",
        "1 picture was left out: there is no such file.",
        "1 picture was left out: this is not a picture, or it is damaged.",
    )
    tree, images = pictures(done.path)
    assert len(images) == 1
    assert "a path leads out of its folder" in tree.text


def test_it_is_never_in_the_report(run, folder, tmp_path):
    write_error_gallery(run, made(), tmp_path / "gallery.html", images=folder, per_group=2)
    report = write_report(run, tmp_path / "report.html").read_text(encoding="utf-8")
    assert "gallery" not in report
    assert "data:image" not in report


def test_the_page_runs_and_fetches_nothing(run, folder, tmp_path):
    done = write_error_gallery(run, made(), tmp_path / "gallery.html", images=folder, per_group=2)
    tree, images = pictures(done.path)
    (policy,) = (
        n.attributes["content"]
        for n in tree.all("meta")
        if n.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.startswith("default-src 'none'")
    assert "img-src data:;" in policy
    assert all(n.attributes["src"].startswith("data:image/jpeg;base64,") for n in images)
    assert all(n.attributes["alt"] for n in images)
    assert {n.attributes["href"] for n in tree.all("a")} == {"#main"}
    assert [p.name for p in tmp_path.iterdir()] == ["gallery.html"]


def test_no_folder_and_no_number_are_refused(run, folder, tmp_path):
    with pytest.raises(FileError, match="no such folder of images"):
        write_error_gallery(run, made(), tmp_path / "g.html", images=folder / "no", per_group=1)
    with pytest.raises(SpecError, match="a gallery without people"):
        write_error_gallery(run, made(), tmp_path / "g.html", images=folder, per_group=0)


def test_a_changed_dataset_is_said(run, folder, tmp_path):
    before = replace(run, record={**run.record, "inputs": {"a.csv": "00"}})
    now = replace(made(), inputs={"a.csv": "11"})
    done = write_error_gallery(before, now, tmp_path / "g.html", images=folder, per_group=1)
    assert done.notes == (
        "The dataset has changed since the audit; people who have left it are not shown.",
    )
