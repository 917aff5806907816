"""A tiny CLIP, a tiny BLIP-2 and FairFace's ResNet-34 over a painted park, to the papers' tables.

Beside ``tests/papers/test_painted_world.py``, which needs no PyTorch. Two extractors of known
quality are told apart on painted photos in ``tests/api/test_train_finetune.py`` and
``test_train_probe.py``.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from PIL import Image

import isolux
from isolux.api.audit import run_audit
from tests.models._taught import BRIGHT, DARK, QUESTION, taught_blip2, taught_clip
from tests.models._vision_ops import with_torchvision
from tests.papers._painted import dark, park
from tests.papers._protocol import audit_of

pytest.importorskip("torch", reason="PYTORCH IS ABSENT: no tiny model saw the painted park")
with_torchvision()  # transformers takes it for whole where it is installed
pytestmark = pytest.mark.filterwarnings("ignore")
FEW = {"replicates": 200, "by": ["pronoun", "age_group"], "nested": []}


@pytest.fixture(scope="module")
def world():
    return park()


@pytest.fixture(scope="module")
def root(world, tmp_path_factory):
    """FHIBE's files, and what the models were taught on: a park of other people."""
    pytest.importorskip("transformers", reason="TRANSFORMERS IS ABSENT: no tiny model was made")
    folder = tmp_path_factory.mktemp("park")
    world.write("fhibe", folder / "fhibe")
    others = [one.pixels for one in park(20, seed=8).pictures]
    told = (others, [dark(one) for one in others])
    taught_clip(folder / "clip", *told)
    taught_blip2(folder / "blip2", *told)
    (folder / "fits.yaml").write_text(f"indoor: [{DARK}]\noutdoor: [{BRIGHT}]\n")
    (folder / "asked.yaml").write_text(
        f"prompts: {{neutral: {{ask: [{QUESTION}], read: occupation}}}}\n"
    )
    return folder


def audited(root, name, model, tmp_path, options, **settings):
    spec = audit_of(
        "fhibe", name, f"fhibe:{root / 'fhibe'}", model=f"hf:{root / model}", model_option=options,
        answers=str(tmp_path / "answers"), **FEW, **settings,
    )  # fmt: skip
    done = run_audit(spec)
    (caption,) = [
        c for c in done.run.record["protocol"]["tables"] if c.startswith("Self-reported p")
    ]
    table = done.run.record["protocol"]["tables"][caption]
    shown = pl.DataFrame(table["rows"], schema=table["columns"], orient="row")
    tests = done.disparities.filter(kind="omnibus_test").drop_nulls("p_adjusted")
    return shown, tests, done


def least(tests, attribute, label):
    return tests.filter(attribute=attribute, label=label)["p_adjusted"].min()


@pytest.mark.parametrize(
    ("recipe", "goes_with"), [("person-black", True), ("background-black", False)]
)
def test_a_tiny_clip(root, recipe, goes_with, tmp_path):
    """Without the person the label goes with perceived gender still, without the place no more."""
    people = isolux.load("fhibe", root / "fhibe", segments=True)
    isolux.crop(people, recipe=recipe, out=tmp_path / "crops")
    shown, tests, _ = audited(
        root, "zero_shot", "clip", tmp_path,
        [f"prompts={root / 'fits.yaml'}", "several=nearest", "top=1"],
        data_option=["segments=true"], crops=str(tmp_path / "crops"),
        option=[f"prompts={root / 'fits.yaml'}"],
    )  # fmt: skip
    assert shown.columns == ["model", "metric", "label", "He/him/his", "She/her/hers"]
    if goes_with:
        assert least(tests, "pronoun", "indoor") < 0.01
        assert least(tests, "age_group", "indoor") > 0.05
    else:
        assert tests.filter(metric="answer_rate")["p_adjusted"].fill_null(1.0).min() > 0.05


def test_a_tiny_blip2(root, tmp_path):
    """It calls dark photos' people chefs; the same seed gives the same answers."""
    runs = []
    for name in ("one", "two"):
        shown, tests, done = audited(
            root, "question_answering", "blip2", tmp_path / name,
            ["task=question", f"prompts={root / 'asked.yaml'}", "words=2"],
            option=[f"prompts={root / 'asked.yaml'}"],
        )  # fmt: skip
        runs.append(done)
    assert runs[0].group_metrics.equals(runs[1].group_metrics)
    assert "response_rate" in shown["metric"].to_list()
    assert least(tests, "pronoun", "chef") < 0.01
    assert least(tests, "age_group", "chef") > 0.05


AGES = {"young": "20-29", "middle": "40-49", "older": "more than 70"}


@pytest.fixture(scope="module")
def faces(world, tmp_path_factory):
    """The park's people as FairFace's table, in two parts; race is drawn apart from all else."""
    pytest.importorskip("safetensors", reason="SAFETENSORS IS ABSENT: no network was trained")
    folder, draw = tmp_path_factory.mktemp("faces"), np.random.default_rng(0)
    rows = []
    for k, (person, pixels) in enumerate(world.rows()):
        name = f"{k}.png"
        Image.fromarray(pixels).save(folder / name)
        gender = ("Male", "Female")[person["perceived_gender_presentation"] == "feminine"]
        race = ("White", "Black", "Indian")[draw.integers(3)]
        rows.append((name, AGES[person["age_group"]], gender, race, person["subject_id"]))
    columns = ["file", "age", "gender", "race", "subject"]
    table = pl.DataFrame(rows, schema=columns, orient="row").drop("subject")
    half = pl.int_range(pl.len()) < len(rows) // 2  # two photos of a person lie together
    table.filter(half).write_csv(folder / "train.csv")
    table.filter(~half).write_csv(folder / "val.csv")
    return folder


def test_fairfaces_resnet_34(faces, tmp_path):
    """64 pixels, two epochs: gender is learnt as light tells it, age and race are not."""
    told = {"images": faces, "side": 64, "epochs": 2, "batch": 6, "held_out": 0.2,
            "learning_rate": 0.0003}  # fmt: skip
    isolux.train_fairface(str(faces / "train.csv"), out=tmp_path / "net", **told)
    heads = ("race", "gender", "age")
    runs = []
    for head in heads:
        said = isolux.predict(
            f"fairface:{faces / 'val.csv'}", f"fairface:{tmp_path / 'net'}", images=str(faces),
            model_option=[f"answers={head}"], out=tmp_path / head,
        )  # fmt: skip
        done = isolux.audit(
            f"fairface:{faces / 'val.csv'}", predictions=said.folder, target=head, by="race",
            min_units=1, min_clusters=1, replicates=200, model_name="tiny",
        )  # fmt: skip
        runs.append(done.run)
    race, gender, age = (
        run.group_metrics.filter(pl.col("attribute").is_null(), metric="accuracy").row(
            0, named=True
        )
        for run in runs
    )
    assert gender["low"] > 0.6
    assert race["low"] < 1 / 3 < race["high"] or race["value"] < 0.45
    assert age["value"] < gender["low"]
    tables = isolux.across({"Park": runs}).tables
    assert {caption.partition(":")[0] for caption in tables} >= {"Table 2", "Table 3", "Table 7"}
