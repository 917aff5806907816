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

from isolux.groups.binning import parse_bins
from isolux.vocabulary.errors import SpecError

# Where round(log(income) / 3) changes: at e to the power of 1.5, 4.5, 7.5 and 10.5.
_FAIRNESS_EDGES = tuple(math.exp(3.0 * (k + 0.5)) for k in range(4))
INCOME_RULES: dict[str, str] = {
    "tertiles": "quantile:3",
    "quartiles": "quantile:4",
    "fairness-indicators": "edges:" + ",".join(map(repr, _FAIRNESS_EDGES)),
}
"""Name to bins. Fairness Indicators' are edges at e^1.5, e^4.5, e^7.5 and e^10.5, where
round(ln(income) / 3) steps from 0 to 1, 2, 3 and 4."""


def income_bins(rule: str) -> str:
    """Turn a rule into the text that ``--bins`` takes.

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
