"""Attributes computed from what every dataset has: boxes, masks, keypoints, and from pixels.

From a dataset to a dataset with more attributes, before anyone is scored. One file a family of
attributes, with ``INFO`` and ``derive(dataset) -> attributes``; an audit that names an attribute
which its dataset lacks and which stands here gets it computed. A family may give a column
``reason`` for its nulls; what it says is counted here, in a note.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import polars as pl

from isolux.derive._captions import with_captions
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError
from isolux.vocabulary.info import DerivedInfo
from isolux.vocabulary.tables import ATTRIBUTES, check

__all__ = ["add", "names", "of_families", "with_captions"]

_REASONS = 6  # of one attribute that a note lists


def names() -> dict[str, str]:
    """List the attributes that can be computed, and the file that computes each."""
    return {
        attribute: plugin
        for plugin in registry.names("derive")
        for attribute, _ in _info(plugin).attributes
    }


def of_families(wanted: Sequence[str]) -> list[str]:
    """Name the attributes of families that are named whole, as ``isolux list attributes`` does."""
    known = names()
    families = set(registry.names("derive")) - set(known)
    found = [
        attribute
        for name in wanted
        for attribute in (
            [one for one, plugin in known.items() if plugin == name] if name in families else [name]
        )
    ]
    return list(dict.fromkeys(found))


def add(dataset: Dataset, wanted: Sequence[str]) -> Dataset:
    """Compute the attributes that are wanted, that the dataset lacks, and that are known here."""
    has = set(dataset.attributes["attribute"].unique())
    if has.issuperset(wanted):
        return dataset  # and no family of attributes is loaded
    known = names()
    missing = [name for name in dict.fromkeys(wanted) if name in known and name not in has]
    attributes, notes = [ATTRIBUTES.conform(dataset.attributes)], list(dataset.notes)
    for plugin in dict.fromkeys(known[name] for name in missing):
        found = registry.load("derive", plugin).derive(dataset)
        own = [name for name in missing if known[name] == plugin]
        found = found.filter(pl.col("attribute").is_in(own))
        attributes.append(check(found, ATTRIBUTES, where=plugin))
        meaning = dict(_info(plugin).attributes)
        notes += [f"{name} was computed: {meaning[name]}" for name in own]
        if "reason" in found.columns:
            read = [f"Pictures were read from {dataset.root}."] if dataset.root else []
            notes += [*read, *_unknown(found, own, dataset.name)]
    if len(attributes) == 1:
        return dataset
    table = pl.concat(attributes, how="diagonal_relaxed")
    return replace(dataset, attributes=ATTRIBUTES.conform(table), notes=tuple(dict.fromkeys(notes)))


def _unknown(found: pl.DataFrame, own: Sequence[str], name: str) -> list[str]:
    """Count the reasons why values are missing; attributes alike are counted together."""
    told: dict[str, list[str]] = {}
    for attribute in own:
        rows = found.filter(attribute=attribute)
        lacking = rows.filter(pl.col("value").is_null())
        why = (
            lacking["reason"]
            .fill_null("no reason given")
            .value_counts()
            .sort(["count", "reason"], descending=[True, False])
        )
        counted = "; ".join(f"{reason} ({n:,})" for reason, n in why.head(_REASONS).iter_rows())
        if lacking.height and lacking.height == rows.height:
            raise SpecError(
                f"{attribute} cannot be computed for anyone",
                expected="at least one person for whom it is known",
                found=counted,
                where=name,
            )
        if lacking.height:
            said = f"unknown of {lacking.height:,} of {rows.height:,}: {counted}."
            told.setdefault(said, []).append(attribute)
    return [f"{', '.join(attributes)}: {said}" for said, attributes in told.items()]


def _info(plugin: str) -> DerivedInfo:
    return cast("DerivedInfo", registry.info("derive", plugin))
