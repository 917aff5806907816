"""AP and AR of small, medium and large: equal to pycocotools on real and on made-up boxes."""

from __future__ import annotations

import contextlib
import io
import json

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from isolux.datasets import load
from isolux.predictions import read_outputs
from isolux.tasks import detection, keypoints, segmentation
from tests._shared import shared_data
from tests.geometry._coco import evaluated
from tests.geometry.test_against_pycocotools import box_cases
from tests.tasks._pictures import boxes, of_case, pictures, values
from tests.tasks.test_detection_exact import table

SIZES = ("small", "medium", "large")
OBJECTS = "coco/instances_val2014_100.json"
POSES = "coco/keypoints_dataset_gt_dataset.json"


def summary_of(truth, results, kind):
    """What pycocotools prints, in its order."""
    drawn = json.loads(results.read_text())
    with contextlib.redirect_stdout(io.StringIO()):
        side = COCO(str(truth))
        run = COCOeval(
            side, side.loadRes(drawn["annotations"] if isinstance(drawn, dict) else drawn), kind
        )
        run.evaluate()
        run.accumulate()
        run.summarize()
    return run.stats


def names_of(sizes):
    return [f"average_{what}_{size}" for what in ("precision", "recall") for size in sizes]


def of_everyone(dataset, scores, names):
    """AP of everyone, and COCO's AR: the mean over classes, if any, of the mean over people."""
    rows = table(dataset, scores, ("category",), replicates=100)
    rows = rows.filter(pl.col("group") == "overall")
    found = []
    for name in names:
        own = rows.filter(pl.col("metric") == name)
        if "precision" in name:
            own = own.filter(pl.col("label").is_null())
        found.append(own["value"].mean())
    return found


@pytest.mark.parametrize(
    ("task", "kind", "truth", "results", "sizes", "options", "places"),
    [
        (detection, "bbox", OBJECTS, "coco/instances_val2014_fakebbox100_results.json", SIZES,
         {"by_class": True, "max_detections": 100}, (3, 4, 5, 9, 10, 11)),
        (segmentation, "segm", OBJECTS, "coco/instances_val2014_fakesegm100_results.json", SIZES,
         {"by_class": True, "max_detections": 100}, (3, 4, 5, 9, 10, 11)),
        (keypoints, "keypoints", POSES, "coco/keypoints_dataset_dt_dataset.json", SIZES[1:],
         {"max_detections": 20}, (3, 4, 8, 9)),
    ],
)  # fmt: skip
def test_coco_example_by_size(task, kind, truth, results, sizes, options, places):
    truth, results = shared_data(truth), shared_data(results)
    dataset = load("coco", truth)
    reading = {"kind": "keypoints"} if task is keypoints else {"categories": truth}
    names = names_of(sizes)
    scores = task.score(dataset, read_outputs(results, **reading), metrics=names, **options)
    expected = summary_of(truth, results, kind)[list(places)]
    np.testing.assert_allclose(of_everyone(dataset, scores, names), expected, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(box_cases(repeats=False))
def test_made_up_cases_by_size(case):
    for row in (*case.truths, *case.detections):
        row["area"] = row["bbox"][2] * row["bbox"][3]
    classes = {row["label"] for row in case.truths}
    case.detections = [row for row in case.detections if row["label"] in classes]
    dataset, found = of_case(case)
    names = names_of(SIZES)
    scores = detection.score(dataset, found, by_class=True, max_detections=100, metrics=names)
    every = pl.DataFrame(
        {"unit_kind": "instance", "unit_id": dataset.instances["instance_id"],
         "attribute": "category", "value": "x"},
        schema_overrides={"unit_id": pl.String},
    )  # fmt: skip
    dataset = type(dataset)(
        dataset.name, dataset.info, dataset.instances,
        every.select(pl.lit(None).cast(t).alias(c) if c not in every.columns else pl.col(c)
                     for c, t in dataset.attributes.schema.items()),
        dataset.images,
    )  # fmt: skip
    ours = of_everyone(dataset, scores, names) if dataset.instances.height else [None] * 6
    theirs = evaluated(case).stats[[3, 4, 5, 9, 10, 11]]
    expected = [np.nan if value == -1 else value for value in theirs]
    shown = [np.nan if value is None else value for value in ours]
    np.testing.assert_allclose(shown, expected, atol=1e-12)


def test_who_is_of_another_size_is_ignored_by_hand():
    """a is small (20 × 20), b large (100 × 100); one box lies on b, the surer one on nobody.

    Small: a is missed; the box on b is neither right nor wrong, and the other (30 × 30, small) is
    wrong. Large: b found, and the small alarm does not count. Nobody is of medium size.
    """
    dataset = pictures(
        {"a": ("1", [0.0, 0.0, 20.0, 20.0], {}), "b": ("1", [100.0, 0.0, 100.0, 100.0], {})},
        groups={"a": "X", "b": "X"},
    )
    found = boxes(("1", [300.0, 0.0, 30.0, 30.0], 0.9), ("1", [100.0, 0.0, 100.0, 100.0], 0.5))
    names = names_of(SIZES)
    scores = detection.score(dataset, found, metrics=names)
    assert values(scores, "average_recall_small") == {"a": 0.0, "b": "not small"}
    assert values(scores, "average_recall_medium") == {"a": "not medium", "b": "not medium"}
    assert values(scores, "average_recall_large") == {"a": "not large", "b": 1.0}
    rows = table(dataset, scores, replicates=100).filter(pl.col("group") == "X")
    value = dict(rows.select("metric", "value").iter_rows())
    assert value["average_precision_small"] == 0.0
    assert value["average_precision_large"] == 1.0
    assert value["average_precision_medium"] is None
    # Both together: wrong, then right, of two people: 51 points at 1/2.
    both = detection.score(dataset, found, metrics=["average_precision"])
    plain = table(dataset, both, replicates=100).filter(pl.col("group") == "X")["value"].item()
    assert plain == pytest.approx(51 / 2 / 101)


def test_an_area_that_was_annotated_comes_before_the_box():
    """Box of 50 × 50 = 2,500, but its mask has 900 square pixels: small, as COCO takes it."""
    box = [0.0, 0.0, 50.0, 50.0]
    people = {"a": ("1", box, {"area": 900.0}), "b": ("2", box, {"area": None})}
    scores = detection.score(pictures(people), boxes(("1", box, 0.5)), metrics=names_of(SIZES))
    assert values(scores, "average_recall_small") == {"a": 1.0, "b": "not small"}
    assert values(scores, "average_recall_medium") == {"a": "not medium", "b": 0.0}


def test_who_has_no_area_is_not_scored_by_size():
    mask = {"mask_counts": "013", "mask_height": 2, "mask_width": 2}
    drawn = pl.DataFrame({"model": "m", "image_id": "1", "label": "p", "score": 0.9, **mask})
    scores = segmentation.score(
        pictures({"a": ("1", None, mask)}), drawn, metrics=["average_recall_small"]
    )
    assert values(scores, "average_recall_small") == {"a": "no area"}
