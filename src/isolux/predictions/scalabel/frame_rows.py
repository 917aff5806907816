"""Frames of Scalabel's JSON, a block at a time, so that a long file takes little memory.

A list of frames, or a document with the list under ``frames``; what else a document holds is
passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from isolux.predictions._json_text import DAMAGE, TRAILING, JsonText
from isolux.vocabulary.errors import TableError

_FRAMES_LIST = re.compile(rb'"frames"\s*:\s*\[')
_NO_FIELD = b'"":0'
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


class _Document(msgspec.Struct, gc=False):
    frames: list[Frame]


_FRAMES = msgspec.json.Decoder(list[Frame])


def frames(source: JsonText) -> Iterator[list[Frame]]:
    """Yield the frames in the order of the file, those of a block at a time."""
    is_document = source.text.startswith(b"{")
    path, n_frames = "$.frames" if is_document else "$", 0
    try:
        if is_document and not _seek_frames(source):
            yield _decode(source, _Document).frames
            return
        if not source.text.startswith(b"["):
            _decode(source, list[Frame])
        for some in source.objects(_FRAMES):
            yield some
            n_frames += len(some)
    except msgspec.ValidationError as error:
        problem, _, place = str(error).partition(" - at ")
        item = re.match(r"`?\$\[(\d+)\]([^`]*)", place)
        where = f"{path}[{n_frames + int(item[1])}]{item[2]}" if item else place.strip("`") or "$"
        raise _unfit(problem, where, source) from error
    if is_document:
        _leave_document(source)
    source.refuse_more()


def _seek_frames(source: JsonText) -> bool:
    """Go to the list of frames of a document, if it has one."""
    while True:
        for match in _FRAMES_LIST.finditer(source.text):
            try:  # within another value, or within text, what stands before it is no JSON
                msgspec.json.decode(source.text[: match.start()] + _NO_FIELD + b"}")
            except DAMAGE:
                continue
            source.drop(match.end() - 1)
            return True
        if source.is_complete:
            return False
        source.read_on()


def _decode(source: JsonText, kind: Any) -> Any:
    """Decode all of the text."""
    while not source.is_complete:
        source.read_on()
    try:
        return msgspec.json.decode(source.text, type=kind)
    except msgspec.ValidationError:
        raise
    except DAMAGE as error:
        source.refuse_damage(error)


def _leave_document(source: JsonText) -> None:
    """Pass over what a document holds behind its frames."""
    while not source.is_complete:
        source.read_on()
    start = b"{" + _NO_FIELD
    try:
        rest = msgspec.json.decode(start + source.text)
    except DAMAGE as error:
        end = TRAILING.search(str(error))
        if end is None:
            source.drop(len(source.text) if "truncated" in str(error) else 0)
            source.refuse_damage(error)
        source.drop(int(end[1]) - 1 - len(start))
        return
    if "frames" in rest:
        raise _unfit("`frames` occurs twice", "$", source)
    source.drop(len(source.text))


def _unfit(problem: str, path: str, source: JsonText) -> TableError:
    return TableError(
        "the JSON does not hold what it should",
        expected=_EXPECTED,
        found=f"{problem}, at {path} (counted from 0)",
        where=source.where,
    )
