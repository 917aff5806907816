"""Every family, from a tiny random network or its own weights, over pictures and on to an audit."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from PIL import Image

from isolux.api.audit import run_audit
from isolux.api.predict import predict_people
from isolux.core.errors import SpecError
from isolux.core.spec import parse_spec
from isolux.models import open_model
from isolux.people.loading import load_people
from tests.models import _checkpoints as tiny
from tests.models import _worded_checkpoints as worded
from tests.models._vision_ops import with_torchvision

torch = pytest.importorskip("torch", reason="PYTORCH IS ABSENT: no model was run to an audit")
HAS_TORCHVISION = with_torchvision()  # transformers takes it for whole where it is installed
pytestmark = pytest.mark.filterwarnings("ignore")

N = 12
BOX = (5, 5, 30, 50)
COCO, TABLE = {"data": "coco:people.json"}, {"data": "table:people.csv"}
WORK = {**TABLE, "target": "work", "metrics": "accuracy"}
PROMPTED = ["prompts=classes.yaml", "min_score=0"]
SAID = {**TABLE, "task": "answers", "least_answers": 1}
ASKED = {**SAID, "prompts": "asked.yaml"}
QUESTIONS = ["task=question", "prompts=asked.yaml", "words=4"]
OFA = ["task=grounding", "prompts=regions.yaml", "beams=5", "top_p=.6", "words=8"]
DETECTION = {**COCO, "task": "detection"}
SPACE = {**TABLE, "task": "retrieval", "target": "work", "top_k": [3], "cluster": "who"}
VERIFIED = {**TABLE, "task": "face_verification", "cluster": "who", "identity": "who", "far": 0.5}

CASES = {
    "classifier": [(WORK, []), (WORK, ["classes=in21k.yaml"])],
    "clip": [(WORK, ["prompts=works.yaml"]), (SAID, ["prompts=scene.yaml", "several=nearest"]),
             (WORK, ["prompts=clip.yaml"]), (SPACE, ["task=embeddings"])],
    "siglip": [(WORK, ["prompts=works.yaml"])],
    "embedder": [(SPACE, []), (VERIFIED, [])],
    "detr": [(DETECTION, ["min_score=0"])],
    "deformable_detr": [(DETECTION, ["min_score=0"])],
    "rt_detr": [(DETECTION, ["min_score=0"])],
    "owl": [({**COCO, "task": "open_vocabulary"}, PROMPTED)],
    "owl_vit": [(DETECTION, PROMPTED),
                ({**COCO, "task": "open_vocabulary", "max_detections": 100},
                 ["prompts=detic.yaml", "min_score=0"])],
    "grounding_dino": [({**COCO, "task": "grounding"}, PROMPTED)],
    "mask2former": [({**COCO, "task": "segmentation"}, ["min_score=0"])],
    "maskformer": [({**COCO, "task": "segmentation"}, ["min_score=0"])],
    "vit_pose": [({**COCO, "task": "keypoints"}, [])],
    "vilt": [(WORK, ["question=a photo of a person"])],
    "blip": [(WORK, ["words=4", "classes=words.yaml"])],
    "blip_vqa": [(WORK, ["question=a photo", "words=4", "classes=words.yaml"]),
                 (ASKED, QUESTIONS)],
    "blip2": [(WORK, ["words=4", "classes=words.yaml"])],
    "llava": [(WORK, ["words=4", "classes=words.yaml"]),
              (WORK, ["task=question", "question=a person", "words=4", "classes=words.yaml"]),
              (ASKED, QUESTIONS)],
    "florence2": [(WORK, ["words=4", "classes=words.yaml"]),
                  ({**COCO, "task": "grounding"}, ["task=grounding", "prompts=classes.yaml"]),
                  ({**COCO, "task": "grounding"}, [*OFA, "places=<loc_{}>"])],
    "kosmos2": [(WORK, ["words=4", "classes=words.yaml"]),
                ({**COCO, "task": "grounding"}, ["task=grounding", "prompts=classes.yaml"])],
}  # fmt: skip


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Give twelve pictures of one person each, with box, mask, pose, work and name."""
    folder = tmp_path_factory.mktemp("world")
    rng, people, lines = np.random.default_rng(3), [], ["id,light,work,who"]
    x, y, w, h = BOX
    corners = [x, y, x + w, y, x + w, y + h, x, y + h]
    for k in range(N):
        noise = rng.integers(0, 256, (60, 40, 3)).astype(np.uint8)
        Image.fromarray(noise).save(folder / f"{k}.png")
        points = [v for j in range(17) for v in (10 + j, 20 + j, 2)]
        light, work = "ab"[k % 2], ("nurse", "chef")[k % 3 == 0]
        people.append({"id": k, "image_id": k, "category_id": 1, "bbox": BOX, "area": w * h,
                       "iscrowd": 0, "keypoints": points, "num_keypoints": 17,
                       "segmentation": [corners], "attributes": {"light": light}})  # fmt: skip
        lines.append(f"{k}.png,{light},{work},p{k // 3}")
    told = {"images": [{"id": k, "file_name": f"{k}.png", "width": 40, "height": 60}
                       for k in range(N)],
            "categories": [{"id": 1, "name": "person", "skeleton": [],
                            "keypoints": [str(j) for j in range(17)]}],
            "annotations": people}  # fmt: skip
    (folder / "people.json").write_text(json.dumps(told))
    (folder / "people.csv").write_text("\n".join(lines) + "\n")
    (folder / "classes.yaml").write_text("person: [a person, person]\ncar: a car\n")
    (folder / "works.yaml").write_text("nurse: [a photo of a nurse]\nchef: a photo of a chef\n")
    (folder / "scene.yaml").write_text("indoor: [a room, a house]\noutdoor: [a street, a park]\n")
    (folder / "clip.yaml").write_text("template: 'a photo of a {}'\nclasses: [nurse, chef]\n")
    (folder / "detic.yaml").write_text("template: 'a person who is a {}'\nclasses: [person]\n")
    (folder / "regions.yaml").write_text(
        "template: 'Which region does the text {} describe?'\nclasses: [person]\n"
    )
    (folder / "in21k.yaml").write_text("nurse: ['0', '1']\nchef: ['2']\n")
    (folder / "asked.yaml").write_text(
        "prompts:\n  neutral: {ask: [a photo, a person], read: occupation}\n"
        "  negative: {ask: [a car], read: toxicity}\n"
    )
    (folder / "words.yaml").write_text("nurse: [nurse, photo, of, car]\nchef: [chef, a, person]\n")
    return folder


def audited(asked, model, tmp_path):
    """Run a model over the world and audit its answers, as two commands would."""
    whole = {**asked, "by": "light", "min_units": 2, "replicates": 100}
    spec = parse_spec({**whole, "batch": 5, "max_failures": 0.0, "model": model.spec})
    people = load_people(
        spec.people, uses_unscored_people=model.predicts not in ("labels", "embeddings")
    )
    done = predict_people(spec, people, model, out=tmp_path / "answers")
    assert done.inferences["reason"].null_count() == N
    asked = parse_spec({**whole, "predictions": str(tmp_path / "answers")})
    answers = pl.read_parquet(tmp_path / "answers" / "predictions.parquet")
    if model.predicts == "labels" and answers["label"].null_count() == answers.height:
        with pytest.raises(SpecError, match="nobody has an answer"):
            run_audit(asked)
        return None  # an untrained network may say no word that names a class
    return run_audit(asked)


def hold(found):
    """Hold an audit to a value, or the reason for none, of each metric and group."""
    if found is None:
        return
    values = found.group_metrics.filter(pl.col("attribute") == "light")
    assert set(values["group"]) == {"a", "b"}
    assert found.group_metrics["n_units"].max() >= N  # pairs are more
    without = values.filter(pl.col("value").is_null())
    assert without["reason"].null_count() == 0


def cases():
    return [
        pytest.param(name, asked, options, id=f"{name}-{asked.get('task', 'classification')}-{k}")
        for name, several in CASES.items()
        for k, (asked, options) in enumerate(several)
    ]


@pytest.mark.parametrize(("name", "asked", "options"), cases())
def test_transformers(name, asked, options, world, tmp_path, monkeypatch):
    pytest.importorskip("transformers", reason=f"TRANSFORMERS IS ABSENT: {name} was NOT run")
    monkeypatch.chdir(world)
    made = world / name
    if not made.exists():
        getattr(tiny if hasattr(tiny, name) else worded, name)(made)
    hold(audited(asked, open_model(f"hf:{made}", options), tmp_path))


def beside_torchvision(name):
    if not HAS_TORCHVISION:
        pytest.skip(f"TORCHVISION IS ABSENT: {name} was NOT run")
    return pytest.importorskip(name, reason=f"{name} IS ABSENT: no model of it was run")


@pytest.mark.parametrize("answers", ["labels", "embeddings"])
def test_timm(answers, world, tmp_path, monkeypatch):
    timm = beside_torchvision("timm")
    from safetensors.torch import save_file

    monkeypatch.chdir(world)
    torch.manual_seed(0)
    save_file(timm.create_model("resnet10t", num_classes=2).state_dict(), "timm.safetensors")
    (world / "two.txt").write_text("nurse\nchef\n")
    options = ["weights=timm.safetensors", "labels=two.txt", f"answers={answers}"]
    asked = WORK if answers == "labels" else SPACE
    hold(audited(asked, open_model("timm:resnet10t", options), tmp_path))


@pytest.mark.parametrize(
    ("name", "task", "more"),
    [
        ("fasterrcnn_resnet50_fpn", "detection", {}),
        ("maskrcnn_resnet50_fpn", "segmentation", {}),
        ("keypointrcnn_resnet50_fpn", "keypoints", {"num_keypoints": 17}),
    ],
)
def test_torchvision(name, task, more, world, tmp_path, monkeypatch):
    torchvision = beside_torchvision("torchvision")
    from safetensors.torch import save_file

    monkeypatch.chdir(world)
    torch.manual_seed(0)
    inner = torchvision.models.get_model(
        name, weights=None, weights_backbone=None, num_classes=3, **more
    )
    save_file(inner.state_dict(), f"{name}.safetensors")
    (world / "objects.txt").write_text("person\ncar\n")
    model = open_model(
        f"torchvision:{name}",
        [f"weights={name}.safetensors", "labels=objects.txt", "min_score=0", "max_detections=3"],
    )
    inner = model.predictor.inner  # small: regions are cut out by plain PyTorch here
    inner.transform.min_size, inner.transform.max_size = (64,), 96
    inner.rpn._post_nms_top_n["testing"] = 20
    hold(audited({**COCO, "task": task}, model, tmp_path))


@pytest.mark.parametrize("answers", ["labels", "embeddings"])
def test_open_clip(answers, world, tmp_path, monkeypatch):
    beside_torchvision("open_clip")
    monkeypatch.chdir(world)
    weights = f"weights={tiny.tiny_clip(world)}"
    labels = answers == "labels"
    options = [weights, "prompts=works.yaml"] if labels else [weights, "answers=embeddings"]
    model = open_model(f"open_clip:{tiny.TINY}", options)
    hold(audited(WORK if labels else SPACE, model, tmp_path))


def test_mtcnn(world, tmp_path, monkeypatch):
    beside_torchvision("facenet_pytorch")
    monkeypatch.chdir(world)
    hold(audited({**COCO, "task": "face_detection"}, open_model("mtcnn:"), tmp_path))
