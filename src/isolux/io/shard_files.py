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

from isolux.io.binary_tables import first_line, refuse_damaged, unread_column
from isolux.io.frames import refuse_huge_cells, refuse_unless_file
from isolux.io.panics import panics_unprinted
from isolux.vocabulary.errors import FileError, TableError, UnknownNameError
from isolux.vocabulary.table_rows import IntArray, TableRows

_SUFFIXES = (".parquet", ".pq")
_MARKED = ("_", ".")
"""What names begin with that writers of Parquet leave beside shards: ``_SUCCESS``, ``.x.crc``."""
_TOLD_APART = ("dataset", "version", "huggingface")
"""Keys of a Parquet file's own description that say which dataset it is of."""
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class ShardFiles:
    """The shards of one table."""

    said: str
    paths: tuple[Path, ...]
    rows: tuple[int, ...]
    schema: dict[str, Any]

    @property
    def height(self) -> int:
        """Rows of the whole table."""
        return sum(self.rows)

    def table_rows(
        self, numbers: IntArray | None = None, times: IntArray | None = None
    ) -> TableRows:
        """Give the table's name with what tells where each of its rows is, for errors."""
        ends, paths = list(accumulate(self.rows)), [str(path) for path in self.paths]
        return TableRows(self.said, paths, ends, numbers=numbers, times=times)


def is_in_shards(path: str) -> bool:
    """Tell whether a path names Parquet shards: a folder with some, a pattern or a list."""
    place = Path(path).expanduser()
    if place.is_file():
        return False
    if place.is_dir():
        return any(_is_shard(one) for one in place.iterdir())
    return _is_list(path) or (glob.has_magic(path) and path.lower().endswith((*_SUFFIXES, "*")))


def _is_list(path: str) -> bool:
    parts = path.split(",")
    return len(parts) > 1 and all(part.strip().lower().endswith(_SUFFIXES) for part in parts)


def _is_shard(path: Path) -> bool:
    return path.name.lower().endswith(_SUFFIXES) and not path.name.startswith(_MARKED)


def shard_files(path: str) -> ShardFiles:
    """List the shards that a path names, and hold them against one another."""
    paths = _listed(path)
    seen = [_described(one) for one in paths]
    first = seen[0]
    for one, (schema, _, told) in zip(paths[1:], seen[1:], strict=True):
        _refuse_other_columns((paths[0], first[0]), (one, schema))
        _refuse_other_dataset((paths[0], first[2]), (one, told))
    return ShardFiles(path, tuple(paths), tuple(rows for _, rows, _ in seen), first[0])


def _listed(path: str) -> list[Path]:
    place = Path(path).expanduser()
    if place.is_dir():
        return _in_folder(place)
    if _is_list(path):
        paths = [Path(part.strip()).expanduser() for part in path.split(",")]
        twice = next((one for k, one in enumerate(paths) if one in paths[:k]), None)
        if twice is not None:
            raise FileError("a shard is named twice", expected="each once", found=str(twice))
        return paths
    found = sorted(Path(one) for one in glob.glob(str(place)))  # noqa: PTH207 - as users write it
    if not found:
        raise FileError("no file has such a name", expected="Parquet shards", where=path)
    stray = [one for one in found if not _is_shard(one)]
    if stray:
        raise _stray(stray, path)
    return found


def _in_folder(folder: Path) -> list[Path]:
    inside = sorted(one for one in folder.iterdir() if not one.name.startswith(_MARKED))
    stray = [one for one in inside if one.is_dir() or not _is_shard(one)]
    if stray:
        raise _stray(stray, str(folder))
    return inside


def _stray(stray: Sequence[Path], where: str) -> FileError:
    shown = ", ".join(one.name + ("/" if one.is_dir() else "") for one in stray[:_SHOWN])
    more = f" and {len(stray) - _SHOWN:,} more" if len(stray) > _SHOWN else ""
    return FileError(
        "not everything here is a shard of one table",
        expected="Parquet files alone, each a shard",
        found=shown + more,
        where=where,
        hint=f'move it away, or name the shards by a pattern: "{where.rstrip("/")}/*.parquet"',
    )


def _described(path: Path) -> tuple[dict[str, Any], int, dict[str, str]]:
    """Read a shard's footer: columns and types, rows, and what it says of its dataset."""
    refuse_unless_file(path)

    def read() -> tuple[dict[str, Any], int, dict[str, str]]:
        refuse_damaged(path, ())
        lazy = pl.scan_parquet(path, glob=False)
        schema = {name: _plain(dtype) for name, dtype in lazy.collect_schema().items()}
        rows = int(lazy.select(pl.len()).collect().item())
        written = pl.read_parquet_metadata(path)
        return schema, rows, {key: written[key] for key in _TOLD_APART if key in written}

    found: tuple[dict[str, Any], int, dict[str, str]] = _opened(path, read)
    if not found[1]:
        raise FileError(
            "a shard has no rows",
            expected="at least one row in each shard",
            where=str(path),
            hint="was its writing cut off? If it is empty by right, take it away",
        )
    return found


def _plain(dtype: Any) -> Any:
    return pl.String() if dtype in (pl.Categorical, pl.Enum) else dtype


def _opened(path: Path, read: Callable[[], Any]) -> Any:
    try:
        with panics_unprinted():
            return read()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError) as error:
        raise unread_column(path) or FileError(
            "a shard is not a Parquet file, or it is damaged",
            expected="a Parquet file as its writer left it",
            found=first_line(error),
            where=str(path),
            hint="write it again; shards that were counted before are kept where the setting sums "
            "names a folder",
        ) from error


def _refuse_other_columns(first: tuple[Path, dict[str, Any]], other: tuple[Path, Any]) -> None:
    (path, schema), (at, found) = first, other
    if found == schema:
        return
    missing = [name for name in schema if name not in found]
    more = [name for name in found if name not in schema]
    types = [
        f"{name!r} is {found[name]}, not {dtype}"
        for name, dtype in schema.items()
        if name in found and found[name] != dtype
    ]
    said = [
        *([f"no {', '.join(map(repr, missing[:_SHOWN]))}"] if missing else []),
        *([f"also {', '.join(map(repr, more[:_SHOWN]))}"] if more else []),
        *types[:_SHOWN],
    ]
    if not said:  # the same columns in another order
        return
    raise TableError(
        "a shard has other columns or types than the first one",
        expected=f"the columns of {path.name}",
        found="; ".join(said),
        where=str(at),
        hint="write all shards by one program, with one schema",
    )


def _refuse_other_dataset(
    first: tuple[Path, dict[str, str]], other: tuple[Path, dict[str, str]]
) -> None:
    (path, told), (at, found) = first, other
    for key in _TOLD_APART:
        if told.get(key) != found.get(key):
            raise TableError(
                "a shard says that it is of another dataset or version than the first one",
                expected=f"{key} {told.get(key)!r}, as {path.name} says",
                found=repr(found.get(key)),
                where=str(at),
            )


def read_shard(path: str | Path, columns: Sequence[str]) -> pl.DataFrame:
    """Read some columns of a shard; a dictionary's words are text."""
    place = Path(path)

    def look() -> dict[str, Any]:
        refuse_damaged(place, columns)
        return dict(pl.read_parquet_schema(place))

    schema = _opened(place, look)
    for name in columns:
        if name not in schema:
            raise UnknownNameError("column", name, schema, where=str(path))

    frame: pl.DataFrame = _opened(
        place,
        lambda: pl.read_parquet(place, columns=list(columns), use_pyarrow=False, glob=False),
    )
    words = [name for name, dtype in frame.schema.items() if _plain(dtype) != dtype]
    frame = frame.select(columns).with_columns(pl.col(words).cast(pl.String))
    refuse_huge_cells(frame, str(path))
    return frame
