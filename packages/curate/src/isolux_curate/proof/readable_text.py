"""Text as a reader sees it: escapes decoded, formatting, line breaks and variants of signs removed.

Names are searched in the bytes of a file and in these readings of it.
"""

from __future__ import annotations

import html
import quopri
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

_MAX_ESCAPE_ROUNDS = 8
_MAIL_SUFFIXES = (".eml", ".mbox", ".mht", ".mhtml")
_QUOTED_PRINTABLE = re.compile(rb"(?i)quoted-printable")
_ENCODED_WORD = re.compile(rb"=\?[\w-]+\?[qQ]\?([^?\s]*)\?=")
_HEX_ESCAPE = re.compile(  # of JSON, JavaScript and Python; of Rust; of Python; of C; of CSS
    r"\\+(?:u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,5})\}|U000([0-9A-Fa-f]{5})"
    r"|x([0-9A-Fa-f]{2})|(00[0-9A-Fa-f]{4}))"
)
_OCTAL_ESCAPE = re.compile(r"\\+([0-3][0-7]{2})")
_ESCAPED_SIGN = re.compile(r"\\([^\w\s\\]|_)|\{([^\w\s{}])\}")  # Markdown and LaTeX: "s\_17"
_TERMINAL_CODE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200d\u2060\ufeff]")
_HYPHEN = re.compile("[\u2010-\u2015\u2212]")
_HYPHEN_AT_LINE_END = re.compile(r"-[ \t]*\r?\n[ \t>#*]*")
_TAGGED = re.compile(r"(?i)<(?:w:t|a:t|text:|html|body|p|b|i|span|text|tspan|si|is)\b")
_TAG = re.compile(r"<[^>]*>")
_BREAK = re.compile(
    r"(?i)<[/\s]*(?:(?:w:|a:)?(?:p|tc|tab|br|cr|tr)|td|th|div|li|dt|dd|h[1-6]|option|section|si|c|v"
    r"|text:[phs]|text:tab|text:line-break|table:table-cell)\b[^>]*>"
)


def iterate_readings(file_name: str, file_bytes: bytes) -> Iterator[bytes]:
    r"""Decode a text as its reader sees it, in up to two ways.

    Examples
    --------
    >>> [*iterate_readings("a.html", b"s-0<b>4%31</b>7")]
    [b's-0<b>41</b>7', b's-0417']
    """
    file_bytes = _ENCODED_WORD.sub(_decode_encoded_word, file_bytes)
    if file_name.lower().endswith(_MAIL_SUFFIXES) or _QUOTED_PRINTABLE.search(file_bytes):
        file_bytes = quopri.decodestring(file_bytes)
    text = decode_escapes(file_bytes.decode("utf-8", "surrogateescape"))
    yield _encode_reading(text)
    yield _encode_reading(simplify_text(text))


def _decode_encoded_word(word_match: re.Match[bytes]) -> bytes:
    """Decode a word of a mail's header: ``=?utf-8?q?Zo=C3=AB?=``."""
    return quopri.decodestring(word_match[1], header=True)


def _encode_reading(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of an escaped pair
        return text.encode("utf-8", "replace")


def decode_escapes(text: str) -> str:
    r"""Decode the escapes of addresses, pages and JSON, also repeated ones.

    Examples
    --------
    >>> decode_escapes("%2541, &#66;, \\u0043")
    'A, B, C'
    """
    for _ in range(_MAX_ESCAPE_ROUNDS):
        before = text
        if "%" in text:
            text = unquote(text, errors="surrogateescape")
        if "&" in text:
            text = html.unescape(text)
        if "\\" in text:
            text = _HEX_ESCAPE.sub(_decode_hex_escape, text)
            text = _OCTAL_ESCAPE.sub(lambda digits: chr(int(digits[1], 8)), text)
        if text == before:
            break
    return text


def _decode_hex_escape(escape: re.Match[str]) -> str:
    return chr(int(next(filter(None, escape.groups())), 16))


def simplify_text(text: str) -> str:
    r"""Remove formatting and line breaks, and write variants of hyphens and accents as one.

    Examples
    --------
    >>> simplify_text("<p>s<b>\u201317</b>,\n  s-\n18</p>")
    ' s-17, s-18 '
    """
    if _TAGGED.search(text):
        text = _TAG.sub("", _BREAK.sub(" ", text))
    text = _INVISIBLE.sub("", _TERMINAL_CODE.sub("", text))
    text = _HYPHEN_AT_LINE_END.sub("-", _HYPHEN.sub("-", _ESCAPED_SIGN.sub(r"\1\2", text)))
    return unicodedata.normalize("NFC", " ".join(re.split(r"\s+", text)))
