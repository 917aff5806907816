"""Attributes computed from what every dataset has: boxes, masks, keypoints, and from pixels.

From a dataset to a dataset with more attributes, before anybody is scored. One file a family of
attributes, with ``INFO`` and ``derive(dataset) -> attributes``; an audit that names an attribute
which its dataset lacks and which stands here gets it computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import polars as pl

from isolux import registry
from isolux.containers import Dataset
from isolux.info import DerivedInfo
from isolux.tables import ATTRIBUTES, check

__all__ = ["add", "names"]


def names() -> dict[str, str]:
    """List the attributes that can be computed, and the file that computes each.

    Examples
    --------
    >>> names()["people_in_image"]
    'crowding'
    """
    return {
        attribute: plugin
        for plugin in registry.names("derive")
        for attribute, _ in _info(plugin).attributes
    }


def add(dataset: Dataset, wanted: Sequence[str]) -> Dataset:
    """Compute the attributes that are wanted, that the dataset lacks, and that are known here.

    Parameters
    ----------
    dataset : Dataset
    wanted : sequence of str
        Names of attributes. Those that the dataset has stay as they are; those that nobody knows
        are left for whoever asks for their values to refuse.

    Returns
    -------
    Dataset
        The same people with more ``attributes``; a note says what each was computed from.

    Raises
    ------
    SpecError
        The dataset lacks what an attribute is computed from (boxes, masks, images).

    Examples
    --------
    >>> from isolux.info import DatasetInfo
    >>> three = Dataset(
    ...     name="three people",
    ...     info=DatasetInfo(title="Three people", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a", "b", "c"], "image_id": ["1", "1", "2"]}),
    ... )
    >>> add(three, ["people_in_image"]).attributes["value"].to_list()
    ['2', '2', '1']
    """
    known = names()
    has = set(dataset.attributes["attribute"].unique())
    missing = [name for name in dict.fromkeys(wanted) if name in known and name not in has]
    attributes, notes = [ATTRIBUTES.conform(dataset.attributes)], list(dataset.notes)
    for plugin in dict.fromkeys(known[name] for name in missing):
        found = check(registry.load("derive", plugin).derive(dataset), ATTRIBUTES, where=plugin)
        own = [name for name in missing if known[name] == plugin]
        attributes.append(found.filter(pl.col("attribute").is_in(own)))
        meaning = dict(_info(plugin).attributes)
        notes += [f"{name} was computed: {meaning[name]}" for name in own]
    if len(attributes) == 1:
        return dataset
    table = pl.concat(attributes, how="diagonal_relaxed")
    return replace(dataset, attributes=ATTRIBUTES.conform(table), notes=tuple(notes))


def _info(plugin: str) -> DerivedInfo:
    return cast("DerivedInfo", registry.info("derive", plugin))
