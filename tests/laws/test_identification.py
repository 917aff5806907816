"""Do intervals of 1:N rates hold where each person is searched for several times?

A search's best score is a person's own part and a part of the photo, each normal, so a person's
searches agree. The truth is the share of a standard normal above the threshold. Beside: Wilson's
interval of the same searches taken as independent, which is too narrow.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.stats import norm

from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.core.spec import Statistics
from isolux.core.tables import ATTRIBUTES, INSTANCES, MEMBERSHIP
from isolux.groups.measure import measure_groups
from isolux.stats.proportions import wilson_interval
from isolux.tasks.identification import score
from tests.laws._figures import FULL, at_least, record, scaled

pytestmark = pytest.mark.law
WORLDS = scaled(1_000, 50)
PEOPLE, EACH = 120, 4
INFO = DatasetInfo(title="x", summary="x", references=())


def gallery():
    """Two people enrolled; everyone else is searched for, and is not."""
    ids = ["g0", "g1", *(f"p{i}" for i in range(PEOPLE * EACH))]
    who = ["a", "b", *(f"s{i // EACH}" for i in range(PEOPLE * EACH))]
    role = ["gallery"] * 2 + ["probe"] * (PEOPLE * EACH)
    rows = {"unit_kind": "instance", "unit_id": ids, "attribute": "role", "value": role}
    instances = pl.DataFrame({"instance_id": ids, "image_id": ids, "subject_id": who})
    return Dataset("x", INFO, INSTANCES.conform(instances), ATTRIBUTES.conform(pl.DataFrame(rows)))


@pytest.mark.parametrize(("rate", "icc"), [(0.05, 0.5), (0.02, 0.5), (0.2, 0.0)])
def test_intervals_of_false_positives_hold_with_several_searches_a_person(rate, icc):
    people, at = gallery(), float(norm.isf(rate))
    spec = Statistics(replicates=100)
    inside = naive = judged = 0
    widths = []
    for world in range(WORLDS):
        rng = np.random.default_rng([world, int(1000 * rate)])
        own = np.repeat(rng.normal(size=PEOPLE), EACH) * icc**0.5
        best = own + rng.normal(size=PEOPLE * EACH) * (1 - icc) ** 0.5
        lists = pl.DataFrame(
            {"model": "m", "instance_id": [f"p{i}" for i in range(PEOPLE * EACH)],
             "other_id": "g0", "score": best}
        )  # fmt: skip
        found = score(people, lists, enrolled="role=gallery", threshold=at)
        row = measure_groups(found, MEMBERSHIP.empty(), spec).to_table().filter(
            pl.col("metric") == "false_positive_identification_rate"
        ).row(0, named=True)  # fmt: skip
        if row["low"] is None:
            continue
        judged += 1
        inside += row["low"] <= rate <= row["high"]
        widths.append(row["high"] - row["low"])
        n = np.array([float(PEOPLE * EACH)])
        plain = wilson_interval(row["value"] * n, n, 0.95)
        naive += bool(plain.low[0] <= rate <= plain.high[0])
    figures = {
        "rate": rate, "agreement of a person's searches": icc, "interval covers %": inside / judged,
        "as if independent %": naive / judged, "mean width": float(np.mean(widths)),
    }  # fmt: skip
    record(f"identification-{rate}-{icc}", [figures], worlds=WORLDS, replicates=100)
    error = np.sqrt(0.95 * 0.05 / WORLDS)
    assert judged > (0.9 if FULL else 0.8) * WORLDS
    assert figures["interval covers %"] > at_least(0.95, judged, full=0.94 - 3 * error)
    if icc and rate >= 0.05:
        assert figures["as if independent %"] < 0.94
