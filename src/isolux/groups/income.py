"""Incomes into groups, as the papers that audit by income do: rules as text for ``--bins``.

- ICON² parts its images at terciles of income, so that low, middle and high hold as many each.
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

import polars as pl

from isolux.groups.binning import Binned, bin_labels, binned, parse_bins
from isolux.vocabulary.errors import SpecError

__all__ = ["INCOME_RULES", "income_bins", "income_groups"]

_FAIRNESS_EDGES = tuple(math.exp(3.0 * (k + 0.5)) for k in range(4))
INCOME_RULES: dict[str, str] = {
    "tertiles": "quantile:3",
    "quartiles": "quantile:4",
    "fairness-indicators": "edges:" + ",".join(map(repr, _FAIRNESS_EDGES)),
}
"""Name to bins. Fairness Indicators' are edges at e^1.5, e^4.5, e^7.5 and e^10.5, where
round(ln(income) / 3) steps from 0 to 1, 2, 3 and 4."""
_WORDS = {
    "tertiles": ("low", "middle", "high"),
    "quartiles": ("lowest quarter", "second quarter", "third quarter", "highest quarter"),
    "fairness-indicators": ("lowest", "low", "medium", "high", "highest"),
}


def income_bins(rule: str) -> str:
    """Turn a rule into the text that ``--bins`` takes.

    Parameters
    ----------
    rule : str
        ``tertiles``, ``quartiles``, ``fairness-indicators``; or bins as they are, ``quantile:K`` or
        ``edges:A,B,…``.

    Raises
    ------
    SpecError
        Neither.

    Examples
    --------
    >>> income_bins("tertiles"), income_bins("edges:1000,4000")
    ('quantile:3', 'edges:1000,4000')
    """
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


def income_groups(income: pl.Series, rule: str = "tertiles") -> pl.Series:
    """Name the income group of each unit.

    Parameters
    ----------
    income : polars.Series
        A number each, in one currency and for one span of time; null: unknown. For
        ``fairness-indicators`` US dollars a month.
    rule : str
        As for ``income_bins``. Terciles and quartiles hold as many units each, as far as equal
        incomes let them: those share a group.

    Returns
    -------
    polars.Series of str
        Null where the income is. With ``fairness-indicators`` ``lowest`` is bucket 0 and
        ``highest`` whatever lies above bucket 3; the paper's data have neither.

    Raises
    ------
    SpecError, TableError
        No such rule; an income that is no finite number.

    Examples
    --------
    >>> incomes = pl.Series([26.99, 93.0, 1796.0, 1890.0, None])
    >>> income_groups(incomes, "fairness-indicators").to_list()
    ['low', 'medium', 'medium', 'high', None]
    >>> income_groups(pl.Series([21.4, 62.0, 62.1, 93.0, 93.4, 250.0])).to_list()
    ['low', 'low', 'middle', 'middle', 'high', 'high']
    """
    found = _binned(income, income_bins(rule))
    words = _WORDS.get(rule, ())
    if len(words) != len(found.labels):  # ties left fewer groups, or the edges are one's own
        return found.rows["value"].rename(income.name)
    named = dict(zip(found.labels, words, strict=True))
    return found.rows["value"].replace(named).rename(income.name)


def _binned(income: pl.Series, bins: str) -> Binned:
    number = income.cast(pl.Float64)
    rows = pl.DataFrame({"number": number}).with_row_index("row")
    rows = rows.with_columns(
        unit_id=pl.format("{}", "row"),
        unit=pl.col("row"),
        value=pl.col("number").cast(pl.String),
    )
    read = parse_bins(bins)
    if rows["number"].is_null().all():
        return Binned(rows, bin_labels(read.edges) if read.edges else ())
    return binned(rows, read, income.name or "income")
