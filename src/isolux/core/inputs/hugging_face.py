"""Data sets of Hugging Face: their numbers of classes, by the names that they carry."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import polars as pl

from isolux.core.errors import TableError, format_location

_HEAVY = ("Image", "Audio", "Video", "Pdf", "Nifti")
"""Features whose cells are files: an audit reads none of them, and they may be gigabytes."""
_UNLABELLED = -1  # what their test splits hold where a class is not told


def is_hugging_face_dataset(dataset: Any) -> bool:
    """Tell a data set of the package ``datasets`` by what it has; its streams too."""
    return hasattr(dataset, "features") and hasattr(dataset, "column_names")


def read_hugging_face_dataset(
    dataset: Any, to_table: Callable[[Any], pl.DataFrame]
) -> pl.DataFrame:
    """Read a data set; a ``ClassLabel`` gives the names of its classes, and -1 is not known."""
    if not hasattr(dataset, "__len__"):
        raise TableError(
            "this data set is a stream, whose rows are not there yet",
            expected="a datasets.Dataset",
            found=type(dataset).__name__,
            hint="load it without streaming=True, or take rows: Dataset.from_list(list(stream))",
        )
    features: Mapping[str, Any] = dataset.features or {}
    heavy = [name for name, feature in features.items() if type(feature).__name__ in _HEAVY]
    if heavy and hasattr(dataset, "remove_columns"):
        dataset = dataset.remove_columns(heavy)
    frame = to_table(dataset)
    label_columns = [
        _class_ids_to_names(frame[n], feature)
        for n, feature in features.items()
        if n in frame.columns
    ]
    return frame.with_columns(label_columns)


def _class_ids_to_names(class_ids: pl.Series, feature: Any) -> pl.Series:
    is_list = isinstance(class_ids.dtype, pl.List | pl.Array)
    inner = getattr(feature, "feature", None) if is_list else feature
    if is_list and isinstance(feature, list) and len(feature) == 1:
        inner = feature[0]  # how older versions write a list of classes
    names = getattr(inner, "names", None)
    dtype = (
        class_ids.dtype.inner
        if isinstance(class_ids.dtype, pl.List | pl.Array)
        else class_ids.dtype
    )
    if not isinstance(names, list | tuple) or not dtype.is_integer():
        return class_ids
    numbers = class_ids.explode() if is_list else class_ids
    is_out_of_range = (numbers < _UNLABELLED) | (numbers >= len(names))
    if is_out_of_range.any():
        raise TableError(
            "a class has a number that none of the names has",
            expected=f"0 to {len(names) - 1}, or -1 for unknown",
            found=str(numbers.filter(is_out_of_range)[0]),
            where=format_location(None, None, class_ids.name),
        )
    words = {k: str(name) for k, name in enumerate(names)} | {_UNLABELLED: None}
    name_expression = pl.element().replace_strict(words, default=None, return_dtype=pl.String)
    if isinstance(class_ids.dtype, pl.Array):
        class_ids = class_ids.arr.to_list()
    if is_list:
        return class_ids.list.eval(name_expression)
    return class_ids.replace_strict(words, default=None, return_dtype=pl.String)
