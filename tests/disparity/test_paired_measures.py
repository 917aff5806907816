"""Two models on the same people: values that chance enlarges, and roots of mean squares."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

from isolux.core.info import Metric
from isolux.core.spec import ComparisonSettings
from isolux.disparity.models import compare_models
from isolux.groups.interval_methods.noise_bias import estimate_noise_bias
from isolux.groups.measure import measure_groups
from isolux.stats.numeric_statistics import root_mean_square_statistic
from isolux.tasks.classification import INFO
from tests._scored import binned, members, scored

ECE = next(m for m in INFO.metrics if m.name == "calibration_error")
ROOT = Metric(name="root", title="r", definition="r", direction="lower", high=None,
              evidence="own", statistic=root_mean_square_statistic("error"))  # fmt: skip


def compared(metric, evidence, columns, groups, seed=0):
    """Compare models a and b, whose evidence has these columns."""
    n = len(groups)
    ids = {"unit_id": [f"u{k}" for k in range(n)], "cluster_id": [f"s{k}" for k in range(n)]}
    parts = []
    for model, own in zip("ab", columns, strict=True):
        table = pl.DataFrame({"model": [model] * n, **ids, **own})
        table = binned(table) if metric is ECE else table
        parts.append(scored([0.0] * n, ids["cluster_id"], model=model,
                            evidence={evidence: table}, others=(metric,)))  # fmt: skip
    both = replace(
        parts[0],
        units=pl.concat([part.units for part in parts]),
        evidence={evidence: pl.concat([part.evidence[evidence] for part in parts])},
    )
    spec = ComparisonSettings(replicates=199, seed=seed)
    found = measure_groups(both, members(g=groups), spec)
    table = compare_models(found, spec, ("a", "b")).table.filter(metric=metric.name)
    return found, table


def sure(rng, shape, n, over=0.0):
    confidence = np.clip(rng.beta(*shape, n), 1e-3, 1 - 1e-3)
    right = rng.random(n) < expit(logit(confidence) * (1.0 - over))
    return {"confidence": confidence, "correct": right}


def test_a_model_that_is_surer_is_not_better_calibrated_for_it():
    # Both are calibrated. Answers at .99 vary by .01 x .99, those at .5 by .25: chance alone makes
    # b's error five times as large.
    rng = np.random.default_rng(2)
    columns = [sure(rng, (30.0, 0.6), 900), sure(rng, (1.0, 1.0), 900)]
    found, table = compared(ECE, "classification", columns, ["x"] * 300 + ["y"] * 600)
    row = table.filter(kind="model_difference", group_a="overall").row(0, named=True)
    a, b = (j for j, m in enumerate(found.measures) if m.metric == "calibration_error")
    apart = found.value[0, b] - found.value[0, a]
    assert row["value"] == pytest.approx(apart)
    assert apart > 2.5 * np.hypot(*found.standard_error[0, [a, b]])  # by which it would be found
    assert row["p_value"] > 0.5
    assert row["low"] < 0.0 < row["high"]
    assert row["detectable"] is None
    # With as much chance in both: b has more noise in each bin, and a is given what it lacks.
    one, two = (
        estimate_noise_bias(found.cluster_sums, found.measures[j], np.array([0])) for j in (b, a)
    )
    given = two.expected_value(np.maximum(one.noise_variance - two.noise_variance, 0.0))
    assert given.item() > found.value[0, a]


def test_a_model_that_is_too_sure_is_found():
    rng = np.random.default_rng(3)
    columns = [sure(rng, (8.0, 1.5), 600, 0.8), sure(rng, (8.0, 1.5), 600, 0.1)]
    _, table = compared(ECE, "classification", columns, ["x"] * 300 + ["y"] * 300)
    for row in table.filter(kind="model_difference").iter_rows(named=True):
        assert row["p_value"] < 0.001
        assert row["high"] < 0.0


def test_a_model_without_a_far_error_is_not_sure_of_it():
    # a errs by 1, and b by .9 but for one in fifty, at 4: groups of 60 may well hold none of them.
    rng = np.random.default_rng(4)
    far = np.where(np.arange(660) % 66 == 65, 6.0, rng.normal(0.0, 0.8, 660))
    columns = [{"error": rng.normal(0.0, 1.1, 660)}, {"error": far}]
    groups = np.where(np.arange(660) < 60, "x", "y").tolist()
    found, table = compared(ROOT, "own", columns, groups)
    row = table.filter(kind="model_difference", group_a="x").row(0, named=True)
    a, b = (j for j, m in enumerate(found.measures) if m.metric == "root")
    g = next(k for k, group in enumerate(found.groups) if group.name == "x")
    apart = found.value[g, b] - found.value[g, a]
    assert apart < -2.0 * np.hypot(*found.standard_error[g, [a, b]])
    assert row["p_value"] > 0.05
    assert row["low"] < 0.0 < row["high"]


@pytest.mark.parametrize("first", [0.0, 5.0])
def test_a_model_whose_errors_do_not_vary_is_compared(first):
    rng = np.random.default_rng(5)
    columns = [{"error": np.full(300, first)}, {"error": rng.normal(size=300)}]
    _, table = compared(ROOT, "own", columns, ["x"] * 100 + ["y"] * 200)
    for row in table.filter(kind="model_difference").iter_rows(named=True):
        assert row["low"] < row["value"] < row["high"]
        assert row["p_value"] < 0.001


@pytest.mark.parametrize("metric", [ECE, ROOT])
@pytest.mark.parametrize("seed", range(6))
def test_p_and_the_interval_agree(metric, seed):
    rng = np.random.default_rng(seed)
    if metric is ROOT:
        columns = [{"error": rng.standard_t(4, 300) * s} for s in (1.15, 1.0)]
    else:
        columns = [sure(rng, (4.0, 1.5), 300, over) for over in (0.5, 0.2)]
    name = "own" if metric is ROOT else "classification"
    _, table = compared(metric, name, columns, ["x"] * 150 + ["y"] * 150, seed)
    kinds = ["model_difference", "gap_change"]
    for row in table.filter(pl.col("kind").is_in(kinds)).iter_rows(named=True):
        assert (row["p_value"] <= 0.05) == (row["low"] > 0.0 or row["high"] < 0.0), row
