"""How one attribute's values become groups, and the words that mean "not known".

Apart from ``vocabulary.spec``, where an audit's settings are declared: people are put into groups
without those, and what reads settings takes longer to load than polars.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from isolux.vocabulary.errors import SpecError

Unknown = Literal["keep", "drop", "both"]
Absent = Literal["refuse", "note"]
Rest = Literal["keep", "drop"]

UNKNOWN_VALUES = (
    "",
    "unknown",
    "not sure",
    "unsure",
    "n/a",
    "na",
    "nan",
    "null",
    "prefer not to say",
)
"""Words that mean "not known", compared without case; null always does."""

_WORDS: Mapping[str, object] = {"unknown": Unknown, "rest": Rest, "absent": Absent}


def crossed(entry: str) -> tuple[str, ...]:
    """Take ``"race*gender"`` apart into its attributes.

    Examples
    --------
    >>> crossed("race * gender")
    ('race', 'gender')
    """
    return tuple(name.strip() for name in entry.split("*"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Grouping:
    """How one attribute's values become groups.

    ``merge`` maps a new group to the values it unites; ``rest`` says what becomes of values that
    no merge names. ``bins`` is ``"quantile:4"`` or ``"edges:0,18,30"``, with ``":right"`` closed on
    the right, or ``"top:50"``. ``nested`` maps a broad value to its subregions: the broad value
    counts in each of them where no subregion is given beside it. ``votes`` is ``any``,
    ``any+unknown`` (unknown counts as a value beside others, as in FACET), ``majority``, ``top``
    (highest; ties to all of them), ``top-or-none`` (ties to none) or ``at-least:K``.

    Examples
    --------
    >>> Grouping(attribute="tone", merge={"lighter": ["1", "2"]}).merge
    {'lighter': ('1', '2')}
    >>> Grouping(attribute="tone", rest="leave")
    Traceback (most recent call last):
    isolux.vocabulary.errors.SpecError: a grouping of 'tone' cannot be read: rest
      expected: keep or drop
      found: 'leave'
    """

    attribute: str
    votes: str = "any"
    unknown: Unknown = "keep"
    unknown_values: tuple[str, ...] = UNKNOWN_VALUES
    merge: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rest: Rest = "keep"
    absent: Absent = "refuse"
    bins: str | None = None
    nested: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what is not of the kind that is declared; lists of words become tuples."""
        for name in ("attribute", "votes", "bins"):
            value = getattr(self, name)
            if not isinstance(value, str) and not (name == "bins" and value is None):
                raise self._wrong(name, "text")
        for name, words in _WORDS.items():
            if getattr(self, name) not in get_args(words):
                raise self._wrong(name, " or ".join(get_args(words)))
        object.__setattr__(self, "unknown_values", self._listed("unknown_values"))
        for name in ("merge", "nested"):
            given = getattr(self, name)
            if not isinstance(given, Mapping):
                raise self._wrong(name, "each new name with a list of values")
            held = {key: self._listed(name, values) for key, values in given.items()}
            object.__setattr__(self, name, held)

    def _listed(self, name: str, values: object = None) -> tuple[str, ...]:
        words = getattr(self, name) if values is None else values
        if not isinstance(words, list | tuple) or not all(isinstance(w, str) for w in words):
            raise self._wrong(name, "lists of words")
        return tuple(words)

    def _wrong(self, name: str, expected: str) -> SpecError:
        return SpecError(
            f"a grouping of {self.attribute!r} cannot be read: {name}",
            expected=expected,
            found=repr(getattr(self, name)),
        )
