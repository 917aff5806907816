"""What long work is doing just now: said by those who do it, heard by whoever shows it.

A library says nothing unasked: without a listener ``report_step`` does nothing. The command line
listens, and shows on standard error what takes long (``isolux.cli.progress``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

_listeners: list[Callable[[str], None]] = []
_readers: list[Callable[[str], None]] = []


def report_step(step: str) -> None:
    """Say what is being done: "reading the people"; empty: something that shows itself.

    Examples
    --------
    >>> told = []
    >>> with listen_to_steps(told.append):
    ...     report_step("scoring")
    >>> report_step("said to no one")
    >>> told
    ['scoring']
    """
    for listener in _listeners:
        listener(step)


@contextmanager
def listen_to_steps(listener: Callable[[str], None]) -> Iterator[None]:
    """Pass what is said to a listener, until the block ends."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def report_line(line: str) -> None:
    """Say a line that stays: what is known before long work ends, such as how an epoch went.

    Examples
    --------
    >>> lines = []
    >>> with listen_to_lines(lines.append):
    ...     report_line("epoch 1")
    >>> report_line("said to no one")
    >>> lines
    ['epoch 1']
    """
    for reader in _readers:
        reader(line)


@contextmanager
def listen_to_lines(reader: Callable[[str], None]) -> Iterator[None]:
    """Pass lines that stay to a reader, until the block ends."""
    _readers.append(reader)
    try:
        yield
    finally:
        _readers.remove(reader)
