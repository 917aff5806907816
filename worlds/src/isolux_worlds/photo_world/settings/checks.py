"""Whether a world's settings fit one another: what a single setting's type cannot say."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.spec import split_intersection
from isolux_worlds.photo_world.locations import PLACE_VALUES
from isolux_worlds.photo_world.settings.fields import AttributeSettings, WorldFields
from isolux_worlds.photo_world.tables import HOUSEHOLDS, PEOPLE, PHOTOS, SUBJECTS
from isolux_worlds.photo_world.vocabulary import BUILT_IN_ATTRIBUTES, LEVELS, Level

__all__ = ["check_world_is_consistent"]

_MAX_PEOPLE = 2_000_000
"""People in photos: some 5 GB while they are drawn."""
_MAX_ATTRIBUTES = 100
"""Attributes of a world's own, groupings and models."""
_MAX_VALUES = 1000

_LEVELS_ABOVE: Mapping[Level, tuple[Level, ...]] = {
    "household": ("household",),
    "image": ("household", "image"),
    "subject": ("household", "subject"),
    "person": LEVELS,
}
"""On whose attributes one of a level may hang."""

_COLUMNS = {c.name for t in (HOUSEHOLDS, SUBJECTS, PHOTOS, PEOPLE) for c in t.columns}
_RESERVED_NAMES = _COLUMNS - set(PLACE_VALUES)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_TOLERANCE = 1e-6

ConditionMap = Mapping[str, Sequence[str]]
_ValuesByAttribute = Mapping[str, tuple[str, ...]]


def _build_settings_error(
    problem: str, key: str, expected: str | None, found: str, hint: str | None = None
) -> SpecError:
    return SpecError(problem, expected=expected, found=found, where=f"key {key!r}", hint=hint)


def check_world_is_consistent(settings: WorldFields) -> None:
    """Refuse a world whose parts contradict one another; ``where`` is the key."""
    _check_world_counts(settings)
    for name in ("attributes", "models", "by"):
        n = len(getattr(settings, name))
        if n > _MAX_ATTRIBUTES:
            raise _build_settings_error(
                f"the world has too many {name}", name, f"at most {_MAX_ATTRIBUTES}", str(n)
            )
    _check_attributes(settings)
    values_by_attribute = {
        name: tuple(built_in.shares) for name, built_in in BUILT_IN_ATTRIBUTES.items()
    }
    values_by_attribute |= {
        name: _find_values_of_attribute(name, a) for name, a in settings.attributes.items()
    }
    for i, special in enumerate(settings.annotators.errors):
        _check_conditions(special.where, values_by_attribute, f"annotators.errors[{i}].where")
    names = [model.name for model in settings.models]
    for i, model in enumerate(settings.models):
        if names.index(model.name) != i:
            key = f"models[{i}].name"
            raise _build_settings_error(
                "two models have one name", key, "every name once", repr(model.name)
            )
        for j, effect in enumerate(model.effects):
            _check_conditions(effect.where, values_by_attribute, f"models[{i}].effects[{j}].where")
    for i, entry in enumerate(settings.by):
        _check_grouping(entry, settings.by[:i], values_by_attribute, f"by[{i}]")


def _check_world_counts(settings: WorldFields) -> None:
    for name in ("subjects", "photos", "people"):
        low, high = getattr(settings, name)
        if high < low:
            problem = f"the range of {name} is the wrong way round"
            raise _build_settings_error(problem, name, "the lower end first", f"[{low}, {high}]")
    min_places, max_subjects = settings.photos[0] * settings.people[1], settings.subjects[1]
    if max_subjects > min_places:
        raise _build_settings_error(
            "not every subject can be in a photo",
            "subjects",
            f"at most {min_places} subjects: the fewest photos of a home times the most people",
            f"up to {max_subjects}",
            hint="allow more photos or people, or fewer subjects",
        )
    people = settings.households * settings.photos[1] * min(settings.people[1], max_subjects)
    if people > _MAX_PEOPLE:
        expected = f"at most {_MAX_PEOPLE:,} people in photos"
        raise _build_settings_error(
            "the world is too large", "households", expected, f"up to {people:,}"
        )


def _check_attributes(settings: WorldFields) -> None:
    earlier: dict[str, tuple[Level, tuple[str, ...]]] = {}
    for name, attribute in settings.attributes.items():
        key = f"attributes.{name}"
        if not _NAME.fullmatch(name) or name in _RESERVED_NAMES:
            expected = "small letters, digits and _, and no column that every world has"
            problem = "an attribute cannot have this name"
            raise _build_settings_error(problem, key[:120], expected, repr(name[:80]))
        level = _find_level_of_attribute(name, attribute, f"{key}.level")
        values = _find_values_of_attribute(name, attribute)
        _check_attribute_values(name, values, f"{key}.shares")
        if attribute.shares is not None:
            _check_world_shares(attribute.shares, values, f"{key}.shares")
        for i, rule in enumerate(attribute.given):
            _check_conditional(rule.where, name, level, earlier, f"{key}.given[{i}].where")
            _check_world_shares(rule.shares, values, f"{key}.given[{i}].shares")
        earlier[name] = (level, values)
    if {"region", "country"} <= set(settings.attributes):
        problem = "a country is in one region: only one of the two can be injected"
        raise _build_settings_error(
            problem, "attributes", None, "region and country", hint="plant the country"
        )


def _find_level_of_attribute(name: str, attribute: AttributeSettings, key: str) -> Level:
    fixed: Level | None = BUILT_IN_ATTRIBUTES[name].level if name in BUILT_IN_ATTRIBUTES else None
    if name in PLACE_VALUES:
        fixed = "household"
    level = attribute.level or fixed
    if level is None:
        problem = f"the painter does not know {name!r}: say who has it"
        raise _build_settings_error(problem, key, "one of " + ", ".join(LEVELS), "nothing")
    if fixed not in (None, level):
        raise _build_settings_error(f"{name!r} cannot be had at this level", key, fixed, level)
    return level


def _find_built_in_values(name: str) -> tuple[str, ...]:
    return (
        tuple(BUILT_IN_ATTRIBUTES[name].shares)
        if name in BUILT_IN_ATTRIBUTES
        else PLACE_VALUES.get(name, ())
    )


def _find_values_of_attribute(name: str, attribute: AttributeSettings) -> tuple[str, ...]:
    return _find_built_in_values(name) if attribute.shares is None else tuple(attribute.shares)


def _check_attribute_values(name: str, values: tuple[str, ...], key: str) -> None:
    if not values or len(values) > _MAX_VALUES or "" in values:
        expected = f"1 to {_MAX_VALUES}, with their shares, none of them empty"
        raise _build_settings_error(
            f"{name!r} needs values", key, expected, f"{len(values)} of them"
        )
    _check_names_exist("value", values, _find_built_in_values(name) or values, key)


def _check_names_exist(
    description: str, names: Iterable[str], valid_names: Iterable[str], key: str
) -> None:
    for name in names:
        if name not in valid_names:
            raise UnknownNameError(description, name[:80], valid_names, where=f"key '{key}'")


def _check_world_shares(shares: Mapping[str, float], values: tuple[str, ...], key: str) -> None:
    _check_names_exist("value", shares, values, key)
    total = sum(shares.values())
    if abs(total - 1) > _TOLERANCE:
        problem = "these shares are not a distribution"
        raise _build_settings_error(problem, key, "a sum of 1", f"a sum of {total:.6g}")


def _check_conditional(
    conditions: ConditionMap,
    name: str,
    level: Level,
    earlier: Mapping[str, tuple[Level, tuple[str, ...]]],
    key: str,
) -> None:
    values_by_attribute = {parent: values for parent, (_, values) in earlier.items()}
    for parent in conditions:
        if parent not in values_by_attribute and (parent in BUILT_IN_ATTRIBUTES or parent == name):
            problem = f"{name!r} hangs on {parent!r}, which the world does not name before it"
            expected = (
                "one of " + ", ".join(values_by_attribute)
                if values_by_attribute
                else "an attribute named before"
            )
            hint = f"write `{parent}: {{}}` above {name}" if parent != name else None
            raise _build_settings_error(problem, key, expected, repr(parent), hint)
    _check_conditions(conditions, values_by_attribute, key)
    for parent in conditions:
        if earlier[parent][0] not in _LEVELS_ABOVE[level]:
            expected = f"an attribute of level {' or '.join(_LEVELS_ABOVE[level])}"
            description = f"one of level {earlier[parent][0]}"
            raise _build_settings_error(
                f"{name!r} cannot hang on {parent!r}", key, expected, description
            )


def _check_conditions(
    conditions: ConditionMap, values_by_attribute: _ValuesByAttribute, key: str
) -> None:
    if not conditions or not all(conditions.values()):
        expected = "attributes and values, such as lighting: dimly_lit"
        description = repr({k: list(v) for k, v in conditions.items()})[:80]
        raise _build_settings_error("a condition names no group", key, expected, description)
    _check_names_exist("attribute", conditions, values_by_attribute, key)
    for name, values in conditions.items():
        _check_names_exist("value", values, values_by_attribute[name], f"{key}.{name}")


def _check_grouping(
    entry: str, earlier: Sequence[str], values_by_attribute: _ValuesByAttribute, key: str
) -> None:
    if entry in earlier:
        raise _build_settings_error(
            "a grouping is listed twice", key, "every one once", repr(entry[:80])
        )
    names = split_intersection(entry)
    _check_names_exist("attribute", names, values_by_attribute, key)
    if len(set(names)) < len(names):
        problem = "an intersection is of different attributes"
        raise _build_settings_error(problem, key, "every name once", repr(entry[:80]))
