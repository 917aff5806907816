"""A gate holds a group's value to a limit with the interval that the audit prints."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.containers import Scores
from isolux.core.info import Metric, TaskInfo
from isolux.core.spec import Statistics
from isolux.core.tables import MEMBERSHIP, SCORES
from isolux.disparity.comparisons import build_comparisons
from isolux.groups.measure import measure_groups
from isolux.policy.comparisons import ComparisonSide, group_pair_differences_less_noise_bias
from tests.groups.test_chance_added import measured as calibration
from tests.groups.test_squares import measured as roots

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
    assert set(estimates.method.ravel()) == {"skewness-adjusted t"}
    rows = np.array([3, 1, 2])
    ends = ComparisonSide(estimates, 0, rows).intervals()(Z)
    assert ends.low == pytest.approx(estimates.interval.low[rows, 0], rel=1e-12)
    assert ends.high == pytest.approx(estimates.interval.high[rows, 0], rel=1e-12)
    alone = ComparisonSide(estimates, 0, np.array([2])).one_sample_intervals()(
        Z
    )  # as long as beside the others
    assert alone.low == pytest.approx(estimates.interval.low[[2], 0], rel=1e-12)
    mean, low, up = (x[2, 0] for x in (estimates.value, estimates.interval.low,
                                       estimates.interval.high))  # fmt: skip
    assert mean - low > 3.0 * (up - mean)  # b holds no bad score; the others lend


def test_what_chance_enlarges_is_held_to_a_limit_with_the_interval_that_is_printed():
    rng = np.random.default_rng(6)
    sure = rng.beta(8, 2, 900)
    groups = np.repeat(["a", "b"], [100, 800]).tolist()
    estimates, j, _ = calibration(sure, rng.random(900) < sure, groups)
    rows = np.array([2, 1])
    ends = ComparisonSide(estimates, j, rows).intervals()(Z)
    assert ends.low == pytest.approx(estimates.interval.low[rows, j], abs=1e-9)
    assert ends.high == pytest.approx(estimates.interval.high[rows, j], rel=1e-9)
    # As far apart as they may be: either may be lower by what chance has added.
    first, second = np.array([1, 2]), np.array([2, 1])
    apart = group_pair_differences_less_noise_bias(estimates, "g", j, first, second).interval(Z)
    audited = build_comparisons(estimates, "g", j).compare_pairs(first, second).interval(Z)
    assert (apart.low <= audited.low).all()
    assert (apart.high >= audited.high).all()
    assert (apart.high - audited.high).max() > 0.005
    assert apart.high == pytest.approx(-apart.low[::-1])


def test_a_root_is_held_to_a_limit_with_the_interval_that_is_printed():
    error = np.random.default_rng(7).normal(size=300)
    estimates, _, j, _ = roots(error, np.repeat(["a", "b"], [100, 200]).tolist())
    rows = np.array([2, 0])
    ends = ComparisonSide(estimates, j, rows).intervals()(Z)
    assert ends.low == pytest.approx(estimates.interval.low[rows, j], rel=1e-9)
    assert ends.high == pytest.approx(estimates.interval.high[rows, j], rel=1e-9)
