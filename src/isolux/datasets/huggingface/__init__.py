"""Data sets in Hugging Face's formats: Parquet, what ``save_to_disk`` wrote, or of their hub.

Lhoest et al. (2021). On disk their library is not needed: shards are Arrow or Parquet, and the
names of classes stand in the metadata. Pictures inside a table are not decoded. Nothing is fetched
unless the address begins with ``hub://`` (``hub.py``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from isolux.datasets._files import file_in, read_file
from isolux.datasets._wide import (
    attributes_of,
    identify,
    image_column,
    images_of,
    instances_of,
    with_columns_to_choose,
)
from isolux.datasets.huggingface.hub import fetched, is_address
from isolux.io.binary_tables import refuse_damaged
from isolux.io.cells import is_plain
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file
from isolux.io.json_values import decode
from isolux.io.refusals import refuse_cells
from isolux.io.refusals import require_columns as require_columns
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import FileError, TableError, UnknownNameError
from isolux.vocabulary.info import DatasetInfo, Reference

_SHARD = re.compile(r"(?P<split>.+?)-(?P<number>\d{5})-of-(?P<total>\d{5})")
_PLAIN = re.compile(r"[\w.-]*\w[\w.-]*")
_INFO_FILE, _STATE, _DICT = "dataset_info.json", "state.json", "dataset_dict.json"

INFO = DatasetInfo(
    title="a data set in Hugging Face's formats",
    summary="Parquet shards, a folder that save_to_disk wrote, or hub://owner/name.",
    references=(
        Reference(
            key="huggingface-datasets",
            citation="Lhoest, Q., Villanova del Moral, A., Jernite, Y., Thakur, A., von Platen, P.,"
            " Patil, S., et al. (2021). Datasets: A community library for natural language"
            " processing. In Proceedings of the 2021 Conference on Empirical Methods in Natural"
            " Language Processing: System Demonstrations (pp. 175–184).",
            url="https://huggingface.co/docs/datasets",
        ),
    ),
    licence="the licence of your data set: its card says it",
    judgement="declared by the user",
    assumptions=(
        "each row is one person",
        "rows are independent of one another, or a cluster column says which belong together",
    ),
)


def load(
    path: str | Path,
    *,
    split: str | None = None,
    configuration: str | None = None,
    id: str | None = None,  # noqa: A002  (the flag is called --id)
    image: str | None = None,
    separator: str | None = None,
) -> Dataset:
    r"""Load such a data set from disk, or from their hub.

    Parameters
    ----------
    path : str or Path
        A ``.parquet`` or ``.arrow`` file; a folder of Parquet shards; a folder that
        ``save_to_disk`` wrote, of one part or of several; or ``hub://owner/name``, which is
        fetched once into their library's own cache (extra ``isolux[hub]``).
    split : str, optional
        The part to load; must be given where there are several.
    configuration : str, optional
        Of a data set of the hub that has several: which.
    id, image : str, optional
        The columns that identify a row and name its image, as for a table.
    separator : str, optional
        What parts several values in one cell. Lists need none.

    Returns
    -------
    Dataset
        ``attributes``: a row for each value; numbers of classes by the classes' names, -1 null. A
        picture in a cell is known by its file's name. ``notes`` say what is not an attribute.

    Raises
    ------
    FileError
        A file that is missing or damaged, a shard that is not there; several parts and no
        ``split``.
    TableError, UnknownNameError
        A class without a name, with the row; a column or part that is not there.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = pl.DataFrame({"id": ["a", "b"], "sex": ["f", "m"]})
    ...     table.write_parquet(Path(folder) / "train-00000-of-00001.parquet")
    ...     load(folder).attributes.select("attribute", "value").rows()
    [('sex', 'f'), ('sex', 'm')]
    """
    root = fetched(path, configuration) if is_address(path) else Path(path).expanduser()
    where = str(root)
    found = _source(root, split)
    frame, notes = _read(found, where)
    identity = identify(frame, id, where)
    pictured = image_column(frame, identity, image)
    instances = instances_of(frame, identity, pictured, where)
    taken = {identity.column, pictured, "subject_id", "cluster_id"}
    names = [name for name in frame.columns if name not in taken]
    dataset = Dataset(
        name="huggingface",
        info=INFO,
        instances=instances,
        attributes=attributes_of(
            frame.select(names), identity.ids, separator=separator, where=where
        ),
        images=images_of(instances, are_paths=False, root=None, where=where),
        inputs={str(file): sha256_file(file) for file in (*found.files, *found.beside)},
        notes=(*([identity.note] if identity.note else []), *notes),
        id_columns={
            **({} if pictured is None else {pictured: "image_id"}),
            **({} if identity.column is None else {identity.column: "instance_id"}),
        },
    )
    return with_columns_to_choose(dataset, frame, where)


@dataclass(frozen=True, slots=True)
class _Source:
    """Shards in their order, further files that were read, and what is said of the columns."""

    files: tuple[Path, ...]
    beside: tuple[Path, ...]
    features: Mapping[str, Any]


def _source(root: Path, split: str | None) -> _Source:
    if (root / _DICT).is_file():
        splits = decode(read_file(root / _DICT), dict[str, Any], str(root / _DICT)).get("splits")
        known = [str(name) for name in splits] if isinstance(splits, list) else []
        return _saved(root / _plain(_one(known, split, str(root)), root / _DICT))
    if (root / _STATE).is_file():
        if split is not None:
            raise FileError("this folder holds one part alone", found=repr(split), where=str(root))
        return _saved(root)
    files = [root] if root.is_file() else sorted(root.glob("**/*.parquet"))
    if not files:
        file_in(root, ("**/*.parquet", f"**/{_STATE}"), "data set in Hugging Face's formats")
    parts: dict[str, list[Path]] = {}
    for file in files:
        parts.setdefault(_part_of(file), []).append(file)
    if root.is_file() and split is None:
        split = _part_of(root)
    chosen = parts[_one(list(parts), split, str(root))]
    if not root.is_file():
        _refuse_lacking(chosen, str(root))
    info = chosen[0].parent / _INFO_FILE
    beside = (info,) if info.is_file() else ()
    features = _features(beside[0]) if beside else _features_inside(chosen[0])
    return _Source(tuple(chosen), beside, features)


def _part_of(file: Path) -> str:
    """Tell the part by the shard's name; of shards that are numbers, by their folder's."""
    shard = _SHARD.fullmatch(file.stem)
    if shard:
        return shard["split"]
    return file.parent.name if file.stem.isdigit() else file.stem


def _one(known: list[str], split: str | None, where: str) -> str:
    if split is None and len(known) == 1:
        return known[0]
    if split is None:
        raise FileError(
            "the data set has several parts" if known else "the data set has no part",
            expected="split, one of " + ", ".join(map(repr, known)),
            where=where,
        )
    if split not in known:
        raise UnknownNameError("part", split, known, where=where)
    return split


def _refuse_lacking(files: list[Path], where: str) -> None:
    shards = [s for s in (_SHARD.fullmatch(file.stem) for file in files) if s]
    totals = {int(shard["total"]) for shard in shards}
    if shards and (totals != {len(files)} or len({s["number"] for s in shards}) != len(files)):
        raise FileError(
            "the shards are not complete",
            expected=f"{max(totals):,} files",
            found=f"{len(files):,}: " + ", ".join(file.name for file in files[:5]),
            where=where,
        )


def _plain(name: str, where: Path) -> str:
    """Return a name that leads nowhere but into its own folder."""
    if _PLAIN.fullmatch(name) is None or name.startswith(".."):
        raise FileError("a name leads out of the folder", found=repr(name)[:80], where=str(where))
    return name


def _saved(root: Path) -> _Source:
    """Read what ``save_to_disk`` says of its shards; their order is that of its list."""
    state, info = root / _STATE, root / _INFO_FILE
    said = decode(read_file(state), dict[str, Any], str(state))
    listed = said.get("_data_files")
    names = [
        entry.get("filename") if isinstance(entry, dict) else None
        for entry in (listed if isinstance(listed, list) else [])
    ]
    if not names or not all(isinstance(name, str) for name in names):
        raise FileError(
            "the folder's list of shards cannot be read",
            expected='"_data_files": [{"filename": "data-00000-of-00001.arrow"}]',
            where=str(state),
        )
    if said.get("_indices_data_files"):
        raise FileError(
            "this data set is a choice of rows whose indices are kept apart",
            where=str(state),
            hint="write it again with a newer version of datasets, which writes the rows chosen",
        )
    files = tuple(root / _plain(str(name), state) for name in names)
    return _Source(files, (state, info), _features(info))


def _features(file: Path) -> Mapping[str, Any]:
    found = decode(read_file(file), dict[str, Any], str(file)).get("features")
    return found if isinstance(found, dict) else {}


def _features_inside(file: Path) -> Mapping[str, Any]:
    """Read the columns' description from a Parquet file's own; Arrow's is in a file next to it."""
    if file.suffix.lower() not in (".parquet", ".pq"):
        return {}
    try:
        refuse_damaged(file, ())
        said = pl.read_parquet_metadata(file).get("huggingface")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        return {}  # a damaged file, which reading it says better
    if said is None:
        return {}
    info = decode(said.encode(), dict[str, Any], str(file)).get("info")
    found = info.get("features") if isinstance(info, dict) else None
    return found if isinstance(found, dict) else {}


def _read(source: _Source, where: str) -> tuple[pl.DataFrame, list[str]]:
    """Read shard by shard, leaving pictures behind, and name the classes."""
    left: dict[str, None] = {}
    shards = []
    for file in source.files:
        shard = _without_pictures(read_table(file))
        left |= dict.fromkeys(n for n, dtype in shard.schema.items() if not is_plain(dtype))
        shards.append(shard.select(n for n, dtype in shard.schema.items() if is_plain(dtype)))
    try:
        frame = pl.concat(shards)
    except pl.exceptions.PolarsError as error:
        raise TableError(
            "the shards have different columns",
            found=str(error).splitlines()[0][:120],
            where=where,
        ) from error
    notes = []
    if left:
        listed = ", ".join(map(repr, left))
        notes.append(f"Not read, since they hold structures or bytes: {listed}.")
    for name in frame.columns:
        classes = _class_names(source.features.get(name))
        if classes is not None:
            frame = frame.with_columns(_named(frame[name], classes, where, notes))
    return frame, notes


def _without_pictures(shard: pl.DataFrame) -> pl.DataFrame:
    """Put the name of its file for each picture: the path is often that of another machine."""
    pictures = [
        name
        for name, dtype in shard.schema.items()
        if isinstance(dtype, pl.Struct) and {f.name for f in dtype.fields} == {"bytes", "path"}
    ]
    return shard.with_columns(
        pl.col(name)
        .struct.field("path")
        .cast(pl.String)
        .str.replace(r"(?s)^.*[/\\]", "")
        .alias(name)
        for name in pictures
    )


def _class_names(feature: object) -> list[str] | None:
    """Return the classes' names of a column, or of the items of its lists."""
    if not isinstance(feature, dict):
        return None
    names = feature.get("names")
    if feature.get("_type") == "ClassLabel" and isinstance(names, list):
        return [str(name) for name in names]
    return _class_names(feature.get("feature"))


def _named(cells: pl.Series, classes: list[str], where: str, notes: list[str]) -> pl.Series:
    """Turn the numbers of classes into names; -1 is theirs for a class that is not known."""
    listed = isinstance(cells.dtype, pl.List)
    flat = cells.explode() if listed else cells
    if not flat.dtype.is_integer():
        return cells
    strange = ((flat < -1) | (flat >= len(classes))).fill_null(value=False)
    refuse_cells(strange, flat, "a class has no name", f"-1 to {len(classes) - 1}", where)
    unknown = int((flat == -1).sum())
    if unknown:
        notes.append(f"{unknown:,} value(s) of {cells.name!r} are -1: not known.")
    names = pl.Series([*classes, None], dtype=pl.String)  # the last is reached by -1
    if not listed:
        return names.gather(cells.cast(pl.Int64)).alias(cells.name)
    named: pl.Series = cells.list.eval(
        pl.element()
        .cast(pl.Int64)
        .replace_strict(dict(enumerate(classes)), default=None, return_dtype=pl.String)
    )
    return named
