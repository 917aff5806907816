"""Metrics compared in threads: the same table, bit by bit, as one after the other."""

from __future__ import annotations

import threading

import numpy as np
import polars as pl
import pytest

import isolux
from isolux.disparity import contrast_z, family
from isolux.io import threads

N = 600


def _table(*, interval: str) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    people = {
        "tone": rng.choice(list("abcd"), N),
        "truth": rng.choice(["no", "yes"], N),
        "home": rng.integers(0, 200, N).astype(str),
    }
    people["answer"] = np.where(rng.random(N) < 0.8, people["truth"], "no")
    return isolux.audit(
        people, by="tone", target="truth", prediction_column="answer", positive="yes",
        cluster="home", interval=interval, margin=5.0, replicates=100,
    ).disparities  # fmt: skip


@pytest.mark.parametrize("interval", ["score", "percentile"])
def test_threads_change_nothing(monkeypatch, interval):
    one = _table(interval=interval)
    used: set[str] = set()
    compare = contrast_z.build_comparisons

    def seen(*args):
        used.add(threading.current_thread().name)
        return compare(*args)

    monkeypatch.setattr(contrast_z, "build_comparisons", seen)
    monkeypatch.setattr(family, "_MIN_THREADED_CONTRASTS", 1)
    monkeypatch.setattr(threads, "count_cores", lambda: 4)
    assert _table(interval=interval).equals(one, null_equal=True)
    assert any("isolux-piece" in name for name in used)


def test_few_groups_are_compared_one_metric_after_the_other():
    assert family.choose_max_workers([np.zeros((3, 2), int), np.zeros((19_900, 2), int)]) > 1
    assert (
        family.choose_max_workers([np.zeros((1_953, 2), int)]) == family.choose_max_workers([]) == 1
    )
