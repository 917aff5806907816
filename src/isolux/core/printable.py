"""Text from outside as it may be printed: whatever would steer a terminal is replaced.

Names of columns, files, groups and people are printed as they are in every script, with accents,
combining characters and emoji. What they cannot do is move the cursor, change colours, start a line
of their own or turn the direction of what follows around.
"""

from __future__ import annotations

import re

_LINE_BREAK = re.compile("\r\n|[\t\n\r\x85\u2028\u2029]")
_UNPRINTABLE = re.compile(
    # What XML forbids, ESC and the other C0 controls among it; DEL and C1.
    "[^\t\n\r\N{SPACE}-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\x7f-\x9f]"
    # Line separators; marks, embeddings, overrides and isolates of the writing direction.
    "|[\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)


def clean_line(text: str) -> str:
    """Replace what XML forbids or steers a terminal, and join lines: for names and sentences.

    Examples
    --------
    >>> (
    ...     clean_line("a" + chr(0) + "b"),
    ...     clean_line("a" + chr(27) + "[1mb"),
    ...     clean_line("one" + chr(10) + "line"),
    ... )
    ('a�b', 'a�[1mb', 'one line')
    """
    return clean_text(_LINE_BREAK.sub(" ", text))


def clean_text(text: str) -> str:
    r"""Replace the same in text of several lines, which stay.

    Examples
    --------
    >>> clean_text("a" + chr(27) + "[1m" + chr(10) + "b")
    'a�[1m\nb'
    """
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", text)


def escape_unsafe_json(text: str) -> str:
    r"""Write the same in a JSON text as escapes, which stand for the same characters.

    Examples
    --------
    >>> escape_unsafe_json('["a' + chr(0x9B) + '"]')
    '["a\\u009b"]'
    """
    return _UNPRINTABLE.sub(lambda character: f"\\u{ord(character.group()):04x}", text)
