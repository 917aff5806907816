"""A policy from YAML, JSON or a mapping: what it may say, and what is refused before any run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from isolux.io.settings_files import read_mapping, refuse_repeated_keys
from isolux.policy.rules import KINDS, Kind, Policy, Rule, read_amount, takes
from isolux.vocabulary import registry
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.spec import crossed

_KEYS = ("policy", "name", "level", "power", "unanswered_at_most", "rules")
VERSION = 1
_MOST_RULES = 1000


def read_policy(source: Policy | Mapping[str, Any] | str | Path) -> Policy:
    """Read a policy.

    Examples
    --------
    >>> rule = {"metric": "accuracy", "attribute": "light", "within": "5 points"}
    >>> read_policy({"policy": 1, "rules": [rule]}).rules[0].amount.text
    '5 points'
    """
    if isinstance(source, Policy):
        return source
    where = "the policy" if isinstance(source, Mapping) else str(source)
    said = _plain(dict(source)) if isinstance(source, Mapping) else _of_file(source)
    for key in said:
        if key not in _KEYS:
            raise UnknownNameError("setting of a policy", str(key), _KEYS, where=where)
    _refuse_version(said.get("policy"), where)
    listed = said.get("rules")
    if not isinstance(listed, Sequence) or isinstance(listed, str) or not listed:
        raise SpecError(
            "the policy holds no rules",
            expected="a list under `rules:`",
            found="none" if not listed else type(listed).__name__,
            where=where,
            hint="`isolux gate --init RUN` proposes some",
        )
    rules = tuple(_rule(one, k, where) for k, one in enumerate(listed[:_MOST_RULES], start=1))
    if len(listed) > _MOST_RULES:
        raise SpecError(
            "the policy holds too many rules",
            expected=f"at most {_MOST_RULES:,}",
            found=f"{len(listed):,}",
            where=where,
        )
    refuse_summary_alone(rules, where)
    name = said.get("name")
    return Policy(
        rules,
        _share(said, "level", 0.95, (0.8, 0.9999), where),
        _share(said, "power", 0.8, (0.5, 0.99), where),
        "" if name is None else str(name),
        where if where != "the policy" else "in memory",
        _unanswered(said, where),
    )


def _unanswered(said: Mapping[str, Any], where: str) -> float:
    """Read the share of people who may have no prediction; default: 1 %."""
    key = "unanswered_at_most"
    amount = read_amount(said.get(key, "1 %"), what=key, where=where)
    share = amount.number if amount.unit == "share" else amount.number / 100.0
    if amount.unit not in ("%", "share") or not 0 <= share < 1:
        raise SpecError(
            f"{key} is not a share of people",
            expected="0 % to less than 100 %, such as `1 %`",
            found=amount.text,
            where=where,
        )
    return share


def _plain(value: Any) -> Any:
    """Turn numpy's numbers and arrays of a policy in memory into what a file would hold."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def _of_file(path: str | Path) -> dict[str, Any]:
    found = read_mapping(path)
    refuse_repeated_keys(path)
    return found


def _refuse_version(said: object, where: str) -> None:
    if said == VERSION and not isinstance(said, bool):
        return
    raise SpecError(
        "the policy does not say by which version of policies it is written",
        expected=f"`policy: {VERSION}` as its first line",
        found="none" if said is None else repr(said),
        where=where,
    )


def _share(
    said: Mapping[str, Any], key: str, default: float, ends: tuple[float, float], where: str
) -> float:
    value = said.get(key, default)
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not ends[0] <= float(value) <= ends[1]:
        raise SpecError(
            f"the {key} of a policy cannot be that",
            expected=f"{ends[0]:g} to {ends[1]:g}",
            found=repr(value),
            where=where,
        )
    return float(value)


def _rule(said: object, place: int, file: str) -> Rule:
    where = f"{file}, rule {place}"
    if not isinstance(said, Mapping) or not said:
        raise SpecError(
            "a rule is not a mapping",
            expected="lines such as `metric: accuracy`",
            found=repr(said),
            where=where,
        )
    kind = _kind(said, where)
    for key in said:
        if key not in takes(kind):
            raise UnknownNameError(f"key of a rule `{kind}`", str(key), takes(kind), where=where)
    for key in (kind, *KINDS[kind][0]):
        value = said.get(key)
        if value is None or (isinstance(value, str | list) and not value):
            raise SpecError(
                f"a rule `{kind}` lacks {key}",
                expected=f"`{key}:` with a value",
                found=", ".join(map(str, said)),
                where=where,
            )
    _refuse_groups(said, where)
    return _filled(cast("Kind", kind), said, place, where)


def _refuse_groups(said: Mapping[Any, Any], where: str) -> None:
    """Refuse a list of no groups, and a group that is held to itself."""
    if "groups" in said and not said["groups"]:
        raise SpecError(
            "groups lists none",
            expected="groups by name, or no line `groups:` for every group",
            found=repr(said["groups"]),
            where=where,
        )
    than = said.get("than")
    if than is not None and than in _texts(said.get("groups", ()), "groups", where):
        raise SpecError(
            f"{than} is held to itself",
            expected="`groups:` without the group of `than:`",
            found=f"groups: {said['groups']}, than: {than}",
            where=where,
        )


def _kind(said: Mapping[Any, Any], where: str) -> str:
    asked = [key for key in said if key in KINDS]
    if len(asked) == 1:
        return str(asked[0])
    if len(asked) > 1:
        raise SpecError(
            "a rule asks two things",
            expected="one of them a rule",
            found=" and ".join(map(str, asked)),
            where=where,
        )
    known = {name for kind in KINDS for name in takes(kind)} - KINDS.keys()
    strange = next((str(key) for key in said if key not in known), None)
    if strange is not None:
        raise UnknownNameError("kind of rule", strange, KINDS, where=where)
    raise SpecError(
        "a rule asks nothing",
        expected="one of " + ", ".join(KINDS),
        found=", ".join(map(str, said)),
        where=where,
    )


def _filled(kind: Kind, said: Mapping[str, Any], place: int, where: str) -> Rule:
    amount, ratio = None, None
    analyses: tuple[str, ...] = ()
    attribute = said.get("attribute")
    if kind == "covered":
        attribute = said["covered"]
    elif kind == "ran":
        analyses = _analyses(said["ran"], where)
    elif kind == "ratio_at_least":
        ratio = _ratio(said[kind], where)
    else:
        amount = read_amount(said[kind], what=kind, where=where)
    if kind == "none_above":
        analyses = _analyses(said["findings"], where)
    threshold = said.get("threshold")
    if threshold is not None and (isinstance(threshold, bool) or not _number(threshold)):
        raise SpecError("a threshold is not a number", found=repr(threshold), where=where)
    same = "same"
    if kind == "lost_at_most":
        same = said.get("people", "same")
        if same not in ("same", "shared", "different"):
            raise SpecError(
                "the people of a baseline are the same, shared or different",
                expected="`people: same`, `people: shared` or `people: different`",
                found=repr(same),
                where=where,
            )
    return Rule(
        kind,
        place,
        amount,
        _text(said, "metric", where),
        _text(said, "label", where),
        None if threshold is None else float(threshold),
        _text(said, "model", where),
        None if attribute is None else _attribute(attribute, where),
        _texts(said.get("groups", ()), "groups", where),
        _text(said, "than", where),
        _count(said, "people", where) if kind == "covered" else None,
        _count(said, "clusters", where),
        cast("Any", same),
        analyses,
        ratio,
        _text(said, "name", where) or "",
    )


def _number(value: object) -> bool:
    return isinstance(value, int | float)


def _attribute(value: object, where: str) -> str:
    parts = crossed(value) if isinstance(value, str) else ()
    if not parts or not all(parts):
        raise SpecError(
            "an attribute is a name, or names joined by *",
            expected='race, "race*gender"',
            found=repr(value),
            where=where,
        )
    return "*".join(parts)


def _text(said: Mapping[str, Any], key: str, where: str) -> str | None:
    value = said.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        hint = f"write it in quotes: {key}: 'yes'" if isinstance(value, bool) else None
        raise SpecError(f"{key} is not text", found=repr(value), where=where, hint=hint)
    return str(value)


def _texts(value: object, key: str, where: str) -> tuple[str, ...]:
    listed = [value] if isinstance(value, str) else value
    if not isinstance(listed, Sequence):
        raise SpecError(f"{key} is not a list", expected="[a, b]", found=repr(value), where=where)
    return tuple(_text({key: one}, key, where) or "" for one in listed)


def _analyses(value: object, where: str) -> tuple[str, ...]:
    names = _texts(value, "analyses", where)
    known = registry.names("analyses")
    for name in names:
        if name not in known:
            raise UnknownNameError("analysis", name, known, where=where)
    return names


def _count(said: Mapping[str, Any], key: str, where: str) -> int | None:
    value = said.get(key)
    if value is None or (key == "people" and isinstance(value, str)):
        if isinstance(value, str):
            raise SpecError("people is not a count", found=repr(value), where=where)
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SpecError(
            (f"{key} is not a count"),
            expected="a whole number from 1",
            found=repr(value),
            where=where,
        )
    return value


def _ratio(value: object, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1:
        return float(value)
    raise SpecError(
        "ratio_at_least is not a ratio",
        expected="a number between 0 and 1, such as 0.8",
        found=repr(value),
        where=where,
    )


# A summary of how groups differ decides nothing alone: what a policy must ask beside it.

SUMMARIES = frozenset(
    {
        "fairness_discrepancy_rate",
        "false_match_and_non_match_rates",
        "garbe",
        "gini",
        "inequity_rate",
        "max_over_geometric_mean",
        "max_over_min",
        "skewed_error_ratio",
    }
)
"""Numbers of an attribute's groups, which are no metric of anyone."""

_OTHER_ERROR = {
    one: other
    for pair in (
        ("false_match_rate", "false_non_match_rate"),
        ("false_positive_identification_rate", "false_negative_identification_rate"),
        ("challenge_false_positive_rate", "challenge_false_negative_rate"),
    )
    for one, other in (pair, pair[::-1])
}
"""Two errors of which a threshold trades one for the other."""
_BETWEEN = ("within", "worse_by_at_most")
_HINT = "a model that fails everyone fails all groups alike, and would pass"


def refuse_summary_alone(rules: Sequence[Rule], where: str) -> None:
    """Refuse a rule of differences between groups without limits of the errors themselves.

    Examples
    --------
    >>> from isolux.policy.rules import Amount
    >>> alone = Rule("ratio_at_least", 1, metric="selected", attribute="race", ratio=0.8)
    >>> refuse_summary_alone([alone], "the policy")
    Traceback (most recent call last):
    isolux.vocabulary.errors.SpecError: a ratio of groups alone says nothing of how large the ...
    """
    limited = {
        rule.metric
        for rule in rules
        if rule.kind in ("at_least", "at_most") and rule.attribute is None
    }
    for rule in rules:
        at = f"{where}, rule {rule.place}"
        if rule.metric in SUMMARIES:
            raise SpecError(
                f"{rule.metric!r} is a summary of how groups differ, and decides nothing alone",
                expected="a rule of each error for everyone (at_most), and of its differences"
                " between groups (within, worse_by_at_most, ratio_at_least)",
                found=f"metric: {rule.metric}",
                where=at,
                hint=_HINT,
            )
        metric = str(rule.metric)
        needed = {metric}
        if rule.kind == "ratio_at_least" and metric in _OTHER_ERROR:
            needed.add(_OTHER_ERROR[metric])
        elif rule.kind != "ratio_at_least" and not (
            rule.kind in _BETWEEN and metric in _OTHER_ERROR
        ):
            continue
        missing = sorted(needed - limited)
        if missing:
            what = "a ratio" if rule.kind == "ratio_at_least" else "a difference"
            raise SpecError(
                f"{what} of groups alone says nothing of how large the errors are",
                expected="beside it a rule for everyone: "
                + " and ".join(f"`metric: {name}`" for name in missing)
                + " with at_least or at_most and no attribute",
                found=f"{rule.kind} of {metric} alone",
                where=at,
                hint=_HINT,
            )
