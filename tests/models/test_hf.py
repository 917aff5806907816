"""Each kind of transformers model, from a tiny random configuration, through to its table."""

from __future__ import annotations

import io
import json

import numpy as np
import polars as pl
import pytest
from PIL import Image
from polars.testing import assert_frame_equal

from isolux.core.errors import SpecError
from isolux.core.tables import check
from isolux.models import PREDICTION_TABLES, open_model, predict_and_check_table
from tests.models import _checkpoints as tiny
from tests.models._vision_ops import with_torchvision

torch = pytest.importorskip("torch", reason="PYTORCH IS ABSENT: no transformers model was run")
with_torchvision()  # transformers takes it for whole where it is installed
transformers = pytest.importorskip("transformers", reason="TRANSFORMERS IS ABSENT: none was run")
pytestmark = pytest.mark.filterwarnings("ignore")

PROMPTS = "nurse: [a photo of a nurse, a nurse]\nchef: a photo of a chef\n"
MODELS = {
    "classifier": ("labels", ()), "embedder": ("embeddings", ()),
    "clip": ("labels", ("prompts",)), "siglip": ("labels", ("prompts",)),
    "detr": ("boxes", ("min_score=0",)), "owl": ("boxes", ("prompts", "min_score=0")),
    "mask2former": ("masks", ("min_score=0",)),
    "deformable_detr": ("boxes", ("min_score=0",)), "rt_detr": ("boxes", ("min_score=0",)),
    "owl_vit": ("boxes", ("prompts", "min_score=0")),
    "maskformer": ("masks", ("min_score=0",)),
    "grounding_dino": ("boxes", ("prompts", "min_score=0")),
    "age_classes": ("numbers", ("task=number",)), "age": ("numbers", ("task=number",)),
    "enlarger": ("images", ()),
}  # fmt: skip


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    (folder / "prompts.yaml").write_text(PROMPTS)
    for name in MODELS:
        getattr(tiny, name)(folder / name)
    return folder


def loaded(folder, name):
    options = [
        f"prompts={folder / 'prompts.yaml'}" if o == "prompts" else o for o in MODELS[name][1]
    ]
    return open_model(f"hf:{folder / name}", options)


def pictures():
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, size).astype(np.uint8) for size in ((40, 60, 3), (60, 40, 3),
                                                                     (60, 40, 3))]  # fmt: skip


def asked(model, given):
    return model.predictor([model.predictor.prepare(one) for one in given])


@pytest.mark.parametrize("name", list(MODELS))
def test_its_answers_are_a_table_of_predictions(checkpoints, name):
    model = loaded(checkpoints, name)
    kind = MODELS[name][0]
    assert model.predicts == kind
    shown = [model.predictor.prepare(one) for one in pictures()]
    found = predict_and_check_table(model.predictor, model.info, shown, list("abc"), model=name)
    assert check(found, PREDICTION_TABLES[kind]).height > 0
    if kind == "boxes":
        boxes = found.with_columns(width=pl.when(pl.col("image_id") == "a").then(60).otherwise(40))
        assert boxes.select(
            (pl.col("box_x") + pl.col("box_w") <= pl.col("width") + 1e-6).all()
        ).item()
    empty = model.predictor([])
    assert empty.height == 0
    assert set(empty.columns) == set(model.predictor(shown).columns)


@pytest.mark.parametrize("name", list(MODELS))
def test_the_size_of_a_batch_changes_no_answer(checkpoints, name):
    model = loaded(checkpoints, name)
    whole = asked(model, pictures())
    single = pl.concat(
        asked(model, [one]).with_columns(picture=pl.lit(k, whole.schema["picture"]))
        for k, one in enumerate(pictures())
    )
    assert_frame_equal(whole, single, rel_tol=1e-4, abs_tol=1e-4)


def test_the_key_is_files_prompts_and_settings_and_no_folder(checkpoints, tmp_path):
    import shutil

    one = loaded(checkpoints, "clip")
    shutil.copytree(checkpoints / "clip", tmp_path / "other")
    (tmp_path / "prompts.yaml").write_text(PROMPTS)
    spec, option = f"hf:{tmp_path / 'other'}", f"prompts={tmp_path / 'prompts.yaml'}"
    assert open_model(spec, [option]).key == one.key
    assert ".image_processing_" in one.identity["own"]["processor"]  # which says its backend
    (tmp_path / "prompts.yaml").write_text(PROMPTS.replace("a photo of a chef", "a chef"))
    assert open_model(spec, [option]).key != one.key


def test_classes_of_a_dataset_are_the_highest_of_the_models_labels(checkpoints, tmp_path):
    (tmp_path / "classes.yaml").write_text("medical: [Nurse]\nfood: [chef, other]\n")
    own = asked(loaded(checkpoints, "classifier"), pictures())
    model = open_model(f"hf:{checkpoints / 'classifier'}", [f"classes={tmp_path / 'classes.yaml'}"])
    found = asked(model, pictures())
    of = {(r["picture"], r["label"]): r["score"] for r in own.iter_rows(named=True)}
    for row in found.iter_rows(named=True):
        members = ["nurse"] if row["label"] == "medical" else ["chef", "other"]
        assert row["score"] == max(of[row["picture"], one] for one in members)


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("clip", [], r"(?s)zero-shot needs prompts.*prompts=FILE"),
        ("classifier", ["task=detection"], r"(?s)cannot be opened for the task detection"),
        ("classifier", ["prompts=facet_clip"], r"takes no prompts"),
        ("classifier", ["device=cuda:99"], r"(?s)no such device.*cuda:99"),
        ("detr", ["classes=x.yaml"], r"keep the model's own classes"),
        ("nowhere", [], r"(?s)weights of .* are not on this machine.*online=yes"),
    ],
)
def test_what_cannot_be_done_is_said(checkpoints, name, options, match):
    with pytest.raises(SpecError, match=match):
        open_model(f"hf:{checkpoints / name}" if name != "nowhere" else "hf:org/nowhere", options)


@pytest.mark.parametrize("name", ["clip", "owl_vit"])
def test_a_prompt_that_a_model_would_cut_off_is_refused(checkpoints, tmp_path, name):
    # Both classes' prompts differ after the 12 tokens that the tiny models read.
    long = "a photo of a nurse " * 5
    (tmp_path / "long.yaml").write_text(f"nurse: {long}\nchef: {long} and a chef\n")
    spec, option = f"hf:{checkpoints / name}", f"prompts={tmp_path / 'long.yaml'}"
    with pytest.raises(SpecError, match=r"(?s)would be cut off.*12 tokens at most.*a photo of"):
        asked(open_model(spec, [option]), pictures())


def test_prompts_of_siglip_are_padded_to_its_text_tower(tmp_path):
    """The tower reads 12 positions; a tokenizer that names no length, or masks, moves nothing."""
    folder = tiny.siglip(tmp_path / "siglip")
    (tmp_path / "prompts.yaml").write_text("nurse: a nurse\nchef: a photo of a chef\n")
    option = f"prompts={tmp_path / 'prompts.yaml'}"
    before = open_model(f"hf:{folder}", [option])
    path = folder / "tokenizer_config.json"
    told = json.loads(path.read_text()) | {
        "model_max_length": int(1e30), "model_input_names": ["input_ids", "attention_mask"],
    }  # fmt: skip
    path.write_text(json.dumps(told))
    model = open_model(f"hf:{folder}", [option])
    assert_frame_equal(asked(model, pictures()), asked(before, pictures()))
    assert model.identity["own"]["prompt_length"] == {"max_tokens": 12, "padded_to": 12}
    net = transformers.SiglipModel.from_pretrained(folder).eval()
    # <s> a nurse </s>, and the number of the padding, 0
    ids = torch.tensor([[1, 4, 8, 2, *[0] * 8]])
    with torch.inference_mode():
        own = net.get_text_features(input_ids=ids)
    own = getattr(own, "pooler_output", own)[0]
    np.testing.assert_allclose(model.predictor.words[0], own / own.norm(), atol=1e-6)


def test_a_torchvision_that_does_not_fit_is_named(checkpoints, monkeypatch):
    from isolux.models.hf import checkpoint

    def broken(*_, **__):
        first = RuntimeError("operator torchvision::nms does not exist")
        raise ModuleNotFoundError("Could not import module 'ViTForImage…'") from first

    monkeypatch.setattr(checkpoint, "_find_model_class", broken)
    with pytest.raises(SpecError, match=r"(?s)does not fit this PyTorch.*nms.*pip uninstall"):
        open_model(f"hf:{checkpoints / 'classifier'}")


def test_a_pickle_is_not_opened_unasked(checkpoints, tmp_path):
    import shutil

    import torch

    shutil.copytree(checkpoints / "classifier", tmp_path / "pickled")
    (tmp_path / "pickled" / "model.safetensors").unlink()
    torch.save({}, tmp_path / "pickled" / "pytorch_model.bin")
    with pytest.raises(
        SpecError, match=r"(?s)can run any program.*pytorch_model.bin.*trust_checkpoint"
    ):
        open_model(f"hf:{tmp_path / 'pickled'}")


def test_from_a_checkpoint_to_an_audit(checkpoints, tmp_path, monkeypatch):
    from PIL import Image

    from isolux.api.audit import run_audit
    from isolux.core.spec import parse_spec

    monkeypatch.chdir(tmp_path)
    rng, lines = np.random.default_rng(0), ["id,light,truth"]
    for k in range(40):
        Image.fromarray(rng.integers(0, 256, (40, 40, 3)).astype(np.uint8)).save(f"{k}.png")
        lines.append(f"{k}.png,{'ab'[k % 2]},{('nurse', 'chef', 'other')[k % 3]}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    done = run_audit(
        parse_spec(
            {"data": "table:people.csv", "target": "truth", "by": "light", "min_units": 5,
             "model": f"hf:{checkpoints / 'classifier'}", "metrics": "accuracy"}
        )
    )  # fmt: skip
    assert done.group_metrics.filter(pl.col("attribute") == "light")["n_units"].to_list() == [
        20,
        20,
    ]
    versions = done.run.record["ran"]["model"]["versions"]
    assert {"torch", "transformers"} <= set(versions)


def test_an_age_is_the_mean_of_the_classes_numbers_by_their_probabilities(checkpoints):
    labels = asked(open_model(f"hf:{checkpoints / 'age_classes'}"), pictures()[:1])
    shares = dict(labels.select("label", "score").iter_rows())
    expected = 4.5 * shares["0-9"] + 14.5 * shares["10-19"] + 30 * shares["30"]
    found = asked(loaded(checkpoints, "age_classes"), pictures()[:1])
    assert found["value"].to_list() == pytest.approx([expected])
    named = open_model(f"hf:{checkpoints / 'age_classes'}", ["task=number", "values=1,2,3"])
    expected = shares["0-9"] + 2 * shares["10-19"] + 3 * shares["30"]
    assert asked(named, pictures()[:1])["value"].to_list() == pytest.approx([expected])


def test_one_output_is_the_number_itself(checkpoints):
    model = loaded(checkpoints, "age")
    given = [model.predictor.prepare(one) for one in pictures()]
    with torch.inference_mode():
        values = torch.from_numpy(np.stack([one.values for one in given]))
        expected = model.predictor.loaded.model(pixel_values=values).logits[:, 0].tolist()
    assert model.predictor(given)["value"].to_list() == pytest.approx(expected, abs=1e-5)


def test_values_that_do_not_fit_are_refused(checkpoints):
    with pytest.raises(SpecError, match=r"(?s)do not fit the model.*3 classes.*found: 4"):
        open_model(f"hf:{checkpoints / 'age_classes'}", ["task=number", "values=0-3"])
    with pytest.raises(SpecError, match=r"(?s)names that are no numbers.*'nurse'"):
        open_model(f"hf:{checkpoints / 'classifier'}", ["task=number"])
    with pytest.raises(SpecError, match="takes no values"):
        open_model(f"hf:{checkpoints / 'classifier'}", ["values=0-2"])


def test_an_enlarged_picture_has_the_models_factor_and_nothing_of_the_padding(checkpoints):
    model = loaded(checkpoints, "enlarger")
    found = asked(model, [np.full((13, 19, 3), 90, np.uint8)])
    image = np.asarray(Image.open(io.BytesIO(found["png"][0])))
    assert image.shape == (26, 38, 3)


@pytest.mark.parametrize("name", ["classifier", "embedder", "clip", "detr", "mask2former"])
@pytest.mark.parametrize("size", [(1, 1), (1, 7), (3, 5)])
def test_a_picture_of_few_rows_is_none_with_its_channels_first(checkpoints, name, size):
    """Grey stays grey: prepared, each picture is the same as a larger one of its colour."""
    model = loaded(checkpoints, name)
    colour = np.array([200, 100, 50], np.uint8)
    small, large = (model.predictor.prepare(np.broadcast_to(colour, (*sides, 3)).copy()).values
                    for sides in (size, (40, 40)))  # fmt: skip
    assert small.shape[0] == large.shape[0] == 3
    assert np.allclose(small.mean(axis=(1, 2)), large.mean(axis=(1, 2)), atol=0.02)
