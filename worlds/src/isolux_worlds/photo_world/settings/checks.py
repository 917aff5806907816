"""Whether a world's settings fit one another: what a single setting's type cannot say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.spec import crossed
from isolux_worlds.photo_world.places import PLACE_VALUES
from isolux_worlds.photo_world.settings.fields import AttributeSettings, WorldFields
from isolux_worlds.photo_world.tables import HOUSEHOLDS, PEOPLE, PHOTOS, SUBJECTS
from isolux_worlds.photo_world.vocabulary import DRAWN, LEVELS, Level

__all__ = ["MOST_PEOPLE", "check_world"]

MOST_PEOPLE = 2_000_000
"""People in photos, at most: some 5 GB while they are drawn."""
MOST_ATTRIBUTES = 100
"""Attributes of a world's own, groupings and models, at most."""

_ABOVE: Mapping[Level, tuple[Level, ...]] = {
    "household": ("household",),
    "image": ("household", "image"),
    "subject": ("household", "subject"),
    "person": LEVELS,
}
"""On whose attributes one of a level may hang."""

_COLUMNS = {c.name for t in (HOUSEHOLDS, SUBJECTS, PHOTOS, PEOPLE) for c in t.columns}
_TAKEN = _COLUMNS - set(PLACE_VALUES)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_MOST_VALUES = 1000
_TOLERANCE = 1e-6

Where = Mapping[str, Sequence[str]]


def check_world(settings: WorldFields) -> None:
    """Refuse a world whose parts contradict one another."""
    _check_counts(settings)
    for name in ("attributes", "models", "by"):
        if len(getattr(settings, name)) > MOST_ATTRIBUTES:
            raise SpecError(
                f"the world has too many {name}",
                expected=f"at most {MOST_ATTRIBUTES}",
                found=str(len(getattr(settings, name))),
                where=f"key {name!r}",
            )
    _check_attributes(settings)
    known = {name: tuple(d.shares) for name, d in DRAWN.items()}
    known |= {name: _values(name, a) for name, a in settings.attributes.items()}
    for i, wrong in enumerate(settings.annotators.errors):
        _check_where(wrong.where, known, f"annotators.errors[{i}].where")
    names = [model.name for model in settings.models]
    for i, model in enumerate(settings.models):
        if names.index(model.name) != i:
            raise SpecError(
                "two models have one name",
                expected="every name once",
                found=repr(model.name),
                where=f"key 'models[{i}].name'",
            )
        for j, effect in enumerate(model.effects):
            _check_where(effect.where, known, f"models[{i}].effects[{j}].where")
    _check_groupings(settings.by, known)


def _check_counts(settings: WorldFields) -> None:
    for name in ("subjects", "photos", "people"):
        low, high = getattr(settings, name)
        if high < low:
            raise SpecError(
                f"the range of {name} is the wrong way round",
                expected="the lower end first",
                found=f"[{low}, {high}]",
                where=f"key {name!r}",
            )
    room = settings.photos[0] * settings.people[1]
    if settings.subjects[1] > room:
        raise SpecError(
            "not every subject can be in a photo",
            expected=f"at most {room} subjects: the fewest photos of a home times the most people",
            found=f"up to {settings.subjects[1]}",
            where="key 'subjects'",
            hint="allow more photos or people, or fewer subjects",
        )
    in_photo = min(settings.people[1], settings.subjects[1])
    most = settings.households * settings.photos[1] * in_photo
    if most > MOST_PEOPLE:
        raise SpecError(
            "the world is too large",
            expected=f"at most {MOST_PEOPLE:,} people in photos",
            found=f"up to {most:,}",
            where="key 'households'",
        )


def _check_attributes(settings: WorldFields) -> None:
    earlier: dict[str, tuple[Level, tuple[str, ...]]] = {}
    for name, attribute in settings.attributes.items():
        key = f"attributes.{name}"
        _check_name(name, key)
        level = _level_of(name, attribute, key)
        values = _values(name, attribute)
        _check_values(name, values, key)
        if attribute.shares is not None:
            _check_shares(attribute.shares, values, f"{key}.shares")
        for i, rule in enumerate(attribute.given):
            place = f"{key}.given[{i}]"
            _check_given(rule.where, name, level, earlier, f"{place}.where")
            _check_shares(rule.shares, values, f"{place}.shares")
        earlier[name] = (level, values)
    if {"region", "country"} <= set(settings.attributes):
        raise SpecError(
            "a country is in one region: only one of the two can be planted",
            found="region and country",
            where="key 'attributes'",
            hint="plant the country",
        )


def _check_name(name: str, key: str) -> None:
    if not _NAME.fullmatch(name) or name in _TAKEN:
        raise SpecError(
            "an attribute cannot have this name",
            expected="small letters, digits and _, and no column that every world has",
            found=repr(name[:80]),
            where=f"key {key[:120]!r}",
        )


def _level_of(name: str, attribute: AttributeSettings, key: str) -> Level:
    fixed: Level | None = DRAWN[name].level if name in DRAWN else None
    if name in PLACE_VALUES:
        fixed = "household"
    if attribute.level is None and fixed is None:
        raise SpecError(
            f"the painter does not know {name!r}: say who has it",
            expected="one of " + ", ".join(LEVELS),
            found="nothing",
            where=f"key '{key}.level'",
        )
    if fixed is not None and attribute.level not in (None, fixed):
        raise SpecError(
            f"{name!r} cannot be had at this level",
            expected=fixed,
            found=str(attribute.level),
            where=f"key '{key}.level'",
        )
    level = attribute.level or fixed
    if level is None:  # pragma: no cover - refused above
        raise AssertionError(name)
    return level


def _values(name: str, attribute: AttributeSettings) -> tuple[str, ...]:
    if attribute.shares is not None:
        return tuple(attribute.shares)
    return tuple(DRAWN[name].shares) if name in DRAWN else PLACE_VALUES.get(name, ())


def _check_values(name: str, values: tuple[str, ...], key: str) -> None:
    if not values or len(values) > _MOST_VALUES or "" in values:
        raise SpecError(
            f"{name!r} needs values",
            expected=f"1 to {_MOST_VALUES}, with their shares, none of them empty",
            found=f"{len(values)} of them",
            where=f"key '{key}.shares'",
        )
    fixed = tuple(DRAWN[name].shares) if name in DRAWN else PLACE_VALUES.get(name)
    for value in values if fixed else ():
        if value not in (fixed or ()):
            raise UnknownNameError("value", value, fixed or (), where=f"key '{key}.shares'")


def _check_shares(shares: Mapping[str, float], values: tuple[str, ...], key: str) -> None:
    for value in shares:
        if value not in values:
            raise UnknownNameError("value", value, values, where=f"key '{key}'")
    total = sum(shares.values())
    if abs(total - 1) > _TOLERANCE:
        raise SpecError(
            "these shares are not a distribution",
            expected="a sum of 1",
            found=f"a sum of {total:.6g}",
            where=f"key '{key}'",
        )


def _check_given(
    where: Where,
    name: str,
    level: Level,
    earlier: Mapping[str, tuple[Level, tuple[str, ...]]],
    key: str,
) -> None:
    known = {other: values for other, (_, values) in earlier.items()}
    for other in where:
        if other not in known and (other in DRAWN or other == name):
            raise SpecError(
                f"{name!r} hangs on {other!r}, which the world does not name before it",
                expected="one of " + ", ".join(known) if known else "an attribute named before",
                found=repr(other),
                where=f"key '{key}'",
                hint=f"write `{other}: {{}}` above {name}" if other != name else None,
            )
    _check_where(where, known, key)
    for other in where:
        if earlier[other][0] not in _ABOVE[level]:
            raise SpecError(
                f"{name!r} cannot hang on {other!r}",
                expected=f"an attribute of level {' or '.join(_ABOVE[level])}",
                found=f"one of level {earlier[other][0]}",
                where=f"key '{key}'",
            )


def _check_where(where: Where, known: Mapping[str, tuple[str, ...]], key: str) -> None:
    if not where or not all(where.values()):
        raise SpecError(
            "a condition names no group",
            expected="attributes and values, such as lighting: dimly_lit",
            found=repr({k: list(v) for k, v in where.items()})[:80],
            where=f"key '{key}'",
        )
    for name, values in where.items():
        if name not in known:
            raise UnknownNameError("attribute", name[:80], known, where=f"key '{key}'")
        for value in values:
            if value not in known[name]:
                place = f"key '{key}.{name}'"
                raise UnknownNameError("value", value[:80], known[name], where=place)


def _check_groupings(by: Sequence[str], known: Mapping[str, tuple[str, ...]]) -> None:
    for i, entry in enumerate(by):
        if entry in by[:i]:
            raise SpecError(
                "a grouping is listed twice",
                expected="every one once",
                found=repr(entry[:80]),
                where=f"key 'by[{i}]'",
            )
        names = crossed(entry)
        for name in names:
            if name not in known:
                raise UnknownNameError("attribute", name[:80], known, where=f"key 'by[{i}]'")
        if len(set(names)) < len(names):
            raise SpecError(
                "an intersection is of different attributes",
                expected="every name once",
                found=repr(entry[:80]),
                where=f"key 'by[{i}]'",
            )
