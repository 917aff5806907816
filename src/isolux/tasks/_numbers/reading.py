"""Numbers that a model gave, one a unit, and codes among them that mean "not known"."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import polars as pl

from isolux.stats.statistic import FloatArray
from isolux.tasks._ids import refuse_no_match, require_columns
from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import SpecError, TableError, place
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import INSTANCES, to_polars

BY_WORD = "--option unknown_values={} leaves it out."
EMPTIED = "empty those cells."
_CODES = (-1.0, -9.0, -99.0, -999.0, -9999.0, -99999.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0, 1e9)
_MINUS_ONE = -1.0
_FEWEST_VALUES = 3  # other values beside -1: with fewer, -1, 0, 1 may be a scale


def codes_of_missing(values: FloatArray, *, what: str, cure: str) -> list[Caution]:
    """Caution where a common code for a missing value stands among numbers that it does not fit.

    Shapes: ``values`` [m].

    Examples
    --------
    >>> ages = np.array([20.0, 35.0, 61.0, 999.0, 999.0])
    >>> (said,) = codes_of_missing(ages, what="the true 'age'", cure=BY_WORD)
    >>> print(said.partition(". ")[0])
    2 of 5 values of the true 'age' are 999, and all others 20 to 61
    """
    known = values[~np.isnan(values)]
    distinct, counts = np.unique(known, return_counts=True)
    held = {c: int(n) for c, n in zip(distinct.tolist(), counts, strict=True) if c in _CODES}
    suspects = [c for c in held if held[c] > 1]
    rest = distinct[~np.isin(distinct, suspects)]
    if len(rest) < 2:
        return []
    low, high = float(rest[0]), float(rest[-1])
    is_scale = low < 0.0 or len(rest) < _FEWEST_VALUES
    return [
        Caution(
            f"{held[code]:,} of {len(known):,} values of {what} are {code:.0f}, and all others"
            f" {low:g} to {high:g}. If that is a code for a missing value:"
            f" {cure.format(f'{code:.0f}')}"
        )
        for code in suspects
        if max(low - code, code - high) > high - low or (code == _MINUS_ONE and not is_scale)
    ]


def codes_of_models(units: pl.DataFrame) -> list[Caution]:
    """Caution about each model's numbers that may be codes."""
    return [
        note
        for (model,), own in units.group_by(["model"], maintain_order=True)
        for note in codes_of_missing(own["value"].to_numpy(), what=f"{model!r}", cure=EMPTIED)
    ]


LARGEST = 1e30
"""Far beyond that, moments of squared errors are infinite. Nothing is measured so large."""
_FEWEST, _MANY = 20, 0.1


def measured_name(predictions: pl.DataFrame) -> str | None:
    """Return the name of the number, where the table says it in a column ``metric``."""
    if "metric" not in predictions.columns:
        return None
    names = predictions["metric"].drop_nulls().unique().sort().to_list()
    if len(names) > 1:
        raise SpecError(
            "one number of each unit is judged at a time",
            expected="one column of numbers: --score-column NAME",
            found=", ".join(map(repr, names[:10])),
        )
    return names[0] if names else None


def numbers_of_units(
    dataset: Dataset, predictions: object, model: str | None
) -> tuple[pl.DataFrame, list[str]]:
    """Bring each model's numbers to the units."""
    table = _checked(to_polars(predictions))
    instances = INSTANCES.conform(dataset.instances).select("cluster_id", unit_id="instance_id")
    models = sorted(table["model"].unique()) or [model or "model"]
    known = table["instance_id"].is_in(instances["unit_id"].implode())
    refuse_no_match(
        "no number is of a unit of the dataset",
        table["instance_id"],
        instances["unit_id"],
        n_matched=int(known.sum()),
    )
    units = (
        pl.DataFrame({"model": models}, schema={"model": pl.String})
        .join(instances, how="cross", maintain_order="left_right")
        .join(
            table.rename({"instance_id": "unit_id"}),
            on=["model", "unit_id"],
            how="left",
            maintain_order="left",
        )
        .select("model", "unit_id", "cluster_id", "value")
    )
    strangers = table.height - int(known.sum())
    notes = [f"{strangers:,} numbers are of units that the dataset has not; they were left out."]
    return units, [*(notes if strangers else []), *_absent(units)]


def _absent(units: pl.DataFrame) -> list[str]:
    notes: list[str] = []
    for (model,), own in units.group_by(["model"], maintain_order=True):
        n = own["value"].null_count()
        text = f"{n:,} of {own.height:,} people have no number of {model!r}"
        many = Caution(f"{text}: every number is about the others alone. Is the file whole?")
        is_many = own.height >= _FEWEST and n >= _MANY * own.height
        notes += [many if is_many else f"{text}."] if n else []
    return notes


def _checked(frame: pl.DataFrame) -> pl.DataFrame:
    where = "predictions"
    column = "value" if "value" in frame.columns else "score"
    require_columns(frame, ("model", "instance_id", column))
    if not frame.schema[column].is_numeric() and frame[column].is_not_null().any():
        raise TableError(
            "a model's answer is not a number",
            expected="numbers",
            found=str(frame.schema[column]),
            where=place(where, column=column),
        )
    value = pl.col(column).cast(pl.Float64).fill_nan(None)
    table = frame.select(pl.col("model", "instance_id").cast(pl.String), value=value)
    number, size = pl.col("value"), pl.col("value").abs()
    for bad, problem, expected, shown in (
        (
            pl.struct("model", "instance_id").is_duplicated(),
            "a unit has two numbers",
            "one number for each model and unit",
            "{id!r}",
        ),
        (
            number.is_infinite(),
            "{n:,} number(s) are infinite",
            "finite numbers",
            "{value} of {id!r}",
        ),
        (
            size > LARGEST,
            "{n:,} number(s) are too large to be measured",
            f"numbers up to {LARGEST:g}: their squares are summed",
            "{value:g} of {id!r}",
        ),
    ):
        rows = table.filter(bad)
        if rows.height:
            found = shown.format(value=rows["value"][0], id=rows["instance_id"][0])
            raise TableError(
                problem.format(n=rows.height), expected=expected, found=found, where=where
            )
    return table


def number_of(dataset: Dataset, attribute: str, unknown_values: Collection[str]) -> pl.DataFrame:
    """Return ``unit_id`` and ``number`` (null: unknown) of a numeric attribute."""
    dataset.values_of(attribute)  # which names those there are
    rows = dataset.instance_attributes().filter(pl.col("attribute") == attribute)
    word = pl.col("value").str.strip_chars().str.to_lowercase()
    words = pl.Series([w.strip().lower() for w in unknown_values], dtype=pl.String)
    codes = words.cast(pl.Float64, strict=False)  # 999 is 999.0, however the file writes it
    parsed = pl.col("value").str.strip_chars().cast(pl.Float64, strict=False)
    coded = parsed.is_in(codes.filter(codes.is_finite()).implode()).fill_null(value=False)
    unknown = word.is_in(words.implode()) | coded
    own = [pl.col("number")] if "number" in rows.columns else []
    rows = rows.filter(pl.col("value").is_not_null() & ~unknown).with_columns(
        number=pl.coalesce(*own, parsed)
    )
    usable = pl.col("number").is_finite() & (pl.col("number").abs() <= LARGEST)
    bad = rows.filter(~usable.fill_null(value=False))
    if bad.height:
        raise TableError(
            f"{bad.height:,} value(s) of {attribute!r} are not numbers that can be measured",
            expected=f"one number a unit, up to {LARGEST:g}, or a word of unknown_values",
            found=f"{bad['value'][0]!r} of {bad['unit_id'][0]!r}",
            where=dataset.name,
        )
    twice = rows.filter(pl.col("unit_id").is_duplicated())
    if twice.height:
        raise TableError(
            f"a unit has several values of {attribute!r}",
            expected="one number a unit",
            found=repr(twice["unit_id"][0]),
            where=dataset.name,
        )
    return rows.select("unit_id", "number")
