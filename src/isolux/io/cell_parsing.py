"""Cells of outside tables: to text, to numbers, to lists of several values.

CSV holds text only, Parquet and JSON lines hold types; a value must come out the same from each,
so that ``3`` in a CSV, ``3`` in Parquet and the ``3.0`` that pandas makes of it next to a missing
cell are one group.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import polars as pl

from isolux.core.errors import SpecError, TableError, format_location
from isolux.core.refusals import refuse

_WHOLE_NUMBER = r"^[+-]?[0-9]+(\.0*)?$"
_ZERO_DECIMALS = r"\.0*$"
_MINUS_ZERO = r"^(\s*)-(0+(?:\.0*)?(?:[eE][+-]?[0-9]+)?\s*)$"
_INVISIBLE = "\u200b\u2060\ufeff"  # zero-width space, word joiner, byte-order mark
_MIN_ROWS_TO_DEDUPLICATE, _MAX_DISTINCT_TEXTS = (
    1_000,
    100,
)  # a column of many rows is read by its different texts
_UNITS_PER_SECOND = {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_STRIPPED_CHARACTERS = _INVISIBLE + " \t\r\n\u00a0"


def is_readable_dtype(dtype: pl.DataType) -> bool:
    """Return whether cells of this type are values or lists of values, not structs or bytes."""
    cell = dtype.inner if isinstance(dtype, pl.List | pl.Array) else dtype
    return not (cell.is_nested() or cell in (pl.Binary, pl.Object))


def is_duration(dtype: pl.DataType) -> bool:
    """Tell whether cells of this type are lengths of time, or lists of them."""
    return isinstance(dtype.inner if isinstance(dtype, pl.List | pl.Array) else dtype, pl.Duration)


def drop_sign_of_zero(number: pl.Expr) -> pl.Expr:
    """Replace -0.0 by 0.0: they are one number, but would become two texts."""
    return pl.when(number == 0.0).then(0.0).otherwise(number)  # polars takes `+ 0.0` away


def as_text(values: pl.Series) -> pl.Series:
    """Write cells as text; null where there is nothing but spaces."""
    if (distinct := _distinct_texts(values)) is not None:
        return _expand_to_rows(distinct, as_text(distinct), values)
    if isinstance(values.dtype, pl.Array):
        values = values.arr.to_list()
    is_list = isinstance(values.dtype, pl.List)
    _refuse_structures(values)
    if is_duration(values.dtype):
        values = _durations_to_seconds(values)
    if is_list:
        values = _without_nan_in_lists(values)
    elif values.dtype.is_float():
        values = values.fill_nan(None)
    if _is_integral(values.explode() if is_list else values):
        values = values.cast(pl.List(pl.Int64) if is_list else pl.Int64)
    text = _without_signed_zero(values.cast(pl.List(pl.String) if is_list else pl.String))
    if is_list:
        return text.list.eval(_null_if_blank(pl.element()))
    return text.to_frame("cell").select(_null_if_blank(pl.col("cell")))["cell"].alias(values.name)


def as_labels(values: pl.Series) -> pl.Series:
    """Write cells as the names of classes or groups: text without blanks around it."""
    if (distinct := _distinct_texts(values)) is not None:
        return _expand_to_rows(distinct, as_labels(distinct), values)
    text = _without_invisible(as_text(values))
    if isinstance(text.dtype, pl.List):
        trimmed = text.list.eval(pl.element().str.strip_chars())
        non_null = trimmed.explode().drop_nulls()
    else:
        trimmed = text.str.strip_chars()
        non_null = trimmed.drop_nulls()
    # The first cell tells of most columns that they hold words.
    for sample in (non_null.head(1), non_null):
        if not sample.str.contains(_WHOLE_NUMBER).all():
            return trimmed
    if isinstance(text.dtype, pl.List):
        return trimmed.list.eval(pl.element().str.replace(_ZERO_DECIMALS, ""))
    return trimmed.str.replace(_ZERO_DECIMALS, "")


def _without_invisible(text: pl.Series) -> pl.Series:
    """Strip zero-width characters from the ends of labels; an empty label becomes null."""
    if isinstance(text.dtype, pl.List) or not text.str.contains(f"[{_INVISIBLE}]").any():
        return text
    cells = text.to_frame("cell").select(
        _null_if_blank(pl.col("cell").str.strip_chars(_STRIPPED_CHARACTERS))
    )
    return cells["cell"].alias(text.name)


def as_lists(values: pl.Series, separator: str | None, *, keep_empty: bool = False) -> pl.Series:
    """Convert every cell to a list of texts; text is split at ``separator``."""
    if separator is not None and not separator:
        raise SpecError("the separator of values in a cell is empty", expected="such as ';'")
    text = as_text(values)
    if isinstance(text.dtype, pl.List):
        lists = text.fill_null([])
    elif separator is None:
        lists = text.to_frame("cell").select(pl.concat_list("cell").list.drop_nulls())["cell"]
    else:
        split_texts = text.str.split(separator).fill_null([])
        lists = split_texts.list.eval(_null_if_blank(pl.element().str.strip_chars()))
    return (lists if keep_empty else lists.list.drop_nulls()).alias(values.name)


def fill_empty_lists(lists: pl.Series) -> pl.Series:
    """Put a null into empty lists, so that exploding keeps their row."""
    cell = pl.col("cell")
    inner = lists.dtype.inner if isinstance(lists.dtype, pl.List) else pl.String()
    null_list = pl.lit(None, dtype=inner).implode()
    # Which of empty and null an explode keeps has changed between versions of polars.
    nonempty = pl.when(cell.list.len().fill_null(0) > 0).then(cell).otherwise(null_list)
    return lists.to_frame("cell").select(cell=nonempty)["cell"].alias(lists.name)


def first_as_text(values: pl.Series) -> pl.Series:
    """Write each cell, or the first item of its list, as text."""
    text = as_text(values)
    if isinstance(text.dtype, pl.List):
        return text.list.first()
    return text


def as_numbers(
    values: pl.Series, *, source: object, column: str, unknown: Iterable[str] = ()
) -> pl.Series:
    """Read cells as numbers, Float64; null where empty or one of the words in ``unknown``."""
    if values.dtype.is_numeric():
        return values.cast(pl.Float64)
    text = as_text(values)
    if isinstance(text.dtype, pl.List):
        raise TableError(
            "a column of numbers holds lists",
            expected="one number in each cell",
            where=format_location(source, column=column),
        )
    numbers = _parse_floats(text)
    has_value = text.is_not_null() & ~_matches_words(text, unknown)
    is_invalid = numbers.is_null() & has_value
    if is_invalid.any():
        row = first_true_row(is_invalid)
        refuse(
            TableError(
                f"{is_invalid.sum():,} cell(s) are not numbers",
                expected="a number such as 0.93, or nothing",
                found=repr(text[row]),
                where=format_location(source, row + 1, column),
                hint=_number_format_hint(str(text[row]).strip()),
            )
        )
    return numbers


def _number_format_hint(cell: str) -> str | None:
    """Suggest the accepted form of a number with a decimal comma, percent sign or separators."""
    if re.fullmatch(r"[+-]?\d*,\d+", cell):
        return f"write decimals with a point: {cell.replace(',', '.')}"
    if re.fullmatch(r"[+-]?\d+([.,]\d+)?\s*%", cell):
        return "write the number alone, without %"
    if re.fullmatch(r"[+-]?\d{1,3}(['’\s]\d{3})+([.,]\d+)?", cell):
        return "write thousands together: " + re.sub(r"['’\s]", "", cell).replace(",", ".")
    return None


def numbers_if_all(values: pl.Series, unknown: Iterable[str]) -> pl.Series | None:
    """Read text as numbers if every known cell is a finite one; otherwise None."""
    if (distinct := _distinct_texts(values)) is not None:
        parsed = numbers_if_all(distinct, unknown)
        return None if parsed is None else _expand_to_rows(distinct, parsed, values)
    text = as_text(values)
    numbers = _parse_floats(text)
    finite = numbers.is_finite().fill_null(value=False)
    has_value = text.is_not_null() & ~_matches_words(text, unknown)
    if not finite.any() or (has_value & ~finite).any():
        return None
    return numbers.set(~finite, None)


def first_true_row(mask: pl.Series) -> int:
    """Return the index of the first true value."""
    return int(mask.arg_true()[0])


def _distinct_texts(values: pl.Series) -> pl.Series | None:
    """Return the distinct texts of a long column if they are few; otherwise None."""
    if values.dtype != pl.String or len(values) < _MIN_ROWS_TO_DEDUPLICATE:
        return None
    if values.head(_MIN_ROWS_TO_DEDUPLICATE).n_unique() > _MAX_DISTINCT_TEXTS:
        return None
    distinct = values.unique(maintain_order=True)
    return distinct if len(distinct) <= _MAX_DISTINCT_TEXTS else None


def _expand_to_rows(distinct: pl.Series, parsed: pl.Series, values: pl.Series) -> pl.Series:
    """Map parsed distinct texts back to the rows of ``values``."""
    if parsed.dtype == pl.String and parsed.equals(distinct):
        return values
    has_text = distinct.is_not_null()
    return values.replace_strict(
        distinct.filter(has_text), parsed.filter(has_text), default=None, return_dtype=parsed.dtype
    )


def _parse_floats(text: pl.Series) -> pl.Series:
    return text.str.strip_chars().cast(pl.Float64, strict=False)


def _matches_words(text: pl.Series, words: Iterable[str]) -> pl.Series:
    folded = text.str.strip_chars().str.to_lowercase()
    return folded.is_in([word.lower() for word in words]).fill_null(value=False)


def _null_if_blank(cell: pl.Expr) -> pl.Expr:
    return pl.when(cell.str.contains(r"\S")).then(cell)


def _refuse_structures(values: pl.Series) -> None:
    if not is_readable_dtype(values.dtype):
        raise TableError(
            "a column cannot be read as text",
            expected="text, numbers, dates, true or false, or lists of these",
            found=str(values.dtype),
            where=format_location(column=values.name),
        )


def _durations_to_seconds(values: pl.Series) -> pl.Series:
    """Convert durations, or lists of them, to seconds."""
    length = values.dtype.inner if isinstance(values.dtype, pl.List) else values.dtype
    unit = _UNITS_PER_SECOND[getattr(length, "time_unit", "us")]
    if isinstance(values.dtype, pl.List):
        return values.list.eval(pl.element().cast(pl.Int64) / unit)
    return values.cast(pl.Int64) / unit


def _without_nan_in_lists(values: pl.Series) -> pl.Series:
    if not isinstance(values.dtype, pl.List) or values.dtype.inner not in (pl.Float64, pl.Float32):
        return values
    return values.list.eval(pl.element().fill_nan(None))


def _without_signed_zero(text: pl.Series) -> pl.Series:
    if isinstance(text.dtype, pl.List):
        return text.list.eval(pl.element().str.replace(_MINUS_ZERO, "${1}${2}"))
    if not text.str.contains("-0", literal=True).any():
        return text
    return text.str.replace(_MINUS_ZERO, "${1}${2}")


def _is_integral(numbers: pl.Series) -> bool:
    """Return whether all floats are integers, as pandas writes ids next to a missing cell."""
    if not numbers.dtype.is_float():
        return False
    # 2^53: beyond it a float no longer tells neighbouring whole numbers apart.
    return bool(((numbers == numbers.round()) & (numbers.abs() < 2.0**53)).all())
