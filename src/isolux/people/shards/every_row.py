"""A table in shards of which every row is needed: its columns that are read, put together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import polars as pl

from isolux.datasets import by_cluster
from isolux.io.shard_files import ShardFiles, read_shard
from isolux.people.shards.columns import Needed
from isolux.people.shards.memory import cost_of
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.progress import at


def every_row(
    files: ShardFiles,
    needed: Needed,
    inputs: Mapping[str, str],
    cluster: str | None,
    options: Mapping[str, Any],
) -> Dataset:
    """Put the columns that are read of all shards together."""
    cost = cost_of(
        files.height, len(needed.columns), f"every row is needed: {needed.why}", files.said,
        "audit answers alone (--prediction-column without --score-column), whose rows are counted; "
        "or some of the shards",
        resampled=needed.resampled,
    )  # fmt: skip
    at("reading the shards")
    frame = pl.concat([read_shard(path, needed.columns) for path in files.paths])
    table = registry.load("datasets", "table")
    dataset: Dataset = table.of_frame(frame, files.table_rows(), inputs, **options)
    note = f"Read from {len(files.paths):,} shard(s), and held whole ({cost}): {needed.why}."
    return by_cluster(
        replace(dataset, notes=(note, *dataset.notes), rows=files.table_rows()), cluster
    )
