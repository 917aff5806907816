"""Analyses of a run whose people stand for a population: what reads weights, and what refuses."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.analyses._survey_sample import FIXED_WEIGHTS_NOTE
from isolux.analyses.slices.search import build_survey_sample_of_half, is_in_held_out_clusters
from isolux.core.errors import SpecError
from isolux.stats.sampling import Strata

_READ = ("confounders", "rank_tests", "slices", "power")


def _people(n=900, seed=1, clusters=3):
    """Draw people of whom those in dim light are served worse, and dark ones are more often dim."""
    rng = np.random.default_rng(seed)
    tone = rng.choice(["dark", "light"], n)
    light = np.where(rng.random(n) < np.where(tone == "dark", 0.7, 0.3), "dim", "bright")
    right = rng.random(n) < np.where(light == "dim", 0.6, 0.9)
    place = np.arange(n) // clusters
    return pl.DataFrame(
        {"unit_id": [f"i{k}" for k in range(n)], "value": right.astype(float),
         "score": right * 0.5 + rng.integers(0, 5, n) / 10, "cluster_id": [f"c{c}" for c in place],
         "tone": tone, "light": light,
         "w": np.where(right & (tone == "dark"), 3.0, rng.choice([1.0, 2.0], n)),
         "part": [f"p{c % 3}" for c in place], "other": [f"o{k % 40}" for k in range(n)]}
    )  # fmt: skip


def _run(people, value="value", **settings):
    scores = people.select(
        "unit_id", "cluster_id", value=value, task=pl.lit("classification"),
        metric=pl.lit("accuracy"),
    )  # fmt: skip
    attributes = people.drop("cluster_id", "value", "score")
    return isolux.audit(scores, attributes, by="tone", replicates=200, **settings).run


def _explained(run, name, *options):
    return isolux.explain(run, analysis=[name], analysis_option=options).run


def _mixed(run):
    """Return the row of the gap at an equal mix of light."""
    options = ("confounders.explanatory=light", "confounders.min_cell=5")
    drawn = _explained(run, "confounders", *options).record["explained"]["confounders"]
    table = next(t for name, t in drawn.items() if name.startswith("Gaps at an equal mix"))
    return dict(zip(table["columns"], table["rows"][0], strict=True))


@pytest.mark.parametrize("name", _READ)
def test_equal_weights_say_what_no_weights_say(name):
    people = _people().with_columns(w=pl.lit(7.0))
    plain, weighted = _run(people), _run(people, weight="w")
    options = ("confounders.explanatory=light",) if name == "confounders" else ()
    found = [_explained(run, name, *options).findings for run in (plain, weighted)]
    own = [f.filter(pl.col("analysis") == name).sort("metric", "group_a", "n") for f in found]
    assert own[0].height == own[1].height > 0
    assert own[1]["effect"].to_list() == pytest.approx(own[0]["effect"].to_list(), nan_ok=True)
    assert own[1]["n"].to_list() == own[0]["n"].to_list()


def test_a_gap_at_an_equal_mix_is_of_those_for_whom_people_stand():
    people = _people()
    found = _mixed(_run(people, weight="w"))
    # By hand: each group's weighted rate at both values, weighted by everyone's weight there.
    mass = people.group_by("light").agg(pl.col("w").sum())
    rate = people.group_by("tone", "light").agg(
        rate=(pl.col("w") * pl.col("value")).sum() / pl.col("w").sum()
    )
    level = rate.join(mass, on="light").group_by("tone").agg(
        (pl.col("w") * pl.col("rate")).sum() / pl.col("w").sum()
    )  # fmt: skip
    at = dict(level.iter_rows())
    gap = at[found["group"]] - at[found["other group"]]
    assert found["gap"] == pytest.approx(gap, abs=2e-6)
    plain = _mixed(_run(people))
    assert plain["gap"] != pytest.approx(gap, abs=1e-3)
    assert found["gap_low"] < gap < found["gap_high"]


def test_the_regression_of_a_sample_is_that_of_its_copies():
    """Whole-number weights are copies of a person, in the same cluster."""
    people = _people()
    copies = people.select(pl.all().repeat_by("w").explode()).with_columns(
        unit_id=pl.format("i{}", pl.int_range(pl.len()))
    )
    weighted, plain = _mixed(_run(people, weight="w")), _mixed(_run(copies))
    assert weighted["regression"] == pytest.approx(plain["regression"], abs=1e-5)
    assert weighted["gap"] == pytest.approx(plain["gap"], abs=1e-5)
    # Of n - k only the number of rows differs.
    assert weighted["regression_low"] == pytest.approx(plain["regression_low"], abs=2e-3)


def test_ranks_of_a_sample_are_those_of_its_copies():
    people = _people()
    copies = people.select(pl.all().repeat_by("w").explode()).with_columns(
        unit_id=pl.format("i{}", pl.int_range(pl.len()))
    )
    told = []
    for run in (_run(people, "score", weight="w"), _run(copies, "score")):
        drawn = _explained(run, "rank_tests").record["explained"]["rank_tests"]
        table = next(iter(drawn.values()))
        told.append(dict(zip(table["columns"], table["rows"][0], strict=True)))
    for name in ("median worst", "median best", "worse, share of pairs", "D"):
        assert told[0][name] == pytest.approx(told[1][name]), name
    assert told[0]["n"] != told[1]["n"]
    assert told[0]["p clustered"] == pytest.approx(told[1]["p clustered"], rel=0.7)


def test_a_claim_says_that_it_is_weighted_and_a_population_is_told():
    people = _people()
    run = _run(people, weight="w", population={"part": {"p0": 0.5, "p1": 0.3, "p2": 0.2}})
    for name in ("confounders", "rank_tests", "slices"):
        options = ("confounders.explanatory=light",) if name == "confounders" else ()
        said = _explained(run, name, *options)
        own = said.findings.filter(pl.col("analysis") == name)
        assert "eighted" in own["claim"][0], own["claim"][0]
        assert f"{name}: {FIXED_WEIGHTS_NOTE}" in said.record["notes"]


def test_slices_are_not_described_by_how_people_were_drawn():
    run = _run(_people(), weight="w")
    told = _explained(run, "slices", "slices.max_slices=20").record
    assert "Slices are not described by w, which says how people were drawn." in told["notes"]
    assert "w:" not in str(told.get("explained", {}).get("slices"))


def test_each_stratum_is_parted_and_the_half_counts_its_own_clusters():
    cluster = np.repeat(np.arange(20), 2)
    strata = Strata(np.arange(20) % 2, np.array([10, 14]))
    second = is_in_held_out_clusters(cluster, 0.5, 3, strata)
    in_half = np.unique(cluster[second])
    assert np.bincount(in_half % 2).tolist() == [5, 5]
    held = pl.DataFrame(
        {"unit_id": [str(k) for k in range(40)], "stratum": [f"h{c % 2}" for c in cluster],
         "stratum_clusters": np.where(cluster % 2, 14, 10), "weight": 1.0, "base_weight": 1.0}
    )  # fmt: skip
    half = build_survey_sample_of_half(held, cluster, second)
    assert half.columns == ["unit_id", "stratum", "stratum_clusters", "weight"]
    # Four clusters of the second stratum had no one who was judged; two of them are of this half.
    assert sorted(half["stratum_clusters"].unique()) == [5, 7]


def test_strata_of_three_clusters_are_not_parted():
    people = _people().with_columns(
        part=pl.when(pl.int_range(pl.len()) < 9).then(pl.lit("few")).otherwise("part")
    )
    with pytest.raises(SpecError, match="1 strata have too few clusters to be parted"):
        _explained(_run(people, strata="part"), "slices")


@pytest.mark.parametrize("name", ["confounders", "rank_tests", "slices"])
def test_clusters_both_ways_are_refused_by_name(name):
    run = _run(_people(), cluster="part,other")
    with pytest.raises(SpecError, match=f"the analysis {name} knows clusters one way"):
        _explained(run, name, *(("confounders.explanatory=light",) if name[0] == "c" else ()))


def test_what_does_not_read_weights_names_what_does():
    run = _run(_people(), weight="w")
    with pytest.raises(SpecError, match="the analysis patterns takes no weights") as error:
        _explained(run, "patterns")
    assert "one that does (confounders, rank_tests, slices, power)" in str(error.value)
    refused = isolux.explain(run).refused
    assert set(_READ) & set(refused) <= {"confounders"}  # which lacks what may explain
    assert "patterns" in refused
