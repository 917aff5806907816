"""Figures drawn in the renderer's process while this one writes what stands around them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from isolux.report.figures.apart import is_ahead

__all__ = ["meanwhile"]

T = TypeVar("T")


@contextmanager
def meanwhile(works: Mapping[str, Callable[[], T]]) -> Iterator[Callable[[str], T]]:
    """Let a thread do works that draw, one after the other, and give what waits for one by name.

    Examples
    --------
    >>> with meanwhile({"a": lambda: "drawn"}) as drawn:
    ...     drawn("a")
    'drawn'
    """
    if not is_ahead():
        done = {name: work() for name, work in works.items()}
        yield done.__getitem__
        return
    asked: dict[str, Future[T]] = {}
    pool = ThreadPoolExecutor(1, "isolux-figures")

    def waited(name: str) -> T:
        return asked[name].result() if name in asked else works[name]()

    try:
        for name, work in works.items():
            asked[name] = pool.submit(work)
        yield waited
    finally:
        pool.shutdown(cancel_futures=True)
