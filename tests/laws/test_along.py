"""A score along a number: nothing found where nothing is, and what was planted where it is."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from isolux.analyses.trends import explain
from tests.laws._discovery import PHOTOS, a_run
from tests.laws._figures import FULL, at_least, at_most, record, scaled, sized

pytestmark = pytest.mark.law

SLOPE = 1.0  # of the logit of a rate of about .8, for each unit of the photo's light


def drawn(rng, subjects, slope):
    """Draw light, rate and score of photos; dark subjects' photos are darker: arrays ``[n]``."""
    subject = np.repeat(np.arange(subjects), PHOTOS)
    n = len(subject)
    dark = rng.choice(["dark", "light"], subjects)[subject] == "dark"
    light = rng.normal(0, 1, n) - 0.5 * dark
    luck = rng.normal(0, 1, subjects)[subject]
    rate = expit(1.4 + luck + slope * light)
    return subject, dark, light, rate, (rng.random(n) < rate).astype(float)


def a_world(rng, subjects, *, slope, replicates):
    """Draw light and size of photos, and age of subjects, and a run of them."""
    subject, dark, light, _, value = drawn(rng, subjects, slope)
    who = {
        "tone": np.where(dark, "dark", "light"),
        "light": light.astype(str),
        "size": rng.random(len(subject)).astype(str),
        "age": rng.integers(18, 80, subjects)[subject].astype(str),
    }
    return a_run(subject, who, value, replicates=replicates)


def test_a_false_finding_is_rare_over_the_family():
    worlds, replicates = scaled(500, 24), sized(999, 199)
    false = 0
    for number in range(worlds):
        run = a_world(np.random.default_rng([81, number]), 100, slope=0.0, replicates=replicates)
        found = explain(run, attribute=["light", "size", "age"], by=()).findings
        false += bool((found["p_adjusted"].fill_null(1.0) <= 0.05).any())
    row = {"attributes": 3, "subjects": 100, "a difference found, %": false / worlds}
    record("along-null", [row], worlds=worlds, replicates=replicates)
    assert row["a difference found, %"] <= at_most(0.05, worlds, full=0.079), row  # three errors


def test_the_interval_holds_the_planted_difference():
    worlds, replicates = scaled(500, 24), sized(999, 199)
    edges = "edges:-1,0,1"
    _, _, light, rate, _ = drawn(np.random.default_rng(82), 100_000, SLOPE)
    injected = rate[light < -1].mean() - rate[light >= 1].mean()
    covered, found_it, effects = 0, 0, []
    for number in range(worlds):
        run = a_world(np.random.default_rng([83, number]), 100, slope=SLOPE, replicates=replicates)
        finding = explain(run, attribute=["light"], bins={"light": edges}).findings
        row = finding.row(0, named=True)
        covered += row["low"] <= injected <= row["high"]
        found_it += row["p_adjusted"] <= 0.05
        effects.append(row["effect"])
    said = {
        "planted": float(injected), "mean found": float(np.mean(effects)),
        "interval holds it, %": covered / worlds, "difference found, %": found_it / worlds,
    }  # fmt: skip
    record("along-planted", [said], worlds=worlds, replicates=replicates)
    assert said["mean found"] == pytest.approx(injected, abs=0.02 if FULL else 0.04), said
    share = said["interval holds it, %"]
    assert at_least(0.95, worlds, full=0.92) <= share <= (0.98 if FULL else 1.0), said
    assert said["difference found, %"] > (0.95 if FULL else 0.9), said
