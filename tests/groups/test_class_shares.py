"""A class that was always judged right is not known to be always judged right."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux


def audited(hits, units, **settings):
    """Audit balanced accuracy of two classes, each of so many hits in so many units, in group a."""
    truth = np.repeat(["yes", "no"], units)
    right = np.concatenate([np.arange(n) < h for h, n in zip(hits, units, strict=True)])
    answer = np.where(right, truth, np.where(truth == "yes", "no", "yes"))
    table = {"tone": ["a"] * len(truth), "truth": truth, "answer": answer}
    other = {"tone": ["b"] * 400, "truth": ["yes", "no"] * 200, "answer": ["yes", "yes"] * 200}
    both = {name: [*table[name], *other[name]] for name in table}
    found = isolux.audit(
        both, by="tone", target="truth", prediction_column="answer", positive="yes",
        metric=["balanced_accuracy"], **({"replicates": 2000} | settings),
    )  # fmt: skip
    return found.run.group_metrics.row(by_predicate=pl.col("group") == "a", named=True)


def test_a_class_without_a_mistake_is_as_unsure_as_its_wilson_interval():
    # Wilson at 1.96: 60 of 60 is .93983 to 1, an error of (1 - .93983) / 2 / 1.96 = .015349;
    # 1,470 of 1,500 is .97158 to .98597: .003671. Their mean: sqrt(.015349² + .003671²) / 2.
    row = audited((60, 1470), (60, 1500))
    assert row["value"] == pytest.approx(0.99)
    assert row["standard_error"] == pytest.approx(0.007891, rel=0.06)  # replicates vary
    assert row["low"] < 0.97  # a recall of .95 would be shown as 1 in one world of 22


def test_where_both_classes_have_mistakes_the_replicates_say_as_much():
    # Of independent rows: sqrt(.8 · .2 / 400 + .7 · .3 / 300) / 2 = .01658.
    row = audited((320, 210), (400, 300))
    assert row["standard_error"] == pytest.approx(0.01658, rel=0.06)


def test_no_mistake_at_all_is_no_narrower_than_one():
    without, one = audited((60, 60), (60, 60)), audited((59, 60), (60, 60))
    assert without["high"] - without["low"] > 0.5 * (one["high"] - one["low"])
