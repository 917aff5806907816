"""Images with thousands of people: the same pairs as by brute force, and few that are compared."""

from __future__ import annotations

import numpy as np
import pytest

from isolux.geometry import _match_kernels as kernels
from isolux.geometry.boxes import box_pairs_xywh
from isolux.geometry.matching import Detections, Truths


def boxes(rng: np.random.Generator, n: int, side: float) -> np.ndarray:
    large = rng.random(n) < 0.02  # a few people in front
    size = rng.uniform(8, 40, (n, 2)) * np.where(large, 20, 1)[:, None]
    return np.hstack([rng.uniform(0, side, (n, 2)), size])


def overlap(d: np.ndarray, t: np.ndarray, crowd: np.ndarray, extra: float) -> np.ndarray:
    d, t = d[:, None], t[None]
    low = np.maximum(d[..., :2], t[..., :2])
    common = np.minimum(d[..., :2] + d[..., 2:], t[..., :2] + t[..., 2:]) - low + extra
    shared = np.clip(common, 0, None).prod(-1)
    area, other = ((b[..., 2:] + extra).prod(-1) for b in (d, t))
    return shared / np.where(crowd[None], area, area + other - shared)


@pytest.mark.parametrize("extra", [False, True])
@pytest.mark.parametrize("lowest", [0.1, 0.5, 1.0])
def test_pairs_are_those_of_brute_force(lowest, extra):
    rng = np.random.default_rng(0)
    d, t = boxes(rng, 500, 600), boxes(rng, 300, 600)
    d[:40], t[7] = t[:40], [np.nan, 1, 2, 3]
    crowd = rng.random(300) < 0.03
    found = box_pairs_xywh(
        Detections(np.zeros(500, int), rng.random(500)), Truths(np.zeros(300, int), crowd=crowd),
        d, t, lowest_iou=lowest, pixel_inclusive=extra,
    )  # fmt: skip
    right = np.nan_to_num(overlap(d, t, crowd, float(extra)))
    expected = np.argwhere(right >= lowest - 1e-10)  # by detection, then by person
    assert len(expected) > 20
    assert np.column_stack([found.detection, found.truth]).tolist() == expected.tolist()
    assert found.iou == pytest.approx(right[tuple(expected.T)])


@pytest.mark.parametrize("n", [1000, 4000])
def test_few_pairs_are_compared(n):
    rng = np.random.default_rng(1)
    side = 20 * n**0.5  # as dense, however many
    d, t = boxes(rng, n, side), boxes(rng, n, side)
    columns = [np.ascontiguousarray(c) for c in t.T]
    table = (np.array([0, n]), np.empty(0, int), True, *columns, np.empty(0), np.empty(0, int))
    left, order, n_crowds, _ = kernels.sort_by_left_edge(table, np.zeros(n, bool), 0, n)
    near = np.empty(n, int)
    compared = sum(
        kernels.find_near_people(left, order, n_crowds, x, w, w / 0.5, near) for x, _, w, _ in d
    )
    assert compared <= 12 * n**1.5  # of n²: a strip as wide as a few people
