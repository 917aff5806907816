"""Build rows of the table ``disparities`` as arrays, and stack them into one frame at the end.

A data frame per attribute, metric and kind would cost more than the statistics in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.formatting import NO_RATIO, UNTESTED
from isolux.core.tables import CAUTION_STATUSES, DISPARITIES, Status
from isolux.groups.estimates import Estimates
from isolux.stats.intervals import Interval
from isolux.stats.statistic import FloatArray, IntArray

_COMMON_COLUMNS = (
    "model",
    "task",
    "metric",
    "label",
    "threshold",
    "attribute",
    "kind",
    "method",
    "test",
    "family",
)
_NUMBER_COLUMNS = (
    "value",
    "low",
    "high",
    "simultaneous_low",
    "simultaneous_high",
    "p_value",
    "p_adjusted",
    "detectable",
)
_COUNT_COLUMNS = ("n_units_a", "n_clusters_a", "n_units_b", "n_clusters_b")
_NO_GROUP = -1  # a row's second group, where it has none


@dataclass(frozen=True, slots=True)
class RowStatus:
    """A row's status and its reason in words; None in place of a flag: the status is ok."""

    status: str
    reason: str | None


UNTESTED_FLAG = RowStatus(Status.NO_VARIATION.value, UNTESTED)
NO_RATIO_FLAG = RowStatus(Status.NO_RATIO.value, NO_RATIO)


@dataclass(frozen=True, slots=True)
class DisparityRows:
    """Rows of one kind: common values, and arrays with one entry a row (NaN and −1: null)."""

    common: dict[str, Any]
    numbers: dict[str, FloatArray]
    counts: dict[str, IntArray]
    texts: dict[str, Sequence[str | None]]

    def __len__(self) -> int:
        return len(self.numbers["value"])


def build_disparity_rows(
    estimates: Estimates,
    j: int,
    attribute: str | None,
    disparity_kind: str,
    *,
    groups: tuple[IntArray | None, IntArray | None],
    value: FloatArray,
    low: FloatArray | None = None,
    high: FloatArray | None = None,
    simultaneous: Interval | None = None,
    method: str | None = None,
    p_value: FloatArray | None = None,
    p_adjusted: FloatArray | None = None,
    test: str | None = None,
    family: str | None = None,
    detectable: FloatArray | None = None,
    flags: Sequence[RowStatus | None] | npt.NDArray[np.object_],
) -> DisparityRows:
    """Build rows of measure ``j``; ``groups`` are rows of the estimates, None: no such group."""
    measure = estimates.measures[j]
    n = len(value)
    simultaneous_bounds = (
        (None, None) if simultaneous is None else (simultaneous.low, simultaneous.high)
    )
    numbers = (value, low, high, *simultaneous_bounds, p_value, p_adjusted, detectable)
    empty = np.full(n, np.nan)
    common = (
        measure.model,
        measure.task,
        measure.metric,
        measure.label,
        measure.threshold,
        attribute,
        disparity_kind,
        method,
        test,
        family,
    )
    counts, texts = {}, {}
    group_names = np.array([group.name for group in estimates.groups], dtype=object)
    for suffix, rows in zip("ab", groups, strict=True):
        is_missing = rows is None
        group_rows = np.zeros(n, dtype=np.int64) if rows is None else rows
        texts[f"group_{suffix}"] = [None] * n if is_missing else group_names[group_rows].tolist()
        for counted_unit, table in (
            ("units", estimates.n_units),
            ("clusters", estimates.n_clusters),
        ):
            counts[f"n_{counted_unit}_{suffix}"] = (
                np.full(n, _NO_GROUP) if is_missing else table[group_rows, j]
            )
    return DisparityRows(
        dict(zip(_COMMON_COLUMNS, common, strict=True)),
        {k: empty if v is None else v for k, v in zip(_NUMBER_COLUMNS, numbers, strict=True)},
        counts,
        {
            **texts,
            "status": [Status.OK.value if flag is None else flag.status for flag in flags],
            "reason": [None if flag is None else flag.reason for flag in flags],
        },
    )


def iterate_groups_by_attribute(
    estimates: Estimates, groups: IntArray
) -> Iterator[tuple[str | None, IntArray]]:
    """Yield each attribute of some groups, with the positions of its groups among them."""
    names = [estimates.groups[g].attribute for g in groups]
    for attribute in dict.fromkeys(names):
        yield attribute, np.array([i for i, name in enumerate(names) if name == attribute])


def stack_rows(blocks: Sequence[DisparityRows]) -> pl.DataFrame:
    """Stack rows into a frame with the columns of ``disparities``, empty if there are none."""
    if not blocks:
        return DISPARITIES.empty()
    sizes = [len(block) for block in blocks]
    columns: dict[str, pl.Series] = {}
    for name in _COMMON_COLUMNS:
        dtype = DISPARITIES.schema[name]
        # One text for each block, repeated by index: building it for every row takes longer.
        constants = pl.Series([block.common[name] for block in blocks], dtype=dtype)
        columns[name] = constants.gather(np.repeat(np.arange(len(blocks)), sizes))
    for name in _NUMBER_COLUMNS:
        stacked = np.concatenate([block.numbers[name] for block in blocks])
        columns[name] = pl.Series(np.where(np.isfinite(stacked), stacked, np.nan)).fill_nan(None)
    for name in _COUNT_COLUMNS:
        stacked = np.concatenate([block.counts[name] for block in blocks])
        count = pl.Series(stacked.astype(np.int64))
        columns[name] = count.set(count == _NO_GROUP, None)
    for name in ("group_a", "group_b", "status", "reason"):
        texts = [text for block in blocks for text in block.texts[name]]
        columns[name] = pl.Series(texts, dtype=pl.String)
    return DISPARITIES.conform(pl.DataFrame(columns))


def list_cautions(estimates: Estimates, j: int) -> npt.NDArray[np.object_]:
    """Return each group's flag if it is read with caution, without numbers; otherwise None."""
    is_caution = np.isin(estimates.status[:, j].astype(str), CAUTION_STATUSES)
    flags = np.full(len(is_caution), None, dtype=object)
    for g in np.flatnonzero(is_caution):
        # The numbers in a reason differ between groups, and a row about several has one reason.
        reason = str(estimates.reason[g, j]).partition(": ")[0].replace(" in it", " in a group")
        flags[g] = RowStatus(estimates.status[g, j], reason)
    return flags


def first_flag_by_position(*flag_arrays: npt.NDArray[np.object_]) -> npt.NDArray[np.object_]:
    """Return the first flag at each position, None where no array has one."""
    flags = flag_arrays[0]
    for flag_array in flag_arrays[1:]:
        flags = np.where(flags.astype(bool), flags, flag_array)
    return flags
