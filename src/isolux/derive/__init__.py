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

from isolux.core import registry
from isolux.core.containers import Dataset
from isolux.core.errors import SpecError
from isolux.core.info import DerivedInfo
from isolux.core.tables import ATTRIBUTES, check
from isolux.derive._captions import add_captions_from_file

__all__ = [
    "add_captions_from_file",
    "add_missing_derived_attributes",
    "expand_family_names",
    "map_derived_attributes_to_plugins",
]

_MAX_REASONS = 6  # of one attribute that a note lists


def map_derived_attributes_to_plugins() -> dict[str, str]:
    """List the attributes that can be computed, and the file that computes each."""
    return {
        attribute: plugin
        for plugin in registry.names("derive")
        for attribute, _ in _load_derived_info(plugin).attributes
    }


def expand_family_names(requested: Sequence[str]) -> list[str]:
    """Replace names of families by the attributes that they compute."""
    plugin_of = map_derived_attributes_to_plugins()
    families = set(registry.names("derive")) - set(plugin_of)
    expanded = [
        attribute
        for name in requested
        for attribute in (
            [attribute_name for attribute_name, plugin in plugin_of.items() if plugin == name]
            if name in families
            else [name]
        )
    ]
    return list(dict.fromkeys(expanded))


def add_missing_derived_attributes(dataset: Dataset, requested: Sequence[str]) -> Dataset:
    """Compute the requested attributes that the dataset lacks and that a family computes."""
    existing = set(dataset.attributes["attribute"].unique())
    if existing.issuperset(requested):
        return dataset  # and no family of attributes is loaded
    plugin_by_attribute = map_derived_attributes_to_plugins()
    missing = [
        name
        for name in dict.fromkeys(requested)
        if name in plugin_by_attribute and name not in existing
    ]
    attributes, notes = [ATTRIBUTES.conform(dataset.attributes)], list(dataset.notes)
    for plugin in dict.fromkeys(plugin_by_attribute[name] for name in missing):
        computed = registry.load("derive", plugin).derive(dataset)
        plugin_attributes = [name for name in missing if plugin_by_attribute[name] == plugin]
        computed = computed.filter(pl.col("attribute").is_in(plugin_attributes))
        attributes.append(check(computed, ATTRIBUTES, source=plugin))
        meaning = dict(_load_derived_info(plugin).attributes)
        notes += [f"{name} was computed: {meaning[name]}" for name in plugin_attributes]
        if "reason" in computed.columns:
            folder_notes = [f"Pictures were read from {dataset.root}."] if dataset.root else []
            notes += [
                *folder_notes,
                *_build_missing_value_notes(computed, plugin_attributes, dataset.name),
            ]
    if len(attributes) == 1:
        return dataset
    table = pl.concat(attributes, how="diagonal_relaxed")
    return replace(dataset, attributes=ATTRIBUTES.conform(table), notes=tuple(dict.fromkeys(notes)))


def _build_missing_value_notes(
    attribute_rows: pl.DataFrame, attributes: Sequence[str], dataset_name: str
) -> list[str]:
    """Count the reasons of missing values; attributes with equal counts share a note."""
    names_by_text: dict[str, list[str]] = {}
    for attribute in attributes:
        rows = attribute_rows.filter(attribute=attribute)
        missing = rows.filter(pl.col("value").is_null())
        reasons = (
            missing["reason"]
            .fill_null("no reason given")
            .value_counts()
            .sort(["count", "reason"], descending=[True, False])
        )
        reasons_text = "; ".join(
            f"{reason} ({n:,})" for reason, n in reasons.head(_MAX_REASONS).iter_rows()
        )
        if missing.height and missing.height == rows.height:
            raise SpecError(
                f"{attribute} cannot be computed for anyone",
                expected="at least one person for whom it is known",
                found=reasons_text,
                where=dataset_name,
            )
        if missing.height:
            text = f"unknown of {missing.height:,} of {rows.height:,}: {reasons_text}."
            names_by_text.setdefault(text, []).append(attribute)
    return [f"{', '.join(attributes)}: {text}" for text, attributes in names_by_text.items()]


def _load_derived_info(plugin: str) -> DerivedInfo:
    return cast("DerivedInfo", registry.load_info("derive", plugin))
