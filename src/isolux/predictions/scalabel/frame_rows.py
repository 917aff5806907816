"""Frames of Scalabel's JSON, some hundred at a time, so that a long file takes little memory.

A list of frames, or a document with the list under ``frames``; what else a document holds is
passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from isolux.predictions._scan.damage import raise_damage
from isolux.predictions._scan.window import CUT, UNUSUAL, Window
from isolux.vocabulary.errors import FileError, TableError

__all__ = ["Box", "Frame", "Label", "frames"]

_FEW = 256  # frames decoded together
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[-+.\w]+(?=[\s,}\]])', re.DOTALL)
_EXPECTED = '[{"name": "a.jpg", "labels": [{"category": …, "score": …, "box2d": …}]}]'


class Box(msgspec.Struct, gc=False):
    """Corners in pixels."""

    x1: float
    y1: float
    x2: float
    y2: float


class Label(msgspec.Struct, gc=False):
    """One detection."""

    category: str | None = None
    score: float | str | None = None
    box2d: Box | None = None


class Frame(msgspec.Struct, gc=False, rename={"video": "videoName"}):
    """One image and its detections."""

    name: str
    video: str | None = None
    labels: list[Label] | None = None


def frames(window: Window) -> Iterator[list[Frame]]:
    """Give the frames in the order of the file, in lists of some hundred."""
    file = _File(window)
    if file.byte() == b"{":
        yield from file.document()
    else:
        yield from file.list_at("$")
    file.refuse_more()


class _File:
    """A place in the window, which moves on."""

    def __init__(self, window: Window) -> None:
        self.window = window
        self.at = window.begin()
        self._blank()

    def byte(self) -> bytes:
        """Return the byte here; empty at the end of the file."""
        return self.window.text(self.at, self.at + 1)

    def document(self) -> Iterator[list[Frame]]:
        """Read ``{ … "frames": [ … ] … }``."""
        seen = False
        self._after(b"{")
        while self.byte() != b"}":
            name = self._value()
            self._after(b":")
            if name != b'"frames"':
                self._value()
            elif seen:
                raise self._unfit("`frames` occurs twice", "$")
            else:
                seen = True
                yield from self.list_at("$.frames")
            if self.byte() != b"}":
                self._after(b",")
        self._after(b"}")
        if not seen:
            raise self._unfit("Object missing required field `frames`", "$")

    def list_at(self, path: str) -> Iterator[list[Frame]]:
        """Read ``[ … ]``."""
        if self.byte() != b"[":
            if self.byte() in (b"n", b'"', b"{") or self.byte().isalnum():
                raise self._unfit("Expected `array`", path)
            self._damage()
        self._after(b"[")
        done = 0
        while self.byte() != b"]":
            if done:
                self._after(b",")
            some = self._frames(path, done)
            done += len(some)
            yield some
        self._after(b"]")

    def refuse_more(self) -> None:
        """Refuse anything but white space."""
        if self.byte():
            raise FileError(
                "something follows the list of frames",
                expected="the end of the file",
                found=repr(self.window.text(self.at, self.at + 20).decode("utf-8", "replace")),
                where=f"{self.window.where}, byte {self.window.base + self.at}",
            )

    def _frames(self, path: str, done: int) -> list[Frame]:
        """Decode the next frames; stop at the comma or bracket behind them."""
        from isolux.predictions._scan.braces import rows_end

        window = self.window
        if self.byte() and self.byte() != b"{":
            if self.byte() not in (b"[", b'"', b"n", b"t", b"f") and not self.byte().isdigit():
                self._damage()
            raise self._unfit("Expected `object`", f"{path}[{done}]")
        rows, stop, _, why = rows_end(window.data, self.at, window.end, _FEW)
        if not rows and why == CUT and not window.whole:
            self._move()
            return self._frames(path, done)
        if not rows:
            self._damage()
        text = window.text(self.at, stop)
        some = self._decoded(text, path, done)
        if len(some) != rows:
            self._damage()
        following = window.text(stop, window.end).lstrip(b" \t\r\n")[:1]
        if why == UNUSUAL or following not in (b"", b",", b"]"):
            self._damage()
        self.at = stop
        self._blank()
        return some

    def _decoded(self, text: bytes, path: str, done: int) -> list[Frame]:
        try:
            return msgspec.json.decode(b"[" + text + b"]", type=list[Frame])
        except msgspec.ValidationError as error:
            problem, _, at = str(error).partition(" - at ")
            found = re.match(r"`?\$\[(\d+)\]([^`]*)", at)
            where = f"{path}[{done + int(found[1])}]{found[2]}" if found else path
            raise self._unfit(problem, where) from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            byte = self.window.base + self.at
            raise_damage(text, self.window.where, byte=byte, cause=error)
            raise

    def _value(self) -> bytes:
        """Pass over a value, and return it if it is short."""
        from isolux.predictions._scan.braces import object_end

        window = self.window
        if self.byte() in (b"{", b"["):
            stop = object_end(window.data, self.at, window.end)
        else:
            found = _TOKEN.match(window.text(self.at, window.end))
            stop = self.at + found.end() if found else -1
        if stop < 0:
            # a value outside of frames that is longer than this is damage, not data
            if window.whole or window.end - self.at > 1 << 20:
                self._damage()
            self._move()
            return self._value()
        value = window.text(self.at, min(stop, self.at + 80))
        self.at = stop
        self._blank()
        return value

    def _after(self, byte: bytes) -> None:
        if self.byte() != byte:
            self._damage()
        self.at += 1
        self._blank()

    def _blank(self) -> None:
        window = self.window
        while True:
            while self.at < window.end and window.data[self.at] in b" \t\r\n":
                self.at += 1
            if self.at < window.end or window.whole:
                return
            self._move()

    def _move(self) -> None:
        self.window.move(self.at)
        self.at = 0

    def _damage(self) -> None:
        """Raise the error that says what is wrong here, with the byte."""
        window = self.window
        here = window.base + self.at
        text = window.text(self.at, window.end)
        if not text:
            raise_damage(text, window.where, byte=here)
        # A comma here would be a list's second item to a parser that begins here.
        if text[:1] in b",:]}":
            raise FileError(
                "this is not valid JSON",
                expected="a list of frames: [{…}, …]",
                found=f"{text[:20].decode('utf-8', 'replace')!r} at byte {here}",
                where=window.where,
            )
        raise_damage(text, window.where, byte=here)

    def _unfit(self, problem: str, at: str) -> TableError:
        return TableError(
            "the JSON does not hold what it should",
            expected=_EXPECTED,
            found=f"{problem}, at {at} (counted from 0)",
            where=self.window.where,
        )
