"""Inputs of ``metric_frame``, encoded as levels, groups and clusters."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from isolux.core.errors import IsoluxError, SpecError, TableError, UnknownNameError
from isolux.core.inputs import (
    as_array,
    infer_label_type,
    refuse_misaligned_pandas_indices,
    to_polars,
    to_series_with_nulls,
)
from isolux.io.cell_parsing import as_labels, drop_sign_of_zero
from isolux.stats.cluster_sums import IntArray
from isolux.stats.statistic import FloatArray


@dataclass(frozen=True, slots=True)
class FrameInputs:
    """Rows as text and codes."""

    y_true: pl.Series
    y_pred: pl.Series
    y_score: pl.Series | None
    raw_true: Any
    raw_pred: Any
    positive: str | None
    cluster: pl.Series | None
    controls: pl.DataFrame
    groups: pl.DataFrame
    level_of_row: IntArray
    group_of_row: IntArray

    @property
    def n_levels(self) -> int:
        """Number of combinations of control features."""
        return max(self.controls.height, 1)

    @property
    def level_of_group(self) -> IntArray:
        """The level that each group lies in."""
        out = np.zeros(self.groups.height, dtype=np.int64)
        out[self.group_of_row] = self.level_of_row
        return out

    @property
    def n_of_group(self) -> FloatArray:
        """Rows of each group."""
        return np.bincount(self.group_of_row, minlength=self.groups.height).astype(np.float64)

    @property
    def n_overall(self) -> FloatArray:
        """Rows of each level."""
        return np.bincount(self.level_of_row, minlength=self.n_levels).astype(np.float64)

    @property
    def group_names(self) -> list[str]:
        """Each group for display, its values joined by ×."""
        return [" × ".join(str(v) for v in row) for row in self.groups.iter_rows()]

    @property
    def sensitive_names(self) -> list[str]:
        """Each group without its level: the sensitive values alone, joined by ×."""
        sensitive = self.groups.drop(self.controls.columns)
        return [" × ".join(str(v) for v in row) for row in sensitive.iter_rows()]


def read_inputs(
    values: tuple[Any, Any, Any],
    features: tuple[Any, Any],
    cluster: Any,
    positive: Any,
    *,
    by_name: bool,
) -> FrameInputs:
    """Check that all inputs have as many rows, and encode levels and groups in sorted order."""
    raw_true, raw_pred = (squeeze_array(array_like) for array_like in values[:2])
    convert = to_series if by_name else _row_numbers
    true, pred = convert(raw_true, "y_true"), convert(raw_pred, "y_pred")
    y_score, (sensitive, control) = values[2], features
    score = None if y_score is None else to_series(y_score, "y_score").cast(pl.Float64)
    clusters = None if cluster is None else to_class_names(to_series(cluster, "cluster"))
    sensitive_frame = to_feature_frame(sensitive, "sensitive_feature")
    control_frame = None if control is None else to_feature_frame(control, "control_feature")
    sizes = {"y_true": len(true), "y_pred": len(pred), "sensitive_features": sensitive_frame.height}
    if control_frame is not None:
        sizes["control_features"] = control_frame.height
    for name, column in (("cluster", clusters), ("y_score", score)):
        if column is not None:
            sizes[name] = len(column)
    if len(set(sizes.values())) > 1:
        lengths_text = ", ".join(f"{name}: {n}" for name, n in sizes.items())
        raise TableError(
            "the inputs differ in length", expected="one row a person", found=lengths_text
        )
    refuse_misaligned_pandas_indices(
        {
            "y_true": values[0],
            "y_pred": values[1],
            "y_score": y_score,
            "sensitive_features": sensitive,
            "control_features": control,
            "cluster": cluster,
        },
        stacklevel=6,
    )
    if not len(true):
        raise TableError("there is nobody to measure", expected="at least one row", found="none")
    levels, level_of_row = _encode_rows(control_frame, len(true))
    features_frame = sensitive_frame
    if control_frame is not None:
        shared_names = set(control_frame.columns) & set(sensitive_frame.columns)
        if shared_names:
            raise SpecError(
                "two features have the same name", found=", ".join(sorted(shared_names))
            )
        features_frame = pl.concat([control_frame, sensitive_frame], how="horizontal")
    groups, group_of_row = _encode_rows(features_frame, len(true))
    if by_name:
        _warn_of_mixed_types(true, pred)
    return FrameInputs(
        to_class_names(true),
        to_class_names(pred),
        score,
        raw_true,
        raw_pred,
        _default_positive(true, positive),
        clusters,
        levels,
        groups,
        level_of_row,
        group_of_row,
    )


def read_params(
    sample_params: Mapping[str, Any] | None,
    metrics: Mapping[str, Any],
    n: int,
    *,
    is_single_metric: bool,
) -> dict[str, dict[str, Any]]:
    """Read the further arguments of metric functions, by metric: one value per row."""
    if sample_params is None:
        return {}
    if not isinstance(sample_params, Mapping):
        raise SpecError(
            "sample_params is not a mapping",
            expected="names of arguments, and arrays",
            found=type(sample_params).__name__,
        )
    given_by_metric = (
        dict.fromkeys(metrics, sample_params) if is_single_metric else dict(sample_params)
    )
    params_by_metric: dict[str, dict[str, Any]] = {}
    for name, metric_params in given_by_metric.items():
        if name not in metrics:
            raise SpecError(
                f"sample_params names {name!r}, which is not one of the metrics",
                expected=", ".join(metrics),
                found=", ".join(map(str, given_by_metric)),
            )
        if not isinstance(metric_params, Mapping):
            raise SpecError(
                f"sample_params of {name!r} is not a mapping",
                expected="{argument: one value a row}",
                found=type(metric_params).__name__,
            )
        arrays = {
            str(key): as_array(array_like, str(key))
            for key, array_like in metric_params.items()
            if array_like is not None
        }
        if arrays and isinstance(metrics[name], str):
            raise SpecError(
                f"the metric {metrics[name]!r} by name takes no further arguments",
                expected="a function, such as sklearn.metrics.accuracy_score",
                found=", ".join(arrays),
            )
        for key, array in arrays.items():
            if not array.ndim or len(array) != n:
                raise TableError(
                    "the inputs differ in length",
                    expected=f"{n:,} rows",
                    found=f"{key}: {array.shape}",
                )
        params_by_metric[name] = {
            k: v.reshape(n, *(d for d in v.shape[1:] if d > 1)) for k, v in arrays.items()
        }
    return params_by_metric


def _row_numbers(values: Any, name: str) -> pl.Series:
    """Return row numbers in place of values that only functions use; null where missing."""
    array = np.asarray(values)
    missing = np.zeros(len(array), dtype=np.bool_)
    if array.ndim == 1:
        missing |= array != array  # NaN alone is not itself  # noqa: PLR0124
        missing |= [element is None for element in array] if array.dtype == object else False
    return pl.Series(name, np.arange(len(array))).set(pl.Series(missing), None)


def _warn_of_mixed_types(true: pl.Series, pred: pl.Series) -> None:
    """Warn where one side is text and the other is not: '1' and 1 are then taken for one class."""
    value_types = infer_label_type(true), infer_label_type(pred)
    if "text" in value_types and len(set(value_types)) == 2 and true.len() > true.null_count():
        warnings.warn(
            f"y_true holds {value_types[0]} and y_pred {value_types[1]}: they are compared as"
            " text, so that "
            "'1' and 1 are one class. Are they of one code?",
            UserWarning,
            stacklevel=6,
        )


def to_class_names(values: pl.Series) -> pl.Series:
    """Convert values to class names: 1, 1.0 and True are one; None and NaN are missing."""
    return as_labels(values.cast(pl.Int8) if values.dtype == pl.Boolean else values)


def _encode_rows(frame: pl.DataFrame | None, n: int) -> tuple[pl.DataFrame, IntArray]:
    if frame is None:
        return pl.DataFrame(), np.zeros(n, dtype=np.int64)
    if len(set(frame.columns)) < frame.width:
        raise SpecError("two features have the same name", found=", ".join(frame.columns))
    levels = frame.unique(maintain_order=True).sort(frame.columns, nulls_last=True)
    encoded_rows = frame.join(
        levels.with_row_index("_code"),
        on=frame.columns,
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    return levels, encoded_rows["_code"].to_numpy().astype(np.int64)


def _default_positive(true: pl.Series, positive: Any) -> str | None:
    if positive is not None:
        return str(to_class_names(pl.Series([positive]))[0])
    class_names = set(to_class_names(true).drop_nulls().unique().to_list())
    return "1" if class_names <= {"0", "1"} and "1" in class_names else None


class FrameTableError(TableError, ValueError):
    """Inputs of ``metric_frame`` that do not fit together."""


class FrameSpecError(SpecError, ValueError):
    """A setting of ``metric_frame`` that cannot be used."""


class FrameNameError(UnknownNameError, ValueError):
    """A metric that there is not."""


_VALUE_ERRORS: tuple[tuple[type[IsoluxError], type[IsoluxError]], ...] = (
    (UnknownNameError, FrameNameError),
    (TableError, FrameTableError),
    (SpecError, FrameSpecError),
)


@contextmanager
def raise_as_value_errors() -> Iterator[None]:
    """Raise isolux's errors as errors that are a ``ValueError`` too; nothing else of them changes.

    Examples
    --------
    >>> try:
    ...     with raise_as_value_errors():
    ...         raise TableError("the inputs differ in length")
    ... except ValueError as error:
    ...     print(error, isinstance(error, TableError))
    the inputs differ in length True
    """
    try:
        yield
    except IsoluxError as error:
        value_error_type = next(
            (new for isolux_error, new in _VALUE_ERRORS if type(error) is isolux_error), None
        )
        if value_error_type is None:
            raise
        value_error = value_error_type.__new__(value_error_type)
        value_error.args = error.args
        vars(value_error).update(vars(error))
        raise value_error from error.__cause__


def squeeze_array(values: Any) -> Any:
    """Drop dimensions of one, as fairlearn does: ``[n, 1]``, a frame's only column."""
    if isinstance(values, pl.Series):
        return values
    array = as_array(values)
    return np.squeeze(array) if array.size > 1 else array.reshape(array.size)


def to_series(values: Any, name: str) -> pl.Series:
    """Convert an array-like with one value per row to a series."""
    if isinstance(values, pl.Series) or _is_pandas_series(values):
        return to_series_with_nulls(values, name)
    array = squeeze_array(values)
    if array.ndim != 1:
        raise TableError(
            f"{name} is not one value a person",
            expected="one dimension",
            found=f"shape {array.shape}",
            hint="of classes in one-hot code, classes[array.argmax(axis=1)] is the column",
        )
    return to_series_with_nulls(array, name)


def to_feature_frame(values: Any, stem: str) -> pl.DataFrame:
    """Convert features to a frame; unnamed ones are called by ``stem`` and their number.

    Examples
    --------
    >>> to_feature_frame([["day", "old"], ["night", "young"]], "feature").columns
    ['feature_0', 'feature_1']
    """
    frame = _build_feature_frame(values, stem)
    floats = [name for name, dtype in frame.schema.items() if dtype.is_float()]
    return frame.with_columns(drop_sign_of_zero(pl.col(name)).alias(name) for name in floats)


def _build_feature_frame(values: Any, stem: str) -> pl.DataFrame:
    if isinstance(values, Mapping):
        return pl.DataFrame({str(k): to_series(v, str(k)) for k, v in values.items()})
    if isinstance(values, pl.Series) or _is_pandas_series(values):
        name = getattr(values, "name", None)
        return to_series_with_nulls(
            values, f"{stem}_0" if name in (None, "") else str(name)
        ).to_frame()
    if hasattr(values, "columns") or hasattr(values, "column_names"):
        return to_polars(values)
    array = as_array(values, "the features")
    if array.ndim > 2 and np.squeeze(array).ndim > 2:
        raise TableError(
            "features have too many dimensions",
            expected="[n] or [n, features]",
            found=f"shape {array.shape}",
        )
    if array.ndim == 2 and array.shape[0] == 1 < array.shape[1]:
        array = array[0]
    if array.ndim == 2:
        return pl.DataFrame(
            [to_series_with_nulls(array[:, k], f"{stem}_{k}") for k in range(array.shape[1])]
        )
    return to_series(array, f"{stem}_0").to_frame()


def _is_pandas_series(values: Any) -> bool:
    return hasattr(values, "isna") and not hasattr(values, "columns")
