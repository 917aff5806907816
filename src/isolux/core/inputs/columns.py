"""One value a row, of any library: a series of polars that holds one kind of value."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Sequence
from contextlib import suppress
from math import isnan
from typing import Any, Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from isolux.core.errors import TableError, format_location
from isolux.core.inputs.arrays import as_array, is_torch_tensor

_NUMERIC_KINDS = "biuf"
_DIRECT_DTYPES = (
    pl.String,
    pl.Categorical,
    pl.Boolean,
    pl.Int64,
    pl.Int32,
    pl.Float64,
    pl.Datetime,
)
LabelType = Literal["text", "numbers", "yes or no", "other"]
_TYPE_NAMES: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "yes or no"),
    ((int, float, decimal.Decimal), "numbers"),
    (str, "text"),
    (bytes, "bytes"),
    ((dt.date, dt.time, dt.timedelta), "times"),
    ((list, tuple, np.ndarray), "lists"),
    (dict, "structures"),
)


def to_series_with_nulls(values: Any, column_name: str, *, source: object = None) -> pl.Series:
    """Take one value a row; missing ones (None, NaN, NaT, NA) are null.

    Examples
    --------
    >>> to_series_with_nulls(np.array(["a", None, float("nan")], dtype=object), "tone").to_list()
    ['a', None, None]
    >>> to_series_with_nulls(["1", 1], "tone")
    Traceback (most recent call last):
        ...
    isolux.core.errors.TableError: a column holds values of several kinds
      expected: one kind, such as text alone
      found: text ('1', row 1) and numbers (1, row 2)
      where: column 'tone'
      what to do: make them one kind first, such as frame['tone'].astype(str)
    """
    if isinstance(values, pl.Series):
        return _convert_object_series(values.alias(column_name), column_name, source)
    if _is_pandas_object(values):  # before Arrow, which pandas gives where pyarrow is there
        return _pandas_to_series(values, column_name, source)
    if hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
        return _convert_object_series(pl.Series(column_name, values), column_name, source)
    tensors = isinstance(values, Sequence) and is_torch_tensor(next(iter(values), None))
    if isinstance(values, Sequence) and not isinstance(values, str) and not tensors:
        return _list_to_series(list(values), column_name, source)
    array = as_array(values, column_name)
    return (
        _array_to_series(array, column_name)
        if array.dtype.kind in _NUMERIC_KINDS
        else _list_to_series(array.tolist(), column_name, source)
    )


def to_single_column(values: Any, column_name: str) -> pl.Series:
    """Take exactly one value a row: also ``[n, 1]``, and a frame's only column.

    Examples
    --------
    >>> to_single_column(np.array([[1], [0]]), "y_true").to_list()
    [1, 0]
    """
    if hasattr(values, "columns") and hasattr(values, "shape"):
        values = as_array(values, column_name)
    cells = to_series_with_nulls(values, column_name)
    if isinstance(cells.dtype, pl.Array) and cells.dtype.size == 1:
        cells = cells.arr.first()
    if cells.dtype.is_nested():
        shape = getattr(values, "shape", None)
        raise TableError(
            f"{column_name} is not one value a person",
            expected="one dimension",
            found=f"shape {tuple(shape)}" if shape is not None else f"cells of {cells.dtype}",
            hint="of classes in one-hot code, classes[array.argmax(axis=1)] is the column",
        )
    return cells


def infer_label_type(labels: pl.Series) -> LabelType:
    """Say what kind of labels a column holds.

    Examples
    --------
    >>> (
    ...     infer_label_type(pl.Series(["1"])),
    ...     infer_label_type(pl.Series([1.0])),
    ...     infer_label_type(pl.Series([True])),
    ... )
    ('text', 'numbers', 'yes or no')
    """
    if labels.dtype.is_numeric():
        return "numbers"
    if labels.dtype == pl.Boolean:
        return "yes or no"
    return "text" if labels.dtype in (pl.String, pl.Categorical, pl.Enum) else "other"


def _is_pandas_object(values: Any) -> bool:
    return callable(getattr(values, "isna", None)) and callable(getattr(values, "tolist", None))


def _array_to_series(array: NDArray[Any], name: str) -> pl.Series:
    """Take numbers; NaN is a missing one, as in pandas."""
    cells = pl.Series(name, np.ascontiguousarray(array))
    return cells.fill_nan(None) if cells.dtype.is_float() else cells


def _pandas_to_series(values: Any, name: str, source: object) -> pl.Series:
    dtype = getattr(values, "dtype", None)
    if isinstance(dtype, np.dtype) and dtype.kind in _NUMERIC_KINDS:
        return _array_to_series(as_array(values, name), name)
    if str(dtype) != "object":
        with suppress(ImportError, TypeError, ValueError, pl.exceptions.PolarsError):
            quick = pl.Series(name, values)  # by pyarrow, where it is there
            if not quick.dtype.is_nested() and quick.dtype in _DIRECT_DTYPES:
                return quick
    missing = np.asarray(values.isna(), dtype=bool)
    cells = [
        None if is_missing else cell
        for is_missing, cell in zip(missing, values.tolist(), strict=True)
    ]
    return _list_to_series(cells, name, source)


def _list_to_series(values: list[Any], name: str, source: object) -> pl.Series:
    """Read Python's values, after they are known to be of one kind."""
    python_values = [_to_python_value(element) for element in values]
    first_rows: dict[str, int] = {}
    for row, element in enumerate(python_values):
        if not (
            element is None or (isinstance(element, float) and isnan(element))
        ):  # a cell may be an array
            first_rows.setdefault(_describe_python_type(element), row)
    unsupported_types = [
        type_name for type_name in first_rows if type_name not in {word for _, word in _TYPE_NAMES}
    ]
    if unsupported_types or len(first_rows) > 1:
        raise _build_mixed_types_error(python_values, first_rows, unsupported_types, name, source)
    if "numbers" not in first_rows:  # NaN among text is pandas' missing value
        python_values = [
            None if isinstance(element, float) else element for element in python_values
        ]
    if "lists" in first_rows:
        python_values = [
            element.tolist() if isinstance(element, np.ndarray) else element
            for element in python_values
        ]
    try:
        series = pl.Series(name, python_values, strict="numbers" not in first_rows)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError) as error:
        raise TableError(
            "a column cannot be read",
            expected="values of one kind",
            found=str(error).splitlines()[0],
            where=format_location(source, None, name),
        ) from error
    return series.fill_nan(None) if series.dtype.is_float() else series


def _to_python_value(element: Any) -> Any:
    if isinstance(element, np.generic):
        return element.item()
    if is_torch_tensor(element) and not element.shape:
        return element.item()
    if type(element).__name__ in ("NAType", "NaTType"):
        return None
    if type(element).__name__ in ("Interval", "Period"):  # what pandas.cut gives
        return str(element)
    return element


def _describe_python_type(element: Any) -> str:
    for types, word in _TYPE_NAMES:
        if isinstance(element, types):
            return word
    return f"objects of the type {type(element).__name__}"


def _build_mixed_types_error(
    values: list[Any],
    first_rows: dict[str, int],
    unsupported_types: list[str],
    name: str,
    source: object,
) -> TableError:
    examples = [
        f"{type_name} ({values[row]!r:.40}, row {row + 1})" for type_name, row in first_rows.items()
    ]
    return TableError(
        ("a column holds something that is not a value")
        if unsupported_types
        else "a column holds values of several kinds",
        expected="one kind, such as text alone",
        found=" and ".join(examples),
        where=format_location(source, None, name),
        hint="leave the column out"
        if unsupported_types
        else f"make them one kind first, such as frame[{name!r}].astype(str)",
    )


def _convert_object_series(values: pl.Series, name: str, source: object) -> pl.Series:
    return _list_to_series(values.to_list(), name, source) if values.dtype == pl.Object else values
