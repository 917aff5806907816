"""The bins of calibration errors as settings: in the task, in runs and in comparisons of models."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.core.errors import SpecError
from isolux.tasks.classification import score
from tests.tasks._people import answers, people

IDS = [f"p{i:03}" for i in range(400)]
RNG = np.random.default_rng(11)
SURE = dict(zip(IDS, RNG.beta(4, 2, 400).tolist(), strict=True))
TRUTH = {unit: "yes" if RNG.random() < SURE[unit] else "no" for unit in IDS}
GROUPS = np.array(["a", "b"])[RNG.integers(0, 2, 400)]
SAID = dict.fromkeys(IDS, "yes")


def by_equal_mass(sure, correct, bins):
    """Sort, cut into equally large parts, and average their gaps: equal mass read aloud."""
    parts = np.array_split(np.argsort(sure), bins)
    gaps = [abs(correct[p].mean() - sure[p].mean()) * len(p) for p in parts]
    return sum(gaps) / len(sure)


def test_bins_of_equal_mass_are_those_of_everyone_in_every_group():
    scores = score(people(TRUTH), answers(SAID, SURE), target="job",
                   metrics=["calibration_error"], calibration_bins=8,
                   calibration_binning="equal-mass")  # fmt: skip
    evidence = scores.evidence["classification"]
    statistic = scores.info.metric("calibration_error").statistic
    sure = np.array(list(SURE.values()))
    correct = np.array([label == "yes" for label in TRUTH.values()])
    # 400 people in 8 bins, 50 in each.
    assert statistic(evidence, np.ones(400)) == pytest.approx(by_equal_mass(sure, correct, 8))
    # A group's own gaps, in the bins of everyone.
    own = GROUPS == "a"
    edge_index = np.argsort(np.argsort(sure)) // 50
    gaps = [abs((correct - sure)[own & (edge_index == k)].sum()) for k in range(8)]
    assert statistic(evidence, own * 1.0) == pytest.approx(sum(gaps) / own.sum())
    assert scores.task_choices["calibration_bins"]["words"] == "over 8 bins of equal mass"


def test_each_model_has_its_own_bins_of_equal_mass():
    other = {unit: value / 2 for unit, value in SURE.items()}
    both = pl.concat([answers(SAID, SURE), answers(SAID, other, model="n")])
    evidence = score(people(TRUTH), both, target="job", metrics=["calibration_error"],
                     calibration_binning="equal-mass").evidence["classification"]  # fmt: skip
    bins = [evidence.filter(model=name)["confidence_bin"].to_list() for name in ("m", "n")]
    assert bins[0] == bins[1]
    assert max(bins[0]) == 14


def test_scores_alone_have_the_bins_that_are_set():
    alone = pl.DataFrame({"model": "m", "instance_id": IDS, "score": list(SURE.values())})
    scores = score(people(TRUTH), alone, target="job", metrics=["class_calibration_error"],
                   positive="yes", calibration_bins=3)  # fmt: skip
    bins = scores.evidence["classification"]["positive_score_bin"]
    assert bins.to_list() == [min(int(np.ceil(3 * s)) - 1, 2) for s in SURE.values()]


def test_bins_without_a_calibration_error_are_refused():
    with pytest.raises(SpecError, match=r"no calibration error is measured\n(.*\n)*.*10 bins"):
        score(people(TRUTH), answers(SAID, SURE), target="job", metrics=["accuracy"],
              calibration_bins=10)  # fmt: skip
