"""What a reader does with a cell that it refuses: raise, or collect it and read on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from isolux.core.errors import TableError

_COLLECTED: ContextVar[list[TableError] | None] = ContextVar("collected_refusals", default=None)


@contextmanager
def collect_refusals() -> Iterator[list[TableError]]:
    """Collect the cells that are refused in this block, instead of raising the first of them.

    What is read meanwhile has refused cells in it, and must not be used.

    Examples
    --------
    >>> with collect_refusals() as refusals:
    ...     refuse(TableError("an age is negative", where="row 3"))
    ...     refuse(TableError("an age is negative", where="row 5"))
    >>> [refusal.where for refusal in refusals]
    ['row 3', 'row 5']
    """
    refusals: list[TableError] = []
    token = _COLLECTED.set(refusals)
    try:
        yield refusals
    finally:
        _COLLECTED.reset(token)


def is_collecting_refusals() -> bool:
    """Tell whether refused cells are collected, so that all of them are worth naming."""
    return _COLLECTED.get() is not None


def refuse(error: TableError) -> None:
    """Raise the error; inside ``collect_refusals``, add it to the list and go on."""
    collected = _COLLECTED.get()
    if collected is None:
        raise error
    collected.append(error)
