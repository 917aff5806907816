"""A group's false matches beside everyone's, down to one in 100,000 of a million pairs.

One world, read at stricter and stricter thresholds. What the difference to everyone may be follows
from the two intervals: where it reaches beyond them, it was measured otherwise.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, INSTANCES
from tests.laws._figures import FULL, record
from tests.laws._measured import measured

pytestmark = pytest.mark.law(whole=True)

PEOPLE = 1902 if FULL else 603
"""A million pairs within groups, 100,000 in a small run."""
RATES = (1e-2, 3e-3, 1e-3, 3e-4, 1e-4) + ((3e-5, 1e-5) if FULL else ())
METRIC = "false_match_rate"


def _world(people: int) -> tuple[Dataset, pl.DataFrame]:
    """Draw people with one photo each; a third of them look a little more alike."""
    rng = np.random.default_rng(39)
    group = np.where(np.arange(people) % 3 == 0, "b", "a")
    own = 0.15 * rng.normal(size=people) + np.where(group == "b", 0.1, 0.0)
    i, j = np.triu_indices(people, 1)
    i, j = (x[group[i] == group[j]] for x in (i, j))  # so everyone's rate lies between the groups'
    impostors = own[i] + own[j] + rng.normal(size=len(i))
    names = np.array([f"p{k:04}" for k in range(people)])
    frame = pl.DataFrame({"instance_id": names, "image_id": names, "subject_id": names,
                          "cluster_id": names})  # fmt: skip
    attributes = pl.DataFrame(
        {"unit_kind": "instance", "unit_id": names, "attribute": "tone", "value": group}
    )
    info = DatasetInfo(title="x", summary="x", references=())
    dataset = Dataset("x", info, INSTANCES.conform(frame), ATTRIBUTES.conform(attributes))
    pairs = pl.DataFrame(
        {"model": "m", "instance_id": names[i], "other_id": names[j], "score": impostors}
    )
    return dataset, pairs


def test_the_difference_to_everyone_is_measured_alike_at_every_rate():
    dataset, pairs = _world(PEOPLE)
    falls = np.sort(pairs["score"].to_numpy())[::-1]
    rows = []
    for rate in RATES:
        threshold = float(falls[round(rate * len(falls)) - 1])
        scores = isolux.score(
            "face_verification", dataset, pairs, threshold=threshold, metrics=[METRIC]
        )
        run = measured(scores, dataset, by=("tone",), replicates=200)
        groups = run.group_metrics.filter(metric=METRIC)
        b = groups.filter(group="b").row(0, named=True)
        everyone = groups.filter(group="overall").row(0, named=True)
        gap = run.disparities.filter(
            pl.col("kind") == "difference_to_overall", pl.col("group_a") == "b"
        ).row(0, named=True)
        values = {"b, per million": b["value"], "everyone": everyone["value"],
                  "difference": gap["value"], "low": gap["low"], "high": gap["high"]}  # fmt: skip
        one = {"rate": f"{rate:g}", **{name: 1e6 * x for name, x in values.items()},
               "p": gap["p_value"]}  # fmt: skip
        rows.append(one)
        # b is part of everyone, and both grow with the same people: nothing adds to these widths.
        assert gap["low"] >= b["low"] - everyone["high"], one
        assert gap["high"] <= b["high"] - everyone["low"], one
        assert gap["low"] <= gap["value"] <= gap["high"], one
        # Everyone adds little, as four fifths of the pairs are others'.
        assert gap["high"] - gap["low"] <= 1.2 * (b["high"] - b["low"]), one
    record("rare-matches", rows, worlds=1, replicates=200)
