"""A FiftyOne export's files: samples, what the set says of itself, and which field holds people.

``FiftyOneDataset`` as fiftyone writes it from version 0.8 on: ``metadata.json``,
``samples.json`` (``{"samples": [...]}``, extended JSON of MongoDB's) or, of newer versions on
request, a folder ``samples/`` with a file each; before 0.8 the same with other metadata.
https://docs.voxel51.com/user_guide/export_datasets.html#fiftyonedataset; the writer and the reader
are ``FiftyOneDatasetExporter`` in fiftyone/utils/data/exporters.py and ``FiftyOneDatasetImporter``
in importers.py next to it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from isolux.datasets._files import file_in, read_file, sha256_bytes
from isolux.datasets._json import decode
from isolux.io.hashing import sha256_listing
from isolux.vocabulary.errors import FileError, TableError, UnknownNameError, place

__all__ = ["HOLDERS", "Export", "Item", "field_of", "items_of", "read_export"]

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


def read_export(path: Path) -> Export:
    """Read an export."""
    folder = path / "samples"
    if folder.is_dir() and not (path / "samples.json").is_file():
        files = sorted(folder.glob("*.json"))
        samples = [_decoded(read_file(file), dict[str, Any], str(file)) for file in files]
        inputs, where, root = {str(folder): sha256_listing(folder)}, str(folder), path
    else:
        file = file_in(path, ("samples.json",), "FiftyOne samples (samples.json)")
        data, where, root = read_file(file), str(file), file.parent
        samples = _decoded(data, _Samples, where).samples
        inputs = {where: sha256_bytes(data)}
    if not samples:
        raise FileError("the export holds no sample", expected=_EXPECTED, where=where)
    metadata: dict[str, Any] = {}
    said = root / "metadata.json"
    if said.is_file():
        data = read_file(said)
        metadata = _decoded(data, dict[str, Any], str(said))
        inputs[str(said)] = sha256_bytes(data)
    return Export(samples, metadata, root, where, inputs)


def _decoded(data: bytes, kind: Any, where: str) -> Any:
    """Parse JSON in which NaN may stand, as Python writes it for a keypoint that is not there."""
    if b"NaN" in data or b"Infinity" in data:
        data = _NO_NUMBER.sub(lambda found: b"null" if found["no"] else found[0], data)
    return decode(data, kind, where)


def field_of(export: Export, asked: str | None) -> str | None:
    """Choose the field that holds people; None where there is none, and each picture is a person.

    Raises
    ------
    UnknownNameError
        No such field.
    TableError
        Several that it could be, and none asked for.
    """
    kinds = _kinds(export.samples)
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


def _kinds(samples: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    kinds: dict[str, str] = {}
    for sample in samples:
        for name, value in sample.items():
            kind = _kind(value)
            if kind is not None:
                kinds.setdefault(name, kind)
    return kinds


def _kind(value: object) -> str | None:
    kind = value.get("_cls") if isinstance(value, dict) else None
    return kind if isinstance(kind, str) and kind in HOLDERS else None


def items_of(export: Export, field: str) -> list[Item]:
    """List the people of a field, sample by sample."""
    found = []
    for row, sample in enumerate(export.samples):
        held = sample.get(field)
        if held is None:
            continue
        kind = _kind(held)
        if kind is None:
            raise _no_labels(export, field, row, held)
        inner = HOLDERS[kind]
        labels = [held] if inner is None else held.get(inner) or []
        if not isinstance(labels, list):
            raise _no_labels(export, field, row, held)
        for at, label in enumerate(labels):
            if not isinstance(label, dict):
                raise _no_labels(export, field, row, label)
            older = label.get("attributes")  # where older versions kept a label's own fields
            found.append(Item(row, at, {**older, **label} if isinstance(older, dict) else label))
    return found


def _no_labels(export: Export, field: str, row: int, found: object) -> TableError:
    return TableError(
        "a field holds no labels",
        expected=" or ".join(HOLDERS),
        found=repr(found)[:80],
        where=place(export.where, row + 1, field),
    )
