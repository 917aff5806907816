"""Pieces of a computation in threads: the same results, and nothing of the process is changed."""

from __future__ import annotations

import threading
import warnings

import numpy as np
import pytest

from isolux.io import threads
from isolux.io.threads import ignore_runtime_warnings, map_in_threads


@pytest.fixture(params=[1, 2])
def on_cores(request, monkeypatch):
    monkeypatch.setattr(threads, "count_cores", lambda: request.param)
    return request.param


def test_what_comes_out_is_in_the_order_of_the_pieces(on_cores):
    assert map_in_threads(lambda x: x * x, range(20)) == [x * x for x in range(20)]
    assert map_in_threads(lambda x: x, []) == []


def test_two_pieces_are_at_work_at_once_where_there_are_two_cores(monkeypatch):
    monkeypatch.setattr(threads, "count_cores", lambda: 2)
    both = threading.Barrier(2, timeout=60)  # broken where one waits for the other's end
    assert map_in_threads(lambda x: (both.wait() >= 0, x)[1], "ab") == ["a", "b"]


def test_under_a_limit_of_addresses_there_are_no_threads(monkeypatch):
    monkeypatch.setattr(threads, "count_cores", lambda: 2)
    monkeypatch.setattr(threads, "read_address_space_limit_bytes", lambda: 1 << 30)
    assert set(map_in_threads(lambda _: threading.get_ident(), "abc")) == {threading.get_ident()}


def test_the_first_pieces_error_is_raised(on_cores):
    def work(x: int) -> float:
        if x in (3, 7):
            raise ValueError(str(x))
        return x

    with pytest.raises(ValueError, match="3"):
        map_in_threads(work, range(9))


def test_pieces_keep_numpys_ways_with_errors(on_cores):
    with np.errstate(divide="raise"):
        assert map_in_threads(lambda _: np.geterr()["divide"], "ab") == ["raise", "raise"]


def test_filters_of_warnings_are_as_before_after_threads_were_quiet(monkeypatch):
    monkeypatch.setattr(threads, "count_cores", lambda: 2)
    before = warnings.filters[:]

    def work(_: int) -> float:
        with ignore_runtime_warnings():
            return float(np.nanmean(np.full(3, np.nan)))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isnan(map_in_threads(work, range(200))).all()
        with pytest.warns(RuntimeWarning, match="empty slice"):
            np.nanmean(np.full(3, np.nan))
    assert warnings.filters[:] == before
