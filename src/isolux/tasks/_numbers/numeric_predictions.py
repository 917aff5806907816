"""Numeric predictions and numeric attributes, one number per unit."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from isolux.core.containers import Dataset
from isolux.core.errors import SpecError, TableError, format_location
from isolux.core.notes import Caution
from isolux.core.tables import INSTANCES, to_polars
from isolux.tasks._ids import refuse_no_match, require_columns

MAX_ABSOLUTE_VALUE = 1e30
"""Far above this, moments of squared errors are infinite; no measurement is that large."""
# A caution from this many people, where this share of them has no number.
_MIN_PEOPLE, _MAX_MISSING_SHARE = 20, 0.1


def read_metric_name(predictions: pl.DataFrame) -> str | None:
    """Return the name of the number, where the table has it in a column ``metric``."""
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


def read_unit_numbers(
    dataset: Dataset, predictions: object, model: str | None
) -> tuple[pl.DataFrame, list[str]]:
    """Match each model's numbers to the units; with notes."""
    table = _check_numbers(to_polars(predictions))
    instances = INSTANCES.conform(dataset.instances).select("cluster_id", unit_id="instance_id")
    models = sorted(table["model"].unique()) or [model or "model"]
    is_known = table["instance_id"].is_in(instances["unit_id"].implode())
    refuse_no_match(
        "no number is of a unit of the dataset",
        table["instance_id"],
        instances["unit_id"],
        n_matched=int(is_known.sum()),
    )
    units = (
        pl.DataFrame({"model": models}, schema={"model": pl.String})
        # All people for every model, so that a missing number is a row with a reason.
        .join(instances, how="cross", maintain_order="left_right")
        .join(
            table.rename({"instance_id": "unit_id"}),
            on=["model", "unit_id"],
            how="left",
            maintain_order="left",
        )
        .select("model", "unit_id", "cluster_id", "value")
    )
    n_unmatched = table.height - int(is_known.sum())
    notes = [f"{n_unmatched:,} numbers are of units that the dataset has not; they were left out."]
    return units, [*(notes if n_unmatched else []), *_count_missing_numbers(units)]


def _count_missing_numbers(units: pl.DataFrame) -> list[str]:
    """Count people without a number, for each model; a caution where they are many."""
    notes: list[str] = []
    for (model,), model_rows in units.group_by(["model"], maintain_order=True):
        n = model_rows["value"].null_count()
        text = f"{n:,} of {model_rows.height:,} people have no number of {model!r}"
        caution = Caution(f"{text}: every number is about the others alone. Is the file whole?")
        is_many = model_rows.height >= _MIN_PEOPLE and n >= _MAX_MISSING_SHARE * model_rows.height
        notes += [caution if is_many else f"{text}."] if n else []
    return notes


def _check_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Check columns, types, duplicates and size of numbers."""
    source = "predictions"
    # Model outputs call the number "score", tables of measurements call it "value".
    column = "value" if "value" in frame.columns else "score"
    require_columns(frame, ("model", "instance_id", column))
    if not frame.schema[column].is_numeric() and frame[column].is_not_null().any():
        raise TableError(
            "a model's answer is not a number",
            expected="numbers",
            found=str(frame.schema[column]),
            where=format_location(source, column=column),
        )
    number_expr = pl.col(column).cast(pl.Float64).fill_nan(None)
    table = frame.select(pl.col("model", "instance_id").cast(pl.String), value=number_expr)
    number, magnitude = pl.col("value"), pl.col("value").abs()
    for is_bad, problem, expected, template in (
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
            magnitude > MAX_ABSOLUTE_VALUE,
            "{n:,} number(s) are too large to be measured",
            f"numbers up to {MAX_ABSOLUTE_VALUE:g}: their squares are summed",
            "{value:g} of {id!r}",
        ),
    ):
        rows = table.filter(is_bad)
        if rows.height:
            observed = template.format(value=rows["value"][0], id=rows["instance_id"][0])
            raise TableError(
                problem.format(n=rows.height), expected=expected, found=observed, where=source
            )
    return table


def read_numeric_attribute(
    dataset: Dataset, attribute: str, unknown_values: Collection[str]
) -> pl.DataFrame:
    """Return ``unit_id`` and ``number`` (null: unknown) of a numeric attribute."""
    dataset.values_of(attribute)  # refuses an unknown attribute, and lists the others
    rows = dataset.instance_attributes().filter(attribute=attribute)
    word = pl.col("value").str.strip_chars().str.to_lowercase()
    words = pl.Series([w.strip().lower() for w in unknown_values], dtype=pl.String)
    unknown_numbers = words.cast(
        pl.Float64, strict=False
    )  # 999 is 999.0, however the file writes it
    parsed = pl.col("value").str.strip_chars().cast(pl.Float64, strict=False)
    is_code = parsed.is_in(unknown_numbers.filter(unknown_numbers.is_finite()).implode()).fill_null(
        value=False
    )
    is_unknown = word.is_in(words.implode()) | is_code
    number_columns = [pl.col("number")] if "number" in rows.columns else []
    rows = rows.filter(pl.col("value").is_not_null(), ~is_unknown).with_columns(
        # The number that the loader stored goes first: bins of the attribute use it as well.
        number=pl.coalesce(*number_columns, parsed)
    )
    # "inf" and "nan" parse as numbers, and one of them would make a group's mean useless.
    is_usable = pl.col("number").is_finite() & (pl.col("number").abs() <= MAX_ABSOLUTE_VALUE)
    unusable_rows = rows.filter(~is_usable.fill_null(value=False))
    if unusable_rows.height:
        raise TableError(
            f"{unusable_rows.height:,} value(s) of {attribute!r} are not numbers that can be"
            " measured",
            expected=f"one number a unit, up to {MAX_ABSOLUTE_VALUE:g}, or a word of"
            " unknown_values",
            found=f"{unusable_rows['value'][0]!r} of {unusable_rows['unit_id'][0]!r}",
            where=dataset.name,
        )
    # Taking the first of two ages would depend on the order of rows.
    duplicates = rows.filter(pl.col("unit_id").is_duplicated())
    if duplicates.height:
        raise TableError(
            f"a unit has several values of {attribute!r}",
            expected="one number a unit",
            found=repr(duplicates["unit_id"][0]),
            where=dataset.name,
        )
    return rows.select("unit_id", "number")
