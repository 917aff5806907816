"""timm, open_clip and MTCNN: from tiny random networks, or real weights, to their tables."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from isolux.core.errors import FileError, SpecError, UnknownNameError
from isolux.core.tables import check
from isolux.models import PREDICTION_TABLES, open_model, predict_and_check_table
from tests.models._checkpoints import TINY, tiny_clip
from tests.models._vision_ops import with_torchvision

torch = pytest.importorskip("torch", reason="PYTORCH IS ABSENT: no such model was run")
pytestmark = pytest.mark.filterwarnings("ignore")

TIMM, CLIP = "resnet10t", TINY


def imported(name):
    if not with_torchvision():
        pytest.skip(f"TORCHVISION IS ABSENT: {name} was NOT run")
    return pytest.importorskip(name, reason=f"{name} IS ABSENT: no model of it was run")


def pictures():
    rng = np.random.default_rng(0)
    return [rng.integers(0, 256, size).astype(np.uint8) for size in ((40, 60, 3), (70, 50, 3))]


def asked(model, given):
    prepare = getattr(model.predictor, "prepare", lambda one: one)
    return model.predictor([prepare(one) for one in given])


def hold(model, kind):
    """Hold a model to its table, to the size of batches and to no pictures."""
    assert model.predicts == kind
    prepare = getattr(model.predictor, "prepare", lambda one: one)
    shown = [prepare(one) for one in pictures()]
    check(
        predict_and_check_table(model.predictor, model.info, shown, list("ab"), model="m"),
        PREDICTION_TABLES[kind],
    )
    whole = model.predictor(shown)
    single = pl.concat(
        model.predictor([one]).with_columns(picture=pl.lit(k, whole.schema["picture"]))
        for k, one in enumerate(shown)
    )
    assert_frame_equal(whole, single, rel_tol=1e-4, abs_tol=1e-4)
    assert model.predictor([]).height == 0
    return whole


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("weights")
    (made / "names.txt").write_text("\n".join(f"class {k}" for k in range(1000)))
    (made / "prompts.yaml").write_text("nurse: [a photo of a nurse, a nurse]\nchef: a chef\n")
    return made


@pytest.fixture(scope="module")
def resnet(folder):
    timm = imported("timm")
    from safetensors.torch import save_file

    torch.manual_seed(0)
    save_file(timm.create_model(TIMM, pretrained=False).state_dict(), folder / "r.safetensors")
    return folder / "r.safetensors"


def test_timm_answers_with_labels_and_with_features(folder, resnet):
    labels = [f"weights={resnet}", f"labels={folder / 'names.txt'}"]
    found = hold(open_model(f"timm:{TIMM}", labels), "labels")
    assert found.height == 2 * 5
    vectors = hold(open_model(f"timm:{TIMM}", [f"weights={resnet}", "answers=embeddings"]),
                   "embeddings")  # fmt: skip
    assert set(vectors["embedding"].list.len()) == {512}


def test_timms_pictures_are_prepared_as_its_own_transform_does(folder, resnet):
    timm = imported("timm")
    from PIL import Image

    model = open_model(f"timm:{TIMM}", [f"weights={resnet}", f"labels={folder / 'names.txt'}"])
    config = timm.data.resolve_model_data_config(timm.create_model(TIMM, pretrained=False))
    theirs = timm.data.create_transform(**config, is_training=False)
    rng = np.random.default_rng(1)
    small = rng.integers(0, 256, (40, 30, 3)).astype(np.uint8)
    picture = np.asarray(Image.fromarray(small).resize((300, 400), Image.Resampling.BICUBIC))
    ours = model.predictor.prepare(picture).values
    assert ours.shape == tuple(config["input_size"])
    assert np.abs(ours - theirs(Image.fromarray(picture)).numpy()).max() < 1e-4


def test_timm_names_imagenets_classes_by_synset(resnet, tmp_path):
    (tmp_path / "classes.yaml").write_text("fish: [n01440764, goldfish]\ndog: [Great Dane]\n")
    model = open_model(
        f"timm:{TIMM}", [f"weights={resnet}", f"classes={tmp_path / 'classes.yaml'}"]
    )
    assert set(asked(model, pictures())["label"]) == {"fish", "dog"}
    assert model.notes == ("997 of the model's 1,000 classes map to none of the dataset's.",)


def test_timm_has_as_many_classes_as_the_weights(tmp_path):
    timm = imported("timm")
    from safetensors.torch import save_file

    torch.manual_seed(0)
    for classes in (2, 5):
        inner = timm.create_model(TIMM, pretrained=False, num_classes=classes).eval()
        save_file(inner.state_dict(), tmp_path / f"{classes}.safetensors")
    (tmp_path / "two.txt").write_text("nurse\nchef\n")
    two = f"labels={tmp_path / 'two.txt'}"
    model = open_model(f"timm:{TIMM}", [f"weights={tmp_path / '2.safetensors'}", two])
    assert set(hold(model, "labels")["label"]) == {"nurse", "chef"}
    with pytest.raises(SpecError, match=r"(?s)names do not fit.*5 names.*2"):
        open_model(f"timm:{TIMM}", [f"weights={tmp_path / '5.safetensors'}", two])
    with pytest.raises(SpecError, match=r"(?s)classes have no names.*labels=FILE.*2 classes"):
        open_model(f"timm:{TIMM}", [f"weights={tmp_path / '2.safetensors'}"])


def test_timm_says_what_is_wrong(folder, resnet, tmp_path):
    with pytest.raises(UnknownNameError, match="resnet50"):
        open_model("timm:resnet5O")
    with pytest.raises(SpecError, match=r"(?s)not on this machine.*weights=FILE.*online=yes"):
        open_model("timm:resnet50.a1_in1k")
    with pytest.raises(SpecError, match="weights of another network"):
        open_model("timm:resnet18", [f"weights={resnet}"])
    (tmp_path / "w.pth").write_bytes(b"")
    with pytest.raises(FileError, match=r"(?s)may be a pickle.*\.safetensors"):
        open_model(f"timm:{TIMM}", [f"weights={tmp_path / 'w.pth'}"])
    (tmp_path / "two.txt").write_text("a\nb\n")
    with pytest.raises(SpecError, match=r"(?s)names do not fit.*1,000.*2"):
        open_model(f"timm:{TIMM}", [f"weights={resnet}", f"labels={tmp_path / 'two.txt'}"])


@pytest.fixture(scope="module")
def clip(folder):
    imported("open_clip")
    return tiny_clip(folder)


def test_open_clip_is_asked_in_prompts(folder, clip):
    options = [f"weights={clip}", f"prompts={folder / 'prompts.yaml'}"]
    model = open_model(f"open_clip:{CLIP}", options)
    found = hold(model, "labels")
    assert found.group_by("picture").agg(pl.col("score").sum())["score"].to_list() == (
        pytest.approx([1.0, 1.0])
    )
    other = folder / "others.yaml"
    other.write_text("nurse: a nurse\nchef: a chef\n")
    assert open_model(f"open_clip:{CLIP}", [options[0], f"prompts={other}"]).key != model.key
    vectors = hold(
        open_model(f"open_clip:{CLIP}", [options[0], "answers=embeddings"]), "embeddings"
    )
    assert set(vectors["embedding"].list.len()) == {16}


def test_a_prompt_that_open_clip_would_cut_off_is_refused(folder, clip):
    """Start, 14 words and end are the 16 tokens that the tiny model reads; 15 words are cut."""
    path = folder / "long.yaml"
    options = [f"weights={clip}", f"prompts={path}"]
    path.write_text(f"nurse: {'a ' * 14}\nchef: a chef\n")
    own = open_model(f"open_clip:{CLIP}", options).identity["own"]
    assert own["prompt_length"] == {"max_tokens": 16, "padded_to": 16}
    for n in (15, 40):
        path.write_text(f"chef: a chef\nnurse: {'a ' * n}\n")
        with pytest.raises(SpecError, match=r"(?s)would be cut off.*16 tokens at most.*'a a"):
            open_model(f"open_clip:{CLIP}", options)


def test_open_clip_says_what_is_wrong(clip):
    with pytest.raises(UnknownNameError, match="ViT-B-32"):
        open_model("open_clip:ViT-B-23/x", ["answers=embeddings"])
    with pytest.raises(SpecError, match="need prompts"):
        open_model(f"open_clip:{CLIP}", [f"weights={clip}"])
    with pytest.raises(SpecError, match="not said which weights"):
        open_model(f"open_clip:{CLIP}", ["answers=embeddings"])


def test_mtcnn_finds_the_face_of_the_astronaut_and_none_in_grass():
    imported("facenet_pytorch")
    data = pytest.importorskip("skimage.data", reason="SCIKIT-IMAGE IS ABSENT: no real picture")
    model = open_model("mtcnn:")
    found = model.predictor([data.astronaut(), np.stack([data.grass()] * 3, axis=2)])
    sure = found.filter(pl.col("score") > 0.9)
    assert sure["picture"].to_list() == [0]
    (box,) = sure.select("box_x", "box_y", "box_w", "box_h").rows()
    # Eileen Collins' face lies about x 173 to 275, y 67 to 200 in this picture of 512 × 512.
    centre = box[0] + box[2] / 2, box[1] + box[3] / 2
    assert 190 < centre[0] < 260
    assert 90 < centre[1] < 170
    assert (model.predicts, found["label"][0]) == ("boxes", "face")


DETECTORS = {
    "fasterrcnn_resnet50_fpn": "boxes", "maskrcnn_resnet50_fpn": "masks",
    "keypointrcnn_resnet50_fpn": "keypoints",
}  # fmt: skip


@pytest.fixture(scope="module")
def detectors(folder):
    """Random networks of torchvision's, two classes each, and their weights."""
    imported("torchvision")
    import torchvision
    from safetensors.torch import save_file

    for name, kind in DETECTORS.items():
        torch.manual_seed(0)
        points = {"num_keypoints": 5} if kind == "keypoints" else {}
        inner = torchvision.models.get_model(
            name, weights=None, weights_backbone=None, num_classes=3, **points
        )
        state = inner.state_dict()
        if kind == "boxes":  # as published weights, whose layers are frozen
            state = {k: v for k, v in state.items() if not k.endswith("num_batches_tracked")}
        save_file(state, folder / f"{name}.safetensors")
    (folder / "two.txt").write_text("person\ncar\n")
    return folder


def detector(folder, name, *options):
    given = [f"weights={folder / name}.safetensors", f"labels={folder / 'two.txt'}",
             "min_score=0", "max_detections=3", *options]  # fmt: skip
    model = open_model(f"torchvision:{name}", given)
    inner = model.predictor.inner  # small: regions are cut out by plain PyTorch here
    inner.transform.min_size, inner.transform.max_size = (64,), 96
    inner.rpn._post_nms_top_n["testing"] = 20
    return model


@pytest.mark.parametrize("name", list(DETECTORS))
def test_torchvisions_detectors_answer_by_their_table(detectors, name):
    model = detector(detectors, name)
    found = hold(model, DETECTORS[name])
    assert set(found["label"]) <= {"person", "car"}
    assert found.height <= 6
    assert set(found["picture"]) == {0, 1}
    width = pl.when(pl.col("picture") == 0).then(60).otherwise(50)
    assert found.select((pl.col("box_x") + pl.col("box_w") <= width + 1e-3).all()).item()
    if name.startswith("mask"):
        assert found.select("mask_height", "mask_width").unique(maintain_order=True).rows() == [
            (40, 60),
            (70, 50),
        ]
        assert detector(detectors, name, "answers=boxes").predicts == "boxes"
    if name.startswith("keypoint"):
        assert found["keypoints_x"].list.len().unique().to_list() == [5]
        assert found["keypoints_v"].explode().is_between(0, 1).all()


@pytest.mark.parametrize(
    ("name", "options", "match"),
    [
        ("fasterrcnn_resnet50_fpm", [], "fasterrcnn_resnet50_fpn"),
        ("fasterrcnn_resnet50_fpn", ["answers=masks"], "does not answer with masks"),
        ("fasterrcnn_resnet50_fpn", [], r"(?s)weights are not on this machine.*online=yes"),
        ("fasterrcnn_resnet50_fpn", ["weights=nowhere.safetensors"], "no such file of weights"),
    ],
)
def test_what_torchvision_cannot_do_is_said(detectors, name, options, match, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(detectors / "empty"))
    with pytest.raises((SpecError, UnknownNameError, FileError), match=match):
        open_model(f"torchvision:{name}", options)


def test_torchvisions_own_weights_are_a_pickle_and_must_be_trusted(detectors, monkeypatch):
    monkeypatch.setenv("TORCH_HOME", str(detectors / "cache"))
    there = detectors / "cache/hub/checkpoints"
    there.mkdir(parents=True)
    (there / "fasterrcnn_resnet50_fpn_coco-258fb6c6.pth").write_bytes(b"any program")
    with pytest.raises(SpecError, match=r"(?s)can run any program.*trust_checkpoint=yes"):
        open_model("torchvision:fasterrcnn_resnet50_fpn")


def test_weights_of_another_detector_or_of_other_classes_are_refused(detectors):
    mask = detectors / "maskrcnn_resnet50_fpn.safetensors"
    two = f"labels={detectors / 'two.txt'}"
    with pytest.raises(FileError, match=r"(?s)another network.*others: roi_heads.mask"):
        open_model("torchvision:fasterrcnn_resnet50_fpn", [f"weights={mask}", two])
    with pytest.raises(SpecError, match=r"(?s)another number of classes.*91 classes"):
        open_model("torchvision:maskrcnn_resnet50_fpn", [f"weights={mask}"])
