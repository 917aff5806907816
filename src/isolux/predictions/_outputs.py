"""Any output of a model: find its format, and read it into the table that it fits."""

from __future__ import annotations

import csv
import inspect
import json
import re
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import polars as pl

from isolux.io.frames import FORMATS, format_of
from isolux.io.image_tables import holds_images, holds_values
from isolux.io.images import IMAGE_SUFFIXES
from isolux.io.panics import panics_unprinted
from isolux.io.tar import is_tar, tar_files
from isolux.predictions._detections import kind_of_columns, read_detections
from isolux.predictions._pair_tables import holds_pairs, read_pairs
from isolux.predictions._scan.window import open_bytes
from isolux.vocabulary import registry
from isolux.vocabulary.errors import FileError, SpecError

__all__ = ["output_format", "read_outputs", "reads_labels"]

_HEAD = 1 << 16  # bytes looked at to tell one JSON from another
_MEMBERS = 100  # files of an archive looked at to tell what it holds
_VECTORS = ("embedding", "embeddings", "vector", "feature", "features")


def output_format(path: str | Path) -> str:
    """Tell the format of a model's output by its name, and of JSON by its first bytes.

    Raises
    ------
    FileError
        Nothing there, or nothing that tells.

    Examples
    --------
    >>> output_format("net.tar.gz"), output_format("net.npy"), output_format("net.csv")
    ('widerface_text', 'embeddings', 'csv')
    """
    path = Path(path).expanduser()
    name = path.name.lower()
    if path.is_dir():
        return _format_of_names(file.name for file in path.rglob("*"))
    if is_tar(path) and path.is_file():
        return _format_of_names(name for name, _ in islice(tar_files(path), _MEMBERS))
    if is_tar(path) or name.endswith((".txt", ".txt.gz")):
        return "widerface_text"
    if name.endswith(".npy"):
        return "embeddings"
    if name.endswith((".json", ".json.gz")):
        return _json_format(path)
    return format_of(path)


def _format_of_names(names: Iterable[str]) -> str:
    """Tell whole pictures, pictures of parts and text files apart by what most are called."""
    pictures = [name.lower() for name in names if name.lower().endswith(IMAGE_SUFFIXES)]
    if not pictures:
        return "widerface_text"
    parts = tuple(f"_{part}.png" for part in registry.load("predictions", "part_masks").PARTS)
    masks = sum(name.endswith(parts) for name in pictures)
    return "part_masks" if 2 * masks > len(pictures) else "image_files"


def _json_format(path: Path) -> str:
    with open_bytes(path) as stream:
        head = stream.read(_HEAD)
    if not head.strip():
        raise FileError("the file is empty", expected="a model's answers", where=str(path))
    if re.search(rb'"(labels|frames|box2d)"\s*:', head):
        return "scalabel"
    if re.search(rb'"(image_id|bbox|segmentation)"\s*:', head) or re.match(rb"\s*\[\s*\]", head):
        return "coco_results"
    raise FileError(
        "nothing in this JSON tells its format",
        expected="COCO's results (image_id, bbox) or Scalabel's frames (name, labels)",
        found=repr(head[:60].decode("utf-8", "replace")),
        where=str(path),
        hint="name its format with --format (format=…)",
    )


def read_outputs(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  (the flag is called --format)
    model: str | None = None,
    **options: Any,
) -> pl.DataFrame:
    r"""Read what a model gave, of any kind: labels, boxes, masks, keypoints or embeddings.

    Parameters
    ----------
    path : str or Path
        A file or folder of any of ``isolux list formats``. Tables (CSV, Parquet, …) whose columns
        are those of ``BOX_PREDICTIONS``, ``MASK_PREDICTIONS`` or ``KEYPOINT_PREDICTIONS`` are
        read as such, those of ``instance_id``, ``other_id`` and ``score`` as pairs, those with a
        column of vectors as embeddings, with ``uri`` as pictures, with known measures (``psnr``)
        as values computed elsewhere, all others as labels.
    format : str, optional
        Not given: by the name, and of JSON by its first bytes.
    model : str, optional
        The model's name; not given: as the format has it, else the file's name.
    **options
        What the format's own ``read`` takes: ``kind`` and ``categories`` of COCO results,
        ``pixel_inclusive`` of Scalabel, ``column`` and ``score`` of labels, ….

    Returns
    -------
    polars.DataFrame
        One of the tables predictions of ``isolux.vocabulary.tables``.

    Raises
    ------
    FileError, TableError
        As the format's own ``read``.
    SpecError
        An option that the format does not take.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.csv"
    ...     _ = file.write_text("image_id,box_x,box_y,box_w,box_h,score\n7,4,5,20,30,0.9\n")
    ...     read_outputs(file).row(0)
    ('net', '7', None, 4.0, 5.0, 20.0, 30.0, 0.9)
    """
    chosen = format or output_format(path)
    if chosen in FORMATS:
        columns = _columns_of(Path(path).expanduser(), chosen)
        if kind_of_columns(columns) is not None:
            _refuse_unknown(options, ("kind",), f"{chosen} of detections")
            return read_detections(path, chosen, model=model, kind=options.get("kind"))
        if holds_pairs(columns):
            _refuse_unknown(options, (), f"{chosen} of pairs")
            return read_pairs(path, chosen, model=model)
        if "column" not in options and any(name in columns for name in _VECTORS):
            chosen = "embeddings"
        elif holds_images(columns):
            chosen = "image_files"
        elif "column" not in options and holds_values(columns):
            chosen = "unit_values"
    plugin = registry.load("predictions", chosen)
    known = tuple(n for n in _parameters(plugin) if n not in ("path", "model", "options"))
    _refuse_unknown(options, known or _OF_LABELS, chosen)
    return cast("pl.DataFrame", plugin.read(path, model=model, **options))


_OF_LABELS = ("id", "id_from", "column", "score", "scale", "detected", "separator")


def reads_labels(plugin: ModuleType) -> bool:
    """Tell whether a format gives labels: its ``read`` takes what ``read_predictions`` hands on.

    Examples
    --------
    >>> reads_labels(registry.load("predictions", "csv"))
    True
    """
    known = _parameters(plugin)
    return "detected" in known or any(p.kind is p.VAR_KEYWORD for p in known.values())


def _parameters(plugin: ModuleType) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(plugin.read).parameters


def _refuse_unknown(options: dict[str, Any], known: tuple[str, ...], form: str) -> None:
    strange = [name for name in options if name not in known]
    if strange:
        raise SpecError(
            f"{form} does not take {', '.join(map(repr, strange))}",
            expected=", ".join(known) or "no option",
            found=", ".join(map(repr, options)),
        )


def _columns_of(path: Path, form: str) -> list[str]:
    """Name the columns of a table by its head; none where that fails, for the reader to say why."""
    try:
        with panics_unprinted():
            if form == "parquet":
                return list(pl.read_parquet_schema(path))
            if form == "arrow":
                return list(pl.read_ipc_schema(path))
        with open_bytes(path) as stream:
            line = stream.readline(_HEAD).decode("utf-8-sig")
        if form == "jsonlines":
            return list(json.loads(line))
        return next(csv.reader([line], delimiter="\t" if form == "tsv" else ","), [])
    except (FileError, OSError, ValueError, TypeError, RecursionError, csv.Error):
        return []
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return []
