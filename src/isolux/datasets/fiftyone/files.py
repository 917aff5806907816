"""A FiftyOne export's files: samples, what the set says of itself, and which field holds people.

``FiftyOneDataset`` as fiftyone writes it from version 0.8 on: ``metadata.json``,
``samples.json`` (``{"samples": [...]}``).
https://docs.voxel51.com/user_guide/export_datasets.html#fiftyonedataset; the writer and the reader
are ``FiftyOneDatasetExporter`` in fiftyone/utils/data/exporters.py and ``FiftyOneDatasetImporter``
in importers.py next to it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from isolux.core.errors import FileError, TableError, format_location, refuse_unknown_names
from isolux.datasets._files import Inputs, find_single_file
from isolux.io.json_values import decode_json

LABEL_LIST_BY_CLASS = {
    "Detections": "detections",
    "Detection": None,
    "Keypoints": "keypoints",
    "Keypoint": None,
    "Classifications": "classifications",
    "Classification": None,
}
"""Kinds of fields that can hold people, and the name of the list inside; None: one person."""

_USUAL_FIELDS = ("people", "ground_truth")
_NON_FINITE = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|-?(?P<no>NaN|Infinity)\b', re.DOTALL)
_VALUE_KEY_BY_CLASS = {
    "Classification": "label",
    "Regression": "value",
    "Classifications": "classifications",
}
_SCALAR = (str, bool, int, float)
_UNSUPPORTED = object()
_EXPECTED = "metadata.json and samples.json, as FiftyOneDataset exports them"


class _FiftyoneSamples(msgspec.Struct):
    samples: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class FiftyoneExport:
    """What was read: samples in their order, metadata, and each file's hash."""

    samples: list[dict[str, Any]]
    metadata: dict[str, Any]
    root: Path
    source: str
    inputs: dict[str, str]


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """One person: the number of their sample, their place in its field, and the label itself."""

    sample: int
    position: int
    label: dict[str, Any]


def read_fiftyone_export(path: str | Path) -> FiftyoneExport:
    """Read an export."""
    file = find_single_file(path, ("samples.json",), "FiftyOne samples (samples.json)")
    source, root, inputs = str(file), file.parent, Inputs()
    samples = _decode_json_with_nan(inputs.read(file), _FiftyoneSamples, source).samples
    if not samples:
        raise FileError("the export holds no sample", expected=_EXPECTED, where=source)
    metadata: dict[str, Any] = {}
    metadata_file = root / "metadata.json"
    if metadata_file.is_file():
        metadata = _decode_json_with_nan(
            inputs.read(metadata_file), dict[str, Any], str(metadata_file)
        )
    return FiftyoneExport(samples, metadata, root, source, inputs)


def _decode_json_with_nan(content: bytes, target_type: Any, source: str) -> Any:
    """Parse JSON in which NaN may stand, as Python writes it for a keypoint that is not there."""
    if b"NaN" in content or b"Infinity" in content:
        content = _NON_FINITE.sub(
            lambda number_match: b"null" if number_match["no"] else number_match[0], content
        )
    return decode_json(content, target_type, source)


def choose_label_field(export: FiftyoneExport, requested_field: str | None) -> str | None:
    """Choose the field that holds people; None: each picture is a person."""
    class_by_field: dict[str, str] = {}
    for sample in export.samples:
        for name, field_value in sample.items():
            if (label_class := _find_label_class(field_value)) is not None:
                class_by_field.setdefault(name, label_class)
    if requested_field is not None:
        refuse_unknown_names(
            "field of labels", [requested_field], class_by_field, where=export.source
        )
        return requested_field
    for beginning in ("Detection", "Keypoint", "Classification"):
        candidates = [
            name
            for name, label_class in class_by_field.items()
            if label_class.startswith(beginning)
        ]
        if len(candidates) == 1:
            return candidates[0]
        usual = [name for name in _USUAL_FIELDS if name in candidates]
        if usual:
            return usual[0]
        if candidates:
            raise TableError(
                "several fields could hold the people",
                expected="label_field, one of " + ", ".join(candidates),
                where=export.source,
                hint=f"--data-option label_field={candidates[0]}",
            )
    return None


def _find_label_class(field_value: object) -> str | None:
    label_class = field_value.get("_cls") if isinstance(field_value, dict) else None
    return (
        label_class if isinstance(label_class, str) and label_class in LABEL_LIST_BY_CLASS else None
    )


def list_labelled_people(export: FiftyoneExport, field: str) -> list[LabelledItem]:
    """List the people of a field, sample by sample."""
    items = []
    for row, sample in enumerate(export.samples):
        field_value = sample.get(field)
        if field_value is None:
            continue
        label_class = _find_label_class(field_value)
        inner = None if label_class is None else LABEL_LIST_BY_CLASS[label_class]
        labels: object = [field_value] if inner is None else field_value.get(inner) or []
        for position, label in enumerate(labels if isinstance(labels, list) else [None]):
            if label_class is None or not isinstance(label, dict):
                raise TableError(
                    "a field holds no labels",
                    expected=" or ".join(LABEL_LIST_BY_CLASS),
                    found=repr(field_value if label is None else label)[:80],
                    where=format_location(export.source, row + 1, field),
                )
            items.append(LabelledItem(row, position, label))
    return items


@dataclass(frozen=True, slots=True)
class FieldColumns:
    """Columns by field name, each as long as what was read; and the fields left out."""

    by_name: dict[str, pl.Series]
    skipped_fields: tuple[str, ...]


def build_field_columns(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> FieldColumns:
    """Make a column of each field: text, lists of text, numbers or booleans."""
    column_by_name: dict[str, pl.Series] = {}
    skipped_fields: list[str] = []
    for name in names:
        values = [_simplify_field_value(row.get(name)) for row in rows]
        if any(cell is _UNSUPPORTED for cell in values):
            skipped_fields.append(name)
        elif any(cell is not None for cell in values):
            column_by_name[name] = _build_field_column(name, values)
    return FieldColumns(column_by_name, tuple(skipped_fields))


def _simplify_field_value(cell: object) -> object:
    """Return a value, a list of values, or a label's value; ``_UNSUPPORTED`` for anything else."""
    if isinstance(cell, dict):
        label_class = cell.get("_cls")
        inner = (
            _VALUE_KEY_BY_CLASS.get(label_class, "$oid") if isinstance(label_class, str) else "$oid"
        )
        cell = cell.get(inner, _UNSUPPORTED if inner == "$oid" else None)
        if isinstance(cell, list) != (label_class == "Classifications"):
            return _UNSUPPORTED
    if cell is None or isinstance(cell, _SCALAR):
        return cell
    if isinstance(cell, list):
        items = [_simplify_field_value(list_cell) for list_cell in cell]
        if all(isinstance(list_cell, _SCALAR) for list_cell in items):
            return items or None
    return _UNSUPPORTED


def _build_field_column(name: str, values: Sequence[Any]) -> pl.Series:
    types = {type(cell) for cell in values if cell is not None}
    if types == {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    if types <= {int, float}:
        return pl.Series(name, [_convert_finite_to_float(v) for v in values], dtype=pl.Float64)
    if list in types:
        lists = [v if isinstance(v, list) or v is None else [v] for v in values]
        texts = [
            [convert_value_to_text(list_cell) for list_cell in v] if v else None for v in lists
        ]
        return pl.Series(name, texts, dtype=pl.List(pl.String))
    return pl.Series(name, [convert_value_to_text(v) for v in values], dtype=pl.String)


def _convert_finite_to_float(number: float | None) -> float | None:
    try:
        return None if number is None or math.isnan(number) else float(number)
    except OverflowError:  # a whole number beyond any float
        return None


def convert_value_to_text(field_value: object) -> str | None:
    """Write a value as text; null for an empty one."""
    if field_value is None:
        return None
    if isinstance(field_value, bool):
        return str(field_value).lower()
    # From 2^53 on a float skips whole numbers.
    if isinstance(field_value, float) and field_value.is_integer() and abs(field_value) < 2.0**53:
        return str(int(field_value))
    text = str(field_value) if not isinstance(field_value, str) else field_value
    return text if text.strip() else None
