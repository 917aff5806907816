"""Distances, thresholds in percent, and files without failed comparisons."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from isolux.plausibility import AuditInputs, pair_scores
from tests.plausibility._inputs import make_dataset, make_inputs


def verify(scores: list[float | None], *, model: str = "m", **options: object) -> AuditInputs:
    """Pairs of one person and of two, in turn."""
    n = len(scores)
    ids = [f"p{i}" for i in range(2 * n)]
    # Pairs 0, 2, … are of one person, pairs 1, 3, … of two.
    subjects = [f"s{i // 2}" if i % 4 < 2 else f"t{i}" for i in range(2 * n)]
    dataset = make_dataset({"race": ["A", "A", "B", "B"] * (n // 2)}, {"subject_id": subjects})
    pairs = pl.DataFrame(
        {"model": model, "instance_id": ids[::2], "other_id": ids[1::2], "score": scores}
    )  # fmt: skip
    return make_inputs("face_verification", dataset, pairs, **options)


RNG = np.random.default_rng(1)
SIMILARITY = RNG.normal([0.6, 0.1] * 100, 0.12).tolist()
PERCENT = [100 * s for s in SIMILARITY]


def build_broken_inputs() -> AuditInputs:
    return verify(PERCENT, threshold=0.35)


def test_a_threshold_of_a_fraction_on_percent() -> None:
    (caution,) = pair_scores.check(build_broken_inputs())
    assert caution.startswith("The threshold of 0.35 is right about ")
    assert ", and 35 about 9" in caution


def test_a_threshold_in_percent_of_distances() -> None:
    """Distances of 0.4 and 0.9, times 100: nobody is nearer than 0.65 but a copy."""
    distances = [100 * (1 - s) for s in SIMILARITY[:-1]] + [0.1]
    (caution,) = pair_scores.check(verify(distances, threshold=0.65, lower_score_means="same"))
    assert ", and 65 about 9" in caution


@pytest.mark.parametrize("threshold", [0.2, 0.35, 0.55])
def test_thresholds_that_people_choose(threshold) -> None:
    assert pair_scores.check(verify(SIMILARITY, threshold=threshold)) == []


@pytest.mark.parametrize("model", ["dist", "cosine_distance", "Distance 2"])
def test_few_pairs_by_distance(model) -> None:
    (caution,) = pair_scores.check(verify([0.2, 0.9] * 5, model=model))
    assert caution.endswith("(lower_score_means='same') reads a smaller one so.")
    assert not pair_scores.check(verify([0.2, 0.9] * 5, model=model, lower_score_means="same"))
    assert not pair_scores.check(verify([0.9, 0.2] * 5, model=model))
    assert not pair_scores.check(verify([0.2, 0.9] * 5, model="distinct_faces"))


def test_no_failure_is_listed() -> None:
    metrics = ["failure_rate"]
    (caution,) = pair_scores.check(verify(SIMILARITY, threshold=0.4, metrics=metrics))
    assert caution.startswith("No comparison failed, so the failure rate is 0 for everyone.")
    failed = [None, *SIMILARITY[1:]]
    assert not pair_scores.check(verify(failed, threshold=0.4, metrics=metrics))
