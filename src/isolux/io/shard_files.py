"""A table in shards: a folder, a pattern or a list of Parquet files, which together are one table.

Shards are in the order of their names (of a list: in its own). What does not belong together is
refused before any row is read: other columns or types, other datasets or versions, files that are
no shards.
"""

from __future__ import annotations

import glob
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import polars as pl

from isolux.core.errors import FileError, TableError, refuse_unknown_names
from isolux.core.formatting import AND_MORE, join_first
from isolux.core.table_rows import IntArray, TableRows
from isolux.io.binary_tables import find_unreadable_column, first_error_line, refuse_damaged
from isolux.io.frames import refuse_huge_cells, refuse_unless_file
from isolux.io.polars_panics import silence_panics

_SUFFIXES = (".parquet", ".pq")
_IGNORED_PREFIXES = ("_", ".")
"""What names begin with that writers of Parquet leave beside shards: ``_SUCCESS``, ``.x.crc``."""
_DATASET_KEYS = ("dataset", "version", "huggingface")
"""Keys of a Parquet file's own description that say which dataset it is of."""
_MAX_LISTED = 3


@dataclass(frozen=True, slots=True)
class ShardFiles:
    """The shards of one table."""

    path_pattern: str
    paths: tuple[Path, ...]
    n_rows: tuple[int, ...]
    schema: dict[str, Any]

    @property
    def height(self) -> int:
        """Rows of the whole table."""
        return sum(self.n_rows)

    def to_table_rows(
        self, numbers: IntArray | None = None, multiplicity: IntArray | None = None
    ) -> TableRows:
        """Build the row locations of the table, by which errors name shard and row."""
        row_offsets, paths = list(accumulate(self.n_rows)), [str(path) for path in self.paths]
        return TableRows(self.path_pattern, paths, row_offsets, numbers=numbers, times=multiplicity)


def is_sharded_path(path: str) -> bool:
    """Tell whether a path names Parquet shards: a folder with some, a pattern or a list."""
    root = Path(path).expanduser()
    if root.is_file():
        return False
    if root.is_dir():
        return any(_is_shard(child) for child in root.iterdir())
    return _is_path_list(path) or (
        glob.has_magic(path) and path.lower().endswith((*_SUFFIXES, "*"))
    )


def _is_path_list(path: str) -> bool:
    names = path.split(",")
    return len(names) > 1 and all(name.strip().lower().endswith(_SUFFIXES) for name in names)


def _is_shard(path: Path) -> bool:
    return path.name.lower().endswith(_SUFFIXES) and not path.name.startswith(_IGNORED_PREFIXES)


def list_shard_files(path: str) -> ShardFiles:
    """List the shards of a path, and check that their columns and dataset agree."""
    paths = _list_shards(path)
    footers = [_read_footer(shard_path) for shard_path in paths]
    first = footers[0]
    for shard_path, (schema, _, dataset_keys) in zip(paths[1:], footers[1:], strict=True):
        _refuse_other_columns((paths[0], first[0]), (shard_path, schema))
        _refuse_other_dataset((paths[0], first[2]), (shard_path, dataset_keys))
    return ShardFiles(path, tuple(paths), tuple(rows for _, rows, _ in footers), first[0])


def _list_shards(path: str) -> list[Path]:
    root = Path(path).expanduser()
    if root.is_dir():
        return _list_folder_shards(root)
    if _is_path_list(path):
        paths = [Path(name.strip()).expanduser() for name in path.split(",")]
        repeated = next(
            (candidate for k, candidate in enumerate(paths) if candidate in paths[:k]), None
        )
        if repeated is not None:
            raise FileError("a shard is named twice", expected="each once", found=str(repeated))
        return paths
    matches = sorted(Path(candidate) for candidate in glob.glob(str(root)))  # noqa: PTH207 - as users write it
    if not matches:
        raise FileError("no file has such a name", expected="Parquet shards", where=path)
    stray = [candidate for candidate in matches if not _is_shard(candidate)]
    if stray:
        raise _stray_file_error(stray, path)
    return matches


def _list_folder_shards(folder: Path) -> list[Path]:
    children = sorted(
        child for child in folder.iterdir() if not child.name.startswith(_IGNORED_PREFIXES)
    )
    stray = [child for child in children if child.is_dir() or not _is_shard(child)]
    if stray:
        raise _stray_file_error(stray, str(folder))
    return children


def _stray_file_error(strays: Sequence[Path], source: str) -> FileError:
    names = (file.name + ("/" if file.is_dir() else "") for file in strays)
    return FileError(
        "not everything here is a shard of one table",
        expected="Parquet files alone, each a shard",
        found=join_first(names, _MAX_LISTED, AND_MORE),
        where=source,
        hint=f'move it away, or name the shards by a pattern: "{source.rstrip("/")}/*.parquet"',
    )


def _read_footer(path: Path) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Read a shard's footer: columns and types, rows, and what it says of its dataset."""
    refuse_unless_file(path)

    def read() -> tuple[dict[str, Any], int, dict[str, str]]:
        refuse_damaged(path, ())
        lazy = pl.scan_parquet(path, glob=False)
        schema = {name: _to_text_dtype(dtype) for name, dtype in lazy.collect_schema().items()}
        rows = int(lazy.select(pl.len()).collect().item())
        written = pl.read_parquet_metadata(path)
        return schema, rows, {key: written[key] for key in _DATASET_KEYS if key in written}

    footer: tuple[dict[str, Any], int, dict[str, str]] = _call_reader(path, read)
    if not footer[1]:
        raise FileError(
            "a shard has no rows",
            expected="at least one row in each shard",
            where=str(path),
            hint="was its writing cut off? If it is empty by right, take it away",
        )
    return footer


def _to_text_dtype(dtype: Any) -> Any:
    return pl.String() if dtype in (pl.Categorical, pl.Enum) else dtype


def _call_reader(path: Path, read: Callable[[], Any]) -> Any:
    try:
        with silence_panics():
            return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise find_unreadable_column(path) or FileError(
            "a shard is not a Parquet file, or it is damaged",
            expected="a Parquet file as its writer left it",
            found=first_error_line(error),
            where=str(path),
            hint="write it again; shards that were counted before are kept where the setting sums "
            "names a folder",
        ) from error


def _refuse_other_columns(
    first_shard: tuple[Path, dict[str, Any]], other_shard: tuple[Path, Any]
) -> None:
    (path, schema), (other_path, other_schema) = first_shard, other_shard
    if other_schema == schema:
        return
    missing = [name for name in schema if name not in other_schema]
    extra = [name for name in other_schema if name not in schema]
    types = [
        f"{name!r} is {other_schema[name]}, not {dtype}"
        for name, dtype in schema.items()
        if name in other_schema and other_schema[name] != dtype
    ]
    differences = [
        *([f"no {', '.join(map(repr, missing[:_MAX_LISTED]))}"] if missing else []),
        *([f"also {', '.join(map(repr, extra[:_MAX_LISTED]))}"] if extra else []),
        *types[:_MAX_LISTED],
    ]
    if not differences:  # the same columns in another order
        return
    raise TableError(
        "a shard has other columns or types than the first one",
        expected=f"the columns of {path.name}",
        found="; ".join(differences),
        where=str(other_path),
        hint="write all shards by one program, with one schema",
    )


def _refuse_other_dataset(
    first_shard: tuple[Path, dict[str, str]], other_shard: tuple[Path, dict[str, str]]
) -> None:
    (path, keys), (other_path, other_keys) = first_shard, other_shard
    for key in _DATASET_KEYS:
        if keys.get(key) != other_keys.get(key):
            raise TableError(
                "a shard says that it is of another dataset or version than the first one",
                expected=f"{key} {keys.get(key)!r}, as {path.name} says",
                found=repr(other_keys.get(key)),
                where=str(other_path),
            )


def read_shard(path: str | Path, columns: Sequence[str]) -> pl.DataFrame:
    """Read some columns of a shard; a dictionary's words are text."""
    shard_path = Path(path)

    def read_schema() -> dict[str, Any]:
        refuse_damaged(shard_path, columns)
        return dict(pl.read_parquet_schema(shard_path))

    schema = _call_reader(shard_path, read_schema)
    refuse_unknown_names("column", columns, schema, where=str(path))

    frame: pl.DataFrame = _call_reader(
        shard_path,
        lambda: pl.read_parquet(shard_path, columns=list(columns), use_pyarrow=False, glob=False),
    )
    dictionary_columns = [
        name for name, dtype in frame.schema.items() if _to_text_dtype(dtype) != dtype
    ]
    frame = frame.select(columns).with_columns(pl.col(dictionary_columns).cast(pl.String))
    refuse_huge_cells(frame, str(path))
    return frame
