"""Standard output and error that never fail a command whose work is done.

A reader that leaves early (``| head``) is no error: the work goes on and the rest is not printed.
A terminal that knows ASCII alone gets ``-`` for a dash and ``?`` for what has no likeness.

Names come from files, and can hold what steers a terminal. Everything that is printed goes through
``print_clean_lines``, ``print_to_stderr`` or ``build_rich_console``; what a library prints by
itself goes through the streams' ``write``, which lets no such character pass either.
"""

from __future__ import annotations

import codecs
import io
import os
import sys
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

from isolux.core.printable import clean_line, clean_text

if TYPE_CHECKING:
    from rich.console import Console, RenderHook

_ASCII_REPLACEMENTS = {
    "•": "*",
    "·": ".",
    "–": "-",
    "—": "-",
    "−": "-",
    "…": "...",
    "×": "x",
    "≤": "<=",
    "≥": ">=",
    "→": "->",
    "±": "+/-",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "─": "-",
    "━": "=",
    "│": "|",
    "┿": "+",
    "●": "o",
}
_write_faults: list[OSError] = []


class _TolerantPipe(io.FileIO):
    """A file descriptor whose writes never fail: they are dropped once one has failed."""

    def write(self, chunk: object) -> int:
        """Write, or remember why not and drop it."""
        view = memoryview(chunk)  # type: ignore[arg-type]
        if self.name not in _broken_pipes:
            try:
                return super().write(view) or 0
            except BrokenPipeError:
                _broken_pipes.add(self.name)
            except OSError as error:
                _broken_pipes.add(self.name)
                _write_faults.append(error)
        return view.nbytes


_broken_pipes: set[object] = set()


class _GuardedStream:
    """A text stream that replaces control characters, except line ends and returns."""

    def __init__(self, stream: TextIO) -> None:
        self.unguarded = stream

    def write(self, text: str) -> int:
        """Write, without what steers a terminal."""
        self.unguarded.write(clean_text(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unguarded, name)


@contextmanager
def guard_streams() -> Iterator[None]:
    """Replace ``sys.stdout`` and ``sys.stderr`` by guarded streams while the block runs."""
    before = sys.stdout, sys.stderr
    _write_faults.clear()
    _broken_pipes.clear()
    sys.stdout, sys.stderr = _guard_stream(sys.stdout), _guard_stream(sys.stderr)
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        sys.stdout, sys.stderr = before


def flush_and_find_write_error() -> OSError | None:
    """Flush, and return why something could not be printed; a reader that left is no reason."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    return _write_faults[0] if _write_faults else None


def print_clean_lines(*lines: str) -> None:
    """Print lines, or an empty one; a name in a line can neither break it nor steer a terminal."""
    for line in lines or ("",):
        print(clean_line(line), flush=True)  # noqa: T201 - a server prints its address, and goes on


def to_terminal_encoding(text: str) -> str:
    """Return a text as this terminal shows it, so that its width can be measured."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    return text.encode(encoding, "isolux").decode(encoding)


def print_to_stderr(text: str) -> None:
    """Print lines to standard error, if there is any; names in them are one line each already."""
    print(clean_text(text), file=sys.stderr, flush=True)  # noqa: T201


def build_rich_console(*, stderr: bool = False) -> Console:
    """Build a rich console, whose text is guarded before rich adds its own colours to it."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    file = stream.unguarded if isinstance(stream, _GuardedStream) else stream
    console = Console(file=file, highlight=False, markup=False, emoji=False)
    console.push_render_hook(_build_text_guard(console))
    return console


def _build_text_guard(console: Console) -> RenderHook:
    """Build the hook that replaces what steers a terminal in all that the console prints."""
    from rich.console import RenderHook
    from rich.segment import Segment

    class GuardedText:
        def __init__(self, renderable: Any) -> None:
            self.renderable = renderable

        def __rich_console__(self, _: Console, options: Any) -> Iterator[Segment]:
            for text, style, control in console.render(self.renderable, options):
                yield Segment(text if control else clean_text(text), style, control)

    class TextGuard(RenderHook):
        def process_renderables(self, renderables: list[Any]) -> list[Any]:
            return [GuardedText(renderable) for renderable in renderables]

    return TextGuard()


def _guard_stream(stream: TextIO | None) -> TextIO:
    return cast("TextIO", _GuardedStream(_make_encoding_tolerant(stream)))


def _make_encoding_tolerant(stream: TextIO | None) -> TextIO:
    if stream is None:  # closed by the caller, as in `isolux … >&-`
        return Path(os.devnull).open("w", encoding="utf-8")
    if type(stream) is not io.TextIOWrapper:
        return stream  # a custom stream, such as a test's
    try:
        number = stream.fileno()
        stream.flush()
    except (OSError, ValueError):
        return stream
    raw = _TolerantPipe(number, "w", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=stream.encoding,
        errors="isolux",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )


def _replace_unprintable(error: UnicodeError) -> tuple[str | bytes, int]:
    """Replace characters that the terminal's encoding lacks by similar ones."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(_find_similar_letters(letter) for letter in text), error.end


def _find_similar_letters(letter: str) -> str:
    if letter in _ASCII_REPLACEMENTS:
        return _ASCII_REPLACEMENTS[letter]
    ascii_text = unicodedata.normalize("NFKD", letter).encode("ascii", "ignore").decode()
    return ascii_text or "?"


codecs.register_error("isolux", _replace_unprintable)
