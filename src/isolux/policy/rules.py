"""What a policy holds: its rules, each one question, and which keys each kind of rule takes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from isolux.policy.amounts import Amount

Kind = Literal[
    "at_least", "at_most", "within", "worse_by_at_most", "lost_at_most", "ratio_at_least",
    "none_above", "covered", "ran",
]  # fmt: skip
SamePeople = Literal["same", "shared", "different"]

_OF_METRIC = ("metric", "label", "threshold", "model", "name")
KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "at_least": (("metric",), ("attribute", "groups"), "the value of everyone, or of each group"),
    "at_most": (("metric",), ("attribute", "groups"), "the value of everyone, or of each group"),
    "within": (("metric", "attribute"), ("groups",), "no two groups differ by as much"),
    "worse_by_at_most": (
        ("metric", "attribute"), ("groups", "than"), "no group is so much worse than the others",
    ),
    "lost_at_most": (
        ("metric",), ("attribute", "groups", "people"), "no group lost so much since the baseline",
    ),
    "ratio_at_least": (
        ("metric", "attribute"), ("groups",), "the smallest value over the largest",
    ),
    "none_above": (("findings",), (), "no gap of the audit and no finding is so large"),
    "covered": ((), ("groups", "people", "clusters"), "groups that must be there, and their size"),
    "ran": ((), (), "analyses that must have run"),
}  # fmt: skip
"""Of each kind of rule: keys that it needs, keys that it may have, what it asks."""


def takes(kind: str) -> tuple[str, ...]:
    """List the keys that a rule of this kind may have.

    Examples
    --------
    >>> takes("ran")
    ('ran', 'name')
    """
    needs, may, _ = KINDS[kind]
    return tuple(dict.fromkeys((kind, *needs, *may, *(_OF_METRIC if "metric" in needs else ()),
                                "name")))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Parameters
    ----------
    kind : str
        One of ``KINDS``.
    place : int
        From 1, in the policy.
    amount : Amount, optional
        Limit or margin, with its unit.
    metric, label, threshold, model : optional
        What is asked about; None: every class, threshold or model that the run has (where a metric
        has a value over all classes, that alone).
    attribute : str, optional
        The attribute, or intersection joined by ``*``; None: everyone. Of ``covered`` its value.
    groups : tuple of str
        Some groups alone; empty: each group whose value is known.
    than : str, optional
        The group that others are held to; None: everyone else.
    people : int or str, optional
        Of ``covered``: the fewest in a group. Of ``lost_at_most``: ``same``, ``shared`` or
        ``different``.
    clusters : int, optional
        Of ``covered``: the fewest independent clusters in a group.
    analyses : tuple of str
        Of ``ran`` and ``none_above``.
    ratio : float, optional
        Of ``ratio_at_least``: between 0 and 1.
    title : str
        The name that the policy gives it; empty: it is made of what the rule asks.
    """

    kind: Kind
    place: int
    amount: Amount | None = None
    metric: str | None = None
    label: str | None = None
    threshold: float | None = None
    model: str | None = None
    attribute: str | None = None
    groups: tuple[str, ...] = ()
    than: str | None = None
    people: int | None = None
    clusters: int | None = None
    same_people: SamePeople = "same"
    analyses: tuple[str, ...] = ()
    ratio: float | None = None
    title: str = ""

    @property
    def where(self) -> str:
        """How errors call the rule."""
        return f"rule {self.place} of the policy"

    @property
    def asks_baseline(self) -> bool:
        """Whether the rule needs a second run."""
        return self.kind == "lost_at_most"


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules that are asked together.

    Parameters
    ----------
    rules : tuple of Rule
    level : float
        1 less the chance of a wrong pass, and of a wrong fail, of the whole policy.
    power : float
        Chance with which the number of people that is told would decide.
    unanswered : float
        Share of people, 0 to 1, who may have no prediction, of everyone and of each asked group.
    name : str
    source : str
        The file, or "in memory".
    """

    rules: tuple[Rule, ...]
    level: float = 0.95
    power: float = 0.8
    name: str = ""
    source: str = field(default="in memory", compare=False)
    unanswered: float = 0.01
