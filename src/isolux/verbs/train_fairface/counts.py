"""How many faces of each class are learnt from, before a balance and after."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import polars as pl

from isolux.training import draws_of_cell
from isolux.verbs.train_fairface.rows import Rows
from isolux.vocabulary.notes import Caution

_FEW = 10  # rows of a class below which it is hardly learnt
_OFTEN = 10  # times that a face is shown in one epoch, from which on it may be learnt by heart
_SHOWN = 6
_SCHEMA = {"attribute": pl.String, "value": pl.String, "before": pl.Int64, "after": pl.Int64}


def class_counts(rows: Rows, train: npt.NDArray[np.int64]) -> pl.DataFrame:
    """Count the faces that are learnt from.

    Shapes: ``train`` [k].
    """
    frame = rows.frame[train]
    names = list(dict.fromkeys((*rows.classes, *rows.balance)))
    if rows.balance:
        cells = frame.group_by(rows.balance).len("before")
        shares = cells.with_columns(after=pl.lit(_drawn(rows, train)) / pl.col("before"))
        frame = frame.join(shares.drop("before"), on=rows.balance, how="left")
    else:
        frame = frame.with_columns(after=pl.lit(1.0))
    found = [_counted(frame, name, rows.classes.get(name, ())) for name in names]
    if len(rows.balance) > 1:
        joined = pl.concat_str(rows.balance, separator=" × ").alias("*".join(rows.balance))
        found.append(_counted(frame.with_columns(joined), "*".join(rows.balance), ()))
    return pl.concat([pl.DataFrame(schema=_SCHEMA), *found])


def _counted(frame: pl.DataFrame, name: str, classes: tuple[str, ...]) -> pl.DataFrame:
    counts = frame.drop_nulls(name).group_by(value=name).agg(
        before=pl.len().cast(pl.Int64), after=pl.col("after").sum().round().cast(pl.Int64)
    )  # fmt: skip
    order = classes or tuple(counts["value"].sort().to_list())
    whole = pl.DataFrame({"value": order}, schema={"value": pl.String}).join(
        counts, on="value", how="left", maintain_order="left"
    )
    told = whole.with_columns(pl.col("before", "after").fill_null(0), attribute=pl.lit(name))
    return told.select(*_SCHEMA)


def _drawn(rows: Rows, train: npt.NDArray[np.int64]) -> int:
    cells = rows.cells()
    return 0 if cells is None else draws_of_cell(cells[train])


def told_of_counts(rows: Rows, counts: pl.DataFrame) -> tuple[str, ...]:
    """Say which classes are rare, and which faces a balance shows again and again."""
    notes: list[str] = []
    learnt = counts.filter(pl.col("attribute").is_in(list(rows.classes)), pl.col("before") < _FEW)
    if learnt.height:
        told = _listed([f"{row['value']} {row['before']}" for row in learnt.iter_rows(named=True)])
        notes.append(
            Caution(f"{learnt.height:,} classes have fewer than {_FEW} faces to be learnt from:"
                    f" {told}.")
        )  # fmt: skip
    if rows.balance:
        notes += _told_of_balance(counts.filter(attribute="*".join(rows.balance)), rows)
    return tuple(notes)


def _told_of_balance(cells: pl.DataFrame, rows: Rows) -> list[str]:
    there = cells.filter(pl.col("before") > 0)
    possible = 1
    for name in rows.balance:
        possible *= max(rows.frame[name].n_unique(), 1)
    named = " × ".join(rows.balance)
    each, had = int(there["after"][0]), sorted(there["before"].to_list())
    text = (
        f"Balanced over {there.height:,} of {possible:,} combinations of {named}: each epoch draws"
        f" {each:,} faces of each, which had {had[0]:,} to {had[-1]:,}."
    )
    if there.height < possible:
        text += " No draw makes up for combinations that no face is of."
    notes: list[str] = [text]
    times = there.with_columns(times=pl.col("after") / pl.col("before"))
    again = times.filter(pl.col("times") >= _OFTEN).sort("times", descending=True)
    if again.height:
        told = _listed([f"{row['value']} ({row['before']} faces, {row['times']:.0f} times)"
                        for row in again.iter_rows(named=True)])  # fmt: skip
        notes.append(
            Caution(f"Faces of {again.height:,} rare combinations are shown {_OFTEN} times or more"
                    f" in each epoch, and may be learnt by heart: {told}.")
        )  # fmt: skip
    return notes


def _listed(words: list[str]) -> str:
    more = f" and {len(words) - _SHOWN:,} more" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + more
