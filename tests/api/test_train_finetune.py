"""``isolux train finetune``: two extractors of known quality, resumed, and what it refuses."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import polars as pl
import pytest
from PIL import Image

import isolux
from isolux.core.errors import LicenceError, SpecError
from isolux_worlds import draw_people, preset
from isolux_worlds.drawing import render_photos
from tests.cli._run import isolux as run
from tests.faults.test_full_disks import small_disk

# ``fields`` sees the mean colour of 4 x 4 fields, ``brightness`` the mean of all pixels alone,
# which follows from them: it cannot tell more. Both have a weight of their own that is trained.
NETS = """
import numpy as np


class Extractor:
    predicts = "embeddings"

    def __init__(self, side):
        import torch

        self.torch, self.side = torch, side
        self.identity = {"side": side}
        self.inner = torch.nn.Conv2d(3 if side > 1 else 1, 3 if side > 1 else 1, 1)
        with torch.no_grad():
            self.inner.weight.zero_()
            for k in range(len(self.inner.weight)):
                self.inner.weight[k, k] = 4.0
            self.inner.bias.zero_()

    def prepare(self, pixels):
        return np.ascontiguousarray(pixels.transpose(2, 0, 1), np.float32) / 255.0

    def features(self, values):
        pooled = self.torch.nn.functional.adaptive_avg_pool2d(values, self.side)
        seen = self.inner(pooled if self.side > 1 else pooled.mean(1, True)).flatten(1)
        return self.torch.nn.functional.dropout(seen, 0.1, self.inner.training)

    def __call__(self, pictures):
        shown = self.torch.from_numpy(np.stack(pictures))
        return self.features(shown).detach().numpy()


def fields():
    return Extractor(4)


def brightness():
    return Extractor(1)

"""


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A painted world's photos, in two tables: the scene is to be learnt."""
    pytest.importorskip("torch", reason="PYTORCH IS ABSENT: no model was fine-tuned")
    pytest.importorskip("safetensors", reason="SAFETENSORS IS ABSENT: no model was fine-tuned")
    folder = tmp_path_factory.mktemp("photos")
    (folder / "extractors_of_a_test.py").write_text(NETS)
    settings = preset("fair")
    small = settings.image.model_copy(update={"width": 64, "height": 48})
    world = draw_people(settings.model_copy(update={"households": 100, "image": small}), seed=2)
    for name, photo in zip(world.photos["image_id"], render_photos(world), strict=True):
        Image.fromarray(photo.pixels).save(folder / f"{name}.png")
    even = pl.col("household_id").str.slice(1).cast(pl.Int64) % 2 == 0
    table = world.photos.select(
        "scene", "household_id", file=pl.col("image_id") + ".png", even=even
    )
    for part, rows in (("train", table.filter("even")), ("test", table.filter(~pl.col("even")))):
        rows.drop("even").write_csv(folder / f"{part}.csv")
    return folder


def networks(photos, monkeypatch):
    monkeypatch.syspath_prepend(str(photos))


def tuned(monkeypatch, capsys, photos, name, *more, out=None):
    return run(
        monkeypatch, capsys, "train", "finetune", f"table:{photos / 'train.csv'}", "--model",
        f"python:extractors_of_a_test:{name}", "--model-option", "predicts=embeddings", "--target",
        "scene", "--cluster", "household_id", "--apply", f"table:{photos / 'test.csv'}",
        "--learning-rate", "0.05", "--epochs", "25", "--patience", "25", "--out",
        out or photos / f"net-{name}", *more,
    )  # fmt: skip


def test_it_beats_chance_and_ranks_two_extractors_of_known_quality(photos, monkeypatch, capsys):
    networks(photos, monkeypatch)
    found = {}
    for name in ("fields", "brightness"):
        ran = tuned(monkeypatch, capsys, photos, name)
        assert ran.code == 0, ran.err
        assert "Those held out chose the epoch" in ran.out
        audited = run(
            monkeypatch, capsys, "audit", f"table:{photos / 'test.csv'}", "--target", "scene",
            "--cluster", "household_id", "--metric", "accuracy", "--by", "scene", "--predictions",
            photos / f"net-{name}" / "labels-test.csv", "--out", photos / f"run-{name}",
            "--replicates", "200", "--overwrite",
        )  # fmt: skip
        assert audited.code == 0, audited.err
        groups = pl.read_parquet(photos / f"run-{name}" / "group_metrics.parquet")
        everyone = groups.filter(pl.col("attribute").is_null(), metric="accuracy")
        found[name] = everyone.row(0, named=True)
    counts = pl.read_csv(photos / "test.csv")["scene"].value_counts()["count"]
    chance = counts.max() / counts.sum()
    assert found["fields"]["low"] > chance
    assert found["fields"]["low"] > found["brightness"]["high"]
    recipes = [
        json.loads((photos / f"net-{name}" / "finetune.json").read_text())["recipe"]
        for name in ("fields", "brightness")
    ]
    assert recipes[0] == recipes[1]


def test_killed_after_an_epoch_and_gone_on_with_it_is_the_uninterrupted_training(
    photos, monkeypatch, capsys, tmp_path
):
    networks(photos, monkeypatch)
    from safetensors.torch import load_file

    from isolux.api import train_finetune as verb

    def die_after_two(one, of):
        if one.number == 2:
            raise KeyboardInterrupt

    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert tuned(monkeypatch, capsys, photos, "fields", "--epochs", "4", out=whole).code == 0
    with monkeypatch.context() as dying:
        dying.setattr(verb, "report_epoch_loss_and_accuracy", die_after_two)
        assert tuned(monkeypatch, capsys, photos, "fields", "--epochs", "4", out=cut).code != 0
    assert [file.name for file in cut.iterdir()] == ["checkpoint.safetensors"]
    ran = tuned(monkeypatch, capsys, photos, "fields", "--epochs", "4", out=cut)
    assert ran.code == 0, ran.err
    assert "epoch 2 of 4" not in ran.out
    assert "epoch 3 of 4" in ran.out
    one, other = (load_file(folder / "finetuned.safetensors") for folder in (whole, cut))
    assert all(bool((one[k] == other[k]).all()) for k in one)
    assert float((one["extractor.weight"].flatten()[0] - 4.0).abs()) > 0
    labels = [(folder / "labels-test.csv").read_bytes() for folder in (whole, cut)]
    assert labels[0] == labels[1]
    assert (
        pl.read_csv(cut / "labels-test.csv").height == 5 * pl.read_csv(photos / "test.csv").height
    )
    ran = tuned(monkeypatch, capsys, photos, "fields", "--learning-rate", "0.01", out=cut)
    assert "whose recipe differed" in ran.plain
    ran = tuned(monkeypatch, capsys, photos, "brightness", out=cut)
    assert "whose network differed" in ran.plain


def test_labels_are_those_of_the_last_weights_and_pictures_learnt_from_are_told(
    photos, monkeypatch, capsys, tmp_path
):
    networks(photos, monkeypatch)
    out = tmp_path / "net"
    ran = tuned(monkeypatch, capsys, photos, "fields", "--epochs", "1",
                "--apply", f"table:{photos / 'train.csv'}", out=out)  # fmt: skip
    assert ran.code == 0, ran.err
    known = pl.read_csv(photos / "train.csv").height
    assert f"{known} of {known} pictures are files that the model learnt from" in ran.out
    assert "test.csv: " not in ran.out
    assert {"labels-train.csv", "labels-test.csv"} <= {file.name for file in out.iterdir()}
    (out / "labels-mine.csv").write_text("mine")
    tuned(monkeypatch, capsys, photos, "fields", "--epochs", "1", out=out)  # the same weights
    assert (out / "labels-train.csv").exists()
    tuned(monkeypatch, capsys, photos, "fields", "--epochs", "2", out=out)  # others
    assert not (out / "labels-train.csv").exists()
    assert (out / "labels-test.csv").exists()
    assert (out / "labels-mine.csv").read_text() == "mine"
    assert list(json.loads((out / "finetune.json").read_text())["labelled"]) == ["labels-test.csv"]


def test_who_withdrew_is_learnt_from_by_no_one_and_gets_no_label(
    photos, monkeypatch, capsys, tmp_path
):
    networks(photos, monkeypatch)
    gone = [pl.read_csv(photos / f"{part}.csv")["file"][0] for part in ("train", "test")]
    (tmp_path / "gone.txt").write_text("\n".join(gone) + "\n")
    more = ("--epochs", "1", "--withdrawn", tmp_path / "gone.txt", "--allow-unmatched")
    ran = tuned(monkeypatch, capsys, photos, "fields", *more, out=tmp_path / "net")
    assert ran.code == 0, ran.err
    written = "".join(file.read_text() for file in (tmp_path / "net").glob("*.[cj]s*"))
    assert not [name for name in gone if name in written]


def few(folder, scenes=("kitchen", "street")):
    """Write a table of a dozen photos, without the photos."""
    rows = [(f"{k}.png", scenes[k % len(scenes)], f"h{k}") for k in range(12)]
    table = pl.DataFrame(rows, schema=["file", "scene", "household_id"], orient="row")
    for part in ("train", "test"):
        table.write_csv(folder / f"{part}.csv")


def test_a_model_that_cannot_be_trained_is_refused(monkeypatch, capsys, tmp_path):
    few(tmp_path)
    (tmp_path / "closed_of_a_test.py").write_text(
        "import numpy as np\n\ndef closed():\n    return lambda p: np.zeros((len(p), 3))\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    ran = tuned(monkeypatch, capsys, tmp_path, "closed", "--model",
                "python:closed_of_a_test:closed", out=tmp_path / "n")  # fmt: skip
    assert "this model cannot be fine-tuned" in ran.plain
    assert "without torch, inner, features, prepare" in ran.plain
    assert not (tmp_path / "n").exists()


@pytest.mark.parametrize("data", ["facet", "fhibe", "casual_conversations", "visogender"])
def test_a_benchmark_is_refused_with_its_licence_before_its_files_are_read(
    data, monkeypatch, capsys, tmp_path
):
    for more in (("finetune", "--model", "python:x:y"), ("probe", "--features", "x.npy")):
        ran = run(monkeypatch, capsys, "train", more[0], f"{data}:gone", *more[1:], "--out",
                  tmp_path / "net")  # fmt: skip
        assert ran.code == 2
        assert "may not be used to train a model" in ran.plain
        assert "licence" in ran.plain or "terms" in ran.plain or "for evaluation" in ran.plain
        assert not (tmp_path / "net").exists()


def test_data_for_evaluation_alone_and_one_class_are_refused(tmp_path):
    content = {f"{k:04}": {"files": [f"CC/{k:04}/{k:04}_00.MP4"],
                           "label": {"age": "30", "gender": "Female", "skin-type": "2"}}
               for k in range(9)}  # fmt: skip
    (tmp_path / "CasualConversations.json").write_text(json.dumps(content))
    with pytest.raises(LicenceError, match="not for their training"):
        isolux.train_finetune(
            f"casual_conversations:{tmp_path}", model="python:x:y", target="gender",
            out=tmp_path / "n",
        )  # fmt: skip
    few(tmp_path, ("kitchen",))
    with pytest.raises(SpecError, match="nothing to tell apart"):
        isolux.train_finetune(f"table:{tmp_path / 'train.csv'}", model="python:x:y",
                              target="scene", out=tmp_path / "n")  # fmt: skip


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--held-out", "0.9"), "'held_out' of a training cannot be used"),
        (("--top", "0"), "'top' of a training cannot be used"),
        (("--batch", "1"), "'batch' of a training cannot be used"),
        (("--target", "file_name"), "no attribute named 'file_name'"),
        (("--target", "household_id"), "nearly as many values as people"),
    ],
)
def test_settings_and_targets_that_cannot_be_used(more, words, monkeypatch, capsys, tmp_path):
    few(tmp_path)
    ran = tuned(monkeypatch, capsys, tmp_path, "fields", *more, out=tmp_path / "n")
    assert ran.code == 2
    assert words in ran.plain
    assert not (tmp_path / "n").exists()


BROKEN = """
import numpy as np
from extractors_of_a_test import Extractor


def raises():
    made = Extractor(4)
    made.features = None
    return made
"""


def test_pictures_devices_and_models_that_cannot_be_used(photos, monkeypatch, capsys, tmp_path):
    networks(photos, monkeypatch)
    few(tmp_path)
    out = tmp_path / "n"

    def told(*more, name="fields"):
        ran = tuned(monkeypatch, capsys, tmp_path, name, *more, out=out)
        assert ran.code == 2, ran.err
        assert not out.exists()
        return ran.plain

    assert "nothing says where the pictures are" in told()
    for k in range(12):
        Image.new("RGB", (8 + 4 * (k % 2), 8)).save(tmp_path / f"{k}.png")
    assert "several shapes" in told("--batch", "12")
    assert "--threads 1 or more" in told("--threads", "-1")
    assert "no such device" in told("--device", "cuda:9")
    (tmp_path / "broken_of_a_test.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(str(tmp_path))
    said = told("--model", "python:broken_of_a_test:raises")
    assert "the model's network raised TypeError" in said
    (tmp_path / "far").mkdir()
    (tmp_path / "test.csv").rename(tmp_path / "far" / "others.csv")
    pl.DataFrame({"file": ["far.png"]}).write_csv(tmp_path / "test.csv")
    assert "nothing says where the pictures are" in told()  # those to be labelled: at once
    (tmp_path / "thesis.txt").write_text("mine")
    ran = tuned(monkeypatch, capsys, photos, "fields", "--overwrite", out=tmp_path)
    assert "is not an isolux training, so it is left unchanged" in ran.plain


def test_a_disk_that_is_full_keeps_the_last_epoch(photos, monkeypatch, capsys, tmp_path):
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("ONLY ROOT MAY MOUNT A SMALL DISK: what a full one leaves was NOT checked")
    networks(photos, monkeypatch)
    assert (
        tuned(monkeypatch, capsys, photos, "fields", "--epochs", "1", out=tmp_path / "n").code == 0
    )
    size = (tmp_path / "n" / "checkpoint.safetensors").stat().st_size
    disk = tmp_path / "disk"
    with small_disk(disk, 4 * (size // 4096 + 2)):  # room for one checkpoint, and not for two
        ran = tuned(monkeypatch, capsys, photos, "fields", "--epochs", "2", out=disk / "net")
        assert ran.code == 2
        assert "the disk is full" in ran.plain
        assert "epoch 1 of 2" in ran.out
        assert [file.name for file in (disk / "net").iterdir()] == ["checkpoint.safetensors"]
        shutil.copytree(disk / "net", tmp_path / "kept")
    ran = tuned(monkeypatch, capsys, photos, "fields", "--epochs", "2", out=tmp_path / "kept")
    assert ran.code == 0, ran.err
    assert "epoch 1 of 2" not in ran.out
    assert "epoch 2 of 2" in ran.out


def test_timm_and_fairfaces_network_give_features_that_can_be_trained(tmp_path):
    torch = pytest.importorskip("torch", reason="PYTORCH IS ABSENT: no model was fine-tuned")
    file = pytest.importorskip("safetensors.torch", reason="SAFETENSORS IS ABSENT: no weights")
    from isolux.models import open_model
    from isolux.models.fairface import Heads, build_resnet34, heads_to_metadata
    from isolux.training import add_classification_head

    heads = heads_to_metadata(Heads({"light": ("day", "night")}, 32))
    file.save_file(
        build_resnet34(torch, 2).state_dict(), tmp_path / "n.safetensors", metadata=heads
    )
    model = open_model(f"fairface:{tmp_path / 'n.safetensors'}", ["answers=embeddings"])
    made = add_classification_head(model, 4, "cpu")
    shown = torch.from_numpy(made.prepare(np.zeros((40, 30, 3), np.uint8))[None])
    made.net.train()
    made.forward(torch.cat([shown, shown + 1])).sum().backward()
    assert made.net.head.weight.grad.shape == (4, 512)
    assert made.net.extractor.conv1.weight.grad is not None
    with pytest.raises(SpecError, match="no such device"):
        add_classification_head(model, 4, "cuda:9")
