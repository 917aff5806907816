"""Tables of any library, as frames of polars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from isolux.core.errors import TableError, format_columns
from isolux.core.inputs.columns import to_series_with_nulls
from isolux.core.inputs.hugging_face import is_hugging_face_dataset, read_hugging_face_dataset
from isolux.core.inputs.rows import refuse_misaligned_pandas_indices

_CONVERSION_METHODS = ("to_polars", "__arrow_c_stream__", "to_arrow", "to_pandas", "__dataframe__")
"""What a table of another library can do, from the cheapest to the dearest."""


def to_polars(frame: object) -> pl.DataFrame:
    """Take a table of any library and return a polars one.

    Examples
    --------
    >>> to_polars(pl.DataFrame({"a": [1]})).shape
    (1, 1)
    >>> to_polars({"light": ["day", "night"], "right": np.array([1.0, 0.0])}).shape
    (2, 2)
    """
    if isinstance(frame, pl.DataFrame):
        return _convert_object_columns(frame)
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    table: Any = frame
    if is_hugging_face_dataset(table):
        return read_hugging_face_dataset(table, _library_table_to_polars)
    if isinstance(table, Mapping):
        return _mapping_to_polars(table)
    if isinstance(table, np.ndarray) and table.dtype.names:
        return _mapping_to_polars({name: table[name] for name in table.dtype.names})
    return _library_table_to_polars(table)


def is_table_like(table: object) -> bool:
    """Tell whether this is a table of some library, or a mapping of columns.

    Examples
    --------
    >>> is_table_like({"a": [1]}), is_table_like([1]), is_table_like("people.csv")
    (True, False, False)
    """
    if isinstance(table, pl.DataFrame | pl.LazyFrame | Mapping):
        return True
    if isinstance(table, np.ndarray):
        return table.dtype.names is not None
    return hasattr(table, "columns") or hasattr(table, "column_names")


def _library_table_to_polars(table: Any) -> pl.DataFrame:
    if _is_pandas_table(table):
        return _pandas_to_polars(table)
    if not isinstance(table, list | tuple | str | bytes | pl.Series) and not hasattr(table, "isna"):
        import narwhals as nw

        wrapped = nw.from_native(table, pass_through=True)
        if isinstance(wrapped, nw.LazyFrame):
            wrapped = wrapped.collect()
        if isinstance(wrapped, nw.DataFrame):
            return wrapped.to_polars()
        for method in _CONVERSION_METHODS:
            if hasattr(table, method) and not isinstance(table, type):
                polars_frame = _call_conversion_method(table, method)
                if isinstance(polars_frame, pl.DataFrame):
                    return polars_frame
    raise TableError(
        "this is not a table",
        expected="a frame of polars, pandas, pyarrow or datasets, or a mapping of columns",
        found=type(table).__name__,
        hint='arrays and lists are given their names in a mapping: {"race": race, "truth": y, …}',
    )


def _call_conversion_method(table: Any, method: str) -> object:
    if method == "to_polars":
        return table.to_polars()
    if method == "__arrow_c_stream__":
        return pl.DataFrame(table)
    if method == "__dataframe__":
        return pl.from_dataframe(table)
    inner = getattr(table, method)()
    return _pandas_to_polars(inner) if _is_pandas_table(inner) else pl.DataFrame(inner)


def _is_pandas_table(table: Any) -> bool:
    return hasattr(table, "iloc") and hasattr(table, "columns") and hasattr(table, "items")


def _pandas_to_polars(frame: Any) -> pl.DataFrame:
    names = [str(name) for name in frame.columns]
    repeated_names = sorted({name for name in names if names.count(name) > 1})
    if repeated_names:
        raise TableError(
            "two columns have the same name",
            expected="every name once",
            found=format_columns(repeated_names),
        )
    cells = (frame.iloc[:, k] for k in range(len(names)))
    return pl.DataFrame(
        [to_series_with_nulls(column, name) for name, column in zip(names, cells, strict=True)]
    )


def _mapping_to_polars(mapping: Mapping[Any, Any]) -> pl.DataFrame:
    frame_names = [str(name) for name, column in mapping.items() if is_table_like(column)]
    if frame_names:
        raise TableError(
            "these are several tables",
            expected=f"one of them, such as data[{frame_names[0]!r}]",
            found=", ".join(map(repr, frame_names)),
        )
    columns = [to_series_with_nulls(column, str(name)) for name, column in mapping.items()]
    sizes = {column.name: len(column) for column in columns}
    if len(set(sizes.values())) > 1:
        length_list = ", ".join(f"{name}: {n:,}" for name, n in sizes.items())
        raise TableError(
            "the columns differ in length", expected="one value a person", found=length_list
        )
    refuse_misaligned_pandas_indices({str(name): column for name, column in mapping.items()})
    return pl.DataFrame(columns)


def _convert_object_columns(frame: pl.DataFrame) -> pl.DataFrame:
    """Read columns of Python's objects as what they hold; refuse what is no value."""
    objects = [name for name, dtype in frame.schema.items() if dtype == pl.Object]
    return (
        frame.with_columns(to_series_with_nulls(frame[name], name) for name in objects)
        if objects
        else frame
    )
