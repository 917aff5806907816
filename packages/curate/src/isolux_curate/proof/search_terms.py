"""Search terms in every coding that files write names in."""

from __future__ import annotations

import base64
import html
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from urllib.parse import quote, quote_plus

from isolux_curate.proof.readable_text import simplify_text
from isolux_curate.withdrawal.terms import WORD_CHARACTERS

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
        simplify_text(name),
        *(unicodedata.normalize(form, name) for form in ("NFC", "NFD")),  # macOS names files in NFD
        *([f"{int(name):.18e}"] if name.isdigit() else []),  # as numpy.savetxt writes it
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


COMMON_WORDS = frozenset(
    [
        "age",
        "box",
        "country",
        "data",
        "face",
        "faces",
        "false",
        "file",
        "files",
        "group",
        "height",
        "image",
        "image_id",
        "images",
        "index",
        "instance",
        "instance_id",
        "label",
        "labels",
        "model",
        "name",
        "none",
        "null",
        "people",
        "person",
        "photo",
        "photos",
        "score",
        "scores",
        "subject",
        "subject_id",
        "table",
        "test",
        "text",
        "train",
        "true",
        "type",
        "valid",
        "value",
        "values",
        "width",
    ]
)
"""Words that are common in data files: such an id is only searched as a cell of an id column."""
