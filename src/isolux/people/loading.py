"""From ``NAME:PATH`` and settings to the people who are judged, with all that is known of them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isolux import derive
from isolux.datasets import Purpose, load, note_on_cluster
from isolux.io.frames import FORMATS
from isolux.io.shard_files import is_in_shards
from isolux.people.blotting import blotted_errors
from isolux.people.drawn import drawn_by, ways_of
from isolux.people.joined import with_attributes
from isolux.people.only import keep_only, only_judged, parse_conditions
from isolux.people.withdrawal import without_withdrawn
from isolux.people.withdrawn_lists import read_withdrawn
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.counts import refuse_counts
from isolux.vocabulary.errors import InputError, SpecError, UnknownNameError
from isolux.vocabulary.plugin_options import read_options
from isolux.vocabulary.spec import AuditSpec, People, Sample

if TYPE_CHECKING:
    from isolux.people.shards import InShards


def judged_people(spec: AuditSpec, held: object = None) -> Dataset:
    """Load the people that an audit judges, with the attributes that it groups them by."""
    whole = registry.task_info(spec.task.name).whole_images
    answers = spec.predictions
    said = {
        "score": answers.score_column,
        "model": answers.model_name,
        "model_column": answers.model_column,
    }
    return load_people(
        spec.people,
        spec.groups.attributes,
        whole_images=whole,
        outputs=said if answers.file is None else {},
        shards=_in_shards(spec) if held is None else None,
        sample=spec.sample,
        held=held,
    )


def _in_shards(spec: AuditSpec) -> InShards | None:
    """Look whether the people are a table in shards; what reads those is loaded for them alone."""
    name, _, path = spec.people.data.partition(":")
    if name != "table" or not is_in_shards(path):
        return None
    from isolux.people.shards import in_shards

    return in_shards(spec)


def load_people(
    people: People,
    attributes: Sequence[str] = (),
    *,
    whole_images: bool = False,
    outputs: Mapping[str, str | None] | None = None,
    first_and: Sequence[str] | None = None,
    shards: InShards | None = None,
    sample: Sample | None = None,
    held: object = None,
    purpose: Purpose = "evaluation",
) -> Dataset:
    """Load a dataset, compute the attributes that it lacks, and keep who is to be judged."""
    name, path = name_and_path(people.data) if held is None else ("table", people.data)
    if outputs is None:  # no audit, which alone reads what is not about single people
        refuse_counts([name], "this", f"isolux audit {name}:FILE --task counts --by GROUP")
    said, items = _cluster_of(people)
    cluster, other_way = ways_of(said)
    if other_way is not None and sample is None:
        raise SpecError(
            "clusters both ways are for an audit",
            expected="one column",
            found=repr(said),
            where="--cluster",
        )
    asked = [condition.attribute for condition in parse_conditions(people.only)]
    columns = None if first_and is None else (*attributes, *asked, *first_and)
    options = _options(name, people, items, outputs or {}, columns)
    wanted = [*attributes, *computed_attributes(people.derive), *asked]
    computed = cluster is not None and cluster in derive.names()
    own = None if computed else cluster
    listed = None if people.withdrawn is None else read_withdrawn(people.withdrawn, purpose=purpose)
    # Before they are taken out it is not known which other ids are theirs: none is quoted.
    with _told_of_tables(name, path), blotted_errors(listed.ids if listed else frozenset(), set):
        dataset = (
            load(name, path if held is None else held, cluster=own, images=people.images, **options)
            if shards is None
            else shards.load(own, options)
        )
        if people.id is not None:
            named = {people.id: "instance_id", **dataset.id_columns}
            dataset = replace(dataset, id_columns=named)
        # A column that people are grouped by is no cluster: each group would be one alone.
        grouped = {note_on_cluster(name) for name in attributes}
        notes = tuple(note for note in dataset.notes if note not in grouped)
        dataset = _with_attributes(replace(dataset, notes=notes), people)
    if listed is not None:
        dataset = without_withdrawn(dataset, listed, allow_unmatched=people.allow_unmatched)
    dataset = derive.add(dataset, [*wanted, str(cluster)] if computed else wanted)
    if computed:
        dataset = dataset.clustered_by(cluster)
    if sample is not None:
        dataset = drawn_by(dataset, sample, other_way)
    if not whole_images:
        dataset = only_judged(dataset)
    return keep_only(dataset, people.only, whole_images=whole_images)


def _options(
    name: str,
    people: People,
    items: Sequence[str],
    outputs: Mapping[str, str | None],
    columns: Sequence[str] | None,
) -> dict[str, Any]:
    """Collect the settings of a dataset's loader: those of the spec that it has, and its own."""
    named = {
        "id": people.id,
        "separator": people.separator,
        "repair_ages": people.repair_ages or None,
        "sheet": people.sheet,
        "header_row": people.header_row,
    }
    options: dict[str, Any] = {k: value for k, value in named.items() if value is not None}
    loader = registry.load("datasets", name).load
    taken = inspect.signature(loader).parameters
    options |= {k: v for k, v in outputs.items() if v is not None and k in taken}
    options |= read_options(
        loader,
        items,
        owner=f"the dataset {name}",
        flag="--data-option",
        hidden=(*options, "first_and"),
    )
    if columns is not None and "first_and" in taken:
        options["first_and"] = columns
    return options


def _with_attributes(dataset: Dataset, people: People) -> Dataset:
    if people.attributes is None:
        return dataset
    return with_attributes(
        dataset,
        people.attributes,
        id=people.attributes_id,
        id_from=people.attributes_id_from,
        sheet=people.attributes_sheet,
        separator=people.separator,
        repair_ages=people.repair_ages,
    )


def name_and_path(
    data: str, *, what: str = "the data are", where: str | None = None
) -> tuple[str, str]:
    """Part NAME:PATH."""
    name, colon, path = data.partition(":")
    if not colon or not path:
        raise SpecError(
            f"{what} not named",
            expected="NAME:PATH, such as table:people.csv",
            found=repr(data),
            where=where,
            hint=f"table:{data} reads a table; `isolux list datasets` shows the other names",
        )
    if name in FORMATS and name not in registry.names("datasets"):
        raise SpecError(
            f"{name!r} is a format of tables, not a dataset",
            expected="NAME:PATH with NAME one of `isolux list datasets`",
            found=repr(data),
            where=where,
            hint=f"table:{path} reads it",
        )
    return name, path


_OWN_TABLES = ("table", "pairs", "counts")  # of any columns: it is no other dataset's file


@contextmanager
def _told_of_tables(name: str, path: str) -> Iterator[None]:
    """Add to a loader's error that a file of this suffix may be a table of one's own."""
    try:
        yield
    except InputError as error:
        tables = path.lower().endswith(tuple(s for known in FORMATS.values() for s in known))
        if name in _OWN_TABLES or not tables or error.hint:
            raise
        raise type(error)(
            error.problem,
            expected=error.expected,
            found=error.found,
            where=error.where,
            hint=f"if it is a table of your own, table:{path} reads it",
        ) from error


def _cluster_of(people: People) -> tuple[str | None, list[str]]:
    """Take the cluster, which older commands give as a setting of the dataset's own."""
    named = [item for item in people.data_option if item.partition("=")[0].strip() == "cluster"]
    others = [item for item in people.data_option if item not in named]
    said = [people.cluster] if people.cluster is not None else []
    said += [item.partition("=")[2].strip() for item in named]
    if len(said) > 1:
        raise SpecError("the cluster is named twice", expected="--cluster", found=repr(named[-1]))
    return (said[0] if said else None), others


def computed_attributes(names: Sequence[str]) -> list[str]:
    """List the attributes to compute; a family's name stands for all of its attributes."""
    if not names:
        return []
    known, wanted = derive.names(), derive.of_families(names)
    for name in wanted:
        if name not in known:
            both = [*known, *dict.fromkeys(known.values())]
            raise UnknownNameError("computed attribute", name, both, where="--derive")
    return wanted
