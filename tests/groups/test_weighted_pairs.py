"""Pairs of people who stand for unequally many, held against sums written out and plain loops."""

from __future__ import annotations

import itertools

import numpy as np
import polars as pl
import pytest

from isolux.api.audit import audit
from isolux.core.errors import SpecError
from isolux.groups.measure.pair_rows import recompute_weighted_thresholds
from isolux.stats.verification import lowest_threshold_at_far

SIZES = {"min_units": 1, "min_clusters": 1, "replicates": 400}


def people(n=24, photos=3, seed=0, groups=2):
    """Draw photos of people, with a weight, stratum and tone each, and how alike pairs are."""
    rng = np.random.default_rng(seed)
    person = np.repeat(np.arange(n), photos)
    weight = np.array([4.0, 1.0, 1.5, 0.5])[np.arange(n) % 4]
    lean = rng.normal(0.0, 0.3, n) + 0.3 * (weight > 1)
    rows = pl.DataFrame({
        "id": [f"f{i}" for i in range(n * photos)], "subject": [f"s{p}" for p in person],
        "weight": weight[person], "stratum": [f"h{p % 2}" for p in person],
        "tone": [f"t{p % groups}" for p in person],
    })  # fmt: skip
    pairs = []
    for i, j in itertools.combinations(range(n * photos), 2):
        same = person[i] == person[j]
        level = 2.2 if same else lean[person[i]] + lean[person[j]]
        pairs.append((f"f{i}", f"f{j}", level + rng.normal(0.0, 0.8)))
    return rows, pl.DataFrame(pairs, schema=["instance_id", "other_id", "score"], orient="row")


def audited(rows, pairs, tmp_path, **settings):
    rows.write_csv(tmp_path / "people.csv")
    pairs.with_columns(model=pl.lit("m")).write_csv(tmp_path / "pairs.csv")
    said = {"weight": "weight", "cluster": "subject", "far": 0.05, **SIZES, **settings}
    return audit(
        f"table:{tmp_path / 'people.csv'}", predictions=str(tmp_path / "pairs.csv"),
        task="face_verification",
        by="tone", id="id", identity="subject", **{k: v for k, v in said.items() if v is not None},
    )  # fmt: skip


def by_loops(rows, pairs, inside, threshold):
    """Rates at a threshold, by one pair after the other."""
    subject = dict(zip(rows["id"], rows["subject"], strict=True))
    weight = dict(zip(rows["id"], rows["weight"], strict=True))
    sums = {"false_match_rate": [0.0, 0.0], "false_non_match_rate": [0.0, 0.0]}
    for a, b, score in pairs.rows():
        if a not in inside or b not in inside:
            continue
        same = subject[a] == subject[b]
        w = weight[a] if same else weight[a] * weight[b]
        name = "false_non_match_rate" if same else "false_match_rate"
        sums[name][1] += w
        sums[name][0] += w * ((score < threshold) if same else (score >= threshold))
    return {name: wrong / every for name, (wrong, every) in sums.items()}


def test_rates_and_the_common_threshold_are_the_population_s(tmp_path):
    rows, pairs = people()
    found = audited(rows, pairs, tmp_path)
    told = found.group_metrics
    at = told.filter(metric="false_match_rate")["threshold"][0]
    # By hand: the highest threshold's next lower impostor brings the weighted share over .05.
    everyone = set(rows["id"])
    assert by_loops(rows, pairs, everyone, at)["false_match_rate"] <= 0.05
    below = pairs.filter(pl.col("score") < at)["score"].max()
    lower = by_loops(rows, pairs, everyone, below)["false_match_rate"]
    assert lower > 0.05 or below < at - 0.01  # a genuine pair may lie between
    for group, inside in (("overall", everyone),
                          ("t1", set(rows.filter(tone="t1")["id"]))):  # fmt: skip
        for name, rate in by_loops(rows, pairs, inside, at).items():
            row = told.filter(metric=name, group=group).row(0, named=True)
            assert row["value"] == pytest.approx(rate), (group, name)
    assert all("weighted" in claim.lower() for claim in found.findings["claim"])


def test_equal_weights_give_the_values_of_no_weights(tmp_path):
    rows, pairs = people()
    rows = rows.with_columns(weight=pl.lit(7.0))
    ours = audited(rows, pairs, tmp_path).group_metrics
    plain = audited(rows, pairs, tmp_path, weight=None).group_metrics
    keys = ["metric", "group", "threshold"]
    assert ours.select(keys).equals(plain.select(keys))
    for name in ("value", "n_units", "n_clusters"):
        assert ours[name].to_list() == pytest.approx(plain[name].to_list(), nan_ok=True)
    assert ours["status"].to_list() == plain["status"].to_list()


def test_standard_errors_are_those_of_the_sum_s_linear_part(tmp_path):
    """False matches as a ratio of sums over pairs: a person's part is that of all their pairs."""
    rows, pairs = people(n=60, photos=2, groups=1, seed=3)
    found = audited(rows, pairs, tmp_path, threshold=1.0, replicates=2000).group_metrics
    row = found.filter(metric="false_match_rate", group="overall").row(0, named=True)
    subject = dict(zip(rows["id"], rows["subject"], strict=True))
    weight = dict(zip(rows["subject"], rows["weight"], strict=True))
    part = dict.fromkeys(weight, 0.0)
    total = 0.0
    for a, b, score in pairs.rows():
        one, two = subject[a], subject[b]
        if one == two:
            continue
        w = weight[one] * weight[two]
        total += w
        for who in (one, two):
            part[who] += w * ((score >= 1.0) - row["value"])
    u = np.array(list(part.values())) / total
    by_hand = np.sqrt(len(u) / (len(u) - 1) * ((u - u.mean()) ** 2).sum())
    assert row["standard_error"] == pytest.approx(by_hand, rel=0.1)


def test_strata_and_a_population_are_read(tmp_path):
    rows, pairs = people(n=40)
    strata = audited(rows, pairs, tmp_path, strata="stratum").group_metrics
    plain = audited(rows, pairs, tmp_path).group_metrics
    assert strata["value"].to_list() == pytest.approx(plain["value"].to_list())
    shares = {"stratum": {"h0": 0.9, "h1": 0.1}}
    brought = audited(rows, pairs, tmp_path, weight=None, population=shares, threshold=1.0)
    weight = pl.when(pl.col("stratum") == "h0").then(9.0).otherwise(1.0)
    at = by_loops(rows.with_columns(weight=weight), pairs, set(rows["id"]), 1.0)
    row = brought.group_metrics.filter(metric="false_match_rate", group="overall")
    assert row["value"][0] == pytest.approx(at["false_match_rate"])
    assert row["low"][0] < row["value"][0] < row["high"][0]


def test_pairs_count_by_what_they_are_worth(tmp_path):
    rows, pairs = people(n=12, photos=2)
    heavy = rows.with_columns(weight=pl.when(pl.col("subject") == "s0").then(500.0).otherwise(1.0))
    found = audited(heavy, pairs, tmp_path, far=0.02).group_metrics
    row = found.filter(metric="tar_at_far", group="overall").row(0, named=True)
    # 44 pairs of s0 with others at 500 each, 220 at 1: (44 · 500 + 220)² / (44 · 500² + 220) = 44.9
    assert row["reason"] == (
        "impostor pairs worth 44 of one weight; a value at a false accept rate of 0.02 needs 50"
    )


def test_a_weighted_threshold_by_hand():
    """Weights 1, 2, 3, 4 of falling .9, .7, .5, .3: .35 of 10 is 3.5, which holds 1 + 2."""
    falls, weight = np.array([0.9, 0.7, 0.5, 0.3]), np.array([1.0, 2.0, 3.0, 4.0])
    found = lowest_threshold_at_far(falls, 0.35, weight)
    assert found == np.nextafter(0.5, 1.0)
    assert lowest_threshold_at_far(falls, 1.0, weight) == -np.inf
    turned = lowest_threshold_at_far(falls[::-1], 0.35, weight[::-1])
    assert turned == found
    assert lowest_threshold_at_far(falls, 0.5, np.ones(4)) == lowest_threshold_at_far(falls, 0.5)


def test_a_threshold_that_was_given_stays():
    held = pl.DataFrame({"model": ["m"], "given": [True], "threshold": [0.5]})
    assert recompute_weighted_thresholds(held, pl.DataFrame(), pl.DataFrame()) is held


def test_samples_that_pairs_cannot_have_are_refused(tmp_path):
    rows, pairs = people(n=12, photos=2)
    torn = rows.with_columns(weight=pl.int_range(pl.len()).cast(pl.Float64) + 1)
    with pytest.raises(SpecError, match="weights differ within 12 of 12 clusters"):
        audited(torn, pairs, tmp_path)
    both = rows.with_columns(other=pl.Series([f"o{i % 5}" for i in range(rows.height)]))
    with pytest.raises(SpecError, match="pairs have clusters one way"):
        audited(both, pairs, tmp_path, cluster="subject,other")
    with pytest.raises(SpecError, match="people are the clusters of pairs"):
        audited(rows, pairs, tmp_path, cluster=None, strata="stratum")
