"""Settings of groups: by which attributes, and how an attribute's values become groups."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

from isolux.vocabulary.spec.stage import Stage, setting

__all__ = ["UNKNOWN_VALUES", "Absent", "Grouping", "Groups", "Rest", "Unknown", "crossed"]

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


def crossed(entry: str) -> tuple[str, ...]:
    """Take ``"race*gender"`` apart into its attributes.

    Examples
    --------
    >>> crossed("race * gender")
    ('race', 'gender')
    """
    return tuple(name.strip() for name in entry.split("*"))


class Groups(Stage):
    """By what people are compared, and what becomes of their values."""

    by: tuple[str, ...] = setting((), 'attribute or intersection: race, "race*gender"', often=True)
    unknown: Unknown = setting("keep", "how to treat unknown values")
    unknown_values: tuple[str, ...] = setting(
        UNKNOWN_VALUES, "words that mean unknown, compared without case"
    )
    group: tuple[str, ...] = setting((), 'a named merge: "lighter=1,2,3" or "tone:lighter=1,2,3"')
    group_rest: Rest = setting(
        "keep", "how to treat values that no --group of their attribute names"
    )
    absent_values: Absent = setting(
        "refuse", "what to do if a --group or --nested names a value that does not occur"
    )
    bins: tuple[str, ...] = setting(
        (),
        '"age=edges:18,30,45,70", "income=quantile:4" (of people; "quantile:4:images": of '
        'images): [18, 30), or with ":right" at the end (18, 30], as in numpy and pandas; or a '
        "paper's rule, income=fairness-indicators; or the most common values, city=top:50",
    )
    votes: str = setting("any", "any, any+unknown, majority, top, top-or-none, at-least:K")
    nested: tuple[str, ...] = setting(
        (), 'a broad value counts in each part: "ancestry:Africa=Kenya,Ghana"'
    )

    @property
    def attributes(self) -> tuple[str, ...]:
        """Each attribute that ``by`` names, alone or in an intersection, once."""
        return tuple(dict.fromkeys(name for entry in self.by for name in crossed(entry)))


class Grouping(BaseModel):
    """How one attribute's values become groups.

    ``merge`` maps a new group to the values it unites; ``rest`` says what becomes of values that
    no merge names. ``bins`` is ``"quantile:4"`` or ``"edges:0,18,30"``, with ``":right"`` closed on
    the right, or ``"top:50"``. ``nested`` maps a broad value to its subregions: the broad value
    counts in each of them where no subregion is given beside it. ``votes`` is ``any``,
    ``any+unknown`` (unknown counts as a value beside others, as in FACET), ``majority``, ``top``
    (highest; ties to the lower value), ``top-or-none`` (ties to none) or ``at-least:K``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    attribute: str
    votes: str = "any"
    unknown: Unknown = "keep"
    unknown_values: tuple[str, ...] = UNKNOWN_VALUES
    merge: dict[str, tuple[str, ...]] = {}
    rest: Rest = "keep"
    absent: Absent = "refuse"
    bins: str | None = None
    nested: dict[str, tuple[str, ...]] = {}
