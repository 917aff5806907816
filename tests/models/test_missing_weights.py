"""Every family that reads weights: without one of them it is refused, or its answer stays.

A tensor at a time is removed from a tiny checkpoint: the error names it, or the answer to a picture
is the same, whatever that tensor holds.
"""

from __future__ import annotations

import shutil

import numpy as np
import pytest
from polars.testing import assert_frame_equal

from isolux.core.errors import IsoluxError, SpecError
from isolux.models import open_model
from tests.contracts._samples import MODELS as SAMPLES
from tests.models import _checkpoints as tiny
from tests.models import _worded_checkpoints as worded
from tests.models._vision_ops import with_torchvision

torch = pytest.importorskip("torch", reason="PYTORCH IS ABSENT: no weight was removed")
files = pytest.importorskip("safetensors.torch", reason="SAFETENSORS IS ABSENT: none was removed")
pytestmark = pytest.mark.filterwarnings("ignore")

KINDS = {
    "classifier": {}, "embedder": {}, "clip": {"prompts"}, "siglip": {"prompts"}, "detr": {},
    "owl": {"prompts"}, "mask2former": {}, "vit_pose": {}, "blip": {"words=2"},
    "vilt": {"question=a photo"}, "florence2": {"words=2"}, "grounding_dino": {"prompts"},
    "age_classes": {"task=number"}, "enlarger": {},
}  # fmt: skip
MOST = 12
"""Tensors of a checkpoint that are removed, evenly spread: each takes a second or so."""


def asked(model):
    predictor, rng = model.predictor, np.random.default_rng(3)
    picture = rng.integers(0, 256, (50, 70, 3)).astype(np.uint8)
    prepare = getattr(predictor, "prepare", lambda one: one)
    boxes = ([(5.0, 5.0, 30.0, 40.0)],) if hasattr(predictor, "by_box") else ()
    return predictor([prepare(picture, *boxes)])


def transformers():
    with_torchvision()  # transformers takes it for whole where it is installed
    return pytest.importorskip("transformers", reason="TRANSFORMERS IS ABSENT: no model was run")


def checkpoint(kind, folder):
    transformers()
    (folder / "prompts.yaml").write_text("nurse: a nurse\nchef: [a chef, a photo of a chef]\n")
    path = getattr(tiny if hasattr(tiny, kind) else worded, kind)(folder / kind)
    named = {"prompts": f"prompts={folder / 'prompts.yaml'}"}
    return path, [named.get(one, one) for one in KINDS[kind]]


def save(state, folder):
    files.save_file(state, folder / "model.safetensors", metadata={"format": "pt"})


def hold(open_it, state, put, names):
    """Remove each of some tensors, then put other numbers in its place."""
    refused: dict[str, str] = {}
    for name in names:
        put({k: v for k, v in state.items() if k != name})
        try:
            model = open_it()
        except IsoluxError as error:
            refused[name] = str(error)
            continue
        answer = asked(model)
        for seed in (1, 2):
            draw = torch.Generator().manual_seed(seed)
            like = state[name]
            put(state | {name: torch.randn(like.shape, generator=draw).to(like.dtype)})
            assert_frame_equal(asked(open_it()), answer)
    assert all(name in said for name, said in refused.items()), refused


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_transformers_checkpoint_without_a_tensor(kind, tmp_path):
    folder, options = checkpoint(kind, tmp_path)
    state = files.load_file(folder / "model.safetensors")
    names = sorted(state)[:: max(1, len(state) // MOST)]
    hold(lambda: open_model(f"hf:{folder}", options), state, lambda s: save(s, folder), names)


@pytest.mark.parametrize("family", ["fairface", "finetuned", "open_clip", "timm", "torchvision"])
def test_another_familys_weights_without_a_tensor(family, tmp_path):
    sample = SAMPLES[family](tmp_path)
    spec, told = sample if isinstance(sample, tuple) else (sample, {})
    options = [f"{key}={value}" for key, value in told.items()]
    name = {"finetuned": "finetuned", "fairface": "fairface", "open_clip": "clip"}.get(family, "w")
    path = tmp_path / f"{name}.safetensors"
    state = files.load_file(path)
    with __import__("safetensors").safe_open(path, "pt") as file:
        metadata = file.metadata()
    names = [k for k in sorted(state) if "num_batches" not in k][:: max(1, len(state) // 4)]
    hold(lambda: open_model(f"{family}:{spec}", options), state,
         lambda s: files.save_file(s, path, metadata=metadata), names)  # fmt: skip
    files.save_file(state, path, metadata=metadata)
    one, two = (open_model(f"{family}:{spec}", options) for _ in range(2))
    assert one.key == two.key
    assert_frame_equal(asked(one), asked(two))


def test_a_layer_or_a_head_that_is_missing_or_of_another_size_is_named(tmp_path):
    folder, _ = checkpoint("classifier", tmp_path)
    state = files.load_file(folder / "model.safetensors")
    for part, said in (("layer.0", r"layers?\.0"), ("classifier", "classifier")):
        save({k: v for k, v in state.items() if part not in k}, folder)
        with pytest.raises(SpecError, match=rf"(?s)lacks weights.*found: without .*{said}"):
            open_model(f"hf:{folder}")
    save(state | {"classifier.bias": torch.zeros(7)}, folder)
    with pytest.raises(SpecError, match=r"(?s)of the size in config.*without classifier\.bias"):
        open_model(f"hf:{folder}")


def test_a_checkpoint_of_another_task_is_refused(tmp_path):
    for kind in ("embedder", "clip"):
        folder, _ = checkpoint(kind, tmp_path)
        with pytest.raises(SpecError, match=r"(?s)lacks weights.*classifier"):
            open_model(f"hf:{folder}", ["task=classification"])


def test_embeddings_of_a_classifier_are_its_class_token(tmp_path):
    folder, _ = checkpoint("classifier", tmp_path)
    one, two = (open_model(f"hf:{folder}", ["task=embeddings"]) for _ in range(2))
    assert one.identity["own"]["vector"] == "class token"
    assert "An embedding is the model's class token." in one.notes
    assert "2 weights of the checkpoint have no part in this" in one.notes[0]
    found = asked(one)
    assert_frame_equal(found, asked(two))
    picture = np.random.default_rng(3).integers(0, 256, (50, 70, 3)).astype(np.uint8)
    shown = torch.from_numpy(one.predictor.prepare(picture).values)[None]
    whole = transformers().ViTForImageClassification.from_pretrained(folder).eval()
    with torch.inference_mode():
        states = whole.vit(shown).last_hidden_state
    np.testing.assert_allclose(found["embedding"][0].to_list(), states[0, 0], atol=1e-6)


def test_a_weight_that_only_chooses_proposals_is_named(tmp_path):
    """The best 5 proposals of the picture of noise are the same whatever these numbers are."""
    folder, options = checkpoint("grounding_dino", tmp_path)
    state = files.load_file(folder / "model.safetensors")
    save({k: v for k, v in state.items() if k != "model.enc_output.bias"}, folder)
    with pytest.raises(SpecError, match=r"(?s)lacks weights.*without model\.enc_output\.bias"):
        open_model(f"hf:{folder}", options)


def test_a_text_tower_has_no_part_in_embeddings(tmp_path):
    folder, _ = checkpoint("clip", tmp_path)
    before = asked(open_model(f"hf:{folder}", ["task=embeddings"]))
    state = files.load_file(folder / "model.safetensors")
    save({k: v for k, v in state.items() if not k.startswith("text_model")}, folder)
    model = open_model(f"hf:{folder}", ["task=embeddings"])
    assert "lacks weights that no answer depends on: text_model" in " ".join(model.notes)
    assert_frame_equal(asked(model), before)


def changed(data, suffix):
    """Change a file: the last number of weights, the first letters of a text."""
    if suffix == ".safetensors":
        return data[:-1] + bytes([data[-1] ^ 1])
    if suffix == ".json":
        return b"\n" + data
    return data.replace(b"nurse", b"baker").replace(b"1", b"7").replace(b"car", b"van")


@pytest.mark.parametrize("kind", ["clip", "vilt", "fairface", "open_clip", "timm", "torchvision"])
def test_each_file_that_a_model_opens_is_its_key(kind, tmp_path):
    if kind in KINDS:
        folder, options = checkpoint(kind, tmp_path)
        spec = f"hf:{folder}"
    else:
        sample, told = SAMPLES[kind](tmp_path)
        spec, options = f"{kind}:{sample}", [f"{key}={value}" for key, value in told.items()]
    whole = open_model(spec, options).key
    assert open_model(spec, options).key == whole
    held = [p for p in tmp_path.rglob("*") if p.is_file() and p.name != f"{tiny.TINY}.json"]
    if "prompts" not in KINDS.get(kind, ()):
        held = [p for p in held if p.name != "prompts.yaml"]
    assert len(held) >= (1 if kind in ("fairface", "open_clip") else 2)
    for path in held:
        before = path.read_bytes()
        path.write_bytes(changed(before, path.suffix))
        assert open_model(spec, options).key != whole, path.name
        path.write_bytes(before)


def test_a_changed_shard_is_another_model(tmp_path):
    folder, _ = checkpoint("classifier", tmp_path)
    whole = transformers().ViTForImageClassification.from_pretrained(folder)
    first = open_model(f"hf:{folder}")
    shutil.rmtree(folder)
    checkpoint("classifier", tmp_path)
    (folder / "model.safetensors").unlink()
    whole.save_pretrained(folder, max_shard_size="10KB")
    shards = sorted(folder.glob("*-of-*.safetensors"))
    assert len(shards) > 1
    split = open_model(f"hf:{folder}")
    assert_frame_equal(asked(split), asked(first))
    state = files.load_file(shards[-1])
    moved = {k: v + 0.1 for k, v in state.items()}
    files.save_file(moved, shards[-1], metadata={"format": "pt"})
    assert open_model(f"hf:{folder}").key != split.key
