"""Work in a thread is waited for, whatever ends the block beside it."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from isolux.io.background_thread import run_in_background


def slow(done, started):
    started.set()
    threading.Event().wait(0.3)
    done.append("done")


def test_the_block_runs_while_the_work_is_done():
    started, seen = threading.Event(), []
    with run_in_background(started.set):
        seen.append(started.wait(30))
    assert seen == [True]


def test_an_error_of_the_work_is_raised_when_the_block_has_ended():
    seen = []
    with pytest.raises(OSError, match="full"), run_in_background(lambda: open_none("full")):
        seen.append("block")
    assert seen == ["block"]


def open_none(why):
    raise OSError(why)


def test_an_error_of_the_block_comes_first_and_the_work_is_waited_for():
    done, started = [], threading.Event()
    with pytest.raises(ValueError, match="block"), run_in_background(lambda: slow(done, started)):
        raise ValueError("block")
    assert done == ["done"]


@pytest.mark.skipif(os.name != "posix", reason="sends itself a signal")
def test_a_signal_during_the_wait_is_raised_after_it():
    done, started = [], threading.Event()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job has none

    def work():
        os.kill(os.getpid(), signal.SIGINT)  # before it is done, however slow the machine is
        slow(done, started)

    try:
        with pytest.raises(KeyboardInterrupt), run_in_background(work):
            pass
    finally:
        signal.signal(signal.SIGINT, before)
    assert done == ["done"]


def test_under_a_limit_of_addresses_the_work_comes_first_and_in_no_thread(monkeypatch):
    monkeypatch.setattr(
        "isolux.io.background_thread.read_address_space_limit_bytes", lambda: 1 << 31
    )
    seen = []
    with run_in_background(lambda: seen.append(threading.current_thread())):
        assert seen == [threading.main_thread()]
