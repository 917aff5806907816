"""A policy from YAML, JSON or a mapping: what it may say, and what is refused before any run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

from isolux.core import registry
from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.spec import split_intersection
from isolux.io.settings_files import read_mapping, refuse_repeated_keys
from isolux.policy.rules import (
    RULE_KINDS,
    Policy,
    PolicyRule,
    RuleKind,
    list_allowed_rule_keys,
    parse_amount_with_unit,
)

_KEYS = ("policy", "name", "level", "power", "unanswered_at_most", "rules")
VERSION = 1
_MAX_RULES = 1000


def read_policy(source: Policy | Mapping[str, Any] | str | Path) -> Policy:
    """Read a policy.

    Examples
    --------
    >>> rule = {"metric": "accuracy", "attribute": "light", "max_difference": "5 points"}
    >>> read_policy({"policy": 1, "rules": [rule]}).rules[0].amount.text
    '5 points'
    """
    if isinstance(source, Policy):
        return source
    source_name = "the policy" if isinstance(source, Mapping) else str(source)
    settings = (
        _numpy_to_python(dict(source)) if isinstance(source, Mapping) else _read_policy_file(source)
    )
    for key in settings:
        if key not in _KEYS:
            raise UnknownNameError("setting of a policy", str(key), _KEYS, where=source_name)
    _check_policy_version(settings.get("policy"), source_name)
    rule_mappings = settings.get("rules")
    if (
        not isinstance(rule_mappings, Sequence)
        or isinstance(rule_mappings, str)
        or not rule_mappings
    ):
        raise SpecError(
            "the policy holds no rules",
            expected="a list under `rules:`",
            found="none" if not rule_mappings else type(rule_mappings).__name__,
            where=source_name,
            hint="`isolux gate --init RUN` proposes some",
        )
    rules = tuple(
        _read_rule(rule_mapping, k, source_name)
        for k, rule_mapping in enumerate(rule_mappings[:_MAX_RULES], start=1)
    )
    if len(rule_mappings) > _MAX_RULES:
        raise SpecError(
            "the policy holds too many rules",
            expected=f"at most {_MAX_RULES:,}",
            found=f"{len(rule_mappings):,}",
            where=source_name,
        )
    check_difference_rules_have_value_limits(rules, source_name)
    name = settings.get("name")
    return Policy(
        rules,
        _read_fraction_or_default(settings, "level", 0.95, (0.8, 0.9999), source_name),
        _read_fraction_or_default(settings, "power", 0.8, (0.5, 0.99), source_name),
        "" if name is None else str(name),
        source_name if source_name != "the policy" else "in memory",
        _read_max_missing_share(settings, source_name),
    )


def _read_max_missing_share(settings: Mapping[str, Any], source_name: str) -> float:
    """Read the share of people who may have no prediction; default: 1 %."""
    key = "unanswered_at_most"
    amount = parse_amount_with_unit(settings.get(key, "1 %"), key=key, source=source_name)
    share = amount.number if amount.unit == "share" else amount.number / 100.0
    if amount.unit not in ("%", "share") or not 0 <= share < 1:
        raise SpecError(
            f"{key} is not a share of people",
            expected="0 % to less than 100 %, such as `1 %`",
            found=amount.text,
            where=source_name,
        )
    return share


def _numpy_to_python(setting: Any) -> Any:
    """Convert numpy scalars and arrays of a policy in memory to Python's types."""
    if isinstance(setting, np.generic | np.ndarray):
        setting = setting.tolist()
    if isinstance(setting, Mapping):
        return {key: _numpy_to_python(element) for key, element in setting.items()}
    return (
        [_numpy_to_python(element) for element in setting]
        if isinstance(setting, list | tuple)
        else setting
    )


def _read_policy_file(path: str | Path) -> dict[str, Any]:
    settings = read_mapping(path)
    refuse_repeated_keys(path)
    return settings


def _check_policy_version(version: object, source_name: str) -> None:
    if version == VERSION and not isinstance(version, bool):
        return
    raise SpecError(
        "the policy does not say by which version of policies it is written",
        expected=f"`policy: {VERSION}` as its first line",
        found="none" if version is None else repr(version),
        where=source_name,
    )


def _read_fraction_or_default(
    settings: Mapping[str, Any],
    key: str,
    default: float,
    limits: tuple[float, float],
    source_name: str,
) -> float:
    setting = settings.get(key, default)
    number = isinstance(setting, int | float) and not isinstance(setting, bool)
    if not number or not limits[0] <= float(setting) <= limits[1]:
        raise SpecError(
            f"the {key} of a policy cannot be that",
            expected=f"{limits[0]:g} to {limits[1]:g}",
            found=repr(setting),
            where=source_name,
        )
    return float(setting)


def _read_rule(mapping: object, number: int, file: str) -> PolicyRule:
    source_name = f"{file}, rule {number}"
    if not isinstance(mapping, Mapping) or not mapping:
        raise SpecError(
            "a rule is not a mapping",
            expected="lines such as `metric: accuracy`",
            found=repr(mapping),
            where=source_name,
        )
    rule_kind = _find_rule_kind(mapping, source_name)
    for key in mapping:
        if key not in list_allowed_rule_keys(rule_kind):
            raise UnknownNameError(
                f"key of a rule `{rule_kind}`",
                str(key),
                list_allowed_rule_keys(rule_kind),
                where=source_name,
            )
    for key in (rule_kind, *RULE_KINDS[rule_kind][0]):
        setting = mapping.get(key)
        if setting is None or (isinstance(setting, str | list) and not setting):
            raise SpecError(
                f"a rule `{rule_kind}` lacks {key}",
                expected=f"`{key}:` with a value",
                found=", ".join(map(str, mapping)),
                where=source_name,
            )
    _check_rule_groups(mapping, source_name)
    return _build_rule(cast("RuleKind", rule_kind), mapping, number, source_name)


def _check_rule_groups(mapping: Mapping[Any, Any], source_name: str) -> None:
    """Refuse an empty list of groups, and a group that is compared with itself."""
    if "groups" in mapping and not mapping["groups"]:
        raise SpecError(
            "groups lists none",
            expected="groups by name, or no line `groups:` for every group",
            found=repr(mapping["groups"]),
            where=source_name,
        )
    reference = mapping.get("reference")
    if reference is not None and reference in _read_one_or_more_texts(
        mapping.get("groups", ()), "groups", source_name
    ):
        raise SpecError(
            f"{reference} is held to itself",
            expected="`groups:` without the group of `reference:`",
            found=f"groups: {mapping['groups']}, reference: {reference}",
            where=source_name,
        )


def _find_rule_kind(mapping: Mapping[Any, Any], source_name: str) -> str:
    present_kinds = [key for key in mapping if key in RULE_KINDS]
    if len(present_kinds) == 1:
        return str(present_kinds[0])
    if len(present_kinds) > 1:
        raise SpecError(
            "a rule asks two things",
            expected="one of them a rule",
            found=" and ".join(map(str, present_kinds)),
            where=source_name,
        )
    valid_keys = {
        name for rule_kind in RULE_KINDS for name in list_allowed_rule_keys(rule_kind)
    } - RULE_KINDS.keys()
    unexpected_key = next((str(key) for key in mapping if key not in valid_keys), None)
    if unexpected_key is not None:
        raise UnknownNameError("kind of rule", unexpected_key, RULE_KINDS, where=source_name)
    raise SpecError(
        "a rule asks nothing",
        expected="one of " + ", ".join(RULE_KINDS),
        found=", ".join(map(str, mapping)),
        where=source_name,
    )


def _build_rule(
    rule_kind: RuleKind, mapping: Mapping[str, Any], number: int, source_name: str
) -> PolicyRule:
    amount, ratio = None, None
    analyses: tuple[str, ...] = ()
    attribute = mapping.get("attribute")
    if rule_kind == "required_groups":
        attribute = mapping["required_groups"]
    elif rule_kind == "required_analyses":
        analyses = _read_analysis_names(mapping["required_analyses"], source_name)
    elif rule_kind == "ratio_at_least":
        ratio = _read_ratio_limit(mapping[rule_kind], source_name)
    else:
        amount = parse_amount_with_unit(mapping[rule_kind], key=rule_kind, source=source_name)
    if rule_kind == "no_finding_above":
        analyses = _read_analysis_names(mapping["findings"], source_name)
    threshold = mapping.get("threshold")
    if threshold is not None and (isinstance(threshold, bool) or not _is_real_number(threshold)):
        raise SpecError("a threshold is not a number", found=repr(threshold), where=source_name)
    baseline_people = "same"
    if rule_kind == "max_drop":
        baseline_people = mapping.get("people", "same")
        if baseline_people not in ("same", "shared", "different"):
            raise SpecError(
                "the people of a baseline are the same, shared or different",
                expected="`people: same`, `people: shared` or `people: different`",
                found=repr(baseline_people),
                where=source_name,
            )
    return PolicyRule(
        rule_kind,
        number,
        amount,
        _read_optional_text(mapping, "metric", source_name),
        _read_optional_text(mapping, "label", source_name),
        None if threshold is None else float(threshold),
        _read_optional_text(mapping, "model", source_name),
        None if attribute is None else _read_attribute_name(attribute, source_name),
        _read_one_or_more_texts(mapping.get("groups", ()), "groups", source_name),
        _read_optional_text(mapping, "reference", source_name),
        _read_optional_positive_count(mapping, "people", source_name)
        if rule_kind == "required_groups"
        else None,
        _read_optional_positive_count(mapping, "clusters", source_name),
        cast("Any", baseline_people),
        analyses,
        ratio,
        _read_optional_text(mapping, "name", source_name) or "",
    )


def _is_real_number(setting: object) -> bool:
    return isinstance(setting, int | float)


def _read_attribute_name(setting: object, source_name: str) -> str:
    names = split_intersection(setting) if isinstance(setting, str) else ()
    if not names or not all(names):
        raise SpecError(
            "an attribute is a name, or names joined by *",
            expected='race, "race*gender"',
            found=repr(setting),
            where=source_name,
        )
    return "*".join(names)


def _read_optional_text(mapping: Mapping[str, Any], key: str, source_name: str) -> str | None:
    setting = mapping.get(key)
    if setting is None:
        return None
    if isinstance(setting, bool) or not isinstance(setting, str | int | float):
        hint = f"write it in quotes: {key}: 'yes'" if isinstance(setting, bool) else None
        raise SpecError(f"{key} is not text", found=repr(setting), where=source_name, hint=hint)
    return str(setting)


def _read_one_or_more_texts(setting: object, key: str, source_name: str) -> tuple[str, ...]:
    items = [setting] if isinstance(setting, str) else setting
    if not isinstance(items, Sequence):
        raise SpecError(
            f"{key} is not a list", expected="[a, b]", found=repr(setting), where=source_name
        )
    return tuple(_read_optional_text({key: element}, key, source_name) or "" for element in items)


def _read_analysis_names(setting: object, source_name: str) -> tuple[str, ...]:
    names = _read_one_or_more_texts(setting, "analyses", source_name)
    existing_names = registry.names("analyses")
    for name in names:
        if name not in existing_names:
            raise UnknownNameError("analysis", name, existing_names, where=source_name)
    return names


def _read_optional_positive_count(
    mapping: Mapping[str, Any], key: str, source_name: str
) -> int | None:
    setting = mapping.get(key)
    if setting is None or (key == "people" and isinstance(setting, str)):
        if isinstance(setting, str):
            raise SpecError("people is not a count", found=repr(setting), where=source_name)
        return None
    if isinstance(setting, bool) or not isinstance(setting, int) or setting < 1:
        raise SpecError(
            (f"{key} is not a count"),
            expected="a whole number from 1",
            found=repr(setting),
            where=source_name,
        )
    return setting


def _read_ratio_limit(setting: object, source_name: str) -> float:
    if isinstance(setting, int | float) and not isinstance(setting, bool) and 0 < setting < 1:
        return float(setting)
    raise SpecError(
        "ratio_at_least is not a ratio",
        expected="a number between 0 and 1, such as 0.8",
        found=repr(setting),
        where=source_name,
    )


# A summary of how groups differ decides nothing alone: what a policy must ask beside it.

SUMMARY_MEASURES = frozenset(
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

_TRADED_ERROR = {
    metric_name: traded_metric
    for pair in (
        ("false_match_rate", "false_non_match_rate"),
        ("false_positive_identification_rate", "false_negative_identification_rate"),
        ("challenge_false_positive_rate", "challenge_false_negative_rate"),
    )
    for metric_name, traded_metric in (pair, pair[::-1])
}
"""Two errors of which a threshold trades one for the other."""
_DIFFERENCE_KINDS = ("max_difference", "max_deficit")
_SUMMARY_HINT = "a model that fails everyone fails all groups alike, and would pass"


def check_difference_rules_have_value_limits(rules: Sequence[PolicyRule], source: str) -> None:
    """Refuse a rule of differences between groups without limits of the errors themselves.

    Examples
    --------
    >>> from isolux.policy.rules import Amount
    >>> alone = PolicyRule("ratio_at_least", 1, metric="selected", attribute="race", ratio=0.8)
    >>> check_difference_rules_have_value_limits([alone], "the policy")
    Traceback (most recent call last):
    isolux.core.errors.SpecError: a ratio of groups alone says nothing of how large the ...
    """
    limited_metrics = {
        rule.metric
        for rule in rules
        if rule.kind in ("at_least", "at_most") and rule.attribute is None
    }
    for rule in rules:
        rule_source = f"{source}, rule {rule.number}"
        if rule.metric in SUMMARY_MEASURES:
            raise SpecError(
                f"{rule.metric!r} is a summary of how groups differ, and decides nothing alone",
                expected="a rule of each error for everyone (at_most), and of its differences"
                " between groups (within, max_deficit, ratio_at_least)",
                found=f"metric: {rule.metric}",
                where=rule_source,
                hint=_SUMMARY_HINT,
            )
        metric = str(rule.metric)
        required_metrics = {metric}
        if rule.kind == "ratio_at_least" and metric in _TRADED_ERROR:
            required_metrics.add(_TRADED_ERROR[metric])
        elif rule.kind != "ratio_at_least" and not (
            rule.kind in _DIFFERENCE_KINDS and metric in _TRADED_ERROR
        ):
            continue
        missing = sorted(required_metrics - limited_metrics)
        if missing:
            comparison_words = "a ratio" if rule.kind == "ratio_at_least" else "a difference"
            raise SpecError(
                f"{comparison_words} of groups alone says nothing of how large the errors are",
                expected="beside it a rule for everyone: "
                + " and ".join(f"`metric: {name}`" for name in missing)
                + " with at_least or at_most and no attribute",
                found=f"{rule.kind} of {metric} alone",
                where=rule_source,
                hint=_SUMMARY_HINT,
            )
