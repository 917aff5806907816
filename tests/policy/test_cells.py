"""A gate holds a group's value to a limit with the interval that the audit prints."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.groups.measure import measure_groups
from isolux.policy.cells import Side
from isolux.vocabulary.containers import Scores
from isolux.vocabulary.info import Metric, TaskInfo
from isolux.vocabulary.spec import Statistics
from isolux.vocabulary.tables import MEMBERSHIP, SCORES

Z = 1.959963984540054


@pytest.mark.parametrize("high", [1.0, None])
def test_a_graded_mean_is_held_to_a_limit_with_the_interval_that_is_printed(high):
    rng = np.random.default_rng(5)
    sizes = {"a": 400, "b": 60, "c": 60}
    group = np.repeat(list(sizes), list(sizes.values()))
    value = np.where((rng.random(520) < 0.03) & (group != "b"), 0.0, rng.beta(30.0, 2.0, 520))
    ids = [f"u{k}" for k in range(520)]
    info = Metric(name="overlap", title="Overlap", definition="Overlap.", direction="higher",
                  high=high)  # fmt: skip
    task = TaskInfo(title="T", summary="S.", references=(), metrics=(info,), defaults=("overlap",))
    units = pl.DataFrame({"model": "m", "task": "t", "metric": "overlap", "unit_kind": "instance",
                          "unit_id": ids, "value": value})  # fmt: skip
    members = pl.DataFrame({"attribute": "light", "group": group, "values": [[g] for g in group],
                            "unit_id": ids})  # fmt: skip
    estimates = measure_groups(
        Scores(SCORES.conform(units), task), MEMBERSHIP.conform(members), Statistics(replicates=100)
    )
    assert set(estimates.method.ravel()) == {"score, of numbers"}
    rows = np.array([3, 1, 2])
    ends = Side(estimates, 0, rows).intervals()(Z)
    assert ends.low == pytest.approx(estimates.interval.low[rows, 0], rel=1e-12)
    assert ends.high == pytest.approx(estimates.interval.high[rows, 0], rel=1e-12)
    alone = Side(estimates, 0, np.array([2])).alone()(Z)  # as long as beside the others
    assert alone.low == pytest.approx(estimates.interval.low[[2], 0], rel=1e-12)
    mean, low, up = (x[2, 0] for x in (estimates.value, estimates.interval.low,
                                       estimates.interval.high))  # fmt: skip
    assert mean - low > 3.0 * (up - mean)  # b holds no bad score; the others lend
