"""Tables of any library, as frames of polars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from isolux.vocabulary.errors import TableError, columns_shown
from isolux.vocabulary.given.columns import as_series
from isolux.vocabulary.given.hugging_face import is_hugging_face, of_hugging_face
from isolux.vocabulary.given.rows import refuse_other_rows

_WAYS = ("to_polars", "__arrow_c_stream__", "to_arrow", "to_pandas", "__dataframe__")
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
        return _without_objects(frame)
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    given: Any = frame
    if is_hugging_face(given):
        return of_hugging_face(given, _of_library)
    if isinstance(given, Mapping):
        return _of_columns(given)
    if isinstance(given, np.ndarray) and given.dtype.names:
        return _of_columns({name: given[name] for name in given.dtype.names})
    return _of_library(given)


def is_frame(given: object) -> bool:
    """Tell whether this is a table of some library, or a mapping of columns.

    Examples
    --------
    >>> is_frame({"a": [1]}), is_frame([1]), is_frame("people.csv")
    (True, False, False)
    """
    if isinstance(given, pl.DataFrame | pl.LazyFrame | Mapping):
        return True
    if isinstance(given, np.ndarray):
        return given.dtype.names is not None
    return hasattr(given, "columns") or hasattr(given, "column_names")


def _of_library(given: Any) -> pl.DataFrame:
    if _is_pandas(given):
        return _of_pandas(given)
    if not isinstance(given, list | tuple | str | bytes | pl.Series) and not hasattr(given, "isna"):
        import narwhals as nw

        wrapped = nw.from_native(given, pass_through=True)
        if isinstance(wrapped, nw.LazyFrame):
            wrapped = wrapped.collect()
        if isinstance(wrapped, nw.DataFrame):
            return wrapped.to_polars()
        for way in _WAYS:
            if hasattr(given, way) and not isinstance(given, type):
                found = _by(given, way)
                if isinstance(found, pl.DataFrame):
                    return found
    raise TableError(
        "this is not a table",
        expected="a frame of polars, pandas, pyarrow or datasets, or a mapping of columns",
        found=type(given).__name__,
        hint='arrays and lists are given their names in a mapping: {"race": race, "truth": y, …}',
    )


def _by(given: Any, way: str) -> object:
    if way == "to_polars":
        return given.to_polars()
    if way == "__arrow_c_stream__":
        return pl.DataFrame(given)
    if way == "__dataframe__":
        return pl.from_dataframe(given)
    inner = getattr(given, way)()
    return _of_pandas(inner) if _is_pandas(inner) else pl.DataFrame(inner)


def _is_pandas(given: Any) -> bool:
    return hasattr(given, "iloc") and hasattr(given, "columns") and hasattr(given, "items")


def _of_pandas(given: Any) -> pl.DataFrame:
    names = [str(name) for name in given.columns]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise TableError(
            "two columns have the same name", expected="every name once", found=columns_shown(twice)
        )
    cells = (given.iloc[:, k] for k in range(len(names)))
    return pl.DataFrame([as_series(one, name) for name, one in zip(names, cells, strict=True)])


def _of_columns(given: Mapping[Any, Any]) -> pl.DataFrame:
    parts = [str(name) for name, one in given.items() if is_frame(one)]
    if parts:
        raise TableError(
            "these are several tables",
            expected=f"one of them, such as data[{parts[0]!r}]",
            found=", ".join(map(repr, parts)),
        )
    columns = [as_series(one, str(name)) for name, one in given.items()]
    sizes = {one.name: len(one) for one in columns}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name}: {n:,}" for name, n in sizes.items())
        raise TableError("the columns differ in length", expected="one value a person", found=found)
    refuse_other_rows({str(name): one for name, one in given.items()})
    return pl.DataFrame(columns)


def _without_objects(frame: pl.DataFrame) -> pl.DataFrame:
    """Read columns of Python's objects as what they hold; refuse what is no value."""
    objects = [name for name, dtype in frame.schema.items() if dtype == pl.Object]
    return (
        frame.with_columns(as_series(frame[name], name) for name in objects) if objects else frame
    )
