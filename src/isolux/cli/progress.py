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

from isolux.vocabulary.printable import plain
from isolux.vocabulary.progress import heard_by

ON_TERMINAL_S, ELSEWHERE_S, AGAIN_S = 3.0, 10.0, 30.0
_TICK_S = 0.5


class Teller:
    """Prints the current step once it has taken long.

    Parameters
    ----------
    stream : text stream
    terminal : bool
        Whether one line may be written over and over.
    clock : callable
        Seconds.
    """

    def __init__(self, stream: TextIO, *, terminal: bool, clock: Callable[[], float]) -> None:
        self.stream, self.terminal, self.clock = stream, terminal, clock
        self.began = self.since = clock()
        self.what, self.shown_at, self.width = "", float("-inf"), 0

    def hear(self, step: str) -> None:
        """Set the current step."""
        if step.partition(":")[0] != self.what.partition(":")[0]:
            self.since = self.clock()
            self.shown_at = float("-inf")
        self.what = plain(step)
        if not step:
            self.clear()

    def tick(self) -> None:
        """Print the current step, if it is due."""
        now = self.clock()
        if not self.what:
            return
        if self.terminal and now - self.began >= ON_TERMINAL_S:
            line = f"{self.what} … {now - self.began:.0f} s"
            self.stream.write("\r" + line.ljust(self.width))
            self.width = len(line)
            self.stream.flush()
        is_due = now - self.since >= ELSEWHERE_S and now - self.shown_at >= AGAIN_S
        if not self.terminal and is_due:
            self.stream.write(f"isolux: {self.what} … {now - self.began:.0f} s so far\n")
            self.stream.flush()
            self.shown_at = now

    def clear(self) -> None:
        """Remove the line."""
        if self.terminal and self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.stream.flush()
            self.width = 0


@contextmanager
def working() -> Iterator[None]:
    """Print the current step while the block runs."""
    stream = sys.stderr
    is_terminal = bool(getattr(stream, "isatty", lambda: False)())
    progress_line, is_over = (
        Teller(stream, terminal=is_terminal, clock=time.monotonic),
        threading.Event(),
    )

    def update_until_over() -> None:
        with suppress(OSError, ValueError):  # a stream that was closed: nothing to show it on
            while not is_over.wait(_TICK_S):
                progress_line.tick()

    thread = threading.Thread(target=update_until_over, daemon=True, name="isolux-progress")
    with heard_by(progress_line.hear):
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join(2 * _TICK_S)
            with suppress(OSError, ValueError):
                progress_line.clear()
