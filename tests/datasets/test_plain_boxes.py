"""The plain formats of boxes: VOC, CVAT, YOLO; the same boxes, and what is refused."""

from __future__ import annotations

import re

import polars as pl
import pytest
from PIL import Image

from isolux.core.errors import FileError, TableError
from isolux.core.notes import Caution
from isolux.datasets import load

SIDES = ("box_x", "box_y", "box_w", "box_h")
BOXES = {("7", "dog"): (4.0, 5.0, 20.0, 30.0), ("8", "cat"): (0.0, 0.0, 64.0, 48.0)}
WIDTH, HEIGHT = 64, 48


def voc(root):
    (root / "Annotations").mkdir()
    for (image, name), (x, y, w, h) in BOXES.items():
        box = f"<xmin>{x}</xmin><ymin>{y}</ymin><xmax>{x + w}</xmax><ymax>{y + h}</ymax>"
        (root / "Annotations" / f"{image}.xml").write_text(
            f"<annotation><filename>{image}.jpg</filename><size><width>{WIDTH}</width><height>"
            f"{HEIGHT}</height></size><object><name>{name}</name><truncated>1</truncated>"
            f"<difficult>{int(image == '8')}</difficult><bndbox>{box}</bndbox></object>"
            "</annotation>"
        )
    return root


def cvat(root):
    images = ""
    for k, ((image, name), (x, y, w, h)) in enumerate(BOXES.items()):
        x2, y2 = x + w, y + h
        shape = f'xtl="{x}" ytl="{y}" xbr="{x2}" ybr="{y2}"'
        if k:
            shape = f'points="{x},{y};{x2},{y};{x2},{y2};{x},{y2}"'
        kind = "polygon" if k else "box"
        tone = '<attribute name="tone">3</attribute>'
        images += (
            f'<image id="{k}" name="{image}.jpg" width="{WIDTH}" height="{HEIGHT}">'
            f'<{kind} label="{name}" occluded="1" {shape}>{tone}</{kind}></image>'
        )
    (root / "annotations.xml").write_text(f"<annotations>{images}</annotations>")
    return root


def yolo(root):
    for folder in ("images/val", "labels/val"):
        (root / folder).mkdir(parents=True)
    for k, ((image, _), (x, y, w, h)) in enumerate(BOXES.items()):
        Image.new("RGB", (WIDTH, HEIGHT)).save(root / "images/val" / f"{image}.png")
        cx, cy = (x + w / 2) / WIDTH, (y + h / 2) / HEIGHT
        line = f"{k} {cx:.10f} {cy:.10f} {w / WIDTH:.10f} {h / HEIGHT:.10f}\n"
        (root / "labels/val" / f"{image}.txt").write_text(line)
    (root / "data.yaml").write_text("names: [dog, cat]\n")
    return root


WRITERS = {"voc": voc, "cvat": cvat, "yolo": yolo}


def loaded(name, root):
    return load(name, WRITERS[name](root))


@pytest.mark.parametrize("name", WRITERS)
def test_the_same_boxes_in_every_format(name, tmp_path):
    dataset = loaded(name, tmp_path)
    rows = dataset.instances.select("image_id", "classes", *SIDES).rows()
    found = {(image, classes[0]): box for image, classes, *box in rows}
    assert set(found) == set(BOXES)
    for key, box in BOXES.items():
        assert found[key] == pytest.approx(box, abs=1e-6)
    sizes = dataset.images.select("image_id", "width", "height").sort("image_id").rows()
    assert sizes == [("7", WIDTH, HEIGHT), ("8", WIDTH, HEIGHT)]
    assert dataset.instances["cluster_id"].to_list() == ["7", "8"]


def values(dataset, attribute):
    return dataset.values_of(attribute)["value"].to_list()


def test_marks_become_attributes(tmp_path):
    for name in WRITERS:
        (tmp_path / name).mkdir()
    first = loaded("voc", tmp_path / "voc")
    assert values(first, "truncated") == ["1", "1"]
    assert first.instances["ignore"].to_list() == [False, True]  # difficult
    second = loaded("cvat", tmp_path / "cvat")
    assert values(second, "tone") == ["3", "3"]
    assert values(second, "occluded") == ["true", "true"]


@pytest.mark.parametrize(
    ("name", "beside", "empty"),
    [
        ("yolo", "images/val", ("labels/val/9.txt", "")),
        ("voc", "JPEGImages", ("Annotations/9.xml", "<annotation/>")),
        ("voc", "Annotations", ("Annotations/9.xml", "<annotation/>")),
    ],
)
def test_a_picture_without_a_truth_file_is_told_first_and_an_empty_file_is_none(
    name, beside, empty, tmp_path
):
    WRITERS[name](tmp_path)
    (tmp_path / beside).mkdir(exist_ok=True)
    for image in ("7", "9"):
        Image.new("RGB", (WIDTH, HEIGHT)).save(tmp_path / beside / f"{image}.png")
    said = [note for note in load(name, tmp_path).notes if isinstance(note, Caution)]
    assert len(said) == 1
    assert re.match(r"1 of [23] pictures have no (label|XML) file \(9.png, in ", said[0])
    assert "An empty file" in said[0] or "A file without an object" in said[0]
    (tmp_path / empty[0]).write_text(empty[1])
    dataset = load(name, tmp_path)
    assert not any(isinstance(note, Caution) for note in dataset.notes)
    assert "9" in dataset.images["image_id"]


@pytest.mark.parametrize("name", ["voc", "cvat"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("<annotation", "not valid XML"),
        ('<!DOCTYPE a [<!ENTITY x "y">]><annotation/>', "document type"),
        ("<html/>", "of another kind"),
        ("<annotation{s}/>", "no image|of another kind|no such|holds no|missing|lacks"),
    ],
)
def test_what_is_no_such_xml(name, text, said, tmp_path):
    root = {"voc": "annotation", "cvat": "annotations"}[name]
    file = tmp_path / "x.xml"
    file.write_text(text.replace("<annotation{s}/>", f"<{root}><image/></{root}>"))
    if name == "voc" and "image/" in file.read_text():
        assert load(name, file).instances.is_empty()
        return
    with pytest.raises((FileError, TableError), match=said):
        load(name, file)


def shares(text):
    """The same sides, as shares of the picture."""
    for letter, side in (("x", WIDTH), ("y", HEIGHT)):
        tags = f"({letter}min|{letter}max)>"
        text = re.sub(rf"<{tags}([\d.]+)", lambda m, s=side: f"<{m[1]}>{float(m[2]) / s}", text)
        text = re.sub(rf'({letter}tl|{letter}br)="([\d.]+)"',
                      lambda m, s=side: f'{m[1]}="{float(m[2]) / s}"', text)  # fmt: skip
    return text


@pytest.mark.parametrize("name", ["voc", "cvat"])
def test_shares_in_the_place_of_pixels_are_refused(name, tmp_path):
    root = WRITERS[name](tmp_path)
    for file in [*root.rglob("*.xml")]:
        text = shares(file.read_text()).replace("polygon", "box")
        text = re.sub(r'points="[^"]*"', 'xtl="0.1" ytl="0.1" xbr="0.9" ybr="0.9"', text)
        one = re.search(r"<object>.*</object>|<box .*?</box>", text)[0]
        file.write_text(text.replace(one, 3 * one))
    with pytest.raises(TableError, match="shares of their pictures, and pixels are needed"):
        load(name, root)


def test_boxes_that_are_turned_over_are_refused(tmp_path):
    (tmp_path / "7.xml").write_text(
        "<annotation><object><name>dog</name><bndbox><xmin>9</xmin><ymin>1</ymin><xmax>4</xmax>"
        "<ymax>8</ymax></bndbox></object></annotation>"
    )
    with pytest.raises(TableError, match="negative width"):
        load("voc", tmp_path / "7.xml")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("0 10 20 30 40", "not in shares"),
        ("0 0.5 0.5 0.5", "is not a box"),
        ("0 0.5 x 0.5 0.5", "is not a box"),
        ("0 0.5 0.5 0.2_5 0.5", "is not a box"),
        ("0 0.5 0.5 0.\u0664 0.5", "is not a box"),
        ("9 0.5 0.5 0.5 0.5", "has no name"),
    ],
)
def test_lines_that_are_none_of_yolos(line, said, tmp_path):
    root = yolo(tmp_path)
    (root / "labels/val/7.txt").write_text(line + "\n")
    with pytest.raises(TableError, match=said):
        load("yolo", root)


def test_a_picture_whose_size_is_not_known(tmp_path):
    root = yolo(tmp_path)
    (root / "images/val/7.png").unlink()
    with pytest.raises(FileError, match=r"(?s)sizes of 1 of 2 pictures.*'7'.*sizes=PATH"):
        load("yolo", root)


def test_polygons_of_yolo_are_taken_by_their_box(tmp_path):
    root = yolo(tmp_path)
    (root / "labels/val/7.txt").write_text("0 0.25 0.5 0.75 0.5 0.5 1.0\n")
    (root / "labels/val/8.txt").write_text("")  # looked at, and empty
    dataset = load("yolo", root)
    assert dataset.instances.select(*SIDES).rows() == [(16.0, 24.0, 32.0, 24.0)]
    assert dataset.images.height == 2
    assert dataset.categories == {"0": "dog", "1": "cat"}
    assert isinstance(dataset.instances, pl.DataFrame)
