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

from isolux.datasets._files import Inputs, file_in
from isolux.io.json_values import decode
from isolux.vocabulary.errors import FileError, TableError, UnknownNameError, place

HOLDERS = {
    "Detections": "detections",
    "Detection": None,
    "Keypoints": "keypoints",
    "Keypoint": None,
    "Classifications": "classifications",
    "Classification": None,
}
"""Kinds of fields that can hold people, and the name of the list inside; None: one person."""

_USUAL = ("people", "ground_truth")
_NO_NUMBER = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|-?(?P<no>NaN|Infinity)\b', re.DOTALL)
_SAID = {"Classification": "label", "Regression": "value", "Classifications": "classifications"}
_SCALAR = (str, bool, int, float)
_OTHER = object()
_EXPECTED = "metadata.json and samples.json, as FiftyOneDataset exports them"


class _Samples(msgspec.Struct):
    samples: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Export:
    """What was read: samples in their order, metadata, and each file's hash."""

    samples: list[dict[str, Any]]
    metadata: dict[str, Any]
    root: Path
    where: str
    inputs: dict[str, str]


@dataclass(frozen=True, slots=True)
class Item:
    """One person: the number of their sample, their place in its field, and the label itself."""

    sample: int
    place: int
    label: dict[str, Any]


def read_export(path: str | Path) -> Export:
    """Read an export."""
    file = file_in(path, ("samples.json",), "FiftyOne samples (samples.json)")
    where, root, inputs = str(file), file.parent, Inputs()
    samples = _decoded(inputs.read(file), _Samples, where).samples
    if not samples:
        raise FileError("the export holds no sample", expected=_EXPECTED, where=where)
    metadata: dict[str, Any] = {}
    said = root / "metadata.json"
    if said.is_file():
        metadata = _decoded(inputs.read(said), dict[str, Any], str(said))
    return Export(samples, metadata, root, where, inputs)


def _decoded(data: bytes, kind: Any, where: str) -> Any:
    """Parse JSON in which NaN may stand, as Python writes it for a keypoint that is not there."""
    if b"NaN" in data or b"Infinity" in data:
        data = _NO_NUMBER.sub(lambda found: b"null" if found["no"] else found[0], data)
    return decode(data, kind, where)


def field_of(export: Export, asked: str | None) -> str | None:
    """Choose the field that holds people; None: each picture is a person."""
    kinds: dict[str, str] = {}
    for sample in export.samples:
        for name, value in sample.items():
            if (kind := _kind(value)) is not None:
                kinds.setdefault(name, kind)
    if asked is not None:
        if asked not in kinds:
            raise UnknownNameError("field of labels", asked, kinds, where=export.where)
        return asked
    for beginning in ("Detection", "Keypoint", "Classification"):
        fitting = [name for name, kind in kinds.items() if kind.startswith(beginning)]
        if len(fitting) == 1:
            return fitting[0]
        usual = [name for name in _USUAL if name in fitting]
        if usual:
            return usual[0]
        if fitting:
            raise TableError(
                "several fields could hold the people",
                expected="label_field, one of " + ", ".join(fitting),
                where=export.where,
                hint=f"--data-option label_field={fitting[0]}",
            )
    return None


def _kind(value: object) -> str | None:
    kind = value.get("_cls") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) and kind in HOLDERS else None


def items_of(export: Export, field: str) -> list[Item]:
    """List the people of a field, sample by sample."""
    items = []
    for row, sample in enumerate(export.samples):
        value = sample.get(field)
        if value is None:
            continue
        kind = _kind(value)
        inner = None if kind is None else HOLDERS[kind]
        labels: object = [value] if inner is None else value.get(inner) or []
        for at, label in enumerate(labels if isinstance(labels, list) else [None]):
            if kind is None or not isinstance(label, dict):
                raise TableError(
                    "a field holds no labels",
                    expected=" or ".join(HOLDERS),
                    found=repr(value if label is None else label)[:80],
                    where=place(export.where, row + 1, field),
                )
            items.append(Item(row, at, label))
    return items


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns by field name, each as long as what was read; and the fields left out."""

    found: dict[str, pl.Series]
    left: tuple[str, ...]


def columns_of(rows: Sequence[Mapping[str, Any]], names: Iterable[str]) -> Columns:
    """Make a column of each field: text, lists of text, numbers or booleans."""
    found: dict[str, pl.Series] = {}
    left: list[str] = []
    for name in names:
        values = [_plain(row.get(name)) for row in rows]
        if any(value is _OTHER for value in values):
            left.append(name)
        elif any(value is not None for value in values):
            found[name] = _column(name, values)
    return Columns(found, tuple(left))


def _plain(value: object) -> object:
    """Give a value, or a list of them; of a label what it says; ``_OTHER`` for anything else."""
    if isinstance(value, dict):
        kind = value.get("_cls")
        inner = _SAID.get(kind, "$oid") if isinstance(kind, str) else "$oid"
        value = value.get(inner, _OTHER if inner == "$oid" else None)
        if isinstance(value, list) != (kind == "Classifications"):
            return _OTHER
    if value is None or isinstance(value, _SCALAR):
        return value
    if isinstance(value, list):
        items = [_plain(item) for item in value]
        if all(isinstance(item, _SCALAR) for item in items):
            return items or None
    return _OTHER


def _column(name: str, values: Sequence[Any]) -> pl.Series:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return pl.Series(name, values, dtype=pl.Boolean)
    if kinds <= {int, float}:
        return pl.Series(name, [_number(v) for v in values], dtype=pl.Float64)
    if list in kinds:
        lists = [v if isinstance(v, list) or v is None else [v] for v in values]
        texts = [[text_of(item) for item in v] if v else None for v in lists]
        return pl.Series(name, texts, dtype=pl.List(pl.String))
    return pl.Series(name, [text_of(v) for v in values], dtype=pl.String)


def _number(value: float | None) -> float | None:
    try:
        return None if value is None or math.isnan(value) else float(value)
    except OverflowError:  # a whole number beyond any float
        return None


def text_of(value: object) -> str | None:
    """Write a value as text; null for an empty one."""
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    # From 2^53 on a float skips whole numbers.
    if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**53:
        return str(int(value))
    text = str(value) if not isinstance(value, str) else value
    return text if text.strip() else None
