"""Numbers that a model gave, brought to the units of a dataset, one a unit."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from isolux.vocabulary.containers import Dataset
from isolux.vocabulary.errors import JoinError, SpecError, TableError, UnknownNameError, place
from isolux.vocabulary.notes import Caution
from isolux.vocabulary.tables import INSTANCES, to_polars

__all__ = ["measured_name", "number_of", "numbers_of_units"]

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
    instances = INSTANCES.conform(dataset.instances).select(
        unit_id="instance_id", cluster_id="cluster_id"
    )
    models = tuple(table["model"].unique().sort()) or (model or "model",)
    every = pl.concat(
        [instances.select(pl.lit(m, dtype=pl.String).alias("model"), pl.all()) for m in models]
    )
    known = table["instance_id"].is_in(instances["unit_id"].implode())
    if table.height and instances.height and not known.any():
        raise JoinError(
            "no number is of a unit of the dataset",
            expected="instance ids such as " + _three(instances["unit_id"]),
            found=_three(table["instance_id"]),
            where="predictions",
        )
    units = every.join(
        table.rename({"instance_id": "unit_id"}), on=["model", "unit_id"], how="left",
        maintain_order="left",
    )  # fmt: skip
    strangers = table.height - int(known.sum())
    notes = [f"{strangers:,} numbers are of units that the dataset has not; they were left out."]
    return units, [*(notes if strangers else []), *_absent(units)]


def _absent(units: pl.DataFrame) -> list[str]:
    notes: list[str] = []
    for (model,), own in units.group_by(["model"], maintain_order=True):
        n = own["value"].null_count()
        if n and own.height >= _FEWEST and n >= _MANY * own.height:
            notes.append(
                Caution(
                    f"{n:,} of {own.height:,} people have no number of {model!r}: every number is"
                    " about the others alone. Is the file whole?"
                )
            )
        elif n:
            notes.append(f"{n:,} of {own.height:,} people have no number of {model!r}.")
    return notes


def _checked(frame: pl.DataFrame) -> pl.DataFrame:
    where = "predictions"
    column = "value" if "value" in frame.columns else "score"
    for name in ("model", "instance_id", column):
        if name not in frame.columns:
            raise UnknownNameError("column", name, frame.columns, where=where)
    if not frame.schema[column].is_numeric() and frame[column].is_not_null().any():
        raise TableError(
            "a model's answer is not a number",
            expected="numbers",
            found=str(frame.schema[column]),
            where=place(where, column=column),
        )
    value = pl.col(column).cast(pl.Float64).fill_nan(None)
    table = frame.select(pl.col("model", "instance_id").cast(pl.String), value=value)
    twice = table.filter(pl.struct("model", "instance_id").is_duplicated())
    if twice.height:
        raise TableError(
            "a unit has two numbers",
            expected="one number for each model and unit",
            found=repr(twice["instance_id"][0]),
            where=where,
        )
    endless = table.filter(pl.col("value").is_infinite())
    if endless.height:
        raise TableError(
            f"{endless.height:,} number(s) are infinite",
            expected="finite numbers",
            found=f"{endless['value'][0]} of {endless['instance_id'][0]!r}",
            where=where,
        )
    huge = table.filter(pl.col("value").abs() > LARGEST)
    if huge.height:
        raise TableError(
            f"{huge.height:,} number(s) are too large to be measured",
            expected=f"numbers up to {LARGEST:g}: their squares are summed",
            found=f"{huge['value'][0]:g} of {huge['instance_id'][0]!r}",
            where=where,
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
            expected=f"one number a unit, up to {LARGEST:g}, or a word of --unknown-values",
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


def _three(ids: pl.Series) -> str:
    return ", ".join(repr(i) for i in ids.head(3))
