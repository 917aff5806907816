"""What was sampled independently: a dataset's own default, or what a user names.

A loader says which words it knows and which of them is the default (``clustered_as``); what a user
asks for is applied once, when the dataset is loaded (``by_cluster``).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from isolux.io.cells import first_of
from isolux.vocabulary.containers import Clusters, Dataset
from isolux.vocabulary.errors import UnknownNameError

_SHARED = re.compile(
    r"(subject|patient|person|participant|individual|identity|volunteer|household|family|video|"
    r"clip|session)s?([_ -]?(id|no|nr|num|number|key|code|name|uid|uuid))?",
    re.IGNORECASE,
)
_MIN_CLUSTERS = 10  # fewer are rather a code, such as person: yes
_MIN_REPEATED = 0.01  # share of rows beyond the first of their value
_MAX_ROWS = 100_000  # first rows that are looked at


def clustered_as(
    dataset: Dataset,
    *,
    default: str | None,
    names: Mapping[str, str | None],
    notes: Mapping[str, str] | None = None,
) -> Dataset:
    """Return the dataset with ``cluster_id`` by its own default, and the words that it knows."""
    known = replace(dataset, clusters=Clusters(names, notes or {}))
    return known.clustered_by(None) if default is None else _by_word(known, default)


def by_cluster(dataset: Dataset, cluster: str | None) -> Dataset:
    """Return the dataset clustered as a user asks; None: as its loader did."""
    if cluster is not None:
        of_table = dataset.clusters is not None and dataset.clusters.columns is not None
        dataset = (_by_column if of_table else _by_word)(dataset, cluster)
        named = {cluster: "cluster_id", **dataset.id_columns}
        dataset = replace(dataset, id_columns=named)
    else:
        dataset = replace(dataset, notes=(*dataset.notes, *_propose_cluster(dataset)))
    return replace(dataset, clusters=None)


def note_on_cluster(column: str) -> str:
    """Propose a column as clusters."""
    return (
        f"Rows that share {column!r} may not be independent: --cluster {shlex.quote(column)} takes"
        " them as one cluster. Without it, intervals may be too narrow."
    )


def _propose_cluster(dataset: Dataset) -> list[str]:
    """Name the column of a table that looks like clusters: of several, the one with the fewest."""
    frame = dataset.clusters.columns if dataset.clusters is not None else None
    n_values = {}
    for name in () if frame is None else frame.columns:
        if frame is None or name in dataset.id_columns or not _SHARED.fullmatch(name):
            continue
        values = frame[name].head(_MAX_ROWS).drop_nulls()
        if values.dtype == pl.String:
            values = values.filter(values != "")
        n = 0 if values.dtype.is_nested() else values.n_unique()
        if n >= _MIN_CLUSTERS and len(values) - n >= _MIN_REPEATED * len(values):
            n_values[name] = n
    return [note_on_cluster(min(n_values, key=n_values.__getitem__))] if n_values else []


def _by_word(dataset: Dataset, word: str) -> Dataset:
    known = dataset.clusters or Clusters()
    column = known.names.get(word, word)
    attributes = dataset.attributes["attribute"].unique().to_list()
    if column is not None and column not in {*dataset.instances.columns, *attributes}:
        raise UnknownNameError("cluster", word, [*known.names, *attributes], where=dataset.name)
    if word in known.notes:
        dataset = replace(dataset, notes=(*dataset.notes, known.notes[word]))
    return dataset.clustered_by(column if dataset.instances.height else None)


def _by_column(dataset: Dataset, column: str) -> Dataset:
    """Take a column of the file; a person whose cell is empty is a cluster of their own."""
    known = dataset.clusters or Clusters()
    frame = known.columns
    if frame is not None and column in frame.columns:
        # A column of this name in the file goes before one that the loader derived.
        found = first_of(frame[column]).alias("cluster_id")
        dataset = replace(dataset, instances=dataset.instances.with_columns(found))
        dataset = dataset.clustered_by("cluster_id")
    elif column in dataset.instances.columns:
        dataset = dataset.clustered_by(column)
    else:
        names = [] if frame is None else frame.columns
        raise UnknownNameError("column", column, names, where=known.where)
    alone = dataset.instances["cluster_id"].null_count()
    if not alone:
        return dataset
    note = f"{alone:,} row(s) have no {column!r}, and each is a cluster by itself."
    return replace(dataset, notes=(*dataset.notes, note))
