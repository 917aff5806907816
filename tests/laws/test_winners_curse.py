"""The gap that leads a report runs large; shrunken by its family it hardly does."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.stats.shrinkage import shrink_differences_empirical_bayes
from tests.laws._figures import record, scaled

pytestmark = pytest.mark.law

FOUND = 3.0  # the deviate that a finding needs in a family of some thirty tests
WORLDS = [
    *[(10, 3, 1, apart) for apart in (2.5, 3.7, 5.0)],  # power about .5, .9 and 1
    *[(3, 7, 1, apart) for apart in (2.5, 3.7)],
    (3, 3, 1, 3.7), (1, 2, 1, 3.7), (10, 3, 3, 3.7), (10, 3, 10, 3.7),
]  # fmt: skip


@pytest.mark.parametrize(("attributes", "groups", "differ", "apart"), WORLDS)
def test_the_leading_gap(attributes, groups, differ, apart):
    """One group of some attributes lies apart, by so many standard errors of a difference."""
    worlds = scaled(2000, 60)
    rng = np.random.default_rng([12, attributes, groups, differ, int(10 * apart)])
    first, second = np.triu_indices(groups, 1)
    true = np.zeros((attributes, groups))
    true[:differ, 0] = -apart * np.sqrt(2)
    gaps = (true[:, first] - true[:, second]).ravel()
    error = np.full(len(gaps), np.sqrt(2))
    rows = []
    for _ in range(worlds):
        drawn = true + rng.normal(0, 1, true.shape)
        seen = (drawn[:, first] - drawn[:, second]).ravel()
        at = int(np.argmax(np.abs(seen)))
        if abs(seen[at]) / error[at] >= FOUND:
            rows.append(
                (
                    abs(gaps[at]),
                    abs(seen[at]),
                    abs(shrink_differences_empirical_bayes(seen, error)[at]),
                )
            )
    truth, raw, less = np.array(rows).T
    row = {"attributes": attributes, "groups": groups, "attributes that differ": differ,
           "apart, standard errors": apart, "found, %": len(rows) / worlds,
           "as measured: too large by, %": raw.mean() / truth.mean() - 1,
           "shrunken: too large by, %": less.mean() / truth.mean() - 1,
           "as measured: error, standard errors": _error(raw, truth),
           "shrunken: error, standard errors": _error(less, truth)}  # fmt: skip
    record(f"curse-{attributes}-{groups}-{differ}-{apart:g}", [row], worlds=worlds, replicates=1)
    assert less.mean() < raw.mean(), row
    assert abs(less.mean() / truth.mean() - 1) < max(0.8 * (raw.mean() / truth.mean() - 1), 0.12), (
        row
    )


def _error(estimate, truth):
    return float(np.sqrt(np.mean((estimate - truth) ** 2)) / np.sqrt(2))
