"""How a rule says no: one row a photo, with words for the person who sent it."""

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
_WRITTEN = ("%Y-%m-%d", "%d-%m-%Y", "%m-%d-%Y")
_SIGNED = rf"^(?:{_YES}|(?:{_YES},? (?:on )?)?{_DATE}|{_FORM}{_NUMBER})$"


def refused(facts: pl.DataFrame, *cases: tuple[pl.Expr, pl.Expr | str]) -> pl.DataFrame:
    """Refuse photos of which a case holds, in the words of the first; of a photo's the first row's.

    Examples
    --------
    >>> facts = pl.DataFrame({"image_id": ["a", "b"], "n": [1, None]})
    >>> refused(facts, (pl.col("n") > 0, "Too many.")).rows()
    [('a', 'Too many.')]
    """
    masks = [when.fill_null(value=False) for when, _ in cases]
    said = pl.coalesce(
        pl.when(mask).then(pl.lit(words) if isinstance(words, str) else words)
        for mask, (_, words) in zip(masks, cases, strict=True)
    )
    found = facts.select("image_id", reason=said, is_out=pl.any_horizontal(masks)).filter("is_out")
    return found.drop("is_out").unique("image_id", keep="first", maintain_order=True)


def known(facts: pl.DataFrame, name: str, kind: pl.DataType | type[pl.DataType]) -> pl.DataFrame:
    """Give a column that may be missing, as nulls of its type.

    Examples
    --------
    >>> known(pl.DataFrame({"image_id": ["a"]}), "age", pl.Float64)["age"].to_list()
    [None]
    """
    if name in facts.columns:
        return facts.with_columns(pl.col(name).cast(kind, strict=False))
    return facts.with_columns(pl.lit(None, dtype=kind).alias(name))


def signed(name: str) -> pl.Expr:
    """Tell whether a form was signed: a clear yes, a date or a form's number; no other word is.

    Examples
    --------
    >>> facts = pl.DataFrame({"consent": ["form 12", "2024-05-01", "Yes", "no", "maybe", None]})
    >>> facts.select(signed("consent")).to_series().to_list()
    [True, True, True, False, False, False]
    """
    text = _text(name)
    day = text.str.extract(f"({_DATE})").str.slice(0, 10).str.replace_all(r"[/.]", "-")
    day = day.str.extract(r"^(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}-\d{1,2}-\d{4})")
    latest = dt.datetime.now(tz=dt.UTC).date() + dt.timedelta(days=1)  # where it is tomorrow
    read = [day.str.to_date(form, strict=False) <= latest for form in _WRITTEN]
    form = text.str.contains(f"^{_FORM}{_NUMBER}$")
    real = form | day.is_null() | pl.any_horizontal(*(one.fill_null(value=False) for one in read))
    return (text.str.contains(_SIGNED) & real).fill_null(value=False)


def rounded_up(number: pl.Expr) -> pl.Expr:
    """Round to two places, upwards: what exceeds a limit by little is not told as the limit.

    Examples
    --------
    >>> pl.select(rounded_up(pl.lit(2.001))).item(), pl.select(rounded_up(pl.lit(2.5))).item()
    (2.01, 2.5)
    """
    return ((number * 100 - 1e-6).ceil() / 100).round(2)


def unclear(name: str) -> pl.Expr:
    """Give the first word of each photo that is written there and is no clear yes; null: none.

    Examples
    --------
    >>> facts = pl.DataFrame({"image_id": ["a", "a", "b"], "consent": [None, "Maybe", ""]})
    >>> facts.select(unclear("consent")).to_series().to_list()
    ['Maybe', 'Maybe', None]
    """
    word = pl.col(name).cast(pl.String).str.strip_chars()
    return word.filter((word != "") & ~signed(name)).first().over("image_id")


def _text(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.String).str.strip_chars().str.to_lowercase()
