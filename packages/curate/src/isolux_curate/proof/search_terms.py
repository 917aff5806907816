"""Search terms in every coding that files write names in, and files that cannot be searched.

An unsearchable file is never counted as clean. Searchable are only text, and formats that
can be unpacked: all others are listed as unsearchable.
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

from isolux_curate.withdrawal.terms import WORD_CHARACTERS

_UNREADABLE_FORMATS = {
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
_MEDIA_SUFFIXES = (
    ".mp4",
    ".mov",
    ".avi",
    ".mkv",
    ".webm",
    ".m4v",
    ".mpg",
    ".wav",
    ".mp3",
    ".m4a",
    ".ogg",
)
_IMAGE_SUFFIXES = (".heic", ".heif", ".avif", ".jxl", ".cr2", ".nef", ".arw", ".dng", ".raw")
_PICKLE_SUFFIXES = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".ckpt")
_PICKLE_START = re.compile(rb"[(\]}cVSILFN)](?:.{0,200}\n){1,3}?p[0-9]+\n")
"""The start of a pickle of protocol 0, which is text: a type letter stands before each name."""
WEIGHTS_SUFFIXES = (".safetensors", ".onnx", ".gguf", ".tflite")
_CONTROL_BYTES = bytes({*range(32), 127} - set(b"\t\n\f\r\x1b"))
_BYTE_ORDER_MARKS = (b"\xff\xfe", b"\xfe\xff")
_NON_TEXT_CATEGORIES = ("Cc", "Cn", "Co", "Cs")
_WIDE_CODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be")


def explain_unsearchable_or_empty(file_name: str, file_bytes: bytes, *, is_opened: bool) -> str:
    r"""Find why a file cannot be searched; empty if it can.

    Examples
    --------
    >>> explain_unsearchable_or_empty("a.7z", b"7z\xbc\xaf\x27\x1c", is_opened=False)
    'a 7z archive'
    """
    for magic_bytes, description in _UNREADABLE_FORMATS.items():
        if file_bytes.startswith(magic_bytes):
            return description
    suffix = PurePosixPath(file_name).suffix.lower()
    if suffix in _MEDIA_SUFFIXES:
        return "a film or a sound"
    if suffix in _IMAGE_SUFFIXES and not is_opened:
        return "a picture that cannot be opened here"
    if suffix in _PICKLE_SUFFIXES or (
        _PICKLE_START.match(file_bytes) and file_bytes.rstrip().endswith(b".")
    ):
        return "a pickle, which no one should open"
    if not is_opened and suffix not in WEIGHTS_SUFFIXES and not is_searchable_text(file_bytes):
        return "no text, and of a format that isolux cannot read"
    return ""


def is_searchable_text(file_bytes: bytes) -> bool:
    r"""Check whether bytes are text in a coding in which names are searched.

    Examples
    --------
    >>> [is_searchable_text(b) for b in (b"a\n", "a\n".encode("utf-16"), b"a\0\x01")]
    [True, True, False]
    """
    if len(file_bytes.translate(None, _CONTROL_BYTES)) == len(file_bytes):
        return True
    for coding in _WIDE_CODINGS:
        try:
            text = file_bytes.decode(coding)
        except UnicodeDecodeError:
            continue
        is_plain = 2 * sum(map(str.isascii, text)) >= len(text) or file_bytes.startswith(
            _BYTE_ORDER_MARKS
        )
        signs = set(text) - set("\t\n\f\r")
        if is_plain and all(
            unicodedata.category(sign) not in _NON_TEXT_CATEGORIES for sign in signs
        ):
            return True
    return False


MIN_SEARCHED_LENGTH = 4
"""The minimum length of a name that is searched in bytes; shorter ones are searched as cells."""
_MIN_BASE64_BYTES = 6  # bytes: shorter names leave four letters, which occur by chance
_CONTEXT_LETTERS = 8  # letters around a name that decide whether it is a word
_WORD = re.compile(rb"[A-Za-z0-9]")
_LETTER = re.compile(f"[{WORD_CHARACTERS}]")
_ESCAPE = re.compile(rb"(?:%[0-9A-Fa-f]{2}|\\[nrtbfv0]|\\x[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4})\Z")
_MAX_ESCAPE_LENGTH = 6


@dataclass(frozen=True)
class SearchTerms:
    """The people's names, and longer names of others that contain one of them.

    Parameters
    ----------
    names : tuple of str
        Those of LEAST characters or more; a name that holds another is found by it.
    other_names : tuple of str
        Names of everyone else.
    """

    names: tuple[str, ...]
    other_names: tuple[str, ...] = ()

    @classmethod
    def from_names_without_contained(
        cls, names: Iterable[str], other_names: Iterable[str]
    ) -> SearchTerms:
        """Build search terms: names that contain a shorter one as a word need no search."""
        long_names = sorted({name for name in names if len(name) >= MIN_SEARCHED_LENGTH}, key=len)
        searched_names: list[str] = []
        for name in long_names:
            if not any(_contains_as_word(name, short) for short in searched_names):
                searched_names.append(name)
        covering_names = tuple(
            {
                other_name
                for other_name in other_names
                for name in searched_names
                if name in other_name and other_name != name
            }
        )
        return cls(tuple(searched_names), covering_names)

    @cached_property
    def encoded_forms(self) -> tuple[tuple[str, bytes, str], ...]:
        """Each name in each coding: the name, its bytes, the coding (empty: one byte a letter)."""
        encoded_names = {
            (name, form, coding): None
            for name in self.names
            for form, coding in _encode_name_in_all_codings(name)
        }
        return tuple(encoded_names)

    @cached_property
    def _longer_names(self) -> Mapping[str, tuple[bytes, ...]]:
        return {
            name: tuple(
                other_name.encode() for other_name in self.other_names if name in other_name
            )
            for name in self.names
        }

    def iterate_names_with_offset(self, file_bytes: bytes) -> Iterator[tuple[str, int]]:
        """Find names in bytes, each once, with the offset of the first match."""
        found_names: set[str] = set()
        for name, form, coding in self.encoded_forms:
            offset = file_bytes.find(form) if name not in found_names else -1
            while offset >= 0:
                if self._is_whole_name_in_coding(
                    name, file_bytes, offset, offset + len(form), coding
                ):
                    found_names.add(name)
                    yield name, offset
                    break
                offset = file_bytes.find(form, offset + 1)

    def list_line_numbers_with_names(self, file_bytes: bytes) -> list[int]:
        """Find the lines of a text, from 1, that contain names; none if bytes are no text."""
        try:
            file_bytes.decode()
        except UnicodeDecodeError:
            return []
        line_numbers: set[int] = set()
        for name, form, coding in self.encoded_forms:
            offset = -1 if b"\0" in file_bytes else file_bytes.find(form)
            while offset >= 0:
                if self._is_whole_name_in_coding(
                    name, file_bytes, offset, offset + len(form), coding
                ):
                    line_numbers.add(file_bytes.count(b"\n", 0, offset) + 1)
                offset = file_bytes.find(form, offset + 1)
        return sorted(line_numbers)

    def _is_whole_name_in_coding(
        self, name: str, file_bytes: bytes, start: int, end: int, coding: str
    ) -> bool:
        if coding == "base64":
            return True
        # A match in the other byte order has half a letter at the start (after a byte order mark)
        # or at the end.
        if (
            coding == "utf-16-be"
            and start <= 3
            and _starts_with_letter_byte(file_bytes[start - 1 : start])
        ):
            return False
        if (
            coding == "utf-16-le"
            and len(file_bytes) - end == 1
            and _starts_with_letter_byte(file_bytes[end:])
        ):
            return False
        if coding:
            letter_bytes = len("a".encode(coding))
            context_bytes = letter_bytes * (
                _CONTEXT_LETTERS + max(map(len, self.other_names), default=0)
            )
            context_start = max(start % letter_bytes, start - context_bytes)
            text = (
                file_bytes[context_start : end + context_bytes].decode(coding, "replace").encode()
            )
            text_offset = len(file_bytes[context_start:start].decode(coding, "replace").encode())
            return self._is_whole_person_name(
                name, text, text_offset, text_offset + len(name.encode())
            )
        return self._is_whole_person_name(name, file_bytes, start, end)

    def _is_whole_person_name(self, name: str, file_bytes: bytes, start: int, end: int) -> bool:
        """Check that a match is no part of a longer word or of someone else's longer name."""
        before = file_bytes[max(0, start - _MAX_ESCAPE_LENGTH) : start]
        is_inside_word = _is_first_decodable_a_letter(
            before[-k:] for k in range(1, 5)
        ) and _starts_with_letter_byte(file_bytes[start : start + 1])
        if is_inside_word and _ESCAPE.search(before) is None:  # after "%20" or "\\n" a word begins
            return False
        if _is_first_decodable_a_letter(
            file_bytes[end : end + k] for k in range(1, 5)
        ) and _starts_with_letter_byte(file_bytes[end - 1 : end]):
            return False
        for longer_name in self._longer_names[name]:
            longer_offset = file_bytes.find(longer_name, max(0, start - len(longer_name)))
            if 0 <= longer_offset <= start and longer_offset + len(longer_name) >= end:
                return False
        return True


def _contains_as_word(name: str, short_name: str) -> bool:
    """Check whether a name contains a shorter one as a word, so that the latter finds it."""
    offset = name.find(short_name)
    while offset >= 0:
        before, after = (
            name[offset - 1 : offset] if offset else "",
            name[offset + len(short_name) :][:1],
        )
        if not _LETTER.match(before) and not _LETTER.match(after):
            return True
        offset = name.find(short_name, offset + 1)
    return False


def _starts_with_letter_byte(byte_string: bytes) -> bool:
    return bool(byte_string) and (_WORD.match(byte_string) is not None or byte_string[0] >= 0xC3)


def _is_first_decodable_a_letter(byte_strings: Iterable[bytes]) -> bool:
    """Check whether the first piece that decodes as text is a letter; in an image none is."""
    for piece in byte_strings:
        try:
            return _LETTER.fullmatch(piece.decode()) is not None
        except UnicodeDecodeError:
            continue
    return False


def _encode_name_in_all_codings(name: str) -> Iterator[tuple[bytes, str]]:
    in_json = json.dumps(name)[1:-1]
    plain_forms = [
        name,
        in_json,
        in_json.replace("/", "\\/"),
        quote(name),
        quote(name, safe=""),
        quote_plus(name),
        html.escape(name),
        _encode_non_ascii_as_entities(name),
    ]
    for text in plain_forms:
        yield text.encode(), ""
        yield _HEX.sub(_swap_hex_escape_case, text).encode(), ""  # %c3 as %C3
    for coding in ("latin-1", "cp1252"):
        try:
            yield name.encode(coding), ""
        except UnicodeEncodeError:
            continue
    for coding in ("utf-16-le", "utf-16-be", "utf-32-le"):
        yield name.encode(coding), coding
    yield from ((form, "base64") for form in _encode_base64_at_all_offsets(name.encode()))


_HEX = re.compile(r"%[0-9A-F]{2}|\\u[0-9a-f]{4}")


def _swap_hex_escape_case(escape: re.Match[str]) -> str:
    text = escape.group()
    return text.lower() if text.startswith("%") else text[:2] + text[2:].upper()


def _encode_non_ascii_as_entities(name: str) -> str:
    return "".join(c if c.isascii() else f"&#{ord(c)};" for c in name)


def _encode_base64_at_all_offsets(name_bytes: bytes) -> Sequence[bytes]:
    """Encode bytes in base64 at the three possible offsets, without the letters at both ends.

    Examples
    --------
    >>> encoded_forms = _encode_base64_at_all_offsets(b"s0001234")
    >>> any(form in base64.b64encode(b"of s0001234.") for form in encoded_forms)
    True
    """
    if len(name_bytes) < _MIN_BASE64_BYTES:
        return []
    encodings = []
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + name_bytes)
        first = (offset * 8 + 5) // 6  # letters that hold bits of the preceding bytes
        last = (offset + len(name_bytes)) * 8 // 6
        encodings.append(encoded[first:last])
    return [
        *encodings,
        *(encoding.translate(bytes.maketrans(b"+/", b"-_")) for encoding in encodings),
    ]
