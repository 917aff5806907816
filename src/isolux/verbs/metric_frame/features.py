"""Values and features in any shape that fairlearn takes, as columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import polars as pl

from isolux.io.cells import unsigned_zero
from isolux.vocabulary.errors import TableError
from isolux.vocabulary.given import as_array, as_series, to_polars


def squeezed(values: Any) -> Any:
    """Drop dimensions of one, as fairlearn does: ``[n, 1]``, a frame's only column."""
    if isinstance(values, pl.Series):
        return values
    array = as_array(values)
    return np.squeeze(array) if array.size > 1 else array.reshape(array.size)


def series_of(values: Any, name: str) -> pl.Series:
    """Take one value a row, of any shape that holds no more."""
    if isinstance(values, pl.Series) or _is_pandas_series(values):
        return as_series(values, name)
    array = squeezed(values)
    if array.ndim != 1:
        raise TableError(
            f"{name} is not one value a person",
            expected="one dimension",
            found=f"shape {array.shape}",
            hint="of classes in one-hot code, classes[array.argmax(axis=1)] is the column",
        )
    return as_series(array, name)


def features_of(values: Any, stem: str) -> pl.DataFrame:
    """Take features as a frame; those without a name are called by ``stem`` and their number.

    Examples
    --------
    >>> features_of([["day", "old"], ["night", "young"]], "feature").columns
    ['feature_0', 'feature_1']
    """
    frame = _features(values, stem)
    floats = [name for name, dtype in frame.schema.items() if dtype.is_float()]
    return frame.with_columns(unsigned_zero(pl.col(name)).alias(name) for name in floats)


def _features(values: Any, stem: str) -> pl.DataFrame:
    if isinstance(values, Mapping):
        return pl.DataFrame({str(k): series_of(v, str(k)) for k, v in values.items()})
    if isinstance(values, pl.Series) or _is_pandas_series(values):
        name = getattr(values, "name", None)
        return as_series(values, f"{stem}_0" if name in (None, "") else str(name)).to_frame()
    if hasattr(values, "columns") or hasattr(values, "column_names"):
        return to_polars(values)
    array = as_array(values, "the features")
    if array.ndim > 2 and np.squeeze(array).ndim > 2:
        raise TableError(
            "features have too many dimensions", expected="[n] or [n, features]",
            found=f"shape {array.shape}",
        )  # fmt: skip
    if array.ndim == 2 and array.shape[0] == 1 < array.shape[1]:
        array = array[0]
    if array.ndim == 2:
        return pl.DataFrame([as_series(array[:, k], f"{stem}_{k}") for k in range(array.shape[1])])
    return series_of(array, f"{stem}_0").to_frame()


def _is_pandas_series(values: Any) -> bool:
    return hasattr(values, "isna") and not hasattr(values, "columns")
