"""Tables of a biometric test: cells by hand, against plain loops, and what is refused."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.analyses import biometrics
from isolux.core.containers import Dataset, Run
from isolux.core.errors import SpecError
from isolux.core.info import DatasetInfo
from isolux.core.tables import (
    ATTRIBUTES,
    DISPARITIES,
    FINDINGS,
    GROUP_METRICS,
    INSTANCES,
    SCORES,
)
from isolux.disparity.biometrics import (
    build_age_performance_table,
    count_gallery_by_group,
    cross_group_false_match_rates,
    cross_group_false_positive_rates,
    performance,
    summarise_error_differentials,
)
from isolux.stats.verification_disparity import unbiased_gini

INFO = DatasetInfo(title="Made up", summary="People that a test made up.", references=())
FMR, FNMR = "false_match_rate", "false_non_match_rate"


def of_cells(cells, task="face_verification", **record):
    """Make a run of ``(metric, group or None, value, status, reason)``."""
    rows = [
        {
            "model": "m", "task": task, "metric": metric, "threshold": 0.4,
            "attribute": None if group is None else "tone", "group": group or "overall",
            "values": [] if group is None else [group], "n_units": 900, "n_clusters": 60,
            "value": value, "low": None if value is None else value / 2,
            "high": None if value is None else min(2 * value, 1.0), "status": status,
            "reason": reason,
        }
        for metric, group, value, status, reason in cells
    ]  # fmt: skip
    held = GROUP_METRICS.conform(pl.DataFrame(rows, schema_overrides={"value": pl.Float64}))
    empty = [t.empty() for t in (SCORES, ATTRIBUTES)]
    return Run({"task": task, **record}, *empty, held, DISPARITIES.empty(), FINDINGS.empty())


def ok(metric, group, value):
    return metric, group, value, "ok", None


THREE = [
    ok(FMR, None, 0.02), ok(FMR, "a", 0.01), ok(FMR, "b", 0.02), ok(FMR, "c", 0.04),
    ok(FNMR, None, 0.1), ok(FNMR, "a", 0.2), ok(FNMR, "b", 0.05), ok(FNMR, "c", 0.05),
]  # fmt: skip


def test_differentials_by_hand():
    fmr, fnmr = summarise_error_differentials(of_cells(THREE)).to_dicts()
    # Geometric mean of .01 .02 .04: (8e-6)^(1/3) = .02; largest over it 2, over the smallest 4.
    assert fmr["geometric_mean"] == pytest.approx(0.02)
    assert (fmr["max_over_geometric_mean"], fmr["max_over_min"]) == pytest.approx((2.0, 4.0))
    # Gini with n/(n-1): sum over pairs |x_i - x_j| = .01 + .03 + .02; over (n-1) sum x = 2 * .07.
    assert fmr["gini"] == pytest.approx(0.06 / 0.14)
    assert (fmr["lowest_group"], fmr["highest_group"]) == ("a", "c")
    # The errors of everyone stand in both rows, own and other.
    assert (fmr["overall"], fmr["other_overall"]) == (0.02, 0.1)
    assert (fnmr["overall"], fnmr["other_overall"]) == (0.1, 0.02)
    assert fnmr["gini"] == pytest.approx(0.3 / 0.6)


def test_a_rate_of_nothing_has_no_ratio_and_the_unknown_are_no_group():
    cells = [ok(FMR, None, 0.02), ok(FMR, "a", 0.0), ok(FMR, "b", 0.04), ok(FMR, "unknown", 0.9),
             (FMR, "c", None, "insufficient units", "fewer than 50 pairs"),
             ok(FNMR, None, 0.1), ok(FNMR, "a", 0.2)]  # fmt: skip
    fmr, fnmr = summarise_error_differentials(of_cells(cells)).to_dicts()
    assert fmr["max_over_min"] is None
    assert fmr["max_over_geometric_mean"] is None
    assert fmr["gini"] == 1.0
    assert fmr["groups"] == 2
    assert fmr["said"] == (
        "no ratio: the rate of a is 0 in these data; without c, too few to judge"
    )
    assert fnmr["said"].startswith("fewer than two groups are judged")
    assert fnmr["overall"] == 0.1


def test_no_summary_stands_without_both_errors():
    with pytest.raises(SpecError, match="needs both errors at one threshold"):
        summarise_error_differentials(of_cells(THREE[:4]))
    with pytest.raises(SpecError, match="needs both errors"):
        summarise_error_differentials(of_cells([ok("accuracy", None, 0.9)], task="classification"))


@pytest.mark.parametrize("seed", range(5))
def test_differentials_are_those_of_plain_loops(seed):
    rates = np.random.default_rng(seed).uniform(0.001, 0.2, 3 + seed)
    cells = [ok(m, g, r) for m in (FMR, FNMR) for g, r in zip("abcdefgh", rates, strict=False)]
    row = summarise_error_differentials(
        of_cells([ok(FMR, None, 0.1), ok(FNMR, None, 0.1), *cells])
    ).row(0, named=True)
    n = len(rates)
    product = 1.0
    for rate in rates:
        product *= rate
    assert row["max_over_geometric_mean"] == pytest.approx(max(rates) / product ** (1 / n))
    spread = sum(abs(x - y) for x in rates for y in rates)
    plain = spread / (2 * n**2 * (sum(rates) / n)) * n / (n - 1)
    assert row["gini"] == pytest.approx(plain) == pytest.approx(float(unbiased_gini(rates)))


def test_performance_says_why_a_cell_is_empty():
    cells = [*THREE[:2], ok(FNMR, None, 0.1),
             (FNMR, "a", None, "insufficient units", "fewer than 50 pairs"),
             ok("failure_to_acquire_rate", None, 0.03), ok("failure_to_acquire_rate", "a", 0.05),
             ok("failure_to_enrol_rate", None, 0.01), ok("failure_to_enrol_rate", "a", 0.02),
    ]  # fmt: skip
    everyone, group = performance(of_cells(cells)).to_dicts()
    assert everyone["said"] is None
    assert group["fnmr"] is None
    assert group["said"] == "fnmr fewer than 50 pairs"
    assert (group["fmr"], group["fmr_low"], group["fmr_high"], group["fmr_n"]) == (
        0.01, 0.005, 0.02, 900,
    )  # fmt: skip
    assert (group["fta"], group["fte"], group["threshold"]) == (0.05, 0.02, 0.4)


def test_performance_of_another_task_is_refused():
    with pytest.raises(SpecError, match="has no failures and errors of a biometric system"):
        performance(of_cells([ok("accuracy", None, 0.9)], task="classification"))


# Six people, two pictures each; three of tone a and three of tone b.
def six():
    ids = [f"{person}{k}" for person in "uvwxyz" for k in (1, 2)]
    rows = [
        {"unit_kind": "instance", "unit_id": i, "attribute": name, "value": value}
        for i in ids
        for name, value in (("tone", "a" if i[0] in "uvw" else "b"),)
    ]
    people = pl.DataFrame({"instance_id": ids, "image_id": ids, "subject_id": [i[0] for i in ids]})
    dataset = Dataset(
        "made up", INFO, INSTANCES.conform(people), ATTRIBUTES.conform(pl.DataFrame(rows))
    )
    return dataset, ids


def test_the_impostor_matrix_is_that_of_plain_loops():
    rng = np.random.default_rng(1)
    dataset, ids = six()
    pairs = [(i, j, float(rng.random())) for i, j in combinations(ids, 2)]
    given = pl.DataFrame(pairs, schema=["instance_id", "other_id", "score"], orient="row")
    scores = isolux.score(
        "face_verification", dataset, given.with_columns(model=pl.lit("m")), threshold=0.6
    )
    run = isolux.audit(scores, dataset, by="tone", min_units=1, min_clusters=1, replicates=100,
                       keep_pairs=True).run  # fmt: skip
    found = cross_group_false_match_rates(run, replicates=100)
    tone = {i: "a" if i[0] in "uvw" else "b" for i in ids}
    for row in found.to_dicts():
        cell = [
            s for i, j, s in pairs
            if i[0] != j[0]
            and sorted((tone[i], tone[j])) == sorted((row["group_a"], row["group_b"]))
        ]  # fmt: skip
        assert row["pairs"] == len(cell)
        assert row["false_match_rate"] == pytest.approx(np.mean([s >= 0.6 for s in cell]))
    # 3 people of a kind give 3 pairs of people, each of 4 pairs of pictures; across it is 9 x 4.
    assert sorted(found["pairs"]) == [12, 12, 36]
    own = run.group_metrics.filter((pl.col("metric") == FMR) & (pl.col("group") == "a"))
    same = found.filter(pl.col("group_a") == "a", pl.col("group_b") == "a")
    assert own["value"].item() == same["false_match_rate"].item()


def test_the_performance_table_counts_comparisons_and_not_pictures():
    """Of 12 pictures there are 66 pairs, 6 of them genuine; 15 within a tone, 3 genuine."""
    dataset, ids = six()
    rng = np.random.default_rng(1)
    pairs = [(i, j, float(rng.random())) for i, j in combinations(ids, 2)]
    given = pl.DataFrame(pairs, schema=["instance_id", "other_id", "score"], orient="row")
    scores = isolux.score(
        "face_verification", dataset, given.with_columns(model=pl.lit("m")), threshold=0.6
    )
    run = isolux.audit(scores, dataset, by="tone", min_units=1, min_clusters=1, replicates=100,
                       keep_pairs=True).run  # fmt: skip
    counts = performance(run).select("group", "fmr_n", "fnmr_n")
    assert sorted(counts.rows()) == [("a", 12, 3), ("b", 12, 3), ("overall", 60, 6)]


def test_many_pairs_with_two_people_are_two_people():
    """30 people of tone a and 2 of b: the 240 pairs across rest on the two, not on 32."""
    rng = np.random.default_rng(2)
    ids = [f"{person:02}-{k}" for person in range(32) for k in (1, 2)]
    people = pl.DataFrame({"instance_id": ids, "image_id": ids, "subject_id": [i[:2] for i in ids]})
    tones = pl.DataFrame(
        {"unit_kind": "instance", "unit_id": ids, "attribute": "tone",
         "value": ["a" if i < "30" else "b" for i in ids]}
    )  # fmt: skip
    dataset = Dataset("made up", INFO, INSTANCES.conform(people), ATTRIBUTES.conform(tones))
    pairs = [(i, j, float(rng.random())) for i, j in combinations(ids, 2)]
    given = pl.DataFrame(pairs, schema=["instance_id", "other_id", "score"], orient="row")
    scores = isolux.score(
        "face_verification", dataset, given.with_columns(model=pl.lit("m")), threshold=0.6,
        max_per_group=20,
    )  # fmt: skip
    run = isolux.audit(scores, dataset, by="tone", replicates=100, keep_pairs=True).run
    rows = {(r["group_a"], r["group_b"]): r for r in cross_group_false_match_rates(run).to_dicts()}
    across = rows["a", "b"]
    assert (across["pairs"], across["clusters"]) == (4 * 30 * 2, 2)
    assert (across["low"], across["status"]) == (None, "insufficient clusters")
    assert (rows["a", "a"]["clusters"], rows["a", "a"]["status"]) == (30, "ok")
    assert any("all pairs count" in note for note in biometrics.explain(run).notes)


def test_the_impostor_matrix_needs_the_pairs():
    with pytest.raises(SpecError) as caught:
        cross_group_false_match_rates(of_cells(THREE))
    assert "keep_pairs" in str(caught.value)


def test_who_is_taken_for_whom_by_hand():
    # u, v (tone a) and x (tone b) are enrolled; w (a), y and z (b) are not, two searches each.
    dataset, ids = six()
    role = pl.DataFrame(
        {"unit_kind": "instance", "unit_id": ids, "attribute": "role",
         "value": ["gallery" if i in ("u1", "v1", "x1") else "probe" for i in ids]}
    )  # fmt: skip
    known = pl.concat([dataset.attributes, ATTRIBUTES.conform(role)])
    dataset = Dataset("made up", INFO, dataset.instances, known)
    found = {
        "u2": [("u1", 0.9)], "v2": [("v1", 0.9)], "x2": [("x1", 0.9)],
        "w1": [("u1", 0.8), ("v1", 0.7)], "w2": [("x1", 0.65)],      # a for a (once), a for b
        "y1": [("x1", 0.7), ("u1", 0.7)], "y2": [("x1", 0.5)],       # b for b and for a; none
        "z1": [("x1", 0.9)], "z2": [("u1", 0.59)],                   # b for b; none
    }  # fmt: skip
    rows = [(p, c, s) for p, entries in found.items() for c, s in entries]
    lists = pl.DataFrame(rows, schema=["instance_id", "other_id", "score"], orient="row")
    scores = isolux.score(
        "identification", dataset, lists.with_columns(model=pl.lit("m")), enrolled="role=gallery",
        threshold=0.6,
    )  # fmt: skip
    run = isolux.audit(scores, dataset, by="tone", min_units=1, min_clusters=1, replicates=100).run
    table = {
        (r["group"], r["gallery_group"]): (r["value"], r["searches"], r["enrolled"])
        for r in cross_group_false_positive_rates(run).to_dicts()
    }
    assert table == {
        ("a", "a"): (0.5, 2, 2), ("a", "b"): (0.5, 2, 1),
        ("b", "a"): (0.25, 4, 2), ("b", "b"): (0.5, 4, 1),
    }  # fmt: skip
    # Of whom no one is enrolled no one can be returned: no rate of 0.
    nowhere = dataset.attributes.with_columns(
        value=pl.when(pl.col("unit_id").is_in(["z1", "z2"]), attribute="tone")
        .then(pl.lit("c")).otherwise("value")
    )  # fmt: skip
    third = Dataset("made up", INFO, dataset.instances, nowhere)
    run_c = isolux.audit(scores, third, by="tone", min_units=1, min_clusters=1, replicates=100).run
    of_c = cross_group_false_positive_rates(run_c).filter(gallery_group="c")
    assert of_c["enrolled"].to_list() == [0, 0, 0]
    assert of_c["value"].null_count() == of_c["low"].null_count() == 3
    assert set(of_c["reason"]) == {"nobody of this group is enrolled"}
    gallery = count_gallery_by_group(run).select("group", "images", "people", "share").rows()
    assert gallery == [("overall", 3, 3, 1.0), ("a", 2, 2, 2 / 3), ("b", 1, 1, 1 / 3)]
    both = performance(run).filter(group="overall").row(0, named=True)
    assert both["fpir"] == pytest.approx(4 / 6)  # w1, w2, y1, z1 of six
    assert both["threshold"] == 0.6


def test_matrices_of_another_task_are_refused():
    with pytest.raises(SpecError, match="nothing says who is in the gallery"):
        count_gallery_by_group(of_cells(THREE))
    with pytest.raises(SpecError, match="nothing says who is in the gallery"):
        cross_group_false_positive_rates(of_cells(THREE))


def test_ages_are_laid_out_by_group_with_their_units():
    rng = np.random.default_rng(5)
    n = 400
    age = rng.integers(14, 40, n)
    ids = [f"p{i:03}" for i in range(n)]
    rows = [
        {"unit_kind": "instance", "unit_id": i, "attribute": name, "value": value}
        for i, years, k in zip(ids, age, range(n), strict=True)
        for name, value in (("age", str(years)), ("tone", "ab"[k % 2]))
    ]
    people = pl.DataFrame({"instance_id": ids, "image_id": ids})
    dataset = Dataset(
        "made up", INFO, INSTANCES.conform(people), ATTRIBUTES.conform(pl.DataFrame(rows))
    )
    said = pl.DataFrame({"model": "m", "instance_id": ids, "value": age + rng.normal(0, 4, n)})
    scores = isolux.score("age_estimation", dataset, said, age_mix=["18-30"])
    found = build_age_performance_table(
        isolux.audit(scores, dataset, by="tone", replicates=100).run
    )
    assert found["group"].unique(maintain_order=True).to_list() == ["overall", "a", "b"]
    first = found.filter(group="overall").select("metric", "at", "unit").rows()
    assert first == [
        ("mean_absolute_error", None, "years"), ("standardised_absolute_error", None, "years"),
        ("bias", None, "years"), ("share_within", 5.0, "fraction"),
        ("challenge_false_positive_rate", 25.0, "fraction"),
        ("challenge_false_negative_rate", 25.0, "fraction"),
    ]  # fmt: skip
    error = np.abs(said["value"].to_numpy() - age)
    of_years = [error[age == y].mean() for y in range(18, 31)]
    mixed = found.filter(group="overall", metric="standardised_absolute_error").row(0, named=True)
    assert mixed["value"] == pytest.approx(np.mean(of_years))
    assert mixed["mix"] == "at ages 18-30, each year of age alike"
    with pytest.raises(SpecError, match="has no errors of age"):
        build_age_performance_table(of_cells(THREE))


def test_a_group_of_too_few_clusters_is_in_no_differential():
    """It keeps a value that no one may compare: the largest is c's .04, not d's .4."""
    few = [(FMR, "d", 0.4, "insufficient clusters", "6 clusters of the 10 needed"),
           (FNMR, "d", 0.4, "insufficient clusters", "6 clusters of the 10 needed")]  # fmt: skip
    row = (
        summarise_error_differentials(of_cells([*THREE, *few])).filter(rate=FMR).row(0, named=True)
    )
    assert (row["groups"], row["highest_group"], row["highest"]) == (3, "c", 0.04)
    assert "without d, too few to judge" in row["said"]
