"""Scores far from 0: what differs between groups is what differs between the same scores near 0."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.core.containers import Scores
from isolux.core.info import Metric, TaskInfo
from isolux.core.tables import ATTRIBUTES, SCORES
from isolux.groups.measure.distinct_rows import centre_scores

INFO = Metric(name="late", title="Lateness", definition="When.", direction="lower",
              low=None, high=None)  # fmt: skip
TASK = TaskInfo(title="T", summary="S.", references=(), metrics=(INFO,), defaults=("late",))
N, LATE = 360, 1.7e9
IDS = [f"u{k}" for k in range(N)]


def _scores(shift, *, weighted=False, better=0.0):
    rng = np.random.default_rng(3)
    value = rng.normal(0.0, 1.0, N) + 0.6 * (np.arange(N) % 3 == 1)
    value = value - better * rng.random(N) + shift
    home = [f"c{k // 2}" for k in range(N)]
    own = {"model": "m", "task": "t", "unit_kind": "instance", "unit_id": IDS, "cluster_id": home}
    units = pl.DataFrame({**own, "metric": "late", "value": value})
    sample = {}
    if weighted:
        weight = np.random.default_rng(4).uniform(0.5, 2.0, N)
        sample["sample"] = pl.DataFrame({**own, "weight": weight, "stratum": None,
                                         "stratum_clusters": None})  # fmt: skip
    return Scores(SCORES.conform(units), TASK, sample, task="t")


def _attributes():
    return ATTRIBUTES.conform(pl.DataFrame({"unit_kind": "instance", "unit_id": IDS,
        "attribute": "light", "value": [f"l{k % 3}" for k in range(N)]}))  # fmt: skip


def _audit(scores):
    return isolux.audit(scores, attributes=_attributes(), by=("light",), replicates=199, seed=1)


@pytest.mark.parametrize("weighted", [False, True])
def test_an_audit_of_times_since_1970_is_that_of_the_same_times_since_today(weighted):
    near, far = (_audit(_scores(shift, weighted=weighted)) for shift in (0.0, LATE))
    kinds = ("difference", "difference_to_overall")
    one, two = (a.disparities.filter(pl.col("kind").is_in(kinds)) for a in (near, far))
    assert one["p_value"].min() < 0.001
    for column in ("value", "low", "high", "p_value"):
        assert two[column].to_list() == pytest.approx(one[column].to_list(), rel=1e-4, abs=1e-6)
    # Drawn at random: as near as 199 draws are.
    assert two["p_adjusted"].to_list() == pytest.approx(one["p_adjusted"].to_list(), abs=0.1)
    groups = [a.group_metrics.sort("group") for a in (near, far)]
    for column, shift in (("value", LATE), ("low", LATE), ("high", LATE), ("standard_error", 0.0)):
        found = (groups[1][column] - shift).to_list()
        assert found == pytest.approx(groups[0][column].to_list(), abs=1e-5)
    spreads = [a.disparities.filter(kind="standard_deviation") for a in (near, far)]
    assert spreads[1]["low"].item() == pytest.approx(spreads[0]["low"].item(), rel=0.3)


def test_two_models_are_compared_as_they_are_near_0():
    found = []
    for shift in (0.0, LATE):
        one, two = (_audit(_scores(shift, better=better)) for better in (0.0, 0.5))
        found.append(isolux.compare(one, two).disparities.filter(kind="model_difference"))
    near, far = found
    assert len(near) == 4
    assert near["p_value"].min() < 0.05
    for column in ("value", "low", "high"):
        assert far[column].to_list() == pytest.approx(near[column].to_list(), rel=1e-4, abs=1e-6)
    assert far["p_value"].to_list() == pytest.approx(near["p_value"].to_list(), abs=0.1)


@pytest.mark.parametrize("scale", [1e-7, 1e-9, 1e-11])
def test_scores_that_hardly_differ_are_compared_as_if_they_differed_by_much(scale):
    found = []
    for middle, size in ((0.0, 1.0), (0.3, scale)):
        scores = _scores(0.0)
        value = middle + size * pl.col("value")
        held = Scores(scores.units.with_columns(value=value), TASK, scores.evidence, task="t")
        rows = _audit(held).disparities.filter(kind="difference")
        found.append(rows.with_columns(pl.col("value", "low", "high") / size))
    near, close = found
    assert near["p_value"].min() < 0.001
    for column in ("value", "low", "high", "p_value"):  # 1e-11 leaves .3 five digits to differ in
        assert close[column].to_list() == pytest.approx(near[column].to_list(), rel=1e-3)


@pytest.mark.parametrize("value", [0.3, 7.1, 1e9])
@pytest.mark.parametrize("noise", [0.0, 1e-15])
def test_scores_that_differ_by_rounding_do_not_differ(value, noise):
    scores = _scores(0.0)
    rounded = value * (1.0 + noise * (pl.col("value") - 0.5))
    alike = Scores(scores.units.with_columns(value=rounded), TASK, scores.evidence, task="t")
    values, centres = centre_scores(alike)
    assert centres == {}
    assert values.n_unique() == 1
    rows = _audit(alike).disparities.filter(kind="difference")
    assert rows["value"].to_list() == pytest.approx([0.0] * rows.height, abs=0.0)
    assert rows["p_value"].null_count() == rows.height


def test_one_error_in_a_million_is_a_share_and_has_no_centre():
    rows = pl.DataFrame({"metric": "late", "value": np.arange(1_000_000) != 7})
    values, centres = centre_scores(Scores(rows.cast({"value": pl.Float64}), TASK))
    assert centres == {}
    assert values.sum() == 999_999


def test_only_the_metric_that_is_alike_is_made_equal():
    rows = pl.DataFrame({"metric": ["a", "b", "a", "b", "a"],
                         "value": [0.3, 0.3, 0.1 + 0.2, 0.4, float("nan")]})  # fmt: skip
    values, centres = centre_scores(Scores(rows, TASK))
    assert values[:4].to_list() == [0.3, 0.3, 0.3, 0.4]
    assert np.isnan(values[4])
    assert centres == {}


def test_the_order_of_rows_does_not_show():
    scores = _scores(LATE)
    turned = Scores(scores.units.reverse(), TASK, task="t")
    assert centre_scores(scores)[1] == centre_scores(turned)[1]
    one, two = (_audit(s).disparities for s in (scores, turned))
    assert two["p_adjusted"].to_list() == one["p_adjusted"].to_list()
