"""Parser of ``--group``, ``--bins``, ``nested`` and ``--reference`` into Groupings.

Values are separated by commas; one that has a comma is in double quotes:
``ancestry:East="Korea, Republic of",Japan``.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from isolux.core.errors import SpecError, UnknownNameError
from isolux.core.grouping import Grouping, split_intersection
from isolux.core.spec import Groups, format_setting_as_typed
from isolux.core.tables import ATTRIBUTES, check
from isolux.groups.binning import INCOME_RULES, parse_bins
from isolux.groups.intersections import format_group_name, parse_unique_intersections
from isolux.groups.unknown_values import add_known_suffix, null_unknown_words
from isolux.groups.vote_rules import parse_vote_rule


@dataclass(frozen=True, slots=True)
class _KnownAttributes:
    """The attributes that exist, those that ``by`` uses, and the known values of the latter."""

    all_names: tuple[str, ...]
    used_names: tuple[str, ...]
    values_by_name: Mapping[str, frozenset[str]]


def read_groupings(settings: Groups, attributes: pl.DataFrame) -> dict[str, Grouping]:
    """Parse an audit's grouping settings into one Grouping per attribute of ``by``."""
    known_attributes = _list_known_attributes(settings, attributes)
    parse_vote_rule(settings.votes)
    merges = _parse_value_lists("group", settings.group, known_attributes)
    nests = _parse_value_lists("nested", settings.nested, known_attributes)
    bins = _parse_bins_by_attribute(settings.bins, known_attributes)
    return {
        name: Grouping(
            attribute=name,
            votes=settings.votes,
            unknown=settings.unknown,
            unknown_values=settings.unknown_values,
            merge=merges.get(name, {}),
            # Without merges, excluding the rest would exclude everyone.
            rest=settings.ungrouped_values if name in merges else "keep",
            absent=settings.unmatched_values,
            bins=bins.get(name),
            nested=nests.get(name, {}),
        )
        for name in known_attributes.used_names
    }


def read_references(settings: Groups, reference: Sequence[str]) -> dict[str, str]:
    """Parse ``reference``: the group that each attribute's other groups are compared with."""
    handles = {"*".join(split_intersection(entry)) for entry in settings.by}
    references_by_handle: dict[str, str] = {}
    for text in reference:
        handle_text, group = _split_setting("reference", text, handles, "ATTRIBUTE=GROUP")
        handle = "*".join(split_intersection(handle_text))
        if handle not in handles:
            raise SpecError(
                f"the reference {text!r} is about nothing that is audited",
                expected="one of " + ", ".join(sorted(handles)) if handles else "something in --by",
                found=repr(handle),
            )
        values = split_intersection(group) if "*" in handle else (group,)
        if len(values) != len(split_intersection(handle)) or not all(values):
            raise SpecError(
                f"the reference {text!r} does not name one group",
                expected=f"as many values, joined by *, as {handle!r} has attributes",
                found=repr(group),
            )
        if handle in references_by_handle:
            raise SpecError(f"{handle!r} has two references", expected="one", found=repr(text))
        references_by_handle[handle] = format_group_name(values)
    # With --unknown both, an attribute is reported twice, and both reports have its reference.
    if settings.unknown == "both":
        references_by_handle |= {
            add_known_suffix(handle): group for handle, group in references_by_handle.items()
        }
    return references_by_handle


def check_references(references_by_handle: Mapping[str, str], frame: pl.DataFrame) -> None:
    """Refuse a reference group that is empty."""
    for handle, group in references_by_handle.items():
        groups = frame.filter(pl.col("attribute") == handle)["group"].unique().to_list()
        if groups and group not in groups:
            raise UnknownNameError(f"group of {handle!r}", group, groups, where="--reference")


def _list_known_attributes(settings: Groups, attributes: pl.DataFrame) -> _KnownAttributes:
    attributes = check(attributes, ATTRIBUTES, source="attributes")
    all_names = tuple(attributes["attribute"].unique().sort())
    used_names = dict.fromkeys(
        name for entry in parse_unique_intersections(settings.by, all_names) for name in entry
    )
    values = {}
    if settings.group or settings.nested:
        for name in used_names:
            rows = attributes.filter(pl.col("attribute") == name)
            rows_with_nulls = null_unknown_words(rows, settings.unknown_values)
            values[name] = frozenset(rows_with_nulls["value"].unique().drop_nulls())
    return _KnownAttributes(all_names, tuple(used_names), values)


def _split_setting(setting: str, text: str, names: Collection[str], form: str) -> tuple[str, str]:
    """Split ``text`` at the ``=`` after a known name, if it starts with one, else at the first."""
    # The longest known name, because a name may itself contain an equals sign.
    name_text = max((n for n in names if text.startswith(f"{n}=")), key=len, default=None)
    name_text, equals, value_text = (
        (name_text, "=", text[len(name_text) + 1 :]) if name_text else text.partition("=")
    )
    if not (name_text.strip() and equals and value_text.strip()):
        raise SpecError(
            f"the setting {format_setting_as_typed(setting)} cannot be read",
            expected=form,
            found=repr(text),
        )
    return name_text.strip(), value_text.strip()


def _check_attribute_used(
    setting: str, text: str, name: str, known_attributes: _KnownAttributes
) -> str:
    """Check that an attribute exists and is used, and return its name."""
    if name not in known_attributes.all_names:
        raise UnknownNameError(
            "attribute",
            name,
            known_attributes.all_names,
            where=f"{format_setting_as_typed(setting)} {text!r}",
        )
    if name not in known_attributes.used_names:
        raise SpecError(
            f"{format_setting_as_typed(setting)} {text!r} is about {name!r}, which is not audited",
            expected="one of " + ", ".join(known_attributes.used_names)
            if known_attributes.used_names
            else "an attribute in --by",
            hint=f"add --by {name}, or leave the setting out",
        )
    return name


def _parse_bins_by_attribute(
    texts: Sequence[str], known_attributes: _KnownAttributes
) -> dict[str, str]:
    bins: dict[str, str] = {}
    for text in texts:
        form = "ATTRIBUTE=quantile:K, =edges:A,B, =top:K or =" + ", =".join(INCOME_RULES)
        name_text, bins_text = _split_setting("bins", text, known_attributes.all_names, form)
        name = _check_attribute_used("bins", text, name_text, known_attributes)
        if name in bins:
            raise SpecError(f"{name!r} has bins twice", expected="one --bins", found=repr(text))
        bins[name] = INCOME_RULES.get(bins_text, bins_text)
        parse_bins(bins[name])
    return bins


def _parse_value_lists(
    setting: str, texts: Sequence[str], known_attributes: _KnownAttributes
) -> dict[str, dict[str, tuple[str, ...]]]:
    """Parse ``[ATTRIBUTE:]NAME=VALUE,VALUE`` settings: attribute to name to values."""
    lists: dict[str, dict[str, tuple[str, ...]]] = {}
    for text in texts:
        form = "NAME=VALUE,VALUE or ATTRIBUTE:NAME=VALUE,VALUE"
        name_text, values_text = _split_setting(setting, text, (), form)
        # By the csv module, because a value with a comma is in double quotes.
        value_texts = next(csv.reader([values_text], skipinitialspace=True))
        values = tuple(dict.fromkeys(v.strip() for v in value_texts if v.strip()))
        attribute, name = _split_attribute_and_name(
            setting, text, name_text, values, known_attributes
        )
        if not (name and values):
            raise SpecError(
                f"the setting {format_setting_as_typed(setting)} cannot be read",
                expected=form,
                found=repr(text),
            )
        if name in lists.setdefault(attribute, {}):
            raise SpecError(
                f"{format_setting_as_typed(setting)} names {name!r} of {attribute!r} twice",
                expected="each name once, with all of its values",
                found=repr(text),
            )
        lists[attribute][name] = values
    return lists


def _split_attribute_and_name(
    setting: str,
    text: str,
    name_text: str,
    values: tuple[str, ...],
    known_attributes: _KnownAttributes,
) -> tuple[str, str]:
    """Find the attribute of a setting, and the name that it defines."""
    # Attributes may have a colon in their names: the longest known prefix wins.
    prefixes = [name_text[:i] for i, letter in enumerate(name_text) if letter == ":"]
    if prefixes:
        stated = max(
            (p for p in prefixes if p.strip() in known_attributes.all_names), key=len, default=None
        )
        prefix = prefixes[0] if stated is None else stated
        name = _check_attribute_used(setting, text, prefix.strip(), known_attributes)
        return name, name_text[len(prefix) + 1 :].strip()
    # A broad value must occur itself; its parts need not.
    required_values = {name_text} if setting == "nested" else set(values)
    holders = [
        name
        for name in known_attributes.used_names
        if required_values <= known_attributes.values_by_name[name]
    ]
    if len(holders) == 1:
        return holders[0], name_text
    raise SpecError(
        f"{format_setting_as_typed(setting)} {text!r} does not say which attribute it is about",
        expected=f"ATTRIBUTE:{text}",
        found="the values occur in each of " + ", ".join(map(repr, holders))
        if holders
        else f"no attribute of --by holds {', '.join(map(repr, sorted(required_values)))}: "
        + (", ".join(map(repr, known_attributes.used_names)) or "--by is empty"),
    )
