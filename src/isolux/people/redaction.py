"""Sentences and errors without the ids of people who withdrew, however these are written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager

from isolux.core.errors import InputError, IsoluxError

_REDACTED = "(withdrawn)"
_QUOTED = re.compile(r"'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"")
# Letters or digits (of both, one less) from which an id is looked for within others: ID_crop1.jpg.
_MIN_SUBSTRING_LENGTH = 4
_MAX_COUNT_DIGITS = 3  # digits up to which a number in a sentence may be a count
_NUMBER_AS_ID = (
    r"(?P<before>[\"'`/#\\]|(?<!\w)(?:ids?|instances?|images?|photos?|pictures?|files?|subjects?|"
    r"persons?|people|households?|videos?|frames?|clusters?|annotations?|boxe?s?|faces?|units?)"
    r"[ :=#]+(?:[\w.-]+, )*)(?:{numbers})(?!\w)(?! of )"
    r"|(?P<bare>(?<!\w))(?:{numbers})(?=\.[A-Za-z]\w{{1,4}}\b)"
)


def redact_ids(notes: Iterable[str], withdrawn: frozenset[str]) -> list[str]:
    """Redact the ids of withdrawn people from sentences."""
    sentences = list(notes)
    if any(_QUOTED.search(note) for note in sentences):
        redact = _build_quote_redactor(withdrawn)
        sentences = [type(note)(_QUOTED.sub(redact, note)) for note in sentences]
    ordered_ids = sorted(withdrawn - {""}, key=len, reverse=True)
    for start in range(0, len(ordered_ids), 1_000):
        chunk = ordered_ids[start : start + 1_000]
        counts = [i for i in chunk if i.isdecimal() and len(i) <= _MAX_COUNT_DIGITS]
        words = "|".join(re.escape(i) for i in chunk if i not in set(counts))
        numbers = "|".join(map(re.escape, counts))
        if words:
            pattern = re.compile(rf"(?<!\w)(?:{words})(?!\w)")
            sentences = [
                type(note)(pattern.sub(_REDACTED, note)) for note in sentences
            ]  # a caution stays one
        if numbers:
            pattern = re.compile(_NUMBER_AS_ID.format(numbers=numbers))
            sentences = [type(note)(pattern.sub(_redact_match, note)) for note in sentences]
    return sentences


def _redact_match(id_match: re.Match[str]) -> str:
    return f"{id_match['before'] or ''}{_REDACTED}"


def mask_letters_and_digits(text: str) -> str:
    """Replace letters of an id by ``a`` and digits by ``9``, to show its form only."""
    return re.sub(r"[^\W\d_]", "a", re.sub(r"\d", "9", text))


@contextmanager
def redact_errors_in_block(
    withdrawn: frozenset[str], list_kept_ids: Callable[[], Container[str]]
) -> Iterator[None]:
    """Redact the ids of withdrawn people from errors raised in the block."""
    try:
        yield
    except IsoluxError as error:
        if not withdrawn:
            raise
        raise _redact_error_fields(error, withdrawn, list_kept_ids) from None


def _redact_error_fields(
    error: IsoluxError, withdrawn: frozenset[str], list_kept_ids: Callable[[], Container[str]]
) -> IsoluxError:
    def redact_text(text: str | None) -> str | None:
        return None if text is None else redact_ids([text], withdrawn)[0]

    found_text = redact_text(error.found)
    if isinstance(error, InputError) and found_text is not None:
        kept_ids = list_kept_ids()
        found_text = _QUOTED.sub(lambda q: _mask_unless_kept(q[0], kept_ids), found_text)
    redacted = IsoluxError.__new__(type(error))
    IsoluxError.__init__(
        redacted,
        str(redact_text(error.problem)),
        expected=redact_text(error.expected),
        found=found_text,
        where=redact_text(error.where),
        hint=redact_text(error.hint),
    )
    return redacted


def _mask_unless_kept(quoted: str, kept_ids: Container[str]) -> str:
    inner = quoted[1:-1]
    return (
        quoted
        if inner in kept_ids or inner == _REDACTED
        else f"{quoted[0]}{mask_letters_and_digits(inner)}{quoted[0]}"
    )


def _build_quote_redactor(withdrawn: frozenset[str]) -> Callable[[re.Match[str]], str]:
    folded_ids = {_normalise_id_spelling(i) for i in withdrawn} - {""}
    long_ids = [
        i
        for i in folded_ids
        if len(i) + (not i.isalpha() and not i.isdigit()) >= _MIN_SUBSTRING_LENGTH
    ]

    def redact(quoted_match: re.Match[str]) -> str:
        text = quoted_match[0][1:-1]
        folded = _normalise_id_spelling(text)
        words = {_normalise_id_spelling(word) for word in re.split(r"[\W_]+", text)}
        words |= {folded, _normalise_id_spelling(re.sub(r"\.\w{1,5}$", "", text))}
        if words & folded_ids or any(i in folded for i in long_ids):
            return f"{quoted_match[0][0]}{_REDACTED}{quoted_match[0][0]}"
        return quoted_match[0]

    return redact


def _normalise_id_spelling(text: str) -> str:
    """Normalise case, separators and leading zeros, by which spellings of an id differ."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return re.sub(r"(?<!\d)0+(?=\d)", "", re.sub(r"[\W_]+", "", folded))
