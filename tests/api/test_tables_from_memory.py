"""What is not a path, not a dataset, not a number: said in our words, never a bare TypeError."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.core.errors import SpecError, UnknownNameError

FRAME = pl.DataFrame({"unit_id": [f"u{i}" for i in range(200)], "tone": ["a", "b"] * 100,
                      "value": [1.0, 0.0, 1.0, 1.0] * 50})  # fmt: skip
ARRAYS = {"y_true": [0, 1] * 40, "y_pred": [0, 1, 1, 1] * 20, "sensitive_features": ["a", "b"] * 40}


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: isolux.load("widerface", FRAME), "not the path of a dataset's file"),
        (lambda: isolux.load("facet", None), "not the path of a dataset's file"),
        (lambda: isolux.read_predictions(FRAME), "not the path of a file of answers"),
        (lambda: isolux.compare(FRAME, FRAME), "this is not a run"),
        (lambda: isolux.score("classification", FRAME, FRAME), "people to be judged are a Dataset"),
        (lambda: isolux.audit(FRAME, by="race"), "there is no column named 'race'"),
    ],
)
def test_a_frame_where_none_belongs_is_refused_with_what_takes_it(call, match):
    with pytest.raises((SpecError, UnknownNameError), match=match):
        call()


def test_one_frame_holds_scores_and_groups():
    found = isolux.audit(FRAME, by="tone", replicates=200)
    assert found.group_metrics.select("group", "value").rows() == [
        ("overall", 0.75), ("a", 1.0), ("b", 0.5),
    ]  # fmt: skip


def test_minus_zero_and_zero_are_one_group():
    frame = FRAME.with_columns(tone=pl.Series([-0.0, 0.0, 0.5] * FRAME.height).head(FRAME.height))
    found = isolux.audit(frame, by="tone", replicates=200).group_metrics
    assert sorted(found["group"].to_list()) == ["0.0", "0.5", "overall"]
    frame = isolux.metric_frame(
        metrics="accuracy", y_true=[1, 0, 1], y_pred=[1, 1, 1], sensitive_features=[-0.0, 0.0, 0.5]
    )
    assert [str(value) for value in frame.by_group["sensitive_feature_0"]] == ["0.0", "0.5"]


@pytest.mark.parametrize(
    ("metric", "match"),
    [
        (lambda t, p: np.array([t.sum(), p.sum()]), "does not give one number"),
        (lambda _t, _p: "high", "gives text"),
        (lambda _t: 1.0, "cannot be called with y_true and y_pred"),
    ],
)
def test_a_metric_that_gives_no_number_is_named(metric, match):
    with pytest.raises(SpecError, match=match):
        isolux.metric_frame(metrics=metric, **ARRAYS)


def test_a_margin_in_points_of_what_is_no_share_is_a_warning():
    table = {"id": [f"p{k}" for k in range(200)], "tone": ["a", "b"] * 100,
             "age": [20.0, 30.0, 40.0, 25.0] * 50}  # fmt: skip
    settings = {"id": "id", "by": "tone", "task": "number", "score_column": "age",
                "metric": ["mean"], "replicates": 100}  # fmt: skip
    told = isolux.audit(table, margin=3, **settings).run.record["warnings"]
    assert [w for w in told if w.startswith("--margin 3 is in points, and ")]
    assert not [w for w in isolux.audit(table, **settings).run.record["warnings"] if "margin" in w]
