"""COCO's own figures with no further setting: names for numbers, classes by themselves, sizes."""

from __future__ import annotations

import contextlib
import io
import json
from dataclasses import replace

import polars as pl
import pytest
from hypothesis import assume, given, settings
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

from isolux import audit, derive
from isolux.core.tables import ATTRIBUTES
from isolux.datasets import load
from isolux.predictions import read_outputs
from isolux.tasks.detection import score
from tests._shared import shared_data
from tests.cli._run import isolux
from tests.geometry._coco import evaluated
from tests.geometry.test_against_pycocotools import box_cases
from tests.tasks._classed import by_group
from tests.tasks._pictures import boxes, of_case, pictures, values

TRUTH = "coco/instances_val2014_100.json"
FOUND = {
    "detection": ("coco/instances_val2014_fakebbox100_results.json", "bbox"),
    "segmentation": ("coco/instances_val2014_fakesegm100_results.json", "segm"),
}
AP, AR = "average_precision", "average_recall_over_classes"
PLACES = {
    0: (AP, "overall"), 1: (f"{AP}_50", "overall"), 2: (f"{AP}_75", "overall"),
    3: (AP, "small"), 4: (AP, "medium"), 5: (AP, "large"),
    8: (AR, "overall"), 9: (AR, "small"), 10: (AR, "medium"), 11: (AR, "large"),
}  # fmt: skip
"""Where pycocotools' twelve numbers stand in the group metrics of ``--by size``."""


def official(truth, results, kind):
    """Run pycocotools as its demonstration does."""
    with contextlib.redirect_stdout(io.StringIO()):
        people = COCO(str(truth))
        run = COCOeval(people, people.loadRes(str(results)), kind)
        run.evaluate()
        run.accumulate()
        run.summarize()
    return run


@pytest.mark.parametrize("task", FOUND)
def test_one_command_gives_cocos_own_figures(task, tmp_path, monkeypatch, capsys):
    results, kind = FOUND[task]
    truth, results = shared_data(TRUTH), shared_data(results)
    done = isolux(
        monkeypatch, capsys, "audit", f"coco:{truth}", "--task", task, "--predictions", results,
        "--by", "size", "--replicates", "100", "--out", tmp_path / "run", "--notes",
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = pl.read_parquet(tmp_path / "run" / "group_metrics.parquet")
    assert rows.height == 5 * 4  # metrics and groups: no row for each of 80 classes
    told = {(m, g): v for m, g, v in rows.select("metric", "group", "value").iter_rows()}
    run = official(truth, results, kind)
    for place, key in PLACES.items():
        assert told[key] == pytest.approx(run.stats[place], abs=1e-9), key
    assert "Classes are named by the dataset" in " ".join(done.out.split())


def test_each_category_has_cocos_own_figure():
    truth, results = shared_data(TRUTH), shared_data(FOUND["detection"][0])
    dataset, found = load("coco", truth), read_outputs(results)
    scores = score(dataset, found)
    told = [by_group(dataset, scores, name, by="category") for name in (AP, AR)]
    run = official(truth, results, "bbox")
    names = {one["id"]: one["name"] for one in run.cocoGt.dataset["categories"]}
    compared = 0
    for k, number in enumerate(run.params.catIds):
        precision, recall = run.eval["precision"][:, :, k, 0, 2], run.eval["recall"][:, k, 0, 2]
        if (recall > -1).any():
            values = [group[names[number]][0] for group in told]
            assert values == pytest.approx([precision.mean(), recall.mean()], abs=1e-9)
            compared += 1
    assert compared == 70


def test_the_first_detections_and_sizes_as_metrics():
    truth, results = shared_data(TRUTH), shared_data(FOUND["detection"][0])
    dataset = load("coco", truth)
    ends = ("_first_1", "_first_10", "", "_small", "_medium", "_large")
    scores = score(dataset, read_outputs(results), metrics=[f"{AR}{end}" for end in ends])
    told = [by_group(dataset, scores, f"{AR}{end}", by="category")["overall"][0] for end in ends]
    assert told == pytest.approx(official(truth, results, "bbox").stats[6:12].tolist(), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(box_cases(repeats=False))
def test_any_case_as_pycocotools_has_it(case):
    classes, labels = ({row["label"] for row in rows} for rows in (case.truths, case.detections))
    assume(classes & labels and len(classes | labels) > 1)
    dataset, found = of_case(case)
    group = {"unit_kind": "instance", "attribute": "group", "value": "X"}
    rows = [{**group, "unit_id": name} for name in dataset.instances["instance_id"]]
    dataset = replace(dataset, attributes=pl.DataFrame(rows, schema=ATTRIBUTES.schema))
    run = evaluated(case, limits=[100])
    scores = score(dataset, found, metrics=[AP, AR])
    for name, part in ((AP, "precision"), (AR, "recall")):
        of_classes = run.eval[part][..., 0, -1]
        held = of_classes[of_classes > -1]
        value = by_group(dataset, scores, name)["overall"][0]
        assert value == (pytest.approx(held.mean(), abs=1e-9) if held.size else None)


TEN, APART = [0.0, 0.0, 10.0, 10.0], [50.0, 0.0, 10.0, 10.0]
PAIR = pictures(
    {"man": ("1", TEN, {"classes": ["man"]}), "dog": ("1", APART, {"classes": ["dog"]})}
)
SWAPPED = boxes(("1", TEN, 0.9, "dog"), ("1", APART, 0.8, "man"))


def test_a_box_of_another_class_finds_no_one_unless_asked():
    assert values(score(PAIR, SWAPPED), "average_recall") == {"man": 0.0, "dog": 0.0}
    assert values(score(PAIR, SWAPPED, by_class=False, person_label=["man", "dog"]),
                  "average_recall") == {"man": 1.0, "dog": 1.0}  # fmt: skip
    assert score(PAIR, SWAPPED).units["label"].null_count() == score(PAIR, SWAPPED).units.height
    apart = score(PAIR, SWAPPED, by_class=True).units
    assert set(apart["label"]) == {"man", "dog"}


def test_the_classes_of_who_is_judged_decide():
    one = score(PAIR, SWAPPED, person_class="man")
    assert values(one, "average_recall") == {"man": 0.0}
    other = pictures({"a": ("1", TEN, {"classes": ["doctor"]})})
    people = score(other, boxes(("1", TEN, 0.9, "person")))
    assert values(people, "average_recall") == {"a": 1.0}
    assert [m.name for m in people.info.metrics] == ["average_recall", "recall_at_iou"]


def test_a_model_of_few_classes_is_told_first():
    names = ["man", "dog", "cat", "cow", "hen"]
    farm = pictures({n: (str(k), TEN, {"classes": [n]}) for k, n in enumerate(names)})
    scores = score(farm, boxes(("0", TEN, 0.9, "man")))
    assert "of 1 of the dataset's 5 classes ('man')" in scores.notes[0]
    assert "--person-class" in scores.notes[0]
    assert not any("classes (" in note for note in score(PAIR, SWAPPED).notes)


def test_numbers_are_named_by_the_datasets_own_file(tmp_path):
    file = tmp_path / "people.json"
    box = {"image_id": 1, "iscrowd": 0, "area": 100, "bbox": TEN}
    file.write_text(json.dumps({
        "images": [{"id": 1}],
        "annotations": [{"id": 5, "category_id": 44, **box}],
        "categories": [{"id": 44, "name": "bottle"}, {"id": 7, "name": "train"}],
    }))  # fmt: skip
    dataset = load("coco", file)
    assert dataset.categories == {"44": "bottle", "7": "train"}
    found = boxes(("1", TEN, 0.9, "44"), ("1", TEN, 0.8, "7"))
    scores = score(dataset, found)
    assert values(scores, "average_recall") == {"5": 1.0}
    assert values(score(dataset, found, person_label="44"), "average_recall") == {"5": 1.0}
    assert values(score(dataset, found, person_label="bottle"), "average_recall") == {"5": 1.0}
    assert values(score(dataset, found, person_label="train"), "average_recall") == {"5": 1.0}


def test_the_size_of_coco_is_an_attribute_by_its_own_name():
    sizes = derive.add_missing_derived_attributes(PAIR, ["size", "box_size"]).attributes
    told = {a: rows["value"].to_list() for (a,), rows in sizes.group_by("attribute")}
    assert told["size"] == told["box_size"] == ["small", "small"]


def test_false_alarms_of_a_class_count_for_it_wherever_they_are():
    # Two men found; a false alarm that says "man" in a picture of a dog alone, surer than both.
    people = pictures(
        {
            "a": ("1", TEN, {"classes": ["man"]}), "b": ("2", TEN, {"classes": ["man"]}),
            "c": ("3", TEN, {"classes": ["dog"]}),
        },
        groups={"a": "men", "b": "men", "c": "dogs"},
    )  # fmt: skip
    found = boxes(("3", APART, 0.9, "man"), ("1", TEN, 0.8, "man"), ("2", TEN, 0.7, "man"),
                  ("3", TEN, 0.6, "dog"))  # fmt: skip
    told = by_group(people, score(people, found), AP)
    assert told["men"] == (pytest.approx(2 / 3), 2)  # precision 1/2, then 2/3 at both recalls
    assert told["dogs"] == (1.0, 1)
    assert told["overall"] == (pytest.approx((2 / 3 + 1) / 2), 3)


def test_audit_of_such_scores_goes_through():
    truth, results = shared_data(TRUTH), shared_data(FOUND["detection"][0])
    dataset = derive.add_missing_derived_attributes(load("coco", truth), ["size"])
    done = audit(score(dataset, read_outputs(results)), dataset, by="size", replicates=100)
    assert set(done.group_metrics["metric"]) >= {AP, AR}
