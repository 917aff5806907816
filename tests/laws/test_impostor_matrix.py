"""Do intervals of false match rates between two groups hold where each person is in many pairs?

How alike two people are is a part of each and a part of the pair, all normal, so the pairs of one
person agree. The truth of a cell is the share of a normal above the threshold. Beside: Wilson's
interval of the same pairs taken as independent.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

import isolux
from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.core.tables import ATTRIBUTES, INSTANCES
from isolux.disparity.biometrics import cross_group_false_match_rates
from isolux.stats.proportions import wilson_interval
from tests.laws._figures import at_least, record, scaled
from tests.laws._measured import measured

pytestmark = pytest.mark.law
WORLDS = scaled(1_000, 16)
PEOPLE, RATE, SHARED = 80, 0.1, 0.3
INFO = DatasetInfo(title="x", summary="x", references=())


def gate():
    ids = [f"p{i:03}" for i in range(PEOPLE)]
    rows = {"unit_kind": "instance", "unit_id": ids, "attribute": "tone",
            "value": ["a", "b"] * (PEOPLE // 2)}  # fmt: skip
    people = pl.DataFrame({"instance_id": ids, "image_id": ids, "subject_id": ids})
    return Dataset("x", INFO, INSTANCES.conform(people), ATTRIBUTES.conform(pl.DataFrame(rows)))


def test_intervals_between_groups_hold_where_pairs_share_people():
    dataset, ids = gate(), [f"p{i:03}" for i in range(PEOPLE)]
    both = list(combinations(range(PEOPLE), 2))
    first, second = (np.array(side) for side in zip(*both, strict=True))
    at = float(norm.isf(RATE))
    inside = naive = total = 0
    for world in range(WORLDS):
        rng = np.random.default_rng([world, 11])
        own = rng.normal(size=PEOPLE) * (SHARED / 2) ** 0.5
        alike = own[first] + own[second] + rng.normal(size=len(both)) * (1 - SHARED) ** 0.5
        pairs = pl.DataFrame(
            {"model": "m", "instance_id": [ids[i] for i in first],
             "other_id": [ids[i] for i in second], "score": alike}
        )  # fmt: skip
        scores = isolux.score(
            "face_verification", dataset, pairs, threshold=at, metrics=["false_match_rate"]
        )
        run = measured(scores, dataset, by=("tone",), replicates=100, min_clusters=10)
        for row in cross_group_false_match_rates(run, replicates=200).to_dicts():
            total += 1
            inside += row["low"] <= RATE <= row["high"]
            n = np.array([float(row["pairs"])])
            plain = wilson_interval(row["false_match_rate"] * n, n, 0.95)
            naive += bool(plain.low[0] <= RATE <= plain.high[0])
    figures = {"interval covers %": inside / total, "as if independent %": naive / total}
    record("impostor-matrix", [figures], worlds=WORLDS, replicates=200)
    full = 0.93 - 3 * np.sqrt(0.95 * 0.05 / WORLDS)
    assert figures["interval covers %"] > at_least(0.95, WORLDS, full=full), figures
    assert figures["as if independent %"] < 0.8
