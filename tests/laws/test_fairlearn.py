"""fairlearn's own bootstrap on the same clustered worlds: it resamples photos, not subjects."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.stats.intervals import (
    Interval,
    logit_or_wilson_interval_at_level,
    mover_difference_interval,
)
from isolux_worlds.populations.rates import simulate_rates
from tests.laws._figures import record, scaled, sized
from tests.laws._worlds import bootstrap

pytestmark = pytest.mark.law
WORLDS, REPLICATES = scaled(100, 12), sized(100, 20)
SUBJECTS, PHOTOS = 30, 10


def _theirs(right: np.ndarray, group: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return their intervals of both rates, ``[2 ends, 2 groups]``, and of the difference."""
    from fairlearn.metrics import MetricFrame
    from sklearn.metrics import accuracy_score

    frame = MetricFrame(
        metrics=accuracy_score, y_true=np.ones_like(right), y_pred=right,
        sensitive_features=group, n_boot=REPLICATES, ci_quantiles=[0.025, 0.975],
        random_state=seed,
    )  # fmt: skip
    rates = np.stack([ends.to_numpy().astype(float) for ends in frame.by_group_ci])
    return rates, np.array(frame.difference_ci(), dtype=float)


def test_coverage_beside_fairlearns():
    rates = np.array([0.8, 0.8])
    made = simulate_rates(
        np.random.default_rng(11), groups=2, subjects_per_group=SUBJECTS, photos=PHOTOS,
        rates=rates.tolist(), icc=0.3, within_cluster=False, worlds=WORLDS,
    )  # fmt: skip
    drawn = bootstrap(made, shared=False, replicates=1000, seed=0)
    ends = logit_or_wilson_interval_at_level(
        drawn.value, drawn.se, drawn.clusters.astype(float), 0.95
    )
    one, two = (Interval(ends.low[:, k], ends.high[:, k]) for k in (0, 1))
    gap = mover_difference_interval(
        drawn.value[:, 0], one, drawn.value[:, 1], two, np.zeros(WORLDS)
    )
    theirs, their_gap = [], []
    group = np.repeat(["a", "b"], SUBJECTS * PHOTOS)
    for world in range(WORLDS):
        hits = made.successes[world].ravel()
        right = (np.arange(PHOTOS) < hits[:, None]).astype(int).ravel()
        (low, high), span = _theirs(right, group, world)
        theirs.append((low <= rates) & (rates <= high))
        their_gap.append(span[0] <= 0.0 <= span[1])
    found = {
        "ours, rates": float(((ends.low <= rates) & (rates <= ends.high)).mean()),
        "ours, difference": float(((gap.low <= 0) & (gap.high >= 0)).mean()),
        "fairlearn, rates": float(np.mean(theirs)),
        "fairlearn, difference": float(np.mean(their_gap)),
    }
    record("fairlearn", [found], worlds=WORLDS, replicates=REPLICATES)
    assert found["fairlearn, rates"] < 0.9
    assert found["fairlearn, difference"] < 0.5, "a range is never below 0"
    assert found["ours, rates"] > 0.88
