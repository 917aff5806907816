"""From ``NAME:PATH`` and settings to the people who are judged, with all that is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from isolux import derive
from isolux.datasets import load
from isolux.people.only import keep_only, only_judged, parse_conditions
from isolux.people.withdrawal import read_withdrawn, without_withdrawn
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.plugin_options import read_options
from isolux.vocabulary.spec import AuditSpec, People

__all__ = ["judged_people", "load_people"]


def judged_people(spec: AuditSpec) -> Dataset:
    """Load the people that an audit judges, with the attributes that it groups them by."""
    whole = registry.task_info(spec.task.name).whole_images
    return load_people(spec.people, spec.groups.attributes, whole_images=whole)


def load_people(
    people: People, attributes: Sequence[str] = (), *, whole_images: bool = False
) -> Dataset:
    """Load a dataset, compute the attributes that it lacks, and keep who is to be judged.

    Parameters
    ----------
    people : People
        Where the dataset is and who is judged.
    attributes : sequence of str
        Those to compute where the dataset lacks them and they can be computed, beside
        ``people.derive``.
    whole_images : bool
        True: people who are not judged stay, as a task of whole images needs them.
    """
    name, colon, path = people.data.partition(":")
    if not colon or not path:
        raise SpecError(
            "the data to audit are not named",
            expected="NAME:PATH, such as table:people.csv",
            found=repr(people.data),
            hint="`isolux list datasets` shows the names",
        )
    named = {
        "id": people.id,
        "cluster": people.cluster,
        "separator": people.separator,
        "repair_ages": people.repair_ages or None,
    }
    options: dict[str, Any] = {k: value for k, value in named.items() if value is not None}
    loader = registry.load("datasets", name).load
    options |= read_options(
        loader, people.data_option, owner=f"the dataset {name}", flag="--data-option",
        hidden=options,
    )  # fmt: skip
    _refuse_unknown_attributes(people.derive)
    wanted = [
        *attributes,
        *people.derive,
        *(condition.attribute for condition in parse_conditions(people.only)),
    ]
    cluster = options.get("cluster")
    if cluster in derive.names():
        wanted.append(str(options.pop("cluster")))
    dataset = load(name, path, images=people.images, **options)
    if people.withdrawn is not None:
        dataset = without_withdrawn(dataset, read_withdrawn(people.withdrawn))
    dataset = derive.add(dataset, wanted)
    if cluster in derive.names():
        dataset = dataset.clustered_by(cluster)
    if not whole_images:
        dataset = only_judged(dataset)
    return keep_only(dataset, people.only, whole_images=whole_images)


def _refuse_unknown_attributes(names: Sequence[str]) -> None:
    known = derive.names()
    for name in names:
        if name not in known:
            raise UnknownNameError("computed attribute", name, known, where="--derive")
