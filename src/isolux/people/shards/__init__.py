"""People of a table in shards, a shard at a time: those who are alike are counted.

    shards → kinds, ids and clusters of each (``counting``, wherever the engine computes them)
           → people of the whole, one row a kind (``merging``) → the dataset that an audit judges

What comes out is a dataset like any other, in which ``times`` says how many people each row stands
for; every later step is that of a table that is read whole, with the same numbers to the last bit.
Where something needs every row (``columns`` says what), the columns that are read are put together
instead, if the memory is there.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from isolux import derive
from isolux.core import registry
from isolux.core.containers import Dataset
from isolux.core.errors import FileError, UnknownNameError
from isolux.core.progress import report_step
from isolux.core.spec import AuditSpec
from isolux.datasets import cluster_by_requested_column
from isolux.engine.jobs import Job, JobLimits, JobStore, run_jobs
from isolux.io.frames import refuse_workbook_settings
from isolux.io.hashing import sha256_file
from isolux.io.ids import ID_COLUMNS
from isolux.io.shard_files import ShardFiles, is_sharded_path, list_shard_files, read_shard
from isolux.io.staging import StagingPath, remove_stale_staging
from isolux.people.filters import parse_conditions
from isolux.people.shards import row_counts
from isolux.people.shards.memory import estimate_or_refuse_memory
from isolux.people.shards.merging import PeopleCounts, merge_counts

# Which columns of a table in shards an audit reads, and whether alike rows can be counted.

_COUNTABLE_TASK = "classification"
_GROUP_ANALYSES = ("group_gaps", "power")
"""Analyses that read groups alone."""
_IMAGE_QUANTILE_SUFFIX = ":images"


@dataclass(frozen=True, slots=True)
class RequiredColumns:
    """The columns that an audit reads, and why full rows are needed, if they are.

    Parameters
    ----------
    columns : tuple of str
        In the table's order.
    reason : str
        What needs every row; empty: rows that are alike can be counted.
    is_resampled : bool
        Whether scores or weights make every row be drawn again in replicates.
    """

    columns: tuple[str, ...]
    reason: str = ""
    is_resampled: bool = False


def list_required_columns(spec: AuditSpec, schema: Sequence[str], source: str) -> RequiredColumns:
    """Find the columns that an audit reads from a table."""
    reason = _reason_for_full_rows(spec)
    settings, target = spec.predictions, spec.task.get("target")
    conditions = [condition.attribute for condition in parse_conditions(spec.people.only)]
    people_columns = [
        *spec.groups.attributes,
        *conditions,
        target,
        spec.sample.weight,
        spec.sample.strata,
    ]
    prediction_columns = [
        settings.prediction_column,
        settings.detected_column,
        settings.score_column,
    ]
    setting_columns = (
        people_columns if settings.file is not None else [*people_columns, *prediction_columns]
    )  # else that file's columns
    column_names = [str(name) for name in setting_columns if name is not None]
    computed = [
        name
        for name in column_names
        if name not in schema and name in derive.map_derived_attributes_to_plugins()
    ]
    if computed and not reason:
        reason = f"{computed[0]!r} is computed from pictures or boxes"
    for name in column_names:
        if name not in schema and name not in computed:
            raise UnknownNameError("column", name, schema, where=source)
    if not reason:
        return RequiredColumns(_sort_by_schema(column_names, schema))
    is_resampled = bool(settings.score_column or spec.sample.weight or spec.sample.strata)
    if _needs_all_columns(spec) or computed:
        return RequiredColumns(tuple(schema), reason, is_resampled)
    id_columns = [
        *ID_COLUMNS,
        "image",
        "uri",
        "subject_id",
        "cluster_id",
        *_list_named_columns(spec),
    ]
    return RequiredColumns(
        _sort_by_schema([*column_names, *id_columns], schema), reason, is_resampled
    )


def _sort_by_schema(names: Iterable[str], schema: Sequence[str]) -> tuple[str, ...]:
    name_set = set(names)
    return tuple(name for name in schema if name in name_set)


def _list_named_columns(spec: AuditSpec) -> list[str]:
    """List the other columns that settings name."""
    split = str(spec.task.get("threshold_on") or "").partition("=")[0]
    people = spec.people
    return [name for name in (people.id, people.cluster, split) if name]


def _reason_for_full_rows(spec: AuditSpec) -> str:
    """Return why every row is needed; empty if identical rows can be counted."""
    people, predictions = spec.people, spec.predictions
    conditions = {
        f"the task {spec.task.name} judges single people": spec.task.name != _COUNTABLE_TASK,
        "--model looks at every picture": spec.model.spec is not None,
        "areas, calibration and precision rank every score": predictions.score_column
        or predictions.scores,
        "answers in a separate file are joined by id": predictions.file
        or predictions.found
        or predictions.missed,
        "--attributes is joined by id": people.attributes,
        "weights and strata are each person's own": spec.sample.weight or spec.sample.strata,
        "who withdrew is looked up by id": people.withdrawn,
        "--derive computes attributes of each person": people.derive,
        "--data-option changes how rows are read": people.data_option,
        "quantiles over images look at each of them": any(
            rule.endswith(_IMAGE_QUANTILE_SUFFIX) for rule in spec.groups.bins
        ),
        "an analysis looks at single people": set(spec.explain.analyses) - {*_GROUP_ANALYSES},
    }
    return next((reason for reason, holds in conditions.items() if holds), "")


def _needs_all_columns(spec: AuditSpec) -> bool:
    people = spec.people
    table_settings = (
        people.attributes,
        people.withdrawn,
        people.derive,
        people.data_option,
        people.images,
    )
    return bool(
        spec.task.name != _COUNTABLE_TASK
        or spec.model.spec
        or set(spec.explain.analyses) - {*_GROUP_ANALYSES}
        or any(table_settings)
    )


_ROW, _CLUSTER = "isolux:row", "isolux:cluster"


@dataclass(frozen=True, slots=True)
class ShardedTable:
    """A table in shards, and what an audit reads of it."""

    spec: AuditSpec
    files: ShardFiles
    required: RequiredColumns

    def load(self, cluster: str | None, options: Mapping[str, Any]) -> Dataset:
        """Read the people: counted where that is possible, else row by row."""
        refuse_workbook_settings(
            self.files.path_pattern, options.get("sheet"), options.get("header_row")
        )
        with ThreadPoolExecutor() as threads:
            hashes = list(threads.map(sha256_file, self.files.paths))
        inputs = {str(path): sha for path, sha in zip(self.files.paths, hashes, strict=True)}
        _refuse_identical_shards(inputs, self.files.path_pattern)
        if self.required.reason:
            return load_full_rows(self.files, self.required, inputs, cluster, options)
        return self._load_counted_rows(inputs, cluster, dict(options))

    def _load_counted_rows(
        self, inputs: dict[str, str], cluster: str | None, options: dict[str, Any]
    ) -> Dataset:
        if cluster is not None and cluster not in self.files.schema:
            raise UnknownNameError(
                "column", cluster, self.files.schema, where=self.files.path_pattern
            )
        named_id = options.pop("id", None)
        ids = named_id or next((name for name in ID_COLUMNS if name in self.files.schema), None)
        pieces = [
            self._build_counting_job(path, sha, ids, cluster, is_id_named=named_id is not None)
            for path, sha in inputs.items()
        ]
        with _open_job_store(self.spec) as store:
            self._run_counting_jobs(pieces, store)
            report_step("putting the shards together")
            shards = [
                (piece.key, path, rows)
                for piece, path, rows in zip(
                    pieces, self.files.paths, self.files.n_rows, strict=True
                )
            ]
            counts = merge_counts(
                store, shards, self.required.columns, ids=ids, is_clustered=cluster is not None
            )
        estimate_or_refuse_memory(
            counts.rows.height,
            len(self.required.columns),
            "too many rows differ in what is read",
            self.files.path_pattern,
            "fewer attributes, or numbers in bins before they are written: memory follows how many "
            "rows, or clusters of rows, differ",
        )
        return self._build_dataset(counts, inputs, cluster, ids, options)

    def _build_counting_job(
        self, path: str, sha: str, ids: str | None, cluster: str | None, *, is_id_named: bool
    ) -> Job:
        options: dict[str, Any] = {
            "columns": list(self.required.columns),
            "ids": ids,
            "cluster": cluster,
            "ids_named": is_id_named,
        }
        code = sha256_file(row_counts.__file__)
        key_text = json.dumps(
            [row_counts.COUNT_SHARD_CALL, sha, options, code, pl.__version__], sort_keys=True
        )
        key = hashlib.sha256(key_text.encode()).hexdigest()
        return Job(
            key, path, row_counts.COUNT_SHARD_CALL, {"path": str(Path(path).resolve()), **options}
        )

    def _run_counting_jobs(self, pieces: list[Job], store: JobStore) -> None:
        engine = self.spec.engine
        engine.refuse_ray_only_settings()
        limited = "time_limit" in self.spec.model.model_fields_set
        workers = engine.workers or (1 if limited and engine.name == "local" else 0)
        run_jobs(
            pieces,
            store,
            engine=engine.name,
            workers=workers,
            address=engine.address,
            limits=JobLimits(self.spec.model.time_limit, engine.retries),
            report=lambda n_done, n_pieces: report_step(
                f"counting shards: {n_done:,} of {n_pieces:,}"
            ),
        )

    def _build_dataset(
        self,
        counts: PeopleCounts,
        inputs: dict[str, str],
        cluster: str | None,
        ids: str | None,
        options: dict[str, Any],
    ) -> Dataset:
        """Make the dataset in which each row stands for several people."""
        numbers = pl.int_range(1, counts.rows.height + 1, eager=True).cast(pl.String)
        frame = counts.rows.with_columns(numbers.alias(_ROW))
        if counts.cluster is not None:
            frame = frame.with_columns(counts.cluster.alias(_CLUSTER))
        row_locations = self.files.to_table_rows(
            counts.first_rows.to_numpy(), counts.multiplicity.to_numpy()
        )
        table = registry.load("datasets", "table")
        columns = list(self.required.columns)
        dataset = table.build_dataset_from_frame(
            frame, row_locations, inputs, id=_ROW, columns=columns, **options
        )
        dataset = cluster_by_requested_column(dataset, None if counts.cluster is None else _CLUSTER)
        times = pl.DataFrame({"instance_id": numbers, "times": counts.multiplicity})
        return replace(
            dataset,
            notes=(*self._build_notes(counts, cluster, ids), *dataset.notes),
            has_row_number_ids=not counts.has_ids,
            multiplicity=times,
            row_locations=row_locations,
        )

    def _build_notes(self, counts: PeopleCounts, cluster: str | None, ids: str | None) -> list[str]:
        n, rows = len(self.files.paths), self.files.height
        n_distinct = counts.rows.height
        first_note = (
            f"Read from {n:,} shard(s): {rows:,} rows, of which {n_distinct:,} differ in what is"
            " read."
        )
        notes = [first_note]
        if not counts.has_ids:
            reason = (
                f"no cell of {ids!r} may be empty or occur twice"
                if ids
                else f"it has no column {', '.join(ID_COLUMNS)}"
            )
            notes.append(f"The table's rows are identified by their number: {reason}.")
        if cluster is not None and counts.n_without_cluster:
            notes.append(
                f"{counts.n_without_cluster:,} row(s) have no {cluster!r}, and each is a cluster by"
                " itself."
            )
        return notes


def _refuse_identical_shards(inputs: Mapping[str, str], source: str) -> None:
    """Refuse two shards of one content: without ids nothing else tells that people count twice."""
    first: dict[str, str] = {}
    for path, sha in inputs.items():
        if sha in first:
            raise FileError(
                "two shards are the same, byte for byte",
                expected="every person in one shard, once",
                found=f"{first[sha]} and {path}",
                where=source,
                hint="take the copy, or the link, away; if these are other people with equal rows, "
                "add a column with an id of each row, or write both into one shard",
            )
        first[sha] = path


def open_sharded_table(spec: AuditSpec) -> ShardedTable | None:
    """Look whether an audit's people are a table in shards; None: they are not."""
    name, _, path = spec.people.data.partition(":")
    if name != "table" or not is_sharded_path(path):
        return None
    files = list_shard_files(path)
    return ShardedTable(spec, files, list_required_columns(spec, list(files.schema), path))


@contextmanager
def _open_job_store(spec: AuditSpec) -> Iterator[JobStore]:
    """Open the folder that keeps sums, or one that goes with this command."""
    if spec.engine.sums is not None:
        yield JobStore(spec.engine.sums)
        return
    out = spec.report.out
    cache_path = Path(f"{out}.sums") if out else Path(tempfile.gettempdir()) / "isolux.sums"
    target = cache_path.expanduser().resolve()
    remove_stale_staging(target)
    stage = StagingPath(target, is_folder=True)
    try:
        yield JobStore(stage.path)
    finally:
        stage.discard()


# A table in shards of which every row is needed: its columns that are read, put together.


def load_full_rows(
    files: ShardFiles,
    required: RequiredColumns,
    inputs: Mapping[str, str],
    cluster: str | None,
    options: Mapping[str, Any],
) -> Dataset:
    """Load the required columns of all shards into memory."""
    cost = estimate_or_refuse_memory(
        files.height,
        len(required.columns),
        f"every row is needed: {required.reason}",
        files.path_pattern,
        "audit answers alone (--prediction-column without --score-column), whose rows are counted; "
        "or some of the shards",
        is_resampled=required.is_resampled,
    )
    report_step("reading the shards")
    frame = pl.concat([read_shard(path, required.columns) for path in files.paths])
    table = registry.load("datasets", "table")
    dataset: Dataset = table.build_dataset_from_frame(
        frame, files.to_table_rows(), inputs, **options
    )
    note = f"Read from {len(files.paths):,} shard(s), and held whole ({cost}): {required.reason}."
    return cluster_by_requested_column(
        replace(dataset, notes=(note, *dataset.notes), row_locations=files.to_table_rows()), cluster
    )
