"""Normalised AP: from boxes to the groups' numbers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import SpecError
from isolux.tasks import detection, face_detection, keypoints, segmentation
from tests.tasks._pictures import boxes, pictures
from tests.tasks.test_detection_exact import table

BOX, NEAR, ELSE = [0.0, 0.0, 10.0, 10.0], [0.0, 0.0, 10.0, 8.0], [50.0, 0.0, 10.0, 10.0]


def by_group(dataset, scores, metric, label=None):
    rows = table(dataset, scores, replicates=100)
    own = rows.filter((pl.col("metric") == metric) & pl.col("label").eq_missing(label))
    return dict(own.select("group", "value").iter_rows())


def test_normalised_average_precision_by_hand():
    """X: a, b, c, d in images 1 to 4; Y: y in image 5. N is (4 + 1) / 2.

    X: all found, and then nothing wrong: 1. Y: a false alarm in 5 before y is found:
    plain 1 / (1 + 1); normalised 2.5 / (2.5 + 1). Everyone: by score the alarm, then all five:
    precision rises to 5/6 at the last, which is the highest at or beyond every recall.
    """
    people = {name: (image, BOX, {}) for name, image in zip("abcdy", "12345", strict=True)}
    dataset = pictures(people, groups=dict.fromkeys("abcd", "X") | {"y": "Y"})
    found = boxes(("5", ELSE, 0.9), *((image, BOX, 0.5) for image in "12345"))
    names = ["average_precision", "normalised_average_precision"]
    scores = detection.score(dataset, found, metrics=names)
    plain = {"overall": 5 / 6, "X": 1.0, "Y": 1 / 2}
    assert by_group(dataset, scores, names[0]) == pytest.approx(plain)
    normalised = {"overall": 5 / 6, "X": 1.0, "Y": 2.5 / 3.5}
    assert by_group(dataset, scores, names[1]) == pytest.approx(normalised)
    given = detection.score(dataset, found, metrics=names, common_count=9.0)
    assert by_group(dataset, given, names[1]) == pytest.approx(
        {"overall": 9 / 10, "X": 1.0, "Y": 9 / 10}
    )
    assert "Normalised average precision: N is 9 everywhere." in given.notes


def test_average_precision_of_each_class():
    """Class c0: found; c1: missed, and in no mean but its own and everyone's."""
    people = {"a": ("1", BOX, {"classes": ["c0"]}), "b": ("1", ELSE, {"classes": ["c1"]})}
    dataset = pictures(people, groups={"a": "X", "b": "X"})
    found = boxes(("1", BOX, 0.9, "c0"))
    names = ["average_precision", "normalised_average_precision"]
    scores = detection.score(dataset, found, metrics=names, by_class=True)
    for name in names:
        by_class = {k: by_group(dataset, scores, name, k)["X"] for k in (None, "c0", "c1")}
        assert by_class == {None: 0.5, "c0": 1.0, "c1": 0.0}
    counts = table(dataset, scores, replicates=100).filter(pl.col("group") == "X")
    assert counts.sort("metric", "label")["n_units"].to_list() == [2, 1, 1] * 2


def test_n_is_drawn_anew_on_every_replicate():
    """A replicate of the groups' clusters is what the formula gives on people so often repeated."""
    from isolux.core.spec import Bootstrap
    from isolux.groups.measure.detections import index_and_rank_detections
    from isolux.stats.precision_recall import average_precision_statistic
    from isolux.stats.resampling.rows import replicate_detection_statistics
    from isolux.stats.weights import draw_multinomial_weights, iterate_seeded_replicate_blocks
    from tests._average_precision import average_precision

    rng = np.random.default_rng(4)
    people = {f"p{i}": (f"{i:02}", BOX, {}) for i in range(24)}
    dataset = pictures(people, groups={})
    rows = [(f"{i:02}", BOX, float(rng.random())) for i in range(0, 24, 2)]
    rows += [(f"{i:02}", ELSE, float(rng.random())) for i in range(24)]
    scores = detection.score(dataset, boxes(*rows), metrics=["normalised_average_precision"])
    units = scores.evaluated_units().with_columns(unit=pl.int_range(pl.len()))
    units = units.with_columns(
        cluster="unit", cluster_id=pl.col("unit_id").str.slice(1).str.zfill(2)
    )
    seen = index_and_rank_detections(scores.evidence["detections"], units)
    number = units["unit_id"].str.slice(1).cast(pl.Int64).to_numpy()
    groups = [number < 6, number >= 6]
    rankings = [seen.rank_group(inside) for inside in groups]
    bootstrap = Bootstrap(replicates=300)
    peers = [np.array([0, 1])] * 2
    statistic = average_precision_statistic((0,), is_normalised=True)
    value, found = replicate_detection_statistics(
        [(statistic, None)], rankings, peers, 24, bootstrap
    )
    every = [np.ones(24)]
    for own, size in iterate_seeded_replicate_blocks(300, bootstrap.seed, "rank bootstrap"):
        drawn = draw_multinomial_weights(own, np.ones(24, dtype=np.int64), size)
        every += list(drawn.T)
    for at, weights in enumerate(every):
        counts = [weights[inside].sum() for inside in groups]
        for g in range(2):
            if counts[g] == 0:
                continue
            expected = average_precision(
                rankings[g], weights, (0,), common_count=float(np.mean(counts))
            )
            mine = value[g, 0] if at == 0 else found[g, 0, at - 1]
            assert mine == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"matching": "best-overlap", "metrics": ["average_precision_small"]},
         "(?s)'average_precision_small' cannot be measured.*one-to-one.*best-overlap"),
        ({"matching": "best-overlap", "metrics": ["normalised_average_precision"]},
         "'normalised_average_precision' cannot be measured"),
        ({"common_count": 0.0}, "(?s)common_count cannot be that.*above 0.*0"),
        ({"common_count": float("nan")}, "(?s)common_count cannot be that.*nan"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_used(options, message):
    with pytest.raises(SpecError, match=message):
        detection.score(pictures({"a": ("1", BOX, {})}), boxes(), **options)


def test_every_task_of_boxes_has_the_same_variants():
    for task in (detection, segmentation, face_detection, keypoints):
        names = {metric.name for metric in task.INFO.metrics}
        assert {"normalised_average_precision", "average_precision_large"} <= names
        assert "normalised_average_precision" not in task.INFO.defaults
