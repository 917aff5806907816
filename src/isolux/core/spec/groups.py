"""Settings of groups: by which attributes, and how an attribute's values become groups."""

from __future__ import annotations

from isolux.core.grouping import (
    UNKNOWN_VALUES,
    AbsentHandling,
    Grouping,
    RestHandling,
    UnknownHandling,
    split_intersection,
)
from isolux.core.spec.stage import SettingsStage, setting

__all__ = [
    "UNKNOWN_VALUES",
    "AbsentHandling",
    "Grouping",
    "Groups",
    "RestHandling",
    "UnknownHandling",
    "split_intersection",
]


class Groups(SettingsStage):
    """By what people are compared, and what becomes of their values."""

    by: tuple[str, ...] = setting(
        (),
        'attribute or intersection: race, "race*gender"; none: everyone, without a comparison',
        often=True,
    )
    unknown: UnknownHandling = setting("keep", "how to treat unknown values")
    unknown_values: tuple[str, ...] = setting(
        UNKNOWN_VALUES, "words that mean unknown, compared without case", flag=False
    )
    group: tuple[str, ...] = setting((), 'a named merge: "lighter=1,2,3" or "tone:lighter=1,2,3"')
    ungrouped_values: RestHandling = setting(
        "keep",
        "how to treat values that no --group of their attribute names",
        flag=False,
        needs=("group",),
    )
    unmatched_values: AbsentHandling = setting(
        "refuse",
        "what to do if --group or nested names a value that does not occur",
        flag=False,  # a protocol's choice for whatever merges it may meet: it needs none
    )
    bins: tuple[str, ...] = setting(
        (),
        '"age=edges:18,30,45,70", "income=quantile:4" (of people; "quantile:4:images": of '
        'images): [18, 30), or with ":right" at the end (18, 30], as in numpy and pandas; or a '
        "paper's rule, income=fairness-indicators; or the most common values, city=top:50",
    )
    votes: str = setting(
        "any",
        "any, any+unknown, majority, top (ties: in all groups of the tie), top-or-none (ties: in"
        " none), at-least:K",
    )
    nested: tuple[str, ...] = setting(
        (), 'a broad value counts in each part: "ancestry:Africa=Kenya,Ghana"', flag=False
    )

    @property
    def attributes(self) -> tuple[str, ...]:
        """Each attribute that ``by`` names, alone or in an intersection, once."""
        return tuple(dict.fromkeys(name for entry in self.by for name in split_intersection(entry)))
