"""Evidence of pairs: as lists or one row a pair, of units that are not there, for many groups."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.groups.measure.pair_rows import build_pair_rows
from isolux.groups.measure.pairs import evaluate_rates_by_group, required_impostors
from isolux.stats.verification import (
    false_match_rate_statistic,
    false_non_match_rate_statistic,
    pairs_roc_auc_statistic,
    tar_at_far_statistic,
)
from tests._pairs import sorted_pairs

UNITS = pl.DataFrame({"unit_id": ["a", "b", "c", "d"], "unit": [0, 1, 2, 3], "cluster": [0, 0, 1, 2]})  # noqa: E501  # fmt: skip
FLAT = pl.DataFrame(
    {
        "unit_id": ["a", "a", "b", "c", "a", "x", "b"],
        "other_id": ["b", "c", "c", "d", "d", "a", "x"],
        "similarity": [0.9, 0.4, 0.6, None, 0.6, 0.7, 0.8],
        "genuine": [True, False, False, False, None, False, False],
        "far": 0.5,
        "threshold": 0.5,
    }
)


def nested(dtype):
    lists = pl.col("other_id").cast(dtype), "similarity", "genuine"
    return FLAT.group_by("unit_id", maintain_order=True).agg(*lists, pl.col("far", "threshold").first())  # noqa: E501  # fmt: skip


@pytest.mark.parametrize(
    "evidence", [FLAT, nested(pl.String), nested(pl.Enum(["a", "b", "c", "d", "x"]))]
)
def test_pairs_that_cannot_be_judged_are_left_out_however_they_are_laid_out(evidence):
    # Left: a-b (genuine, .9), b-c (.6), a-c (.4). Failed, of unknown truth, or of x: none.
    rows = build_pair_rows(evidence, UNITS)
    assert rows.pairs.similarity.tolist() == [0.9, 0.6, 0.4]
    assert rows.pairs.is_genuine.tolist() == [True, False, False]
    ends = [sorted(p) for p in zip(rows.pairs.first.tolist(), rows.pairs.second.tolist(), strict=True)]  # noqa: E501  # fmt: skip
    assert ends == [[0, 1], [1, 2], [0, 2]]
    assert rows.units.tolist() == [0, 1, 2]
    own = rows.select_pairs(np.array([True, False, True, True]))
    assert own.similarity.tolist() == [0.4]
    assert (own.first.tolist(), own.second.tolist()) == ([0], [1])  # clusters


def test_nobody_is_a_table_too():
    rows = build_pair_rows(FLAT.clear(), UNITS)
    assert len(rows.pairs.is_genuine) == len(rows.units) == 0
    assert np.isnan(
        evaluate_rates_by_group(tar_at_far_statistic(), rows, np.ones((4, 2), dtype=bool))
    ).all()


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_many_groups_in_one_pass_are_each_group_alone(monkeypatch, at_once):
    monkeypatch.setattr("isolux.groups.measure.pairs._MAX_BYTES", 8 * 30 * at_once)
    rng = np.random.default_rng(0)
    first, second = np.triu_indices(30, 1)
    ids = pl.Series([f"u{i:02}" for i in range(30)])
    evidence = pl.DataFrame(
        {
            "unit_id": ids.gather(first),
            "other_id": ids.gather(second),
            "similarity": rng.integers(0, 30, len(first)) / 30,
            "genuine": rng.random(len(first)) < 0.3,
            "far": 0.1,
            "threshold": 0.6,
        }
    )
    units = pl.DataFrame({"unit_id": ids, "unit": range(30), "cluster": np.arange(30) // 2})
    members = rng.random((30, 7)) < np.linspace(0.05, 1.0, 7)
    rows = build_pair_rows(evidence, units)
    similarity, genuine = evidence["similarity"].to_numpy(), evidence["genuine"].to_numpy()
    for statistic in (
        tar_at_far_statistic(),
        false_match_rate_statistic(),
        false_non_match_rate_statistic(),
        pairs_roc_auc_statistic(),
    ):
        expected = []
        for inside in members.T:
            own = inside[first] & inside[second]
            each = np.arange(own.sum())  # every pair of a cluster of its own
            alone = sorted_pairs(similarity[own], genuine[own], each, each, far=0.1, threshold=0.6)
            expected.append(float(statistic(alone, np.ones(max(len(each), 1)))))
        np.testing.assert_allclose(evaluate_rates_by_group(statistic, rows, members), expected)


def test_impostor_pairs_needed_are_whole_whatever_the_far_is_in_binary():
    assert [required_impostors(far) for far in (0.001, 0.01, 0.07, 1 / 3)] == [1000, 100, 15, 3]
    assert required_impostors(0.001, 30) == 30_000
