"""A class that was always judged right is not known to be always judged right."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.groups.interval_methods.macro_average import MacroAverages
from isolux.stats.clustered_proportions import ClusterMeans


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
    # Wilson's centres at 1.96: (60 + 1.92) / 63.84 = .96991 and (1,470 + 1.92) / 1,503.84 = .97877.
    # Variances there: .96991 · .03009 / 63.84 = 4.571e-4 and 1.382e-5: sqrt(of their sum) / 2.
    # As sure as 211.3 units: Wilson's interval of .99 of these is .9653 to .9972.
    row = audited((60, 1470), (60, 1500))
    assert row["value"] == pytest.approx(0.99)
    assert row["standard_error"] == pytest.approx(0.01085, rel=0.06)  # replicates vary
    assert (row["low"], row["high"]) == pytest.approx((0.9653, 0.9972), abs=2e-3)
    assert row["low"] < 0.97  # a recall of .95 would be shown as 1 in one world of 22


def test_where_both_classes_have_mistakes_the_replicates_say_as_much():
    # Of independent rows: sqrt(.8 · .2 / 400 + .7 · .3 / 300) / 2 = .01658.
    row = audited((320, 210), (400, 300))
    assert row["standard_error"] == pytest.approx(0.01658, rel=0.06)


def test_no_mistake_at_all_is_no_narrower_than_one():
    without, one = audited((60, 60), (60, 60)), audited((59, 60), (60, 60))
    assert without["high"] - without["low"] > 0.5 * (one["high"] - one["low"])


def test_the_mean_is_of_the_classes_that_occur():
    def shares(*values):
        one = np.ones(2)
        return ClusterMeans(np.array(values), 60 * one, 0 * one, 59 * one, one, 9 * one, 0.0)

    # .9 and .7 make .8; of the second group the second class has nobody: .5 alone.
    held = MacroAverages([shares(0.9, 0.5), shares(0.7, np.nan)], np.zeros(2))
    assert held.mean() == pytest.approx([0.8, 0.5])
