"""What a policy holds: its rules, each one question, and which keys each kind of rule takes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Literal

from isolux.core.errors import SpecError

_AMOUNT_PATTERN = re.compile(r"\s*([-+]?\d+(?:\.\d+)?)\s*([^\d\s,.].*?)?\s*")
_POINT_WORDS = ("point", "points", "percentage points", "pp")
_SHARE_WORDS = ("share", "shares", "fraction")
_PERCENT_WORDS = ("%", "percent", "per cent")


@dataclass(frozen=True, slots=True)
class Amount:
    """A number and the unit it was written with.

    Parameters
    ----------
    number : float
        As written: 5 of ``5 points``.
    unit : str
        ``points``, ``share``, ``%`` or the metric's own unit.
    """

    number: float
    unit: str

    @property
    def text(self) -> str:
        """The amount as a sentence has it.

        Examples
        --------
        >>> Amount(1.0, "points").text, Amount(80.0, "%").text
        ('1 point', '80 %')
        """
        unit = "point" if self.unit == "points" and self.number == 1 else self.unit
        return f"{self.number:g} {unit}".strip()


def parse_amount_with_unit(amount: object, *, key: str, source: str) -> Amount:
    """Read a number with its unit.

    Examples
    --------
    >>> parse_amount_with_unit("5 points", key="max_difference", source="rule 1")
    Amount(number=5.0, unit='points')
    """
    expected = "a number with its unit: `5 points`, `0.05 share`; a level also `80 %`"
    if isinstance(amount, float) and not math.isfinite(amount):
        raise SpecError(
            f"{key} is not a number",
            expected=expected,
            found=str(amount),
            where=source,
            hint="without a limit there is nothing to pass: give one, or leave the rule out",
        )
    if isinstance(amount, int | float) and not isinstance(amount, bool):
        raise SpecError(
            f"{key} has no unit",
            expected=expected,
            found=f"{amount:g}",
            where=source,
            hint=f"write {_suggest_amount_units(key, float(amount))}; "
            "of another metric its unit, such as `2 dB`",
        )
    pattern_match = _AMOUNT_PATTERN.fullmatch(amount) if isinstance(amount, str) else None
    if pattern_match is None:
        point = isinstance(amount, str) and re.match(r"\s*[-+]?\d+,\d", amount)
        hint = f"with a point: `{key}: {str(amount).replace(',', '.').strip()}`" if point else None
        raise SpecError(
            f"{key} is not a number", expected=expected, found=repr(amount), where=source, hint=hint
        )
    unit = " ".join((pattern_match[2] or "").split())
    if not unit:
        return parse_amount_with_unit(float(pattern_match[1]), key=key, source=source)
    for names, name in ((_POINT_WORDS, "points"), (_SHARE_WORDS, "share"), (_PERCENT_WORDS, "%")):
        unit = name if unit.lower() in names else unit
    return Amount(float(pattern_match[1]), unit)


def _suggest_amount_units(key: str, number: float) -> str:
    """Suggest the units that a number without one may have, the likeliest first."""
    unit = "%" if key in ("at_least", "at_most") else "points"
    if 0 < abs(number) < 1:
        return f"`{key}: {100 * number:g} {unit}` or, the same, `{key}: {number:g} share`"
    return f"`{key}: {number:g} {unit}`" + (
        " if percentage points are meant" if unit == "points" else ""
    )


def convert_margin_to_unit(amount: Amount, unit: str, *, key: str, source: str) -> float:
    """Convert the margin of a difference to the metric's unit.

    Examples
    --------
    >>> points = Amount(5.0, "points")
    >>> convert_margin_to_unit(points, "fraction", key="max_difference", source="rule 1")
    0.05
    """
    if amount.unit == "%":
        raise SpecError(
            f"{key} is in percent, which a difference may mean in two ways",
            expected=f"`{amount.number:g} points` of a hundred, or a share of 1",
            found=amount.text,
            where=source,
        )
    margin = _convert_amount_to_unit(amount, unit, key, source)
    if margin <= 0:
        raise SpecError(
            f"{key} leaves no room",
            expected="above 0: no number of people shows that two values are exactly alike",
            found=amount.text,
            where=source,
        )
    if unit == "fraction" and margin >= 1:
        raise SpecError(
            f"{key} allows every difference there can be",
            expected="below 100 points",
            found=amount.text,
            where=source,
        )
    return margin


def convert_limit_to_unit(amount: Amount, unit: str, *, key: str, source: str) -> float:
    """Convert the limit of a value to the metric's unit.

    Examples
    --------
    >>> convert_limit_to_unit(Amount(80.0, "%"), "fraction", key="at_least", source="rule 1")
    0.8
    """
    limit = _convert_amount_to_unit(amount, unit, key, source)
    if unit == "fraction" and not 0 < limit < 1:
        raise SpecError(
            f"{key} asks nothing of a share, or what none can show",
            expected="more than 0 % and less than 100 %",
            found=amount.text,
            where=source,
        )
    if key == "at_least" and unit == "fraction" and amount.unit != "share" and amount.number < 1:
        raise SpecError(
            f"{key} asks for less than 1 %, which nearly any model passes",
            expected=f"`{100 * amount.number:g} %`, or `{limit:g} share` if so little is meant",
            found=amount.text,
            where=source,
            hint=f"did you mean {100 * amount.number:g} %?",
        )
    return limit


def _convert_amount_to_unit(amount: Amount, unit: str, key: str, source: str) -> float:
    if unit == "fraction":
        if amount.unit in ("points", "%"):
            return round(amount.number / 100.0, 12)
        if amount.unit == "share":
            return amount.number
        expected_unit = "points or a share"
    else:
        expected_unit = unit or "units"
        if amount.unit.lower() in (expected_unit.lower(), "units", "unit"):
            return amount.number
    raise SpecError(
        f"{key} is in another unit than the metric",
        expected=f"{expected_unit}",
        found=amount.text,
        where=source,
    )


RuleKind = Literal[
    "at_least",
    "at_most",
    "max_difference",
    "max_deficit",
    "max_drop",
    "ratio_at_least",
    "no_finding_above",
    "required_groups",
    "required_analyses",
]
BaselinePeople = Literal["same", "shared", "different"]

_METRIC_KEYS = ("metric", "label", "threshold", "model", "name")
RULE_KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "at_least": (("metric",), ("attribute", "groups"), "the value of everyone, or of each group"),
    "at_most": (("metric",), ("attribute", "groups"), "the value of everyone, or of each group"),
    "max_difference": (("metric", "attribute"), ("groups",), "no two groups differ by as much"),
    "max_deficit": (
        ("metric", "attribute"),
        ("groups", "reference"),
        "no group is so much worse than the others",
    ),
    "max_drop": (
        ("metric",),
        ("attribute", "groups", "people"),
        "no group lost so much since the baseline",
    ),
    "ratio_at_least": (("metric", "attribute"), ("groups",), "the smallest value over the largest"),
    "no_finding_above": (("findings",), (), "no gap of the audit and no finding is so large"),
    "required_groups": (
        (),
        ("groups", "people", "clusters"),
        "groups that must be there, and their size",
    ),
    "required_analyses": ((), (), "analyses that must have run"),
}
"""Of each kind of rule: keys that it needs, keys that it may have, what it asks."""


def list_allowed_rule_keys(rule_kind: str) -> tuple[str, ...]:
    """List the keys that a rule of this kind may have.

    Examples
    --------
    >>> list_allowed_rule_keys("required_analyses")
    ('required_analyses', 'name')
    """
    required_keys, optional_keys, _ = RULE_KINDS[rule_kind]
    return tuple(
        dict.fromkeys(
            (
                rule_kind,
                *required_keys,
                *optional_keys,
                *(_METRIC_KEYS if "metric" in required_keys else ()),
                "name",
            )
        )
    )


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule.

    Parameters
    ----------
    kind : str
        One of ``RULE_KINDS``.
    number : int
        From 1, in the policy.
    amount : Amount, optional
        Limit or margin, with its unit.
    metric, label, threshold, model : optional
        What is asked about; None: every class, threshold or model that the run has (where a metric
        has a value over all classes, that alone).
    attribute : str, optional
        The attribute, or intersection joined by ``*``; None: everyone. Of ``required_groups``
        its value.
    groups : tuple of str
        Some groups alone; empty: each group whose value is known.
    reference : str, optional
        The group that others are held to; None: everyone else.
    min_people : int or str, optional
        Of ``required_groups``: the fewest in a group. Of ``max_drop``: ``same``, ``shared`` or
        ``different``.
    min_clusters : int, optional
        Of ``required_groups``: the fewest independent clusters in a group.
    analyses : tuple of str
        Of ``required_analyses`` and ``no_finding_above``.
    ratio : float, optional
        Of ``ratio_at_least``: between 0 and 1.
    title : str
        The name that the policy gives it; empty: it is made of what the rule asks.
    """

    kind: RuleKind
    number: int
    amount: Amount | None = None
    metric: str | None = None
    label: str | None = None
    threshold: float | None = None
    model: str | None = None
    attribute: str | None = None
    groups: tuple[str, ...] = ()
    reference: str | None = None
    min_people: int | None = None
    min_clusters: int | None = None
    baseline_people: BaselinePeople = "same"
    analyses: tuple[str, ...] = ()
    ratio: float | None = None
    title: str = ""

    @property
    def source(self) -> str:
        """How errors call the rule."""
        return f"rule {self.number} of the policy"

    @property
    def needs_baseline(self) -> bool:
        """Whether the rule needs a second run."""
        return self.kind == "max_drop"


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules that are asked together.

    Parameters
    ----------
    rules : tuple of PolicyRule
    level : float
        1 less the chance of a wrong pass, and of a wrong fail, of the whole policy.
    power : float
        Chance with which the number of people that is told would decide.
    max_missing_share : float
        Share of people, 0 to 1, who may have no prediction, of everyone and of each asked group.
    name : str
    source : str
        The file, or "in memory".
    """

    rules: tuple[PolicyRule, ...]
    level: float = 0.95
    power: float = 0.8
    name: str = ""
    source: str = field(default="in memory", compare=False)
    max_missing_share: float = 0.01
