"""What was sampled independently: a dataset's own default, or what a user names.

A loader says which words it knows and which of them is the default (``set_default_clusters``); what
a user asks for is applied once, when the dataset is loaded (``cluster_by_requested_column``).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from isolux.core.containers import Clusters, Dataset
from isolux.core.counts import repeat_counted_cases
from isolux.core.errors import UnknownNameError
from isolux.io.cell_parsing import first_as_text

_CLUSTER_LIKE_NAME = re.compile(
    r"(subject|patient|person|participant|individual|identity|volunteer|household|family|video|"
    r"clip|session)s?([_ -]?(id|no|nr|num|number|key|code|name|uid|uuid))?",
    re.IGNORECASE,
)
_MIN_CLUSTERS = 10  # fewer are rather a code, such as person: yes
_MIN_REPEATED = 0.01  # share of rows beyond the first of their value
_MAX_ROWS = 100_000  # first rows that are looked at


def set_default_clusters(
    dataset: Dataset,
    *,
    default_column: str | None,
    column_by_clustering: Mapping[str, str | None],
    notes: Mapping[str, str] | None = None,
) -> Dataset:
    """Set the default clusters of a dataset, and the names of other clusterings."""
    with_clusters = replace(dataset, clusters=Clusters(column_by_clustering, notes or {}))
    return (
        with_clusters.with_clusters(None)
        if default_column is None
        else _cluster_by_keyword(with_clusters, default_column)
    )


def cluster_by_requested_column(dataset: Dataset, cluster: str | None) -> Dataset:
    """Cluster the dataset by the requested column; None keeps the loader's default."""
    if cluster is not None:
        is_table = dataset.clusters is not None and dataset.clusters.columns is not None
        dataset = (_cluster_by_column if is_table else _cluster_by_keyword)(dataset, cluster)
        id_columns = {cluster: "cluster_id", **dataset.id_columns}
        dataset = repeat_counted_cases(replace(dataset, id_columns=id_columns))
    else:
        dataset = replace(dataset, notes=(*dataset.notes, *_build_proposed_cluster_notes(dataset)))
    return replace(dataset, clusters=None)


def format_proposed_cluster_note(column: str) -> str:
    """Format the note that proposes a column as clusters."""
    return (
        f"Rows that share {column!r} may not be independent: with --cluster {shlex.quote(column)}"
        " they are one cluster. Without it, an audit's intervals may be too narrow."
    )


def _build_proposed_cluster_notes(dataset: Dataset) -> list[str]:
    """Name the column of a table that looks like clusters: of several, the one with the fewest."""
    frame = dataset.clusters.columns if dataset.clusters is not None else None
    n_values = {}
    for name in () if frame is None else frame.columns:
        if frame is None or name in dataset.id_columns or not _CLUSTER_LIKE_NAME.fullmatch(name):
            continue
        values = frame[name].head(_MAX_ROWS).drop_nulls()
        if values.dtype == pl.String:
            values = values.filter(values != "")
        n = 0 if values.dtype.is_nested() else values.n_unique()
        if n >= _MIN_CLUSTERS and len(values) - n >= _MIN_REPEATED * len(values):
            n_values[name] = n
    return (
        [format_proposed_cluster_note(min(n_values, key=n_values.__getitem__))] if n_values else []
    )


def _cluster_by_keyword(dataset: Dataset, keyword: str) -> Dataset:
    clusters = dataset.clusters or Clusters()
    column = clusters.names.get(keyword, keyword)
    attributes = dataset.attributes["attribute"].unique().to_list()
    if column is not None and column not in {*dataset.instances.columns, *attributes}:
        raise UnknownNameError(
            "cluster", keyword, [*clusters.names, *attributes], where=dataset.name
        )
    if keyword in clusters.notes:
        dataset = replace(dataset, notes=(*dataset.notes, clusters.notes[keyword]))
    return dataset.with_clusters(column if dataset.instances.height else None)


def _cluster_by_column(dataset: Dataset, column: str) -> Dataset:
    """Take a column of the file; a person whose cell is empty is a cluster of their own."""
    clusters = dataset.clusters or Clusters()
    file_columns = clusters.columns
    if file_columns is not None and column in file_columns.columns:
        # A column of this name in the file goes before one that the loader derived.
        cluster_ids = first_as_text(file_columns[column]).alias("cluster_id")
        dataset = replace(dataset, instances=dataset.instances.with_columns(cluster_ids))
        dataset = dataset.with_clusters("cluster_id")
    else:
        names = dataset.attributes["attribute"].unique(maintain_order=True).to_list()
        if column not in {*dataset.instances.columns, *names}:
            file_names = [] if file_columns is None else file_columns.columns
            names = list(dict.fromkeys([*file_names, *names]))
            raise UnknownNameError("column", column, names, where=clusters.source)
        dataset = dataset.with_clusters(column)
    n_without_cluster = dataset.instances["cluster_id"].null_count()
    if not n_without_cluster:
        return dataset
    note = f"{n_without_cluster:,} row(s) have no {column!r}, and each is a cluster by itself."
    return replace(dataset, notes=(*dataset.notes, note))
