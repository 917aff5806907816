"""Does the interval of the error at a stated mix of ages hold, and what does a plain mean say?

Two groups whose errors are alike at each age, one of them mostly old: the plain means differ
because people do, the means at one mix do not. Each person has two photos, whose errors agree.
"""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.containers import Dataset
from isolux.core.info import DatasetInfo
from isolux.core.spec import Statistics
from isolux.core.tables import ATTRIBUTES, INSTANCES, MEMBERSHIP
from isolux.groups.measure import measure_groups
from isolux.tasks.age_estimation import score
from tests.laws._figures import at_least, record, scaled

pytestmark = pytest.mark.law
WORLDS = scaled(1_000, 40)
PEOPLE, EACH = 300, 2
INFO = DatasetInfo(title="x", summary="x", references=())


def world(seed):
    """Return a dataset with the estimates of its photos, and who is in which group."""
    rng = np.random.default_rng([seed, 7])
    group = np.repeat(["young", "old"], PEOPLE // 2)
    early = rng.random(PEOPLE) < np.where(group == "young", 0.8, 0.2)
    age = np.where(early, rng.integers(18, 31, PEOPLE), rng.integers(31, 66, PEOPLE))
    spread = np.where(early, 3.0, 8.0)
    own = rng.normal(size=PEOPLE)
    photo = np.repeat(np.arange(PEOPLE), EACH)
    error = spread[photo] * (own[photo] + rng.normal(size=len(photo))) / 2**0.5
    ids = [f"p{i:04}" for i in range(len(photo))]
    instances = pl.DataFrame(
        {"instance_id": ids, "image_id": ids, "cluster_id": [f"s{i}" for i in photo]}
    )
    rows = pl.DataFrame(
        {"unit_kind": "instance", "unit_id": ids, "attribute": "age",
         "value": age[photo].astype(str)}
    )  # fmt: skip
    people = Dataset("x", INFO, INSTANCES.conform(instances), ATTRIBUTES.conform(rows))
    members = MEMBERSHIP.conform(
        pl.DataFrame({"attribute": "group", "group": group[photo],
                      "values": [[g] for g in group[photo]], "unit_id": ids})
    )  # fmt: skip
    said = pl.DataFrame({"model": "m", "instance_id": ids, "value": age[photo] + error})
    return people, said, members


def test_the_interval_at_a_stated_mix_holds_where_groups_have_other_ages():
    # |N(0, s²)| has mean s √(2/π); the mix counts 18 to 30 and 31 to 65 alike.
    truth = (3.0 + 8.0) / 2 * np.sqrt(2 / np.pi)
    inside = total = 0
    plain, mixed = [], []
    for seed in range(WORLDS):
        people, said, members = world(seed)
        found = score(people, said, age_mix=("18-30=1", "31-65=1"), metrics=[
            "mean_absolute_error", "standardised_absolute_error"])  # fmt: skip
        table = measure_groups(found, members, Statistics(replicates=300)).to_table()
        rows = {(r["metric"], r["group"]): r for r in table.iter_rows(named=True)}
        for name, gaps in (("mean_absolute_error", plain), ("standardised_absolute_error", mixed)):
            gaps.append(rows[name, "old"]["value"] - rows[name, "young"]["value"])
        for group in ("old", "young"):
            row = rows["standardised_absolute_error", group]
            inside += row["low"] <= truth <= row["high"]
            total += 1
    figures = {
        "interval covers %": inside / total, "gap of plain means, years": float(np.mean(plain)),
        "gap at one mix, years": float(np.mean(mixed)),
    }  # fmt: skip
    record("age-mix", [figures], worlds=WORLDS, replicates=300)
    full = 0.94 - 3 * np.sqrt(0.95 * 0.05 / total)
    assert figures["interval covers %"] > at_least(0.95, total, full=full), figures
    assert figures["gap of plain means, years"] > 2.0  # .6 (8 − 3) √(2/π) = 2.4
    assert abs(figures["gap at one mix, years"]) < 4 * np.std(mixed) / WORLDS**0.5
