"""A model's answers for each unit: which was first, which were next, and was anyone found at all.

Units are numbered ``model * n_instances + row``, so that everything after this file joins on one
whole number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl

from isolux.tasks.classification.vocabulary import Words
from isolux.vocabulary.counts import TIMES, people_at
from isolux.vocabulary.errors import JoinError
from isolux.vocabulary.places import places
from isolux.vocabulary.tables import LABEL_PREDICTIONS, check, to_polars

__all__ = ["Answers", "first_of_unit", "read_answers"]

_UNNAMED = "model"
# Looking for a repeated key in the raw table takes longer than the rest of the task; in sorted
# units it is a glance, and only where it finds one is the raw table asked for the place.
_UNKEYED = replace(LABEL_PREDICTIONS, key=())


@dataclass(frozen=True, slots=True)
class Answers:
    """What one or several models answered.

    Parameters
    ----------
    models : tuple of str
        Their names, sorted.
    asked : polars.DataFrame
        ``unit``, ``detected``, ``silent`` (no answer, and no word on whether it was detected): one
        row for every unit that the predictions speak of.
    ranked : polars.DataFrame
        ``unit``, ``label``, ``score``: the distinct answers of each unit, best first.
    tells_detection : bool
        Whether the predictions say who was not detected: by a flag or by an empty answer.
    notes : tuple of str
    """

    models: tuple[str, ...]
    asked: pl.DataFrame
    ranked: pl.DataFrame
    tells_detection: bool
    notes: tuple[str, ...]

    @property
    def several(self) -> bool:
        """Whether any unit has more than one answer."""
        return first_of_unit(self.ranked).height < self.ranked.height


def read_answers(
    predictions: object,
    units: pl.DataFrame,
    *,
    prediction_map: Mapping[str, str] | None,
    words: Words,
    model: str | None,
) -> Answers:
    """Reduce raw labels to classes, and number the units that they were given to."""
    table = check(to_polars(predictions), _UNKEYED, where="predictions")
    models = tuple(sorted(table["model"].unique())) or (model or _UNNAMED,)
    rows, notes = _numbered(table, units["unit_id"], models)
    times = units[TIMES] if TIMES in units.columns else None
    rows, said = _without_unknown(rows, words, times)
    notes += said
    asked = first_of_unit(rows).select(
        "unit",
        detected=pl.coalesce("detected", pl.col("label").is_not_null()),
        silent=pl.col("detected").is_null() & pl.col("label").is_null(),
    )
    tells = bool(table["detected"].is_not_null().any() or rows["label"].is_null().any())
    ranked = rows.select("unit", "label", "score")
    if prediction_map is not None:
        ranked, said = _to_classes(ranked, prediction_map, times)
        notes += said
    if words.merge or words.same:
        read = pl.col("label").replace(words.merge).replace(words.same)
        ranked = ranked.with_columns(read)
    return Answers(models, asked, _distinct(ranked.drop_nulls("label")), tells, tuple(notes))


def _row_of(rows: pl.DataFrame, times: pl.Series | None) -> pl.Series:
    """Return the place in the dataset of each row's unit, whatever the model."""
    return rows["unit"] if times is None else rows["unit"] % len(times)


def _without_unknown(
    rows: pl.DataFrame, words: Words, times: pl.Series | None
) -> tuple[pl.DataFrame, list[str]]:
    """Empty the answers that mean "not known"; null and NaN are empty already."""
    unknown = rows["label"].is_in(list(words.unknown)).fill_null(value=False)
    if not unknown.any():
        return rows, []
    spelled = ", ".join(repr(w) for w in rows["label"].filter(unknown).unique().sort())
    n = people_at(_row_of(rows.filter(unknown), times), times)
    note = f"{n:,} answers mean unknown ({spelled}) and are read as empty ones."
    empty = pl.when(~unknown).then(pl.col("label"))
    return rows.with_columns(label=empty), [note]


def first_of_unit(ranked: pl.DataFrame) -> pl.DataFrame:
    """Keep the first row of each unit of a frame that is sorted by ``unit``."""
    return ranked.filter(pl.col("unit").ne_missing(pl.col("unit").shift()))


def _distinct(ranked: pl.DataFrame) -> pl.DataFrame:
    """Keep the first of a unit's answers that are alike."""
    if first_of_unit(ranked).height == ranked.height:
        return ranked
    # One whole number for unit and label: several times quicker than a key of two columns.
    code = pl.col("label").cast(pl.Categorical).to_physical().cast(pl.Int64)
    key = pl.col("unit") * (code.max() + 1) + code
    return ranked.filter(key.is_first_distinct())


def _numbered(
    table: pl.DataFrame, instance_ids: pl.Series, models: tuple[str, ...]
) -> tuple[pl.DataFrame, list[str]]:
    row = places(table["instance_id"], instance_ids.cast(pl.String))
    placed = table.with_columns(row=row).filter(pl.col("row") >= 0)
    strangers = table.height - placed.height
    if table.height and len(instance_ids) and not placed.height:
        raise JoinError(
            "no prediction is for a unit of the dataset",
            expected="instance ids such as " + _three(instance_ids),
            found=_three(table["instance_id"]),
        )
    notes = [
        f"{strangers:,} predictions are for units that the dataset has not; they were left out."
    ]
    number = pl.col("row").cast(pl.Int64)
    if len(models) > 1:
        order = {name: i * len(instance_ids) for i, name in enumerate(models)}
        number += pl.col("model").replace_strict(order, return_dtype=pl.Int64)
    rows = placed.with_columns(unit=number).sort("unit", "rank")
    repeated = pl.struct("unit", "rank") == pl.struct("unit", "rank").shift()
    if rows.select(repeated.any()).item():
        check(table, LABEL_PREDICTIONS, where="predictions")
    return rows, notes if strangers else []


def _to_classes(
    ranked: pl.DataFrame, prediction_map: Mapping[str, str], times: pl.Series | None
) -> tuple[pl.DataFrame, list[str]]:
    classes = pl.col("label").replace_strict(
        dict(prediction_map), default=None, return_dtype=pl.String
    )
    mapped = ranked.with_columns(raw="label", label=classes, place=pl.int_range(pl.len()))
    dropped = mapped.filter(pl.col("label").is_null() & pl.col("raw").is_not_null())
    kept = mapped.drop_nulls("label").sort(
        "unit", "score", "place", descending=[False, True, False], nulls_last=True
    )
    notes: list[str] = []
    if dropped.height:
        only = dropped.select("unit").unique().join(kept, on="unit", how="anti")
        left = people_at(_row_of(only, times), times)
        notes.append(
            f"{people_at(_row_of(dropped, times), times):,} answers with "
            f"{dropped['raw'].n_unique():,} labels that the prediction map does not name "
            f"were dropped; {left:,} units had no other answer, which counts as a mistake."
        )
    return kept.select("unit", "label", "score"), notes


def _three(ids: pl.Series) -> str:
    return ", ".join(repr(i) for i in ids.head(3))
