"""Detection equals pycocotools: found people, average recall, average precision, resampling."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isolux.core.containers import Scores
from isolux.core.spec import Groups, Statistics
from isolux.datasets import load
from isolux.groups.measure import measure_groups
from isolux.groups.measure.detections import index_and_rank_detections
from isolux.groups.membership import build_membership
from isolux.groups.option_parsing import read_groupings
from isolux.predictions import read_outputs
from isolux.stats.precision_recall import average_precision_statistic
from isolux.tasks.detection import score
from tests._shared import shared_data
from tests.geometry._coco import Case, evaluated
from tests.geometry.test_against_pycocotools import box_cases
from tests.tasks._pictures import boxes, of_case, pictures, values

AP = ("average_precision", "average_precision_50", "average_precision_75")


def table(dataset, scores, by=("group",), **options):
    """Group metrics with no minimum size."""
    spec = Statistics(min_units=1, min_clusters=1, **options)
    attributes = dataset.instance_attributes()
    members = build_membership(
        attributes, by, read_groupings(Groups(by=by), attributes), units=scores.evaluated_units()
    ).frame
    return measure_groups(scores, members, spec).to_table()


def everyone(dataset, scores, metric, by):
    rows = table(dataset, scores, (by,), replicates=100).filter(
        (pl.col("metric") == metric)
        & (pl.col("group") == "overall")
        & ((pl.col("label").is_null()) | (pl.col("metric") == "average_recall"))
    )
    return rows["value"].item()


def mean_over_labels(scores, metric, threshold=None):
    """COCO's recall: the mean over classes of the mean over people."""
    wanted = (pl.col("metric") == metric) & pl.col("threshold").eq_missing(threshold)
    return scores.units.filter(wanted).group_by("label").agg(pl.col("value").mean())["value"].mean()


COCO = ("coco/instances_val2014_100.json", "coco/instances_val2014_fakebbox100_results.json")


def test_coco_example_over_all_classes():
    truth, results = map(shared_data, COCO)
    dataset, found = load("coco", truth), read_outputs(results, categories=truth)
    scores = score(
        dataset, found, by_class=True, max_detections=100, top_k=(1, 10, 100),
        metrics=["average_recall", *AP],
    )  # fmt: skip
    recalls = [mean_over_labels(scores, "average_recall_at_k", k) for k in (1.0, 10.0, 100.0)]
    assert np.round(recalls, 3).tolist() == [0.387, 0.594, 0.595]
    precisions = [everyone(dataset, scores, name, "category") for name in AP]
    assert np.round(precisions, 3).tolist() == [0.505, 0.697, 0.573]


def test_coco_example_of_people_alone():
    truth, results = map(shared_data, COCO)
    dataset, found = load("coco", truth), read_outputs(results, categories=truth)
    scores = score(
        dataset, found, person_label="person", person_class="person", max_detections=100,
        metrics=["average_recall", *AP],
    )  # fmt: skip
    assert everyone(dataset, scores, "average_recall", "category") == pytest.approx(0.604)
    precisions = [everyone(dataset, scores, name, "category") for name in AP]
    assert np.round(precisions, 3).tolist() == [0.533, 0.788, 0.596]


@settings(max_examples=150, deadline=None)
@given(box_cases(repeats=False))
def test_who_is_found_is_who_evalimgs_says(case):
    dataset, found = of_case(case)
    if not case.truths or not set(found["label"]) & {f"c{row['label']}" for row in case.truths}:
        found = found.clear()
    scores = score(dataset, found, by_class=True, max_detections=100)
    run = evaluated(case)
    expected = {}
    images, areas = len(run.params.imgIds), len(run.params.areaRng)
    for k in range(len(run.params.catIds)):
        for i in range(images):
            entry = run.evalImgs[(k * areas) * images + i]
            if entry is None:
                continue
            for at, person in enumerate(entry["gtIds"]):
                if not entry["gtIgnore"][at]:
                    found_at = entry["gtMatches"][:, at] > 0
                    expected[f"p{person - 1}"] = float(found_at.mean())
    judged = values(scores, "average_recall")
    assert {u: v for u, v in judged.items() if not isinstance(v, str)} == pytest.approx(expected)


def weighted(case, weights):
    """The case in which image i stands ``weights[i]`` times, its copies side by side."""
    places = np.repeat(np.arange(case.n_images), weights)
    rows = [
        [dict(row, image=at) for at, image in enumerate(places) for row in side
         if row["image"] == image]
        for side in (case.truths, case.detections)
    ]  # fmt: skip
    return Case(max(1, len(places)), case.n_labels, *rows)


def precision_of(case, weights):
    """Our average precision at these weights of images: of all overlaps, .50, .75."""
    dataset, found = of_case(case)
    scores = score(dataset, found, by_class=True, max_detections=100, metrics=AP)
    evidence = scores.evidence["detections"]
    people = evidence.filter(pl.col("kind") == "person")
    with_people = people["image_id"].unique().sort()
    units = people.select(
        "unit_id",
        cluster_id="image_id",
        unit=pl.int_range(pl.len()),
        cluster=pl.col("image_id").rank("dense").cast(pl.Int64) - 1,
    )
    rows = index_and_rank_detections(evidence, units)
    others = sorted({f"{i:03}" for i in range(case.n_images)} - set(with_people))
    order = [int(name) for name in [*with_people, *others]]
    at = np.asarray(weights, dtype=float)[order]
    assert rows.n_clusters == case.n_images
    parts = (range(10), (0,), (5,))
    return [float(average_precision_statistic(bits)(rows.ranking, at)) for bits in parts]


@settings(max_examples=150, deadline=None)
@given(box_cases(repeats=False), st.lists(st.integers(0, 3), min_size=4, max_size=4))
def test_average_precision_and_its_resampling_equal_pycocotools_on_repeated_images(case, weights):
    """Weights of 1 are COCO's own AP; others are COCO's on images that stand there repeatedly.

    COCO interleaves detections of one image that tie with their copies: they are told apart.
    """
    classes = {row["label"] for row in case.truths}
    case.detections = [row for row in case.detections if row["label"] in classes]
    for own in ([1] * case.n_images, weights[: case.n_images]):
        if own != [1] * case.n_images:
            for at, row in enumerate(case.detections):
                same = [r for r in case.detections[:at] if r["image"] == row["image"]]
                row["score"] -= len(same) * 1e-6
        stats = evaluated(weighted(case, own)).stats[:3]
        expected = [np.nan if value == -1 else value for value in stats]
        np.testing.assert_allclose(precision_of(case, own), expected, atol=1e-12)


BOX, ELSE = [0.0, 0.0, 10.0, 10.0], [50.0, 0.0, 10.0, 10.0]


def test_average_precision_by_group_by_hand():
    """False alarms count for groups with a person in the image, and for everyone in every image.

    a and b (group X) are in image 1, c (Y) in 2, nobody in 3. By score: .9 false in 3, .8 finds a,
    .7 finds c, .6 false in 1, .5 finds b.
    X: right (.8), wrong (.6), right (.5); precision 1 to recall 1/2, then 2/3.
    Y: right (.7): 1.
    Everyone: wrong, right, right, wrong, right: precision 2/3 to recall 2/3 (67 points: 0 to .66),
    then 3/5 (34 points).
    """
    dataset = pictures(
        {"a": ("1", BOX, {}), "b": ("1", ELSE, {}), "c": ("2", BOX, {})},
        images=["1", "2", "3"],
        groups={"a": "X", "b": "X", "c": "Y"},
    )
    found = boxes(
        ("3", BOX, 0.9), ("1", BOX, 0.8), ("2", BOX, 0.7), ("1", [90.0, 0.0, 5.0, 5.0], 0.6),
        ("1", ELSE, 0.5),
    )  # fmt: skip
    rows = table(dataset, score(dataset, found, metrics=["average_precision_50"]), replicates=100)
    value = dict(rows.select("group", "value").iter_rows())
    assert value["X"] == pytest.approx((51 + 50 * 2 / 3) / 101)
    assert value["Y"] == pytest.approx(1.0)
    assert value["overall"] == pytest.approx((67 * 2 / 3 + 34 * 3 / 5) / 101)
    counts = rows.select("group", "n_units", "n_clusters").rows()
    assert counts == [("overall", 3, 2), ("X", 2, 1), ("Y", 1, 1)]


def test_what_found_another_groups_person_is_neither_right_nor_wrong():
    """Both in one image; the surer detection finds Y's person and does not hurt X."""
    dataset = pictures({"a": ("1", BOX, {}), "c": ("1", ELSE, {})}, groups={"a": "X", "c": "Y"})
    found = boxes(("1", ELSE, 0.9), ("1", BOX, 0.5))
    rows = table(dataset, score(dataset, found, metrics=["average_precision_50"]), replicates=100)
    assert dict(rows.select("group", "value").iter_rows()) == {"overall": 1.0, "X": 1.0, "Y": 1.0}


def test_what_found_somebody_not_judged_is_neither_right_nor_wrong():
    people = {"a": ("1", BOX, {"judged": True}), "c": ("1", ELSE, {"judged": False})}
    dataset = pictures(people, groups={"a": "X"})
    found = boxes(("1", ELSE, 0.9), ("1", BOX, 0.5))
    scores = score(dataset, found, metrics=["average_precision_50"])
    kinds = scores.evidence["detections"].select("kind", "unit_id").sort("kind").rows()
    assert kinds == [("image", None), ("person", "a"), ("right", "a")]
    assert table(dataset, scores, replicates=100)["value"].to_list() == [1.0, 1.0]


def test_models_resample_the_same_images():
    """Two models with the same boxes have the same interval, whatever a third one draws."""
    rng = np.random.default_rng(5)
    people = {f"p{i}": (f"{i:02}", BOX, {}) for i in range(30)}
    dataset = pictures(
        people, images=[f"e{i}" for i in range(9)], groups=dict.fromkeys(people, "X")
    )
    rows = [
        (f"{i:02}", [0.0, 0.0, 10.0, float(rng.integers(4, 11))], float(rng.random()))
        for i in range(30)
    ]
    rows += [(f"e{i}", BOX, float(rng.random())) for i in range(5)]
    both = pl.concat([boxes(*rows, model=name) for name in ("one", "two")])
    other = boxes(("e8", BOX, 0.5), model="zzz")
    scores = score(dataset, pl.concat([both, other]), metrics=["average_precision"])
    found = table(dataset, scores, replicates=200).filter(pl.col("group") == "overall")
    intervals = found.sort("model").select("low", "value", "high").rows()
    assert intervals[0] == intervals[1]
    assert intervals[0][0] < intervals[0][1] < intervals[0][2]


def test_without_clusters_a_false_alarm_weighs_by_itself():
    """Rows are clusters: the alarm in a's image is nobody's, so some replicates lack it."""
    people = {f"p{i}": (f"{i:02}", BOX, {"cluster_id": None}) for i in range(20)}
    dataset = pictures(people, groups=dict.fromkeys(people, "X"))
    found = boxes(*((f"{i:02}", BOX, 0.5) for i in range(20)), ("00", ELSE, 0.9))
    scores = score(dataset, found, metrics=["average_precision_50"])
    row = table(dataset, scores, replicates=200).filter(pl.col("group") == "X").row(0, named=True)
    assert row["value"] == pytest.approx(20 / 21)  # every right one comes after the wrong one
    assert row["n_clusters"] == 20
    assert row["standard_error"] > 0.01


def test_evidence_that_lost_its_false_alarms_is_refused():
    """A subset by person, as any table of people is cut, would raise precision unseen."""
    dataset = pictures({"a": ("1", BOX, {})}, groups={"a": "X"})
    scores = score(dataset, boxes(("1", ELSE, 0.9)), metrics=["average_precision"])
    cut = {"detections": scores.evidence["detections"].filter(pl.col("unit_id").is_not_null())}
    with pytest.raises(Exception, match="lost its images, and false alarms with them"):
        table(dataset, Scores(scores.units, scores.info, cut, task="detection"), replicates=100)
