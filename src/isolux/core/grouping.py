"""How one attribute's values become groups, and the words that mean "not known".

Apart from ``core.spec``, where an audit's settings are declared: people are put into groups
without those, and what reads settings takes longer to load than polars.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from isolux.core.errors import SpecError

UnknownHandling = Literal["keep", "drop", "both"]
AbsentHandling = Literal["refuse", "note"]
RestHandling = Literal["keep", "drop"]

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

_ALLOWED_WORDS: Mapping[str, object] = {
    "unknown": UnknownHandling,
    "rest": RestHandling,
    "absent": AbsentHandling,
}


def split_intersection(intersection: str) -> tuple[str, ...]:
    """Take ``"race*gender"`` apart into its attributes.

    Examples
    --------
    >>> split_intersection("race * gender")
    ('race', 'gender')
    """
    return tuple(name.strip() for name in intersection.split("*"))


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
    isolux.core.errors.SpecError: a grouping of 'tone' cannot be read: rest
      expected: keep or drop
      found: 'leave'
    """

    attribute: str
    votes: str = "any"
    unknown: UnknownHandling = "keep"
    unknown_values: tuple[str, ...] = UNKNOWN_VALUES
    merge: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rest: RestHandling = "keep"
    absent: AbsentHandling = "refuse"
    bins: str | None = None
    nested: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what is not of the kind that is declared; lists of words become tuples."""
        for name in ("attribute", "votes", "bins"):
            text = getattr(self, name)
            if not isinstance(text, str) and not (name == "bins" and text is None):
                raise self._build_error(name, "text")
        for name, words in _ALLOWED_WORDS.items():
            if getattr(self, name) not in get_args(words):
                raise self._build_error(name, " or ".join(get_args(words)))
        object.__setattr__(self, "unknown_values", self._to_text_tuple("unknown_values"))
        for name in ("merge", "nested"):
            mapping = getattr(self, name)
            if not isinstance(mapping, Mapping):
                raise self._build_error(name, "each new name with a list of values")
            value_lists = {
                key: self._to_text_tuple(name, values) for key, values in mapping.items()
            }
            object.__setattr__(self, name, value_lists)

    def _to_text_tuple(self, name: str, values: object = None) -> tuple[str, ...]:
        words = getattr(self, name) if values is None else values
        if not isinstance(words, list | tuple) or not all(isinstance(w, str) for w in words):
            raise self._build_error(name, "lists of words")
        return tuple(words)

    def _build_error(self, name: str, expected: str) -> SpecError:
        return SpecError(
            f"a grouping of {self.attribute!r} cannot be read: {name}",
            expected=expected,
            found=repr(getattr(self, name)),
        )
