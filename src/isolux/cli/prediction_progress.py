"""Progress bar and Ctrl-C handling while a model runs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from isolux.cli.command_output import report_warning
from isolux.cli.signals import delay_first_interrupt
from isolux.cli.streams import build_rich_console
from isolux.core.progress import listen_to_lines

if TYPE_CHECKING:
    from isolux.engine import Progress


@contextmanager
def track_predictions() -> Iterator[tuple[Progress, Callable[[], bool]]]:
    """Yield the progress callback, and a callable that says whether to stop after the shard."""
    with (
        listen_to_lines(report_warning),
        delay_first_interrupt() as should_stop,
        _show_progress_bar() as report,
    ):
        yield report, should_stop


@contextmanager
def _show_progress_bar() -> Iterator[Progress]:
    """Show progress, rate and remaining time on a terminal; elsewhere nothing."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    console = build_rich_console(stderr=True)
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
    start_times: list[float] = []

    def update_bar(n_finished: int, n_total: int, n_fresh: int) -> None:
        if n_fresh and not start_times:
            start_times.append(time.monotonic())
        seconds = time.monotonic() - start_times[0] if start_times else 0.0
        rate = f"{n_fresh / seconds:.1f}/s" if seconds > 1 else ""
        bars.update(number, completed=n_finished, total=n_total, rate=rate)

    with bars:
        yield update_bar
