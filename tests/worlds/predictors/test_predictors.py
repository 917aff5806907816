"""Simulated models: what each hands in is judged as it was injected, task by task."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from isolux import score
from isolux.core import registry
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, TableError, UnknownNameError
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES
from isolux.geometry.masks import masks_to_coco
from isolux.predictions import read_outputs, read_predictions
from isolux_worlds.predictors import (
    PREDICTORS,
    SimulatedModel,
    simulate_predictions,
    write_simulated_predictions,
)
from tests._masks import masks_from_bitmaps

INFO = DatasetInfo(title="A made-up crowd", summary="Made up.", references=())
W, H, N = 320, 240, 400
CLASSES = ("nurse", "guard", "farmer")
OPTIONS = {"grounding": {"images": "one-of-class"}, "label_association": {"taxonomy": "miap"},
           "geodiversity": {"household": "home"}}  # fmt: skip
LABELS = ("classification", "label_association", "geodiversity")
PICTURES = [task for task, predictor in PREDICTORS.items() if predictor.answers is None]
MODEL = SimulatedModel(name="made-up", jitter=0.15, false_alarms=1.5, seed=7)


def crowd(seed=0):
    """400 people, one to four in a picture, who stand wherever they like, also over one another."""
    rng = np.random.default_rng(seed)
    image = np.sort(rng.integers(0, N // 2, N))
    w, h = rng.uniform(20, 120, N), rng.uniform(30, 200, N)
    x, y = rng.random(N) * (W - w), rng.random(N) * (H - h)
    bitmaps = []
    for k in range(N):
        bitmap = np.zeros((H, W), np.uint8)
        bitmap[int(y[k]) : int(y[k] + h[k]), int(x[k]) : int(x[k] + w[k])] = 1
        bitmaps.append(bitmap)
    counts = [m["counts"].decode() for m in masks_to_coco(masks_from_bitmaps(bitmaps))]
    u = rng.random((N, 17))
    instances = pl.DataFrame(
        {
            "instance_id": [str(k) for k in range(N)],
            "image_id": [f"{i}" for i in image],
            "subject_id": [f"s{k // 2}" for k in range(N)],
            "classes": [[CLASSES[k % 3]] for k in range(N)],
            "box_x": x, "box_y": y, "box_w": w, "box_h": h, "area": w * h,
            "mask_counts": counts, "mask_height": [H] * N, "mask_width": [W] * N,
            "keypoints_x": (x[:, None] + u * w[:, None]).tolist(),
            "keypoints_y": (y[:, None] + u[:, ::-1] * h[:, None]).tolist(),
            "keypoints_v": [[2] * 15 + [1, 0]] * N,
        }
    )  # fmt: skip
    images = pl.DataFrame({"image_id": [str(i) for i in range(N // 2)]}).with_columns(
        width=W, height=H
    )
    homes = pl.DataFrame({"unit_kind": "subject", "attribute": "home",
                          "unit_id": [f"s{k}" for k in range(N // 2)],
                          "value": [f"h{k % 60}" for k in range(N // 2)]})  # fmt: skip
    return Dataset("crowd", INFO, instances, ATTRIBUTES.conform(homes), images)


def injected(dataset, share=0.7, seed=1):
    right = np.random.default_rng(seed).random(dataset.instances.height) < share
    return dataset.instances.select("instance_id").with_columns(right=right)


def test_there_is_one_for_every_task_of_the_house():
    """Worlds draw pictures and labels; others are made of numbers, of words, or of annotators."""
    of_numbers = {"counts", "number", "regression", "age_estimation"}
    of_words = {
        "text_to_image_retrieval", "pronoun_resolution", "caption_gender", "generated_images",
        "counterfactual_pairs", "answers",
    }  # fmt: skip
    others = of_numbers | of_words | {"agreement"}
    protocols = {"zero_shot", "question_answering"}  # FHIBE's, both of the task answers
    assert set(PREDICTORS) - protocols == set(registry.names("tasks")) - others


@pytest.mark.parametrize("task", [t for t in PREDICTORS if PREDICTORS[t].exact])
def test_who_is_served_is_who_was_injected(task):
    """Person by person: the metric is 1 where the model is right, and 0 where it is not."""
    dataset = crowd()
    if task == "geodiversity":  # each photo is judged once
        apart = dataset.instances.with_columns(image_id="instance_id")
        dataset = replace(dataset, instances=apart)
    right = injected(dataset)
    answers = simulate_predictions(task, dataset, right, MODEL)
    predictor = PREDICTORS[task]
    options = OPTIONS.get(task, {})
    found = score(task, dataset, answers, metrics=(predictor.metric,), **options)
    rows = found.units.filter(
        pl.col("threshold").is_null()
        if predictor.threshold is None
        else pl.col("threshold") == predictor.threshold
    )
    joined = rows.join(right, left_on="unit_id", right_on="instance_id").drop_nulls("value")
    assert joined.height > N / 3
    assert task == "grounding" or joined.height == N
    wrong = joined.filter(pl.col("value") != pl.col("right").cast(pl.Float64))
    assert wrong.is_empty(), wrong.select("unit_id", "value", "right")


def test_boxes_fit_as_well_as_was_injected():
    dataset = crowd()
    everyone = dataset.instances.select("instance_id", right=pl.lit(value=True))
    model = SimulatedModel(name="m", jitter=0.2, false_alarms=0)
    drawn = simulate_predictions("detection", dataset, everyone, model)
    assert drawn.height == N
    moved = (drawn["box_x"] - dataset.instances["box_x"]).abs() / dataset.instances["box_w"]
    overlap = ((1 - moved) / (1 + moved)).to_numpy()
    assert overlap.min() >= 0.5
    # Mean 1 - jitter, but for those in a crowd whose box stays exact; 400 draws of SD .08 and less.
    alone = overlap[overlap < 1]
    assert abs(alone.mean() - 0.8) < 0.02


def test_false_alarms_are_of_nobody_and_as_many_as_injected():
    dataset = crowd()
    nobody = dataset.instances.select("instance_id", right=pl.lit(value=False))
    model = SimulatedModel(name="m", false_alarms=2.0)
    drawn = simulate_predictions("detection", dataset, nobody, model)
    # 200 pictures, Poisson of mean 2: 400 ± 20, five standard deviations wide.
    assert 300 < drawn.height < 500
    found = score("detection", dataset, drawn, metrics=("recall_at_iou",))
    assert found.units.filter(threshold=0.5)["value"].sum() == 0


def test_masks_are_cut_and_stay_half_of_themselves():
    dataset = crowd()
    everyone = dataset.instances.select("instance_id", right=pl.lit(value=True))
    drawn = simulate_predictions(
        "segmentation", dataset, everyone, SimulatedModel(name="m", jitter=0.3)
    )
    assert (drawn["mask_counts"] != dataset.instances["mask_counts"]).sum() > N / 2
    found = score("segmentation", dataset, drawn, metrics=("average_recall",))
    assert 0.3 < found.units["value"].mean() < 0.8
    exact = simulate_predictions(
        "segmentation", dataset, everyone, SimulatedModel(name="m", jitter=0.0)
    )
    assert exact["mask_counts"].to_list() == dataset.instances["mask_counts"].to_list()


def test_pairs_are_accepted_where_both_pictures_are_right():
    dataset = crowd()
    right = injected(dataset)
    answers = simulate_predictions("face_verification", dataset, right, MODEL)
    found = score("face_verification", dataset, answers, threshold=0.5)
    pairs = found.evidence["pairs"]
    said = dict(right.iter_rows())
    # Every subject has two pictures, so each genuine pair is of subject k: pictures 2k and 2k + 1.
    both = sum(said[str(2 * k)] and said[str(2 * k + 1)] for k in range(N // 2))
    vectors = answers["embedding"].list.to_array(128).to_numpy().astype(float)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (vectors[::2] * vectors[1::2]).sum(axis=1)
    assert (cosines > 0.5).sum() == both
    assert pairs.height > 0


def test_retrieval_finds_its_own_class_where_it_is_right():
    dataset = crowd()
    right = injected(dataset)
    answers = simulate_predictions("retrieval", dataset, right, MODEL)
    found = score("retrieval", dataset, answers, top_k=(10,)).units
    joined = found.join(right, left_on="unit_id", right_on="instance_id")
    mean = dict(joined.group_by("right").agg(pl.col("value").mean()).iter_rows())
    assert mean[True] > 0.95
    assert mean[False] < 0.6  # a third by chance


def _pictures(folder, dataset):
    from PIL import Image

    rng = np.random.default_rng(3)
    for k in range(8):
        (folder / f"{k}.png").parent.mkdir(exist_ok=True, parents=True)
        Image.fromarray(rng.integers(60, 190, (64, 64, 3), dtype=np.uint8)).save(
            folder / f"{k}.png"
        )
        labels = np.zeros((64, 64), np.uint8)
        labels[10:50, 12:30] = 1 + k % 3
        Image.fromarray(labels).save(folder / f"{k}_parts.png")
    instances = dataset.instances.head(8).with_columns(
        image_id=pl.col("instance_id"),
        part_mask_uri=pl.format("{}_parts.png", "instance_id"),
    )
    images = instances.select("image_id", uri=pl.format("{}.png", "image_id")).with_columns(
        width=64, height=64
    )
    homes = pl.DataFrame({"unit_kind": "subject", "attribute": "home",
                          "unit_id": [f"s{k}" for k in range(N // 2)],
                          "value": [f"h{k % 60}" for k in range(N // 2)]})  # fmt: skip
    return Dataset("crowd", INFO, instances, ATTRIBUTES.conform(homes), images)


TEXTS = ("question_answering",)
"""Replies hang on who is right alone, and need their column of questions to be read."""


@pytest.mark.parametrize("task", PICTURES)
def test_pictures_are_worse_where_the_model_is_wrong(task, tmp_path):
    dataset = _pictures(tmp_path / "data", crowd())
    right = dataset.instances.select("instance_id").with_columns(right=pl.Series([True, False] * 4))
    (tmp_path / "out").mkdir()
    path = write_simulated_predictions(
        task, dataset, right, MODEL, tmp_path / "out", root=tmp_path / "data"
    )
    form = "part_masks" if task == "face_parsing" else "image_files"
    answers = read_outputs(path, format=form, model="m")
    options = (
        {"root": str(tmp_path / "data")}
        if task == "face_parsing"
        else {"originals": str(tmp_path / "data"), "size_px": 0}
    )
    found = score(task, dataset, answers, metrics=(PREDICTORS[task].metric,), **options)
    joined = found.units.join(right, left_on="unit_id", right_on="instance_id")
    values = {r: joined.filter(right=r)["value"].to_list() for r in (True, False)}
    assert min(values[True]) > max(values[False])
    if task != "face_parsing":
        # Noise of .15 of white: −20 log10(.15) = 16.5 dB; the picture is far from the ends.
        assert np.mean(values[True]) == pytest.approx(16.5, abs=0.5)


@pytest.mark.parametrize("task", [t for t in PREDICTORS if t not in (*PICTURES, *TEXTS)])
def test_files_read_back_as_they_were(task, tmp_path):
    dataset = crowd()
    right = injected(dataset)
    answers = simulate_predictions(task, dataset, right, MODEL)
    path = write_simulated_predictions(task, dataset, right, MODEL, tmp_path)
    if task in LABELS:
        back = read_predictions(path, column="label", score="score", model="made-up")
    else:
        back = read_outputs(path, model="made-up")
    assert back.height == answers.height
    for column in ("image_id", "instance_id", "mask_counts"):
        if column in answers.columns:
            assert back[column].to_list() == answers[column].to_list()
    for column in ("box_x", "score"):
        if column in answers.columns and column in back.columns:
            far = (back[column] - answers[column]).abs().max()
            assert far is None or far < 0.0051


@pytest.mark.parametrize("task", [t for t in PREDICTORS if t not in (*PICTURES, *TEXTS)])
def test_the_same_seed_gives_the_same_answers_and_another_model_others(task):
    dataset = crowd()
    right = injected(dataset)
    first = simulate_predictions(task, dataset, right, MODEL)
    assert first.equals(simulate_predictions(task, dataset, right, MODEL))
    other = simulate_predictions(
        task, dataset, right, SimulatedModel(name="other", jitter=0.15, seed=7)
    )
    assert not first.drop("model").equals(other.drop("model"))


def test_who_is_found_leaves_the_others_boxes_as_they_are():
    dataset = crowd()
    model = SimulatedModel(name="m", false_alarms=0)
    everyone = dataset.instances.select("instance_id", right=pl.lit(value=True))
    some = injected(dataset)
    all_boxes = simulate_predictions("detection", dataset, everyone, model)
    kept = all_boxes.filter(some["right"])
    assert kept.equals(simulate_predictions("detection", dataset, some, model))


def test_what_cannot_be_simulated_is_named():
    dataset = crowd()
    right = injected(dataset)
    with pytest.raises(UnknownNameError, match="detection"):
        simulate_predictions("detecton", dataset, right, MODEL)
    with pytest.raises(SpecError, match="are pictures"):
        simulate_predictions("reconstruction", dataset, right, MODEL)
    with pytest.raises(TableError, match="none for 1 of them, such as '399'"):
        simulate_predictions("detection", dataset, right.head(N - 1), MODEL)
    with pytest.raises(SpecError, match="jitter of 'm' is out of range"):
        SimulatedModel(name="m", jitter=0.5)
    bare = Dataset(
        name="bare", info=INFO, instances=dataset.instances.select("instance_id", "image_id")
    )
    for task, says in (
        ("detection", "nobody has a box"),
        ("segmentation", "nobody has a mask"),
        ("keypoints", "nobody has keypoints"),
        ("face_verification", "identities need subjects"),
        ("retrieval", "nobody has a class"),
        ("classification", "needs classes to confuse"),
        ("grounding", "nobody has a class"),
    ):
        with pytest.raises(SpecError, match=says):
            simulate_predictions(task, bare, right, MODEL)


def test_several_valid_classes_are_none_of_the_wrong_ones():
    dataset = crowd()
    both = dataset.instances.with_columns(
        classes=pl.when(pl.int_range(pl.len()) % 2 == 0)
        .then(pl.lit(["nurse", "guard"]))
        .otherwise("classes")
    )
    dataset = Dataset(name="crowd", info=INFO, instances=both)
    wrong = both.select("instance_id", right=pl.lit(value=False))
    says = simulate_predictions("classification", dataset, wrong, MODEL)["label"]
    for label, own in zip(says, both["classes"], strict=True):
        assert label not in own
