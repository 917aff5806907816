"""From ``NAME:PATH`` and settings to the people who are judged, with all that is known of them."""

from __future__ import annotations

from typing import Any

from isolux import derive
from isolux.datasets import load
from isolux.people.only import keep_only, only_judged, parse_conditions
from isolux.people.withdrawal import read_withdrawn, without_withdrawn
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, UnknownNameError
from isolux.vocabulary.plugin_options import read_options
from isolux.vocabulary.spec import AuditSpec

__all__ = ["load_people"]


def load_people(spec: AuditSpec) -> Dataset:
    """Load the dataset, compute the attributes that it lacks, and keep who is to be judged."""
    name, colon, path = spec.data.partition(":")
    if not colon or not path:
        raise SpecError(
            "the data to audit are not named",
            expected="NAME:PATH, such as table:people.csv",
            found=repr(spec.data),
            hint="`isolux list datasets` shows the names",
        )
    named = {
        "id": spec.id,
        "cluster": spec.cluster,
        "separator": spec.separator,
        "repair_ages": spec.repair_ages or None,
    }
    options: dict[str, Any] = {k: value for k, value in named.items() if value is not None}
    loader = registry.load("datasets", name).load
    options |= read_options(
        loader, spec.data_option, owner=f"the dataset {name}", flag="--data-option", hidden=options
    )
    attributes = [part for entry in spec.by for part in entry.split("*")]
    _refuse_unknown_attributes(spec)
    attributes += [
        *spec.derive,
        *(condition.attribute for condition in parse_conditions(spec.only)),
    ]
    cluster = options.get("cluster")
    if cluster in derive.names():
        attributes.append(str(options.pop("cluster")))
    dataset = load(name, path, images=spec.images, **options)
    if spec.withdrawn is not None:
        dataset = without_withdrawn(dataset, read_withdrawn(spec.withdrawn))
    dataset = derive.add(dataset, attributes)
    if cluster in derive.names():
        dataset = dataset.clustered_by(cluster)
    whole = registry.task_info(spec.task).whole_images
    if not whole:
        dataset = only_judged(dataset)
    return keep_only(dataset, spec.only, whole_images=whole)


def _refuse_unknown_attributes(spec: AuditSpec) -> None:
    known = derive.names()
    for name in spec.derive:
        if name not in known:
            raise UnknownNameError("computed attribute", name, known, where="--derive")
