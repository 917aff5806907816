"""Training on a GPU: run on a CPU afterwards, gone on with, and what is said where memory ends."""

from __future__ import annotations

import gc

import polars as pl
import pytest

import isolux
from isolux.core.errors import IsoluxError
from tests.api._faces import write_faces
from tests.models import _checkpoints as tiny
from tests.models._gpu import cuda_here

pytestmark = pytest.mark.filterwarnings("ignore")
TOLD = {"batch": 16, "held_out": 0.25, "learning_rate": 0.003, "patience": 9, "device": "cuda"}


@pytest.fixture
def labels(tmp_path):
    cuda_here()
    return write_faces(tmp_path / "faces")


def train(labels, out, **told):
    return isolux.train_fairface(labels, images=labels.parent, out=out, side=32, **TOLD | told)


def said(labels, folder, device):
    found = isolux.predict(
        f"table:{labels}", f"fairface:{folder}", images=str(labels.parent), id="file",
        model_option=["answers=gender", f"device={device}"],
    )  # fmt: skip
    return found.predictions.sort("instance_id", "label")


def test_a_network_that_a_gpu_trained_answers_on_a_cpu(labels, tmp_path):
    done = train(labels, tmp_path / "net", epochs=6)
    assert done.history[-1].held_loss < done.history[0].held_loss
    here, there = (said(labels, tmp_path / "net", device) for device in ("cpu", "cuda"))
    assert here["label"].to_list() == there["label"].to_list()
    # TF32, which PyTorch allows in convolutions, keeps 10 bits of a number.
    assert (here["score"] - there["score"]).abs().max() < 0.02


def test_it_goes_on_from_its_last_epoch(labels, tmp_path):
    train(labels, tmp_path / "net", epochs=1)
    done = train(labels, tmp_path / "net", epochs=3)
    assert [one.number for one in done.history] == [1, 2, 3]


def test_a_fine_tuned_model_answers_on_a_cpu(labels, tmp_path):
    pytest.importorskip("transformers", reason="TRANSFORMERS IS ABSENT: nothing was fine-tuned")
    tiny.embedder(tmp_path / "net")
    told = {"target": "gender", "id": "file", "images": str(labels.parent), **TOLD}
    isolux.train_finetune(f"table:{labels}", model=f"hf:{tmp_path / 'net'}", epochs=2,
                          out=tmp_path / "tuned", **told)  # fmt: skip
    found = [
        isolux.predict(f"table:{labels}", f"finetuned:{tmp_path / 'tuned'}", id="file",
                       images=str(labels.parent), model_option=[f"device={device}"])
        for device in ("cpu", "cuda")
    ]  # fmt: skip
    here, there = (one.predictions.sort("instance_id", "label") for one in found)
    assert (here["score"] - there["score"]).abs().max() < 0.02


def test_a_step_that_does_not_fit_is_named(labels, tmp_path):
    torch = cuda_here()
    gc.collect()  # what earlier tests left
    torch.cuda.empty_cache()
    there = torch.cuda.mem_get_info()[1]
    torch.cuda.set_per_process_memory_fraction(700 * 2**20 / there)
    try:
        with pytest.raises(IsoluxError, match=r"(?s)too little memory.*smaller --batch"):
            isolux.train_fairface(labels, images=labels.parent, out=tmp_path / "net", side=224,
                                  **TOLD | {"batch": 48})  # fmt: skip
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
    assert not (tmp_path / "net" / "fairface.safetensors").exists()


def test_a_batch_that_does_not_fit_is_halved_on_a_gpu(labels):
    """Nine pictures of 200 MiB fit, so that half of sixteen do once the first try is let go."""
    torch = cuda_here()
    gc.collect()  # what earlier tests left
    torch.cuda.empty_cache()
    there = torch.cuda.mem_get_info()[1]
    sizes = []

    def net(pictures):
        sizes.append(len(pictures))
        held = [torch.ones(50 * 2**20, device="cuda") for _ in pictures]
        return ["a" if one[0].item() else "b" for one in held]

    held = torch.cuda.memory_reserved()
    torch.cuda.set_per_process_memory_fraction((held + 2 * 2**30) / there)
    try:
        found = isolux.predict(f"table:{labels}", net, images=str(labels.parent), id="file")
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
        torch.cuda.empty_cache()
    assert found.predictions.height == pl.read_csv(labels).height
    assert sizes[:3] == [16, 8, 8]
    assert max(sizes[1:]) == 8
