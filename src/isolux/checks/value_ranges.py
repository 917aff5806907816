"""Numbers that no person has: an age below 0 or above 120, a number that is not finite.

Ages of -1 or 999 are codes for "unknown"; taken as numbers they make a group of their
own, or move a regression.
"""

from __future__ import annotations

import polars as pl

from isolux.checks._problems import concatenate_problems, make_problems
from isolux.core.containers import Dataset
from isolux.core.info import CheckInfo, Reference
from isolux.core.tables import ATTRIBUTES

INFO = CheckInfo(
    title="Plausible numbers",
    summary="Impossible ages, and numbers that are not finite.",
    references=(
        Reference(
            "rothe-imdb-wiki",
            "Rothe, R., Timofte, R. and Van Gool, L. (2018). Deep expectation of real and apparent"
            " age from a single image without facial landmarks. IJCV 126, 144-157.",
            "the ages outside 0 to 100 that its users leave out",
            "https://doi.org/10.1007/s11263-016-0940-3",
        ),
    ),
    assumptions=("An attribute is an age in years if a part of its name is the word age.",),
    needs="tables",
)

_AGE_PATTERN = r"(?i)(^|_)age(_?years)?$"
_MIN_AGE, _MAX_AGE = 0.0, 120.0
"""In years. The oldest person whose age was proven was 122."""


def check(dataset: Dataset) -> pl.DataFrame:
    """List ages outside 0 to 120 years, and numbers that are not finite.

    Parameters
    ----------
    dataset : Dataset
        Attributes; an age is its ``number``, or its ``value`` where that is a number.

    Returns
    -------
    polars.DataFrame
        Table ``problems``, all of them errors.

    Examples
    --------
    >>> from isolux.core.info import DatasetInfo
    >>> one = Dataset(
    ...     name="one person",
    ...     info=DatasetInfo(title="One person", summary="An example.", references=()),
    ...     instances=pl.DataFrame({"instance_id": ["a"], "image_id": ["1"]}),
    ...     attributes=pl.DataFrame({"unit_kind": ["instance"], "unit_id": ["a"],
    ...                              "attribute": ["age"], "value": ["999"]}),
    ... )
    >>> check(one).select("problem", "unit_id", "found").rows()
    [('nobody has this age', 'a', 'age 999')]
    """
    rows = ATTRIBUTES.conform(dataset.attributes).with_columns(
        as_number=pl.coalesce("number", pl.col("value").cast(pl.Float64, strict=False))
    )
    not_finite = rows.filter(pl.col("number").is_finite().not_())
    ages = rows.filter(
        pl.col("attribute").str.contains(_AGE_PATTERN),
        pl.col("as_number").is_finite(),
        ~pl.col("as_number").is_between(_MIN_AGE, _MAX_AGE),
    )
    value_text = pl.format(
        "{} {}", "attribute", pl.coalesce("value", pl.col("number").cast(pl.String))
    )
    hint = "leave the value empty if it is not known"
    return concatenate_problems(
        *(
            make_problems(
                "value_ranges",
                problem_rows.filter(unit_kind=unit_type),
                problem,
                severity="error",
                unit_kind=unit_type,
                unit_id="unit_id",
                expected=expected,
                found=value_text.str.slice(0, 120),
                hint=hint,
            )
            for problem_rows, problem, expected in (
                (ages, "nobody has this age", f"{_MIN_AGE:g} to {_MAX_AGE:g} years"),
                (not_finite, "a number is not finite", "a finite number, or none"),
            )
            for unit_type in problem_rows["unit_kind"].unique(maintain_order=True)
        )
    )
