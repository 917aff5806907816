"""What a command is doing, where it takes long: a line on standard error, never on the output.

On a terminal one line from three seconds on, which goes when the command ends. Elsewhere (a log, a
notebook, a pipe) a line for a step that has taken ten seconds, and one more each half minute.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from isolux.core.printable import clean_line
from isolux.core.progress import listen_to_steps

ON_TERMINAL_S, NO_TERMINAL_S, REPEAT_S = 3.0, 10.0, 30.0
_TICK_S = 0.5


class ProgressLine:
    """Prints the current step once it has taken long.

    Parameters
    ----------
    stream : text stream
    is_terminal : bool
        Whether one line may be written over and over.
    clock : callable
        Seconds.
    """

    def __init__(self, stream: TextIO, *, is_terminal: bool, clock: Callable[[], float]) -> None:
        self.stream, self.is_terminal, self.clock = stream, is_terminal, clock
        self.started_at = self.step_started_at = clock()
        self.step, self.shown_at, self.width = "", float("-inf"), 0

    def set_step(self, step: str) -> None:
        """Set the current step."""
        if step.partition(":")[0] != self.step.partition(":")[0]:
            self.step_started_at = self.clock()
            self.shown_at = float("-inf")
        self.step = clean_line(step)
        if not step:
            self.clear()

    def update(self) -> None:
        """Print the current step, if it is due."""
        now = self.clock()
        if not self.step:
            return
        if self.is_terminal and now - self.started_at >= ON_TERMINAL_S:
            line = f"{self.step} … {now - self.started_at:.0f} s"
            self.stream.write("\r" + line.ljust(self.width))
            self.width = len(line)
            self.stream.flush()
        is_due = now - self.step_started_at >= NO_TERMINAL_S and now - self.shown_at >= REPEAT_S
        if not self.is_terminal and is_due:
            self.stream.write(f"isolux: {self.step} … {now - self.started_at:.0f} s so far\n")
            self.stream.flush()
            self.shown_at = now

    def clear(self) -> None:
        """Remove the line."""
        if self.is_terminal and self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.stream.flush()
            self.width = 0


@contextmanager
def show_progress() -> Iterator[None]:
    """Print the current step while the block runs."""
    stream = sys.stderr
    is_terminal = bool(getattr(stream, "isatty", lambda: False)())
    progress_line = ProgressLine(stream, is_terminal=is_terminal, clock=time.monotonic)
    is_over = threading.Event()

    def update_until_over() -> None:
        with suppress(OSError, ValueError):  # a stream that was closed: nothing to show it on
            while not is_over.wait(_TICK_S):
                progress_line.update()

    thread = threading.Thread(target=update_until_over, daemon=True, name="isolux-progress")
    with listen_to_steps(progress_line.set_step):
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join(2 * _TICK_S)
            with suppress(OSError, ValueError):
                progress_line.clear()
