"""The design effect of a share's interval where few clusters hold the rarer answer."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from isolux.stats.clustered_proportions import ClusterMeans

Z = 1.959963984540054


def _group(held, *, effect=4.5, clusters=300, size=8.0, share=0.99):
    """A group whose own clusters speak for a design effect, and everyone's for none."""
    one, units = np.ones(1), clusters * size
    variance = effect * share * (1.0 - share) / (units - 1.0)
    return ClusterMeans(
        share * one, units * one, variance * one, (clusters - 1.0) * one, size * one,
        held * one, 0.0,
    )  # fmt: skip


@pytest.mark.parametrize("held", [4, 5, 20])
def test_what_clusters_add_is_as_sure_as_those_with_the_rarer_answer(held):
    """k = 5: 1 + 3.5 (2.1314 / 1.9609)^2 = 5.135, so 2,400 rows are worth 467.4; of 20, 4.67."""
    ratio = stats.t.ppf(0.975, 3 * held) / stats.t.ppf(0.975, 2399)
    expected = 1.0 + 3.5 * ratio**2
    group = _group(held)
    assert group.design_effect(Z).item() == pytest.approx(expected, rel=1e-6)
    if held == 5:
        assert expected == pytest.approx(5.135, abs=5e-4)
        ends = group.score_interval(Z)
        # 463 of 467 are .9914, about as large; four or five errors: the high end is mostly exact.
        by_hand = stats.binomtest(463, 467)
        low = by_hand.proportion_ci(method="wilson").low
        high = by_hand.proportion_ci(method="exact").high
        assert ends.high.item() - ends.low.item() == pytest.approx(high - low, rel=0.1)


def test_rows_that_are_no_more_alike_than_chance_are_left_alone():
    group = _group(5, effect=1.0)
    growth = (stats.t.ppf(0.975, 299) / stats.t.ppf(0.975, 2399)) ** 2
    assert group.rare_outcome_design_effect().item() == pytest.approx(1.0 + 7.0 / 26.0)
    assert group.design_effect(Z).item() == pytest.approx(max(growth, 1.0 + 7.0 / 26.0))


def test_a_group_without_an_error_and_independent_rows_are_as_before():
    assert _group(0, effect=0.0).design_effect(Z).item() == pytest.approx(8.0)
    assert _group(24, size=1.0, clusters=2400).design_effect(Z).item() == 1.0


def test_every_reach_has_its_own_quantile():
    group = _group(5)
    near, far = (group.design_effect(z).item() for z in (Z, 2.8070337683))
    assert far > near
    expected = stats.t.ppf(0.9975, 15) / stats.t.ppf(0.9975, 2399)
    assert far == pytest.approx(1.0 + 3.5 * expected**2, rel=1e-6)
