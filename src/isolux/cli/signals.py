"""SIGTERM, SIGHUP and Ctrl-C: clean up, say so, and end with 128 plus the signal's number.

The signal becomes an exception, so that every ``with`` and ``finally`` on the way out does its
work. A library can swallow an exception (while it is imported, in a callback), and what is cleaned
up can take long: an alarm then removes what is half-written and ends the process.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

CLEANUP_S = 3.0
"""Seconds in which a stopped command may clean up by itself."""

_SIGNALS = tuple(
    found
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if isinstance(found := getattr(signal, name, None), signal.Signals)
)
_received: list[signal.Signals] = []
_saved_stderr: list[int] = []  # the saved standard error, while it is silenced


class StopSignal(BaseException):
    """A signal asked the process to end. No ``Exception``: nothing but the last line catches it."""


@contextmanager
def raise_stop_on_signals() -> Iterator[None]:
    """Turn those signals into ``StopSignal`` while the block runs.

    A signal that the caller of the program wants ignored (``nohup``) stays ignored.
    """
    _received.clear()
    handlers = {}
    for number in _SIGNALS:
        handler = signal.getsignal(number)
        if handler is None or handler is signal.SIG_IGN:
            continue
        try:
            handlers[number] = signal.signal(number, _raise_stop_signal)
        except ValueError:  # only the main thread can set handlers
            break
    atexit.unregister(_reset_signals)
    atexit.register(_reset_signals)
    try:
        yield
    finally:
        restore_silenced_stderr()
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in handlers.items():
            signal.signal(number, handler)


@contextmanager
def delay_first_interrupt() -> Iterator[Callable[[], bool]]:
    """Let the first Ctrl-C only ask to stop while the block runs; the second one stops at once.

    Yields
    ------
    callable
        True from the first Ctrl-C on. The block ends soon after, and ``StopSignal`` is raised.
    """
    requests: list[bool] = []

    def request_stop(_number: int, _frame: FrameType | None) -> None:
        requests.append(True)
        signal.signal(signal.SIGINT, _raise_stop_signal)
        os.write(2, b"isolux: finishing the shard at hand; Ctrl-C again stops at once\n")

    handler = signal.getsignal(signal.SIGINT)
    if handler is not _raise_stop_signal:  # not the command line's own: whoever set it decides
        yield lambda: False
        return
    signal.signal(signal.SIGINT, request_stop)
    try:
        yield lambda: bool(requests)
    finally:
        if signal.getsignal(signal.SIGINT) is request_stop:
            signal.signal(signal.SIGINT, handler)
    if requests:
        _received.append(signal.SIGINT)
        raise StopSignal


def received_signal() -> signal.Signals | None:
    """Return the received signal, even if its exception was swallowed."""
    return _received[0] if _received else None


def format_stop_message(number: signal.Signals) -> str:
    """Format the message about a signal.

    Examples
    --------
    >>> format_stop_message(signal.SIGTERM)
    'isolux: stopped by SIGTERM; nothing was left half-written'
    """
    action = "interrupted" if number == signal.SIGINT else f"stopped by {number.name}"
    return f"isolux: {action}; nothing was left half-written"


def _redirect_stderr_to_null() -> None:
    """Silence standard error: an engine stopped in a callback prints a long traceback."""
    with suppress(OSError):
        _saved_stderr.append(os.dup(2))
        null_device = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null_device, 2)
        os.close(null_device)


def restore_silenced_stderr() -> None:
    """Restore standard error."""
    while _saved_stderr:
        saved_descriptor = _saved_stderr.pop()
        os.dup2(saved_descriptor, 2)
        os.close(saved_descriptor)


def _raise_stop_signal(number: int, _frame: FrameType | None) -> None:
    # From here on no second Ctrl-C may stop the cleaning up.
    for other_signal in _SIGNALS:
        if signal.getsignal(other_signal) is _raise_stop_signal:
            signal.signal(other_signal, signal.SIG_IGN)
    _received.append(signal.Signals(number))
    _redirect_stderr_to_null()
    if hasattr(signal, "setitimer"):
        signal.signal(signal.SIGALRM, _clean_up_and_exit)
        signal.setitimer(signal.ITIMER_REAL, CLEANUP_S)
    raise StopSignal


def _reset_signals() -> None:
    """Reset signals to their defaults at exit: Python would print a traceback."""
    for number in _SIGNALS:
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)


def _clean_up_and_exit(_number: int, _frame: FrameType | None) -> None:
    """Remove staging files and exit at once."""
    stages = sys.modules.get("isolux.io.staging")
    if stages is not None and hasattr(stages, "discard_all_staging"):
        stages.discard_all_staging()
    number = _received[0]
    restore_silenced_stderr()
    os.write(2, f"{format_stop_message(number)}\n".encode())
    os._exit(128 + number)
