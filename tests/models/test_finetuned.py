"""Fine-tuned transformers and open_clip models: resumed to the same weights, and run later."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest
from PIL import Image

import isolux
from isolux.core.errors import FileError, SpecError
from isolux.models import open_model
from isolux.models.finetuned import load
from tests.models import _checkpoints as tiny
from tests.models._vision_ops import with_torchvision

pytestmark = pytest.mark.filterwarnings("ignore")
TOLD = {"target": "light", "held_out": 0.2, "batch": 8, "learning_rate": 0.003, "patience": 9}


def libraries(*names):
    pytest.importorskip("torch", reason="PYTORCH IS ABSENT: nothing was fine-tuned")
    with_torchvision()
    for name in ("safetensors", *names):
        pytest.importorskip(name, reason=f"{name.upper()} IS ABSENT: nothing was fine-tuned")


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Forty noisy pictures, bright or dark, in two tables."""
    folder, draw = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    rows = []
    for k in range(40):
        noise = draw.integers(0, 90, (32, 32, 3)) + (0, 150)[k % 2]
        Image.fromarray(noise.astype(np.uint8)).save(folder / f"{k}.png")
        rows.append((f"{k}.png", ("night", "day")[k % 2]))
    table = pl.DataFrame(rows, schema=["id", "light"], orient="row")
    table.head(30).write_csv(folder / "train.csv")
    table.tail(10).write_csv(folder / "test.csv")
    return folder


def opened(family, folder):
    """Make a tiny model of a family; give its spec and settings."""
    if family == "open_clip":
        libraries("open_clip")
        return f"open_clip:{tiny.TINY}", [f"weights={tiny.tiny_clip(folder)}"]
    libraries("transformers")
    return f"hf:{getattr(tiny, family)(folder / family)}", []


@pytest.mark.parametrize("family", ["clip", "siglip", "embedder", "open_clip"])
def test_resumed_to_the_same_weights_and_run_later(family, photos, tmp_path):
    model, options = opened(family, tmp_path)
    from safetensors.torch import load_file

    data, told = f"table:{photos / 'train.csv'}", {**TOLD, "model_option": options}
    apply = [f"table:{photos / 'test.csv'}"]
    for out, stops in (("whole", (8,)), ("cut", (1, 8))):
        for epochs in stops:
            isolux.train_finetune(data, model=model, out=tmp_path / out, epochs=epochs,
                                  apply=apply, **told)  # fmt: skip
    for path in (tmp_path / "whole").iterdir():  # a training twice, or resumed: the same bytes
        assert path.read_bytes() == (tmp_path / "cut" / path.name).read_bytes(), path.name
    one, two = (load_file(tmp_path / n / "finetuned.safetensors") for n in ("whole", "cut"))
    assert one.keys() == two.keys()
    assert all(bool((one[k] == two[k]).all()) for k in one)
    assert not any("text" in k for k in one)  # what reads texts has learnt nothing
    tuned = open_model(f"finetuned:{tmp_path / 'cut'}")
    found = isolux.predict(apply[0], f"finetuned:{tmp_path / 'cut'}", out=tmp_path / "said")
    first = dict(found.predictions.filter(rank=1).select("instance_id", "label").rows())
    labels = pl.read_csv(tmp_path / "cut" / "labels-test.csv")
    then = labels.group_by("id", maintain_order=True).first()
    assert first == dict(then.select("id", "label").rows())
    scores = found.predictions.sort("instance_id", "rank")["score"].to_numpy()
    written = labels.sort("id", "score", descending=[False, True])["score"].to_numpy()
    np.testing.assert_allclose(scores, written, atol=1e-5)
    assert first == dict(pl.read_csv(photos / "test.csv").rows())  # it tells light from dark
    assert tuned.predicts == "labels"


def test_a_folder_runs_no_code_and_no_pickle_of_its_choice(tmp_path):
    with pytest.raises(FileError, match="there is no fine-tuned model here"):
        load(str(tmp_path))
    (tmp_path / "checkpoint.safetensors").touch()
    with pytest.raises(FileError, match="this training has not finished"):
        load(str(tmp_path))
    (tmp_path / "finetuned.safetensors").touch()
    record = tmp_path / "finetune.json"
    for damaged in ("[]", "{", '{"model": "python:os:system"}', '{"model": 1, "classes": []}'):
        record.write_text(damaged)
        with pytest.raises(FileError, match="record of this training is damaged"):
            load(str(tmp_path))
    record.write_text(json.dumps({"model": "python:os:system", "classes": ["a", "b"]}))
    with pytest.raises(SpecError, match="a folder may not say which code runs"):
        load(str(tmp_path))
    with pytest.raises(SpecError, match="trained from another extractor"):
        load(str(tmp_path), base="python:mine:net")
    told = {"model": "hf:gone", "classes": ["a", "b"], "model_option": ["trust_checkpoint=yes"]}
    record.write_text(json.dumps(told))
    from isolux.models.finetuned import _list_extractor_options

    assert _list_extractor_options(told) == []
