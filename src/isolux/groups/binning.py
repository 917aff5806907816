"""Numbers into bins: edges of the user's choice, or quantiles over units.

Bins are left-closed: of ``edges:18,30`` the bins are below 18, [18, 30) and 30 or more, as in
Fairness Indicators (Goyal et al. 2022), whose ages are <18, [18,30), [30,45), [45,70), 70+.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from isolux.vocabulary.errors import SpecError, TableError, place

__all__ = ["Binned", "Bins", "bin_labels", "binned", "parse_bins", "quantile_edges"]


@dataclass(frozen=True, slots=True)
class Bins:
    """Either ``edges``, rising, or the number of ``quantiles``."""

    edges: tuple[float, ...] = ()
    quantiles: int = 0


@dataclass(frozen=True, slots=True)
class Binned:
    """Rows whose ``value`` is a bin's label, all labels in order, and what the report must say."""

    rows: pl.DataFrame
    labels: tuple[str, ...]
    notes: tuple[str, ...] = ()


def parse_bins(text: str) -> Bins:
    """Read ``"quantile:4"`` or ``"edges:18,30,45,70"``.

    Raises
    ------
    SpecError
        If it is neither, if there are fewer than 2 quantiles, or if edges do not rise.

    Examples
    --------
    >>> parse_bins("edges:18,30").edges
    (18.0, 30.0)
    """
    kind, _, rest = text.strip().partition(":")
    if kind == "quantile" and rest.strip().isdecimal() and int(rest) >= 2:
        return Bins(quantiles=int(rest))
    if kind == "edges":
        try:
            edges = tuple(float(e) for e in rest.split(","))
        except ValueError:
            edges = ()
        rising = all(a < b for a, b in pairwise(edges))
        if edges and rising and all(math.isfinite(e) for e in edges):
            return Bins(edges=edges)
    raise SpecError(
        "the bins cannot be used",
        expected="'quantile:K' with K of 2 or more, or 'edges:A,B,…' with rising numbers",
        found=repr(text),
    )


def bin_labels(edges: tuple[float, ...]) -> tuple[str, ...]:
    """Name the bins that edges part: one more than there are edges.

    Edges are written with 4 significant digits, or as many more as it takes to tell them apart
    and to write the whole part out.

    Examples
    --------
    >>> bin_labels((18.0, 30.0, 70.0))
    ('<18', '18–30', '30–70', '70+')
    """
    for digits in range(4, 18):
        texts = [_written(e, digits) for e in edges]
        if len(set(texts)) == len(texts):
            break
    between = [f"{a}–{b}" for a, b in pairwise(texts)]
    return (f"<{texts[0]}", *between, f"{texts[-1]}+")


def _written(number: float, digits: int) -> str:
    if number.is_integer() and abs(number) < 1e15:  # beyond, a float no longer holds every digit
        return str(int(number))
    whole = len(str(int(abs(number))))
    return np.format_float_positional(
        number, precision=max(digits, whole), unique=False, fractional=False, trim="-"
    )


def quantile_edges(numbers: pl.Series, quantiles: int) -> tuple[float, ...]:
    """Choose edges that part ``numbers`` into bins of equal size, as far as ties let them.

    Of n numbers in rising order, edge i is the one that ⌊i·n/K⌋ others precede. Equal numbers
    always share a bin, the one above the edge, so a bin's size is off by less than the number of
    ties at its edges; edges that coincide, or that no one is below, are left out, and there are
    then fewer than K bins.

    Parameters
    ----------
    numbers : polars.Series
        One number per unit, no nulls.
    quantiles : int
        K, the number of bins.

    Examples
    --------
    >>> quantile_edges(pl.Series([1.0, 2.0, 3.0, 4.0]), 2)
    (3.0,)
    """
    ordered = np.sort(numbers.to_numpy())
    if not len(ordered):
        return ()
    places = np.arange(1, quantiles) * len(ordered) // quantiles
    edges = np.unique(ordered[places])
    return tuple(float(e) for e in edges[edges > ordered[0]])


def binned(rows: pl.DataFrame, bins: Bins, attribute: str) -> Binned:
    """Replace each number by its bin.

    With ``edges`` each row falls into a bin by itself, so a unit whose annotators said 29 and 31
    may be in two. With ``quantile`` a unit has one number, the median of its own, which decides
    the edges and its bin. Unknown rows stay unknown.

    Parameters
    ----------
    rows : polars.DataFrame
        Rows of one attribute: ``row`` (place in its table, from 0), ``unit_id``, ``unit`` (its
        number), ``value`` (null: unknown), ``number``; if wanted ``scored``: whose numbers make
        the quantiles.
    bins : Bins
        Edges, or the number of quantiles.
    attribute : str
        Its name, for messages.

    Raises
    ------
    TableError
        If a known value is no finite number; names its row.

    Examples
    --------
    >>> rows = pl.DataFrame({"row": [0, 1], "unit_id": ["a", "b"], "unit": [0, 1],
    ...     "value": ["17", "18"], "number": [17.0, 18.0]})
    >>> binned(rows, Bins(edges=(18.0,)), "age").rows["value"].to_list()
    ['<18', '18+']
    """
    rows = _numbered(rows, attribute)
    edges = bins.edges
    if bins.quantiles:
        middle = pl.col("number").median().over("unit")
        known = pl.col("value").is_not_null()
        rows = rows.with_columns(number=pl.when(known).then(middle))
        whose = known & pl.col("scored") if "scored" in rows.columns else known
        per_unit = rows.filter(whose).unique("unit")["number"]
        edges = quantile_edges(per_unit, bins.quantiles)
    labels = bin_labels(edges) if edges else ("all values",)
    cell = np.searchsorted(np.asarray(edges), rows["number"].fill_null(0.0).to_numpy(), "right")
    label = pl.Series("value", labels).gather(cell)
    rows = rows.with_columns(value=pl.when(pl.col("value").is_not_null()).then(label))
    return Binned(rows, labels, _notes(rows, bins, labels, attribute))


def _numbered(rows: pl.DataFrame, attribute: str) -> pl.DataFrame:
    parsed = pl.col("value").str.strip_chars().cast(pl.Float64, strict=False)
    rows = rows.with_columns(number=pl.coalesce("number", parsed))
    usable = pl.col("number").is_finite().fill_null(value=False)
    bad = rows.filter(pl.col("value").is_not_null() & ~usable).sort("row")
    if bad.is_empty():
        return rows
    raise TableError(
        f"{bad.height} value(s) of {attribute!r} are no numbers, so they fit in no bin",
        expected="a finite number, or a word that means unknown",
        found=f"{bad['value'][0]!r} of unit {bad['unit_id'][0]!r}",
        where=place("attributes", int(bad["row"][0]) + 1, "value"),
        hint="correct the value, or name it in --unknown-values",
    )


def _notes(
    rows: pl.DataFrame, bins: Bins, labels: tuple[str, ...], attribute: str
) -> tuple[str, ...]:
    filled = set(rows["value"].unique().drop_nulls())
    if not filled:
        return ()
    if bins.quantiles > len(labels):
        made = f"{bins.quantiles} quantile bins were asked for and {len(labels)} made"
        return (f"{attribute}: {made}, because too few values differ",)
    empty = [label for label in labels if label not in filled]
    return (f"{attribute}: no unit is in {', '.join(empty)}",) if empty else ()
