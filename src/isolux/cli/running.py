"""While a model runs: how far it is, on a terminal, and what the first Ctrl-C does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from isolux.cli.stopping import finishing
from isolux.cli.streams import screen

if TYPE_CHECKING:
    from isolux.engine import Progress


@contextmanager
def watching() -> Iterator[tuple[Progress, Callable[[], bool]]]:
    """Give what is told of the progress, and whether to stop after the shard at hand."""
    with finishing("the shard at hand") as stop, _counting() as tell:
        yield tell, stop


@contextmanager
def _counting() -> Iterator[Progress]:
    """Show on a terminal how far it is, how fast and how long it will take; elsewhere nothing."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = screen(stderr=True)
    if not console.is_terminal or os.environ.get("CI"):
        yield lambda *_: None
        return
    bars = Progress(
        TextColumn("pictures"),
        BarColumn(),
        MofNCompleteColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
    )
    number = bars.add_task("pictures", total=None, rate="")
    began: list[float] = []

    def tell(done: int, of: int, fresh: int) -> None:
        if fresh and not began:
            began.append(time.monotonic())
        passed = time.monotonic() - began[0] if began else 0.0
        rate = f"{fresh / passed:.1f}/s" if passed > 1 else ""
        bars.update(number, completed=done, total=of, rate=rate)

    with bars:
        yield tell
