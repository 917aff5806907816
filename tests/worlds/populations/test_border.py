"""The border gate: what is injected is what its files hold, and what an audit of them finds."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

from isolux_worlds.populations.border import (
    CHALLENGE,
    Gate,
    build_gate_injected_effects,
    simulate_gate_people_and_candidates,
)
from tests.cli._run import isolux as run

LARGE = Gate(n_enrolled=20_000, n_not_enrolled=20_000)


@pytest.fixture(scope="module")
def drawn():
    return simulate_gate_people_and_candidates(LARGE)


def test_the_files_hold_what_is_injected(drawn):
    people, lists = drawn
    first = lists.unique("probe", keep="first", maintain_order=True).join(
        people.select(probe="id", subject="subject", skin_tone="skin_tone", age="age"), on="probe"
    )
    found = people.select(candidate="id", found="subject")
    first = first.join(found, on="candidate", how="left")
    enrolled = people.filter(pl.col("role") == "gallery")["subject"]
    mated = first.filter(pl.col("subject").is_in(enrolled.implode()))
    for k, tone in enumerate(("darker", "lighter")):
        own = mated.filter(skin_tone=tone)
        truth = (1 - LARGE.failure_rate[k]) * LARGE.hit_rate[k]
        hits = (own["found"] == own["subject"]).fill_null(value=False).to_numpy()
        assert hits.mean() == pytest.approx(truth, abs=4 * (truth * (1 - truth) / len(own)) ** 0.5)
        other = first.filter(~pl.col("subject").is_in(enrolled.implode()), skin_tone=tone)
        truth = (1 - LARGE.failure_rate[k]) * LARGE.false_positive_rate[k]
        returned = (other["score"] >= 0.5).fill_null(value=False).to_numpy()
        spread = (truth * (1 - truth) / len(other)) ** 0.5
        assert returned.mean() == pytest.approx(truth, abs=4 * spread)


def test_minors_pass_as_often_as_is_injected(drawn):
    people, _ = drawn
    truths = build_gate_injected_effects(LARGE)["models"]["estimator"]["groups"]
    for truth in truths:
        minors = people.filter(pl.col("age") < 18, skin_tone=truth["values"][0])
        share = float((minors["estimate"] >= CHALLENGE).to_numpy().mean())
        spread = (truth["value"] * (1 - truth["value"]) / minors.height) ** 0.5
        assert share == pytest.approx(truth["value"], abs=4 * spread)


def test_the_demonstration_finds_what_was_injected(tmp_path, monkeypatch, capsys):
    done = run(monkeypatch, capsys, "demo", "--gate", "--out", tmp_path / "gate", "--seed", 3)
    assert done.code == 0
    truths = json.loads((tmp_path / "gate" / "data" / "injected.json").read_text())
    inside = []
    for task, model in (("identification", "engine"), ("age_estimation", "estimator")):
        found = pl.read_parquet(tmp_path / "gate" / task / "group_metrics.parquet")
        about = truths["tasks"][task]
        rows = found.filter(metric=about["metric"], threshold=about["threshold"])
        for truth in truths["models"][model]["groups"]:
            low, high = rows.filter(group=truth["values"][0]).select("low", "high").row(0)
            inside.append(low <= truth["value"] <= high)
        report = (tmp_path / "gate" / task / "report.html").read_text()
        assert "synthetic" in report
    assert np.mean(inside) >= 0.75  # four intervals of 95 %
    assert "hit rate at rank 1 is" in " ".join(done.out.split())
    leader = pl.read_parquet(tmp_path / "gate" / "identification" / "findings.parquet").row(
        0, named=True
    )
    assert leader["group_a"] == "darker"
    findings = pl.read_parquet(tmp_path / "gate" / "identification" / "findings.parquet")
    assert findings.filter(metric="failure_to_acquire_rate")["group_a"][0] == "darker"
