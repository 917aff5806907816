"""A run's directory: one Parquet file per shard, committed by a rename, and all together.

::

    OUT/predict.json               what was asked, of which model: enough to go on
    OUT/shards/000003-KEY.parquet  the answers of shard 3; KEY is content
    OUT/images/HASH.png            a picture that the model made, by the hash of its bytes
    OUT/predictions.parquet        the answers of all shards, once every one is there
    OUT/inferences.parquet              one row an inference: the image's hash, why there is no
    answer
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core.errors import FileError, IsoluxError, OutputError
from isolux.core.schema import check
from isolux.engine.shards import (
    QUESTION_COLUMNS,
    STORED_TABLES,
    Shard,
    build_inference_table_schema,
    build_prediction_schema,
)
from isolux.io.atomic import refuse_existing, write_bytes, write_parquet, write_text
from isolux.io.frames import read_parquet, refuse_unless_file
from isolux.io.paths import resolve_inside
from isolux.io.shard_files import read_shard
from isolux.io.staging import is_staging_name, settle_staging_below

RUN_FILE = "predict.json"
"""The file that marks a prediction directory."""

_RUN_TABLES = ("predictions.parquet", "inferences.parquet")
_SHARD_FILE_NAME = re.compile(r"(?P<index>\d{6,})-(?P<key>[0-9a-f]{32})\.parquet")
_IMAGE_FILE_NAME = re.compile(r"[0-9a-f]{32}\.png")
_KEY_LENGTH = 32  # hex digits of a key in a file's name: 128 bits


def shorten_key_for_file_name(key: str) -> str:
    """Return the part of a key that is in a shard's file name."""
    return key[:_KEY_LENGTH]


@dataclass(frozen=True, slots=True)
class CollectedPredictions:
    """All predictions of a run, and one row per inference, without its predictions."""

    predictions: pl.DataFrame
    inferences: pl.DataFrame


class ShardStore:
    """The shards of one directory.

    Parameters
    ----------
    folder : str or Path
        Made when it is opened.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).expanduser().resolve()
        self._shards = self.folder / "shards"
        self._images = self.folder / "images"

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Make the directory and lock it while the block runs: one command at a time writes."""
        _check_is_shard_store(self.folder)
        try:
            self._shards.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                "the directory of answers cannot be made",
                found=error.strerror,
                where=str(self.folder),
                hint="choose another path",
            ) from error
        lock = _try_lock_folder(self.folder)
        try:
            for _ in settle_staging_below(self.folder):  # staging files of a killed command
                pass
            yield
        finally:
            if lock is not None:
                os.close(lock)
            self._remove_if_empty()

    def _remove_if_empty(self) -> None:
        """Leave no empty directory behind where nothing came of it."""
        for folder in (self._shards, self.folder):
            with suppress(OSError):
                folder.rmdir()

    def read_record(self) -> dict[str, Any]:
        """Read ``predict.json``."""
        path = self.folder / RUN_FILE
        if path.exists():  # reading a pipe would block
            refuse_unless_file(path)
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise FileError(
                "no answers were predicted here", expected=RUN_FILE, where=str(self.folder)
            ) from error
        except (OSError, ValueError, RecursionError) as error:
            raise FileError(
                "this file cannot be read", found=str(error), where=str(path)
            ) from error
        if not isinstance(record, dict):
            raise FileError("this file is not the record of a run", where=str(path))
        return record

    def write_record(self, record: Mapping[str, Any]) -> None:
        """Write ``predict.json``, whole or not at all."""
        write_text(self.folder / RUN_FILE, json.dumps(record, indent=2, sort_keys=True) + "\n")

    def list_committed_keys(self) -> dict[int, list[str]]:
        """List the keys of the committed shards, by the shard's number."""
        keys_by_index: dict[int, list[str]] = {}
        if self._shards.is_dir():
            for path in sorted(self._shards.iterdir()):
                if match := _SHARD_FILE_NAME.fullmatch(path.name):
                    keys_by_index.setdefault(int(match["index"]), []).append(match["key"])
        return keys_by_index

    def _build_shard_path(self, shard: Shard, key: str) -> Path:
        return self._shards / f"{shard.index:06d}-{shorten_key_for_file_name(key)}.parquet"

    def select_keys_without_retry(self, shard: Shard, keys: Sequence[str]) -> dict[str, int]:
        """Select a shard's committed keys that need no retry, with their numbers of failures."""
        faults_by_key = {key: self.read_failure_faults(shard, key) for key in keys}
        return {
            key: len(faults)
            for key, faults in faults_by_key.items()
            if faults is not None and not (faults != "picture").any()
        }

    def read_failure_faults(self, shard: Shard, key: str) -> pl.Series | None:
        """Read the faults of a committed shard's failed inferences; None: no shard.

        A file that is no Parquet (a disk that lost power) is as good as none, and is done again.
        """
        try:
            return read_shard(self._build_shard_path(shard, key), ["fault"])["fault"].drop_nulls()
        except (OSError, IsoluxError):
            return None

    def commit(self, shard: Shard, key: str, inferences: pl.DataFrame) -> None:
        """Write a shard; the rename commits it."""
        for name in _RUN_TABLES:  # they no longer cover all shards
            (self.folder / name).unlink(missing_ok=True)
        write_parquet(self._build_shard_path(shard, key), self._write_images(inferences))

    def _write_images(self, inferences: pl.DataFrame) -> pl.DataFrame:
        """Write the pictures that a model made as files, and put their paths in their place."""
        if inferences.schema["answers"] != pl.List(pl.Struct({"png": pl.Binary})):
            return inferences
        answers: list[list[dict[str, str]] | None] = []
        for rows in inferences["answers"].to_list():
            images = [row["png"] for row in rows or () if row["png"] is not None]
            names = [
                f"images/{hashlib.sha256(png).hexdigest()[:_KEY_LENGTH]}.png" for png in images
            ]
            for name, png in zip(names, images, strict=True):
                if not (self.folder / name).is_file():
                    self._images.mkdir(exist_ok=True)
                    write_bytes(self.folder / name, png)
            answers.append(None if rows is None else [{"uri": name} for name in names])
        dtype = pl.List(pl.Struct(build_prediction_schema("images", is_stored=True)))
        return inferences.with_columns(answers=pl.Series(answers, dtype=dtype))

    def collect(
        self, prediction_type: str, keys: Sequence[tuple[Shard, str]], model: str
    ) -> CollectedPredictions:
        """Combine all shards of a run, in order, and write the two tables."""
        inferences = pl.concat(
            [read_parquet(self._build_shard_path(shard, key)) for shard, key in keys]
        )
        inferences = check(
            inferences,
            build_inference_table_schema(prediction_type, is_stored=True),
            source=str(self.folder),
        )
        collected_predictions = CollectedPredictions(
            _build_prediction_rows(inferences, prediction_type, model), inferences.drop("answers")
        )
        for name, table in zip(
            _RUN_TABLES,
            (collected_predictions.predictions, collected_predictions.inferences),
            strict=True,
        ):
            write_parquet(self.folder / name, table)
        shard_files = {self._build_shard_path(shard, key).name for shard, key in keys}
        for path in self._shards.iterdir():
            if _SHARD_FILE_NAME.fullmatch(path.name) and path.name not in shard_files:
                path.unlink(missing_ok=True)
        return self._resolve_images(collected_predictions, removes_others=True)

    def _resolve_images(
        self, collected: CollectedPredictions, *, removes_others: bool = False
    ) -> CollectedPredictions:
        """Give the pictures that a model made by their full paths; others may be removed."""
        if "uri" not in collected.predictions.columns:
            return collected
        uris = collected.predictions["uri"].to_list()
        if removes_others and self._images.is_dir():
            for path in self._images.iterdir():
                if _IMAGE_FILE_NAME.fullmatch(path.name) and f"images/{path.name}" not in set(uris):
                    path.unlink(missing_ok=True)
        paths = [str(resolve_inside(self.folder, uri)) for uri in uris]
        return replace(
            collected,
            predictions=collected.predictions.with_columns(uri=pl.Series(paths, dtype=pl.String)),
        )

    def read_all(self) -> CollectedPredictions:
        """Read a finished run."""
        state = self.read_record().get("state")
        if state != "finished" or not all((self.folder / name).is_file() for name in _RUN_TABLES):
            raise FileError(
                "these answers are not complete",
                expected="a finished run",
                found=f"{len(self.list_committed_keys()):,} of"
                f" {self.read_record().get('shards', '?')} shards",
                where=str(self.folder),
                hint=f"isolux predict --resume {self.folder}",
            )
        tables = (read_parquet(self.folder / name) for name in _RUN_TABLES)
        return self._resolve_images(CollectedPredictions(*tables))


def _build_prediction_rows(
    inferences: pl.DataFrame, prediction_type: str, model: str
) -> pl.DataFrame:
    table = STORED_TABLES[prediction_type]
    id_column = "instance_id" if "instance_id" in table.schema else "image_id"
    with_predictions = inferences.filter(pl.col("answers").list.len() > 0)
    rows = with_predictions.select(pl.col("unit_id").alias(id_column), "answers").explode("answers")
    columns = [
        pl.col("answers").struct.field(name)
        for name in build_prediction_schema(prediction_type, is_stored=True)
    ]
    predictions = table.conform(rows.select(id_column, *columns, model=pl.lit(model)))
    empty_columns = [
        name
        for name in QUESTION_COLUMNS
        if name in predictions.columns and predictions[name].is_null().all()
    ]
    return predictions.drop(empty_columns)  # columns of one question alone are empty


def _check_is_shard_store(folder: Path) -> None:
    """Refuse a directory with other contents; a killed command may leave one without record.

    Raises
    ------
    OutputError
    """
    if not folder.is_dir():
        refuse_existing(folder, overwrite=False)
        return
    names = {path.name for path in folder.iterdir() if not is_staging_name(path.name)}
    if names - {"shards"} and RUN_FILE not in names:
        raise OutputError(
            "this directory contains something else and is left unchanged",
            expected=f"an empty directory, or one of answers, with {RUN_FILE}",
            found=", ".join(sorted(names)[:3]),
            where=str(folder),
            hint="choose another path",
        )


def _try_lock_folder(folder: Path) -> int | None:
    """Lock a directory; the system releases the lock whenever the process ends."""
    try:
        import fcntl
    except ImportError:  # pragma: no cover - Windows
        return None
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(handle)
        raise OutputError(
            "another command is predicting into this directory",
            where=str(folder),
            hint="wait for it (isolux predict --status says how far it is), or choose another path",
        ) from error
    except OSError:  # some network disks cannot lock
        os.close(handle)
        return None
    return handle
