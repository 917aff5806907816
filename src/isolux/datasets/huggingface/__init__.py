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

from isolux.core.containers import Dataset
from isolux.core.errors import FileError, TableError, refuse_unknown_names
from isolux.core.info import DatasetInfo, Reference
from isolux.datasets._files import find_single_file, read_file_bytes
from isolux.datasets._wide_table import (
    build_image_table_of_instances,
    build_instance_table,
    choose_image_column_or_none,
    choose_row_ids,
    cluster_by_row_and_offer_columns,
    melt_table_to_attribute_rows,
)
from isolux.datasets.huggingface.hub import download_dataset_folder, is_hub_address
from isolux.io.binary_tables import refuse_damaged
from isolux.io.cell_parsing import is_readable_dtype
from isolux.io.frames import read_table
from isolux.io.hashing import sha256_file
from isolux.io.json_values import decode_json
from isolux.io.refusals import refuse_cells
from isolux.io.refusals import require_columns as require_columns

_SHARD = re.compile(r"(?P<split>.+?)-(?P<number>\d{5})-of-(?P<total>\d{5})")
_SAFE_NAME = re.compile(r"[\w.-]*\w[\w.-]*")
_INFO_FILE, _STATE_FILE, _SPLITS_FILE = "dataset_info.json", "state.json", "dataset_dict.json"

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
    label_source="declared by the user",
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
    root = (
        download_dataset_folder(path, configuration)
        if is_hub_address(path)
        else Path(path).expanduser()
    )
    source = str(root)
    shard_source = _find_split_source(root, split)
    frame, notes = _read_shards_without_images(shard_source, source)
    row_ids = choose_row_ids(frame, id, source)
    image_name_column = choose_image_column_or_none(frame, row_ids, image)
    instances = build_instance_table(frame, row_ids, image_name_column, source)
    used_columns = {row_ids.column, image_name_column, "subject_id", "cluster_id"}
    names = [name for name in frame.columns if name not in used_columns]
    dataset = Dataset(
        name="huggingface",
        info=INFO,
        instances=instances,
        attributes=melt_table_to_attribute_rows(
            frame.select(names), row_ids.ids, separator=separator, source=source
        ),
        images=build_image_table_of_instances(instances, are_paths=False, root=None, source=source),
        inputs={
            str(file): sha256_file(file)
            for file in (*shard_source.files, *shard_source.metadata_files)
        },
        notes=(*([row_ids.note] if row_ids.note else []), *notes),
        id_columns={
            **({} if image_name_column is None else {image_name_column: "image_id"}),
            **({} if row_ids.column is None else {row_ids.column: "instance_id"}),
        },
    )
    return cluster_by_row_and_offer_columns(dataset, frame, source)


@dataclass(frozen=True, slots=True)
class _HuggingFaceSource:
    """Shards in their order, further files that were read, and what is said of the columns."""

    files: tuple[Path, ...]
    metadata_files: tuple[Path, ...]
    features: Mapping[str, Any]


def _find_split_source(root: Path, split: str | None) -> _HuggingFaceSource:
    if (root / _SPLITS_FILE).is_file():
        splits = decode_json(
            read_file_bytes(root / _SPLITS_FILE), dict[str, Any], str(root / _SPLITS_FILE)
        ).get("splits")
        split_names = [str(name) for name in splits] if isinstance(splits, list) else []
        return _read_saved_dataset(
            root
            / _check_safe_name(
                _choose_split_or_raise(split_names, split, str(root)), root / _SPLITS_FILE
            )
        )
    if (root / _STATE_FILE).is_file():
        if split is not None:
            raise FileError("this folder holds one part alone", found=repr(split), where=str(root))
        return _read_saved_dataset(root)
    files = [root] if root.is_file() else sorted(root.glob("**/*.parquet"))
    if not files:
        find_single_file(
            root, ("**/*.parquet", f"**/{_STATE_FILE}"), "data set in Hugging Face's formats"
        )
    files_by_split: dict[str, list[Path]] = {}
    for file in files:
        files_by_split.setdefault(_parse_split_of_shard(file), []).append(file)
    if root.is_file() and split is None:
        split = _parse_split_of_shard(root)
    shards = files_by_split[_choose_split_or_raise(list(files_by_split), split, str(root))]
    if not root.is_file():
        _check_shards_complete(shards, str(root))
    info_file = shards[0].parent / _INFO_FILE
    metadata_files = (info_file,) if info_file.is_file() else ()
    features = (
        _read_feature_descriptions(metadata_files[0])
        if metadata_files
        else _read_parquet_feature_descriptions(shards[0])
    )
    return _HuggingFaceSource(tuple(shards), metadata_files, features)


def _parse_split_of_shard(file: Path) -> str:
    """Read the split from the shard's name, or from the folder of numbered shards."""
    shard = _SHARD.fullmatch(file.stem)
    if shard:
        return shard["split"]
    return file.parent.name if file.stem.isdigit() else file.stem


def _choose_split_or_raise(split_names: list[str], split: str | None, source: str) -> str:
    if split is None and len(split_names) == 1:
        return split_names[0]
    if split is None:
        raise FileError(
            "the data set has several parts" if split_names else "the data set has no part",
            expected="split, one of " + ", ".join(map(repr, split_names)),
            where=source,
        )
    refuse_unknown_names("part", [split], split_names, where=source)
    return split


def _check_shards_complete(files: list[Path], source: str) -> None:
    shards = [s for s in (_SHARD.fullmatch(file.stem) for file in files) if s]
    totals = {int(shard["total"]) for shard in shards}
    if shards and (totals != {len(files)} or len({s["number"] for s in shards}) != len(files)):
        raise FileError(
            "the shards are not complete",
            expected=f"{max(totals):,} files",
            found=f"{len(files):,}: " + ", ".join(file.name for file in files[:5]),
            where=source,
        )


def _check_safe_name(name: str, source: Path) -> str:
    """Return a name that leads nowhere but into its own folder."""
    if _SAFE_NAME.fullmatch(name) is None or name.startswith(".."):
        raise FileError("a name leads out of the folder", found=repr(name)[:80], where=str(source))
    return name


def _read_saved_dataset(root: Path) -> _HuggingFaceSource:
    """Read what ``save_to_disk`` says of its shards; their order is that of its list."""
    state, info_file = root / _STATE_FILE, root / _INFO_FILE
    state_fields = decode_json(read_file_bytes(state), dict[str, Any], str(state))
    entries = state_fields.get("_data_files")
    names = [
        entry.get("filename") if isinstance(entry, dict) else None
        for entry in (entries if isinstance(entries, list) else [])
    ]
    if not names or not all(isinstance(name, str) for name in names):
        raise FileError(
            "the folder's list of shards cannot be read",
            expected='"_data_files": [{"filename": "data-00000-of-00001.arrow"}]',
            where=str(state),
        )
    if state_fields.get("_indices_data_files"):
        raise FileError(
            "this data set is a choice of rows whose indices are kept apart",
            where=str(state),
            hint="write it again with a newer version of datasets, which writes the rows chosen",
        )
    files = tuple(root / _check_safe_name(str(name), state) for name in names)
    return _HuggingFaceSource(files, (state, info_file), _read_feature_descriptions(info_file))


def _read_feature_descriptions(file: Path) -> Mapping[str, Any]:
    features = decode_json(read_file_bytes(file), dict[str, Any], str(file)).get("features")
    return features if isinstance(features, dict) else {}


def _read_parquet_feature_descriptions(file: Path) -> Mapping[str, Any]:
    """Read the columns' description from a Parquet file's own; Arrow's is in a file next to it."""
    if file.suffix.lower() not in (".parquet", ".pq"):
        return {}
    try:
        refuse_damaged(file, ())
        metadata = pl.read_parquet_metadata(file).get("huggingface")
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        return {}  # a damaged file, which reading it says better
    if metadata is None:
        return {}
    dataset_info = decode_json(metadata.encode(), dict[str, Any], str(file)).get("info")
    features = dataset_info.get("features") if isinstance(dataset_info, dict) else None
    return features if isinstance(features, dict) else {}


def _read_shards_without_images(
    source: _HuggingFaceSource, location: str
) -> tuple[pl.DataFrame, list[str]]:
    """Read shard by shard, leaving pictures behind, and name the classes."""
    skipped_columns: dict[str, None] = {}
    shards = []
    for file in source.files:
        shard = _replace_images_by_file_name(read_table(file))
        skipped_columns |= dict.fromkeys(
            n for n, dtype in shard.schema.items() if not is_readable_dtype(dtype)
        )
        shards.append(
            shard.select(n for n, dtype in shard.schema.items() if is_readable_dtype(dtype))
        )
    try:
        frame = pl.concat(shards)
    except pl.exceptions.PolarsError as error:
        raise TableError(
            "the shards have different columns",
            found=str(error).splitlines()[0][:120],
            where=location,
        ) from error
    notes = []
    if skipped_columns:
        column_list = ", ".join(map(repr, skipped_columns))
        notes.append(f"Not read, since they hold structures or bytes: {column_list}.")
    for name in frame.columns:
        classes = _find_class_names_of_feature(source.features.get(name))
        if classes is not None:
            frame = frame.with_columns(
                _convert_class_numbers_to_names(frame[name], classes, location, notes)
            )
    return frame, notes


def _replace_images_by_file_name(shard: pl.DataFrame) -> pl.DataFrame:
    """Replace each image by its file name: its path is often of another machine."""
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


def _find_class_names_of_feature(feature: object) -> list[str] | None:
    """Return the classes' names of a column, or of the items of its lists."""
    if not isinstance(feature, dict):
        return None
    names = feature.get("names")
    if feature.get("_type") == "ClassLabel" and isinstance(names, list):
        return [str(name) for name in names]
    return _find_class_names_of_feature(feature.get("feature"))


def _convert_class_numbers_to_names(
    cells: pl.Series, classes: list[str], source: str, notes: list[str]
) -> pl.Series:
    """Turn the numbers of classes into names; -1 is theirs for a class that is not known."""
    is_list = isinstance(cells.dtype, pl.List)
    flat = cells.explode() if is_list else cells
    if not flat.dtype.is_integer():
        return cells
    has_no_name = ((flat < -1) | (flat >= len(classes))).fill_null(value=False)
    refuse_cells(has_no_name, flat, "a class has no name", f"-1 to {len(classes) - 1}", source)
    unknown = int((flat == -1).sum())
    if unknown:
        notes.append(f"{unknown:,} value(s) of {cells.name!r} are -1: not known.")
    names = pl.Series([*classes, None], dtype=pl.String)  # the last is reached by -1
    if not is_list:
        return names.gather(cells.cast(pl.Int64)).alias(cells.name)
    class_lists: pl.Series = cells.list.eval(
        pl.element()
        .cast(pl.Int64)
        .replace_strict(dict(enumerate(classes)), default=None, return_dtype=pl.String)
    )
    return class_lists
