"""``isolux.crop``: who is cut out and who is not, why, and what a changed picture costs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image

import isolux
from isolux.api.crop.recipes import RECIPES, CropOptions, find_recipe
from isolux.core.errors import FileError, InputError, OutputError, SpecError, UnknownNameError
from isolux.datasets import load
from isolux.geometry.crops import ffhq_square
from isolux.io.images import read_image
from tests.cli._run import isolux as command

POINTS = ["right eye", "left eye", "mouth right", "mouth left", "right eye inner",
          "right eye outer", "left eye inner", "left eye outer"]  # fmt: skip
FACE = [(44, 40), (56, 40), (46, 52), (54, 52), (47, 40), (41, 40), (53, 40), (59, 40)]


def points_of(face, *, hidden=()):
    said = zip(POINTS, face, strict=True)
    return [v for name, at in said for v in (*at, 1 if name in hidden else 2)]


def coco(images, people):
    """Write ``people`` as (id, image, box, points) in COCO's format."""
    return {
        "images": [{"id": 10 + k, "file_name": name, "width": w, "height": h}
                   for k, (name, w, h) in enumerate(images)],
        "categories": [{"id": 1, "name": "person", "keypoints": POINTS}],
        "annotations": [
            {"id": number, "image_id": 10 + image, "category_id": 1, "bbox": box,
             "area": box[2] * box[3], "iscrowd": 0, "keypoints": points,
             "num_keypoints": sum(v > 0 for v in points[2::3]), "attributes": {"light": "day"}}
            for number, image, box, points in people
        ],
    }  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three pictures: two people in one, one that is turned by its EXIF, one that is no picture."""
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng(5)
    upright = random.integers(0, 256, (100, 120, 3), dtype=np.uint8)
    Image.fromarray(upright).save("a.png")
    exif = Image.Exif()
    exif[0x0112] = 6  # to be seen upright it is turned clockwise
    Image.fromarray(np.rot90(upright)).save("b.png", exif=exif)
    (tmp_path / "c.png").write_text("no picture")
    people = [
        (1, 0, [40, 30, 20, 30], points_of(FACE)),
        (2, 0, [0, 0, 10, 10], points_of(FACE, hidden=("mouth left",))),
        (3, 1, [40, 30, 20, 30], points_of(FACE)),
        (4, 2, [40, 30, 20, 30], points_of(FACE)),
    ]
    images = [("a.png", 120, 100), ("b.png", 120, 100), ("c.png", 120, 100)]
    (tmp_path / "people.json").write_text(json.dumps(coco(images, people)))
    return tmp_path


DATA = "coco:people.json"


def rows(found):
    return {row["id"]: row for row in found.crops.iter_rows(named=True)}


def test_everyone_is_a_row_with_a_crop_or_a_reason(folder):
    found = isolux.crop(DATA, recipe="aligned", size=64, out="faces")
    said = rows(found)
    assert list(said) == ["1", "2", "3", "4"]
    assert said["2"]["reason"] == "the mouth left is not visible"
    assert said["4"]["reason"].startswith("this is not a picture, or it is damaged")
    assert said["1"]["reason"] is said["3"]["reason"] is None
    assert [said[k]["width"] for k in said] == [64, None, 64, None]
    assert found.notes[0].startswith("2 of 4 people have no crop")
    kept = pl.read_csv(folder / "faces/crops.csv")
    assert kept["file"].to_list() == found.crops["file"].to_list()


def test_a_picture_that_its_exif_turns_gives_the_same_face(folder):
    found = rows(isolux.crop(DATA, recipe="fairface", out="faces"))
    one, other = (read_image(folder / "faces" / found[k]["file"]) for k in "13")
    assert (one == other).all()


def test_a_box_holds_the_pictures_own_pixels(folder):
    found = rows(isolux.crop(DATA, recipe="box", out="boxes"))
    cut = read_image(folder / "boxes" / found["1"]["file"])
    assert (cut == read_image(folder / "a.png")[30:60, 40:60]).all()


def test_what_is_there_is_not_cut_out_again_and_what_changed_is(folder):
    first = isolux.crop(DATA, recipe="box", out="faces")
    assert first.n_new_crops == 3
    before = {p: p.read_bytes() for p in (folder / "faces").rglob("*") if p.is_file()}
    assert isolux.crop(DATA, recipe="box", out="faces").n_new_crops == 0
    (folder / "faces" / rows(first)["3"]["file"]).unlink()  # as if the command had been stopped
    (folder / "faces/crops.csv").unlink()
    assert isolux.crop(DATA, recipe="box", out="faces").n_new_crops == 1
    assert {p: p.read_bytes() for p in before} == before
    changed = np.array(Image.open("a.png"))
    changed[0, 0] ^= 255
    Image.fromarray(changed).save("a.png")
    again = isolux.crop(DATA, recipe="box", out="faces")
    assert again.n_new_crops == 2
    names = {p.name for p in (folder / "faces/crops").iterdir()}
    assert names == {name.partition("/")[2] for name in again.crops["file"].drop_nulls()}
    assert isolux.crop(DATA, recipe="box", factor=1.5, out="faces").n_new_crops == 3


def test_a_stopped_run_is_no_list_of_crops(folder, monkeypatch):
    isolux.crop(DATA, recipe="box", out="faces")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("isolux.api.crop.crop_store.CropFolder.close", stop)
    with pytest.raises(KeyboardInterrupt):
        isolux.crop(DATA, recipe="box", out="faces")
    with pytest.raises(FileError, match="not complete"):
        isolux.predict(load("coco", "people.json"), lambda p: ["x"] * len(p), crops="faces")


@pytest.mark.parametrize("text", ["", "who\np1\n", "\xff\xfe"])
def test_a_list_of_crops_that_was_changed_is_named(folder, text):
    isolux.crop(DATA, recipe="box", out="faces")
    (folder / "faces" / "crops.csv").write_bytes(text.encode("latin-1"))
    with pytest.raises(FileError, match="the list of these crops is damaged"):
        isolux.predict(load("coco", "people.json"), lambda p: ["x"] * len(p), crops="faces")


def test_a_person_who_withdrew_has_no_crop_any_more_even_in_a_run_that_is_stopped(
    folder, monkeypatch
):
    isolux.crop(DATA, recipe="box", out="faces")
    (folder / "gone.txt").write_text("1\n")

    def stop(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("isolux.api.crop.decode_and_crop_units", stop)
    with pytest.raises(KeyboardInterrupt):
        isolux.crop(DATA, recipe="box", factor=2, withdrawn="gone.txt", out="faces")
    left = [p.name for p in (folder / "faces").rglob("*.png")]
    assert left
    # The photo goes with the person (decision 11), and so the other who is in it.
    assert not [name for name in left if name.startswith(("1-", "2-"))]


def test_what_a_model_is_shown_is_each_persons_crop(folder):
    isolux.crop(DATA, recipe="aligned", size=32, out="faces")
    seen = []

    def net(pictures):
        seen.extend(one.shape for one in pictures)
        return [f"{one.mean():.3f}" for one in pictures]

    found = isolux.predict(DATA, net, crops="faces", max_failures=1)
    assert seen == [(32, 32, 3)] * 2
    said = dict(found.predictions.select("instance_id", "label").rows())
    assert set(said) == {"1", "3"}
    assert said["1"] == said["3"]
    why = dict(found.inferences.select("unit_id", "reason").rows())
    assert why["2"] == "no crop: the mouth left is not visible"


def test_crops_of_others_and_answers_about_whole_images_are_refused(folder):
    isolux.crop(DATA, recipe="box", out="faces")
    Image.new("RGB", (9, 9)).save("z.png")
    others = coco([("z.png", 9, 9)], [(77, 0, [1, 1, 5, 5], points_of(FACE))])
    (folder / "others.json").write_text(json.dumps(others))
    with pytest.raises(SpecError, match="crops of other people"):
        isolux.predict("coco:others.json", lambda p: ["x"] * len(p), crops="faces")

    def boxes(pictures):
        raise AssertionError

    boxes.predicts = "boxes"
    with pytest.raises(SpecError, match="boxes are about whole images"):
        isolux.predict(DATA, boxes, crops="faces")


def test_a_recipe_and_its_settings_are_named(folder):
    with pytest.raises(UnknownNameError, match="aligned"):
        isolux.crop(DATA, recipe="alinged", out="faces")
    with pytest.raises(SpecError, match="'aligned' has no setting 'factor'"):
        isolux.crop(DATA, recipe="aligned", factor=2, out="faces")
    assert not (folder / "faces").exists()
    for recipe in RECIPES.values():
        assert recipe.fill_defaults(CropOptions()) == recipe.fill_defaults(
            recipe.fill_defaults(CropOptions())
        )
        assert find_recipe(recipe.name) is recipe


def test_something_else_is_left_as_it_is(folder):
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match="contains something else"):
        isolux.crop(DATA, recipe="box", out="mine")
    isolux.crop(DATA, recipe="box", out="faces")
    with pytest.raises(OutputError, match="crops by another recipe"):
        isolux.crop(DATA, recipe="fhibe", out="faces")
    assert isolux.crop(DATA, recipe="fhibe", out="faces", overwrite=True).n_new_crops == 3


def test_nobody_to_cut_out_is_an_error_and_leaves_nothing(folder):
    with pytest.raises(InputError, match="nobody could be cut out") as error:
        isolux.crop(DATA, recipe="miap", out="faces")
    assert "a side below 100 pixels (4)" in str(error.value)
    assert not (folder / "faces").exists()


def test_the_command_says_what_became_of_whom(folder, monkeypatch, capsys):
    ran = command(monkeypatch, capsys, "crop", DATA, "--recipe", "aligned", "--size", 48,
                  "--out", "faces")  # fmt: skip
    assert ran.code == 0
    assert ran.out.startswith("WARNING: 2 of 4 people have no crop")
    assert "2 crops of 4 people: 2 cut out now" in ran.out
    ran = command(monkeypatch, capsys, "crop", DATA, "--recipe", "round", "--out", "x")
    assert ran.code == 2
    assert "there is no recipe" in ran.plain


def test_painted_faces_lie_where_their_eyes_and_mouth_say(tmp_path):
    """The colours at eyes and mouth in FHIBE's format are those at their places in the crops."""
    isolux.synthesize("fair", layout="fhibe", households=1, out=tmp_path / "fhibe")
    people = load("fhibe", tmp_path / "fhibe")
    found = isolux.crop(people, recipe="aligned", size=128, out=tmp_path / "faces")
    rows_of = {row["id"]: row for row in found.crops.iter_rows(named=True)}
    photos = dict(people.images.select("image_id", "uri").iter_rows())
    places = 0
    for person in people.instances.iter_rows(named=True):
        row = rows_of[person["instance_id"]]
        names = [name.lower() for name in person["keypoint_names"]]
        at = {name: (person["keypoints_x"][k], person["keypoints_y"][k])
              for k, name in enumerate(names) if person["keypoints_v"][k] == 2}  # fmt: skip
        ends = np.array([at[name] for name in POINTS[:4] if name in at])
        assert (row["file"] is not None) == (len(ends) == 4)
        if len(ends) < 4:
            continue
        corners = ffhq_square(*ends)
        axes = np.stack([corners[3] - corners[0], corners[1] - corners[0]], axis=1)
        placed = np.linalg.solve(axes, (ends - corners[0]).T).T * 128
        photo = read_image(Path(str(people.root)) / photos[person["image_id"]]).astype(int)
        crop = read_image(tmp_path / "faces" / row["file"]).astype(int)
        for (x, y), (u, v) in zip(ends, placed, strict=True):
            around = photo[int(y) - 1 : int(y) + 2, int(x) - 1 : int(x) + 2].reshape(-1, 3)
            here = crop[int(v), int(u)]
            assert (here >= around.min(axis=0) - 8).all()  # Lanczos' filter overshoots a little
            assert (here <= around.max(axis=0) + 8).all()
            places += 1
    assert places >= 8


def test_a_photo_without_its_person_needs_a_mask_and_says_so_where_there_is_none(
    tmp_path, monkeypatch
):
    """Two people of one photo, the first with a mask (its left half), the second without."""
    monkeypatch.chdir(tmp_path)
    pixels = np.full((10, 12, 3), 90, dtype=np.uint8)
    Image.fromarray(pixels).save("a.png")
    content = {
        "images": [{"id": 1, "file_name": "a.png", "width": 12, "height": 10}],
        "categories": [{"id": 1, "name": "person"}],
        "annotations": [
            {"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 6, 10], "area": 60,
             "iscrowd": 0, "segmentation": {"size": [10, 12], "counts": [0, 60, 60]}},
            {"id": 2, "image_id": 1, "category_id": 1, "bbox": [6, 0, 6, 10], "area": 60,
             "iscrowd": 0, "segmentation": []},
        ],
    }  # fmt: skip
    Path("people.json").write_text(json.dumps(content))
    people = load("coco", "people.json")
    wanted = {"whole": (90, 90), "person-black": (0, 90), "background-black": (90, 0),
              "person-blurred": (90, 90)}  # fmt: skip
    for recipe, (left, right) in wanted.items():
        found = isolux.crop(people, recipe=recipe, out=tmp_path / recipe)
        file, reason = found.crops.filter(id="1").select("file", "reason").row(0)
        assert reason is None
        shown = read_image(found.folder / file)
        assert (shown[0, 0, 0], shown[0, 11, 0]) == (left, right)
        assert shown.shape == (10, 12, 3)
        if recipe != "whole":
            assert found.crops.filter(id="2")["reason"].item() == "no mask of the person"


CONVERSATIONS = {
    name: {"files": [f"CC/{name}/{name}_00.MP4"],
           "label": {"age": "20", "gender": "Female", "skin-type": "5"}}
    for name in ("0001", "0002")
}  # fmt: skip
DETECTOR = """
import polars as pl

class Faces:
    predicts = "boxes"
    def __call__(self, pictures):
        rows = [(k, "face", 40.0, 30.0, 20.0, 20.0, 0.9) for k in range(len(pictures))]
        rows += [(k, "face", 0.0, 0.0, 5.0, 5.0, 0.2) for k in range(len(pictures))]
        names = ["picture", "label", "box_x", "box_y", "box_w", "box_h", "score"]
        return pl.DataFrame(rows, schema=names, orient="row")

faces = Faces
"""


def test_faces_of_conversations_are_cut_by_the_boxes_of_a_detector(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "CasualConversations.json").write_text(json.dumps(CONVERSATIONS))
    (tmp_path / "isolux_face_nets.py").write_text(DETECTOR)
    pixels = np.random.default_rng(1).integers(0, 256, (90, 120, 3)).astype(np.uint8)
    for name in CONVERSATIONS:
        (tmp_path / "frames" / f"{name}_00").mkdir(parents=True)
        Image.fromarray(pixels).save(tmp_path / "frames" / f"{name}_00" / "000007.png")
    data = ["casual_conversations:CasualConversations.json", "--images", "frames"]
    asked = ["--recipe", "casual-conversations", "--out", "faces"]
    ran = command(monkeypatch, capsys, "crop", *data, *asked)
    assert (ran.code, "--boxes found" in ran.plain) == (2, True), ran.plain
    found = ["--model", "python:isolux_face_nets:faces", "--out", "found"]
    assert command(monkeypatch, capsys, "predict", *data, *found).code == 0
    ran = command(monkeypatch, capsys, "crop", *data, *asked, "--boxes", "found")
    assert ran.code == 0, ran.plain
    rows = pl.read_csv("faces/crops.csv", infer_schema=False)
    assert rows["id"].to_list() == ["0001_00#7", "0002_00#7"]
    # The box of score .9, 1.5 times as large about its middle (50, 40): x 35 to 65, y 25 to 55.
    expected = Image.fromarray(pixels[25:55, 35:65]).resize((256, 256), Image.Resampling.BILINEAR)
    assert np.array_equal(read_image(tmp_path / "faces" / rows["file"][0]), np.asarray(expected))


def test_boxes_of_images_with_several_people_or_of_another_kind_are_refused(folder, tmp_path):
    pl.DataFrame({"image_id": ["a.png"], "label": ["face"]}).write_csv("labels.csv")
    people = load("coco", "people.json")
    with pytest.raises(SpecError, match="whose box is whose"):
        isolux.crop(people, recipe="box", out="x", boxes="labels.csv")
