"""Any output of a model: find its format, and read it into the table that it fits."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import polars as pl

from isolux.io.frames import FORMATS
from isolux.predictions._detections import kind_of_columns, read_detections
from isolux.predictions._labels.reading import LABEL_COLUMNS
from isolux.predictions._pair_tables import holds_pairs, read_pairs
from isolux.predictions._recognise import in_table, output_format
from isolux.predictions._seen import look_at_table, table_format, vector_columns
from isolux.vocabulary import registry
from isolux.vocabulary.errors import SpecError, did_you_mean


def read_outputs(
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  (the flag is called --format)
    model: str | None = None,
    **options: Any,
) -> pl.DataFrame:
    r"""Read what a model gave, of any kind: labels, boxes, masks, keypoints or embeddings.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "net.csv"
    ...     _ = file.write_text("image_id,box_x,box_y,box_w,box_h,score\n7,4,5,20,30,0.9\n")
    ...     read_outputs(file).row(0)
    ('net', '7', None, 4.0, 5.0, 20.0, 30.0, 0.9)
    """
    where = Path(path).expanduser()
    table = table_format(where) if format is None else format if format in FORMATS else None
    if table is None:
        return _read(format or output_format(where), path, model, options)
    seen = look_at_table(where, table)
    if kind_of_columns(seen.columns) is not None:
        _refuse_unknown(options, ("kind",), f"{table} of detections")
        return read_detections(path, table, model=model, kind=options.get("kind"))
    if holds_pairs(seen.columns):
        _refuse_unknown(options, (), f"{table} of pairs")
        return read_pairs(path, table, model=model)
    vectors = vector_columns(where, table)
    if options.get("column") in vectors:  # numbers with fractions are no list of labels
        return _read("embeddings", path, model, options)
    # Whoever names the column with the answers has said that these are labels.
    known = None if "column" in options else in_table(seen)
    labelled = "column" in options or set(LABEL_COLUMNS) & set(seen.columns)
    if known is None and len(vectors) == 1 and not labelled:
        return _read("embeddings", path, model, {**options, "column": vectors[0]})
    return _read(known or table, path, model, options)


def _read(
    chosen: str, path: str | Path, model: str | None, options: dict[str, Any]
) -> pl.DataFrame:
    plugin = registry.load("predictions", chosen)
    known = tuple(n for n in _parameters(plugin) if n not in ("path", "model", "options"))
    _refuse_unknown(options, known or _OF_LABELS, chosen)
    return cast("pl.DataFrame", plugin.read(path, model=model, **options))


_OF_LABELS = (
    "id",
    "id_from",
    "column",
    "score",
    "scale",
    "detected",
    "separator",
    "model_column",
    "sheet",
)


def reads_labels(plugin: ModuleType) -> bool:
    """Tell whether a format gives labels: its ``read`` takes what ``read_predictions`` hands on."""
    known = _parameters(plugin)
    return "detected" in known or any(p.kind is p.VAR_KEYWORD for p in known.values())


def labels_of_images(path: str | Path, form: str | None = None) -> bool:
    """Tell whether a file's labels are about images, whoever they show (captions)."""
    where = Path(path).expanduser()
    chosen = form or table_format(where) or output_format(where)
    return bool(registry.load("predictions", chosen).INFO.of_images)


def _parameters(plugin: ModuleType) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(plugin.read).parameters


def _refuse_unknown(options: dict[str, Any], known: tuple[str, ...], form: str) -> None:
    strange = [name for name in options if name not in known]
    if strange:
        raise SpecError(
            f"{form} does not take {', '.join(map(repr, strange))}",
            expected=", ".join(known) or "no option",
            found=", ".join(map(repr, options)),
            hint=did_you_mean(strange[0], known),
        )
