"""Sentences without the ids of people who withdrew."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["unnamed"]

_HIDDEN = "(withdrawn)"
_COUNT = 3  # digits up to which a number in a sentence may be a count
_AS_AN_ID = (
    r"(?P<before>[\"'`/#\\]|(?<!\w)(?:ids?|instances?|images?|photos?|pictures?|files?|subjects?|"
    r"persons?|people|households?|videos?|frames?|clusters?|annotations?|boxe?s?|faces?|units?)"
    r"[ :=#]+(?:[\w.-]+, )*)(?:{numbers})(?!\w)(?! of )"
    r"|(?P<bare>(?<!\w))(?:{numbers})(?=\.[A-Za-z]\w{{1,4}}\b)"
)


def unnamed(notes: Iterable[str], withdrawn: frozenset[str]) -> list[str]:
    """Blot the ids of who withdrew out of sentences.

    A number of up to three digits is an id only where the sentence treats it as one: in quotation
    marks, with a suffix, or after a word such as ``image``. Elsewhere it is a count.

    Examples
    --------
    >>> unnamed(["no face in s0007.jpg, nor in image 7: 7 of 9"], frozenset({"s0007.jpg", "7"}))
    ['no face in (withdrawn), nor in image (withdrawn): 7 of 9']
    """
    found = list(notes)
    telling = sorted(withdrawn - {""}, key=len, reverse=True)
    for start in range(0, len(telling), 1_000):
        part = telling[start : start + 1_000]
        counts = [i for i in part if i.isdecimal() and len(i) <= _COUNT]
        words = "|".join(re.escape(i) for i in part if i not in set(counts))
        numbers = "|".join(map(re.escape, counts))
        if words:
            pattern = re.compile(rf"(?<!\w)(?:{words})(?!\w)")
            found = [
                type(note)(pattern.sub(_HIDDEN, note)) for note in found
            ]  # a caution stays one
        if numbers:
            pattern = re.compile(_AS_AN_ID.format(numbers=numbers))
            found = [type(note)(pattern.sub(_blotted, note)) for note in found]
    return found


def _blotted(found: re.Match[str]) -> str:
    return f"{found['before'] or ''}{_HIDDEN}"
