"""Binning: numbers into bins, or the most common values and all others.

Bins have edges of the user's choice, or quantiles over units.

Bins are closed on the left: of ``edges:18,30`` they are below 18, [18, 30) and 30 or more, as in
Fairness Indicators (Goyal et al. 2022), whose ages are <18, [18,30), [30,45), [45,70), 70+. With
``:right`` at the end they are closed on the right, (18, 30], and quantiles are interpolated, as
numpy and pandas (``cut``, ``qcut``) have them: a number that is an edge is then in the bin below.

Incomes into groups, as the papers that audit by income do: rules as text for ``--bins``.

- ICON² splits its images at terciles of income: low, middle and high have the same size.
- Fairness Indicators takes round(log(income) / 3) of a household's monthly income in US dollars.
  The logarithm is the natural one: only that gives the borders of its Table 5, 90 and about 1,800
  (printed as 1,700; incomes there jump from 1,796 to 1,890).
- Quartiles, and edges of one's own.

References
----------
.. [1] ICON² (section 4.1).
.. [2] Goyal et al. (2022). Fairness Indicators for systematic assessments of visual feature
   extractors. FAccT (section 3, Table 5).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.core.counts import TIMES, count_people
from isolux.core.errors import SpecError, TableError, format_location

ALL_OTHERS = "all others"
"""The group of values that are not among the most common."""


ClosedSide = Literal["left", "right"]
"""Which edge belongs to a bin."""


_MAX_SHORT_DIGITS = 5  # digits up to which a number is written exactly


@dataclass(frozen=True, slots=True)
class Bins:
    """``edges``, ascending, or the number of ``quantiles``; and which edge belongs to a bin.

    Or ``top``: how many of the most common values to keep.
    """

    edges: tuple[float, ...] = ()
    quantiles: int = 0
    closed: ClosedSide = "left"
    top: int = 0

    def fixed_or_quantile_edges(
        self, numbers: pl.Series, multiplicity: pl.Series | None = None
    ) -> tuple[float, ...]:
        """Return the edges, or the quantiles of ``numbers``."""
        return self.edges or quantile_bin_edges(numbers, self.quantiles, self.closed, multiplicity)

    def bin_index(
        self, numbers: npt.NDArray[np.float64], edges: tuple[float, ...]
    ) -> npt.NDArray[np.int64]:
        """Return the bin of each number, from 0."""
        # numpy names the side of equal numbers: to the right of an edge is in the bin above it.
        search_side: ClosedSide = "right" if self.closed == "left" else "left"
        return np.searchsorted(np.asarray(edges), numbers, search_side).astype(np.int64)


@dataclass(frozen=True, slots=True)
class BinnedRows:
    """Rows whose ``value`` is a bin's label, all labels in order, and notes for the report."""

    rows: pl.DataFrame
    labels: tuple[str, ...]
    notes: tuple[str, ...] = ()


def parse_bins(text: str) -> Bins:
    """Read ``"quantile:4"``, ``"edges:18,30,45,70"`` (``":right"`` or not) or ``"top:20"``."""
    bin_type, _, arguments = text.strip().partition(":")
    arguments, _, closed_text = arguments.partition(":")
    closed: ClosedSide = "right" if closed_text.strip() == "right" else "left"
    if closed_text.strip() not in ("", "left", "right"):
        bin_type = ""
    if bin_type == "quantile" and arguments.strip().isdecimal() and int(arguments) >= 2:
        return Bins(quantiles=int(arguments), closed=closed)
    if (
        bin_type == "top"
        and arguments.strip().isdecimal()
        and int(arguments) >= 1
        and not closed_text
    ):
        return Bins(top=int(arguments))
    if bin_type == "edges":
        try:
            edges = tuple(float(e) for e in arguments.split(","))
        except ValueError:
            edges = ()
        is_rising = all(a < b for a, b in pairwise(edges))
        if edges and is_rising and all(math.isfinite(e) for e in edges):
            return Bins(edges=edges, closed=closed)
    raise SpecError(
        "the bins cannot be used",
        expected="'quantile:K' with K of 2 or more, or 'edges:A,B,…' with rising numbers; closed "
        "on the left, or with ':right' at the end on the right; or 'top:K', the K most "
        "common values",
        found=repr(text),
    )


def format_bin_labels(edges: tuple[float, ...], closed: ClosedSide = "left") -> tuple[str, ...]:
    """Label the bins between edges: one more than there are edges."""
    # As few digits as keep the edges apart; 17 digits distinguish all floats.
    for digits in range(4, 18):
        texts = [_format_edge(e, digits) for e in edges]
        if len(set(texts)) == len(texts):
            break
    between = [f"{a}–{b}" for a, b in pairwise(texts)]
    if closed == "right":  # the first and the last show to which bin an edge belongs
        return (f"≤{texts[0]}", *between, f">{texts[-1]}")
    return (f"<{texts[0]}", *between, f"{texts[-1]}+")


def _format_edge(number: float, digits: int) -> str:
    if number.is_integer() and abs(number) < 1e15:  # beyond, a float no longer holds every digit
        return str(int(number))
    exact_text = np.format_float_positional(number, trim="-")
    if sum(letter.isdigit() for letter in exact_text) <= _MAX_SHORT_DIGITS:
        return exact_text  # 1998.5 is not 1998: a short number is an edge that someone can look up
    n_integer_digits = len(str(int(abs(number))))
    return np.format_float_positional(
        number, precision=max(digits, n_integer_digits), unique=False, fractional=False, trim="-"
    )


def quantile_bin_edges(
    numbers: pl.Series,
    quantiles: int,
    closed: ClosedSide = "left",
    multiplicity: pl.Series | None = None,
) -> tuple[float, ...]:
    """Choose edges that split ``numbers`` into bins of equal size, as far as ties allow.

    Bins that are closed on the right have the interpolated quantiles as edges (numpy's default,
    Hyndman & Fan 1996, "Sample quantiles in statistical packages", The American Statistician
    50:361-365, type 7), so that they are those of ``pandas.qcut``.

    Examples
    --------
    >>> numbers = pl.Series([1.0, 2.0, 3.0, 4.0])
    >>> quantile_bin_edges(numbers, 2), quantile_bin_edges(numbers, 2, "right")
    ((3.0,), (2.5,))
    """
    values = numbers.to_numpy()
    order = np.argsort(values, kind="stable")
    sorted_values = values[order]
    cumulative = (
        np.arange(1, len(sorted_values) + 1)
        if multiplicity is None
        else np.cumsum(multiplicity.to_numpy()[order])
    )
    if not len(sorted_values):
        return ()
    n, quantile_numbers = int(cumulative[-1]), np.arange(1, quantiles)
    if closed == "right":
        # numpy multiplies by the quotient: another order would differ from pandas in the last bit.
        positions = (n - 1) * (quantile_numbers / quantiles)
        lower_ranks = np.floor(positions).astype(np.int64)
        low, high = (
            sorted_values[np.searchsorted(cumulative, np.minimum(k, n - 1), "right")]
            for k in (lower_ranks, lower_ranks + 1)
        )
        edges = np.unique(_interpolate_linearly(low, high, positions - lower_ranks))
        # An edge at the maximum would leave the bin above it empty.
        return tuple(float(e) for e in edges[edges < sorted_values[-1]])
    # In whole numbers, so that rounding cannot move a unit across an edge.
    edges = np.unique(
        sorted_values[np.searchsorted(cumulative, quantile_numbers * n // quantiles, "right")]
    )
    # An edge at the minimum would leave the bin below it empty.
    return tuple(float(e) for e in edges[edges > sorted_values[0]])


def _interpolate_linearly(
    low: npt.NDArray[np.float64], high: npt.NDArray[np.float64], fraction: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Interpolate as ``np.quantile`` does, to the last bit: from the nearer end."""
    difference = high - low
    return np.where(
        fraction >= 0.5, high - difference * (1.0 - fraction), low + difference * fraction
    )


def bin_or_merge_rare_values(
    rows: pl.DataFrame, bins: Bins, attribute: str, source: str | None = None
) -> BinnedRows:
    """Replace numbers by their bins, or all but the most common values by "all others"."""
    if bins.top:
        return _merge_all_but_commonest(rows, bins.top, attribute)
    rows = _check_and_parse_numbers(rows, attribute, source)
    edges = bins.edges
    if bins.quantiles:
        # A unit with several numbers counts once in quantiles, by their median.
        unit_median = pl.col("number").median().over("unit")
        has_value = pl.col("value").is_not_null()
        rows = rows.with_columns(number=pl.when(has_value).then(unit_median))
        is_used = has_value & pl.col("scored") if "scored" in rows.columns else has_value
        # Of scored units only: the others are in no comparison for which bins should be equal.
        per_unit = rows.filter(is_used).unique("unit")
        multiplicity = per_unit[TIMES] if TIMES in rows.columns else None
        edges = bins.fixed_or_quantile_edges(per_unit["number"], multiplicity)
    labels = format_bin_labels(edges, bins.closed) if edges else ("all values",)
    # Any number will do for a null: its bin is dropped below.
    bin_numbers = bins.bin_index(rows["number"].fill_null(0.0).to_numpy(), edges)
    label = pl.Series("value", labels).gather(bin_numbers)
    rows = rows.with_columns(value=pl.when(pl.col("value").is_not_null()).then(label))
    return BinnedRows(rows, labels, _note_empty_bins(rows, bins, labels, attribute))


def _merge_all_but_commonest(rows: pl.DataFrame, top: int, attribute: str) -> BinnedRows:
    unit_values = rows.drop_nulls("value").unique(["value", "unit"])
    count = pl.col(TIMES).sum() if TIMES in rows.columns else pl.len()
    # A value counts once per unit, whatever the number of annotators.
    value_counts = unit_values.group_by("value").agg(n=count)
    # Ties by name, so that the kept values do not depend on the order of the rows.
    ordered = value_counts.sort("n", "value", descending=[True, False])["value"]
    kept_values, n_other = ordered.head(top), len(ordered) - top
    if n_other <= 0:
        return BinnedRows(rows, tuple(kept_values))
    value_column = pl.col("value")
    other_label = pl.when(
        value_column.is_not_null() & ~value_column.is_in(kept_values.implode())
    ).then(pl.lit(ALL_OTHERS))
    note = (
        f"{attribute}: {n_other:,} values that are not among the {top:,} most common are"
        f" {ALL_OTHERS!r}"
    )
    # A value may itself be called "all others".
    labels = tuple(dict.fromkeys([*kept_values, ALL_OTHERS]))
    return BinnedRows(
        rows.with_columns(value=pl.coalesce(other_label, value_column)), labels, (note,)
    )


def _check_and_parse_numbers(
    rows: pl.DataFrame, attribute: str, source: str | None
) -> pl.DataFrame:
    parsed = pl.col("value").str.strip_chars().cast(pl.Float64, strict=False)
    rows = rows.with_columns(number=pl.coalesce("number", parsed))
    usable = pl.col("number").is_finite().fill_null(value=False)
    invalid = rows.filter(pl.col("value").is_not_null() & ~usable).sort("row")
    if invalid.is_empty():
        return rows
    unit = invalid["unit_id"][0]
    raise TableError(
        f"{count_people(invalid):,} value(s) of {attribute!r} are not numbers, "
        "so they do not fit in any bin",
        expected="a finite number, or a word that means unknown",
        found=repr(invalid["value"][0]) + ("" if source else f" of unit {unit!r}"),
        where=format_location(source, int(unit) if source else None, attribute),
        hint="correct the value, or name it in unknown_values",
    )


def _note_empty_bins(
    rows: pl.DataFrame, bins: Bins, labels: tuple[str, ...], attribute: str
) -> tuple[str, ...]:
    occupied = set(rows["value"].unique().drop_nulls())
    if not occupied:
        return ()
    if bins.quantiles > len(labels):
        text = f"{bins.quantiles} quantile bins were requested and {len(labels)} made"
        return (f"{attribute}: {text}, because there are too few different values",)
    empty_labels = [label for label in labels if label not in occupied]
    return (f"{attribute}: no unit is in {', '.join(empty_labels)}",) if empty_labels else ()


# Where round(log(income) / 3) changes: at e to the power of 1.5, 4.5, 7.5 and 10.5.
_FAIRNESS_EDGES = tuple(math.exp(3.0 * (k + 0.5)) for k in range(4))
INCOME_RULES: dict[str, str] = {
    "tertiles": "quantile:3",
    "quartiles": "quantile:4",
    "fairness-indicators": "edges:" + ",".join(map(repr, _FAIRNESS_EDGES)),
}
"""Name to bins. Fairness Indicators' are edges at e^1.5, e^4.5, e^7.5 and e^10.5, where
round(ln(income) / 3) steps from 0 to 1, 2, 3 and 4."""


def income_rule_to_bins_option(rule: str) -> str:
    """Turn a rule into the text that ``--bins`` takes."""
    if rule in INCOME_RULES:
        return INCOME_RULES[rule]
    try:
        parse_bins(rule)
    except SpecError as error:
        raise SpecError(
            "incomes cannot be grouped so",
            expected=", ".join(INCOME_RULES) + ", quantile:K or edges:A,B,…",
            found=repr(rule),
        ) from error
    return rule
