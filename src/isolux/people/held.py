"""The people that a verb is given: a dataset in memory, or ``NAME:PATH`` with settings to load it.

From whatever stands first in ``isolux.describe``, ``check`` and ``sample`` to the people they are
about, with the attributes that are asked for; and how their values become groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl

from isolux import derive
from isolux.datasets import Purpose, by_cluster
from isolux.derive import with_captions
from isolux.groups.settings import groupings
from isolux.people.loading import computed_attributes, load_people
from isolux.people.only import keep_only, only_judged, parse_conditions
from isolux.people.withdrawal import without_withdrawn
from isolux.people.withdrawn_lists import read_withdrawn
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.counts import refuse_counts
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.spec import Groups, crossed, parse_spec

_OF_FILES = ("id", "separator", "data_option", "images")
"""Settings that say how files are read, and so nothing of a dataset that is in memory."""
_PLACES = ("caption_country", "caption_region")


def held_people(
    data: Dataset | str | Path,
    attributes: Sequence[str] = (),
    *,
    captions: str | Path | None = None,
    first_and: Sequence[str] | None = None,
    purpose: Purpose = "evaluation",
    **settings: Any,
) -> Dataset:
    """Return the people, with the attributes asked for, less those whom the settings leave out."""
    given = {name: value for name, value in settings.items() if value not in (None, (), [])}
    only = _listed(given.pop("only", ()))
    own = [part for entry in attributes for part in crossed(entry)]
    asked = [condition.attribute for condition in parse_conditions(only)]
    computed = computed_attributes(_listed(given.pop("derive", ())))
    wanted = [*own, *computed]
    if isinstance(data, Dataset):
        refuse_counts([data.name], "this", "isolux.score and isolux.audit of counts")
        dataset = _of_memory(data, given, purpose)
    else:
        # What captions tell can be computed once they are there: attributes wait until then.
        at_once = [] if captions is not None else wanted
        people = parse_spec({"data": str(data), **given}).people
        few = None if computed or first_and is None else (*own, *asked, *first_and)
        dataset = load_people(people, at_once, first_and=few, purpose=purpose)
    if captions is not None:
        dataset = with_captions(dataset, captions)
        wanted = [*_PLACES, *wanted]
    dataset = derive.add(dataset, [*wanted, *asked])
    return keep_only(only_judged(dataset), only, whole_images=False)


def _of_memory(dataset: Dataset, given: Mapping[str, Any], purpose: Purpose) -> Dataset:
    for name in _OF_FILES:
        if name in given:
            raise SpecError(
                f"{name!r} says how files are read, and this dataset is in memory",
                expected="NAME:PATH with this setting, or a dataset without it",
                found=repr(given[name]),
            )
    if "cluster" in given:  # first: a list of who withdrew may go by it
        dataset = by_cluster(dataset, given["cluster"])
    if "withdrawn" in given:
        dataset = without_withdrawn(
            dataset,
            read_withdrawn(given["withdrawn"], purpose=purpose),
            allow_unmatched=bool(given.get("allow_unmatched")),
        )
    return dataset


def _listed(value: object) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)  # type: ignore[arg-type]


def renamed(datasets: Mapping[str, Dataset], written: Sequence[str]) -> dict[str, Dataset]:
    """Rename attributes, ``OLD=NEW``, where a dataset has them: to stand side by side."""
    found = dict(datasets)
    names = {name: set(d.attributes["attribute"].unique()) for name, d in found.items()}
    everywhere = sorted(set().union(*names.values()))
    for text in written:
        old, equals, new = (part.strip() for part in text.partition("="))
        if not (old and equals and new):
            raise SpecError("--rename cannot be read", expected="OLD=NEW", found=repr(text))
        if old not in everywhere:
            raise UnknownNameError("attribute", old, everywhere, where="--rename")
        for name in [name for name in found if old in names[name]]:
            if new in names[name]:
                raise SpecError(
                    f"--rename would make two attributes one: {new!r}",
                    expected="a name that the dataset does not use",
                    found=repr(text),
                    where=name,
                )
            found[name] = _with_name(found[name], old, new)
    return found


def _with_name(dataset: Dataset, old: str, new: str) -> Dataset:
    changed = pl.col("attribute").replace({old: new})
    terms = tuple((new if key == old else key, term) for key, term in dataset.info.terms)
    return replace(
        dataset,
        attributes=dataset.attributes.with_columns(changed),
        info=replace(dataset.info, terms=terms),
    )


def groupings_over(
    datasets: Mapping[str, Dataset], by: Sequence[str], **settings: Any
) -> dict[str, Any]:
    """Read ``bins``, ``votes`` and ``group`` over all datasets, one of which may lack a value."""
    tables = [dataset.instance_attributes() for dataset in datasets.values()]
    attributes = pl.concat(tables, how="diagonal_relaxed")
    named = by or attributes["attribute"].unique(maintain_order=True).to_list()
    absent = "note" if len(datasets) > 1 else "refuse"
    return groupings(Groups(by=tuple(named), absent_values=absent, **settings), attributes)
