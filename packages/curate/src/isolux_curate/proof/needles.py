"""What is searched for in bytes, and files into which no search can look.

What is searched for in bytes: names in every coding that files write them in.

Files into which no search can look: such a file is never counted as clean.

What can be searched is listed, not what cannot: text, and what ``unpacking`` opens.
"""

from __future__ import annotations

import base64
import html
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from urllib.parse import quote, quote_plus

from isolux_curate.withdrawal.terms import LETTERS

_PACKED = {
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"\x28\xb5\x2f\xfd": "packed by zstandard",
    b"\x04\x22\x4d\x18": "packed by LZ4",
    b"\x1f\x9d": "packed by compress",
    b"\xd0\xcf\x11\xe0": "an old or an encrypted office document",
    b"\x89HDF": "HDF5, whose chunks may be packed",
    b"-----BEGIN PGP": "encrypted",
    b"age-encryption": "encrypted",
    b"Salted__": "encrypted",
    b"ORC": "an ORC table",
    b"Obj\x01": "an Avro table",
    b"LZIP": "packed by lzip",
    b"\x00\x00\x00\x0cJXL": "a picture that cannot be opened here",
    b"PACK": "a pack of git's history",
    b"%!PS": "PostScript: its pictures are not compared",
    b"\xc5\xd0\xd3\xc6": "PostScript: its pictures are not compared",
}
_FILMS = (".mp4", ".mov", ".avi", ".mkv", ".webm", ".m4v", ".mpg", ".wav", ".mp3", ".m4a", ".ogg")
_PICTURES = (".heic", ".heif", ".avif", ".jxl", ".cr2", ".nef", ".arw", ".dng", ".raw")
_PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".ckpt")
_PICKLE = re.compile(rb"[(\]}cVSILFN)](?:.{0,200}\n){1,3}?p[0-9]+\n")
"""Of protocol 0, which is text: a letter that says what it is stands before each name."""
WEIGHTS = (".safetensors", ".onnx", ".gguf", ".tflite")
_CONTROL = bytes({*range(32), 127} - set(b"\t\n\f\r\x1b"))
_MARKS = (b"\xff\xfe", b"\xfe\xff")
_NO_SIGN = ("Cc", "Cn", "Co", "Cs")
_WIDE = ("utf-16", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


def why_blind(name: str, data: bytes, *, opened: bool) -> str:
    r"""Say why a file cannot be looked into; empty: it can.

    Examples
    --------
    >>> why_blind("a.7z", b"7z\xbc\xaf\x27\x1c", opened=False)
    'a 7z archive'
    """
    for mark, what in _PACKED.items():
        if data.startswith(mark):
            return what
    suffix = PurePosixPath(name).suffix.lower()
    if suffix in _FILMS:
        return "a film or a sound"
    if suffix in _PICTURES and not opened:
        return "a picture that cannot be opened here"
    if suffix in _PICKLES or (_PICKLE.match(data) and data.rstrip().endswith(b".")):
        return "a pickle, which no one should open"
    if not opened and suffix not in WEIGHTS and not is_text(data):
        return "no text, and of a format that isolux cannot read"
    return ""


def is_text(data: bytes) -> bool:
    r"""Tell whether bytes are text in a coding that names are searched for in.

    Examples
    --------
    >>> is_text(b"a\n"), is_text("a\n".encode("utf-16")), is_text(b"a\0\x01")
    (True, True, False)
    """
    if len(data.translate(None, _CONTROL)) == len(data):
        return True
    for coding in _WIDE:
        try:
            text = data.decode(coding)
        except UnicodeDecodeError:
            continue
        is_plain = 2 * sum(map(str.isascii, text)) >= len(text) or data.startswith(_MARKS)
        signs = set(text) - set("\t\n\f\r")
        if is_plain and all(unicodedata.category(one) not in _NO_SIGN for one in signs):
            return True
    return False


LEAST = 4
"""Characters from which a name is searched for in bytes; shorter ones are looked for as cells."""
_LEAST_BASE64 = 6  # bytes: fewer leave four letters that stand anywhere by chance
_AROUND = 8  # letters beside a name that are looked at
_WORD = re.compile(rb"[A-Za-z0-9]")
_LETTER = re.compile(f"[{LETTERS}]")
_ESCAPE = re.compile(rb"(?:%[0-9A-Fa-f]{2}|\\[nrtbfv0]|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4})\Z")
_LONGEST_ESCAPE = 6


@dataclass(frozen=True)
class Needles:
    """Names, and longer names of everyone else that hold one of them.

    Parameters
    ----------
    names : tuple of str
        Those of LEAST characters or more; a name that holds another is found by it.
    others : tuple of str
        Names of everyone else.
    """

    names: tuple[str, ...]
    others: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: Iterable[str], others: Iterable[str]) -> Needles:
        """Keep what has to be searched for."""
        long = sorted({one for one in names if len(one) >= LEAST}, key=len)
        kept: list[str] = []
        for one in long:
            if not any(_holds_whole(one, short) for short in kept):
                kept.append(one)
        covering = tuple({o for o in others for one in kept if one in o and o != one})
        return cls(tuple(kept), covering)

    @cached_property
    def forms(self) -> tuple[tuple[str, bytes, str], ...]:
        """Each name in each coding: the name, its bytes, the coding (empty: a byte a letter)."""
        found = {(name, form, plain): None for name in self.names for form, plain in _codings(name)}
        return tuple(found)

    @cached_property
    def _longer(self) -> Mapping[str, tuple[bytes, ...]]:
        return {
            name: tuple(other.encode() for other in self.others if name in other)
            for name in self.names
        }

    def hits(self, data: bytes) -> Iterator[tuple[str, int]]:
        """List names that stand in bytes, each once, with the place of the first."""
        seen: set[str] = set()
        for name, form, plain in self.forms:
            at = data.find(form) if name not in seen else -1
            while at >= 0:
                if self._is_theirs_in(name, data, at, at + len(form), plain):
                    seen.add(name)
                    yield name, at
                    break
                at = data.find(form, at + 1)

    def lines(self, data: bytes) -> list[int]:
        """List the lines of a text, from 1, in which names stand; none where bytes are no text."""
        try:
            data.decode()
        except UnicodeDecodeError:
            return []
        found: set[int] = set()
        for name, form, plain in self.forms:
            at = -1 if b"\0" in data else data.find(form)
            while at >= 0:
                if self._is_theirs_in(name, data, at, at + len(form), plain):
                    found.add(data.count(b"\n", 0, at) + 1)
                at = data.find(form, at + 1)
        return sorted(found)

    def _is_theirs_in(self, name: str, data: bytes, start: int, end: int, coding: str) -> bool:
        if coding == "base64":
            return True
        # Of the other order of bytes, half a letter stands at the begin (after a mark) or the end.
        if coding == "utf-16-be" and start <= 3 and _is_letter(data[start - 1 : start]):
            return False
        if coding == "utf-16-le" and len(data) - end == 1 and _is_letter(data[end:]):
            return False
        if coding:
            wide = len("a".encode(coding))
            around = wide * (_AROUND + max(map(len, self.others), default=0))
            first = max(start % wide, start - around)
            text = data[first : end + around].decode(coding, "replace").encode()
            at = len(data[first:start].decode(coding, "replace").encode())
            return self._is_theirs(name, text, at, at + len(name.encode()))
        return self._is_theirs(name, data, start, end)

    def _is_theirs(self, name: str, data: bytes, start: int, end: int) -> bool:
        """Tell a name from a part of a longer one: of a word, or of a name that is someone's."""
        before = data[max(0, start - _LONGEST_ESCAPE) : start]
        within = _is_text_letter(before[-k:] for k in range(1, 5)) and _is_letter(
            data[start : start + 1]
        )
        if within and _ESCAPE.search(before) is None:  # after "%20" or "\\n" a word begins
            return False
        if _is_text_letter(data[end : end + k] for k in range(1, 5)) and _is_letter(
            data[end - 1 : end]
        ):
            return False
        for other in self._longer[name]:
            near = data.find(other, max(0, start - len(other)))
            if 0 <= near <= start and near + len(other) >= end:
                return False
        return True


def _holds_whole(name: str, part: str) -> bool:
    """Tell whether a name is found wherever a part of it is."""
    at = name.find(part)
    while at >= 0:
        before, after = name[at - 1 : at] if at else "", name[at + len(part) :][:1]
        if not _LETTER.match(before) and not _LETTER.match(after):
            return True
        at = name.find(part, at + 1)
    return False


def _is_letter(one: bytes) -> bool:
    return bool(one) and (_WORD.match(one) is not None or one[0] >= 0xC3)


def _is_text_letter(pieces: Iterable[bytes]) -> bool:
    """Tell whether the first piece that is text is a letter; of a picture, none is."""
    for piece in pieces:
        try:
            return _LETTER.fullmatch(piece.decode()) is not None
        except UnicodeDecodeError:
            continue
    return False


def _codings(name: str) -> Iterator[tuple[bytes, str]]:
    in_json = json.dumps(name)[1:-1]
    plain = [
        name,
        in_json,
        in_json.replace("/", "\\/"),
        quote(name),
        quote(name, safe=""),
        quote_plus(name),
        html.escape(name),
        _entities(name),
    ]
    for text in plain:
        yield text.encode(), ""
        yield _HEX.sub(_other_case, text).encode(), ""  # %c3 as %C3
    for coding in ("latin-1", "cp1252"):
        try:
            yield name.encode(coding), ""
        except UnicodeEncodeError:
            continue
    for coding in ("utf-16-le", "utf-16-be", "utf-32-le"):
        yield name.encode(coding), coding
    yield from ((form, "base64") for form in _base64(name.encode()))


_HEX = re.compile(r"%[0-9A-F]{2}|\\u[0-9a-f]{4}")


def _other_case(found: re.Match[str]) -> str:
    text = found.group()
    return text.lower() if text.startswith("%") else text[:2] + text[2:].upper()


def _entities(name: str) -> str:
    return "".join(c if c.isascii() else f"&#{ord(c)};" for c in name)


def _base64(data: bytes) -> Sequence[bytes]:
    """Give the letters that stand for bytes wherever they begin: three ways, less both ends.

    Examples
    --------
    >>> any(form in base64.b64encode(b"of s0001234.") for form in _base64(b"s0001234"))
    True
    """
    if len(data) < _LEAST_BASE64:
        return []
    found = []
    for offset in range(3):
        whole = base64.b64encode(b"\0" * offset + data)
        first = (offset * 8 + 5) // 6  # letters that hold bits of what stands before
        last = (offset + len(data)) * 8 // 6
        found.append(whole[first:last])
    return [*found, *(one.translate(bytes.maketrans(b"+/", b"-_")) for one in found)]
