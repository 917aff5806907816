"""BDD100K's real frames and a real detector's boxes: AP by class, size and occlusion."""

from __future__ import annotations

import contextlib
import io

import polars as pl
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from isolux import audit
from isolux.datasets import load
from isolux.datasets.bdd100k import ALIASES, CATEGORIES
from isolux.derive import add_missing_derived_attributes
from isolux.predictions import read_outputs
from isolux.predictions.scalabel import BDD100K_NAMES
from isolux.tasks import score
from tests._shared import shared_data

BY = ("box_size", "occluded")
AP = {"metrics": ("average_precision", "average_precision_50"), "by_class": True}
SIDES = ["box_x", "box_y", "box_w", "box_h"]


def frames(**options):
    shared_data("bdd100k/box_track_track_sample_anns.json")
    return load("bdd100k", shared_data("bdd100k"), **options)


def drawn(**options):
    return read_outputs(shared_data("bdd100k/det_bbox_predictions.json"), model="net", **options)


def audited(**options):
    dataset = frames(**options)
    scores = score("detection", dataset, drawn(), max_detections=100, **AP)
    return audit(scores, add_missing_derived_attributes(dataset, BY), by=BY, replicates=200)


@pytest.fixture(scope="module")
def by_video():
    return audited()


@pytest.fixture(scope="module")
def by_frame():
    return audited(cluster="frame")


def test_one_video_is_one_cluster_and_has_no_intervals(by_video):
    rows = by_video.group_metrics
    large = rows.filter(pl.col("n_units") >= 50)
    assert large.height > 30
    assert set(large["status"]) == {"insufficient clusters"}
    assert set(large["reason"]) == {"fewer than 10 clusters"}
    assert rows["low"].null_count() == rows["high"].null_count() == rows.height
    assert by_video.disparities["p_value"].null_count() == by_video.disparities.height
    assert not any("not independent" in note for note in by_video.run.record["notes"])


def test_frames_as_clusters_have_intervals_and_a_warning(by_frame):
    rows = by_frame.group_metrics.filter(metric="average_precision")
    judged = rows.filter(pl.col("status") == "ok")
    assert set(judged["attribute"]) == {None, *BY}
    assert {"car", "pedestrian", "rider", "truck", "motorcycle"} <= set(judged["label"])
    assert (judged["low"] < judged["value"]).all()
    assert (judged["value"] < judged["high"]).all()
    [note] = [n for n in by_frame.run.record["notes"] if "not independent" in n]
    assert note.startswith("202 frames are of 1 video(s): frames of one video show")


def test_large_cars_are_found_best_and_the_occluded_worse(by_frame):
    rows = by_frame.group_metrics.filter(metric="average_precision", label="car")
    value = {tuple(r["values"]): r["value"] for r in rows.iter_rows(named=True)}
    assert value["small",] < value["medium",] < value["large",]
    assert value["true",] < value["false",]


def reference(people, found):
    """AP and AP50 of each class by pycocotools, crowds as crowds."""
    images = {name: k for k, name in enumerate(people["image_id"].unique().sort(), start=1)}
    classes = {name: k for k, name in enumerate(CATEGORIES, start=1)}
    truths = [
        {"id": k, "image_id": images[r["image_id"]], "category_id": classes[r["classes"][0]],
         "bbox": [r[s] for s in SIDES], "area": r["area"], "iscrowd": int(r["is_crowd"])}
        for k, r in enumerate(people.iter_rows(named=True), start=1)
    ]  # fmt: skip
    results = [
        {"image_id": images[r["image_id"]], "category_id": classes[r["label"]],
         "bbox": [r[s] for s in SIDES], "score": r["score"]}
        for r in found.iter_rows(named=True)
    ]  # fmt: skip
    coco = COCO()
    with contextlib.redirect_stdout(io.StringIO()):
        coco.dataset = {
            "images": [{"id": k} for k in images.values()],
            "annotations": truths,
            "categories": [{"id": k, "name": n} for n, k in classes.items()],
        }
        coco.createIndex()
        evaluation = COCOeval(coco, coco.loadRes(results), "bbox")
        evaluation.evaluate()
        evaluation.accumulate()
    precision = evaluation.eval["precision"][:, :, :, 0, 2]  # [10, 101, classes], 100 detections
    return {
        name: (float(precision[:, :, k - 1].mean()), float(precision[0, :, k - 1].mean()))
        for name, k in classes.items()
    }


def test_every_classs_ap_is_that_of_pycocotools(by_frame):
    expected = reference(frames().instances, drawn())
    rows = by_frame.group_metrics.filter(
        pl.col("attribute").is_null(), pl.col("label").is_not_null(), pl.col("status") == "ok"
    )
    found = {(r["metric"], r["label"]): r["value"] for r in rows.iter_rows(named=True)}
    assert len(found) == 10, "five classes have 50 people or more"
    for (metric, label), value in found.items():
        assert value == pytest.approx(expected[label][metric.endswith("_50")], abs=1e-9), label


def test_old_names_of_predictions_become_todays(tmp_path):
    text = shared_data("bdd100k/det_bbox_predictions.json").read_text()
    for old, new in ALIASES.items():
        text = text.replace(f'"category": "{new}"', f'"category": "{old}"')
    (tmp_path / "net.json").write_text(text)
    old = read_outputs(tmp_path / "net.json")
    assert {"bike", "motor", "person"} <= set(old["label"])
    renamed = read_outputs(tmp_path / "net.json", categories="bdd100k", model="net")
    assert renamed.equals(drawn())


def test_loader_and_reader_go_by_the_same_names():
    assert ALIASES == BDD100K_NAMES
