"""Runs as looks: alarms, who is compared with whom, what is written, and what is refused."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import isolux
from isolux.api.monitor import monitor
from isolux.api.monitor.gaps import build_gaps
from isolux.api.monitor.snapshots import read_snapshots
from isolux.core.errors import SpecError, UnknownNameError


def day(number, *, b=0.9, n=200, seed=0, offset=None, **settings):
    """Audit a day of people of tones a, b, c; those of b are right at rate ``b``."""
    rng = np.random.default_rng([seed, number])
    ids = [f"{number if offset is None else offset}-{i}" for i in range(n)]
    tone = np.array(["a", "b", "c", "a"] * (n // 4))
    right = rng.random(n) < np.where(tone == "b", b, 0.9)
    scores = pl.DataFrame({"unit_id": ids, "value": right.astype(float)})
    people = pl.DataFrame({"unit_id": ids, "tone": tone})
    run = isolux.audit(
        scores, people, by="tone", **{"replicates": 100, "min_units": 5} | settings
    ).run
    return replace(run, record={**run.record, "created": f"2026-03-{number + 1:02}T09:00:00"})


@pytest.fixture(scope="module")
def runs():
    return [day(d, b=0.9 if d < 6 else 0.6) for d in range(12)]


def test_a_gap_that_begins_is_found_and_dated(runs):
    seen = monitor(runs)
    first = seen.summary.filter(group="b").row(0, named=True)
    assert 7 <= first["alarm_at"] <= 9
    assert first["began_from"] <= 7 <= first["began_to"]
    assert first["is_open"]
    assert first["low"] < -0.3 + 0.05 < first["high"] + 0.2
    assert first["p_adjusted"] < 0.05
    assert seen.findings[0].startswith("Score for b (tone) differs from that for the others: alarm")
    assert "It has changed: no single gap fits all looks, which is known since" in seen.findings[0]
    assert not any("mixture" in text for text in seen.findings)
    quiet = seen.summary.filter(group="c").row(0, named=True)
    assert quiet["alarm_at"] is None
    assert (quiet["began_from"], quiet["low"], quiet["is_open"]) == (None, None, None)
    (claim,) = (text for text in seen.findings if "for c (tone)" in text)
    assert "no gap to the others is shown in 12 looks" in claim
    assert "an alarm needs 60.0" in claim  # 3 gaps at .05
    # Before it began nothing was said, and what was said then still holds.
    assert monitor(runs[:6]).summary["alarm_at"].to_list() == [None, None, None]
    early = monitor(runs[:6]).table.select("group", "look", "e_value")
    late = seen.table.filter(pl.col("look") <= 6).select("group", "look", "e_value")
    assert_frame_equal(early, late, check_row_order=False)


def test_a_look_is_the_difference_of_cluster_means_by_hand():
    """Subjects s0 (a, photos 1 1 0), s1 (a: 0), s2 (b: 1), s3 (b: 0 0), s4 has one of each: 1, 0.

    Within s4: 1 − 0. The others: mean of (2/3, 0) less mean of (1, 0): −1/6 over two pairs.
    """
    rows = [("s0", "a", 1.0), ("s0", "a", 1.0), ("s0", "a", 0.0), ("s1", "a", 0.0),
            ("s2", "b", 1.0), ("s3", "b", 0.0), ("s3", "b", 0.0), ("s4", "a", 1.0),
            ("s4", "b", 0.0)]  # fmt: skip
    made = []
    for d in range(2):
        ids = [f"{d}-{i}" for i in range(len(rows))]
        scores = pl.DataFrame({"unit_id": ids, "value": [r[2] for r in rows],
                               "cluster_id": [f"{d}{r[0]}" for r in rows]})  # fmt: skip
        people = pl.DataFrame({"unit_id": ids, "tone": [r[1] for r in rows]})
        made.append(isolux.audit(scores, people, by="tone", replicates=100).run)
    (gap,), _ = build_gaps(read_snapshots(made), None, 0)
    assert gap.sizes == [(3, 3), (3, 3)]
    assert len(gap.difference) == 6
    assert gap.mean_difference(0) == pytest.approx((1 - 1 / 3) / 3)
    assert (gap.identity["group"], gap.complement_name) == ("a", "b")


def test_a_metric_from_below_0_is_watched_on_the_scale_from_its_least_to_its_largest():
    """Scores from −1 to 1, tone b .5 lower: .25 of the range, as if it had been .25 of 0 to 1."""
    measure = {"unit": "fraction", "direction": "higher", "title": "Liking", "low": -1.0}
    gaps = []
    for factor, shift, low in ((1.0, 0.0, 0.0), (2.0, -1.0, -1.0)):
        told = {"score": {**measure, "low": low, "high": 1.0}}
        made = []
        for number in range(3):
            one = day(number, b=0.6)
            scores = one.scores.with_columns(value=factor * pl.col("value") + shift)
            made.append(replace(one, scores=scores, record={**one.record, "measures": told}))
        gaps.append([gap.difference for gap in build_gaps(read_snapshots(made), None, 0)[0]])
    for plain, wide in zip(*gaps, strict=True):
        np.testing.assert_allclose(wide, plain)


def test_who_has_nobody_in_a_look_is_said(runs):
    fewer = replace(runs[1], scores=runs[1].scores.filter(pl.col("unit_id").str.len_chars() < 4))
    no_b = fewer.attributes.filter(value="b")["unit_id"].to_list()
    fewer = replace(fewer, scores=fewer.scores.filter(~pl.col("unit_id").is_in(no_b)))
    seen = monitor([runs[0], fewer, runs[2]])
    assert any("b (tone) has nobody to compare in 1 of 3 looks" in note for note in seen.notes)
    row = seen.table.filter(group="b", look=2).row(0, named=True)
    assert (row["gap"], row["n_clusters"]) == (None, 0)


def test_what_is_written(runs, tmp_path):
    page = monitor(runs[:3]).report(tmp_path / "seen")
    text = page.read_text()
    assert "<svg" in text
    assert "Gaps over time" in text
    assert "http" not in text.partition("<body>")[2].replace("http://www.w3.org", "")
    told = json.loads((tmp_path / "seen" / "monitor.json").read_text())
    assert told["gaps_watched"] == 3
    assert told["runs"][0]["at"] == "2026-03-01T09:00:00"
    table = pl.read_parquet(tmp_path / "seen" / "monitor.parquet")
    assert table.height == 9
    assert table["e_value"].min() > 0


def test_people_seen_again(runs):
    again = day(3, offset=0)
    with pytest.raises(SpecError, match=r"(?s)people are in two runs.*200 of run 1 again in run 2"):
        monitor([runs[0], again])
    first = monitor([runs[0], again, runs[4]], repeated_people="first")
    assert any("200 clusters that an earlier run had already" in note for note in first.notes)
    assert first.table.filter(group="b")["n_clusters"].to_list() == [50, 0, 50]
    both = monitor([runs[0], again], repeated_people="different")
    assert both.table.filter(group="b")["n_clusters"].to_list() == [50, 50]
    assert any("cannot be told" in note for note in both.notes)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda runs: runs[:1], "nothing to watch"),
        (lambda runs: [runs[1], runs[0]], r"out of order.*run 2 after run 1.*2026-03-02"),
        (
            lambda runs: [cut_at_quantiles(run) for run in runs[:2]],
            r"quantiles, or are the commonest, are others in every",
        ),
        (lambda runs: [runs[0], day(1, unknown="drop")], r"differ in the setting 'groups.unknown'"),
        (lambda runs: [runs[0], renamed(runs[1], "other")], r"of different models.*'other'"),
    ],
)
def test_runs_that_cannot_stand_in_one_row(change, text, runs):
    with pytest.raises(SpecError, match=f"(?s){text}"):
        monitor(change(runs))


def cut_at_quantiles(run):
    spec = {**run.record["spec"], "bins": ["tone=quantile:4"]}
    return replace(run, record={**run.record, "spec": spec})


def renamed(run, model):
    return replace(run, record={**run.record, "model": model})


def test_metrics_and_times_that_are_refused(runs):
    with pytest.raises(UnknownNameError, match="'recall'"):
        monitor(runs[:2], metric="recall")
    with pytest.raises(SpecError, match=r"(?s)not every run has a time.*found: 1"):
        monitor(runs[:2], timestamp=["2026-03-01"])
    with pytest.raises(SpecError, match=r"(?s)run 2 has no time.*found: 'yesterday'"):
        monitor(runs[:2], timestamp=["2026-03-01", "yesterday"])
    with pytest.raises(SpecError, match="out of order"):
        monitor(runs[:2], timestamp=["2026-03-02", "2026-03-01"])
    late, early = "2026-03-01T23:00+00:00", "2026-03-02T00:30+02:00"  # which is 22:30 in UTC
    with pytest.raises(SpecError, match=r"(?s)out of order.*T23:00:00, then 2026-03-01T22:30:00"):
        monitor(runs[:2], timestamp=[late, early])
    assert (
        monitor(runs[:2], timestamp=[early, late]).record["runs"][0]["at"] == "2026-03-01T22:30:00"
    )
    with pytest.raises(SpecError, match=r"(?s)with and without an offset.*an offset in each"):
        monitor(runs[:2], timestamp=["2026-03-01", early])
    with pytest.raises(SpecError, match="the level cannot be used"):
        monitor(runs[:2], level=1.0)
    open_ended = {"score": {"title": "Score", "unit": "cm", "direction": "lower"}}
    other = replace(runs[0], record={**runs[0].record, "measures": open_ended})
    with pytest.raises(SpecError, match="no metric of the runs can be watched"):
        monitor([other, runs[1]])


def test_a_gap_within_some_clusters_and_between_others_is_called_a_mixture():
    # Of 20 photos a look, 10 hold both tones and give a difference each, 10 hold one and give 5.
    photo = [*np.repeat(np.arange(10), 2), *range(10, 20)]
    tone = ["a", "b"] * 10 + ["a"] * 5 + ["b"] * 5
    runs = []
    for day_ in range(4):
        ids = [f"{day_}-{k}" for k in range(30)]
        scores = pl.DataFrame(
            {"unit_id": ids, "cluster_id": [f"{day_}-{p}" for p in photo], "value": [1.0, 0.0] * 15}
        )
        people = pl.DataFrame({"unit_id": ids, "tone": tone})
        run = isolux.audit(
            scores, people, by="tone", replicates=100, min_units=5, min_clusters=5
        ).run
        made = {**run.record, "created": f"2026-03-{day_ + 1:02}T09:00:00"}
        runs.append(replace(run, record=made))
    [claim] = monitor(runs).findings
    assert "it is a mixture. 40 of 60 differences are within clusters" in claim


def test_a_gap_that_closed_is_said_to_be_over():
    """A size "since look 1" would be of a gap that is known not to have stayed the same."""
    rng, runs = np.random.default_rng(0), []
    for look in range(16):
        ids = [f"{look}-{i}" for i in range(200)]
        tone = np.array(["a", "b"] * 100)
        right = rng.random(200) < np.where((tone == "a") & (look < 5), 0.6, 0.9)
        scores = pl.DataFrame({"unit_id": ids, "value": right.astype(float)})
        people = pl.DataFrame({"unit_id": ids, "tone": tone})
        runs.append(isolux.audit(scores, people, by="tone", replicates=100))
    seen = monitor(runs)
    row = seen.summary.row(0, named=True)
    assert row["alarm_at"] == 1
    assert row["changed_at"] is not None
    assert row["began_from"] == row["began_to"] == 1
    assert row["is_open"] is False
    assert row["now_low"] < 0 < row["now_high"]
    assert row["low"] is row["high"] is None
    assert row["now_looks"] == 1
    assert (
        "; it began at look 1; in the last look it is not there any more: a less b is from"
        in (seen.findings[0])
    )
    assert "for a (tone) has differed from that for b: alarm at look 1" in seen.findings[0]
    # No gap that was the same at all looks is left once it is known that it changed.
    known = row["changed_at"] - 1
    assert seen.table["low"].is_null().arg_true().to_list() == list(range(known, 16))
    assert row["constant_low"] is row["constant_high"] is None
