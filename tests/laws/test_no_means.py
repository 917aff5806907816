"""Metrics that are no means (areas, balanced accuracy): the size of the test with few clusters."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tests.groups.test_class_shares import audited as balanced
from tests.laws._confidence import audited
from tests.laws._figures import FULL, at_least, record, scaled, sized

pytestmark = pytest.mark.law
METRICS = ("roc_auc", "balanced_accuracy")
CELLS = [(12, 60), (20, 60), (40, 40)]


@pytest.mark.parametrize("clusters", CELLS if FULL else CELLS[:1])
def test_p_values_of_what_is_no_mean_hold_their_level(clusters):
    worlds, replicates = scaled(500, 16), sized(599, 199)
    found = []
    for world in range(worlds):
        rng = np.random.default_rng([101, *clusters, world])
        audit = audited(rng, clusters, 8, correlation=0.3, apart=1.5, metrics=METRICS,
                        replicates=replicates, seed=world)  # fmt: skip
        found.append(audit.disparities.filter(kind="difference"))
    pairs = pl.concat(found)
    for metric in METRICS:
        own = pairs.filter(pl.col("metric") == metric, pl.col("p_value").is_not_null())
        agrees = (own["p_value"] <= 0.05) == ((own["low"] > 0) | (own["high"] < 0))
        row = {"metric": metric, "clusters": "/".join(map(str, clusters)),
               "p <= .05, %": float((own["p_value"] <= 0.05).mean()),
               "p <= .01, %": float((own["p_value"] <= 0.01).mean())}  # fmt: skip
        slug = f"no-means-{metric.replace('_', '-')}-{clusters[0]}-{clusters[1]}"
        record(slug, [row], worlds=worlds, replicates=replicates)
        assert own.height >= 0.98 * worlds  # now and then a group has too few of a class
        assert agrees.all()
        # Small: of 16 worlds four or more come about once in 140 times at .05.
        assert row["p <= .05, %"] <= (0.08 if FULL else 0.2), row


# Units of two classes in the group that is asked, and the shares of them that are judged right.
RARE = [((60, 1500), (0.98, 0.98)), ((60, 400), (0.95, 0.9)), ((100, 100), (0.97, 0.8)),
        ((50, 50), (0.9, 0.9))]  # fmt: skip


@pytest.mark.parametrize(("units", "right"), RARE)
def test_balanced_accuracy_is_held_where_a_class_has_few_mistakes(units, right):
    worlds, replicates = scaled(500, 16), sized(599, 199)
    rng = np.random.default_rng([102, *units])
    held, ends = [], []
    for _ in range(worlds):
        hits = rng.binomial(units, right)
        row = balanced(hits, units, replicates=replicates)
        if row["status"] == "ok":
            held.append(row["low"] <= np.mean(right) <= row["high"])
            ends.append(row["high"] - row["low"])
    row = {"units of the two classes": "/".join(map(str, units)),
           "judged right": "/".join(map(str, right)), "ok, %": len(held) / worlds,
           "covered, %": float(np.mean(held)) if held else None,
           "width, %": float(np.mean(ends)) if held else None}  # fmt: skip
    record(f"balanced-{units[0]}-{units[1]}", [row], worlds=worlds, replicates=replicates)
    assert not held or row["covered, %"] >= at_least(0.94, len(held), full=0.92), row
