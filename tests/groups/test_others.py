"""Everyone as a group is held to them: both sides as large as they were, and everyone else."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.groups.measure.others import EveryoneByHalves, others_of_ranks
from isolux.stats.resampling import Columns, ReplicatedRanks
from isolux.stats.statistic import SumStatistic, ratio_of_sums

RATIO = Columns(SumStatistic(lambda e: e, ratio_of_sums), 0, 2)

# Everyone, one group: 9 of 10 in all, 3 of 4 in the group; so 6 of 6 of the others.
TOTALS = np.array([[9.0, 10.0], [3.0, 4.0]])


def test_of_the_data_everyone_is_as_they_are():
    halves = EveryoneByHalves.of(RATIO, 1, TOTALS)
    assert halves.share.tolist() == [1.0, 0.4]
    assert halves.value(TOTALS[:, :, None])[1, 0] == pytest.approx(0.9)


def test_a_replicate_has_the_share_that_the_data_have():
    # Drawn: 8 of the group, 4 right, and 2 of the others, both right. As they are: .4 and .6 of
    # everyone, so everyone is .4 * .5 + .6 * 1 = .8, where the replicate's own value is .6.
    drawn = np.array([[6.0, 10.0], [4.0, 8.0]])[:, :, None]
    halves = EveryoneByHalves.of(RATIO, 1, TOTALS)
    assert halves.replicated(drawn, 0)[1, 0] == pytest.approx(0.8)


def test_a_replicate_without_others_has_no_value():
    drawn = np.array([[6.0, 8.0], [6.0, 8.0]])[:, :, None]
    assert np.isnan(EveryoneByHalves.of(RATIO, 1, TOTALS).replicated(drawn, 0)[1, 0])


def test_everyone_else_by_subtraction():
    halves = EveryoneByHalves.of(RATIO, 1, TOTALS)
    found = halves.others(TOTALS, np.zeros((2, 5)))
    assert found.value[1] == 1.0
    assert np.isnan(found.value[0]), "no one is left of everyone"
    thirds = EveryoneByHalves.of(RATIO, 1, TOTALS / 3.0).others(TOTALS / 3.0, np.zeros((2, 5)))
    assert thirds.value[1] == 1.0, "what is left of weights that are no whole numbers"


def test_ranks_are_mixtures():
    # .8 = .75 * .9 + .25 * .5. In the replicate half of the weight is in the group, so others are
    # 2 * .7 - .8 = .6, and everyone at the data's share is .75 * .8 + .25 * .6 = .75.
    found = others_of_ranks(ReplicatedRanks(
        np.array([0.8, 0.9]), np.array([[0.7], [0.8]]), np.array([[4.0, 6.0], [3.0, 3.0]])
    ))  # fmt: skip
    assert found.share.tolist() == [1.0, 0.75]
    assert found.value[1] == pytest.approx(0.5)
    assert found.everyone[1, 0] == pytest.approx(0.75)
