"""Sentences and errors without the ids of people who withdrew, however these are written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager

from isolux.vocabulary.errors import InputError, IsoluxError

_HIDDEN = "(withdrawn)"
_QUOTED = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")
# Letters or digits (of both, one less) from which an id is looked for within others: ID_crop1.jpg.
_LONG = 4
_COUNT = 3  # digits up to which a number in a sentence may be a count
_AS_AN_ID = (
    r"(?P<before>[\"'`/#\\]|(?<!\w)(?:ids?|instances?|images?|photos?|pictures?|files?|subjects?|"
    r"persons?|people|households?|videos?|frames?|clusters?|annotations?|boxe?s?|faces?|units?)"
    r"[ :=#]+(?:[\w.-]+, )*)(?:{numbers})(?!\w)(?! of )"
    r"|(?P<bare>(?<!\w))(?:{numbers})(?=\.[A-Za-z]\w{{1,4}}\b)"
)


def unnamed(notes: Iterable[str], withdrawn: frozenset[str]) -> list[str]:
    """Blot the ids of who withdrew out of sentences."""
    found = list(notes)
    if any(_QUOTED.search(note) for note in found):
        blot = _blot_of_quoted(withdrawn)
        found = [type(note)(_QUOTED.sub(blot, note)) for note in found]
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


def form_of(text: str) -> str:
    """Show how an id is written and not which it is: letters as ``a``, digits as ``9``."""
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", text))


@contextmanager
def blotted_errors(withdrawn: frozenset[str], kept: Callable[[], Container[str]]) -> Iterator[None]:
    """Let no error name people who withdrew."""
    try:
        yield
    except IsoluxError as error:
        if not withdrawn:
            raise
        raise _without_ids(error, withdrawn, kept) from None


def _without_ids(
    error: IsoluxError, withdrawn: frozenset[str], kept: Callable[[], Container[str]]
) -> IsoluxError:
    def said(text: str | None) -> str | None:
        return None if text is None else unnamed([text], withdrawn)[0]

    found = said(error.found)
    if isinstance(error, InputError) and found is not None:
        stays = kept()
        found = _QUOTED.sub(lambda q: _form_unless(q[0], stays), found)
    same = IsoluxError.__new__(type(error))
    IsoluxError.__init__(
        same,
        str(said(error.problem)),
        expected=said(error.expected),
        found=found,
        where=said(error.where),
        hint=said(error.hint),
    )
    return same


def _form_unless(quoted: str, stays: Container[str]) -> str:
    inner = quoted[1:-1]
    return (
        quoted if inner in stays or inner == _HIDDEN else f"{quoted[0]}{form_of(inner)}{quoted[0]}"
    )


def _blot_of_quoted(withdrawn: frozenset[str]) -> Callable[[re.Match[str]], str]:
    known = {_plain(i) for i in withdrawn} - {""}
    long = [i for i in known if len(i) + (not i.isalpha() and not i.isdigit()) >= _LONG]

    def blot(found: re.Match[str]) -> str:
        text = found[0][1:-1]
        whole = _plain(text)
        parts = {_plain(part) for part in re.split(r"[\W_]+", text)}
        parts |= {whole, _plain(re.sub(r"\.\w{1,5}$", "", text))}
        if parts & known or any(i in whole for i in long):
            return f"{found[0][0]}{_HIDDEN}{found[0][0]}"
        return found[0]

    return blot


def _plain(text: str) -> str:
    """Take case, separators and zeros before numbers away, by which spellings of an id differ."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"[\W_]+", "", folded))
