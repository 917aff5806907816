"""transformers models that answer in words or are given boxes: captions, questions, poses."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from PIL import Image
from polars.testing import assert_frame_equal

import isolux
from isolux.api.audit import run_audit
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.spec import parse_spec
from isolux.core.tables import check
from isolux.engine import list_source_images
from isolux.models import PREDICTION_TABLES, open_model, predict_and_check_table
from tests.engine._painted import INFO
from tests.models import _checkpoints as tiny
from tests.models import _worded_checkpoints as worded
from tests.models._vision_ops import with_torchvision

pytest.importorskip("torch", reason="PYTORCH IS ABSENT: no transformers model was run")
with_torchvision()  # transformers takes it for whole where it is installed
pytest.importorskip("transformers", reason="TRANSFORMERS IS ABSENT: no transformers model was run")
pytestmark = pytest.mark.filterwarnings("ignore")

ASKED = ("question=a photo of a person", "words=6")
MODELS = {
    "blip": ("captioning", ("words=6",)), "blip2": ("captioning", ("words=6",)),
    "florence2": ("captioning", ("words=6",)), "kosmos2": ("captioning", ("words=6",)),
    "llava": ("captioning", ("words=6",)),
    "blip_vqa": ("question", ASKED), "vilt": ("question", ASKED[:1]),
}  # fmt: skip
WRITES_BOXES = ("florence2", "kosmos2")


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    (folder / "prompts.yaml").write_text("nurse: a nurse\nchef: [a chef, chef]\n")
    for name in MODELS:
        getattr(worded, name)(folder / name)
    tiny.vit_pose(folder / "vit_pose")
    return folder


def pictures():
    rng = np.random.default_rng(0)
    sizes = ((40, 60, 3), (60, 40, 3), (60, 40, 3))
    return [rng.integers(0, 256, size).astype(np.uint8) for size in sizes]


def asked(model, given):
    prepare = getattr(model.predictor, "prepare", lambda one: one)
    return model.predictor([prepare(one) for one in given])


@pytest.mark.parametrize("name", list(MODELS))
def test_words_are_labels_and_the_size_of_a_batch_changes_none(checkpoints, name):
    task, options = MODELS[name]
    model = open_model(f"hf:{checkpoints / name}", options)
    assert (model.predicts, model.identity["own"]["task"]) == ("labels", task)
    shown = [model.predictor.prepare(one) for one in pictures()]
    found = predict_and_check_table(model.predictor, model.info, shown, list("abc"), model=name)
    assert check(found, PREDICTION_TABLES["labels"])[
        "instance_id"
    ].unique().sort().to_list() == list("abc")
    whole = asked(model, pictures())
    single = pl.concat(
        asked(model, [one]).with_columns(picture=pl.lit(k, whole.schema["picture"]))
        for k, one in enumerate(pictures())
    )
    assert_frame_equal(whole, single, abs_tol=1e-4)


def test_questions_are_each_asked_of_every_picture(checkpoints):
    """The answers to a question are those that the model gives where it is the only one."""
    file = checkpoints / "questions.yaml"
    file.write_text("prompts: {kind: {ask: [a photo, a person]}, work: {ask: a car}}")
    options = ["task=question", "words=6"]
    model = open_model(f"hf:{checkpoints / 'llava'}", [*options, f"prompts={file}"])
    found = predict_and_check_table(model.predictor, model.info, pictures(), list("abc"), model="m")
    assert found.select("instance_id", "question", "rank").row(4) == ("b", "a person", 2)
    for question in ("a photo", "a person", "a car"):
        alone = open_model(f"hf:{checkpoints / 'llava'}", [*options, f"question={question}"])
        mine = found.filter(question=question)["label"].to_list()
        assert asked(alone, pictures())["label"].to_list() == mine
    told = model.identity["own"]["prompts"]
    assert told == [["kind", ["a photo", "a person"]], ["work", ["a car"]]]


def test_two_sources_of_questions_are_refused(checkpoints):
    with pytest.raises(SpecError, match="there are two sources of questions"):
        open_model(
            f"hf:{checkpoints / 'llava'}",
            ["task=question", "question=a car", "prompts=fhibe_questions"],
        )


def test_drawn_words_depend_on_the_seed_and_not_on_the_batch(checkpoints):
    options = ["words=6", "top_p=.9"]
    model = open_model(f"hf:{checkpoints / 'llava'}", options)
    whole = asked(model, pictures())["label"].to_list()
    assert [asked(model, [one])["label"].item() for one in pictures()] == whole
    other = open_model(f"hf:{checkpoints / 'llava'}", [*options, "seed=1"])
    assert asked(other, pictures())["label"].to_list() != whole
    with pytest.raises(SpecError, match="top_p above 0"):
        open_model(f"hf:{checkpoints / 'llava'}", ["top_p=1.5"])


def test_boxes_are_read_of_words_for_places(checkpoints, monkeypatch):
    """Bins 0, 250, 499 and 999 of 1,000: shares 0, .25025, .4995 and 1 of the picture's sides."""
    options = ["task=grounding", f"prompts={checkpoints / 'prompts.yaml'}", "places=<loc_{}>"]
    model = open_model(f"hf:{checkpoints / 'florence2'}", options)
    line = "<loc_0><loc_250> <loc_499><loc_999></s>"
    monkeypatch.setattr(type(model.predictor), "_generate_lines", lambda *_, **__: [line])
    (shown,) = pictures()[:1]  # 40 high, 60 wide
    box = model.predictor([model.predictor.prepare(shown)]).filter(label="nurse")
    sides = box.select("box_x", "box_y", "box_w", "box_h").row(0)
    assert sides == pytest.approx((0, 40 * 250 / 999, 60 * 499 / 999, 40 * 749 / 999))
    with pytest.raises(SpecError, match="places are words with a number in them"):
        open_model(f"hf:{checkpoints / 'florence2'}", [*options[:2], "places=<loc>"])


@pytest.mark.parametrize("name", ["blip", "blip2", "kosmos2"])
def test_what_a_model_was_told_is_no_part_of_its_words(checkpoints, name, monkeypatch):
    """The model repeats what it was told and adds two words."""
    import torch

    model = open_model(f"hf:{checkpoints / name}", ["task=captioning", "question=a photo of"])

    def generate(*, input_ids, **_):
        more = torch.tensor([[tiny.WORDS.index("nurse"), tiny.WORDS.index("</s>")]])
        return torch.cat([input_ids, more.expand(len(input_ids), -1)], dim=1)

    monkeypatch.setattr(model.predictor.loaded.model, "generate", generate)
    assert asked(model, pictures())["label"].to_list() == ["nurse"] * 3


def test_a_caption_is_the_class_whose_words_stand_in_it(checkpoints, tmp_path, monkeypatch):
    import torch

    (tmp_path / "classes.yaml").write_text("medical: [nurse]\nfood: [Chef, cook]\n")
    model = open_model(
        f"hf:{checkpoints / 'blip'}", [f"classes={tmp_path / 'classes.yaml'}", "words=4"]
    )
    words = [["a", "nurse"], ["a", "photo"], ["nurse", "chef"]]

    def generate(**_):
        return torch.tensor([[tiny.WORDS.index(one) for one in said] for said in words])

    monkeypatch.setattr(model.predictor.loaded.model, "generate", generate)
    one_shape = [pictures()[1]] * 3
    assert asked(model, one_shape)["label"].to_list() == ["medical", None, None]


@pytest.mark.parametrize("name", WRITES_BOXES)
def test_boxes_that_are_written_are_brought_to_the_pictures_pixels(checkpoints, name, monkeypatch):
    import torch

    prompts = f"prompts={checkpoints / 'prompts.yaml'}"
    model = open_model(f"hf:{checkpoints / name}", ["task=grounding", prompts, "words=6"])
    table = PREDICTION_TABLES[model.predicts]
    given = [model.predictor.prepare(one) for one in pictures()]
    check(
        predict_and_check_table(model.predictor, model.info, given, list("abc"), model=name), table
    )
    tokens = model.predictor.loaded.processor.tokenizer
    if name == "florence2":  # thousandths of width and height, the middle of each
        said = "</s> <s> nurse <loc_100> <loc_200> <loc_499> <loc_999> </s>"
        expected = [0.1005, 0.2005, 0.399, 0.799]
    else:  # 32 × 32 patches: from the middle of (1, 12) to the middle of (26, 31)
        said = "<object> <patch_index_0044> <patch_index_0863> </object>"
        expected = [12.5 / 32, 1.5 / 32, 19 / 32, 25 / 32]
    line = tokens(said, add_special_tokens=False, return_tensors="pt")["input_ids"]

    def generate(*, input_ids, **_):
        told = input_ids if name == "kosmos2" else input_ids[:, :0]
        return torch.cat([told, line.expand(len(input_ids), -1)], dim=1)

    monkeypatch.setattr(model.predictor.loaded.model, "generate", generate)
    found = asked(model, pictures())
    # Both of the chef's prompts are answered with the same box: it was found once.
    assert found["label"].to_list() == ["nurse", "chef"] * 3
    boxes = found.select("box_x", "box_y", "box_w", "box_h").to_numpy()
    sizes = np.array([[w, h, w, h] for h, w in [one.shape[:2] for one in pictures()]]).repeat(
        2, axis=0
    )
    np.testing.assert_allclose(boxes, expected * sizes, atol=1.01)  # Florence-2's are whole pixels
    assert "without a confidence" in " ".join(model.notes)


def test_a_pose_of_each_box_in_the_pictures_own_pixels(checkpoints, monkeypatch):
    import torch

    model = open_model(f"hf:{checkpoints / 'vit_pose'}")
    assert model.predicts == "keypoints"
    boxes = [((10.0, 5.0, 24.0, 32.0), (0.0, 0.0, 12.0, 16.0)), (), ((4.0, 8.0, 30.0, 40.0),)]
    network = model.predictor.loaded.model

    def peaks(pixel_values, **_):
        heat = torch.full((len(pixel_values), 17, 16, 12), 1e-3)
        heat[:, :, 8, 6] = 1.0  # a little right of and below the middle: half a cell
        return type("Found", (), {"heatmaps": heat})()

    monkeypatch.setattr(type(network), "forward", lambda _, **given: peaks(**given))
    shown = [model.predictor.prepare(one, b) for one, b in zip(pictures(), boxes, strict=True)]
    found = predict_and_check_table(model.predictor, model.info, shown, list("abc"), model="pose")
    rows = check(found, PREDICTION_TABLES["keypoints"]).rows(named=True)
    assert [row["image_id"] for row in rows] == ["a", "a", "c"]
    for row, (x, y, w, h) in zip(rows, [*boxes[0], *boxes[2]], strict=True):
        assert (row["box_x"], row["box_h"]) == (x, h)
        assert len(row["keypoints_x"]) == 17
        # A quarter is added about each box; 12 × 16 cells hold it.
        np.testing.assert_allclose(row["keypoints_x"], x + w / 2, atol=1.25 * w / 12)
        np.testing.assert_allclose(row["keypoints_y"], y + h / 2, atol=1.25 * h / 16)
    assert model.predictor([]).height == 0


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("vilt", [], r"(?s)there is no question.*question=What work"),
        ("vilt", ["question=a nurse", "classes=x.yaml"], "chooses among its own answers"),
        ("vit_pose", ["question=a nurse"], "takes no question"),
        ("florence2", ["task=grounding"], r"(?s)grounding needs prompts"),
        ("vit_pose", ["task=captioning"], "cannot be opened for the task captioning"),
    ],
)
def test_what_cannot_be_done_is_said(checkpoints, name, options, match):
    with pytest.raises(SpecError, match=match):
        open_model(f"hf:{checkpoints / name}", options)


def test_a_model_that_writes_no_boxes_is_not_asked_for_them(checkpoints):
    prompts = f"prompts={checkpoints / 'prompts.yaml'}"
    with pytest.raises(SpecError, match=r"(?s)how this model writes boxes.*florence2.*blip"):
        open_model(f"hf:{checkpoints / 'blip2'}", ["task=grounding", prompts])


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Forty pictures of one person each, with box, pose and work."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    n, people = 60, []
    for k in range(n):
        Image.fromarray(rng.integers(0, 256, (60, 40, 3)).astype(np.uint8)).save(f"{k}.png")
        points = [v for j in range(17) for v in (10 + j, 20 + j, 2)]
        people.append({"id": k, "image_id": k, "category_id": 1, "bbox": [5, 5, 30, 50],
                       "area": 1500, "iscrowd": 0, "keypoints": points, "num_keypoints": 17,
                       "attributes": {"light": "ab"[k % 2]}})  # fmt: skip
    told = {"images": [{"id": k, "file_name": f"{k}.png", "width": 40, "height": 60}
                       for k in range(n)],
            "categories": [{"id": 1, "name": "person", "skeleton": [],
                            "keypoints": [str(j) for j in range(17)]}],
            "annotations": people}  # fmt: skip
    (tmp_path / "poses.json").write_text(json.dumps(told))
    lines = ["id,light,work", *(f"{k}.png,{'ab'[k % 2]},nurse" for k in range(n))]
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_from_a_pose_model_to_an_audit(checkpoints, photos):
    spec = parse_spec({"data": "coco:poses.json", "model": f"hf:{checkpoints / 'vit_pose'}",
                       "task": "keypoints", "by": "light", "replicates": 100,
                       "cluster": "image"})  # fmt: skip
    found = run_audit(spec)
    values = found.group_metrics.filter(pl.col("attribute") == "light")
    assert set(values["group"]) == {"a", "b"}
    assert values["n_units"].sum() > 0


def test_from_a_question_to_an_audit(checkpoints, photos):
    spec = parse_spec({
        "data": "table:people.csv", "model": f"hf:{checkpoints / 'vilt'}", "target": "work",
        "model_option": ["question=a photo of a person"], "by": "light", "replicates": 100,
        "batch": 7,
    })  # fmt: skip
    found = run_audit(spec)
    assert set(found.group_metrics["group"]) >= {"a", "b"}


def test_boxes_that_are_not_there_are_asked_for(checkpoints, photos):
    with pytest.raises(SpecError, match="given people's boxes"):
        isolux.predict("table:people.csv", f"hf:{checkpoints / 'vit_pose'}")


def test_only_phrases_of_classes_that_are_there_are_asked(checkpoints, tmp_path, monkeypatch):
    options = ["task=grounding", f"prompts={checkpoints / 'prompts.yaml'}", "places=<loc_{}>"]
    model = open_model(f"hf:{checkpoints / 'florence2'}", [*options, "only_present=yes"])
    asked_of = []

    def rows(_, pictures, name, text):
        asked_of.append((name, text, [int(one[0, 0, 0]) for one in pictures]))
        return [(k, name, 0.0, 0.0, 1.0, 1.0, 1.0) for k in range(len(pictures))]

    monkeypatch.setattr(type(model.predictor), "_rows", rows)
    people = pl.DataFrame(
        {"instance_id": list("abcd"), "image_id": ["0.png", "0.png", "1.png", "2.png"],
         "classes": [["nurse"], ["nurse"], ["chef"], ["pilot"]]}
    )  # fmt: skip
    for k in range(3):
        Image.fromarray(np.full((6, 8, 3), k, np.uint8)).save(tmp_path / f"{k}.png")
    dataset = Dataset("three", INFO, people, root=str(tmp_path))
    images = list_source_images(dataset, "boxes", "image", by_class=True)
    assert [image.classes for image in images] == [("nurse",), ("chef",), ("pilot",)]
    inputs = [
        model.predictor.prepare(np.full((6, 8, 3), k, np.uint8), *image.given_to_model)
        for k, image in enumerate(images)
    ]
    found = model.predictor(inputs)
    # Picture 2 shows a pilot, whom no prompt names: it is asked for all.
    names = {name for name, _, _ in asked_of}
    shown = {name: {k for n, _, ks in asked_of for k in ks if n == name} for name in names}
    assert shown == {"nurse": {0, 2}, "chef": {1, 2}}
    assert set(found.select("picture", "label").rows()) == {
        (0, "nurse"), (1, "chef"), (2, "nurse"), (2, "chef"),
    }  # fmt: skip
    assert any("only the classes of its people" in note for note in model.notes)
    every = open_model(f"hf:{checkpoints / 'florence2'}", options)
    assert (every.predictor.by_class, every.key == model.key) == (False, False)
    with pytest.raises(SpecError, match="takes no only_present"):
        open_model(f"hf:{checkpoints / 'llava'}", ["only_present=yes"])
