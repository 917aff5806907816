"""Every family on a GPU: the same answers as on a CPU, to what single precision allows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from isolux.core.errors import SpecError
from isolux.models import open_model
from isolux.models.lpips import load as load_lpips
from tests.models import _checkpoints as tiny
from tests.models import _worded_checkpoints as worded
from tests.models._gpu import cuda_here
from tests.models._vision_ops import with_torchvision
from tests.models.test_lpips import CONVOLUTIONS, ENDS

pytestmark = pytest.mark.filterwarnings("ignore")

PROMPTS = "nurse: [a photo of a nurse, a nurse]\nchef: a photo of a chef\n"
CLOSE = {"rel_tol": 1e-3, "abs_tol": 1e-3}
"""Single precision, whose last of 24 bits the order of a sum decides."""
ASKED = {
    "classifier": (), "embedder": (), "clip": ("prompts",), "siglip": ("prompts",),
    "detr": ("min_score=0",), "owl": ("prompts", "min_score=0"),
    "mask2former": ("min_score=0",), "deformable_detr": ("min_score=0",),
    "owl_vit": ("prompts", "min_score=0"),
    "maskformer": ("min_score=0",), "grounding_dino": ("prompts", "min_score=0"),
    "blip": ("words=6",), "blip2": ("words=6",), "florence2": ("words=6",),
    "kosmos2": ("words=6",), "llava": ("words=6",),
    "blip_vqa": ("question=a photo of a person", "words=6"),
    "vilt": ("question=a photo of a person",),
}  # fmt: skip


@pytest.fixture(autouse=True)
def exact(monkeypatch):
    """Take single precision as it is: TF32 keeps 10 of its 23 bits."""
    torch = cuda_here()
    with_torchvision()
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    monkeypatch.setattr(torch.backends.cuda.matmul, "allow_tf32", False)


def pictures():
    rng = np.random.default_rng(0)
    sizes = ((40, 60, 3), (60, 40, 3), (60, 40, 3))
    return [rng.integers(0, 256, size).astype(np.uint8) for size in sizes]


def on(device, spec, options, adjust=lambda _: None):
    model = open_model(spec, [*options, f"device={device}"])
    adjust(model.predictor)
    prepare = getattr(model.predictor, "prepare", lambda one: one)
    return model.predictor([prepare(one) for one in pictures()])


def hold(spec, options, adjust=lambda _: None):
    """Compare what both give, each row beside the nearest: of equal scores either comes first."""
    there, here = (on(device, spec, options, adjust) for device in ("cuda", "cpu"))
    assert here.height > 0
    assert there.schema == here.schema
    numbers = [n for n, t in here.schema.items() if t.is_float()]
    for of_one in here.partition_by("picture"):
        whole = there.filter(picture=of_one["picture"][0])
        assert whole.height == of_one.height
        for row in of_one.iter_rows(named=True):
            others = whole
            away = sum(((pl.col(n) - (row[n] or 0)).abs() for n in numbers), pl.lit(0.0))
            if "label" in others.columns:
                others = others.filter(pl.col("label").eq_missing(row["label"]))
            alike = others.sort(away)
            assert alike.height, row
            nearest = alike.head(1).select(pl.exclude("mask_counts", "rank"))
            own = pl.DataFrame([row], schema=here.schema).select(pl.exclude("mask_counts", "rank"))
            assert_frame_equal(nearest, own, **CLOSE)


@pytest.mark.parametrize("name", list(ASKED))
def test_transformers(name, tmp_path):
    pytest.importorskip("transformers", reason="TRANSFORMERS IS ABSENT: no such model was run")
    (tmp_path / "prompts.yaml").write_text(PROMPTS)
    maker = getattr(tiny, name, None) or getattr(worded, name)
    maker(tmp_path / name)
    told = [f"prompts={tmp_path / 'prompts.yaml'}" if o == "prompts" else o for o in ASKED[name]]
    hold(f"hf:{tmp_path / name}", told)


def test_poses_of_people_whose_boxes_are_known(tmp_path):
    pytest.importorskip("transformers", reason="TRANSFORMERS IS ABSENT: no such model was run")
    tiny.vit_pose(tmp_path / "pose")
    found = []
    for device in ("cuda", "cpu"):
        model = open_model(f"hf:{tmp_path / 'pose'}", [f"device={device}"])
        boxes = [((2.0, 2.0, 30.0, 30.0),) for _ in pictures()]
        shown = map(model.predictor.prepare, pictures(), boxes)
        found.append(model.predictor(list(shown)))
    assert found[0].schema == found[1].schema
    for name in ("keypoints_x", "keypoints_y"):
        there, here = (one[name].explode().to_numpy() for one in found)
        # A point is a heat map's highest place, and of an untrained network's several are as high.
        assert np.mean(np.abs(there - here) < 0.01) > 0.8


def test_boxes_of_the_likeliest_places(tmp_path):
    """RT-DETR looks closer at its likeliest places; an untrained network's are all as likely."""
    pytest.importorskip("transformers", reason="TRANSFORMERS IS ABSENT: no such model was run")
    tiny.rt_detr(tmp_path / "net")
    there, here = (on(d, f"hf:{tmp_path / 'net'}", ["min_score=0"]) for d in ("cuda", "cpu"))
    assert there.schema == here.schema
    scores = [one["score"].sort().to_numpy() for one in (there, here)]
    np.testing.assert_allclose(*scores, atol=0.02)


@pytest.mark.parametrize("answers", ["labels", "embeddings"])
def test_timm(answers, tmp_path):
    timm = pytest.importorskip("timm", reason="TIMM IS ABSENT: no model of it was run")
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    state = timm.create_model("resnet10t", pretrained=False).state_dict()
    save_file(state, tmp_path / "r.safetensors")
    hold("timm:resnet10t", [f"weights={tmp_path / 'r.safetensors'}", f"answers={answers}"])


@pytest.mark.parametrize("answers", ["labels", "embeddings"])
def test_open_clip(answers, tmp_path):
    pytest.importorskip("open_clip", reason="OPEN_CLIP IS ABSENT: no model of it was run")
    (tmp_path / "prompts.yaml").write_text(PROMPTS)
    told = [f"weights={tiny.tiny_clip(tmp_path)}", f"answers={answers}"]
    prompts = [f"prompts={tmp_path / 'prompts.yaml'}"] if answers == "labels" else []
    hold(f"open_clip:{tiny.TINY}", [*told, *prompts])


@pytest.mark.parametrize(
    "name", ["fasterrcnn_resnet50_fpn", "maskrcnn_resnet50_fpn", "keypointrcnn_resnet50_fpn"]
)
def test_torchvision(name, tmp_path):
    torchvision = pytest.importorskip("torchvision", reason="TORCHVISION IS ABSENT: NOT run")
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    points = {"num_keypoints": 5} if name.startswith("keypoint") else {}
    inner = torchvision.models.get_model(
        name, weights=None, weights_backbone=None, num_classes=3, **points
    )
    save_file(inner.state_dict(), tmp_path / "d.safetensors")
    (tmp_path / "two.txt").write_text("person\ncar\n")

    def small(predictor):
        predictor.inner.transform.min_size, predictor.inner.transform.max_size = (64,), 96

    told = [f"weights={tmp_path / 'd.safetensors'}", f"labels={tmp_path / 'two.txt'}",
            "min_score=0", "max_detections=3"]  # fmt: skip
    hold(f"torchvision:{name}", told, small)


def test_fairface(tmp_path):
    import torch
    from safetensors.torch import save_file

    from isolux.models.fairface import build_resnet34

    save_file(build_resnet34(torch, 18, seed=1).state_dict(), tmp_path / "r.safetensors")
    for answers in ("race", "embeddings"):
        hold(f"fairface:{tmp_path / 'r.safetensors'}", [f"answers={answers}"])


def test_lpips(tmp_path):
    torch = cuda_here()
    torch.manual_seed(0)
    trunk = {}
    for number, (before, after) in CONVOLUTIONS.items():
        trunk[f"features.{number}.weight"] = torch.randn(after, before, 3, 3) / (3 * before**0.5)
        trunk[f"features.{number}.bias"] = torch.zeros(after)
    heads = {f"lin{k}.model.1.weight": torch.rand(1, CONVOLUTIONS[end][1], 1, 1)
             for k, end in enumerate(ENDS)}  # fmt: skip
    for name, state in (("vgg.pth", trunk), ("heads.pth", heads)):
        torch.save(state, tmp_path / name)
    rng = np.random.default_rng(0)
    first, second = (rng.integers(0, 256, (3, 40, 48, 3)).astype(np.uint8) for _ in range(2))
    there, here = (
        load_lpips(str(tmp_path / "vgg.pth"), linear=tmp_path / "heads.pth", device=device)(
            first, second
        )
        for device in ("cuda", "cpu")
    )
    assert here.min() > 0
    np.testing.assert_allclose(there, here, rtol=1e-3)


def test_half_precision_stays_near(tmp_path):
    pytest.importorskip("transformers", reason="TRANSFORMERS IS ABSENT: no such model was run")
    tiny.classifier(tmp_path / "net")
    half = on("cuda", f"hf:{tmp_path / 'net'}", ["precision=float16"])
    assert_frame_equal(half, on("cpu", f"hf:{tmp_path / 'net'}", []), abs_tol=0.02)


def test_a_gpu_that_is_not_there_is_named(tmp_path):
    pytest.importorskip("transformers", reason="TRANSFORMERS IS ABSENT: no such model was run")
    tiny.classifier(tmp_path / "net")
    with pytest.raises(SpecError, match=r"(?s)no such device.*cuda:99"):
        open_model(f"hf:{tmp_path / 'net'}", ["device=cuda:99"])
