"""The text of ``--group``, ``--bins``, ``nested`` and ``--reference``, read into Groupings.

Values are parted by commas; one that holds a comma stands in double quotes:
``ancestry:East="Korea, Republic of",Japan``.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from isolux.groups.binning import INCOME_RULES, parse_bins
from isolux.groups.intersections import display, entries
from isolux.groups.unknown import known_handle, mark_unknown
from isolux.groups.votes import parse_votes
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.grouping import Grouping, crossed
from isolux.vocabulary.spec import Groups, name_as_typed
from isolux.vocabulary.tables import ATTRIBUTES, check


@dataclass(frozen=True, slots=True)
class _Attributes:
    """The attributes that exist, those that ``by`` uses, and the known values of the latter."""

    known: tuple[str, ...]
    used: tuple[str, ...]
    values: Mapping[str, frozenset[str]]


def groupings(settings: Groups, attributes: pl.DataFrame) -> dict[str, Grouping]:
    """Read an audit's grouping settings into one Grouping per attribute that ``by`` uses."""
    found = _attributes(settings, attributes)
    parse_votes(settings.votes)
    merges = _lists("group", settings.group, found)
    nests = _lists("nested", settings.nested, found)
    bins = _bins(settings.bins, found)
    return {
        name: Grouping(
            attribute=name,
            votes=settings.votes,
            unknown=settings.unknown,
            unknown_values=settings.unknown_values,
            merge=merges.get(name, {}),
            rest=settings.group_rest if name in merges else "keep",
            absent=settings.absent_values,
            bins=bins.get(name),
            nested=nests.get(name, {}),
        )
        for name in found.used
    }


def references(settings: Groups, reference: Sequence[str]) -> dict[str, str]:
    """Read ``reference``: with which group each attribute's others are compared."""
    handles = {"*".join(crossed(entry)) for entry in settings.by}
    found: dict[str, str] = {}
    for text in reference:
        left, group = _halves("reference", text, handles, "ATTRIBUTE=GROUP")
        handle = "*".join(crossed(left))
        if handle not in handles:
            raise SpecError(
                f"the reference {text!r} is about nothing that is audited",
                expected="one of " + ", ".join(sorted(handles)) if handles else "something in --by",
                found=repr(handle),
            )
        values = crossed(group) if "*" in handle else (group,)
        if len(values) != len(crossed(handle)) or not all(values):
            raise SpecError(
                f"the reference {text!r} does not name one group",
                expected=f"as many values, joined by *, as {handle!r} has attributes",
                found=repr(group),
            )
        if handle in found:
            raise SpecError(f"{handle!r} has two references", expected="one", found=repr(text))
        found[handle] = display(values)
    if settings.unknown == "both":
        found |= {known_handle(handle): group for handle, group in found.items()}
    return found


def check_references(found: Mapping[str, str], frame: pl.DataFrame) -> None:
    """Refuse a reference group that is empty."""
    for handle, group in found.items():
        groups = frame.filter(pl.col("attribute") == handle)["group"].unique().to_list()
        if groups and group not in groups:
            raise UnknownNameError(f"group of {handle!r}", group, groups, where="--reference")


def _attributes(settings: Groups, attributes: pl.DataFrame) -> _Attributes:
    attributes = check(attributes, ATTRIBUTES, where="attributes")
    known = tuple(attributes["attribute"].unique().sort())
    used = dict.fromkeys(name for entry in entries(settings.by, known) for name in entry)
    values = {}
    if settings.group or settings.nested:
        for name in used:
            rows = attributes.filter(pl.col("attribute") == name)
            marked = mark_unknown(rows, settings.unknown_values)
            values[name] = frozenset(marked["value"].unique().drop_nulls())
    return _Attributes(known, tuple(used), values)


def _halves(setting: str, text: str, names: Collection[str], form: str) -> tuple[str, str]:
    """Part ``text`` at the ``=`` behind a known name, if one starts it, else at the first."""
    left = max((n for n in names if text.startswith(f"{n}=")), key=len, default=None)
    left, equals, right = (left, "=", text[len(left) + 1 :]) if left else text.partition("=")
    if not (left.strip() and equals and right.strip()):
        raise SpecError(
            f"the setting {name_as_typed(setting)} cannot be read", expected=form, found=repr(text)
        )
    return left.strip(), right.strip()


def _used(setting: str, text: str, name: str, found: _Attributes) -> str:
    """Return the attribute's name if it exists and is used."""
    if name not in found.known:
        raise UnknownNameError(
            "attribute", name, found.known, where=f"{name_as_typed(setting)} {text!r}"
        )
    if name not in found.used:
        raise SpecError(
            f"{name_as_typed(setting)} {text!r} is about {name!r}, which is not audited",
            expected="one of " + ", ".join(found.used) if found.used else "an attribute in --by",
            hint=f"add --by {name}, or leave the setting out",
        )
    return name


def _bins(texts: Sequence[str], found: _Attributes) -> dict[str, str]:
    bins: dict[str, str] = {}
    for text in texts:
        form = "ATTRIBUTE=quantile:K, =edges:A,B, =top:K or =" + ", =".join(INCOME_RULES)
        left, right = _halves("bins", text, found.known, form)
        name = _used("bins", text, left, found)
        if name in bins:
            raise SpecError(f"{name!r} has bins twice", expected="one --bins", found=repr(text))
        bins[name] = INCOME_RULES.get(right, right)
        parse_bins(bins[name])
    return bins


def _lists(
    setting: str, texts: Sequence[str], found: _Attributes
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Read ``[ATTRIBUTE:]NAME=VALUE,VALUE`` settings: attribute to name to values."""
    lists: dict[str, dict[str, tuple[str, ...]]] = {}
    for text in texts:
        form = "NAME=VALUE,VALUE or ATTRIBUTE:NAME=VALUE,VALUE"
        left, right = _halves(setting, text, (), form)
        read = next(csv.reader([right], skipinitialspace=True))
        values = tuple(dict.fromkeys(v.strip() for v in read if v.strip()))
        attribute, name = _owner(setting, text, left, values, found)
        if not (name and values):
            raise SpecError(
                f"the setting {name_as_typed(setting)} cannot be read",
                expected=form,
                found=repr(text),
            )
        if name in lists.setdefault(attribute, {}):
            raise SpecError(
                f"{name_as_typed(setting)} names {name!r} of {attribute!r} twice",
                expected="each name once, with all of its values",
                found=repr(text),
            )
        lists[attribute][name] = values
    return lists


def _owner(
    setting: str, text: str, left: str, values: tuple[str, ...], found: _Attributes
) -> tuple[str, str]:
    """Say which attribute a setting is about, and the name it gives."""
    prefixes = [left[:i] for i, letter in enumerate(left) if letter == ":"]
    if prefixes:
        stated = max((p for p in prefixes if p.strip() in found.known), key=len, default=None)
        prefix = prefixes[0] if stated is None else stated
        name = _used(setting, text, prefix.strip(), found)
        return name, left[len(prefix) + 1 :].strip()
    # A broad value must be there itself; its parts need not be.
    wanted = {left} if setting == "nested" else set(values)
    holders = [name for name in found.used if wanted <= found.values[name]]
    if len(holders) == 1:
        return holders[0], left
    raise SpecError(
        f"{name_as_typed(setting)} {text!r} does not say which attribute it is about",
        expected=f"ATTRIBUTE:{text}",
        found="the values occur in each of " + ", ".join(map(repr, holders))
        if holders
        else f"no attribute of --by holds {', '.join(map(repr, sorted(wanted)))}: "
        + (", ".join(map(repr, found.used)) or "--by is empty"),
    )
