"""Helpers of rules: refusals with a message for the person who sent the photo, signed forms."""

from __future__ import annotations

import datetime as dt

import polars as pl

_DATE = (
    r"(?:\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[t ]\d{1,2}:\d{2}[\d:.+z-]*)?"
    r"|\d{1,2}[./-]\d{1,2}[./-]\d{4})"
)
_YES = r"(?:yes|y|true|1|1\.0|granted|signed|given|agreed)"
_FORM = r"(?:(?:(?:consent|release) )?form|consent|agreement|contract|release)"
_NUMBER = r"(?: no\.?| number)?[ _#-]*[a-z]{0,4}[-_]?\d[\d/_-]*(?:\.pdf)?"
_WRITTEN_DATE_FORMATS = ("%Y-%m-%d", "%d-%m-%Y", "%m-%d-%Y")
_SIGNED = rf"^(?:{_YES}|(?:{_YES},? (?:on )?)?{_DATE}|{_FORM}{_NUMBER})$"


def list_refusals_by_first_case(
    facts: pl.DataFrame, *cases: tuple[pl.Expr, pl.Expr | str]
) -> pl.DataFrame:
    """Refuse photos for which a condition holds, with the message of the first such condition.

    Of several rows of a photo, the first refused one counts.

    Examples
    --------
    >>> facts = pl.DataFrame({"image_id": ["a", "b"], "n": [1, None]})
    >>> list_refusals_by_first_case(facts, (pl.col("n") > 0, "Too many.")).rows()
    [('a', 'Too many.')]
    """
    masks = [condition.fill_null(value=False) for condition, _ in cases]
    reason = pl.coalesce(
        pl.when(mask).then(pl.lit(message) if isinstance(message, str) else message)
        for mask, (_, message) in zip(masks, cases, strict=True)
    )
    refusals = facts.select("image_id", reason=reason, is_out=pl.any_horizontal(masks)).filter(
        "is_out"
    )
    return refusals.drop("is_out").unique("image_id", keep="first", maintain_order=True)


def cast_or_add_null_column(
    facts: pl.DataFrame, column: str, dtype: pl.DataType | type[pl.DataType]
) -> pl.DataFrame:
    """Cast a column, or add it as nulls if it is missing.

    Examples
    --------
    >>> facts = pl.DataFrame({"image_id": ["a"]})
    >>> cast_or_add_null_column(facts, "age", pl.Float64)["age"].to_list()
    [None]
    """
    if column in facts.columns:
        return facts.with_columns(pl.col(column).cast(dtype, strict=False))
    return facts.with_columns(pl.lit(None, dtype=dtype).alias(column))


def build_signed_form_mask(column: str) -> pl.Expr:
    """Build a mask of signed forms: a clear yes, a date or a form's number, and no other word.

    Examples
    --------
    >>> facts = pl.DataFrame({"consent": ["form 12", "2024-05-01", "Yes", "no", "maybe", None]})
    >>> facts.select(build_signed_form_mask("consent")).to_series().to_list()
    [True, True, True, False, False, False]
    """
    text = _build_lower_case_text(column)
    day = text.str.extract(f"({_DATE})").str.slice(0, 10).str.replace_all(r"[/.]", "-")
    day = day.str.extract(r"^(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}-\d{1,2}-\d{4})")
    latest = dt.datetime.now(tz=dt.UTC).date() + dt.timedelta(days=1)  # today in all time zones
    is_past_date = [
        day.str.to_date(date_format, strict=False) <= latest
        for date_format in _WRITTEN_DATE_FORMATS
    ]
    form = text.str.contains(f"^{_FORM}{_NUMBER}$")
    is_real_date = (
        form
        | day.is_null()
        | pl.any_horizontal(
            *(is_plausible_date.fill_null(value=False) for is_plausible_date in is_past_date)
        )
    )
    return (text.str.contains(_SIGNED) & is_real_date).fill_null(value=False)


def round_up_to_two_decimals(number: pl.Expr) -> pl.Expr:
    """Round up to two decimals, so that a value just above a limit is not printed as the limit.

    Examples
    --------
    >>> pl.select(round_up_to_two_decimals(pl.lit(2.001))).item()
    2.01
    >>> pl.select(round_up_to_two_decimals(pl.lit(2.5))).item()
    2.5
    """
    return ((number * 100 - 1e-6).ceil() / 100).round(2)


def extract_first_unclear_entry(column: str) -> pl.Expr:
    """Take each photo's first entry that is not empty and not a clear yes; null without one.

    Examples
    --------
    >>> facts = pl.DataFrame({"image_id": ["a", "a", "b"], "consent": [None, "Maybe", ""]})
    >>> facts.select(extract_first_unclear_entry("consent")).to_series().to_list()
    ['Maybe', 'Maybe', None]
    """
    word = pl.col(column).cast(pl.String).str.strip_chars()
    return word.filter((word != "") & ~build_signed_form_mask(column)).first().over("image_id")


def _build_lower_case_text(column: str) -> pl.Expr:
    return pl.col(column).cast(pl.String).str.strip_chars().str.to_lowercase()
