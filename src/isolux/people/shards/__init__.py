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
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from isolux.datasets import by_cluster
from isolux.engine.pieces import Limits, Piece, PieceStore, run_pieces
from isolux.io.hashing import sha256_file
from isolux.io.ids import ID_COLUMNS
from isolux.io.shard_files import ShardFiles, is_in_shards, shard_files
from isolux.io.stages import Stage, sweep
from isolux.people.shards import counting
from isolux.people.shards.columns import Needed, needed
from isolux.people.shards.every_row import every_row
from isolux.people.shards.memory import cost_of
from isolux.people.shards.merging import Counted, merged
from isolux.vocabulary import registry
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, UnknownNameError
from isolux.vocabulary.progress import at
from isolux.vocabulary.spec import AuditSpec

_ROW, _CLUSTER = "isolux:row", "isolux:cluster"


@dataclass(frozen=True, slots=True)
class InShards:
    """A table in shards, and what an audit reads of it."""

    spec: AuditSpec
    files: ShardFiles
    needed: Needed

    def load(self, cluster: str | None, options: Mapping[str, Any]) -> Dataset:
        """Read the people: counted where that is possible, else row by row."""
        with ThreadPoolExecutor() as threads:
            hashes = list(threads.map(sha256_file, self.files.paths))
        inputs = {str(path): sha for path, sha in zip(self.files.paths, hashes, strict=True)}
        _refuse_copies(inputs, self.files.said)
        if self.needed.why:
            return every_row(self.files, self.needed, inputs, cluster, options)
        return self._counted(inputs, cluster, dict(options))

    def _counted(
        self, inputs: dict[str, str], cluster: str | None, options: dict[str, Any]
    ) -> Dataset:
        if cluster is not None and cluster not in self.files.schema:
            raise UnknownNameError("column", cluster, self.files.schema, where=self.files.said)
        named = options.pop("id", None)
        ids = named or next((name for name in ID_COLUMNS if name in self.files.schema), None)
        pieces = [
            self._piece(path, sha, ids, cluster, named=named is not None)
            for path, sha in inputs.items()
        ]
        with _store(self.spec) as store:
            self._run(pieces, store)
            at("putting the shards together")
            shards = [
                (piece.key, path, rows)
                for piece, path, rows in zip(pieces, self.files.paths, self.files.rows, strict=True)
            ]
            found = merged(
                store, shards, self.needed.columns, ids=ids, clustered=cluster is not None
            )
        cost_of(
            found.rows.height, len(self.needed.columns),
            "too many rows differ in what is read", self.files.said,
            "fewer attributes, or numbers in bins before they are written: memory follows how many "
            "rows, or clusters of rows, differ",
        )  # fmt: skip
        return self._dataset(found, inputs, cluster, ids, options)

    def _piece(
        self, path: str, sha: str, ids: str | None, cluster: str | None, *, named: bool
    ) -> Piece:
        given: dict[str, Any] = {
            "columns": list(self.needed.columns), "ids": ids, "cluster": cluster,
            "ids_named": named,
        }  # fmt: skip
        code = sha256_file(counting.__file__)
        told = json.dumps([counting.CALL, sha, given, code, pl.__version__], sort_keys=True)
        key = hashlib.sha256(told.encode()).hexdigest()
        return Piece(key, path, counting.CALL, {"path": str(Path(path).resolve()), **given})

    def _run(self, pieces: list[Piece], store: PieceStore) -> None:
        engine = self.spec.engine
        engine.refuse_what_only_ray_takes()
        limited = "time_limit" in self.spec.model.model_fields_set
        workers = engine.workers or (1 if limited and engine.name == "local" else 0)
        run_pieces(
            pieces, store, engine=engine.name, workers=workers, address=engine.address,
            limits=Limits(self.spec.model.time_limit, engine.retries),
            tell=lambda done, of: at(f"counting shards: {done:,} of {of:,}"),
        )  # fmt: skip

    def _dataset(
        self,
        found: Counted,
        inputs: dict[str, str],
        cluster: str | None,
        ids: str | None,
        options: dict[str, Any],
    ) -> Dataset:
        """Make the dataset in which each row stands for several people."""
        numbers = pl.int_range(1, found.rows.height + 1, eager=True).cast(pl.String)
        frame = found.rows.with_columns(numbers.alias(_ROW))
        if found.cluster is not None:
            frame = frame.with_columns(found.cluster.alias(_CLUSTER))
        where = self.files.table_rows(found.first.to_numpy(), found.times.to_numpy())
        table = registry.load("datasets", "table")
        read = list(self.needed.columns)
        dataset = table.of_frame(frame, where, inputs, id=_ROW, columns=read, **options)
        dataset = by_cluster(dataset, None if found.cluster is None else _CLUSTER)
        times = pl.DataFrame({"instance_id": numbers, "times": found.times})
        return replace(
            dataset,
            notes=(*self._notes(found, cluster, ids), *dataset.notes),
            ids_are_rows=not found.identified,
            times=times,
            rows=where,
        )

    def _notes(self, found: Counted, cluster: str | None, ids: str | None) -> list[str]:
        n, rows = len(self.files.paths), self.files.height
        alike = found.rows.height
        told = [
            f"Read from {n:,} shard(s): {rows:,} rows, of which {alike:,} differ in what is read."
        ]
        if not found.identified:
            why = (
                f"no cell of {ids!r} may be empty or occur twice"
                if ids
                else f"it has no column {', '.join(ID_COLUMNS)}"
            )
            told.append(f"The table's rows are identified by their number: {why}.")
        if cluster is not None and found.alone:
            told.append(
                f"{found.alone:,} row(s) have no {cluster!r}, and each is a cluster by itself."
            )
        return told


def _refuse_copies(inputs: Mapping[str, str], where: str) -> None:
    """Refuse two shards of one content: without ids nothing else tells that people count twice."""
    first: dict[str, str] = {}
    for path, sha in inputs.items():
        if sha in first:
            raise FileError(
                "two shards are the same, byte for byte",
                expected="every person in one shard, once",
                found=f"{first[sha]} and {path}",
                where=where,
                hint="take the copy, or the link, away; if these are other people with equal rows, "
                "add a column with an id of each row, or write both into one shard",
            )
        first[sha] = path


def in_shards(spec: AuditSpec) -> InShards | None:
    """Look whether an audit's people are a table in shards; None: they are not."""
    name, _, path = spec.people.data.partition(":")
    if name != "table" or not is_in_shards(path):
        return None
    files = shard_files(path)
    return InShards(spec, files, needed(spec, list(files.schema), path))


@contextmanager
def _store(spec: AuditSpec) -> Iterator[PieceStore]:
    """Open the folder that keeps sums, or one that goes with this command."""
    if spec.engine.sums is not None:
        yield PieceStore(spec.engine.sums)
        return
    out = spec.report.out
    beside = Path(f"{out}.sums") if out else Path(tempfile.gettempdir()) / "isolux.sums"
    target = beside.expanduser().resolve()
    sweep(target)
    stage = Stage(target, folder=True)
    try:
        yield PieceStore(stage.path)
    finally:
        stage.discard()
