"""Whether what stands row by row is of the same rows, where pandas' indices can tell."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from itertools import combinations
from typing import Any

from isolux.core.errors import TableError

_FIX = "bring them into one order (b = b.loc[a.index]), or say that positions count: "
_FIX += "a.reset_index(drop=True)"


def refuse_misaligned_pandas_indices(columns: Mapping[str, Any], *, stacklevel: int = 4) -> None:
    """Refuse indices of pandas that name other rows, or the same in another order.

    Examples
    --------
    >>> import pandas as pd
    >>> a, b = pd.Series([1, 0], index=["x", "y"]), pd.Series([1, 0], index=["y", "x"])
    >>> refuse_misaligned_pandas_indices({"y_true": a, "y_pred": b})
    Traceback (most recent call last):
        ...
    isolux.core.errors.TableError: y_true and y_pred hold the same rows in another order
      expected: one row a person, in one order
      found: index of row 1: 'x' and 'y'
      what to do: bring them into one order (b = b.loc[a.index]), or say that positions count:
        a.reset_index(drop=True)
    """
    indexed = {name: column.index for name, column in columns.items() if _has_pandas_index(column)}
    for (first, a), (second, b) in combinations(indexed.items(), 2):
        if len(a) != len(b) or a.equals(b):
            continue  # a difference in length is told with all lengths beside it
        has_default_index = _is_default_pandas_index(a) or _is_default_pandas_index(b)
        shuffled = set(a) == set(b)
        if has_default_index and not shuffled:
            continue
        row = next(k for k, (x, y) in enumerate(zip(a, b, strict=True)) if x != y)
        problem = f"{first} and {second} hold " + (
            "the same rows in another order" if shuffled else "other rows"
        )
        if has_default_index:
            warnings.warn(
                f"{problem}, by their indices (row {row + 1}: {a[row]!r} and {b[row]!r}). Rows are "
                f"taken by position. If that is meant, reset_index(drop=True) says so.",
                UserWarning,
                stacklevel=stacklevel,
            )
            continue
        raise TableError(
            problem,
            expected="one row a person, in one order",
            found=f"index of row {row + 1}: {a[row]!r} and {b[row]!r}",
            hint=_FIX,
        )


def _has_pandas_index(column: Any) -> bool:
    return hasattr(column, "iloc") and hasattr(getattr(column, "index", None), "equals")


def _is_default_pandas_index(index: Any) -> bool:
    """Return whether an index is pandas' default one (0, 1, 2 and so on)."""
    start, step = getattr(index, "start", None), getattr(index, "step", None)
    return start == 0 and step == 1
