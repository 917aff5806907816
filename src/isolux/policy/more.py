"""How many more people of which group would decide a rule (``isolux.stats.detectable``).

Groups whose values are least sure get them first: all are brought down to one standard error, and
the people that takes are told, with the clusters in which they would come, as many to a cluster as
now. Groups that are sure enough already, or of which every case passes, get none. Cases that pass
now are drawn along: more people of their groups move them too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from isolux.policy.cells import Cells, Side
from isolux.stats.design import IntArray
from isolux.stats.detectable import Cases, deciding_error
from isolux.stats.intervals import Interval
from isolux.stats.statistic import FloatArray

More = tuple[FloatArray, FloatArray, FloatArray]
"""Units of the first side, units of the second, clusters of the first: ``[h]`` each."""
_MOST_CASES = 400
"""Cases of a measure that are drawn together; of more, those farthest from passing."""


class _Groups:
    """The groups of a rule's undecided cases, numbered."""

    def __init__(self) -> None:
        self.number: dict[tuple[object, ...], int] = {}
        self.error: list[float] = []

    def add(self, key: tuple[object, ...], error: float) -> int:
        if key not in self.number:
            self.number[key] = len(self.error)
            self.error.append(error)
        return self.number[key]


def more_people(
    cells: Sequence[Cells],
    undecided: Sequence[IntArray],
    reach: Sequence[tuple[float, float]],
    power: float,
) -> list[More]:
    """Reckon for one rule how many more people its undecided cases need.

    Shapes: ``undecided`` [u].
    """
    groups, parts, at, open_ = _Groups(), [], [], []
    for one, places, ends in zip(cells, undecided, reach, strict=True):
        kept = _nearest(one, ends[0])
        parts.append(_part(one, kept, ends, groups))
        at.append(kept)
        open_.append(np.isin(kept, places))
    asked, first, second = _joined(parts, open_, groups)
    aim = deciding_error(asked, power) if np.any(asked.grows) else float("nan")
    found, start = [], 0
    for one, places, own in zip(cells, at, open_, strict=True):
        stop = start + len(places)
        numbers = first[start:stop][own], second[start:stop][own]
        found.append(_told(one, places[own], numbers, asked.error, aim))
        start = stop
    return found


def _joined(
    parts: Sequence[tuple[FloatArray, ...]], open_: Sequence[npt.NDArray[np.bool_]], groups: _Groups
) -> tuple[Cases, IntArray, IntArray]:
    """Stack cases, and number the first and the second group of each."""
    joined = [
        np.concatenate([part[k] for part in parts]) if parts else np.zeros(0) for k in range(7)
    ]
    slack, down, up, scale = joined[:4]
    first, second = (numbers.astype(np.int64) for numbers in joined[4:6])
    falls = (joined[6] < 0) & (second >= 0)  # the slack falls with the first group's value
    grows = np.zeros(len(groups.error), dtype=np.bool_)
    asked_of = np.concatenate(open_) if open_ else np.zeros(0, dtype=np.bool_)
    grows[first[asked_of]] = True
    grows[second[asked_of & (second >= 0)]] = True
    rising, falling = np.where(falls, second, first), np.where(falls, first, second)
    error = np.array(groups.error)
    return Cases(slack, down, up, error, rising, falling, scale, grows), first, second


def _nearest(cells: Cells, z: float) -> IntArray:
    """Keep the cases that can be drawn; where there are very many, those farthest from passing."""
    slack = cells.slack
    places = np.flatnonzero(np.isfinite(slack))
    if len(places) <= _MOST_CASES:
        return places
    reach = np.maximum(slack - np.asarray(cells.bounds(z).low), 1e-12)[places]
    return np.sort(places[np.argsort(slack[places] / reach, kind="stable")[:_MOST_CASES]])


def _part(
    cells: Cells, places: IntArray, ends: tuple[float, float], groups: _Groups
) -> tuple[FloatArray, ...]:
    """Lay out slack, reaches, scale, the two groups and the sign of some cases."""
    low, high = cells.bounds(ends[0]).low, cells.bounds(ends[1]).high
    whole = _half(cells.bounds(1.0))
    alone = cells.second is None or bool(cells.rest)
    first, second, scale = [], [], []
    errors = None if alone else tuple(_error(side, log=cells.log) for side in _sides(cells))
    for k in places:
        key = (id(cells.first.estimates), cells.first.j)
        if errors is None:
            first.append(groups.add((*key, int(cells.first.rows[k]), bool(cells.rest)), whole[k]))
            second.append(-1)
            scale.append(float(whole[k]) / groups.error[first[-1]])
            continue
        rows = [int(side.rows[k]) for side in _sides(cells)]
        own = [float(e[k]) for e in errors]
        first.append(groups.add((*key, rows[0], False), own[0]))
        second.append(groups.add((*key, rows[1], False), own[1]))
        scale.append(whole[k] / math.hypot(*own))
    numbers = np.array(first, dtype=float), np.array(second, dtype=float)
    slack = cells.slack[places]
    down, up = slack - low[places], high[places] - slack
    sign = np.full(len(places), cells.sign)
    return slack, down, up, np.array(scale, dtype=float), *numbers, sign


def _sides(cells: Cells) -> tuple[Side, Side]:
    return cells.first, cells.second or cells.first


def _half(ends: Interval) -> FloatArray:
    return np.asarray((ends.high - ends.low) / 2.0)


def _error(side: Side, *, log: bool) -> FloatArray:
    error = _half(side.intervals()(1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(error / side.value) if log else error


def _told(
    cells: Cells,
    places: IntArray,
    numbers: tuple[IntArray, IntArray],
    error: FloatArray,
    aim: float,
) -> More:
    n = len(cells.slack)
    units, other, clusters = np.full(n, np.nan), np.full(n, np.nan), np.full(n, np.nan)
    if np.isnan(aim) or not len(places):
        return units, other, clusters
    with np.errstate(divide="ignore"):
        factor = np.maximum((error / aim) ** 2, 1.0) if aim > 0 else np.full(len(error), np.inf)
    grown = factor[numbers[0]] - 1.0
    units[places] = np.ceil(grown * cells.first.units[places])
    clusters[places] = np.ceil(grown * cells.first.clusters[places])
    if cells.second is not None and not cells.rest:
        second = factor[np.maximum(numbers[1], 0)] - 1.0
        other[places] = np.ceil(second * cells.second.units[places])
    return units, other, clusters
