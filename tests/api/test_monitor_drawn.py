"""Watching samples with weights: which clusters are kept, what is said, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.api.monitor import monitor
from isolux.api.monitor.snapshots import read_snapshots, thin_clusters_by_weight
from isolux.core.errors import SpecError


def day(number, *, n=240, **settings):
    """Audit a day on which a rare heavy half and a common light half of a are unlike.

    Of a those who stand for 3 are right at .9 and those who stand for 1 at .5: .8 by weight, .7 by
    head. All of b are right at .8.
    """
    rng = np.random.default_rng([3, number])
    ids = [f"{number}-{i}" for i in range(n)]
    tone, weight = np.array(["a", "b"] * (n // 2)), np.array([3.0, 3.0, 1.0, 1.0] * (n // 4))
    rate = np.where(tone == "b", 0.8, np.where(weight == 3.0, 0.9, 0.5))
    scores = pl.DataFrame({"unit_id": ids, "value": (rng.random(n) < rate).astype(float)})
    of = {"pair": 2, "odd": 3}.get(str(settings.get("cluster", "")).partition(",")[0])
    if of:
        scores = scores.with_columns(
            cluster_id=pl.Series([f"{number}-{i // of}" for i in range(n)])
        )
    people = pl.DataFrame({
        "unit_id": ids, "tone": tone, "weight": weight, "half": (weight > 1).astype(str),
        "other": [f"{number}-{i // 4}" for i in range(n)],
    })  # fmt: skip
    said = {"replicates": 100, "min_units": 5, "weight": "weight"} | settings
    run = isolux.audit(scores, people, by="tone", **said).run
    return replace(run, record={**run.record, "created": f"2026-03-{number + 1:02}T09:00:00"})


@pytest.fixture(scope="module")
def runs():
    return [day(d) for d in range(20)]


def test_those_who_are_kept_stand_for_the_population(runs):
    looks, (note,) = thin_clusters_by_weight(read_snapshots(runs), None, 0)
    weights = np.concatenate([
        look.run.scores.join(look.run.evidence["sample"], on="unit_id")["weight"].to_numpy()
        for look in looks
    ])  # fmt: skip
    assert (weights == 3.0).sum() == 20 * 120  # the heaviest all stay
    assert (weights == 1.0).sum() == pytest.approx(20 * 40, abs=4 * (20 * 120 * 2 / 9) ** 0.5)
    assert note.startswith("weighted: each cluster is kept with a chance of its weight over the he")
    assert f"{len(weights):,} of 4,800 clusters are" in note


def test_a_gap_that_weights_close_raises_no_alarm(runs):
    seen = monitor(runs)
    assert seen.summary["alarm_at"].to_list() == [None]
    assert seen.findings[0].startswith("Weighted score for a (tone): no gap to b is shown")
    assert seen.record["sample"] == {"weight": "weight", "max_weight": None}
    heads = monitor([day(d, weight=None) for d in range(20)])
    assert heads.summary["alarm_at"][0] is not None
    assert heads.findings[0].startswith("Score for a")


def test_what_is_said_of_a_look_is_not_changed_by_later_ones(runs):
    early, late = monitor(runs[:5]).table, monitor(runs[:9]).table.filter(pl.col("look") <= 5)
    assert early["e_value"].to_list() == pytest.approx(late["e_value"].to_list())
    turned = [replace(run, scores=run.scores.reverse()) for run in runs[:5]]
    assert monitor(turned).table["e_value"].to_list() == pytest.approx(early["e_value"].to_list())


def test_a_population_takes_the_place_of_weights():
    shares = {"half": {"True": 0.75, "False": 0.25}}
    seen = monitor([day(d, weight=None, population=shares) for d in range(20)])
    assert seen.summary["alarm_at"].to_list() == [None]
    assert seen.notes[0].startswith("weighted: each cluster is kept with a chance of its weight")


def test_strata_alone_keep_everyone():
    seen = monitor([day(d, weight=None, strata="half") for d in range(2)])
    assert seen.table["n_clusters"].to_list() == [120, 120]
    assert "sample" in seen.record


def test_weights_that_no_chance_can_be_made_of_are_refused(runs):
    heavy = day(3)
    sample = heavy.evidence["sample"].with_columns(pl.col("weight") * 2)
    heavy = replace(heavy, evidence={**heavy.evidence, "sample": sample})
    with pytest.raises(SpecError, match=r"(?s)weighs more than the heaviest.*at most 3, the larg"):
        monitor([runs[0], heavy])
    assert monitor([runs[0], heavy], max_weight=6).table.height == 2
    with pytest.raises(SpecError, match=r"(?s)weighs more.*at most 2, --max-weight.*found: 3"):
        monitor(runs[:2], max_weight=2)
    with pytest.raises(SpecError, match="the weight cannot be used"):
        monitor(runs[:2], max_weight=0.0)
    with pytest.raises(SpecError, match="these runs have no weights"):
        monitor([day(d, weight=None) for d in range(2)], max_weight=3)


def test_weights_that_differ_within_a_cluster_are_refused():
    assert monitor([day(d, cluster="pair") for d in range(2)]).table.height == 2
    with pytest.raises(SpecError, match=r"(?s)weights differ within .* of 80 clusters.*1 and 3 in"):
        monitor([day(d, cluster="odd") for d in range(2)])


def test_samples_of_other_kinds_are_refused(runs):
    both = [day(d, cluster="pair,other") for d in range(2)]
    with pytest.raises(SpecError, match="two-way clusters cannot be monitored"):
        monitor(both)
    with pytest.raises(SpecError, match=r"differ in the setting 'sample.weight'"):
        monitor([runs[0], day(1, weight=None)])
    shares = {"half": {"True": 0.75, "False": 0.25}}
    with pytest.raises(SpecError, match=r"(?s)no largest value known.*--population with"):
        monitor([day(d, population=shares) for d in range(2)])
