"""From ``NAME:PATH`` and settings to the people who are judged, with all that is known of them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from isolux import derive
from isolux.core import registry
from isolux.core.containers import Dataset
from isolux.core.counts import refuse_count_tables
from isolux.core.errors import InputError, SpecError, UnknownNameError
from isolux.core.plugin_options import parse_option_assignments
from isolux.core.spec import AuditSpec, People, Sample
from isolux.datasets import (
    Purpose,
    cluster_by_requested_column,
    format_proposed_cluster_note,
    load_with_open_clusters,
)
from isolux.io.frames import FORMATS
from isolux.io.shard_files import is_sharded_path
from isolux.people.attribute_join import join_attributes
from isolux.people.filters import drop_unscored_people, filter_people, parse_conditions
from isolux.people.redaction import redact_errors_in_block
from isolux.people.survey_columns import attach_survey_sample, parse_cluster_columns
from isolux.people.withdrawal import remove_withdrawn_people
from isolux.people.withdrawal_lists import read_withdrawn_list

if TYPE_CHECKING:
    from isolux.people.shards import ShardedTable

_MAX_COLUMNS = 1000
"""Columns of a table that an audit reads beside those that its settings name: each takes two
thousandths of a second, and a table of embeddings has tens of thousands."""


def load_audit_people(spec: AuditSpec, in_memory_table: object = None) -> Dataset:
    """Load the people that an audit evaluates, with the attributes that form groups."""
    uses_unscored_people = registry.task_info(spec.task.name).uses_unscored_people
    predictions = spec.predictions
    output_columns = {
        "score": predictions.score_column,
        "model": predictions.model_name,
        "model_column": predictions.model_column,
    }
    return load_people(
        spec.people,
        spec.groups.attributes,
        uses_unscored_people=uses_unscored_people,
        outputs=output_columns if predictions.file is None else {},
        shards=_open_sharded_table_lazily(spec) if in_memory_table is None else None,
        sample=spec.sample,
        in_memory_table=in_memory_table,
        required_columns=None if spec.people.derive else _list_possible_columns(spec),
        max_columns=_MAX_COLUMNS,
    )


def _list_possible_columns(spec: AuditSpec) -> list[str]:
    """List every text in the settings that may be a column's name, or be made of such names."""
    pending: list[Any] = [spec.model_dump(exclude={"report"})]
    texts: dict[str, None] = {}
    while pending:
        entry = pending.pop()
        if isinstance(entry, Mapping):
            pending += [*entry.keys(), *entry.values()]
        elif isinstance(entry, str):
            texts |= dict.fromkeys([entry, *(t.strip() for t in re.split(r"[*=:,<>!]", entry))])
        elif isinstance(entry, list | tuple | set | frozenset):
            pending += entry
    return list(texts)


def _open_sharded_table_lazily(spec: AuditSpec) -> ShardedTable | None:
    """Open the people as a sharded table, or return None; the reader is imported only then."""
    name, _, path = spec.people.data.partition(":")
    if name != "table" or not is_sharded_path(path):
        return None
    from isolux.people.shards import open_sharded_table

    return open_sharded_table(spec)


def load_people(
    people: People,
    attributes: Sequence[str] = (),
    *,
    uses_unscored_people: bool = False,
    outputs: Mapping[str, str | None] | None = None,
    required_columns: Sequence[str] | None = None,
    max_columns: int | None = None,
    shards: ShardedTable | None = None,
    sample: Sample | None = None,
    in_memory_table: object = None,
    purpose: Purpose = "evaluation",
) -> Dataset:
    """Load a dataset, compute the attributes that it lacks, and keep who is to be judged."""
    name, path = (
        split_name_and_path(people.data) if in_memory_table is None else ("table", people.data)
    )
    if outputs is None:  # no audit, which alone reads what is not about single people
        refuse_count_tables([name], "this", f"isolux audit {name}:FILE --task counts --by GROUP")
    cluster_setting, items = _split_cluster_setting(people)
    cluster, other_cluster = parse_cluster_columns(cluster_setting)
    if other_cluster is not None and sample is None:
        raise SpecError(
            "clusters both ways are for an audit",
            expected="one column",
            found=repr(cluster_setting),
            where="--cluster",
        )
    condition_attributes = [condition.attribute for condition in parse_conditions(people.only)]
    columns = (
        None
        if required_columns is None or shards is not None
        else (*attributes, *condition_attributes, *required_columns)
    )
    options = _collect_loader_options(name, people, items, outputs or {}, columns)
    if max_columns is not None and "required_columns" in options:
        options["max_columns"] = max_columns
    requested = [*attributes, *list_computed_attributes(people.derive), *condition_attributes]
    computed = cluster is not None and cluster in derive.map_derived_attributes_to_plugins()
    loader_cluster = None if computed else cluster
    if people.allow_unmatched and people.withdrawn is None:
        raise SpecError(
            "--allow-unmatched would do nothing",
            expected="it with --withdrawn",
            found="--allow-unmatched without",
        )
    withdrawn_list = (
        None if people.withdrawn is None else read_withdrawn_list(people.withdrawn, purpose=purpose)
    )
    # Before they are taken out it is not known which other ids are theirs: none is quoted.
    with (
        _add_table_loader_hint(name, path),
        redact_errors_in_block(withdrawn_list.ids if withdrawn_list else frozenset(), set),
    ):
        dataset = (
            load_with_open_clusters(
                name,
                path if in_memory_table is None else in_memory_table,
                images=people.images,
                **options,
            )
            if shards is None
            else shards.load(loader_cluster, options)
        )
        if people.id is not None:
            id_columns = {people.id: "instance_id", **dataset.id_columns}
            dataset = replace(dataset, id_columns=id_columns)
        # Shards are clustered while they are read, and join nothing.
        open_cluster = loader_cluster if shards is None else None
        dataset = _cluster_and_join_attributes(dataset, open_cluster, people)
        dataset = _drop_unneeded_proposals(dataset, cluster, attributes)
    if withdrawn_list is not None:
        dataset = remove_withdrawn_people(
            dataset, withdrawn_list, allow_unmatched=people.allow_unmatched
        )
    dataset = derive.add_missing_derived_attributes(
        dataset, [*requested, str(cluster)] if computed else requested
    )
    if computed:
        dataset = dataset.with_clusters(cluster)
    if sample is not None:
        dataset = attach_survey_sample(dataset, sample, other_cluster)
    if not uses_unscored_people:
        dataset = drop_unscored_people(dataset)
    return filter_people(dataset, people.only, uses_unscored_people=uses_unscored_people)


def _collect_loader_options(
    name: str,
    people: People,
    items: Sequence[str],
    outputs: Mapping[str, str | None],
    columns: Sequence[str] | None,
) -> dict[str, Any]:
    """Collect the settings of a dataset's loader: those of the spec that it has, and its own."""
    settings = {
        "id": people.id,
        "separator": people.separator,
        "repair_ages": people.repair_ages or None,
        "sheet": people.sheet,
        "header_row": people.header_row,
    }
    options: dict[str, Any] = {k: setting for k, setting in settings.items() if setting is not None}
    loader = registry.load("datasets", name).load
    parameters = inspect.signature(loader).parameters
    options |= {k: v for k, v in outputs.items() if v is not None and k in parameters}
    options |= parse_option_assignments(
        loader,
        items,
        owner=f"the dataset {name}",
        flag="--data-option",
        hidden=(*options, "required_columns", "max_columns"),
    )
    if columns is not None and "required_columns" in parameters:
        options["required_columns"] = columns
    return options


def _cluster_and_join_attributes(dataset: Dataset, cluster: str | None, people: People) -> Dataset:
    """Choose the clusters, then join ``--attributes``; clusters that it holds are chosen after."""
    try:
        clustered_dataset = cluster_by_requested_column(dataset, cluster)
    except UnknownNameError:
        if people.attributes is None:
            raise
        return cluster_by_requested_column(_join_attribute_table(dataset, people), cluster)
    return _join_attribute_table(clustered_dataset, people)


def _drop_unneeded_proposals(
    dataset: Dataset, cluster: str | None, grouped: Sequence[str]
) -> Dataset:
    """Drop the notes that propose clusters where some are chosen, or people are grouped by them."""
    # A column that people are grouped by is no cluster: each group would be one alone.
    names = grouped if cluster is None else dataset.attributes["attribute"].unique()
    unneeded_notes = {format_proposed_cluster_note(name) for name in names}
    return replace(
        dataset, notes=tuple(note for note in dataset.notes if note not in unneeded_notes)
    )


def _join_attribute_table(dataset: Dataset, people: People) -> Dataset:
    if people.attributes is None:
        return dataset
    return join_attributes(
        dataset,
        people.attributes,
        id=people.attributes_id,
        id_from=people.attributes_id_from,
        sheet=people.attributes_sheet,
        separator=people.separator,
        repair_ages=people.repair_ages,
    )


def split_name_and_path(
    name_path: str, *, subject: str = "the data are", source: str | None = None
) -> tuple[str, str]:
    """Part NAME:PATH."""
    name, colon, path = name_path.partition(":")
    if not colon or not path:
        raise SpecError(
            f"{subject} not named",
            expected="NAME:PATH, such as table:people.csv",
            found=repr(name_path),
            where=source,
            hint=f"table:{name_path} reads a table; `isolux list datasets` shows the other names",
        )
    if name in FORMATS and name not in registry.names("datasets"):
        raise SpecError(
            f"{name!r} is a format of tables, not a dataset",
            expected="NAME:PATH with NAME one of `isolux list datasets`",
            found=repr(name_path),
            where=source,
            hint=f"table:{path} reads it",
        )
    return name, path


_TABLE_LOADERS = ("table", "pairs", "counts")  # of any columns: it is no other dataset's file


@contextmanager
def _add_table_loader_hint(name: str, path: str) -> Iterator[None]:
    """Add to a loader's error that a file of this suffix may be a table of one's own."""
    try:
        yield
    except InputError as error:
        tables = path.lower().endswith(tuple(s for suffixes in FORMATS.values() for s in suffixes))
        if name in _TABLE_LOADERS or not tables or error.hint:
            raise
        raise type(error)(
            error.problem,
            expected=error.expected,
            found=error.found,
            where=error.where,
            hint=f"if it is a table of your own, table:{path} reads it",
        ) from error


def _split_cluster_setting(people: People) -> tuple[str | None, list[str]]:
    """Take the cluster, which older commands give as a setting of the dataset's own."""
    cluster_items = [
        entry for entry in people.data_option if entry.partition("=")[0].strip() == "cluster"
    ]
    remaining_items = [entry for entry in people.data_option if entry not in cluster_items]
    cluster_names = [people.cluster] if people.cluster is not None else []
    cluster_names += [entry.partition("=")[2].strip() for entry in cluster_items]
    if len(cluster_names) > 1:
        raise SpecError(
            "the cluster is named twice", expected="--cluster", found=repr(cluster_items[-1])
        )
    return (cluster_names[0] if cluster_names else None), remaining_items


def list_computed_attributes(names: Sequence[str]) -> list[str]:
    """List the attributes to compute; a family's name stands for all of its attributes."""
    if not names:
        return []
    families_by_attribute, requested = (
        derive.map_derived_attributes_to_plugins(),
        derive.expand_family_names(names),
    )
    for name in requested:
        if name not in families_by_attribute:
            valid_names = [*families_by_attribute, *dict.fromkeys(families_by_attribute.values())]
            raise UnknownNameError("computed attribute", name, valid_names, where="--derive")
    return requested
