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
from isolux.core.containers import Dataset
from isolux.core.counts import refuse_count_tables
from isolux.core.errors import SpecError, refuse_unknown_names
from isolux.core.spec import Groups, parse_spec, split_intersection
from isolux.datasets import Purpose, cluster_by_requested_column
from isolux.derive import add_captions_from_file
from isolux.groups.option_parsing import read_groupings
from isolux.people.filters import drop_unscored_people, filter_people, parse_conditions
from isolux.people.loading import list_computed_attributes, load_people
from isolux.people.withdrawal import remove_withdrawn_people
from isolux.people.withdrawal_lists import read_withdrawn_list

_FILE_SETTINGS = ("id", "separator", "data_option", "images")
"""Settings that say how files are read, and so nothing of a dataset that is in memory."""
_LOCATION_ATTRIBUTES = ("caption_country", "caption_region")


def load_people_or_take_dataset(
    data: Dataset | str | Path,
    attributes: Sequence[str] = (),
    *,
    captions: str | Path | None = None,
    required_columns: Sequence[str] | None = None,
    purpose: Purpose = "evaluation",
    **settings: Any,
) -> Dataset:
    """Load people, or take a dataset in memory, with the requested attributes and filters."""
    options = {name: setting for name, setting in settings.items() if setting not in (None, (), [])}
    condition_texts = _to_tuple(options.pop("only", ()))
    attribute_names = [attribute for entry in attributes for attribute in split_intersection(entry)]
    condition_attributes = [condition.attribute for condition in parse_conditions(condition_texts)]
    computed = list_computed_attributes(_to_tuple(options.pop("derive", ())))
    requested = [*attribute_names, *computed]
    if isinstance(data, Dataset):
        refuse_count_tables([data.name], "this", "isolux.score and isolux.audit of counts")
        dataset = _filter_and_complete_dataset(data, options, purpose)
    else:
        # What captions tell can be computed once they are there: attributes wait until then.
        loaded_attributes = [] if captions is not None else requested
        people = parse_spec({"data": str(data), **options}).people
        needed_columns = (
            None
            if computed or required_columns is None
            else (*attribute_names, *condition_attributes, *required_columns)
        )
        dataset = load_people(
            people, loaded_attributes, required_columns=needed_columns, purpose=purpose
        )
    if captions is not None:
        dataset = add_captions_from_file(dataset, captions)
        requested = [*_LOCATION_ATTRIBUTES, *requested]
    dataset = derive.add_missing_derived_attributes(dataset, [*requested, *condition_attributes])
    return filter_people(drop_unscored_people(dataset), condition_texts, uses_unscored_people=False)


def _filter_and_complete_dataset(
    dataset: Dataset, options: Mapping[str, Any], purpose: Purpose
) -> Dataset:
    for name in _FILE_SETTINGS:
        if name in options:
            raise SpecError(
                f"{name!r} says how files are read, and this dataset is in memory",
                expected="NAME:PATH with this setting, or a dataset without it",
                found=repr(options[name]),
            )
    if "cluster" in options:  # first: a list of who withdrew may go by it
        dataset = cluster_by_requested_column(dataset, options["cluster"])
    if "withdrawn" in options:
        dataset = remove_withdrawn_people(
            dataset,
            read_withdrawn_list(options["withdrawn"], purpose=purpose),
            allow_unmatched=bool(options.get("allow_unmatched")),
        )
    return dataset


def _to_tuple(entry: object) -> tuple[str, ...]:
    return (entry,) if isinstance(entry, str) else tuple(entry)  # type: ignore[arg-type]


def rename_attributes(
    datasets: Mapping[str, Dataset], rename_texts: Sequence[str]
) -> dict[str, Dataset]:
    """Rename attributes, ``OLD=NEW``, so that datasets can be compared."""
    renamed_datasets = dict(datasets)
    names = {name: set(d.attributes["attribute"].unique()) for name, d in renamed_datasets.items()}
    everywhere = sorted(set().union(*names.values()))
    for text in rename_texts:
        old, equals, new = (side_text.strip() for side_text in text.partition("="))
        if not (old and equals and new):
            raise SpecError("--rename cannot be read", expected="OLD=NEW", found=repr(text))
        refuse_unknown_names("attribute", [old], everywhere, where="--rename")
        for name in [name for name in renamed_datasets if old in names[name]]:
            if new in names[name]:
                raise SpecError(
                    f"--rename would make two attributes one: {new!r}",
                    expected="a name that the dataset does not use",
                    found=repr(text),
                    where=name,
                )
            renamed_datasets[name] = _rename_attribute(renamed_datasets[name], old, new)
    return renamed_datasets


def _rename_attribute(dataset: Dataset, old: str, new: str) -> Dataset:
    changed = pl.col("attribute").replace({old: new})
    terms = tuple((new if key == old else key, term) for key, term in dataset.info.terms)
    return replace(
        dataset,
        attributes=dataset.attributes.with_columns(changed),
        info=replace(dataset.info, terms=terms),
    )


def build_groupings_over(
    datasets: Mapping[str, Dataset], by: Sequence[str], **settings: Any
) -> dict[str, Any]:
    """Read ``bins``, ``votes`` and ``group`` over all datasets, one of which may lack a value."""
    tables = [dataset.instance_attributes() for dataset in datasets.values()]
    attributes = pl.concat(tables, how="diagonal_relaxed")
    attribute_names = by or attributes["attribute"].unique(maintain_order=True).to_list()
    absent = "note" if len(datasets) > 1 else "refuse"
    return read_groupings(
        Groups(by=tuple(attribute_names), unmatched_values=absent, **settings), attributes
    )
