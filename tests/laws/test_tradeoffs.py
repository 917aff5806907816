"""Abstaining where groups do not differ, and a group's threshold held by its interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtr, ndtri

from isolux.analyses.tradeoffs import explain, format_thresholds_caption
from tests.laws._discovery import a_run
from tests.laws._figures import FULL, at_least, at_most, record, scaled, sized

pytestmark = pytest.mark.law

PHOTOS, MEAN, SHIFT = 10, 0.8, 0.5


def with_evidence(run, value, **columns):
    own = {"truth": None, "prediction": None, "detected": None, "positive": "yes", "reason": None,
           "confidence": None, "positive_score": None, "is_positive": None, **columns}  # fmt: skip
    table = run.scores.select("model", "unit_id", "cluster_id").with_columns(
        correct=pl.Series(value > 0),
        **{k: pl.Series(v) if isinstance(v, np.ndarray) else pl.lit(v) for k, v in own.items()},
    )
    return replace(run, evidence={"classification": table})


def nothing_differs(rng, subjects, *, replicates):
    """Three attributes without effect; a photo's answer is the righter the surer it is."""
    subject = np.repeat(np.arange(subjects), PHOTOS)
    n = len(subject)
    who = {
        "tone": rng.choice(["light", "medium", "dark"], subjects)[subject],
        "age": rng.choice(["young", "middle", "old"], subjects)[subject],
        "light": rng.choice(["dim", "bright"], n),
    }
    luck = rng.normal(0, np.sqrt(0.3), subjects)[subject]
    sure = ndtr(luck + rng.normal(0, np.sqrt(0.7), n))
    luck = rng.normal(0, np.sqrt(0.3), subjects)[subject]
    value = (ndtr(luck + rng.normal(0, np.sqrt(0.7), n)) < 0.6 + 0.35 * sure).astype(float)
    run = a_run(subject, who, value, by=list(who), replicates=replicates)
    return with_evidence(run, value, confidence=sure)


def dark_scores_lower(rng, subjects, *, replicates):
    """Positives' scores are normal, those of dark people lower by ``SHIFT``."""
    subject = np.repeat(np.arange(subjects), PHOTOS)
    n = len(subject)
    tone = rng.choice(["dark", "light"], subjects)[subject]
    positive = rng.random(n) < 0.5
    score = rng.normal(0, np.sqrt(0.3), subjects)[subject] + rng.normal(0, np.sqrt(0.7), n)
    score += positive * (MEAN - SHIFT * (tone == "dark"))
    value = ((score >= 0) == positive).astype(float)
    run = a_run(subject, {"tone": tone}, value, replicates=replicates)
    return with_evidence(run, value, positive_score=score, is_positive=positive)


def test_abstaining_rarely_moves_a_gap_that_is_not_there():
    worlds, replicates = scaled(500, 40), sized(999, 199)
    false = 0
    for number in range(worlds):
        rng = np.random.default_rng([71, number])
        found = explain(nothing_differs(rng, 120, replicates=replicates)).findings
        false += bool((found["p_adjusted"].fill_null(1.0) <= 0.05).any())
    row = {"attributes": 3, "groups": 8, "a change found, %": false / worlds}
    record("tradeoffs-null", [row], worlds=worlds, replicates=replicates)
    assert row["a change found, %"] <= at_most(0.05, worlds, full=0.079), row


def test_a_groups_threshold_lies_in_its_interval():
    worlds, replicates = scaled(500, 30), sized(999, 199)
    target = (ndtr(MEAN) + ndtr(MEAN - SHIFT)) / 2
    injected = MEAN - SHIFT - ndtri(target)
    covered, met = 0, []
    for number in range(worlds):
        rng = np.random.default_rng([72, number])
        made = explain(dark_scores_lower(rng, 100, replicates=replicates), operating=0.0)
        row = made.tables[format_thresholds_caption(0.0)].filter(group="dark").row(0, named=True)
        covered += row["from"] <= injected <= row["to"]
        met.append(row["threshold"])
    said = {
        "planted threshold": float(injected), "mean found": float(np.mean(met)),
        "interval holds it, %": covered / worlds,
    }  # fmt: skip
    record("tradeoffs-threshold", [said], worlds=worlds, replicates=replicates)
    assert said["mean found"] == pytest.approx(injected, abs=0.03 if FULL else 0.05), said
    share = said["interval holds it, %"]
    assert at_least(0.95, worlds, full=0.915) <= share <= (0.98 if FULL else 1.0), said
