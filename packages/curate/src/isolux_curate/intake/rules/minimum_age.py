"""People who are not of age, or of whom it is not known."""

from __future__ import annotations

import polars as pl

from isolux.core import citations
from isolux.core.info import RuleInfo
from isolux_curate.intake.rules._rejections import (
    cast_or_add_null_column,
    list_refusals_by_first_case,
)

INFO = RuleInfo(
    title="Adults",
    summary="Refuses photos of people who are not known to be of age.",
    references=(citations.FHIBE.with_location("Methods, Ethics statement"),),
    step="people",
    order=1,
    needs=("age",),
    assumptions=(
        "Of age is 18 in most countries and later in some, which `age_of_majority` says.",
    ),
)

_MAX_AGE = 120  # years: the oldest person whose age was proven became 122


def refuse(facts: pl.DataFrame, *, min_age: float = 18.0) -> pl.DataFrame:
    """Refuse photos of people below the age of majority, or whose age is not known.

    Parameters
    ----------
    facts : polars.DataFrame
        ``image_id, age`` (years; outside 0 to 120: not known), and ``age_of_majority`` (of their
        country) where it is known. ``sha256``, where it is there: a file that came in as one of a
        child too is refused, whomever else it is said to show.
    min_age : float
        Years, where the country's own age is not given or lower.

    Returns
    -------
    polars.DataFrame
        ``image_id, reason``.

    Examples
    --------
    >>> refuse(pl.DataFrame({"image_id": ["a", "b"], "age": [17.0, 40.0]}))["reason"].to_list()
    ['Only people of age can take part, from 18 years.']
    """
    facts = cast_or_add_null_column(
        cast_or_add_null_column(facts, "age", pl.Float64), "age_of_majority", pl.Float64
    )
    facts = cast_or_add_null_column(facts, "sha256", pl.String)
    required_age = pl.max_horizontal(pl.col("age_of_majority"), pl.lit(min_age))
    is_impossible_age = ~pl.col("age").is_between(0, _MAX_AGE)
    is_minor = (pl.col("age") < required_age) & ~is_impossible_age
    is_child = is_minor.fill_null(value=False)
    age_text = pl.col("age").cast(pl.String).str.strip_suffix(".0")
    impossible = (
        "The age that we have of you, {}, cannot be right, so we do not know how old you are."
        " Please tell us: only people of age can take part."
    )
    too_young = "Only people of age can take part, from {} years."
    return list_refusals_by_first_case(
        facts,
        (
            pl.col("age").is_null(),
            "We do not know how old you are. Please tell us: only people of age can take part.",
        ),
        (is_impossible_age, pl.format(impossible, age_text)),
        (is_minor, pl.format(too_young, required_age.cast(pl.Int64))),
        (
            is_child.any().over("image_id"),
            "Someone in this photo is not of age. Only people of age can take part.",
        ),
        (
            is_child.any().over("sha256") & pl.col("sha256").is_not_null(),
            "This file came in before as a photo of someone who is not of age.",
        ),
    )
