"""Any output of a model: find its format, and read it into the table that it fits."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import polars as pl

from isolux.core import registry
from isolux.core.errors import SpecError, format_did_you_mean
from isolux.io.frames import FORMATS
from isolux.predictions._detections import detect_kind, read_detections
from isolux.predictions._file_probe import list_vector_columns, probe_table, table_format
from isolux.predictions._format_detection import detect_foreign_table_format, detect_output_format
from isolux.predictions._labels.reading import LABEL_COLUMNS
from isolux.predictions._pair_tables import has_pair_columns, read_pairs


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
    file = Path(path).expanduser()
    table = format or table_format(file) or detect_output_format(file)
    if table not in FORMATS:
        return _read_with_plugin(table, path, model, options)
    probe = probe_table(file, table)
    if detect_kind(probe.columns) is not None:
        _refuse_unknown_options(options, ("kind",), f"{table} of detections")
        return read_detections(path, table, model=model, detection_kind=options.get("kind"))
    if has_pair_columns(probe.columns):
        _refuse_unknown_options(options, (), f"{table} of pairs")
        return read_pairs(path, table, model=model)
    vectors = list_vector_columns(file, table)
    if options.get("column") in vectors:  # numbers with fractions are no list of labels
        return _read_with_plugin("embeddings", path, model, options)
    # Whoever names the column with the answers has said that these are labels.
    format_name = None if "column" in options else detect_foreign_table_format(probe)
    has_label_column = "column" in options or set(LABEL_COLUMNS) & set(probe.columns)
    if format_name is None and len(vectors) == 1 and not has_label_column:
        return _read_with_plugin("embeddings", path, model, {**options, "column": vectors[0]})
    return _read_with_plugin(format_name or table, path, model, options)


def _read_with_plugin(
    format_name: str, path: str | Path, model: str | None, options: dict[str, Any]
) -> pl.DataFrame:
    plugin = registry.load("predictions", format_name)
    option_names = tuple(
        n for n in _list_read_parameters(plugin) if n not in ("path", "model", "options")
    )
    _refuse_unknown_options(options, option_names or _LABEL_OPTIONS, format_name)
    return cast("pl.DataFrame", plugin.read(path, model=model, **options))


_LABEL_OPTIONS = (
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


def is_label_format(plugin: ModuleType) -> bool:
    """Tell whether a format gives labels: its ``read`` takes what ``read_predictions`` hands on."""
    parameters = _list_read_parameters(plugin)
    return "detected" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


def has_image_labels(path: str | Path, requested_format: str | None = None) -> bool:
    """Tell whether a file's labels are about images, whoever they show (captions)."""
    file = Path(path).expanduser()
    format_name = requested_format or table_format(file) or detect_output_format(file)
    return bool(registry.load("predictions", format_name).INFO.is_keyed_by_image)


def _list_read_parameters(plugin: ModuleType) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(plugin.read).parameters


def _refuse_unknown_options(
    options: dict[str, Any], option_names: tuple[str, ...], format_name: str
) -> None:
    unknown_names = [name for name in options if name not in option_names]
    if unknown_names:
        raise SpecError(
            f"{format_name} does not take {', '.join(map(repr, unknown_names))}",
            expected=", ".join(option_names) or "no option",
            found=", ".join(map(repr, options)),
            hint=format_did_you_mean(unknown_names[0], option_names),
        )
